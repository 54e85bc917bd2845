"""Rehearse the checks of a system on a batch system of several nodes on this host.

    python -m nightly.rehearsal.slurm SYSTEM [--nodes N] [-- COMMAND...]

Slurm runs in namespaces, one set for each node: network, host name, processes, /tmp and /dev/shm
of its own. Jobs are those of an ordinary user. The system's configuration is used as it is: its
queues and features exist, `qsub` and `qstat` are those that Slurm has for Torque, `aprun`,
`module` and `sacct` (there is no slurmdbd) are stand-ins, and its scratch directory is in memory.
Questions about the type and the stripes of files are answered by the library that the tests have
for that. The record of a run names `rehearsal` as the source of its storage.

Without COMMAND: `reframe -c checks/ -r --system SYSTEM --mode rehearsal -n ^Replay`; other checks
if --more names them with -n. With it, the command runs as root instead; `as-user` on its PATH
starts what an ordinary user would.
"""

import argparse
import os
import pwd
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nightly.rehearsal import enclosure
from understudy.errors import UnderstudyError
from understudy.paths import ROOT, directories, output, sites
from understudy.reframe.systems import MPICH, SCRATCH, TYPE, load

PACKAGES = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sbatch": "slurm-client",
    "qsub": "slurm-wlm-torque",
    "munged": "munge",
    "ip": "iproute2",
    "unshare": "util-linux",
}
STAND_INS = Path(__file__).with_name("standins")
BUILD = ROOT / "build"
BUILD_WITH_MPICH = BUILD / "mpich"  # of setup.sh
FAKED = ("beegfs", "ceph", "gpfs", "lustre")  # types that the library answers for
SELF = Path("/run/understudy")  # of the rehearsal, seen by all nodes
NETWORK = "10.213.0"
HEAD = f"{NETWORK}.254"
READY_S = 60
NOBODY = "rehearsal", 61347  # name and number of the user, where there is no better one


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Whose the jobs are."""

    name: str
    uid: int
    gid: int

    def command(self, *words: str) -> list[str]:
        """What runs `words` as this user."""
        ids = (f"--reuid={self.uid}", f"--regid={self.gid}", "--clear-groups")
        return ["setpriv", *ids, "--", *words]


def obstacle() -> str | None:
    """Why a rehearsal cannot be run here; None if it can."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    lacking = [p for program, p in PACKAGES.items() if shutil.which(program, path=path) is None]
    if lacking:
        return (
            f"a rehearsal needs {', '.join(lacking)}; on Debian and Ubuntu: "
            f"apt-get install --no-install-recommends {' '.join(lacking)}"
        )
    if os.geteuid() != 0:
        return "a rehearsal makes namespaces and mounts; run it as root, such as with sudo"
    trial = ["unshare", *enclosure.NAMESPACES, "--fork", "mount", "-t", "tmpfs", "none", "/mnt"]
    done = subprocess.run(trial, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"a rehearsal needs namespaces and mounts: {done.stderr.strip()}"
    return None


def user() -> User:
    """Who called sudo, else a user of no rights."""
    uid = int(os.environ.get("SUDO_UID", NOBODY[1]))
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return User(name=NOBODY[0], uid=uid, gid=uid)
    return User(name=entry.pw_name, uid=uid, gid=entry.pw_gid)


def system_of(name: str) -> dict[str, Any]:
    systems = {system["name"]: system for system in load(directories("systems"))[0]}
    if name not in systems:
        raise UnderstudyError(f"system {name!r}: expected one of {', '.join(sorted(systems))}")
    system: dict[str, Any] = systems[name]
    for partition in system["partitions"]:
        if partition["scheduler"] not in ("pbs", "slurm", "squeue", "torque"):
            raise UnderstudyError(
                f"system {name!r}: scheduler {partition['scheduler']!r}: a rehearsal has slurm, "
                "squeue, torque and pbs"
            )
    return system


def build_of(system: dict[str, Any]) -> Path:
    """The build with the player for the system: MPICH starts no ranks of Open MPI."""
    environments = load(directories("systems"))[1]
    with_mpich = {e["name"] for e in environments if MPICH in e.get("features", ())}
    if all(with_mpich.isdisjoint(p["environs"]) for p in system["partitions"]):
        return BUILD
    if not (BUILD_WITH_MPICH / "bin" / "understudy-replay").exists():
        raise UnderstudyError(
            f"system {system['name']!r}: {BUILD_WITH_MPICH}: no player; setup.sh builds it where "
            "mpicc.mpich and mpiexec.hydra are (Debian: mpich libmpich-dev)"
        )
    return BUILD_WITH_MPICH


def asked_of_nodes(system: dict[str, Any]) -> tuple[set[str], set[str]]:
    """Queues and features of nodes that the system's jobs ask for."""
    queues, features = set(), set()
    for partition in system["partitions"]:
        words = " ".join(partition.get("access", ()))
        queues |= set(re.findall(r"(?:^|\s)(?:-p|-q|--partition)[ =]?([\w,-]+)", words))
        for constraint in re.findall(r"(?:^|\s)(?:-C|--constraint)[ =]?(\S+)", words):
            features |= set(re.findall(r"[A-Za-z_]\w*", constraint))
    return {name for queue in queues for name in queue.split(",")}, features


def configuration(system: dict[str, Any], nodes: int) -> Iterator[str]:
    """Lines of slurm.conf."""
    queues, features = asked_of_nodes(system)
    cores = max(p.get("processor", {}).get("num_cpus", 16) for p in system["partitions"])
    yield from (
        f"ClusterName={system['name']}",
        f"SlurmctldHost=head({HEAD})",
        "SlurmUser=root",
        "SlurmdUser=root",
        "AuthType=auth/munge",
        "CryptoType=crypto/munge",
        f"AuthInfo=socket={SELF}/munge.sock",
        f"StateSaveLocation={SELF}/state",
        f"SlurmdSpoolDir={SELF}/spool.%n",
        f"SlurmctldPidFile={SELF}/slurmctld.pid",
        f"SlurmdPidFile={SELF}/slurmd.%n.pid",
        "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "JobAcctGatherType=jobacct_gather/none",
        "AccountingStorageType=accounting_storage/none",
        "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_CPU",
        "SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0",
        "SlurmdParameters=config_overrides",
        "EnforcePartLimits=ALL",  # a job that is too large pends for ever otherwise
        "MpiDefault=pmix",
        "ReturnToService=2",
        "MinJobAge=86400",  # the stand-in for sacct asks for jobs that have ended
        "KillWait=5",
        "SlurmdTimeout=20",
        f"NodeName=n[1-{nodes}] NodeAddr={NETWORK}.[1-{nodes}] CPUs={cores} RealMemory=2000"
        + (f" Feature={','.join(sorted(features))}" if features else ""),
    )
    for queue in ("batch", *sorted(queues - {"batch"})):
        default = " Default=YES" if queue == "batch" else ""
        yield f"PartitionName={queue} Nodes=ALL MaxTime=INFINITE{default}"


def fake_library(build: Path) -> Path:
    """What answers for the file systems of FAKED."""
    return build / "proxies" / "tests" / "libfake_striped.so"


def wrapper(kind: str, scratch: str, program: Path) -> str:
    """A program of ours that finds a file system of the kind below the scratch directory."""
    build = program.parents[1]
    # Ranks of MPICH give no core to others while they wait; this makes them.
    idle = build / "proxies" / "tests" / "libyield.so"
    libraries = [fake_library(build), *([idle] if idle.exists() else [])]
    fake = {
        "LD_PRELOAD": ":".join(map(str, libraries)),
        "FAKE_KIND": kind,
        "FAKE_ROOT": scratch,
        "FAKE_STATE": SELF / "stripes",
    }
    words = " ".join(f"{key}={shlex.quote(str(value))}" for key, value in fake.items())
    return f'#!/bin/sh\nexec env {words} {shlex.quote(str(program))} "$@"\n'


def start(*command: str | Path) -> subprocess.Popen[bytes]:
    with (SELF / "log" / Path(command[0]).name).open("ab") as log:
        return subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)


