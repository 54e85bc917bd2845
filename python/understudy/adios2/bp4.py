"""Metadata of BP4: for each time step the processes, the variables with all blocks, and the
attributes. A block states its subfile and its place there, a process where its blocks begin."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from understudy.adios2.bp4_writers import Writers
from understudy.adios2.bp5 import along_joined
from understudy.adios2.index import StepBP4
from understudy.adios2.metadata import LARGEST, Metadata, joined
from understudy.adios2.output import (
    GLOBAL_ARRAY,
    GLOBAL_VALUE,
    JOINED_ARRAY,
    LOCAL_ARRAY,
    LOCAL_VALUE,
    STRING,
    Attribute,
    Blocks,
    Instance,
    Integers,
    element_bytes,
)
from understudy.errors import one_line

TEXTS = 12  # the type of an attribute with several texts
TYPES = {
    0: "int8_t",
    1: "int16_t",
    2: "int32_t",
    4: "int64_t",
    5: "float",
    6: "double",
    7: "long double",
    9: STRING,
    10: "float complex",
    11: "double complex",
    TEXTS: STRING,
    50: "uint8_t",
    51: "uint16_t",
    52: "uint32_t",
    54: "uint64_t",
    55: "char",
}
# Characteristics of a block.
VALUE, MINIMUM, MAXIMUM, OFFSET, DIMENSIONS, VARIABLE, PAYLOAD = range(7)
FILE, TIME, BITMAP, STATISTICS, OPERATOR, RANGE = range(7, 13)
_FIXED = {OFFSET: 8, PAYLOAD: 8, FILE: 4, TIME: 4, VARIABLE: 4, BITMAP: 4}
LOCAL = -3  # stands for the global size of a local value, and -2 for a joined dimension


@dataclass(slots=True, kw_only=True)
class Layout:
    """Where in a set of characteristics its values stand, behind the begin of the set: `length`
    of all, dimensions, and the `operator` with its sizes."""

    length: int = 0
    at: dict[int, int] = field(default_factory=dict)
    rank: int = 0
    operator: str = ""
    type: int = -1
    values: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A time step: its variables by name, types and operators, the subfile, begin and end of each
    block, int64[n, 3], and its attributes. `processes` wrote it."""

    instances: Mapping[str, Instance]
    types: Mapping[str, tuple[str, str]]
    operators: Mapping[str, str]
    blocks: Mapping[str, Integers]
    attributes: tuple[Attribute, ...]
    processes: Integers
    shapes_differ: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Element:
    """A variable or attribute: its name and type, and where its sets begin and end."""

    name: str
    type: int
    begin: int
    end: int


def read_step(data: Metadata, number: int, place: StepBP4, writers: Writers) -> Step:
    """The time step whose metadata these are."""
    base = place.processes
    processes, offsets, column_major = _processes(data, place.variables - base)
    tables: dict[str, _Table] = {}
    for element in _elements(data, place.variables - base, place.attributes - base):
        if element.name in tables:
            raise data.fault(element.begin, f"variable {element.name!r}: twice in a step")
        tables[element.name] = _Table(data, element)
    rows = {name: table.instance(number, column_major) for name, table in tables.items()}
    blocks = {name: tables[name].places(instance) for name, (_, instance) in rows.items()}
    texts = {name: table.texts() for name, table in tables.items() if name in rows}
    by_name, blocks = _writers(data, number, (processes, offsets), blocks, texts, writers)
    return Step(
        instances={
            name: _of_writers(instance, by_name[name], kind)
            for name, (kind, instance) in rows.items()
        },
        types={name: (TYPES[tables[name].type], kind) for name, (kind, _) in rows.items()},
        operators={name: table.operator for name, table in tables.items()},
        blocks=blocks,
        attributes=tuple(_attributes(data, place.attributes - base, place.end - base)),
        processes=processes,
        shapes_differ=any(table.shapes_differ for table in tables.values()),
    )


