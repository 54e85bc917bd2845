"""The cases of the workshop: kinds of I/O, and the program that shows each."""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of I/O; programs without a slash are those of the workshop."""

    name: str
    kind: str
    words: str  # of the command
    ranks: int = 4
    needs: str = ""  # a program of a package
    prepare: Callable[[Path], None] = lambda folder: None
    patterns: Mapping[str, str] = field(default_factory=dict)  # streams of a program without marks
    steps: Mapping[str, int] = field(default_factory=dict)  # time steps of files that stay open
    library: bool = False  # the calls below are those of a library
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def command(self) -> list[str]:
        return self.words.split()


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
    water = "solvate -cs spc216 -box 1.86 1.86 1.86 -o in.gro -p in.top"
    for command in (water, "grompp -f in.mdp -c in.gro -p in.top -o in.tpr -maxwarn 5"):
        subprocess.run(
            ["gmx", "-quiet", *command.split()], cwd=folder, check=True, capture_output=True
        )


def _patterns(*patterns: str) -> dict[str, str]:
    """Patterns of files, by the letters that they begin with."""
    return {pattern[:3].rstrip("\\"): pattern for pattern in patterns}


CASES = (
    Case("near", "120 dumps near each other, one file", "dumps near"),
    Case("nearfiles", "120 dumps near each other, a file each", "dumps nearfiles"),
    Case("rewrite", "one name per rank, truncated and rewritten", "again rewrite"),
    Case("update", "one name per rank, opened and updated in place", "again update"),
    Case("open", "open files updated in place", "again open"),
    Case("append", "opened to append (O_APPEND) in each dump", "append posix"),
    Case("appendstdio", 'opened to append (fopen "a") in each dump', "append stdio"),
    Case("turns", "two names in turn", "again turns"),
    Case("rename", "written beside, synced, renamed", "again rename"),
    Case("history", "history and restart files that alternate", "again history"),
    Case("steady", "small writes spread over the time", "dumps steady"),
    Case("funnel", "rank 0 writes for all", "dumps funnel"),
    Case("strided", "written in blocks of the ranks in turn", "dumps strided"),
    Case("synced", "fsync after each 256 KiB", "dumps synced"),
    Case("direct", "O_DIRECT", "dumps direct"),
    Case("osync", "O_SYNC", "dumps osync"),
    Case("passes", "three passes of reads, in order", "reader passes", prepare=_blocks),
    Case("shuffled", "three passes of shuffled reads", "reader shuffled", prepare=_blocks),
    Case(
        "stridedreads", "reads of blocks of the ranks in turn", "reader strided", prepare=_blocks
    ),
    Case("loader", "two epochs of small files, 4 ranks", "reader loader", prepare=_samples),
    Case(
        "pyloader",
        "two epochs of small files, Python",
        "python3 loader.py",
        ranks=1,
        prepare=_samples,
        environment={"DARSHAN_ENABLE_NONMPI": "1"},
    ),
    Case("storm", "mkdir, create, stat, rename, unlink", "storm"),
    Case("mixed", "header by stdio, data by MPI-IO", "mixed", library=True),
    Case("steps", "time steps in one open HDF5 file", "steps open", library=True),
    Case("reopened", "time steps in one HDF5 file, opened for each", "steps reopen", library=True),
    Case(
        "lammps",
        "LAMMPS: trajectory, restart files, two restart files in turn",
        "/usr/bin/lmp -in in.workshop -log none -screen none",
        needs="/usr/bin/lmp",
        prepare=_lammps,
        library=True,
        steps={"out": 16},
        patterns=_patterns(
            r"out\.lammpstrj", r"rst\..*", r"two\..*", r"end\.data", r"in\.workshop"
        ),
    ),
    Case(
        "gromacs",
        "GROMACS: checkpoints by rename, trajectory, energies, log",
        "/usr/bin/gmx_mpi mdrun -ntomp 1 -s in.tpr -deffnm md -cpt 0.02",
        ranks=2,
        needs="/usr/bin/gmx_mpi",
        prepare=_gromacs,
        steps={"xtc": 61, "edr": 61, "log": 61},
        patterns={"step": r"md_step.*\.cpt", "prev": r"md_prev\.cpt"}
        | {kind: rf"md\.{kind}" for kind in ("cpt", "xtc", "edr", "log", "gro")}
        | {"in": r"in\.tpr"},
    ),
)
BY_NAME = {case.name: case for case in CASES}

# What is described wrongly without a note, by log (a name without .dxt stands for both), and why.
WRONG: Mapping[str, Mapping[str, str]] = {}


def known_wrong(stem: str) -> dict[str, str]:
    """What is described wrongly of a log."""
    return {**WRONG.get(stem.partition(".")[0], {}), **WRONG.get(stem, {})}
