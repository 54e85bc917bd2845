"""Operations of the streams: what the log has of opens, stats and renames and the player does not
do by itself.

The player opens a data file once for each dump (or once for all, where it stays open). What a rank
opened more often, looked at or renamed becomes operations of the dump.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from understudy.contracts.workload import Dump, Operation, Pattern, Provenance, Variable
from understudy.inference.calls.operations import (
    CREATE,
    KINDS,
    REMOVE,
    Idle,
    as_runs,
    per_rank,
    together,
)
from understudy.inference.streams.pauses import cut, pauses_of
from understudy.inference.streams.stream_grouping import Draft
from understudy.inference.table import ALL_RANKS, BURST
from understudy.program.needs import contents
from understudy.program.opens import opened
from understudy.program.patterns import stream_of
from understudy.program.times import ever_open, open_at

MAX_RANKS = 1 << 16  # above which the operations of all ranks are taken together, and are alike
MAX_RUNS = 64  # runs of ranks that an operation may have
LIBRARY = ("hdf5",)  # methods whose opens the player cannot repeat
MODULES = {"posix": "POSIX", "stdio": "STDIO", "mpiio": "MPIIO", "hdf5": "H5F"}

Whole = npt.NDArray[np.int64]


@dataclass(slots=True)
class Metadata:
    """Collects the operations of the streams of a log, one stream after the other."""

    ranks: int
    lacking: list[list[Whole | None]] = field(default_factory=list)  # by stream and dump
    over: dict[str, Whole] = field(default_factory=dict)  # opens that the player has too many of

    def learn(self, draft: Draft, stream: Pattern, base: Pattern | None = None) -> None:
        """Note what the next stream lacks, which reads the files of `base` if there is one."""
        operations = [self._operations_of(draft, k) for k in range(draft.dumps)]
        played = stream_of(stream, self.ranks)
        if ever_open(played):
            opens = 1 if played.closes else contents(played)
            lacks = self._of_open_files(stream, operations, opens)
        else:
            there = [False] * len(operations)
            if base is not None:
                times = [d.time_s for d in stream.dumps]
                there = open_at(stream_of(base, self.ranks), times)
            lacks = [
                self._beyond(
                    stream.method, dump_operations, set(dump.variables), dump.count, 1 - is_open
                )
                for dump, dump_operations, is_open in zip(
                    stream.dumps, operations, there, strict=True
                )
            ]
        self.lacking.append(lacks)

    def _of_open_files(
        self, stream: Pattern, operations: Sequence[Whole | None], opens: int
    ) -> list[Whole | None]:
        """Operations on files that stay open: those beyond `opens` opens of each are spread over
        the dumps."""
        times = [d.count for d in stream.dumps]
        told = [
            (counts, n) for counts, n in zip(operations, times, strict=True) if counts is not None
        ]
        if len({counts.shape for counts, _ in told}) > 1:
            told = [(together(counts), n) for counts, n in told]
        whole = (
            sum((counts * n for counts, n in told[1:]), told[0][0] * told[0][1]) if told else None
        )
        parts = {v for d in stream.dumps for v in d.variables}
        more = self._beyond(stream.method, whole, parts, 1, opens)
        if more is None:
            return [None] * len(times)
        last = np.cumsum(times)
        shares = [
            (more * (end - n + 1) // last[-1] - more * (end - n) // last[-1])
            if n > 1
            else more * end // last[-1] - more * (end - 1) // last[-1]
            for n, end in zip(times, last.tolist(), strict=True)
        ]
        return [share if share.any() else None for share in shares]

    def _beyond(
        self,
        method: str,
        operations: Whole | None,
        variables: set[Variable],
        times: int,
        count: int = 1,
    ) -> Whole | None:
        """Operations of each rank besides opening the files of these variables `count` times,
        `times` times: [kinds, ranks]."""
        over = self.over.setdefault(method, np.zeros(_width(self.ranks), np.int64))
        opens = opened(tuple(sorted(variables, key=repr)), self.ranks)
        if (
            operations is not None
            and int(operations[0].sum()) == count * opens.total
            and not operations[1:].any()
        ):
            return None
        alike = self.ranks > MAX_RANKS
        played = count * (np.array([opens.total]) if alike else opens.by_rank(self.ranks))
        if operations is None:
            over += times * played
            return None
        each = np.array(
            [row.sum(keepdims=True) if alike else per_rank(row, self.ranks) for row in operations]
        )
        each[0] -= played
        over -= times * np.minimum(each[0], 0)
        each[0] = 0 if method in LIBRARY else np.maximum(each[0], 0)
        return each if each.any() else None

    def _operations_of(self, draft: Draft, k: int) -> Whole | None:
        counts: Whole | None = None
        for series in draft.series:
            for cell in series.dumps[k].cells.values():
                if cell.operations is None:
                    continue
                if counts is not None and counts.shape != cell.operations.shape:
                    counts = together(counts) + together(cell.operations)
                else:
                    counts = cell.operations if counts is None else counts + cell.operations
        return counts

    def balance(self, streams: Sequence[Pattern], idle: "Sequence[IdleDumps]") -> None:
        """A file that is both read and written is opened for each by the player, and may have
        been opened once: other files are then opened less often, so that as many are opened in
        all, by the same rank where it opens any."""
        lacks = [
            (stream.method, lacking, dump.count)
            for stream, each in zip(streams, self.lacking, strict=True)
            for dump, lacking in zip(stream.dumps, each, strict=True)
            if lacking is not None
        ]
        lacks += [(some.method, each, 1) for some in idle for _, _, each in some.dumps]
        for method, each, times in lacks:
            over = self.over.get(method)
            if over is not None:
                less = np.minimum(each[0], over // times)
                each[0] -= less
                over -= times * less
        for method, each, times in lacks:
            over = self.over.get(method)
            if over is not None and over.any() and each[0].any():
                most = np.cumsum(each[0])
                left = np.maximum(most - int(over.sum()) // times, 0)
                kept = np.diff(left, prepend=0)
                taken = times * int((each[0] - kept).sum())
                each[0] = kept
                spent = np.minimum(np.cumsum(over), taken)
                over -= np.diff(spent, prepend=0)

    def streams(self, streams: Sequence[Pattern]) -> tuple[Pattern, ...]:
        """The streams with their operations."""
        return tuple(
            replace(
                stream,
                dumps=tuple(
                    _with(d, each, self.ranks) for d, each in zip(stream.dumps, lacks, strict=True)
                ),
            )
            for stream, lacks in zip(streams, self.lacking, strict=True)
        )

    def provenance(self, streams: Sequence[Pattern]) -> list[Provenance]:
        """Where the operations of the streams come from."""
        return [
            Provenance(
                path=f"/streams/{n}/dumps/*/operations",
                origin="derived",
                confidence="likely",
                how=f"{MODULES[stream.method]}_OPENS of the files of each dump without those that "
                "the data need, POSIX_STATS and POSIX_RENAME_SOURCES; of a file of several time "
                "steps, in equal shares; mkdir: directories in whose names the dumps are counted",
            )
            for n, stream in enumerate(streams)
            if any(d.operations for d in stream.dumps)
        ]


def _width(ranks: int) -> int:
    """Ranks that are told apart."""
    return ranks if ranks <= MAX_RANKS else 1


def _with(dump: Dump, lacks: Whole | None, ranks: int) -> Dump:
    if lacks is None:
        return dump
    lacking = _operations(dict(zip(KINDS, lacks, strict=True)), ranks)
    return replace(dump, operations=(*dump.operations, *lacking))


def with_flushes(stream: Pattern, flushes: Sequence[int], ranks: int) -> Pattern:
    """The stream, with so many flushes more in each dump, by the ranks that have bytes in it."""
    dumps = []
    for dump, count in zip(stream.dumps, flushes, strict=True):
        if not count:
            dumps.append(dump)
            continue
        there = opened(tuple(dict.fromkeys(dump.variables)), ranks).by_rank(ranks) > 0
        who = np.flatnonzero(there)
        each: Whole = np.zeros(ranks, np.int64)
        each[who] = count // len(who)
        each[who[: count % len(who)]] += 1
        sync = Operation(operation="sync", runs=as_runs(each, ranks, MAX_RUNS))
        dumps.append(replace(dump, operations=(*dump.operations, sync)))
    return replace(stream, dumps=tuple(dumps))


def _operations(counts: dict[str, Whole], ranks: int) -> tuple[Operation, ...]:
    return tuple(
        Operation(operation=kind, runs=as_runs(each, ranks, MAX_RUNS))
        for kind, each in counts.items()
        if each.any()
    )


# -- of files that moved no byte --------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IdleDumps:
    """Bursts of operations through one interface: when each begins and ends, and the operations
    of each rank, [kinds, creates and removals, ranks]."""

    method: str
    dumps: list[tuple[float, float, Whole]]

    def stream(self, named: dict[str, int], ranks: int) -> Pattern | None:
        """The stream, which has a name of its role; None if nothing is left of it."""
        dumps = tuple(
            Dump(
                time_s=round(start_s, 6),
                duration_s=round(end_s - start_s, 6),
                operations=operations,
            )
            for start_s, end_s, each in self.dumps
            if (
                operations := _operations(
                    {
                        "create": each[CREATE],
                        **dict(zip(KINDS, each, strict=False)),
                        "unlink": each[REMOVE],
                    },
                    ranks,
                )
            )
        )
        if not dumps:
            return None
        creates = any(o.operation == "create" for d in dumps for o in d.operations)
        role = "output" if creates else "input"
        named[role] = named.get(role, 0) + 1
        return Pattern(
            name=f"{role}-{named[role] - 1}",
            role=role,
            operation="write",
            files="new",
            layout="file-per-process" if ranks > 1 else "shared",
            method=self.method,
            transfer_bytes=1,
            dumps=dumps,
        )


def of_idle(idle: Idle, ranks: int, runtime_s: float) -> list[IdleDumps]:
    """Operations on files that moved no byte, by interface."""
    idle_dumps = []
    for method in ("posix", "stdio", "mpiio"):
        time_s, rank, counts = idle.moments(method)
        if not len(time_s):
            continue
        if method != "posix":  # the player creates empty files by POSIX
            counts[:, 0] += counts[:, CREATE]
            counts[:, CREATE:] = 0
        cuts = cut(
            pauses_of(time_s, time_s), counts.sum(axis=1), call_s=0.0, few_s=BURST * runtime_s
        )
        dumps: list[tuple[float, float, Whole]] = []
        for part in np.split(np.arange(len(time_s)), cuts.at):
            width = _width(ranks)
            each: Whole = np.zeros((REMOVE + 1, width), np.int64)
            single = rank[part] != ALL_RANKS
            np.add.at(each.T, rank[part][single] % width, counts[part][single])
            low, extra = np.divmod(counts[part][~single].sum(axis=0), width)
            each += low[:, None] + (np.arange(width) < extra[:, None])
            dumps.append((float(time_s[part[0]]), float(time_s[part[-1]]), each))
        idle_dumps.append(IdleDumps(method, dumps))
    return idle_dumps


def prove_idle(at: str, stream: Pattern) -> list[Provenance]:
    """Where a stream of operations alone comes from."""
    module = MODULES[stream.method]
    how = f"{module} records of files that moved no byte"
    entries = [
        (
            "/dumps",
            "derived",
            "likely",
            f"{module}_OPENS, POSIX_STATS and POSIX_RENAME_SOURCES "
            f"between {module}_F_OPEN_START_TIMESTAMP and {module}_F_OPEN_END_TIMESTAMP, evenly; "
            "those of one burst are a dump; create: POSIX_MODE is not 0",
        ),
        ("/role", "assumed", "", "files that are created are output, others are input"),
        ("/transfer_bytes", "assumed", "", "no data are moved"),
        *((f"/{key}", "assumed", "", how) for key in ("operation", "files", "layout", "content")),
        ("/method", "read", "", f"the module {module}"),
    ]
    return [
        Provenance(path=f"{at}{path}", origin=origin, confidence=sure, how=text)
        for path, origin, sure, text in entries
    ]
