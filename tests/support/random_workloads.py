"""Random workloads as JSON values: valid by construction, with keys in combinations that no
workload of an application has; and what each of them uses.

The rules are those of schemas/workload.schema.json. Nothing here asks the package understudy,
which is tested with it.
"""

import json
import math
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any

Row = dict[str, Any]

BYTES = {"byte": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8}
BYTES |= {"f32": 4, "f64": 8}
KINDS = ("open", "stat", "create", "mkdir", "rename", "unlink", "sync", "seek")
ROLES = ("checkpoint", "visualization", "output", "restart", "input")
ADDRESSING = ("posix", "stdio", "mpiio", "null")  # methods that address bytes
METHODS = (*ADDRESSING, "posix", "mpiio", "hdf5", "adios")
NAMES = ("a", "b", "rho", "vx", "T.x", "u-1", "p_", "n0", "q_1", "q_01", "r_x", "Z")
TEXTS = ("", "", "density", "Größe, 密度", 'a "quoted" one\n')


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How large a workload becomes; with `long_repeat` of 50 all of them can be played."""

    ranks: int = 64
    streams: int = 4
    entries: int = 5
    variables: int = 4
    bytes: int = 4096  # of a variable
    files: int = 4
    long_repeat: int = 1_000_000


SMALL = Limits()


def valid(rng: Random, limits: Limits = SMALL) -> Row:
    """A valid workload."""
    return _Workload(rng, limits).row()


@dataclass
class _Contents:
    """What the files of a stream hold: places (variable, offset) by name, and bytes by file."""

    places: dict[str, tuple[Row, int]] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)

    def add(self, variable: Row) -> None:
        place, file = variable.get("at"), variable["file"]
        begin = self.sizes.get(file, 0) if place is None else self.places[place][1]
        if place is None:
            self.sizes[file] = begin + size(variable)
        self.places[variable["name"]] = (variable, begin)

    def add_all(self, variables: list[Row]) -> "_Contents":
        for variable in variables:
            self.add(variable)
        return self

    def copy(self) -> "_Contents":
        return _Contents(dict(self.places), dict(self.sizes))

    def has(self, variables: list[Row]) -> bool:
        """Whether the variables can be read from the files."""
        behind: dict[int, int] = {}
        for v in variables:
            if v.get("at") is None:
                behind[v["file"]] = end = behind.get(v["file"], 0) + size(v)
            else:
                place, begin = self.places.get(v["at"], (None, 0))
                if place is None or place["file"] != v["file"]:
                    return False
                end = begin + size(v)
            if end > self.sizes.get(v["file"], 0):
                return False
        return True

    def takes(self, variables: list[Row]) -> bool:
        """Whether the variables can be written, those with the place of another in it."""
        files = self.copy()
        for v in variables:
            if v.get("at") is not None and not _alike(v, files.places.get(v["at"], ({}, 0))[0]):
                return False
            files.add(v)
        return True


def _alike(one: Row, other: Row) -> bool:
    keys = ("count", "type", "shape", "decomposition", "file")
    return all(one[key] == other.get(key) for key in keys)


def size(variable: Row) -> int:
    """Bytes of a variable."""
    elements: int = variable["count"] * math.prod(variable["shape"])
    return elements * BYTES[variable["type"]]


@dataclass
class _Stream:
    """A stream that is made, and what others need to know of it."""

    row: Row
    contents: list[_Contents] = field(default_factory=list)  # behind the first dump of each entry
    extended: bool = False

    @property
    def continues(self) -> bool:
        return any(d.get("continues") for d in self.row["dumps"])

    @property
    def files(self) -> int:
        return 1 + max((v["file"] for d in self.row["dumps"] for v in d["variables"]), default=0)

    def extends_by(self) -> bool:
        """Whether another can extend it."""
        row = self.row
        can = row["files"] in ("new", "rewrite") and row["layout"] != "flood" and not row["turns"]
        return can and not self.extended and not self.continues and row["method"] in ADDRESSING

    def read_by(self) -> bool:
        """Whether another can read its files."""
        row = self.row
        can = row["operation"] == "write" and row["layout"] != "flood" and not row["turns"]
        return can and row["method"] in ADDRESSING


class _Workload:
    """One workload, stream by stream."""

    def __init__(self, rng: Random, limits: Limits) -> None:
        self.rng, self.limits = rng, limits
        self.ranks = rng.choice((1, 2, 3, 4, 8, rng.randint(1, limits.ranks), limits.ranks))
        self.ranks = min(self.ranks, limits.ranks)
        self.streams: list[_Stream] = []

    def row(self) -> Row:
        rng = self.rng
        for _ in range(rng.randint(1, self.limits.streams)):
            self._stream()
        rule = rng.choice(("none", "none", "strong", "weak"))
        row: Row = {
            "schema": "understudy/workload/2",
            "name": rng.choice(("app", "A.b_c-1", "0", "x" * 100)),
            "description": rng.choice(TEXTS),
            "ranks": self.ranks,
            "scaling": {
                "rule": rule,
                "from_ranks": self.ranks if rule == "none" else rng.choice((1, 7, 1 << 40)),
            },
            "runtime_s": rng.choice((None, 0, 100, 12.5)),
            "compute": rng.choice(("sleep", "busy", "stencil")),
            "streams": [stream.row for stream in self.streams],
            "source": {
                "format": rng.choice(("hand", "darshan", "simulation")),
                "version": rng.choice(TEXTS),
                "reader": "",
                "notes": rng.sample(TEXTS, rng.randint(0, 2)),
            },
            "provenance": [
                {
                    "path": rng.choice(("/streams", "/ranks", "/streams/0/dumps/*/time_s", "/")),
                    "origin": rng.choice(("read", "derived", "reconstructed", "assumed")),
                    "confidence": rng.choice(("certain", "likely", "guess")),
                    "how": rng.choice(("x", "POSIX_OPENS")),
                }
                for _ in range(rng.randint(0, 2))
            ],
        }
        return _shuffled(row, rng) if self.maybe(0.1) else row

    def maybe(self, share: float) -> bool:
        return self.rng.random() < share

    def _stream(self) -> None:
        bases = [s for s in self.streams if s.extends_by()]
        sources = [s for s in self.streams if s.read_by()]
        if sources and self.maybe(0.4):
            made = self._reader(self.rng.choice(sources))
        elif bases and self.maybe(0.55):
            made = self._extension(self.rng.choice(bases))
        else:
            made = self._free()
        stream = made.row
        operations = any(d.get("operations") for d in stream["dumps"])
        if (operations or stream["layout"] == "flood") and self.maybe(0.5):
            stream["files_per_directory"] = self.rng.choice((1, 3, 100, None))
        self.streams.append(made)

    # -- the keys of a stream ---------------------------------------------------------------------

    def _free(self) -> _Stream:
        rng = self.rng
        operation = rng.choice(("write", "write", "read"))
        reads = operation == "read"
        files = rng.choice(("new", "append", "update", *(() if reads else ("rewrite", "rewrite"))))
        layouts = ["shared", "file-per-process", "grouped"]
        if files == "new" or (reads and files == "update"):
            layouts.append("flood")
        row = self._keys(operation, files, rng.choice(layouts), rng.choice(METHODS))
        row["groups"] = rng.randint(1, self.ranks) if row["layout"] == "grouped" else None
        self._reopen(row)
        if files in ("rewrite", "update") and self.maybe(0.5):
            row["names"] = rng.choice((2, 2, 3, 5, 1024))
        self._alone(row, turns=self.maybe(0.4))
        made = _Stream(row)
        self._dumps(made, self._times())
        return made

    def _extension(self, base: _Stream) -> _Stream:
        """A stream that goes into the files of another."""
        its = base.row
        row = self._keys(its["operation"], its["files"], its["layout"], its["method"])
        row |= {"groups": its["groups"], "extends": its["name"], "names": its.get("names", 1)}
        if row["names"] == 1 and self.maybe(0.8):
            del row["names"]
        self._reopen(row)
        self._alone(row, turns=False)
        made = _Stream(row)
        self._dumps(made, list(self._later(its["dumps"])), files=base.files)
        base.extended = True
        return made

    def _later(self, dumps: list[Row]) -> Iterator[Row]:
        """The times of dumps, or some time behind them."""
        delay, last = self.rng.choice((0, 0.25, 3, 0.1)), 0.0
        for dump in dumps:
            row = {key: deepcopy(dump[key]) for key in ("time_s", "repeat") if key in dump}
            row["time_s"] = max(row["time_s"] + delay, last)
            last = last_s(row)
            yield row

    def _reader(self, base: _Stream) -> _Stream:
        """A stream that reads the files of another."""
        its = base.row
        row = self._keys("read", "update", its["layout"], its["method"])
        row |= {"groups": its["groups"], "reads": its["name"], "collective": False}
        if self.maybe(0.2):
            row["reopen"] = True
        self._order(row)
        self._pace(row)
        made = _Stream(row)
        begin = self.rng.choice(its["dumps"])["time_s"]
        times = self._times(begin)
        row["dumps"] = []
        for place in times:
            at = max(k for k, d in enumerate(its["dumps"]) if d["time_s"] <= place["time_s"])
            dump = self._read(place, row, base.contents[at])
            if not all(contents.has(dump["variables"]) for contents in base.contents[at:]):
                dump.pop("repeat", None)
            row["dumps"].append(dump)
            if dump is not place and "repeat" in place and "repeat" not in dump:
                break  # later times are behind those of the repetitions
        return made

    def _keys(self, operation: str, files: str, layout: str, method: str) -> Row:
        """Keys that do not depend on each other."""
        rng = self.rng
        kind = rng.choice(("random", "random", "zero", "constant", "smooth"))
        row = {
            "name": rng.choice(("s", "state", "out.1-", "x" * 98)) + str(len(self.streams)),
            "label": rng.choice(TEXTS),
            "role": rng.choice(ROLES),
            "operation": operation,
            "files": files,
            "layout": layout,
            "groups": None,
            "method": method,
            "transfer_bytes": rng.choice((1, 7, 64, 4096, 1 << 20)),
            "collective": False,
            "sync": self.maybe(0.4),
            "turns": False,
            "content": {
                "kind": kind,
                "compressibility": rng.choice((0, 0, 0.5, 1, 0.25)) if kind == "random" else 0,
            },
        }
        if self.maybe(0.2):
            row["direct"] = self.maybe(0.8)
        if operation == "read":
            if self.maybe(0.4):
                row["passes"] = rng.choice((1, 2, 3, 1_000_000))
        else:
            if self.maybe(0.25):
                row["sync_bytes"] = rng.choice((None, 1, 100, 1 << 20))
            if self.maybe(0.1):
                row["chunk_bytes"] = rng.choice((None, 64, 1 << 20))
            if self.maybe(0.1):
                row["fill"] = self.maybe(0.8)
            if not row.get("sync_bytes") and self.maybe(0.25):
                row["flush_bytes"] = rng.choice((None, 1, 100, 1 << 20))
            if self.maybe(0.2):
                row["write_through"] = self.maybe(0.8)
        defaults = {
            "names": 1,
            "extends": None,
            "reads": None,
            "removes": False,
            "passes": 1,
        }
        defaults |= {"own_directories": False, "files_per_directory": None, "sync_bytes": None}
        for key in rng.sample(sorted(defaults), 2) if self.maybe(0.1) else ():
            row.setdefault(key, defaults[key])
        return row

    def _reopen(self, row: Row) -> None:
        chances = {"append": (0.4, 0.2), "update": (0.15, 0.45)}
        true, false = chances.get(row["files"], (0.15, 0))
        choice = self.rng.random()
        if choice < true + false:
            row["reopen"] = choice < true

    def _alone(self, row: Row, turns: bool) -> None:
        """Keys of a stream that does not read another's files."""
        layout = row["layout"]
        row["turns"] = turns and row["files"] == "new" and layout in ("shared", "grouped")
        if row["files"] == "rewrite" and self.maybe(0.4):
            row["removes"] = True
            # Not drawn, so that the known seeds stay the workloads that they were.
            row["backup"] = row["transfer_bytes"] % 2 == 1
        if layout in ("file-per-process", "grouped") and self.maybe(0.4):
            row["own_directories"] = True
        self._order(row)
        self._pace(row)
        if _may_collect(row):
            row["collective"] = self.maybe(0.4)

    def _order(self, row: Row) -> None:
        orders: tuple[Row, ...] = (
            {"rule": "consecutive"},
            {"rule": "strided", "step": self.rng.choice((1, 2, 7))},
            {"rule": "shuffled", "seed": self.rng.choice((0, 1, (1 << 63) - 1))},
        )
        if self.maybe(0.35):
            row["order"] = self.rng.choice(orders)

    def _pace(self, row: Row) -> None:
        if self.maybe(0.3):
            row["pace"] = self.rng.choice(("burst", "steady", "steady"))

    # -- dumps ------------------------------------------------------------------------------------

    def _times(self, begin: float = 0) -> list[Row]:
        """Times and repetitions of entries, in order."""
        rng = self.rng
        regular = self.maybe(0.6)
        last = begin + rng.choice((0, 0, 1, 2.5, 1e-3))
        rows: list[Row] = []
        for _ in range(rng.randint(1, self.limits.entries)):
            row: Row = {"time_s": last}
            if self.maybe(0.35):
                period = rng.choice((1, 0.125, 0.1, 60)) if regular else rng.uniform(1e-6, 9)
                row["repeat"] = {"count": rng.choice((2, 3, rng.randint(2, 50)))}
                row["repeat"]["period_s"] = period
            rows.append(row)
            last = last_s(row) + (rng.choice((0, 1, 0.5, 10)) if regular else rng.uniform(0, 9))
        if self.maybe(0.001):
            rows[-1]["repeat"] = {"count": self.limits.long_repeat, "period_s": 0.001}
        return rows

    def _dumps(self, made: _Stream, times: list[Row], files: int = 0) -> None:
        row = made.row
        row["dumps"] = []
        contents = _Contents()
        goes_on = _may_continue(row) and self.maybe(0.5)
        for place in times:
            dump = self._dump(place, row)
            if goes_on and row["dumps"] and self.maybe(0.6):
                dump["continues"] = True
            elif _may_continue(row) and self.maybe(0.05):
                dump["continues"] = False
            if row["files"] != "append" and not dump.get("continues"):
                contents = _Contents()
            if row["dumps"] and row["dumps"][-1]["variables"] and self.maybe(0.5):
                again = deepcopy(row["dumps"][-1]["variables"])
                if contents.takes(again):
                    dump["variables"] = again
            if not dump["variables"] and not (dump.get("operations") and self.maybe(0.3)):
                dump["variables"] = self._variables(row, contents, files)
            made.contents.append(contents.copy().add_all(dump["variables"]))
            grows = row["files"] == "append" or dump.get("continues")
            if grows and not made.contents[-1].takes(dump["variables"]):
                dump.pop("repeat", None)  # the next one would find other places of these names
            for _ in range(min(2, dump.get("repeat", {}).get("count", 1))):
                contents.add_all(dump["variables"])
                if not grows:
                    contents = made.contents[-1].copy()
            row["dumps"].append(dump)

    def _dump(self, place: Row, stream: Row) -> Row:
        """A dump without variables."""
        rng, steady = self.rng, stream.get("pace") == "steady"
        dump = place | {
            "duration_s": rng.choice((1, 0.5, 1e-9)) if steady else rng.choice((None, 0, 2, 0.1)),
            "overhead_bytes": rng.choice((None, 0, 4096, -1)),
            "variables": [],
        }
        if self.maybe(0.25):
            kinds = [rng.choice(KINDS) for _ in range(rng.randint(0, 4))]
            dump["operations"] = [{"operation": k, "runs": self._runs(3)} for k in kinds]
        if self.maybe(0.2):
            free = not steady and stream["layout"] != "flood"
            dump["compute_s"] = rng.choice((0, 1, 0.001)) if free else 0
        _skew(dump, self.ranks)
        return dump

    def _read(self, place: Row, stream: Row, contents: _Contents) -> Row:
        """A dump of a stream that reads what files hold."""
        dump = self._dump(place, stream)
        names: list[str] = []
        behind: dict[int, int] = {}
        for _ in range(self.rng.randint(1, self.limits.variables)):
            variable = self._read_variable(names, behind, contents)
            if variable is None:
                break
            self._calls(variable, collective=False)
            dump["variables"].append(variable)
        if not dump["variables"] and not dump.get("operations"):
            dump["operations"] = [{"operation": "stat", "runs": self._runs(3)}]
        return dump

    def _read_variable(
        self, names: list[str], behind: dict[int, int], contents: _Contents
    ) -> Row | None:
        """A variable in the files, in the place of another or behind those of the dump before."""
        rng = self.rng
        at = rng.choice(sorted(contents.places)) if contents.places and self.maybe(0.6) else None
        if at is not None:
            place, begin = contents.places[at]
            if self.maybe(0.5):
                keys = ("count", "type", "shape", "decomposition", "file")
                return self._named(names, {k: deepcopy(place[k]) for k in keys} | {"at": at})
            file = place["file"]
        else:
            file = rng.choice(sorted(contents.sizes) or [0])
            begin = behind.get(file, 0)
        left = contents.sizes.get(file, 0) - begin
        if left <= 0:
            return None
        kind = rng.choice([k for k, n in BYTES.items() if n <= left])
        elements = rng.choice((left // BYTES[kind], rng.randint(1, left // BYTES[kind])))
        row = {"count": 1, "type": kind, "shape": [elements], "file": file}
        row["decomposition"] = rng.choice(
            (
                {"rule": "even"},
                {"rule": "cyclic", "block": 2},
                {"rule": "grid", "grid": [self.ranks]},
            )
        )
        if at is None:
            behind[file] = begin + elements * BYTES[kind]
        return self._named(names, row | ({} if at is None else {"at": at}))

    # -- variables --------------------------------------------------------------------------------

    def _variables(self, stream: Row, contents: _Contents, files: int) -> list[Row]:
        """Variables of a dump, some of them in places that the files have by then."""
        now = contents.copy()
        names: list[str] = []
        made: list[Row] = []
        placed = self.maybe(0.5) and _may_place(stream)
        for _ in range(self.rng.randint(1, self.limits.variables)):
            if placed and now.places and self.maybe(0.5):
                at = self.rng.choice(sorted(now.places))
                keys = ("count", "type", "shape", "decomposition", "file")
                row = {k: deepcopy(now.places[at][0][k]) for k in keys} | {"at": at}
            else:
                row = self._variable(stream, files)
            self._named(names, row, made)
            self._calls(row, collective=_may_collect(stream))
            made.append(row)
            now.add(row)
        return made

    def _named(self, names: list[str], row: Row, others: list[Row] | None = None) -> Row:
        """The variable with a name that no other has, also not by its number."""
        free = [n for n in NAMES if n not in names]
        many = [
            v for v in others or () if v["count"] > 1 and f"{v['name']}_{v['count']}" not in names
        ]
        name = self.rng.choice(free)
        if many and self.maybe(0.2):  # the number after the last
            name = f"{many[0]['name']}_{many[0]['count']}"
        names.append(name)
        row |= {"name": name, "label": self.rng.choice(TEXTS)}
        return row

    def _variable(self, stream: Row, files: int) -> Row:
        """The type, shape, decomposition and file of a variable."""
        rng = self.rng
        kind = rng.choice(sorted(BYTES))
        count = rng.choice((1, 1, 1, 2, 3, 12))
        dimensions = rng.choice((1, 1, 2, 2, 3, 8))
        elements = max(1, self.limits.bytes // BYTES[kind] // count)
        rows = rng.choice((1, self.ranks, self.ranks + 1, 2 * self.ranks, rng.randint(1, 256)))
        shape = [max(1, min(rows, elements))]
        for _ in range(dimensions - 1):
            left = elements // math.prod(shape)
            shape.append(rng.randint(1, min(left, 8)) if left > 1 else 1)
        most = files or rng.choice((1, 1, 2, self.limits.files))
        far = not files and self.limits.files == SMALL.files and self.maybe(0.003)
        return {
            "count": count,
            "type": kind,
            "decomposition": self._decomposition(shape, stream["layout"] == "flood"),
            "shape": shape,
            "file": 1023 if far else rng.randrange(most),
        }

    def _decomposition(self, shape: list[int], flood: bool) -> Row:
        """A rule for this shape, whose rows are changed to those of runs."""
        rng = self.rng
        rule = rng.choice(("even", "runs", "cyclic", *(() if flood else ("grid",))))
        row: Row = {"rule": rule}
        if rule == "cyclic":
            row["block"] = rng.choice((1, 2, 3, shape[0], 1 << 40))
        elif rule == "grid":
            row["grid"] = self._grid(len(shape))
        elif rule == "runs":
            runs = self._runs(4)
            if not any(rows for _, rows in runs):
                runs[-1][1] = 1
            row["runs"] = runs
            shape[0] = sum(n * rows for n, rows in runs)
        return row

    def _grid(self, dimensions: int) -> list[int]:
        """Ranks along each dimension."""
        grid, left = [1] * dimensions, self.ranks
        for prime in (2, 3, 5, 7, *range(11, self.ranks + 1, 2)):
            while left % prime == 0:
                grid[self.rng.randrange(dimensions)] *= prime
                left //= prime
        return grid

    def _runs(self, most: int) -> list[list[int]]:
        """Runs of all ranks, with 0 to `most` for each rank."""
        rng, runs, left = self.rng, [], self.ranks
        while left:
            ranks = left if len(runs) == 3 else rng.randint(1, left)
            runs.append([ranks, rng.randint(0, most)])
            left -= ranks
        return runs

    def _calls(self, row: Row, collective: bool) -> None:
        """How a variable is moved, if in a way of its own."""
        if self.maybe(0.15):
            row["transfer_bytes"] = self.rng.choice((None, 1, 100, 1 << 30))
        if self.maybe(0.2):
            row["collective"] = self.rng.choice(
                (None, False, *((True, True) if collective else ()))
            )
        if "at" not in row and self.maybe(0.05):
            row["at"] = None


def _skew(dump: Row, ranks: int) -> None:
    """Ranks that begin later. Drawn apart, so that the known seeds stay the workloads that they
    were."""
    rng, runs, left = Random(json.dumps([dump, ranks], sort_keys=True)), [], ranks
    if rng.random() >= 0.2:
        return
    while left and rng.random() < 0.95:
        count = left if len(runs) == 3 else rng.randint(1, left)
        runs.append([count, rng.choice((0, 1, 0.25, 1e-9, 0.1))])
        left -= count
    dump["skew"] = runs if not left else []


def _may_collect(stream: Row) -> bool:
    consecutive = stream.get("order", {}).get("rule", "consecutive") == "consecutive"
    other = stream["turns"] or stream["layout"] == "flood" or stream.get("reads")
    return consecutive and not other


def _may_continue(stream: Row) -> bool:
    closes = stream["files"] in ("new", "rewrite", "update") and stream.get("reopen", True)
    writes = stream["operation"] == "write" and stream["layout"] != "flood"
    return closes and writes and not stream["turns"] and not stream.get("extends")


def _may_place(stream: Row) -> bool:
    writes = stream["operation"] == "write" and stream["layout"] != "flood"
    return writes and not stream["turns"]


def last_s(dump: Row) -> float:
    """When the last dump of an entry starts."""
    repeat = dump.get("repeat", {"count": 1, "period_s": 0})
    time_s: float = dump["time_s"] + (repeat["count"] - 1) * repeat["period_s"]
    return time_s


def _shuffled(value: Any, rng: Random) -> Any:
    """The value with the keys of its objects in another order."""
    if isinstance(value, dict):
        return {key: _shuffled(value[key], rng) for key in rng.sample(list(value), len(value))}
    return [_shuffled(v, rng) for v in value] if isinstance(value, list) else value


# -- what a workload uses -------------------------------------------------------------------------

# Of these, each pair of one stream is counted: what says which files a stream has, and when they
# are opened, filled and emptied.
PAIRED = {
    *(f"files {f}" for f in ("new", "append", "rewrite", "update")),
    *(f"layout {name}" for name in ("shared", "file-per-process", "grouped", "flood")),
    *("operation write", "operation read", "names", "reopen true", "reopen false", "removes"),
    *("extends", "extends twice", "reads", "continues", "turns", "own_directories", "at"),
    *("files_per_directory", "passes", "steady", "repeat", "operations only", "skew"),
}


def features(row: Row) -> list[set[str]]:
    """What each stream uses; with the first one what the workload does."""
    streams = {s["name"]: s for s in row["streams"]}
    found = [set(_of_stream(s, streams)) for s in row["streams"]]
    found[0] |= {f"streams {len(streams)}", f"compute {row['compute']}"}
    found[0] |= {
        f"scaling {row['scaling']['rule']}",
        f"ranks {1 << row['ranks'].bit_length() - 1}…",
    }
    return found


def _of_stream(stream: Row, streams: dict[str, Row]) -> Iterator[str]:
    for key in ("operation", "files", "layout", "method", "role"):
        yield f"{key} {stream[key]}"
    for key in (
        "turns",
        "collective",
        "sync",
        "direct",
        "write_through",
        "removes",
        "backup",
        "extends",
    ):
        if stream.get(key):
            yield key
    for key in ("own_directories", "files_per_directory", "sync_bytes", "flush_bytes", "reads"):
        if stream.get(key):
            yield key
    yield from (key for key in ("names", "passes") if stream.get(key, 1) > 1)
    yield f"content {stream['content']['kind']}"
    if "reopen" in stream:
        yield f"reopen {str(stream['reopen']).lower()}"
    if "order" in stream:
        yield f"order {stream['order']['rule']}"
    if stream.get("pace") == "steady":
        yield "steady"
    if stream.get("extends") and streams[stream["extends"]].get("extends"):
        yield "extends twice"
    for dump in stream["dumps"]:
        yield from _of_dump(dump)


def _of_dump(dump: Row) -> Iterator[str]:
    if "repeat" in dump:
        yield "repeat"
        yield "repeat 10^6" if dump["repeat"]["count"] > 1000 else "repeat 2…50"
    yield from (key for key in ("continues", "compute_s", "skew") if dump.get(key))
    yield "duration null" if dump["duration_s"] is None else "duration"
    if dump["time_s"] != round(dump["time_s"], 3):
        yield "irregular time"
    yield from (f"{o['operation']} operations" for o in dump.get("operations", ()))
    if not dump["variables"]:
        yield "operations only"
    for variable in dump["variables"]:
        yield f"decomposition {variable['decomposition']['rule']}"
        yield f"type {variable['type']}"
        yield from (
            f"{k} of a variable" for k in ("transfer_bytes", "collective") if variable.get(k)
        )
        yield from (["at"] if variable.get("at") else [])
        yield from (["count"] if variable["count"] > 1 else [])
        yield from (["file"] if variable["file"] else [])


def playable(row: Row) -> Row:
    """The workload by methods that can play it, with few passes."""
    row["compute"] = "sleep"
    roots: dict[str, str] = {}
    for stream in row["streams"]:
        base = stream.get("extends") or stream.get("reads")
        roots[stream["name"]] = roots.get(base, stream["name"])
        stream["passes"] = min(stream.get("passes", 1), 3)
        for part in (stream, *(v for d in stream["dumps"] for v in d["variables"])):
            if part.get("transfer_bytes"):
                part["transfer_bytes"] = max(8, part["transfer_bytes"])
    for root in set(roots.values()):
        streams = [s for s in row["streams"] if roots[s["name"]] == root]
        method = _method(streams)
        for stream in streams:
            stream["method"] = method
    return row


def _method(streams: list[Row]) -> str:
    method: str = streams[0]["method"]
    dumps = [d for s in streams for d in s["dumps"]]
    goes_on = any(d.get("continues") for d in dumps)
    placed = any(v.get("at") for d in dumps for v in d["variables"])
    if method in ("adios", "null") or any(s.get("write_through") for s in streams):
        return "posix"
    if method == "hdf5" and (goes_on or placed or len(streams) > 1):
        return "mpiio"
    return "posix" if method == "stdio" and goes_on else method


def can_be_played(row: Row) -> bool:
    """Not where files that dumps share are first opened by a dump without bytes: the player does
    not make them."""
    return not any(
        s["files"] != "new" and not s.get("reads") and not s["dumps"][0]["variables"]
        for s in row["streams"]
    )