def _writers(
    data: Metadata,
    number: int,
    processes: tuple[Integers, Integers],
    blocks: dict[str, Integers],
    texts: Mapping[str, Sequence[bytes]],
    writers: Writers,
) -> tuple[dict[str, Integers], dict[str, Integers]]:
    """The writers of the blocks of each variable, and these at their places. `processes` are the
    ranks, and where their data begin; `texts` those of each variable, none of numbers."""
    ranks, offsets = processes
    by_name: dict[str, Integers] = {}
    placed = dict(blocks)
    numbers = [name for name in blocks if not texts[name]]
    others = joined([blocks[name] for name in numbers], 3)
    begins = None
    if len(numbers) < len(blocks) and len(ranks) > 1:
        writers.place(ranks, offsets, others)
        begins = writers.group_begins(number, ranks)
    if begins is None:
        numbers = list(blocks)
        others = joined([blocks[name] for name in numbers], 3)
        if len(ranks) > 1:
            _expect_adjacent(data, blocks, texts, others)
    if numbers:
        every = writers.of_step(
            data, number, ranks, offsets, others, by_groups=len(numbers) < len(blocks)
        )
        ends = np.cumsum([len(blocks[name]) for name in numbers])[:-1]
        by_name = dict(zip(numbers, np.split(every, ends), strict=True))
    for name in blocks:
        if begins is not None and texts[name]:
            by_name[name], placed[name] = writers.of_texts(
                data, number, ranks, begins, blocks[name], texts[name]
            )
    return by_name, placed


def _expect_adjacent(
    data: Metadata,
    blocks: Mapping[str, Integers],
    texts: Mapping[str, Sequence[bytes]],
    every: Integers,
) -> None:
    """Texts must lie next to other blocks: elsewhere their places are those in the buffer of their
    process, and which it was stands only in the files of data."""
    begins, ends = ({tuple(row) for row in every[:, [0, k]].tolist()} for k in (1, 2))
    for name, rows in blocks.items():
        if not texts[name]:
            continue
        for subfile, begin, end in rows.tolist():
            if len(every) > 1 and (subfile, begin) not in ends and (subfile, end) not in begins:
                raise data.fault(
                    0,
                    f"variable {one_line(name)}: which process wrote a text stands only in "
                    f"data.{subfile}, which is missing or wrong",
                )


def _of_writers(instance: Instance, writers: Integers, kind: str) -> Instance:
    """The same with the blocks in order of their writers."""
    order = np.argsort(writers, kind="stable")
    blocks = instance.blocks
    starts, counts, shape = blocks.starts[order], blocks.counts[order], instance.shape
    if kind == JOINED_ARRAY and shape is not None:
        starts, shape = along_joined(counts, shape)
    return Instance(
        step=instance.step,
        shape=shape,
        blocks=Blocks(writers=writers[order], starts=starts, counts=counts),
        value=instance.value,
        values=tuple(instance.values[k] for k in order) if instance.values else (),
        stored=None if instance.stored is None else instance.stored[order],
    )


def ranks(steps: Iterable[Metadata]) -> Integers:
    """The ranks of all processes; each part of the metadata has the processes of a step, without
    those that wrote nothing."""
    union: Integers = np.zeros(0, np.int64)
    for data in steps:
        processes, _, _ = _processes(data, len(data))
        if not np.array_equal(np.sort(processes), union):
            union = np.union1d(union, processes)
    return union


def _processes(data: Metadata, end: int) -> tuple[Integers, Integers, bool]:
    """The ranks of the processes, and where the blocks of each begin in its subfile."""
    count, length = data.size(0, 8, "the number of processes"), data.size(8, 8, "a length")
    if length != end - 16 or count * 23 > length:
        raise data.fault(0, f"{count:,} processes in {length:,} bytes of {end - 16:,}")
    ranks, offsets = np.zeros(count, np.int64), np.zeros(count, np.int64)
    at = 16
    major = b"n"
    for k in range(count):
        size = data.number(at, 2)
        data.expect(at + 2, size, "a process")
        name = data.number(at + 2, 2)
        major = data.data[at + 4 + name : at + 5 + name]
        ranks[k] = data.number(at + 5 + name, 4)
        step_name = data.number(at + 9 + name, 2)
        offsets[k] = data.size(at + 15 + name + step_name, 8, "the place of a process")
        if size != 21 + name + step_name or major not in (b"y", b"n"):
            raise data.fault(at, "the row of a process is wrong")
        at += 2 + size
    if at != end or len(np.unique(ranks)) != count:
        raise data.fault(at, f"the rows of {count:,} processes are wrong")
    return ranks, offsets, major == b"y"


