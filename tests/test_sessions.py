"""Sessions that cannot work, or did no work, end with one message and not with a pass."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import results
from tests.support.derived import derive
from tests.support.said import said
from tests.test_checks import ROOT, Session, cases, here, leave, played
from understudy import producers
from understudy.paths import files
from understudy.reframe.session import job_failures

__all__ = ["here"]  # a fixture


SYSTEM = "--system=localhost:tmpfs"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "Replai"], "nothing ran: no case was selected"),
        (["-S", "max_bytes=1kB"], "nothing ran: all 4 cases were skipped, for the reasons above"),
    ],
)
def test_a_session_in_which_nothing_ran_fails(
    here: Session, arguments: list[str], message: str
) -> None:
    done = here.run("-r", SYSTEM, *arguments, check="Replay" if "-n" not in arguments else "none")
    assert (done.returncode, done.stderr) == (1, f"understudy: {message}\n"), done.stdout
    assert cases(done.stdout)[0] == 0
    (kept,) = (here.folder / "out" / "records").rglob("*.json.gz")
    run = producers.load(kept)
    assert run.failed and run.place.system == "localhost"
    assert str(run.producer.failure).startswith(message.partition(",")[0])


def test_a_session_that_is_ended_leaves_a_record(here: Session) -> None:
    here.program("mpirun", "kill -TERM $(ps -o ppid= -p $PPID); sleep 60")
    done = here.run(
        "-r", SYSTEM, "-P", "method=posix", "-P", "stripe_count=default", check="Replay"
    )
    assert done.returncode == 1 and "ABORTED" in done.stdout, done.stdout
    (kept,) = (here.folder / "out" / "records").rglob("*.json.gz")
    run = producers.load(kept)
    assert run.failed
    said("session-was-ended-while", str(run.producer.failure))


def test_a_job_that_cannot_be_submitted_leaves_records(here: Session) -> None:
    refuse = 'case "$*" in *--version*) echo slurm 22;; *) echo "Invalid account"; exit 1;; esac'
    here.program("sbatch", refuse)
    for name in ("srun", "sinfo", "squeue", "sacct", "scancel", "scontrol"):
        here.program(name, "echo work")
    done = here.run("-r", "--system=cab", "-P", "method=posix,mpiio", check="Replay")
    assert "Ran" in done.stdout, done.stderr
    kept = [producers.load(path) for path in (here.folder / "out" / "records").rglob("*.json.gz")]
    assert cases(done.stdout)[0] == len(kept) > 0
    assert all(run.failed and run.identity.case and run.identity.arm == "replica" for run in kept)
    assert {str(run.producer.failure).partition(",")[0] for run in kept} == {
        "the case ended before its results could be read"
    }


def on_terminal(session: Session, *arguments: str) -> tuple[int, str, str]:
    """A session whose standard error is a terminal of 120 columns: its status, what it printed to
    standard output, and what the terminal got."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    for name in ("COLUMNS", "LINES", "NO_COLOR", "TERM"):
        session.environment.pop(name, None)
    session.environment["TERM"] = "xterm"
    command = [str(Path(sys.executable).parent / "reframe"), "-c", str(ROOT / "checks")]
    with (session.folder / "stdout").open("w+") as out:
        process = subprocess.Popen(
            [*command, *arguments, "-n", "%workload=sample"],
            cwd=session.folder,
            env=session.environment,
            stdin=slave,
            stdout=out,
            stderr=slave,
        )
        os.close(slave)
        got = b""
        with suppress(OSError):  # EIO: the last who had it open is gone
            while block := os.read(master, 4096):
                got += block
        os.close(master)
        status = process.wait()
        out.seek(0)
        return status, out.read(), got.decode()


