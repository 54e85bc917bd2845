"""Why a job did not end well: what its programs say, and how a batch system ended it, as at a time
limit, a cancellation or a lost node.

Slurm states it as the state of the job. Torque and PBS, and what stands in for them on Slurm,
write it to the job's error output or keep it with the job, so all three are read.
"""

import errno
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from understudy.errors import one_line
from understudy.files import read_text

ASK_S = 20  # patience with a batch system

# By scheduler: what shows a job that has ended, and how it writes a fact.
_SLURM = ("scontrol", "show", "job", "-o"), r"(\w+)=(\S*)"
_TORQUE = ("qstat", "-f"), r"(?m)^\s*([\w.]+) = (.*)$"
_PBS = ("qstat", "-xf"), r"(?m)^\s*([\w.]+) = (.*)$"
_QUESTIONS = {"slurm": _SLURM, "squeue": _SLURM, "torque": _TORQUE, "pbs": _PBS, "pbspro": _PBS}

_STATES = {
    "TIMEOUT": "reached its time limit{limit}",
    "DEADLINE": "reached its deadline",
    "CANCELLED": "was cancelled",
    "PREEMPTED": "was preempted",
    "NODE_FAIL": "ended because {node} failed",
    "BOOT_FAIL": "ended because {node} could not be started",
    "OUT_OF_MEMORY": "was out of memory",
}
# What slurmstepd, Torque's and PBS' daemons write to the error output of a job.
_WRITTEN = {
    r"\*\*\* (?:JOB|STEP) .* DUE TO TIME LIMIT|job killed: walltime \S+ exceeded limit": "TIMEOUT",
    r"\*\*\* (?:JOB|STEP) .* DUE TO NODE FAILURE": "NODE_FAIL",
    r"\*\*\* (?:JOB|STEP) .* DUE TO PREEMPTION": "PREEMPTED",
    r"oom.kill event": "OUT_OF_MEMORY",
    r"\*\*\* JOB .* CANCELLED AT": "CANCELLED",
}
_KILLED_BY_TORQUE = {"-11": "TIMEOUT", "-29": "TIMEOUT", "271": "CANCELLED", "265": "CANCELLED"}

# By scheduler: a job of a failed node must not start again and pass as if nothing had happened.
NO_REQUEUE = {
    "slurm": ["--no-requeue"],
    "squeue": ["--no-requeue"],
    "torque": ["-r n"],
    "pbs": ["-r n"],
}
# By launcher: the other ranks of one that was killed must not wait for ever.
KILL_ALL_RANKS = {"srun": ["--kill-on-bad-exit=1"]}

# By launcher: what tells it of a case in an allocation that is larger, see `systems.ALLOCATION`.
SHAPE = {"srun": "--nodes={nodes} --ntasks={ranks} --ntasks-per-node={each}"}

# A launcher's line about a rank that was killed, Hydra's on standard output.
KILLED_RANK = re.compile(
    r"srun: error: \S+: tasks? .*: (?!Exited)|noticed that process rank .* exited on signal"
    r"|YOUR APPLICATION TERMINATED WITH THE EXIT STRING: "
)

# A help text of Open MPI, with which it refuses or explains.
FRAMED = re.compile(r"(?ms)^-{60,}$.*?^-{60,}$")
# Of a program that is not there: Open MPI, Hydra, Slurm, ALPS, a shell.
MISSING = (
    r"unable to find the specified executable(?s:.*?)Node:\s+(?P<node>\S+)\s+"
    r"Executable:\s+(?P<program>.*\S)",
    r"execvp error on file (?P<program>.*) \(No such file",
    r"execve\(\): (?P<program>.*): No such file",
    r"aprun: file (?P<program>.*) not found",
    r"(?P<program>[^\s:]+): command not found",
)
# Of programs that are not ours: an error of the system, and any.
SYSTEM = re.compile("|".join(re.escape(os.strerror(code)) for code in errno.errorcode))
ERROR = re.compile(
    rf"(?i)\b(error|fatal|failed|failure|cannot|could not|unable to)\b|{SYSTEM.pattern}"
)
ASSERTION, ABORTED = "Assertion `", "Aborted"
LONGEST_REASON = 2000  # characters

STOPPED = "stopped by signal"  # what the player says when others end it
GONE, FULL = os.strerror(errno.ENOENT), os.strerror(errno.ENOSPC)
# A line of the watchdog about a rank; one that is stopped prints none.
STUCK = re.compile(r"understudy: rank (\d+) on \S+: no progress for ")
WAITS = "waits for other ranks"


def told(
    scheduler: str, job_id: str, state: str | None, nodes: Sequence[str], stderr: str
) -> str | None:
    """Why and where a job ended, in words; None if the batch system did not end it.

    `state` is ReFrame's, `stderr` what the job wrote.
    """
    facts = _asked(scheduler, job_id)
    final_state = _state(state, facts, stderr)
    if final_state is None:
        return None
    limit = facts.get("TimeLimit") or facts.get("Resource_List.walltime")
    named = re.search(r"srun: error: Node failure on (\S+)", stderr)
    lost = facts.get("FailedNode") or (named and named[1])
    words = _STATES[final_state].format(
        limit=f" of {limit}" if limit else "", node=f"the node {lost}" if lost else "a node"
    )
    return f"job {job_id}{_on(nodes)} {words}"


