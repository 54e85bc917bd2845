"""The contents of a dump: a mesh with variables on it, in parts, as in MACSio's data model.

A part is a block of a mesh with values at its nodes (corners) and zones (cells). Bytes of a part,
with n nodes and z zones in d dimensions:

    fields         8 n or 8 z (f64), 4 n or 4 z (f32, i32), each times its count
    rectilinear    8 (n_1 + … + n_d)          coordinates along each axis
    curvilinear    8 d n                      coordinates of each node
    unstructured   8 d n + 4 · 2^d z          coordinates, and the nodes of each zone

`compose` makes dumps of exactly the bytes asked for; `macsio_mesh` and `macsio_fields` say what
MACSio itself would make of a part size, whose bytes are not exact (docs/equations.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import isqrt, prod
from typing import Literal, get_args

from understudy.contracts.workload import TYPE_BYTES, Variable
from understudy.errors import UnderstudyError

Kind = Literal["rectilinear", "curvilinear", "unstructured"]
Centring = Literal["node", "zone"]
Type = Literal["f64", "f32", "i32"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MAX_SIDES = {1: 0, 2: 64, 3: 16}  # tried per dimension, so that the search stays short


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """`count` like variables of one type at the nodes or in the zones of a mesh."""

    name: str
    centring: Centring
    type: Type
    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError(f"count: expected at least 1, found {self.count}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Array:
    """`count` like arrays of one part."""

    name: str
    type: str
    shape: tuple[int, ...]
    count: int = 1

    @property
    def bytes(self) -> int:
        return self.count * prod(self.shape) * TYPE_BYTES[self.type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mesh:
    """The mesh of one part; `shape` counts nodes per dimension, slowest first."""

    kind: Kind
    shape: tuple[int, ...]

    @property
    def zone_shape(self) -> tuple[int, ...]:
        return tuple(n - 1 for n in self.shape)

    @property
    def nodes(self) -> int:
        return prod(self.shape)

    @property
    def zones(self) -> int:
        return prod(self.zone_shape)

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The variables that describe the mesh itself."""
        d = len(self.shape)
        if self.kind == "rectilinear":
            axes = zip("zyx"[-d:], self.shape, strict=True)
            return tuple(Array(name=axis, type="f64", shape=(n,)) for axis, n in axes)
        if self.kind == "curvilinear":
            return (Array(name="coordinates", type="f64", shape=self.shape, count=d),)
        return (
            Array(name="coordinates", type="f64", shape=(self.nodes,), count=d),
            Array(name="connectivity", type="i32", shape=(self.zones, 2**d)),
        )

    def array(self, field: Field) -> Array:
        """The field on this mesh; unstructured meshes number their nodes and zones."""
        shape = self.shape if field.centring == "node" else self.zone_shape
        if self.kind == "unstructured":
            shape = (prod(shape),)
        return Array(name=field.name, type=field.type, shape=shape, count=field.count)

    def bytes(self, fields: Sequence[Field]) -> int:
        """Bytes of a part: the mesh and the fields on it."""
        arrays = (*self.arrays, *map(self.array, fields))
        return sum(array.bytes for array in arrays)


