"""From the rows of understudy/workload/3, valid by its schema, to the program that they say: the
mirror of `understudy.program.program_writer`, which writes them."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Any

from understudy.contracts.workload.migration import decomposition, pairs
from understudy.errors import UnderstudyError
from understudy.program import syscalls
from understudy.program.instructions import (
    ALL_RANKS,
    CALLERS,
    WORDS,
    Body,
    Calls,
    Compute,
    Files,
    FileSet,
    Instruction,
    InTurn,
    Move,
    Open,
    Operate,
    Passes,
    Skew,
    Step,
    Stream,
)
from understudy.program.types import EVEN, Content, Lookups, Order, Variable

Row = dict[str, Any]


def streams_of(row: Row, where: str) -> tuple[Stream, ...]:
    """The streams of a program, or an `UnderstudyError` that names the key."""
    sets: dict[str, FileSet] = {}
    for k, files in enumerate(row["sets"]):
        if files["name"] in sets:
            got = f"got {files['name']!r} again"
            raise UnderstudyError(f"{where}: sets[{k}].name: expected a name of its own, {got}")
        sets[files["name"]] = _set(files, row["ranks"], f"{where}: sets[{k}]")
    labels, overheads = row.get("labels", {}), row.get("overheads", {})
    return tuple(
        _Stream(stream, sets, labels, f"{where}: streams[{k}]").built(
            overheads.get(stream["name"], [])
        )
        for k, stream in enumerate(row["streams"])
    )


def _set(row: Row, ranks: int, where: str) -> FileSet:
    owner, groups, index = row["of"], row.get("groups"), row.get("index", "k")
    grouped = owner == "each group"
    if grouped != (groups is not None) or (groups or 1) > ranks:
        expected = f"a number of at most {ranks}, the ranks" if grouped else "none"
        raise UnderstudyError(f"{where}.groups: expected {expected}, got {groups}")
    called = owner == CALLERS
    for key in ("entries", "stored_bytes"):
        if (key in row) != called:
            expected = "expected it for callers, and only there"
            raise UnderstudyError(f"{where}.{key}: {expected}")
    return FileSet(
        name=row["name"],
        owner=owner,
        groups=1 if owner == ALL_RANKS else groups or ranks,
        files=1 if called else row.get("files", 1),
        names=None if index == "k" else 1 if index == "none" else index,
        numbered=index != "none",
        own_directories=row.get("own_directories", False),
        files_per_directory=row.get("files_per_directory"),
        prepared=row.get("prepared", False),
        tree=syscalls.tree_of(row) if called else None,
    )


class _Stream:
    """Reads one stream; all its instructions name one set, and at most one stream before it."""

    def __init__(
        self, row: Row, sets: Mapping[str, FileSet], labels: Mapping[str, str], where: str
    ) -> None:
        self._row, self._sets, self._labels, self._where = row, sets, labels, where
        self._set: FileSet | None = None
        self._bases: dict[str, str | None] | None = None
        self._bodies: dict[int, Body] = {}  # by the identity of their rows

    def built(self, overheads: list[list[Any]]) -> Stream:
        row = self._row
        if "set" in row:
            self._use(row["set"], "set")
            self._base_on(row, "")
        extra = _overheads(row["steps"], overheads)
        steps = tuple(
            self._step(step, f"steps[{j}]", bytes_)
            for j, (step, bytes_) in enumerate(zip(row["steps"], extra, strict=True))
        )
        if self._set is None:
            raise UnderstudyError(f"{self._where}: expected an open of a set, or the key set")
        bases = self._bases or {}
        return Stream(
            name=row["name"],
            label=self._labels.get(row["name"], ""),
            role=row["role"],
            method=row["method"],
            content=Content(**row["content"]) if "content" in row else Content(),
            set=self._set,
            steps=steps,
            closes=row.get("close_last", False),
            behind=bases.get("behind"),
            last=bases.get("last"),
            files_per_directory=row.get("files_per_directory"),
        )

    def _use(self, name: str, key: str) -> None:
        if name not in self._sets:
            names = ", ".join(self._sets)
            expected = f"expected the name of a set, one of {names}"
            raise UnderstudyError(f"{self._where}.{key}: {expected}, got {name!r}")
        if self._set is not None and name != self._set.name:
            expected = f"expected {self._set.name!r}, the set that the stream has used before"
            raise UnderstudyError(f"{self._where}.{key}: {expected}, got {name!r}")
        self._set = self._sets[name]

    def _base_on(self, row: Row, at: str) -> None:
        """Note which stream it is behind, or reads: the same everywhere."""
        given = {key: row.get(key) for key in ("behind", "last")}
        if self._bases is None:
            self._bases = given
        for key, name in given.items():
            if name != self._bases[key]:
                expected = f"expected {self._bases[key]!r}, as before in the stream"
                raise UnderstudyError(f"{self._where}.{at}{key}: {expected}, got {name!r}")

    def _step(self, row: Row, at: str, overhead_bytes: int | None) -> Step:
        count = row.get("repeat", 1)
        if count > 1 and "every" not in row:
            raise UnderstudyError(f"{self._where}.{at}.every: expected seconds, got nothing")
        return Step(
            time_s=row["at"],
            count=count,
            period_s=row["every"] if count > 1 else 0,
            duration_s=row.get("lasting"),
            overhead_bytes=overhead_bytes,
            body=self._shared(row["do"], f"{at}.do"),
        )

    def _shared(self, rows: list[Any], at: str) -> Body:
        """A body that steps can share, which names the set and streams as its first use did."""
        if id(rows) not in self._bodies:
            self._bodies[id(rows)] = self._body(rows, at)
        return self._bodies[id(rows)]

    def _body(self, rows: list[Any], at: str) -> Body:
        return tuple(self._instruction(row, f"{at}[{i}]") for i, row in enumerate(rows))

    def _instruction(self, row: Row | str, at: str) -> Instruction:
        if isinstance(row, str):
            return WORDS[row]
        if "open" in row:
            self._use(row["open"], f"{at}.open")
            self._base_on(row, f"{at}.")
            keys = ("mode", "direct", "write_through", "chunk_bytes", "fill")
            return Open(**{key: row[key] for key in keys if key in row})
        if "write" in row or "read" in row:
            return self._move(row)
        if "operate" in row:
            return Operate(kind=row["operate"], runs=pairs(row["runs"]))
        if "compute" in row:
            return Compute(row["compute"])
        if "wait" in row:
            return Skew(pairs(row["wait"]))
        if "calls" in row:
            self._use(row["calls"], f"{at}.calls")
            return Calls(syscalls.CallList(row["do"]))
        return self._loop(row, at)

    def _loop(self, row: Row, at: str) -> Instruction:
        if "in_turn" in row:
            return InTurn(self._body(row["in_turn"], f"{at}.in_turn"))
        if "each_file" in row:
            self._use(row["each_file"], f"{at}.each_file")
            return Files(_order(row), self._body(row["do"], f"{at}.do"))
        return Passes(row["repeat"], self._body(row["do"], f"{at}.do"))

    def _move(self, row: Row) -> Move:
        name = row["write"] if "write" in row else row["read"]
        return Move(
            variable=Variable(
                name=name,
                label=self._labels.get(f"{self._row['name']}/{name}", ""),
                type=row["type"],
                shape=tuple(row["shape"]),
                decomposition=decomposition(row["split"]) if "split" in row else EVEN,
                count=row.get("count", 1),
                file=row.get("file", 0),
                at=row.get("at"),
            ),
            writes="write" in row,
            transfer_bytes=row["transfer_bytes"],
            collective=row.get("collective", False),
            nonblocking=row.get("nonblocking", False),
            depth=row.get("depth", 1),
            order=_order(row),
            flush_bytes=row.get("flush_bytes"),
            hands_over=row.get("to_system", False),
            lookups=Lookups(**row["lookups"]) if "lookups" in row else None,
        )


def _order(row: Row) -> Order:
    return Order(**row["order"]) if "order" in row else Order()


def _overheads(steps: list[Row], runs: list[list[Any]]) -> Iterator[int | None]:
    """For each step, the overhead of its first dump; `runs` are (dumps, bytes of each)."""
    ends = list(accumulate(dumps for dumps, _ in runs))
    first = 0
    for step in steps:
        run = bisect_right(ends, first)
        yield runs[run][1] if run < len(runs) else None
        first += step.get("repeat", 1)
