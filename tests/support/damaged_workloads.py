"""Valid workloads with one change, sometimes two: most are no longer valid, and how they are
refused is compared. Some stay valid by chance."""

import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import combinations
from random import Random
from typing import Any

from tests.support.random_workloads import KINDS, ROLES, SMALL, Limits, Row, valid

Steps = tuple[str | int, ...]
# Other values of any type; those of numbers are also put in the place of numbers.
NUMBERS = (0, 1, 2, -1, 1.0, 0.5, -0.5, 1e-300, 1023, 1024, 1025, 4096, 1_000_001, 10_000_001)
NUMBERS += ((1 << 31) - 1, 1 << 31, 1 << 53, (1 << 62), (1 << 63) - 1, 1 << 63, -(1 << 63))
NUMBERS += (-(1 << 63) - 1, 1e18, 1e308, 10**30)
OTHERS = (None, True, False, "", "a", "1", "x" * 100, "x" * 101, "-a", "a b", "a\n", "ä", [], {})
OTHERS += ([1], [[1, 1]], [[]], {"rule": "even"}, {"rule": "odd"}, "/", "new", "0")
CHOICES: dict[str, tuple[Any, ...]] = {
    "operation": ("write", "read", *KINDS),
    "files": ("new", "append", "rewrite", "update"),
    "layout": ("shared", "file-per-process", "grouped", "flood"),
    "role": ROLES,
    "method": ("posix", "mpiio", "hdf5"),
    "pace": ("burst", "steady"),
    "rule": ("none", "strong", "even", "grid", "runs", "cyclic", "consecutive", "strided"),
    "kind": ("random", "zero", "constant", "smooth"),
    "compute": ("sleep", "busy"),
    "type": ("byte", "i8", "f64"),
    "origin": ("read", "assumed"),
    "confidence": ("certain", "guess"),
}
# Values that contradict others of some streams; those of references are names of streams.
OF_STREAMS: dict[str, tuple[Any, ...]] = {
    "groups": (None, 1, 2, 64, 65),
    "names": (1, 2, 1024),
    "reopen": (True, False),
    "turns": (True, False),
    "collective": (True, False),
    "removes": (True, False),
    "backup": (True, False),
    "own_directories": (True, False),
    "files_per_directory": (None, 1, 100),
    "passes": (1, 2),
    "pace": ("steady", "burst"),
    "sync_bytes": (None, 1),
    "flush_bytes": (None, 1),
    "chunk_bytes": (None, 1, 1 << 32),
    "fill": (True, False),
    "write_through": (True, False),
    "lookups": (
        None,
        {"every_bytes": 7, "calls": 1.5, "transfer_bytes": 9},
        {"every_bytes": 7, "calls": 0, "transfer_bytes": 9},
        {"every_bytes": 0, "calls": 1, "transfer_bytes": 9},
    ),
    "order": (
        {"rule": "consecutive"},
        {"rule": "strided", "step": 2},
        {"rule": "shuffled", "seed": 3},
    ),
    "content": (
        {"kind": "zero", "compressibility": 0.5},
        {"kind": "random", "compressibility": 1},
    ),
    "files": CHOICES["files"],
    "layout": CHOICES["layout"],
    "operation": ("write", "read"),
    "method": CHOICES["method"],
}
OF_DUMPS: dict[str, tuple[Any, ...]] = {
    "continues": (True, True, False),
    "compute_s": (1, 0),
    "skew": ([], [[1, 0.5]], [[1, 0], [1, -1]], [[1, 1, 1]], [["1", 0]], [[1 << 62, 0]] * 3),
    "duration_s": (None, 0, 1),
    "operations": ([], [{"operation": "stat", "runs": [[1, 1]]}]),
    "variables": ([],),
    "repeat": ({"count": 2, "period_s": 1}, {"count": 50, "period_s": 1e308}),
}


def damaged(rng: Random, limits: Limits = SMALL) -> Row:
    """A valid workload with a change or two."""
    return damage(valid(rng, limits), rng)[-1]


def damage(row: Row, rng: Random) -> list[Row]:
    """The workload with a change, and with one more in a fifth of cases."""
    changed = [row]
    for _ in range(rng.choice((1, 1, 1, 1, 2))):
        changed.append(deepcopy(changed[-1]))
        next(filter(None, (_made(changed[-1], rng) for _ in range(20))), None)
    return changed[1:]


