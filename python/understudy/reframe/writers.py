# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Base classes of checks with programs that others wrote: they run as they are, a skeleton is
learned from a file that they wrote, and both run in turn.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import (
    parameter,
    run_after,
    run_before,
    sanity_function,
)

from understudy.reframe.check import lacks
from understudy.reframe.evidence import AskedProgram, program_faults
from understudy.reframe.paired import APPLICATION, SKELETON, Paired
from understudy.reframe.systems import MPI, TYPE
from understudy.report.cases import SCALARS_BYTES
from understudy.result import DumpResult, Result, load
from understudy.skel import bpfile

FOLDER = "UNDERSTUDY_ADIOS_EXAMPLES"
DEBIAN = "/usr/share/doc/libadios-examples/examples/C"
# A program that is taken needs no arguments and declares nothing by itself, and all processes
# write files of one group.
LACKS = ("adios_init_noxml", "MPI_Comm_split", "argc < ")
OPENS = re.compile(r'adios_open \(\s*&\w+,\s*"(\w+)",[^;]*"[wa]"')
NONE = "none"
UNDERSTUDY = f"{shlex.quote(sys.executable)} -m understudy skel"


@cache
def folder() -> Path:
    """Where the programs are: of the environment, else where Debian's package has them."""
    return Path(os.environ.get(FOLDER, DEBIAN))


@cache
def names() -> list[str]:
    """The programs in C that write by an adios-config, as <folder>/<program>; NONE alone where
    there are none, so that the check can say it."""
    found = []
    for path in sorted(folder().glob("*/*.c")):
        text = path.read_text(encoding="utf-8", errors="replace")
        groups = set(OPENS.findall(text))
        if "adios_init (" in text and len(groups) == 1 and not any(word in text for word in LACKS):
            found.append(f"{path.parent.name}/{path.stem}")
    return found or [NONE]


class Learned(rfm.RegressionTest):
    """One program, built from its sources as they are, run once with its calls of ADIOS measured;
    and the skeleton that is made of the file that it wrote."""

    writer = parameter(loggable=True)
    ranks = parameter(loggable=True)

    valid_systems = [f"+{MPI}"]
    valid_prog_environs = [f"+{MPI}"]
    build_system: Any = "CustomBuild"
    result_file = "learned.json"
    measured = "measured"  # the folder of what is built from the sources

    @run_after("init")
    def take_the_sources(self) -> None:
        """The programs find their configs, and included parts of their sources, beside them."""
        self.sourcesdir = None if self.writer == NONE else str((folder() / self.writer).parent)
        self.num_tasks = self.ranks

    @run_after("setup")
    def need_adios(self) -> None:
        self.skip_if(
            self.writer == NONE,
            f"{folder()}: no program that writes by ADIOS; install libadios-examples, or name "
            f"another folder in {FOLDER}",
        )
        if self.current_partition.scheduler.is_local and not self.is_dry_run():
            reason = lacks("adios")
            self.skip_if(reason is not None, reason)
            self.skip_if(
                not any(map(shutil.which, bpfile.PROGRAMS)),
                f"{bpfile.PROGRAMS[0]} is not on this host; a skeleton is learned through it",
            )

    @run_before("compile")
    def build_it_as_it_is(self) -> None:
        source = shlex.quote(f"{Path(self.writer).name}.c")
        self.build_system.commands = [
            f"mkdir -p {self.measured} {SKELETON}",
            f"{UNDERSTUDY} measure {source} -d {self.measured}",
        ]

    @run_before("run")
    def run_it_and_learn(self) -> None:
        self.executable = self.measured_run("files", self.result_file, "-k")
        self.prerun_cmds = ["set -e"]
        first = "*.bp" if self.appends else "*.0.bp"
        self.postrun_cmds = [f"{UNDERSTUDY} replay files/{first} -d {SKELETON}"]

    @sanity_function
    def a_skeleton_was_made(self) -> Any:
        """Where none can be made of the file, the reason is that of the command."""
        text = Path(self.stagedir, str(self.job.stderr)).read_text(encoding="utf-8")
        said = [line for line in text.splitlines() if line.startswith("understudy: files/")]
        self.skip_if(not self.skeletons() and bool(said), said[-1] if said else "")
        return sn.assert_eq(len(self.skeletons()), 1, f"{self.writer}: no skeleton was built")

    @property
    def program(self) -> Path:
        return Path(self.stagedir) / self.measured / "build" / Path(self.writer).name

    @property
    def appends(self) -> bool:
        """Do all steps go into one file?"""
        text = (folder() / f"{self.writer}.c").read_text(encoding="utf-8", errors="replace")
        return '"a"' in text

    def options(self, directory: str, result: str, *more: str) -> str:
        """Of a run of the program, or of its skeleton."""
        append = ["--append"] if self.appends else []
        name = f"--application {self.writer.replace('/', '-')}"
        return " ".join([f"-o {directory}", f"-r {result}", name, *append, *more])

    def measured_run(self, directory: str, result: str, *more: str) -> str:
        """The program, as the launcher starts it."""
        return f'env SKELETON_OPTIONS="{self.options(directory, result, *more)}" {self.program}'

    def skeletons(self) -> list[Path]:
        return sorted((Path(self.stagedir) / SKELETON / "build").glob("*_skel_*_write"))

    @property
    def result(self) -> Result:
        return load(Path(self.stagedir) / self.result_file)