def run(*command: str | Path) -> None:
    subprocess.run(list(map(str, command)), check=True)


NODE = """\
hostname {name}
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=1777 tmp /tmp
for kept in {run}/kept/*; do
  path=$(cat "$kept/path")
  case $path in /tmp/*) mkdir -p "$path"; mount --rbind "$kept/shown" "$path" ;; esac
done
slurmd -D -N {name} >>{run}/log/slurmd.{name} 2>&1 &
wait
"""


def start_node(number: int) -> None:
    name, outside = f"n{number}", f"veth{number}"
    (SELF / f"spool.{name}").mkdir()
    run("ip", "netns", "add", name)
    run("ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
    run("ip", "link", "set", outside, "master", "bridge", "up")
    run("ip", "-n", name, "link", "set", "lo", "up")
    run("ip", "-n", name, "addr", "add", f"{NETWORK}.{number}/24", "dev", "eth0")
    run("ip", "-n", name, "link", "set", "eth0", "up")
    # Not `ip netns exec`, which mounts /sys anew, and slurmd dies of that.
    start(
        "nsenter",
        f"--net=/run/netns/{name}",
        "unshare",
        "--uts",
        "--mount",
        "--ipc",
        "--pid",
        "--propagation",
        "private",
        "--mount-proc",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        NODE.format(name=name, run=SELF),
    )


def start_batch_system(system: dict[str, Any], nodes: int) -> None:
    """Slurm with its nodes; an UnderstudyError if they are not ready in time."""
    for name in ("log", "state"):
        (SELF / name).mkdir()
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "bridge", "type", "bridge")
    run("ip", "addr", "add", f"{HEAD}/24", "dev", "bridge")
    run("ip", "link", "set", "bridge", "up")
    run("hostname", "head")
    (SELF / "slurm.conf").write_text("\n".join(configuration(system, nodes)) + "\n")
    # With the default, ranks leave MPI_Init early: about one start of srun in ten crashes.
    (SELF / "mpi.conf").write_text("PMIxCollFence=ring\n")
    key = SELF / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    start(
        "munged",
        "--foreground",
        "--force",
        "--socket",
        SELF / "munge.sock",
        "--key-file",
        key,
        "--pid-file",
        SELF / "munged.pid",
        "--log-file",
        SELF / "log" / "munged.log",
        "--seed-file",
        SELF / "munge.seed",
    )
    start("slurmctld", "-D")
    for number in range(1, nodes + 1):
        start_node(number)
    ends_s = time.monotonic() + READY_S
    while idle_nodes() != nodes:
        if time.monotonic() > ends_s:
            raise UnderstudyError(f"Slurm is not ready after {READY_S} s:\n{last_words()}")
        time.sleep(0.1)


