"""A rehearsal, and what checks say of jobs that go wrong, on a real batch system."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nightly.rehearsal import slurm
from tests.support import player
from tests.support.needs import need
from understudy.contracts import run as runs
from understudy.errors import UnderstudyError
from understudy.paths import ROOT
from understudy.producers import find

REHEARSAL = [sys.executable, "-m", "nightly.rehearsal.slurm"]
CASE = "-E \"workload == 'n-1' and method == 'posix'\""


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory for output, where a rehearsal can be run."""
    need("Slurm", "mounts")
    assert slurm.obstacle() is None
    return tmp_path_factory.mktemp("rehearsal")


def environment(place: Path) -> dict[str, str]:
    search_path = f"{ROOT / 'build' / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    return os.environ | {
        "PATH": search_path,
        "UNDERSTUDY_OUTPUT": str(place),
        "RFM_CONFIG_FILES": str(ROOT / "configs" / "settings.py"),
        "RFM_COLORIZE": "0",
    }


def rehearse(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*REHEARSAL, *words],
        cwd=ROOT,
        env=environment(place),
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


def left_behind() -> tuple[set[str], str, set[Path]]:
    """Interfaces, mounts and directories of this host."""
    return (
        {path.name for path in Path("/sys/class/net").iterdir()},
        Path("/proc/self/mounts").read_text(),
        set(Path("/tmp").glob("understudy-rehearsal-*")),
    )


