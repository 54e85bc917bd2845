"""understudy fidelity: is the replica faithful?"""

import json
import math
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from understudy.cli import FAILED
from understudy.errors import one_line
from understudy.files import expect_new, expect_not_read, write_text
from understudy.judge.fidelity.stream_fidelity import Comparison, compare, outline
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.judge.statistics.measures import Measure
from understudy.model.scaling import RULES
from understudy.observations.scaled_observation import observe_both


def _number(_: click.Context, parameter: click.Parameter, value: float) -> float:
    if math.isnan(value):
        raise click.BadParameter("expected a number, got nan", param=parameter)
    return value


@click.command()
@click.argument("original", type=click.Path(path_type=Path))
@click.argument("replica", type=click.Path(path_type=Path))
@click.option(
    "--tolerance-percent",
    "--tolerance",
    type=click.FloatRange(0, 1000),
    callback=_number,
    show_default=True,
    default=100 * LIMIT_FRACTION,
    help="Maximum error that passes.",
)
@click.option(
    "--time-scale",
    type=click.FloatRange(0, 1e9),
    callback=_number,
    default=1.0,
    show_default=True,
    help="Time scale of the replica; 0: do not compare times.",
)
@click.option(
    "--bytes-scale",
    type=click.FloatRange(0, 1e9, min_open=True),
    callback=_number,
    default=1.0,
    show_default=True,
    help="Bytes scale of the replica.",
)
@click.option(
    "--rule",
    type=click.Choice(RULES),
    default=None,
    help="How the original was scaled to the ranks of the replica, if these differ; default: the "
    "rule with bytes nearest to the replica's.",
)
@click.option(
    "--json",
    "output",
    type=click.Path(path_type=Path),
    default=None,
    help="Also write the comparison to this file.",
)
@click.option("-f", "--force", is_flag=True, help="Replace the file of --json if it exists.")
@click.option(
    "--partial",
    is_flag=True,
    help="Compare logs whose modules ran out of memory; files opened later are missing.",
)
def command(
    original: Path,
    replica: Path,
    tolerance_percent: float,
    time_scale: float,
    bytes_scale: float,
    rule: str | None,
    output: Path | None,
    force: bool,
    partial: bool,
) -> None:
    """Compare REPLICA with ORIGINAL stream by stream: Darshan logs or workloads (*.json). ORIGINAL
    may be a directory with the logs of one job. If REPLICA has other ranks, or its bytes are
    scaled, it is compared with ORIGINAL as scaled; a note states the rule.

    The exit status is 0 if every error is within the tolerance, 1 if an error exceeds it, at an
    interface of the application or at the storage below it, or a stream has no counterpart, 2 for
    a usage error.

    Example: understudy fidelity app.darshan replica.darshan --time-scale 0.1
    """
    expect_not_read(output, (original, replica))
    expect_new(output, force)
    both = observe_both(original, replica, rule=rule, bytes_scale=bytes_scale, partial=partial)
    comparison = compare(*both, tolerance_fraction=tolerance_percent / 100, time_scale=time_scale)
    if output is not None:
        row = _row(comparison, original, replica, time_scale)
        write_text(output, json.dumps(row, indent=1) + "\n")
    _show(comparison)
    raise SystemExit(0 if comparison.passed else FAILED)


def _show(comparison: Comparison) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("stream or interface", "quantity", "original", "replica", "error", "verdict"):
        right = name in ("original", "replica", "error")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    reasons: dict[str, str] = {}
    shown = ""
    for name, m in comparison.rows():
        mark = reasons.setdefault(m.reason, f"({len(reasons) + 1})") if m.reason else ""
        head, shown = "" if name == shown else name, name
        table.add_row(
            head, m.quantity, m.original, m.replica, _error(m), _word(comparison, m, mark)
        )
    for stream in comparison.missing:
        table.add_row(stream.name, "stream", outline(stream), "none", "", "fail")
    for stream in comparison.extra:
        table.add_row(stream.name, "stream", "none", outline(stream), "", "fail")
    console.print(table)
    for reason, mark in reasons.items():
        console.print(f"\n{mark} not compared: {reason}", end="")
    if reasons:
        console.print()
    console.print(
        "Not compared: the order of accesses, which bytes each rank moves, how long a dump lasts "
        "and what a rank computes in it, direct and synchronous files, contents, directories, "
        "seeks of POSIX and renames."
    )
    for note in comparison.notes:
        console.print(f"Note: {one_line(note)}", markup=False)
    measures = [m for _, m in comparison.rows()]
    if any(m.quantity == "timeline" and comparison.above(m) for m in measures):
        console.print("Hint: --time-scale 0 compares all but times.")
    above = sum(map(comparison.above, measures))
    skipped = sum(m.error is None for m in measures)
    alone = len(comparison.missing) + len(comparison.extra)
    ranks = (
        ""
        if comparison.ranks[0] == comparison.ranks[1]
        else f", {comparison.ranks[0]} ranks became {comparison.ranks[1]}"
    )
    console.print(
        f"{'pass' if comparison.passed else 'fail'}: {len(measures) - above - skipped} within "
        f"{100 * comparison.tolerance_fraction:g}%, {above} above, {skipped} not compared, "
        f"{alone} streams without a counterpart{ranks}; "
        f"application: {_verdict(comparison.application)}, storage: {_verdict(comparison.storage)}"
    )


def _verdict(passed: bool | None) -> str:
    return "not compared" if passed is None else "pass" if passed else "fail"


def _error(measure: Measure) -> str:
    if measure.error is None:
        return ""
    return "0" if measure.error == 0 else f"{measure.error:+.2%}"


def _word(comparison: Comparison, measure: Measure, mark: str) -> str:
    return mark if measure.error is None else "fail" if comparison.above(measure) else "pass"


def _row(
    comparison: Comparison, original: Path, replica: Path, time_scale: float
) -> dict[str, Any]:
    return {
        "schema": "understudy/fidelity/3",
        "original": original.name,
        "replica": replica.name,
        "tolerance": comparison.tolerance_fraction,
        "time_scale": time_scale,
        "verdict": _verdict(comparison.passed),
        "application": _verdict(comparison.application),
        "storage": _verdict(comparison.storage),
        "failures": list(comparison.failures()),
        "notes": list(comparison.notes),
        "streams": [
            {
                "stream": pair.name,
                "replica": pair.replica.stream.name,
                "measures": [_measure(comparison, m) for m in pair.measures],
            }
            for pair in comparison.pairs
        ],
        "interfaces": [
            {
                "interface": layer.name,
                "storage": layer.storage,
                "measures": [_measure(comparison, m) for m in layer.measures],
            }
            for layer in comparison.layers
        ],
        "missing": [stream.name for stream in comparison.missing],
        "extra": [stream.name for stream in comparison.extra],
    }


def _measure(comparison: Comparison, measure: Measure) -> dict[str, Any]:
    error = measure.error
    return {
        "quantity": measure.quantity,
        "original": measure.original,
        "replica": measure.replica,
        "error": None if error is not None and math.isinf(error) else error,
        "reason": measure.reason,
        "verdict": _word(comparison, measure, "not compared"),
    }
