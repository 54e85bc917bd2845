"""Content of each dump of a stream: the variables, and the ranks' shares of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
import numpy.typing as npt

from understudy.contracts.workload import (
    EVEN,
    MAX_RUNS,
    Decomposition,
    Dump,
    Repeat,
    Variable,
    runs_at_most,
)
from understudy.inference.calls.interleaved_columns import Key, Strands, interleaved, several
from understudy.inference.calls.transfers import Named, Piece, Tally, pieces, told
from understudy.inference.steps import pace, skews
from understudy.inference.streams import scratch_dumps
from understudy.inference.streams.file_series import Cell, bin_edges
from understudy.inference.streams.stream_grouping import MAX_FILES, Draft

STREAM_RUNS = 8192  # runs of unequal ranks in all the dumps of a stream, about
MIN_RUNS = 64  # runs that a variable may have even so
LIBRARIES = ("hdf5", "mpiio")  # one call of which moves many runs of bytes
AVERAGED = "Ranks of many sizes were averaged in blocks of equal ones with the same total."
UNTOLD = (
    "its ranks' parts of a file are not contiguous, by the calls of POSIX, but the log does not "
    "tell which bytes they are: contiguous ones are described"
)
JOINED = "HDF5 made many calls of its calls, one behind the other; those of the replica are apart"
ASSUMED = "that the runs of all ranks alternate in each row of a file is assumed"
TYPES = {1: "byte", 2: "i16", 4: "f32", 8: "f64"}


@dataclass(frozen=True, slots=True)
class Defaults:
    """Defaults for the variables of a stream."""

    transfer_bytes: int
    collective: bool


@dataclass(slots=True)
class Dumps:
    """Makes the dumps of a stream from its draft."""

    draft: Draft
    defaults: Defaults
    ranks: int
    runtime_s: float
    strands: Mapping[Key, Strands]
    named: Named  # sizes of the calls of all its files
    averaged: bool = False  # ranks of many sizes were, see AVERAGED
    remarks: set[str] = field(default_factory=set)
    how: str = ""  # grids were found

    def all(self) -> tuple[Dump, ...]:
        """The dumps, in their order."""
        cells = [c for s in self.draft.series for d in s.dumps for c in d.cells.values()]
        limit = max(MIN_RUNS, min(MAX_RUNS, STREAM_RUNS // len(cells)))
        calls = (tally for c in cells for tally in c.tallies)
        self.named = told(self.named, calls)
        return tuple(self._dump(k, limit) for k in range(self.draft.dumps))

    def _dump(self, k: int, limit: int) -> Dump:
        draft = self.draft
        start_s = draft.start_s(k)
        duration_s = round(max(0.0, draft.end_s(k) - start_s), 6)
        compute_s = round(pace.compute_s(draft, k, self.ranks, self.runtime_s), 6)
        if draft.scratch_dumps:
            return Dump(
                time_s=round(start_s, 6),
                duration_s=duration_s,
                compute_s=compute_s,
                variables=scratch_dumps.variables(draft.scratch_dumps[k], draft.shares),
                continues=draft.scratch_dumps[k].continues,
            )
        files: dict[tuple[int, tuple[int, ...]], list[list[Variable]]] = {}
        for n, series in enumerate(draft.series):
            cells = series.dumps[k].cells
            for (item, _), cell in sorted(
                cells.items(), key=lambda c: (c[0][0], c[1].start_s, c[0][1])
            ):
                parts = files.setdefault((n, item), [])
                file = (len(files) - 1) % MAX_FILES
                parts += self._variables(cell, file, limit)
        variables = [v for parts in files.values() for v in _by_size(parts)]
        facts = [s.dumps[k] for s in draft.series]
        payload = sum(v.bytes for v in variables)
        extent = sum(f.extent for f in facts)
        repeat = None
        if facts[0].count > 1:
            repeat = Repeat(count=facts[0].count, period_s=round(facts[0].period_s, 9))
        return Dump(
            time_s=round(start_s, 6),
            duration_s=duration_s,
            compute_s=compute_s,
            overhead_bytes=extent - payload if extent else None,
            variables=tuple(_named(variables)),
            repeat=repeat,
            skew=skews.of_dump(draft, k, limit),
        )

    def _variables(self, cell: Cell, file: int, limit: int) -> Iterable[list[Variable]]:
        """The variables of what one record tells of all ranks, and of what each rank's tells."""
        if cell.shared_bytes:
            shared = np.array([cell.shared_bytes])
            block = self.draft.block
            yield self._cut(shared, cell.shared_calls, cell, file, limit, block)
        if cell.rank_bytes is not None and cell.rank_bytes.any():
            yield self._cut(cell.rank_bytes, cell.rank_calls, cell, file, limit)

    def _cut(
        self,
        moved: npt.NDArray[np.int64],
        calls: Tally,
        cell: Cell,
        file: int,
        limit: int,
        block: int = 0,
    ) -> list[Variable]:
        """The variables of bytes and calls by bins of ranks, with at most `limit` runs of unequal
        ranks; `block` is that in which a file is dealt, 0 for none."""
        ranks = np.diff(bin_edges(self.ranks, len(moved)))
        element = 1 if np.any(moved % cell.element) else cell.element
        if 1 < len(moved) < self.ranks:
            self.averaged = True
        if np.count_nonzero(np.diff(moved)) >= limit:
            self.averaged = True
            first = bin_edges(len(moved), limit // 4)[:-1]  # each becomes four runs at most
            calls = calls.blocks(first) if calls.bins == len(moved) else calls
            moved, ranks = np.add.reduceat(moved, first), np.add.reduceat(ranks, first)
        strands = self._strands_of(cell)
        parts = pieces(
            moved,
            ranks,
            calls,
            element=element,
            even=cell.even,
            transfer_bytes=self.defaults.transfer_bytes,
            collective=self.defaults.collective,
            named={} if strands is not None and strands.runs else self.named,
        )
        return [
            _variable(part, rule or _rule(part, block, self.ranks), file, self.defaults)
            for part, rule in self._interleaved(parts, strands)
        ]

    def _strands_of(self, cell: Cell) -> Strands | None:
        """The runs of bytes that a library made of the calls on a file of all ranks."""
        if len(self.draft.spans) > 1 or self.draft.method not in LIBRARIES:
            return None
        return self.strands.get((cell.file, self.draft.write))

    def _interleaved(
        self, parts: Sequence[Piece], strands: Strands | None
    ) -> Iterable[tuple[Piece, Decomposition | None]]:
        """The parts, those whose runs are known as grids."""
        if strands is None:
            return [(part, None) for part in parts]
        placed: list[tuple[Piece, Decomposition | None]] = [(part, None) for part in parts]
        if strands.runs:
            placed = list(interleaved(parts, strands, self.ranks, self.defaults.transfer_bytes))
        if any(rule is not None and rule.rule == "grid" for _, rule in placed):
            verb = "WRITE" if self.draft.write else "READ"
            self.how = f"sizes of calls by POSIX_SIZE_{verb}_*, which add up to the bytes moved"
            if strands.across:
                self.how += "; POSIX_STRIDE1_STRIDE, the runs of other ranks"
            else:
                self.remarks.add(JOINED if strands.joined else ASSUMED)
        elif not strands.joined and several(parts, strands, self.ranks):
            self.remarks.add(UNTOLD)
        return placed


def _rule(piece: Piece, block: int, ranks: int) -> Decomposition:
    """Rows of blocks of ranks as runs, or dealt in blocks of so many bytes."""
    if len(piece.rows) == 1:
        row = piece.element * piece.row_elements
        dealt = block and block % row == 0 and int(piece.rows[0]) * row >= 2 * ranks * block
        return Decomposition(rule="cyclic", block=block // row) if dealt else EVEN
    low, extra = np.divmod(piece.rows, piece.ranks)
    pairs = np.column_stack([extra, low + 1, piece.ranks - extra, low]).reshape(-1, 2)
    some: npt.NDArray[np.int64] = pairs[pairs[:, 0] > 0]
    begins = np.flatnonzero(np.diff(some[:, 1], prepend=some[0, 1] - 1))
    merged = np.column_stack([np.add.reduceat(some[:, 0], begins), some[begins, 1]])
    return runs_at_most(map(tuple, merged.tolist()))


def _variable(piece: Piece, rule: Decomposition, file: int, defaults: Defaults) -> Variable:
    rows, transfer_bytes = int(piece.rows.sum()), piece.transfer_bytes
    return Variable(
        name="v",
        type=TYPES[piece.element],
        shape=(rows, piece.row_elements) if piece.row_elements > 1 else (rows,),
        decomposition=rule,
        file=file,
        transfer_bytes=None if transfer_bytes == defaults.transfer_bytes else transfer_bytes,
        collective=None if piece.collective == defaults.collective else piece.collective,
    )


def _by_size(parts: Sequence[list[Variable]]) -> Iterable[Variable]:
    """The parts of a file by the size of their calls, the main ones last: what is alike in many
    parts then stands together."""
    for left in range(max(map(len, parts), default=0), 0, -1):
        yield from (part[-left] for part in parts if len(part) >= left)


def _named(variables: list[Variable]) -> Iterable[Variable]:
    """Names v0, v1, …; neighbours that are alike become one entry with a count."""
    for k, (alike, group) in enumerate(groupby(variables)):
        yield replace(alike, name=f"v{k}", count=sum(1 for _ in group))