def test_titan_is_rehearsed_with_its_configuration(place: Path) -> None:
    """Torque and ALPS: two jobs of eight ranks on four nodes, without and with stripes."""
    before = left_behind()
    done = rehearse(place, "titan", "--more", CASE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 nodes of Slurm for titan" in done.stderr and "not the speed" in done.stderr
    assert "Ran 2/2 test case(s) from 2 check(s) (0 failure(s)" in done.stdout
    assert left_behind() == before
    records = [runs.load(p) for p in find([place]) if "records" in p.parts and "titan" in str(p)]
    assert len(records) == 2
    asked = []
    for run in records:
        assert not run.failed and run.identity.campaign == "rehearsal"
        assert (run.place.system, run.place.launcher) == ("titan", "alps")
        assert [node.ranks for node in run.place.nodes] == [2, 2, 2, 2]
        assert (run.storage.source, run.storage.type) == ("rehearsal", "lustre")
        assert run.storage.mount_point.startswith("/lustre/atlas1/scratch/")
        asked.append(run.storage.asked)
    assert {"stripe_count": 4} in asked and {} in asked


@pytest.mark.parametrize(
    ("name", "mpi"), [("slurm-openmpi", "Open MPI"), ("slurm-mpich", "MPICH")]
)
def test_a_system_of_today_is_rehearsed_with_the_player_for_its_mpi(
    name: str, mpi: str, place: Path
) -> None:
    """One job of eight ranks, on one node: MPICH 4.0 on UCX may hang in MPI_Finalize if
    its ranks are on several."""
    if name == "slurm-mpich":
        need("MPICH")
    one_node = " -P stripe_count=default -S ranks_per_node=8"
    done = rehearse(place, name, "--more", CASE + one_node)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Ran 1/1 test case(s) from 1 check(s) (0 failure(s)" in done.stdout
    [run] = [runs.load(p) for p in find([place]) if "records" in p.parts and name in str(p)]
    assert not run.failed and (run.place.launcher, run.storage.type) == ("srun", "lustre")
    assert [node.ranks for node in run.place.nodes] == [8]
    assert run.software.mpi is not None and mpi in run.software.mpi


INVENTED = """
from understudy.reframe.systems import *
system = {"name": "invented", "hostnames": ["^invented$"], "partitions": [{
    "name": "project", "scheduler": "slurm", "launcher": "mpirun", "environs": ["mpi"],
    "access": ["--partition=wide"], "processor": {"num_cpus": 12}, "features": [MPI, SHARED],
    "extras": {SCRATCH: "/project/$USER", TYPE: "beegfs", MAX_NODES: 4, RANKS_PER_NODE: 12,
               NEEDS: ["sbatch"]},
}]}
environments = [{"name": "mpi", "target_systems": ["invented"], "features": [MPI]}]
"""


def test_a_cluster_that_no_configuration_names_is_added_as_the_guide_says(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the commands of the guide alone, with a shared and a node-local file system. The first
    configuration only tells the rehearsal which cluster to bring up; it may stand below /tmp."""
    site = tmp_path / "site"
    (site / "systems").mkdir(parents=True)
    (site / "systems" / "invented.py").write_text(INVENTED)
    monkeypatch.setenv("UNDERSTUDY_PATH", str(site))
    guide = (ROOT / "docs" / "how-to" / "add-a-system.md").read_text(encoding="utf-8")
    _, new, export, run = guide.split("```")[1].strip().splitlines()
    new = new.replace("'/lustre/$USER'", "'/project/$USER' --scratch /dev/shm")
    run = f"{run} -P workload=n-1 -P method=posix"
    several = f"{run} -S ranks_per_node=2".replace("NAME", "NAME:wide-beegfs")
    script = [
        "set -e",
        f"test -e {site}/systems/invented.py",
        "unset RFM_CONFIG_FILES UNDERSTUDY_PATH",
        'cd "$HOME"',
        new,
        export,
        run,
        several,
    ]
    done = rehearse(
        place,
        "invented",
        "--",
        "as-user",
        "bash",
        "-c",
        "\n".join(script).replace("NAME", "hypatia"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for line in (
        "systems/hypatia.py: slurm, mpirun",
        "  batch: 4 of 12 ranks each",
        "  wide: 4 of 12 ranks each",
        "  beegfs: beegfs at /project/$USER",
        "  tmpfs: tmpfs at /dev/shm (of each node: jobs of one node)",
        "Ran 4/4 test case(s) from 1 check(s) (0 failure(s)",
        "Ran 1/1 test case(s) from 1 check(s) (0 failure(s)",
    ):
        assert line in done.stdout, done.stdout
    [kept] = place.glob("rehearsal-invented-*")
    records = [runs.load(path) for path in find([kept / "records"])]
    assert not any(run.failed for run in records)
    placed = sorted((str(run.place.partition), len(run.place.nodes)) for run in records)
    assert placed == [
        ("batch-beegfs", 1),
        ("batch-tmpfs", 1),
        ("wide-beegfs", 1),
        ("wide-beegfs", 2),
        ("wide-tmpfs", 1),
    ]


def test_nothing_is_left_of_a_rehearsal_that_is_interrupted(place: Path) -> None:
    before = left_behind()
    process = subprocess.Popen(
        [*REHEARSAL, "cab", "--", "sh", "-c", "echo ready; sleep 600"],
        cwd=ROOT,
        env=environment(place),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "understudy: rehearsal: interrupted; " in err and "Traceback" not in err
    assert not list(place.glob("*rehearsal-cab-*"))  # no case has ended
    for _ in range(100):  # the kernel ends what is inside
        if left_behind() == before:
            break
        time.sleep(0.1)
    assert left_behind() == before


FULL = "No space left on device"
FAULTS: Mapping[str, str] = {
    "limit": "job {job} on {nodes} reached its time limit of 00:01:00",
    "cancel": "job {job} on {nodes} was cancelled",
    "node": "job {job} on {nodes} ended because the node {last} failed",
    "rank": "the job ended with status 137: srun: error: ",
    "hang": "the job ended with status ",
    "space": FULL,
    **{f"space-{method}": FULL for method in ("mpiio", "hdf5", "stdio", "adios")},
}
ALSO = {
    "rank": ": Killed",
    "hang": "waits for other ranks; nothing from rank ",
    "space-hdf5": "understudy: ",
}
PLAYER = ROOT / "build" / "bin" / "understudy-replay"


@pytest.fixture(scope="session")
def faults(place: Path) -> Mapping[str, Any]:
    done = rehearse(
        place,
        "edison",
        "--nodes",
        "8",
        "--",
        sys.executable,
        "-m",
        "nightly.rehearsal.faults",
        f"{slurm.SELF}/out/faults.json",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [path] = place.glob("rehearsal-edison-*/faults.json")
    return {row["fault"]: row for row in json.loads(path.read_text())}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_told_right(faults: Mapping[str, Any], fault: str) -> None:
    if fault.startswith("space-"):
        player.needs(fault.partition("-")[2])
    row = faults[fault]
    assert row["status"] == 1 and row["ended_s"] < 60, row["printed"]
    [verdict] = [line for line in row["printed"].splitlines() if line.startswith("verdict: ")]
    nodes = row["nodes"]
    expected = FAULTS[fault].format(job=row["job"], nodes=", ".join(nodes), last=nodes[-1])
    assert expected in verdict and ALSO.get(fault, "") in verdict, verdict


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "system 'nowhere': expected one of archer, "),
        ("localhost", "system 'localhost': scheduler 'local': a rehearsal has slurm, "),
    ],
)
def test_a_system_that_cannot_be_rehearsed_is_refused(name: str, message: str) -> None:
    with pytest.raises(UnderstudyError) as refused:
        slurm.system_of(name)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("", ["-n", "^Replay"]),
        ("-E 'a == \"b\"'", ["-n", "^Replay", "-E", 'a == "b"']),
        ("-n Fidelity", ["-n", "Fidelity"]),
        ("--name=Fidelity", ["--name=Fidelity"]),
        ("-nFidelity --repeat 2", ["-nFidelity", "--repeat", "2"]),
    ],
)
def test_checks_that_are_named_take_the_place_of_others(more: str, words: list[str]) -> None:
    assert slurm.selection(more) == words


def test_arguments_with_an_open_quote_are_refused() -> None:
    with pytest.raises(UnderstudyError, match="arguments for ReFrame: -E 'a: No closing"):
        slurm.selection("-E 'a")


def _clean() -> dict[str, str]:
    """Also without what a make above says, which then names the directories that it enters."""
    given = ("SYSTEM", "FS", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
    return {key: value for key, value in os.environ.items() if key not in given}


def test_without_a_system_the_target_prints_its_usage() -> None:
    for words in ((), ("FS=nix",)):
        done = subprocess.run(
            ["make", "rehearse", *words],
            cwd=ROOT,
            env=_clean(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr.startswith("usage: make rehearse SYSTEM=NAME [ARGS=")


def test_quotes_within_arguments_are_passed_on() -> None:
    arguments = "ARGS=-E 'workload == \"n-1\"'"
    done = subprocess.run(
        ["make", "-n", "rehearse", "SYSTEM=titan", arguments],
        cwd=ROOT,
        env=_clean(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1].endswith('slurm "$SYSTEM" --more "$ARGS"')


def test_without_its_packages_a_rehearsal_names_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "PACKAGES", {"no-such-program": "slurmctld", "sh": "dash"})
    reason = slurm.obstacle()
    assert reason is not None and reason.endswith("--no-install-recommends slurmctld")


def test_queues_and_features_of_a_configuration_exist() -> None:
    access = ["-p debug", "--partition=long,wide", "-C 'haswell&ssd'", "-q night", "-A project"]
    system = {"name": "x", "partitions": [{"access": access, "scheduler": "slurm"}]}
    queues, features = slurm.asked_of_nodes(system)
    assert queues == {"debug", "long", "wide", "night"} and features == {"haswell", "ssd"}
    lines = list(slurm.configuration(system, 4))
    assert "PartitionName=night Nodes=ALL MaxTime=INFINITE" in lines
    assert any("Feature=haswell,ssd" in line for line in lines)
