"""understudy archive: the bytes of darshan-convert, and an original that nothing can lose."""

import csv
import errno
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.darshanlog.corpus import real_logs
from tests.support import faulty
from tests.support.logs import posix_blocks, posix_names
from tests.support.needs import needs
from understudy.cli import main
from understudy.darshanlog import layouts
from understudy.darshanlog.archive import (
    ALREADY,
    LARGER,
    LINKED,
    REPLACED,
    WRITTEN,
    Options,
    archive,
)
from understudy.darshanlog.convert import OF_CONVERT, Source, convert
from understudy.darshanlog.sizes import log_size
from understudy.darshanlog.workers import each, stopping
from understudy.darshanlog.writer import write_log
from understudy.errors import UnderstudyError
from understudy.paths import ROOT

FILES = 300
COMPRESSIONS = ("zlib", "bzip2")


def darshan_convert() -> str | None:
    """Path from DARSHAN_RUNTIME, or PATH."""
    prefix = os.environ.get("DARSHAN_RUNTIME")
    return shutil.which("darshan-convert", path=f"{prefix}/bin" if prefix else None)


def log(path: Path, files: int = FILES, **more: object) -> Path:
    segments = [(i << 20, 1 << 20, i / 8, i / 4) for i in range(40)]
    options: dict[str, object] = {
        "stream_bytes": 3000,
        "mounts": [("/", "ext4")],
        "names": posix_names(files),
        "POSIX": posix_blocks(files),
        "MPIIO": [{"id": n, "MPIIO_INDEP_OPENS": n} for n in range(20)],
        "DXT_POSIX": [{"id": 1, "write_segments": segments, "read_segments": segments}] * 3,
        "HEATMAP": [{"id": 1, "bin_width_s": 0.1, "write_bins": [7] * 99, "read_bins": [0] * 99}],
    }
    return write_log(path, **(options | more))  # type: ignore[arg-type]


def plain(path: Path) -> dict[str, bytes]:
    """The plain bytes of all regions, and what else the header says."""
    with Source(path, whole=False) as source:
        regions = {part.name: source.region(part).read(1 << 30) for part in source.parts}
        versions = [(m.name, m.version, m.partial) for m in source.header.modules.values()]
        return regions | {"": repr((source.header.version, source.partial, versions)).encode()}


def converted(source: Path, target: Path, compression: str, threads: int = 1) -> bytes:
    with Source(source) as opened, target.open("wb") as file:
        convert(opened, file.fileno(), compression, threads=threads)
    return target.read_bytes()


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["archive", *map(str, arguments)])


# -- the bytes ------------------------------------------------------------------------------------


def modules(path: Path) -> dict[str, int] | None:
    """Versions by name; None where darshan-convert changes more than the compression."""
    with Source(path) as source:
        if (source.header.version, source.header.order) != OF_CONVERT:
            return None
        return {m.name: m.version for m in source.header.modules.values()}


def regions(path: Path) -> dict[str, bytes]:
    """As they are in the file; of HEATMAP, whose records darshan-convert fills with addresses of
    its own memory, the length of the plain bytes."""
    data = path.read_bytes()
    with Source(path) as source:
        return {
            part.name: str(len(source.region(part).read(1 << 30))).encode()
            if part.name == "module HEATMAP"
            else data[part.offset : part.offset + part.length_bytes]
            for part in source.parts
        }


def like_those_of_darshan(folder: Path) -> Iterator[Path]:
    plain: dict[str, object] = {"HEATMAP": (), "DXT_POSIX": ()}  # whose version differs by build
    yield log(folder / "many.darshan", **plain)
    yield log(folder / "alone.darshan", 1, **plain)
    yield log(folder / "partial.darshan", **plain, partial=["POSIX"], exe="/bin/app\x7f -x 'a b'")
    again = [(1, b"/a"), (2, b""), (3, b"/c"), (2, b"/b"), (1, b"/a"), (2, b"/other"), (4, b"")]
    yield log(folder / "again.darshan", names=again, **plain)
    mounts = (("/", "ext4"), ("/scratch", "lustre"), ("/project", "nfs4"), ("/d", "x"))
    yield log(
        folder / "mounts.darshan",
        mounts=mounts,
        **plain,
        metadata={"lib_ver": "3.4.4", "h": "i=1"},
    )
    yield write_log(folder / "job.darshan", names=())
    yield write_log(
        folder / "dxt.darshan", DXT_POSIX=[{"id": 1, "write_segments": [(0, 1, 1, 2)]}]
    )
    for number, path in enumerate(real_logs()):
        if modules(path):
            yield shutil.copy(path, folder / f"real{number}.darshan")