def test_a_terminal_shows_each_case_of_a_session(here: Session) -> None:
    leave(here, played(here.text, "posix", 0.1, "tmpfs"))
    arguments = ("-r", SYSTEM, "-S", "time_scale=0.1", "-P", "method=posix")
    status, printed, shown = on_terminal(here, *arguments)
    ran, failed, _ = cases(printed)
    assert ran and status == (1 if failed else 0), printed
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    lines = [line for line in plain.splitlines() if " left: " in line]
    assert len(lines) == ran, shown
    for number, line in enumerate(lines, 1):
        assert line.startswith(f"{number} of "), shown
        assert len(line) <= 120
        assert re.search(r" left: [\N{CHECK MARK}\N{BALLOT X}] (Replay|Fidelity) sample", line)
    assert "\x1b" not in plain, "no line is redrawn"
    assert " left: " not in printed
    done = here.run(*arguments)
    assert " left: " not in done.stdout + done.stderr, "only a terminal shows them"


def test_a_session_is_found_by_the_uuid_that_reframe_prints(here: Session) -> None:
    here.environment["RFM_ENABLE_RESULTS_STORAGE"] = "1"
    given = ("-S", "max_bytes=1kB", "-S", "campaign=x", "-S", "turn=x/2")
    done = here.run("-r", SYSTEM, *given, check="Replay")
    printed = re.search("Current session stored with UUID: (.+)", done.stdout)
    assert printed, done.stdout
    (kept,) = (here.folder / "out" / "records").rglob("*.json.gz")
    identity = producers.load(kept).identity
    assert (identity.session, identity.campaign, identity.turn) == (printed[1], "x", "x/2")
    assert kept.parent.name == printed[1]


def test_claims_that_are_judged_are_a_run(here: Session) -> None:
    """They are judged on the first partition, and skipped on the others."""
    records, site = here.folder / "records", here.folder / "site" / "references"
    records.mkdir()
    site.mkdir(parents=True)
    claim = {
        "name": "a",
        "source": "b",
        "says": "c",
        "workload": "d",
        "stream": "e",
        "of": {},
        "to": {},
        "ratio": [1, None],
    }
    (site / "localhost.yaml").write_text(yaml.safe_dump({"Claims": [claim]}))
    here.environment["UNDERSTUDY_PATH"] = str(site.parent)
    arguments = ("-r", "--system=localhost", "-S", f"records={records}")
    results.write_record(
        results.result(results.growing()), records / "one", partition="disk", session="s"
    )
    done = here.run(*arguments, names="^Claims")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    ran, failed, skipped = cases(done.stdout)
    assert (ran, failed) == (1, 0) and skipped
    done = here.run("-r", "--system=localhost", "-S", "record=x", names="^Claims")
    assert (done.returncode, done.stderr) == (
        1,
        "understudy: -S record=x: record is not a variable of any selected check\n",
    )


def test_a_dry_run_need_not_run_anything(here: Session) -> None:
    done = here.run("--dry-run", SYSTEM, "-S", "max_bytes=1kB")
    assert done.returncode == 0, done.stdout + done.stderr


OF_ANY, OF_REPLAY = "of any selected check", "of the check Replay"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("-S max_byte=1", f"max_byte is not a variable {OF_ANY}"),
        ("-S Replay.max_byte=1", f"max_byte is not a variable {OF_REPLAY}"),
        ("-S Replai.fsync=1", "fsync is not a variable of the check Replai"),
        ("-S fsync", "expected NAME=VALUE"),
        ("-P metod=posix", f"metod is not a parameter {OF_ANY}"),
        ("-P Replay.metod=posix", f"metod is not a parameter {OF_REPLAY}"),
        ("-S repetitions=0", "expected at least 1"),
        ("-S transfer_bytes=0", "expected at least 1B"),
        ("-S time_scale=nan", "expected a number of at least 0"),
        ("-S time_scale=-1", "expected a number of at least 0"),
        ("-S turn=3", "expected NAME/N, such as upgrade/3"),
        ("-S Fidelity.tolerance=0.2", "the variable is now tolerance_percent, in percent"),
        ("-S Schedule.tolerance=2", "the variable is now pauses_tolerance_percent, in percent"),
        ("-S Simulation.max_tolerance=1", "the variable is now max_tolerance_percent, in percent"),
    ],
)
def test_an_invalid_option_ends_with_one_message(here: Session, given: str, message: str) -> None:
    """Before anything runs, and without a record."""
    done = here.run("-r" if "max_byte=" in given else "-l", SYSTEM, *given.split())
    shown = f"-S {given.partition('.')[2]}" if "tolerance=" in given else given
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stdout
    assert done.stderr.startswith(f"understudy: {shown}: {message}"), done.stderr
    assert "RUN" not in done.stdout and "Traceback" not in done.stdout
    assert not list((here.folder / "out").rglob("*.json.gz"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "-S ranks=8",
            "scaling=none with ranks=8: give both, as in -S scaling=weak -S ranks=64; "
            "for another check, name it, as in -S Ior.ranks=64",
        ),
        ("-S scaling=wide -S ranks=8", "scaling rule 'wide': expected strong or weak"),
    ],
)
def test_invalid_scaling_ends_with_one_message(here: Session, given: str, message: str) -> None:
    done = here.run("-l", SYSTEM, *given.split())
    assert (done.returncode, done.stderr) == (1, f"understudy: {message}\n")


