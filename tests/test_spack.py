"""The Spack repository and its environments: what can be checked without Spack."""

import ast
import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
import yaml

from tests.support.needs import need

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from tests.support import player
from tests.support.said import raises, said
from understudy import __version__
from understudy.errors import UnderstudyError
from understudy.paths import ROOT, directories, files
from understudy.reframe import spack
from understudy.reframe.bases.methods import lacks
from understudy.reframe.systems import NEEDS, load

SPACK = ROOT / "spack-repo"
REPOSITORY = SPACK / "spack_repo" / "understudy"
CHECKOUT = SPACK / "spack_repo" / "understudy_checkout"  # the packages of a clone
PACKAGES = REPOSITORY / "packages"
ENVIRONMENTS = SPACK / "environments"
PUBLISHED = ROOT / "studies" / "papers" / "environments"  # of the systems of the papers
OURS = {path.parent.name.replace("_", "-") for path in PACKAGES.glob("*/package.py")}
FOLDERS = {p.parent.name: p.parent for p in ENVIRONMENTS.glob("*/spack.yaml")}
OLD = sorted(p.parent.name for p in PUBLISHED.glob("*/spack.yaml"))
NAMES = sorted([*FOLDERS, *OLD])
FOLDERS |= {name: PUBLISHED / name for name in OLD}


def recipe(package: str, repository: Path = REPOSITORY) -> str:
    return (repository / "packages" / package.replace("-", "_") / "package.py").read_text()


def directives(
    package: str, name: str, repository: Path = REPOSITORY
) -> list[tuple[str, dict[str, Any]]]:
    """The calls of a directive in a recipe: its first argument, and keywords that are literals."""
    tree = ast.parse(recipe(package, repository))
    calls = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            keywords = {
                k.arg: k.value.value
                for k in node.keywords
                if k.arg and isinstance(k.value, ast.Constant)
            }
            calls.append((ast.literal_eval(node.args[0]), keywords))
    return calls


def lower_bound(spec: str) -> tuple[str, str]:
    name, _, version = spec.partition("@")
    return name.partition("+")[0], version.partition("+")[0].removesuffix(":")


def test_the_index_leads_to_the_repository() -> None:
    index = yaml.safe_load((ROOT / "spack-repo-index.yaml").read_text())
    # Spack takes a package of the first repository that has it.
    assert [ROOT / path for path in index["repo_index"]["paths"]] == [CHECKOUT, REPOSITORY]
    suite = yaml.safe_load((ENVIRONMENTS / "common" / "suite.yaml").read_text())["repos"]
    assert list(suite) == [CHECKOUT.name, REPOSITORY.name]
    for folder in (CHECKOUT, REPOSITORY):
        repo = yaml.safe_load((folder / "repo.yaml").read_text())["repo"]
        assert repo == {"namespace": folder.name, "api": "v2.2"}


@pytest.mark.parametrize("package", sorted(OURS))
def test_recipes_are_as_spack_takes_them(package: str) -> None:
    """On their own: nothing of this repository, and no method that Spack keeps for itself."""
    tree = ast.parse(recipe(package))
    imports = [n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)]
    assert not any(n.names[0].name == "*" for n in imports)
    origins = {n.module or "" for n in imports if isinstance(n, ast.ImportFrom)}
    assert all(
        o in ("pathlib", "spack.package") or o.startswith("spack_repo.builtin.") for o in origins
    )
    [body] = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    methods = [n.name for n in body.body if isinstance(n, ast.FunctionDef)]
    assert not any(name.startswith("_") or name == "detect_dev_src_change" for name in methods)
    assert directives(package, "license")
    values = {
        n.targets[0].id: ast.literal_eval(n.value)
        for n in body.body
        if isinstance(n, ast.Assign)
        and isinstance(n.targets[0], ast.Name)
        and n.targets[0].id in ("homepage", "git", "url", "pypi")
    }
    assert all(v.startswith("https://") for k, v in values.items() if k != "pypi")
    if package == "reframe":
        return
    assert directives(package, "maintainers")
    assert any(name.startswith("test_") for name in methods)
    # Of an address that only the owner of the project can replace, and of one project.
    assert values["homepage"] == "https://understudy.example.org"
    assert values["git"] == "https://understudy.example.org/understudy.git"


