"""What each process writes in each step: variables by layouts, which variables and steps share."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from understudy.adios2.output import (
    GLOBAL_ARRAY,
    JOINED_ARRAY,
    LOCAL_ARRAY,
    LOCAL_VALUE,
    STRING,
    TYPE_BYTES,
    VALUES,
    Attribute,
    Blocks,
    Instance,
    Integers,
    Output,
    Variable,
)
from understudy.errors import UnderstudyError

JOINED = -1  # the side of a shape along which blocks are joined
MAX_NUMBERS = 4_000_000  # in tables: a compiler takes seconds for so many


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Where the blocks of all processes begin along a dimension, and their sizes, in a regular
    decomposition: i = rank / `stride` % `parts` counts blocks along it. Block i begins at i *
    `step`, or behind as many of the first `larger` blocks as there are before it, which have one
    element more than `count`. The last has `last_count`."""

    stride: int
    parts: int
    step: int
    count: int
    last_count: int
    larger: int = 0

    @property
    def is_whole(self) -> bool:
        return self.parts == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Global shape (None: local arrays; JOINED along a joined dimension) and all blocks. `sides`
    where each process has one block of a regular decomposition, else None."""

    number: int
    shape: tuple[int, ...] | None
    local: bool
    blocks: Blocks
    sides: tuple[Side, ...] | None

    @property
    def dimensions(self) -> int:
        return int(self.blocks.counts.shape[1])

    def rows(self) -> Integers:
        """Rank, starts unless local, and counts of each block: int64[blocks, ...]."""
        starts = [] if self.local else [self.blocks.starts]
        return np.hstack([self.blocks.writers[:, None], *starts, self.blocks.counts])


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A variable: by step the number of its layout (an array) or its text (a value), the ranks
    that write a value, and by step the texts of all ranks, of a local value."""

    variable: Variable
    layouts: Mapping[int, int] = field(default_factory=dict)
    values: Mapping[int, str] = field(default_factory=dict)
    ranks: tuple[int, ...] = ()
    of_ranks: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def local_value(self) -> bool:
        return self.variable.kind == LOCAL_VALUE

    @property
    def steps(self) -> tuple[int, ...]:
        return tuple(self.layouts or self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`bytes` int64[steps, writers]: payload of each process."""

    output: Output
    layouts: tuple[Layout, ...]
    puts: tuple[Put, ...]
    attributes: tuple[Attribute, ...]
    bytes: Integers

    @property
    def writers(self) -> int:
        return self.output.writers

    @property
    def steps(self) -> int:
        return self.output.steps

    @property
    def tables(self) -> tuple[Layout, ...]:
        return tuple(layout for layout in self.layouts if layout.sides is None)


def of(output: Output) -> Plan:
    """The plan of an output; an UnderstudyError names what no skeleton can write."""
    layouts = _Layouts(output.writers)
    puts = []
    sizes = np.zeros((output.steps, output.writers), np.int64)
    for variable in output.variables:
        if variable.type not in TYPE_BYTES:
            raise UnderstudyError(
                f"{output.path}: variable {variable.name!r}: type {variable.type!r}: expected one "
                f"of {', '.join(TYPE_BYTES)}"
            )
        if variable.kind not in VALUES and variable.type == STRING:
            raise UnderstudyError(
                f"{output.path}: variable {variable.name!r}: an array of strings; expected numbers"
            )
        put = _put(output, variable, layouts)
        puts.append(put)
        for instance in variable.instances:
            _count(sizes[instance.step], variable, instance)
    if not sizes.any():
        raise UnderstudyError(f"{output.path}: no time step in it has data")
    numbers = sum(layout.rows().size for layout in layouts.all if layout.sides is None)
    numbers += sum(len(texts) for put in puts for texts in put.of_ranks.values())
    if numbers > MAX_NUMBERS:
        raise UnderstudyError(
            f"{output.path}: its irregular blocks take tables of {numbers} numbers; expected at "
            f"most {MAX_NUMBERS}"
        )
    return Plan(
        output=output,
        layouts=tuple(layouts.all),
        puts=tuple(puts),
        attributes=output.attributes,
        bytes=sizes,
    )


def _count(sizes: Integers, variable: Variable, instance: Instance) -> None:
    """Adds the bytes of an instance to those of the processes."""
    blocks = instance.blocks
    if variable.type == STRING:
        texts = instance.values or [instance.value or ""] * len(blocks.writers)
        each = np.array([len(text.encode()) for text in texts], dtype=np.int64)
    else:
        each = blocks.counts.prod(axis=1) * TYPE_BYTES[variable.type]
    np.add.at(sizes, blocks.writers, each)


def _put(output: Output, variable: Variable, layouts: "_Layouts") -> Put:
    if variable.kind in VALUES:
        values = {
            i.step: i.value or ("" if variable.type == STRING else "0") for i in variable.instances
        }
        ranks = sorted({int(w) for i in variable.instances for w in i.blocks.writers})
        of_ranks = {}
        for instance in variable.instances:
            if len(set(instance.values)) > 1:
                texts = [instance.values[0]] * output.writers
                for writer, text in zip(instance.blocks.writers, instance.values, strict=True):
                    texts[int(writer)] = text
                of_ranks[instance.step] = tuple(texts)
        if of_ranks:
            alike = {step: (text,) * output.writers for step, text in values.items()}
            of_ranks = alike | of_ranks
        return Put(variable=variable, values=values, ranks=tuple(ranks) or (0,), of_ranks=of_ranks)
    numbers = {}
    for instance in variable.instances:
        numbers[instance.step] = layouts.number(variable, instance)
    return Put(variable=variable, layouts=numbers)


class _Layouts:
    """Each layout once, numbered in the order of its first use."""

    def __init__(self, writers: int) -> None:
        self.writers = writers
        self.all: list[Layout] = []
        self._numbers: dict[tuple[object, ...], int] = {}

    def number(self, variable: Variable, instance: Instance) -> int:
        blocks = instance.blocks
        shape = instance.shape
        local = variable.kind != GLOBAL_ARRAY
        if variable.kind == LOCAL_ARRAY:
            shape = None
        elif variable.kind == JOINED_ARRAY:
            shape = _joined(variable, instance)
        starts = np.zeros_like(blocks.starts) if local else blocks.starts
        key = (
            shape,
            local,
            blocks.counts.shape,
            blocks.writers.tobytes(),
            starts.tobytes(),
            blocks.counts.tobytes(),
        )
        number = self._numbers.setdefault(key, len(self.all))
        if number == len(self.all):
            layout = Layout(
                number=number,
                shape=shape,
                local=local,
                blocks=Blocks(writers=blocks.writers, starts=starts, counts=blocks.counts),
                sides=_sides(self.writers, blocks.writers, starts, blocks.counts),
            )
            self.all.append(layout)
        return number


def _joined(variable: Variable, instance: Instance) -> tuple[int, ...]:
    """The shape with JOINED in place of the side along which the counts of blocks add up."""
    counts = instance.blocks.counts
    shape = instance.shape or tuple(int(n) for n in counts[0])
    for side in range(counts.shape[1]):
        others = [k for k in range(counts.shape[1]) if k != side]
        if (counts[:, others] == counts[:1, others]).all() and (
            instance.shape is None or int(counts[:, side].sum()) == shape[side]
        ):
            rest = [int(counts[0, k]) for k in range(counts.shape[1])]
            return (*rest[:side], JOINED, *rest[side + 1 :])
    raise UnderstudyError(
        f"variable {variable.name!r}, step {instance.step}: its blocks cannot be joined along any "
        "dimension"
    )


def _sides(
    processes: int, writers: Integers, starts: Integers, counts: Integers
) -> tuple[Side, ...] | None:
    if len(writers) != processes or not (writers == np.arange(processes)).all():
        return None
    sides = [_side(starts[:, k], counts[:, k]) for k in range(counts.shape[1])]
    return None if None in sides else tuple(side for side in sides if side is not None)


def _side(starts: Integers, counts: Integers) -> Side | None:
    """A regular decomposition along a dimension, if starts and counts follow one."""
    places, indices = np.unique(starts, return_inverse=True)
    parts = len(places)
    changes = np.flatnonzero(np.diff(starts))
    stride = int(changes[0]) + 1 if len(changes) else 1
    if not (indices == np.arange(len(starts)) // stride % parts).all():
        return None
    sizes = np.zeros(parts, np.int64)
    sizes[indices] = counts
    if not (sizes[indices] == counts).all():
        return None
    step = int(places[1]) if parts > 1 else 0
    if (places == step * np.arange(parts)).all() and (sizes[:-1] == sizes[0]).all():
        return Side(
            stride=stride, parts=parts, step=step, count=int(sizes[0]), last_count=int(sizes[-1])
        )
    larger = int((sizes == sizes[-1] + 1).sum())
    count = int(sizes[-1])
    order = np.arange(parts)
    if not (sizes == count + (order < larger)).all():
        return None
    if not (places == order * count + np.minimum(order, larger)).all():
        return None
    return Side(
        stride=stride, parts=parts, step=count, count=count, last_count=count, larger=larger
    )


def spans(steps: Iterable[int]) -> list[tuple[int, int]]:
    """First and last of the runs of consecutive steps."""
    runs: list[tuple[int, int]] = []
    for step in steps:
        if runs and runs[-1][1] == step - 1:
            runs[-1] = (runs[-1][0], step)
        else:
            runs.append((step, step))
    return runs
