"""Records that hold bytes of other files.

A descriptor that is closed out of Darshan's sight and given to the next file makes Darshan book
the writes of that one to the first: the record then lasts into the time of a later file of its
kind.
Where a trace shows which writes these are, they go to the file whose time it is.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from understudy.inference import constants as levels
from understudy.inference.names import NAMELESS
from understudy.inference.table import ALL_RANKS, METHODS, Rows
from understudy.semantics.counters import BIN_BYTES, BINS

# Share of the files of a kind above which that they last into others is their way.
FEW = levels.THIRD
MARGIN_S = levels.PAUSE_S  # that a write may last into the next file's time
PAUSE = levels.HALF  # share of the time between two files that is without writes of the first

Pair = tuple[int, int]  # file and rank
Traces = dict[Pair, Rows]  # traced writes in order of start: offset, length, start_s, end_s


def restored(
    rows: Rows, traced: Callable[[set[Pair]], Traces], remark: Callable[[str, int, int], None]
) -> Rows:
    """The accesses, with writes that a trace shows to be of a later file moved there.

    `traced` gives the traces of some files of some ranks; `remark` takes a rule (`traced`
    or, without a trace, `mixed`), a number of files and of bytes.
    """
    found = _lasting(rows)
    if not found:
        return rows
    traces = traced({(int(rows["file"][n]), int(rows["rank"][n])) for n in found})
    rows = rows.copy()
    more = []
    for n, later in found.items():
        trace = traces.get((int(rows["file"][n]), int(rows["rank"][n])))
        if trace is None:
            remark("mixed", 1, int(rows["bytes"][n]))
            continue
        own, *others = _parts(rows, n, later, trace)
        for part in others:
            target = later[_nearest(rows[later], part)]
            row = _moved(rows, n, target, own, part)
            if row is not None:
                more.append(row)
                remark("traced", 1, int(row["bytes"][0]))
        if others:
            rows["end_s"][n] = max(float(own["end_s"].max()), float(rows["start_s"][n]))
    return np.concatenate([rows, *more]) if more else rows


def _lasting(rows: Rows) -> dict[int, list[int]]:
    """Writes that last into the time of later files of the same kind and rank, where few do so:
    the later ones, by index."""
    mine = np.flatnonzero(
        rows["write"]
        & (rows["method"] == METHODS.index("posix"))
        & (rows["rank"] != ALL_RANKS)
        & (rows["template"] != NAMELESS)
    )
    kind = rows["template"][mine].astype(np.int64) << 32 | rows["rank"][mine]
    start_s = rows["start_s"][mine]
    rising = (kind[1:] > kind[:-1]) | (kind[1:] == kind[:-1]) & (start_s[1:] >= start_s[:-1])
    if not rising.all():
        order = np.lexsort((start_s, kind))
        mine, kind = mine[order], kind[order]
    same = kind[1:] == kind[:-1]
    late = same & (rows["end_s"][mine[:-1]] > rows["start_s"][mine[1:]] + MARGIN_S)
    found: dict[int, list[int]] = {}
    if not late.any():
        return found
    edges = np.concatenate([[0], np.flatnonzero(~same) + 1, [len(mine)]])
    of_late = np.searchsorted(edges, np.flatnonzero(late), "right") - 1
    for n in np.unique(of_late).tolist():
        begin, end = int(edges[n]), int(edges[n + 1])
        places = np.flatnonzero(late[begin : end - 1])
        if end - begin >= 1 / FEW and len(places) <= FEW * (end - begin):
            for k in places.tolist():
                found[int(mine[begin + k])] = mine[begin + k + 1 : end].tolist()
    return found


def _parts(rows: Rows, n: int, later: list[int], trace: Rows) -> list[Rows]:
    """The traced writes of a record: its own, and others after long pauses. A file that is written
    on without them is one."""
    begins = np.concatenate([rows["start_s"][[n]], rows["start_s"][later]])
    usual_s = float(np.median(np.diff(begins)))
    pauses = trace["start_s"][1:] - np.maximum.accumulate(trace["end_s"])[:-1]
    return np.split(trace, np.flatnonzero(pauses > PAUSE * usual_s) + 1)


def _nearest(rows: Rows, part: Rows) -> int:
    """Which of the rows was used when these writes were made, or the shortest time before or
    after; of several, the one that began nearest."""
    first_s, last_s = float(part["start_s"].min()), float(part["end_s"].max())
    apart_s = np.maximum(0.0, np.maximum(rows["start_s"] - last_s, first_s - rows["end_s"]))
    near = np.lexsort((np.abs(rows["start_s"] - first_s), apart_s))
    return int(near[0])


def _moved(rows: Rows, n: int, target: int, own: Rows, part: Rows) -> Rows | None:
    """A row of the target's file with part of the writes of row n, which loses them; None if there
    is nothing to move."""
    size = int(part["length"].sum())
    if not 0 < size < rows["bytes"][n]:
        return None
    made = rows[[n]]
    for name in ("file", "template", "numbers"):
        made[name] = rows[name][target]
    bins = np.bincount(np.searchsorted(BIN_BYTES, part["length"]), minlength=len(BINS))
    calls = np.minimum(bins, rows["calls"][n])
    made["bytes"], made["calls"], made["corrected"] = size, calls, True
    made["start_s"], made["end_s"] = part["start_s"].min(), part["end_s"].max()
    made["extent"] = made["points"] = 0
    rows["bytes"][n] -= size
    rows["calls"][n] -= calls
    rows["corrected"][n] = True
    # Darshan goes on counting offsets in the file that it takes the descriptor for.
    top, base = int((own["offset"] + own["length"]).max()), int(part["offset"].min())
    alone, sized = _extent(rows, n)
    if alone:
        rows["extent"][sized] = np.minimum(rows["extent"][sized], top)
    _, sized = _extent(rows, target)
    end = int((part["offset"] + part["length"]).max())
    whole = np.maximum(rows["extent"][sized], end)
    rows["extent"][sized] = rows["extent"][sized] + size if base >= top else whole
    return made


def _extent(rows: Rows, n: int) -> tuple[bool, npt.NDArray[np.intp]]:
    """Whether row n is the only one that writes its file, and which row has the file's size."""
    mine = np.flatnonzero(rows["write"] & (rows["file"] == rows["file"][n]))
    return len(mine) == 1, mine[rows["extent"][mine] > 0]
