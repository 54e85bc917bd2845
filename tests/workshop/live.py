"""Run the programs of the workshop under Darshan, for the log, and strace, for the truth."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.fuzz_describe import Parts
from tests.workshop.cases import Case
from tests.workshop.truth import TRACED, Event, Truth, events, told
from understudy.darshanlog import layouts
from understudy.darshanlog.writer import write_regions

HERE = Path(__file__).resolve().parent
LOGS = HERE / "logs"
BASE = Path("/tmp/workshop")  # is in the logs
MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "^tcp,openib,usnic,ofi",
}
SETTINGS = """\
NAME_EXCLUDE ^/ *
NAME_INCLUDE ^{folder}(/|$) *
MAX_RECORDS 4000 POSIX,MPI-IO,STDIO,H5F,H5D
MODMEM 16
"""


def build(folder: Path) -> None:
    """Compile the programs into the folder, and copy the script."""
    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted((HERE / "programs").glob("*.c")):
        flags: list[str] = []
        if "hdf5.h" in source.read_text():
            flags_of = ["pkg-config", "--cflags", "--libs", "hdf5-openmpi"]
            asked = subprocess.run(flags_of, capture_output=True, text=True, check=False)
            if asked.returncode:
                continue
            flags = asked.stdout.split()
        program = folder / source.stem
        subprocess.run(["mpicc", "-O1", str(source), "-o", str(program), *flags], check=True)
    for script in (HERE / "programs").glob("*.py"):
        shutil.copy(script, folder)


def missing(case: Case) -> str:
    """What is not there to run a case; empty if all is."""
    for program in ("mpicc", "mpirun", "strace", case.needs):
        if program and shutil.which(program) is None:
            return f"{program} is not installed"
    if case.command[0] == "steps" and not (BASE / "bin" / "steps").exists():
        return "parallel HDF5 (hdf5-openmpi) is not installed"
    return ""


def run(case: Case, before: Sequence[str], environment: Mapping[str, str]) -> Path:
    """Run a case in a fresh folder with something before the program; its folder."""
    folder = BASE / case.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    case.prepare(folder)
    program, *arguments = case.command
    files = BASE / "bin"
    if not program.startswith("/") and (files / program).exists():
        program = str(files / program)
    arguments = [str(files / a) if (files / a).suffix == ".py" else a for a in arguments]
    launcher = ["mpirun", "-n", str(case.ranks)] if not case.environment else []
    subprocess.run(
        [*launcher, *before, program, *arguments],
        cwd=folder,
        check=True,
        env={**os.environ, **MPI, **environment},
        capture_output=True,
    )
    return folder


def record(case: Case, runtime: str, dxt: bool, log: Path) -> Truth:
    """Run a case under strace and Darshan: the truth, and a log without names of this machine."""
    folder = BASE / case.name
    settings, raw, traces = BASE / "darshan.conf", BASE / "log.darshan", BASE / "strace"
    shutil.rmtree(traces, ignore_errors=True)
    traces.mkdir(parents=True)
    raw.unlink(missing_ok=True)
    more = "MOD_ENABLE DXT_POSIX,DXT_MPIIO\n" if dxt else ""
    settings.write_text(SETTINGS.format(folder=folder) + more)
    preload = f"env -u LD_BIND_NOW LD_PRELOAD={runtime}/lib/libdarshan.so"
    strace = f"strace -f --seccomp-bpf -ttt -y -s 200 -e {TRACED} -o {traces}/$rank"
    variables = {
        "DARSHAN_CONFIG_PATH": str(settings),
        "DARSHAN_LOGFILE": str(raw),
        **case.environment,
    }
    script = f'rank=${{OMPI_COMM_WORLD_RANK:-0}}; exec {strace} {preload} "$@"'
    run(case, ["sh", "-c", script, "sh"], variables)
    calls: list[Event] = []
    for rank in range(case.ranks):
        with (traces / str(rank)).open(errors="replace") as lines:
            calls += events(lines, rank, str(folder))
    truth = told(calls, case.ranks, case.patterns, case.steps)
    shutil.rmtree(folder)
    neutral(raw, log)
    return truth


def neutral(log: Path, target: Path) -> None:
    """Copy a log without the mount points and the name of the machine."""
    parts = Parts.of(log.read_bytes())
    head = 8 * len(parts.format.job_fields) + layouts.JOB_METADATA_BYTES
    command = bytes(parts.job[head:]).rstrip(b"\0").partition(b"\n")[0]
    job = bytes(parts.job[:head]) + command + b"\next4\t/"
    host = os.uname().nodename.encode().ljust(64, b"\0")  # in the records of DXT
    neutral_name = b"node".ljust(64, b"\0")
    regions = [bytes(region).replace(host, neutral_name) for region in parts.regions]
    write_regions(target, bytes(parts.header), job.ljust(len(parts.job), b"\0"), regions, "zlib")
