"""A file system of known behaviour: what it passes through, and how long it waits at least."""

import errno
import json
import mmap
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from nightly.rehearsal import slow
from tests.support.needs import need, needs
from tests.support.said import raises, said
from understudy.contracts.workload import load
from understudy.errors import UnderstudyError
from understudy.paths import ROOT, program, where
from understudy.producers import observed
from understudy.program.workload import row_of

WAIT_S = 0.02
COUNT = 20


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with one to mount on and one to pass through to."""
    need("FUSE")
    for name in ("mount", "backing"):
        (tmp_path / name).mkdir()
    return tmp_path


def mounted(place: Path, *options: str, before: Sequence[str] = ()):  # type: ignore[no-untyped-def]
    return slow.mounted(place / "mount", place / "backing", *options, before=before)


def lasts(action: Callable[[int], object]) -> float:
    """Seconds that so many of an action take, one after the other."""
    begin = time.monotonic()
    for n in range(COUNT):
        action(n)
    return time.monotonic() - begin


def test_all_is_passed_through(place: Path) -> None:
    mount, backing = place / "mount", place / "backing"
    with mounted(place, "--jitter", "0.5", "--seed", "7", "--write", "1us"):
        (mount / "a").write_bytes(b"x" * 300_000)
        with (mount / "a").open("ab") as file:
            file.write(b"end")
        (mount / "folder").mkdir(mode=0o750)
        (mount / "a").rename(mount / "folder" / "b")
        (mount / "link").symlink_to("folder/b")
        os.link(mount / "folder" / "b", mount / "twin")
        assert (mount / "twin").samefile(mount / "folder" / "b")
        os.truncate(mount / "twin", 300_001)
        os.utime(mount / "twin", (10, 20))
        (mount / "twin").chmod(0o640)
        assert (mount / "link").read_bytes() == b"x" * 300_000 + b"e"
        assert sorted(p.name for p in mount.iterdir()) == ["folder", "link", "twin"]
        with pytest.raises(FileNotFoundError):
            (mount / "none").read_bytes()
        with pytest.raises(OSError, match="not empty"):
            (mount / "folder").rmdir()
        (mount / "link").unlink()
    assert list(mount.iterdir()) == []  # it is unmounted
    status = (backing / "twin").stat()
    assert (status.st_size, status.st_nlink, status.st_mtime) == (300_001, 2, 20)
    assert (status.st_mode & 0o777, (backing / "folder").stat().st_mode & 0o777) == (0o640, 0o750)


def test_direct_transfers_are_passed_through(place: Path) -> None:
    """Whatever the memory in which the library of FUSE gets them begins with."""
    pages = mmap.mmap(-1, 8192)
    pages[:] = b"x" * 8192
    with mounted(place) as mount:
        descriptor = os.open(mount / "a", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
        try:
            assert os.pwrite(descriptor, pages, 0) == 8192
            pages[:] = bytes(8192)
            assert os.preadv(descriptor, [pages], 0) == 8192
        finally:
            os.close(descriptor)
    assert pages[:] == (place / "backing" / "a").read_bytes() == b"x" * 8192


def test_requests_are_counted(place: Path) -> None:
    mount = place / "mount"
    counts = mount / ".understudy-requests"
    with mounted(place, "--write", "1ms", "--direct"):
        (mount / "a").write_bytes(b"x" * 100)
        counts.write_text("")
        with (mount / "a").open("r+b", buffering=0) as file:
            for block in (b"x" * 4096, b"y" * 100, b"z"):
                file.write(block)
            os.fsync(file.fileno())
            file.seek(0)
            file.read(50)
        (mount / "b").mkdir()
        (mount / "b").rmdir()
        request_counts = json.loads(counts.read_text())
        assert request_counts["schema"] == "understudy/requests/1"
        kinds = {k: v for k, v in request_counts.items() if isinstance(v, dict)}
        numbers = {k: v["requests"] for k, v in kinds.items() if k != "stat"}
        wanted = {"open": 1, "create": 1, "remove": 1, "read": 1, "write": 3, "flush": 1}
        assert numbers == wanted
        assert (kinds["write"]["bytes"], request_counts["unaligned_writes"]) == (4197, 2)
        assert kinds["write"]["waited_s"] >= 3e-3
        # looking at the counts is no request
        assert json.loads(counts.read_text()) == request_counts
        assert sorted(p.name for p in mount.iterdir()) == ["a"]
        with pytest.raises(PermissionError), counts.open("w") as file:
            file.write("{}")
        counts.write_text("")
        assert json.loads(counts.read_text())["write"]["requests"] == 0


def test_the_player_looks_once_at_each_file_of_a_dump_and_asks_for_nothing_else(
    place: Path,
) -> None:
    """Each is looked up, created and written, and FUSE's library looks at what it creates. Then
    the player looks how large it is."""
    row = row_of(load(where("workloads") / "n-n.json"))
    sets = [{"name": "ck", "of": "each rank"}]
    write = {"write": "v", "type": "byte", "shape": [2, 40960], "transfer_bytes": 8192}
    body = ["begin", {"open": "ck", "mode": "new"}, write, "close"]
    stream = {"name": "ck", "role": "checkpoint", "method": "posix"}
    stream["steps"] = [{"at": 0.0, "repeat": 20, "every": 0.0, "do": body}]
    row |= {"ranks": 2, "sets": sets, "streams": [stream], "provenance": []}
    row["scaling"]["from_ranks"] = 2
    (place / "w.json").write_text(json.dumps(row))
    counts = place / "mount" / ".understudy-requests"
    player = ROOT / "build" / "bin" / "understudy-replay"
    with mounted(place):
        options = ["-o", place / "mount" / "run", "-O", place / "r.json", "--requests", counts]
        done = subprocess.run(
            [
                "mpirun",
                "-n",
                "2",
                player,
                "-w",
                place / "w.json",
                *options,
                "-k",
                "--time-scale",
                "0",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    request_counts = observed.requests_in(place / "r.json.last", place / "r.json.first")
    numbers = {k: v["requests"] for k, v in request_counts.items() if isinstance(v, dict)}
    wanted = {"open": 0, "create": 40, "stat": 80 + 40, "remove": 0, "read": 0, "write": 200}
    assert numbers == wanted | {"flush": 0}
    dumps = json.loads((place / "r.json").read_text())["repetitions"][0]["streams"][0]["dumps"]
    assert {dump["file_bytes"] for dump in dumps} == {81920}


SIZE, TRANSFERS = 128 << 10, 64
MOVES = {
    "sets": [{"name": "ck", "of": "each rank"}],
    "body": [
        "begin",
        {"open": "ck", "mode": "new"},
        {"write": "v", "type": "byte", "shape": [2, SIZE * TRANSFERS], "transfer_bytes": SIZE}
        | {"depth": 8},
        "close",
    ],
    "method": "uring",
}
CALLS = {
    "sets": [{"name": "ck", "of": "callers", "entries": [{}], "stored_bytes": SIZE * TRANSFERS}],
    "body": [
        {
            "calls": "ck",
            "do": [
                {"call": "open", "path": 0, "as": 0, "flags": ["write", "create"]},
                {
                    "repeat": TRANSFERS,
                    "do": [{"call": "write", "of": 0, "bytes": SIZE, "at": [0, SIZE], "depth": 8}],
                },
                {"call": "close", "of": 0},
            ],
        }
    ],
    "method": "posix",
}


@needs("FUSE", "liburing", "io_uring")
@pytest.mark.parametrize("what", ["moves", "calls"])
def test_nothing_is_left_of_a_run_that_fails_with_transfers_in_flight(
    what: str, place: Path
) -> None:
    """The kernel keeps their file open, to which FUSE's library then gives another name."""
    kind = MOVES if what == "moves" else CALLS
    row = row_of(load(where("workloads") / "n-n.json"))
    stream = {"name": "ck", "role": "checkpoint", "method": kind["method"]}
    stream["steps"] = [{"at": 0.0, "do": kind["body"]}]
    row |= {"ranks": 2, "sets": kind["sets"], "streams": [stream], "provenance": []}
    row["scaling"]["from_ranks"] = 2
    (place / "w.json").write_text(json.dumps(row))
    limited = ("bash", "-c", 'trap "" XFSZ; ulimit -f 2048; exec "$@"', "bash")
    with mounted(place, "--write", "20ms", before=limited) as mount:
        (mount / "of-another").mkdir()
        player = [program("understudy-replay"), "-w", place / "w.json", "-o", mount / "run"]
        done = subprocess.run(
            ["mpirun", "-n", "2", *player, "-O", place / "r.json"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode != 0
        assert os.strerror(errno.EFBIG) in done.stderr, done.stderr
        assert [path.name for path in mount.iterdir()] == ["of-another"], done.stderr


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("fifo", "cannot read the requests in fifo: expected a regular file"),
        (".", "cannot read the requests in .: expected a regular file"),
        ("taken", "cannot write r.json.last: Is a directory"),
    ],
)
def test_requests_that_cannot_be_told_end_the_run_before_it_begins(
    what: str, message: str, tmp_path: Path
) -> None:
    """Nothing is measured in vain, and nothing half written is left."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "taken").write_text("{}")
    if what == "taken":
        (tmp_path / "r.json.last").mkdir()
    before = sorted(tmp_path.iterdir())
    player = ROOT / "build" / "bin" / "understudy-replay"
    options = ["-o", "run", "-O", "r.json", "--requests", what, "--time-scale", "0"]
    workload = ROOT / "workloads" / "n-n.json"
    done = subprocess.run(
        ["mpirun", "-n", "4", player, "-w", workload, "--bytes-scale", "0.001", *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0 and message in done.stderr, done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_attributes_are_kept_as_long_as_said(place: Path) -> None:
    looks = {}
    for keep in ("3600s", "10ms"):
        with mounted(place, "--keep", keep):
            (place / "mount" / keep).touch()
            counts = place / "mount" / ".understudy-requests"
            counts.write_text("")
            for _ in range(3):
                time.sleep(0.05)
                (place / "mount" / keep).stat()
            looks[keep] = json.loads(counts.read_text())["stat"]["requests"]
    assert looks["3600s"] <= 1 and looks["10ms"] >= 3


@pytest.mark.parametrize("what", ["create", "open", "stat", "remove", "flush"])
def test_requests_wait(what: str, place: Path) -> None:
    for n in range(COUNT):
        (place / "backing" / f"there{n}").write_text("1")

    def act(n: int) -> None:
        path = place / "mount" / (f"new{n}" if what == "create" else f"there{n}")
        if what == "stat":
            path.stat()
        elif what == "remove":
            path.unlink()
        else:
            fd = os.open(path, os.O_CREAT | os.O_WRONLY)
            if what == "flush":
                os.fsync(fd)
            os.close(fd)

    with mounted(place, f"--{what}", f"{1e3 * WAIT_S:g}ms"):
        assert lasts(act) >= COUNT * WAIT_S


@pytest.mark.parametrize("parallel", [False, True])
def test_writes_wait_one_after_the_other(parallel: bool, place: Path) -> None:
    """Of so many ranks; at the same time they take as long as one, at least."""
    options = ["--write", "50ms", "--direct", *(["--parallel-data"] if parallel else [])]
    with mounted(place, *options):
        begin = time.monotonic()
        threads = [
            threading.Thread(target=(place / "mount" / f"{n}").write_bytes, args=(b"x",))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        passed_s = time.monotonic() - begin
    assert passed_s >= (0.05 if parallel else 8 * 0.05)


def test_a_rate_is_never_exceeded(place: Path) -> None:
    with mounted(place, "--write-rate", "10MB", "--read-rate", "5MB", "--direct"):
        begin = time.monotonic()
        (place / "mount" / "a").write_bytes(bytes(2_000_000))
        middle = time.monotonic()
        assert len((place / "mount" / "a").read_bytes()) == 2_000_000
        end = time.monotonic()
    assert middle - begin >= 0.2
    assert end - middle >= 0.4


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--write", "2"], "--write 2: expected a time of at most 3600s with us, ms or s"),
        (["--open", "-1ms"], "--open -1ms: expected a time"),
        (["--open", "nans"], "--open nans: expected a time"),
        (["--open", "0x10ms"], "--open 0x10ms: expected a time"),
        (["--open", " 2ms"], "--open  2ms: expected a time"),
        (["--jitter", "2"], "--jitter 2: expected a number from 0 to 1"),
        (["--seed", "x"], "--seed x: expected a whole number from 0 to 2^32 - 1"),
        (["--write-rate", "0"], "--write-rate 0: expected 1 to 2^63 - 1 bytes"),
        (["--nix"], "--nix: no such option"),
        (["{}"], "expected two directories, BACKING and MOUNT, found 1"),
        (["{}/none", "{}"], "cannot open the directory"),
        (["{}", "{}/none"], "cannot find the directory"),
        (["{}", "{}"], "BACKING and MOUNT are one directory"),
        (["{}/..", "{}"], "MOUNT is below BACKING"),
        (["/", "{}"], "MOUNT is below BACKING"),
        (["{}", "{}/.."], "is not empty; expected an empty directory to mount on"),
    ],
)
def test_what_cannot_be_mounted_is_one_message(
    words: list[str], message: str, place: Path
) -> None:
    command = [program(slow.SLOWFS), *(word.format(place / "mount") for word in words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("understudy: ") and done.stderr.count("\n") == 1
    assert message in done.stderr


def test_a_mount_that_fails_says_why(place: Path) -> None:
    (place / "mount" / "a").touch()
    with raises(UnderstudyError, "empty"), mounted(place):
        pass


def test_the_storages_of_the_rehearsal_are_listed(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "nightly.rehearsal.slow"]
    done = subprocess.run([*words, "--list"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "w500      --write 2ms" in done.stdout.splitlines()
    done = subprocess.run([*words, "w1"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and said("no-such-storage-expected", done.stderr)
