"""understudy system new, on hosts whose commands are stand-ins."""

import json
import os
import re
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support import player
from tests.support.said import said
from understudy.cli import main
from understudy.commands.system import Queue
from understudy.paths import ROOT
from understudy.reframe import systems

LUSTRE = {"type": "lustre", "default_layout": {"backend": "lustre", "stripe_count": 4}}
SINFO = (
    "debug|2|16|up|30:00\nbatch*|10|24+|up|1-12:00:00\nbatch*|2|16|up|1-12:00:00\n"
    "old|3|8|down|infinite\n"
)
TORQUE = "n1\n     state = free\n     np = 16\n\nn2\n     state = free\n     np = 16\n"
PBS = (
    "n1\n     resources_available.ncpus = 24\n     resources_available.mem = 65536kb\n"
    "n2\n     resources_available.ncpus = 36\n"
)


class Host:
    """A host of the stand-ins in one directory; what lies on this machine's PATH is hidden."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.storage({"type": "tmpfs", "default_layout": None})

    def program(self, name: str, printed: str = "", status: int = 0) -> None:
        path = self.bin / name
        (self.folder / f"{name}.txt").write_text(printed)
        path.write_text(f"#!/bin/sh\n/bin/cat {self.folder}/{name}.txt\nexit {status}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def storage(self, answer: dict[str, Any]) -> None:
        self.program("understudy-storage", json.dumps(answer))

    def new(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": str(self.bin), "PYTHONPATH": str(ROOT / "python")}
        return subprocess.run(
            [sys.executable, "-m", "understudy", "system", "new", *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def partitions(self) -> dict[str, dict[str, Any]]:
        [system], _ = systems.load([self.folder / "understudy-site" / "systems"])
        return {row["name"]: row for row in system["partitions"]}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.mark.parametrize(("printed", "most"), [('{"num_in_osds":8}', 8), ("denied", None)])
def test_cephfs_by_fuse(host: Host, printed: str, most: int | None) -> None:
    """The type is the one that the player finds, which a run compares with the system's."""
    host.program("mpirun")
    host.program("ceph", printed)
    layout = {"backend": "ceph", "stripe_count": 1}
    host.storage({"type": "fuse.ceph-fuse", "default_layout": layout})
    done = host.new("mine", "--scratch", str(host.folder))
    assert done.returncode == 0, done.stderr
    [ceph] = host.partitions().values()
    assert ceph["name"] == "ceph"
    assert {systems.SHARED, systems.STRIPING} <= set(ceph["features"])
    assert ceph["extras"][systems.TYPE] == "fuse.ceph-fuse"
    assert ceph["extras"][systems.STRIPE_COUNT] == 1
    assert ceph["extras"][systems.STRIPE_COUNT_MAX] == most


def test_without_a_batch_system_it_is_this_machine(host: Host) -> None:
    host.program("mpirun")
    done = host.new("mine", "--scratch", str(host.folder))
    assert (done.returncode, done.stderr) == (0, "")
    [(name, row)] = host.partitions().items()
    assert (name, row["scheduler"], row["launcher"]) == ("tmpfs", "local", "mpirun")
    assert row["extras"]["scratch"] == str(host.folder)
    assert f"export UNDERSTUDY_PATH={host.folder}/understudy-site " in done.stdout


def test_partitions_of_slurm_and_the_layout_of_lustre(host: Host) -> None:
    for name in ("sbatch", "srun", "sacct"):
        host.program(name)
    host.program("sinfo", SINFO)
    host.program("lfs", "OBDS:\n0: a-OST0000_UUID ACTIVE\n1: a-OST0001_UUID ACTIVE\n")
    host.storage(LUSTRE)
    done = host.new("big", "--scratch", str(host.folder))
    assert (done.returncode, done.stderr) == (0, "")
    partitions = host.partitions()
    assert set(partitions) == {"debug-lustre", "batch-lustre"}
    batch = partitions["batch-lustre"]
    assert (batch["scheduler"], batch["launcher"]) == ("slurm", "srun")
    assert batch["access"] == ["--partition=batch"]
    assert {"mpi", "shared", "lustre", "striping"} == set(batch["features"])
    assert {k: batch["extras"][k] for k in ("max_nodes", "ranks_per_node", "stripe_count")} == {
        "max_nodes": 12,
        "ranks_per_node": 16,
        "stripe_count": 4,
    }
    assert batch["extras"]["stripe_count_max"] == 2
    assert [
        partitions[f"{name}-lustre"]["extras"]["max_seconds"] for name in ("debug", "batch")
    ] == [
        30 * 60,
        36 * 3600,
    ]
    said("batch-ranks-each-jobs", done.stdout)


