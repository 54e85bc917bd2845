"""A private CephFS: a monitor, a manager, storage daemons (OSDs), a metadata server and FUSE
clients.

Everything is below one directory. Addresses are those of the loopback device, one for each OSD,
so that its traffic can be limited; the caller provides a network of its own. There is no systemd
and no keyring.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

DATA_POOL = "cephfs_data"
METADATA_POOL = "cephfs_metadata"
PLACEMENT_GROUPS = 256  # so many that OSDs have about the same share of the objects
START_S = 60.0
STEP_S = 2.0
MBIT_BYTES = 125_000
CLIENT = "127.0.0.1"

CONFIGURATION = """\
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:40100,v1:127.0.0.1:40101]
public network = 127.0.0.0/8
auth cluster required = none
auth service required = none
auth client required = none
run dir = {base}/run
admin socket = {base}/run/$name.asok
pid file =
log file = {base}/log/$name.log
keyring = {base}/keyring
crash dir = {base}/crash
osd pool default size = 1
osd pool default min size = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon warn on pool no redundancy = false
mon max pg per osd = 10000
mon data avail warn = 2
mon data avail crit = 1
mon osd down out interval = 0
mon osd min down reporters = 1
osd mon report interval = 1
osd heartbeat interval = 2
# Silence is no fault of a host that stands still: cases say which OSD is down.
osd heartbeat grace = 600
mon osd adjust heartbeat grace = false
mon mgr beacon grace = 600
mds beacon grace = 600
osd memory target = 536870912
osd memory target autotune = false
osd class update on start = false
osd objectstore = bluestore
bluestore block size = 4294967296
bluestore cache autotune = false
bluestore cache size = 67108864
bluestore fsck on mkfs = false
osd op num shards = 2
osd op num threads per shard = 1
ms async op threads = 1
mds cache memory limit = 134217728
# A file that is created and given a layout is flushed with the next tick.
mds tick interval = 0.5
client mount timeout = 20
[mon.a]
mon data = {base}/mon
[mgr]
mgr data = {base}/mgr
mgr initial modules =
mgr stats period = 1
[osd]
osd data = {base}/osd/$id
{addresses}
[mds]
public addr = 127.0.0.2
mds data = {base}/mds
[client]
admin socket =
log file = {base}/log/$name.$pid.log
"""


class Failure(Exception):
    """What did not come as expected, as one message."""


def until(what: str, holds: Callable[[], object], limit_s: float) -> None:
    """Waits until it holds; a Failure after limit_s. Time in which the host stands still does not
    count: of the time between two looks, no more than STEP_S does."""
    waited_s, before_s = 0.0, time.monotonic()
    while not holds():
        now_s = time.monotonic()
        waited_s, before_s = waited_s + min(now_s - before_s, STEP_S), now_s
        if waited_s > limit_s:
            raise Failure(f"{what}: not within {limit_s:g} s")
        time.sleep(0.05)


def run(*words: str | Path) -> str:
    """What a program prints; a Failure with the end of its messages if it fails."""
    done = subprocess.run(
        words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode:
        text = (done.stderr or done.stdout).strip()[-300:]
        raise Failure(f"{words[0]}: exit status {done.returncode}: {text}")
    return done.stdout


def osd_address(osd: int) -> str:
    return f"127.0.1.{osd + 1}"


class Cluster:
    """Up after start(), gone after stop(). `base` is an empty directory."""

    def __init__(self, base: Path, osds: int) -> None:
        self.base = base
        self.osds = osds
        self.path = base / "ceph.conf"
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._clients: dict[Path, subprocess.Popen[bytes]] = {}
        self._uuids = [str(uuid.uuid4()) for _ in range(osds)]
        self._rados: Any = None
        self._pools: dict[str, Any] = {}

    @classmethod
    def running(cls, base: Path) -> Cluster:
        """One that another process has started, to be asked."""
        cluster = cls(base, len(list((base / "osd").iterdir())))
        cluster._connect()
        return cluster

    def start(self) -> None:
        self._configure()
        self._start_monitor()
        (self.base / "mgr").mkdir()
        self._daemon("ceph-mgr", "x")
        for osd, name in enumerate(self._uuids):
            self.command(prefix="osd new", uuid=name)
            (self.base / "osd" / str(osd)).mkdir(parents=True)
        formatting = [
            subprocess.Popen(
                ["ceph-osd", "-c", self.path, "-i", str(osd), "--mkfs", "--osd-uuid", name],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for osd, name in enumerate(self._uuids)
        ]
        for osd, process in enumerate(formatting):
            if process.wait():
                raise Failure(f"ceph-osd --mkfs: OSD {osd}: exit status {process.returncode}")
            self.start_osd(osd)
        # Two copies of the metadata: the metadata server outlives any OSD.
        for pool, groups, copies in ((METADATA_POOL, 8, 2), (DATA_POOL, PLACEMENT_GROUPS, 1)):
            self.command(
                prefix="osd pool create", pool=pool, pg_num=groups, pgp_num=groups, size=copies
            )
        self.command(prefix="fs new", fs_name="rehearsal", metadata=METADATA_POOL, data=DATA_POOL)
        (self.base / "mds").mkdir()
        self._daemon("ceph-mds", "a")
        until("OSDs up", lambda: self.up() == set(range(self.osds)), START_S)
        until("metadata server up", lambda: b"up:active" in self.raw(prefix="mds stat"), START_S)

    def stop(self) -> None:
        for process in self._clients.values():
            process.kill()
            process.wait()
        self._clients.clear()
        if self._rados is not None:
            self._pools.clear()
            self._rados.shutdown()
            self._rados = None
        for process in self._daemons.values():
            process.kill()
        for process in self._daemons.values():
            process.wait()
        self._daemons.clear()

    def _configure(self) -> None:
        self.fsid = str(uuid.uuid4())
        for folder in ("run", "log", "crash"):
            (self.base / folder).mkdir()
        addresses = "\n".join(
            f"[osd.{osd}]\npublic addr = {osd_address(osd)}\ncluster addr = {osd_address(osd)}"
            for osd in range(self.osds)
        )
        self.path.write_text(
            CONFIGURATION.format(fsid=self.fsid, base=self.base, addresses=addresses)
        )

    def _start_monitor(self) -> None:
        vector = "[v2:127.0.0.1:40100,v1:127.0.0.1:40101]"
        monmap = self.base / "monmap"
        run("monmaptool", "--create", "--fsid", self.fsid, "--addv", "a", vector, monmap)
        run("ceph-mon", "-c", self.path, "--mkfs", "-i", "a", "--monmap", monmap)
        self._daemon("ceph-mon", "a")
        self._connect()

    def _connect(self) -> None:
        import rados  # of the system's Python; `--list` does without

        self._rados = rados.Rados(conffile=str(self.path))
        self._rados.connect(timeout=30)

    def _daemon(self, program: str, name: str) -> None:
        """In the foreground, in a session of its own: Ctrl-C is for the rehearsal."""
        with (self.base / "log" / f"{program}.{name}.out").open("ab") as out:
            self._daemons[f"{program}.{name}"] = subprocess.Popen(
                [program, "-f", "-c", self.path, "-i", name],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )

    def start_osd(self, osd: int) -> None:
        self._daemon("ceph-osd", str(osd))

    def kill_osd(self, osd: int) -> None:
        """As a node that loses its power."""
        process = self._daemons.pop(f"ceph-osd.{osd}")
        process.kill()
        process.wait()

    def mount(self, name: str, options: Mapping[str, str] | None = None) -> Path:
        """A client of its own, with options of Ceph."""
        path = self.base / name
        path.mkdir()
        words = [f"--{key.replace(' ', '-')}={value}" for key, value in (options or {}).items()]
        with (self.base / "log" / f"{name}.out").open("ab") as out:
            self._clients[path] = subprocess.Popen(
                ["ceph-fuse", "-f", "-c", self.path, *words, path],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        until(f"{path}: mounted", path.is_mount, START_S)
        until(f"{path}: capacity known", lambda: os.statvfs(path).f_blocks, START_S)
        return path

    def unmount(self, path: Path) -> None:
        """Also with programs that hang in it: they get an error."""
        process = self._clients.pop(path)
        process.kill()
        process.wait()
        subprocess.run(["umount", "-l", path], check=False, stderr=subprocess.DEVNULL)
        # Others would wait a minute for what the client has locked.
        for session in self.ask("mds.a", "session ls"):
            if session["client_metadata"].get("mount_point") == str(path):
                self.ask("mds.a", "session evict", filters=[f"id={session['id']}"])

    def raw(self, **words: Any) -> bytes:
        """The answer of the monitor to a command."""
        code, out, message = self._rados.mon_command(json.dumps(words), b"", timeout=30)
        if code:
            raise Failure(f"{words['prefix']}: {message or os.strerror(-code)}")
        assert isinstance(out, bytes)
        return out

    def command(self, **words: Any) -> Any:
        return json.loads(self.raw(**words, format="json") or b"null")

    def up(self) -> set[int]:
        return {row["osd"] for row in self.command(prefix="osd dump")["osds"] if row["up"]}

    def osd_of(self, name: str) -> int:
        """Where an object of the data pool is, or would be."""
        placement = self.command(prefix="osd map", pool=DATA_POOL, object=name)
        return int(placement["acting_primary"])

    def objects(self, inode: int, pool: str = DATA_POOL) -> dict[int, int]:
        """Bytes of each object of a file, by its number, as the OSDs have them."""
        if pool not in self._pools:
            self._pools[pool] = self._rados.open_ioctx(pool)
        context = self._pools[pool]
        keys = (item.key for item in context.list_objects())
        keys_of_file = (key for key in keys if key.startswith(f"{inode:x}."))
        return {int(key.partition(".")[2], 16): context.stat(key)[0] for key in keys_of_file}

    def written(self) -> list[int]:
        """Bytes that clients have sent to each OSD since it was started."""
        return [
            int(self.ask(f"osd.{osd}", "perf dump")["osd"]["op_in_bytes"])
            for osd in range(self.osds)
        ]

    def ask(self, daemon: str, command: str, **words: Any) -> Any:
        """The answer of a daemon at its admin socket."""
        with socket.socket(socket.AF_UNIX) as at:
            at.settimeout(30)
            at.connect(str(self.base / "run" / f"{daemon}.asok"))
            at.sendall(json.dumps({"prefix": command, **words}).encode() + b"\0")
            file = at.makefile("rb")
            length = int.from_bytes(file.read(4), "big")
            return json.loads(file.read(length) or b"null")


def throttle(mbit: Sequence[float]) -> None:
    """Limits each OSD's traffic with clients, in each direction. An empty list: no limits.

    What the metadata server writes is not limited: it has an address of its own.
    """
    tc = ("tc", "-batch", "-")
    rules = ["qdisc add dev lo root handle 1: htb default 1"]
    rules.append("class add dev lo parent 1: classid 1:1 htb rate 40gbit quantum 200000")
    for osd, rate in enumerate(mbit):
        for number, here, there in (
            (100 + osd, CLIENT, osd_address(osd)),
            (200 + osd, osd_address(osd), CLIENT),
        ):
            rules.append(
                f"class add dev lo parent 1: classid 1:{number} htb rate {rate:g}mbit "
                "burst 32k cburst 32k quantum 65536"
            )
            rules.append(
                f"filter add dev lo parent 1: protocol ip prio 1 u32 match ip src {here}/32 "
                f"match ip dst {there}/32 flowid 1:{number}"
            )
    subprocess.run(
        ["tc", "qdisc", "del", "dev", "lo", "root"], check=False, stderr=subprocess.DEVNULL
    )
    if mbit:
        done = subprocess.run(
            tc, input="\n".join(rules) + "\n", text=True, capture_output=True, check=False
        )
        if done.returncode:
            raise Failure(f"tc: exit status {done.returncode}: {done.stderr.strip()[-300:]}")
