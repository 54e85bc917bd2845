"""A model of an output of ADIOS2: a small YAML file with variables, shapes, splits and steps, for
an application that left no file.

    ranks: 64
    steps: 10
    every: 30              # seconds from step to step; default: 0
    variables:
    - {name: U, type: double, shape: [256, 256, 256], split: [4, 4, 4]}  # ranks per dimension
    - {name: particles, type: float, shape: [1000, 6], of: each rank}    # a local array
    - {name: step, type: int32_t}                                        # a global value
"""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from understudy.adios2 import engines
from understudy.adios2.configuration import Rows, content, take, yaml_document
from understudy.adios2.output import (
    GLOBAL_ARRAY,
    GLOBAL_VALUE,
    LOCAL_ARRAY,
    STRING,
    TYPE_BYTES,
    Blocks,
    Instance,
    Integers,
    Output,
    Variable,
    element_bytes,
)
from understudy.errors import UnderstudyError, one_line
from understudy.program.tilings import even_part

EACH_RANK = "each rank"
ALL_RANKS = "all ranks"
MAX_RANKS = 1 << 20
MAX_STEPS = 100_000
MAX_ELEMENTS = 1 << 50


def read(path: Path) -> Output:
    """The output that a model describes."""
    document = yaml_document(path, content(path))
    if not isinstance(document, dict):
        raise UnderstudyError(f"{path}: expected a map with ranks, steps and variables")
    keys = Rows(path, document).map()
    ranks = _number(keys, "ranks", 1, MAX_RANKS)
    steps = _number(keys, "steps", 1, MAX_STEPS, default=1)
    every = _seconds(take(keys, "every"))
    engine = take(keys, "engine")
    rows = take(keys, "variables")
    _expect_no_more(keys, "ranks, steps, every, engine and variables")
    variables = tuple(_variables(rows, path, ranks, steps))
    return Output(
        path=path,
        engine="BP5" if engine is None else engines.engine_of(engine.text()),
        writers=ranks,
        steps=steps,
        variables=variables,
        times=tuple(every * step for step in range(steps)) if every else (),
    )


def _number(
    keys: dict[str, Rows], key: str, least: int, most: int, default: int | None = None
) -> int:
    row = take(keys, key)
    if row is None:
        if default is None:
            raise UnderstudyError(f"{next(iter(keys.values())).path}: {key} is missing")
        return default
    return _whole(row, least, most)


def _whole(row: Rows, least: int, most: int) -> int:
    text = row.text()
    if not (text.isascii() and text.isdecimal() and len(text) < 19 and least <= int(text) <= most):
        raise row.fault(f"a number from {least:,} to {most:,}")
    return int(text)


def _seconds(row: Rows | None) -> float:
    if row is None:
        return 0.0
    try:
        value = float(row.text())
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise row.fault("seconds from 0 to 1e9")
    return value


def _expect_no_more(keys: dict[str, Rows], expected: str) -> None:
    for key, row in keys.items():
        raise UnderstudyError(
            f"{row.path}: {row.where or one_line(key)}: expected only {expected}"
        )


def _variables(rows: Rows | None, path: Path, ranks: int, steps: int) -> Iterator[Variable]:
    names: set[str] = set()
    if rows is None or not rows.list():
        raise UnderstudyError(f"{path}: variables: expected at least one")
    for row in rows.list():
        variable = _variable(row, ranks, steps)
        if variable.name in names:
            raise row.fault("a name of its own")
        names.add(variable.name)
        yield variable


def _variable(row: Rows, ranks: int, steps: int) -> Variable:
    keys = row.map()
    name, kind, shape, split, of = (
        take(keys, key) for key in ("name", "type", "shape", "split", "of")
    )
    _expect_no_more(keys, "name, type, shape, split and of")
    if name is None or kind is None or not name.text():
        raise row.fault("a map with name and type")
    if kind.text() not in TYPE_BYTES:
        raise kind.fault(f"one of {', '.join(TYPE_BYTES)}")
    if of is not None and of.text() not in (ALL_RANKS, EACH_RANK):
        raise of.fault(f"{ALL_RANKS} or {EACH_RANK}")
    sizes = () if shape is None else tuple(_whole(n, 1, MAX_ELEMENTS) for n in shape.list())
    if math.prod(sizes) > MAX_ELEMENTS or (sizes and kind.text() == STRING):
        raise row.fault(f"at most {MAX_ELEMENTS:,} elements, and none of texts")
    local = of is not None and of.text() == EACH_RANK
    if split is not None and (local or not sizes):
        raise split.fault("a split only of a global array")
    if not sizes:
        what, blocks = GLOBAL_VALUE, _value()
    elif local:
        what, blocks = LOCAL_ARRAY, _local(sizes, ranks)
    else:
        what, blocks = GLOBAL_ARRAY, _grid(row, sizes, split, ranks)
    value = None if sizes else "" if kind.text() == STRING else "0"
    return Variable(
        name=name.text(),
        type=kind.text(),
        kind=what,
        bytes=element_bytes(kind.text()),
        instances=tuple(
            Instance(
                step=step,
                shape=sizes if what == GLOBAL_ARRAY else None,
                blocks=blocks,
                value=value,
            )
            for step in range(steps)
        ),
    )


def _value() -> Blocks:
    none = np.zeros((1, 0), np.int64)
    return Blocks(writers=np.zeros(1, np.int64), starts=none, counts=none)


def _local(sizes: tuple[int, ...], ranks: int) -> Blocks:
    counts = np.tile(np.array(sizes, dtype=np.int64), (ranks, 1))
    return Blocks(writers=np.arange(ranks), starts=np.zeros_like(counts), counts=counts)


def _grid(row: Rows, sizes: tuple[int, ...], split: Rows | None, ranks: int) -> Blocks:
    """Even blocks on a grid of ranks; by default slabs along the slowest dimension."""
    if split is None:
        sides = (ranks, *(1 for _ in sizes[1:]))
    else:
        sides = tuple(_whole(n, 1, MAX_RANKS) for n in split.list())
    if len(sides) != len(sizes) or math.prod(sides) != ranks:
        raise row.fault(f"a split with a number for each dimension, whose product is {ranks:,}")
    starts, counts = np.zeros((2, ranks, len(sizes)), np.int64)
    for d, places in enumerate(np.unravel_index(np.arange(ranks), sides)):
        place: Integers = np.asarray(places, dtype=np.int64)
        starts[:, d], counts[:, d] = even_part(sizes[d], sides[d], place)
    return Blocks(writers=np.arange(ranks), starts=starts, counts=counts)
