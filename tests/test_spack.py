"""The Spack repository and its environments: what can be checked without Spack."""

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from understudy.paths import ROOT

SPACK = ROOT / "spack-repo"
REPOSITORY = SPACK / "spack_repo" / "understudy"
PACKAGES = REPOSITORY / "packages"
ENVIRONMENTS = SPACK / "environments"
OURS = {path.parent.name.replace("_", "-") for path in PACKAGES.glob("*/package.py")}
NAMES = sorted(p.parent.name for p in ENVIRONMENTS.glob("*/spack.yaml"))


def directives(package: str, name: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls of a directive in a recipe: its first argument, and keywords that are literals."""
    tree = ast.parse((PACKAGES / package.replace("-", "_") / "package.py").read_text())
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            keywords = {
                k.arg: k.value.value
                for k in node.keywords
                if k.arg and isinstance(k.value, ast.Constant)
            }
            found.append((ast.literal_eval(node.args[0]), keywords))
    return found


def lower_bound(spec: str) -> tuple[str, str]:
    name, _, version = spec.partition("@")
    return name.partition("+")[0], version.partition("+")[0].removesuffix(":")


def test_the_index_leads_to_the_repository() -> None:
    index = yaml.safe_load((ROOT / "spack-repo-index.yaml").read_text())
    assert [ROOT / path for path in index["repo_index"]["paths"]] == [REPOSITORY]
    repo = yaml.safe_load((REPOSITORY / "repo.yaml").read_text())["repo"]
    assert repo == {"namespace": REPOSITORY.name, "api": "v2.2"}


@pytest.mark.parametrize("package", sorted(OURS))
def test_recipes_import_each_name_of_spack(package: str) -> None:
    text = (PACKAGES / package.replace("-", "_") / "package.py").read_text()
    tree = ast.parse(text)
    stars = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.names[0].name == "*"]
    assert not stars
    assert directives(package, "license")
    urls = re.findall(r"https?://[^\s\"']+", text)
    assert all("readthedocs.io" in url for url in urls)  # no address that nobody answers


def test_the_python_recipe_has_the_dependencies_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {}
    for line in project["dependencies"]:
        name, _, version = line.partition(">=")
        asked[name.lower().removesuffix("-hpc")] = version
    given = {}
    for spec, more in directives("py-understudy", "depends_on"):
        name, version = lower_bound(spec)
        if (name.startswith("py-") and name != "py-hatchling") or name == "reframe":
            given[name.removeprefix("py-")] = version
            assert "when" not in more
    assert set(given) == set(asked)
    for name, version in asked.items():
        assert given[name].split(".")[: len(version.split("."))] == version.split("."), name
    python = dict(lower_bound(s) for s, _ in directives("py-understudy", "depends_on"))["python"]
    assert project["requires-python"] == f">={python}"


def test_both_recipes_have_the_versions_of_the_project() -> None:
    tags = subprocess.run(
        ["git", "tag", "--list", "v*"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    expected = {"main", *(tag.removeprefix("v") for tag in tags)}
    for package in ("understudy", "py-understudy"):
        assert {name for name, _ in directives(package, "version")} == expected


def test_the_version_of_reframe_is_one_that_we_test_with() -> None:
    pinned = re.search(r"^ReFrame-HPC==(\S+)", (ROOT / "requirements.txt").read_text(), re.M)
    assert pinned is not None
    assert pinned[1] in {name for name, _ in directives("reframe", "version")}


def test_the_options_of_the_recipe_are_those_of_cmake() -> None:
    recipe = (PACKAGES / "understudy" / "package.py").read_text()
    cmake = "".join(
        path.read_text() for path in (ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake"))
    )
    for option in set(re.findall(r'"(UND_[A-Z0-9_]+)"', recipe)):
        assert re.search(rf"(option|set)\({option} ", cmake), option


@pytest.mark.parametrize("name", NAMES)
def test_environments_are_complete(name: str) -> None:
    path = ENVIRONMENTS / name / "spack.yaml"
    found = yaml.safe_load(path.read_text())["spack"]
    variants = {p: {name for name, _ in directives(p, "variant")} for p in OURS}
    suite = []
    for include in found["include"]:
        file = path.parent / (include if isinstance(include, str) else include["path"])
        if file.name == "externals.yaml":
            assert (path.parent / "externals").stat().st_mode & 0o111  # it writes this file
            continue
        included = yaml.safe_load(file.read_text())
        suite += [spec for d in included.get("definitions", []) for spec in d.get("suite", [])]
    specs = [s for spec in found["specs"] for s in (suite if spec == "$suite" else [spec])]
    packages = {lower_bound(spec)[0].split("~")[0] for spec in specs}
    assert {"understudy", "py-understudy", "ior", "darshan-runtime"} <= packages
    for spec in specs:
        package = re.split(r"[@+~ ]", spec)[0]
        if package in OURS:
            used = re.findall(r"[+~]([a-z0-9_]+)", spec.split("^")[0])
            assert set(used) <= variants[package], spec


def test_the_externals_of_this_machine(tmp_path: Path) -> None:
    if shutil.which("dpkg-query") is None or shutil.which("gcc") is None:
        pytest.skip("no dpkg-query or no gcc here: externals are written for Debian")
    shutil.copy(ENVIRONMENTS / "localhost" / "externals", tmp_path)
    ran = subprocess.run(
        ["./externals"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    written = tmp_path / "externals.yaml"
    if "not installed; Spack needs a compiler" in ran.stderr:
        pytest.skip("Debian's package gcc is not installed")
    assert ran.returncode == 0, ran.stderr
    packages = yaml.safe_load(written.read_text())["packages"]
    for name, package in packages.items():
        [external] = package["externals"]
        assert re.match(rf"{name}@\d", external["spec"])
        assert Path(external["prefix"]).is_dir()
    if "openmpi" in packages:
        assert (tmp_path / "openmpi" / "include" / "mpi.h").is_file()
        assert (tmp_path / "openmpi" / "bin" / "mpicc").is_file()
    missing = re.findall(r"Spack builds (\S+)", ran.stderr)
    assert not set(missing) & set(packages)