def _made(row: Row, rng: Random) -> bool:
    """Whether a change could be made; the one before may have removed what it looks for."""
    try:
        return rng.choice(CHANGES)(row, rng)
    except (AttributeError, LookupError, TypeError):
        return False


def torn(text: str, rng: Random) -> str:
    """The text of a workload with a change by which most are no JSON, or none of a contract."""
    at = rng.randrange(len(text))
    how = rng.randrange(6)
    if how == 0:
        return text[:at]
    if how == 1:
        return text[:at] + rng.choice('{}[],:"0-+.eE\\ntx é') + text[at:]
    if how == 2:
        return text[:at] + text[at + 1 :]
    if how == 3:
        numbers = ("NaN", "-Infinity", "1e999", "01", "1.", "-0", "1" * 400, "1E5", ".5", "0x1")
        return re.sub(r'"time_s": [^,}]+', f'"time_s": {rng.choice(numbers)}', text, count=1)
    if how == 4:
        strings = (
            '"\\ud800"',
            '"\\u0000"',
            '"\\ud83d\\ude00"',
            "'a'",
            '"\x01"',
            '"\\x"',
            "[" * 99,
        )
        pattern = r'"description": "(?:[^"\\]|\\.)*"'
        return re.sub(pattern, lambda _: f'"description": {rng.choice(strings)}', text, count=1)
    return rng.choice((text + "x", text + text, "", "[]", "null", '"a"', "\ufeff" + text, "1"))


# -- changes: each is made at a random place, and tells whether it could be -----------------------


def _drop(row: Row, rng: Random) -> bool:
    """A key is missing."""
    objects = [o for o in _containers(row) if isinstance(o, dict) and o]
    found = rng.choice(objects)
    del found[rng.choice(sorted(found))]
    return True


def _misspell(row: Row, rng: Random) -> bool:
    """A key has another name, or there is one more."""
    found = rng.choice([o for o in _containers(row) if isinstance(o, dict)])
    if found and rng.random() < 0.5:
        key = rng.choice(sorted(found))
        found[rng.choice((key + "s", key[:-1], key.upper(), "repeat", "at"))] = found.pop(key)
    else:
        found[rng.choice(("more", "", "rule", "order", "count", "at", "reads"))] = 1
    return True


def _value(row: Row, rng: Random) -> bool:
    """A value of another type."""
    return _put(row, rng.choice(list(_steps(row))), rng.choice(OTHERS + NUMBERS))


def _number(row: Row, rng: Random) -> bool:
    """Another number."""
    found = [s for s in _steps(row) if type(_at(row, s)) in (int, float)]
    steps = rng.choice(found)
    old = _at(row, steps)
    new = rng.choice((*NUMBERS, old + 1, old - 1, -old, 2 * old, float(old), old + 0.5, str(old)))
    return _put(row, steps, new)


def _choice(row: Row, rng: Random) -> bool:
    """Another choice."""
    found = [s for s in _steps(row) if s[-1] in CHOICES]
    steps = rng.choice(found)
    words = CHOICES[str(steps[-1])]
    return _put(row, steps, rng.choice((*words, str(_at(row, steps)) + "s", "")))


def _stream(row: Row, rng: Random) -> bool:
    """A key of a stream that others may contradict."""
    key = rng.choice(sorted(OF_STREAMS))
    rng.choice(row["streams"])[key] = deepcopy(rng.choice(OF_STREAMS[key]))
    return True


def _dump(row: Row, rng: Random) -> bool:
    """A key of a dump that others may contradict."""
    key = rng.choice(sorted(OF_DUMPS))
    rng.choice(_dumps(row))[key] = deepcopy(rng.choice(OF_DUMPS[key]))
    return True


def _reference(row: Row, rng: Random) -> bool:
    """The name of another stream or variable, or of none."""
    streams = row["streams"]
    if rng.random() < 0.5:
        names = [s["name"] for s in streams]
        rng.choice(streams)[rng.choice(("extends", "reads"))] = rng.choice((*names, "none", None))
        return True
    variables = _variables(row)
    names = [v["name"] for v in variables]
    if variables:
        rng.choice(variables)["at"] = rng.choice((*names, "none", None))
    return bool(variables)


def _name(row: Row, rng: Random) -> bool:
    """A name twice, or that of one of several variables."""
    found = rng.choice((row["streams"], _variables(row)))
    if not found:
        return False
    other = rng.choice(found)
    name = str(other["name"]) + rng.choice(("", "_0", f"_{other.get('count', 1) - 1}", "_00"))
    rng.choice(found)["name"] = name
    return True


