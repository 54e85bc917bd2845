"""Which runs a mark is of, and which of them do not count: what was run is pinned.

A workload has the content that its name has here, all of its bytes and no others, and no campaign
but the one that the mark names, so that runs of something smaller, or of a degraded system, decide
nothing.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from understudy.contracts import run as runs
from understudy.contracts import workload as workloads
from understudy.contracts.acceptance import PLAYER, Mark
from understudy.contracts.run import Run
from understudy.model.scaling import RULES, scale

# Options by which a run moves more or less than its workload: what they do to it, by the value.
MOVES: Mapping[str, Callable[[Any], str]] = {
    "bytes_scale": lambda v: "" if v == 1 else f"bytes multiplied by {v:g}",
    "mix_percent": lambda v: f"{v} % of its transfers are reads besides the workload",
    "deadline_s": lambda v: f"a deadline of {v:g} s bounds its dumps",
}
SHOWN_DIGITS = 12


def matches(run: Run, mark: Mark) -> bool:
    """True if a mark is of a run. Values that a failed run left unknown match the mark."""
    parameters = _parameters(run)
    played = run.producer.workload
    if run.producer.name != mark.program:
        return False
    if played is not None:
        if played.name != mark.workload:
            return False
    elif not _could_play(_asked(run, parameters), mark.workload):
        return False
    run_values = {
        "partition": run.place.partition,
        "method": run.producer.options.get("method") or parameters.get("method"),
        "nodes": len(run.place.nodes) or None,
        "ranks": _ranks(run),
    }
    for key, value in run_values.items():
        wanted = getattr(mark, key)
        unknown = value is None and run.failed
        if wanted is not None and value != wanted and not unknown:
            return False
    return not mark.where or _has(run, mark.where)


def _asked(run: Run, parameters: Mapping[str, str]) -> str | None:
    """The workload of the player, or the case of a benchmark, as its measurement would name it."""
    case = parameters.get("case")
    return parameters.get("workload") or (case and f"{run.producer.name}-{case}")


def _could_play(asked: str | None, wanted: str) -> bool:
    """A run that failed before its workload was read: by the parameter of its check, which is
    without the scaling."""
    return asked is not None and (
        wanted == asked or ((match := _SCALED.fullmatch(wanted)) is not None and match[1] == asked)
    )


def _parameters(run: Run) -> dict[str, str]:
    """Those of the check, from the name of the case."""
    assignments = (
        re.fullmatch(r"%([^=]+)=(.*)", word) for word in (run.identity.case or "").split()
    )
    return {m[1].rpartition(".")[2]: m[2] for m in assignments if m}


def _ranks(run: Run) -> int | None:
    each = [node.ranks for node in run.place.nodes]
    return sum(n for n in each if n) if each and all(each) else None


def _has(run: Run, wanted: Mapping[str, Any]) -> bool:
    flat = runs.differences([runs.condition(run), {}])[0]
    return all(
        flat.get(key) == value or (run.failed and key not in flat) for key, value in wanted.items()
    )


def lacking(mark: Mark, counted: Sequence[Run]) -> str:
    """Keys of `where` that no run has: they may be misspelled."""
    flat = [runs.differences([runs.condition(run), {}])[0] for run in counted if mark.where]
    unknown = [key for key in mark.where if not any(key in row for row in flat)]
    return f"not run; no run has the key {', '.join(unknown)}" if unknown and flat else ""


# -- what was run ---------------------------------------------------------------------------------

_SCALED = re.compile(rf"(.+)-({'|'.join(RULES)})-([0-9]+)")


def pin(mark: Mark) -> str | None:
    """The SHA-256 that the workload of a mark must have; None where neither the mark states it
    nor its name is that of a workload here: of benchmarks and programs."""
    if mark.workload_sha256 is not None or mark.program != PLAYER:
        return mark.workload_sha256
    return _sha256(mark.workload)


def _sha256(name: str) -> str:
    scaled = None if name in workloads.names() else _SCALED.fullmatch(name)
    text = (
        scale(workloads.get(scaled[1]), int(scaled[3]), scaled[2]).to_text()
        if scaled
        else workloads.text(name)
    )
    return hashlib.sha256(text.encode()).hexdigest()


def differs(run: Run, mark: Mark, pinned: str | None, planned: frozenset[str] | None) -> str:
    """Why a run that a mark is of does not count; empty where it does. `pinned`: see `pin`;
    `planned` are the turns of the plan, if there is one."""
    played, campaign = run.producer.workload, run.identity.campaign
    if campaign != mark.campaign:
        return f"campaign {campaign or 'none'}, expected {mark.campaign or 'none'}"
    if played is not None and pinned is not None and played.sha256 != pinned:
        return (
            f"workload with the SHA-256 {played.sha256[:SHOWN_DIGITS]}, expected "
            f"{pinned[:SHOWN_DIGITS]}"
        )
    if planned is not None and run.identity.turn not in planned:
        return f"session of no plan ({run.identity.turn})" if run.identity.turn else "not planned"
    asked, measurement = run.producer.options.get("repetitions"), run.measurement
    if isinstance(asked, int) and measurement and len(measurement.get("repetitions", ())) < asked:
        return f"{len(measurement['repetitions'])} of {asked} repetitions"
    for option, words in MOVES.items():
        value = run.producer.options.get(option)
        stated = f"producer.options.{option}" in mark.where
        if value is not None and not stated and (why := words(value)):
            return why
    return ""
