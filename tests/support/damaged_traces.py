"""Damaged traces of calls: of strace and of Recorder."""

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

from tests.support import recorder

_FILE = "/scratch/run/a"
_STRACE = """7 1.0 openat(AT_FDCWD</d>, "a", O_RDWR|O_CREAT, 0666) = 3</d/a> <0.000001>
7 1.1 write(3</d/a>, ""..., 10) = 10 <0.000001>
7 1.1 clone(child_stack=NULL, flags=SIGCHLD) = 8 <0.000001>
7 1.1 write(1</d/out>, ""..., 10) = 10 <0.000001>
8 1.2 read(3</d/a>,  <unfinished ...>
7 1.2 lseek(3</d/a>, 0, SEEK_END) = 10 <0.1>
8 1.3 <... read resumed>""..., 4096) = 10 <0.1>
8 1.3 rename("/d/a", "/d/b") = 0 <0.1>
7 1.4 newfstatat(3</d/a>, "", {st_mode=S_IFREG, st_size=10}, AT_EMPTY_PATH) = 0
7 1.5 copy_file_range(3</d/a>, NULL, 1</d/out>, NULL, 10, 0) = 10 <0.1>
7 1.6 dup2(3</d/a>, 9) = 9</d/a> <0.1>
7 1.6 io_submit(0x7f, 2, [{aio_data=0x1, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3</d/a>, \
aio_buf="", aio_nbytes=4, aio_offset=0}, {aio_data=0x2, aio_lio_opcode=IOCB_CMD_PWRITEV, \
aio_fildes=3</d/a>, aio_buf=[{iov_base="", iov_len=9}], aio_nbytes=1, aio_offset=9}]) = 2 <0.1>
7 1.7 io_getevents(0x7f, 1, 8, [{data=0x1, obj=0x2, res=3, res2=0}], NULL) = 1 <0.1>
8 1.6 pread64(3</d/a>, ""..., 4, 0) = 4 <0.2>
7 1.7 pread64(3</d/a>, ""..., 4, 0) = 4 <0.2>
7 1.9 io_getevents(0x7f, 1, 8, [{data=0x2, obj=0x3, res=9, res2=0}], NULL) = 1 <0.1>
7 2.0 io_uring_enter(4<anon_inode:[io_uring]>, 2, 0, 0, NULL, 8) = 2 <0.1>
8 2.1 +++ exited with 0 +++
"""
_CALLS: list[recorder.Call] = [
    ("mkdir", "/scratch/run/d", "493"),
    ("open64", _FILE, "66", "420"),
    *(("pwrite", _FILE, "%p", "4096", str(4096 * k)) for k in range(50)),
    ("lseek", _FILE, "0", "0"),
    *3 * [("read", _FILE, "%p", "100000")],
    ("close", _FILE),
    ("rename", _FILE, "/scratch/run/d/b"),
    *(("fopen", _FILE, "a"), ("fwrite", "%p", "9", "999", _FILE), ("fclose", _FILE)),
]
LAYOUTS = [("2.3.3", False), ("2.4.0", False), ("2.4.0", True), ("3.0.0", False), ("3.0.0", True)]


def of_strace(rng: Random) -> Callable[[Path], Path]:
    """Writes one with some letters changed."""
    text = list(_STRACE)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(text))
        piece = rng.choice(["", "9", "<", '"', "\n", "-", ",", 20 * "9", "(deleted)"])
        text[at : at + rng.choice([0, 1, 9])] = piece

    def write(folder: Path) -> Path:
        path = folder / "damaged.strace"
        path.write_text("".join(text), encoding="utf-8")
        return path

    return write


def of_recorder(rng: Random) -> Callable[[Path], Path]:
    """Writes one with some bytes of a file changed."""
    version, merged = rng.choice(LAYOUTS)

    def write(folder: Path) -> Path:
        shutil.rmtree(folder / "damaged", ignore_errors=True)
        trace = recorder.write(folder / "damaged", [_CALLS, _CALLS], version, merged)
        path = rng.choice(sorted(trace.iterdir()))
        data = bytearray(path.read_bytes())
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data) + 1)
            piece = rng.choice([b"", b"\xff", b"\0\0\0\x7f", b" ", b"9", b"-", b"/", b"\n"])
            data[at : at + rng.choice([0, 1, 4])] = piece
        path.write_bytes(data[: rng.choice([len(data), rng.randrange(len(data) + 1)])])
        return trace

    return write


KINDS = (of_strace, of_recorder)
