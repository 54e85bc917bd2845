"""What each system makes of a case: batch lines, launcher, stripe counts."""

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.derived import derive
from tests.support.said import raises, said
from tests.test_checks import LISTED, METHODS, Session, cases, sample
from tests.test_plugins import GOOD, load_one
from understudy.errors import UnderstudyError
from understudy.paths import directories, files
from understudy.reframe import systems
from understudy.units import hms, parse_size


class Lines(NamedTuple):
    """The lines of a job of two full nodes."""

    cores: int
    batch: tuple[str, ...]
    start: str
    counts: tuple[int, ...]  # stripe counts asked for, beside the default
    reason: str = ""  # why the cases with a stripe count are skipped


def slurm(cores: int) -> tuple[str, ...]:
    return (
        f"--ntasks={2 * cores}",
        f"--ntasks-per-node={cores}",
        "--nodes=2",
        "--exclusive",
        "--no-requeue",
    )


def torque(cores: int) -> tuple[str, ...]:
    return (f"-l nodes=2:ppn={cores}", "-r n")


def pbs(cores: int) -> tuple[str, ...]:
    return (f"-l select=2:mpiprocs={cores}:ncpus={cores}", "-r n")


SRUN = "srun --kill-on-bad-exit=1 "
# Those of the tables in the three studies; more than the OSTs are not asked for.
SYSTEMS: Mapping[str, Lines] = {
    "archer": Lines(24, pbs(24), "aprun -n 48 -N 24 ", (2, 48)),
    "cab": Lines(16, slurm(16), SRUN, (2, 32)),
    "edison": Lines(24, slurm(24), SRUN, (2, 48)),
    "jaguar-xk6": Lines(16, torque(16), "aprun -n 32 -N 16 ", (2, 32)),
    "jaguar-xt5": Lines(12, torque(12), "aprun -n 24 -N 12 ", (2, 24)),
    "slurm-mpich": Lines(16, slurm(16), SRUN, (2, 32)),
    "slurm-openmpi": Lines(16, slurm(16), SRUN, (2, 32)),
    "sith": Lines(32, torque(32), "mpirun -np 64 ", (2, 64)),
    "spruce-a": Lines(16, pbs(16), "mpiexec -n 32 ", (2, 32)),
    "taurus": Lines(24, slurm(24), SRUN, (), "taurus:scratch: users cannot override the striping"),
    "tinis": Lines(16, slurm(16), "mpirun -np 32 ", (), "tinis:gpfs: GPFS gives users no control"),
    "titan": Lines(16, torque(16), "aprun -n 32 -N 16 ", (2, 32)),
}


def test_every_system_but_the_machine_at_hand_has_its_lines_here() -> None:
    assert set(files("systems", ".py")) == {*SYSTEMS, "localhost"}


@pytest.mark.parametrize("name", SYSTEMS)
def test_jobs_of_a_system(name: str, tmp_path: Path) -> None:
    lines = SYSTEMS[name]
    session = Session(tmp_path, sample())
    session.program("understudy-replay", LISTED)
    ranks = ["-S", "scaling=weak", "-S", f"ranks={2 * lines.cores}"]
    done = session.run("--dry-run", f"--system={name}", *ranks)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout
    skipped = 0 if lines.counts else 2 * len(METHODS)
    assert cases(done.stdout) == (3 * len(METHODS) + 2 - skipped, 0, skipped)
    assert done.stdout.count(f"[{lines.reason}") == skipped or not lines.reason
    scripts = session.scripts()
    assert len(scripts) == 1 + len(lines.counts)
    for script in scripts:
        batch = re.findall(r"(?m)^#(?:PBS|SBATCH) (.*)$", script)
        assert set(lines.batch) <= set(batch), script
        assert f"\n{lines.start}understudy-replay -w " in script
    asked = re.findall(r"understudy-replay .* --stripe-count (\d+) ", "\n".join(scripts))
    assert sorted(map(int, asked)) == list(lines.counts)


def test_archer_is_not_asked_for_more_targets_than_it_has(tmp_path: Path) -> None:
    session = Session(tmp_path, sample())
    session.program("understudy-replay", LISTED)
    session.run("--dry-run", "--system=archer", "-S", "scaling=weak", "-S", "ranks=96")
    asked = re.findall(r"understudy-replay .* --stripe-count (\d+) ", "\n".join(session.scripts()))
    assert sorted(map(int, asked)) == [4, 48]


def dry(folder: Path, system: str, *arguments: str, check: str = "Replay") -> tuple[Session, str]:
    session = Session(folder, sample())
    session.program("understudy-replay", LISTED)
    done = session.run("--dry-run", f"--system={system}", *arguments, check=check)
    return session, done.stdout + done.stderr


