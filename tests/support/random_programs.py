"""Random programs (understudy/workload/3) as JSON values, instruction by instruction: what
docs/reference/program.md allows, much of which no keys of the versions before can say.

Nothing here asks the package understudy, which is tested with it.
"""

from random import Random
from typing import Any

Row = dict[str, Any]

BYTES = {"byte": 1, "i16": 2, "f32": 4, "f64": 8}
OPERATIONS = ("open", "stat", "create", "mkdir", "seek", "sync")


def program(rng: Random, ranks: int = 4) -> Row:
    """A valid program of at most so many ranks."""
    return _Program(rng, ranks).row()


class _Program:
    def __init__(self, rng: Random, ranks: int) -> None:
        self.rng, self.ranks = rng, rng.randint(1, ranks)
        self.sets: list[Row] = []
        self.streams: list[Row] = []

    def maybe(self, share: float) -> bool:
        return self.rng.random() < share

    def row(self) -> Row:
        for n in range(self.rng.choice((1, 1, 2, 3))):
            self.family(n)
        return {
            "schema": "understudy/workload/3",
            "name": "random",
            "description": "",
            "ranks": self.ranks,
            "scaling": {"rule": "none", "from_ranks": self.ranks},
            "runtime_s": None,
            "compute": "sleep",
            "sets": self.sets,
            "streams": self.streams,
            "source": {"format": "hand", "version": "", "reader": "", "notes": []},
            "provenance": [],
        }

    def family(self, n: int) -> None:
        """A set of files, and the streams that use it."""
        rng = self.rng
        files: Row = {"name": f"set{n}"}
        files["of"] = rng.choice(["all ranks", "each rank", "each group", "each row", "all ranks"])
        if files["of"] == "each group":
            files["groups"] = rng.randint(1, self.ranks)
        rows = files["of"] == "each row"
        reads = self.maybe(0.4)
        if not rows:
            files["files"] = rng.choice((1, 1, 2))
            files["index"] = rng.choice(("k", "k", "none", 1, 2, 3))
        if not rows and files["of"] != "all ranks" and self.maybe(0.3):
            files["own_directories"] = True
        if reads:
            files["prepared"] = True
        self.sets.append(files)
        method = rng.choice(("posix", "posix", "mpiio", "stdio"))
        first = _Stream(self, files, f"s{n}", method, reads)
        self.streams.append(first.row())
        if rows or reads or first.turns:
            return
        alike = all("begin" in step["do"] for step in first.steps)
        alike = alike and first.mode != "keep" and not first.closes
        if self.maybe(0.3) and alike:
            self.streams.append(_Stream(self, files, f"b{n}", method, False, behind=first).row())
        if self.maybe(0.4) and method != "stdio":
            self.streams.append(_Stream(self, files, f"r{n}", method, True, last=first).row())


