"""What the page is made of: result files, put together by workload, place and settings.

Programs that write by themselves play no workload: an application and its skeletons, on whatever
numbers of ranks, are put together by the application's name.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from understudy import result
from understudy.errors import UnderstudyError
from understudy.result import DumpResult, Program, Result, StreamResult
from understudy.workload import Stream, Workload, identifier

AS_DESCRIBED = "as described"
RESTART_SUFFIX = "-restart"
RESULT_FILE = "result.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One result file and where it was made.

    `system` and `partition` come from ReFrame's output tree; elsewhere they are the host and the
    type of the file system that the player wrote to.
    """

    path: Path
    system: str
    partition: str
    result: Result

    @property
    def place(self) -> str:
        return f"{self.system}:{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One workload played one way in one place; all repetitions of all its runs.

    `facts` are the words on it in which it may differ from others of the case."""

    method: str
    facts: tuple[str, ...]
    place: str
    runs: tuple[Run, ...]

    @property
    def variant(self) -> str:
        return " ".join(self.facts)

    @property
    def label(self) -> str:
        """What tells it from the other settings of its place."""
        return f"{self.method} {self.variant}".strip()

    @property
    def repetitions(self) -> int:
        return sum(len(run.result.repetitions) for run in self.runs)

    @property
    def bytes_scale(self) -> float:
        return self.runs[0].result.options.bytes_scale

    @property
    def ranks(self) -> int:
        return self.runs[0].result.environment.ranks

    @property
    def program(self) -> Program | None:
        """What ran; None where the player played a workload."""
        return self.runs[0].result.program

    @property
    def workload(self) -> Workload:
        """What was played, or what the first run of the program wrote."""
        return self.runs[0].result.workload

    @property
    def elapsed_s(self) -> list[float]:
        return [r.elapsed_s for run in self.runs for r in run.result.repetitions]

    def stream(self, name: str) -> list[StreamResult]:
        """The stream in every repetition that has it."""
        return [
            stream
            for run in self.runs
            for repetition in run.result.repetitions
            for stream in repetition.streams
            if stream.name == name
        ]

    def dumps(self, name: str) -> dict[int, list[DumpResult]]:
        """Dumps of a stream by index, each with one entry per repetition."""
        found: dict[int, list[DumpResult]] = {}
        for stream in self.stream(name):
            for dump in stream.dumps:
                found.setdefault(dump.dump, []).append(dump)
        return dict(sorted(found.items()))

    def stream_names(self) -> list[str]:
        """Streams played, in the order of the result: the descriptor's, then restarts."""
        seen = [s.name for run in self.runs for r in run.result.repetitions for s in r.streams]
        return list(dict.fromkeys(seen))


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One workload and every setting it was played in. `methods` are those of the whole page.

    Or one application: itself and its skeletons; `workload` then is what a run on the fewest
    ranks wrote, under the application's name.
    """

    workload: Workload
    sha256: str
    settings: tuple[Setting, ...]
    methods: tuple[str, ...]

    @property
    def key(self) -> str:
        """Unique on the page, usable as an anchor."""
        return f"{self.workload.name}-{self.sha256[:8]}"

    @property
    def programs(self) -> bool:
        """Whether programs ran that write by themselves."""
        return self.settings[0].program is not None

    @property
    def ranks(self) -> list[int]:
        return sorted({s.ranks for s in self.settings})

    @property
    def process_bytes(self) -> list[int]:
        """Payloads of the process that writes most in a step, of programs."""
        return sorted({_most_bytes(run.result) for s in self.settings for run in s.runs})

    @property
    def places(self) -> list[str]:
        return list(dict.fromkeys(s.place for s in self.settings))

    def at(self, place: str) -> list[Setting]:
        return [s for s in self.settings if s.place == place]

    def played_streams(self) -> list[str]:
        """Names of all streams that some setting played, largest payload first."""
        names = dict.fromkeys(n for s in self.settings for n in s.stream_names())
        return sorted(names, key=lambda n: -self.stream_bytes(n))

    def stream_bytes(self, name: str) -> int:
        """Payload of a played stream over its dumps, largest of the settings."""
        return max((r.bytes for s in self.settings for r in s.stream(name)), default=0)

    def role(self, name: str) -> str:
        """Role of a played stream; reading a checkpoint back is a restart."""
        stream = described(self.workload, name)
        if stream is None or stream.name != name:
            return "restart"
        return stream.role


def described(workload: Workload, name: str) -> Stream | None:
    """The descriptor's stream that a played stream stands for."""
    by_name = {s.name: s for s in workload.streams}
    return by_name.get(name) or by_name.get(name.removesuffix(RESTART_SUFFIX))