class Written(Paired):
    """The program and the skeleton that was learned from its file, in turn.

    A check below it has `learned`, a fixture of that program, and `method`, which both write by.
    """

    method = parameter(loggable=True)

    stripe_count = "default"
    keep_files = [APPLICATION, SKELETON]

    @run_after("setup")
    def know_the_program(self) -> None:
        self.application = self.learned.writer
        self.sourcesdir = self.learned.sourcesdir
        self.num_tasks = self.ranks

    @property
    def ranks(self) -> int:
        return int(self.learned.ranks)

    @property
    def steps(self) -> tuple[DumpResult, ...]:
        """Those that the program made when it was learned."""
        learned: Result = self.learned.result
        return learned.repetitions[0].streams[0].dumps

    @property
    def bytes_needed(self) -> int:
        return 0 if self.is_dry_run() else sum(step.bytes for step in self.steps)

    @property
    def step_bytes(self) -> int:
        return self.steps[0].bytes

    @property
    def methods_needed(self) -> set[str]:
        return {"adios"}

    def command(self, kind: str, result: Path) -> str:
        where = (f"$dir/{kind}", str(result), f"-a {self.method}")
        if kind == APPLICATION:
            return str(self.learned.measured_run(*where))
        steps = 1 if self.is_dry_run() else len(self.steps)
        skeletons = self.learned.skeletons() or [Path(SKELETON)]
        config = next(Path(self.learned.stagedir, SKELETON).glob("*_skel.xml"), Path("skel.xml"))
        return f"{skeletons[0]} -c {config} -s {steps} {self.learned.options(*where)}"

    @run_before("run")
    def one_job_for_all(self) -> None:
        """The first run is the job's executable."""
        kind = self.kinds[0]
        room, _, *others = self.turns()
        self.executable = self.command(kind, self.result_of(kind, 0))
        self.prerun_cmds = [*self.fresh_directory(), room]
        self.postrun_cmds = others

    @property
    def title(self) -> str:
        return f"{self.application} {self.method} {self.ranks} ranks"

    @property
    def programs(self) -> list[str]:
        return [self.learned.program.name, *(p.name for p in self.learned.skeletons())]

    def _faults(self) -> Iterator[str]:
        """The program writes in every run what it wrote when it was learned, its skeleton the same
        but for a few scalars."""
        group = self.learned.result.repetitions[0].streams[0].name
        for kind in self.kinds:
            asked = AskedProgram(
                kind=kind, group=group, method=self.method, parameters=None, repetitions=1,
                process_bytes=self._process_bytes(), steps=len(self.steps),
                scalars_bytes=SCALARS_BYTES if kind == SKELETON else 0,
                file_system=self.current_partition.extras[TYPE], append=self.learned.appends,
            )  # fmt: skip
            for pair in range(self.pairs):
                path = self.result_of(kind, pair)
                for fault in program_faults(self.played(path), asked):
                    yield f"{path}: {fault}"

    def _process_bytes(self) -> tuple[int, ...]:
        processes = self.steps[0].processes
        assert processes is not None, "the contract demands it where there is a program"
        return processes.bytes
