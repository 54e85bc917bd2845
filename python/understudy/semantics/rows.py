"""The counters of floods: a file for each row, opened and closed by itself."""

from collections.abc import Mapping

import numpy as np

from understudy.semantics.counters import RECORDS
from understudy.semantics.flushes import Written
from understudy.semantics.pieces import Cut, Whole
from understudy.semantics.program import Body, Files, Move, Open, Sync
from understudy.semantics.sums import PAGE, Sums, directly, variables_of


def count_files(sums: Sums, files: Files, passes: int) -> None:
    """A file for each row, opened and closed by itsums."""
    opens = next(i for i in files.body if isinstance(i, Open))
    syncs = any(isinstance(i, Sync) for i in files.body)
    for move in files.body:
        if not isinstance(move, Move):
            continue
        variable = move.variable
        block = sums.segments.block(variable, False)
        rows = block.size // (variable.row_bytes // variable.count)
        number = passes * variable.count * int((rows * sums.segments.counts).sum())
        if number == 0:
            continue
        sums.sums[RECORDS] += number
        _count_opens(sums, opens, number, syncs)
        cuts = block.cuts(move.call_bytes(sums.method), True)
        if move.flushes(sums.method):
            times = variable.count * rows
            known = np.zeros(len(rows), np.bool_)
            sums.note_written(0, Written(move, times, cuts, known))
        if files.order.rule != "consecutive" and move.flushes(sums.method) and len(files.body) > 3:
            sums.tally.decline("FSYNCS", "FLUSHES", "SYNCS")
        _count_rows(sums, move, next(c for c in cuts if c is not None), number)


def rows_of(sums: Sums, body: Body) -> Whole:
    """Files of each rank in a dump."""
    rows = sums.none
    for variable in variables_of(iter([body])):
        size = sums.segments.block(variable, False).size
        rows = rows + size // (variable.row_bytes // variable.count) * variable.count
    return rows


def _count_opens(sums: Sums, opens: Open, number: int, syncs: bool) -> None:
    names = {
        "posix": ["POSIX_OPENS"],
        "stdio": ["STDIO_OPENS"],
        "mpiio": ["MPIIO_INDEP_OPENS"],
        "hdf5": ["H5F_OPENS", "MPIIO_INDEP_OPENS"],
    }[sums.method]
    for name in names:
        sums.sums[name] += number
    if sums.method == "posix":
        more = opens.direct + (opens.write_through and sums.writes)
        sums.sums["POSIX_OPENS"] += more * number
    if syncs:
        name = {
            "posix": "POSIX_FSYNCS",
            "stdio": "STDIO_FLUSHES",
            "mpiio": "MPIIO_SYNCS",
            "hdf5": "H5F_FLUSHES",
        }[sums.method]
        sums.sums[name] += number
        if sums.method == "stdio":
            sums.taken.add(sums.none == 0)


def _count_rows(sums: Sums, move: Move, cut: Cut, number: int) -> None:
    """The calls of so many files with one row each."""
    way = "WRITE" if move.writes else "READ"
    row = sum(size * times for size, times in cut.sizes)
    last = np.full(len(sums.none), row - 1)
    sizes: Mapping[int, int] = dict(cut.sizes)
    match sums.method:
        case "posix" | "stdio":
            module = sums.method.upper()
            if sums.direct:
                if any(size % PAGE for size in sizes) and cut.transfers > 1:
                    sums.decline_split(way)
                sizes = directly(sizes)
            calls = sum(sizes.values())
            sums.sums[f"{module}_{way}S"] += number * calls
            sums.note_top(f"{module}_MAX_BYTE", way, 0, last)
            sums.note_bytes(module, way, number * row)
            if module == "POSIX":
                sums.note_sizes("POSIX_SIZE", way, sizes, number)
                sums.sums[f"POSIX_CONSEC_{way}S"] += number * (calls - 1)
                sums.sums[f"POSIX_SEQ_{way}S"] += number * (calls - 1)
        case "mpiio" | "hdf5":
            module = "MPIIO" if sums.method == "mpiio" else "H5D"
            kind = "INDEP_" if module == "MPIIO" else ""
            sums.sums[f"{module}_{kind}{way}S"] += number * cut.transfers
            sums.note_bytes(module, way, number * row)
            sums.note_sizes(f"{module}_SIZE", way, sizes, number)
            if module == "H5D":
                sums.sums["H5D_OPENS"] += number
