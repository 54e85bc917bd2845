"""Names and series in arrays: the same as one by one, and no more work than their number asks."""

import cProfile
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.readers.synthetic import Run
from understudy import darshanlog
from understudy.darshanlog.names import NameBlock
from understudy.darshanlog.stream import Region
from understudy.darshanlog.synthetic import Synthetic, write
from understudy.darshanlog.writer import write_log
from understudy.inference.log import counter_totals
from understudy.inference.log.accesses import Accesses
from understudy.inference.log.external_sort import Spill
from understudy.inference.names import filename_numbers
from understudy.inference.names.filename_numbers import Spans
from understudy.inference.names.name_templates import MAX_FIELDS, Templates, alike
from understudy.readers import darshan

FORMS = (
    b"/s/d%d/f.%03d",
    b"/s/0.%d/p",
    b"/g/%d/%d/%d/%d/%d/%d/%d/x.%d",
    b"/a%db/%d",
    b"x",
    b"",
    b"/%d",
    b"/s/%d.%d",
    b"/s/run.%d.h5",
    b"/s/\xff%d\n",
)


def some_names(count: int) -> list[bytes]:
    rng = random.Random(1)
    forms = [rng.choice(FORMS) for _ in range(count)]
    return [f % tuple(rng.choice((0, 7, 12, 4711)) for _ in range(f.count(b"%"))) for f in forms]


def test_names_are_split_as_one_by_one() -> None:
    names = some_names(3000)
    single, many = Templates(), Templates()
    expected = {n: single.split(name) for n, name in enumerate(names) if name}
    rows = {}
    for some in alike(NameBlock.of(np.arange(len(names), dtype=np.uint64), names)):
        for part in many.parted(some):
            index, numbers = many.split_all(part)
            rows |= {int(n): (index, row) for n, row in zip(part.which, numbers, strict=True)}
    assert sorted(rows) == sorted(expected)
    for n, (index, numbers) in expected.items():
        assert many.names[rows[n][0]] == single.names[index], names[n]
        assert rows[n][1].tolist() == [*numbers, *[0] * (MAX_FIELDS - len(numbers))], names[n]


@pytest.mark.parametrize("byte_order", ["little", "big"])
@pytest.mark.parametrize("version", ["3.00", "3.41"])
def test_ids_may_hold_zero_bytes(tmp_path: Path, version: str, byte_order: str) -> None:
    """Zero bytes end names, but ids have them, too."""
    rng = random.Random(2)
    ids = [
        *range(300),
        *(rng.getrandbits(64) & rng.getrandbits(64) << 8 * k for k in range(8)),
        *(k << 56 for k in range(1, 200)),
    ]
    pairs = list(
        zip(dict.fromkeys(n % (1 << 64) for n in ids), some_names(len(ids)), strict=False)
    )
    path = write_log(tmp_path / "x", names=pairs, version=version, byte_order=byte_order)
    with darshanlog.open_log(path) as log:
        blocks = [zip(some.tolist(), texts, strict=True) for some, texts in log.names()]
    assert [pair for block in blocks for pair in block] == pairs


def test_a_log_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names and records of POSIX are inflated once: inflating is most of the cost."""
    inflated: list[str] = []

    def counted(*words: object, name: str, **more: Any) -> object:
        inflated.append(name)
        return Region(*words, name=name, **more)  # type: ignore[arg-type]

    path = write(tmp_path / "x.darshan", Synthetic(processes=4, files=50))
    monkeypatch.setattr("understudy.darshanlog.log.Region", counted)
    darshan.read(path)
    assert sorted(inflated) == ["module POSIX", "the job record", "the names"]


def test_buckets_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in many buckets and a temporary file give the workload of one bucket in memory."""
    path = write(tmp_path / "x.darshan", Synthetic(processes=16, files=40, dumps=40))
    before = darshan.read(path)
    monkeypatch.setattr("understudy.inference.log.accesses.FILES_AT_ONCE", 10)
    monkeypatch.setattr("understudy.inference.log.external_sort.HELD_BYTES", 4096)
    with darshanlog.open_log(path) as log:
        accesses = Accesses(log, 16)
        assert len(list(accesses.blocks())) > 10
        accesses.close()
    assert darshan.read(path) == before


