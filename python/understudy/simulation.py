"""From what is stated of a simulation to its workload: the room simulations/ to workloads/.

A specification holds what a paper or a person states: ranks, run time, how many dumps of how many
bytes when, on which meshes with which variables. `workload_of` composes the descriptor; its
payload is exactly the stated bytes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from understudy import composition, schedule
from understudy.composition import Field, Kind
from understudy.errors import UnderstudyError
from understudy.schedule import GrowthStep
from understudy.workload import Dump, Provenance, Source, Stream, Variable, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Evenly over the run time; a series that leaves the start free begins one interval later."""

    rule: Literal["spread"]
    dumps: int
    from_start: bool

    def __post_init__(self) -> None:
        if self.dumps < 1:
            raise ValueError(f"dumps: expected at least 1, found {self.dumps}")


@dataclass(frozen=True, slots=True, kw_only=True)
class At:
    """At these times."""

    rule: Literal["at"]
    times_s: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.times_s or any(b < a for a, b in pairwise((0.0, *self.times_s))):
            raise ValueError("times_s: expected one or more times from 0 on, in order")


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """Every dump has the same bytes."""

    rule: Literal["constant"]
    dump_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The first dump's bytes and the growth sequence (Equation 3)."""

    rule: Literal["growth"]
    first_bytes: int
    factors: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """A growth sequence of which only some sizes are stated; dumps count from 1."""

    rule: Literal["bounded"]
    first_bytes: int
    activation_dump: int
    peak_dump: int
    peak_bytes: int
    last_bytes: int

    def steps(self, dumps: int) -> tuple[GrowthStep, ...]:
        return schedule.reconstructed_growth(
            dumps=dumps, first_bytes=self.first_bytes, activation_dump=self.activation_dump,
            peak_dump=self.peak_dump, peak_bytes=self.peak_bytes, last_bytes=self.last_bytes,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """All dumps together (Equations 2 to 4); they grow as the series `follows`, or not (null)."""

    rule: Literal["total"]
    total_bytes: int
    follows: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """Variables that are dumped from dump `from_dump` (counted from 1) on."""

    name: str
    from_dump: int
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshSpec:
    """A mesh, its bytes per dump, and the packages whose variables live on it."""

    name: str
    kind: Kind
    dimensions: int
    parts_per_rank: float
    sizes: Constant | Growth | Bounded | Total
    packages: tuple[Package, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """A stream of the workload; the keys are those of its schema."""

    name: str
    role: Literal["checkpoint", "visualization", "output"]
    files: Literal["new", "append"]
    layout: Literal["shared", "file-per-process", "grouped"]
    groups: int | None
    method: str
    transfer_bytes: int
    collective: bool
    sync: bool
    times: Spread | At
    meshes: tuple[MeshSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """What is stated of a simulation, and where it is stated."""

    schema: Literal["understudy/simulation/1"]
    name: str
    description: str
    ranks: int
    runtime_s: float
    series: tuple[Series, ...]
    notes: tuple[str, ...]
    provenance: tuple[Provenance, ...]

    def __post_init__(self) -> None:
        if self.ranks < 1:
            raise ValueError(f"ranks: expected at least 1, found {self.ranks}")
        if self.runtime_s <= 0:
            raise ValueError(f"runtime_s: expected more than 0, found {self.runtime_s}")


def workload_of(simulation: Simulation, where: str) -> Workload:
    """The descriptor: every dump with exactly the stated bytes; `where` begins messages."""
    streams: list[Stream] = []
    provenance: list[Provenance] = []
    for index, series in enumerate(simulation.series):
        at = f"{where}: series[{index}]"
        streams.append(_stream(simulation, series, streams, at))
        provenance.extend(_growth_provenance(series, len(streams[-1].dumps), index))
    return Workload(
        name=simulation.name,
        description=simulation.description,
        ranks=simulation.ranks,
        runtime_s=simulation.runtime_s,
        streams=tuple(streams),
        source=Source(
            format="simulation", version="1", reader="understudy compose", notes=simulation.notes
        ),
        provenance=(*provenance, *simulation.provenance),
    )


def times_of(series: Series, runtime_s: float) -> tuple[float, ...]:
    """Absolute times of the dumps, seconds."""
    if isinstance(series.times, At):
        return series.times.times_s
    return schedule.spread_s(series.times.dumps, runtime_s, from_start=series.times.from_start)


def _stream(
    simulation: Simulation, series: Series, earlier: Sequence[Stream], where: str
) -> Stream:
    times = times_of(series, simulation.runtime_s)
    composed: list[list[Variable]] = [[] for _ in times]
    for index, mesh in enumerate(series.meshes):
        try:
            parts = composition.parts_of(simulation.ranks, mesh.parts_per_rank)
            for dump, size in enumerate(_sizes(mesh, times, earlier)):
                composed[dump].extend(_mesh_dump(mesh, dump, size, parts))
        except UnderstudyError as error:
            raise UnderstudyError(f"{where}.meshes[{index}]: {error}") from None
    dumps = (
        Dump(time_s=time_s, variables=tuple(variables))
        for time_s, variables in zip(times, composed, strict=True)
    )
    return Stream(
        name=series.name, role=series.role, operation="write", files=series.files,
        layout=series.layout, groups=series.groups, method=series.method,
        transfer_bytes=series.transfer_bytes, collective=series.collective, sync=series.sync,
        dumps=tuple(dumps),
    )  # fmt: skip


def _sizes(mesh: MeshSpec, times: Sequence[float], earlier: Sequence[Stream]) -> tuple[int, ...]:
    """Bytes of the mesh in each dump."""
    sizes = mesh.sizes
    if isinstance(sizes, Constant):
        return (sizes.dump_bytes,) * len(times)
    if isinstance(sizes, Growth):
        if len(sizes.factors) != len(times) - 1:
            raise UnderstudyError(
                f"sizes: {len(sizes.factors)} growth factors, expected one fewer than the "
                f"{len(times)} dumps"
            )
        return schedule.grown(sizes.first_bytes, sizes.factors)
    if isinstance(sizes, Bounded):
        steps = sizes.steps(len(times))
        return schedule.grown(sizes.first_bytes, (s.factor for s in steps))
    return schedule.state_bytes(sizes.total_bytes, _factors(sizes, times, earlier))


def _factors(sizes: Total, times: Sequence[float], earlier: Sequence[Stream]) -> tuple[float, ...]:
    if sizes.follows is None:
        return (1.0,) * (len(times) - 1)
    for stream in earlier:
        if stream.name == sizes.follows:
            changes = [(d.time_s, d.bytes) for d in stream.dumps]
            return schedule.followed_factors(times, changes)
    known = ", ".join(s.name for s in earlier) or "none"
    raise UnderstudyError(
        f"sizes: follows {sizes.follows!r}, expected a series that stands before it ({known})"
    )


def _mesh_dump(mesh: MeshSpec, dump: int, size: int, parts: int) -> tuple[Variable, ...]:
    active = [p for p in mesh.packages if p.from_dump <= dump + 1]
    fields = [field for package in active for field in package.fields]
    try:
        return composition.compose(
            size, name=mesh.name, kind=mesh.kind, dimensions=mesh.dimensions, fields=fields,
            parts=parts,
        )  # fmt: skip
    except UnderstudyError as error:
        raise UnderstudyError(f"dump {dump + 1} of {size} B: {error}") from None


def _growth_provenance(series: Series, dumps: int, stream: int) -> Iterator[Provenance]:
    """One entry per reconstructed factor, at the dump that it leads to."""
    for mesh in series.meshes:
        if isinstance(mesh.sizes, Bounded):
            for dump, step in enumerate(mesh.sizes.steps(dumps), start=1):
                yield Provenance(
                    path=f"/streams/{stream}/dumps/{dump}/variables",
                    origin="reconstructed",
                    how=f"F_{dump - 1} = {step.factor:.6f}: {step.constraint}",
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Errors of a replica against stated bytes, as Table II of the M-Phys study has them.

    All are fractions (0.01 is 1 %) without sign. `state_error` is `total_error` divided by the
    number of states: that is how the table's last row follows from the one above it.
    """

    checkpoint_mean_error: float
    checkpoint_max_error: float
    total_error: float
    state_error: float


def accuracy(
    stated_checkpoints: Sequence[int], stated_total: int,
    checkpoints: Sequence[int], states: Sequence[int],
) -> Accuracy:  # fmt: skip
    """Compare bytes made of all checkpoints and all states with those stated."""
    if not stated_checkpoints or not states or len(stated_checkpoints) != len(checkpoints):
        raise UnderstudyError(
            f"{len(checkpoints)} checkpoints against {len(stated_checkpoints)} stated, "
            f"{len(states)} states: expected as many, and one or more of each"
        )
    errors = [
        abs(made - said) / said for made, said in zip(checkpoints, stated_checkpoints, strict=True)
    ]
    total_error = abs(sum(states) - stated_total) / stated_total
    return Accuracy(
        checkpoint_mean_error=sum(errors) / len(errors),
        checkpoint_max_error=max(errors),
        total_error=total_error,
        state_error=total_error / len(states),
    )
