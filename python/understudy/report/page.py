"""The page itself: cases, figures and tables put into one template."""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from understudy import __version__, accuracy
from understudy.errors import UnderstudyError
from understudy.paths import REPORTS
from understudy.report import figures, metrics, programs, show
from understudy.report.cases import Case, Setting
from understudy.workload import Stream

TEMPLATES = REPORTS / "templates"
LAYOUTS = {"shared": "shared, N-1", "file-per-process": "file per process, N-N"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    name: str
    anchor: str
    title: str
    caption: str
    svg: Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRow:
    """One stream in one setting, over all repetitions."""

    setting: Setting
    name: str
    role: str
    transfer_bytes: int
    collective: bool
    sync: bool
    bytes: metrics.Spread | None
    container: metrics.Spread | None
    error: float
    bandwidth: metrics.Spread | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpRow:
    """One dump of one stream: the original, and the replica in every setting."""

    stream: str
    dump: int
    time_s: float | None
    duration_s: float | None
    described_bytes: int
    moved: metrics.Spread
    error: float
    bandwidths: list[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    case: Case
    pictures: list[Picture]
    verdicts: list[metrics.Verdict]
    stated: metrics.Stated | None
    pauses: list[metrics.PausesRow]
    streams: list[StreamRow]
    dumps: list[DumpRow]
    ranks: list[metrics.RankRow]
    accuracies: list[programs.AccuracyRow]
    share: programs.Share | None
    winners: list[programs.WinnerRow]
    origins: Counter[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """`rows`: per section its places, each with its verdicts by method."""

    methods: list[str]
    rows: list[tuple[Section, list[tuple[str, list[list[metrics.Verdict]]]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Environments:
    """`rows`: (fact, per place the different values that its runs report)."""

    places: list[str]
    rows: list[tuple[str, list[list[str]]]]


def render(cases: Sequence[Case], progress: Callable[[str], None] = lambda _: None) -> str:
    """The HTML of the page; `progress` is told what is drawn next."""
    room = figures.drawers()
    sections = [_section(case, room, progress) for case in cases]
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {
        "size": show.size, "exact": show.exact, "rate": show.rate, "seconds": show.seconds,
        "percent": show.percent, "share": show.share, "layout": _layout, "sizes": _sizes,
        "interval": _interval, "breakable": _breakable, "estimate": _estimate,
        "state": accuracy.state,
    }  # fmt: skip
    runs = [run for case in cases for setting in case.settings for run in setting.runs]
    root = os.path.commonpath([run.path.parent for run in runs]) if runs else ""
    return environment.get_template("page.html").render(
        version=__version__,
        sections=sections,
        overview=_overview(sections),
        environments=_environments(cases),
        runs=[(run.path.relative_to(root), run) for run in runs],
        role_colours=show.ROLE_COLOURS,
        tolerance=metrics.TOLERANCE,
        accuracy=accuracy,
    )


def save(text: str, path: Path) -> None:
    """Write to a temporary name beside `path`, then rename: a reader never sees half a page."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise UnderstudyError(f"{path}: cannot write the page: {error.strerror}") from None


def _section(
    case: Case, room: Sequence[figures.Drawer], progress: Callable[[str], None]
) -> Section:
    pictures = []
    accuracies = list(programs.accuracies(case))
    for drawer in room:
        progress(f"{case.workload.name}: {drawer.name}")
        if (svg := figures.svg(drawer, case)) is not None:
            pictures.append(
                Picture(
                    name=drawer.name, anchor=f"{case.key}-{drawer.name}", title=drawer.title,
                    caption=drawer.caption, svg=Markup(svg),
                )
            )  # fmt: skip
    return Section(
        case=case,
        pictures=pictures,
        verdicts=[metrics.verdict(s) for s in case.settings],
        stated=metrics.against_stated(case),
        pauses=list(metrics.kept_pauses(case)),
        streams=[_stream_row(case, s, n) for s in case.settings for n in s.stream_names()],
        dumps=_dump_rows(case),
        ranks=[row for s in case.settings for row in metrics.slowest_phases(s)],
        accuracies=accuracies,
        share=programs.share(accuracies),
        winners=list(programs.winners(case)),
        origins=metrics.origins(case.workload),
    )


def _stream_row(case: Case, setting: Setting, name: str) -> StreamRow:
    played = setting.stream(name)
    return StreamRow(
        setting=setting,
        name=name,
        role=case.role(name),
        transfer_bytes=played[0].transfer_bytes,
        collective=played[0].collective,
        sync=played[0].sync,
        bytes=metrics.spread(s.bytes for s in played),
        container=metrics.container_bytes(played),
        error=metrics.stream_error(setting, name),
        bandwidth=metrics.stream_bandwidth(played),
    )


def _dump_rows(case: Case) -> list[DumpRow]:
    streams = {s.name: s for s in case.workload.streams}
    names = list(dict.fromkeys(n for s in case.settings for n in s.stream_names()))
    rows = []
    for name in names:
        by_setting = [(setting, setting.dumps(name)) for setting in case.settings]
        for index in sorted({i for _, dumps in by_setting for i in dumps}):
            played = [(setting, dumps.get(index, [])) for setting, dumps in by_setting]
            every = [d for _, dumps in played for d in dumps]
            moved = metrics.spread(d.bytes for d in every)
            assert moved is not None, "an index comes from a dump that was played"
            original = streams[name].dumps[index] if name in streams else None
            speeds = [
                metrics.spread(d.bandwidth_bytes_per_s for d in dumps) for _, dumps in played
            ]
            rows.append(
                DumpRow(
                    stream=name, dump=index, moved=moved,
                    time_s=original.time_s if original else None,
                    duration_s=original.duration_s if original else None,
                    described_bytes=every[0].described_bytes,
                    error=metrics.worst(metrics.dump_error(d, s) for s, d in played),
                    bandwidths=[s.median if s else None for s in speeds],
                )
            )  # fmt: skip
    return rows


def _overview(sections: Sequence[Section]) -> Overview:
    methods = sorted({v.setting.method for section in sections for v in section.verdicts})
    rows = []
    for section in sections:
        places = [
            (
                place,
                [
                    [v for v in section.verdicts if (v.setting.place, v.setting.method) == cell]
                    for cell in ((place, method) for method in methods)
                ],
            )
            for place in sorted({v.setting.place for v in section.verdicts})
        ]
        rows.append((section, places))
    return Overview(methods=methods, rows=rows)


def _environments(cases: Sequence[Case]) -> Environments:
    """What the runs of each place say of their surroundings; several values where they differ."""
    found: dict[str, dict[str, set[str]]] = {}
    for run in (r for case in cases for setting in case.settings for r in setting.runs):
        e = run.result.environment
        facts = {
            "host": e.host,
            "kernel": e.kernel,
            "processors of a node": str(e.processors),
            "nodes": str(e.nodes),
            "ranks": str(e.ranks),
            "MPI": e.mpi,
            "libraries": ", ".join(f"{k} {v}" for k, v in sorted(e.libraries.items())),
            "file system": e.file_system,
            "capacity": show.size(e.total_bytes),
            "player": f"understudy {e.understudy_version}",
        }
        for name, value in facts.items():
            found.setdefault(name, {}).setdefault(run.place, set()).add(value)
    places = sorted(next(iter(found.values()), {}))
    rows = [
        (name, [sorted(filter(None, by_place[p]), key=_natural) for p in places])
        for name, by_place in found.items()
    ]
    return Environments(places=places, rows=rows)


def _natural(text: str) -> list[tuple[int, str]]:
    """Sort key by which 4 comes before 16."""
    return [
        (int(part or 0), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text)
    ]


def _breakable(name: str) -> Markup:
    """A name that may go to the next line after _ and -."""
    return Markup(re.sub(r"([_-])", r"\1<wbr>", str(escape(name))))


def _estimate(found: accuracy.Estimate, write: Callable[[float], str] = show.percent) -> str:
    """A value with its interval; by default an error."""
    if not math.isfinite(found.low + found.high):
        return f"{write(found.value)} (one run has no interval)"
    return f"{write(found.value)} ({write(found.low)} \N{EN DASH} {write(found.high)})"


def _layout(stream: Stream) -> str:
    return LAYOUTS.get(stream.layout, f"{stream.groups} groups, N-M")


def _sizes(stream: Stream) -> str:
    """Smallest to largest dump of a stream."""
    sizes = [d.bytes for d in stream.dumps]
    low, high = show.size(min(sizes)), show.size(max(sizes))
    return low if low == high else f"{low} \N{EN DASH} {high}"


def _interval(stream: Stream) -> str:
    """Median time between the starts of two dumps."""
    times = [d.time_s for d in stream.dumps]
    gaps = metrics.spread(b - a for a, b in pairwise(times))
    return show.seconds(gaps.median) if gaps else "\N{EN DASH}"
