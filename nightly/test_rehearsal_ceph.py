"""The rehearsal on CephFS: its arithmetic, its messages, and that it leaves nothing behind.

The cases themselves are those of `make rehearse FS=ceph`.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nightly.rehearsal.ceph import cases, cluster, sweep
from nightly.rehearsal.ceph.cluster import Failure
from nightly.rehearsal.ceph.placement import name_hash, spread
from nightly.rehearsal.ceph.stage import Skip
from nightly.rehearsal.ceph.striping import Layout, expected_rate
from nightly.rehearsal.ceph.sweep import Point, decided
from tests.support import player
from tests.support.needs import needs
from tests.support.said import raises, said
from understudy.paths import ROOT

KIB = 1 << 10
MIB = 1 << 20


def layout(unit: int, count: int, object_size: int) -> Layout:
    return Layout(unit=unit, count=count, object_size=object_size, pool="data")


@pytest.mark.parametrize(
    ("of", "size", "expected"),
    [
        (layout(MIB, 1, 4 * MIB), 0, {}),
        (layout(MIB, 1, 4 * MIB), 5, {0: 5}),
        (layout(4 * MIB, 1, 4 * MIB), 9 * MIB, {0: 4 * MIB, 1: 4 * MIB, 2: MIB}),
        (layout(MIB, 3, 4 * MIB), 4 * MIB + 1, {0: 2 * MIB, 1: MIB + 1, 2: MIB}),
        # The second set of objects begins when the first is full.
        (
            layout(64 * KIB, 2, 128 * KIB),
            300 * KIB,
            {0: 128 * KIB, 1: 128 * KIB, 2: 44 * KIB},
        ),
    ],
)
def test_objects_of_a_file(of: Layout, size: int, expected: dict[int, int]) -> None:
    assert of.objects(size) == expected
    assert sum(of.objects(size).values()) == size


def test_the_slowest_osd_decides() -> None:
    assert expected_rate([1, 0, 0, 0], [10, 10, 10, 10]) == 10
    assert expected_rate([1, 1, 1, 1], [10, 10, 10, 10]) == 40
    assert expected_rate([2, 1, 1, 0], [10, 10, 10, 10]) == 20  # two stripes on one OSD
    assert expected_rate([1, 1, 1, 1], [10, 10, 10, 2]) == 8  # a straggler
    assert expected_rate([1, 1, 1, 0], [10, 10, 10, 2]) == 30


def test_stripes_on_different_osds() -> None:
    asked: list[str] = []

    def osd_of(name: str) -> int:
        asked.append(name)
        return int(name[-1])

    assert spread(0x10000000001, 3, osd_of)
    assert asked == [f"10000000001.0000000{number}" for number in range(3)]
    assert not spread(0x10000000001, 2, lambda _: 0)


@pytest.mark.parametrize(
    ("name", "expected"),  # as `ceph osd map` of Ceph 16.2 states
    [
        ("a", 0x29EEC818),
        ("10000000001.00000000", 0xC9E0747),
        ("abcdefghijk", 0xE52B8E4C),
        ("abcdefghijkl", 0xB1B3EA5),
        ("abcdefghijklmnopqrstuvw", 0x68E5FF21),
        ("é", 0xD6F31281),
        ("x" * 36, 0x5D3A1779),
    ],
)
def test_hash_of_an_object(name: str, expected: int) -> None:
    assert name_hash(name) == expected


def runs(*rates: float, count: int = 4) -> list[Point]:
    return [Point(count=count, rate=rate, expected=100, shares=[0.25] * 4) for rate in rates]


def test_a_run_on_a_busy_host_is_repeated_until_one_decides() -> None:
    given = iter(runs(10, 59, 90, 100))
    assert [point.rate for point in decided(lambda: next(given))] == [10, 59, 90]
    never = decided(lambda: runs(10)[0])
    assert len(never) == sweep.TRIES
    with pytest.raises(Skip, match="too busy"):
        sweep.check(never)
    assert "4: 0.0 (the fastest of 3; 0.90" in sweep.check(runs(10, 59, 90))
    with raises(Failure, "faster-than-osds"):
        sweep.check(runs(10, 126))
    assert sweep.growth([*runs(10, 90), *runs(30, 20, count=2)], 2, 4) == 3


def test_a_host_that_stands_still_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = iter([0, 90, 180, 181, 182])
    monkeypatch.setattr(cluster.time, "monotonic", lambda: next(now_s))
    monkeypatch.setattr(cluster.time, "sleep", lambda _: None)
    looks = iter([False, False, False, True])
    cluster.until("it", lambda: next(looks), 10)
    now_s = iter([0, *range(1, 99)])
    with raises(Failure, "within"):
        cluster.until("it", lambda: False, 10)


def rehearse(*words: str, **environment: str) -> "subprocess.Popen[str]":
    programs = [str(Path(player.program()).parent), str(Path(sys.executable).parent)]
    path = ":".join([*programs, os.environ["PATH"]])
    return subprocess.Popen(
        [sys.executable, "-m", "nightly.rehearsal.ceph", *words],
        cwd=ROOT,
        env={**os.environ, "PATH": path, **environment},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def test_without_packages_it_says_which(tmp_path: Path) -> None:
    process = rehearse(PATH=str(tmp_path))
    out, err = process.communicate(timeout=600)
    assert process.returncode == 1
    assert out == ""
    said("rehearsal-cephfs-ceph-mon", err)
    assert "apt-get install ceph-mon" in err
    assert len(err.splitlines()) == 1


def test_invalid_options() -> None:
    for words, text in ((["nix"], "nix: no such case; expected layouts,"), (["--osds=2"], "2: ")):
        process = rehearse(*words)
        out, err = process.communicate(timeout=600)
        assert process.returncode == 2
        assert out == ""
        assert text in err


def test_the_cases_are_listed() -> None:
    out, _ = rehearse("--list").communicate(timeout=600)
    assert [line.split()[0] for line in out.splitlines()] == list(cases.CASES)
    assert len(cases.CASES) > 10


needs_ceph = needs("Ceph")


def left_in(folder: Path) -> Iterator[str]:
    """Files, mounts and processes of a rehearsal whose temporary directory is below `folder`."""
    yield from (str(path) for path in folder.iterdir())
    yield from (
        row for row in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in row
    )
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in words:
            yield words.decode(errors="replace")


@needs_ceph
def test_a_rehearsal_leaves_nothing(tmp_path: Path) -> None:
    process = rehearse("object-sets", "directory-default", TMPDIR=str(tmp_path))
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, out + err
    assert "2 passed, 0 failed, 0 skipped" in out
    assert list(left_in(tmp_path)) == []


@needs_ceph
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_rehearsal_that_is_ended_leaves_nothing(tmp_path: Path, number: int) -> None:
    process = rehearse("layouts", TMPDIR=str(tmp_path))
    assert process.stdout is not None
    assert "is up" in process.stdout.readline()
    assert any("ceph-osd" in text for text in left_in(tmp_path))
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    process.communicate(timeout=600)
    assert process.returncode != 0
    end = time.monotonic() + 60  # for processes to end that have been killed
    while (left := list(left_in(tmp_path))) and time.monotonic() < end:
        if number == signal.SIGKILL:  # nobody is left to remove the files
            left = [text for text in left if not Path(text).is_dir()]
        if not left:
            break
        time.sleep(0.1)
    assert left == []
