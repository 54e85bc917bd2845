"""understudy system: a first configuration of the machine at hand."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from understudy import paths
from understudy.errors import UnderstudyError
from understudy.files import expect_new, make_folder, write_text
from understudy.reframe import systems
from understudy.units import hms

# Types in /proc/self/mounts of file systems that all nodes see.
PARALLEL = {
    "lustre": "lustre",
    "gpfs": "gpfs",
    "beegfs": "beegfs",
    "beegfs_nodev": "beegfs",
    "ceph": "ceph",
    "fuse.ceph-fuse": "ceph",
    "fuse.ceph": "ceph",
    "pvfs2": "pvfs2",
    "panfs": "panfs",
    "wekafs": "wekafs",
    "nfs": "nfs",
    "nfs4": "nfs",
    "cifs": "cifs",
}
STRIPED = ("lustre", "ceph", "beegfs")  # users set layouts
IN_MEMORY = ("tmpfs", "ramfs")
# Types that one node has alone; of others it is not known whether nodes share them.
OF_A_NODE = (
    "bcachefs",
    "btrfs",
    "ext2",
    "ext3",
    "ext4",
    "f2fs",
    "jfs",
    "nilfs2",
    "overlay",
    "reiserfs",
    "xfs",
    "zfs",
)
OF_EACH = "of each node: jobs of one node"
ASSUMED = "assumed to be shared by the nodes; if not, remove SHARED and set MAX_NODES to 1"
RANKS = 16  # on this machine, or as many as it has cores
OUTPUT_KIB = 16 << 10  # of a program that is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """Nodes of one kind: a partition of Slurm, a queue of PBS, or this machine. `cores` is the
    number of ranks of a node."""

    name: str
    nodes: int
    cores: int
    memory_bytes: int | None = None  # of a node, where the batch system states it
    physical_cores: int | None = None  # where more ranks than that are allowed
    access: tuple[str, ...] = ()
    max_seconds: int | None = None  # of a job

    @property
    def remark(self) -> str:
        """Says so where ranks share cores; else empty."""
        if self.physical_cores is None or self.cores <= self.physical_cores:
            return ""
        return f"more than its {self.physical_cores} cores: ranks share them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """How jobs are submitted and started."""

    scheduler: str
    launcher: str
    needs: tuple[str, ...]
    queues: tuple[Queue, ...]
    options: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSystem:
    """One file system to measure."""

    name: str
    scratch: str
    type: str
    shared: bool
    features: tuple[str, ...] = ()
    extras: dict[str, str] = field(default_factory=dict)
    note: str = ""


@click.group()
def command() -> None:
    """Write the configuration of a system."""


@command.command()
@click.argument("name")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="File to write. [default: understudy-site/systems/NAME.py]",
)
@click.option(
    "--scratch",
    "scratch",
    multiple=True,
    metavar="DIR",
    help="Directory for data, visible to the nodes; may be given several times. Without it: every "
    "parallel file system in which you can write, /dev/shm and /var/tmp.",
)
@click.option(
    "--no-batch",
    is_flag=True,
    help="Describe this machine alone; ask no batch system, also where one is installed.",
)
@click.option("-f", "--force", is_flag=True, help="Replace the file if it exists.")
def new(
    name: str, output: Path | None, scratch: tuple[str, ...], no_batch: bool, force: bool
) -> None:
    """Ask this machine what it has, and write a first configuration of the system NAME.

    Batch system (Slurm, PBS, Torque, or none), queues, nodes, cores, launcher, file systems and
    striping are those found on this host: run it on a login node. The file says what was found and
    what was assumed; edit it where it is wrong. Nothing is submitted.
    """
    if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9_-]*", name):
        raise UnderstudyError(f"{name!r}: expected a name of letters, digits, - and _")
    output = output or Path(paths.SITE_FOLDER) / "systems" / f"{name}.py"
    existing_file = paths.files("systems", ".py").get(name)
    if existing_file is not None and existing_file.resolve() != output.resolve():
        raise UnderstudyError(f"the system {name!r} exists: {existing_file}")
    expect_new(output, force)
    batch = _this_machine() if no_batch else _batch()
    local = batch.scheduler == "local"
    file_systems = list(_file_systems(scratch, local))
    if not file_systems:
        raise UnderstudyError("no file system was found; name a directory with --scratch DIR")
    text = _text(name, batch, file_systems)
    with tempfile.TemporaryDirectory() as folder:  # what ReFrame would refuse is not written
        (Path(folder) / f"{name}.py").write_text(text, encoding="utf-8")
        systems.load([Path(folder)])
    make_folder(output.parent)
    write_text(output, text)
    click.echo(f"{output}: {batch.scheduler}, {batch.launcher}")
    for queue in batch.queues:
        note = queue.remark and f" ({queue.remark})"
        most = f", jobs of at most {hms(queue.max_seconds)}" if queue.max_seconds else ""
        click.echo(
            f"  {queue.name or 'nodes'}: {queue.nodes} of {queue.cores} ranks each{note}{most}"
        )
    for file_system in file_systems:
        note = file_system.note and f" ({file_system.note})"
        click.echo(f"  {file_system.name}: {file_system.type} at {file_system.scratch}{note}")
    click.echo("Next:")
    if output.parent.name == "systems":
        site = output.parent.parent.resolve()
        note = "  # in other directories than this one" if site in paths.sites() else ""
        click.echo(f"  export UNDERSTUDY_PATH={site}{note}")
    click.echo(
        '  reframe -C "$(understudy doctor --paths config)" -r '
        f"--system {name} --mode quick -n Replay"
    )


def _printed(*words: str, must: bool = False) -> str | None:
    """Standard output of a program; None where it is missing, fails or does not answer. With
    `must` a program that is there has to answer."""
    if not shutil.which(words[0]):
        return None
    with tempfile.TemporaryFile() as out:
        try:
            done = subprocess.run(
                ["/bin/bash", "-c", f'ulimit -f {OUTPUT_KIB}; exec "$@"', "-", *words],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.PIPE,
                timeout=30,
                check=False,
            )
            status, said = done.returncode, done.stderr.decode("utf-8", "replace").strip()
        except (OSError, subprocess.TimeoutExpired):
            status, said = None, ""
        out.seek(0)
        text = out.read().decode("utf-8", "replace")
    if status == 0:
        return text
    if must:
        raise UnderstudyError(
            f"{' '.join(words)}: "
            + (
                "no answer within 30 s; "
                if status is None
                else f"failed with exit status {status}: {said[-200:] or 'no message'}; "
            )
            + "the batch system must answer; --no-batch describes this machine without it"
        )
    return None


def _count(text: str, what: str) -> int:
    """A number of nodes or cores as a batch system states it."""
    if not re.fullmatch("[0-9]{1,8}", text) or not int(text):
        raise UnderstudyError(f"{what}: expected a number of 1 to 99999999, got {text!r}")
    return int(text)


def _limit(text: str, what: str) -> int | None:
    """Seconds of a time limit as a batch system states it, D-HH:MM:SS or a part of it; None where
    there is none."""
    if text.lower() in ("infinite", "unlimited", "n/a", "not_set", ""):
        return None
    match = re.fullmatch(r"(?:(\d{1,5})-)?(?:(?:(\d{1,7}):)?(\d{1,7}):)?(\d{1,9})", text)
    if match is None:
        raise UnderstudyError(f"{what}: expected a time such as 1-00:00:00, got {text!r}")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((24 * days + hours) * 60 + minutes) * 60 + seconds or None


def _batch() -> Batch:
    for asked in (_slurm, _pbs):
        if batch := asked():
            return batch
    return _this_machine()


def _this_machine() -> Batch:
    # More ranks than cores are allowed, as on the system localhost.
    cores = os.cpu_count() or 1
    here = Queue(name="", nodes=1, cores=max(RANKS, cores), physical_cores=cores)
    return Batch(
        scheduler="local",
        launcher=_launcher(),
        needs=(_launcher(), "understudy-replay"),
        queues=(here,),
    )


def _launcher() -> str:
    return next((p for p in ("mpirun", "mpiexec") if shutil.which(p)), "mpirun")


def _slurm() -> Batch | None:
    if not shutil.which("sbatch"):
        return None
    printed = _printed("sinfo", "-h", "-o", "%R|%D|%c|%a|%l", must=True) or ""
    queues: dict[str, Queue] = {}
    memory = _slurm_memory()
    for row in printed.splitlines():
        fields = row.strip().split("|")
        if len(fields) != 5 or fields[3] != "up":
            continue
        name = fields[0].rstrip("*")
        nodes = _count(fields[1], f"sinfo: nodes of {name}")
        cores = _count(fields[2].rstrip("+"), f"sinfo: cores of {name}")
        if name in queues:  # nodes of several kinds: the fewest cores
            nodes, cores = nodes + queues[name].nodes, min(cores, queues[name].cores)
        access = (f"--partition={name}",)
        limit = _limit(fields[4], f"sinfo: time limit of {name}")
        queues[name] = Queue(
            name=name,
            nodes=nodes,
            cores=cores,
            access=access,
            memory_bytes=memory.get(name),
            max_seconds=limit,
        )
    if not queues:
        lines = printed.splitlines() or ["nothing"]
        raise UnderstudyError(
            "sinfo: no partition is up; expected at least one line such as "
            f"work|4|64|up|1-00:00:00, found {lines[0][:60]!r}"
        )
    # mpirun starts ranks with any MPI that it belongs to; srun needs an MPI built for it.
    launcher = "mpirun" if shutil.which("mpirun") else "srun"
    scheduler = "slurm"
    options = '"sched_options": {"use_nodes_option": True},'
    if _printed("sacct", "-n", "-X", "--starttime=now") is None:
        options += "  # squeue: there is no accounting"
        scheduler = "squeue"
    return Batch(
        scheduler=scheduler,
        launcher=launcher,
        needs=("sbatch",),
        options=options,
        queues=tuple(queues.values()),
    )


def _slurm_memory() -> dict[str, int]:
    """Bytes of memory of a node by partition: the largest, which Slurm states in MiB."""
    memory_by_partition: dict[str, int] = {}
    for row in (_printed("sinfo", "-h", "-o", "%R|%m") or "").splitlines():
        name, _, mebibytes = row.strip().replace("*|", "|").partition("|")
        if re.fullmatch("[0-9]{3,9}[+]?", mebibytes):  # less is no memory that a site stated
            memory_bytes = int(mebibytes.rstrip("+")) << 20
            memory_by_partition[name] = max(memory_bytes, memory_by_partition.get(name, 0))
    return memory_by_partition


def _pbs() -> Batch | None:
    if not shutil.which("qsub"):
        return None
    printed = _printed("pbsnodes", "-a", must=True) or ""
    professional = "resources_available.ncpus" in printed
    key = r"resources_available\.ncpus" if professional else "np"
    core_counts = re.findall(rf"(?m)^\s+{key} = (\S+)\s*$", printed)
    cores = [_count(n, f"pbsnodes: {key}") for n in core_counts if n != "0"]
    if not cores:
        raise UnderstudyError(f"pbsnodes -a: no node with {key}; expected at least one")
    memory = re.findall(r"(?m)^\s+resources_available\.mem = ([0-9]{1,12})kb\s*$", printed)
    launcher = "aprun" if shutil.which("aprun") else _launcher()
    return Batch(
        scheduler="pbs" if professional else "torque",
        launcher="alps" if launcher == "aprun" else launcher,
        needs=("qsub",),
        queues=(
            Queue(
                name="",
                nodes=len(cores),
                cores=min(cores),
                max_seconds=_walltime(),
                memory_bytes=max(map(int, memory), default=0) << 10 or None,
            ),
        ),
    )


def _walltime() -> int | None:
    """The longest time of a job without a queue of its own: that of the server, or less of the
    default queue."""
    server = _printed("qstat", "-B", "-f") or ""
    default = re.search(r"(?m)^\s*default_queue = (\S+)\s*$", server)
    queue = (_printed("qstat", "-Q", "-f", default[1]) or "") if default else ""
    key = r"(?m)^\s*resources_max\.walltime = (\S+)\s*$"
    stated = [
        _limit(text, "qstat: resources_max.walltime") for text in re.findall(key, server + queue)
    ]
    return min((seconds for seconds in stated if seconds is not None), default=None)


def _file_systems(named: Sequence[str], local: bool) -> Iterator[FileSystem]:
    taken: set[str] = set()
    for directory in named or _candidates():
        path, said = systems.expanded(directory)
        if not path.is_dir():
            raise UnderstudyError(f"--scratch {said}: expected a directory")
        storage = _storage(str(path))
        type_ = str(storage.get("type") or "disk")
        common_type = PARALLEL.get(type_, type_)
        parallel = common_type in PARALLEL.values()
        shared = parallel or type_ not in (*IN_MEMORY, *OF_A_NODE, "disk")
        if not parallel and common_type not in IN_MEMORY:
            common_type = "disk"
        layout = storage.get("default_layout")
        features: tuple[str, ...] = ("LUSTRE",) if common_type == "lustre" else ()
        extras: dict[str, str] = {}
        if common_type in STRIPED and isinstance(layout, dict):
            features += ("STRIPING",)
            count = layout.get("stripe_count")
            extras = {
                "STRIPE_COUNT": str(count if isinstance(count, int) and count > 0 else None),
                "STRIPE_COUNT_MAX": str(_targets(common_type, str(path))),
            }
        name = re.sub("[^a-z0-9]+", "-", (common_type if parallel else type_).lower()).strip("-")
        name = next(n for n in (name, *(f"{name}-{k}" for k in range(2, 99))) if n not in taken)
        taken.add(name)
        yield FileSystem(
            name=name,
            scratch=directory,
            type=type_ if parallel else common_type,
            shared=shared or local,
            features=features,
            extras=extras,
            note="" if parallel or local else ASSUMED if shared else OF_EACH,
        )


def _candidates() -> Iterator[str]:
    """Directories to write in: of parallel file systems the user's own, then the node's."""
    user_paths = [os.environ.get(v, "") for v in ("SCRATCH", "WORK", "HOME")]
    user_paths = [path for path in user_paths if path.startswith("/") and "$" not in path]
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace")
    rows = (row.split() for row in mounts.splitlines())
    points = [re.sub(r"\\040", " ", row[1]) for row in rows if row[2] in PARALLEL]
    for point in points:
        inside = [path for path in user_paths if Path(path).is_relative_to(point)]
        for path in [*inside, f"{point}/{os.environ.get('USER', '')}", point]:
            if os.access(path, os.W_OK | os.X_OK) and Path(path).is_dir():
                yield path
                break
    yield from (path for path in ("/dev/shm", "/var/tmp") if os.access(path, os.W_OK))


def _storage(directory: str) -> dict[str, object]:
    printed = _printed(paths.program("understudy-storage"), directory)
    if printed is None:
        raise UnderstudyError(f"{directory}: understudy-storage cannot examine it")
    read = json.loads(printed)
    assert isinstance(read, dict)
    return read


def _targets(common_type: str, directory: str) -> int | None:
    """Targets of the file system, where a command of its own tells."""
    if common_type == "lustre":
        printed = _printed("lfs", "osts", directory) or ""
        return len(re.findall(r"(?m)^\d+: ", printed)) or None
    if common_type == "ceph":  # users may lack the right to ask
        printed = _printed("ceph", "--connect-timeout", "10", "osd", "stat", "-f", "json") or ""
        match = re.search(r'"num_in_osds":\s*([1-9]\d{0,5})\b', printed)
        return int(match[1]) if match else None
    return None


def _hosts(name: str) -> str:
    """A regular expression of the names of hosts like one, in any number and domain."""
    words = re.split("([0-9]+)", name.partition(".")[0])
    pattern = "".join("[0-9]+" if word.isdigit() else re.escape(word) for word in words)
    return rf"^{pattern}(\..*)?$"


def _text(name: str, batch: Batch, file_systems: Sequence[FileSystem]) -> str:
    """A file of configs/systems/."""
    used = {"MAX_NODES", "MPI", "NEEDS", "RANKS_PER_NODE", "SCRATCH", "TYPE", "per_filesystem"}
    if any(queue.max_seconds for queue in batch.queues):
        used.add("MAX_SECONDS")
    if any(queue.memory_bytes is not None for queue in batch.queues):
        used.add("NODE_MEMORY")
    for file_system in file_systems:
        used |= {
            *file_system.features,
            *file_system.extras,
            *(["SHARED"] if file_system.shared else []),
        }
    lines = [
        f'"""{name}: written by understudy system new, from what its login node says.',
        "",
        "Nodes, cores, queues and file systems were found. Assumed: that programs need no modules",
        "(else set prepare_cmds or modules), and that the directories below are for data.",
        '"""',
        "",
        "from understudy.reframe.systems import (",
        *(f"    {word}," for word in sorted(used, key=lambda w: (w.islower(), w))),
        ")",
        "",
        "file_systems = {",
    ]
    for file_system in file_systems:
        features = ", ".join([*(["SHARED"] if file_system.shared else []), *file_system.features])
        extras = {
            "TYPE": json.dumps(file_system.type),
            "SCRATCH": json.dumps(file_system.scratch),
            **file_system.extras,
        }
        if not file_system.shared:
            extras["MAX_NODES"] = "1"  # each node has its own
        rows = ", ".join(f"{key}: {value}" for key, value in extras.items())
        lines += [
            f'    "{file_system.name}": {{' + (file_system.note and f"  # {file_system.note}"),
            f'        "features": [{features}],',
            f'        "extras": {{{rows}}},',
            "    },",
        ]
    lines += ["}", "", "partitions = []"]
    for queue in batch.queues:
        prefix = re.sub("[^A-Za-z0-9_-]+", "-", queue.name).strip("-")
        several = f'{{f"{prefix}-{{name}}": own for name, own in file_systems.items()}}'
        lines += [
            "partitions += per_filesystem(",
            "    {",
            f'        "scheduler": "{batch.scheduler}",',
            f'        "launcher": "{batch.launcher}",',
            f'        "access": {json.dumps(queue.access)},',
            '        "environs": ["mpi"],',
            '        "max_jobs": 1,',
            *([f"        {batch.options}"] if batch.options else []),
            '        "features": [MPI],',
            '        "extras": {',
            f"            MAX_NODES: {queue.nodes},",
            f"            RANKS_PER_NODE: {queue.cores},{queue.remark and f'  # {queue.remark}'}",
            *(
                [f"            MAX_SECONDS: {queue.max_seconds},  # {hms(queue.max_seconds)}"]
                if queue.max_seconds
                else []
            ),
            *(
                [f"            NODE_MEMORY: {queue.memory_bytes},"]
                if queue.memory_bytes is not None
                else []
            ),
            f"            NEEDS: {json.dumps(batch.needs)},",
            "        },",
            "    },",
            f"    **{several if len(batch.queues) > 1 else 'file_systems'},",
            ")",
        ]
    lines += [
        "",
        "system = {",
        f'    "name": "{name}",',
        f'    "descr": "{name}",',
        f'    "hostnames": [{json.dumps(_hosts(socket.gethostname()))}],  # that of this host',
        '    "max_local_jobs": 1,',
        '    "partitions": partitions,',
        "}",
        "",
        "environments = [",
        "    {",
        '        "name": "mpi",',
        f'        "target_systems": ["{name}"],',
        '        "cc": "mpicc",',
        '        "cxx": "",',
        '        "ftn": "",',
        '        "features": [MPI],',
        "    }",
        "]",
        "",
    ]
    return "\n".join(lines)
