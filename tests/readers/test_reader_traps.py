"""Known traps of Darshan's records, by real logs; `cases/traps.py` has others."""

from pathlib import Path

import numpy as np
import pytest

from tests.readers.cases.layers import dataset
from tests.readers.logs import PARTIAL, TRACES
from tests.readers.synthetic import Run, only, sizes
from tests.support.logs import recompress
from tests.support.said import raises, said
from understudy.contracts.workload import Workload, provenance_of
from understudy.darshanlog import open_log
from understudy.errors import UnderstudyError
from understudy.observations.observed_logs import observe
from understudy.readers import darshan


def notes(workload: Workload) -> str:
    return "\n".join(workload.source.notes)


def test_fill_of_hdf5_doubles_the_bytes_of_posix() -> None:
    """Meep: HDF5 fills before the data; the application's bytes are those of H5D."""
    path = TRACES / "meep_sphere.darshan"
    with open_log(path) as log:
        below = sum(int(b["POSIX_BYTES_WRITTEN"].sum()) for b in log.records("POSIX"))
        above = sum(int(b["H5D_BYTES_WRITTEN"].sum()) for b in log.records("H5D"))
    workload = darshan.read(path)
    assert sum(s.bytes for s in workload.streams if s.operation == "write") == above
    assert below > 1.1 * above


@pytest.mark.parametrize(("below", "packed"), [(1 << 20, True), (1_900_000, False)])
def test_of_compressed_datasets_the_storage_is_observed(
    tmp_path: Path, below: int, packed: bool
) -> None:
    run = dataset(Run(), 2 << 20, below, CHUNK_SIZE_D1=64, CHUNK_SIZE_D2=128)
    log = observe(run.log(tmp_path / "a.darshan"))
    assert set(log.interfaces.direct) == ({"POSIX"} if packed else {"HDF5"})


def test_bytes_of_mpiio_overflow() -> None:
    path = TRACES / "trap_mpiio_int32_overflow.darshan"
    with open_log(path) as log:
        assert min(int(b["MPIIO_BYTES_WRITTEN"].min()) for b in log.records("MPI-IO")) < 0
    workload = darshan.read(path)
    stream = only(workload)
    assert (stream.method, sizes(stream)) == ("mpiio", [2_400_000_000])
    assert "overflowed at 2^31" in notes(workload)
    entry = provenance_of(workload, "/streams/0/dumps/0/variables/0/shape/0")
    assert entry is not None and entry.origin == "derived"


def test_partial_modules_are_refused_and_described_on_demand() -> None:
    with raises(UnderstudyError, "module-posix-incomplete-darshan"):
        darshan.read(PARTIAL)
    workload = darshan.read(PARTIAL, partial=True)
    said("module-posix-incomplete", notes(workload))
    stream = only(workload, operation="write")
    with open_log(PARTIAL) as log:
        records = np.concatenate(list(log.records("POSIX")))
    assert stream.bytes <= records["POSIX_BYTES_WRITTEN"].clip(min=0).sum()
    assert stream.layout == "flood"


def test_a_crash_leaves_no_end_time() -> None:
    workload = darshan.read(TRACES / "trap_crash_merged.darshan")
    assert workload.runtime_s is None
    said("log-has-no-end", notes(workload))


@pytest.mark.parametrize("name", ["lammps_growth", "mphys_dyn", "openfoam_dambreak_nn"])
def test_archived_logs_are_described_alike(name: str, tmp_path: Path) -> None:
    plain = TRACES / f"{name}.darshan"
    for compression in ("bzip2", "none"):
        archived = recompress(plain, tmp_path / f"{compression}.darshan", compression)
        assert darshan.read(archived, name="x") == darshan.read(plain, name="x")


def test_quantum_espresso_updates_in_place() -> None:
    """A molecular-dynamics run: 26.4 MB written into files of 5.2 MB; the wave functions, 1.4 MB
    on two ranks, are updated 14 times."""
    workload = darshan.read(TRACES / "qe_si_md_dxt.darshan", keep_names=True)
    written = [s for s in workload.streams if s.operation == "write"]
    assert round(sum(s.bytes for s in written) / 1e6, 1) == 26.4
    streams = {s.label.rpartition("/")[2]: s for s in reversed(written)}
    waves, density, mixing = (streams[n] for n in ("si.wfc*", "charge-density.dat", "si.mix*"))
    assert (waves.files, waves.closes) == ("update", True)
    assert (waves.layout, sizes(waves)) == ("file-per-process", [1_420_288] * 14)
    assert (density.files, sizes(density)) == ("rewrite", [308_656] * 5)
    assert (mixing.files, len(mixing.steps), mixing.bytes) == ("new", 5, 3_173_472)
    assert [d.continues for d in mixing.steps] == [False, True, True, True, True]
    alternating = next(s for s in workload.streams if s.last == mixing.name)
    assert (len(alternating.steps), alternating.bytes) == (4, 3_526_080)