def _elements(data: Metadata, begin: int, end: int) -> Iterator[_Element]:
    """The variables, or attributes, from `begin` to `end`."""
    count, length = data.number(begin, 4), data.size(begin + 4, 8, "a length")
    if length != end - begin - 12:
        raise data.fault(begin, f"variables of {length:,} bytes in {end - begin - 12:,}")
    at = begin + 12
    rows = 0
    while at < end:
        size = data.number(at, 4)
        stop = at + 4 + size
        group = data.number(at + 8, 2)
        length = data.number(at + 10 + group, 2)
        head = at + 12 + group + length
        if head + 11 > stop or stop > end:
            raise data.fault(at, "a variable or attribute exceeds its step")
        name = data.text(at + 12 + group, length)
        kind = data.number(head + 2, 1)
        if kind not in TYPES:
            raise data.fault(head + 2, f"{name!r}: type {kind}, which is not supported")
        yield _Element(name=name, type=kind, begin=head + 11, end=stop)
        at = stop
        rows += 1
    if rows != count:
        raise data.fault(begin, f"{rows:,} variables or attributes: expected {count:,}")


class _Table:
    """The sets of characteristics of a variable, a set of each block. Sets of one layout are
    compared and read all at once. Their number in the file is of the first writer only."""

    def __init__(self, data: Metadata, element: _Element) -> None:
        self.data = data
        self.name = element.name
        self.groups: list[tuple[Layout, Integers]] = []
        self.shapes_differ = False
        at = element.begin
        while at < element.end:
            layout = layout_of(data, at, element.end, element.type)
            rows = _alike(data, at, element.end, layout)
            self.groups.append((layout, rows))
            at += layout.length * len(rows)
        if not self.groups:
            raise data.fault(element.begin, f"{self.name!r}: a variable without blocks")
        operators = {layout.operator for layout, _ in self.groups}
        types = {layout.type for layout, _ in self.groups}
        if len(types) > 1:
            raise data.fault(element.begin, f"{self.name!r}: blocks of several types")
        self.operator = max(operators)
        self.type = types.pop()

    def numbers(self, key: int, size: int) -> Integers:
        """A characteristic of each block that must be there."""
        parts = []
        for layout, rows in self.groups:
            if key not in layout.at:
                raise self.data.fault(int(rows[0]), f"{self.name!r}: a block without place")
            parts.append(self.data.sizes(rows + layout.at[key], size, "a place"))
        return joined(parts)

    def places(self, instance: Instance) -> Integers:
        """The subfile of each block, where it begins and where it ends, int64[n, 3]."""
        size = element_bytes(TYPES[self.type])
        counts = instance.blocks.counts
        length = instance.stored
        if length is None and counts.shape[1]:
            whole = counts.astype(np.float64).prod(axis=1) * size
            length = np.where(whole < LARGEST, counts.prod(axis=1) * size, LARGEST)
        elif length is None:
            length = np.full(len(counts), size, np.int64)
            if not size:
                length = 2 + self.numbers(VALUE, 2)
        end = np.minimum(self.numbers(PAYLOAD, 8), LARGEST) + length
        return np.stack([self.numbers(FILE, 4), self.numbers(OFFSET, 8), end], axis=1)

    def instance(self, number: int, column_major: bool) -> tuple[str, Instance]:
        """Its kind and blocks, whose writers are not known yet."""
        rank = self.groups[0][0].rank
        if any(layout.rank != rank for layout, _ in self.groups):
            raise self.data.fault(
                int(self.groups[0][1][0]), f"{self.name!r}: blocks differ in rank"
            )
        tables = [self._dimensions(layout, rows) for layout, rows in self.groups]
        counts, wholes, starts = (_columns(tables, k) for k in range(3))
        kind = _kind(counts, wholes, starts)
        self.shapes_differ = bool((wholes != wholes[-1]).any())
        if column_major:
            counts, wholes, starts = counts[:, ::-1], wholes[:, ::-1], starts[:, ::-1]
        value: str | None = None
        values: tuple[str, ...] = ()
        none = np.zeros((len(counts), 0), np.int64)
        if kind in (GLOBAL_VALUE, LOCAL_VALUE):
            value = self._value(*self.groups[0])
            if kind == LOCAL_VALUE:
                values = self._values()
            counts, starts = none, none
        elif kind in (LOCAL_ARRAY, JOINED_ARRAY):
            starts = np.zeros_like(counts)
        shape = tuple(int(n) for n in wholes[-1]) if kind in (GLOBAL_ARRAY, JOINED_ARRAY) else None
        if counts.min(initial=0) < 0 or starts.min(initial=0) < 0:
            raise self.data.fault(
                int(self.groups[0][1][0]), f"{self.name!r}: a block is too large"
            )
        blocks = Blocks(
            writers=np.zeros(len(counts), np.int64),
            starts=np.ascontiguousarray(starts),
            counts=np.ascontiguousarray(counts),
        )
        return kind, Instance(
            step=number,
            shape=shape,
            blocks=blocks,
            value=value,
            values=values,
            stored=self._stored(counts),
        )

    def _dimensions(self, layout: Layout, rows: Integers) -> Integers:
        """Count, global size and start of each dimension, int64[blocks, 3 * rank]."""
        if not layout.rank:
            return np.zeros((len(rows), 0), np.int64)
        at = layout.at[DIMENSIONS] + 8 * np.arange(3 * layout.rank, dtype=np.int64)
        numbers = self.data.gather((rows[:, None] + at).ravel(), 8).view(np.int64)
        return numbers.reshape(len(rows), -1)

    def _values(self) -> tuple[str, ...]:
        """Those of all blocks; none where the metadata lack one."""
        texts = [
            self._value(layout, rows[k : k + 1])
            for layout, rows in self.groups
            for k in range(len(rows))
        ]
        return tuple(text for text in texts if text is not None) if None not in texts else ()

    def _value(self, layout: Layout, rows: Integers) -> str | None:
        """That of the first of the rows."""
        if VALUE not in layout.at:
            return None
        at = int(rows[0]) + layout.at[VALUE]
        if TYPES[layout.type] == STRING:
            return self.data.text(at + 2, self.data.number(at, 2))
        return self.data.value(at, TYPES[layout.type])

    def texts(self) -> list[bytes]:
        """The texts of all blocks as they are in the file; none of numbers."""
        if TYPES[self.type] != STRING:
            return []
        return [text.encode(errors="surrogateescape") for text in self._values()]

    def _stored(self, counts: Integers) -> Integers | None:
        if not self.operator:
            return None
        size = element_bytes(TYPES[self.type])
        plain = counts.prod(axis=1) * size
        parts = []
        done = 0
        for layout, rows in self.groups:
            here = plain[done : done + len(rows)]
            done += len(rows)
            inside = layout.at.get(OPERATOR)
            parts.append(here if inside is None else self.data.sizes(rows + inside, 8, "a size"))
        return joined(parts)


