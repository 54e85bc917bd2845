"""From the specification of a simulation (simulations/) to its workload (workloads/).

A specification holds what a paper or a person states: ranks, run time, how many dumps of how many
bytes when, on which meshes with which variables. `workload_of` composes the descriptor; its
payload is exactly the stated bytes. `published_sizes` compares what a replica left on storage.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Literal

from understudy.contracts import strict
from understudy.contracts.workload import (
    Dump,
    Pattern,
    Provenance,
    Source,
    Variable,
    Workload,
    streams_of,
)
from understudy.errors import UnderstudyError
from understudy.model import scaling
from understudy.paths import files
from understudy_papers.model import composition, schedule
from understudy_papers.model.composition import Field, Kind
from understudy_papers.model.schedule import GrowthStep


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
            dumps=dumps,
            first_bytes=self.first_bytes,
            activation_dump=self.activation_dump,
            peak_dump=self.peak_dump,
            peak_bytes=self.peak_bytes,
            last_bytes=self.last_bytes,
        )


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
class Accuracy:
    """Errors of a replica against stated bytes, as Table II of the M-Phys study has them.

    All are fractions (0.01 is 1 %) without sign. `state_error` is `total_error` divided by the
    number of states: that is how the table's last row follows from the one above it.
    """

    checkpoint_mean_error: float
    checkpoint_max_error: float
    total_error: float
    state_error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The published accuracy of a replica, and where it is published."""

    where: str
    accuracy: Accuracy


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where numbers of the workload come from; its confidence follows from the origin."""

    path: str
    origin: Literal["read", "derived", "reconstructed", "assumed"]
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """The specification of a simulation, and its origin."""

    schema: Literal["understudy/simulation/1"]
    name: str
    description: str
    ranks: int
    runtime_s: float
    series: tuple[Series, ...]
    published: Published | None
    notes: tuple[str, ...]
    provenance: tuple[Origin, ...]

    def __deepcopy__(self, _: object) -> "Simulation":
        return self  # as a workload

    def __post_init__(self) -> None:
        if self.ranks < 1:
            raise ValueError(f"ranks: expected at least 1, found {self.ranks}")
        if self.runtime_s <= 0:
            raise ValueError(f"runtime_s: expected more than 0, found {self.runtime_s}")


def names() -> list[str]:
    """Names of all simulations, ours and users'."""
    return list(files("simulations", ".json"))


def get(name: str) -> Simulation:
    """The simulation of that name."""
    paths = files("simulations", ".json")
    if name not in paths:
        raise UnderstudyError(f"no simulation is called {name!r}; known: {', '.join(paths)}")
    return _stated(paths[name], _changed_ns(paths[name]))


def workload_of(simulation: Simulation, where: str) -> Workload:
    """The descriptor: every dump with exactly the stated bytes; `where` begins messages."""
    streams: list[Pattern] = []
    provenance: list[Provenance] = []
    stated = stated_sizes(simulation, where)
    for index, (series, sizes) in enumerate(zip(simulation.series, stated, strict=True)):
        streams.append(_stream(simulation, series, sizes, f"{where}: series[{index}]"))
        provenance.extend(_growth_provenance(series, streams[-1].dump_count, index))
    return Workload(
        name=simulation.name,
        description=simulation.description,
        ranks=simulation.ranks,
        runtime_s=simulation.runtime_s,
        streams=streams_of(streams, simulation.ranks),
        source=Source(
            format="simulation", version="1", reader="understudy compose", notes=simulation.notes
        ),
        provenance=(
            *provenance,
            *(Provenance(path=p.path, origin=p.origin, how=p.how) for p in simulation.provenance),
        ),
    )


def played_by(workload: Workload, text: str | None = None) -> Simulation | None:
    """The simulation of which this is the workload, on its own ranks or scaled strongly; `text` is
    that of the workload, where it is known.

    None if there is none, or if the workload is not what the simulation gives today.
    """
    for path in files("simulations", ".json").values():
        stated = _stated(path, _changed_ns(path))
        if workload.name != stated.name and not workload.name.startswith(
            f"{stated.name[:80]}-strong-"
        ):
            continue
        composed, own_text = _composed(path, _changed_ns(path))
        if workload.ranks != composed.ranks or workload.name != composed.name:
            own_text = scaling.scale(composed, workload.ranks, "strong").to_text()
        if text == own_text or workload.to_text() == own_text:
            return stated
    return None


