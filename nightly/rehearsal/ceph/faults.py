"""Cases: does a run survive a fault of the file system, or end with the right error message?

A fault comes once bytes have reached the OSDs, which are slowed down so that many are yet to come.
A run that does not end within LIMIT_S of it fails the case.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from nightly.rehearsal.ceph.cluster import Failure, throttle, until
from nightly.rehearsal.ceph.placement import object_name
from nightly.rehearsal.ceph.stage import MIB, Outcome, Stage, expect, files_of
from nightly.rehearsal.ceph.sweep import limited

LIMIT_S = 60.0  # from a fault to the end of the run
RATE_MBIT = 6.0
IMPATIENT_MBIT = 20.0  # within its time limit
SIZE = 4 * MIB  # of a dump
DUMPS = 12
QUOTA_BYTES = 32 * MIB
METHODS = ("posix", "mpiio", "hdf5", "stdio", "adios")
FULL = "No space left on device"
QUOTA = "Disk quota exceeded"
LOST = "Connection timed out"
# Of a client that does not wait for an OSD for ever, as clients do by default.
IMPATIENT = {"rados osd op timeout": "3", "client mount timeout": "8"}


def begin(stage: Stage, directory: Path, *options: str) -> subprocess.Popen[str]:
    """A run that is writing: bytes have reached the OSDs, and most are yet to come."""
    stage.result.unlink(missing_ok=True)
    before = sum(stage.cluster.written())
    workload = stage.workload("faults", "shared", SIZE, DUMPS)
    striped = () if "adios" in options else ("--stripe-count", "4")  # it creates files itself
    words = stage.player(workload, directory, "-e", *striped, *options)
    process = stage.start(words)
    try:
        until(
            "the run writes",
            lambda: process.poll() is not None or sum(stage.cluster.written()) > before + SIZE,
            LIMIT_S,
        )
        if process.poll() is not None:
            done = stage.finish(process)
            raise Failure(f"the run ended before the fault: {done.message()}")
    except Failure:
        process.kill()
        raise
    return process


def ends(stage: Stage, process: subprocess.Popen[str], *texts: str) -> tuple[Outcome, float]:
    """The run ends with an error message that holds the texts, and without a result."""
    start = time.monotonic()
    done = stage.finish(process, LIMIT_S)
    took_s = time.monotonic() - start
    message = done.message()
    expect(done.status != 0, "exit status 0 after the fault")
    expect(message.startswith("understudy: "), f"no error message of the player: {message}")
    for text in texts:
        expect(text in message, f"{text!r} is not in {message!r}")
    expect(not stage.result.exists(), f"a result after {message!r}")
    return done, took_s


def each(stage: Stage, fault: Callable[[str], tuple[Outcome, float]]) -> str:
    """One fault with each method; the slowest end and the message of each."""
    texts = []
    for method in stage.methods(*METHODS):
        done, took_s = fault(method)
        texts.append(f"{method} after {took_s:.1f} s: {done.message()}")
    return "; ".join(texts)


def slow(stage: Stage) -> Sequence[float]:
    return [RATE_MBIT] * stage.cluster.osds


def victim(stage: Stage, directory: Path) -> int:
    """An OSD with bytes of the newest file."""
    newest = max((p for p in directory.iterdir() if p.is_file()), key=lambda p: p.stat().st_ino)
    return stage.cluster.osd_of(object_name(newest.stat().st_ino, 0))


def take_down(stage: Stage, osd: int) -> None:
    stage.cluster.kill_osd(osd)
    stage.cluster.raw(prefix="osd down", ids=[str(osd)])


def bring_back(stage: Stage, osd: int) -> None:
    stage.cluster.start_osd(osd)
    until(f"OSD {osd} up", lambda: osd in stage.cluster.up(), LIMIT_S)


def osd_restarted(stage: Stage) -> str:
    """An OSD is killed in mid-write and comes back: the run waits for it, and nothing is lost."""
    with stage.directory("restarted") as run, limited(slow(stage)):
        process = begin(stage, run, "-a", "posix", "--verify")
        osd = victim(stage, run)
        take_down(stage, osd)
        until(f"OSD {osd} down", lambda: osd not in stage.cluster.up(), LIMIT_S)
        time.sleep(2)  # an outage that clients notice; the outcome does not depend on it
        expect(process.poll() is None, "the run ended while its OSD was down")
        bring_back(stage, osd)
        throttle([])
        done = stage.finish(process)
    expect(done.status == 0, f"exit status {done.status}: {done.message()}")
    measured = json.loads(stage.result.read_text())
    expect(measured["verification"]["wrong_bytes"] == 0, str(measured["verification"]))
    return "the run waited, and every byte is right"


def osd_lost(stage: Stage) -> str:
    """An OSD is killed and stays away: clients with a time limit report it."""

    def one(method: str) -> tuple[Outcome, float]:
        mount = stage.cluster.mount(f"impatient-{method}", IMPATIENT)
        name = f"lost-{method}"
        osd = None
        try:
            (mount / name).mkdir()
            with limited([IMPATIENT_MBIT] * stage.cluster.osds):
                process = begin(stage, mount / name, "-a", method)
                osd = victim(stage, mount / name)
                take_down(stage, osd)
                return ends(stage, process, LOST, f"{name}/")
        finally:
            if osd is not None:
                bring_back(stage, osd)
            stage.cluster.unmount(mount)

    return each(stage, one)


def file_system_full(stage: Stage) -> str:
    """The OSDs become full in mid-write."""

    def one(method: str) -> tuple[Outcome, float]:
        with stage.directory("full") as run, limited(slow(stage)):
            process = begin(stage, run, "-a", method)
            set_full(stage, near=0.000001, backfill=0.000001, full=0.000001)
            try:
                return ends(stage, process, FULL, "full/")
            finally:
                set_full(stage, full=0.95, backfill=0.9, near=0.85)
                until("OSDs not full", lambda: not full(stage), LIMIT_S)

    return each(stage, one)


def set_full(stage: Stage, **ratios: float) -> None:
    """The shares of their capacity from which OSDs call themselves full; each counts."""
    for name, ratio in ratios.items():
        more = "full" if name != "full" else ""
        stage.cluster.raw(prefix=f"osd set-{name}{more}-ratio", ratio=ratio)


def full(stage: Stage) -> bool:
    return any("full" in osd["state"] for osd in stage.cluster.command(prefix="osd dump")["osds"])


def set_quota(directory: Path, size: int) -> None:
    os.setxattr(directory, "ceph.quota.max_bytes", str(size).encode())


def capacity(directory: Path) -> int:
    status = os.statvfs(directory)
    return status.f_blocks * status.f_frsize


def quota_before(stage: Stage) -> str:
    """A run that does not fit the quota of its directory does not start."""
    with stage.directory("quota") as directory:
        set_quota(directory, QUOTA_BYTES)
        # A client states the quota as its capacity where it has mounted the directory with it.
        mount = stage.cluster.mount("quota-mount", {"client mountpoint": "/quota"})
        until("the quota counts", lambda: capacity(mount) <= QUOTA_BYTES, LIMIT_S)
        workload = stage.workload("faults", "shared", SIZE, DUMPS)
        done = stage.run(*stage.player(workload, mount / "run", "-a", "posix"))
        left = files_of(mount)
        stage.cluster.unmount(mount)
        expect(done.status == 2, f"exit status {done.status}: {done.message()}")
        message = re.search(r"needs (\d+) bytes, but only (\d+) are free", done.message())
        expect(
            message and int(message[1]) == DUMPS * SIZE and int(message[2]) <= QUOTA_BYTES,
            done.message(),
        )
        expect(not left, f"files were made: {left}")
        return done.message()


def quota_exceeded(stage: Stage) -> str:
    """A quota is set in mid-write."""

    def one(method: str) -> tuple[Outcome, float]:
        with stage.directory("quota") as run, limited(slow(stage)):
            process = begin(stage, run, "-a", method)
            set_quota(run, MIB)
            return ends(stage, process, QUOTA, "quota/")

    return each(stage, one)
