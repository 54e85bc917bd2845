"""Content of a BP file that a skeletal application wrote, from ADIOS' own bpls.

Shapes of all variables are compared, and of every array one element of the part of the first and
of the last process that can be told apart from the others by its value.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from understudy_skel.blocks import Blocks, GroupBlocks

RANK = "rank"  # the fill by which an element tells which process wrote it
ROW = re.compile(r"^\s+\S.*?\s+(?P<name>\S+)\s+(?:\d+\*)?(?P<shape>scalar|\{[^}]*\})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One element of an array: its place in C order, and the value that its writer gave it."""

    variable: str
    start: tuple[int, ...]
    value: int


def samples(group_blocks: GroupBlocks, fills: Mapping[str, str]) -> list[Sample]:
    """The first element of the first and the last process' part of each array that is filled by
    rank and that the processes share out among them."""
    samples_of_ranks = []
    for block in group_blocks.blocks:
        if block.whole is None or fills.get(block.variable.name) != RANK or not _apart(block):
            continue
        for rank in sorted({0, group_blocks.ranks - 1}):
            bits = 8 * block.variable.type.bytes
            value = rank if block.variable.type.workload[0] == "f" else rank % 2 ** (bits - 1)
            start = tuple(int(n) for n in block.offsets[rank])
            samples_of_ranks.append(Sample(variable=block.variable.name, start=start, value=value))
    return samples_of_ranks


def _apart(block: Blocks) -> bool:
    """True if no two processes have the same part."""
    return len(np.unique(block.offsets, axis=0)) == len(block.offsets)


def table(wanted: list[Sample]) -> str:
    """A line for each sample: variable, start, count."""
    lines = []
    for sample in wanted:
        ones = ",".join("1" for _ in sample.start)
        lines.append(f"{sample.variable}\t{_joined(sample.start)}\t{ones}\n")
    return "".join(lines)


def commands(directory: str, name: str, wanted: str, listing: str) -> list[str]:
    """Shell lines that list a BP file, and print each sample of the table in the file `wanted`
    behind a line that names it. `directory` is expanded by the shell, the file's `name` is not."""
    file = f'"{directory}"/{shlex.quote(name)}'
    return [
        f"bpls {file} >{listing}",
        "while IFS=$'\\t' read -r name start count; do",
        f'  echo "sample $name $start" >>{listing}',
        f'  bpls -d -y -s "$start" -c "$count" -- {file} "$name" >>{listing}',
        f"done <{wanted}",
    ]


def _joined(start: tuple[int, ...]) -> str:
    return ",".join(map(str, start))


def faults(text: str, group_blocks: GroupBlocks, wanted: list[Sample]) -> Iterator[str]:
    """Messages on what the listing should say and does not."""
    head, *printed = re.split(r"(?m)^sample ", text)
    shapes = {m["name"]: m["shape"] for line in head.splitlines() if (m := ROW.match(line))}
    for block in group_blocks.blocks:
        name, shape = block.variable.name, _shape(block)
        if name not in shapes:
            yield f"{name}: not in the file; expected {shape}"
        elif block.whole is not None and shapes[name] != shape:
            yield f"{name}: expected {shape}, got {shapes[name]}"
    values = dict(_value(part) for part in printed)
    for sample in wanted:
        start = _joined(sample.start)
        have = values.get(f"{sample.variable} {start}")
        if have is None or have != sample.value:
            got = "nothing" if have is None else f"{have:g}"
            yield f"{sample.variable}: element ({start}): expected {sample.value}, got {got}"


def _shape(block: Blocks) -> str:
    if not block.variable.dimensions:
        return "scalar"
    whole = block.whole if block.whole is not None else tuple(int(n) for n in block.local[0])
    return f"{{{', '.join(map(str, whole))}}}"


def _value(part: str) -> tuple[str, float | None]:
    """The line that names the sample, and the number in the last line that has one."""
    title, *lines = part.splitlines()
    numbers = [line.split()[-1] for line in lines if re.fullmatch(r"\s*[-+.\deE]+\s*", line)]
    return title.strip(), float(numbers[-1]) if numbers else None