def find(paths: Iterable[Path]) -> list[Path]:
    """Result files named or lying anywhere below the folders named, in order, each once."""
    files: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found = sorted(path.rglob(RESULT_FILE))
            if not found:
                raise UnderstudyError(f"{path}: no {RESULT_FILE} in this folder or below it")
        elif path.is_file():
            found = [path]
        else:
            raise UnderstudyError(f"{path}: no such file or folder; expected a result or a folder")
        files.update(dict.fromkeys(p.resolve() for p in found))
    if not files:
        raise UnderstudyError("no result was named; expected result files or folders with them")
    return list(files)


def load(paths: Iterable[Path], progress: Callable[[Path], None] = lambda _: None) -> list[Run]:
    """Read results; one that is a copy of another (ReFrame's stage and output) counts once."""
    runs: dict[str, Run] = {}
    for path in paths:
        progress(path)
        loaded = result.load(path)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest not in runs:
            system, partition = _place(path, loaded)
            runs[digest] = Run(path=path, system=system, partition=partition, result=loaded)
    return list(runs.values())


def _place(path: Path, loaded: Result) -> tuple[str, str]:
    """output/<system>/<partition>/<environment>/<test>/…/result.json, or host and file system."""
    parts = path.parts
    for root in range(len(parts) - 6, 0, -1):
        if parts[root] in ("output", "stage"):
            return parts[root + 1], parts[root + 2]
    return loaded.environment.host, loaded.environment.file_system


def group(runs: Iterable[Run]) -> list[Case]:
    """Cases by name of the workload, or of the application; two descriptors with one name are two
    cases."""
    runs = sorted(runs, key=lambda run: (*_case_key(run), run.result.environment.ranks))
    methods = tuple(sorted({_method(run.result) for run in runs}))
    cases = []
    for (name, _), same in groupby(runs, key=_case_key):
        members = list(same)
        cases.append(
            Case(
                workload=replace(members[0].result.workload, name=name),
                sha256=members[0].result.workload_sha256,
                settings=_settings(members),
                methods=methods,
            )
        )
    return cases


def _case_key(run: Run) -> tuple[str, str]:
    if run.result.program is not None:
        return application(run.result), ""
    return run.result.workload.name, run.result.workload_sha256


def application(loaded: Result) -> str:
    """The application that a program is, or is a skeleton of."""
    assert loaded.program is not None, "a program's result"
    return identifier(loaded.program.application)


def _settings(runs: list[Run]) -> tuple[Setting, ...]:
    varying = _varying(runs)

    def key(run: Run) -> tuple[str, str, int, tuple[str, ...]]:
        loaded = run.result
        method = _method(loaded)
        facts = tuple(filter(None, (fact(loaded) for fact in varying[method])))
        return run.place, method, loaded.environment.ranks, facts

    return tuple(
        Setting(place=place, method=method, facts=facts, runs=tuple(same))
        for (place, method, _, facts), same in groupby(sorted(runs, key=key), key=key)
    )


def _method(loaded: Result) -> str:
    """The one method of all streams, or that each kept its own; of a program, that of ADIOS."""
    if loaded.program is not None:
        return loaded.program.method or AS_DESCRIBED
    return loaded.options.method or AS_DESCRIBED


def _of_program(show: Callable[[Program], str]) -> Callable[[Result], str]:
    return lambda loaded: "" if loaded.program is None else show(loaded.program)


