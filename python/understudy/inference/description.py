"""From series to the streams of a workload.

Series whose files form one dump become one stream, a file that stays open becomes a stream of time
steps, small inputs are combined, and every number gets its provenance.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from operator import gt, lt

import numpy as np

from understudy.contracts.workload import Dump, Operation, Pattern, Provenance
from understudy.inference.calls.interleaved_columns import Key, Strands
from understudy.inference.calls.operations import Idle
from understudy.inference.log import hdf5_layouts
from understudy.inference.log.counter_totals import CounterTotals
from understudy.inference.log.hdf5_layouts import Hdf5Layout
from understudy.inference.provenance import directories_apart, prove
from understudy.inference.score import candidates
from understudy.inference.steps import orders, overlaps, pace, skews
from understudy.inference.steps.dumps import AVERAGED, Defaults, Dumps
from understudy.inference.steps.overwritten_files import unravel
from understudy.inference.streams import scratch_dumps, small_file_streams, small_inputs
from understudy.inference.streams.file_series import Series
from understudy.inference.streams.metadata import Metadata, of_idle, prove_idle, with_flushes
from understudy.inference.streams.readable_files import hold
from understudy.inference.streams.small_file_sets import Flood
from understudy.inference.streams.stream_grouping import (
    Draft,
    gather,
    merge,
    two_interfaces,
    wrote,
)
from understudy.inference.streams.stream_role import Roles
from understudy.inference.table import BURST
from understudy.program.calls import BY_RUNS
from understudy.program.key_rules import can_extend, can_read
from understudy.program.sizes import PLAIN

UNSEEN = (
    "Darshan records no mkdir and unlink, and no stat of programs built with glibc 2.33 or later: "
    "the application may have made more operations on its files than are described."
)
EMPTIED = (
    "that its files were truncated each time they were opened is assumed; Darshan tells neither "
    "that nor whether they were opened to append"
)
MAX_ENTRIES = 10_000  # of streams that are predicted, about 1 ms each


@dataclass(slots=True)
class Composer:
    """Makes streams and their provenance for a number of ranks."""

    ranks: int
    runtime_s: float
    keep_names: bool = False
    starts: Mapping[str, str] = field(default_factory=dict)  # counter of a module's first write
    counter_totals: Callable[[frozenset[bytes]], CounterTotals] = lambda _: CounterTotals()
    strands: Mapping[Key, Strands] = field(default_factory=dict)
    hdf5_layouts: Mapping[int, Hdf5Layout] = field(default_factory=dict)
    floods: Sequence[tuple[bytes, Flood]] = ()  # with the templates of their names
    provenance: list[Provenance] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    templates: list[frozenset[bytes]] = field(default_factory=list)  # of each stream's files
    directories: set[bytes] = field(default_factory=set)  # that dumps make
    depths: dict[str, int] = field(default_factory=dict)  # of streams with calls in flight

    def streams(
        self,
        series: Sequence[Series],
        split: Callable[[Sequence[Draft]], Sequence[Draft]],
        idle: Idle | None = None,
    ) -> tuple[Pattern, ...]:
        """The streams; `split` finds the time steps of files that stay open, `idle` has what was
        done to files that moved no byte."""
        drafts = merge(series, BURST * self.runtime_s)
        drafts, notes = small_inputs.combine(drafts, self.runtime_s)
        self.notes += notes
        drafts = unravel(drafts)
        for draft in drafts:
            orders.learn(draft, self.ranks)
        drafts = gather(split(drafts), self.runtime_s)
        drafts.sort(key=lambda d: (d.start_s(0), -d.bytes))
        pace.part(drafts, self.runtime_s)
        named: dict[str, int] = {}
        roles = Roles(drafts, self.ranks)
        metadata = Metadata(self.ranks)
        streams: list[Pattern] = []
        flushes: list[list[int]] = []
        twins = two_interfaces(drafts)
        where = {id(draft): k for k, draft in enumerate(drafts)}
        before: list[tuple[Draft, Pattern]] = []
        read: dict[str, int] = {}  # by readers, which stream's files they read
        for draft in drafts:
            same_files = twins.get(id(draft), [])
            role = roles.of(max([draft, *same_files], key=lambda d: d.bytes))
            number = named.setdefault(role.name, 0)
            named[role.name] += 1
            index = len(streams)
            self.provenance.append(role.provenance(index))
            stream = self._stream(draft, f"{role.name}-{number}", role.name, index)
            bases = [streams[k] for d in same_files if (k := where[id(d)]) < index]
            stream = self._extending(stream, bases, index)
            stream, base = self._reading(draft, stream, before, index)
            if base is not None:
                read[stream.name] = next(k for k, s in enumerate(streams) if s is base)
            streams.append(stream)
            before.append((draft, stream))
        streams = list(self._chosen(streams))
        for draft, stream in zip(drafts, streams, strict=True):
            sure = not draft.again or draft.removes or draft.method not in ("posix", "stdio")
            if stream.files == "rewrite" and not sure:
                self.notes.append(f"{stream.name}: {EMPTIED}.")
            at = read.get(stream.name)
            metadata.learn(draft, stream, None if at is None else streams[at])
            flushes.append(orders.lacking(draft, stream, self.ranks))
        bursts = of_idle(idle, self.ranks, self.runtime_s) if idle is not None else []
        metadata.balance(streams, bursts)
        streams = list(metadata.streams(streams))
        self.provenance += metadata.provenance(streams)
        streams = [with_flushes(s, n, self.ranks) for s, n in zip(streams, flushes, strict=True)]
        for name, flood in self.floods:
            streams += self._flood(name, flood, named, len(streams), roles)
        for burst in bursts:
            if (alone := burst.stream(named, self.ranks)) is not None:
                self.provenance += prove_idle(f"/streams/{len(streams)}", alone)
                self.templates.append(frozenset(idle.templates if idle else ()))
                streams.append(alone)
                if UNSEEN not in self.notes:
                    self.notes.append(UNSEEN)
        return tuple(streams)

    def _chosen(self, streams: Sequence[Pattern]) -> Sequence[Pattern]:
        """The streams, each used in the way that fits the counters of its files best; of very many
        entries, the rest as they are."""
        chosen, entries = list(streams), 0
        for n, alike in enumerate(_alike(self.templates)):
            entries += sum(len(chosen[k].dumps) for k in alike)
            if entries > MAX_ENTRIES:
                break
            counters = self.counter_totals(frozenset().union(*(self.templates[k] for k in alike)))
            before, behind = ([chosen[k] for k in alike if side(k, n)] for side in (lt, gt))
            choice = candidates.choose(chosen[n], before, behind, counters, self.ranks)
            if choice is None:
                continue
            chosen[n] = choice.stream
            for key, how in (("/files", choice.how), ("/reopen", "the same choice as files")):
                self.provenance.append(
                    Provenance(
                        path=f"/streams/{n}{key}",
                        origin="reconstructed",
                        confidence=choice.confidence,
                        how=how,
                    )
                )
        return chosen

    def _flood(
        self, template: bytes, flood: Flood, named: dict[str, int], index: int, roles: Roles
    ) -> list[Pattern]:
        """The streams of a flood."""
        role = roles.of_flood(flood.write, len(flood.dumps))
        label = template.replace(b"\x00", b"*").decode("utf-8", "replace")
        names = (f"{role}-{n}" for n in count(named.get(role, 0)))
        shown = label if self.keep_names else ""
        streams = list(small_file_streams.streams_of(flood, names, role, shown))
        named[role] = named.get(role, 0) + len(streams)
        for n in range(index, index + len(streams)):
            self.provenance += small_file_streams.prove(f"/streams/{n}", flood)
            self.templates.append(frozenset({template}))
        first = streams[0].name
        name = first if len(streams) == 1 else f"{first} to {streams[-1].name}"
        self.notes += small_file_streams.notes_of(flood, name)
        return streams

    def _extending(self, stream: Pattern, bases: Sequence[Pattern], index: int) -> Pattern:
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
        self, draft: Draft, stream: Pattern, before: Sequence[tuple[Draft, Pattern]], index: int
    ) -> tuple[Pattern, Pattern | None]:
        """The stream, of the files that an earlier one has written if that is possible, and that
        one."""
        if stream.operation != "read" or len(draft.series) != 1 or not draft.series[0].template:
            return stream, None
        reader = replace(stream, files="update", names=1, reopen=None, own_directories=False)
        for written, base in before:
            more = [other for _, other in before if other.extends == base.name]
            readable = wrote(written, draft) and can_read(reader, base)
            if readable and hold([base, *more], reader, self.ranks):
                how = f"files that {base.name} has written before"
                self.provenance.append(
                    Provenance(path=f"/streams/{index}/reads", origin="derived", how=how)
                )
                return replace(reader, reads=base.name), base
        if draft.scratch_dumps:
            dumps = tuple(map(scratch_dumps.without_places, stream.dumps))
            return replace(stream, dumps=dumps), None
        return stream, None

    def _stream(self, draft: Draft, name: str, role: str, index: int) -> Pattern:
        layout, groups = self._layout(draft, name)
        flushed = orders.sync_bytes(draft) if draft.write else None
        buffered = draft.method == "stdio"
        sync = (flushed is None or buffered) and orders.flushed(draft)
        pace.doubt(draft, self.ranks, self.runtime_s)
        self.notes += [f"{name}: {remark}." for remark in (*draft.remarks, *skews.remarks(draft))]
        main = max(draft.series, key=lambda s: s.bytes)
        together = main.collective and draft.method not in BY_RUNS
        defaults = Defaults(main.transfer_bytes, together)
        at = f"/streams/{index}"
        directories = self._directories(draft)
        named = self.counter_totals(draft.templates).named(draft.method, draft.write)
        maker = Dumps(draft, defaults, self.ranks, self.runtime_s, self.strands, named)
        dumps = tuple(replace(dump, operations=directories) for dump in maker.all())
        if maker.averaged and AVERAGED not in self.notes:
            self.notes.append(AVERAGED)
        self.notes += [f"{name}: {remark}." for remark in sorted(maker.remarks)]
        sized = any(v.transfer_bytes for d in dumps for v in d.variables)
        self.provenance += prove(draft, at, main, sized=sized, starts=self.starts)
        self.templates.append(draft.templates)
        if any(dump.skew for dump in dumps):
            late = Provenance(
                path=f"{at}/dumps/*/skew", origin="derived", how=skews.HOW, confidence="likely"
            )
            self.provenance.append(late)
        if maker.how:
            path = f"{at}/dumps/*/variables/*/decomposition"
            self.provenance.append(
                Provenance(path=path, origin="derived", how=maker.how, confidence="likely")
            )
        if flushed is not None:
            of = "STDIO_FLUSHES" if buffered else "POSIX_FSYNCS + POSIX_FDSYNCS"
            key = "flush_bytes" if buffered else "sync_bytes"
            how = f"bytes over {of}, of which there are several in a dump"
            self.provenance.append(
                Provenance(path=f"{at}/{key}", origin="derived", how=how, confidence="likely")
            )
        if draft.depth > 1:
            self.depths[name] = draft.depth
            self.notes.append(overlaps.note(name, draft.depth))
            self.provenance.append(
                Provenance(
                    path=f"{at}/depth", origin="derived", how=overlaps.HOW, confidence="likely"
                )
            )
        datasets = self._datasets(draft, at)
        label = main.template.replace(b"\x00", b"*").decode("utf-8", "replace")
        return Pattern(
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
            reopen=draft.reopen,
            removes=bool(draft.removes),
            own_directories=layout != "shared" and directories_apart(draft),
            order=draft.order,
            pace=draft.pace,
            sync_bytes=None if buffered else flushed,
            flush_bytes=flushed if buffered else None,
            chunk_bytes=datasets.chunk_bytes,
            fill=datasets.fill,
            lookups=draft.lookups,
        )

    def _datasets(self, draft: Draft, at: str) -> Hdf5Layout:
        """How the datasets of a draft lie in its files."""
        if draft.method != "hdf5":
            return Hdf5Layout()
        cells = [c for s in draft.series for d in s.dumps for c in d.cells.values()]
        layout = hdf5_layouts.common([self.hdf5_layouts.get(cell.file) for cell in cells])
        for key, told, how in (
            ("chunk_bytes", layout.chunk_bytes, hdf5_layouts.HOW),
            ("fill", layout.fill, hdf5_layouts.FILLED),
        ):
            if told:
                self.provenance.append(
                    Provenance(path=f"{at}/{key}", origin="derived", how=how, confidence="likely")
                )
        return layout

    def _directories(self, draft: Draft) -> tuple[Operation, ...]:
        """Those that each dump makes: its number is in their names, and no stream before has
        made them."""
        if draft.files != "new" or not draft.write:
            return ()
        by_name: dict[bytes, bool] = {}  # whether each rank has its own
        for series in draft.series:
            parts = series.template.split(b"/")[:-1]
            for depth in range(1, len(parts) + 1):
                name = b"/".join(parts[:depth])
                numbers = name.count(b"\x00")
                if any(place < numbers for place in series.counted):
                    by_name[name] = any(place < numbers for place in series.ranked)
        new = {name: each for name, each in by_name.items() if name not in self.directories}
        self.directories |= set(new)
        first = len(new)
        rest = sum(new.values()) if len(draft.spans) == self.ranks else 0
        runs = [(1, first), (self.ranks - 1, rest)] if rest < first else [(self.ranks, first)]
        some = tuple((ranks, each) for ranks, each in runs if ranks)
        return (Operation(operation="mkdir", runs=some),) if new else ()

    def _layout(self, draft: Draft, name: str) -> tuple[str, int | None]:
        spans, ranks = draft.spans, self.ranks
        if len(spans) < 2:
            return "shared", None
        count = len(spans)
        inside = bool((spans.ranks * count // ranks == np.arange(count)).all())
        single = bool((spans.ranks[0] == spans.ranks[1]).all())
        if count == ranks or (single and not inside):
            return "file-per-process", None
        if not inside:
            self.notes.append(
                f"{name}: {count} groups are not of consecutive ranks; that they are is assumed."
            )
        return "grouped", count


def _alike(templates: Sequence[frozenset[bytes]]) -> list[list[int]]:
    """For each stream, the streams that use the same files, itself included."""
    homes: list[list[int]] = [[n] for n in range(len(templates))]
    first: dict[bytes, int] = {}
    for n, names in enumerate(templates):
        for template in names:
            earlier, other = homes[first.setdefault(template, n)], homes[n]
            if earlier is not other:
                earlier += other
                for k in other:
                    homes[k] = earlier
    return [sorted(home) for home in homes]


def _can_extend(stream: Pattern, base: Pattern) -> bool:
    """True if the dumps of a stream can follow those of another one, in its files."""
    return (
        can_extend(stream, base)
        and {stream.method, base.method} <= {*PLAIN}
        and all(
            _last_file(later) <= _last_file(first)
            for (_, later), (_, first) in zip(stream.expanded(), base.expanded(), strict=True)
        )
    )


def _last_file(dump: Dump) -> int:
    return max((v.file for v in dump.variables), default=0)
