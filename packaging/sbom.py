"""Write the bill of materials of the wheel, in CycloneDX: sbom.py WHEEL; beside it, as .cdx.json.

It holds what `pip install WHEEL` brings, with the versions and licences in this environment, as a
tool says that is installed from requirements-dist.txt into build/sbom.
"""

import json
import subprocess
import sys
import venv
from importlib.metadata import requires
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ROOT / "build" / "sbom"


def dependencies(name: str) -> set[str]:
    """The normalized names of what a distribution needs, its own included."""
    waiting = {(canonicalize_name(name), "")}  # with an extra, or with none
    seen = set()
    while waiting:
        seen.add(wanted := waiting.pop())
        for row in map(Requirement, requires(wanted[0]) or []):
            if row.marker is None or row.marker.evaluate({"extra": wanted[1]}):
                waiting |= {(canonicalize_name(row.name), x) for x in ("", *row.extras)} - seen
    return {name for name, _ in seen}


def environment() -> dict[str, Any]:
    """The bill of materials of all that is installed beside understudy."""
    python = str(TOOLS / "bin" / "python")
    if not (TOOLS / "ready").exists():
        venv.create(TOOLS, clear=True, with_pip=True)
        requirements = ("--require-hashes", "-r", str(ROOT / "requirements-dist.txt"))
        subprocess.run([python, "-m", "pip", "install", "-q", *requirements], check=True)
        (TOOLS / "ready").touch()
    tool = [
        python,
        "-m",
        "cyclonedx_py",
        "environment",
        "--pyproject",
        str(ROOT / "pyproject.toml"),
    ]
    options = ["--output-reproducible", "--of", "JSON", "-o", "-", sys.executable]
    done = subprocess.run([*tool, *options], stdout=subprocess.PIPE, check=True)
    bill: dict[str, Any] = json.loads(done.stdout)
    return bill


def of_wheel(bill: dict[str, Any], version: str, names: set[str]) -> dict[str, Any]:
    """The bill without the components that are not in `names`."""
    root = bill["metadata"]["component"]
    root["version"] = version
    components = [c for c in bill["components"] if canonicalize_name(c["name"]) in names]
    kept = {component["bom-ref"] for component in components} | {root["bom-ref"]}
    rows = []
    for row in (row for row in bill["dependencies"] if row["ref"] in kept):
        needs = [reference for reference in row.get("dependsOn", []) if reference in kept]
        rows.append({"ref": row["ref"]} | ({"dependsOn": needs} if needs else {}))
    return bill | {"components": components, "dependencies": rows}


def main() -> None:
    wheel = Path(sys.argv[1])
    version = wheel.name.split("-")[1]
    bill = of_wheel(environment(), version, dependencies("understudy"))
    place = wheel.with_name(f"understudy-{version}.cdx.json")
    place.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
