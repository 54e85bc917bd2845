"""How far in time a workload places written bytes from where the trace of its log has them."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from understudy.contracts.workload import Stream
from understudy.darshanlog import Log, open_log
from understudy.inference.names.name_templates import Templates, is_junk
from understudy.readers import darshan

NEAR = 0.01  # share of the run
POINTS = 100  # of a dump
PARTS = 10  # of an access
TRACES = {"posix": "DXT_POSIX", "mpiio": "DXT_MPIIO", "hdf5": "DXT_MPIIO"}

Moments = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]  # when, and bytes


def misplaced(path: Path) -> dict[str, tuple[float, int]]:
    """Of each traced stream that writes: the share of the bytes that the workload places more
    than 1 % of the run from where the trace has them, and the bytes. Bytes are matched in order of
    time. Those of an access are spread evenly over its duration; those of a burst are, too, or are
    at its start, whichever is nearer; of a steady pace, they are where its calls begin."""
    with open_log(path) as log:
        workload, templates = darshan.describe(log, partial=True)
        traced = {m: _traced(log, m) for m in set(TRACES.values()) if m in log.modules}
    run_s = workload.runtime_s or max(s.last_s for s in workload.streams)
    shares = {}
    for stream, names in zip(workload.streams, templates, strict=True):
        segments = traced.get(TRACES.get(stream.method, ""), {})
        parts = [segments[name] for name in names if name in segments]
        if stream.operation != "write" or not stream.bytes or not parts:
            continue
        trace = tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))
        share = min(
            _far(_of(stream, workload.ranks, spread), (trace[0], trace[1]), NEAR * run_s)
            for spread in (True, False)
        )
        shares[stream.name] = (share, stream.bytes)
    return shares


def _traced(log: Log, module: str) -> dict[bytes, Moments]:
    """Traced writes by the template of their file's name."""
    templates, names = Templates(), {}
    for ids, texts in log.names():
        for number, text in zip(ids.tolist(), texts, strict=True):
            if not is_junk(text):
                names[number] = templates.names[templates.split(text)[0]]
    moments: dict[bytes, list[Moments]] = {}
    for record in log.dxt(module):
        rows = record.write_segments
        if record.id in names and len(rows):
            start_s, length_s = rows["start_s"], rows["end_s"] - rows["start_s"]
            along = (np.arange(PARTS) + 0.5) / PARTS
            times = (start_s[:, None] + length_s[:, None] * along).ravel()
            moment = (times, np.repeat(rows["length"] / PARTS, PARTS))
            moments.setdefault(names[record.id], []).append(moment)
    return {
        name: (np.concatenate([t for t, _ in some]), np.concatenate([b for _, b in some]))
        for name, some in moments.items()
    }


def _of(stream: Stream, ranks: int, spread: bool) -> Moments:
    times, sizes = [], []
    for dump in stream.expanded():
        points, begin = POINTS, 0.5
        if stream.pace == "steady":
            each = max(size for v in dump.dump.variables for _, size in v.rank_runs(ranks))
            points, begin = max(1, -(-each // stream.transfer_bytes)), 0.0
        elif not spread:
            points, begin = 1, 0.0
        for k in range(points):
            times.append(dump.time_s + (dump.duration_s or 0.0) * (k + begin) / points)
            sizes.append(dump.bytes / points)
    return np.array(times), np.array(sizes)


def _far(described: Moments, traced: Moments, near_s: float) -> float:
    """The share of the bytes whose times differ by more than so many seconds."""
    steps = []
    for when, size in (described, traced):
        order = np.argsort(when, kind="stable")
        steps.append((when[order], np.cumsum(size[order]) / size.sum()))
    cuts = np.unique(np.concatenate([s[1] for s in steps]))
    middle = (cuts + np.concatenate([[0.0], cuts[:-1]])) / 2
    at = [when[np.minimum(np.searchsorted(share, middle), len(when) - 1)] for when, share in steps]
    width = np.diff(cuts, prepend=0.0)
    return float(width[np.abs(at[0] - at[1]) > near_s].sum())
