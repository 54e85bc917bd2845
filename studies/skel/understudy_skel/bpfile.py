"""Content of a BP file on the program that wrote it: variables, types, each process's part.

Read through ADIOS' own program bpls, from the file's index: contents are not touched. The file
does not say what its sizes were called, so they are numbers; where a size or an offset differs
from process to process an integer scalar is added that holds it.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from understudy.errors import UnderstudyError
from understudy.xmlfile import Element
from understudy_skel import bpindex, identifiers
from understudy_skel.descriptor import Descriptor, Group, Method, Variable
from understudy_skel.expressions import RANK, Integers, coordinate, grid
from understudy_skel.parameters import Batch, GroupParameters, Parameters, Test
from understudy_skel.types import BY_NAME, ElementType

PROGRAMS = ("bpls", "bpls.openmpi", "bpls.mpich")
OWN = "/__adios__/"
UNCHANGED = "identity"  # the transform whose bytes depend neither on contents nor on parameters
HEAD = re.compile(
    r"  (?P<type>[a-z ]+?)\s{2,}(?P<name>\S.*?)\s+(?:(?P<steps>\d+)\*)?"
    r"(?P<shape>scalar|\{[^}]*\})(?:\s*= (?P<value>.*))?"
)
STEP = re.compile(r"\s+step\s+(\d+):\s*(?:(\d+) instances available)?")
NUMBER = r"-?[\d.e+-]+"
COMPLEX = re.compile(rf"\(({NUMBER}),i?({NUMBER})\)")
TEXTS = re.compile(r'".*"')
BLOCK = re.compile(r"\s+block\s+(\d+): \[(.*?)\](?: =.*)?")


@dataclass(kw_only=True)
class Listed:
    """A variable as bpls lists it: the parts of the first step as (first, last) per dimension."""

    name: str
    type: str
    shape: tuple[int, ...]
    steps: int
    value: str
    parts: list[tuple[tuple[int, int], ...]] = field(default_factory=list)
    instances: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """`left_out`: variables that no skeleton can write; `added`: how many scalars were needed."""

    descriptor: Descriptor
    parameters: Parameters
    left_out: tuple[str, ...]
    added: int


def read(path: Path) -> Found:
    """Descriptor and parameters of a skeletal application that writes such a file."""
    listed = [v for v in parse(bpls_output(path), path) if not v.name.startswith(OWN)]
    fitting = [v for v in listed if _can_be_written(v)]
    if not fitting:
        raise UnderstudyError(f"{path}: no variable in it that a skeletal application can write")
    transforms = bpindex.transforms(path)
    for variable in fitting:
        if transforms.get(variable.name, UNCHANGED) != UNCHANGED:
            raise UnderstudyError(
                f"{path}: {variable.name}: transform {transforms[variable.name]!r}: the file "
                "tells neither its parameters nor the contents that it depends on; expected a "
                "file without transforms, or the descriptor (understudy skel source)"
            )
    ranks = max(max(v.instances, len(v.parts)) for v in fitting)
    for variable in fitting:
        if not (variable.name.isprintable() and variable.value.isprintable()):
            raise UnderstudyError(
                f"{path}: {variable.name!r}: a character of its name or value cannot be printed; "
                "no skeletal application is generated from such a file"
            )
        have = len(variable.parts) if variable.shape else variable.instances
        if have != ranks:
            raise UnderstudyError(
                f"{path}: {variable.name}: {have} parts, but {ranks} of other variables; expected "
                "one of each process"
            )
    name = identifiers.plain(path.name.split(".")[0])
    builder = _Builder(file=str(path), ranks=ranks, transforms=transforms)
    arrays = [builder.variable(v) for v in fitting]
    group = Group(
        name=name,
        element=builder.element("adios-group", name),
        language="C",
        communicator="comm",
        time_index="",
        stats="",
        variables=(*builder.added, *arrays),
        attributes=(),
        switches=(),
    )
    method, words = _method(path, ranks)
    stated_method = Method(
        group=name, name=method, parameters=words, element=builder.element("method", name)
    )
    descriptor = Descriptor(
        file=str(path), language="C", groups=(group,), methods=(stated_method,), buffer_mb=None
    )
    values = GroupParameters(
        scalars=builder.values,
        fills={a.name: "rank" for a in group.arrays},
        switches={},
        file=str(path),
    )
    steps = max(v.steps for v in fitting)
    test = Test(group=name, method=method, method_parameters=words, steps=steps)
    batch = Batch(name="replay", cores=ranks, walltime="0:30:00", tests=(test,))
    return Found(
        descriptor=descriptor,
        parameters=Parameters(application=name, groups={name: values}, batches=(batch,)),
        left_out=tuple(v.name for v in listed if not _can_be_written(v)),
        added=len(builder.added),
    )


def _can_be_written(listed: Listed) -> bool:
    """Types of a fixed size, and texts of one line with something in them."""
    kind = BY_NAME.get(listed.type)
    if kind is not None and kind.text:
        return not listed.shape and bool(listed.value)
    return kind is not None


def bpls_output(path: Path) -> str:
    if not path.is_file():
        reason = "is no regular file" if path.exists() else "no such file"
        raise UnderstudyError(f"{path}: cannot be read: {reason}")
    program = next((p for p in PROGRAMS if shutil.which(p)), None)
    if program is None:
        raise UnderstudyError(
            "bpls: not found; it reads BP files and comes with ADIOS (Debian: libadios-bin)"
        )
    done = subprocess.run(
        [program, "-lD", path.absolute()],
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
        errors="surrogateescape",
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise UnderstudyError(f"{path}: not a BP file: {said[0] if said else 'bpls says nothing'}")
    return done.stdout


def parse(text: str, path: Path) -> list[Listed]:
    """The variables in the output of bpls -lD."""
    listed: list[Listed] = []
    step = 0
    for line in text.splitlines():
        if head := HEAD.fullmatch(line):
            listed.append(_listed(head))
        elif not line.strip() or not listed:
            continue
        elif in_step := STEP.fullmatch(line):
            step = int(in_step.group(1))
            listed[-1].instances = listed[-1].instances or int(in_step.group(2) or 0)
        elif (block := BLOCK.fullmatch(line)) and step == 0:
            limits = [part.split(":") for part in block.group(2).split(",")]
            if any(len(limit) != 2 for limit in limits):
                raise UnderstudyError(
                    f"{path}: {listed[-1].name}: bpls does not tell which part each process wrote"
                )
            listed[-1].parts.append(tuple((int(low), int(high)) for low, high in limits))
        elif not block:
            raise UnderstudyError(f"{path}: bpls says what is not understood: {line.strip()!r}")
    return listed


def _listed(head: re.Match[str]) -> Listed:
    shape = head["shape"].strip("{}")
    sizes = () if shape == "scalar" else tuple(int(n) for n in shape.split(","))
    value = (head["value"] or "").strip()
    value = value[1:-1] if TEXTS.fullmatch(value) else value.split("/")[0].strip()
    kind = {"long long": "long", "unsigned long long": "unsigned long"}.get(
        head["type"], head["type"]
    )
    return Listed(
        name=head["name"], type=kind, shape=sizes, steps=int(head["steps"] or 1), value=value
    )


def _value(value: str, kind: ElementType) -> str:
    """A scalar's value as a parameters file has it; 0 for what is no number, as nan."""
    if kind.text:
        return value
    if pair := COMPLEX.fullmatch(value):
        return f"({pair[1]},{pair[2]})"
    if not re.fullmatch(NUMBER, value):
        return "0"
    return re.sub(r"^-(.*)", r"-(\1)", value) if kind.integer else value


