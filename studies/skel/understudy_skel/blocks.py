"""Which process writes which part of which array: the descriptor's dimensions, with numbers in.

Everything is checked here before anything is built: sizes that are zero or negative, global sizes
that differ from process to process, and parts that stick out of their global bounds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from understudy_skel import parameters as parameters_
from understudy_skel.descriptor import Group, Variable
from understudy_skel.expressions import Integers
from understudy_skel.parameters import GroupParameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """A variable's parts, dimensions in C order (slowest first). A scalar has no dimensions,
    a text that of its bytes.

    `local` and `offsets` are int64[ranks, dimensions], `whole` is the global shape, or None for an
    array without global bounds (then `offsets` are 0).
    """

    variable: Variable
    local: Integers
    offsets: Integers
    whole: tuple[int, ...] | None

    @property
    def bytes(self) -> Integers:
        """Payload of each process, int64[ranks]."""
        return np.asarray(self.local.prod(axis=1) * self.variable.type.bytes, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupBlocks:
    """The variables that are written with the switches as they are, in the order of the file."""

    group: Group
    ranks: int
    blocks: tuple[Blocks, ...]
    values: Mapping[str, Integers]

    @property
    def transformed(self) -> bool:
        """Do the bytes that reach storage depend on the contents?"""
        return any(block.variable.transform for block in self.blocks)

    @property
    def bytes(self) -> Integers:
        """Payload of each process, scalars and arrays, int64[ranks]."""
        total = np.zeros(self.ranks, dtype=np.int64)
        for block in self.blocks:
            total += block.bytes
        return total


def of_group(group: Group, parameters: GroupParameters, ranks: int) -> GroupBlocks:
    """The parts of every variable of a group on that many ranks."""
    values: dict[str, Integers] = {}
    for name, expression in parameters_.parsed(group, parameters).items():
        try:
            values[name] = expression.evaluate(values, ranks)
        except ValueError as error:
            raise parameters.fault(name, str(error)) from None
        _check_range(group, parameters, name, values[name])
    written = [
        v
        for v in group.variables
        if all(parameters.switches[name] == value for name, value in v.when)
    ]
    blocks = tuple(_of_variable(group, v, parameters, values, ranks) for v in written)
    return GroupBlocks(group=group, ranks=ranks, blocks=blocks, values=values)


def _check_range(group: Group, parameters: GroupParameters, name: str, value: Integers) -> None:
    kind = group.types[name]
    signed = kind.workload[0] == "i"
    limits = np.iinfo(f"{'int' if signed else 'uint'}{8 * kind.bytes}")
    worst = value[np.argmax(np.abs(value))]
    if value.min() < int(limits.min) or int(value.max()) > int(limits.max):
        raise parameters.fault(
            name, f"the value {int(worst)} does not fit the type {kind.names[0]}"
        )


def _of_variable(
    group: Group,
    variable: Variable,
    parameters: GroupParameters,
    values: Mapping[str, Integers],
    ranks: int,
) -> Blocks:
    def numbers(tokens: tuple[str, ...]) -> Integers:
        in_order = tuple(reversed(tokens)) if group.language == "Fortran" else tokens
        columns = []
        for token in in_order:
            constant = group.constant(token)
            columns.append(np.full(ranks, constant) if constant is not None else values[token])
        return np.stack(columns, axis=1) if columns else np.empty((ranks, 0), dtype=np.int64)

    local, whole, offsets = map(
        numbers, (variable.dimensions, variable.global_dimensions, variable.offsets)
    )
    if variable.type.text:
        local = np.full((ranks, 1), len(parameters_.text_of(variable, parameters).encode()))
    element = variable.element
    if (local < 1).any():
        rank, dimension = np.argwhere(local < 1)[0]
        raise element.fault(
            f"dimension {_name(group, variable.dimensions, dimension)!r} is "
            f"{local[rank, dimension]} on rank {rank}; expected at least 1"
        )
    if math.prod(int(n) for n in local.max(axis=0)) * variable.type.bytes > 2**62:
        raise element.fault("more bytes than a file can have; see the sizes of its dimensions")
    if not variable.global_dimensions:
        return Blocks(variable=variable, local=local, offsets=np.zeros_like(local), whole=None)
    _check_bounds(group, variable, local, whole, offsets)
    return Blocks(
        variable=variable, local=local, offsets=offsets, whole=tuple(int(n) for n in whole[0])
    )


def _name(group: Group, tokens: tuple[str, ...], dimension: int) -> str:
    """The name of a dimension that is counted in C order."""
    return tokens[-1 - dimension] if group.language == "Fortran" else tokens[dimension]


def _check_bounds(
    group: Group, variable: Variable, local: Integers, whole: Integers, offsets: Integers
) -> None:
    element = variable.element
    differing = np.argwhere(whole != whole[0])
    if len(differing):
        rank, dimension = differing[0]
        name = _name(group, variable.global_dimensions, dimension)
        raise element.fault(
            f"its global size {name!r} is {whole[rank, dimension]} on rank {rank}, but "
            f"{whole[0, dimension]} on rank 0; expected the same on all"
        )
    outside = np.argwhere((offsets < 0) | (offsets + local > whole))
    if len(outside):
        rank, dimension = outside[0]
        names = [
            _name(group, tokens, dimension)
            for tokens in (variable.dimensions, variable.global_dimensions, variable.offsets)
        ]
        raise element.fault(
            f"rank {rank} of {len(local)} would write outside its global bounds: offset "
            f"{names[2]} = {offsets[rank, dimension]} and size {names[0]} = "
            f"{local[rank, dimension]} in a global size {names[1]} = {whole[rank, dimension]}"
        )