def parameters(program: Program) -> dict[str, str]:
    """The method's parameters, key=value;key=value, by key."""
    pairs = (part.partition("=") for part in re.split("[;,]", program.parameters or "") if part)
    return {key.strip(): value.strip() for key, _, value in pairs}


def _of_options(name: str, show: Callable[[Any], str]) -> Callable[[Result], str]:
    return lambda loaded: show(getattr(loaded.options, name))


PAUSE = "pause "
# Of a process in a step, that say nothing: a skeleton that is learned from a file adds the sizes
# and offsets that differ from process to process, and has the first one's texts.
SCALARS_BYTES = 256
Fact = Callable[[Result], str | None]
# What a setting may differ in from the others of its place and method, as words of its label.
_VARIANT: tuple[Fact, ...] = (
    _of_options("transfer_bytes", lambda v: "" if v is None else f"transfer {v} B"),
    _of_options(
        "collective", lambda v: "" if v is None else ("collective" if v else "independent")
    ),
    _of_options("fsync", lambda v: "fsync" if v else ""),
    _of_options("time_scale", "time \N{MULTIPLICATION SIGN}{:g}".format),
    _of_options("bytes_scale", "bytes \N{MULTIPLICATION SIGN}{:g}".format),
    _of_options("restart", lambda v: "restart" if v else ""),
    lambda loaded: "" if loaded.program is None else f"{loaded.environment.ranks} ranks",
    _of_program(lambda program: program.kind),
    _of_program(lambda program: f"{program.steps} steps"),
    lambda loaded: "" if loaded.program is None else f"{len(loaded.repetitions)} repetitions",
    _of_program(lambda program: "appended" if program.append else ""),
    # An application computes instead, which nobody knows.
    lambda loaded: (
        f"{PAUSE}{loaded.program.pause_s:g} s"
        if loaded.program is not None and loaded.program.kind == "skeleton"
        else None
    ),
    _of_program(lambda program: f"rank {s.rank} slow" if (s := program.slow_rank) else ""),
    _of_program(lambda program: "collective put in" if program.extra_collective_bytes else ""),
)


def _most_bytes(loaded: Result) -> int:
    """Payload of the process that writes most in a step."""
    dumps = (d for stream in loaded.repetitions[0].streams for d in stream.dumps)
    return max(max(d.processes.bytes) for d in dumps if d.processes is not None)


def _bytes(runs: list[Run]) -> Fact:
    """What a process writes; those that differ by a few scalars count as the least of them."""
    least: dict[int, int] = {}
    for size in sorted({_most_bytes(run.result) for run in runs if run.result.program}):
        last = next(reversed(least.values()), size)
        least[size] = last if size - last <= SCALARS_BYTES else size
    return _of_result(lambda loaded: f"{least[_most_bytes(loaded)]} B a process")


def _of_result(show: Callable[[Result], str]) -> Fact:
    return lambda loaded: None if loaded.program is None else show(loaded)


def _varying(runs: list[Run]) -> dict[str, list[Fact]]:
    """By method: in what the runs of a case differ, which stands in the label of a setting, and
    the parameters in which those of the method do."""
    values = {fact: {fact(run.result) for run in runs} for fact in (*_VARIANT, _bytes(runs))}
    facts = [fact for fact, of in values.items() if len(of - {None}) > 1]
    by_method: dict[str, list[Result]] = {}
    for run in runs:
        by_method.setdefault(_method(run.result), []).append(run.result)
    return {method: [*facts, *_parameters(same)] for method, same in by_method.items()}


def _parameters(same: list[Result]) -> Iterator[Fact]:
    """The parameters in which results of one method differ."""
    sets = [parameters(loaded.program) for loaded in same if loaded.program is not None]
    for name in sorted({name for one in sets for name in one}):
        if len({one.get(name) for one in sets}) > 1:
            yield _of_parameter(name)


def _of_parameter(name: str) -> Callable[[Result], str]:
    return _of_program(lambda program: f"{name}={parameters(program).get(name, 'default')}")
