"""Which files make up a stream: two kinds are two, one dump is one, and many names are few."""

from pathlib import Path

import pytest

from tests.readers.synthetic import Run

MIB = 1 << 20


@pytest.mark.parametrize("form", ["/s/case.cam.h{kind}.{k:04d}.nc", "/s/{k:04d}/h{kind}.nc"])
def test_history_files_of_two_kinds_that_alternate(form: str, tmp_path: Path) -> None:
    """h0 with fields, h1 with means of half the period later."""
    run = Run(nprocs=4)
    for k in range(4):
        run.write(form.format(kind=0, k=k), 64 * MIB + k * MIB, 20.0 * k + 2, calls=4)
        run.write(form.format(kind=1, k=k), 8 * MIB + k * MIB, 20.0 * k + 12, calls=4)
    run.describe(tmp_path)


def test_two_kinds_that_are_numbered_in_common(tmp_path: Path) -> None:
    """out.0.000, out.1.001, out.0.002, ...: a large one and a small one in turn."""
    run = Run(nprocs=4)
    for k in range(8):
        run.write(f"/s/out.{k % 2}.{k:03d}", (64, 4)[k % 2] * MIB, 10.0 * k + 2, calls=4)
    run.describe(tmp_path)


def test_equal_files_in_turn_are_one_series(tmp_path: Path) -> None:
    """Hours of a date: the sizes tell no kinds."""
    run = Run(nprocs=4)
    for k in range(8):
        run.write(f"/s/out.{k // 4}_{k % 4 * 6:02d}", (8 + k) * MIB, 10.0 * k + 2, calls=4)
    run.describe(tmp_path)


@pytest.mark.parametrize("layout", ["shared", "file-per-process"])
def test_names_that_differ_by_a_word_are_one_dump(layout: str, tmp_path: Path) -> None:
    run = Run(nprocs=4)
    for k in range(3):
        for n, word in enumerate(("velocity", "pressure", "energy")):
            name, at_s = f"/s/{word}_{10 * k:04d}", 20.0 * k + 2 + 0.2 * n
            if layout == "shared":
                run.write(f"{name}.dat", (n + 1) * 4 * MIB, at_s, calls=4)
                continue
            for rank in range(4):
                run.write(f"{name}.{rank}", (n + 1) * MIB, at_s, rank=rank)
    run.describe(tmp_path)


def test_words_far_apart_in_time_are_two_series(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    for k in range(3):
        for n, word in enumerate(("history", "restart")):
            run.write(f"/s/{word}_{k}.dat", (n + 1) * MIB, 30.0 * k + 2 + 12 * n, calls=4)
    run.describe(tmp_path)


@pytest.mark.parametrize("stations", [160, 482])
def test_many_stations_are_few_streams(stations: int, tmp_path: Path) -> None:
    """Three seismograms of each station, by the rank that has it; of more than a thousand names
    without numbers none is taken for a word."""
    run = Run(nprocs=8)
    total = [0] * 8
    for n in range(stations):
        name = "".join(chr(65 + n // 26**place % 26) for place in range(3))
        for component in "ENZ":
            size = 40_000 + 16 * (n % 9)
            run.write(f"/s/OUT/{name}.BX{component}.semd", size, 90.0 + 1e-3 * n, rank=n % 8)
            total[n % 8] += size
    run.write("/s/OUT/mesh.bin", 64 * MIB, 5.0, calls=8)
    workload = run.describe(tmp_path)
    told = any("files of different names" in note for note in workload.source.notes)
    assert told == (stations == 160)


def test_few_files_of_different_names_stay_apart(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    for n, name in enumerate(("mesh", "energies", "spectrum")):
        run.write(f"/s/{name}", MIB, 10.0 * n + 2, rank=0)
    assert len(run.describe(tmp_path).streams) == 3
