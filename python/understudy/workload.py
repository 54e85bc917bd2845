"""The workload: what an application does to storage (contract: schemas/workload.schema.json).

Sizes are bytes, times are seconds since the start of the application. Loading is strict: an
unknown or missing key, a wrong type or an inconsistent sum is an `UnderstudyError` that names the
file, the key and what was expected.
"""

import json
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, cast

from understudy.errors import UnderstudyError
from understudy.paths import SCHEMAS, workload_directories

SCHEMA = "understudy/workload/1"
MAX_RUNS = 4096
TYPE_BYTES = {
    "byte": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8, "u64": 8,
    "f32": 4, "f64": 8,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Decomposition:
    """The block of each rank: `even`, a `grid` (ranks per dimension) or `runs` (ranks, rows)."""

    rule: str
    grid: tuple[int, ...] = ()
    runs: tuple[tuple[int, int], ...] = ()


EVEN = Decomposition(rule="even")


def runs(pairs: Iterable[tuple[int, int]]) -> Decomposition:
    """Unequal slabs from (ranks, rows) pairs; neighbours with equal rows are merged."""
    merged: list[tuple[int, int]] = []
    for ranks, rows in pairs:
        if merged and merged[-1][1] == rows:
            merged[-1] = (merged[-1][0] + ranks, rows)
        else:
            merged.append((ranks, rows))
    return Decomposition(rule="runs", runs=tuple(merged))


def runs_at_most(pairs: Iterable[tuple[int, int]], most: int = MAX_RUNS) -> Decomposition:
    """The same as `runs`, in at most so many: where ranks differ in more places, neighbours are
    put into blocks of equal ranks with the same total."""
    rule = runs((n, rows) for n, rows in pairs if n)
    if len(rule.runs) <= most:
        return rule
    per_block = -(-len(rule.runs) // (most // 2))
    made = []
    for k in range(0, len(rule.runs), per_block):
        block = rule.runs[k : k + per_block]
        made += _equal_ranks(sum(n for n, _ in block), sum(n * rows for n, rows in block))
    return runs(made)


def _equal_ranks(ranks: int, rows: int) -> list[tuple[int, int]]:
    """So many rows over ranks that differ by one row at most."""
    low, extra = divmod(rows, ranks)
    return [(n, size) for n, size in ((extra, low + 1), (ranks - extra, low)) if n]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    name: str
    type: str
    shape: tuple[int, ...]
    decomposition: Decomposition = EVEN
    label: str = ""
    count: int = 1
    file: int = 0
    transfer_bytes: int | None = None  # None: the stream's
    collective: bool | None = None  # None: the stream's

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of dimension 0 over all `count` variables."""
        return self.count * math.prod(self.shape[1:]) * TYPE_BYTES[self.type]

    @property
    def bytes(self) -> int:
        return self.shape[0] * self.row_bytes

    def rank_runs(self, ranks: int) -> list[tuple[int, int]]:
        """Bytes of each rank as runs [(consecutive ranks, bytes of each)] in rank order."""
        rule = self.decomposition
        if rule.rule == "runs":
            return [(n, rows * self.row_bytes) for n, rows in rule.runs]
        if rule.rule == "even":
            return [(n, rows * self.row_bytes) for n, rows in _equal_ranks(ranks, self.shape[0])]
        return list(_grid_runs(self, rule.grid))


def _grid_runs(variable: Variable, grid: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of a Cartesian decomposition, ranks in C order."""
    areas = [1]
    for length, parts in zip(variable.shape, grid, strict=True):
        low, extra = divmod(length, parts)
        sides = [low + 1] * extra + [low] * (parts - extra)
        areas = [area * side for area in areas for side in sides]
    element = variable.count * TYPE_BYTES[variable.type]
    for area, same in groupby(areas):
        yield sum(1 for _ in same), area * element


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    time_s: float
    variables: tuple[Variable, ...]
    duration_s: float | None = None
    overhead_bytes: int | None = None

    @property
    def bytes(self) -> int:
        """Payload of the dump over all ranks."""
        return sum(v.bytes for v in self.variables)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What the bytes are like; compressibility is the share of zero bytes in random ones."""

    kind: str = "random"
    compressibility: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    name: str
    role: str
    operation: str
    files: str
    layout: str
    method: str
    transfer_bytes: int
    dumps: tuple[Dump, ...]
    label: str = ""
    groups: int | None = None
    collective: bool = False
    sync: bool = False
    turns: bool = False
    content: Content = Content()

    @property
    def bytes(self) -> int:
        """Payload of the stream over all dumps and ranks."""
        return sum(d.bytes for d in self.dumps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    rule: str
    from_ranks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    format: str
    version: str = ""
    reader: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    path: str
    origin: str
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    name: str
    description: str
    ranks: int
    streams: tuple[Stream, ...]
    source: Source
    provenance: tuple[Provenance, ...]
    runtime_s: float | None = None
    compute: str = "sleep"
    scaling: Scaling | None = None

    @property
    def bytes(self) -> int:
        """Payload of the workload: every dump of every stream, reads included."""
        return sum(s.bytes for s in self.streams)

    def stream(self, name: str) -> Stream:
        return next(s for s in self.streams if s.name == name)

    def to_text(self) -> str:
        """The descriptor as JSON text, one line per variable."""
        row = {"schema": SCHEMA, **_plain(asdict(self))}
        row["scaling"] = row["scaling"] or {"rule": "none", "from_ranks": self.ranks}
        return _layout(_ordered(row), 0) + "\n"


_OPTIONAL = ("transfer_bytes", "collective")  # keys of a variable that are left out where None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        if "rule" in value and "runs" in value:
            return {k: _plain(v) for k, v in value.items() if k == "rule" or v}
        optional = _OPTIONAL if "decomposition" in value else ()
        return {k: _plain(v) for k, v in value.items() if v is not None or k not in optional}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def _ordered(value: Any) -> Any:
    """Keys in the order in which the schema documents them."""
    if isinstance(value, list):
        return [_ordered(v) for v in value]
    if not isinstance(value, dict):
        return value
    parts = [_schema(), *_schema()["$defs"].values()]
    known = (p["properties"] for p in parts if "required" in p
             and set(p["required"]) <= set(value) <= set(p["properties"]))  # fmt: skip
    return {key: _ordered(value[key]) for key in next(known, value) if key in value}


def _layout(value: Any, depth: int) -> str:
    """JSON that a person can read: what fits a line stays on it."""
    line = json.dumps(value, ensure_ascii=False)
    most = 280 if isinstance(value, dict) and "decomposition" in value else 200  # a variable
    if len(line) + 2 * depth <= most or not isinstance(value, dict | list) or not value:
        return line
    pad = "\n" + "  " * (depth + 1)
    end = "\n" + "  " * depth
    if isinstance(value, dict):
        items = [f"{json.dumps(k)}: {_layout(v, depth + 1)}" for k, v in value.items()]
        return "{" + pad + ("," + pad).join(items) + end + "}"
    items = [_layout(v, depth + 1) for v in value]
    if all(isinstance(v, list) and len(v) == 2 for v in value):  # runs: as many as fit a line
        items = textwrap.wrap(", ".join(i.replace(", ", ",") for i in items), 100)
        return "[" + pad + pad.join(items) + end + "]"
    return "[" + pad + ("," + pad).join(items) + end + "]"


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / "workload.schema.json").read_text())
    return schema


def load(path: Path) -> Workload:
    """Read and check a descriptor."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise UnderstudyError(f"{path}: cannot read the workload: {reason}") from None
    return parse(text, str(path))


def parse(text: str, where: str) -> Workload:
    """A workload from JSON text; `where` names it in messages."""
    row = _json(text, where)
    worst = _worst(row)
    if worst is not None:
        raise UnderstudyError(f"{where}: {_key(worst.absolute_path)}: {_sentence(worst)}")
    workload = _build(row)
    _check(workload, where)
    return workload


def _json(text: str, where: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _unique(pairs, where))
    except json.JSONDecodeError as error:
        raise UnderstudyError(
            f"{where}: not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        ) from None
    except (RecursionError, ValueError) as error:  # nested too deeply, an integer of 4,300 digits
        raise UnderstudyError(f"{where}: not a workload: {error}") from None


def _unique(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) != len(pairs):
        twice = next(k for k, _ in pairs if sum(k == other for other, _ in pairs) > 1)
        raise UnderstudyError(f"{where}: key {twice!r} stands twice in one object")
    return row


def _worst(row: Any) -> Any:
    """The error of the schema that tells most, None where the row is right."""
    import jsonschema  # 0.1 s to import: only who reads a descriptor pays

    base, validators = jsonschema.Draft202012Validator, cast(Any, jsonschema.validators)
    # As the player has it: 4.0 is no integer, nor is what 64 bits cannot hold; NaN is no number.
    types = base.TYPE_CHECKER.redefine_many({
        "integer": lambda _, v: type(v) is int and -(1 << 63) <= v < 1 << 63,
        "number": lambda _, v: type(v) in (int, float) and math.isfinite(v),
    })  # fmt: skip
    validator = validators.extend(base, type_checker=types)(_schema())
    worst = jsonschema.exceptions.best_match(validator.iter_errors(row))
    if worst is None or worst.validator != "oneOf" or not isinstance(worst.instance, dict):
        return worst
    for n, branch in enumerate(worst.validator_value):  # the one that the rule names
        if branch["properties"]["rule"]["const"] == worst.instance.get("rule"):
            mine = [e for e in worst.context if e.schema_path[0] == n]
            return jsonschema.exceptions.best_match(iter(mine))
    return worst


_WORDS = {
    "integer": "an integer of at most 64 bits", "number": "a finite number", "string": "a string",
    "boolean": "true or false", "array": "a list", "object": "an object", "null": "null",
}  # fmt: skip
_PATTERNS = {
    "^/": "a JSON pointer, which starts with /",
    "^[A-Za-z0-9][A-Za-z0-9_.-]*$": "letters, digits, '_', '.' and '-', a letter or digit first",
}


def _sentence(error: Any) -> str:
    """What was expected and what was found, from an error of jsonschema."""
    rule, value = str(error.validator), error.validator_value
    if rule == "required":
        missing = next(k for k in value if k not in error.instance)
        return f"key {missing!r} is missing, expected {', '.join(value)}"
    if rule == "additionalProperties":
        known = error.schema["properties"]
        unknown = next(k for k in error.instance if k not in known)
        return f"key {unknown!r} is unknown, expected {', '.join(known)}"
    if rule == "oneOf":
        rules = " or ".join(b["properties"]["rule"]["const"] for b in value)
        expected = f"an object whose rule is {rules}"
    else:
        kinds = value if isinstance(value, list) else [value]
        expected = {
            "type": lambda: " or ".join(_WORDS[k] for k in kinds),
            "enum": lambda: "one of " + ", ".join(map(str, kinds)),
            "const": lambda: repr(value),
            "minimum": lambda: f"at least {value}",
            "maximum": lambda: f"at most {value}",
            "minItems": lambda: f"a list of at least {value}",
            "maxItems": lambda: f"a list of at most {value}",
            "minLength": lambda: f"at least {value} character",
            "maxLength": lambda: f"at most {value} characters",
            "pattern": lambda: _PATTERNS[value],
        }[rule]()
    got = json.dumps(error.instance, ensure_ascii=False)
    return f"expected {expected}, got {got if len(got) <= 60 else got[:60] + '…'}"


def _key(path: Iterable[str | int]) -> str:
    text = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")
    return text or "top level"


def _build(row: dict[str, Any]) -> Workload:
    return Workload(
        **{k: row[k] for k in ("name", "description", "ranks", "runtime_s", "compute")},
        scaling=Scaling(**row["scaling"]),
        source=Source(**(row["source"] | {"notes": tuple(row["source"]["notes"])})),
        provenance=tuple(Provenance(**p) for p in row["provenance"]),
        streams=tuple(_build_stream(s) for s in row["streams"]),
    )  # fmt: skip


def _build_stream(row: dict[str, Any]) -> Stream:
    dumps = tuple(
        Dump(**(d | {"variables": tuple(_build_variable(v) for v in d["variables"])}))
        for d in row["dumps"]
    )
    return Stream(**(row | {"dumps": dumps, "content": Content(**row["content"])}))


def _build_variable(row: dict[str, Any]) -> Variable:
    rule = row["decomposition"]
    return Variable(
        **(row | {
            "shape": tuple(row["shape"]),
            "decomposition": Decomposition(
                rule=rule["rule"], grid=tuple(rule.get("grid", ())),
                runs=tuple((n, rows) for n, rows in rule.get("runs", ())),
            ),
        })
    )  # fmt: skip


def _check(workload: Workload, where: str) -> None:
    """What the schema cannot say: sums, products, order and unique names."""

    def need(condition: bool, key: str, sentence: str) -> None:
        if not condition:
            raise UnderstudyError(f"{where}: {key}: {sentence}")

    rule, made_from = "none", workload.ranks
    if workload.scaling is not None:
        rule, made_from = workload.scaling.rule, workload.scaling.from_ranks
    need(rule != "none" or made_from == workload.ranks, "scaling.from_ranks",
         f"expected {workload.ranks}, the ranks, for the rule none, got {made_from}")  # fmt: skip
    twice = _twice(s.name for s in workload.streams)
    need(not twice, "streams", f"expected a name of its own for each, got {twice!r} twice")
    for i, stream in enumerate(workload.streams):
        key = f"streams[{i}]"
        grouped = stream.layout == "grouped"
        need((stream.groups is not None) == grouped, f"{key}.groups",
             f"expected {'a number' if grouped else 'null'} for the layout {stream.layout}, "
             f"got {json.dumps(stream.groups)}")  # fmt: skip
        need(stream.groups is None or stream.groups <= workload.ranks, f"{key}.groups",
             f"expected at most {workload.ranks}, the ranks, got {stream.groups}")  # fmt: skip
        why = stream.turns and _turns_fault(stream)
        need(not why, f"{key}.turns", f"expected false, since {why}")
        need(stream.content.compressibility == 0 or stream.content.kind == "random",
             f"{key}.content.compressibility",
             f"expected 0, since the kind is {stream.content.kind} and not random")  # fmt: skip
        for j, (before, dump) in enumerate(pairwise(stream.dumps), 1):
            need(before.time_s <= dump.time_s, f"{key}.dumps[{j}].time_s",
                 f"expected at least {before.time_s}, the time of the dump before, "
                 f"got {dump.time_s}")  # fmt: skip
        for j, dump in enumerate(stream.dumps):
            at = f"{key}.dumps[{j}].variables"
            twice = _twice(v.name for v in dump.variables)
            need(not twice, at, f"expected a name of its own for each, got {twice!r} twice")
            for k, variable in enumerate(dump.variables):
                wrong = _decomposition_fault(variable, workload.ranks)
                need(wrong is None, f"{at}[{k}].decomposition", wrong or "")
            need(dump.bytes < 1 << 63, at, f"expected less than 2^63 bytes, got {dump.bytes}")


def _turns_fault(stream: Stream) -> str:
    """Why its ranks cannot take turns, empty where they can."""
    if stream.layout == "file-per-process":
        return "no ranks share a file in the layout file-per-process"
    if stream.files == "append":
        return "files that are appended to stay open"
    together = stream.collective or any(v.collective for d in stream.dumps for v in d.variables)
    return "collective calls are made by all ranks together" if together else ""


def _twice(names: Iterable[str]) -> str:
    """The first name that stands there twice, empty where none does."""
    seen: set[str] = set()
    return next((n for n in names if n in seen or seen.add(n)), "")  # type: ignore[func-returns-value]


def _decomposition_fault(variable: Variable, ranks: int) -> str | None:
    rule = variable.decomposition
    if rule.rule == "grid":
        if len(rule.grid) != len(variable.shape):
            return f"expected a grid of {len(variable.shape)} dimensions, got {len(rule.grid)}"
        if math.prod(rule.grid) != ranks:
            return f"expected a grid of {ranks} ranks, got {math.prod(rule.grid)}"
    if rule.rule == "runs":
        have = sum(n for n, _ in rule.runs)
        rows = sum(n * size for n, size in rule.runs)
        if have != ranks:
            return f"expected runs of {ranks} ranks in all, got {have}"
        if rows != variable.shape[0]:
            return f"expected runs of {variable.shape[0]} rows in all, as shape[0], got {rows}"
    return None


def provenance_of(workload: Workload, pointer: str) -> Provenance | None:
    """The entry that counts for the value at a JSON pointer: the last that matches."""
    steps = pointer.split("/")
    for entry in reversed(workload.provenance):
        pattern = entry.path.split("/")
        if len(pattern) <= len(steps) and all(
            p in ("*", s) for p, s in zip(pattern, steps, strict=False)
        ):
            return entry
    return None


def numbers(workload: Workload) -> Iterator[str]:
    """JSON pointers of all numbers that provenance must cover."""

    def walk(value: Any, pointer: str) -> Iterator[str]:
        if isinstance(value, dict):
            for key, part in value.items():
                yield from walk(part, f"{pointer}/{key}")
        elif isinstance(value, list):
            for k, part in enumerate(value):
                yield from walk(part, f"{pointer}/{k}")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield pointer

    row = _plain(asdict(workload))
    for key in ("ranks", "runtime_s", "streams"):
        yield from walk(row[key], f"/{key}")


def identifier(text: str) -> str:
    """The text as a name that the contract allows."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).lstrip("-._")[:100].rstrip("-") or "workload"


def names() -> list[str]:
    """Names of all workloads in the room and in the folders of UNDERSTUDY_WORKLOADS."""
    return sorted({p.stem for d in workload_directories() for p in d.glob("*.json")})


def path_of(name: str) -> Path:
    """The file of a workload; the folders are searched in order."""
    for folder in workload_directories():
        if (path := folder / f"{name}.json").is_file():
            return path
    raise UnderstudyError(f"no workload is called {name!r}; known: {', '.join(names()) or 'none'}")


def get(name: str) -> Workload:
    """The workload of that name."""
    return load(path_of(name))


def scale(workload: Workload, ranks: int, rule: str) -> Workload:
    """The workload for another number of ranks.

    strong: the same total bytes. even keeps its shape, runs are stretched so that the cumulative
    distribution of rows over the ranks stays the same, a grid is factored anew.
    weak: the same bytes per rank; rank r takes the rows of rank floor(r*from/ranks), the first
    dimension of an even variable is multiplied by ranks/from (rounded down, at least 1), and a
    grid grows along its first dimension, which needs a multiple of the ranks.
    """
    if rule not in ("strong", "weak"):
        raise UnderstudyError(f"scaling rule {rule!r}: expected strong or weak")
    if not 1 <= ranks < 1 << 31:
        raise UnderstudyError(f"ranks {ranks}: expected 1 to {(1 << 31) - 1}")
    change = _strong if rule == "strong" else _weak

    def variable(v: Variable) -> Variable:
        return change(v, workload.ranks, ranks)

    def stream(s: Stream) -> Stream:
        groups = s.groups
        if groups is not None:
            grown = groups * ranks // workload.ranks if rule == "weak" else groups
            groups = min(max(1, grown), ranks)
        dumps = tuple(replace(d, variables=tuple(map(variable, d.variables))) for d in s.dumps)
        return replace(s, groups=groups, dumps=dumps)

    made = f"scaled {rule}ly from {workload.ranks} to {ranks} ranks"
    return replace(
        workload,
        name=f"{workload.name[:80]}-{rule}-{ranks}",
        ranks=ranks,
        scaling=Scaling(rule=rule, from_ranks=workload.ranks),
        streams=tuple(map(stream, workload.streams)),
        provenance=(
            *workload.provenance,
            Provenance(path="/ranks", origin="assumed", how=made),
            Provenance(path="/streams/*/groups", origin="derived", how=made),
            Provenance(path="/streams/*/dumps/*/variables", origin="derived", how=made),
        ),
    )


def _strong(variable: Variable, old: int, new: int) -> Variable:
    rule = variable.decomposition
    if rule.rule == "even":
        return variable
    if rule.rule == "grid":
        grid = _factor_grid(new, variable.shape)
        return replace(variable, decomposition=Decomposition(rule="grid", grid=grid))
    pairs = _stretched(rule.runs, old, new)
    return replace(variable, decomposition=runs_at_most(pairs))


def _stretched(pairs: Sequence[tuple[int, int]], old: int, new: int) -> Iterator[tuple[int, int]]:
    """Old runs over new ranks, so that the cumulative distribution of the rows stays the
    same, up to a row a rank."""
    rank, row = 0, 0  # the next new rank and its first row
    begin, rows_before = 0, 0  # the old run's
    for ranks, rows in pairs:
        end = begin + ranks
        # The first new rank that ends within the run may have begun before it.
        for last in (-(-begin * new // old), end * new // old):
            if rank < last <= end * new // old:
                stop = rows_before + (last * old - begin * new) * rows // new
                yield from _equal_ranks(last - rank, stop - row)
                rank, row = last, stop
        rows_before += ranks * rows
        begin = end


def _factor_grid(ranks: int, shape: Sequence[int]) -> tuple[int, ...]:
    """A grid for that many ranks: prime factors, largest first, go where blocks are longest."""
    grid = [1] * len(shape)
    for factor in sorted(primes(ranks), reverse=True):
        longest = max(range(len(shape)), key=lambda d: (shape[d] / grid[d], -d))
        grid[longest] *= factor
    return tuple(grid)


def primes(n: int) -> Iterator[int]:
    """The prime factors, the smallest first."""
    divisor = 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            yield divisor
            n //= divisor
        divisor += 1
    if n > 1:
        yield n


def _weak(variable: Variable, old: int, new: int) -> Variable:
    rule = variable.decomposition
    first, *rest = variable.shape
    if rule.rule == "even":
        return replace(variable, shape=(max(1, first * new // old), *rest))
    if rule.rule == "grid":
        if rule.grid[0] * new % old or first * new % old:
            raise UnderstudyError(
                f"variable {variable.name}: a grid of {rule.grid[0]} along its first dimension "
                f"and {first} rows cannot be scaled weakly from {old} to {new} ranks; "
                f"take a multiple of {old}"
            )
        grid = (rule.grid[0] * new // old, *rule.grid[1:])
        shape = (first * new // old, *rest)
        return replace(variable, shape=shape, decomposition=Decomposition(rule="grid", grid=grid))
    pairs, start = [], 0
    for ranks, rows in rule.runs:  # rank r takes the rows of rank floor(r*old/new)
        begin, end = -(-start * new // old), -(-(start + ranks) * new // old)
        start += ranks
        if end > begin:
            pairs.append((end - begin, rows))
    shape = (max(1, sum(n * rows for n, rows in pairs)), *rest)
    if not any(rows for _, rows in pairs):
        pairs = [(1, 1), (new - 1, 0)] if new > 1 else [(1, 1)]
    return replace(variable, shape=shape, decomposition=runs_at_most(pairs))
