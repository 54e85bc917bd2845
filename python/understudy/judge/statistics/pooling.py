"""Which sessions of one condition may be pooled: those between which nothing changed.

A report over sessions before and after an upgrade must not show their median. Bandwidths are
compared session by session as `night_statistics` does; at a change the condition is divided, and
its parts are shown beside each other.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from understudy.judge.statistics import compared_samples, night_statistics
from understudy.judge.statistics.conditions import Case, Condition, Measured
from understudy.judge.statistics.metrics import DATA_PHASES, bandwidths
from understudy.judge.statistics.night_statistics import Rule, Session


def apart(cases: Sequence[Case], rule: Rule = Rule()) -> list[Case]:  # noqa: B008
    """The cases, with a condition for each part of one that changed between sessions."""
    count = figures(cases)
    return [
        replace(
            case, conditions=tuple(part for c in case.conditions for part in parts(c, count, rule))
        )
        for case in cases
    ]


def figures(cases: Sequence[Case]) -> int:
    """How many figures of several sessions are looked at for changes."""
    return sum(len(of_nights(c)) for case in cases for c in case.conditions) or 1


def parts(
    condition: Condition,
    figures: int = 1,
    rule: Rule = Rule(),  # noqa: B008
) -> list[Condition]:
    """The condition itself where no session differs from those before it."""
    all_sessions = sessions(condition)
    starts = {
        i
        for every in of_nights(condition).values()
        for i in night_statistics.changes(every, rule, figures)
    }
    if not starts:
        return [condition]
    bounds = sorted({0, *starts, len(all_sessions)})
    part_conditions: list[Condition] = []
    for first, end in pairwise(bounds):
        part_runs = [run for session in all_sessions[first:end] for run in session]
        word = f"sessions {first + 1} to {end}"
        part_conditions.append(
            replace(
                condition,
                runs=tuple(part_runs),
                facts=(*condition.facts, word),
                part=len(part_conditions) + 1,
            )
        )
    return part_conditions


def sessions(condition: Condition) -> list[list[Measured]]:
    """Runs of each session, by time; runs started by hand are one session a day."""
    runs_by_session: dict[str, list[Measured]] = {}
    for run in sorted(condition.runs, key=lambda run: (run.run.identity.time, run.path)):
        identity = run.run.identity
        session = identity.session or f"by hand {identity.time[:10]}"
        runs_by_session.setdefault(session, []).append(run)
    return list(runs_by_session.values())


def of_nights(condition: Condition) -> dict[str, list[Session]]:
    """The bandwidths of each session, by the operations that all of several sessions have."""
    return condition.once("nights", lambda: _of_nights(condition))


def _of_nights(condition: Condition) -> dict[str, list[Session]]:
    every = sessions(condition)
    if len(every) < 2:
        return {}
    begun = {str(i): runs[0].run.identity.time for i, runs in enumerate(every)}
    night = compared_samples.nights_of(begun, compared_samples.NIGHT_H)
    sessions_by_operation = {}
    for operation in DATA_PHASES:
        levels = [bandwidths(runs, operation) for runs in every]
        if all(levels):
            sessions_by_operation[operation] = [
                Session(night=night[str(i)], values=tuple(values))
                for i, values in enumerate(levels)
            ]
    return sessions_by_operation
