"""Which sessions of one condition may be pooled: those between which nothing changed.

A report over sessions before and after an upgrade must not show their median. Bandwidths are
compared session by session as `judge.steps` does; at a change point the condition is divided, and
its parts are shown beside each other. Too few sessions for a change point stay together; the head
of the page has what differs between the last two.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from understudy.judge import steps
from understudy.judge.conditions import Case, Condition, Measured
from understudy.judge.metrics import DATA_PHASES, bandwidths


def apart(cases: Sequence[Case]) -> list[Case]:
    """The cases, with a condition for each part of one that changed between sessions."""
    return [
        replace(case, conditions=tuple(part for c in case.conditions for part in parts(c)))
        for case in cases
    ]


def parts(condition: Condition) -> list[Condition]:
    """The condition itself where no session differs from those before it."""
    found = sessions(condition)
    starts = {i for levels in _levels(found) for i in steps.change_points(levels)}
    if not starts:
        return [condition]
    bounds = sorted({0, *starts, len(found)})
    made: list[Condition] = []
    for first, end in pairwise(bounds):
        own = [run for session in found[first:end] for run in session]
        word = f"sessions {first + 1} to {end}"
        made.append(
            replace(condition, runs=tuple(own), facts=(*condition.facts, word), part=len(made) + 1)
        )
    return made


def sessions(condition: Condition) -> list[list[Measured]]:
    """Runs of each session, by time; runs started by hand are one session a day."""
    found: dict[str, list[Measured]] = {}
    for run in sorted(condition.runs, key=lambda run: (run.run.identity.time, run.path)):
        identity = run.run.identity
        found.setdefault(identity.session or f"by hand {identity.time[:10]}", []).append(run)
    return list(found.values())


def _levels(every: Sequence[Sequence[Measured]]) -> list[list[list[float]]]:
    """For each operation that all sessions have, the bandwidths of each session."""
    found = [[bandwidths(runs, operation) for runs in every] for operation in DATA_PHASES]
    return [levels for levels in found if len(levels) > 1 and all(levels)]