@pytest.mark.parametrize(
    "given", ["Replay.fsync=maybe", "shift_ranks=1MB", "Replay.time_limit=maybe", "repetitions=x"]
)
def test_a_value_of_another_type_ends_the_session(here: Session, given: str) -> None:
    """ReFrame alone leaves out the file of the check, and passes."""
    done = here.run("-r", SYSTEM, "-S", given)
    assert done.returncode == 1, done.stdout
    (told,) = [line for line in done.stdout.splitlines() if line.startswith("ERROR: ")]
    assert all(word in told for word in given.rpartition(".")[2].split("="))
    assert "RUN" not in done.stdout and "Traceback" not in done.stdout + done.stderr
    assert not list((here.folder / "out").rglob("*.json.gz"))


BROKEN = "echo 'cannot connect to server' >&2; exit 111"
UNKNOWN = "echo 'Unknown option: version' >&2; echo 'Usage: qsub [-a TIME]' >&2; exit 2"


@pytest.mark.parametrize(
    ("system", "programs", "message"),
    [
        (
            "titan",
            {"qsub": BROKEN},
            "cannot use qsub, which ended with status 111: cannot connect to server",
        ),
        (
            "archer",
            {"qsub": UNKNOWN, "qstat": BROKEN},
            "cannot use qstat, which ended with status 111: cannot connect to server",
        ),
        (
            "tinis",
            {"sbatch": "exit 3", "sinfo": ""},
            "cannot use sbatch, which ended with status 3: it printed nothing",
        ),
        (
            "tinis",
            {"sbatch": "", "sinfo": BROKEN},
            "cannot use sinfo, which ended with status 111: cannot connect to server",
        ),
    ],
)
@pytest.mark.parametrize("check", ["Replay", "^Ior"])
def test_a_broken_batch_system_is_one_message(
    here: Session, system: str, programs: dict[str, str], message: str, check: str
) -> None:
    for name, script in programs.items():
        here.program(name, f'echo "{name} $*" >>{here.folder}/asked\n{script}')
    named = {"names": check} if check.startswith("^") else {"check": check}
    done = here.run("-r", f"--system={system}", **named)
    assert (done.returncode, done.stderr) == (
        1,
        f"understudy: system {system} {message}; use --dry-run to see its job scripts, or "
        f"`make rehearse SYSTEM={system}` in a checkout to run them on a stand-in\n",
    ), done.stdout
    asked = (here.folder / "asked").read_text().splitlines()
    assert len(asked) == len(set(asked)) <= len(programs), "each is asked once"
    assert "RUN" not in done.stdout
    assert not list((here.folder / "out").rglob("*.json.gz")), "no night was missed"
    assert not (here.folder / "reframe").exists(), "nothing was touched"
    assert here.run("--dry-run", f"--system={system}", "-P", "method=posix", **named).stderr == ""


