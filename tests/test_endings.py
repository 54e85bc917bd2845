"""Why a job failed: what its programs, its launcher and its shell print is told as it stands."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.said import said
from tests.test_benchmark_producers import RUN, fake, reframe
from tests.test_checks import Session, replay_here, sample
from understudy import producers
from understudy.reframe.session import job_failures

SLOTS = """\
--------------------------------------------------------------------------
There are not enough slots available in the system to satisfy the 4
slots that were requested by the application:

  understudy-replay

Either request fewer slots for your application, or make more slots
available for use: what failed is no error of yours.
--------------------------------------------------------------------------
"""
WHOLE = (
    "There are not enough slots available in the system to satisfy the 4 slots that were "
    "requested by the application: understudy-replay Either request fewer slots for your "
    "application, or make more slots available for use: what failed is no error of yours."
)
ENDED = """\
--------------------------------------------------------------------------
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
--------------------------------------------------------------------------
mpirun noticed that process rank 1 with PID 7 on node n1 exited on signal 6 (Aborted).
"""
ABSENT = """\
--------------------------------------------------------------------------
mpirun was unable to find the specified executable file, and therefore
did not launch the job.  This error was first reported for process
rank 0; it may have occurred for other processes as well.

Node:       n7
Executable: ior
--------------------------------------------------------------------------
4 total processes failed to start
"""
HYDRA = """\

===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 21021 RUNNING AT n1
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
"""
FULL = "WARNING: write(3, 0x1, 2097152) failed, No space left on device (aiori-POSIX.c:640)"
ASSERTED = "ior: ior.c:1500: WriteOrRead: Assertion `rc >= 0' failed."
ALREADY = "ERROR: cannot open file: File exists"


def test_a_launcher_that_refuses_is_told_whole() -> None:
    assert job_failures.message(SLOTS, ["understudy"], 4) == WHOLE


def test_hydra_says_on_standard_output_that_a_rank_was_killed() -> None:
    told = job_failures.message("", ["understudy"], 4, HYDRA)
    said("your-application-terminated-exit", told)


def test_a_launcher_that_refuses_stands_in_the_verdict_the_record_and_the_page(
    tmp_path: Path,
) -> None:
    here = Session(tmp_path, sample())
    here.program("understudy-replay", "echo 'posix available'")
    (tmp_path / "said").write_text(SLOTS)
    here.program("mpirun", f"cat {tmp_path}/said >&2; exit 1")
    done = replay_here(here)
    said("localhost-tmpfs-job-ended", done.stdout, WHOLE=WHOLE)
    [kept] = (tmp_path / "out" / "records").rglob("*.json.gz")
    failure = str(producers.load(kept).producer.failure)
    assert failure.endswith(WHOLE)
    page = tmp_path / "page.html"
    shown = subprocess.run(
        ["understudy", "report", str(kept), "-o", str(page)],
        env=here.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr
    assert WHOLE in page.read_text(encoding="utf-8")


def test_a_text_that_is_too_long_is_told_from_both_ends() -> None:
    text = job_failures.message("first " + "x" * 9000 + " last", [], 1)
    assert len(text) < 2100 and text.startswith("first x") and text.endswith("x last")


def test_what_is_told_is_one_line_without_control_characters() -> None:
    assert job_failures.message("ior: \x1b[2Jbad\n", ["ior"], 1) == "ior: \\x1b[2Jbad"


@pytest.mark.parametrize(
    ("stdout", "stderr", "told"),
    [
        (f"IOR-4.0.0\n{FULL}\n", f"{ASSERTED}\n{ENDED}", FULL),
        (f"{ALREADY}\n{FULL}\n", ENDED, ALREADY),
        ("WARNING: the file system is slow\nit failed\n", ENDED, "it failed"),
        ("", f"{ASSERTED}\n{ENDED}", ASSERTED),
        ("", f"{FULL}\n{ASSERTED}\n{ENDED}", FULL),
        ("", f"ior: no space\n{ENDED}", "ior: no space"),
        ("", ABSENT, "ior: not found on node n7"),
        (
            "",
            "[proxy:0:0@n1] HYDU_create_process: execvp error on file ior (No such file or "
            "directory)\n",
            "ior: not found on the node",
        ),
        (
            "",
            "slurmstepd: error: execve(): ior: No such file or directory\n",
            "ior: not found on the node",
        ),
        (
            "",
            "/x/rfm_job.sh: line 9: mpirun: command not found\n",
            "mpirun: not found on the node",
        ),
        (
            "LAMMPS (2 Aug 2023)\n"
            "ERROR: Cannot open input script in.x: No such file or directory\n",
            ENDED,
            "ERROR: Cannot open input script in.x: No such file or directory",
        ),
        ("step 1\nstep 2\n", "", "step 2"),
        ("", "", "it printed nothing"),
        (
            "",
            "mpirun noticed that process rank 3 exited on signal 9 (Killed).\nConnection reset by "
            "peer\n",
            "mpirun noticed that process rank 3 exited on signal 9 (Killed).",
        ),
    ],
)
def test_the_first_error_of_the_program_is_told(stdout: str, stderr: str, told: str) -> None:
    assert job_failures.message(stderr, ["ior", "understudy"], 4, stdout) == told


@pytest.mark.parametrize("check", ["Ior", "Mdtest"])
def test_a_benchmark_that_fails_is_told_by_what_it_prints(check: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "said").write_text(ASSERTED)
    fake(tmp_path / "bin", check.lower(), f'echo "{FULL}"; cat {tmp_path}/said >&2; exit 134')
    fake(tmp_path / "bin", "mpirun", check.lower())
    done = reframe(tmp_path, *RUN, "-n", f"^{check}%case=easy%stripe_count=default")
    assert done.returncode == 1
    said("job-ended-status", done.stdout, FULL=FULL)


@pytest.mark.parametrize("check", ["Ior", "Mdtest"])
def test_a_benchmark_that_the_nodes_lack_is_told(check: str, tmp_path: Path) -> None:
    """It is on PATH where ReFrame runs, and gone where its job does; mpirun is the real one."""
    (tmp_path / "bin").mkdir()
    program, real = tmp_path / "bin" / check.lower(), shutil.which("mpirun")
    fake(program.parent, program.name, "true")
    fake(program.parent, "mpirun", f'rm -f {program}; exec {real} "$@"')
    done = reframe(tmp_path, *RUN, "-n", f"^{check}%case=easy%stripe_count=default")
    assert done.returncode == 1
    said("found-node", done.stdout, program_name=program.name, nodename=os.uname().nodename)
