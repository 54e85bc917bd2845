"""Installed, the suite is the same as in a checkout: from a wheel, and in a prefix of CMake. Both
are read-only while they are used, and output goes to the working directory."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from click.shell_completion import get_completion_class

from tests.support.needs import need
from tests.support.player import program
from tests.support.said import said
from understudy import __version__, cli, studies
from understudy.paths import ROOT, kinds, where

# Of this interpreter: the project's dependencies, which need not be installed once more.
LIBRARIES = sysconfig.get_path("purelib")
REFRAME = """\
#!{python}
from reframe.frontend.cli import main
main()
"""
# MPI as for all tests, but nothing of the checkout other than the player.
IN_ENVIRONMENT = """\
. "$0/setup-env.sh" 2>/dev/null
unset RFM_CONFIG_FILES PYTHONPATH UNDERSTUDY_PATH UNDERSTUDY_OUTPUT UNDERSTUDY_WORKLOADS
export PATH=$OWN:$PATH PYTHON=$INTERPRETER
cd "$FROM" && exec "$@"
"""
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """A place with the suite; `programs` are directories for PATH."""

    place: Path
    programs: tuple[Path, ...]
    python: Path
    before: tuple[
        str | Path, ...
    ] = ()  # a command that makes the place read-only for what follows

    def run(self, folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """A command in `folder`, with nothing of the checkout at hand but the player."""
        return subprocess.run(
            [*self.before, "bash", "-c", IN_ENVIRONMENT, ROOT, *command],
            env=os.environ
            | {
                "OWN": ":".join(map(str, self.programs)),
                "INTERPRETER": str(self.python),
                "FROM": str(folder),
            },
            capture_output=True,
            text=True,
            check=False,
        )

    def say(self, folder: Path, *command: str | Path) -> str:
        done = self.run(folder, *command)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def where(self, kind: str, folder: Path) -> Path:
        return Path(self.say(folder, "understudy", "doctor", "--paths", kind).removesuffix("\n"))


def environment(folder: Path) -> Path:
    """A fresh virtual environment with ReFrame and the other dependencies, without the project."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    reframe = folder / "bin" / "reframe"
    reframe.write_text(REFRAME.format(python=python))
    reframe.chmod(0o755)
    return python


def add_dependencies(python: Path) -> None:
    [libraries] = (python.parents[1] / "lib").glob("python*/site-packages")
    (libraries / "dependencies.pth").write_text(f"{LIBRARIES}\n")


def quietly(*command: str | Path) -> str:
    """What it printed."""
    done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def from_core(folder: Path) -> Installed:
    return from_wheel(folder, with_studies=False)


def from_wheel(folder: Path, with_studies: bool = True) -> Installed:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    projects = [ROOT, *(p.parent for p in ROOT.glob("studies/*/pyproject.toml") if with_studies)]
    for project in projects:
        to = ("-w", folder / "wheels", project)
        quietly(*pip, "wheel", "--no-deps", "--no-build-isolation", *to)
    wheels = sorted((folder / "wheels").iterdir())
    assert len(wheels) == len(projects)
    python = environment(folder / "environment")
    quietly(*pip, "--python", python, "install", "--no-deps", "--no-index", *wheels)
    add_dependencies(python)
    return Installed(
        place=python.parents[1], programs=(python.parent, Path(program()).parent), python=python
    )


def from_cmake(folder: Path) -> Installed:
    prefix = folder / "the prefix"
    program()
    quietly("cmake", "--install", ROOT / "build", "--prefix", prefix)
    python = environment(folder / "environment")
    add_dependencies(python)
    return Installed(place=prefix, programs=(prefix / "bin", python.parent), python=python)


@pytest.fixture(scope="module", params=[from_wheel, from_cmake])
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    installation: Installed = request.param(tmp_path_factory.mktemp("installed"))
    if os.geteuid() != 0:
        subprocess.run(["chmod", "-R", "a-w", installation.place], check=True)
        yield installation
        subprocess.run(["chmod", "-R", "u+w", installation.place], check=True)
        return
    # Permissions do not stop root; a file system that is mounted read-only does.
    before = ("unshare", "--mount", "sh", "-c", READ_ONLY, installation.place)
    need("mounts")
    yield replace(installation, before=before)


