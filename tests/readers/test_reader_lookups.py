"""Files that are read between the writes to them."""

from pathlib import Path
from typing import Any

import pytest

from tests.readers.synthetic import Run, access, only
from understudy.contracts.workload import Workload
from understudy.program.types import Lookups


def database(
    folder: Path, module: str, read_s: float = 1.0, opens: int = 1, **counters: Any
) -> Workload:
    """1,000 writes of 100 B from 1 s to 3 s and 600 reads of 300 B."""
    run = Run(nprocs=1)
    file = run.file("/s/app.db")
    one = access(file, 100_000, 1.0, calls=1000, duration_s=2.0, module=module, OPENS=opens)
    other = access(file, 180_000, read_s, calls=600, duration_s=2.0, module=module, write=False)
    prefix = f"{module.replace('-', '')}_"
    told = {f"{prefix}{name}": number for name, number in counters.items()}
    run.add(module, one | {k: v for k, v in other.items() if v and not one.get(k)} | told)
    return run.describe(folder)


@pytest.mark.parametrize(
    ("module", "counters"), [("STDIO", {"SEEKS": 1000}), ("POSIX", {"RW_SWITCHES": 800})]
)
def test_reads_between_writes_are_made_there(
    module: str, counters: dict[str, int], tmp_path: Path
) -> None:
    stream = only(database(tmp_path, module, **counters))
    # The first read finds less than the others.
    assert stream.lookups == Lookups(every_bytes=250, calls=1.5, transfer_bytes=301)
    assert stream.operation == "write" and stream.files == "new"


@pytest.mark.parametrize(
    ("module", "counters"),
    [
        ("STDIO", {"SEEKS": 600}),  # as many as there are reads
        ("STDIO", {"SEEKS": 1000, "read_s": 4.0}),  # all reads are behind the writes
        ("POSIX", {"RW_SWITCHES": 2}),  # written, read and written again in one open
        ("POSIX", {"RW_SWITCHES": 800, "opens": 500}),  # opens explain it
        ("POSIX", {"RW_SWITCHES": 800, "SEQ_WRITES": 500}),  # of a cache of pixels, at random
    ],
)
def test_others_are_streams_of_their_own(
    module: str, counters: dict[str, Any], tmp_path: Path
) -> None:
    streams = database(tmp_path, module, **counters).streams
    assert sorted(s.operation for s in streams) == ["read", "write"]
    assert not any(s.lookups for s in streams)