def test_time_limits_as_batch_systems_state_them(host: Host) -> None:
    limits = {
        "infinite": None,
        "n/a": None,
        "UNLIMITED": None,
        "2:00": 120,
        "10:00:00": 36000,
        "2-00:00:01": 172801,
        "3600": 3600,
    }
    host.program("sbatch")
    host.program("sinfo", "".join(f"q{n}|4|8|up|{stated}\n" for n, stated in enumerate(limits)))
    assert host.new("mine", "--scratch", str(host.folder)).returncode == 0
    seconds = [row["extras"].get("max_seconds") for row in host.partitions().values()]
    assert seconds == list(limits.values())


def test_a_time_limit_that_is_none_is_one_message(host: Host) -> None:
    host.program("sbatch")
    host.program("sinfo", "all|4|8|up|soon\n")
    done = host.new("small", "--scratch", str(host.folder))
    assert (done.returncode, done.stderr) == (
        2,
        "understudy: sinfo: time limit of all: expected a time such as 1-00:00:00, got 'soon'\n",
    )


QUEUE = "Queue: workq\n    queue_type = Execution\n    resources_max.walltime = {}\n"


@pytest.mark.parametrize(
    ("server", "queue", "seconds"),
    [
        ("48:00:00", "24:00:00", 86400),
        ("12:00:00", "24:00:00", 43200),
        (None, "24:00:00", 86400),
        (None, None, None),
    ],
)
def test_the_walltime_of_the_default_queue_of_pbs(
    server: str | None, queue: str | None, seconds: int | None, host: Host
) -> None:
    host.program("qsub")
    host.program("pbsnodes", PBS)
    host.storage({"type": "gpfs", "default_layout": None})
    most = f"    resources_max.walltime = {server}\n" if server else ""
    (host.folder / "server.txt").write_text(f"Server: s\n    default_queue = workq\n{most}")
    (host.folder / "queue.txt").write_text(QUEUE.format(queue) if queue else "Queue: workq\n")
    host.program("qstat")
    asks = 'case "$*" in "-B -f") f=server;; "-Q -f workq") f=queue;; *) exit 1;; esac'
    (host.bin / "qstat").write_text(f"#!/bin/sh\n{asks}\n/bin/cat {host.folder}/$f.txt\n")
    assert host.new("cray", "--scratch", str(host.folder)).returncode == 0
    [row] = host.partitions().values()
    assert row["extras"].get("max_seconds") == seconds


def test_the_memory_of_nodes_is_stated(host: Host) -> None:
    host.program("sbatch")
    host.program("sinfo")
    (host.bin / "sinfo").write_text(
        '#!/bin/sh\ncase $* in *%m) echo "all*|128000"; echo "all*|256000+"; echo "old|1";;\n'
        '*) echo "all*|4|8|up|n/a"; echo "old|4|8|up|n/a";; esac\n'
    )
    assert host.new("big", "--scratch", str(host.folder)).returncode == 0
    bytes_by_name = {
        name: row["extras"].get("node_memory_bytes") for name, row in host.partitions().items()
    }
    assert bytes_by_name == {"all-tmpfs": 256000 << 20, "old-tmpfs": None}


def test_slurm_without_accounting_is_polled_by_squeue(host: Host) -> None:
    host.program("sbatch")
    host.program("sinfo", "all|4|8|up|n/a\n")
    host.program("sacct", status=1)
    assert host.new("small", "--scratch", str(host.folder)).returncode == 0
    [row] = host.partitions().values()
    assert row["scheduler"] == "squeue"
    assert "shared" not in row["features"] and row["extras"]["max_nodes"] == 1


@pytest.mark.parametrize(
    ("printed", "scheduler", "cores"),
    [
        (TORQUE, "torque", 16),
        (PBS, "pbs", 24),
    ],
)
def test_nodes_of_pbs_and_torque(host: Host, printed: str, scheduler: str, cores: int) -> None:
    host.program("qsub")
    host.program("aprun")
    host.program("pbsnodes", printed)
    host.storage({"type": "gpfs", "default_layout": None})
    assert host.new("cray", "--scratch", str(host.folder)).returncode == 0
    [row] = host.partitions().values()
    assert (row["scheduler"], row["launcher"]) == (scheduler, "alps")
    assert (row["extras"]["max_nodes"], row["extras"]["ranks_per_node"]) == (2, cores)
    assert row["extras"]["type"] == "gpfs" and "striping" not in row["features"]
    assert row["extras"].get("node_memory_bytes") == (64 << 20 if scheduler == "pbs" else None)


