"""Workload programs (understudy/workload/3) as data, which hypothesis draws: what
docs/reference/program.md allows, in combinations that no application has.

Nothing here asks the package understudy, which is tested with it. All programs can be played, with
the libraries of any build.
"""

import math
import os
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

Row = dict[str, Any]

BYTES = {"byte": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8}
BYTES |= {"f32": 4, "f64": 8}
OPERATIONS = ("mkdir", "create", "open", "stat", "seek", "sync", "rename", "unlink")
CONTENTS = (("zero", 0), ("constant", 0), ("smooth", 0), ("random", 0.5))
OWNERS = ("all ranks",) * 3 + ("each rank", "each group", "each group", "each row")
ORDERS = ({"rule": "strided", "step": 2}, {"rule": "shuffled", "seed": 7})
ALIKE = ("type", "shape", "split", "count", "file")  # of variables with the same place
HEADER: Row = {
    "schema": "understudy/workload/3",
    "name": "app",
    "description": "",
    "ranks": 4,
    "scaling": {"rule": "none", "from_ranks": 4},
    "runtime_s": None,
    "compute": "sleep",
    "source": {"format": "hand", "version": "", "reader": "", "notes": []},
    "provenance": [],
}
MORE = int(os.environ.get("PROGRAMS", "1"))  # times as many examples, and others each time