@pytest.mark.parametrize("package", sorted(OURS - {"reframe"}))
def test_packages_of_a_checkout_differ_in_their_source_alone(package: str) -> None:
    tree = ast.parse(recipe(package, CHECKOUT))
    [body] = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    [origin] = [b.id for b in body.bases if isinstance(b, ast.Name)]
    [name] = [
        f"{n.module}.{n.names[0].name}"
        for n in tree.body
        if isinstance(n, ast.ImportFrom) and n.names[0].asname == origin
    ]
    module = package.replace("-", "_")
    assert name == f"spack_repo.understudy.packages.{module}.package.{body.name}"
    methods = [n.name for n in body.body if isinstance(n, ast.FunctionDef)]
    assert methods == ["detect_dev_src_change"]
    assert 'version("main", branch="main", preferred=True)' in recipe(package, CHECKOUT)


def test_the_python_recipe_has_the_dependencies_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {}
    for line in project["dependencies"]:
        name, _, version = line.partition(">=")
        # Below a minor version is up to the one before it: <4.11 is :4.10.
        version = re.sub(r",<(\d+)\.(\d+)$", lambda m: f":{m[1]}.{int(m[2]) - 1}", version)
        asked[name.lower().removesuffix("-hpc")] = version
    given = {}
    for spec, more in directives("py-understudy", "depends_on"):
        name, version = lower_bound(spec)
        if (name.startswith("py-") and name != "py-hatchling") or name == "reframe":
            if name == "py-polars":
                extras = project["optional-dependencies"]
                assert [f"polars>={version}"] == extras["polars"] and more["when"] == "+polars"
                continue
            given[name.removeprefix("py-")] = version
            assert "when" not in more
    assert given == asked
    python = dict(lower_bound(s) for s, _ in directives("py-understudy", "depends_on"))["python"]
    assert project["requires-python"] == f">={python}"


def releases() -> dict[str, str]:
    """The commit of each release, by its version, as both packages of a checkout state it."""
    commits = [
        {
            name: more["commit"]
            for name, more in directives(package, "version", CHECKOUT)
            if name != "main"
        }
        for package in ("understudy", "py-understudy")
    ]
    assert commits[0] == commits[1] and __version__ in commits[0]
    return commits[0]


def has_no_history(commit: str) -> bool:
    """A copy without git or with a part of the history, which has no releases."""
    words = ["git", "rev-parse", "--is-shallow-repository"]
    asked = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if asked.stdout.strip() == "false":
        return False
    words = ["git", "cat-file", "-e", commit]
    return subprocess.run(words, cwd=ROOT, capture_output=True, check=False).returncode != 0


def test_a_release_is_a_commit_with_its_version() -> None:
    for name, commit in releases().items():
        if not has_no_history(commit):
            words = ["git", "show", f"{commit}:python/understudy/__init__.py"]
            shown = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
            assert f'__version__ = "{name}"' in shown.stdout


def distribution(root: Path, folder: Path, *words: str) -> str:
    """What the script of `make dist` prints of the source distribution of a copy."""
    command = [sys.executable, root / "packaging" / "release.py", "--only-source", *words, folder]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("package", ["understudy", "py-understudy"])
def test_recipes_state_the_archives_that_make_dist_makes(package: str, tmp_path: Path) -> None:
    stated = {name for name, _ in directives(package, "version")} - {"main"}
    assert stated == set(releases())
    for name, commit in releases().items():
        if not has_no_history(commit):
            line = distribution(ROOT, tmp_path, "--commit", commit)
            assert f"    {line}" in recipe(package)
            archive = (tmp_path / f"understudy-{name}.tar.gz").read_bytes()
            assert hashlib.sha256(archive).hexdigest() in line


def test_the_archive_of_a_commit_is_the_same_in_every_copy(tmp_path: Path) -> None:
    """Whatever else is in the copy, and whatever rights and times its files have."""
    copies = [tmp_path / name for name in ("a", "b")]
    for copy, mask in zip(copies, ("022", "077"), strict=True):
        clone = f'umask {mask} && git clone -q --depth=1 "file://$0" "$1"'
        subprocess.run(["bash", "-c", clone, str(ROOT), str(copy)], check=True)
        shutil.copy(ROOT / "packaging" / "release.py", copy / "packaging")
    (copies[1] / "python" / "understudy" / "untracked.py").touch()
    (copies[1] / "README.md").unlink()
    lines = [distribution(copy, copy / "dist") for copy in copies]
    assert lines[0] == lines[1] and lines[0].startswith('version("')
    [archive] = (copies[1] / "dist").iterdir()
    with tarfile.open(archive) as members:
        names = {name.partition("/")[2] for name in members.getnames()}
    assert {"README.md", "CMakeLists.txt", "studies/skel/pyproject.toml"} <= names
    assert "python/understudy/untracked.py" not in names


