"""Open, write and close with and without Darshan: seconds by the player, instructions by
valgrind's callgrind."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from understudy.contracts.measurement import Benchmark, Played
from understudy.contracts.run import Sample
from understudy.errors import UnderstudyError
from understudy.producers import _benchmark, player
from understudy.producers._benchmark import parse
from understudy.producers._reading import LOWER, SECONDS

__all__ = ["ARM", "SCHEMA", "added", "of_player", "parse", "read", "samples"]

SCHEMA = "understudy/operations/1"
ARM = "benchmark"
TIME, ADDED = "time_s", "added_instructions"
INSTRUCTIONS = "instructions"
LIBRARY = "libdarshan"  # in the names of its object files
# Functions that Darshan wraps, by operation; C libraries have them with underscores and 64, too.
FUNCTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "open": ("open", "openat", "creat", "MPI_File_open"),
        "write": (
            "write",
            "pwrite",
            "writev",
            "pwritev",
            "MPI_File_write_at",
            "MPI_File_write",
            "MPI_File_write_at_all",
        ),
        "close": ("close", "MPI_File_close"),
    }
)
_OPERATION = MappingProxyType({n: op for op, names in FUNCTIONS.items() for n in names})


def read(path: Path) -> Benchmark:
    """The measurement in a file."""
    return _benchmark.read(path, "operations")


def of_player(
    path: Path,
    *,
    name: str,
    version: str,
    started: str,
    command_line: Sequence[str],
    instructions: Mapping[str, float],
) -> dict[str, Any]:
    """The measurement from that of the player on one rank; `version` is Darshan's, empty without
    it; `instructions` are those that it adds to an operation, where they were counted."""
    measured = player.read(path)
    here = measured.environment
    rates = [
        {"operation": op, "metric": TIME, "unit": SECONDS, "repetition": 0, "value": value}
        for op, value in _seconds(measured)
    ]
    rates += [
        {"operation": op, "metric": ADDED, "unit": INSTRUCTIONS, "repetition": 0, "value": value}
        for op, value in instructions.items()
    ]
    if len(rates) < len(FUNCTIONS):
        raise UnderstudyError(f"{path}: expected the times of {', '.join(FUNCTIONS)}")
    return _benchmark.row(
        "operations",
        name=name,
        options={},
        version=version,
        command_line=command_line,
        started=started,
        ranks=here.ranks,
        nodes=1,
        directory=here.directory,
        rates=rates,
    )


def _seconds(measured: Played) -> Iterator[tuple[str, float]]:
    """Mean seconds of an operation, by kind."""
    phases = [
        phase
        for repetition in measured.repetitions
        for stream in repetition.streams
        for dump in stream.dumps
        for phase in dump.phases
    ]
    for op in FUNCTIONS:
        phases_of_kind = [phase for phase in phases if phase.phase == op]
        count = sum(phase.operations for phase in phases_of_kind)
        if count:
            yield op, sum(phase.rank_s.mean for phase in phases_of_kind) / count


def samples(measurement: Benchmark) -> Iterator[Sample]:
    for rate in measurement.rates:
        yield Sample(
            metric=rate.metric,
            unit=rate.unit,
            better=LOWER,
            stream=rate.operation,
            repetition=rate.repetition,
            value=rate.value,
        )


# -- callgrind ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Count:
    """Calls of an operation, and the instructions that Darshan has made of its own in them."""

    calls: int = 0
    instructions: int = 0


def added(few: Path, many: Path) -> dict[str, float]:
    """Instructions that Darshan adds to an operation, by the profiles of a run with few files and
    of one with many: what it does once, at the first call, is in both."""
    low, high = counts(few), counts(many)
    return {
        op: (high[op].instructions - low[op].instructions) / (high[op].calls - low[op].calls)
        for op in FUNCTIONS
        if high[op].calls > low[op].calls
    }


def counts(path: Path) -> dict[str, Count]:
    """By operation. What Darshan's function takes, with all that it calls, but for the function
    that it stands for; where MPI-IO calls POSIX, both count."""
    count_of = {op: Count() for op in FUNCTIONS}
    for caller, callee, calls, cost in _edges(path):
        op = _operation(callee[1])
        if op is None:
            continue
        if LIBRARY in callee[0] and LIBRARY not in caller[0]:
            count_of[op].calls += calls if not callee[1].startswith("MPI_") else 0
            count_of[op].instructions += cost
        elif LIBRARY in caller[0] and LIBRARY not in callee[0] and _operation(caller[1]) == op:
            count_of[op].instructions -= cost
    return count_of


Function = tuple[str, str]  # object file, name


def _operation(function: str) -> str | None:
    """As which it counts: __libc_pwrite64 is pwrite, PMPI_File_open is MPI_File_open."""
    name = function.split("@")[0].split("'")[0].lstrip("_")
    name = name.removeprefix("GI_").lstrip("_").removeprefix("libc_").removesuffix("64")
    return _OPERATION.get(name.removeprefix("P") if name.startswith("PMPI_") else name)


def _edges(path: Path) -> Iterator[tuple[Function, Function, int, int]]:
    """Caller and callee, how often, and the instructions of all these calls."""
    objects: dict[str, str] = {}
    names: dict[str, str] = {}
    here, target, caller, callee, whole = "", "", "", "", False
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                key, equals, text = line.rstrip("\n").partition("=")
                if not equals:
                    whole = whole or line.startswith(("totals:", "summary:"))
                    continue
                if key == "ob":
                    here = _named(objects, text)
                elif key == "cob":
                    target = _named(objects, text)
                elif key == "fn":
                    caller = _named(names, text)
                elif key == "cfn":
                    callee = _named(names, text)
                elif key == "calls":
                    cost = int(next(file).split()[1])
                    yield (here, caller), (target or here, callee), int(text.split()[0]), cost
                    target = ""
        if not whole:
            raise ValueError("it has no totals")
    except (OSError, ValueError, IndexError, StopIteration) as error:
        raise UnderstudyError(f"{path}: expected a profile of callgrind: {error}") from None


def _named(names: dict[str, str], text: str) -> str:
    """callgrind writes a name once, with a number: "(12) name", later "(12)"."""
    number, _, name = text.partition(") ")
    if name:
        names[number.strip("()")] = name
    return names.get(number.strip("()"), text)
