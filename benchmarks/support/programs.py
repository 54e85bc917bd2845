"""Programs whose requests at a storage are compared with those of their replicas."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from understudy.paths import ROOT

INPUTS = ROOT / "benchmarks" / "inputs"


@dataclass(frozen=True, slots=True)
class Program:
    """Commands of bash: what is made before, and the program. `inputs` is copied before."""

    before: str
    command: str
    needs: tuple[str, ...] = ()  # files that must be there, or programs on PATH
    package: str = ""  # of Debian
    inputs: str = ""  # a directory of benchmarks/inputs

    @property
    def lacks(self) -> list[str]:
        """Needed programs and files that are missing."""
        return [need for need in self.needs if not (shutil.which(need) or Path(need).exists())]

    @property
    def prepared(self) -> str:
        """The command that makes what is there before."""
        return f"cp {INPUTS / self.inputs}/* . && {self.before}" if self.inputs else self.before


def mpi(ranks: int, command: str) -> str:
    """The command with so many ranks."""
    return f"mpirun -n {ranks} {command}"


_PYTHON = "/usr/bin/python3"  # that of Debian, which has Debian's modules
_MODULES = "/usr/lib/python3/dist-packages"
_PETSC = "/usr/lib/petscdir/petsc3.18/x86_64-linux-gnu-real/lib/python3/dist-packages"
_PLAYER = f"{ROOT / 'build' / 'bin' / 'understudy-replay'} --time-scale 0 -o out -O result.json -k"
_DATA = "/usr/share/doc"

# Used while the tracing was made.
DEVELOPED = {
    "sort": Program("seq 200000 -1 1 > in", "sort -n -S 1M -T . in > out"),
    "split": Program("seq 100000 > in", "split -l 5000 in part. && cat part.* > all && rm part.*"),
    "gcc": Program(
        'for i in 1 2 3 4; do echo "int f$i(int x){return x*$i;}" > $i.c; done',
        "for i in 1 2 3 4; do gcc -c $i.c -o $i.o; done; ar rcs lib.a *.o",
        ("gcc",),
        "gcc",
    ),
    "xz": Program(
        "head -c 3000000 /dev/urandom > in",
        "xz -0 -k in && xz -dc in.xz > again",
        ("xz",),
        "xz-utils",
    ),
    "zip": Program(
        "mkdir d; for i in 1 2 3 4 5; do seq $i 9999 > d/$i; done",
        "zip -qr a.zip d",
        ("zip",),
        "zip",
    ),
    "sqlite": Program(
        "true",
        "for i in 1 2 3 4 5 6 7 8; do sqlite3 a.db "
        "'create table if not exists t(x); insert into t values(hex(randomblob(4000)));'; done",
        ("sqlite3",),
        "sqlite3",
    ),
    "perl": Program(
        "seq 20000 > in",
        'perl -e \'open(I,"in");open(O,">>log");while(<I>){print O $_ x 3;'
        'if($.%1000==0){close O;open(O,">>log")}}\'',
        ("perl",),
        "perl",
    ),
    "shell": Program(
        "mkdir d", "for i in $(seq 60); do echo $i >> log; cp log d/$i; done; ls d > list"
    ),
    "mpi-posix": Program(
        "true", mpi(4, f"{_PLAYER} -w {ROOT}/workloads/n-n.json -a posix --bytes-scale 0.05")
    ),
    "mpi-mpiio": Program(
        "true", mpi(4, f"{_PLAYER} -w {ROOT}/workloads/n-1.json -a mpiio --bytes-scale 0.05")
    ),
    "mpi-hdf5": Program(
        "true", mpi(4, f"{_PLAYER} -w {ROOT}/workloads/n-1.json -a hdf5 --bytes-scale 0.05")
    ),
    "mpi-stdio": Program(
        "true", mpi(4, f"{_PLAYER} -w {ROOT}/workloads/n-m.json -a stdio --bytes-scale 0.05")
    ),
}

# Chosen before any of them was run.
HELD_OUT = {
    "abyss": Program(
        f"{_PYTHON} genome.py 20000 4000",
        mpi(
            2,
            "/usr/lib/abyss/ABYSS-P -k25 --coverage-hist=hist.txt -s bubbles.fa "
            "-o unitigs.fa reads.fa",
        ),
        ("/usr/lib/abyss/ABYSS-P",),
        "abyss",
        "genome",
    ),
    "garli": Program(
        f"cp {_DATA}/phyml/examples/nucleic .",
        mpi(2, "garli-mpi -2 garli.conf"),
        ("garli-mpi", f"{_DATA}/phyml/examples/nucleic"),
        "garli-mpi phyml",
        "garli",
    ),
    "phyml": Program(
        f"cp {_DATA}/phyml/examples/nucleic .",
        mpi(2, "phyml-mpi -i nucleic -b 4 -o n --r_seed 1 --no_memory_check"),
        ("phyml-mpi", f"{_DATA}/phyml/examples/nucleic"),
        "phyml",
    ),
    "mpgrafic": Program(
        f"cp {_DATA}/mpgrafic/examples/Input.stdin in",
        mpi(2, "mpgrafic --np=64 < in > log"),
        ("mpgrafic", f"{_DATA}/mpgrafic/examples/Input.stdin"),
        "mpgrafic",
    ),
    "mplrs": Program(
        f"{_PYTHON} cube.py 11 > cube.ine",
        mpi(4, "mplrs cube.ine cube.ext -hist hist -temp ./"),
        ("mplrs",),
        "mplrs",
        "mplrs",
    ),
    "liggghts": Program(
        "true", mpi(2, "liggghts -in in.box"), ("liggghts",), "liggghts", "liggghts"
    ),
    "mpi4py": Program(
        "true",
        mpi(4, f"{_PYTHON} matrix.py"),
        (f"{_MODULES}/mpi4py", f"{_MODULES}/numpy"),
        "python3-mpi4py",
        "mpi4py",
    ),
    "petsc": Program(
        "true",
        f"PYTHONPATH={_PETSC} " + mpi(3, f"{_PYTHON} views.py"),
        (f"{_PETSC}/petsc4py",),
        "python3-petsc4py-real3.18",
        "petsc",
    ),
    "rsync": Program(
        "for d in 1 2 3 4 5 6; do mkdir -p source/$d; for i in $(seq 20); do "
        "seq $i $((i * 900)) > source/$d/$i; done; done",
        "rsync -a source/ copy && seq 9999 >> source/3/7 && rm source/4/1 && "
        "rsync -a --checksum --delete source/ copy",
        ("rsync",),
        "rsync",
    ),
    "pdflatex": Program(
        f"{_PYTHON} article.py > article.tex",
        "pdflatex -interaction=batchmode article && pdflatex -interaction=batchmode article",
        ("pdflatex",),
        "texlive-latex-base",
        "pdflatex",
    ),
    "bwa": Program(
        f"{_PYTHON} genome.py 300000 4000",
        "bwa index genome.fa && bwa mem genome.fa reads.fq > out.sam",
        ("bwa",),
        "bwa",
        "genome",
    ),
    "imagemagick": Program(
        "true",
        "export MAGICK_TEMPORARY_PATH=. MAGICK_MEMORY_LIMIT=8KiB MAGICK_MAP_LIMIT=0; "
        "convert-im6.q16 -seed 1 -size 60x40 plasma:red-blue a.png && "
        "convert-im6.q16 a.png -resize 50% b.jpg && convert-im6.q16 a.png -rotate 90 c.gif && "
        "montage-im6.q16 a.png b.jpg c.gif all.png",
        ("convert-im6.q16", "montage-im6.q16"),
        "imagemagick",
    ),
}
PROGRAMS = DEVELOPED | HELD_OUT