def _calls(row: Row, rng: Random) -> bool:
    """How a variable is moved, or in which file it is."""
    variables = _variables(row)
    if not variables:
        return False
    key, value = rng.choice(
        (("collective", True), ("collective", True), ("transfer_bytes", 0), ("file", 5))
    )
    rng.choice(variables)[key] = value
    return True


def _time(row: Row, rng: Random) -> bool:
    """A dump at another time."""
    dump = rng.choice(_dumps(row))
    dump["time_s"] = rng.choice((0, dump["time_s"] + 1, dump["time_s"] / 2, 1e9, 1e-9))
    return True


def _repetition(row: Row, rng: Random) -> bool:
    """Other repetitions of a dump."""
    found = [d["repeat"] for d in _dumps(row) if "repeat" in d]
    if found:
        count = rng.choice((1, 2, 60, 10_000_001, 9_999_999))
        rng.choice(found)[rng.choice(("count", "period_s"))] = count
    return bool(found)


def _runs(row: Row, rng: Random) -> bool:
    """Runs, grids and shapes that do not add up."""
    found = [s for s in _steps(row) if {"runs", "grid", "shape"} & set(s) and type(s[-1]) is int]
    found = [s for s in found if type(_at(row, s)) is int]
    if not found:
        return False
    steps = rng.choice(found)
    return _put(row, steps, _at(row, steps) + rng.choice((1, -1, 7, 1 << 62)))


def _elements(row: Row, rng: Random) -> bool:
    """An element of a list is missing, there twice, or in another place."""
    found = rng.choice([o for o in _containers(row) if isinstance(o, list) and o])
    at, how = rng.randrange(len(found)), rng.randrange(4)
    if how == 0:
        del found[at]
    elif how == 1:
        found.insert(at, deepcopy(found[at]))
    elif how == 2:
        found.reverse()
    else:
        found.clear()
    return True


def _ranks(row: Row, rng: Random) -> bool:
    """Other ranks of the workload, or another workload that it was scaled from."""
    row["ranks"] = rng.choice((1, 2, 64, 0, (1 << 31) - 1, 1 << 31))
    return True


CHANGES: tuple[Callable[[Row, Random], bool], ...] = (
    *(_drop, _misspell, _value, _value, _number, _number, _choice, _choice),
    *(_stream, _stream, _stream, _stream, _dump, _dump, _dump, _reference, _reference, _reference),
    *(_name, _calls, _calls, _time, _time, _repetition, _runs, _elements, _elements, _ranks),
)


# -- places in a JSON value -----------------------------------------------------------------------


def _steps(value: Any, above: Steps = ()) -> Iterator[Steps]:
    """The steps to every value below."""
    for step, inner in _items(value):
        yield (*above, step)
        yield from _steps(inner, (*above, step))


def _items(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


def _containers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for _, inner in _items(value):
            yield from _containers(inner)


def _at(value: Any, steps: Steps) -> Any:
    for step in steps:
        value = value[step]
    return value


def _put(row: Row, steps: Steps, value: Any) -> bool:
    _at(row, steps[:-1])[steps[-1]] = deepcopy(value)
    return True


def _dumps(row: Row) -> list[Row]:
    return [d for s in row["streams"] for d in s["dumps"]]


def _variables(row: Row) -> list[Row]:
    return [v for d in _dumps(row) for v in d["variables"]]


def undone(row: Row, original: Row) -> Iterator[Row]:
    """The row with each of its differences undone, and if they are few with each two of them."""
    single = [(steps,) for steps in _differences(row, original)]
    pairs = combinations([steps for (steps,) in single], 2) if len(single) < 5 else ()
    for chosen in (*single, *pairs):
        again = deepcopy(row)
        for steps in chosen:
            below, was = _at(again, steps[:-1]), _at(original, steps[:-1])
            if isinstance(was, dict) and steps[-1] not in was:
                del below[steps[-1]]
            else:
                below[steps[-1]] = deepcopy(was[steps[-1]])
        yield again


def _differences(one: Any, other: Any, above: Steps = ()) -> Iterator[Steps]:
    """The steps to what differs."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = [*one, *(key for key in other if key not in one)]
        for key in keys:
            if key not in one or key not in other:
                yield (*above, key)
            else:
                yield from _differences(one[key], other[key], (*above, key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for k, (mine, its) in enumerate(zip(one, other, strict=True)):
            yield from _differences(mine, its, (*above, k))
    elif type(one) is not type(other) or one != other:
        yield above
