"""The set-up: lists of packages, a shell's environment, discovery of commands, the count."""

import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests import run as all_tests
from tests.support import needs
from tests.support.needs import need
from tests.support.said import said
from understudy import __version__, cli, commands, launch
from understudy.errors import UnderstudyError

ROOT = Path(__file__).resolve().parents[1]
PINNED = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[0-9][0-9a-z.]*)( ; (?P<marker>.+?))?"
    r"(?P<hashes>( --hash=sha256:[0-9a-f]{64})+)"
)

# What setup.sh itself calls, besides the programs that it looks for.
TOOLS = """
    bash cat cut dirname env flock getconf grep id mkdir paste rm sed sha256sum tail touch xargs
    echo
"""


def rows(file: str) -> list[str]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def pins(file: str) -> dict[tuple[str, str], str]:
    """The version of each name and marker; every file that pip may take has its hash."""
    versions: dict[tuple[str, str], str] = {}
    lines = (row for row in rows(file) if not row.lstrip().startswith("#"))
    for row in re.sub(r" \\\n +", " ", "\n".join(lines)).splitlines():
        match = PINNED.fullmatch(row)
        assert match, f"{file}: {row[:200]!r} is not pinned with hashes"
        key = (match["name"].lower().replace("_", "-"), match["marker"] or "")
        assert key not in versions, f"{file}: {row!r} stands twice"
        versions[key] = match["version"]
    return versions


def test_every_requirement_is_pinned_once() -> None:
    run, test = pins("requirements.txt"), pins("requirements-test.txt")
    assert len(run) > 40
    assert len(test) > len(run) + 10
    assert ("cyclonedx-bom", "") in pins("requirements-dist.txt")
    names = {name for name, _ in run}
    assert {n: v for (n, _), v in test.items() if n in names} == {
        n: v for (n, _), v in run.items()
    }


