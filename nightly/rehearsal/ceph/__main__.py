"""python -m nightly.rehearsal.ceph [--list] [--osds N] [CASE …]

Brings a CephFS up on this host, plays on it, and takes it down. Needs packages of Ceph, and root
or a user who may open /dev/fuse. Daemons, mounts and addresses are in namespaces that end with the
rehearsal, however it ends; files are in a temporary directory. The exit status is 0 if cases ran
and none failed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from nightly.rehearsal.ceph import cases
from nightly.rehearsal.ceph.cluster import Cluster
from nightly.rehearsal.ceph.stage import Stage, set_default

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = (
    "ceph-mon",
    "ceph-mgr",
    "ceph-osd",
    "ceph-mds",
    "ceph-fuse",
    "monmaptool",
    "ip",
    "tc",
    "unshare",
    "setpriv",
)
PACKAGES = "ceph-mon ceph-mgr ceph-osd ceph-mds ceph-fuse python3-rados iproute2"
SPACE_BYTES = 4 << 30
OSDS = (8, 64)  # the largest stripe count of the cases; addresses
STOP_S = 20.0
LIMIT_S = 1800.0  # of all cases, also where the file system lets go of nobody
INSIDE = "UND_REHEARSAL_BASE"


def say(text: str) -> None:
    print(text, flush=True)


def python_with_rados() -> str | None:
    for python in (sys.executable, "/usr/bin/python3"):
        words = [python, "-c", "import rados"]
        try:
            if subprocess.run(words, capture_output=True, check=False).returncode == 0:
                return python
        except OSError:
            continue
    return None


def missing() -> str | None:
    """Why there can be no rehearsal here, as one message."""
    lacking = [program for program in PROGRAMS if shutil.which(program) is None]
    if python_with_rados() is None:
        lacking.append("the Python module rados")
    if lacking:
        return f"{', '.join(lacking)}: not found; on Debian and Ubuntu: apt-get install {PACKAGES}"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse: cannot be opened; ceph-fuse needs it: run as root"
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < SPACE_BYTES:
        return f"{tempfile.gettempdir()}: {free} bytes are free, expected {SPACE_BYTES}"
    return None


def outside(words: list[str]) -> int:
    """Starts this program again in namespaces of its own, and removes what it leaves."""
    if reason := missing():
        sys.exit(f"understudy: rehearsal on CephFS: {reason}")
    python = python_with_rados()
    assert python is not None
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    base = tempfile.mkdtemp(prefix="understudy-ceph-")
    user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    process = None
    try:
        process = subprocess.Popen(
            [
                "setpriv",
                "--pdeathsig",
                "KILL",
                "unshare",
                *user,
                "--net",
                "--mount",
                "--pid",
                "--mount-proc",
                "--kill-child=KILL",
                python,
                "-B",
                "-m",
                __package__ or "",
                *words,
            ],
            env={**os.environ, INSIDE: base, "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}"},
        )
        return process.wait(LIMIT_S)
    except KeyboardInterrupt:
        return 130
    except subprocess.TimeoutExpired:
        sys.exit(f"understudy: rehearsal on CephFS: not ended after {LIMIT_S:g} s")
    finally:
        # A second Ctrl-C must not leave anything behind.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if process is not None and process.poll() is None:
            process.kill()  # and with it, by --kill-child, all processes of the namespace
            process.wait()
        remove(Path(base))


def remove(base: Path) -> None:
    """Once the last process of the namespace is gone."""
    end = time.monotonic() + STOP_S
    while base.exists() and time.monotonic() < end:
        shutil.rmtree(base, ignore_errors=True)
        time.sleep(0.05)
    if base.exists():
        say(f"understudy: {base}: cannot be removed")


def supervise() -> None:
    """Returns in a child. The first process of the namespace only waits for it.

    The end of the first process ends all others, so it must never hang in the file system.
    """
    child = os.fork()
    while child:
        ended, status = os.wait()  # of orphans too
        if ended == child:
            sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def inside(osds: int, wanted: list[str]) -> int:
    base = Path(os.environ[INSIDE])
    # Segments of MPI in memory go with the namespace too.
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/dev/shm"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for name in ("ceph", "work", "tmp"):
        (base / name).mkdir()
    os.environ |= {"TMPDIR": str(base / "tmp"), "CEPH_CONF": str(base / "ceph" / "ceph.conf")}
    cluster = Cluster(base / "ceph", osds)
    start = time.monotonic()
    try:
        cluster.start()
        mount = cluster.mount("mount")
        set_default(mount)
        say(f"CephFS with {osds} OSDs is up ({time.monotonic() - start:.1f} s)")
        stage = Stage(cluster=cluster, mount=mount, base=base / "work", root=ROOT)
        return cases.play(stage, wanted, say)
    finally:
        cluster.stop()
        say(f"CephFS is down ({time.monotonic() - start:.1f} s in all)")


def main() -> int:
    parser = argparse.ArgumentParser(prog="rehearse FS=ceph", description="A rehearsal on CephFS.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help="only these cases")
    parser.add_argument("--list", action="store_true", help="list the cases")
    parser.add_argument("--osds", type=int, default=8, metavar="N", help="OSDs (default 8)")
    given = parser.parse_args()
    if unknown := sorted(set(given.cases) - set(cases.CASES)):
        parser.error(f"{unknown[0]}: no such case; expected {', '.join(cases.CASES)}")
    if not OSDS[0] <= given.osds <= OSDS[1]:
        parser.error(f"--osds {given.osds}: expected a number from {OSDS[0]} to {OSDS[1]}")
    if given.list:
        for name, case in cases.CASES.items():
            say(f"{name:18}{(case.__doc__ or '').partition(chr(10))[0]}")
        return 0
    if INSIDE not in os.environ:
        return outside(sys.argv[1:])
    supervise()
    return inside(given.osds, given.cases)


if __name__ == "__main__":
    sys.exit(main())
