"""Measurements of programs that measure themselves and are not ours: IOR, mdtest."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from understudy import __version__
from understudy.contracts import schema
from understudy.contracts.measurement import Benchmark, Environment, Node, Rate, Stated
from understudy.contracts.run import Sample
from understudy.errors import UnderstudyError
from understudy.files import read_text
from understudy.producers._reading import HIGHER, LOWER, SECONDS

TEXT_BYTES = 16 << 20  # of an output: longer ones are refused


def text_of(path: Path, program: str) -> str:
    """Output of the program; an UnderstudyError where it wrote nothing."""
    try:
        if path.stat().st_size > TEXT_BYTES:
            raise UnderstudyError(f"{path}: longer than any output of {program}")
        return read_text(path, errors="replace")
    except OSError as error:
        raise UnderstudyError(f"{path}: {program} wrote no result: {error.strerror}") from None


def read(path: Path, kind: str) -> Benchmark:
    row = schema.read(path, f"measurement by {kind}")
    stated_kind = schema.check(row, str(path))
    if stated_kind != kind:
        raise UnderstudyError(f"{path}: expected a measurement by {kind}, found {stated_kind}")
    return parse(row, str(path))


def parse(row: dict[str, Any], where: str) -> Benchmark:
    """Parse a JSON object that is valid by its schema. Records with two values in one place, as an
    earlier version made of mdtest -P, whose seconds it took for rates, are refused."""
    stated = Counter((r["operation"], r["metric"], r["repetition"]) for r in row["rates"])
    [((operation, metric, _), count)] = stated.most_common(1)
    if count > 1:
        raise UnderstudyError(
            f"{where}: rates: {operation}: expected one value of {metric}, found {count}; an "
            "earlier version took the seconds that mdtest -P prints for rates"
        )
    here = row["environment"]
    kind = row["schema"].split("/")[1]
    if here["nodes"] > here["ranks"]:
        raise UnderstudyError(f"{where}: environment.nodes: more than ranks")
    text = schema.canonical({"program": kind, "name": row["name"], "options": row["options"]})
    return Benchmark(
        workload=Stated(name=row["name"]),
        workload_sha256=hashlib.sha256(text.encode()).hexdigest(),
        options=row["options"],
        environment=Environment(
            understudy_version=__version__,
            command_line=tuple(here["command_line"]),
            started=here["started"],
            ranks=here["ranks"],
            nodes=(Node(name=None, ranks=None),) * here["nodes"],
            host="",
            kernel="",
            processors=0,
            mpi="",
            libraries={kind: here["version"]},
            directory=here["directory"],
        ),
        rates=tuple(Rate(**rate) for rate in row["rates"]),
    )


def samples(measurement: Benchmark) -> Iterator[Sample]:
    for rate in measurement.rates:
        yield Sample(
            metric=rate.metric,
            unit=rate.unit,
            better=LOWER if rate.unit == SECONDS else HIGHER,
            stream=rate.operation,
            repetition=rate.repetition,
            value=rate.value,
        )


def row(
    kind: str,
    *,
    name: str,
    options: dict[str, Any],
    version: str,
    command_line: Sequence[str],
    started: str,
    ranks: int,
    nodes: int,
    directory: str,
    rates: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """The measurement, as it is written to a file."""
    return {
        "schema": f"understudy/{kind}/1",
        "name": name,
        "options": options,
        "environment": {
            "version": version,
            "command_line": list(command_line),
            "started": started,
            "ranks": ranks,
            "nodes": nodes,
            "directory": directory,
        },
        "rates": list(rates),
        "finished": True,
    }