@needs("darshan-convert")
def test_same_bytes_as_darshan_convert(tmp_path: Path) -> None:
    program, compared, whole = darshan_convert(), 0, 0
    assert program is not None
    for path in like_those_of_darshan(tmp_path):
        source = path
        for compression in ("bzip2", "zlib"):  # there, and back again
            theirs = tmp_path / f"theirs.{compression}"
            theirs.unlink(missing_ok=True)
            option = ["--bzip2"] if compression == "bzip2" else []
            done = subprocess.run(
                [program, *option, source, theirs], capture_output=True, check=False
            )
            if done.returncode or modules(theirs) != modules(source):  # not of its own version
                continue
            for threads in (1, 3):
                ours = converted(source, tmp_path / "ours", compression, threads)
                if "HEATMAP" not in (modules(source) or {}):
                    assert ours == theirs.read_bytes(), f"{path.name} to {compression}"
                    whole += 1
                assert regions(tmp_path / "ours") == regions(theirs), path.name
            source = Path(shutil.copy(theirs, tmp_path / f"{path.stem}.{compression}.darshan"))
            compared += 1
    assert compared >= 20 and whole >= 20


@pytest.mark.parametrize("version", sorted(layouts.LOG_FORMATS))
@pytest.mark.parametrize("byte_order", ["little", "big"])
@pytest.mark.parametrize("compression", layouts.COMPRESSIONS)
def test_nothing_but_the_compression_changes(
    version: str, byte_order: str, compression: str, tmp_path: Path
) -> None:
    modules = {"HEATMAP": ()} if version < "3.20" else {}
    path = log(
        tmp_path / "a.darshan",
        version=version,
        byte_order=byte_order,
        compression=compression,
        partial=["POSIX"],
        **modules,
    )
    before = plain(path)
    for to in COMPRESSIONS:
        for threads in (1, 2):
            target = tmp_path / f"{to}.{threads}"
            converted(path, target, to, threads)
            assert plain(target) == before
            assert log_size(target).compression == to
    assert (tmp_path / "zlib.1").read_bytes() == (tmp_path / "zlib.2").read_bytes()


def test_modules_that_are_not_known_stay(tmp_path: Path) -> None:
    path = log(tmp_path / "a.darshan", raw={40: (7, b"newer" * 99), 14: (1, b"APMPI" * 99)})
    before = plain(path)
    assert archive(path, Options(always=True, check=True)).state == REPLACED
    assert plain(path) == before and b"newer" * 99 in before.values()


# -- the original ---------------------------------------------------------------------------------


def test_original_survives_an_error_at_every_step(tmp_path: Path) -> None:
    path = log(tmp_path / "a.darshan", 40)
    original = path.read_bytes()
    result = converted(path, tmp_path / "made", "bzip2")
    for threads in (1, 2):
        options = Options(threads=threads, check=True, always=True)
        with faulty.at_step(-1, lambda: None) as calls:
            archive(path, options)
        assert path.read_bytes() == result and len(calls) > 20
        for step, code in ((n, c) for n in range(len(calls)) for c in (errno.ENOSPC, errno.EIO)):
            path.write_bytes(original)
            with faulty.at_step(step, faulty.raises(code)) as calls:
                try:
                    archive(path, options)
                    failed = False
                except UnderstudyError as error:
                    failed = True
                    assert str(tmp_path) in str(error)
            if step >= len(calls):  # with threads, their number differs a little
                continue
            where = f"{calls[step]}, call {step}"
            allowed = (original,) if failed else (result,)
            if "replace" in calls[:step]:
                allowed = (original, result)
            assert path.read_bytes() in allowed, where
            left = {p.name for p in tmp_path.iterdir()} - {"a.darshan", "made"}
            assert not left or calls[step] == "unlink", where


