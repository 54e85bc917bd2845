"""Which descriptions depend on which number: each of `understudy.inference.constants` halved and
doubled.

    PYTHONPATH=python:. python benchmarks/sensitivity.py LOG… [-o TABLE.json]

LOG are Darshan logs, or folders of them. Prints a table of Markdown, as benchmarks/measured/
constants.csv has it: of how many logs the program of the workload, with its names, is another one
with half and with twice the value. Rules take their numbers when they are loaded, so each value is
tried in a process of its own.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track

from understudy.darshanlog import logs_below
from understudy.errors import UnderstudyError
from understudy.inference import constants

FACTORS = (1.0, 0.5, 2.0)


def names() -> list[str]:
    return [name for name in vars(constants) if name.isupper()]


def scaled(value: float, factor: float) -> float:
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def said(log: Sequence[Path]) -> str:
    """The program of the workload; of a log that is refused, why."""
    from understudy.program.text import text_of
    from understudy.readers import darshan

    try:
        workload = darshan.read(log[0], name="log", others=log[1:], join_jobs=True)
        return text_of(workload.program)
    except UnderstudyError as error:
        return str(error)
    except Exception as error:  # a value for which a rule is not made
        return f"{type(error).__name__}: {error}"


def all_logs(given: Sequence[Path]) -> list[list[Path]]:
    logs_of_runs: list[list[Path]] = []
    for path in given:
        if path.is_file():
            logs_of_runs.append([path])
            continue
        logs_of_runs += [[log] for log in sorted(path.glob("*.darshan"))]
        folders = [folder for folder in sorted(path.iterdir()) if folder.is_dir()]
        logs_of_runs += [logs for folder in folders if (logs := sorted(logs_below(folder).logs))]
    return logs_of_runs


def tried(name: str, factor: float, logs: Sequence[Path]) -> list[str]:
    """Messages for each log with another value, from a separate process."""
    words = [sys.executable, __file__, *map(str, logs), "--try", name, str(factor)]
    messages: list[str] = json.loads(subprocess.check_output(words, text=True))
    return messages


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--try", nargs=2, dest="one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    logs = all_logs(given.logs)
    if given.one:
        name, factor = given.one[0], float(given.one[1])
        if factor != 1:
            setattr(constants, name, scaled(getattr(constants, name), factor))
        print(json.dumps([said(log) for log in logs]))
        return
    first = tried(names()[0], 1, given.logs)
    rows: list[dict[str, Any]] = []
    for name in track(names(), console=Console(file=sys.stderr)):
        others = [tried(name, factor, given.logs) for factor in FACTORS[1:]]
        changed = [
            [log[0].stem for log, a, b in zip(logs, first, other, strict=True) if a != b]
            for other in others
        ]
        rows.append({"name": name, "value": getattr(constants, name), "changed": changed})
    if given.output:
        given.output.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(f"{len(rows)} numbers, {len(logs)} logs")
    print("| number | value | half | twice |\n|---|---|---|---|")
    for row in rows:
        half, twice = map(len, row["changed"])
        print(f"| `{row['name']}` | {row['value']:.4g} | {half} | {twice} |")


if __name__ == "__main__":
    main()
