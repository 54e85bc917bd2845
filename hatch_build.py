"""The wheel of understudy: plugin directories that it shares with studies, without their files."""

from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib
from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SharedDirectories(BuildHookInterface):
    """Includes `folders` of its table, but for the files that the wheel of a study includes."""

    def initialize(self, version: str, build_data: dict) -> None:
        root = Path(self.root)
        of_studies = {
            (project.parent / source).resolve()
            for project in root.glob("studies/*/pyproject.toml")
            for source in tomllib.loads(project.read_text("utf-8"))["tool"]["hatch"]["build"][
                "targets"
            ]["wheel"]["force-include"]
        }
        for folder in self.config["folders"]:
            for path in sorted((root / folder).rglob("*")):
                if path.is_file() and path.suffix != ".pyc" and path not in of_studies:
                    name = path.relative_to(root).as_posix()
                    build_data["force_include"][str(path)] = f"understudy/data/{name}"