def _columns(tables: list[Integers], first: int) -> Integers:
    """Every third column of these tables from the first, int64[blocks, rank]."""
    return np.concatenate([table[:, first::3] for table in tables])


def _kind(counts: Integers, wholes: Integers, starts: Integers) -> str:
    if counts.shape[1] == 1 and len(wholes) and int(wholes[0, 0]) == LOCAL:
        return LOCAL_VALUE
    if not wholes.any() and not starts.any():
        return LOCAL_ARRAY if counts.any() else GLOBAL_VALUE
    return JOINED_ARRAY if (wholes == LOCAL + 1).any() else GLOBAL_ARRAY


def layout_of(data: Metadata, at: int, end: int, kind: int) -> Layout:
    """The layout of the set of characteristics there."""
    layout = Layout(type=kind)
    count, length = data.number(at, 1), data.number(at + 1, 4)
    layout.length = 5 + length
    stop = at + layout.length
    if stop > end:
        raise data.fault(at, "a block exceeds its variable")
    position = at + 5
    for _ in range(count):
        position = _characteristic(data, layout, at, position, stop)
        if position > stop:
            raise data.fault(position, "a characteristic exceeds its block")
    if position != stop:
        raise data.fault(position, "characteristics do not fill their block")
    return layout


def _characteristic(data: Metadata, layout: Layout, at: int, position: int, stop: int) -> int:
    """Add the characteristic at a position; return where the next one begins."""
    key = data.number(position, 1)
    position += 1
    here = position - at
    layout.at[key] = here
    size = element_bytes(TYPES.get(layout.type, ""))
    if key in _FIXED:
        layout.values.append((here, _FIXED[key]))
        return position + _FIXED[key]
    if key in (VALUE, MINIMUM, MAXIMUM):
        size = size or 2 + data.number(position, 2)
        layout.values.append((here, size) if size != 2 else (here, 0))
        return position + size
    if key == DIMENSIONS:
        layout.rank = data.number(position, 1)
        layout.at[key] = here + 3
        layout.values.append((here + 3, 24 * layout.rank))
        return position + 3 + 24 * layout.rank
    if key == RANGE:
        blocks = data.number(position, 2)
        whole = 2 + 2 * size
        if blocks > 1:
            whole += 9 + 2 * layout.rank + 2 * blocks * size
        layout.values.append((here + 2, whole - 2))
        return position + whole
    if key == OPERATOR:
        return _operator(data, layout, at, position)
    raise data.fault(position - 1, f"characteristic {key} of a block, which is not supported")