def test_a_batch_system_that_answers_gets_its_jobs(here: Session) -> None:
    """Slurm's qsub for Torque knows no --version, and its qstat fails where there are no jobs."""
    here.program(
        "qsub", f'[ "$1" != --version ] || {{ {UNKNOWN}; }}\necho one >>{here.folder}/jobs'
    )
    here.program("qstat", '[ "$1" = -Q ] || exit 153')
    here.run("-r", "--system=titan", "-P", "method=posix", check="Replay")
    assert (here.folder / "jobs").read_text().startswith("one\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--system=generic"],
        [SYSTEM, "--restore-session=/nosuch"],
        [SYSTEM, "--repeat=x"],
        [SYSTEM, "--mode=nosuch"],
    ],
)
def test_a_session_that_was_refused_leaves_no_record(here: Session, arguments: list[str]) -> None:
    done = here.run("-r", *arguments)
    assert done.returncode == 1, done.stdout
    assert not list((here.folder / "out").rglob("*.json.gz"))


def test_references_that_cannot_be_read_leave_no_record(here: Session) -> None:
    site = here.folder / "site" / "references"
    site.mkdir(parents=True)
    (site / "localhost.yaml").write_text("[")
    here.environment["UNDERSTUDY_PATH"] = str(site.parent)
    done = here.run("-r", SYSTEM)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    said("localhost-yaml-cannot-read", done.stderr, site=site)
    assert not list((here.folder / "out").rglob("*.json.gz"))


def test_an_empty_listing_says_so_and_leaves_no_log(here: Session) -> None:
    temporary = here.folder / "tmp"
    temporary.mkdir()
    here.environment["TMPDIR"] = str(temporary)
    done = here.run("-l", SYSTEM, names="^Nothing")
    assert (done.returncode, done.stderr) == (0, "understudy: no case was selected\n")
    assert list(temporary.glob("rfm-*")) == []


def test_a_dry_run_of_nothing_fails_and_leaves_no_record(here: Session) -> None:
    done = here.run("--dry-run", SYSTEM, names="^Nothing")
    assert (done.returncode, done.stderr) == (1, "understudy: nothing ran: no case was selected\n")
    assert not list((here.folder / "out").rglob("*.json.gz"))


def test_an_unknown_partition_is_one_message(here: Session) -> None:
    done = here.run("-r", "--system=localhost:nosuch")
    assert done.returncode == 1 and "localhost:nosuch" in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_directory_that_has_gone_is_no_skip(here: Session) -> None:
    """Nor do cases of two partitions run at the same time, unless they are asked to."""
    site = here.folder / "site"
    on_disk = "if partition['name'] == 'disk': partition['extras']['scratch'] = '/nosuch/tmp'"
    derive(site, "gone", "localhost", on_disk, "system.pop('max_local_jobs', None)")
    here.environment["UNDERSTUDY_PATH"] = str(site)
    done = here.run(
        "-r", "--system=gone", "-P", "method=posix", "-P", "stripe_count=default", check="Replay"
    )
    assert done.returncode == 1 and "Ran 2/2" in done.stdout, done.stdout
    assert re.search(r"job ended with status 1: mktemp: .*/nosuch/tmp", done.stdout)
    begun = [
        m[1] for m in re.finditer(r"\[ +(RUN|OK|FAIL) +\]", re.sub("\x1b.*?m", "", done.stdout))
    ]
    assert begun[0::2] == ["RUN", "RUN"] and "RUN" not in begun[1::2]
    kept = list((here.folder / "out" / "records").rglob("*.json.gz"))
    told = [str(producers.load(path).producer.failure) for path in kept]
    assert len(told) == 2 and sum("mktemp: " in text for text in told) == 1


def test_a_host_that_no_system_names_needs_one(here: Session) -> None:
    """ReFrame calls it generic, for which there is no check but Claims."""
    message = "no system names this host; pass --system, such as --system=localhost"
    done = here.run("-l", "--system=generic", names="")
    assert "Traceback" not in done.stdout and done.stderr == f"understudy: {message}\n"
    done = here.run("-r", "--system=generic", names="")
    assert (done.returncode, done.stderr) == (1, f"understudy: nothing ran: {message}\n")


