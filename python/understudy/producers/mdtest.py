"""mdtest: the table of rates that it prints, of versions 3.3 to 4.1."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from understudy.contracts.measurement import Benchmark
from understudy.errors import UnderstudyError
from understudy.producers import _benchmark
from understudy.producers._benchmark import parse, samples

__all__ = ["ARM", "SCHEMA", "of_output", "parse", "read", "samples"]

SCHEMA = "understudy/mdtest/1"
ARM = "benchmark"

_LAUNCHED = re.compile(
    r"(?m)^mdtest-(\S+) was launched with (\d+) total task\(s\) on (\d+) node\(s\)$"
)
_DIRECTORY = re.compile(r"(?m)^Command line used: .* '-d' '([^\n]*?)'(?: '-|\s*$)")
_TABLE = re.compile(
    r"(?m)^SUMMARY rate(?: \(in ops/sec\))?: \(of (\d+) iterations\)\n"
    r" *Operation +Max +Min +Mean +Std Dev\n[ -]+\n((?: +\S.*\n)*)"
)
_ROW = re.compile(r" +([A-Z][A-Za-z ]*[a-z]) *:? +([0-9.]+) +([0-9.]+) +([0-9.]+) +([0-9.]+)")


def read(path: Path) -> Benchmark:
    """The measurement in a file."""
    return _benchmark.read(path, "mdtest")


def of_output(
    path: Path,
    *,
    name: str,
    options: dict[str, Any],
    started: str,
    command_line: Sequence[str],
) -> dict[str, Any]:
    """The measurement from what mdtest printed in one iteration (-i 1).

    A rate of 0 is an operation that was not asked for. An UnderstudyError for anything that is
    not the whole output of one run.
    """
    text = _benchmark.text_of(path, "mdtest")
    launched = _LAUNCHED.findall(text)
    if len(launched) != 1:
        raise UnderstudyError(f"{path}: expected the output of one run of mdtest")
    [(version, ranks, nodes)] = launched
    tables = _TABLE.findall(text)
    if len(tables) != 1 or tables[0][0] != "1" or "\n-- finished at " not in text:
        raise UnderstudyError(
            f"{path}: expected one table of the rates of one iteration, to the end"
        )
    directory = _DIRECTORY.search(text)
    if directory is None:
        raise UnderstudyError(
            f"{path}: expected the command line of mdtest with its directory, -d"
        )
    rates = list(_rates(tables[0][1], path))
    if not rates:
        raise UnderstudyError(f"{path}: mdtest printed no rate")
    return _benchmark.row(
        "mdtest",
        name=name,
        options=options,
        version=version,
        command_line=command_line,
        started=started,
        ranks=int(ranks),
        nodes=int(nodes),
        directory=directory[1],
        rates=rates,
    )


def _rates(table: str, path: Path) -> Iterator[dict[str, Any]]:
    """The column Min: of one iteration, 3.3 states rates by rank, and 4.0 that of the slowest."""
    for line in table.splitlines():
        match = _ROW.fullmatch(line)
        if match is None:
            raise UnderstudyError(f"{path}: expected an operation and its rates, found {line!r}")
        value = float(match[3])
        if value:
            yield {
                "operation": match[1],
                "metric": "rate_per_s",
                "unit": "1/s",
                "repetition": 0,
                "value": value,
            }