def listing(folder: Path) -> dict[str, bytes]:
    """Contents of all files below a folder (or of a file) that Python did not cache there."""
    files = [folder] if folder.is_file() else folder.rglob("*")
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in files
        if p.is_file() and "__pycache__" not in p.parts
    }


COMPLETIONS = {
    "bash": ("understudy.bash", "bash-completion/completions/understudy"),
    "zsh": ("_understudy", "zsh/site-functions/_understudy"),
    "fish": ("understudy.fish", "fish/vendor_completions.d/understudy.fish"),
}


@pytest.mark.parametrize("shell", COMPLETIONS)
def test_shells_find_what_completes_commands(installed: Installed, shell: str) -> None:
    kept, place = COMPLETIONS[shell]
    text = (installed.place / "share" / place).read_text(encoding="utf-8")
    assert text == (ROOT / "completions" / kept).read_text(encoding="utf-8")
    completion = get_completion_class(shell)
    assert completion is not None
    of_click = completion(cli.main, {}, "understudy", "_UNDERSTUDY_COMPLETE")
    assert text.rstrip() == of_click.source().rstrip()


def test_every_user_may_use_it(installed: Installed) -> None:
    entries = [p for p in installed.place.rglob("*") if not p.is_symlink()]
    assert len(entries) > 500
    needed = {path: 0o005 if path.is_dir() else 0o004 for path in entries}
    assert [p for p, bits in needed.items() if p.stat().st_mode & bits != bits] == []
    programs = [p for p in (installed.place / "bin").glob("understudy*") if p.is_file()]
    assert programs and all(p.stat().st_mode & 0o001 for p in programs)


def test_it_is_read_only_and_not_the_checkout(installed: Installed, tmp_path: Path) -> None:
    assert not installed.place.is_relative_to(ROOT)
    done = installed.run(tmp_path, "touch", installed.place / "new")
    assert done.returncode != 0 and not (installed.place / "new").exists()
    programs = installed.say(tmp_path, "bash", "-c", "command -v understudy").strip()
    assert programs == str(installed.place / "bin" / "understudy"), "is build/ up to date?"
    code = "import understudy.cli; print(understudy.cli.__file__)"
    if installed.place == installed.python.parents[1]:
        assert installed.say(tmp_path, "python", "-c", code).startswith(str(installed.place))
    else:
        assert installed.run(tmp_path, "python", "-c", code).returncode != 0


def test_every_plugin_directory_is_that_of_the_checkout(
    installed: Installed, tmp_path: Path
) -> None:
    for kind in kinds():
        there = installed.where(kind, tmp_path)
        assert there.is_relative_to(installed.place)
        listed = listing(there)
        for place in ("understudy_*/data", "studies/*"):
            for folder in installed.place.rglob(f"{place}/{kind}"):
                listed |= listing(folder)
        expected = listing(where(kind))
        for folder in studies.directories(kind):
            expected |= listing(folder)
        assert listed == expected, kind


def test_without_studies_there_is_only_the_core(tmp_path: Path) -> None:
    core = from_core(tmp_path)
    folder = tmp_path / "work"
    folder.mkdir()
    commands = core.say(folder, "understudy", "--all")
    assert "describe" in commands
    assert not {"skel", "archive", "compose"} & set(commands.split())
    done = core.run(
        folder,
        "bash",
        "-c",
        'reframe -C "$(understudy doctor --paths config)" -l --system=localhost',
    )
    assert done.returncode == 0 and "Replay %" in done.stdout, done.stdout + done.stderr
    assert "Skel" not in done.stdout and "skipping test file" not in done.stdout


def test_a_workload_is_exported_byte_for_byte(installed: Installed, tmp_path: Path) -> None:
    here, there = tmp_path / "here.tar.gz", tmp_path / "there.tar.gz"
    workload = where("workloads") / "n-1.json"
    quietly(sys.executable, ROOT / "python/understudy/__main__.py", "export", workload, "-o", here)
    installed.say(tmp_path, "understudy", "export", workload, "-o", there)
    assert there.read_bytes() == here.read_bytes()


