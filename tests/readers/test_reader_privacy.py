"""Nothing of the source's names, paths, programs, users or hosts stands in a descriptor."""

import re
from pathlib import Path

import pytest

from tests.readers.logs import ALL, TRACES
from tests.readers.synthetic import Run
from tests.support.said import said
from understudy.darshanlog import Log, open_log
from understudy.readers import darshan

# Words of the contract and of the reader's own messages that may also be parts of names.
PLAIN = {
    "restart",
    "input",
    "output",
    "checkpoint",
    "visualization",
    "posix",
    "mpiio",
    "hdf5",
    "stdio",
    "darshan",
    "data",
    "time",
    "dump",
    "file",
    "files",
    "shared",
    "grouped",
    "rank",
    "write",
    "read",
    "boundary",
    "neighbour",
    "random",
    "share",
}


def strings(log: Log) -> set[str]:
    """Every component of a path and every word of the log longer than 3 characters."""
    texts = [name.decode("utf-8", "replace") for _, names in log.names() for name in names]
    texts += [log.exe, *(m.path for m in log.mounts), *log.job.metadata.values()]
    for module in ("DXT_POSIX", "DXT_MPIIO"):
        if module in log.modules and log.modules[module].supported:
            texts += [record.hostname.decode() for record in log.dxt(module)]
    parts = {part for text in texts for part in re.split(r"[/\s=;:,]+", text)}
    parts |= {part.partition(".")[0] for part in parts}
    found = {part for part in parts if len(part) > 3 and part.lower() not in PLAIN}
    return {part for part in found if not re.fullmatch(r"[\d.]+|<STD\w+>", part)}


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.stem)
def test_no_string_of_the_log_stands_in_the_descriptor(path: Path) -> None:
    with open_log(path) as log:
        secrets = strings(log)
        numbers = {str(log.job.uid), str(log.job.jobid)} - {"0"}
        start = str(int(log.job.start_s))
    text = darshan.read(path, partial=True).to_text()
    assert len(secrets) > 3, "something to be found"
    leaked = {s for s in secrets if s in text}
    assert leaked == set()
    assert start not in text
    assert not any(re.search(rf"\b{n}\b", text) for n in numbers if len(n) > 3)


def test_the_strings_of_a_log_are_found_in_a_descriptor_with_names() -> None:
    """The check above can fail."""
    path = TRACES / "lammps_growth.darshan"
    with open_log(path) as log:
        secrets = strings(log)
    text = darshan.read(path, keep_names=True).to_text()
    assert {s for s in secrets if s in text} >= {"scratch", "viz.lammpstrj.mpiio"}


def test_names_are_kept_on_demand_as_labels() -> None:
    workload = darshan.read(TRACES / "mphys_dyn.darshan", keep_names=True)
    labels = [s.label for s in workload.streams]
    assert {label.rpartition("/")[2] for label in labels} >= {"viz.h*", "rst_*.*"}
    without = darshan.read(TRACES / "mphys_dyn.darshan")
    assert {s.label for s in without.streams} == {""}
    assert {v.label for s in without.streams for d in s.steps for v in d.variables} == {""}
    assert [s.bytes for s in without.streams] == [s.bytes for s in workload.streams]


def test_a_log_of_secrets(tmp_path: Path) -> None:
    """Every text field of a log says xenon; the descriptor never does."""
    run = Run(
        nprocs=2,
        exe="/home/xenon1/bin/xenon2 --key xenon3",
        mounts=(("/xenon4", "xenon5"),),
        metadata={"lib_ver": "xenon6", "hints": "xenon7"},
        uid=4_242_424,
        jobid=7_654_321,
    )
    for k in range(3):
        file = run.write(f"/xenon4/xenon8/xenon9.{k}", 1 << 20, 20.0 * k + 1, rank=0)
        run.add(
            "DXT_POSIX",
            {
                "id": file,
                "rank": 0,
                "hostname": b"xenon10",
                "write_segments": [(0, 1 << 20, 1.0, 2.0)],
            },
        )
    run.add("LUSTRE", {"id": file, "stripe_size_bytes": 1 << 20, "ost_ids": [3, 4]})
    text = run.describe(tmp_path).to_text()
    said("stripe-count-stripe-size", text)
    assert "/xenon*/xenon*/xenon*.*" in run.describe(tmp_path, keep_names=True).to_text()
