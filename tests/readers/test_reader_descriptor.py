"""Descriptors of real logs: where numbers come from, and nothing of the source's names."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.readers.logs import ALL, TRACES
from tests.readers.synthetic import Run
from tests.support.said import said
from understudy.contracts.workload import Workload, numbers, provenance_of
from understudy.darshanlog import Log, open_log
from understudy.readers import darshan

COUNTERS = r"(POSIX|STDIO|MPIIO|H5D|H5F)_\w+|nprocs|job record|access size|HEATMAP|DXT"
MIB = 1 << 20
# Words of the contract and of the reader's own messages that may also be parts of names.
PLAIN = re.compile(
    "restart|input|output|checkpoint|visualization|posix|mpiio|hdf5|stdio|darshan|data|time|dump|"
    "files?|shared|grouped|rank|write|read|boundary|neighbour|random|share"
)


@pytest.fixture(params=ALL, ids=lambda p: p.stem)
def path(request: pytest.FixtureRequest) -> Path:
    log: Path = request.param
    return log


def origin(workload: Workload, stream: int, number: str) -> tuple[str, str]:
    entry = provenance_of(workload, f"/streams/{stream}/{number}")
    assert entry is not None, number
    assert entry.origin == "assumed" or re.search(COUNTERS, entry.how), entry
    return entry.origin, entry.how


def test_origins_say_a_counter_an_equation_or_a_reason(path: Path) -> None:
    workload = darshan.read(path, partial=True)
    for i, stream in enumerate(workload.streams):
        if not stream.bytes:
            continue
        (time, how), (size, correction) = (
            origin(workload, i, number)
            for number in ("dumps/0/time_s", "dumps/0/variables/0/shape/0")
        )
        assert origin(workload, i, "dumps/0/duration_s")[0] != "read", "no counter is a duration"
        assert origin(workload, i, "transfer_bytes")[0] == "derived"
        assumed = "assumed" in how
        if stream.layout == "flood":
            assert {time, size} == {"derived"}
        elif stream.last is not None or any(d.continues for d in stream.steps):
            assert {time, size} <= ({"assumed"} if assumed else {"read", "derived"})
        elif stream.files == "update" and stream.dump_count == 1:  # kept open to be read
            assert {time, size} == {"read"}
        elif stream.files in ("append", "rewrite", "update"):
            assert {time, size} == {"assumed" if assumed else "derived"}
        else:
            assert (time, size) == ("read", "derived" if "corrected" in correction else "read")


def test_a_number_without_origin_is_seen() -> None:
    workload = darshan.read(TRACES / "mphys_dyn.darshan")
    entries = tuple(p for p in workload.provenance if "/dumps" not in p.path)
    bare = replace(workload, provenance=entries)
    missing = {re.sub(r"\d+", "*", p) for p in numbers(bare) if provenance_of(bare, p) is None}
    assert "/streams/*/dumps/*/time_s" in missing and "/ranks" not in missing


def strings(log: Log) -> set[str]:
    """Every component of a path and every word of the log longer than 3 characters."""
    texts = [name.decode("utf-8", "replace") for _, names in log.names() for name in names]
    texts += [log.exe, *(m.path for m in log.mounts), *log.job.metadata.values()]
    for module in ("DXT_POSIX", "DXT_MPIIO"):
        if module in log.modules and log.modules[module].supported:
            texts += [record.hostname.decode() for record in log.dxt(module)]
    parts = {part for text in texts for part in re.split(r"[/\s=;:,]+", text)}
    parts |= {part.partition(".")[0] for part in parts}
    words = {part for part in parts if len(part) > 3 and not PLAIN.fullmatch(part.lower())}
    return {part for part in words if not re.fullmatch(r"[\d.]+|<STD\w+>", part)}


def test_no_string_of_the_log_stands_in_the_descriptor(path: Path) -> None:
    with open_log(path) as log:
        secrets = strings(log)
        identities = {str(log.job.uid), str(log.job.jobid)} - {"0"}
        start = str(int(log.job.start_s))
    text = darshan.read(path, partial=True).to_text()
    assert len(secrets) > 3 and {s for s in secrets if s in text} == set()
    assert start not in text
    assert not any(re.search(rf"\b{n}\b", text) for n in identities if len(n) > 3)


def test_names_are_kept_on_demand_as_labels() -> None:
    """The check above can fail."""
    log = TRACES / "mphys_dyn.darshan"
    workload, without = darshan.read(log, keep_names=True), darshan.read(log)
    with open_log(log) as opened:
        assert any(s in workload.to_text() for s in strings(opened))
    labels = [s.label for s in workload.streams]
    assert {label.rpartition("/")[2] for label in labels} >= {"viz.h*", "rst_*.*"}
    assert {s.label for s in without.streams} == {""}
    assert {v.label for s in without.streams for d in s.steps for v in d.variables} == {""}
    assert [s.bytes for s in without.streams] == [s.bytes for s in workload.streams]


def test_a_log_of_secrets(tmp_path: Path) -> None:
    """Every text field of a log says xenon; the descriptor never does."""
    exe, hints = "/home/xenon1/bin/xenon2 --key xenon3", {"lib_ver": "xenon6", "hints": "xenon7"}
    more = {"mounts": (("/xenon4", "xenon5"),), "uid": 4_242_424, "jobid": 7_654_321}
    run = Run(2, exe=exe, metadata=hints, **more)
    for k in range(3):
        name = f"/xenon4/xenon8/xenon9.{k}"
        run.write(name, MIB, 20.0 * k + 1, rank=0)
        file = run.trace(name, [(0, MIB, 1.0, 2.0)])
        run.modules["DXT_POSIX"][-1]["hostname"] = b"xenon10"
    run.add("LUSTRE", {"id": file, "stripe_size_bytes": MIB, "ost_ids": [3, 4]})
    text = run.describe(tmp_path).to_text()
    assert "xenon" not in text and "4242424" not in text and "7654321" not in text
    said("stripe-count-stripe-size", text)
    assert "/xenon*/xenon*/xenon*.*" in run.describe(tmp_path, keep_names=True).to_text()
