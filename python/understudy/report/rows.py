"""Rows of the page for all cases, as JSON: see schemas/report.schema.json."""

from typing import Any

from understudy.judge.page.judged import Judged
from understudy.judge.page.last_two_sessions import Changes, Recent
from understudy.judge.page.summary import Summary
from understudy.judge.statistics.metrics import Spread
from understudy.judge.statistics.night_statistics import FASTER, SLOWER


def as_row(first: list[str], summary: Summary, changes: Changes | None) -> dict[str, Any]:
    return {
        "summary": first,
        "cases": [_case(case) for case in summary.cases],
        "not_run": [{"why": why, "cases": list(names)} for why, names in summary.skipped],
        "conditions_of_several_sessions": changes.conditions if changes else 0,
        "changes": [_change(recent) for recent in (changes.every if changes else ())],
    }


def _case(case: Judged) -> dict[str, Any]:
    return {
        "name": case.name,
        "place": case.place,
        "kind": case.kind,
        "method": case.method,
        "condition_words": case.label,
        "state": case.state,
        "why": case.why,
        "limit": case.limit,
        "write_bytes_per_s": _spread(case.write),
        "read_bytes_per_s": _spread(case.read),
        "original_bytes_per_s": dict(case.original),
        "in_memory": case.in_memory,
        "cached": sorted(case.cached),
    }


def _spread(spread: Spread | None) -> dict[str, Any] | None:
    if spread is None:
        return None
    return {"low": spread.low, "median": spread.median, "high": spread.high, "n": spread.n}


def _change(recent: Recent) -> dict[str, Any]:
    assert recent.levels is not None, "it changed"
    return {
        "name": recent.name,
        "place": recent.place,
        "condition_words": recent.label,
        "operation": recent.operation,
        "state": SLOWER if recent.change < 0 else FASTER,
        "ratio": 1 + recent.change,
        "level_before": recent.levels[0],
        "level_after": recent.levels[1],
        "last_day_before": recent.days[0],
        "first_day_after": recent.days[1],
        "sessions_bytes_per_s": list(recent.values),
    }