def test_a_file_is_replaced_with_force_alone(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.program("mpirun")
    arguments = ("mine", "--scratch", str(host.folder))
    assert host.new(*arguments).returncode == 0
    monkeypatch.setenv("UNDERSTUDY_PATH", str(host.folder / "understudy-site"))
    file = host.folder / "understudy-site" / "systems" / "mine.py"
    file.write_text("# edited\n")
    done = host.new(*arguments)
    assert done.returncode == 2 and said("mine-py-exists-already", done.stderr)
    assert file.read_text() == "# edited\n"
    done = host.new(*arguments, "-o", "other.py")
    assert done.returncode == 2 and said("system-mine-exists", done.stderr, file=file)
    assert host.new(*arguments, "--force").returncode == 0
    assert host.partitions()


def test_the_names_of_hosts_are_like_that_of_this_one(host: Host) -> None:
    host.program("mpirun")
    assert host.new("mine", "--scratch", str(host.folder)).returncode == 0
    [system], _ = systems.load([host.folder / "understudy-site" / "systems"])
    [pattern] = system["hostnames"]
    assert re.match(pattern, socket.gethostname()) and pattern != "^mine$"


@pytest.mark.parametrize(
    ("name", "like", "unlike"),
    [
        ("login3.cluster.example", ("login1", "login12.cluster.example"), ("login", "xlogin1")),
        ("titan-ext7", ("titan-ext1",), ("titan-login1", "titan")),
        ("a+b", ("a+b",), ("aab",)),
    ],
)
def test_hosts_differ_in_numbers_and_domains(
    name: str,
    like: tuple[str, ...],
    unlike: tuple[str, ...],
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    monkeypatch.setenv("PATH", str(host.bin))
    monkeypatch.chdir(host.folder)
    host.program("mpirun")
    done = CliRunner().invoke(main, ["system", "new", "mine", "--scratch", str(host.folder)])
    assert done.exit_code == 0, done.output
    [system], _ = systems.load([host.folder / "understudy-site" / "systems"])
    [pattern] = system["hostnames"]
    assert all(re.match(pattern, host_name) for host_name in (name, *like))
    assert not any(re.match(pattern, host_name) for host_name in unlike)


@pytest.mark.parametrize(
    ("type_", "shared"),
    [
        ("orangefs", True),
        ("fuse.juicefs", True),
        ("xfs", False),
        ("tmpfs", False),
    ],
)
def test_an_unknown_type_is_not_taken_for_that_of_a_node(
    host: Host, type_: str, shared: bool
) -> None:
    host.program("sbatch")
    host.program("sinfo", "all|4|8|up|n/a\n")
    host.storage({"type": type_, "default_layout": None})
    done = host.new("big", "--scratch", str(host.folder))
    assert done.returncode == 0, done.stderr
    [row] = host.partitions().values()
    assert ("shared" in row["features"], row["extras"]["max_nodes"]) == (
        shared,
        4 if shared else 1,
    )
    note = "assumed to be shared by the nodes" if shared else "of each node: jobs of one node"
    text = (host.folder / "understudy-site" / "systems" / "big.py").read_text()
    assert note in done.stdout and note in text
    assert row["extras"]["type"] == ("tmpfs" if type_ == "tmpfs" else "disk")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a b"], "'a b': expected a name of letters, digits, - and _"),
        (["../x"], "'../x': expected a name of letters, digits, - and _"),
        (["titan"], "the system 'titan' exists: "),
        (["x", "--scratch", "/no/such"], "--scratch /no/such: expected a directory"),
        (["x", "-o", "there.py"], "there.py: exists already; choose another name or use --force"),
        (["titan", "--force"], "the system 'titan' exists: "),
        (["x", "-o", "there.py/x.py"], "there.py: cannot be created: "),
    ],
)
def test_a_mistake_is_one_message(host: Host, arguments: list[str], message: str) -> None:
    (host.folder / "there.py").touch()
    host.program("mpirun")
    more = [] if "--scratch" in arguments else ["--scratch", str(host.folder)]
    done = host.new(*arguments, *more)
    assert done.returncode == 2
    assert done.stderr.startswith(f"understudy: {message}") and done.stderr.count("\n") == 1
    assert not (host.folder / "understudy-site").exists()


@pytest.mark.parametrize(
    ("printed", "status", "message"),
    [
        (
            "",
            1,
            "sinfo -h -o %R|%D|%c|%a|%l: failed with exit status 1: no message; the batch "
            "system must answer; --no-batch describes this machine without it",
        ),
        (
            "x|down|8|up|n/a\n",
            0,
            "sinfo: nodes of x: expected a number of 1 to 99999999, got 'down'",
        ),
        ("x|-4|8|up|n/a\n", 0, "sinfo: nodes of x: expected a number of 1 to 99999999, got '-4'"),
        (
            "x|4|999999999|up|n/a\n",
            0,
            "sinfo: cores of x: expected a number of 1 to 99999999, got '9",
        ),
        ("x|4|8|down\n", 0, "sinfo: no partition is up; expected at least one line such as "),
        (
            "nonsense\n",
            0,
            "sinfo: no partition is up; expected at least one line such as work|4|64|up|"
            "1-00:00:00, found 'nonsense'",
        ),
    ],
)
def test_a_batch_system_that_does_not_answer_is_not_taken_for_none(
    host: Host, printed: str, status: int, message: str
) -> None:
    host.program("sbatch")
    host.program("sinfo", printed, status)
    done = host.new("x", "--scratch", str(host.folder))
    assert done.returncode == 2
    assert done.stderr.startswith(f"understudy: {message}"), done.stderr
    assert not (host.folder / "understudy-site").exists()


