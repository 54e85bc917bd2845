"""The parameters of a skeletal application: what the descriptor leaves open.

The file is Skel's (<skel-config>): a value for every scalar, how each array is filled, and batches
of tests with their methods; a <switch> for each condition of the descriptor is added to it.
Default values are not 128 for everything, as Skel's were: which scalars hold ranks, offsets and
global sizes shows in the global bounds; they get expressions that hold on any number of ranks.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from understudy.errors import UnderstudyError
from understudy.xmlfile import Element, is_whole, load
from understudy_skel import expressions
from understudy_skel.descriptor import Descriptor, Group, Variable, check_method
from understudy_skel.escape import word
from understudy_skel.expressions import RANK, RANKS, Expression

ROOT = "skel-config"
FILLS = ("rank", "index", "random", "zero")
YES, NO = ("yes", "on", "true", "1"), ("no", "off", "false", "0")
# Local sizes where nothing is known, and at most how many elements an array of
# more than two dimensions has then.
DEFAULT_SIZE = 128
DEFAULT_ELEMENTS = 32**3
# Scalars that no array's size depends on, by their usual names.
RANKS_NAMES = re.compile(
    r"(n|num|number)_?(of_?)?(pe|pes|proc|procs|processes|ranks?|tasks?)$"
    r"|(number|num)_?pe|mpi_?size|comm_?size",
    re.IGNORECASE,
)
RANK_NAMES = re.compile(
    r"(my|mpi)_?(pe|id|rank|proc|thid)$|rank$|mype$|proc_?id$|(g|j|i|k)?_?task$", re.IGNORECASE
)
GRID_NAMES = re.compile(r"n_?(p|proc|procs|pe)_?([xyz])$", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupParameters:
    """Scalars by full name, fills by full name, switches by name; `source` names the place where
    a value stands, for messages."""

    scalars: Mapping[str, str]
    fills: Mapping[str, str]
    switches: Mapping[str, bool]
    places: Mapping[str, Element] = field(default_factory=dict)
    file: str = "the default parameters"

    def fault(self, name: str, message: str) -> UnderstudyError:
        if name in self.places:
            return self.places[name].fault(message)
        return UnderstudyError(f"{self.file}: {name}: {message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A program that writes one group, by one method, some times."""

    group: str
    method: str
    method_parameters: str
    steps: int = 1
    iterations: int = 1
    tags: str = ""
    keep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    name: str
    cores: int
    walltime: str
    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    application: str
    groups: Mapping[str, GroupParameters]
    batches: tuple[Batch, ...]

    @property
    def tested(self) -> tuple[str, ...]:
        """The groups that the batches test, in their order, each once."""
        return tuple(dict.fromkeys(test.group for b in self.batches for test in b.tests))


def default(descriptor: Descriptor, application: str, cores: int = 4) -> Parameters:
    """Parameters for a descriptor of which nothing else is known."""
    tests = []
    for group in descriptor.groups:
        method = descriptor.method(group.name)
        tests.append(
            Test(
                group=group.name,
                method=method.name if method else "POSIX",
                method_parameters=method.parameters if method else "",
            )
        )
    groups = {
        group.name: GroupParameters(
            scalars=recognise(group),
            fills={array.name: "rank" for array in group.arrays},
            switches={switch.name: False for switch in group.switches},
        )
        for group in descriptor.groups
    }
    batch = Batch(name="writes", cores=cores, walltime="0:30:00", tests=tuple(tests))
    return Parameters(application=application, groups=groups, batches=(batch,))


