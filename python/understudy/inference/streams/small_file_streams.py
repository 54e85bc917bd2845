"""Streams of floods: files by size as variables, a row for each file."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from understudy.contracts.workload import (
    EVEN,
    Decomposition,
    Dump,
    Operation,
    Order,
    Pattern,
    Provenance,
    Repeat,
    Variable,
    equal_ranks,
    runs_at_most,
)
from understudy.inference.calls.calls import MODULES, PREFIXES
from understudy.inference.calls.operations import KINDS
from understudy.inference.calls.transfers import CLOSE, MAX_TRANSFER
from understudy.inference.streams.small_file_sets import Flood, order_of
from understudy.program.counters import BIN_BYTES

MAX_RUNS = 128  # of a variable
MIXED = "the times of its dumps are a guess"

Whole = npt.NDArray[np.int64]


def streams_of(flood: Flood, names: Iterator[str], role: str, label: str) -> Iterator[Pattern]:
    """The streams of a flood: one, or, of files that runs of several logs read again, one for all
    runs that read alike."""
    rule, in_turn, _ = order_of(flood)
    times = flood.epochs * flood.count
    each = max(1, round((flood.calls - flood.empty) / max(1, times)))
    largest = max(
        int(-(-b.sum() // f.sum()))
        for d in flood.dumps
        for f, b in zip(d.files, d.bytes, strict=True)
        if f.any()
    )
    transfer = _transfer(largest, each, ends_empty(flood))
    if (each > 1 or ends_empty(flood)) and len(flood.edges) > 1:
        transfer = int(min(MAX_TRANSFER, largest))
    operations = _operations(flood)
    dumps = []
    for n, dump in enumerate(flood.dumps):
        if not dump.files.any():
            continue
        start_s, length_s, repeat = dump.start_s, dump.end_s - dump.start_s, None
        if flood.epochs > 1:
            # every file is opened first in the first epoch, and last in the last one
            first, last = flood.first[flood.used[n]], flood.last[flood.used[n]]
            period_s = max(1e-6, float(last[0] - first[0]) / (flood.epochs - 1))
            length_s = min(period_s, float(last[1] - last[0]))
            repeat = Repeat(count=flood.epochs, period_s=round(period_s, 9))
        variables = list(_variables(flood, dump.files, dump.bytes, in_turn, each, transfer))
        dumps.append(
            Dump(
                time_s=round(start_s, 6),
                duration_s=round(max(0.0, length_s), 6),
                repeat=repeat,
                variables=tuple(variables),
                operations=operations,
            )
        )
    dumps.sort(key=lambda d: d.time_s)
    alike: dict[tuple[Variable, ...], list[Dump]] = {}
    for described in dumps:
        alike.setdefault(described.variables if flood.epochs > 1 else (), []).append(described)
    folders = len(flood.folders)
    once = flood.epochs == 1 and not flood.same
    count = flood.count if once else -(-flood.count // len(dumps))
    for some in alike.values():
        yield Pattern(
            name=next(names),
            label=label,
            role=role,
            operation="write" if flood.write else "read",
            files="update" if flood.epochs > 1 or flood.same else "new",
            layout="flood",
            method=flood.method,
            transfer_bytes=transfer,
            dumps=tuple(some),
            sync=flood.synced and flood.write,
            order=Order(rule="shuffled", seed=1) if rule == "shuffled" else Order(),
            files_per_directory=-(-count // folders) if folders > 1 else None,
        )


def _variables(
    flood: Flood, files: Whole, moved: Whole, in_turn: bool, each: int, transfer: int
) -> Iterator[Variable]:
    number, whole = 0, each == 1 and not ends_empty(flood)
    for count, size in zip(files, moved, strict=True):
        if not count.any():
            continue
        # files of a class are of two sizes that differ by a byte, so that all bytes are kept
        low, longer = divmod(int(size.sum()), int(count.sum()))
        edges = np.cumsum(count) * longer // int(count.sum())
        more = np.diff(edges, prepend=0)
        for rows, row_bytes in ((more, low + 1), (count - more, low)):
            if not rows.any():
                continue
            row_transfer = _transfer(row_bytes, each, ends_empty(flood))
            yield Variable(
                name=f"v{number}",
                type="byte",
                shape=(int(rows.sum()), row_bytes) if row_bytes > 1 else (int(rows.sum()),),
                decomposition=_rule(rows, flood.ranks, in_turn),
                transfer_bytes=None if row_transfer == transfer or whole else row_transfer,
            )
            number += 1


def ends_empty(flood: Flood) -> bool:
    """True if each file was read until a call found its end."""
    return abs(flood.empty - flood.epochs * flood.count) <= CLOSE * flood.empty


def _transfer(size: int, each: int, end: bool) -> int:
    """Bytes of the calls by which a file of this size is moved in so many, or with one more of a
    few bytes in place of the empty one at its end."""
    if end and each < min(size, BIN_BYTES[0]):
        return int(min(MAX_TRANSFER, (size - 1) // each))
    return int(min(MAX_TRANSFER, -(-size // each)))


def _rule(rows: Whole, ranks: int, in_turn: bool) -> Decomposition:
    bins = len(rows)
    even = np.repeat(*np.array(equal_ranks(bins, int(rows.sum()))).T[::-1])
    if bins == ranks and np.array_equal(rows, even):
        return Decomposition(rule="cyclic", block=1) if in_turn else EVEN
    edges = -(-np.arange(bins + 1, dtype=np.int64) * ranks // bins)
    pairs = [
        pair
        for width, n in zip(np.diff(edges).tolist(), rows.tolist(), strict=True)
        for pair in equal_ranks(width, n)
    ]
    return runs_at_most(pairs, MAX_RUNS)


def _operations(flood: Flood) -> tuple[Operation, ...]:
    """Operations besides opening each file once in each dump, as many in each dump."""
    dumps = flood.epochs * max(1, sum(d.files.any() for d in flood.dumps))
    beyond = flood.operations.copy()
    beyond[0] = max(0, beyond[0] - flood.epochs * flood.count)
    return tuple(
        Operation(operation=kind, runs=tuple(equal_ranks(flood.ranks, n)))
        for kind, n in zip(KINDS, (beyond // dumps).tolist(), strict=True)
        if n
    )


def notes_of(flood: Flood, name: str) -> Iterator[str]:
    """Notes on omissions and assumptions of a flood."""
    if ends_empty(flood):
        yield (
            f"{name}: {flood.empty} reads of no bytes, at the ends of files, are played as reads "
            f"of the last bytes, {BIN_BYTES[0]} at most."
        )
    elif flood.empty:
        yield f"{name}: {flood.empty} reads of no bytes, at the ends of files, are left out."
    if flood.epochs > 1 and flood.joined:
        yield (
            f"{name}: each file was read {flood.epochs} times by one run or by runs at the same "
            "time; these reads are described as epochs at equal intervals."
        )
        if flood.mixed:
            yield (
                f"{name}: {flood.bytes:,} B were read by runs that follow each other while others "
                f"last; {MIXED}."
            )
    elif flood.epochs > 1 and not flood.write:
        yield (
            f"{name}: each file was read {flood.epochs} times; that these are epochs at equal "
            "intervals is assumed."
        )


def prove(at: str, flood: Flood) -> Iterator[Provenance]:
    """Where the numbers of the stream of a flood come from."""
    module = PREFIXES[MODULES[flood.method]]
    verb, past = ("WRITE", "WRITTEN") if flood.write else ("READ", "READ")
    sure = order_of(flood)[2]
    size = f"{module}_BYTES_{past}"

    def entry(path: str, origin: str, how: str, confidence: str = "") -> Provenance:
        return Provenance(path=f"{at}{path}", origin=origin, how=how, confidence=confidence)

    files = "files by size; of more than 16 sizes, those of a class are alike to a byte"
    yield entry("/dumps", "derived", f"{size} of each file: {files}")
    times = f"{module}_F_{verb}_START_TIMESTAMP and _END_TIMESTAMP of the files"
    if flood.epochs > 1:
        how = (
            f"{times}: all are moved first in the first epoch and last in the last; evenly between"
        )
        certain = "guess" if flood.mixed else "likely"
        yield entry("/dumps/*/time_s", "derived", how, certain)
        yield entry("/dumps/*/duration_s", "derived", how, certain)
        again = (
            f"{size} is {flood.epochs} times {module}_MAX_BYTE_{past} + 1, or as much more in "
            f"each of {flood.epochs} {module}_OPENS: epochs"
        )
        yield entry("/dumps/*/repeat", "reconstructed", again)
        yield entry("/files", "reconstructed", again)
    else:
        yield entry("/dumps/*/time_s", "derived", f"{times}; a dump begins after a pause")
        again = "runs that follow each other moved the same files"
        once = "each file was moved once"
        yield entry("/files", "reconstructed", again if flood.same else once)
    yield entry(
        "/dumps/*/operations",
        "derived",
        f"{module}_OPENS beyond one for each file, and POSIX_STATS, in equal shares of the ranks",
        "likely",
    )
    yield entry("/transfer_bytes", "derived", f"bytes of a file over its {module}_{verb}S")
    yield entry(
        "/layout", "derived", "files too numerous to list, each moved whole by one rank at a time"
    )
    yield entry("/method", "read", f"the module {module}")
    yield entry("/operation", "read", f"{module}_{verb}S of the files")
    yield entry("/content", "assumed", "random bytes: a log does not hold what was written")
    yield entry("/files_per_directory", "derived", "numbers in the names of their directories")
    how = "numbers in the names of the files of each rank in order of time, of a sample"
    yield entry("/order", "reconstructed", how if sure != "guess" else "names tell no order", sure)
    role = "likely" if flood.write and len(flood.dumps) > 1 else "guess"
    yield entry(
        "/role", "reconstructed" if role == "likely" else "assumed", "numerous small files", role
    )
