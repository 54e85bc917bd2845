"""Rows of the page for all cases, as JSON: see schemas/report.schema.json."""

from typing import Any

from understudy.judge.page.judged import Judged
from understudy.judge.page.last_two_sessions import Changes, Recent
from understudy.judge.page.summary import Summary
from understudy.judge.statistics.metrics import Spread
from understudy.judge.statistics.night_statistics import FASTER, SLOWER


def as_row(first: list[str], found: Summary, changes: Changes | None) -> dict[str, Any]:
    return {
        "summary": first,
        "cases": [_case(one) for one in found.cases],
        "not_run": [{"why": why, "cases": list(names)} for why, names in found.skipped],
        "conditions_of_several_sessions": changes.conditions if changes else 0,
        "changes": [_change(one) for one in (changes.every if changes else ())],
    }


def _case(one: Judged) -> dict[str, Any]:
    return {
        "name": one.name,
        "place": one.place,
        "kind": one.kind,
        "method": one.method,
        "condition_words": one.label,
        "state": one.state,
        "why": one.why,
        "limit": one.limit,
        "write_bytes_per_s": _spread(one.write),
        "read_bytes_per_s": _spread(one.read),
        "original_bytes_per_s": dict(one.original),
        "in_memory": one.in_memory,
        "cached": sorted(one.cached),
    }


def _spread(found: Spread | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"low": found.low, "median": found.median, "high": found.high, "n": found.n}


def _change(one: Recent) -> dict[str, Any]:
    assert one.levels is not None, "it changed"
    return {
        "name": one.name,
        "place": one.place,
        "condition_words": one.label,
        "operation": one.operation,
        "state": SLOWER if one.change < 0 else FASTER,
        "ratio": 1 + one.change,
        "level_before": one.levels[0],
        "level_after": one.levels[1],
        "last_day_before": one.days[0],
        "first_day_after": one.days[1],
        "sessions_bytes_per_s": list(one.values),
    }
