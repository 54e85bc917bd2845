"""understudy-storage, on local file systems and on the fake striped ones of fake_striped.c."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import ANY  # equal to everything: free space changes while a test runs

KEYS = ["type", "source", "mount_point", "mount_options", "total_bytes", "free_bytes"]
KEYS += ["total_inodes", "free_inodes", "client_version", "server_version", "health"]
KEYS += ["default_layout"]
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Storage:
    """The program, the fake file system, and a directory for this case."""

    program: str
    library: str
    folder: Path

    def run(self, *arguments: object, fake: str = "", **more: str) -> tuple[int, str, str]:
        """Status, stdout and stderr; `fake` is the kind of the file system below `scratch`."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("FAKE_")}
        if fake:
            state = self.folder / "state"
            state.mkdir(exist_ok=True)
            environment |= {"FAKE_KIND": fake, "FAKE_ROOT": str(self.scratch())}
            environment |= {"FAKE_STATE": str(state), "LD_PRELOAD": self.library} | more
        command = [self.program, *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def scratch(self) -> Path:
        """The directory that is fake, in its real path."""
        path = (self.folder / "scratch").resolve()
        path.mkdir(exist_ok=True)
        return path

    def printed(self, *arguments: object, fake: str = "", **more: str) -> dict[str, Any]:
        """What a run that must succeed prints."""
        status, out, err = self.run(*arguments, fake=fake, **more)
        expect(status == 0 and err == "", f"{arguments}: status {status}, {err}")
        row: dict[str, Any] = json.loads(out)
        expect(list(row) == KEYS, f"keys {list(row)}")
        return row

    def refused(self, text: str, *arguments: object, status: int = 2, **more: str) -> None:
        """One message with the text, and nothing printed."""
        code, out, err = self.run(*arguments, **more)
        lines = err.splitlines()
        expect(code == status and out == "" and len(lines) == 1, f"{arguments}: {code} {out}{err}")
        expect(lines[0].startswith("understudy: ") and text in lines[0], f"{text!r} not in {err}")


def expect(condition: bool, message: str) -> None:
    """Fails the case."""
    if not condition:
        raise AssertionError(message)


def local(storage: Storage) -> None:
    """Sizes are those of statvfs, the mount is one that holds the directory; no MPI is linked."""
    row = storage.printed(storage.folder)
    space = os.statvfs(storage.folder)
    expect(row["total_bytes"] == space.f_blocks * space.f_frsize, str(row))
    expect(0 <= row["free_bytes"] <= row["total_bytes"], str(row))
    folder = storage.folder.resolve()
    if row["mount_point"] is None:  # a change-root environment, whose root is no mount point
        listed = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
        above = {str(p) for p in (folder, *folder.parents)}
        expect(not above & {line.split(" ")[4] for line in listed}, str(row))
    else:
        mount = Path(row["mount_point"])
        expect(mount == folder or mount in folder.parents, str(row))
        expect(os.path.ismount(mount), str(row))
    shown = subprocess.run(["ldd", storage.program], capture_output=True, text=True, timeout=60)
    expect("libmpi" not in shown.stdout, shown.stdout)


def errors(storage: Storage) -> None:
    """Invalid options and directories: one message, status 2."""
    refusal = "cannot be given a layout; expected a file system of beegfs, ceph, lustre"
    for text, *arguments in (
        ("expected one directory",),
        ("expected one directory", "a", "b"),
        ("cannot open the directory /nowhere: No such file", "/nowhere"),
        ("cannot open the directory /dev/null: Not a directory", "/dev/null"),
        ("--nonsense: no such option", "--nonsense", "/tmp"),
        ("-x: no such option", "-x", "/tmp"),
        ("--help=3: no such option", "--help=3"),
        ("--stripe-count: a value is missing", "--stripe-count"),
        ("--stripe-pool: expected a name", "--stripe-pool", "", "/tmp"),
        (refusal, "--stripe-count", "4", storage.scratch()),
    ):
        storage.refused(text, *arguments)
    for option, values in (
        ("--stripe-count", ("0", "-2", "4x", "", "99999999999999999999")),
        ("--stripe-size", ("0", "1q", "-1", "")),
        ("--stripe-targets", ("", "3-", "4-2", "1,,2", "x", "0-99999", "99999999999")),
    ):
        for value in values:
            storage.refused(f"{option} {value}: expected", option, value, "/tmp")
    for option, words in (("--help", "--stripe-targets"), ("--version", "understudy-storage ")):
        code, out, err = storage.run(option)
        expect(code == 0 and words in out and err == "", out + err)


def layout(count: int | None, size: int | None, pool: str | None, backend: str) -> dict[str, Any]:
    """The default layout of a directory."""
    row = {"backend": backend, "stripe_count": count, "stripe_size_bytes": size}
    return row | {"pool": pool, "targets": None}


def lustre(storage: Storage, fake: str) -> None:
    """The directory gets the layout, tells it, and hands it on; lies are noticed."""
    scratch = storage.scratch()
    row = storage.printed(scratch, fake=fake)
    expect(row["type"] == "lustre" and row["default_layout"] is None, str(row))
    given = ["--stripe-count", "4", "--stripe-size", "2MiB"]
    row = storage.printed(*given, scratch, fake=fake)
    expect(row["default_layout"] == layout(4, 2 * MIB, None, "lustre"), str(row))
    expect(
        storage.printed(scratch, fake=fake) == row | {"free_bytes": ANY, "free_inodes": ANY}, ""
    )
    row = storage.printed("--stripe-count", "-1", "--stripe-pool", "fast", scratch, fake=fake)
    expect(row["default_layout"] == layout(-1, MIB, "fast", "lustre"), str(row))
    for lie, got in (("cap4", 4), ("ignore", 1)):
        text = f"{scratch}: --stripe-count 6 was asked, but the file system gave {got}"
        storage.refused(text, "--stripe-count", "6", scratch, status=1, fake=fake, FAKE_LIE=lie)
    storage.refused("expects a multiple of 65536", "--stripe-size", "1kB", scratch, fake=fake)
    storage.refused("expects at most 2000", "--stripe-count", "2001", scratch, fake=fake)
    long = "a-name-of-more-than-15"
    storage.refused("at most 15 characters", "--stripe-pool", long, scratch, fake=fake)
    storage.refused(
        "names 2 targets, but", "--stripe-targets", "0,1", "--stripe-count", 3, scratch, fake=fake
    )
    (scratch / "file").touch()
    storage.refused(f"{scratch} is not empty: it holds file", *given, scratch, fake=fake)


def ceph(storage: Storage) -> None:
    """A directory has the layout of the nearest parent that has one."""
    scratch = storage.scratch()
    inner = scratch / "inner"
    inner.mkdir()
    expect(storage.printed(inner, fake="ceph")["default_layout"] is None, "")
    storage.refused("is not empty", "--stripe-count", "4", scratch, fake="ceph")
    inner.rmdir()
    given = ["--stripe-count", "4", "--stripe-size", "8MiB", "--stripe-pool", "fast"]
    row = storage.printed(*given, scratch, fake="ceph")
    expect(row["default_layout"] == layout(4, 8 * MIB, "fast", "ceph"), str(row))
    inner.mkdir()
    row = storage.printed(inner, fake="ceph")
    expect(row["default_layout"] == layout(4, 8 * MIB, "fast", "ceph"), str(row))
    row = storage.printed("--stripe-count", "2", inner, fake="ceph")
    expect(row["default_layout"] == layout(2, 4 * MIB, None, "ceph") | {"pool": ANY}, str(row))
    storage.refused("cannot stripe over all", "--stripe-count", "-1", inner, fake="ceph")
    storage.refused("cannot choose the targets", "--stripe-targets", "1", inner, fake="ceph")
    text = "pool=slow: No such file or directory"
    storage.refused(text, "--stripe-pool", "slow", inner, status=1, fake="ceph")
    storage.refused("gave 4", "--stripe-count", "6", inner, status=1, fake="ceph", FAKE_LIE="cap4")


def beegfs(storage: Storage) -> None:
    """Directories of BeeGFS neither take nor tell a layout by the client."""
    scratch = storage.scratch()
    row = storage.printed(scratch, fake="beegfs")
    expect(row["type"] == "beegfs" and row["default_layout"] is None, str(row))
    text = "beegfs cannot give a directory a default layout"
    storage.refused(text, "--stripe-count", "4", scratch, fake="beegfs")


CASES: dict[str, Callable[[Storage], None]] = {
    case.__name__: case for case in (local, errors, ceph, beegfs)
}
for _kind in ("lustre", "lustre-composite", "lustre-ioctl"):
    CASES[_kind] = partial(lustre, fake=_kind)


def main() -> int:
    """Lists the cases, or runs one."""
    if sys.argv[1:] == ["--list"]:
        print("\n".join(CASES))
        return 0
    case, program, library, base = sys.argv[1:5]
    folder = Path(base) / f"storage.{case}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    CASES[case](Storage(program, library, folder))
    shutil.rmtree(folder)
    print(f"storage.{case}: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