def _method(path: Path, ranks: int) -> tuple[str, str]:
    """The method that leaves such files behind, and its parameters."""
    folder = path.with_name(f"{path.name}.dir")
    files = len(list(folder.glob(f"{path.name}.*"))) if folder.is_dir() else 0
    if files == 0:
        return "MPI", ""
    return ("POSIX", "") if files == ranks else ("MPI_AMR", f"num_aggregators={files}")


@dataclass(kw_only=True)
class _Builder:
    """Makes variables of a descriptor, and the scalars that their dimensions need."""

    file: str
    ranks: int
    transforms: dict[str, str]
    values: dict[str, str] = field(default_factory=dict)
    added: list[Variable] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def element(self, tag: str, name: str) -> Element:
        return Element(file=self.file, line=0, tag=tag, attributes={"name": name})

    def variable(self, listed: Listed) -> Variable:
        kind = BY_NAME[listed.type]
        element = self.element("var", listed.name)
        if listed.name in self.transforms:
            element.attributes["transform"] = self.transforms[listed.name]
        if not listed.shape:
            self.values[listed.name] = _value(listed.value, kind)
            return Variable(name=listed.name, path="", type=kind, element=element)
        limits = np.asarray(listed.parts, dtype=np.int64)
        first, local = limits[..., 0], limits[..., 1] - limits[..., 0] + 1
        shared = bool(first.any()) or self.ranks == 1
        columns = range(len(listed.shape))
        return Variable(
            name=listed.name,
            path="",
            type=kind,
            element=element,
            dimensions=tuple(self._token(local[:, d]) for d in columns),
            global_dimensions=tuple(str(n) for n in listed.shape) if shared else (),
            offsets=tuple(self._token(first[:, d]) for d in columns) if shared else (),
        )

    def _token(self, column: Integers) -> str:
        """A number that all ranks share, or the name of a scalar with each rank's."""
        if (column == column[0]).all():
            return str(int(column[0]))
        value = expression_of(column)
        if value not in self.names:
            name = f"skel_part_{len(self.names)}"
            self.names[value] = name
            self.values[name] = value
            kind = BY_NAME["long" if int(column.max()) >= 2**31 else "integer"]
            element = self.element("var", name)
            self.added.append(Variable(name=name, path="", type=kind, element=element))
        return self.names[value]


def expression_of(column: Integers) -> str:
    """A number per rank, as an expression: a multiple of the rank or of its place in a balanced
    grid where it is one, else the list of them."""
    ranks = len(column)
    places: dict[str, Integers] = {RANK: np.arange(ranks, dtype=np.int64)}
    for dimensions in (2, 3):
        for index in range(dimensions):
            name = f"coordinate({dimensions}, {index})"
            places[name] = coordinate(grid(ranks, dimensions), index)
    for name, place in places.items():
        factor = int(column[place == 1][0]) if (place == 1).any() else 0
        if (column == factor * place).all():
            return f"{factor} * {name}"
    return f"of_rank({', '.join(str(int(n)) for n in column)})"
