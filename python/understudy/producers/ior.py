"""IOR: its JSON summary (-O summaryFormat=JSON), of versions 3.3 to 4.1."""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from understudy.contracts.measurement import Benchmark
from understudy.errors import UnderstudyError
from understudy.producers import _benchmark
from understudy.producers._benchmark import parse, samples
from understudy.producers._reading import RATE, SECONDS

__all__ = ["ARM", "SCHEMA", "of_summary", "parse", "read", "samples"]

SCHEMA = "understudy/ior/1"
ARM = "benchmark"
MIB = 1 << 20
# Keys of "Parameters" that say what was measured.
OPTIONS = (
    "api",
    "filePerProc",
    "collective",
    "transferSize",
    "blockSize",
    "segmentCount",
    "fsync",
    "fsyncperwrite",
    "reorderTasks",
    "reorderTasksRandom",
    "randomOffset",
    "readFile",
    "writeFile",
    "deadlineForStonewall",
)
NEAR = 0.05  # how exactly a bandwidth is the bytes over the time
LAST_DIGIT_S = 1e-4  # of a time in the summary
TIMES = {
    "openTime": "open_s",
    "wrRdTime": "access_s",
    "closeTime": "close_s",
    "totalTime": "total_s",
}


def read(path: Path) -> Benchmark:
    """The measurement in a file."""
    return _benchmark.read(path, "ior")


def of_summary(
    path: Path, *, name: str, started: str, command_line: Sequence[str]
) -> dict[str, Any]:
    """The measurement from the summary that IOR wrote; an UnderstudyError for what is not one.

    IOR with -v writes a summary that is no JSON, and an interrupted IOR half of one.
    """
    text = _benchmark.text_of(path, "IOR")
    try:
        summary = json.loads(text)
        [test] = summary["tests"]
        parameters = test["Parameters"]
        options = {key: parameters[key] for key in OPTIONS if key in parameters}
        here = test["Options"]
        ranks, nodes = int(here["tasks"]), int(here["nodes"])
        results = _flat(test["Results"])
        _expect_asked(parameters, here, command_line)
        if not parameters.get("deadlineForStonewall"):
            moved = parameters["blockSize"] * parameters["segmentCount"] * ranks
            _expect_bytes(results, moved)
        return _benchmark.row(
            "ior",
            name=name,
            options=options,
            version=str(summary["Version"]),
            command_line=command_line,
            started=started,
            ranks=ranks,
            nodes=nodes,
            directory=str(Path(parameters["testFileName"]).parent),
            rates=list(_rates(results)),
        )
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UnderstudyError(
            f"{path}: expected one test in a JSON summary of IOR: {type(error).__name__}: {error}"
        ) from None


def _expect_asked(
    parameters: dict[str, Any], options: dict[str, Any], command_line: Sequence[str]
) -> None:
    """IOR used the interface of its option -a."""
    words = list(command_line)
    asked = words[words.index("-a") + 1] if "-a" in words else parameters["api"]
    for interface in (parameters["api"], options.get("api", asked)):
        if str(interface).upper() != asked.upper():
            raise ValueError(f"api {interface}, asked for {asked}")


def _expect_bytes(results: Sequence[dict[str, Any]], moved: int) -> None:
    """Each bandwidth is that of all bytes in the total time."""
    for row in results:
        if row["access"] == "remove":
            continue
        rate, time_s = float(row["bwMiB"]) * MIB, float(row["totalTime"])
        low = moved / (time_s + LAST_DIGIT_S) * (1 - NEAR)
        high = moved / max(time_s - LAST_DIGIT_S, 1e-12) * (1 + NEAR)
        if not low <= rate <= high:
            raise ValueError(
                f"{row['access']}: {moved} bytes in {time_s} s, but a bandwidth of {rate:.0f} B/s"
            )


def _flat(results: Sequence[Any]) -> list[dict[str, Any]]:
    """3.3 has a list for each repetition."""
    return [row for part in results for row in (part if isinstance(part, list) else [part])]


def _rates(results: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    repetition: dict[str, int] = {}
    for row in results:
        operation = row["access"]
        if operation == "remove":  # 3.3 has its time alone
            continue
        n = repetition[operation] = repetition.get(operation, -1) + 1
        bandwidth = float(row["bwMiB"]) * MIB
        for value in (bandwidth, *(float(row[key]) for key in TIMES)):
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"{operation}: {value}")
        common = {"operation": operation, "repetition": n}
        yield common | {"metric": "bandwidth_bytes_per_s", "unit": RATE, "value": bandwidth}
        for key, metric in TIMES.items():
            yield common | {"metric": metric, "unit": SECONDS, "value": float(row[key])}
