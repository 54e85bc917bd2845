"""Edited and damaged logs: a workload that our own reader accepts, or one message."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import fuzz_describe as fuzz
from tests.readers.synthetic import Run, rank_bytes, sizes
from tests.support.said import raises, said
from understudy.contracts.workload import Workload, parse
from understudy.darshanlog import layouts, open_log
from understudy.darshanlog import names as names_of
from understudy.darshanlog.archive import REPLACED, Options, archive
from understudy.darshanlog.sizes import log_size
from understudy.darshanlog.synthetic import Synthetic, write
from understudy.darshanlog.writer import write_log, write_regions
from understudy.errors import UnderstudyError
from understudy.readers import darshan

SEEDS = range(1, 41)
GOOD = {
    "id": 1,
    "rank": -1,
    "POSIX_OPENS": 4,
    "POSIX_WRITES": 4,
    "POSIX_BYTES_WRITTEN": 4 << 20,
    "POSIX_MAX_BYTE_WRITTEN": (4 << 20) - 1,
    "POSIX_F_OPEN_START_TIMESTAMP": 1.0,
    "POSIX_F_WRITE_START_TIMESTAMP": 1.0,
    "POSIX_F_WRITE_END_TIMESTAMP": 2.0,
}


def test_edited_logs(tmp_path: Path) -> None:
    """The same as `python -m tests.fuzz_describe`, which runs as long as wanted."""
    logs = fuzz.corpus(tmp_path, largest_bytes=3000)
    verdicts: Counter[str] = Counter()
    with fuzz.limits():
        for seed in SEEDS:
            path = tmp_path / f"{seed}.darshan"
            fuzz.case(logs, seed, path)
            what, why = fuzz.verdict(path, seed)
            assert what != "failed", f"seed {seed}: {why}"
            verdicts[what] += 1
    assert verdicts["described"] > 16 and verdicts["refused"] > 4


@pytest.mark.parametrize("seed", [7633, 7801, 7942])
def test_cases_that_failed_once(seed: int, tmp_path: Path) -> None:
    """A trace of a rank that does not exist; files of 10^7 dumps that are read, too."""
    path = tmp_path / "case.darshan"
    fuzz.case(fuzz.corpus(tmp_path), seed, path)
    with fuzz.limits():
        what, why = fuzz.verdict(path, seed)
    assert what != "failed", why


@pytest.mark.parametrize("release", ["3.0", "3.2", "3.5"])
@pytest.mark.parametrize("compression", ["zlib", "bzip2", "none"])
def test_a_byte_is_wrong(release: str, compression: str, tmp_path: Path) -> None:
    """Bytes 200 to the length of a synthetic log, and each field of its header: an error, the same
    workload, or a note of the damage."""
    job = Synthetic(
        processes=4, files=6, dumps=6, interface="mpiio", darshan=release, compression=compression
    )
    data = write(tmp_path / "whole.darshan", job).read_bytes()
    log_format = layouts.LOG_FORMATS[data[:8].split(b"\0")[0].decode()]
    header, versions = log_format.header_bytes, log_format.versions_offset
    places = {*range(header, len(data), max(1, (len(data) - header) // 200)), *range(24)}
    used = [0, 1, 2, 3]  # the names and the modules that the log has or may have
    places |= {log_format.name_map_offset + 16 * slot + k for slot in used for k in range(16)}
    places |= {versions + 4 * slot for slot in used}
    damage = fuzz.Damage([data], tmp_path)
    verdicts: Counter[str] = Counter()
    path = tmp_path / "damaged.darshan"
    with fuzz.limits():
        for at in sorted(places):
            path.write_bytes(data[:at] + bytes([data[at] ^ 0x41]) + data[at + 1 :])
            what, why = fuzz.verdict(path, (1, 5, 9)[at % 3])  # shown, archived, with names
            if what == "described" and not fuzz.may_be_silent(data, at):
                odd = damage.odd(0, path)
                what, why = ("failed", odd) if odd else (what, why)
            assert what != "failed", f"byte {at}: {why}"
            verdicts[what] += 1
    assert verdicts["refused"] > 40


def described(path: Path, **more: Any) -> Workload:
    workload = darshan.read(write_log(path, **more))
    return parse(workload.to_text(), "described")


@pytest.mark.parametrize(
    ("edit", "note"),
    [
        ({"rank": 4}, "1 record left out"),
        ({"rank": -7}, "1 record left out"),
        ({"POSIX_BYTES_WRITTEN": -5}, "1 record left out"),
        ({"POSIX_BYTES_WRITTEN": (1 << 63) - 1}, "1 record left out"),
        ({"POSIX_F_WRITE_START_TIMESTAMP": np.inf}, "1 record with times that are not finite"),
        ({"POSIX_F_WRITE_END_TIMESTAMP": np.nan}, "1 record with times that are not finite"),
        ({"POSIX_F_OPEN_START_TIMESTAMP": -3.0}, "1 record with times that are not finite"),
        ({"POSIX_F_WRITE_END_TIMESTAMP": 1.7e9}, "1 record with times that are not finite"),
        ({"POSIX_WRITES": 1 << 62}, "1 record with counters"),
        ({"POSIX_STATS": 1 << 62}, "1 record with counters"),
        ({"POSIX_RENAME_SOURCES": 1 << 61}, "1 record with counters"),
        (
            {"POSIX_ACCESS1_ACCESS": 1 << 40, "POSIX_ACCESS1_COUNT": 1 << 40},
            "1 record with counters",
        ),
        # Darshan writes -1 for counters that a module lacks; no module lacks its bytes.
        ({"POSIX_BYTES_WRITTEN": -1}, "1 record with counters that no run can have"),
        ({"POSIX_FSYNCS": 0}, ""),
    ],
)
def test_impossible_values_are_noted(edit: dict[str, Any], note: str, tmp_path: Path) -> None:
    names = {1: b"/scratch/a", 2: b"/scratch/b"}
    bad = GOOD | {"id": 2} | edit
    workload = described(tmp_path / "log.darshan", names=names, POSIX=[GOOD, bad])
    notes = [n for n in workload.source.notes if "Module" in n]
    assert not notes if not note else [n for n in notes if f"Module POSIX: {note}" in n]
    if edit.get("POSIX_BYTES_WRITTEN") != -1:
        assert workload.bytes == (4 << 20) * (1 if "left out" in note else 2)


@pytest.mark.parametrize("start_s", [2.0**62, 2.6e11, -1.0])
def test_a_log_of_an_impossible_time_is_refused(start_s: float, tmp_path: Path) -> None:
    """A damaged start moves the job in `rank`, and its time to other logs."""
    path = tmp_path / "log.darshan"
    with raises(UnderstudyError, "job-record-has-start"):
        described(path, names={1: b"/scratch/a"}, POSIX=[GOOD], start_s=start_s)
    with raises(UnderstudyError, "job-record-has-end"):
        described(path, names={1: b"/scratch/a"}, POSIX=[GOOD], run_time_s=2.0**61)


def test_records_that_cannot_be_added_up_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.darshan"
    with raises(UnderstudyError, "module-posix-records-add"):
        described(
            path, POSIX=[GOOD | {"id": n, "POSIX_BYTES_WRITTEN": 1 << 55} for n in range(1, 70)]
        )


@pytest.mark.parametrize("ranks", [0, -1, 1 << 31, 1 << 62])
def test_a_job_of_impossible_size_is_refused(ranks: int, tmp_path: Path) -> None:
    with pytest.raises(UnderstudyError, match=f"has {ranks} processes, expected 1 to 16777216"):
        described(tmp_path / "log.darshan", nprocs=ranks, POSIX=[GOOD])


def test_the_largest_job_takes_no_memory_per_rank(tmp_path: Path) -> None:
    with fuzz.limits(256 << 20):
        workload = described(tmp_path / "log.darshan", nprocs=1 << 24, POSIX=[GOOD])
    assert workload.ranks == 1 << 24


@pytest.mark.parametrize("width_s", [0.0, 5e-324, -1.0, np.inf, np.nan, 1e300])
def test_heatmaps_of_absurd_width_are_left_out(width_s: float, tmp_path: Path) -> None:
    long = GOOD | {"POSIX_F_WRITE_END_TIMESTAMP": 90.0}
    heat = {"id": 9, "bin_width_s": width_s, "write_bins": [1, 0, 1], "read_bins": [0, 0, 0]}
    workload = described(
        tmp_path / "log.darshan",
        names={1: b"/a", 9: b"heatmap:POSIX"},
        POSIX=[long],
        HEATMAP=[heat],
    )
    assert "Module HEATMAP: 1 record left out" in " ".join(workload.source.notes)


def test_traced_accesses_at_impossible_times_are_left_out(tmp_path: Path) -> None:
    long = GOOD | {"POSIX_F_WRITE_END_TIMESTAMP": 90.0}
    segments = [
        (0, 2 << 20, 1.0, 2.0),
        (0, 1 << 20, np.nan, 1.0),
        (0, -5, 3.0, 4.0),
        (2 << 20, 2 << 20, 80.0, 90.0),
    ]
    workload = described(
        tmp_path / "log.darshan",
        names={1: b"/a"},
        POSIX=[long],
        DXT_POSIX=[{"id": 1, "write_segments": segments}],
    )
    assert [d.bytes for d in workload.streams[0].steps] == [2 << 20, 2 << 20]
    assert "Module DXT_POSIX: 2 records left out" in " ".join(workload.source.notes)


def test_an_emptied_region_is_noted(tmp_path: Path) -> None:
    stdio = [{"id": 2, "STDIO_BYTES_WRITTEN": 5, "STDIO_WRITES": 1}]
    path = write_log(tmp_path / "log.darshan", POSIX=[GOOD], STDIO=stdio)
    parts = fuzz.Parts.of(path.read_bytes())
    slot = 1 + parts.format.module_names.index("STDIO")
    parts.regions[slot].clear()
    registered = "Darshan: STDIO: registered by the log without any record"
    for keep, note in (([slot], "Module STDIO has no records."), ([], registered)):
        write_regions(path, parts.header, parts.job, parts.regions, "zlib", keep)
        assert note in darshan.read(path).source.notes


def test_time_steps_of_very_many_ranks_keep_blocks_of_ranks(tmp_path: Path) -> None:
    """Two of a million ranks write their part of a file in 31 time steps: blocks, with a note."""
    mib, run = 1 << 20, Run(1 << 20, 320.0)
    for rank in (0, 1 << 19):
        first = 31 * mib * (rank > 0)
        segments = [(first + k * mib, mib, 1.0 + 10 * k, 2.0 + 10 * k) for k in range(31)]
        run.traced("/s/log", segments, rank=rank, MAX_BYTE_WRITTEN=first + 31 * mib - 1)
    with fuzz.limits():
        workload = run.describe(tmp_path)
    (stream,) = workload.streams
    assert sizes(stream) == [2 * mib] * 31
    assert any("in blocks of equal ones" in note for note in workload.source.notes)
    moved = rank_bytes(stream, 3, 1 << 20)
    assert [sum(moved[n : n + 16]) for n in (0, 1 << 19)] == [mib, mib]


@pytest.mark.parametrize("module", ["POSIX", "MPIIO", "STDIO", "H5D"])
def test_repeated_records_are_left_out(module: str, tmp_path: Path) -> None:
    """A region with records twice moves the bytes once, in all that is said of the log."""
    counters = {
        "H5D": {"H5D_WRITES": 4, "file_rec_id": 5},
        "MPIIO": {"MPIIO_COLL_OPENS": 1, "MPIIO_COLL_WRITES": 4},
    }
    row = counters.get(module, {f"{module}_OPENS": 1, f"{module}_WRITES": 4}) | {
        "id": 1,
        "rank": 2,
        f"{module}_BYTES_WRITTEN": 4 << 20,
        f"{module}_F_WRITE_START_TIMESTAMP": 1.0,
        f"{module}_F_WRITE_END_TIMESTAMP": 2.0,
    }
    names = {1: b"/scratch/a", 5: b"/scratch/f.h5"}
    path = tmp_path / "log.darshan"
    once = described(path, names=names, **{module: [row]})
    twice = described(path, names=names, **{module: [row] * 3})
    assert twice.bytes == once.bytes == 4 << 20
    name = "MPI-IO" if module == "MPIIO" else module
    assert f"Module {name}: 2 records left out that repeat another." in twice.source.notes
    assert not any("repeat another" in note for note in once.source.notes)
    assert twice.source.notes[-1] == once.source.notes[-1]


def test_records_of_one_file_and_rank_that_differ_are_noted(tmp_path: Path) -> None:
    other = GOOD | {"POSIX_BYTES_WRITTEN": 5 << 20}
    workload = described(
        tmp_path / "log.darshan", names={1: b"/scratch/a"}, POSIX=[GOOD, other, GOOD]
    )
    notes = " ".join(workload.source.notes)
    assert "POSIX: 1 record left out that repeat another." in notes
    assert "POSIX: 1 record of a file and rank that have another, of other counters" in notes


def test_sizes_that_tell_the_bytes_of_very_many_ranks_take_no_memory(tmp_path: Path) -> None:
    ranks = 1 << 20
    shared = GOOD | {
        "POSIX_WRITES": ranks,
        "POSIX_BYTES_WRITTEN": 1500 * ranks,
        "POSIX_F_VARIANCE_RANK_BYTES": 500.0**2,
        "POSIX_MAX_BYTE_WRITTEN": 1500 * ranks - 1,
        "POSIX_ACCESS1_ACCESS": 1000,
        "POSIX_ACCESS1_COUNT": ranks // 2,
        "POSIX_ACCESS2_ACCESS": 2000,
        "POSIX_ACCESS2_COUNT": ranks // 2,
    }
    with fuzz.limits(256 << 20):
        workload = described(
            tmp_path / "log.darshan", nprocs=ranks, names={1: b"/s/a"}, POSIX=[shared]
        )
    assert workload.bytes == 1500 * ranks
    assert any("too many ranks to hold" in note for note in workload.source.notes)


def beside(path: Path) -> tuple[Path, fuzz.Parts]:
    """A log with counters, names and every module beside them."""
    heat = {"id": 9, "bin_width_s": 1.0, "write_bins": [1], "read_bins": [0]}
    write_log(
        path,
        names={1: b"/a", 9: b"heatmap:POSIX"},
        POSIX=[GOOD],
        DXT_POSIX=[{"id": 1, "write_segments": [(0, 4 << 20, 1.0, 2.0)]}],
        HEATMAP=[heat],
        DXT_MPIIO=[{"id": 1, "write_segments": []}],
        LUSTRE=[{"id": 1, "stripe_size_bytes": 1 << 20, "ost_ids": [1]}],
    )
    return path, fuzz.Parts.of(path.read_bytes())


def slot_of(parts: fuzz.Parts, module: str) -> int:
    return 1 + parts.format.module_names.index(module)


ZEROS = {
    "DXT_POSIX": "a record is there more than 1000 times",
    "LUSTRE": "more than 1000 times",
    "HEATMAP": "there are more than 64 records",
}


@pytest.mark.parametrize("module", ZEROS)
def test_regions_of_zeros_end_soon(module: str, tmp_path: Path) -> None:
    """256 MiB of zeros, 260 kB in the file."""
    path, parts = beside(tmp_path / "log.darshan")
    parts.regions[slot_of(parts, module)] = bytearray(256 << 20)
    write_regions(path, parts.header, parts.job, parts.regions, "zlib")
    with fuzz.limits():
        notes = darshan.read(path).source.notes
    (note,) = (note for note in notes if "is damaged" in note)
    said("module-was-left-out", note, module=module)
    assert ZEROS[module] in note


@pytest.mark.parametrize("name", [b"", b"/scratch/state.0001", b"/a"])
@pytest.mark.parametrize("ids", [1, 3, 1000])
def test_names_that_are_repeated_take_no_memory(name: bytes, ids: int, tmp_path: Path) -> None:
    """64 MiB of names of few records, below 1 MB in the file."""
    path, parts = beside(tmp_path / "log.darshan")
    some = b"".join((n + 1).to_bytes(8, "little") + name + b"\0" for n in range(ids))
    parts.regions[0] = bytearray(some * ((64 << 20) // len(some)))
    write_regions(path, parts.header, parts.job, parts.regions, "zlib")
    assert path.stat().st_size < 1 << 20
    with fuzz.limits(256 << 20):
        workload = darshan.read(path)
    assert workload.bytes == 4 << 20
    lost = any("files that have no name in the log" in note for note in workload.source.notes)
    assert lost == (not name)


@pytest.mark.parametrize("name", [b"", b"/a", b"/scratch/state.0001"])
def test_names_that_come_again_are_split_once(
    name: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By describe, show and archive: the blocks of a period of names, and not the MiB of them."""
    path, parts = beside(tmp_path / "log.darshan")
    some = b"".join(n.to_bytes(8, "little") + name + b"\0" for n in range(1, 4))
    if not name:
        some = bytes(9)
    names = bytes(parts.regions[0])
    parts.regions[0] = bytearray(names + some * ((64 << 20) // len(some)))
    write_regions(path, parts.header, parts.job, parts.regions, "zlib")
    calls = []
    split = names_of.split_terminated

    def counted(data: bytes, order: str) -> tuple[names_of.NameBlock, int]:
        calls.append(len(data))
        return split(data, order)

    monkeypatch.setattr(names_of, "split_terminated", counted)
    with open_log(path) as log:
        numbers = {int(n) for ids, _ in log.names() for n in ids}
    assert numbers >= {1, 2, 3} if name else 0 in numbers
    assert len(calls) <= len(some) + 2, "once for each phase of the period, and not 64 times"
    records = log_size(path).regions[1].records
    assert records is not None and records >= (64 << 20) // len(some)
    assert archive(path, Options(always=True, check=True)).state == REPLACED
    assert log_size(path).files == len(numbers | {1})
    assert len(calls) <= 12 * (len(some) + 2)


def test_each_process_may_name_the_files_of_all(tmp_path: Path) -> None:
    """Standard streams of 10,000 ranks between the names of few files."""
    run = Run()
    for dump in range(3):
        run.write(f"/s/dump.{dump}", 4 << 20, 10.0 * dump + 1)
    path = run.log(tmp_path / "once.darshan")
    names = list(run.names.items())
    again = [pair for _ in range(10_000) for pair in ((901, b"<STDIN>"), (902, b"<STDERR>"))]
    pairs = [(901, b""), *again, *names, *again, *names[:1]]
    many = write_log(
        tmp_path / "many.darshan",
        nprocs=4,
        names=pairs,
        POSIX=run.modules["POSIX"],
    )
    assert darshan.read(many) == darshan.read(path)
    size = log_size(many)
    assert (size.files, size.regions[1].records) == (5, 40_005)
    with open_log(many) as log:
        read = [(int(n), t) for ids, texts in log.names() for n, t in zip(ids, texts, strict=True)]
    assert read == [*again[:2], *names]


BESIDE = ("DXT_POSIX", "DXT_MPIIO", "HEATMAP", "LUSTRE")
HOW = {
    "cut": lambda data: data[:-3],
    "of another kind": lambda data: bytearray(b"\x7f" * 4099),
    "of absurd numbers": lambda data: data[:16] + b"\x60" * (len(data) - 16),
}


@pytest.mark.parametrize("module", BESIDE)
@pytest.mark.parametrize("how", [*HOW, "not inflatable"])
def test_a_module_beside_sound_counters_is_left_out_where_it_is_damaged(
    how: str, module: str, tmp_path: Path
) -> None:
    path, parts = beside(tmp_path / "log.darshan")
    sound = darshan.read(path)
    slot = slot_of(parts, module)
    if how == "not inflatable":
        with open_log(path) as log:
            at = log.modules[module].offset
        data = path.read_bytes()
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :])
    else:
        parts.regions[slot] = HOW[how](parts.regions[slot])
        write_regions(path, parts.header, parts.job, parts.regions, "zlib")
    with fuzz.limits():
        workload = darshan.read(path)
    assert workload.bytes == sound.bytes == 4 << 20
    assert workload.source.notes[-1] == sound.source.notes[-1]
    (note,) = (note for note in workload.source.notes if "is damaged" in note)
    said("module-was-left-out", note, module=module)
    assert str(tmp_path) not in workload.to_text()