def _operator(data: Metadata, layout: Layout, at: int, position: int) -> int:
    name = data.number(position, 1)
    layout.operator = data.text(position + 1, name) or "null"
    position += 1 + name
    before, rank = data.number(position, 1), data.number(position + 1, 1)
    if before not in TYPES:
        raise data.fault(position, f"type {before} before an operator, which is not supported")
    layout.type, layout.rank = before, rank
    layout.at[DIMENSIONS] = position + 4 - at
    layout.values.append((position + 4 - at, 24 * rank))
    position += 4 + 24 * rank
    size = data.number(position, 2)
    if size >= 16:  # the bytes before and behind the operator
        layout.at[OPERATOR] = position + 10 - at
    else:
        layout.at.pop(OPERATOR)
    layout.values.append((position + 2 - at, size))
    return position + 2 + size


def _alike(data: Metadata, at: int, end: int, layout: Layout) -> Integers:
    """Where this set begins, and those behind it with the same layout."""
    length = layout.length
    most = (end - at) // length
    rows = data.array[at : at + most * length].reshape(most, length)
    fixed = np.ones(length, bool)
    for begin, size in layout.values:
        fixed[begin : begin + size] = False
    same = (rows[:, fixed] == rows[0, fixed]).all(axis=1)
    count = most if same.all() else int(same.argmin())
    return at + length * np.arange(count, dtype=np.int64)


def _attributes(data: Metadata, begin: int, end: int) -> Iterator[Attribute]:
    if begin == end:
        return
    for element in _elements(data, begin, end):
        values, array = _attribute_values(data, element)
        kind = TYPES[element.type]
        yield Attribute(name=element.name, type=kind, values=values, array=array)


def _attribute_values(data: Metadata, element: _Element) -> tuple[tuple[str, ...], bool]:
    """The values in the only set of an attribute, and whether they are an array."""
    position = element.begin + 5
    count, array = 1, element.type == TEXTS
    for _ in range(data.number(element.begin, 1)):
        key = data.number(position, 1)
        position += 1
        if key in _FIXED:
            position += _FIXED[key]
        elif key == DIMENSIONS:
            rank = data.number(position, 1)
            count = data.size(position + 3, 8, "a number of values") if rank else 1
            array = array or (rank > 0 and TYPES[element.type] != STRING)
            position += 3 + 24 * rank
        elif key == VALUE:
            return _listed(data, element, position, count), array
        else:
            raise data.fault(position - 1, f"characteristic {key} of {element.name!r}")
        if position > element.end:
            break
    raise data.fault(element.begin, f"attribute {element.name!r}: no value")


def _listed(data: Metadata, element: _Element, position: int, count: int) -> tuple[str, ...]:
    kind = TYPES[element.type]
    if kind != STRING:
        if position + count * element_bytes(kind) > element.end:
            raise data.fault(position, f"attribute {element.name!r}: {count:,} values exceed it")
        return data.values(position, kind, count)
    if element.type != TEXTS:
        count = 1
    texts: list[str] = []
    while len(texts) < count:
        if position + 2 > element.end:
            raise data.fault(position, f"attribute {element.name!r}: {count:,} texts exceed it")
        size = data.number(position, 2)
        texts.append(data.text(position + 2, size))
        position += 2 + size
    return tuple(texts)
