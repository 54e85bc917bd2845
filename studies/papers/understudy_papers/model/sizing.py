"""The size of a file: Equation 1 of the M-Phys study, fitted to a scaling study, and inverted.

    F = Pr (PS (alpha Vars + beta) + gamma Vars + delta) + psi Vars + eta

F is the bytes of a file, Pr the ranks, PS the part size in bytes (8 per node of a part's mesh),
Vars the variables of a part. docs/equations.md says what the constants mean.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np

from understudy.contracts.measurement import Played
from understudy.contracts.workload import (
    Dump,
    Pattern,
    Provenance,
    Source,
    Step,
    Workload,
    streams_of,
)
from understudy.errors import UnderstudyError
from understudy.files import write_text
from understudy.launch import with_settings
from understudy.paths import program
from understudy_papers.model import composition
from understudy_papers.model.composition import Field, Kind, Mesh

METHOD = "hdf5"
TRANSFER_BYTES = 16 << 20
PLAYER = "understudy-replay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """The six constants: alpha and beta without unit, the others bytes."""

    alpha: float
    beta: float
    gamma: float
    delta: float
    psi: float
    eta: float

    def file_bytes(self, ranks: int, part_bytes: float, variables: int) -> float:
        """Equation 1."""
        rank_bytes = part_bytes * (self.alpha * variables + self.beta)
        rank_bytes += self.gamma * variables + self.delta
        return ranks * rank_bytes + self.psi * variables + self.eta

    def part_bytes(self, ranks: int, file_bytes: float, variables: int) -> float:
        """Equation 1 solved for the part size."""
        rank_bytes = (file_bytes - self.psi * variables - self.eta) / ranks
        slope = self.alpha * variables + self.beta
        size = (rank_bytes - self.gamma * variables - self.delta) / slope if slope > 0 else 0.0
        if size <= 0:
            raise UnderstudyError(
                f"a file of {file_bytes:.0f} B by {ranks} ranks with {variables} variables: "
                "expected more bytes than these constants give for the container alone"
            )
        return size


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One file of a scaling study."""

    ranks: int
    part_bytes: int
    variables: int
    file_bytes: int

    def __post_init__(self) -> None:
        if min(self.ranks, self.part_bytes, self.variables, self.file_bytes) < 1:
            raise ValueError("ranks, part_bytes, variables and file_bytes: expected at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Relative errors without sign of the predictions for some samples (0.01 is 1 %)."""

    samples: int
    mean: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Constants, what they leave of the samples fitted, and of those with more ranks, held out."""

    constants: Constants
    residuals: Errors
    held_out_ranks: tuple[int, ...]
    held_out: Errors | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizing:
    """A calibration: the study's files and the fits.

    `file` predicts bytes of a file from the variables of a part. `container` predicts the bytes
    beyond the payload, and its Vars are all datasets of the file, the mesh's too.
    """

    schema: Literal["understudy/sizing/1"]
    method: str
    libraries: tuple[str, ...]
    mesh: Kind
    file: Fit
    container: Fit
    samples: tuple[Sample, ...]

    def to_text(self) -> str:
        """The calibration as JSON text, one line per sample."""
        row = asdict(self)
        samples = ",\n    ".join(json.dumps(sample) for sample in row.pop("samples"))
        return json.dumps(row, indent=2)[:-2] + f',\n  "samples": [\n    {samples}\n  ]\n}}\n'


def errors_of(constants: Constants, samples: Sequence[Sample]) -> Errors:
    """How far the predictions are off, relative to the bytes of each file."""
    off = [
        abs(constants.file_bytes(s.ranks, s.part_bytes, s.variables) - s.file_bytes) / s.file_bytes
        for s in samples
    ]
    return Errors(samples=len(off), mean=sum(off) / len(off), max=max(off))


def fit(samples: Sequence[Sample], held_out_ranks: Iterable[int] = ()) -> Fit:
    """Least squares of the relative errors, over the samples whose ranks are not held out."""
    out = tuple(sorted(set(held_out_ranks)))
    kept = [s for s in samples if s.ranks not in out]
    held = [s for s in samples if s.ranks in out]
    terms = np.array([_terms(s) for s in kept], dtype=float).reshape(len(kept), 6)
    scale = np.abs(terms).max(axis=0, initial=0.0)
    solution, _, rank, _ = np.linalg.lstsq(terms / scale, np.ones(len(kept)), rcond=None)
    if rank < 6:
        raise UnderstudyError(_too_few(kept))
    alpha, beta, gamma, delta, psi, eta = map(float, solution / scale)
    constants = Constants(alpha=alpha, beta=beta, gamma=gamma, delta=delta, psi=psi, eta=eta)
    return Fit(
        constants=constants,
        residuals=errors_of(constants, kept),
        held_out_ranks=out,
        held_out=errors_of(constants, held) if held else None,
    )


def _terms(s: Sample) -> list[float]:
    """The factors of the six constants, relative to the bytes of the file."""
    rank_terms = (s.part_bytes * s.variables, s.part_bytes, s.variables, 1)
    terms = (*(s.ranks * term for term in rank_terms), s.variables, 1)
    return [term / s.file_bytes for term in terms]


def _too_few(samples: Sequence[Sample]) -> str:
    varied = {
        "ranks": {s.ranks for s in samples},
        "part_bytes": {s.part_bytes for s in samples},
        "variables": {s.variables for s in samples},
    }
    counts = ", ".join(f"{len(values)} of {name}" for name, values in varied.items())
    return (
        f"{len(samples)} samples with different values {counts}: expected two or more of each, "
        "in all combinations, to fit the six constants of Equation 1"
    )


def container_bytes(sizing: Sizing, ranks: int, dump: Step) -> float:
    """Bytes that the container adds to a dump whose ranks share one new file."""
    datasets = sum(v.count for v in dump.variables)
    part_bytes = max(v.bytes / v.count for v in dump.variables if v.type == "f64") / ranks
    return sizing.container.constants.file_bytes(ranks, part_bytes, datasets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A scaling study: a file for each of `ranks`, `part_bytes` and `variables`."""

    mesh: Kind
    ranks: tuple[int, ...]
    held_out_ranks: tuple[int, ...]
    part_bytes: tuple[int, ...]
    variables: tuple[int, ...]

    def workload(self, ranks: int) -> Workload:
        """One file for each part size and number of variables, by this number of ranks."""
        dumps = tuple(
            Dump(time_s=0.0, variables=composition.variables(mesh, fields, ranks, "mesh"))
            for mesh, fields in self._parts()
        )
        stream = Pattern(
            name="file",
            role="output",
            operation="write",
            files="new",
            layout="shared",
            method=METHOD,
            transfer_bytes=TRANSFER_BYTES,
            collective=True,
            dumps=dumps,
        )
        how = "Chosen for a scaling study"
        return Workload(
            name="calibration",
            description="Files of a scaling study.",
            ranks=ranks,
            streams=streams_of((stream,), ranks),
            source=Source(format="simulation", reader="understudy calibrate"),
            provenance=tuple(
                Provenance(path=path, origin="assumed", how=how) for path in ("/ranks", "/streams")
            ),
        )

    def _parts(self) -> Iterator[tuple[Mesh, tuple[Field, ...]]]:
        for size, count in product(self.part_bytes, self.variables):
            yield composition.square_mesh(self.mesh, size), composition.macsio_fields(count)

    def samples(self, played: Played) -> Iterator[tuple[Sample, Sample]]:
        """The file as it is, and what its container adds to the payload (Vars = datasets)."""
        dumps = played.repetitions[0].streams[0].dumps
        described = played.workload.streams[0].steps
        for (mesh, fields), done, dump in zip(self._parts(), dumps, described, strict=True):
            if done.file_bytes is None:
                raise UnderstudyError(f"the method {METHOD} did not report the bytes of its files")
            ranks, part_bytes = played.workload.ranks, 8 * mesh.nodes
            yield (
                Sample(
                    ranks=ranks,
                    part_bytes=part_bytes,
                    variables=sum(f.count for f in fields),
                    file_bytes=done.file_bytes,
                ),
                Sample(
                    ranks=ranks,
                    part_bytes=part_bytes,
                    variables=sum(v.count for v in dump.variables),
                    file_bytes=done.file_bytes - done.bytes,
                ),
            )


def calibrate(
    study: Study,
    directory: Path | None,
    tick: Callable[[str], None],
    read: Callable[[Path], Played],
) -> Sizing:
    """Run the study with the player and fit Equation 1; `tick` is called with each step, `read`
    reads a measurement of the player."""
    player, mpirun = program(PLAYER), _program("mpirun", "load or install an MPI")
    whole: list[Sample] = []
    beyond: list[Sample] = []
    libraries: tuple[str, ...] = ()
    for ranks in sorted({*study.ranks, *study.held_out_ranks}):
        workload = study.workload(ranks)
        tick(f"{ranks} ranks write {len(workload.streams[0].steps)} files, {workload.bytes} B")
        played = _play(
            workload, with_settings([mpirun, "-n", str(ranks), player]), directory, read
        )
        libraries = (played.environment.mpi, *map(str, played.environment.libraries.values()))
        for file, container in study.samples(played):
            whole.append(file)
            beyond.append(container)
    return Sizing(
        schema="understudy/sizing/1",
        method=METHOD,
        libraries=libraries,
        mesh=study.mesh,
        file=fit(whole, study.held_out_ranks),
        container=fit(beyond, study.held_out_ranks),
        samples=tuple(whole),
    )


def _program(name: str, remedy: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise UnderstudyError(f"{name}: not found on PATH; {remedy}")
    return path


def _play(
    workload: Workload,
    command: Sequence[str],
    directory: Path | None,
    read: Callable[[Path], Played],
) -> Played:
    """One run of the player in a fresh directory that is removed afterwards."""
    try:
        temporary = tempfile.TemporaryDirectory(prefix="understudy-calibrate-", dir=directory)
    except OSError as error:
        raise UnderstudyError(f"{directory}: cannot be written: {error.strerror}") from None
    with temporary as name:
        folder = Path(name)
        write_text(folder / "workload.json", workload.to_text())
        done = subprocess.run(
            [
                *command,
                "-w",
                folder / "workload.json",
                "-o",
                folder / "files",
                "-O",
                folder / "result.json",
                "--time-scale",
                "0",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise UnderstudyError(f"the player failed: {_reason(done.stderr)}")
        return read(folder / "result.json")


def _reason(printed: str) -> str:
    """The error message of the player, or else the first line that the launcher printed."""
    lines = [line.strip() for line in printed.splitlines() if line.strip(" -*")]
    messages = [line for line in lines if line.startswith("understudy: ")]
    return (messages or lines or ["it said nothing"])[0].removeprefix("understudy: ")
