"""What the reader finds in real logs is what stood on disk after the runs."""

import re
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pytest

from tests.readers.logs import TRACES, truth
from tests.readers.synthetic import only, sizes
from understudy.contracts.workload import Stream, Workload
from understudy.darshanlog import open_log
from understudy.readers import darshan


@dataclass(frozen=True, kw_only=True)
class Family:
    """Files of one stream: `pattern` of their names, whose group says which dump a file is of."""

    pattern: str
    layout: str
    method: str
    groups: int | None = None
    states: int = 0  # how often a file that stays open was appended to
    short: float = 0.0  # share of the bytes that Darshan may not have seen
    header: int = 0  # bytes of each file that are written through another interface

    def dumps(self, rows: list[tuple[str, int]]) -> list[int]:
        """Bytes of each dump on disk."""
        files = [
            (m[1] if m.re.groups else "", size)
            for path, size in rows
            if (m := re.fullmatch(self.pattern, path))
        ]
        files.sort(key=lambda row: float(re.sub(r"\D*$", "", row[0]) or 0))
        return [
            sum(size - self.header for _, size in same)
            for _, same in groupby(files, lambda row: row[0])
        ]

    def labels(self, rows: list[tuple[str, int]]) -> set[str]:
        number = r"\b\d+\.\d+(?=/)|\d+"
        return {re.sub(number, "*", path) for path, _ in rows if re.fullmatch(self.pattern, path)}


MPHYS = (Family(pattern=r"rst_(\d+)\.\d+", layout="file-per-process", method="posix"),)
OPENFOAM_SETS = Family(pattern=r"sampleSets/([\d.]+)/.*", layout="shared", method="posix")
FAMILIES = {
    "lammps_growth": (
        Family(pattern=r"ckpt\.(\d+)\.mpiio", layout="shared", method="mpiio", header=905),
        Family(pattern=r"ckpt\.(\d+)\.(?:\d|base)", layout="file-per-process", method="stdio"),
        Family(pattern=r"nm\.(\d+)\.(?:\d|base)", layout="grouped", groups=2, method="stdio"),
        Family(pattern=r"viz\.lammpstrj\.mpiio", layout="shared", method="mpiio", states=13),
        # appended through STDIO, whose bytes Darshan undercounts
        Family(
            pattern=r"viz\.append\.lammpstrj",
            layout="shared",
            method="stdio",
            states=13,
            short=0.0002,
        ),
    ),
    "meep_sphere": (
        Family(pattern=r"dump_t(\d+)/\w+\.h5", layout="shared", method="hdf5"),
        Family(pattern=r"sph-e-(\d+)\.00\.h5", layout="shared", method="hdf5"),
        Family(pattern=r"sph-eps-(\d+)\.00\.h5", layout="shared", method="hdf5"),
        Family(pattern=r"sph-ez\.h5", layout="shared", method="hdf5", states=10),
    ),
    "mphys_dyn": (
        *MPHYS,
        Family(pattern=r"ckpt_(\d+)\.h5", layout="shared", method="hdf5"),
        Family(pattern=r"viz\.h5", layout="shared", method="hdf5", states=12),
    ),
    "mphys_static_hdf5": (
        *MPHYS,
        Family(pattern=r"ckpt_(\d+)\.h5", layout="shared", method="mpiio"),
        Family(pattern=r"viz\.h5", layout="shared", method="mpiio", states=12),
    ),
    "openfoam_dambreak_nn": (
        OPENFOAM_SETS,
        Family(pattern=r"(0\.\d+)/.*", layout="file-per-process", method="posix"),
    ),
    "openfoam_dambreak_nm2": (
        OPENFOAM_SETS,
        Family(pattern=r"(0\.\d+)/.*", layout="grouped", groups=2, method="posix"),
    ),
}
# Files that a log cannot hold to the byte, or that were not written in the run.
EXCEPTIONS = {
    "lammps_growth": r"log\.lammps|out_dxt\.txt",  # text that differs; standard output
    "openfoam_dambreak_nn": r"0/.*|constant/.*",  # written before the run
    "openfoam_dambreak_nm2": r"0/.*|constant/.*",
}
CASES = [(name, family) for name, families in FAMILIES.items() for family in families]


def rows_of(name: str) -> list[tuple[str, int]]:
    return truth("mphys" if name.startswith("mphys") else name)


def describe(name: str) -> Workload:
    return darshan.read(TRACES / f"{name}.darshan", keep_names=True)


