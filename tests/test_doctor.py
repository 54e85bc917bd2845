"""understudy doctor: what there is, what is missing, and when the exit status is 0."""

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.said import said
from understudy import paths
from understudy.cli import main
from understudy.errors import UnderstudyError
from understudy.paths import ROOT
from understudy.reframe.bases import methods

LISTED = "echo 'posix available'; echo 'hdf5 available, collective calls, hdf5 1.10.8'; "
LISTED += "echo 'daos unavailable: no DAOS was found when this program was built'; "
LISTED += "echo 'uring unavailable: a filter of system calls forbids io_uring'; "
LISTED += "echo 'null available'"


class Machine:
    """A PATH with nothing but the programs that a test makes."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        monkeypatch.setenv("PATH", f"{folder}:/bin")
        monkeypatch.delenv("DARSHAN_RUNTIME", raising=False)
        self.program(
            "understudy-replay",
            f'[ "$1" = --list ] && {{ {LISTED}; exit; }}; '
            '[ "$1" = --version ] && { echo 9.9; exit; }; '
            'while [ "$1" != -O ]; do shift; done; echo {} >"$2"',
        )
        self.program("mpirun", 'case "$1" in -n) shift 2; exec "$@";; esac; echo mpirun 4.1.4')

    def program(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def findings(self) -> tuple[Result, dict[str, Any]]:
        done = CliRunner().invoke(main, ["doctor", "--json"])
        row = json.loads(done.stdout)
        assert row["works"] is (done.exit_code == 0)
        return done, {finding["name"]: finding for finding in row["findings"]}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_the_basics_work(machine: Machine) -> None:
    done, findings = machine.findings()
    assert done.exit_code == 0, done.output
    assert findings["player"]["found"] == "methods posix, hdf5 (hdf5 1.10.8)"
    assert findings["player on 2 ranks"]["found"] == "9.9"
    assert findings["MPI"]["found"] == f"{machine.folder}/mpirun, mpirun 4.1.4"
    build, system = (findings[f"method {name}"]["remedy"] for name in ("daos", "uring"))
    assert build.startswith("no DAOS was found when") and build.endswith("and build again")
    said("filter-forbids-io-uring", system)
    assert "build" not in system
    for name in ("IOR", "mdtest", "Darshan runtime", "Spack", "Lustre tools"):
        assert (
            findings[name]["found"] is None
            and findings[name]["remedy"]
            and findings[name]["serves"]
        )


def test_a_method_that_a_build_lacks_says_so() -> None:
    sources = [*ROOT.glob("proxies/methods/*.c"), *ROOT.glob("studies/*/methods/*.c")]
    texts = [t for p in sources for t in re.findall(r'\.unavailable = "(.*)"', p.read_text())]
    assert len(texts) > 3 and [t for t in texts if methods.BUILT not in t] == []


def test_what_there_is_is_stated_with_its_version(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.program("ior", "exit 1")
    machine.program("spack", "echo 1.0.2")
    (machine.folder / "lib").mkdir()
    (machine.folder / "lib" / "libdarshan.so").touch()
    monkeypatch.setenv("DARSHAN_RUNTIME", str(machine.folder))
    _, findings = machine.findings()
    assert findings["IOR"]["found"] == f"{machine.folder}/ior"
    assert findings["Spack"]["found"] == f"{machine.folder}/spack, 1.0.2"
    assert findings["Darshan runtime"]["found"] == str(machine.folder)


@pytest.mark.parametrize(
    ("name", "script", "missing"),
    [
        ("mpirun", "exit 1", "player on 2 ranks"),
        ("mpirun", "exit 0", "player on 2 ranks"),
        ("understudy-replay", "echo broken >&2; exit 3", "player, player on 2 ranks"),
        ("understudy-replay", "echo 'null available'", "player"),
    ],
)
def test_a_basic_that_fails_is_named(
    name: str, script: str, missing: str, machine: Machine
) -> None:
    machine.program(name, script)
    done, _ = machine.findings()
    assert done.exit_code == 1
    assert done.stderr.startswith("understudy: missing: ") and "Traceback" not in done.output
    assert missing.split(", ")[0] in done.stderr


def test_a_launcher_that_starts_single_processes_is_named(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another MPI: each process of the player built here sees one rank, and refuses."""
    monkeypatch.setenv("PATH", f"{machine.folder}:{os.defpath}")
    (machine.folder / "understudy-replay").unlink()
    (machine.folder / "understudy-replay").symlink_to(ROOT / "build" / "bin" / "understudy-replay")
    ranks = "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK"
    machine.program(
        "mpirun", f'shift 2; {ranks}=1 "$@" & {ranks}=0 "$@"; status=$?; wait; exit $status'
    )
    done, findings = machine.findings()
    assert done.exit_code == 1 and findings["player on 2 ranks"]["found"] is None
    remedy = findings["player on 2 ranks"]["remedy"]
    assert "each of the 2 processes that Open MPI's launcher started is alone" in remedy, remedy


def test_a_launcher_that_says_nothing_has_a_remedy(machine: Machine) -> None:
    machine.program("mpirun", "exit 1")
    remedy = machine.findings()[1]["player on 2 ranks"]["remedy"]
    assert "starts 2 ranks of one program" in remedy


@pytest.mark.parametrize("checkout", [True, False])
def test_only_a_checkout_is_told_to_make(
    checkout: bool, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What pip has installed has no Makefile."""
    monkeypatch.setattr(paths, "is_checkout", lambda: checkout)
    monkeypatch.setattr(paths.shutil, "which", lambda *_, **__: None)
    with pytest.raises(UnderstudyError) as told:
        paths.program("understudy-replay")
    assert ("make build" in str(told.value)) == checkout
    assert ("cmake -S" in str(told.value)) != checkout
    with pytest.raises(UnderstudyError) as of_checks:
        methods.player()
    assert ("make build" in str(of_checks.value)) == checkout


def test_slurm_without_a_controller_is_no_batch_system(machine: Machine) -> None:
    machine.program("sbatch", "echo slurm 23.1")
    machine.program("sinfo", "exit 1")
    assert machine.findings()[1]["batch system"]["found"] is None
    machine.program("sinfo", "exit 0")
    assert machine.findings()[1]["batch system"]["found"].endswith("/sbatch, slurm 23.1")


def test_text_of_a_program_is_no_command_to_a_terminal(machine: Machine) -> None:
    machine.program("spack", "printf '1.0\\033[31m red\\n'")
    done = CliRunner().invoke(main, ["doctor"])
    assert "\\x1b[31m red" in done.stdout and "\x1b" not in done.stdout
    assert said("no-lustre-tools", done.stdout) and "ok  Spack" in done.stdout