def with_values(
    descriptor: Descriptor, parameters: Parameters, settings: Mapping[str, str]
) -> Parameters:
    """The same with other values of scalars and switches, in every group that has them."""
    groups = {}
    unused = set(settings)
    for group in descriptor.groups:
        old = parameters.groups[group.name]
        scalars, switches = dict(old.scalars), dict(old.switches)
        for name, value in settings.items():
            if name in scalars:
                scalars[name] = value
            elif name in switches:
                switches[name] = _yes(value, f"{name}={value}")
            else:
                continue
            unused.discard(name)
        groups[group.name] = GroupParameters(
            scalars=scalars,
            fills=old.fills,
            switches=switches,
            file=old.file,
            places={k: v for k, v in old.places.items() if k not in settings},
        )
    if unused:
        name = min(unused)
        raise UnderstudyError(f"{descriptor.file}: {name}: no scalar and no switch of this name")
    return Parameters(
        application=parameters.application, groups=groups, batches=parameters.batches
    )


def _yes(text: str, what: str) -> bool:
    if text.lower() not in (*YES, *NO):
        raise UnderstudyError(f"{what}: expected yes or no")
    return text.lower() in YES


def free_sizes(group: Group, parameters: GroupParameters) -> str:
    """The scalars that arrays take their sizes from and that are numbers, with their values."""
    named = {token for array in group.arrays for token in array.dimensions}
    values = ((s.name, parameters.scalars[s.name]) for s in group.scalars if s.name in named)
    return ", ".join(f"{name}={value}" for name, value in values if is_whole(value))


def quoted(token: str) -> str:
    """A dimension as part of an expression."""
    return token if re.fullmatch(r"\d+|[A-Za-z_]\w*", token) else f"{{{token}}}"


# ---- What the scalars are for


def recognise(group: Group) -> dict[str, str]:
    """A value for every scalar, so that every array lies in its global bounds on any number of
    ranks, and no two ranks' parts overlap: global size = local size times the ranks along that
    dimension, offset = local size times the place of the rank there.

    Arrays that share dimensions are split along those that all of them have."""
    values: dict[str, str] = {}
    names = {scalar.name for scalar in group.scalars}
    common = _common_axes(group)
    fortran = group.language == "Fortran"
    for array in group.arrays:
        axes = _axes(group, array)
        split = [axis for axis in axes if not common or axis in common]
        # Rank 0's neighbour is along the dimension that is contiguous in memory.
        order = list(reversed(common or split)) if fortran else common or split
        for axis in zip(array.dimensions, array.global_dimensions, array.offsets, strict=False):
            local, whole, offset = axis
            if axis in split:
                side, place = _along(order.index(axis), len(order))
                parts = {whole: _times(local, side), offset: _times(local, place)}
            else:
                parts = {whole: quoted(local), offset: "0"}
            for token, value in parts.items():
                if token in names and token not in array.dimensions:
                    values.setdefault(token, value)
    _local_sizes(group, values)
    for scalar in group.scalars:
        values.setdefault(scalar.name, _usual(names, scalar, values))
    return {scalar.name: values[scalar.name] for scalar in group.scalars}


Axis = tuple[str, str, str]


def _axes(group: Group, array: Variable) -> list[Axis]:
    """Local size, global size and offset of the dimensions along which ranks may have different
    parts: the offset is a scalar, and the whole is not the part."""
    return [
        axis
        for axis in zip(array.dimensions, array.global_dimensions, array.offsets, strict=False)
        if group.constant(axis[2]) is None and axis[0] != axis[1]
    ]


def _common_axes(group: Group) -> list[Axis]:
    """The axes that every array has which has any, in the order of the first; may be none."""
    having = [axes for axes in (_axes(group, array) for array in group.arrays) if axes]
    return [axis for axis in having[0] if all(axis in axes for axes in having)] if having else []


def _along(index: int, dimensions: int) -> tuple[str, str]:
    if dimensions == 1:
        return RANKS, RANK
    return f"grid({dimensions}, {index})", f"coordinate({dimensions}, {index})"


def _times(local: str, factor: str) -> str:
    return factor if local == "1" else f"{quoted(local)} * {factor}"