def test_this_machine_is_described_without_its_batch_system(host: Host) -> None:
    host.program("sbatch")
    host.program("sinfo", "", 1)
    host.program("mpirun")
    done = host.new("x", "--no-batch", "--scratch", str(host.folder))
    assert (done.returncode, done.stderr) == (0, "")
    [row] = host.partitions().values()
    assert row["scheduler"] == "local"
    cores, ranks = os.cpu_count() or 1, row["extras"]["ranks_per_node"]
    note = f" (more than its {cores} cores: ranks share them)" if ranks > cores else ""
    said("nodes-ranks-each", done.stdout, ranks=ranks, note=note)
    text = (host.folder / "understudy-site" / "systems" / "x.py").read_text()
    assert ("ranks share them" in text) is (ranks > cores)


def test_ranks_that_share_cores_are_told() -> None:
    few, many = (Queue(name="", nodes=1, cores=16, physical_cores=cores) for cores in (2, 16))
    said("more-than-its-cores", few.remark)
    assert many.remark == "" == Queue(name="q", nodes=4, cores=24).remark


def test_a_variable_of_the_scratch_directory(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written as given; a message has it as the shell expands it."""
    monkeypatch.setenv("WHO", host.folder.name)
    monkeypatch.delenv("NOBODY", raising=False)
    host.program("mpirun")
    given = f"{host.folder.parent}/${{WHO}}"
    assert host.new("x", "--scratch", given).returncode == 0
    [row] = host.partitions().values()
    assert row["extras"]["scratch"] == given
    assert systems.expanded(given) == (host.folder, str(host.folder))
    done = host.new("y", "--scratch", "/no/such/$NOBODY/x")
    said("scratch-no-such-nobody", done.stderr)


def test_endless_output_is_cut(host: Host) -> None:
    host.program("sbatch")
    (host.bin / "sinfo").write_text("#!/bin/sh\nexec /usr/bin/yes AAAA\n")
    (host.bin / "sinfo").chmod(0o755)
    done = host.new("x", "--scratch", str(host.folder))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    said("sinfo-failed-exit-status", done.stderr)


def test_text_of_the_machine_is_data(host: Host) -> None:
    """Names of queues and directories with quotes, braces and newlines do not become code."""
    folder = host.folder / 'a"{1+0}\n\\b'
    folder.mkdir()
    host.program("sbatch")
    host.program("sinfo", 'q"{1/0}|1|8|up|n/a\nodd|1|8|up|n/a\n')
    assert host.new("odd", "--scratch", str(folder)).returncode == 0
    partitions = host.partitions()
    assert all(re.fullmatch("[A-Za-z0-9_-]+", name) for name in partitions)
    assert {row["extras"]["scratch"] for row in partitions.values()} == {str(folder)}
    assert ['--partition=q"{1/0}'] in [row["access"] for row in partitions.values()]


def _without_batch_system(folder: Path) -> Path:
    """All programs of PATH but those that tell of a batch system."""
    folder.mkdir()
    for directory in map(Path, os.environ["PATH"].split(":")):
        for program in directory.iterdir() if directory.is_dir() else ():
            link = folder / program.name
            if program.name not in ("sbatch", "qsub") and not link.is_symlink():
                link.symlink_to(program)
    return folder


def test_the_file_runs_on_this_machine(tmp_path: Path) -> None:
    """Literally what the command prints, with the batch system hidden."""
    programs = [Path(player.program()).parent, Path(sys.executable).parent]
    environment = {
        **os.environ,
        "PATH": ":".join(map(str, [*programs, _without_batch_system(tmp_path / "bin")])),
        "PYTHONPATH": str(ROOT / "python"),
        "RFM_COLORIZE": "0",
        "PWD": str(tmp_path),
    }
    environment.pop("RFM_CONFIG_FILES", None)
    environment["MEMORY"] = "shm"
    new = [
        sys.executable,
        "-m",
        "understudy",
        "system",
        "new",
        "mine",
        "--scratch",
        "/dev/$MEMORY",
    ]
    created = subprocess.run(
        new, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    commands = created.stdout.partition("Next:\n")[2]
    commands = commands.replace("-n Replay", "-n Replay%workload=n-1%method=posix")
    done = subprocess.run(
        ["bash", "-c", commands],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "(0 failure(s)" in done.stdout