def stream_of(workload: Workload, family: Family, rows: list[tuple[str, int]]) -> Stream:
    """The stream that writes the files of a family, by the name of its largest files."""
    labels = family.labels(rows)
    streams = [
        s
        for s in workload.streams
        if s.operation == "write"
        and any(s.label.endswith(f"/{label}") for label in labels)
        and (s.method == family.method or not family.header)
    ]
    assert len(streams) == 1, (labels, [s.label for s in workload.streams])
    return streams[0]


def test_every_file_on_disk_is_expected_or_a_known_exception() -> None:
    assert len(FAMILIES) == 6
    for name, families in FAMILIES.items():
        for path, _ in rows_of(name):
            fits = [f for f in families if re.fullmatch(f.pattern, path)]
            excepted = re.fullmatch(EXCEPTIONS.get(name, "(?!)"), path)
            assert len(fits) + bool(excepted) == 1, (name, path)


@pytest.mark.parametrize(
    ("name", "family"), CASES, ids=[f"{n}-{f.pattern.split('(')[0]}" for n, f in CASES]
)
def test_a_series_is_what_stood_on_disk(name: str, family: Family) -> None:
    rows = rows_of(name)
    stream = stream_of(describe(name), family, rows)
    expected = family.dumps(rows)
    assert expected
    assert (stream.layout, stream.groups) == (family.layout, family.groups)
    assert stream.method == family.method
    assert all(d.overhead_bytes is not None for d in stream.steps)
    dumps = [d.bytes + (d.overhead_bytes or 0) for d in stream.steps]
    if family.states:
        assert stream.files == "append"
        assert len(dumps) == family.states
        assert sum(expected) * (1 - family.short) <= sum(dumps) <= sum(expected)
    else:
        assert stream.files == "new"
        assert dumps == expected


@pytest.mark.parametrize("name", FAMILIES)
def test_nothing_else_of_weight_was_written(name: str) -> None:
    workload, rows = describe(name), rows_of(name)
    expected = {stream_of(workload, family, rows).name for family in FAMILIES[name]}
    others = [s for s in workload.streams if s.operation == "write" and s.name not in expected]
    # text of a few kilobytes, and the headers of the checkpoints
    assert [s.label.rpartition("/")[2] for s in others] == (
        ["log.lammps", "ckpt.*.mpiio"] if name == "lammps_growth" else []
    )
    assert sum(s.bytes for s in others) < 10_000


@pytest.mark.parametrize("name", ["mphys_dyn", "trap_newer_dxt"])
def test_dumps_are_at_the_times_of_the_datasets(name: str) -> None:
    """Payload and times are those of H5D records; the container is stated apart."""
    workload = darshan.read(TRACES / f"{name}.darshan")
    with open_log(TRACES / f"{name}.darshan") as log:
        records = np.concatenate(list(log.records("H5D")))
    records = records[records["H5D_BYTES_WRITTEN"] > 0]
    checkpoints = only(workload, method="hdf5", files="new")
    states = only(workload, method="hdf5", files="append")
    assert (len(checkpoints.steps), len(states.steps)) == (4, 12)
    assert checkpoints.bytes + states.bytes == records["H5D_BYTES_WRITTEN"].sum()
    starts = {}
    for file in np.unique(records["file_rec_id"]):
        rows = np.sort(
            records[records["file_rec_id"] == file], order="H5D_F_WRITE_START_TIMESTAMP"
        )
        row = [
            (round(float(r["H5D_F_WRITE_START_TIMESTAMP"]), 6), int(r["H5D_BYTES_WRITTEN"]))
            for r in rows
        ]
        starts[file] = row
    longest = max(starts, key=lambda file: len(starts[file]))
    assert starts.pop(longest) == [(d.time_s, d.bytes) for d in states.steps]
    each = sorted((rows[0][0], sum(size for _, size in rows)) for rows in starts.values())
    assert each == [(d.time_s, d.bytes) for d in checkpoints.steps]
    assert sizes(checkpoints) == sorted(set(sizes(checkpoints))), "they grow"


def test_states_without_datasets_are_near_those_with() -> None:
    """The same program without H5D records: the heatmap gives times and sizes."""
    with_them = only(darshan.read(TRACES / "mphys_dyn.darshan"), files="append")
    without = only(darshan.read(TRACES / "mphys_static_hdf5.darshan"), files="append")
    assert len(without.steps) == len(with_them.steps) == 12
    for a, b in zip(with_them.steps, without.steps, strict=True):
        assert abs(a.bytes - b.bytes) < 0.05 * a.bytes
        assert abs(a.time_s - b.time_s) < 0.4  # two runs; a bin of the heatmap is 0.1 s