def idle_nodes() -> int:
    asked = ["sinfo", "-h", "-p", "batch", "-t", "idle", "-o", "%D"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return int(said) if said.isdigit() else 0


def last_words() -> str:
    files = sorted((SELF / "log").iterdir())
    texts = (path.read_text(errors="replace").splitlines()[-3:] for path in files)
    return "\n".join(f"{p.name}: {line}" for p, t in zip(files, texts, strict=True) for line in t)


def keep(root: Path, number: int, path: Path) -> None:
    """Show a directory of the host that the new root's own /tmp and /run would hide."""
    kept = root / str(SELF).strip("/") / "kept" / str(number)
    (kept / "shown").mkdir(parents=True)
    (kept / "path").write_text(str(path))
    enclosure.mount("--rbind", path, kept / "shown")
    shown = enclosure.directory(root, path)
    if shown.parts[len(root.parts)] in enclosure.EMPTY:
        enclosure.mount("--rbind", kept / "shown", shown)


def make_root(folder: Path, system: dict[str, Any], owner: User, scratch_bytes: int) -> None:
    """Enter a root that has the system's scratch directories, its user and the stand-ins."""
    root = enclosure.new_root(folder)
    home_of_rehearsal = root / str(SELF).strip("/")
    home_of_rehearsal.mkdir()
    python = (Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve())
    used = (ROOT, *python, output(), *sites())
    for number, path in enumerate(dict.fromkeys(used)):
        keep(root, number, path)
        enclosure.open_up(root, path)
    for name in ("bin", "home", "out", "stripes"):
        (home_of_rehearsal / name).mkdir()
    build = build_of(system)
    for path in STAND_INS.iterdir():
        shutil.copy(path, home_of_rehearsal / "bin")
    as_user = home_of_rehearsal / "bin" / "as-user"
    as_user.write_text(f'#!/bin/sh\nexec {shlex.join(owner.command())} "$@"\n')
    as_user.chmod(0o755)
    for partition in system["partitions"]:
        wanted = os.path.expandvars(partition["extras"][SCRATCH].replace("$USER", owner.name))
        scratch = enclosure.directory(root, Path(wanted))
        options = (f"size={scratch_bytes}", f"uid={owner.uid}", f"gid={owner.gid}")
        enclosure.memory(scratch, "rehearsal", *options)
        if partition["extras"][TYPE] in FAKED and fake_library(build).exists():
            for program in ("understudy-replay", "understudy-storage"):
                path = home_of_rehearsal / "bin" / program
                script = wrapper(partition["extras"][TYPE], wanted, build / "bin" / program)
                path.write_text(script)
                path.chmod(0o755)
    for name in ("home", "out", "stripes"):
        os.chown(home_of_rehearsal / name, owner.uid, owner.gid)
    if owner.name == NOBODY[0]:
        for path, line in (
            ("/etc/passwd", f"{owner.name}:x:{owner.uid}:{owner.gid}::{SELF}/home:/bin/bash\n"),
            ("/etc/group", f"{owner.name}:x:{owner.gid}:\n"),
        ):
            enclosure.replace_file(root, path, Path(path).read_text() + line)
    hosts = "".join(f"{NETWORK}.{n} n{n}\n" for n in range(1, 254))
    enclosure.replace_file(root, "/etc/hosts", f"127.0.0.1 localhost\n{HEAD} head\n{hosts}")
    enclosure.enter(root)
    reads = owner.command("test", "-r", str(ROOT / "Makefile"), "-a", "-x", sys.executable)
    if subprocess.run(reads, check=False).returncode:
        raise UnderstudyError(f"the user {owner.name} cannot read {ROOT} or {sys.executable}")


def environment(owner: User, build: Path) -> dict[str, str]:
    search_path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    if build != BUILD:
        search_path = f"{build}/bin:{search_path}"
    variables = {
        "PATH": f"{SELF}/bin:{search_path}",
        "HOME": f"{SELF}/home",
        "USER": owner.name,
        "LOGNAME": owner.name,
        "PWD": str(ROOT),
        "SLURM_CONF": f"{SELF}/slurm.conf",
        "UNDERSTUDY_OUTPUT": f"{SELF}/out",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'python'}",
        # Ranks of all nodes share the cores of one host.
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_btl": "self,vader,tcp",
        "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    }
    dropped = ("TMPDIR", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    kept = {key: value for key, value in os.environ.items() if key not in dropped}
    if owner.uid == 0:
        variables |= dict.fromkeys(dropped[1:], "1")
    return kept | variables


def inside(arguments: argparse.Namespace, folder: Path) -> int:
    """As process 1 of the new namespaces, with an empty directory."""
    system = system_of(arguments.system)
    owner = user()
    kept = output()
    make_root(folder, system, owner, arguments.scratch_mib << 20)
    os.environ.update(environment(owner, build_of(system)))
    os.chdir(ROOT)
    began_s = time.monotonic()
    start_batch_system(system, arguments.nodes)
    say(
        f"{arguments.nodes} nodes of Slurm for {system['name']} in "
        f"{time.monotonic() - began_s:.1f} s; jobs of the user {owner.name}. This proves "
        "submission, placement, polling and volume, not the speed of the site"
    )
    command = arguments.command or [
        "as-user",
        "reframe",
        "-c",
        "checks/",
        "-r",
        "--system",
        system["name"],
        "--mode",
        "rehearsal",
        *selection(arguments.more),
    ]
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        keep_output(system["name"], kept)


def selection(more: str) -> list[str]:
    """Arguments for ReFrame; without a name among them, the check Replay. ReFrame joins the names
    of several options by "or"."""
    try:
        words = shlex.split(more)
    except ValueError as error:
        raise UnderstudyError(f"arguments for ReFrame: {more}: {error}") from error
    named = any(re.match(r"-n|--name(=|$)", word) for word in words)
    return words if named else ["-n", "^Replay", *words]


def keep_output(name: str, where: Path) -> None:
    """Copy records, reports and what is left of failed cases to the output directory."""
    if not any(path.is_file() for path in (SELF / "out").rglob("*")):
        return
    target = where / time.strftime(f"rehearsal-{name}-%Y%m%dT%H%M%S")
    begun = target.with_name(f".{target.name}")  # one that is not whole has no name of a record
    try:
        shutil.copytree(SELF / "out", begun, symlinks=True)
        owner = (ROOT / "Makefile").stat()
        for path in (begun, *begun.rglob("*")):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
        begun.rename(target)
    except BaseException:
        shutil.rmtree(begun, ignore_errors=True)
        raise
    say(f"records and reports: {target}")


def say(message: str) -> None:
    print(f"understudy: rehearsal: {message}", file=sys.stderr, flush=True)


def parsed() -> argparse.Namespace:
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(
        prog="rehearsal",
        description=__doc__.partition("\n")[0],
        usage="%(prog)s SYSTEM [options] [-- COMMAND...]",
    )
    parser.add_argument("system")
    parser.add_argument("--nodes", type=int, default=4, metavar="N")
    parser.add_argument(
        "--scratch-mib",
        type=int,
        default=1024,
        metavar="N",
        help="capacity of the scratch directory",
    )
    parser.add_argument("--more", default="", help="more arguments for reframe, as one word")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args(words[:at])
    options.command = words[at + 1 :]
    return options


def main() -> int:
    arguments = parsed()
    try:
        if arguments.inside is not None:
            return inside(arguments, Path(arguments.inside))
        build_of(system_of(arguments.system))
        selection(arguments.more)
        if reason := obstacle():
            raise UnderstudyError(reason)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except UnderstudyError as error:
        say(str(error))
        return 1
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    output().mkdir(parents=True, exist_ok=True)
    itself = [sys.executable, "-m", "nightly.rehearsal.slurm"]
    status = enclosure.enclosed(lambda folder: [*itself, "--inside", folder, *sys.argv[1:]])
    if status == 128 + signal.SIGINT:
        say("interrupted; nothing of it is left but the records of cases that have ended, if any")
    return status


if __name__ == "__main__":
    sys.exit(main())
