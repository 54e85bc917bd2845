"""The first sentences of a page and of the terminal: how fast storage is, how long applications
are in I/O on it, what changed, and what is not as it should be.

That replicas have the bytes of their originals is a condition: it is told where they have not.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from understudy.judge.page.file_system_speeds import PlaceRow, names
from understudy.judge.page.judged import Judged
from understudy.judge.page.last_two_sessions import Changes
from understudy.judge.page.summary import ACCEPT, NO_CASE, SHOWN, Summary, named
from understudy.judge.statistics import metrics
from understudy.judge.statistics.conditions import AS_DESCRIBED
from understudy.units import plural, rate, seconds

VERBS = {"write": "writes", "read": "reads"}
LOG = "darshan"  # the source of workloads of applications


def headline(summary: Summary, rows: Sequence[PlaceRow], changes: Changes | None) -> list[str]:
    """Sentences for the head of the page, the most important first."""
    if not summary.cases:
        return [NO_CASE]
    called = names(summary.cases)
    rows = [replace(row, place=called(row.place)) for row in rows]
    stored = [row for row in rows if not row.in_memory and any(row.speeds.values())]
    moved = {called(place): text for place, text in _changed(changes)} if changes else {}
    sentences = [_speed(row, stored, moved.pop(row.place, "")) for row in stored]
    if not stored and any(case.write or case.read for case in summary.cases):
        remedy = "; ".join(summary.remedies[:2]) if summary.flushed else f"run {ACCEPT}"
        sentences = [f"Nothing here measured storage, but memory: {remedy}."]
    sentences += [f"{place} is {text}." for place, text in moved.items()]
    sentences += [
        *_left_out(summary.cases),
        *_forecast(summary.cases, called),
        *([f"{summary.counts}."] if summary.counts else []),
    ]
    return sentences or [f"{len(summary.cases):,} cases as they should be; none has a speed."]


def _speed(row: PlaceRow, stored: Sequence[PlaceRow], moved: str) -> str:
    """disk writes n-1 and n-n at 120 to 410 MiB/s, 1.8 times scratch; slower since …"""
    parts: list[str] = []
    for name in metrics.DATA_PHASES:
        if spread := row.speeds[name]:
            what = (
                f"{named(row.of[name])} " if not parts or row.of[name] != row.of["write"] else ""
            )
            parts.append(f"{VERBS[name]} {what}at {_range(rate(spread.low), rate(spread.high))}")
    ratios = [f"{r.slower[0]:.2g} times {r.place}" for r in stored if r.slower]
    first = [", ".join(ratios[:SHOWN])] if row is stored[0] and ratios else []
    text = ", ".join([" and ".join(parts), *first])
    cached = len({name for names_ in row.left_out.values() for name in names_})
    more = f"speeds of {plural(cached, 'workload')} may be of the cache" if cached else ""
    return f"{row.place} {'; '.join(filter(None, [text, moved, more]))}."


def _range(low: str, high: str) -> str:
    """120 to 410 MiB/s"""
    if low == high:
        return low
    number, _, unit = low.rpartition(" ")
    return f"{number if high.endswith(f' {unit}') else low} to {high}"


def _changed(changes: Changes) -> Iterator[tuple[str, str]]:
    for place, slower, faster, count, change, since in changes.places:
        word = "slower" if slower >= faster else "faster"
        figures = f"{max(slower, faster)} of {plural(count, 'figure')}"
        yield place, f"{word} since {since} by {abs(change):.0%} ({figures})".replace("%", " %")


def _left_out(cases: Sequence[Judged]) -> Iterator[str]:
    """lammps: 500 of 502 requests … are not played."""
    conditions = [case.verdict.condition for case in cases if case.verdict]
    workloads = {condition.workload.name: condition.workload for condition in conditions}
    texts = {name: workload.source.requests_left_out for name, workload in workloads.items()}
    lacking = [f"{name}: {text}" for name, text in texts.items() if text]
    yield from lacking[:SHOWN]
    if more := lacking[SHOWN:]:
        yield f"Of {plural(len(more), 'more workload')}, some requests are not played."


def _forecast(cases: Sequence[Judged], called: Callable[[str], str]) -> Iterator[str]:
    """lammps: 41 s of I/O on disk (35 to 50), 12 s on scratch. Of workloads of logs that were
    played whole and as described, where storage served all."""
    texts_by_name: dict[str, list[str]] = {}
    for case in cases:
        condition = case.verdict.condition if case.verdict else None
        if condition is None or case.cached or case.in_memory or metrics.is_scaled(condition):
            continue
        took = metrics.io_seconds(condition)
        whole = condition.method == AS_DESCRIBED and condition.workload.source.format == LOG
        if whole and took:
            ends = _range(seconds(took.low), seconds(took.high))
            spread = f" ({ends})" if took.n > 1 else ""
            text = f"{seconds(took.median)} of I/O on {called(case.place)}{spread}"
            texts_by_name.setdefault(case.name, []).append(text)
    for name, texts in list(texts_by_name.items())[:SHOWN]:
        yield f"{name}: {', '.join(texts)}."