@pytest.mark.parametrize(
    "file", ["requirements.txt", "requirements-test.txt", "requirements-dist.txt"]
)
def test_requirements_tell_how_they_are_made_and_no_place(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    _, command, *_ = text.splitlines()
    assert "uv pip compile --universal" in command and "--generate-hashes" in command
    assert command.endswith(f"-o {file}")
    assert "://" not in text and "--find-links" not in text and "--index-url" not in text


def test_pip_takes_no_file_without_its_hash() -> None:
    text = (ROOT / "setup.sh").read_text(encoding="utf-8")
    calls = [line for line in text.splitlines() if "pip install" in line]
    assert len(calls) == 2
    for call in calls:
        assert ("--require-hashes" in call) != ("--no-deps" in call and call.endswith(" -e ."))


def test_direct_dependencies_are_pinned() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    block = re.search(r"^dependencies = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert block
    direct = [name.lower() for name in re.findall(r'"([A-Za-z-]+)>=', block[1])]
    assert "numpy" in direct
    assert set(direct) <= {name for name, _ in pins("requirements.txt")}


def test_one_version_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("tool", ["ruff", "clang-format"])
def test_pre_commit_runs_the_pinned_linters(tool: str) -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    version = pins("requirements-test.txt")[tool, ""]
    assert re.search(rf"{tool}(-pre-commit)?\n    rev: v{re.escape(version)}\n", text)


NEEDS = {"run", "test", "more", "more-test", "more-rehearse-slurm", "more-rehearse-ceph"}
NEEDS |= {"more-rehearse-slow", "image"}


def test_debian_packages_have_a_need_and_a_probe() -> None:
    needed = rows("requirements-debian.txt")
    assert len(needed) >= 9
    for row in needed:
        need, what, packages, probe = (part.strip() for part in row.split("|", maxsplit=3))
        assert need in NEEDS, row
        assert what and probe, row
        assert all(re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", name) for name in packages.split()), row


@pytest.fixture
def bare(tmp_path: Path) -> tuple[Path, Path]:
    """A checkout with the set-up alone, and a folder with the programs that setup.sh calls."""
    tree, programs = tmp_path / "tree", tmp_path / "programs"
    tree.mkdir()
    programs.mkdir()
    for name in ("setup.sh", "setup-env.sh", "requirements-debian.txt"):
        shutil.copy(ROOT / name, tree)
    package = tree / "python" / "understudy"
    package.mkdir(parents=True)
    shutil.copy(launch.SETTINGS, package)
    for name in TOOLS.split():
        if program := shutil.which(name):
            (programs / name).symlink_to(program)
    return tree, programs


def script(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)  # never write through a link to a program of the system
    path.write_text(f"#!/usr/bin/env bash\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def shell(
    tree: Path, programs: Path | None, *command: str, **env: str
) -> subprocess.CompletedProcess[str]:
    path = str(programs) if programs else os.environ["PATH"]
    kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    return subprocess.run(
        command,
        cwd=tree,
        env={"PATH": path, **kept, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_without_apt_all_that_is_missing_is_named(bare: tuple[Path, Path]) -> None:
    tree, programs = bare
    done = shell(tree, programs, "bash", "./setup.sh", "test", PYTHON="no-such-python")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    for what in ("C compiler", "CMake", "MPI", "jansson", "cmocka", "Python 3.10 or newer"):
        assert what in done.stderr
    assert "libjansson-dev" in done.stderr
    assert "HDF5" not in done.stderr, "a method less is no reason to stop"
    assert done.stdout == ""


def test_apt_gets_what_is_missing_and_only_that(bare: tuple[Path, Path]) -> None:
    tree, programs = bare
    script(programs / "id", "echo 0")
    for there in ("cc", "make", "cmake", "mpicc", "mpirun"):
        script(programs / there, "exit 0")
    # pkg-config knows nothing before apt has been called, and all but the HDF5 library afterwards.
    script(
        programs / "pkg-config",
        f'[ "$1" = --version ] || {{ [ -e "{tree}/installed" ] && [ "$2" != hdf5-openmpi ]; }}',
    )
    script(programs / "apt-get", f'echo "$@" >>"{tree}/apt"; touch "{tree}/installed"')
    # This release has no programs of ADIOS, and only says so where nothing else names them.
    script(programs / "apt-cache", '[ "${@: -1}" = libadios-bin ] || echo "Package: ${@: -1}"')
    script(programs / "good-python", 'case "$*" in *ensurepip*) exit 0 ;; *) exit 3 ;; esac')

    done = shell(tree, programs, "bash", "./setup.sh", "run", PYTHON="good-python")
    called = (tree / "apt").read_text(encoding="utf-8").splitlines()
    assert len(called) == 2
    assert called[0].endswith(" update")
    packages = "libjansson-dev libhdf5-openmpi-dev libadios-openmpi-dev libadios2-mpi-c-dev g++"
    packages += " liburing-dev hdf5-tools strace"
    assert called[1].endswith(f"install -y --no-install-recommends {packages}")
    said("installing-packages", done.stderr, packages=packages)
    said("continuing-without-parallel-hdf", done.stderr)
    assert done.returncode != 0, "the interpreter of this test does nothing"


def test_apt_is_not_asked_again_for_what_it_does_not_have(bare: tuple[Path, Path]) -> None:
    tree, programs = bare
    script(programs / "id", "echo 0")
    for there in ("cc", "make", "cmake", "mpicc", "mpirun", "pkg-config", "h5dump", "strace"):
        script(programs / there, "exit 0")
    script(programs / "apt-get", f'echo "$@" >>"{tree}/apt"')
    script(programs / "apt-cache", "exit 100")
    script(programs / "good-python", 'case "$*" in *ensurepip*) exit 0 ;; *) exit 3 ;; esac')
    for _ in range(2):
        done = shell(tree, programs, "bash", "./setup.sh", "run", PYTHON="good-python")
        said("continuing-without-adios-bpls", done.stderr)
    called = (tree / "apt").read_text(encoding="utf-8").splitlines()
    assert len(called) == 1 and called[0].endswith(" update"), called


@pytest.mark.parametrize(
    ("verb", "services"),
    [
        ("test", []),
        ("rehearse-slurm", ["slurmd"]),
        ("rehearse-ceph", ["ceph-osd"]),
        ("rehearse-slow", ["fuse3"]),
    ],
)
def test_packages_of_rehearsals_are_for_these_alone(
    verb: str, services: list[str], bare: tuple[Path, Path]
) -> None:
    tree, programs = bare
    script(programs / "id", "echo 0")
    for there in ("cc", "make", "cmake", "mpicc", "mpirun", "pkg-config"):
        script(programs / there, "exit 0")
    script(programs / "apt-get", f'echo "$@" >>"{tree}/apt"')
    script(programs / "apt-cache", 'echo "Package: ${@: -1}"')
    script(programs / "good-python", 'case "$*" in *ensurepip*) exit 0 ;; *) exit 3 ;; esac')
    rows = (tree / "requirements-debian.txt").read_text(encoding="utf-8")
    rows = rows.replace("/usr/sbin:/sbin", str(programs)).replace("/usr/bin/python3", "false")
    (tree / "requirements-debian.txt").write_text(rows, encoding="utf-8")
    shell(tree, programs, "bash", "./setup.sh", verb, PYTHON="good-python")
    installed = (tree / "apt").read_text(encoding="utf-8").splitlines()[-1].split()
    assert [name for name in ("slurmd", "ceph-osd", "fuse3") if name in installed] == services


def test_an_environment_of_another_checkout_is_not_emptied(bare: tuple[Path, Path]) -> None:
    tree, programs = bare
    for there in ("cc", "make", "cmake", "mpicc", "mpirun", "pkg-config", "good-python"):
        script(programs / there, "exit 0")
    kept = tree / "other" / "kept"
    kept.parent.mkdir()
    kept.touch()
    (tree / ".venv").symlink_to("other")
    done = shell(tree, programs, "bash", "./setup.sh", "run", PYTHON="good-python")
    assert done.returncode == 1 and kept.exists()
    assert "understudy: .venv is a link to the environment of another checkout" in done.stderr


def test_nobody_to_ask_for_a_password_is_no_question(bare: tuple[Path, Path]) -> None:
    tree, programs = bare
    script(programs / "id", "echo 1000")
    script(programs / "sudo", "exit 1")
    script(programs / "apt-get", f'echo "$@" >>"{tree}/apt"')
    done = shell(tree, programs, "bash", "./setup.sh", "run", PYTHON="no-such-python")
    assert done.returncode == 1
    assert "missing: C compiler" in done.stderr
    assert not (tree / "apt").exists()


@pytest.mark.parametrize("arguments", [[], ["walk"]])
def test_setup_says_what_it_expects(bare: tuple[Path, Path], arguments: list[str]) -> None:
    done = shell(*bare, "bash", "./setup.sh", *arguments)
    assert done.returncode == 1
    expected = "'run', 'test', 'image', 'rehearse-slurm', 'rehearse-ceph' or 'rehearse-slow'"
    assert f"expected {expected}, got" in done.stderr


@pytest.mark.parametrize("name", ["bash", "zsh"])
def test_setup_env_sourced_twice(bare: tuple[Path, Path], name: str) -> None:
    if name == "zsh":
        need("zsh")
    tree, _ = bare
    text = "set -eu; cd /; for i in 1 2; do source ${HERE}/setup-env.sh; done; env"
    done = shell(tree, None, name, "-c", text, HERE=str(tree), OMPI_MCA_mpi_yield_when_idle="0")
    assert done.returncode == 0, done.stderr
    env = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    path = env["PATH"].split(":")
    assert path[:2] == [f"{tree}/.venv/bin", f"{tree}/build/bin"]
    assert len([p for p in path if p.startswith(str(tree))]) == 2
    assert env["RFM_CONFIG_FILES"] == f"{tree}/configs/settings.py"
    assert env["OMPI_MCA_rmaps_base_oversubscribe"] == "1"
    assert env["OMPI_MCA_mpi_yield_when_idle"] == "0", "what the user sets stays"
    assert ("OMPI_ALLOW_RUN_AS_ROOT" in env) == (os.geteuid() == 0)
    assert not [variable for variable in env if variable.startswith("_und")]
    assert done.stderr == f"understudy: the player is not built; run `make build` in {tree}\n" * 2


def test_more_ranks_than_cores_start_in_this_environment() -> None:
    """As root too, and on however few cores; nothing but the ranks' own output is printed."""
    ranks = 2 * (os.cpu_count() or 1) + 1
    text = f"source ./setup-env.sh 2>/dev/null; mpirun -n {ranks} echo rank"
    done = shell(ROOT, None, "bash", "-c", text)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["rank"] * ranks
    assert done.stderr == ""


def test_make_without_a_verb_lists_all_verbs() -> None:
    done = shell(ROOT, None, "make", "-s")
    listed = [line.split()[1] for line in done.stdout.splitlines()]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony
    assert listed == phony[1].split()


def names() -> list[str]:
    return cli.main.list_commands(click.Context(cli.main))


@pytest.mark.parametrize("name", names())
def test_help_of_every_command(name: str) -> None:
    done = CliRunner().invoke(cli.main, [name, "--help"])
    assert done.exit_code == 0, done.output
    command = cli.main.get_command(click.Context(cli.main), name)
    assert command and command.get_short_help_str(), f"{name} has no word of help"


def test_help_lists_every_file_of_the_room() -> None:
    folders = (ROOT / "python/understudy/commands", *ROOT.glob("studies/*/understudy_*/commands"))
    files = [path for folder in folders for path in folder.glob("[!_]*.py")]
    assert sorted(path.stem.replace("_", "-") for path in files) == names()
    done = CliRunner().invoke(cli.main, ["--all"])
    assert done.exit_code == 0, done.output
    assert all(re.search(rf"^  {name} ", done.output, re.MULTILINE) for name in names())


def test_the_first_help_has_the_everyday_commands_and_tells_of_the_others() -> None:
    first, whole = (CliRunner().invoke(cli.main, args).output for args in (["--help"], ["--all"]))
    shown = re.findall(r"^  ([a-z]+)  +[A-Z]", first, re.MULTILINE)
    assert tuple(shown) == cli.EVERYDAY and set(shown) < set(names())
    assert f"{len(names()) - len(shown)} more: understudy --all" in first
    assert "more:" not in whole


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        (["repot"], "'repot'. Did you mean report or export?"),
        (["skel", "xlm"], "'xlm'. Did you mean xml?"),
        (["qqqqqq"], "'qqqqqq'."),
    ],
)
def test_a_typing_error_has_the_nearest_names(typed: list[str], hint: str) -> None:
    done = CliRunner().invoke(cli.main, typed)
    assert done.exit_code == 2
    said("error-no-such-command", done.output.splitlines()[-1], hint=hint)


# A file that does not exist in place of what each command reads; None: it reads none.
MISSING: dict[str, list[str] | None] = {
    "accept": ["none.yaml"],
    "archive": ["none.darshan"],
    "calibrate": None,
    "campaign": ["a", "--system", "none"],
    "compare": ["none", "none"],
    "compose": ["none.json"],
    "describe": ["none.darshan"],
    "doctor": None,
    "export": ["none.json", "-o", "a.tar.gz"],
    "fidelity": ["none.darshan", "none.darshan"],
    "metrics": ["--system", "none", "--folder", "none", "-o", "a.prom"],
    "plan": ["--folder", "none"],
    "rank": ["none"],
    "record": ["-o", "a.strace", "./none"],
    "records": ["list", "--folder", "none"],
    "references": ["--system", "none", "none"],
    "report": ["none"],
    "run": ["none.darshan"],
    "show": ["none.json"],
    "skel": ["source", "none.xml"],
    "synthesize": ["-n", "0", "a.darshan"],
    "system": ["new", "a/b"],
    "trend": ["--system", "none", "--folder", "none", "-o", "a.html"],
}


@pytest.mark.parametrize("name", names())
def test_what_cannot_be_used_has_one_exit_status(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNDERSTUDY_OUTPUT", str(tmp_path / "out"))
    arguments = MISSING[name]
    for words in (["--no-such-option"], *([arguments] if arguments is not None else [])):
        done = CliRunner().invoke(cli.main, [name, *words])
        assert done.exit_code == cli.UNUSABLE == 2, done.output
        assert isinstance(done.exception, SystemExit) and done.stderr


def test_commands_end_with_statuses_that_have_a_name() -> None:
    """Those of cli.py, or of a program that they started."""
    for path in (ROOT / "python/understudy").rglob("commands/*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert not re.search(r"(SystemExit|exit)\([1-9]\)", line), f"{path}: {line}"


@pytest.mark.parametrize("name", cli.FORMER)
def test_a_former_command_names_its_successor(name: str) -> None:
    done = CliRunner().invoke(cli.main, [name, "x", "--option"])
    assert done.exit_code == cli.UNUSABLE
    assert done.stderr == f"understudy: {name} is now {cli.FORMER[name]}\n"


def test_unknown_command() -> None:
    done = CliRunner().invoke(cli.main, ["rehearse"])
    assert done.exit_code == 2
    said("no-such-command-rehearse", done.output)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One more folder of commands."""
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    return tmp_path


def test_a_new_file_is_a_new_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "take_a_bow.py").write_text(
        "import click\n"
        "from understudy.errors import UnderstudyError\n"
        "@click.command()\n"
        "def command():\n"
        "    'Bow.'\n"
        "    raise UnderstudyError('/x/y.json: key ranks: expected a number above 0, got 0')\n",
        encoding="utf-8",
    )
    name = f"{commands.__name__}.take_a_bow"
    try:
        assert "take-a-bow" in cli.main.list_commands(click.Context(cli.main))
        assert name not in sys.modules, "listed, not imported"
        done = CliRunner().invoke(cli.main, ["take-a-bow"])
        assert done.exit_code == 2
        said("json-key-ranks-expected", done.output)
        assert not isinstance(done.exception, UnderstudyError)
    finally:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_no_command_is_imported_before_it_is_called(option: str) -> None:
    text = (
        f"import sys; from understudy.cli import main; main([{option!r}], standalone_mode=False);"
        "heavy = 'understudy.commands.', 'matplotlib', 'numpy', 'reframe', 'scipy', 'rich';"
        "print('imported:', *[m for m in sys.modules if m.startswith(heavy)])"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "imported:"


@pytest.mark.parametrize("group", ["understudy", "skel"])
def test_the_listing_says_what_the_help_of_each_command_says(group: str) -> None:
    group_command = (
        cli.main
        if group == "understudy"
        else importlib.import_module("understudy_skel.commands.skel").command
    )
    context = click.Context(group_command)
    argument = "--all" if group_command is cli.main else "--help"
    done = CliRunner().invoke(group_command, [argument], terminal_width=400)
    listed = dict(re.findall(r"^  ([a-z-]+)  +(.+)$", done.stdout, re.MULTILINE))
    for name in group_command.list_commands(context):
        command = group_command.get_command(context, name)
        assert command and listed[name].startswith(command.get_short_help_str(60).rstrip(". "))


def test_a_command_without_a_docstring_is_listed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "take_two.py").write_text(
        "import click\ncommand = click.Command('take-two', help='Play it again.')\n",
        encoding="utf-8",
    )
    try:
        done = CliRunner().invoke(cli.main, ["--all"])
        assert re.search("^  take-two +Play it again", done.stdout, re.MULTILINE)
    finally:
        sys.modules.pop(f"{commands.__name__}.take_two", None)


REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_x" name="good"/>
<testcase classname="unit.y" name="unit.y" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
  <system-out>looking for it
no tmpfs: not root
</system-out></testcase>
<testcase classname="unit.z" name="unit.z" status="fail"><failure message=""/>
  <system-out>z.c:3: 4 is not 5
</system-out></testcase>
<testcase classname="tests.test_x" name="left"><skipped message="no library"/></testcase>
<testcase classname="tests.test_x" name="bad"><failure message="1 != 2&#10;more"/></testcase>
<testcase classname="tests.test_x" name="worse"><error message="fixture">trace</error></testcase>
</testsuite></testsuites>"""


def test_cases_of_a_report(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT, encoding="utf-8")
    outcomes = [(case.name, case.outcome, case.reason) for case in all_tests.cases(report)]
    assert outcomes == [
        ("tests.test_x::good", "passed", ""),
        ("unit.y", "skipped", "no tmpfs: not root"),
        ("unit.z", "failed", "z.c:3: 4 is not 5"),
        ("tests.test_x::left", "skipped", "no library"),
        ("tests.test_x::bad", "failed", "1 != 2"),
        ("tests.test_x::worse", "failed", "fixture"),
    ]


def skipped(reason: str) -> all_tests.Case:
    return all_tests.Case(name="x", outcome="skipped", reason=reason)


@pytest.mark.parametrize(
    ("reasons", "wrong"),
    [
        (["needs: Spack", "needs: Spack, zsh", "needs: zsh"], []),
        (
            ["needs: Spack", "needs: zsh"],
            ["1 cases skipped for Spack, expected 2", "1 cases skipped for zsh, expected 2"],
        ),
        (
            ["needs: Spack, zsh", "needs: Spack, zsh", "too busy"],
            ["x: skipped without a need: too busy"],
        ),
        (
            ["needs: Spack, zsh, strace", "needs: Spack, zsh"],
            [
                "1 cases skipped for strace, which setup.sh installs",
                "1 cases skipped for strace, expected 0",
            ],
        ),
        ([], ["0 cases skipped for Spack, expected 2", "0 cases skipped for zsh, expected 2"]),
    ],
)
def test_skips_are_those_that_are_stated(
    reasons: list[str], wrong: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(all_tests, "installed", lambda: {"strace"})
    stated = {"Spack": 2, "zsh": 2, "Ceph": 3}
    told = all_tests.wrong_skips("", map(skipped, reasons), stated, lambda need: need != "Ceph")
    assert [line.removeprefix(": ") for line in told] == wrong


@pytest.mark.parametrize("name", sorted(needs.MORE))
def test_a_need_is_looked_for_by_a_command_that_bash_understands(name: str) -> None:
    assert needs.there(name) in (True, False)
    done = subprocess.run(["bash", "-nc", needs.MORE[name]], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_skips_are_stated_of_known_needs() -> None:
    stated_needs = {*needs.MORE, *dict(needs.rows()), *needs.MODULES}
    for suite, what, count in all_tests.table(all_tests.SKIPS):
        assert (
            suite in ("ctest", "ctest-mpich", "pytest") and what in stated_needs and int(count) > 0
        )


@pytest.mark.parametrize(
    ("report", "status", "good"),
    [
        ("<testsuite><testcase name='a'/></testsuite>", 0, True),
        ("<testsuite><testcase name='a'/></testsuite>", 1, False),
        ("<testsuite/>", 0, False),
        ("<testsuite><testcase name='a'><skipped/></testcase></testsuite>", 0, False),
        (None, 0, False),
    ],
    ids=["passed", "exit status 1", "no case", "only a skip", "no report"],
)
def test_a_suite_is_good_only_if_a_case_ran(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    report: str | None,
    status: int,
    good: bool,
) -> None:
    monkeypatch.setattr(all_tests, "BUILD", tmp_path)
    text = f"import sys, pathlib; r = {report!r}; r and pathlib.Path(sys.argv[1]).write_text(r)"
    _, got = all_tests.run(
        "suite", [sys.executable, "-c", f"{text}; sys.exit({status})"], tmp_path
    )
    assert got is good


@pytest.mark.parametrize(
    ("test_status", "run_status", "good"), [(0, 0, True), (1, 0, False), (0, 1, False)]
)
def test_ci_ends_with_the_summary(
    tmp_path: Path, test_status: int, run_status: int, good: bool
) -> None:
    programs, build = tmp_path / "programs", tmp_path / "build"
    for folder in (programs, build, tmp_path / ".ci"):
        folder.mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci")
    (build / "test-summary.txt").write_text("9 passed, 0 failed, 0 skipped\n", encoding="ascii")
    script(
        programs / "make",
        f"""case $1 in
        test) echo 3 passed, 0 failed, 0 skipped >{build}/test-summary.txt; exit {test_status} ;;
        run) echo ran; exit {run_status} ;;
        esac""",
    )
    path = f"{programs}:{os.environ['PATH']}"
    done = shell(tmp_path, None, str(tmp_path / ".ci/run"), PATH=path)
    assert (done.returncode == 0) is good
    assert done.stdout.splitlines()[-2:] == ["ran", "3 passed, 0 failed, 0 skipped"]


def test_a_checkout_ahead_of_a_release_says_so(tmp_path: Path) -> None:
    """The commits since the one that made the release; the release itself without git."""
    package = tmp_path / "python" / "understudy"
    package.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    for name in ("__init__.py", "release.py"):
        shutil.copy(ROOT / "python" / "understudy" / name, package)
    asked = [sys.executable, "-c", "from release import version; print(version())"]

    def version() -> str:
        done = subprocess.run(asked, cwd=package, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit() -> None:
        user = ("-c", "user.name=n", "-c", "user.email=e@localhost")
        for words in (("add", "-A"), ("commit", "-q", "--allow-empty", "-m", "one")):
            subprocess.run(["git", *user, *words], cwd=tmp_path, check=True)

    assert version() == __version__
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert version() == __version__  # no commit yet
    commit()
    assert version() == __version__
    commit()
    commit()
    major, minor, patch = __version__.split(".")
    ahead = f"{major}.{minor}.{int(patch) + 1}.dev2"
    assert version() == ahead
    shutil.rmtree(tmp_path / ".git")
    (tmp_path / "PKG-INFO").write_text(f"Name: understudy\nVersion: {ahead}\n", encoding="ascii")
    assert version() == ahead  # of the source distribution, as that of the studies in it
