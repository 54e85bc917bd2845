"""From series to the streams of a workload.

Series whose files make up one dump become one stream, a file that stays open becomes a stream of
states, small inputs are put together, and every number gets its provenance.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
import numpy.typing as npt

from understudy.series import BURST, Cell, DumpFacts, Series, bin_edges
from understudy.transfers import MAX_PIECES, Piece, Tally, pieces
from understudy.workload import (
    EVEN,
    MAX_RUNS,
    Decomposition,
    Dump,
    Provenance,
    Stream,
    Variable,
    runs_at_most,
)

MAX_FILES = 1024
STREAM_RUNS = 8192  # runs of unequal ranks in all the dumps of a stream, about
LEAST_RUNS = 64  # runs that a variable may have even so
SMALL = 0.01  # share of all bytes below which single inputs are put together
TYPES = {1: "byte", 2: "i16", 4: "f32", 8: "f64"}
METHOD = {"posix": "posix", "stdio": "posix", "mpiio": "mpiio", "hdf5": "hdf5"}


@dataclass(slots=True)
class Draft:
    """A stream in the making: series whose dumps belong together."""

    series: list[Series]
    files: str = "new"
    timing: str = ""  # how the states of a file that stays open were told apart
    assumed: bool = False  # that was by assumption
    folded: frozenset[bytes] = frozenset()  # templates of the series that were put together

    @property
    def templates(self) -> frozenset[bytes]:
        """Templates of the names of all its files."""
        return self.folded or frozenset(s.template for s in self.series)

    @property
    def write(self) -> bool:
        return self.series[0].write

    @property
    def method(self) -> str:
        return METHOD[max(self.series, key=lambda s: s.bytes).method]

    @property
    def spans(self) -> tuple[tuple[int, int], ...]:
        return max((s.rank_spans for s in self.series), key=len)

    @property
    def bytes(self) -> int:
        return sum(s.bytes for s in self.series)

    @property
    def dumps(self) -> int:
        return len(self.series[0].dumps)

    def start_s(self, dump: int) -> float:
        return min(s.dumps[dump].start_s for s in self.series)

    def end_s(self, dump: int) -> float:
        return max(s.dumps[dump].end_s for s in self.series)


@dataclass(slots=True)
class Composer:
    """Makes streams and their provenance for a number of ranks."""

    ranks: int
    runtime_s: float
    keep_names: bool = False
    starts: Mapping[str, str] = field(default_factory=dict)  # counter of a module's first write
    provenance: list[Provenance] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    templates: list[frozenset[bytes]] = field(default_factory=list)  # of each stream's files

    def streams(
        self, series: Sequence[Series], split: Callable[[Sequence[Draft]], None]
    ) -> tuple[Stream, ...]:
        """The streams; `split` finds the states of files that stay open."""
        drafts = merge(series, BURST * self.runtime_s)
        drafts = self._fold_small(drafts)
        split(drafts)
        drafts.sort(key=lambda d: (d.start_s(0), -d.bytes))
        named: dict[str, int] = {}
        largest = max((d.bytes / d.dumps for d in drafts if d.write), default=0)
        made: list[Stream] = []
        for draft in drafts:
            role = self._role(draft, drafts, largest)
            number = named.setdefault(role, 0)
            named[role] += 1
            made.append(self._stream(draft, f"{role}-{number}", role, len(made)))
        return tuple(made)

    def _role(self, draft: Draft, drafts: Sequence[Draft], largest: float) -> str:
        if draft.write:
            small = draft.bytes / draft.dumps < SMALL * largest
            if draft.files == "append":
                return "output" if small else "visualization"
            if draft.dumps == 1:
                return "output"
            return "visualization" if small else "checkpoint"
        written = {s.template for d in drafts if d.write for s in d.series if s.template}
        again = any(s.template in written for s in draft.series)
        alike = 0.1 * largest < draft.bytes / draft.dumps < 10 * largest
        return "restart" if again or alike else "input"

    def _fold_small(self, drafts: list[Draft]) -> list[Draft]:
        """Put single small inputs into one stream, so that the streams that matter can be seen."""
        total = sum(d.bytes for d in drafts)
        small = [d for d in drafts if not d.write and d.dumps == 1 and d.bytes < SMALL * total]
        small.sort(key=lambda d: d.start_s(0))
        kept = [d for d in drafts if d not in small]
        by_layout: dict[tuple[int, str], list[Draft]] = {}
        for draft in small:
            by_layout.setdefault((len(draft.spans), draft.method), []).append(draft)
        for group in by_layout.values():
            bursts: list[list[Series]] = []
            for draft in group:
                last = bursts[-1] if bursts else None
                gap = draft.start_s(0) - max(s.dumps[0].end_s for s in last) if last else np.inf
                room = last is not None and sum(map(_files, last)) < MAX_FILES // 2
                if last is None or gap > BURST * self.runtime_s or not room:
                    bursts.append(list(draft.series))
                else:
                    last.extend(draft.series)
            if len(group) > 1:
                self.notes.append(
                    f"{len(group)} small inputs, each read once, were put together in one stream."
                )
            kept.append(_chain(bursts))
        return kept

    def _stream(self, draft: Draft, name: str, role: str, index: int) -> Stream:
        layout, groups = self._layout(draft, name)
        main = max(draft.series, key=lambda s: s.bytes)
        usual = _Usual(main.transfer_bytes, main.collective and draft.method != "posix")
        at = f"/streams/{index}"
        dumps = tuple(self._dump(draft, k, usual) for k in range(draft.dumps))
        self._prove(draft, at, main, any(v.transfer_bytes for d in dumps for v in d.variables))
        self.templates.append(draft.templates)
        label = main.template.replace(b"\x00", b"*").decode("utf-8", "replace")
        return Stream(
            name=name,
            label=label if self.keep_names else "",
            role=role,
            operation="write" if draft.write else "read",
            files=draft.files,
            layout=layout,
            groups=groups,
            method=draft.method,
            transfer_bytes=usual.transfer_bytes,
            collective=usual.collective,
            sync=any(s.synced for s in draft.series) and draft.write,
            dumps=dumps,
        )

    def _layout(self, draft: Draft, name: str) -> tuple[str, int | None]:
        spans, ranks = draft.spans, self.ranks
        if len(spans) < 2:
            return "shared", None
        count = len(spans)
        inside = all(
            first * count // ranks == last * count // ranks == k
            for k, (first, last) in enumerate(spans)
        )
        single = all(first == last for first, last in spans)
        if count == ranks or (single and not inside):
            return "file-per-process", None
        if not inside:
            self.notes.append(
                f"{name}: {count} groups are not of consecutive ranks; that they are is assumed."
            )
        return "grouped", count

    def _dump(self, draft: Draft, k: int, usual: "_Usual") -> Dump:
        files: dict[tuple[int, tuple[int, ...]], list[list[Variable]]] = {}
        cells_in_all = sum(len(d.cells) for s in draft.series for d in s.dumps)
        most = max(LEAST_RUNS, min(MAX_RUNS, STREAM_RUNS // cells_in_all))
        for n, series in enumerate(draft.series):
            cells = series.dumps[k].cells
            for (item, _), cell in sorted(
                cells.items(), key=lambda c: (c[0][0], c[1].start_s, c[0][1])
            ):
                parts = files.setdefault((n, item), [])
                file = (len(files) - 1) % MAX_FILES
                parts += self._variables(cell, file, most, usual)
        variables = [v for parts in files.values() for v in _by_size(parts)]
        facts = [s.dumps[k] for s in draft.series]
        payload = sum(v.bytes for v in variables)
        extent = sum(f.extent for f in facts)
        start_s = draft.start_s(k)
        return Dump(
            time_s=round(start_s, 6),
            duration_s=round(max(0.0, draft.end_s(k) - start_s), 6),
            overhead_bytes=extent - payload if extent else None,
            variables=tuple(_named(variables)),
        )

    def _variables(
        self, cell: Cell, file: int, most: int, usual: "_Usual"
    ) -> Iterable[list[Variable]]:
        """The variables of what one record tells of all ranks, and of what each rank's tells."""
        if cell.shared_bytes:
            shared = np.array([cell.shared_bytes])
            yield self._cut(shared, cell.shared_calls, cell, file, most, usual)
        if cell.rank_bytes is not None and cell.rank_bytes.any():
            yield self._cut(cell.rank_bytes, cell.rank_calls, cell, file, most, usual)

    def _cut(
        self, moved: npt.NDArray[np.int64], calls: Tally, cell: Cell, file: int, most: int,
        usual: "_Usual",
    ) -> list[Variable]:  # fmt: skip
        ranks = np.diff(bin_edges(self.ranks, len(moved)))
        element = 1 if np.any(moved % cell.element) else cell.element
        if 1 < len(moved) < self.ranks:
            self._note_blocks()
        if np.count_nonzero(np.diff(moved)) >= most:
            self._note_blocks()
            first = bin_edges(len(moved), most // 4)[:-1]  # each becomes four runs at most
            calls = calls.blocks(first) if calls.bins == len(moved) else calls
            moved, ranks = np.add.reduceat(moved, first), np.add.reduceat(ranks, first)
        made = pieces(
            moved, ranks, calls, element=element, even=cell.even,
            transfer_bytes=usual.transfer_bytes, collective=usual.collective,
        )  # fmt: skip
        return [_variable(piece, _rule(piece), file, usual) for piece in made]

    def _note_blocks(self) -> None:
        note = "Ranks of many sizes were put into blocks of equal ones with the same total."
        if note not in self.notes:
            self.notes.append(note)

    def _prove(self, draft: Draft, at: str, main: Series, sized: bool) -> None:
        module = {"posix": "POSIX", "stdio": "STDIO", "mpiio": "MPIIO", "hdf5": "H5D"}[main.method]
        verb, past = ("WRITE", "WRITTEN") if draft.write else ("READ", "READ")
        size = f"{module}_BYTES_{past}"

        def entry(path: str, origin: str, how: str) -> None:
            self.provenance.append(Provenance(path=f"{at}{path}", origin=origin, how=how))

        how = f"{size} of the files of each dump, in the order of time"
        if any(s.mended for s in draft.series):
            entry("/dumps", "derived", f"{how}, mended by the rules that the notes count")
        else:
            entry("/dumps", "read", how)
        first = f"{module}_F_{verb}_START_TIMESTAMP"
        if draft.write:
            first = self.starts.get(module, first)
        last = f"{module}_F_{verb}_END_TIMESTAMP"
        if draft.timing:
            entry("/dumps", "assumed" if draft.assumed else "derived", draft.timing)
        else:
            how = f"least {first}; of the opening where it is 0, which means never"
            entry("/dumps/*/time_s", "read", how)
            entry("/dumps/*/duration_s", "derived", f"greatest {last} minus least {first}")
        extent = (
            "POSIX_MAX_BYTE_WRITTEN + 1"
            if main.method != "stdio"
            else "STDIO_MAX_BYTE_WRITTEN + 1"
        )
        entry("/dumps/*/overhead_bytes", "derived", f"{extent} minus the payload")
        entry("/dumps/*/variables/*/count", "derived", "neighbours alike in size are one entry")
        shared = [
            c for s in draft.series for d in s.dumps for c in d.cells.values() if c.shared_bytes
        ]
        if shared and all(c.even for c in shared):
            how = f"all ranks moved the same: {module}_F_VARIANCE_RANK_BYTES is 0"
            entry("/dumps/*/variables/*/decomposition", "derived", how)
        elif shared:
            how = "a shared file has no bytes per rank in the log: even is assumed"
            entry("/dumps/*/variables/*/decomposition", "assumed", how)
        else:
            how = f"{size} of each rank, or its access sizes where one record stands for all ranks"
            entry("/dumps/*/variables/*/decomposition", "derived", how)
        how = (
            "access size that moved most bytes"
            if main.method != "stdio"
            else f"{size} / STDIO_{verb}S"
        )
        entry("/transfer_bytes", "derived", f"{how}, at most 64 MiB")
        if sized:
            how = (
                f"{size} over {module}_{verb}S, all calls alike"
                if main.method == "stdio"
                else f"{module}_SIZE_{verb}_* and {module}_ACCESS*_ACCESS and _COUNT: calls of "
                f"each size, the largest of which are the collective ones; at most {MAX_PIECES} "
                "sizes for a file of a dump"
            )
            entry("/dumps/*/variables/*/transfer_bytes", "derived", how)
        entry("/content", "assumed", "random bytes: a log does not hold what was written")
        if len(draft.spans) > 1:
            entry("/groups", "derived", "files whose ranks are disjoint")


@dataclass(frozen=True, slots=True)
class _Usual:
    """What the variables of a stream have in common unless they say otherwise."""

    transfer_bytes: int
    collective: bool


def _rule(piece: Piece) -> Decomposition:
    """Rows of blocks of ranks as runs."""
    if len(piece.rows) == 1:
        return EVEN
    low, extra = np.divmod(piece.rows, piece.ranks)
    pairs = np.column_stack([extra, low + 1, piece.ranks - extra, low]).reshape(-1, 2)
    return runs_at_most(map(tuple, pairs.tolist()))


def _variable(piece: Piece, rule: Decomposition, file: int, usual: _Usual) -> Variable:
    rows, transfer_bytes = int(piece.rows.sum()), piece.transfer_bytes
    return Variable(
        name="v",
        type=TYPES[piece.element],
        shape=(rows, piece.row_elements) if piece.row_elements > 1 else (rows,),
        decomposition=rule,
        file=file,
        transfer_bytes=None if transfer_bytes == usual.transfer_bytes else transfer_bytes,
        collective=None if piece.collective == usual.collective else piece.collective,
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


def _files(series: Series) -> int:
    return len({item for d in series.dumps for item, _ in d.cells})


def _chain(bursts: list[list[Series]]) -> Draft:
    """One draft whose dumps are the bursts: the facts of each burst's series in one dump."""
    first = bursts[0][0]
    dumps = []
    for burst in bursts:
        facts = DumpFacts()
        for n, series in enumerate(burst):
            dump = series.dumps[0]
            for (item, part), cell in dump.cells.items():
                facts.cells[((n, *item), part)] = cell
            facts.start_s = min(facts.start_s, dump.start_s)
            facts.end_s = max(facts.end_s, dump.end_s)
        dumps.append(facts)
    whole = Series(
        template=b"", stem=b"", key=tuple((k,) for k in range(len(dumps))), fixed=(),
        write=first.write, method=first.method, collective=first.collective, synced=False,
        transfer_bytes=max(s.transfer_bytes for b in bursts for s in b),
        mended=any(s.mended for b in bursts for s in b),
        rank_spans=first.rank_spans, dumps=dumps,
    )  # fmt: skip
    return Draft(series=[whole], folded=frozenset(s.template for b in bursts for s in b))


# -- which series are one stream ------------------------------------------------------------------


def merge(series: Sequence[Series], burst_s: float) -> list[Draft]:
    """Series whose files make up the same dumps become one draft; single dumps only where they are
    within `burst_s` of each other."""
    drafts: list[Draft] = []
    order = sorted(series, key=lambda s: (-len(s.rank_spans), -s.bytes))
    for one in order:
        home = next((d for d in drafts if _belongs(one, d, burst_s)), None)
        if home is None:
            drafts.append(Draft(series=[one]))
        else:
            home.series.append(one)
    return drafts


def _belongs(one: Series, draft: Draft, burst_s: float) -> bool:
    head = draft.series[0]
    same = (
        one.write == head.write
        and METHOD[one.method] == METHOD[head.method]
        and one.stem == head.stem
        and one.fixed == head.fixed
        and one.key == head.key
        and b"\x00" in one.template
        and (one.rank_spans == draft.spans or _single_rank(one))
        and sum(map(_files, draft.series)) + _files(one) <= MAX_FILES
    )
    if not same:
        return False
    starts = [min(draft.start_s(k), d.start_s) for k, d in enumerate(one.dumps)]
    latest = [max(draft.start_s(k), d.start_s) for k, d in enumerate(one.dumps)]
    if len(starts) == 1:
        return latest[0] - min(draft.end_s(0), one.dumps[0].end_s) <= burst_s
    return all(a < b for a, b in zip(latest, starts[1:], strict=False))


def _single_rank(series: Series) -> bool:
    """One rank alone makes all files of the series."""
    who: set[int] = set()
    for dump in series.dumps:
        for cell in dump.cells.values():
            if cell.shared_bytes or cell.rank_bytes is None:
                return False
            who.update(np.flatnonzero(cell.rank_bytes).tolist())
    return len(who) == 1