def test_the_version_of_reframe_is_one_that_we_test_with() -> None:
    pinned = re.search(r"^reframe-hpc==(\S+)", (ROOT / "requirements.txt").read_text(), re.M)
    assert pinned is not None
    assert pinned[1] in {name for name, _ in directives("reframe", "version")}


def test_the_options_of_the_recipe_are_those_of_cmake() -> None:
    cmake = "".join(
        path.read_text()
        for pattern in ("CMakeLists.txt", "cmake/*.cmake", "studies/*/cmake/*.cmake")
        for path in ROOT.glob(pattern)
    )
    for option in set(re.findall(r'"(UND_[A-Z0-9_]+)"', recipe("understudy"))):
        assert re.search(rf"(option|set)\({option} ", cmake), option


def test_the_recipe_needs_what_cmake_needs() -> None:
    needed = dict(s.partition("@")[::2] for s, _ in directives("understudy", "depends_on"))
    cmake = (ROOT / "CMakeLists.txt").read_text()
    for package, pattern in (
        ("cmake", r"cmake_minimum_required\(VERSION ([\d.]+)\)"),
        ("jansson", r"jansson>=([\d.]+)"),
    ):
        match = re.search(pattern, cmake)
        assert match is not None and needed[package] == f"{match[1]}:"
    assert needed["mpi"] == "3:"  # windows of shared memory
    for package in ("hdf5", "adios", "adios2"):
        assert needed[package].endswith("+mpi")
    found = re.search(r"liburing>=([\d.]+)", (ROOT / "cmake" / "liburing.cmake").read_text())
    assert found is not None and needed["liburing"] == f"{found[1]}:"


def included(path: Path) -> list[dict[str, Any]]:
    """The files that an environment includes, but those that a script beside it writes."""
    files = []
    for include in yaml.safe_load(path.read_text())["spack"]["include"]:
        file = path.parent / include
        if file.name == "externals.yaml":
            assert (path.parent / "externals").stat().st_mode & 0o111  # it writes this file
        else:
            files.append(yaml.safe_load(file.read_text()))
    return files


def test_every_system_has_an_environment_and_uses_it() -> None:
    systems, _ = load(directories("systems"))
    assert {s["name"] for s in systems} == set(NAMES) and len(NAMES) == len(FOLDERS)
    for system in systems:
        assert {p["extras"].get(spack.SPACK) for p in system["partitions"]} == {system["name"]}


@pytest.mark.parametrize("name", NAMES)
def test_environments_are_complete(name: str) -> None:
    path = FOLDERS[name] / "spack.yaml"
    environment = yaml.safe_load(path.read_text())["spack"]
    assert environment["view"] is True  # where the checks look for programs
    variants = {p: {name for name, _ in directives(p, "variant")} for p in OURS}
    definitions: dict[str, list[str]] = {}
    for part in included(path):
        for definition in part.get("definitions", []):
            definitions |= definition
    specs = [s for spec in environment["specs"] for s in definitions[spec.removeprefix("$")]]
    packages = {re.split(r"[@+~ ]", spec)[0] for spec in specs}
    assert {"understudy", "ior", "darshan-runtime", "darshan-util"} <= packages
    assert "macsio" not in packages and "macsio" in definitions  # for who accepts its licence
    assert ("py-understudy" in packages) == (name not in OLD)
    for spec in specs:
        package = re.split(r"[@+~ ]", spec)[0]
        if package in OURS:
            used = re.findall(r"[+~]([a-z0-9_]+)", spec.split("^")[0])
            assert set(used) <= variants[package], spec


def externals(name: str) -> dict[str, Any]:
    """The packages of an environment that are there already, by spec."""
    path = FOLDERS[name] / "spack.yaml"
    specs = {}
    packages: dict[str, Any] = yaml.safe_load(path.read_text())["spack"]["packages"]
    for part in (packages, *(p["packages"] for p in included(path) if "packages" in p)):
        for key, package in part.items():
            for external in package.get("externals", []):
                spec = external["spec"].split()[0]
                assert spec.split("@")[0] == key.rstrip(":")
                assert Path(external["prefix"]).is_absolute()
                specs[re.split(r"[+~]", spec)[0]] = package
    return specs