def _changed_ns(path: Path) -> int:
    """0 of a file that cannot be looked at: reading it says why."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=64)
def _stated(path: Path, _changed_ns: int) -> Simulation:
    return strict.load(Simulation, path)


@lru_cache(maxsize=64)
def _composed(path: Path, changed_ns: int) -> tuple[Workload, str]:
    """The workload of a simulation, and its text: two that are equal have equal texts."""
    workload = workload_of(_stated(path, changed_ns), path.stem)
    return workload, workload.to_text()


def times_of(series: Series, runtime_s: float) -> tuple[float, ...]:
    """Absolute times of the dumps, seconds."""
    if isinstance(series.times, At):
        return series.times.times_s
    return schedule.spread_s(series.times.dumps, runtime_s, from_start=series.times.from_start)


def stated_sizes(simulation: Simulation, where: str) -> list[list[tuple[int, ...]]]:
    """Bytes of each mesh of each series in each dump."""
    sizes: list[list[tuple[int, ...]]] = []
    changes: dict[str, list[tuple[float, int]]] = {}
    for index, series in enumerate(simulation.series):
        times = times_of(series, simulation.runtime_s)
        sizes.append([])
        for place, mesh in enumerate(series.meshes):
            try:
                sizes[-1].append(_mesh_sizes(mesh, times, changes))
            except UnderstudyError as error:
                at = f"{where}: series[{index}].meshes[{place}]"
                raise UnderstudyError(f"{at}: {error}") from None
        changes[series.name] = list(zip(times, dump_sizes(sizes[-1], len(times)), strict=True))
    return sizes


def dump_sizes(meshes: Sequence[tuple[int, ...]], dumps: int) -> list[int]:
    return [sum(of_mesh[dump] for of_mesh in meshes) for dump in range(dumps)]


def _stream(
    simulation: Simulation, series: Series, sizes: Sequence[tuple[int, ...]], where: str
) -> Pattern:
    times = times_of(series, simulation.runtime_s)
    composed: list[list[Variable]] = [[] for _ in times]
    for index, (mesh, of_mesh) in enumerate(zip(series.meshes, sizes, strict=True)):
        try:
            parts = composition.parts_of(simulation.ranks, mesh.parts_per_rank)
            for dump, size in enumerate(of_mesh):
                composed[dump].extend(_mesh_dump(mesh, dump, size, parts))
        except UnderstudyError as error:
            raise UnderstudyError(f"{where}.meshes[{index}]: {error}") from None
    dumps = (
        Dump(time_s=time_s, variables=tuple(variables))
        for time_s, variables in zip(times, composed, strict=True)
    )
    return Pattern(
        name=series.name,
        role=series.role,
        operation="write",
        files=series.files,
        layout=series.layout,
        groups=series.groups,
        method=series.method,
        transfer_bytes=series.transfer_bytes,
        collective=series.collective,
        sync=series.sync,
        dumps=tuple(dumps),
    )


Changes = Mapping[str, Sequence[tuple[float, int]]]  # of each series: time and bytes of its dumps


def _mesh_sizes(mesh: MeshSpec, times: Sequence[float], earlier: Changes) -> tuple[int, ...]:
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


def _factors(sizes: Total, times: Sequence[float], earlier: Changes) -> tuple[float, ...]:
    if sizes.follows is None:
        return (1.0,) * (len(times) - 1)
    if sizes.follows not in earlier:
        names = ", ".join(earlier) or "none"
        raise UnderstudyError(
            f"sizes: follows {sizes.follows!r}, expected an earlier series ({names})"
        )
    return schedule.followed_factors(times, earlier[sizes.follows])


def _mesh_dump(mesh: MeshSpec, dump: int, size: int, parts: int) -> tuple[Variable, ...]:
    active = [p for p in mesh.packages if p.from_dump <= dump + 1]
    fields = [field for package in active for field in package.fields]
    try:
        return composition.compose(
            size,
            name=mesh.name,
            kind=mesh.kind,
            dimensions=mesh.dimensions,
            fields=fields,
            parts=parts,
        )
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
