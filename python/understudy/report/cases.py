"""What the page is made of: result files, put together by workload, place and settings."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from understudy import result
from understudy.errors import UnderstudyError
from understudy.result import DumpResult, Options, Result, StreamResult
from understudy.workload import Stream, Workload

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
    """One workload played one way in one place; all repetitions of all its runs."""

    method: str
    variant: str
    place: str
    runs: tuple[Run, ...]

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
    """One workload and every setting it was played in. `methods` are those of the whole page."""

    workload: Workload
    sha256: str
    settings: tuple[Setting, ...]
    methods: tuple[str, ...]

    @property
    def key(self) -> str:
        """Unique on the page, usable as an anchor."""
        return f"{self.workload.name}-{self.sha256[:8]}"

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
    """…/output/<system>/<partition>/<environment>/<test>/result.json, or host and file system."""
    parts = path.parts
    if len(parts) > 6 and parts[-6] in ("output", "stage"):
        return parts[-5], parts[-4]
    return loaded.environment.host, loaded.environment.file_system


def group(runs: Iterable[Run]) -> list[Case]:
    """Cases by name of the workload; two descriptors with one name are two cases."""
    runs = sorted(runs, key=_case_key)
    methods = tuple(sorted({_method(run.result) for run in runs}))
    cases = []
    for (_, sha256), same in groupby(runs, key=_case_key):
        members = list(same)
        cases.append(
            Case(
                workload=members[0].result.workload,
                sha256=sha256,
                settings=_settings(members),
                methods=methods,
            )
        )
    return cases


def _case_key(run: Run) -> tuple[str, str]:
    return run.result.workload.name, run.result.workload_sha256


def _settings(runs: list[Run]) -> tuple[Setting, ...]:
    varying = _varying(runs)

    def key(run: Run) -> tuple[str, str, str]:
        return run.place, _method(run.result), _variant(run.result.options, varying)

    return tuple(
        Setting(place=place, method=method, variant=variant, runs=tuple(same))
        for (place, method, variant), same in groupby(sorted(runs, key=key), key=key)
    )


def _method(loaded: Result) -> str:
    """The one method of all streams, or that each kept its own."""
    return loaded.options.method or AS_DESCRIBED


_VARIANT: dict[str, Callable[[Any], str]] = {
    "transfer_bytes": lambda v: "" if v is None else f"transfer {v} B",
    "collective": lambda v: "" if v is None else ("collective" if v else "independent"),
    "fsync": lambda v: "fsync" if v else "",
    "time_scale": "time \N{MULTIPLICATION SIGN}{:g}".format,
    "bytes_scale": "bytes \N{MULTIPLICATION SIGN}{:g}".format,
    "restart": lambda v: "restart" if v else "",
}


def _varying(runs: list[Run]) -> list[str]:
    """Options that differ among the runs of a workload: they stand in the label of a setting."""
    return [
        name for name in _VARIANT if len({getattr(run.result.options, name) for run in runs}) > 1
    ]


def _variant(options: Options, varying: list[str]) -> str:
    return " ".join(filter(None, (_VARIANT[n](getattr(options, n)) for n in varying)))
