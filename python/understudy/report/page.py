"""The page itself: cases, figures and tables put into one template."""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from understudy import __version__, studies, units
from understudy.contracts.measurement import PlayedStream
from understudy.contracts.run import Run
from understudy.contracts.workload import Stream, origins
from understudy.errors import UnderstudyError, printable
from understudy.files import write_text
from understudy.judge.fidelity import transfer
from understudy.judge.page import (
    benchmarks,
    canaries,
    file_system_speeds,
    headline,
    last_two_sessions,
    summary,
)
from understudy.judge.page.additions import Addition
from understudy.judge.page.judged import PASS
from understudy.judge.page.matrix import matrix
from understudy.judge.statistics import latencies, metrics
from understudy.judge.statistics.conditions import Case, Condition, Failed
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.judge.statistics.night_statistics import Rule
from understudy.judge.statistics.paired_errors import Estimate
from understudy.producers._reading import RATE
from understudy.report import colours, figures
from understudy.report.book import Book
from understudy.report.template import environment

IN_FULL = 12
LEAD = "original"  # the figure that stands at the head of the page
FIGURE_BYTES = 5 << 18  # of workloads: a page of hundreds of cases is drawn in seconds
MOST_DUMPS = 100  # more do not show more
MAX_ROWS = 1000  # of a table of dumps
_PLAIN = " !$&'()*+,;=:@/?~"  # need no escape in a URL in quotes
LAYOUTS = {"shared": "shared, N-1", "file-per-process": "file per process, N-N"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    name: str
    anchor: str
    title: str
    caption: str
    svg: Markup
    csv: str  # a URL with its data in it


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRow:
    """One stream in one condition, over all repetitions."""

    condition: Condition
    name: str
    role: str
    calls: PlayedStream | None  # None: a program's, which makes its own
    bytes: metrics.Spread | None  # without those of `mixed`
    mixed: metrics.Spread | None  # read between writes, besides what is described
    container: metrics.Spread | None
    error: float | None  # None: a deadline bounded the payload
    bandwidth: metrics.Spread | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpRow:
    """One dump of one stream: the original, and the replica in every condition."""

    stream: str
    dump: int
    time_s: float | None
    duration_s: float | None
    described_bytes: int
    moved: metrics.Spread
    error: float | None  # None: a deadline bounded the payload
    bandwidths: list[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """`brief`: without figures and with the results by condition alone. `added` are tables of
    studies."""

    case: Case
    brief: bool
    pictures: list[Picture]
    verdicts: list[metrics.Verdict]
    added: Markup
    pauses: list[metrics.PausesRow]
    canaries: canaries.Canaries | None
    streams: list[StreamRow]
    dumps: list[DumpRow]
    dump_count: int  # of which `dumps` has the first MAX_ROWS
    ranks: list[metrics.RankRow]
    tails: list[metrics.TailRow]
    latencies: list[latencies.LatencyRow]
    origins: Counter[str]

    @property
    def systems(self) -> list[str]:
        return [place.partition(":")[0] for place in self.case.places]

    @property
    def methods(self) -> list[str]:
        return [condition.method for condition in self.case.conditions]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environments:
    """`rows`: (fact, per place the different values that its runs report)."""

    places: list[str]
    rows: list[tuple[str, list[list[str]]]]


def render(
    cases: Sequence[Case],
    failed: Sequence[Failed] = (),
    progress: Callable[[str], None] = lambda _: None,
    undrawn: Callable[[UnderstudyError], None] | None = None,
    unread: Sequence[str] = (),
    study: transfer.Study | None = None,
    beside: Sequence[benchmarks.Row] = (),
    in_full: int = IN_FULL,
    others: Sequence[Run] = (),
    told: Callable[[list[str], summary.Summary], None] = lambda *_: None,
    skipped: Iterable[tuple[str, str]] = (),
    rule: Rule = Rule(),  # noqa: B008
) -> str:
    """The HTML of the page; `progress` is told what is drawn next, `undrawn` why a figure cannot
    be drawn, which the page then lacks. Without `undrawn` that is raised. `unread` has a
    message for each record that could not be read. `study` are the cases of the check transfer,
    `beside` the figures of IOR and mdtest. At most `in_full` cases have figures and
    all tables, those with the worst verdicts, of equal ones those with most to show,
    and fewer where their figures take FIGURE_BYTES; of
    others the page has the results by condition. `others` are the records of all runs, for figures
    of several and for studies. `told` gets the first sentences of the page and what all cases come
    to; `skipped` are cases that were not run, and why; `rule` is that of nights."""
    drawers = figures.drawers()
    of_workloads = [d for d in drawers if d.of == figures.WORKLOAD]
    tell = undrawn or _raise
    additions = list(_additions())
    page_summary = summary.summarize(cases, failed, study, skipped, additions, others)
    changes = last_two_sessions.changes(cases, rule)
    place_rows = file_system_speeds.places(page_summary.cases)
    first = headline.headline(page_summary, place_rows, changes)
    full, left = {}, FIGURE_BYTES
    cases = _attention(cases, page_summary)
    templates = environment()
    templates.filters |= {
        "layout": _layout,
        "sizes": _sizes,
        "interval": _interval,
        "estimate": _estimate,
        "figure": _figure,
    }

    def fill(template: str, **values: Any) -> str:
        return Markup(templates.get_template(template).render(**values))

    added = {
        id(case): Markup().join(addition.tables(case, fill) for addition in additions)
        for case in cases
    }
    for case in cases[:in_full]:
        if left > 0:
            full[id(case)] = section = _section(
                case, added[id(case)], of_workloads, progress, tell
            )
            left -= sum(len(picture.svg) + len(picture.csv) for picture in section.pictures)
    sections = [
        full.get(id(case)) or _section(case, added[id(case)], None, progress, tell)
        for case in cases
    ]
    pictures = _pictures(study, figures.TRANSFER, drawers, tell) if study and study.cases else []
    book = Book(cases=cases, beside=beside, runs=others)
    book_pictures = _pictures(book, figures.PAGE, drawers, tell)
    filters = _filters(page_summary)
    runs = [run for case in cases for condition in case.conditions for run in condition.runs]
    every = [*(run.run for run in runs), *(run.run for run in failed), *others]
    measured = _measured(every, len(page_summary.cases))
    told([*first, measured], page_summary)
    templates.filters |= {
        "place": file_system_speeds.names(page_summary.cases),
        "colour": lambda place: colours.place_colour(place, book.places),
    }
    paths = [*(run.path for run in runs), *(run.path for run in failed)]
    root = os.path.commonpath([path.parent for path in paths]) if paths else ""
    text = templates.get_template("page.html").render(
        version=__version__,
        sections=sections,
        study=study,
        transfer=transfer,
        parts=[p for addition in additions for p in addition.parts(cases, others, fill)],
        study_pictures=pictures,
        beside=beside,
        summary=page_summary,
        filters=filters,
        marks=_marks(filters),
        book_pictures=book_pictures,
        in_full=len(full),
        matrix=matrix(page_summary.cases),
        headline=first,
        changes=changes,
        steps=page_summary.next_steps(changes.places[0][0] if changes and changes.places else ""),
        places=place_rows,
        lead=_lead(sections),
        measured=measured,
        environments=_environments(cases),
        runs=[(run.path.relative_to(root), run) for run in runs],
        failed=[(run.path.relative_to(root), run) for run in failed],
        unread=unread,
        role_colours=colours.ROLE_COLOURS,
        limit=LIMIT_FRACTION,
    )
    return printable(text)


def _additions() -> Iterator[Addition]:
    """What studies add; an UnderstudyError where a module `page` states no ADDITION."""
    for module in studies.modules("page"):
        addition = getattr(module, "ADDITION", None)
        if not isinstance(addition, Addition):
            raise UnderstudyError(f"{module.__file__}: ADDITION: expected an Addition")
        yield addition


def _lead(sections: Sequence[Section]) -> tuple[Section, Picture] | None:
    """The first original beside its replica, which stands at the head of the page."""
    leads = ((s, picture) for s in sections for picture in s.pictures if picture.name == LEAD)
    return next(leads, None)


def _measured(runs: Sequence[Run], cases: int) -> str:
    """When, where and in which sessions runs were made, and of how many cases they are."""
    runs = list({id(run): run for run in runs}.values())
    dates = sorted({run.identity.time[:10] for run in runs if run.identity.time})
    systems = sorted({run.place.system for run in runs if run.place.system})
    sessions = sorted({run.identity.session for run in runs if run.identity.session})
    if not dates:
        return ""
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    where = f" on {', '.join(systems)}" if systems else ""
    session_words = (
        f", session {sessions[0]}" if len(sessions) == 1 else f", {len(sessions)} sessions"
    )
    alike = "; runs under equal conditions are one case" if cases < len(runs) else ""
    counts = f"{len(runs):,} runs of {cases:,} cases{alike}"
    return f"Measured {when}{where}{session_words if sessions else ''}: {counts}."


def _figure(value: float, unit: str) -> str:
    """Figure of a benchmark: a bandwidth, or operations in a second."""
    return units.rate(value) if unit == RATE else f"{value:,.0f} {unit.replace('1/s', '/s')}"


def save(text: str, path: Path) -> None:
    """Write the page and the folder that it lies in: a reader never sees half a page."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot be written: {error.strerror}") from None
    write_text(path, text)


def _raise(error: UnderstudyError) -> None:
    raise error


def _pictures(
    study: transfer.Study | Book,
    of: str,
    drawers: Sequence[figures.Drawer],
    undrawn: Callable[[UnderstudyError], None],
) -> list[Picture]:
    chosen_drawers = [d for d in drawers if d.of == of]
    return [picture for drawer in chosen_drawers for picture in _picture(study, drawer, undrawn)]


def _picture(
    case: Case | transfer.Study | Book,
    drawer: figures.Drawer,
    undrawn: Callable[[UnderstudyError], None],
) -> list[Picture]:
    """None where there is nothing to show, or it cannot be drawn."""
    try:
        drawn = figures.draw(drawer, case)
    except UnderstudyError as error:
        undrawn(error)
        return []
    if drawn is None:
        return []
    anchor = f"{case.key}-{drawer.name}"
    picture = Picture(
        name=drawer.name,
        anchor=anchor,
        title=drawer.title,
        caption=drawer.caption,
        svg=Markup(drawn.svg),
        csv=f"data:text/csv;charset=utf-8,{quote(drawn.csv, safe=_PLAIN)}",
    )
    return [picture]


def _section(
    case: Case,
    added: Markup,
    drawers: Sequence[figures.Drawer] | None,
    progress: Callable[[str], None],
    undrawn: Callable[[UnderstudyError], None],
) -> Section:
    """`drawers` are None of a case that is not shown in full."""
    pictures = []
    for drawer in drawers or ():
        progress(f"{case.workload.name}: {drawer.name}")
        pictures += _picture(case, drawer, undrawn)
    return Section(
        case=case,
        brief=drawers is None,
        pictures=pictures,
        verdicts=[metrics.verdict(s) for s in case.conditions],
        added=added,
        pauses=list(metrics.kept_pauses(case)),
        canaries=canaries.canaries(case.conditions),
        streams=[stream_row(case, s, n) for s in case.conditions for n in s.stream_names()],
        dumps=dump_rows(case) if drawers is not None else [],
        dump_count=sum(len(_played(case, name)) for name in _stream_names(case)),
        ranks=[
            row
            for s in case.conditions
            if drawers is not None
            for row in metrics.slowest_phases(s)
        ],
        tails=[row for s in case.conditions if drawers is not None for row in metrics.tails(s)],
        latencies=[
            row for s in case.conditions if drawers is not None for row in latencies.rows(s)
        ],
        origins=origins(case.workload),
    )


def stream_row(case: Case, condition: Condition, name: str) -> StreamRow:
    """The row of a stream of a condition: bytes, error and bandwidth over its runs."""
    played, mixed = condition.stream(name), metrics.mixes_reads(condition, name)
    return StreamRow(
        condition=condition,
        name=name,
        role=case.role(name),
        calls=played[0] if isinstance(played[0], PlayedStream) else None,
        bytes=metrics.spread(s.moved(s.operation) if mixed else s.bytes for s in played),
        mixed=metrics.spread(s.other_bytes for s in played if mixed),
        container=metrics.container_bytes(played),
        error=metrics.stream_error(condition, name),
        bandwidth=metrics.stream_bandwidth(played),
    )


def dump_rows(case: Case) -> list[DumpRow]:
    """The rows of the dumps of all streams of a case."""
    streams = {s.name: list(s.expanded()) for s in case.workload.streams}
    scaled = all(map(metrics.is_scaled, case.conditions))
    rows: list[DumpRow] = []
    for name in _stream_names(case):
        by_condition = [(condition, condition.played_dumps(name)) for condition in case.conditions]
        mixed = {id(c): metrics.mixes_reads(c, name) for c in case.conditions}
        for index in _played(case, name)[: MAX_ROWS - len(rows)]:
            played = [(condition, dumps.get(index, [])) for condition, dumps in by_condition]
            every = [d for _, dumps in played for d in dumps]
            moved = metrics.spread(
                d.bytes - metrics.mixed_bytes(d, mixed[id(condition)])
                for condition, dumps in played
                for d in dumps
            )
            assert moved is not None, "an index comes from a dump that was played"
            original = streams[name][index] if name in streams else None
            speeds = [
                metrics.spread(d.io_bandwidth_bytes_per_s for d in dumps) for _, dumps in played
            ]
            rows.append(
                DumpRow(
                    stream=name,
                    dump=index,
                    moved=moved,
                    time_s=original.time_s if original else None,
                    duration_s=original.duration_s if original and not scaled else None,
                    described_bytes=every[0].described_bytes,
                    error=metrics.worst_or_bounded(
                        metrics.dump_error(d, s, name) for s, d in played
                    ),
                    bandwidths=[s.median if s else None for s in speeds],
                )
            )
    return rows


def _stream_names(case: Case) -> list[str]:
    return list(dict.fromkeys(n for s in case.conditions for n in s.stream_names()))


def _played(case: Case, name: str) -> list[int]:
    """The dumps of a stream that any condition played; none of programs."""
    return (
        []
        if case.programs
        else sorted({i for condition in case.conditions for i in condition.played_dumps(name)})
    )


def _filters(page_summary: summary.Summary) -> list[tuple[str, list[str]]]:
    """Filters of the page, and their values; none that has one value."""
    choices = (
        ("system", {case.system for case in page_summary.cases}),
        ("workload", {case.name for case in page_summary.cases}),
        ("method", {case.method for case in page_summary.cases}),
    )
    return [(name, sorted(values)) for name, values in choices if len(values) > 1]


def _marks(filters: Sequence[tuple[str, list[str]]]) -> Callable[..., Markup]:
    """Attributes by which the page's style finds what a filter shows: numbers of values."""
    numbers = {name: {v: k for k, v in enumerate(values)} for name, values in filters}

    def marks(**values: Sequence[str]) -> Markup:
        words = [
            f' data-{name}="{" ".join(_numbers(numbers[name], row_values))}"'
            for name, row_values in values.items()
            if name in numbers
        ]
        return Markup("".join(words))

    return marks


def _numbers(numbers: dict[str, int], values: Sequence[str]) -> list[str]:
    return sorted({str(numbers[v]) for v in values if v in numbers})


def _attention(cases: Sequence[Case], page_summary: summary.Summary) -> list[Case]:
    """The cases, those with the worst verdicts first, of equal ones those with most to show: more
    dumps in more conditions."""
    worst = {judged_case.anchor: judged_case.state for judged_case in reversed(page_summary.cases)}
    states = summary.WORST_FIRST

    def order(case: Case) -> tuple[int, int, str]:
        state = worst.get(case.key, PASS)
        dumps = sum(min(len(s.steps), MOST_DUMPS) for s in case.workload.streams)
        return states.index(state), -min(dumps, MOST_DUMPS) * len(case.conditions), case.key

    return sorted(cases, key=order)


def _environments(cases: Sequence[Case]) -> Environments:
    """Environments of the runs of each place; several values where they differ."""
    values_by_fact: dict[str, dict[str, set[str]]] = {}
    for run in (r for case in cases for condition in case.conditions for r in condition.runs):
        e, storage, software = run.measurement.environment, run.run.storage, run.run.software
        facts = {
            "host": e.host,
            "kernel": e.kernel,
            "processors of a node": str(e.processors),
            "nodes": str(len(e.nodes)),
            "ranks": str(e.ranks),
            "MPI": e.mpi,
            "libraries": ", ".join(f"{k} {v}" for k, v in sorted(e.libraries.items())),
            "file system": storage.type or "unknown",
            "mounted from": storage.source or "",
            "client and server": ", ".join(
                filter(None, (storage.client_version, storage.server_version))
            ),
            "capacity": units.size(storage.total_bytes),
            "understudy": " ".join(filter(None, (software.version, (software.commit or "")[:8]))),
        }
        for name, value in facts.items():
            values_by_fact.setdefault(name, {}).setdefault(run.place, set()).add(value)
    places = sorted(next(iter(values_by_fact.values()), {}))
    rows = [
        (name, [sorted(filter(None, by_place[p]), key=_natural) for p in places])
        for name, by_place in values_by_fact.items()
    ]
    return Environments(places=places, rows=rows)


def _natural(text: str) -> list[tuple[int, str]]:
    """Sort key by which 4 comes before 16."""
    return [
        (int(part or 0), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text)
    ]


def _estimate(estimate: Estimate, write: Callable[[float], str] = units.percent) -> str:
    """A value with its interval; by default an error."""
    if not math.isfinite(estimate.low + estimate.high):
        return f"{write(estimate.value)} (one run has no interval)"
    return f"{write(estimate.value)} ({write(estimate.low)} \N{EN DASH} {write(estimate.high)})"


def _layout(stream: Stream) -> str:
    return LAYOUTS.get(stream.layout, f"{stream.groups} groups, N-M")


def _sizes(stream: Stream) -> str:
    """Smallest to largest dump of a stream."""
    sizes = [step.moved_bytes for step in stream.steps]
    low, high = units.size(min(sizes)), units.size(max(sizes))
    return low if low == high else f"{low} \N{EN DASH} {high}"


def _interval(stream: Stream) -> str:
    """Median time between the starts of two dumps."""
    times = [d.time_s for d in stream.expanded()]
    gaps = metrics.spread(b - a for a, b in pairwise(times))
    return units.seconds(gaps.median) if gaps else "\N{EN DASH}"
