"""What is dumped when, and how much?

One lane per stream, its dumps at their absolute times. Disc areas compare all dumps of the
picture on a logarithmic scale; the stems compare the dumps of one lane, zero at its foot, so
growth within a stream shows. Beside each lane stand its largest dump, its number of dumps and its
bytes. Colour is the role; hollow discs are reads, the dashed line is the end of the run. Where
there are many streams the small ones share a lane.
"""

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from understudy.contracts.workload import Stream
from understudy.judge.statistics.conditions import Case
from understudy.report.axes import add_legend
from understudy.report.colours import MUTED, ROLE_COLOURS
from understudy.units import shorten, size, time_unit

ORDER = 10
MAX_LANES = 14
LANE_INCHES = 0.62
LANE_POINTS = 560  # length of a lane
SMALLEST, LARGEST = 1e3, 1e10  # bytes at which discs stop to shrink and to grow


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    title: str
    role: str
    reads: bool
    times_s: Floats
    sizes: Floats


def draw(case: Case) -> Figure | None:
    if case.programs or sum(s.dump_count for s in case.workload.streams) < 2:
        return None  # programs have no schedule, and a dump alone has no order
    lanes = lanes_of(case.workload.streams)
    end_s = max([case.workload.runtime_s or 0.0, *(lane.times_s.max() for lane in lanes)]) or 1.0
    divisor, unit = time_unit(end_s)
    figure = Figure(figsize=(10.5, 1.15 + LANE_INCHES * len(lanes)))
    axes = figure.add_subplot()
    for row, lane in enumerate(lanes):
        _draw_lane(axes, len(lanes) - 1 - row, lane, divisor)
    axes.set_ylim(-0.12, len(lanes) + 0.05)
    axes.set_xlim(-0.015 * end_s / divisor, 1.02 * end_s / divisor)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(f"time since the start of the application ({unit})")
    if case.workload.runtime_s:
        axes.axvline(case.workload.runtime_s / divisor, color=MUTED, lw=0.8, ls=(0, (4, 3)))
    _legend(figure, lanes)
    return figure


def lanes_of(streams: tuple[Stream, ...]) -> list[Lane]:
    """A lane per stream, checkpoints first; of many streams the small ones join by role."""
    roles = list(ROLE_COLOURS)
    streams = tuple(sorted(streams, key=lambda s: roles.index(s.role)))
    largest = sorted(streams, key=lambda s: -s.bytes)
    kept = set(
        s.name for s in (largest if len(streams) <= MAX_LANES else largest[: MAX_LANES - 4])
    )
    lanes = [_lane(s.name, s.role, [s]) for s in streams if s.name in kept]
    rest: dict[str, list[Stream]] = defaultdict(list)
    for s in streams:
        if s.name not in kept:
            rest[s.role].append(s)
    return lanes + [
        _lane(f"{len(same)} smaller, {role}", role, same) for role, same in rest.items()
    ]


def _lane(title: str, role: str, streams: list[Stream]) -> Lane:
    dumps = sorted((d.time_s, d.bytes) for s in streams for d in s.steps)
    return Lane(
        title=title,
        role=role,
        reads=all(s.operation == "read" for s in streams),
        times_s=np.array([t for t, _ in dumps]),
        sizes=np.array([b for _, b in dumps], dtype=float),
    )


def _areas(sizes: Floats) -> Floats:
    """Disc areas in points²: 4 at 1 kB, 200 at 10 GB."""
    share = np.log(np.clip(sizes, SMALLEST, LARGEST) / SMALLEST) / np.log(LARGEST / SMALLEST)
    areas: Floats = 4 + 196 * share**1.3
    return areas


def _draw_lane(axes: Axes, base: int, lane: Lane, divisor: float) -> None:
    colour = ROLE_COLOURS[lane.role]
    x = lane.times_s / divisor
    top = base + 0.58 * lane.sizes / max(lane.sizes.max(), 1)
    axes.axhline(base, color="#d5dbe1", lw=0.8, zorder=1)
    gap = np.full(len(x), np.nan)  # one line with gaps is one element of the page, not one a dump
    stems = np.stack([np.full(len(x), float(base)), top, gap], axis=1).ravel()
    axes.plot(
        np.repeat(x, 3), stems, color=colour, lw=1.6 if len(x) < 60 else 0.7, alpha=0.55, zorder=2
    )
    room = max(2.5, 1.5 * LANE_POINTS / len(x))  # smaller discs where they would pile up
    shrink = min(1.0, room / np.sqrt(_areas(lane.sizes.max())))
    widths = np.sqrt(_areas(lane.sizes)) * shrink
    widths = np.round(2 * widths) / 2  # half points: discs of one width share one shape
    for width in np.unique(widths):
        axes.plot(
            x[widths == width],
            top[widths == width],
            ls="",
            marker="o",
            markersize=width,
            markerfacecolor="white" if lane.reads else colour,
            zorder=3,
            alpha=0.9,
            markeredgecolor=colour if lane.reads else "white",
            clip_on=False,
            markeredgewidth=1.2 if lane.reads else 0.5,
        )
    axes.annotate(
        shorten(lane.title, 30),
        (0, base + 0.36),
        xycoords=("axes fraction", "data"),
        xytext=(-8, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontweight="bold",
    )
    axes.annotate(
        f"up to {size(lane.sizes.max())}",
        (0, base + 0.08),
        xycoords=("axes fraction", "data"),
        xytext=(-8, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        color=MUTED,
        size=8,
    )
    count = f"{len(x)} dump{'s' if len(x) > 1 else ''}"
    axes.annotate(
        f"{count}\n{size(lane.sizes.sum())}",
        (1, base + 0.25),
        xycoords=("axes fraction", "data"),
        xytext=(8, 0),
        textcoords="offset points",
        ha="left",
        va="center",
        size=8,
    )


def _legend(figure: Figure, lanes: list[Lane]) -> None:
    def disc(label: str, colour: str, area: float, face: str | None = None) -> Line2D:
        return Line2D(
            [],
            [],
            ls="",
            marker="o",
            color=colour,
            markersize=area**0.5,
            label=label,
            markerfacecolor=face or colour,
        )

    roles = dict.fromkeys(lane.role for lane in lanes)
    handles = [disc(role, ROLE_COLOURS[role], 60) for role in roles]
    if any(lane.reads for lane in lanes):
        handles.append(disc("read", MUTED, 60, face="white"))
    for bytes_ in (2**10, 2**20, 2**30):
        area = float(_areas(np.array(bytes_)))
        handles.append(disc(size(bytes_).replace(".00", ""), "#a9b3bd", area))
    add_legend(figure, handles, handletextpad=0.3)
