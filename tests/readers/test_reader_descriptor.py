"""Descriptors of real logs are valid, the same each time, and say where numbers come from."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.readers.logs import ALL, TRACES
from tests.support.keys import to_keys
from understudy.contracts import workload as contract
from understudy.contracts.workload import Workload, numbers, provenance_of, structures
from understudy.readers import darshan

GOLDEN = Path(__file__).parent / "golden"
WRITE_GOLDEN = "UNDERSTUDY_WRITE_GOLDEN"
COUNTERS = r"(POSIX|STDIO|MPIIO|H5D|H5F)_\w+|nprocs|job record"


@pytest.fixture(params=ALL, ids=lambda p: p.stem)
def described(request: pytest.FixtureRequest) -> Workload:
    return darshan.read(request.param, partial=True)


def test_every_number_has_its_origin(described: Workload) -> None:
    pointers = [*numbers(described), *structures(described)]
    assert len(pointers) > 8
    for pointer in pointers:
        assert provenance_of(described, pointer) is not None, pointer


def test_a_number_without_origin_is_seen(described: Workload) -> None:
    bare = replace(
        described, provenance=tuple(p for p in described.provenance if "/dumps" not in p.path)
    )
    missing = {re.sub(r"\d+", "*", p) for p in numbers(bare) if provenance_of(bare, p) is None}
    assert "/streams/*/dumps/*/time_s" in missing
    assert "/ranks" not in missing


def test_origins_say_a_counter_an_equation_or_a_reason(described: Workload) -> None:
    for i, stream in enumerate(described.streams):
        if not stream.bytes:
            continue
        at = f"/streams/{i}"
        time = provenance_of(described, f"{at}/dumps/0/time_s")
        size = provenance_of(described, f"{at}/dumps/0/variables/0/shape/0")
        duration = provenance_of(described, f"{at}/dumps/0/duration_s")
        transfer = provenance_of(described, f"{at}/transfer_bytes")
        assert time and size and duration and transfer
        assert all(
            re.search(COUNTERS, p.how)
            or p.origin == "assumed"
            or "access size" in p.how
            or "HEATMAP" in p.how
            or "DXT" in p.how
            for p in (time, size, duration, transfer)
        )
        assert duration.origin != "read", "no counter is a duration over ranks"
        assert transfer.origin == "derived"
        if stream.layout == "flood":
            assert {time.origin, size.origin} == {"derived"}
        elif stream.last is not None or any(d.continues for d in stream.steps):
            told = {"assumed"} if "assumed" in time.how else {"read", "derived"}
            assert {time.origin, size.origin} <= told
        elif stream.files == "update" and stream.dump_count == 1:  # kept open to be read
            assert {time.origin, size.origin} == {"read"}
        elif stream.files in ("append", "rewrite", "update"):
            assert {time.origin, size.origin} == {
                "assumed" if "assumed" in time.how else "derived"
            }
        else:
            assert time.origin == "read"
            assert size.origin == ("derived" if "corrected" in size.how else "read")


@pytest.mark.parametrize(
    ("log", "stream", "origin"),
    [
        ("lammps_growth", "visualization-0", "derived"),  # from the heatmap
        ("meep_sphere", "checkpoint-0", "read"),
        ("openfoam_dambreak_nm2", "checkpoint-0", "derived"),  # bytes booked to a closed file
        ("trap_mpiio_int32_overflow", "output-0", "derived"),
    ],
)
def test_origin_of_sizes(log: str, stream: str, origin: str) -> None:
    workload = darshan.read(TRACES / f"{log}.darshan")
    index = [s.name for s in workload.streams].index(stream)
    found = provenance_of(workload, f"/streams/{index}/dumps/0/variables/0/shape/0")
    assert found is not None and found.origin == origin, found


def test_it_is_valid_and_survives_a_round_trip(described: Workload) -> None:
    text = to_keys(described)
    again = contract.parse(text, "described")
    assert again.streams == described.streams
    assert to_keys(again) == text


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.stem)
def test_the_same_log_gives_the_same_text(path: Path) -> None:
    first, second = (to_keys(darshan.read(path, partial=True)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("name", ["mphys_dyn", "openfoam_dambreak_nm2"])
def test_the_descriptor_is_the_golden_one(name: str) -> None:
    """Set UNDERSTUDY_WRITE_GOLDEN=1 to write the files anew, and look at the difference."""
    golden = GOLDEN / f"{name}.json"
    text = darshan.read(TRACES / f"{name}.darshan").to_text()
    if os.environ.get(WRITE_GOLDEN):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()