def examples(count: int) -> settings:
    """Settings of a property: so many examples, the same ones in each run."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(
        max_examples=count * MORE,
        derandomize=MORE == 1,
        deadline=None,
        database=None,
        suppress_health_check=checks,
    )


@st.composite
def programs(
    draw: st.DrawFn, ranks: int = 4, methods: tuple[str, ...] = (), keys: bool = False
) -> Row:
    """A valid program of at most so many ranks, by one of the methods; with `keys` one that keys
    of understudy/workload/2 can say."""
    return _Program(draw, ranks, methods, keys).row()


@st.composite
def damaged(draw: st.DrawFn, rows: st.SearchStrategy[Row]) -> Row:
    """The document with one change somewhere."""
    row = deepcopy(draw(rows))
    at: Any = row
    while True:
        key = draw(st.sampled_from(list(at) if isinstance(at, dict) else range(len(at))))
        if not isinstance(at[key], dict | list) or not at[key] or draw(st.integers(0, 9)) == 9:
            break
        at = at[key]
    change = draw(st.sampled_from(("other", "other", "other", "lacks", "twice")))
    if change == "lacks":
        del at[key]
    elif change == "other":
        values = (None, -1, 0, 1, 7, 1 << 62, 1 << 63, 0.5, "x", "close", [], {}, [1], True, False)
        at[key] = draw(st.sampled_from(values))
    elif isinstance(at, list):
        at.insert(key, deepcopy(at[key]))
    else:
        name = draw(st.sampled_from(("do", "x", "at", "open", "read", "repeat")))
        at[name] = deepcopy(at[key])
    return row


class _Draws:
    """What several things are drawn with."""

    def __init__(self, draw: st.DrawFn, ranks: int) -> None:
        self.draw, self.ranks = draw, ranks

    def choose(self, *values: Any) -> Any:
        return self.draw(st.sampled_from(values))

    def upto(self, most: int, least: int = 1) -> int:
        return self.draw(st.integers(least, most))

    def maybe(self, tenths: int) -> bool:
        return self.upto(9, 0) > 9 - tenths

    def runs(self, *values: Any) -> list[list[Any]]:
        """Runs of all ranks with a value each."""
        runs: list[list[Any]] = []
        left = self.ranks
        while left:
            ranks = self.upto(left) if len(runs) < 2 else left
            runs.append([ranks, self.choose(*values)])
            left -= ranks
        return runs


class _Program(_Draws):
    def __init__(self, draw: st.DrawFn, ranks: int, methods: tuple[str, ...], keys: bool) -> None:
        super().__init__(draw, draw(st.integers(1, ranks)))
        self.methods = methods or ("posix", "posix", "mpiio", "stdio", "hdf5")
        self.keys = keys
        self.sets: list[Row] = []
        self.streams: list[Row] = []

    def row(self) -> Row:
        for number in range(self.choose(1, 1, 2)):
            self.family(number)
        rule = self.choose("none", "none", "strong", "weak")
        row = HEADER | {
            "description": self.choose("", 'Größe, "quoted"\n'),
            "ranks": self.ranks,
            "scaling": {"rule": rule, "from_ranks": self.ranks if rule == "none" else 7},
            "runtime_s": self.choose(None, 12.5),
            "sets": self.sets,
            "streams": self.streams,
        }
        first = self.streams[0]
        if self.maybe(2):
            row["labels"] = {first["name"]: "Größe"}
        if self.maybe(2):
            runs = [[step.get("repeat", 1), self.choose(0, 4096)] for step in first["steps"]]
            row["overheads"] = {first["name"]: runs}
        return row

    def family(self, number: int) -> None:
        """A set of files, and the streams that use it."""
        owner = self.choose(*OWNERS)
        files: Row = {"name": f"s{number}", "of": owner}
        if owner == "each group":
            files["groups"] = self.upto(self.ranks)
        prepared = self.maybe(3)
        if owner != "each row" or prepared:
            index = self.choose("k", "k", *(("none",) if owner != "each row" else ()), 1, 2, 3)
            files |= {} if index == "k" else {"index": index}
        if owner != "each row":
            if self.maybe(3):
                files["files"] = 2
            if owner != "all ranks" and self.maybe(3):
                files["own_directories"] = True
        if self.maybe(2) and (owner == "each row" or not self.keys):
            files["files_per_directory"] = self.choose(1, 3, 100)
        files |= {"prepared": True} if prepared else {}
        self.sets.append(files)
        method = self.choose(*self.methods)
        first = _Stream(self, files, f"s{number}", method, prepared)
        family = [first]
        if first.can_be_joined:
            while first.can_be_behind and len(family) < 3 and self.maybe(5):
                name = f"b{number}{len(family)}"
                family.append(_Stream(self, files, name, method, prepared, behind=family[-1]))
            if not prepared and self.maybe(5):
                writer = self.choose(*family)
                family.append(_Stream(self, files, f"r{number}", method, True, last=writer))
        self.streams += [stream.row() for stream in family]


class _Stream(_Draws):
    """One stream; `behind` and `last` are streams of its set before it."""

    def __init__(
        self,
        program: _Program,
        files: Row,
        name: str,
        method: str,
        reads: bool,
        behind: "_Stream | None" = None,
        last: "_Stream | None" = None,
    ) -> None:
        super().__init__(program.draw, program.ranks)
        self.keys, self.files, self.name, self.method = program.keys, files, name, method
        self.reads, self.behind, self.last, self.base = reads, behind, last, behind or last
        self.rows, index = files["of"] == "each row", files.get("index", "k")
        self.numbered, again = index != "none", index != "k"
        alone = not self.base and not self.rows
        self.closes = alone and again and self.maybe(4)
        self.closes = self.closes or (self.keys and alone and not self.numbered)
        shared = files["of"] in ("all ranks", "each group")
        self.turns = alone and shared and not again and not reads and self.maybe(4)
        self.removes = self.choose("", "", "remove", "rename") if alone and not reads else ""
        self.mode = self.mode_of(again)
        if self.mode != "new" or not again:
            self.removes = ""
        self.order = {"order": self.choose(*ORDERS)} if self.maybe(2) else {}
        together = not (self.turns or self.rows or self.last or self.order)
        self.collects = together and method in ("mpiio", "hdf5")
        self.joined = method in ("posix", "mpiio", "stdio") and not self.turns and not self.rows
        # One step with each content, and the same moves in all of them.
        self.simple = method in ("stdio", "hdf5") or self.turns or self.rows or self.closes
        self.simple = self.simple or bool(self.base) or (reads and (again or self.keys))
        self.simple = self.simple or self.maybe(5)
        self.passes = self.upto(3) if reads and not self.base else 1
        self.flush = self.flush_of()
        self.opening = self.opening_of()
        self.steady = not behind and self.maybe(2)
        self.first: list[Row] = []  # moves of its first step
        self.wanted = last.moved if last else []  # what it reads of the other
        self.moved: list[Row] = []  # moves that the files hold
        self.count = 0
        self.steps: list[Row] = []
        self.make()

    def mode_of(self, again: bool) -> str:
        if self.reads:
            return "read"
        if self.behind or self.closes or not self.numbered:
            return "keep"
        if not again:
            return "new"
        return "new" if self.removes else self.choose("keep", "truncate")

    def flush_of(self) -> Row:
        """When ranks flush or read between writes."""
        if self.reads or self.maybe(5):
            return {}
        if self.method in ("posix", "stdio") and not self.rows and not self.order:
            calls = {"calls": self.choose(0.3, 1, 2.5), "transfer_bytes": self.choose(1, 16, 100)}
            if self.maybe(5):
                return {"lookups": {"every_bytes": self.choose(1, 50, 200), **calls}}
        return {"flush_bytes": self.choose(64, 500)} | (
            {"to_system": True} if self.maybe(4) else {}
        )

    def opening_of(self) -> Row:
        row = {"direct": True} if self.maybe(1) else {}
        if self.method == "posix" and not self.reads and self.maybe(1):
            row["write_through"] = True
        if self.method == "hdf5" and not self.reads and self.maybe(4):
            row |= {"chunk_bytes": 64, "fill": True}
        return row

    @property
    def can_be_joined(self) -> bool:
        counted = self.keys and self.files.get("files", 1) > 1  # of each stream by itself
        return self.joined and bool(self.moved) and not counted

    @property
    def stays(self) -> bool:
        """True if its files hold all of its first step from then on."""
        return not self.numbered or (self.simple and len(self.steps) == 1)

    @property
    def can_be_behind(self) -> bool:
        begins = all("begin" in step["do"] for step in self.steps)
        once = {"read"} if not self.keys and "index" not in self.files else set()
        return begins and self.mode in {"new", "truncate"} | once and not self.closes

    def row(self) -> Row:
        row: Row = {"name": self.name, "role": "output", "method": self.method}
        if self.maybe(3):
            kind, share = self.choose(*CONTENTS)
            row["content"] = {"kind": kind, "compressibility": share}
        row |= {"close_last": True} if self.closes else {}
        if self.base and self.maybe(2) and not self.keys:
            row["files_per_directory"] = 3
        return row | {"steps": self.steps}

    # -- steps --------------------------------------------------------------------------------

    def make(self) -> None:
        """The contents, in the order of time."""
        if self.behind:
            self.make_behind(self.behind)
            return
        at: float = self.choose(0, 0, 0.5)
        if self.last:
            at = self.last.end + 1
            if self.last.stays and self.maybe(5):  # while that stream goes on
                at, self.wanted = self.last.steps[0]["at"], self.last.first
        for number in range(self.upto(2)):
            for step in self.content(number):
                at = self.add(step, at)
        self.end = at

    def make_behind(self, base: "_Stream") -> None:
        """As many dumps as the other has, each at its time or later."""
        delay = self.choose(0, 0.25, 3)
        for number, each in enumerate(base.steps):
            [step] = self.content(number)
            step |= {key: each[key] for key in ("repeat", "every") if key in each}
            if "repeat" not in each:
                step.pop("repeat", None)
            self.steps.append({"at": each["at"] + delay, **step})
        self.end = base.end + delay

    def add(self, step: Row, at: float) -> float:
        """Add a step; when the next one may be."""
        again = step.pop("repeat", 1)
        row: Row = {"at": at}
        if again > 1:
            row |= {"repeat": again, "every": self.choose(*((1,) if self.keys else (0, 1)), 0.125)}
            at += row["every"] * (again - 1)
        if self.steady or self.maybe(2):
            row["lasting"] = 2
        self.steps.append(row | step)
        return at + self.choose(0, 1)

    def content(self, number: int) -> list[Row]:
        """The steps of one content."""
        begins = ["begin"] if self.numbered or self.last else []
        begins += [{"wait": self.runs(0, 0.25, 0.001)}] if self.maybe(1) else []
        self.moved = [] if self.numbered else self.moved
        again = {"repeat": self.upto(3)}
        alone = self.numbered and not self.base
        if number and alone and self.maybe(1):
            return [{"do": [*begins, *self.operate(1)]}]  # only operations
        if self.rows:
            return [again | {"do": [*begins, *self.row_files()]}]
        if self.simple or self.closes:
            end = [] if self.closes else ["close"]
            body = [*self.open(), *self.work(), *end]
            body = [{"in_turn": body}] if self.turns else body
            return [again | {"do": [*begins, *body]}]
        steps = [{"do": [*begins, *self.open(), *self.work()]}]
        most = 1 if self.keys else 2
        steps += [{"repeat": self.upto(most), "do": self.work()} for _ in range(self.upto(2, 0))]
        return [*steps, {"do": [*self.work(), "close"]}]

    def open(self) -> list[Any]:
        row: Row = {"open": self.files["name"], "mode": self.mode}
        row |= {"behind": self.behind.name} if self.behind else {}
        row |= {"last": self.last.name} if self.last else {}
        return [*([self.removes] if self.removes else []), row | self.opening]

    # -- moves --------------------------------------------------------------------------------

    def work(self) -> list[Any]:
        """What is done with open files."""
        if self.last:
            return self.in_passes([self.again(v) for v in self.chosen(self.wanted)])
        moves = [self.move() for _ in range(self.upto(3))]
        self.first = self.first or moves
        if self.keys:
            return self.like_keys(moves)
        body: list[Any] = []
        for move in moves:
            body.append(move)
            if move.get("nonblocking"):
                body += [*([{"compute": 0.001}] if self.maybe(4) else []), "wait_all"]
            body += ["sync"] if not self.reads and self.maybe(2) else []
            body += [{"compute": 0.001}] if self.maybe(1) else []
        body = self.in_passes(body)
        operates = self.operate(0) if not self.turns else []
        places = [k for k in range(len(body) + 1) if "wait_all" not in body[k : k + 2]]
        at = self.choose(*places)
        body[at:at] = operates
        return [*(["spread"] if self.steady else []), *body]

    def like_keys(self, moves: list[Row]) -> list[Any]:
        """The body as keys say it."""
        inner: list[Any] = moves
        if self.passes > 1:
            inner = [{"repeat": self.passes, "do": moves}]
        pace: list[Any] = ["spread"] if self.steady else []
        pace = pace or ([{"compute": 0.5}] if self.maybe(2) else [])
        return [*self.operate(0), *pace, *inner, *([] if self.reads or self.turns else ["sync"])]

    def in_passes(self, body: list[Any]) -> list[Any]:
        """The body, parts of it several times: loops in each other, and beside other moves."""
        if not self.reads or self.maybe(5):
            return body
        cut = self.upto(len(body) - 1, 0)
        if isinstance(body[cut], str) or any(i == "wait_all" for i in body):
            return body
        inner: list[Any] = [{"repeat": self.upto(3, 2), "do": body[cut:]}]
        if self.maybe(3):
            return [{"repeat": self.upto(3, 2), "do": [*body[:cut], *inner]}]
        return [*body[:cut], *inner]

    def chosen(self, moves: list[Row]) -> list[Row]:
        return self.draw(st.lists(st.sampled_from(moves), min_size=1, unique_by=id))

    def again(self, move: Row) -> Row:
        """A read of what the stream before it has written, which its last content has."""
        name = move["write"]
        row = {"read": name, **{k: move[k] for k in (*ALIKE, "transfer_bytes") if k in move}}
        return row if "at" not in move and self.maybe(3) else row | {"at": name}

    def operate(self, least: int) -> list[Row]:
        """Operations, each kind once."""
        if not least and self.maybe(7):
            return []
        kinds = st.lists(st.sampled_from(OPERATIONS), min_size=least, max_size=2, unique=True)
        chosen = sorted(self.draw(kinds), key=OPERATIONS.index)
        return [{"operate": kind, "runs": self.runs(0, 1, 2)} for kind in chosen]

    def move(self) -> Row:
        self.count += 1
        verb = "read" if self.reads else "write"
        row: Row = {verb: f"v{self.count}", **self.variable()}
        alone = self.turns or self.rows or self.method == "hdf5" or (self.keys and self.reads)
        places = [] if alone else self.moved
        if places and self.maybe(3):
            like = self.choose(*places)
            row = {verb: f"v{self.count}", **{k: like[k] for k in ALIKE if k in like}}
            row["at"] = like[verb]
        row["transfer_bytes"] = self.choose(8, 20, 4096, 1 << 30)
        if self.collects and self.maybe(4):
            row["collective"] = True
        if self.method == "mpiio" and not (self.rows or self.turns or self.flush or self.keys):
            row |= {"nonblocking": True} if self.maybe(1) else {}
        alone = self.rows or self.keys or "lookups" in self.flush
        if not (alone or "collective" in row or "nonblocking" in row):
            row |= {"depth": self.choose(2, 3, 4096)} if self.maybe(2) else {}
        row |= self.flush | ({} if self.rows else self.order)
        self.moved.append(row)
        return row

    def variable(self) -> Row:
        shape = [self.upto(12) for _ in range(self.choose(1, 1, 2, 3))]
        row: Row = {"type": self.choose(*BYTES), "shape": shape}
        split = self.choose("even", "even", "runs", "cyclic", "grid")
        if split == "runs":
            runs = self.runs(0, 1, 5)
            runs[-1][1] += not any(rows for _, rows in runs)
            shape[0] = sum(ranks * rows for ranks, rows in runs)
            row["split"] = {"rule": "runs", "runs": runs}
        elif split == "cyclic":
            row["split"] = {"rule": "cyclic", "block": self.choose(1, 2, 3, 1 << 40)}
        elif split == "grid" and not self.rows:
            row["split"] = {"rule": "grid", "grid": self.grid(len(shape))}
        row |= {"count": self.upto(3, 2)} if self.maybe(2) else {}
        return row | ({"file": 1} if self.files.get("files", 1) > 1 and self.maybe(5) else {})

    def grid(self, dimensions: int) -> list[int]:
        grid, left = [1] * dimensions, self.ranks
        for prime in (2, 3, 5, 7, *range(11, self.ranks + 1, 2)):
            while left % prime == 0:
                grid[self.upto(dimensions) - 1] *= prime
                left //= prime
        assert math.prod(grid) == self.ranks
        return grid

    def row_files(self) -> list[Any]:
        moves = [self.move() for _ in range(self.upto(2))]
        sync = ["sync"] if not self.reads and self.maybe(4) else []
        body = [*self.open(), *moves, *sync, "close"]
        loop: list[Any] = [{"each_file": self.files["name"], **self.order, "do": body}]
        loop = [{"repeat": self.passes, "do": loop}] if self.passes > 1 else loop
        pace = ["spread"] if self.steady else []
        operates = self.operate(0)
        return [*operates, *pace, *loop] if self.reads else [*pace, *loop, *operates]