@pytest.mark.parametrize("name", OLD)
def test_environments_of_the_papers_name_their_compiler_and_mpi(name: str) -> None:
    path = FOLDERS[name] / "spack.yaml"
    assert "ssumed" in path.read_text().split("spack:")[0]
    environment = yaml.safe_load(path.read_text())["spack"]
    assert "../common/vendor.yaml" in environment["include"]
    vendor = yaml.safe_load((PUBLISHED / "common" / "vendor.yaml").read_text())["packages"]
    assert {"understudy", "adios", "ior", "darshan-runtime"} <= set(vendor)
    assert all(package == {"require": ["%vendor"]} for package in vendor.values())
    specs = externals(name)
    for rule in environment["toolchains"]["vendor"]:
        language, compiler = re.fullmatch(r"(%\w+)=(\S+)", rule["spec"]).groups()  # type: ignore[union-attr]
        assert rule["when"] == language and compiler in specs
    [mpi] = environment["packages"]["mpi"]["require"]
    provider = mpi.split("@")[0]
    assert mpi in specs or provider in path.read_text()
    if mpi in specs:  # Spack must not build another in its place
        assert specs[mpi]["buildable"] is False


@pytest.mark.parametrize(
    ("name", "mpi"), [("slurm-openmpi", "openmpi@5"), ("slurm-mpich", "mpich@4")]
)
def test_environments_of_today_take_compiler_mpi_slurm_and_lustre_of_the_site(
    name: str, mpi: str
) -> None:
    path = FOLDERS[name] / "spack.yaml"
    assert "Assumed" in path.read_text().split("spack:")[0]
    packages = yaml.safe_load(path.read_text())["spack"]["packages"]
    specs = externals(name)
    assert all(package["buildable"] is False for package in specs.values())
    assert {spec.split("@")[0] for spec in specs} == {"gcc", mpi.split("@")[0], "slurm", "lustre"}
    assert packages["mpi"]["require"] == [mpi] and any(s.startswith(f"{mpi}.") for s in specs)
    for language in ("c", "cxx", "fortran"):
        assert packages[language]["require"] == ["gcc@12:"]
    assert packages["hdf5"]["require"] == ["@1.14 +mpi"]


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"localhost"}))
def test_darshan_of_an_environment_knows_the_system(name: str) -> None:
    """Its Lustre and the job's number; and Spack builds no batch system beside the one there."""
    path = FOLDERS[name] / "spack.yaml"
    [system] = [s for s in load(directories("systems"))[0] if s["name"] == name]
    types = re.findall(r'TYPE: "(\w+)"', files("systems", ".py")[name].read_text())
    schedulers = {p["scheduler"] for p in system["partitions"]} - {"local"}
    parts = [*included(path), yaml.safe_load(path.read_text())["spack"]]
    packages = [part["packages"] for part in parts if "packages" in part]
    asked = [s for p in packages for s in p.get("darshan-runtime", {}).get("require", [])]
    assert ("+lustre" in asked) == ("lustre" in types)
    [scheduler] = {s.replace("torque", "pbs") for s in schedulers}
    assert f"scheduler={scheduler}" in asked
    if "schedulers=slurm" in str([p.get("mpi") for p in packages]):
        assert [p["slurm"]["buildable"] for p in packages if "slurm" in p] == [False]


def configured(monkeypatch: pytest.MonkeyPatch, folder: Path | None) -> tuple[Any, Any]:
    if folder is None:
        monkeypatch.delenv(spack.VARIABLE, raising=False)
    else:
        monkeypatch.setenv(spack.VARIABLE, str(folder))
    return load(directories("systems"))


def test_a_system_uses_its_environment_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    systems, environments = configured(monkeypatch, None)
    assert not any(e["name"].startswith(spack.PREFIX) for e in environments)
    systems, environments = configured(monkeypatch, ENVIRONMENTS)
    by_name = {e["name"]: e for e in environments if e["name"].startswith(spack.PREFIX)}
    assert len(by_name) == len(NAMES)
    for system in systems:
        name = spack.PREFIX + system["name"]
        assert by_name[name]["target_systems"] == [system["name"]]
        for partition in system["partitions"]:
            assert partition["environs"] == [name]
            assert (
                f"{ENVIRONMENTS / system['name']}/.spack-env/view/bin"
                in (partition["prepare_cmds"][-1])
            )
            assert partition["extras"][NEEDS][-1] == "spack"