def test_a_skeleton_is_generated_by_what_jobs_call(installed: Installed, tmp_path: Path) -> None:
    find = "import pathlib, sys; [p] = pathlib.Path(sys.argv[1]).rglob('understudy/__main__.py')"
    script = installed.say(tmp_path, "python", "-c", f"{find}; print(p)", installed.place).strip()
    shutil.copy(where("traces") / "gts.xml", tmp_path)
    shutil.copy(where("traces") / "gts_params.xml", tmp_path)
    for command in ("source", "build"):
        installed.say(tmp_path, installed.python, script, "skel", command, "gts.xml")
    assert list(tmp_path.glob("gts_skel_*_write.c")) and (tmp_path / "CMakeLists.txt").exists()


def test_a_check_runs_for_real_from_any_directory(installed: Installed, tmp_path: Path) -> None:
    printed = installed.say(
        tmp_path,
        "bash",
        "-c",
        'reframe -C "$(understudy doctor --paths config)" '
        '-c "$(understudy doctor --paths checks)" -r "$@"',
        "-",
        "--system=localhost:tmpfs",
        "-n",
        "^Replay",
        "-E",
        "workload == 'n-1' and method == 'posix' and stripe_count == 'default'",
    )
    said("ran-test-case-from", printed)
    assert [p.name for p in tmp_path.iterdir()] == ["understudy-out"]
    assert list((tmp_path / "understudy-out" / "reframe" / "output").rglob("result.json"))
    page = installed.run(tmp_path, "understudy", "report", "understudy-out/reframe/output")
    assert page.returncode == 0, page.stderr
    assert (tmp_path / "understudy-out" / "index.html").stat().st_size > 10_000


def test_output_goes_where_the_user_says(installed: Installed, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    listed = installed.say(
        tmp_path / "work",
        "env",
        f"UNDERSTUDY_OUTPUT={tmp_path}/named",
        "bash",
        "-c",
        'reframe -C "$(understudy doctor --paths config)" -l --system=localhost',
    )
    assert "Replay %" in listed and "Fidelity %" in listed, listed
    assert (tmp_path / "named" / "reframe" / "reframe.log").exists()
    assert list((tmp_path / "work").iterdir()) == []


def test_what_is_not_installed_is_an_error(tmp_path: Path) -> None:
    """An installation without the plugin directories used to know no workload, in silence."""
    shutil.copytree(
        ROOT / "python" / "understudy",
        tmp_path / "lib" / "site" / "understudy",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    script = tmp_path / "lib" / "site" / "understudy" / "__main__.py"
    done = subprocess.run(
        [sys.executable, script, "doctor", "--paths", "checks"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stdout == ""
    said("lib-checks-found", done.stderr, tmp_path=tmp_path)
    assert done.stderr.count("\n") == 1
    code = "from understudy.contracts import workload; print(workload.names())"
    asked = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(script.parents[1])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode != 0 and said("lib-workloads-found", asked.stderr, tmp_path=tmp_path)


def test_a_release_is_the_same_bytes_each_time_and_is_built_without_git(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    quietly("git", "clone", "-q", ROOT, checkout)
    releases = []
    for name in ("first", "second"):
        builder = [sys.executable, "-m", "hatchling", "build", "-d", tmp_path / name]
        done = subprocess.run(builder, cwd=checkout, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        files = sorted((tmp_path / name).iterdir())
        releases.append([(path.name, path.read_bytes()) for path in files])
    assert releases[0] == releases[1]
    wheel, archive = (tmp_path / "first" / name for name, _ in releases[0])
    assert wheel.suffix == ".whl"
    (tmp_path / "sources").mkdir()
    quietly("tar", "-xzf", archive, "-C", tmp_path / "sources")
    [folder] = (tmp_path / "sources").iterdir()
    quietly("cmake", "-S", folder, "-B", tmp_path / "build")
    quietly("cmake", "--build", tmp_path / "build", "-j2", "--target", "understudy-replay")
    shown = subprocess.run(
        [tmp_path / "build" / "bin" / "understudy-replay", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert __version__ in shown.stdout


def test_without_a_cxx_compiler_the_player_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ADIOS2's configuration enables C++, which nothing else needs."""
    monkeypatch.setenv("CXX", str(tmp_path / "none"))
    configured = quietly("cmake", "-S", ROOT, "-B", tmp_path / "build", "-DBUILD_TESTING=OFF")
    assert "No method adios2: there is no C++ compiler" in configured