def _local_sizes(group: Group, values: dict[str, str]) -> None:
    """Sizes of which nothing is known; one whose name is a sum, as mpsi+1, is that sum."""
    scalars = {scalar.name for scalar in group.scalars}
    sizes: dict[str, int] = {}
    for array in group.arrays:
        free = [token for token in array.dimensions if token in scalars]
        for token in free:
            sizes[token] = max(sizes.get(token, 1), len(free))
    for name, dimensions in list(sizes.items()):
        told = _told_by_name(name, scalars)
        if told is not None:
            values.setdefault(name, told)
            sizes |= {n: dimensions for n in expressions.parse(told).names if n not in sizes}
    for name, dimensions in sizes.items():
        default = DEFAULT_SIZE
        while dimensions > 2 and default**dimensions > DEFAULT_ELEMENTS:
            default -= 1
        values.setdefault(name, str(default))


def _told_by_name(name: str, scalars: set[str]) -> str | None:
    if re.fullmatch(r"\w+", name):
        return None
    try:
        expression = expressions.parse(name)
    except ValueError:
        return None
    return name if expression.names and set(expression.names) <= scalars - {name} else None


def _usual(names: set[str], scalar: Variable, values: Mapping[str, str]) -> str:
    if scalar.type.text:
        return scalar.leaf
    if not scalar.type.integer:
        return "1"
    if RANKS_NAMES.fullmatch(scalar.leaf):
        return RANKS
    if RANK_NAMES.fullmatch(scalar.leaf):
        return RANK
    axis = GRID_NAMES.fullmatch(scalar.leaf)
    if axis:
        return _grid_side(axis.group(2).lower(), values)
    told = _told_by_name(scalar.name, names)
    return told or "1"


def _grid_side(axis: str, values: Mapping[str, str]) -> str:
    """The ranks along the axis x, y or z: those of the global size that is named after it; 1 where
    nothing is split along it."""
    for name, value in values.items():
        side = re.search(r"grid\(\d+, \d+\)", value)
        if name.lower().endswith(axis) and side:
            return side.group(0)
    return "1"


# ---- The file


def read(path: Path, descriptor: Descriptor) -> Parameters:
    """The parameters in a file; each scalar of the descriptor's groups must have a value."""
    root = load(path, ROOT)
    groups = {}
    for element in root.all("adios-group"):
        group = descriptor.group(element.need("name"))
        if group.name in groups:
            raise element.fault("a group of this name stands in the file already")
        groups[group.name] = _read_group(element, group, str(path))
    for group in descriptor.groups:
        if group.name not in groups:
            raise root.fault(f"the group {group.name!r} is missing; {descriptor.file} has it")
    batches = tuple(_read_batch(e, descriptor) for e in root.all("batch"))
    application = root.get("application") or path.stem.removesuffix("_params")
    word(application, f"{path}: application")
    return Parameters(application=application, groups=groups, batches=batches)


def _read_group(element: Element, group: Group, file: str) -> GroupParameters:
    names = {variable.name for variable in group.variables}
    by_leaf: dict[str, list[str]] = {}
    for variable in group.variables:
        by_leaf.setdefault(variable.leaf, []).append(variable.name)
    switches = {switch.name: False for switch in group.switches}
    scalars: dict[str, str] = {}
    fills = {array.name: "rank" for array in group.arrays}
    places: dict[str, Element] = {}
    for child in element.children:
        name = child.need("name")
        if child.tag == "switch":
            if name not in switches:
                raise child.fault(f"the descriptor's group {group.name!r} has no such switch")
            switches[name] = _yes(child.need("value"), f"{file}: line {child.line}: {child}")
            continue
        fitting = [name] if name in names else by_leaf.get(name, [])
        if len(fitting) != 1 or child.tag not in ("scalar", "array"):
            raise child.fault(
                f"expected a scalar, an array or a switch of the descriptor's group {group.name!r}"
            )
        places[fitting[0]] = child
        if child.tag == "scalar":
            scalars[fitting[0]] = child.need("value")
        else:
            fills[fitting[0]] = _fill(child)
    for scalar in group.scalars:
        if scalar.name not in scalars:
            raise element.fault(f"the scalar {scalar.name!r} has no value")
    return GroupParameters(
        scalars=scalars, fills=fills, switches=switches, places=places, file=file
    )