def test_a_stripe_count_that_another_case_has_is_skipped(tmp_path: Path) -> None:
    ranks = ["-S", "scaling=weak", "-S", f"ranks={64 * 24}"]
    session, printed = dry(tmp_path, "archer", *ranks)
    asked = re.findall(r"understudy-replay .* --stripe-count (\d+) ", "\n".join(session.scripts()))
    assert asked == ["48"]
    reason = "[stripe count 48 is that of the case with a target for each node]"
    assert printed.count(reason) == len(METHODS)


def test_the_mode_accept_measures_storage(tmp_path: Path) -> None:
    session, _ = dry(tmp_path, "archer", "--mode=accept")
    scripts = session.scripts()
    assert scripts
    for script in scripts:
        assert " -e --restart --shift-ranks 1 --drop-cache " in script


def test_options_of_the_player_are_variables(tmp_path: Path) -> None:
    session, _ = dry(
        tmp_path,
        "archer",
        "-S",
        "method_options=posix.direct=yes",
        "-S",
        "transfer_bytes=4MiB",
        "-S",
        "hints=cb_nodes=2,a=b c;d",
        "-S",
        "deadline_s=2.5",
        "-S",
        "wear_out=1",
        "-S",
        "rate_bytes_per_s=4MB",
        "-S",
        "mix_percent=30",
        "-P",
        "stripe_count=3",
    )
    [script] = session.scripts()
    for option in (
        " -m posix.direct=yes ",
        " -t 4194304 ",
        " --hint cb_nodes=2 ",
        " --hint 'a=b c;d' ",
        " --stripe-count 3 ",
        " --deadline 2.5 --wear-out --rate 4000000 --mix 30 ",
    ):
        assert option in script


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-S", "ranks_per_node=-3"], "-S ranks_per_node=-3: expected at least 1"),
        (["-S", "ranks_per_node=0"], "-S ranks_per_node=0: expected at least 1"),
        (["-S", "drop_cache=1"], "-S drop_cache=1: only with -S restart=1, which reads"),
        (["-S", "deadline_s=0"], "-S deadline_s=0: expected a number above 0"),
        (["-S", "wear_out=1"], "-S wear_out=1: only with -S deadline_s=SECONDS"),
        (["-S", "mix_percent=100"], "-S mix_percent=100: expected 1 to 99"),
        (["-S", "rate_bytes_per_s=0"], "-S rate_bytes_per_s=0: expected at least 1B"),
        (["-S", "stripe_size=4mb"], "-S '4mb': expected bytes, such as 4194304, 4MiB or 4MB"),
        (
            ["-S", "aggregators=some"],
            "-S aggregators=some: expected a number, node (one for each), "
            "per-N (one for N ranks) or all",
        ),
        (
            ["-S", "layout=striped"],
            "-S layout=striped: expected shared, grouped, file-per-process",
        ),
        (["-S", "nodes=0"], "-S nodes=0: expected a number of nodes"),
        (
            ["-P", "stripe_count=all"],
            "-P stripe_count=all: expected default, nodes, cores or a number of targets",
        ),
        (
            ["-P", "stripe_count=0"],
            "-P stripe_count=0: expected default, nodes, cores or a number of targets",
        ),
    ],
)
def test_an_invalid_option_ends_with_one_message(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    _, printed = dry(tmp_path, "archer", *arguments)
    assert f"understudy: {message}\n" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    ("check", "arguments", "message"),
    [
        ("Mdtest", ["-S", "files=0"], "-S files=0: expected at least 1"),
        ("Ior", ["-S", "block_bytes=0"], "-S block_bytes=0: expected at least 1B"),
    ],
)
def test_an_invalid_option_of_another_check_ends_with_one_message(
    check: str, arguments: list[str], message: str, tmp_path: Path
) -> None:
    session = Session(tmp_path, sample())
    session.program("understudy-replay", LISTED)
    done = session.run("-l", "--system=localhost:tmpfs", *arguments, check=check)
    assert f"understudy: {message}" in done.stderr and "Traceback" not in done.stderr
    assert done.returncode


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4194304", 4194304),
        ("4kB", 4000),
        ("4KiB", 4096),
        ("3GiB", 3 << 30),
        ("1EB", 10**18),
    ],
)
def test_sizes_are_those_of_the_player(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "4 MB", "4mb", "-4MB", "4.5MB", "MB", "4MBB", "\u0664MB"])
def test_other_sizes_are_refused(text: str) -> None:
    with raises(UnderstudyError, "expected-bytes-such-mib"):
        parse_size(text)


