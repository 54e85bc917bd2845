"""Check that this host can start jobs, once before the first of them: ReFrame meets a program that
is missing or broken in each case again."""

import shutil
import subprocess
from collections.abc import Iterable
from typing import Any

from understudy.errors import one_line
from understudy.reframe.session.job_failures import ASK_S
from understudy.reframe.systems import NEEDS

_SLURM = ("sbatch", "--version"), ("sinfo", "-h", "-o", "%R")
_PBS = ("qsub", "--version"), ("qstat", "-Q")  # queues: there may be no jobs
# By scheduler: the program that takes jobs, and a question to the daemon that it hands them to.
_QUESTIONS = {"slurm": _SLURM, "squeue": _SLURM, "torque": _PBS, "pbs": _PBS, "pbspro": _PBS}


def fault(partitions: Iterable[Any]) -> str | None:
    """Reason why jobs cannot start on ReFrame's partitions, in words; None if they can."""
    here = list(partitions)
    needed = [program for partition in here for program in partition.extras.get(NEEDS, ())]
    if missing := next((name for name in needed if shutil.which(name) is None), None):
        return f"needs {missing}, which is not on this host"
    schedulers = dict.fromkeys(partition.scheduler.registered_name for partition in here)
    questions = dict.fromkeys(q for name in schedulers for q in _QUESTIONS.get(name, ()))
    return next(filter(None, map(_refusal, questions)), None)


def _refusal(command: tuple[str, ...]) -> str | None:
    """Message of a program instead of an answer; None if it answers, or is slow or not there,
    which proves nothing. One that does not know an option and tells of those that it has works:
    the qsub that Slurm has for Torque knows no --version."""
    options: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace"}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, timeout=ASK_S, check=False, **options
        )
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return None
    except OSError as error:  # of another format, or not to be executed
        return f"cannot use {command[0]}: {error.strerror}"
    said = f"{done.stderr}\n{done.stdout}".strip()
    if done.returncode == 0 or "usage" in said.lower():
        return None
    first = one_line(next(iter(said.splitlines()), "it printed nothing"))
    return f"cannot use {command[0]}, which ended with status {done.returncode}: {first}"