def _fill(element: Element) -> str:
    fill = element.get("fill-method", "rank")
    if fill not in FILLS:
        raise element.fault(f"fill-method {fill!r}: expected one of {', '.join(FILLS)}")
    return fill


def _read_batch(element: Element, descriptor: Descriptor) -> Batch:
    walltime = element.get("walltime", "0:30:00")
    if not re.fullmatch(r"[0-9]+:[0-5][0-9]:[0-5][0-9]", walltime):
        raise element.fault(f"walltime {walltime!r}: expected hours:minutes:seconds")
    tests = tuple(_read_test(e, descriptor) for e in element.all("test"))
    if not tests:
        raise element.fault("no <test> in it")
    return Batch(
        name=word(element.need("name"), f"{element.file}: line {element.line}: batch name"),
        cores=_count(element, "cores", 4),
        walltime=walltime,
        tests=tests,
    )


def _read_test(element: Element, descriptor: Descriptor) -> Test:
    if element.get("type", "write") != "write":
        raise element.fault(f"type {element.get('type')!r}: expected write")
    group = element.need("group")
    if group not in [g.name for g in descriptor.groups]:
        raise element.fault(f"there is no group {group!r} in {descriptor.file}")
    return Test(
        group=group,
        method=check_method(element.need("method"), element),
        method_parameters=element.get("method_params"),
        steps=_count(element, "steps", 1),
        iterations=_count(element, "iterations", 1),
        tags=element.get("tags"),
        keep=element.get("rm", "pre") in ("pre", "none"),
    )


def _count(element: Element, key: str, default: int) -> int:
    text = element.get(key, str(default))
    if not is_whole(text) or int(text) < 1:
        raise element.fault(f"{key} {text!r}: expected a whole number of at least 1")
    return int(text)


def text_of(scalar: Variable, parameters: GroupParameters) -> str:
    """The text of a scalar of type string."""
    text = parameters.scalars[scalar.name]
    if not text or not text.isprintable():
        raise parameters.fault(scalar.name, f"{text!r}: expected a text of one line")
    return text


def numbers_of(scalar: Variable, parameters: GroupParameters) -> list[float]:
    """The parts of a scalar that is no integer: one, or the real and the imaginary one, which is
    0 where it is not stated."""
    text = parameters.scalars[scalar.name]
    words = text.strip().removeprefix("(").removesuffix(")").split(",")
    try:
        parts = [float(word) for word in words]
    except ValueError:
        parts = []
    if not 1 <= len(parts) <= scalar.type.parts or not all(map(math.isfinite, parts)):
        pair = " or two in parentheses, as (1,2)" if scalar.type.parts > 1 else ""
        raise parameters.fault(scalar.name, f"{text!r}: expected a number{pair}")
    return parts + [0.0] * (scalar.type.parts - len(parts))


def parsed(group: Group, parameters: GroupParameters) -> dict[str, Expression]:
    """The integer scalars' values as expressions, each after those that it needs."""
    integers = [s.name for s in group.scalars if s.type.integer]
    by_name: dict[str, Expression] = {}
    for name in integers:
        try:
            by_name[name] = expressions.parse(parameters.scalars[name])
        except ValueError as error:
            raise parameters.fault(name, str(error)) from None
        for needed in by_name[name].names:
            if needed not in integers:
                raise parameters.fault(
                    name, f"{by_name[name].text!r}: {needed!r} is no integer scalar of the group"
                )
    ordered: dict[str, Expression] = {}
    while len(ordered) < len(by_name):
        ready = [n for n in by_name if n not in ordered and set(by_name[n].names) <= set(ordered)]
        if not ready:
            stuck = next(n for n in by_name if n not in ordered)
            raise parameters.fault(stuck, f"{by_name[stuck].text!r}: the value depends on itself")
        ordered |= {name: by_name[name] for name in ready}
    return ordered
