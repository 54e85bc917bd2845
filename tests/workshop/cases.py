"""The cases of the workshop: kinds of I/O, and the program that shows each."""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A kind of I/O; programs without a slash are those of the workshop."""

    name: str
    kind: str
    command: tuple[str, ...]
    ranks: int = 4
    needs: str = ""  # a program of a package
    prepare: Callable[[Path], None] = lambda folder: None
    patterns: Mapping[str, str] = field(default_factory=dict)  # streams of a program without marks
    steps: Mapping[str, int] = field(default_factory=dict)  # time steps of files that stay open
    library: bool = False  # the calls below are those of a library
    environment: Mapping[str, str] = field(default_factory=dict)


def _blocks(folder: Path) -> None:
    (folder / "in.all").write_bytes(bytes(4 * 64 << 16))


def _samples(folder: Path) -> None:
    (folder / "set").mkdir()
    for n in range(200):
        (folder / "set" / f"in_{n:05d}.bin").write_bytes(bytes(24_000))


_LAMMPS = """\
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 16 0 16 0 16
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
fix 1 all nve
thermo 100
dump 1 all atom 20 out.lammpstrj
dump_modify 1 sort id format line "%8d %d %12.6f %12.6f %12.6f"
restart 50 rst.*.restart
restart 25 two.a two.b
run 300
write_data end.data
"""


def _lammps(folder: Path) -> None:
    (folder / "in.workshop").write_text(_LAMMPS)


_GROMACS = """\
integrator = md
nsteps = 12000
dt = 0.001
nstxout-compressed = 200
nstenergy = 200
nstlog = 200
cutoff-scheme = Verlet
coulombtype = reaction-field
rcoulomb = 0.8
rvdw = 0.8
tcoupl = v-rescale
tc-grps = System
tau-t = 0.1
ref-t = 300
gen-vel = yes
gen-seed = 1
"""


def _gromacs(folder: Path) -> None:
    (folder / "in.mdp").write_text(_GROMACS)
    forces = ("forcefield", "spc")
    lines = [f'#include "oplsaa.ff/{name}.itp"\n' for name in forces]
    (folder / "in.top").write_text("".join([*lines, "[system]\nwater\n[molecules]\n"]))
    made = "solvate -cs spc216 -box 1.86 1.86 1.86 -o in.gro -p in.top"
    for command in (made, "grompp -f in.mdp -c in.gro -p in.top -o in.tpr -maxwarn 5"):
        subprocess.run(
            ["gmx", "-quiet", *command.split()], cwd=folder, check=True, capture_output=True
        )


CASES = (
    Case(name="near", kind="120 dumps near each other, one file", command=("dumps", "near")),
    Case(
        name="nearfiles",
        kind="120 dumps near each other, a file each",
        command=("dumps", "nearfiles"),
    ),
    Case(
        name="rewrite",
        kind="one name per rank, truncated and rewritten",
        command=("again", "rewrite"),
    ),
    Case(
        name="update",
        kind="one name per rank, opened and updated in place",
        command=("again", "update"),
    ),
    Case(name="open", kind="open files updated in place", command=("again", "open")),
    Case(
        name="append", kind="opened to append (O_APPEND) in each dump", command=("append", "posix")
    ),
    Case(
        name="appendstdio",
        kind='opened to append (fopen "a") in each dump',
        command=("append", "stdio"),
    ),
    Case(name="turns", kind="two names in turn", command=("again", "turns")),
    Case(name="rename", kind="written beside, synced, renamed", command=("again", "rename")),
    Case(
        name="history",
        kind="history and restart files that alternate",
        command=("again", "history"),
    ),
    Case(name="steady", kind="small writes spread over the time", command=("dumps", "steady")),
    Case(name="funnel", kind="rank 0 writes for all", command=("dumps", "funnel")),
    Case(
        name="strided", kind="written in blocks of the ranks in turn", command=("dumps", "strided")
    ),
    Case(name="synced", kind="fsync after each 256 KiB", command=("dumps", "synced")),
    Case(name="direct", kind="O_DIRECT", command=("dumps", "direct")),
    Case(name="osync", kind="O_SYNC", command=("dumps", "osync")),
    Case(
        name="passes",
        kind="three passes of reads, in order",
        command=("reader", "passes"),
        prepare=_blocks,
    ),
    Case(
        name="shuffled",
        kind="three passes of shuffled reads",
        command=("reader", "shuffled"),
        prepare=_blocks,
    ),
    Case(
        name="stridedreads",
        kind="reads of blocks of the ranks in turn",
        command=("reader", "strided"),
        prepare=_blocks,
    ),
    Case(
        name="loader",
        kind="two epochs of small files, 4 ranks",
        command=("reader", "loader"),
        prepare=_samples,
    ),
    Case(
        name="pyloader",
        kind="two epochs of small files, Python",
        ranks=1,
        command=("python3", "loader.py"),
        prepare=_samples,
        environment={"DARSHAN_ENABLE_NONMPI": "1"},
    ),
    Case(name="storm", kind="mkdir, create, stat, rename, unlink", command=("storm",)),
    Case(name="mixed", kind="header by stdio, data by MPI-IO", command=("mixed",), library=True),
    Case(
        name="steps",
        kind="time steps in one open HDF5 file",
        command=("steps", "open"),
        library=True,
    ),
    Case(
        name="reopened",
        kind="time steps in one HDF5 file, opened for each",
        command=("steps", "reopen"),
        library=True,
    ),
    Case(
        name="lammps",
        kind="LAMMPS: trajectory, restart files, two restart files in turn",
        command=("/usr/bin/lmp", "-in", "in.workshop", "-log", "none", "-screen", "none"),
        needs="/usr/bin/lmp",
        prepare=_lammps,
        library=True,
        steps={"out": 16},
        patterns={
            "out": r"out\.lammpstrj",
            "rst": r"rst\..*",
            "two": r"two\..*",
            "end": r"end\.data",
            "in": r"in\.workshop",
        },
    ),
    Case(
        name="gromacs",
        kind="GROMACS: checkpoints by rename, trajectory, energies, log",
        ranks=2,
        command=(
            "/usr/bin/gmx_mpi",
            "mdrun",
            "-ntomp",
            "1",
            "-s",
            "in.tpr",
            "-deffnm",
            "md",
            "-cpt",
            "0.02",
        ),
        needs="/usr/bin/gmx_mpi",
        prepare=_gromacs,
        steps={"xtc": 61, "edr": 61, "log": 61},
        patterns={
            "step": r"md_step.*\.cpt",
            "prev": r"md_prev\.cpt",
            "cpt": r"md\.cpt",
            "xtc": r"md\.xtc",
            "edr": r"md\.edr",
            "log": r"md\.log",
            "gro": r"md\.gro",
            "in": r"in\.tpr",
        },
    ),
)
BY_NAME = {case.name: case for case in CASES}

# What is described wrongly without a note, by log (a name without .dxt stands for both), and why.
WRONG: Mapping[str, Mapping[str, str]] = {}


def known_wrong(stem: str) -> dict[str, str]:
    """What is described wrongly of a log."""
    return {**WRONG.get(stem.partition(".")[0], {}), **WRONG.get(stem, {})}
