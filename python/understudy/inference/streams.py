"""From series to the streams of a workload.

Series whose files form one dump become one stream, a file that stays open becomes a stream of time
steps, small inputs are combined, and every number gets its provenance.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, groupby

import numpy as np
import numpy.typing as npt

from understudy.contracts.workload import (
    EVEN,
    MAX_RUNS,
    Decomposition,
    Dump,
    Operation,
    Provenance,
    Repeat,
    Stream,
    Variable,
    runs_at_most,
)
from understudy.inference import flood_streams, orders, pace, turns
from understudy.inference.calls import BY_RUNS
from understudy.inference.drafts import (
    MAX_FILES,
    NEAR_S,
    Draft,
    file_count,
    gather,
    merge,
    two_interfaces,
    wrote,
)
from understudy.inference.floods import Flood
from understudy.inference.metadata import Metadata, of_idle, prove_idle, with_flushes
from understudy.inference.operations import Idle
from understudy.inference.pauses import Cuts, cut, pauses_of
from understudy.inference.rewrites import in_turn, unravel
from understudy.inference.role_of_stream import Roles
from understudy.inference.series import Cell, DumpFacts, Series, bin_edges
from understudy.inference.table import BURST
from understudy.inference.transfers import MAX_PIECES, Piece, Tally, pieces
from understudy.semantics.rules import can_extend, can_read

STREAM_RUNS = 8192  # runs of unequal ranks in all the dumps of a stream, about
MIN_RUNS = 64  # runs that a variable may have even so
UNSEEN = (
    "Darshan records no mkdir and unlink, and no stat of programs built with glibc 2.33 or later: "
    "the application may have made more operations on its files than are described."
)
SMALL = 0.01  # share of all bytes below which single inputs are put together
TYPES = {1: "byte", 2: "i16", 4: "f32", 8: "f64"}


@dataclass(slots=True)
class Composer:
    """Makes streams and their provenance for a number of ranks."""

    ranks: int
    runtime_s: float
    keep_names: bool = False
    starts: Mapping[str, str] = field(default_factory=dict)  # counter of a module's first write
    floods: Sequence[tuple[bytes, Flood]] = ()  # with the templates of their names
    provenance: list[Provenance] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    templates: list[frozenset[bytes]] = field(default_factory=list)  # of each stream's files
    directories: set[bytes] = field(default_factory=set)  # that dumps make

    def streams(
        self,
        series: Sequence[Series],
        split: Callable[[Sequence[Draft]], None],
        idle: Idle | None = None,
    ) -> tuple[Stream, ...]:
        """The streams; `split` finds the time steps of files that stay open, `idle` has what was
        done to files that moved no byte."""
        drafts = merge(series, BURST * self.runtime_s)
        drafts = self._fold_small(drafts)
        drafts = unravel(drafts)
        for draft in drafts:
            orders.learn(draft, self.ranks)
        split(drafts)
        drafts = gather(in_turn(drafts), self.runtime_s)
        drafts.sort(key=lambda d: (d.start_s(0), -d.bytes))
        named: dict[str, int] = {}
        roles = Roles(drafts, self.ranks)
        metadata = Metadata(self.ranks)
        made: list[Stream] = []
        flushes: list[list[int]] = []
        twins = two_interfaces(drafts)
        where = {id(draft): k for k, draft in enumerate(drafts)}
        before: list[tuple[Draft, Stream]] = []
        for draft in drafts:
            others = twins.get(id(draft), [])
            role = roles.of(max([draft, *others], key=lambda d: d.bytes))
            number = named.setdefault(role.name, 0)
            named[role.name] += 1
            self.provenance.append(role.provenance(len(made)))
            stream = self._stream(draft, f"{role.name}-{number}", role.name, len(made))
            bases = [made[k] for d in others if (k := where[id(d)]) < len(made)]
            stream = self._extending(stream, bases, len(made))
            stream, base = self._reading(draft, stream, before, len(made))
            if base is not None:
                at = next(k for k, one in enumerate(made) if one is base)
                written = before[at][0]
                if not twins.get(id(written)) and metadata.in_one_open(written, base, draft):
                    base = made[at] = self._held_open(base, at)
                    before[at] = written, base
            made.append(stream)
            before.append((draft, stream))
            metadata.learn(draft, stream, base)
            flushes.append(orders.lacking(draft, stream, self.ranks))
        bursts = of_idle(idle, self.ranks, self.runtime_s) if idle is not None else []
        metadata.balance(made, bursts)
        made = list(metadata.streams(made))
        self.provenance += metadata.provenance(made)
        made = [with_flushes(s, n, self.ranks) for s, n in zip(made, flushes, strict=True)]
        for name, flood in self.floods:
            made += self._flood(name, flood, named, len(made), roles)
        for burst in bursts:
            if (alone := burst.stream(named, self.ranks)) is not None:
                self.provenance += prove_idle(f"/streams/{len(made)}", alone)
                self.templates.append(frozenset(idle.templates if idle else ()))
                made.append(alone)
                if UNSEEN not in self.notes:
                    self.notes.append(UNSEEN)
        return tuple(made)

    def _flood(
        self, template: bytes, flood: Flood, named: dict[str, int], index: int, roles: Roles
    ) -> list[Stream]:
        """The streams of a flood."""
        role = roles.of_flood(flood.write, len(flood.dumps))
        label = template.replace(b"\x00", b"*").decode("utf-8", "replace")
        names = (f"{role}-{n}" for n in count(named.get(role, 0)))
        made = list(flood_streams.streams_of(flood, names, role, label if self.keep_names else ""))
        named[role] = named.get(role, 0) + len(made)
        for n in range(index, index + len(made)):
            self.provenance += flood_streams.prove(f"/streams/{n}", flood)
            self.templates.append(frozenset({template}))
        first = made[0].name
        name = first if len(made) == 1 else f"{first} to {made[-1].name}"
        self.notes += flood_streams.notes_of(flood, name)
        return made

    def _extending(self, stream: Stream, bases: Sequence[Stream], index: int) -> Stream:
        """The stream, in the files of an earlier one of another interface if that is possible."""
        for base in bases:
            if _can_extend(stream, base):
                how = "files that both modules have, the other one first"
                self.provenance.append(
                    Provenance(path=f"/streams/{index}/extends", origin="derived", how=how)
                )
                return replace(stream, extends=base.name)
            self.notes.append(
                f"{stream.name}: its files are also those of {base.name}, through another "
                "interface; the replica gives it files of its own."
            )
        return stream

    def _reading(
        self, draft: Draft, stream: Stream, before: Sequence[tuple[Draft, Stream]], index: int
    ) -> tuple[Stream, Stream | None]:
        """The stream, of the files that an earlier one has written if that is possible, and that
        one."""
        if stream.operation != "read" or len(draft.series) != 1 or not draft.series[0].template:
            return stream, None
        own = replace(stream, files="update", names=1, reopen=None, own_directories=False)
        for written, base in before:
            if wrote(written, draft) and can_read(own, base):
                unread = base.method == "stdio" and base.ever_open
                if unread and any(base.open_at([e.time_s for e in own.expanded()])):
                    continue
                how = f"files that {base.name} has written before"
                self.provenance.append(
                    Provenance(path=f"/streams/{index}/reads", origin="derived", how=how)
                )
                return replace(own, reads=base.name), base
        if draft.turned:  # without the places
            own = replace(stream, dumps=tuple(map(turns.without_places, stream.dumps)))
            return own, None
        return stream, None

    def _held_open(self, stream: Stream, index: int) -> Stream:
        """The stream, with files that stay open for those that read them."""
        how = "as many opens in the log as for writing alone"
        self.provenance.append(
            Provenance(path=f"/streams/{index}/reopen", origin="derived", how=how)
        )
        return replace(stream, files="update", reopen=False)

    def _fold_small(self, drafts: list[Draft]) -> list[Draft]:
        """Put single small inputs into one stream, so that the streams that matter can be seen."""
        total = sum(d.bytes for d in drafts)
        written = {(s.template, d.method) for d in drafts if d.write for s in d.series}
        small = [
            d
            for d in drafts
            if not d.write
            and d.dumps == 1
            and d.bytes < SMALL * total
            and not any((s.template, d.method) in written for s in d.series)
        ]
        small.sort(key=lambda d: d.start_s(0))
        left = set(map(id, small))
        kept = [d for d in drafts if id(d) not in left]
        by_layout: dict[tuple[int, str], list[Draft]] = {}
        for draft in small:
            by_layout.setdefault((len(draft.spans), draft.method), []).append(draft)
        for group in by_layout.values():
            if len(group) == 1:
                kept += group
                continue
            bursts: list[list[Series]] = []
            begins = {0, *self._apart(group).at}
            for n, draft in enumerate(group):
                if n in begins or sum(map(file_count, bursts[-1])) >= MAX_FILES // 2:
                    bursts.append(list(draft.series))
                else:
                    bursts[-1].extend(draft.series)
            self.notes.append(
                f"{len(group)} small inputs, each read once, were combined into one stream."
            )
            kept.append(_chain(bursts))
        return kept

    def _apart(self, drafts: Sequence[Draft]) -> Cuts:
        """Which single dumps, in the order of their starts, are far from those before."""
        start_s = np.array([d.start_s(0) for d in drafts])
        end_s = np.array([d.end_s(0) for d in drafts])
        short_s = BURST * self.runtime_s
        return cut(
            pauses_of(start_s, end_s),
            np.array([d.bytes for d in drafts]),
            call_s=float(np.median(end_s - start_s)),
            few_s=short_s,
            least_s=min(NEAR_S, short_s),
        )

    def _stream(self, draft: Draft, name: str, role: str, index: int) -> Stream:
        layout, groups = self._layout(draft, name)
        flushed = orders.sync_bytes(draft) if draft.write else None
        sync = flushed is None and orders.flushed(draft)
        pace.doubt(draft, self.ranks, self.runtime_s)
        self.notes += [f"{name}: {remark}." for remark in draft.remarks]
        self._note_excess(draft, name)
        main = max(draft.series, key=lambda s: s.bytes)
        together = main.collective and draft.method not in BY_RUNS
        defaults = _Defaults(main.transfer_bytes, together)
        at = f"/streams/{index}"
        cells = sum(len(d.cells) for s in draft.series for d in s.dumps)
        limit = max(MIN_RUNS, min(MAX_RUNS, STREAM_RUNS // cells))
        directories = self._directories(draft)
        dumps = tuple(
            replace(self._dump(draft, k, limit, defaults), operations=directories)
            for k in range(draft.dumps)
        )
        self._prove(draft, at, main, any(v.transfer_bytes for d in dumps for v in d.variables))
        self.templates.append(draft.templates)
        if flushed is not None:
            how = "bytes over POSIX_FSYNCS + POSIX_FDSYNCS, of which there are several in a dump"
            self.provenance.append(
                Provenance(path=f"{at}/sync_bytes", origin="derived", how=how, confidence="likely")
            )
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
            transfer_bytes=defaults.transfer_bytes,
            collective=defaults.collective,
            sync=sync,
            dumps=dumps,
            names=draft.names,
            reopen=draft.reopen,
            removes=draft.removes,
            own_directories=layout != "shared" and _apart(draft),
            order=draft.order,
            pace=draft.pace,
            sync_bytes=flushed,
        )

    def _directories(self, draft: Draft) -> tuple[Operation, ...]:
        """Those that each dump makes: its number is in their names, and no stream before has
        made them."""
        if draft.files != "new" or not draft.write:
            return ()
        made: dict[bytes, bool] = {}  # whether each rank has its own
        for series in draft.series:
            parts = series.template.split(b"/")[:-1]
            for depth in range(1, len(parts) + 1):
                name = b"/".join(parts[:depth])
                numbers = name.count(b"\x00")
                if any(place < numbers for place in series.counted):
                    made[name] = any(place < numbers for place in series.ranked)
        new = {name: own for name, own in made.items() if name not in self.directories}
        self.directories |= set(new)
        own = sum(new.values()) if len(draft.spans) == self.ranks else 0
        first = len(new)
        runs = [(1, first), (self.ranks - 1, own)] if own < first else [(self.ranks, first)]
        some = tuple((ranks, each) for ranks, each in runs if ranks)
        return (Operation(operation="mkdir", runs=some),) if new else ()

    def _note_excess(self, draft: Draft, name: str) -> None:
        """Bytes that the files of a dump do not hold, since others were written over them."""
        if draft.files not in ("new", "append") or not draft.write:
            return
        facts = [d for s in draft.series for d in s.dumps if d.extent]
        moved, extent = sum(d.bytes for d in facts), sum(d.extent for d in facts)
        if moved > extent:
            self.notes.append(
                f"{name}: {moved - extent} B were written over others of the same dump; the "
                "replica writes them behind the others, so that its files are longer by as much."
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

    def _dump(self, draft: Draft, k: int, limit: int, defaults: "_Defaults") -> Dump:
        if draft.turned:
            return Dump(
                time_s=round(draft.start_s(k), 6),
                duration_s=round(max(0.0, draft.end_s(k) - draft.start_s(k)), 6),
                compute_s=round(pace.compute_s(draft, k, self.ranks, self.runtime_s), 6),
                variables=turns.variables(draft.turned[k], draft.shares),
                continues=draft.turned[k].continues,
            )
        files: dict[tuple[int, tuple[int, ...]], list[list[Variable]]] = {}
        for n, series in enumerate(draft.series):
            cells = series.dumps[k].cells
            for (item, _), cell in sorted(
                cells.items(), key=lambda c: (c[0][0], c[1].start_s, c[0][1])
            ):
                parts = files.setdefault((n, item), [])
                file = (len(files) - 1) % MAX_FILES
                parts += self._variables(cell, file, limit, defaults, draft.block)
        variables = [v for parts in files.values() for v in _by_size(parts)]
        facts = [s.dumps[k] for s in draft.series]
        payload = sum(v.bytes for v in variables)
        extent = sum(f.extent for f in facts)
        start_s = draft.start_s(k)
        repeat = None
        if facts[0].count > 1:
            repeat = Repeat(count=facts[0].count, period_s=round(facts[0].period_s, 9))
        return Dump(
            time_s=round(start_s, 6),
            duration_s=round(max(0.0, draft.end_s(k) - start_s), 6),
            compute_s=round(pace.compute_s(draft, k, self.ranks, self.runtime_s), 6),
            overhead_bytes=extent - payload if extent else None,
            variables=tuple(_named(variables)),
            repeat=repeat,
        )

    def _variables(
        self, cell: Cell, file: int, limit: int, defaults: "_Defaults", block: int
    ) -> Iterable[list[Variable]]:
        """The variables of what one record tells of all ranks, and of what each rank's tells."""
        if cell.shared_bytes:
            shared = np.array([cell.shared_bytes])
            yield self._cut(shared, cell.shared_calls, cell, file, limit, defaults, block)
        if cell.rank_bytes is not None and cell.rank_bytes.any():
            yield self._cut(cell.rank_bytes, cell.rank_calls, cell, file, limit, defaults)

    def _cut(
        self,
        moved: npt.NDArray[np.int64],
        calls: Tally,
        cell: Cell,
        file: int,
        limit: int,
        defaults: "_Defaults",
        block: int = 0,
    ) -> list[Variable]:
        ranks = np.diff(bin_edges(self.ranks, len(moved)))
        element = 1 if np.any(moved % cell.element) else cell.element
        if 1 < len(moved) < self.ranks:
            self._note_blocks()
        if np.count_nonzero(np.diff(moved)) >= limit:
            self._note_blocks()
            first = bin_edges(len(moved), limit // 4)[:-1]  # each becomes four runs at most
            calls = calls.blocks(first) if calls.bins == len(moved) else calls
            moved, ranks = np.add.reduceat(moved, first), np.add.reduceat(ranks, first)
        made = pieces(
            moved,
            ranks,
            calls,
            element=element,
            even=cell.even,
            transfer_bytes=defaults.transfer_bytes,
            collective=defaults.collective,
        )
        return [
            _variable(piece, _rule(piece, block, self.ranks), file, defaults) for piece in made
        ]

    def _note_blocks(self) -> None:
        note = "Ranks of many sizes were averaged in blocks of equal ones with the same total."
        if note not in self.notes:
            self.notes.append(note)

    def _prove(self, draft: Draft, at: str, main: Series, sized: bool) -> None:
        module = {"posix": "POSIX", "stdio": "STDIO", "mpiio": "MPIIO", "hdf5": "H5D"}[main.method]
        verb, past = ("WRITE", "WRITTEN") if draft.write else ("READ", "READ")
        size = f"{module}_BYTES_{past}"

        def entry(path: str, origin: str, how: str, confidence: str = "") -> None:
            self.provenance.append(
                Provenance(path=f"{at}{path}", origin=origin, how=how, confidence=confidence)
            )

        how = f"{size} of the files of each dump, in the order of time"
        if any(s.corrected for s in draft.series):
            entry("/dumps", "derived", f"{how}, corrected by the rules counted in the notes")
        else:
            entry("/dumps", "read", how)
        first = f"{module}_F_{verb}_START_TIMESTAMP"
        if draft.write:
            first = self.starts.get(module, first)
        last = f"{module}_F_{verb}_END_TIMESTAMP"
        if draft.timing:
            origin = "assumed" if draft.assumed else "derived"
            entry("/dumps", origin, draft.timing, "likely" if draft.unclear else "")
        else:
            how = f"minimum {first}; the time of the open if it is 0 (never)"
            entry("/dumps/*/time_s", "read", how)
            entry("/dumps/*/duration_s", "derived", f"maximum {last} minus minimum {first}")
        if draft.method in pace.ALONE:
            how = f"duration_s minus the time in calls, {module}_F_{verb}_TIME of a rank"
            entry("/dumps/*/compute_s", "derived", how, "likely")
        extent = (
            "POSIX_MAX_BYTE_WRITTEN + 1"
            if main.method != "stdio"
            else "STDIO_MAX_BYTE_WRITTEN + 1"
        )
        entry("/dumps/*/overhead_bytes", "derived", f"{extent} minus the payload")
        entry("/dumps/*/variables/*/count", "derived", "neighbours of equal size are one entry")
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
        entry("/transfer_bytes", "derived", f"{how}, at most 4 GiB")
        if sized:
            how = (
                f"{size} over {module}_{verb}S, all calls alike"
                if main.method == "stdio"
                else f"{module}_SIZE_{verb}_* and {module}_ACCESS*_ACCESS and _COUNT: calls of "
                f"each size, the largest of which are the collective ones; at most {MAX_PIECES} "
                "sizes for a file of a dump"
            )
            entry("/dumps/*/variables/*/transfer_bytes", "derived", how)
        entry("/operation", "read", f"{module}_{verb}S of the files")
        entry("/method", "read", f"the module {module}")
        if draft.again:
            sure = "likely" if draft.again_sure else "guess"
            entry("/files", "reconstructed", draft.again, sure)
            entry("/reopen", "reconstructed", draft.again, sure)
        else:
            entry("/files", "reconstructed", "names of the files and when they were open")
            if draft.files == "append" and draft.reopen:
                entry("/reopen", "reconstructed", "opened for each time step, by the counters")
        if draft.pace == "steady":
            how = "calls at equal distances in the DXT segments, over which the file rests"
            entry("/pace", "reconstructed", how)
        elif draft.paced:
            entry("/pace", "assumed", f"one burst, though {draft.paced}")
        if draft.ordered:
            what = "/dumps/*/variables/*/decomposition" if draft.block else "/order"
            entry(what, "derived", draft.ordered, "likely")
        if draft.removes:
            entry(
                "/removes", "reconstructed", "lives in the DXT segments, of other sizes", "guess"
            )
        if _apart(draft) and len(draft.spans) > 1:
            entry("/own_directories", "read", "names of the files")
        if draft.names > 1:
            entry("/names", "derived", "files of the same size that take turns in time")
        entry("/layout", "derived", "ranks that have records of each file")
        entry("/content", "assumed", "random bytes: a log does not hold what was written")
        if len(draft.spans) > 1:
            entry("/groups", "derived", "files whose ranks are disjoint")


def _apart(draft: Draft) -> bool:
    """Whether the directories of the files tell ranks apart."""
    return all(
        any(place < s.template.rpartition(b"/")[0].count(b"\x00") for place in s.ranked)
        for s in draft.series
    )


@dataclass(frozen=True, slots=True)
class _Defaults:
    """What the variables of a stream have in common unless they say otherwise."""

    transfer_bytes: int
    collective: bool


def _can_extend(stream: Stream, base: Stream) -> bool:
    """Whether the dumps of a stream can go behind those of another one, in its files."""
    return (
        can_extend(stream, base)
        and {stream.method, base.method} <= {"posix", "stdio", "mpiio"}
        and all(
            _last_file(own.dump) <= _last_file(its.dump)
            for own, its in zip(stream.expanded(), base.expanded(), strict=True)
        )
    )


def _last_file(dump: Dump) -> int:
    return max((v.file for v in dump.variables), default=0)


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


def _variable(piece: Piece, rule: Decomposition, file: int, defaults: _Defaults) -> Variable:
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


def _chain(bursts: list[list[Series]]) -> Draft:
    """One draft whose dumps are the bursts: the facts of each burst's series in one dump."""
    first = bursts[0][0]
    dumps = []
    for burst in bursts:
        facts = DumpFacts()
        for n, series in enumerate(burst):
            dump = series.dumps[0]
            for (item, variable), cell in dump.cells.items():
                facts.cells[((n, *item), variable)] = cell
            facts.start_s = min(facts.start_s, dump.start_s)
            facts.end_s = max(facts.end_s, dump.end_s)
        dumps.append(facts)
    whole = Series(
        template=b"",
        stem=b"",
        key=tuple((k,) for k in range(len(dumps))),
        fixed=(),
        write=first.write,
        method=first.method,
        collective=first.collective,
        synced=False,
        transfer_bytes=max(s.transfer_bytes for b in bursts for s in b),
        corrected=any(s.corrected for b in bursts for s in b),
        rank_spans=first.rank_spans,
        dumps=dumps,
    )
    return Draft(series=[whole], folded=frozenset(s.template for b in bursts for s in b))