def test_an_environment_that_is_not_there_is_one_message(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of the system in use: a site has environments for its own."""
    (tmp_path / "titan").mkdir()
    (tmp_path / "titan" / "spack.yaml").touch()
    configured(monkeypatch, tmp_path)
    titan, archer = (
        SimpleNamespace(fullname=f"{name}:work", extras={spack.SPACK: name})
        for name in ("titan", "archer")
    )
    spack.expect([titan])
    with raises(UnderstudyError, "archer-work-extra-spack"):
        spack.expect([titan, archer])


@pytest.mark.parametrize("name", ["a b", "a:b", "a$(touch x)", "a;b", "a'b", "ä"])
def test_a_directory_that_scripts_would_misread_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with raises(UnderstudyError, "spack-expected-path-letters"):
        configured(monkeypatch, tmp_path / name)


def test_a_job_ends_where_another_player_would_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(spack.VARIABLE, raising=False)
    assert spack.guard("mpi") == []
    monkeypatch.setenv(spack.VARIABLE, str(tmp_path))
    titan = environment(tmp_path / "titan", spack.PLAYER)
    other = environment(tmp_path / "other", spack.PLAYER)

    def job(*path: Path) -> subprocess.CompletedProcess[str]:
        lines = "\n".join(["set -e", *spack.guard("spack-titan"), "echo runs"])
        folders = ":".join(map(str, (*path, "/usr/bin", "/bin")))
        return subprocess.run(
            ["bash", "-c", lines],
            env={"PATH": folders},
            capture_output=True,
            text=True,
            check=False,
        )

    assert job(titan, other).stdout == "runs\n"
    assert job(other, titan).returncode == 1
    (titan / spack.PLAYER).chmod(0o644)
    done = job(titan, other)
    assert (done.returncode, done.stdout) == (1, "")
    said("found-executable-this-node", done.stderr, PLAYER=titan / spack.PLAYER)


def test_a_lock_that_changes_during_a_session_is_a_fault(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(spack.VARIABLE, str(tmp_path))
    environment(tmp_path / "titan", spack.PLAYER)
    lock = tmp_path / "titan" / "spack.lock"
    assert spack.changed("spack-titan") is None  # not installed by this process
    spack.note_installed(lock)
    assert spack.changed("spack-titan") is None and spack.changed("mpi") is None
    lock.write_text("{ }")
    said("changed-since-was-installed", str(spack.changed("spack-titan")), lock=lock)


def test_the_lock_of_the_environment_is_recorded_and_kept_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lock = tmp_path / "titan" / "spack.lock"
    lock.parent.mkdir()
    assert spack.lock("spack-titan") is None
    monkeypatch.setenv(spack.VARIABLE, str(tmp_path))
    assert spack.lock("spack-titan") is None  # not installed
    lock.write_text("{}")
    assert spack.lock("spack-titan") == lock
    kept = tmp_path / "session"
    kept.mkdir()
    for _ in range(2):
        assert spack.keep(lock, kept) == hashlib.sha256(b"{}").hexdigest()
    assert [p.read_text() for p in kept.iterdir()] == ["{}"]
    lock.write_text("{ }")
    spack.keep(lock, kept)
    assert sorted(p.read_text() for p in kept.iterdir()) == ["{ }", "{}"]


def environment(folder: Path, *programs: str) -> Path:
    """The view of an activated environment."""
    for name in programs:
        program = folder / ".spack-env" / "view" / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\necho /of/spack\n")
        program.chmod(0o755)
    (folder / "spack.lock").write_text("{}")
    return folder / ".spack-env" / "view" / "bin"


def test_the_player_of_an_environment_is_asked_for_its_methods(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not the one on PATH, which may have been built with more libraries."""
    monkeypatch.delenv(spack.VARIABLE, raising=False)
    assert spack.player("mpi") is None
    monkeypatch.setenv(spack.VARIABLE, str(tmp_path))
    assert spack.player("mpi") is None
    (tmp_path / "titan").mkdir()
    assert spack.player("spack-titan") is None  # not installed
    for folder, says in ((tmp_path, "available"), (tmp_path / "titan", "unavailable: too old")):
        program = environment(folder, spack.PLAYER) / spack.PLAYER
        program.write_text(f"#!/bin/sh\necho 'adios {says}'\n")
    monkeypatch.setenv("PATH", f"{spack.view(tmp_path)}/bin:/usr/bin:/bin")
    assert lacks("adios", spack.player("mpi")) is None
    said("adios-too-old", lacks("adios", spack.player("spack-titan")))


def test_an_activated_environment_comes_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    view = environment(tmp_path, "understudy-replay", "understudy")
    where = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SPACK_ENV": str(tmp_path)}
    script = '. "$0/setup-env.sh"; command -v understudy-replay understudy; echo $RFM_CONFIG_FILES'
    ran = subprocess.run(
        ["bash", "-c", script, str(ROOT)], capture_output=True, text=True, check=True, env=where
    )
    expected = [f"{view}/understudy-replay", f"{view}/understudy", "/of/spack"]
    assert ran.stdout.splitlines() == expected and not ran.stderr
    (view / "understudy").write_text("#!/bin/sh\nexit 1\n")
    ran = subprocess.run(ran.args, capture_output=True, text=True, check=True, env=where)
    assert ran.stdout.splitlines() == [*expected[:2], str(ROOT / "configs" / "settings.py")]
    said("does-run", ran.stderr, view=view)
    monkeypatch.delenv(spack.VARIABLE, raising=False)
    monkeypatch.setenv("SPACK_ENV", str(tmp_path))
    monkeypatch.setenv("PATH", f"{view}:/usr/bin:/bin")
    assert spack.lock("mpi") == tmp_path / "spack.lock"
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # a player that is not of the environment
    assert spack.lock("mpi") is None


def local_compilers(environment: Path, scope: Path) -> None:
    """Write a scope with the compilers of an environment, all of them this machine's GCC: Spack
    asks a compiler for its C library."""
    scope_packages: dict[str, Any] = {}
    packages = yaml.safe_load(environment.read_text())["spack"]["packages"]
    for part in (packages, *(p["packages"] for p in included(environment) if "packages" in p)):
        for key, package in part.items():
            for external in package.get("externals", []):
                if "extra_attributes" in external:
                    row = scope_packages.setdefault(f"{key.rstrip(':')}:", {"externals": []})
                    here = {"c": "gcc", "cxx": "g++", "fortran": "gfortran"}
                    paths = {language: f"/usr/bin/{name}" for language, name in here.items()}
                    row["externals"].append(
                        {
                            "spec": external["spec"],
                            "prefix": "/usr",
                            "extra_attributes": {"compilers": paths},
                        }
                    )
    scope.write_text(yaml.safe_dump({"packages": scope_packages}))


@pytest.mark.parametrize("name", NAMES)
def test_spack_solves_the_environment(name: str, tmp_path: Path) -> None:
    """With the compilers of this machine in place of those of another."""
    need("Spack")
    if name == "localhost":
        need("externals of localhost")
    solve = ["spack", "-e", str(FOLDERS[name])]
    if name != "localhost":
        solve += ["-c", "concretizer:targets:host_compatible:false"]
        local_compilers(FOLDERS[name] / "spack.yaml", tmp_path / "packages.yaml")
        solve[1:1] = ["-C", str(tmp_path)]
    ran = subprocess.run([*solve, "spec"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "understudy@main" in ran.stdout


def test_the_test_of_the_recipe_starts_ranks_as_any_user_on_any_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`spack test run`: as root, too, and where Open MPI was told nothing of it. What the test
    calls of Spack is here."""

    class Executable:
        def __init__(self, path: str) -> None:
            self.path = path

        def __call__(self, *words: str) -> None:
            subprocess.run([self.path, *words], check=True)

    def which(*names: str, path: list[str], required: bool) -> Executable:
        paths = (Path(path[0]) / name for name in names)
        return Executable(str(next(path for path in paths if path.exists())))

    @contextmanager
    def working_dir(name: str, create: bool) -> Iterator[None]:
        (tmp_path / name).mkdir(exist_ok=not create)
        monkeypatch.chdir(tmp_path / name)
        yield

    stand_in: Any = MagicMock()
    stand_in.Executable, stand_in.which, stand_in.working_dir = Executable, which, working_dir
    stand_in.join_path = lambda *parts: str(Path(*map(str, parts)))
    cmake = MagicMock(CMakePackage=object)
    for name, module in (
        ("spack", MagicMock()),
        ("spack.package", stand_in),
        ("spack_repo", MagicMock()),
        ("spack_repo.builtin", MagicMock()),
        ("spack_repo.builtin.build_systems", MagicMock()),
        ("spack_repo.builtin.build_systems.cmake", cmake),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    for name in [name for name in os.environ if name.startswith(("OMPI_", "PRTE_"))]:
        monkeypatch.delenv(name)
    package_class = runpy.run_path(str(PACKAGES / "understudy" / "package.py"))["Understudy"]
    mpirun = shutil.which("mpirun")
    assert mpirun is not None
    package = SimpleNamespace(
        spec=MagicMock(satisfies=lambda _: False),
        prefix=SimpleNamespace(bin=Path(player.program()).parent),
        libraries=list,
        settings=package_class.settings,
        workload=package_class.workload,
        test_suite=SimpleNamespace(current_test_cache_dir=ROOT),
    )
    package.spec.__getitem__.return_value.prefix.bin = Path(mpirun).parent
    package_class.test_play(package)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mpiio", "posix", "stdio"]


def test_spack_audits_our_packages() -> None:
    need("Spack")
    audit = ["spack", "-e", str(FOLDERS["titan"]), "audit", "packages", *sorted(OURS)]
    ran = subprocess.run(audit, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_externals_of_this_machine(tmp_path: Path) -> None:
    need("Debian's gcc")
    here = tmp_path / "here"
    here.mkdir()
    shutil.copy(ENVIRONMENTS / "localhost" / "externals", here)
    ran = subprocess.run(
        ["./externals"],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"XDG_DATA_HOME": str(tmp_path / "data")},
    )
    written = here / "externals.yaml"
    assert ran.returncode == 0, ran.stderr
    packages = yaml.safe_load(written.read_text())["packages"]
    for name, package in packages.items():
        [external] = package["externals"]
        assert re.match(rf"{name}@\d", external["spec"])
        assert Path(external["prefix"]).is_dir()
    assert {path.name for path in here.iterdir()} == {"externals", "externals.yaml"}
    if "openmpi" in packages:
        prefix = Path(packages["openmpi"]["externals"][0]["prefix"])
        assert prefix.is_relative_to(tmp_path / "data")
        assert (prefix / "include" / "mpi.h").is_file()
        assert (prefix / "bin" / "mpicc").is_file()
    for name, package in packages.items():
        if name.startswith("py-"):  # it and what it needs, and nothing else of this machine
            prefix = Path(package["externals"][0]["prefix"])
            [site] = prefix.glob("local/lib/python3*/dist-packages")
            module = {"py-pyyaml": "yaml", "py-clustershell": "ClusterShell"}.get(name, name[3:])
            start = ["/usr/bin/python3", "-SsEc", f"import sys; sys.path.append({str(site)!r})"]
            start[-1] += f"; import {module}"
            subprocess.run(start, check=True)
            assert not (site / "pip").exists()
    missing = re.findall(r"Spack builds (\S+)", ran.stderr)
    assert not set(missing) & set(packages)


class Package:
    """Of a development build of `source` in `prefix`, as Spack hands it to its recipe."""

    def __init__(self, source: Path, prefix: Path) -> None:
        self.spec = self
        self.prefix = prefix
        self.variants = {"dev_path": SimpleNamespace(value=str(source))}


def test_only_sources_make_spack_build_again(tmp_path: Path) -> None:
    """Not the output of a session or caches of Python, but a source that is new, newer or gone."""
    changed = runpy.run_path(str(CHECKOUT / "sources.py"))["changed"]
    package = Package(tmp_path / "source", tmp_path / "prefix")
    spec = tmp_path / "prefix" / ".spack" / "spec.json"
    files = [tmp_path / "source" / name for name in ("python/a.py", "core/b.c", "core/c.c", "x")]
    for path in (spec, *files):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def installed(at_s: float) -> None:
        for path in (tmp_path / "source").rglob("*"):
            os.utime(path, (1e9, 1e9))
        os.utime(spec, (at_s, at_s))

    names = ("python", "core", "x", "absent")
    installed(2e9)
    (tmp_path / "source" / "reports" / "out").mkdir(parents=True)
    (tmp_path / "source" / "python" / "__pycache__").mkdir()
    (tmp_path / "source" / "python" / "__pycache__" / "a.pyc").touch()
    installed(1.5e9)
    os.utime(tmp_path / "source" / "python", (2e9, 2e9))  # as the cache was made in it
    os.utime(tmp_path / "source" / "reports" / "out", (2e9, 2e9))
    assert not changed(package, names)
    for path in files:
        os.utime(path, (2e9, 2e9))
        assert changed(package, names), path
        installed(1.5e9)
    files[2].unlink()
    assert changed(package, names)


def session(
    folder: Path, system: str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """A session with Spack's environments, all of them in `folder`, and a stand-in for Spack."""
    for name in {*NAMES, system}:
        (folder / "environments" / name).mkdir(parents=True)
        (folder / "environments" / name / "spack.yaml").touch()
    view = environment(folder / "environments" / system)
    view.mkdir(parents=True)
    real = Path(player.program()).parent
    for name in (spack.PLAYER, "understudy-storage"):
        (view / name).symlink_to(real / name)
    (folder / "bin").mkdir()
    (folder / "bin" / "spack").write_text(f'#!/bin/sh\necho "$@" >>{folder}/asked\n')
    (folder / "bin" / "spack").chmod(0o755)
    variables = {
        **os.environ,
        "RFM_CONFIG_FILES": str(ROOT / "configs" / "settings.py"),
        "RFM_COLORIZE": "0",
        "UNDERSTUDY_OUTPUT": str(folder / "out"),
        "PWD": str(folder),
        "PATH": f"{folder / 'bin'}:{real}:{os.environ['PATH']}",
        spack.VARIABLE: str(folder / "environments"),
        **variables,
    }
    words = [
        Path(sys.executable).parent / "reframe",
        "-c",
        ROOT / "checks" / "replay.py",
        "-r",
        "--system",
        system,
        "-P",
        "stripe_count=default",
        "-P",
        "workload=n-1",
        *arguments,
    ]
    return subprocess.run(
        list(map(str, words)),
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_environment_is_installed_once_in_a_session(tmp_path: Path) -> None:
    """For both partitions that use it, each of which has the fixture."""
    done = session(tmp_path, "localhost", "-P", "method=posix", "--exec-policy=serial")
    assert done.returncode == 0, done.stdout + done.stderr
    said("ran-test-case-from", done.stdout)
    installed = f"-e {tmp_path}/environments/localhost install"
    assert (tmp_path / "asked").read_text().splitlines() == [installed]


QUEUED = """
from understudy.reframe.systems import *
system = {"name": "queued", "hostnames": ["^queued$"], "partitions": [{
    "name": "all", "scheduler": "squeue", "launcher": "srun", "environs": ["mpi"],
    "features": [MPI, SHARED], "extras": {
        SCRATCH: "/tmp", TYPE: "disk", MAX_NODES: 4, RANKS_PER_NODE: 4, NEEDS: [],
        SPACK: "queued",
    }}]}
environments = [{"name": "mpi", "target_systems": ["queued"], "features": [MPI]}]
"""


@pytest.mark.parametrize(
    ("printed", "status", "reason"),
    [
        ("posix unavailable: too old", 0, "posix: too old"),
        ("cannot execute", 1, None),
    ],
)
def test_methods_that_the_player_of_a_batch_partition_lacks_are_skipped(
    printed: str, status: int, reason: str | None, tmp_path: Path
) -> None:
    """A player that does not start on this node says nothing: then the job is submitted."""
    (tmp_path / "site" / "systems").mkdir(parents=True)
    (tmp_path / "site" / "systems" / "queued.py").write_text(QUEUED)
    view = tmp_path / "environments" / "queued" / ".spack-env" / "view" / "bin" / spack.PLAYER
    (tmp_path / "bin0").mkdir()
    (tmp_path / "bin0" / "spack").write_text(
        f"#!/bin/sh\nrm {view}; printf '#!/bin/sh\\necho {printed}; exit {status}\\n' >{view}\n"
        f"chmod +x {view}\n"
    )
    (tmp_path / "bin0" / "sbatch").write_text(
        '#!/bin/sh\n[ "$1" = --version ] || { echo no such queue >&2; exit 1; }\n'
    )
    for path in (tmp_path / "bin0").iterdir():
        path.chmod(0o755)
    real = Path(player.program()).parent
    done = session(
        tmp_path,
        "queued",
        "-P",
        "method=posix",
        UNDERSTUDY_PATH=str(tmp_path / "site"),
        PATH=f"{tmp_path / 'bin0'}:{real}:{os.environ['PATH']}",
    )
    assert (f"[{reason}]" in done.stdout) == (reason is not None), done.stdout + done.stderr
    assert ("no such queue" in done.stdout) == (reason is None)