def text_of(path: Path) -> str:
    """Text of a job's file."""
    return read_text(path, errors="replace")


def message(stderr: str, programs: Sequence[str], ranks: int, stdout: str = "") -> str:
    """Why a job failed, in one line: the first error message of one of the programs, which may be
    in what they print; else what the launcher says, of a rank that was killed or at all.

    `stdout` is that of the run that was started last.
    """
    # Open MPI 5 ends what it prints of an abort with a NUL, in front of the next line.
    said, printed = stderr.replace("\0", ""), _lines(stdout)
    lines = _lines(said)
    program_lines = [
        line for line in lines if line.startswith(tuple(f"{name}: " for name in programs))
    ]
    # The other ranks of one that was killed are stopped, and say so. What fails an assertion has
    # said why.
    reasons = [line for line in program_lines if STOPPED not in line and ASSERTION not in line]
    # A rank that fails removes its files, which those of other nodes then miss; a rank that is
    # stuck has others wait.
    reasons.sort(key=lambda line: GONE in line or WAITS in line)
    killed = [line for line in [*lines, *printed] if KILLED_RANK.search(line)]
    first_message = next(
        iter(
            [*reasons, *missing(said), *_stated(printed)]
            or [line for line in killed if ABORTED not in line]
            or [*_stated(_lines(FRAMED.sub("", said))), *program_lines, *killed]
            or [" ".join(line.strip() for line in lines)]
        )
    )
    first_message = _bounded(
        one_line(first_message or next(reversed(printed), "it printed nothing"))
    )
    if not STUCK.match(first_message):
        return first_message
    # Libraries whose ranks wait for each other for ever on a full disk print the reason alone.
    reason = f"; {FULL}" if FULL in stderr else ""
    return f"{first_message}{reason}{silent(program_lines, ranks)}"


def missing(stderr: str) -> Iterator[str]:
    """Messages on programs that a launcher or a shell did not find."""
    for pattern in MISSING:
        if match := re.search(pattern, stderr):
            node = match.groupdict().get("node")
            yield f"{match['program']}: not found on {f'node {node}' if node else 'the node'}"


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if re.search(r"\w", line)]


def _stated(lines: Sequence[str]) -> list[str]:
    """Lines in which any program states an error, those with a reason of the system first."""
    error_lines = [line for line in lines if ERROR.search(line) and ASSERTION not in line]
    return sorted(error_lines, key=lambda line: not SYSTEM.search(line))


def _bounded(text: str) -> str:
    """The beginning and the end of a text that is too long."""
    half = LONGEST_REASON // 2
    return text if len(text) <= LONGEST_REASON else f"{text[:half]} ... {text[-half:]}"


def silent(lines: Sequence[str], ranks: int) -> str:
    """The ranks of a stuck run that did not say where they are, in words; empty if all did."""
    said = {int(match[1]) for line in lines if (match := STUCK.match(line))}
    missing = sorted(set(range(ranks)) - said)
    if not said or not missing:
        return ""
    more = f" and {len(missing) - 4} more" if len(missing) > 4 else ""
    return (
        f"; nothing from rank{'s' * (len(missing) > 1)} {', '.join(map(str, missing[:4]))}{more}"
    )


def cut_short(state: str | None, stderr: str) -> bool:
    """True if ReFrame's state of a job, or else Slurm in its error output, says that the batch
    system ended it: without accounting, ReFrame knows no state."""
    return _known(state) is not None or bool(re.search(r"\*\*\* JOB \S+ ON \S+ CANCELLED", stderr))


def _known(state: str | None) -> str | None:
    words = re.split(r"[\s,+]", state or "")
    return next((word for word in words if word in _STATES), None)


def _state(state: str | None, facts: Mapping[str, str], stderr: str) -> str | None:
    if named_state := _known(state) or _known(facts.get("JobState")):
        return named_state
    for pattern, meant in _WRITTEN.items():
        if re.search(pattern, stderr):
            return meant
    return _KILLED_BY_TORQUE.get(facts.get("exit_status", facts.get("Exit_status", "")))


def _asked(scheduler: str, job_id: str) -> dict[str, str]:
    """Facts of the job from the batch system; none if it does not answer."""
    if scheduler not in _QUESTIONS:
        return {}
    command, fact = _QUESTIONS[scheduler]
    options: dict[str, Any] = {"capture_output": True, "text": True, "errors": "replace"}
    try:
        said = subprocess.run([*command, job_id], timeout=ASK_S, check=False, **options)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    none = ("", "(null)", "None", "UNLIMITED")
    return {key: value for key, value in re.findall(fact, said.stdout) if value not in none}


def _on(nodes: Sequence[str]) -> str:
    """The first four of many nodes."""
    more = f" and {len(nodes) - 4} more" if len(nodes) > 4 else ""
    return f" on {', '.join(nodes[:4])}{more}" if nodes else ""
