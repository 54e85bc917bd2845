"""Releases, and the recipes of other package managers for them."""

import ast
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from understudy import __version__

ROOT = Path(__file__).resolve().parents[1]
PACKAGING = ROOT / "packaging"
[EASYCONFIG] = PACKAGING.glob("easybuild/*.eb")


def quietly(*command: str | Path, cwd: Path = ROOT) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def built(project: Path, folder: Path, target: str) -> Path:
    """The distribution that hatchling builds."""
    builder = (sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder)
    quietly(*builder, cwd=project)
    [path] = folder.iterdir()
    return path


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A clone, and the unpacked source distribution of it in a directory with a space."""
    folder = tmp_path_factory.mktemp("release")
    quietly("git", "clone", "-q", ROOT, folder / "clone")
    archive = built(folder / "clone", folder / "sdist", "sdist")
    (folder / "the sources").mkdir()
    quietly("tar", "-xzf", archive, "-C", folder / "the sources")
    [unpacked] = (folder / "the sources").iterdir()
    return folder / "clone", unpacked


def test_a_source_distribution_gives_the_wheel_of_the_checkout(
    sources: tuple[Path, Path], tmp_path: Path
) -> None:
    wheels = [
        built(project, tmp_path / name, "wheel")
        for name, project in zip(("clone", "sdist"), sources, strict=True)
    ]
    assert wheels[0].name == wheels[1].name
    assert contents(wheels[0]) == contents(wheels[1])


def test_studies_of_a_source_distribution_have_its_version(
    sources: tuple[Path, Path], tmp_path: Path
) -> None:
    version = built(sources[0], tmp_path / "core", "wheel").name.split("-")[1]
    projects = sorted((sources[1] / "studies").glob("*/pyproject.toml"))
    assert len(projects) >= 3
    for project in projects:
        wheel = built(project.parent, tmp_path / project.parent.name, "wheel")
        assert wheel.name.split("-")[1] == version


def test_a_source_distribution_has_what_packages_are_made_of(sources: tuple[Path, Path]) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "packaging", "LICENSES", "REUSE.toml"],
        cwd=sources[0],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert len(tracked) >= 10
    for name in tracked:
        assert (sources[1] / name).read_bytes() == (sources[0] / name).read_bytes()


def easyconfig() -> dict[str, Any]:
    """The parameters that are constants; a name that EasyBuild defines stands for itself."""
    values = {}
    for row in ast.parse(EASYCONFIG.read_text(encoding="utf-8")).body:
        assert isinstance(row, ast.Assign) and isinstance(row.targets[0], ast.Name)
        text = re.sub(r"\b(PYPI_SOURCE|SOURCELOWER_TAR_GZ)\b", r"'\1'", ast.unparse(row.value))
        values[row.targets[0].id] = ast.literal_eval(text)
    return values


def test_the_easyconfig_is_of_this_release_and_takes_pinned_wheels() -> None:
    values = easyconfig()
    toolchain = values["toolchain"]
    assert values["version"] == __version__
    expected = f"Understudy-{__version__}-{toolchain['name']}-{toolchain['version']}.eb"
    assert EASYCONFIG.name == expected
    pinned = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    assert "reframe-hpc" in {name for name, _, _ in values["exts_list"]}
    for name, version, options in values["exts_list"]:
        normalized = name.lower().replace("_", "-")
        [block] = re.findall(
            rf"^{normalized}=={version} .*?# via", pinned, re.MULTILINE | re.DOTALL
        )
        assert options["checksums"][0] in block, name


def test_images_are_made_by_one_script() -> None:
    for name in ("Containerfile", "understudy.def"):
        assert "packaging/install-in-image.sh" in (PACKAGING / name).read_text(encoding="utf-8")
    for script in PACKAGING.glob("*.sh"):
        quietly("bash", "-n", script)


def test_the_bill_of_materials_has_what_the_wheel_needs_and_no_more() -> None:
    sys.path.insert(0, str(PACKAGING))
    try:
        import sbom
    finally:
        sys.path.remove(str(PACKAGING))
    names = sbom.dependencies("understudy")
    assert {"reframe-hpc", "numpy", "pyyaml"} <= names
    assert not {"pytest", "hatchling", "mypy"} & names
    rows = [{"ref": "root", "dependsOn": ["numpy==2", "pytest==9"]}, {"ref": "numpy==2"}]
    components = [{"name": n, "bom-ref": f"{n}=={v}"} for n, v in (("numpy", 2), ("pytest", 9))]
    bill = {
        "metadata": {"component": {"bom-ref": "root"}},
        "components": components,
        "dependencies": [*rows, {"ref": "pytest==9"}],
    }
    kept = sbom.of_wheel(json.loads(json.dumps(bill)), "1.0", names)
    assert kept["metadata"]["component"]["version"] == "1.0"
    assert kept["components"] == components[:1]
    assert kept["dependencies"] == [
        {"ref": "root", "dependsOn": ["numpy==2"]},
        {"ref": "numpy==2"},
    ]
