"""How a batch system ended a job that did not end by itself: time limit, cancellation, lost node.

Slurm states it as the state of the job. Torque and PBS, and what stands in for them on Slurm,
write it to the job's error output or keep it with the job, so all three are read.
"""

import re
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

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

# A launcher's line about a rank that was killed.
KILLED_RANK = re.compile(
    r"srun: error: \S+: tasks? .*: (?!Exited)|noticed that process rank .* exited on signal"
)


def told(
    scheduler: str, job_id: str, state: str | None, nodes: Sequence[str], stderr: str
) -> str | None:
    """Why and where a job ended, in words; None if the batch system did not end it.

    `state` is ReFrame's, `stderr` what the job wrote.
    """
    facts = _asked(scheduler, job_id)
    found = _state(state, facts, stderr)
    if found is None:
        return None
    limit = facts.get("TimeLimit") or facts.get("Resource_List.walltime")
    named = re.search(r"srun: error: Node failure on (\S+)", stderr)
    lost = facts.get("FailedNode") or (named and named[1])
    words = _STATES[found].format(
        limit=f" of {limit}" if limit else "", node=f"the node {lost}" if lost else "a node"
    )
    return f"job {job_id}{_on(nodes)} {words}"


def cut_short(state: str | None) -> bool:
    """Whether ReFrame's state of a job says that the batch system ended it."""
    return _known(state) is not None


def _known(state: str | None) -> str | None:
    words = re.split(r"[\s,+]", state or "")
    return next((word for word in words if word in _STATES), None)


def _state(state: str | None, facts: Mapping[str, str], stderr: str) -> str | None:
    if found := _known(state) or _known(facts.get("JobState")):
        return found
    for pattern, meant in _WRITTEN.items():
        if re.search(pattern, stderr):
            return meant
    return _KILLED_BY_TORQUE.get(facts.get("exit_status", facts.get("Exit_status", "")))


def _asked(scheduler: str, job_id: str) -> dict[str, str]:
    """What the batch system knows of the job; nothing if it does not answer."""
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
    """Of many nodes the first four."""
    more = f" and {len(nodes) - 4} more" if len(nodes) > 4 else ""
    return f" on {', '.join(nodes[:4])}{more}" if nodes else ""