def kill_at_each_step(folder: Path) -> None:
    """Ends with status 0 where no step loses the original; started as a process of its own."""
    path = log(folder / "a.darshan", 40)
    original = path.read_bytes()
    result = converted(path, folder / "made", "bzip2")
    for threads in (1, 2):
        step = 0
        while faulty.died(lambda: archive(path, Options(threads=threads, always=True)), step):  # noqa: B023
            assert path.read_bytes() in (original, result), f"killed at step {step}"
            path.write_bytes(original)
            step += 1
        assert step > 20 and path.read_bytes() == result
        path.write_bytes(original)


def test_original_survives_a_kill_at_every_step(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        "from studies.darshan.tests.test_archive import kill_at_each_step\n"
        "kill_at_each_step(Path(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'python'}"},
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_file_system_that_takes_no_more(tmp_path: Path) -> None:
    path = log(tmp_path / "a.darshan")
    original = path.read_bytes()
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    former = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limit[1]))
        with pytest.raises(UnderstudyError, match="File too large"):
            archive(path, Options(always=True))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, former)
    assert path.read_bytes() == original
    assert [p.name for p in tmp_path.iterdir()] == ["a.darshan"]


def edited(data: bytes) -> Iterator[tuple[str, bytes]]:
    """A log with a byte changed at each 1/200 of its length, and each field of its header."""
    shape = layouts.LOG_FORMATS["3.41"]
    used = [shape.name_map_offset + 8 * n for n in range(40)]
    versions = [shape.versions_offset + 4 * n for n in range(20)]
    fields = [*range(24), *(f + k for f in (*used, 24) for k in (0, 1, 7)), *versions]
    offsets = {*fields, *range(0, len(data), max(1, len(data) // 200)), len(data) - 1}
    for offset in sorted(offsets):
        for flip in (0x01, 0x80):
            changed_log = bytearray(data)
            changed_log[offset] ^= flip
            yield f"byte {offset} ^ {flip:#x}", bytes(changed_log)


def test_damaged_log_is_kept_or_converted_as_it_is(tmp_path: Path) -> None:
    path = log(tmp_path / "a.darshan", 60)
    refused, data = 0, path.read_bytes()
    cases = list(edited(data))
    for what, damaged in cases:
        path.write_bytes(damaged)
        try:
            before = plain(path)
        except UnderstudyError:
            before = None
        try:
            archive(path, Options(always=True, check=True))
        except UnderstudyError as error:
            refused += 1
            assert "\n" not in str(error)
            assert path.read_bytes() == damaged, what
        else:
            assert before is not None and plain(path) == before, what
    assert len(cases) > 500 and refused > len(cases) / 2


def test_damaged_log_shows_a_message(tmp_path: Path) -> None:
    path = log(tmp_path / "a.darshan", 60)
    said = 0
    for what, damaged in edited(path.read_bytes()):
        path.write_bytes(damaged)
        done = CliRunner().invoke(main, ["show", str(path)])
        assert done.exit_code in (0, 2) and (
            done.exception is None or isinstance(done.exception, SystemExit)
        ), what
        assert done.exit_code == 0 or done.stderr.count("\n") == 1, what
        said += done.exit_code != 0
    assert said > 250


@pytest.mark.parametrize("cut", [1, 100, 2000])
def test_bytes_after_the_last_region_are_not_dropped(cut: int, tmp_path: Path) -> None:
    path = log(tmp_path / "a.darshan")
    path.write_bytes(path.read_bytes() + b"x" * cut)
    before = path.read_bytes()
    with pytest.raises(UnderstudyError, match="regions of the header end at byte"):
        archive(path, Options(always=True))
    assert path.read_bytes() == before


def test_region_that_the_header_hides_is_not_dropped(tmp_path: Path) -> None:
    path = log(tmp_path / "a.darshan")
    data = bytearray(path.read_bytes())
    at = layouts.LOG_FORMATS["3.41"].name_map_offset + 16 * 3  # MPI-IO
    struct.pack_into("<2Q", data, at, 0, 0)
    path.write_bytes(data)
    with pytest.raises(UnderstudyError, match="where the region before it ends"):
        archive(path, Options(always=True))
    assert path.read_bytes() == bytes(data)


def test_log_that_changes_meanwhile_is_kept(tmp_path: Path) -> None:
    path = log(tmp_path / "a.darshan")
    other = log(tmp_path / "b.darshan", 10).read_bytes()

    def change(_: int) -> None:
        path.write_bytes(other)

    with pytest.raises(UnderstudyError):
        archive(path, Options(always=True), tick=change)
    assert path.read_bytes() == other


def test_mode_times_and_links_stay(tmp_path: Path) -> None:
    path = log(tmp_path / "a.darshan")
    path.chmod(0o440)
    os.utime(path, ns=(1_600_000_000_000_000_000, 1_600_000_000_123_456_789))
    link = tmp_path / "link.darshan"
    link.symlink_to(path.name)
    assert archive(link, Options()).state == REPLACED
    status = path.stat()
    assert link.is_symlink() and status.st_mode & 0o777 == 0o440
    assert status.st_mtime_ns == 1_600_000_000_123_456_789
    assert log_size(path).compression == "bzip2"


def test_hard_links_stay(tmp_path: Path) -> None:
    path = log(tmp_path / "a.darshan")
    for name in "bcd":
        (tmp_path / f"{name}.darshan").hardlink_to(path)
    before, table = path.read_bytes(), tmp_path / "table.csv"
    done = run(tmp_path, "--csv", table)
    assert done.exit_code == 0 and "0 of 4 logs converted" in done.stdout
    assert done.stdout.count("kept: several hard links") == 4
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert {(row["state"], row["reason"][:19]) for row in rows} == {
        (LINKED, "it has 4 hard links")
    }
    assert path.stat().st_nlink == 4 and path.read_bytes() == before
    (tmp_path / "into").mkdir()
    assert archive(path, Options(into=tmp_path / "into")).state == WRITTEN
    assert "1 of 1 logs converted" in run(path, "--break-links").stdout
    assert path.stat().st_nlink == 1 and log_size(path).compression == "bzip2"
    assert (tmp_path / "b.darshan").read_bytes() == before


# -- the command ----------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    logs = tmp_path / "logs"
    logs.mkdir()
    log(logs / "many.darshan")
    log(logs / "more.darshan", 400)
    write_log(logs / "one.darshan", POSIX=[{"id": 1}], names={1: b"/a"})  # too small to gain
    log(logs / "done.darshan", compression="bzip2")
    return logs


@pytest.mark.parametrize("jobs", [1, 2])
def test_folder_is_archived(jobs: int, folder: Path, tmp_path: Path) -> None:
    before = {p.name: p.stat().st_size for p in folder.iterdir()}
    table = tmp_path / "table.csv"
    done = run(folder, "--jobs", jobs, "--verify", "--csv", table)
    assert done.exit_code == 0, done.output
    assert "2 of 4 logs converted" in done.stdout and done.stderr == ""
    rows = {Path(row["log"]).name: row for row in csv.DictReader(table.read_text().splitlines())}
    assert rows["many.darshan"]["state"] == REPLACED and rows["many.darshan"]["files"] == "300"
    assert rows["one.darshan"]["state"] == LARGER and rows["done.darshan"]["state"] == ALREADY
    for name, size in before.items():
        assert rows[name]["original_bytes"] == str(size)
        now = (folder / name).stat().st_size
        assert now < size if rows[name]["state"] == REPLACED else now == size
    assert "-" in rows["one.darshan"]["decrease_percent"]
    assert {p.name for p in folder.iterdir()} == set(before)


def test_one_damaged_log_does_not_stop_the_others(folder: Path) -> None:
    bad = folder / "more.darshan"
    data = bytearray(bad.read_bytes())
    data[-40] ^= 1
    bad.write_bytes(data)
    (folder / "empty.darshan").write_bytes(b"")
    gone = folder / "gone.darshan"
    table = folder.parent / "table.csv"
    done = run(folder, gone, "--csv", table)
    rows = {Path(row["log"]).name: row for row in csv.DictReader(table.read_text().splitlines())}
    assert len(rows) == 6
    for path, size in ((bad, str(len(data))), (folder / "empty.darshan", "0"), (gone, "0")):
        row = rows[path.name]
        assert row["state"] == "failed" and str(path) in row["reason"]
        assert (row["original_bytes"], row["converted_bytes"], row["files"]) == (size, "", "")
        line = next(line for line in done.stdout.splitlines() if line.startswith(path.name))
        assert "kept: cannot be converted" in line
    assert rows["many.darshan"]["reason"] == ""
    assert done.exit_code == 2 and "3 of 6 logs cannot be converted; they are kept" in done.stderr
    assert str(bad) in done.stderr and "1 of 6 logs converted" in done.stdout
    assert bad.read_bytes() == bytes(data)


@pytest.mark.parametrize("jobs", [1, 4])
def test_log_in_several_spellings_is_one(jobs: int, folder: Path, tmp_path: Path) -> None:
    path = folder / "many.darshan"
    (tmp_path / "link.darshan").symlink_to(path)
    (tmp_path / "linked").symlink_to(folder)
    gone = tmp_path / "gone.darshan"
    names = (
        path,
        f"{folder}/../logs/many.darshan",
        tmp_path / "link.darshan",
        folder,
        tmp_path / "linked" / path.name,
        path,
    )
    done = run(*names, "--jobs", jobs, "--always")
    assert done.exit_code == 0 and "4 of 4 logs converted" in done.stdout, done.stderr
    done = run(gone, gone, "--jobs", jobs)
    assert done.exit_code == 2 and "1 of 1 logs cannot be converted" in done.stderr


def test_results_elsewhere(folder: Path, tmp_path: Path) -> None:
    into = tmp_path / "into"
    into.mkdir()
    (into / "more.darshan").write_text("mine")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    done = run(folder, "--into", into, "--always")
    assert done.exit_code == 2 and "more.darshan: exists already" in done.stderr
    assert (into / "more.darshan").read_text() == "mine"
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    assert {p.name for p in into.iterdir()} == set(before)
    assert plain(into / "many.darshan") == plain(folder / "many.darshan")


def test_the_directory_of_the_results_is_created(folder: Path, tmp_path: Path) -> None:
    into = tmp_path / "new" / "results"
    done = run(folder, "--into", into, "--always", "--csv", into / "table.csv")
    assert done.exit_code == 0, done.output
    assert {p.name for p in into.iterdir()} == {*(p.name for p in folder.iterdir()), "table.csv"}
    (tmp_path / "file").touch()
    done = run(folder, "--into", tmp_path / "file" / "results")
    assert done.exit_code == 2 and "file/results: cannot be created: " in done.stderr


def test_there_and_back_again(tmp_path: Path) -> None:
    path = log(tmp_path / "a.darshan")
    assert run(path, "--jobs", 2).exit_code == 0
    first = plain(path)
    small = path.stat().st_size
    done = run(path, "--to", "zlib")
    assert done.exit_code == 0 and "1 of 1 logs converted" in done.stdout
    assert log_size(path).compression == "zlib" and plain(path) == first
    assert path.stat().st_size > small  # what --to bzip2 would keep
    assert "more" in done.stdout and "less" not in done.stdout


@pytest.mark.parametrize(
    "name",
    [
        "logs/many.darshan",
        "logs/../logs/many.darshan",
        "link",
        "hard",
        "into/many.darshan",
        "there",
        "broken",
        "logs",
        "none/table.csv",
    ],
)
def test_table_replaces_no_log_and_no_file(name: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    (tmp_path / "there").write_text("mine")
    (tmp_path / "link").symlink_to("logs/many.darshan")
    (tmp_path / "hard").hardlink_to(folder / "many.darshan")
    (tmp_path / "broken").symlink_to("nowhere")
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    for more in ([], ["--into", tmp_path / "into"]):
        force = [] if name in ("there", "broken") else ["--force"]
        if name.startswith("into") and not more:
            continue
        done = run(folder, "--csv", tmp_path / name, *force, *more)
        assert done.exit_code == 2, done.output
        assert any(why in done.stderr for why in ("--csv", "is read by", "exists already"))
        assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


@pytest.mark.parametrize("what", ["missing", "folder", "fifo", "text", "empty"])
def test_what_is_no_log(what: str, tmp_path: Path) -> None:
    path = tmp_path / "a.darshan"
    if what == "folder":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    elif what != "missing":
        path.write_text("hello, world\n" * 3 if what == "text" else "")
    done = run(path)
    assert done.exit_code == 2 and str(path) in done.stderr
    assert "Traceback" not in done.output


# -- a process that is ended ----------------------------------------------------------------------


def of_session(session: int) -> list[int]:
    """The processes that a process started, and itself."""
    processes = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                processes.append(int(stat.parent.name))
    return processes


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120  # only a failure takes so long
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT", "SIGKILL", "SIGTERM to all"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_signal_leaves_no_process_and_all_logs(jobs: int, number: str, tmp_path: Path) -> None:
    names = [f"{n}.darshan" for n in range(4)]
    log(tmp_path / names[0], 30_000)  # seconds to convert
    for name in names[1:]:
        shutil.copy(tmp_path / names[0], tmp_path / name)
    before = plain(tmp_path / names[0])
    started = subprocess.Popen(
        [sys.executable, "-m", "understudy", "archive", "--jobs", str(jobs), tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "python")},
        # A shell without job control lets what it starts in the background ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    until(lambda: any(tmp_path.glob(".*.part")))
    sent = signal.Signals[number.split()[0]]
    (os.killpg if "all" in number else os.kill)(started.pid, sent)
    stdout, stderr = started.communicate(timeout=120)
    until(lambda: not of_session(started.pid))
    if sent == signal.SIGKILL:
        assert started.returncode == -sent
    else:
        assert started.returncode == 128 + sent
        assert stdout == "" and stderr.count("\n") == 1, stderr
        assert f"stopped by {sent.name} after " in stderr and " of 4 logs; " in stderr
    left = {path.name for path in tmp_path.iterdir()}
    if sent == signal.SIGKILL and jobs == 1:  # as the manual says
        left = {name for name in left if not name.endswith(".part")}
    assert left == set(names)
    assert all(plain(tmp_path / name) == before for name in names)


def shy(number: int, check: Callable[[], None]) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    check()
    return number


def test_killed_worker_costs_its_task_alone() -> None:
    with stopping() as stop:
        assert dict(each(range(5), shy, 2, stop)) == {0: 0, 1: None, 2: 2, 3: 3, 4: 4}


# -- show -----------------------------------------------------------------------------------------


def test_show_tells_what_takes_the_bytes(tmp_path: Path) -> None:
    path = log(tmp_path / "a.darshan", partial=["POSIX"])
    done = CliRunner().invoke(main, ["show", str(path)])
    assert done.exit_code == 0, done.output
    lines = {line.split("  ")[0]: line.split() for line in done.stdout.splitlines() if line}
    assert lines["header"][-3:] == ["1,328", "1,328", "1.0"]
    posix, names = lines["POSIX"], lines["the names"]
    assert posix[1:3] == ["4", "300"] and "partial:" in posix
    assert names[2] == "300"
    assert lines["HEATMAP"][1:4] == ["1", "1", "1"] and lines["DXT_POSIX"][2] == "3"
    size = log_size(path)
    assert size.header_bytes + sum(r.bytes for r in size.regions) == path.stat().st_size
    assert [r.plain_bytes for r in size.regions if r.name == "POSIX"] == [300 * 704]
    assert "job record 1,080 B" in done.stdout and f"{path.stat().st_size:,} B" in done.stdout


def test_show_of_an_old_log(tmp_path: Path) -> None:
    path = log(tmp_path / "old", version="3.00", byte_order="big", HEATMAP=())
    path = log(tmp_path / "old", version="3.10", byte_order="big", HEATMAP=())
    done = CliRunner().invoke(main, ["show", str(path)])
    assert done.exit_code == 0, done.output
    assert "header 360 B, job record 1,064 B" in done.stdout and "big-endian" in done.stdout
