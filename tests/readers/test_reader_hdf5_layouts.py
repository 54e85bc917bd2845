"""How datasets lie on storage: chunks, and what they are filled with."""

from pathlib import Path
from typing import Any

import pytest

from tests.readers.synthetic import Run
from understudy.inference.score.explanation import CONTRADICTED, LIBRARY, UNKNOWN, Explanation
from understudy.observations.observed_logs import observe

RANKS = 4
MIB = 1 << 20


def dataset(run: Run, name: str, *, size: int, below: int, **more: Any) -> None:
    """A dataset of doubles in a file of its own, what all ranks wrote to it and what POSIX did."""
    file, record = run.file(name), run.file(f"{name}:/u")
    run.add("H5F", {"id": file, "rank": -1, "H5F_OPENS": RANKS})
    counters: dict[str, Any] = {
        "OPENS": RANKS,
        "BYTES_WRITTEN": size,
        "WRITES": RANKS,
        "SIZE_WRITE_AGG_100K_1M": RANKS,
        "DATATYPE_SIZE": 8,
        "DATASPACE_NDIMS": 2,
        "DATASPACE_NPOINTS": size // 8,
        "F_WRITE_START_TIMESTAMP": 1.0,
        "F_WRITE_END_TIMESTAMP": 2.0,
    } | more
    row = {f"H5D_{key}": value for key, value in counters.items()}
    run.add("H5D", {"id": record, "file_rec_id": file, "rank": -1} | row)
    run.add(
        "POSIX",
        {"id": file, "rank": -1, "POSIX_OPENS": RANKS, "POSIX_BYTES_WRITTEN": below}
        | {"POSIX_WRITES": 8, "POSIX_MAX_BYTE_WRITTEN": size + 2047},
    )


@pytest.mark.parametrize(
    ("below", "more"),
    [
        (2 * MIB + 2048, {}),
        (4 * MIB + 2048, {}),
        (2 * MIB + 2048, {"CHUNK_SIZE_D1": 64, "CHUNK_SIZE_D2": 128}),
        (4 * MIB + 2048, {"CHUNK_SIZE_D1": 64, "CHUNK_SIZE_D2": 128}),
        (3 * MIB, {}),
        (2 * MIB + 2048, {"CHUNK_SIZE_D1": 64}),
    ],
)
def test_chunks_and_fill(tmp_path: Path, below: int, more: dict[str, int]) -> None:
    run = Run(nprocs=RANKS)
    dataset(run, "/s/a.h5", size=2 * MIB, below=below, **more)
    told: list[Explanation] = []
    run.describe(tmp_path, told=told.append)
    assert not told[0].of(CONTRADICTED)


@pytest.mark.parametrize(("below", "packed"), [(MIB, True), (1_900_000, False)])
def test_of_compressed_datasets_what_reached_the_storage_is_described(
    tmp_path: Path, below: int, packed: bool
) -> None:
    """The replica compresses nothing."""
    run = Run(nprocs=RANKS)
    dataset(run, "/s/a.h5", size=2 * MIB, below=below, CHUNK_SIZE_D1=64, CHUNK_SIZE_D2=128)
    told: list[Explanation] = []
    workload = run.describe(tmp_path, told=told.append)
    assert any("as it does where it compresses" in n for n in workload.source.notes) == packed
    assert [p.unknown for p in told[0].of(UNKNOWN)] == ([] if packed else [(LIBRARY,)])
    log = observe(run.log(tmp_path / "same.darshan"))
    assert set(log.interfaces.direct) == ({"POSIX"} if packed else {"HDF5"})


def test_a_dataset_that_grows_is_filled_as_it_is_written(tmp_path: Path) -> None:
    """H5D has the shape that it had when it was opened."""
    run = Run(nprocs=RANKS)
    more = {"DATASPACE_NPOINTS": MIB // 8, "CHUNK_SIZE_D1": 1024, "CHUNK_SIZE_D2": 128}
    dataset(run, "/s/a.h5", size=8 * MIB, below=16 * MIB + 4096, **more)
    run.describe(tmp_path)


def test_files_of_a_stream_that_differ_have_no_common_layout(tmp_path: Path) -> None:
    run = Run(nprocs=RANKS)
    chunks = {"CHUNK_SIZE_D1": 64, "CHUNK_SIZE_D2": 128}
    for step in range(3):
        at = {"F_WRITE_START_TIMESTAMP": 20.0 * step + 1, "F_WRITE_END_TIMESTAMP": 20.0 * step + 2}
        more = at | (chunks if step else {})
        dataset(run, f"/s/a{step}.h5", size=2 * MIB, below=2 * MIB + 2048, **more)
    run.describe(tmp_path)