@pytest.mark.parametrize(
    "job",
    [
        Synthetic(processes=8, files=600, dumps=3),
        Synthetic(processes=8, files=600, layout="shared", interface="mpiio", darshan="3.0"),
        Synthetic(processes=8, files=600, interface="stdio", darshan="3.1", write=False),
        Synthetic(
            processes=8,
            files=600,
            interface="mpiio",
            file_bytes=2 << 30,
            traps=frozenset({"overflow", "stale"}),
        ),
    ],
)
def test_counters_of_many_files_are_the_sums_of_those_of_each(
    job: Synthetic, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns that are added up at once, and those with negative numbers, one by one."""
    path, totals = write(tmp_path / "x.darshan", job), []
    for max_files in (counter_totals.MAX_FILES, 0):
        monkeypatch.setattr(counter_totals, "MAX_FILES", max_files)
        with darshanlog.open_log(path) as log:
            accesses = Accesses(log, job.processes)
            assert accesses.counter_totals.apart == (max_files > 0)
            totals.append(accesses.counter_totals.parts([])[1])
            accesses.close()
    assert totals[0].counters == totals[1].counters and totals[0].sizes == totals[1].sizes
    assert any(sum(counters.values()) > 600 for counters in totals[0].counters.values())
    for module, times in totals[0].times.items():
        assert times == pytest.approx(totals[1].times[module])


def test_spilled_rows_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.inference.log.external_sort.HELD_BYTES", 100_000)
    dtype = np.dtype([("file", "u8"), ("a", "i4"), ("b", "f8", (3,))], align=True)
    rows = np.zeros(5000, dtype)
    rows["file"], rows["b"][:, 1] = np.arange(5000) * 7919, np.arange(5000)
    rows["a"][4000:] = 3
    spill = Spill(dtype, 7)
    for begin in range(0, 5000, 100):
        spill.add(rows[begin : begin + 100])
    for n in range(7):
        bucket, wanted = spill.bucket(n), rows[rows["file"] % np.uint64(7) == n]
        for name in dtype.names or ():
            assert bucket[name].tolist() == wanted[name].tolist()
    spill.close()


@pytest.mark.parametrize("limit", [10_000, 300])
def test_numbers_are_merged_as_one_by_one(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of numbers, and where they are too many, those up to the block that was too much."""
    rng, blocks = np.random.default_rng(1), []
    for _ in range(40):
        rows = np.zeros(rng.integers(1, 60), Spans(limit).rows.dtype)
        for name in rows.dtype.names or ():
            rows[name] = rng.integers(0, 500, len(rows))
        blocks.append((rows["value"].copy(), rows))
    expected: dict[int, list[float]] = {}
    for values, rows in blocks:
        if len(expected) > limit:
            break
        for value, row in zip(values.tolist(), rows.tolist(), strict=True):
            old = expected.setdefault(value, list(row))
            expected[value] = [
                max(a, b) if name in ("last_rank", "last_s", "end_s") else min(a, b)
                for name, a, b in zip(rows.dtype.names or (), old, row, strict=True)
            ]
    assert (len(expected) > limit) == (limit == 300)
    for merged_at_a_time in (0, 100, 1 << 14):
        monkeypatch.setattr(filename_numbers, "MIN_MERGED", merged_at_a_time)
        spans = Spans(limit)
        for values, rows in blocks:
            spans.add(values, rows)
        assert spans.full == (limit == 300)
        assert spans.rows.tolist() == [tuple(expected[value]) for value in sorted(expected)]


def test_numbers_are_sorted_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of each of very many processes has a number of its own: what came before is not
    sorted again for each block."""
    monkeypatch.setattr(filename_numbers, "MIN_MERGED", 100)
    spans, sorted_rows, argsort = Spans(1 << 20), 0, np.argsort
    dtype = spans.rows.dtype

    def counted(values: Any) -> Any:
        nonlocal sorted_rows
        sorted_rows += len(values)
        return argsort(values)

    monkeypatch.setattr(np, "argsort", counted)
    for begin in range(0, 100_000, 50):
        values = np.arange(begin, begin + 50)
        spans.add(values, np.zeros(50, dtype))
    assert len(spans) == 100_000 < sorted_rows < 1_000_000


def work(folder: Path, names: int, dumps: int) -> int:
    """Calls of functions to describe a log of names of one folder, each at its own time."""
    run = Run(1, 60_000.0)
    for n in range(names):
        word = "".join(chr(ord("a") + n // 26**k % 26) for k in range(3))
        for dump in range(dumps):
            at_s = 10.0 + 50 * n + dump * 10.0
            run.write(f"/s/{word}.{dump:03}", (n + 1) << 12, at_s, rank=0, duration_s=0.5)
    profile, log = cProfile.Profile(), run.log(folder / "run.darshan")
    profile.runcall(darshan.read, log)
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize("dumps", [1, 4])
def test_names_of_a_folder_are_not_tried_with_each_other(dumps: int, tmp_path: Path) -> None:
    assert work(tmp_path, 800, dumps) < 3 * work(tmp_path, 400, dumps)