def test_a_module_that_cannot_be_loaded_ends_the_job(here: Session) -> None:
    site = here.folder / "site"
    derive(site, "modular", "localhost", "partition['prepare_cmds'] = ['module load nothing']")
    here.environment["UNDERSTUDY_PATH"] = str(site)
    here.program("module", "echo 'no module nothing' >&2; exit 1")
    here.program("mpirun", f"touch {here.folder}/started")
    done = here.run("-r", "--system=modular:tmpfs", "-E", "method == 'posix'")
    assert done.returncode == 1 and cases(done.stdout) == (1, 1, 0)
    said("verdict-sample-posix-modular", done.stdout)
    said("job-ended-status-no", done.stdout)
    assert not (here.folder / "started").exists()


def test_separate_directories_of_nodes_are_no_place_for_several(here: Session) -> None:
    site = here.folder / "site"
    (site / "systems").mkdir(parents=True)
    text = files("systems", ".py")["edison"].read_text().replace('"edison"', '"apart"')
    (site / "systems" / "apart.py").write_text(text.replace("[MPI, SHARED]", "[MPI]"))
    here.environment["UNDERSTUDY_PATH"] = str(site)
    case = ("--system=apart", "-E", "method == 'posix' and stripe_count == 'default'")
    done = here.run("--dry-run", *case)
    assert cases(done.stdout) == (1, 0, 0)  # 16 ranks fit a node
    done = here.run("--dry-run", *case, "-S", "ranks_per_node=8")
    assert cases(done.stdout) == (0, 0, 1)
    reason = "apart:scratch: its nodes do not share /scratch1/scratchdirs/$USER, and 16 ranks"
    assert f"[{reason} need 2 nodes; " in done.stdout