def test_files_that_a_method_creates_itself_are_striped_by_their_directory(tmp_path: Path) -> None:
    session = Session(tmp_path, sample())
    session.program("understudy-replay", "echo 'posix available, not for update rewrite'")
    case = ("--system=archer", "-P", "stripe_count=3")
    done = session.run("--dry-run", *case, check="Replay")
    assert done.returncode == 0, done.stdout + done.stderr
    [script] = session.scripts()
    assert 'understudy-storage --stripe-count 3 "$dir" >storage-before.json\n' in script
    assert not re.search(r"understudy-replay .*--stripe-count", script)


def test_the_mode_accept_demands_nothing_that_a_workload_fixes(tmp_path: Path) -> None:
    """Pauses, sizes and errors have bounds of their own; bandwidths need references."""
    session = Session(tmp_path, sample())
    session.program("understudy-replay", LISTED)
    names = "^(Schedule|Simulation|Fidelity)%workload=mphys-a"
    done = session.run("--dry-run", "--system=archer", "--mode=accept", names=names)
    assert done.returncode == 0, done.stdout + done.stderr
    assert cases(done.stdout)[:2] == (4, 0)
    missing = "no reference for checkpoint_bandwidth, viz_bandwidth, checkpoint-restart_bandwidth"
    replay = "^Replay%workload=sample%method=posix%stripe_count=default"
    done = session.run("--dry-run", "--system=archer", "--mode=accept", names=replay)
    assert done.returncode == 1 and said("elapsed-archer-work", done.stdout, missing=missing)


@pytest.mark.parametrize(
    ("longest", "given", "ran"),
    [
        (7200, [], 1),
        (60, [], 0),
        (7200, ["-S", "time_limit=3h"], 0),
        (60, ["-S", "time_limit=1m"], 1),
    ],
)
def test_a_case_that_its_queue_would_refuse_is_left_out(
    longest: int, given: list[str], ran: int, tmp_path: Path
) -> None:
    session = Session(tmp_path, sample())
    session.program("understudy-replay", LISTED)
    longest_of = f"partition['extras']['max_seconds'] = {longest}"
    derive(tmp_path / "site", "short", "edison", longest_of)
    session.environment["UNDERSTUDY_PATH"] = str(tmp_path / "site")
    case = ("--system=short", "-E", "method == 'posix' and stripe_count == 'default'", *given)
    done = session.run("--dry-run", *case, check="Replay")
    assert cases(done.stdout) == (ran, 0, 1 - ran), done.stdout + done.stderr
    asked = "3:00:00" if given else "0:10:01"
    reason = (
        f"its job asks for {asked}, short:scratch gives jobs at most {hms(longest)}; ask for less "
        "with -S time_limit=TIME, such as 12h, or move fewer bytes"
    )
    assert (reason in done.stdout) is not bool(ran)
    listed = session.run("-l", *case, check="Replay")
    assert (reason in listed.stderr) is not bool(ran)


@pytest.mark.parametrize("longest", [0, -5, "1h", 1.5, True])
def test_a_longest_time_is_seconds(longest: object, tmp_path: Path) -> None:
    with raises(UnderstudyError, "extra-max-seconds-expected"):
        load_one(tmp_path, GOOD | {"max_seconds": longest})


def test_commands_of_modules_work_in_a_shell_that_is_no_login_shell(tmp_path: Path) -> None:
    """`module` is a function, which such a shell lacks."""
    (tmp_path / "init").mkdir()
    (tmp_path / "init" / "bash").write_text('false; module() { echo "module $*"; }\n')
    configured = {system["name"]: system for system in systems.load(directories("systems"))[0]}
    [partition] = configured["titan"]["partitions"]
    done = subprocess.run(
        ["bash", "--norc", "--noprofile", "-c", "\n".join(partition["prepare_cmds"])],
        env={"MODULESHOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        line for line in partition["prepare_cmds"] if line.startswith("module ")
    ]
    [disk, *_] = configured["localhost"]["partitions"]
    assert systems.FIND_MODULES not in disk["prepare_cmds"]


def test_memory_is_that_of_the_nodes_of_a_job_by_aprun(tmp_path: Path) -> None:
    """The job script of ALPS runs on a service node."""
    session, _ = dry(tmp_path, "archer")
    [line, *_] = [x for x in session.scripts()[0].splitlines() if ">node-memory" in x]
    session.program(
        "aprun", "echo 'MemTotal: 32 kB'; echo 'MemTotal: 64 kB'; echo 'Application 1'"
    )
    subprocess.run(
        ["bash", "-c", f"set -e; {line}"], env=session.environment, cwd=session.folder, check=True
    )
    assert (session.folder / "node-memory").read_text() == "MemTotal: 64 kB\n"