class _Stream:
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
        self.program, self.rng, self.files = program, program.rng, files
        self.name, self.method, self.reads = name, method, reads
        self.behind, self.last, self.base = behind, last, behind or last
        self.rows = files["of"] == "each row"
        index = files.get("index", "k")
        again = index != "k"
        self.closes = again and not self.base and not self.rows and self.maybe(0.4)
        shared = files["of"] in ("all ranks", "each group")
        self.turns = shared and index == "k" and not self.base and not reads and self.maybe(0.2)
        self.mode = self._mode(again, index)
        self.order = self._order()
        alone = self.turns or self.rows or bool(last) or "order" in self.order
        self.collects = method == "mpiio" and not alone
        self.removes = self.mode == "new" and again and not self.base
        self.moved: list[Row] = []  # by the content that it is at
        self.steps: list[Row] = []
        self.count = 0
        self.syncs = not reads and self.maybe(0.3)
        self.operated: set[str] = set()  # kinds, in the step
        self.flush = {"flush_bytes": self.rng.choice((64, 500))} if self.flushes() else {}
        self.make()

    def maybe(self, share: float) -> bool:
        return self.rng.random() < share

    def flushes(self) -> bool:
        return not self.reads and self.method != "stdio" and self.maybe(0.2)

    def _mode(self, again: bool, index: Any) -> str:
        if self.reads:
            return "read"
        if self.behind or self.closes or index == "none":
            return "keep"
        return self.rng.choice(("keep", "truncate")) if again else "new"

    def _order(self) -> Row:
        order = self.rng.choice(({"rule": "strided", "step": 2}, {"rule": "shuffled", "seed": 7}))
        return {"order": order} if self.maybe(0.2) else {}

    def row(self) -> Row:
        row: Row = {"name": self.name, "role": "output", "method": self.method}
        if self.closes:
            row["close_last"] = True
        return row | {"steps": self.steps}

    # -- steps --------------------------------------------------------------------------------

    def make(self) -> None:
        """Contents of one step or of several, in the order of time."""
        at: float = self.rng.choice((0, 0, 0.5))
        base = self.base
        if base:
            at = base.end + 1
        dumps = sum(s.get("repeat", 1) for s in base.steps) if base else 0
        while True:
            made = self.content()
            if self.behind:  # as many dumps as that one has
                made = made[:1]
                made[0]["repeat"] = self.rng.randint(1, dumps)
                dumps -= made[0]["repeat"]
            for step in made:
                step["at"] = at
                if step.get("repeat", 1) == 1:
                    step.pop("repeat", None)
                else:
                    step["every"] = self.rng.choice((0, 1))
                    at += step["every"] * (step["repeat"] - 1)
                at += self.rng.choice((0, 1))
                self.steps.append(step)
            if dumps == 0 and (self.behind or self.maybe(0.5)):
                break
            dumps = dumps if self.behind else 0
        self.end = at

    def content(self) -> list[Row]:
        """The steps of one content."""
        begins = ["begin"] if self.files.get("index") != "none" or self.last else []
        self.moved = [] if begins else self.moved
        self.operated = set()
        if self.rows:
            return [{"repeat": self.rng.randint(1, 3), "do": [*begins, *self.row_loops()]}]
        if self.closes:
            made = [self.open(), *self.work()]
            return [{"repeat": self.rng.randint(1, 3), "do": [*begins, *self.early(), *made]}]
        again = self.reads and self.files.get("index", "k") != "k"
        simple = self.maybe(0.5) or self.base or self.turns or self.method == "stdio" or again
        if simple:
            body = [*self.before(), self.open(), *self.work(), "close"]
            body = [{"in_turn": body}] if self.turns else body
            return [{"repeat": self.rng.randint(1, 3), "do": [*begins, *self.early(), *body]}]
        steps = [{"do": [*begins, *self.before(), self.open(), *self.work()]}]
        for _ in range(self.rng.randint(0, 2)):
            steps.append({"repeat": self.rng.randint(1, 2), "do": self.work()})
        steps.append({"do": [*self.work(), "close"]})
        return steps

    def early(self) -> list[Any]:
        """What stands before an open."""
        ranks = self.program.ranks
        return [{"wait": [[ranks, 0.001]]}] if self.maybe(0.1) and not self.turns else []

    def before(self) -> list[Any]:
        return ["remove"] if self.removes else []

    def open(self) -> Row:
        row: Row = {"open": self.files["name"], "mode": self.mode}
        row |= {"behind": self.behind.name} if self.behind else {}
        return row | ({"last": self.last.name} if self.last else {})

    # -- moves --------------------------------------------------------------------------------

    def work(self) -> list[Any]:
        """What is done with open files."""
        if self.last:
            return self.passes([self.again(v) for v in self.chosen()])
        made: list[Any] = []
        for _ in range(self.rng.randint(1, 3)):
            made.append(self.move())
            if self.maybe(0.5):  # a run of moves goes on
                continue
            made += ["sync"] if self.syncs and self.maybe(0.7) else []
            made += self.operate() if self.maybe(0.3) and not self.turns else []
            made += [{"compute": 0.001}] if self.maybe(0.2) else []
        return self.passes(made)

    def passes(self, body: list[Any]) -> list[Any]:
        """The body, parts of it several times: loops in each other, and beside other moves."""
        if not self.reads or self.maybe(0.5) or any("operate" in i for i in body):
            return body
        cut = self.rng.randint(0, len(body) - 1)
        inner: list[Any] = [{"repeat": self.rng.randint(1, 3), "do": body[cut:]}]
        if self.maybe(0.3):
            inner = [{"repeat": self.rng.randint(1, 3), "do": [*body[:cut], *inner]}]
            return inner
        return [*body[:cut], *inner]

    def chosen(self) -> list[Row]:
        assert self.last is not None
        found = self.last.moved
        return self.rng.sample(found, self.rng.randint(1, len(found)))

    def again(self, variable: Row) -> Row:
        """A read of what the stream before it has written, which its last content has."""
        keys = ("type", "shape", "split", "count", "file", "transfer_bytes")
        name = variable["write"]
        row = {"read": name, **{k: variable[k] for k in keys if k in variable}, "at": name}
        return row

    def operate(self) -> list[Row]:
        """Each kind at most once in a step."""
        kind = self.rng.choice(OPERATIONS)
        again = kind in self.operated
        self.operated.add(kind)
        runs = [[self.program.ranks, self.rng.randint(0, 2)]]
        return [] if again else [{"operate": kind, "runs": runs}]

    def move(self) -> Row:
        self.count += 1
        rng, ranks = self.rng, self.program.ranks
        kind = rng.choice([*BYTES])
        shape = [rng.randint(1, 12) for _ in range(rng.choice((1, 1, 2)))]
        row: Row = {"read" if self.reads else "write": f"v{self.count}", "type": kind}
        row["shape"] = shape
        split = rng.choice(("even", "even", "runs", "cyclic", "grid"))
        if split == "runs":
            rest = rng.randint(0, ranks - 1)
            rows = rng.randint(1, 5)
            runs = [[ranks - rest, rows], *([[rest, 0]] if rest else [])]
            row["shape"] = [(ranks - rest) * rows, *shape[1:]]
            row["split"] = {"rule": "runs", "runs": runs}
        elif split == "cyclic":
            row["split"] = {"rule": "cyclic", "block": rng.randint(1, 3)}
        elif split == "grid" and not self.rows:
            row["split"] = {"rule": "grid", "grid": [ranks, *(1 for _ in shape[1:])]}
        if self.maybe(0.2):
            row["count"] = rng.randint(2, 3)
        if self.files.get("files", 1) > 1:
            row["file"] = rng.randint(0, self.files["files"] - 1)
        row["transfer_bytes"] = rng.choice((8, 20, 4096))
        if self.collects and self.maybe(0.4):
            row["collective"] = True
        row |= {} if self.rows else self.order
        row |= self.flush
        self.moved.append(row)
        return row

    def row_loops(self) -> list[Any]:
        moves = [self.move() for _ in range(self.rng.randint(1, 2))]
        sync = ["sync"] if self.syncs else []
        body = [self.open(), *moves, *sync, "close"]
        loop: Row = {"each_file": self.files["name"], **self.order, "do": body}
        if self.reads and self.maybe(0.4):
            loop = {"repeat": self.rng.randint(1, 2), "do": [loop]}
        return [loop]
