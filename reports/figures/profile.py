"""What I/O is it: the original beside the replica?

From the left: the share of the run time that the slowest rank is in I/O; data calls by size;
operations by kind, each rank's counted; files that dumps touch, by use. The original is as the
descriptor of its log has it. The replica is measured, in the first repetition of one condition;
its share is larger where pauses are shortened. Its calls have the sizes of the original's where as
many calls moved as many bytes, else the mean of their dump.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from understudy.contracts.measurement import StreamResult
from understudy.contracts.workload import Variable, Workload
from understudy.errors import printable
from understudy.judge.statistics.conditions import Case, Condition, described
from understudy.judge.statistics.metrics import DATA_PHASES, nearest
from understudy.observations.observation import Seen, as_described
from understudy.program.calls import Calls
from understudy.program.counters import BINS, bin_of
from understudy.program.instructions import (
    ALL_RANKS,
    EACH_GROUP,
    FileSet,
    operations_of,
    variables_of,
)
from understudy.program.predicted_counters import predict
from understudy.report.axes import add_legend
from understudy.report.colours import MUTED, place_colour
from understudy.units import shorten

ORDER = 10
OPENS = {"POSIX_OPENS", "STDIO_OPENS", "H5F_OPENS", "MPIIO_COLL_OPENS", "MPIIO_INDEP_OPENS"}
SYNCS = {"POSIX_FSYNCS", "STDIO_FLUSHES", "MPIIO_SYNCS", "H5F_FLUSHES"}
KINDS = ("open", *DATA_PHASES, "sync", "metadata")
ENDS = [name.replace("_PLUS", "+").rpartition("_")[2] for name in BINS]

Bars = Mapping[str, float]


def draw(case: Case) -> Figure | None:
    if case.programs:
        return None
    condition = nearest(case)
    seen = as_described(case.workload).streams
    both = _original(case.workload, seen), _replica(case, condition, seen)
    figure = Figure(figsize=(10.5, 2.6))
    panels = figure.subplots(1, 4, gridspec_kw={"width_ratios": [0.9, 2.2, 2.0, 2.0]})
    colours = MUTED, place_colour(condition.place, case.everywhere)
    titles = ("time in I/O (%)", "data calls, bytes up to", "operations", "files")
    for axes, title, *pair in zip(panels, titles, *both, strict=True):
        _panel(axes, title, pair, colours)
    labels = "original", printable(f"replica: {condition.label} on {condition.place}")
    add_legend(figure, [Patch(color=c, label=t) for c, t in zip(colours, labels, strict=True)])
    return figure


def _original(
    workload: Workload, described_streams: Sequence[Seen]
) -> tuple[Bars, Bars, Bars, Bars]:
    times = [d.io_s for s in workload.streams for d in s.expanded()]
    io_times = [t for t in times if t is not None]
    share = {}
    if workload.runtime_s and len(io_times) == len(times) and sum(io_times) <= workload.runtime_s:
        share["I/O"] = 100 * sum(io_times) / workload.runtime_s
    sizes: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for seen in described_streams:
        if seen.calls:
            kinds[seen.stream.operation] += seen.calls.count
            sizes.update(dict(zip(ENDS, seen.calls.sizes, strict=True)))
    for each in predict(workload.program):
        for name, number in (
            item for counters in each.calls.values() for item in counters.items()
        ):
            kinds["open" if name in OPENS else "sync" if name in SYNCS else ""] += number or 0
    files: Counter[str] = Counter()
    for stream in workload.streams:
        dumps: Counter[int] = Counter()
        for step in stream.steps:
            dumps[id(step.body)] += step.count
        for body in stream.bodies:
            touched = _touched(variables_of([body]), stream.set, workload.ranks)
            files[stream.role] += dumps[id(body)] * touched
            for asked in operations_of(body):
                number = dumps[id(body)] * asked.count
                kinds["metadata"] += number
                kinds["open"] -= number if asked.kind == "open" else 0
    return share, sizes, {kind: kinds[kind] for kind in KINDS}, files


def _touched(variables: Sequence[Variable], files: FileSet, ranks: int) -> int:
    """The files in which some rank has bytes of a dump of these variables."""
    files_with_bytes = set()
    for variable in variables:
        runs = np.array(variable.rank_runs(ranks)).reshape(-1, 2)
        having = np.flatnonzero(np.repeat(runs[:, 1], runs[:, 0]))
        owners = {ALL_RANKS: having * 0, EACH_GROUP: having * files.groups // ranks}
        for owner in np.unique(owners.get(files.owner, having)):
            files_with_bytes.add((variable.file, int(owner)))
    return len(files_with_bytes)


def _replica(
    case: Case, condition: Condition, described_streams: Sequence[Seen]
) -> tuple[Bars, Bars, Bars, Bars]:
    played = condition.runs[0].measurement.repetitions[0]
    dumps = [(case.role(s.name), d) for s in played.streams for d in s.dumps]
    share = {"I/O": min(100.0, 100 * sum(d.io_s for _, d in dumps) / played.elapsed_s)}
    sizes: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for role, dump in dumps:
        files[role] += dump.files
        for phase in dump.phases:
            kinds[phase.phase] += phase.operations
    calls_by_stream = {seen.stream.name: seen.calls for seen in described_streams}
    for stream in played.streams:
        origin = described(case.workload, stream.name)
        whole = origin is not None and origin.bytes == stream.bytes
        sizes.update(_sizes(stream, calls_by_stream[origin.name] if origin and whole else None))
    return share, sizes, {kind: kinds[kind] for kind in KINDS}, files


def _sizes(stream: StreamResult, calls: Calls | None) -> Bars:
    """The data calls of a stream by size: as described (`calls`), where there are as many; else
    each dump's by their mean."""
    moved = [p for d in stream.dumps for p in d.phases if p.phase in DATA_PHASES and p.operations]
    if calls and calls.count == sum(p.operations for p in moved):
        return dict(zip(ENDS, calls.sizes, strict=True))
    means: Counter[str] = Counter()
    for phase in moved:
        means[ENDS[bin_of(phase.bytes / phase.operations)]] += phase.operations
    return means


def _panel(axes: Axes, title: str, pair: list[Bars], colours: tuple[str, str]) -> None:
    every = dict.fromkeys([*ENDS, *pair[0], *pair[1]])
    named = [name for name in every if any(bars.get(name) for bars in pair)]
    where = np.arange(len(named))
    for side, (bars, colour) in enumerate(zip(pair, colours, strict=True)):
        heights = [bars.get(name, 0) for name in named]
        drawn = axes.bar(
            where + 0.4 * (side - 0.5),
            heights,
            0.38,
            color=colour,
            label=("original", "replica")[side],
        )
        axes.bar_label(
            drawn,
            [f"{h:,.3g}" if 0 < h < 1000 else f"{h:,.0f}" if h else "" for h in heights],
            fontsize=8.5,
        )
    axes.set_xticks(where, [shorten(name, 9) for name in named], fontsize=8.5)
    axes.set_title(title)
    axes.set_yticks([])
    axes.grid(visible=False)
