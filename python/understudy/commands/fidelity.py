"""understudy fidelity: is the replica faithful?"""

import json
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from understudy.errors import UnderstudyError
from understudy.fidelity import TOLERANCE, Comparison, Measure, compare, outline
from understudy.files import write_text
from understudy.observation import observe

MISTAKE = 2


@click.command()
@click.argument("original", type=click.Path(path_type=Path))
@click.argument("replica", type=click.Path(path_type=Path))
@click.option(
    "--tolerance", type=click.FloatRange(min=0), default=100 * TOLERANCE, show_default=True,
    help="The largest error that passes, in %.",
)  # fmt: skip
@click.option(
    "--time-scale", type=click.FloatRange(min=0), default=1.0, show_default=True,
    help="The time scale with which the replica was played; 0: times are not compared.",
)  # fmt: skip
@click.option(
    "--json", "output", type=click.Path(path_type=Path), default=None,
    help="Write the comparison to this file too.",
)  # fmt: skip
def command(
    original: Path, replica: Path, tolerance: float, time_scale: float, output: Path | None
) -> None:
    """Compare REPLICA with ORIGINAL stream by stream: Darshan logs or workloads (*.json).

    The exit status is 0 if every error is within the tolerance, 1 if one is above it or a stream
    has no counterpart, 2 for a mistake in the arguments or files.

    Example: understudy fidelity app.darshan replica.darshan --time-scale 0.1
    """
    try:
        first = observe(original)
        made = compare(
            first, observe(replica, first), tolerance=tolerance / 100, time_scale=time_scale
        )
        if output is not None:
            row = _row(made, original, replica, time_scale)
            write_text(output, json.dumps(row, indent=1) + "\n")
    except UnderstudyError as error:
        click.echo(f"understudy: {error}", err=True)
        raise SystemExit(MISTAKE) from None
    _show(made)
    raise SystemExit(0 if made.passed else 1)


def _show(made: Comparison) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("stream", "quantity", "original", "replica", "error", "verdict"):
        right = name in ("original", "replica", "error")
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    reasons: dict[str, str] = {}
    for pair in made.pairs:
        for k, m in enumerate(pair.measures):
            mark = reasons.setdefault(m.reason, f"({len(reasons) + 1})") if m.reason else ""
            name = pair.name if k == 0 else ""
            table.add_row(name, m.quantity, m.original, m.replica, _error(m), _word(made, m, mark))
    for stream in made.missing:
        table.add_row(stream.name, "stream", outline(stream), "none", "", "fail")
    for stream in made.extra:
        table.add_row(stream.name, "stream", "none", outline(stream), "", "fail")
    console.print(table)
    for reason, mark in reasons.items():
        console.print(f"\n{mark} not compared: {reason}", end="")
    if reasons:
        console.print()
    for note in made.notes:
        console.print(f"Note: {note}")
    measures = [m for p in made.pairs for m in p.measures]
    above = sum(map(made.above, measures))
    skipped = sum(m.error is None for m in measures)
    alone = len(made.missing) + len(made.extra)
    ranks = (
        "" if made.ranks[0] == made.ranks[1] else f", {made.ranks[0]} ranks became {made.ranks[1]}"
    )
    console.print(
        f"{'pass' if made.passed else 'fail'}: {len(measures) - above - skipped} within "
        f"{100 * made.tolerance:g}%, {above} above, {skipped} not compared, "
        f"{alone} streams without a counterpart{ranks}"
    )


def _error(measure: Measure) -> str:
    if measure.error is None:
        return ""
    return "0" if measure.error == 0 else f"{measure.error:+.2%}"


def _word(made: Comparison, measure: Measure, mark: str) -> str:
    return mark if measure.error is None else "fail" if made.above(measure) else "pass"


def _row(made: Comparison, original: Path, replica: Path, time_scale: float) -> dict[str, Any]:
    return {
        "schema": "understudy/fidelity/1",
        "original": original.name,
        "replica": replica.name,
        "tolerance": made.tolerance,
        "time_scale": time_scale,
        "verdict": "pass" if made.passed else "fail",
        "failures": list(made.failures()),
        "notes": list(made.notes),
        "streams": [
            {
                "stream": pair.name,
                "replica": pair.replica.stream.name,
                "measures": [
                    {
                        "quantity": m.quantity, "original": m.original, "replica": m.replica,
                        "error": m.error, "reason": m.reason,
                        "verdict": _word(made, m, "not compared"),
                    }
                    for m in pair.measures
                ],
            }
            for pair in made.pairs
        ],
        "missing": [stream.name for stream in made.missing],
        "extra": [stream.name for stream in made.extra],
    }  # fmt: skip
