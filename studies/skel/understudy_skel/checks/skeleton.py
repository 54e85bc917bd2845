# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Base classes of checks with skeletal applications: one is generated and built for each ADIOS
descriptor in traces/ that has its parameters beside it, and runs in turn with the application's
I/O kernel, where proxies/programs/ has one.
"""

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
    fixture,
    parameter,
    run_after,
    run_before,
    sanity_function,
    variable,
)
from reframe.utility import typecheck

from understudy import producers, studies
from understudy.errors import UnderstudyError
from understudy.judge.statistics.paired_errors import APPLICATION, CONTROLS, SKELETON
from understudy.paths import command, where
from understudy.reframe import spack
from understudy.reframe.bases.completeness import AskedProgram, program_faults
from understudy.reframe.bases.interleaved import Arm
from understudy.reframe.bases.methods import lacks
from understudy.reframe.bases.recording import PlannedRun
from understudy.reframe.session.session import exit_on_error
from understudy.reframe.systems import MPI, TYPE
from understudy_skel import listing
from understudy_skel.blocks import GroupBlocks, of_group
from understudy_skel.checks.accuracy import Accuracy
from understudy_skel.generate import Names, method_parameters
from understudy_skel.parameters import Parameters, Test
from understudy_skel.project import load as load_project

RANKS = (2, 4, 8, 128, 1024)  # weak scaling: each process writes the same
RANKS_PER_AGGREGATOR = (4, 16)
AGGREGATORS = "num_aggregators"  # a method parameter of ADIOS, as stripe_count is
VERIFIED = "verified"
VERIFIED_RESULT = "verified.json"  # no result.json: it is no run of the study
BPLS = "bpls"
SAMPLES, LISTING = "samples.txt", "listing.txt"


def names() -> list[str]:
    """The descriptors in traces/ that have parameters beside them."""
    return sorted(
        path.stem
        for path in where("traces").glob("*.xml")
        if path.with_name(Names(application=path.stem).parameters).exists()
    )


@cache
def _project(application: str) -> tuple[Any, Parameters]:
    return load_project(where("traces") / f"{application}.xml", None)


@cache
@exit_on_error()
def methods() -> list[str]:
    """The ADIOS methods that the parameters of any application test; invalid parameters end the
    session here."""
    return sorted({test.method for name in names() for test in _tests(name)})


def _tests(application: str) -> list[Test]:
    return [test for batch in _project(application)[1].batches for test in batch.tests]


@cache
def _blocks(application: str, group: str, ranks: int) -> GroupBlocks:
    descriptor, parameters = _project(application)
    return of_group(descriptor.group(group), parameters.groups[group], ranks)


@cache
def _bytes(application: str, group: str, ranks: int) -> int:
    return int(_blocks(application, group, ranks).bytes.sum())


class Skeleton(rfm.CompileOnlyRegressionTest):
    """The program of one descriptor, generated and built by the commands that a person uses."""

    application = parameter(names(), loggable=True)
    sourcesdir = None
    build_system: Any = "CustomBuild"
    valid_systems = [f"+{MPI}"]
    valid_prog_environs = [f"+{MPI}"]

    @run_after("setup")
    def skip_without_adios(self) -> None:
        if self.current_partition.scheduler.is_local and not self.is_dry_run():
            reason = lacks("adios", spack.player(self.current_environ.name))
            self.skip_if(reason is not None, reason)

    @run_before("compile")
    def generate_and_build(self) -> None:
        understudy = f"{shlex.quote(sys.executable)} {shlex.quote(str(command()))} skel"
        descriptor = shlex.quote(str(where("traces") / f"{self.application}.xml"))
        self.build_system.commands = [
            f"{understudy} source {descriptor}",
            f"{understudy} build {descriptor}",
        ]

    @sanity_function
    def programs_were_built(self) -> Any:
        return sn.all(
            sn.assert_true(self.program(test.group).is_file(), f"{self.program(test.group)}")
            for test in _tests(self.application)
        )

    def program(self, group: str) -> Path:
        name = Names(application=self.application).program(group)
        return Path(self.stagedir) / "build" / name

    @property
    def config(self) -> Path:
        return Path(self.stagedir) / Names(application=self.application).config


class SkeletonAccuracy(Accuracy):
    """Runs a skeletal application and its application in turn, and holds one against the other.

    Of the method and its parameters, the aggregators are one for so many ranks, and the stripe
    count is that of the descriptor's parameters unless another is asked for. First the skeleton
    writes a step, which bpls reads back, outside of what is measured.
    """

    built = fixture(Skeleton, scope="environment")
    method = parameter(type=str, loggable=True)
    ranks = parameter(type=int, loggable=True)
    ranks_per_aggregator = parameter(type=int, loggable=True)
    stripe_count = parameter(type=str, loggable=True)

    repetitions = variable(int, value=5, loggable=True)
    verify = variable(typecheck.Bool, value=True, loggable=True)
    aggregators = variable(int, value=0, loggable=True)

    keep_files = [*CONTROLS, *CONTROLS.values(), VERIFIED_RESULT, LISTING]

    @run_after("init")
    def skip_redundant_variants(self) -> None:
        """Aggregators are swept for methods that have them, and once for each number of them."""
        usual = RANKS_PER_AGGREGATOR[0]
        has = any(
            AGGREGATORS in test.method_parameters
            for name in names()
            for test in _tests(name)
            if test.method == self.method
        )
        self.aggregators = max(1, self.ranks // self.ranks_per_aggregator) if has else 0
        again = self.ranks_per_aggregator != usual
        if again and (not has or self.aggregators == max(1, self.ranks // usual)):
            self.valid_systems = []

    @run_after("setup")
    def select_test(self) -> None:
        self.application = self.built.application
        [self.described] = self._tests_of_method[:1]
        self.num_tasks = self.ranks

    @run_after("setup")
    def skip_without_bpls(self) -> None:
        if self.verify and self.local and not self.is_dry_run():
            self.skip_if(
                shutil.which(BPLS) is None,
                f"{BPLS} is not on this host; -S Skel.verify=0 does without",
            )

    @property
    def expected(self) -> GroupBlocks:
        """Blocks that each process writes in a step."""
        return _blocks(self.built.application, self._group, self.ranks)

    def reasons(self, here: Any) -> Iterator[str]:
        if not self._tests_of_method:
            name = self.built.application
            yield f"the parameters of {name} have no test of {self.method}"
        yield from super().reasons(here)

    @property
    def _tests_of_method(self) -> list[Test]:
        return [test for test in _tests(self.built.application) if test.method == self.method]

    @property
    def _group(self) -> str:
        return str(self._tests_of_method[0].group)

    @property
    def bytes_needed(self) -> int:
        return _bytes(self.built.application, self._group, self.ranks)

    def moved_on(self, here: Any) -> int:
        """Bytes of the verified step, and of the rounds; the arms are not known before setup."""
        arms = 1 if self.kernel is None else 4
        steps = 1 + arms * self.rounds * self.repetitions
        return int(steps * self.bytes_on(here))

    @property
    def methods_needed(self) -> set[str]:
        return {"adios"}

    @property
    def kernel(self) -> str | None:
        """The program that stands for the application, from programs/."""
        name = f"kernel-{self.built.application}"
        return f"understudy-{name}" if studies.directories(f"programs/{name}.c") else None

    @property
    def application_program(self) -> str | None:
        return self.kernel and self.kernel.removeprefix("understudy-")

    @property
    def skeleton_program(self) -> str:
        return f"{self.application}-{self._group}"

    def _parameters(self) -> str:
        """Those of the descriptor's test, with the aggregators and stripes that are asked for."""
        text = method_parameters(self.described, self.ranks)
        layout = {key.removesuffix("_bytes"): n for key, n in self.asked_layout().items()}
        asked = {AGGREGATORS: self.aggregators} | layout
        words = []
        for word in filter(None, text.split(";")):
            key = word.partition("=")[0].strip()
            words.append(f"{key}={asked[key]}" if key in asked else word)
        return ";".join(words)

    @run_before("run")
    def one_job_for_all(self) -> None:
        """The step that is verified, then the rounds."""
        self.executable = shlex.quote(str(self.built.program(self._group)))
        self.executable_opts = [
            *self._options(self.built.config, f"$dir/{VERIFIED}", VERIFIED_RESULT, repetitions=1),
            "--keep",
        ]
        self.prerun_cmds = self.run_directory(*self.layout_options())
        self.postrun_cmds = [*self._verification(), f'rm -rf "$dir/{VERIFIED}"', *self.turns()]

    def _options(
        self, config: Path, directory: str, measurement: str, repetitions: int
    ) -> Iterator[str]:
        yield f"-c {shlex.quote(str(config))}"
        yield f"-a {self.method}"
        if parameters := self._parameters():
            yield f"-p {shlex.quote(parameters)}"
        yield f"-i {repetitions}"
        yield f'-o "{directory}"'
        yield f"-r {measurement}"

    def _verification(self) -> list[str]:
        if not self.verify:
            return []
        (Path(self.stagedir) / SAMPLES).write_text(listing.table(self._samples), encoding="utf-8")
        return listing.commands(f"$dir/{VERIFIED}", f"{self._group}.0.bp", SAMPLES, LISTING)

    @property
    def _samples(self) -> list[listing.Sample]:
        fills = _project(self.application)[1].groups[self._group].fills
        return listing.samples(self.expected, fills)

    def command(self, arm: Arm, directory: str, measurement: str) -> str:
        program, config = str(self.built.program(self._group)), self.built.config
        if arm.producer == APPLICATION:
            program, config = str(self.kernel), where("traces") / f"{self.application}.xml"
        return " ".join(
            [
                shlex.quote(program),
                *self._options(config, directory, measurement, self.repetitions),
            ]
        )

    @property
    def title(self) -> str:
        return " ".join(
            [
                self.application,
                self.method,
                *([self._parameters()] if self.aggregators else []),
                f"{self.ranks} ranks",
            ]
        )

    def _asked(self, kind: str, repetitions: int) -> AskedProgram:
        return AskedProgram(
            kind=kind,
            group=self._group,
            method=self.method,
            parameters=self._parameters() or None,
            steps=1,
            repetitions=repetitions,
            process_bytes=tuple(int(n) for n in self.expected.bytes),
            file_system=self.current_partition.extras[TYPE],
            transformed=self.expected.transformed,
        )

    def faults_of(self, arm: Arm, measured: Any) -> Iterator[str]:
        return program_faults(measured, self._asked(arm.producer, self.repetitions))

    def _faults(self) -> Iterator[tuple[PlannedRun | None, str]]:
        yield from ((None, fault) for fault in self._faults_of_verification())
        yield from super()._faults()

    def _faults_of_verification(self) -> Iterator[str]:
        try:
            verified: Any = producers.get(SKELETON).read(self._staged(Path(VERIFIED_RESULT)))
        except UnderstudyError as error:
            yield str(error)
            return
        asked = self._asked(SKELETON, repetitions=1)
        yield from self.of_another_job(Path(VERIFIED_RESULT))
        yield from (f"{VERIFIED_RESULT}: {f}" for f in program_faults(verified, asked))
        if self.verify:
            path = self._staged(Path(LISTING))
            text = path.read_text(encoding="utf-8") if path.exists() else ""
            faults = listing.faults(text, self.expected, self._samples)
            yield from (f"bpls: {fault}" for fault in faults)