def test_a_trace_is_left_out_of_joined_logs_where_one_is_damaged(tmp_path: Path) -> None:
    paths = []
    for number in range(3):
        path, parts = beside(tmp_path / f"{number}.darshan")
        for module in ("DXT_POSIX", "HEATMAP") if number < 2 else ():
            data = parts.regions[slot_of(parts, module)]
            parts.regions[slot_of(parts, module)] = HOW["of absurd numbers"](data)
        parts.job[8:16] = (40 + number).to_bytes(8, "little")
        write_regions(path, parts.header, parts.job, parts.regions, "zlib")
        paths.append(path)
    workload = darshan.read(paths[0], others=paths[1:], join_jobs=True)
    assert workload.bytes == 3 * 4 << 20
    for module in ("DXT_POSIX", "HEATMAP"):
        start = f"Module {module} was left out: it is damaged in 2 of 3 logs, first at byte "
        assert sum(note.startswith(start) for note in workload.source.notes) == 1


def test_a_trace_record_of_absurd_length_is_left_out(tmp_path: Path) -> None:
    path, parts = beside(tmp_path / "log.darshan")
    data = parts.regions[slot_of(parts, "DXT_POSIX")]
    head = np.dtype([(n, "<" + k) for n, k in layouts.DXT_HEAD])
    rows = np.frombuffer(data[: head.itemsize], head).copy()
    rows["write_count"] = (1 << 22) + 1
    data[: head.itemsize] = rows.tobytes()
    write_regions(path, parts.header, parts.job, parts.regions, "zlib")
    notes = " ".join(darshan.read(path).source.notes)
    assert "the number of segments of a record is 4194305, expected at most 4194304" in notes


@pytest.mark.parametrize("module", ["POSIX", "names"])
def test_a_log_of_damaged_counters_or_names_is_refused(module: str, tmp_path: Path) -> None:
    path, parts = beside(tmp_path / "log.darshan")
    slot = 0 if module == "names" else slot_of(parts, module)
    del parts.regions[slot][-3:]
    write_regions(path, parts.header, parts.job, parts.regions, "zlib")
    with raises(UnderstudyError, "data-ends-middle"):
        darshan.read(path)


def test_a_fifo_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.darshan")
    with raises(UnderstudyError, "darshan-expected-regular-file"):
        open_log(tmp_path / "x.darshan")