def fitted_mesh(kind: Kind, dimensions: int, fields: Sequence[Field], budget: int) -> Mesh:
    """The mesh whose part comes closest to `budget` bytes from below and is no long strip.

    The bytes are linear in the fastest dimension, which is solved for; the others are tried from
    the side of the largest cube that fits down to four fifths of it.
    """
    if dimensions not in MAX_SIDES:
        raise UnderstudyError(f"{dimensions} dimensions: expected 1, 2 or 3")
    minimum = Mesh(kind=kind, shape=(2,) * dimensions).bytes(fields)
    if budget < minimum:
        raise UnderstudyError(
            f"{budget} B a part: expected at least the {minimum} B of one zone of a "
            f"{dimensions}-D {kind} mesh with {sum(f.count for f in fields)} variables"
        )
    side = _largest_side(kind, dimensions, fields, budget)
    window = min(side // 5, MAX_SIDES[dimensions])
    sides = range(side, max(1, side - window - 1), -1)
    meshes = (
        Mesh(kind=kind, shape=(*others, _solved(kind, others, fields, budget)))
        for others in product(sides, repeat=dimensions - 1)
    )
    return max(meshes, key=lambda mesh: mesh.bytes(fields))


def _largest_side(kind: Kind, dimensions: int, fields: Sequence[Field], budget: int) -> int:
    low, high = 2, 4
    while Mesh(kind=kind, shape=(high,) * dimensions).bytes(fields) <= budget:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        fits = Mesh(kind=kind, shape=(middle,) * dimensions).bytes(fields) <= budget
        low, high = (middle, high) if fits else (low, middle)
    return low


def _solved(kind: Kind, others: tuple[int, ...], fields: Sequence[Field], budget: int) -> int:
    """Maximum nodes along the fastest dimension within the budget; bytes are linear in it."""
    two = Mesh(kind=kind, shape=(*others, 2)).bytes(fields)
    row = Mesh(kind=kind, shape=(*others, 3)).bytes(fields) - two
    return 2 + (budget - two) // row


def parts_of(ranks: int, parts_per_rank: float) -> int:
    """Parts of all ranks; a fraction means that the first ranks hold one part more."""
    parts = round(ranks * parts_per_rank)
    if parts < 1:
        raise UnderstudyError(f"{parts_per_rank} parts per rank on {ranks} ranks: expected a part")
    return parts


def variables(mesh: Mesh, fields: Sequence[Field], parts: int, name: str) -> tuple[Variable, ...]:
    """All parts of a dump; what describes the mesh is called `<name>_…`, fields keep their names.

    Shapes are [parts, …], cut evenly: each rank holds whole parts.
    """
    mesh_arrays = (replace(array, name=f"{name}_{array.name}") for array in mesh.arrays)
    return tuple(
        Variable(name=a.name, type=a.type, shape=(parts, *a.shape), count=a.count)
        for a in (*mesh_arrays, *map(mesh.array, fields))
    )


def compose(
    dump_bytes: int,
    *,
    name: str,
    kind: Kind,
    dimensions: int,
    fields: Sequence[Field],
    parts: int,
) -> tuple[Variable, ...]:
    """Variables of exactly `dump_bytes`: the mesh that fits best, and what is left as bytes."""
    mesh = fitted_mesh(kind, dimensions, fields, dump_bytes // parts)
    composed = variables(mesh, fields, parts, name)
    rest = dump_bytes - sum(v.bytes for v in composed)
    if rest:
        # In an appended file another mesh has datasets of its own; so does what it leaves.
        composed += (Variable(name=f"{name}_rest_{mesh.nodes}", type="byte", shape=(rest,)),)
    return composed


def macsio_fields(count: int) -> tuple[Field, ...]:
    """The kinds that MACSio gives its variables, in a cycle of eight: zone f64 (3), node f64 (4),
    zone i32 (1)."""
    if count < 1:
        raise UnderstudyError(f"{count} variables: expected at least 1")
    cycles, more = divmod(count, 8)
    counts = (3 * cycles + min(more, 3), 4 * cycles + min(max(more - 3, 0), 4), cycles)
    kinds: tuple[tuple[str, Centring, Type], ...] = (
        ("zonal", "zone", "f64"),
        ("nodal", "node", "f64"),
        ("zonal_index", "zone", "i32"),
    )
    return tuple(
        Field(name=name, centring=centring, type=type_, count=n)
        for (name, centring, type_), n in zip(kinds, counts, strict=True)
        if n
    )


def macsio_mesh(kind: Kind, part_bytes: int) -> Mesh:
    """The 2-D mesh that MACSio makes of a part size: one f64 per node, square as divisors allow.

    A number of nodes without a divisor near its root gives a strip, one that is prime a line
    without zones, whose dump loses all its zonal bytes: the irregular meshes of the paper.
    """
    nodes = part_bytes // 8
    if nodes < 1:
        raise UnderstudyError(f"part size {part_bytes} B: expected at least 8")
    short = next(n for n in range(isqrt(nodes), 0, -1) if nodes % n == 0)
    return Mesh(kind=kind, shape=(nodes // short, short))


def square_mesh(kind: Kind, part_bytes: int) -> Mesh:
    """A 2-D mesh with nearly one f64 per node in `part_bytes`, never a strip."""
    nodes = part_bytes // 8
    if nodes < 4:
        raise UnderstudyError(f"part size {part_bytes} B: expected at least 32")
    side = isqrt(nodes)
    return Mesh(kind=kind, shape=(nodes // side, side))