def test_jobs_of_a_pipeline_keep_the_system_and_the_variables(here: Session) -> None:
    """They are run as GitLab does: the lines before the script in the same shell."""
    leave(here, played(here.text, "posix", 0.1, "tmpfs"))
    pipeline = here.folder / "pipeline.yml"
    case = ("-E", "method == 'posix'")
    done = here.run(f"--ci-generate={pipeline}", SYSTEM, *case, "-S", "time_scale=0.1")
    assert done.returncode == 0, done.stdout + done.stderr
    row_: dict[str, Any] = yaml.safe_load(pipeline.read_text())
    [job] = [row for row in row_.values() if isinstance(row, dict) and "script" in row]

    def run() -> subprocess.CompletedProcess[str]:
        text = "\n".join([*job["before_script"], *job["script"]])
        return subprocess.run(
            ["bash", "-e", "-c", text],
            cwd=here.folder,
            env=here.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    done = run()
    assert done.returncode == 0 and cases(done.stdout) == (1, 0, 0), done.stdout + done.stderr
    said("verdict-sample-posix-localhost", done.stdout)
    here.program("understudy-replay", "echo 'posix    unavailable: there is no POSIX'")
    done = run()
    assert done.returncode == 1 and cases(done.stdout) == (0, 0, 1), done.stdout


def test_the_page_finds_records_below_a_time_stamp(here: Session) -> None:
    leave(here, played(here.text, "posix", 0.1, "tmpfs"))
    stamped = (SYSTEM, "-S", "time_scale=0.1", "--timestamp", "-E", "method == 'posix'")
    assert here.run("-r", *stamped).returncode == 0
    here.program("mpirun", "exit 3")
    assert here.run("-r", *stamped, "-S", "campaign=fails").returncode == 1
    page = here.folder / "page.html"
    done = subprocess.run(
        ["understudy", "report", str(here.folder / "reframe"), "-o", str(page)],
        env=here.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said("workload-runs-failed", done.stderr)


SLURM = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-01T00:00:00 {why}***\n"


@pytest.mark.parametrize(
    ("state", "stderr", "words"),
    [
        ("TIMEOUT", "", "job 7 on n1, n2 reached its time limit"),
        ("CANCELLED+", "", "job 7 on n1, n2 was cancelled"),
        ("NODE_FAIL", "", "job 7 on n1, n2 ended because a node failed"),
        (
            "NODE_FAIL",
            "srun: error: Node failure on n2\n",
            "job 7 on n1, n2 ended because the node n2 failed",
        ),
        ("OUT_OF_MEMORY", "", "job 7 on n1, n2 was out of memory"),
        (
            "COMPLETED",
            SLURM.format(why="DUE TO TIME LIMIT "),
            "job 7 on n1, n2 reached its time limit",
        ),
        ("COMPLETED", SLURM.format(why=""), "job 7 on n1, n2 was cancelled"),
        (
            None,
            "=>> PBS: job killed: walltime 75 exceeded limit 60\n",
            "job 7 on n1, n2 reached its time limit",
        ),
        ("FAILED", "understudy: posix: cannot write\n", None),
        ("COMPLETED", "", None),
        (None, "", None),
    ],
)
def test_what_a_batch_system_says_of_a_job(
    state: str | None, stderr: str, words: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    for scheduler in ("slurm", "squeue", "torque", "pbs", "pbspro", "lsf"):
        assert job_failures.told(scheduler, "7", state, ["n1", "n2"], stderr) == words


@pytest.mark.parametrize(
    ("scheduler", "program", "printed", "words"),
    [
        (
            "slurm",
            "scontrol",
            "JobId=7 JobState=TIMEOUT TimeLimit=00:01:00 FailedNode=(null)",
            "job 7 on n1 reached its time limit of 00:01:00",
        ),
        (
            "squeue",
            "scontrol",
            "JobId=7 JobState=NODE_FAIL FailedNode=n1",
            "job 7 on n1 ended because the node n1 failed",
        ),
        (
            "torque",
            "qstat",
            "Job Id: 7\n  exit_status = -11\n  Resource_List.walltime = 01:00:00\n",
            "job 7 on n1 reached its time limit of 01:00:00",
        ),
        ("pbs", "qstat", "Job Id: 7\n    Exit_status = 271\n", "job 7 on n1 was cancelled"),
        ("pbs", "qstat", "Job Id: 7\n    Exit_status = 0\n", None),
    ],
)
def test_what_a_batch_system_is_asked(
    scheduler: str,
    program: str,
    printed: str,
    words: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = tmp_path / program
    asked.write_text(f"#!/bin/sh\ncat <<'E'\n{printed}\nE\n")
    asked.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert job_failures.told(scheduler, "7", None, ["n1"], "") == words


@pytest.mark.parametrize(
    ("state", "stderr", "cut"),
    [
        ("COMPLETED", "", False),
        ("COMPLETED", SLURM.format(why=""), True),
        (None, "", False),
        ("TIMEOUT", "", True),
        ("COMPLETED", "srun: error: *** STEP 7.0 ON n1 CANCELLED AT", False),
    ],
)
def test_a_job_without_accounting_is_cut_short_by_what_slurm_writes(
    state: str | None, stderr: str, cut: bool
) -> None:
    assert job_failures.cut_short(state, stderr) == cut


def test_of_many_nodes_some_are_named() -> None:
    nodes = [f"n{k}" for k in range(9)]
    result = job_failures.told("lsf", "7", "TIMEOUT", nodes, "")
    said("job-more-reached-its", result)


def test_ranks_that_do_not_say_where_they_are_are_named() -> None:
    told = [f"understudy: rank {rank} on n1: no progress for 9 s: waits" for rank in (0, 2, 3)]
    said("nothing-from-rank", job_failures.silent(told, 4))
    said("nothing-from-ranks", job_failures.silent(told[:1], 3))
    assert (
        job_failures.silent([*told, told[0].replace("0", "1", 1)], 4)
        == job_failures.silent([], 4)
        == ""
    )


def test_a_rank_that_was_killed_is_told_from_one_that_exits() -> None:
    for line in (
        "srun: error: n2: task 3: Killed",
        "srun: error: n2: tasks 2-3: Segmentation fault",
        "mpirun noticed that process rank 3 with PID 0 on node n2 exited on signal 9 (Killed).",
    ):
        assert job_failures.KILLED_RANK.search(line), line
    assert not re.search(
        job_failures.KILLED_RANK, "srun: error: n2: task 3: Exited with exit code 1"
    )
