"""understudy metrics: the last session of every figure, for Prometheus."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from understudy.cli import UNDECIDED, print_error
from understudy.commands._options import FOLDER, NIGHTS_DIFFER, PARTITION, SYSTEM
from understudy.contracts import acknowledgements
from understudy.errors import UnderstudyError, one_line
from understudy.files import expect_new, expect_not_read, write_text
from understudy.judge.comparison import trend as trends
from understudy.judge.comparison.trend import Figure, Trend
from understudy.judge.statistics.compared_samples import Subject
from understudy.judge.statistics.night_statistics import Rule
from understudy.records import index as indexes
from understudy.records import select, store
from understudy.units import RATE, SECONDS

if TYPE_CHECKING:
    from prometheus_client.metrics_core import GaugeMetricFamily

PREFIX = "understudy"
# By unit: the name, and what the value is.
VALUES = {
    RATE: ("bandwidth_bytes_per_second", "Median of the last session."),
    SECONDS: ("elapsed_seconds", "Median of the last session."),
}
OTHER = ("operations_per_second", "Median of the last session.")
DIGITS = 12  # of the SHA-256 of a condition


@click.command()
@SYSTEM
@PARTITION
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write, such as one that node_exporter reads.",
)
@click.option("-f", "--force", is_flag=True, help="Replace the output file if it exists.")
@FOLDER
@NIGHTS_DIFFER
def command(
    system: str,
    partition: str | None,
    output: Path | None,
    force: bool,
    folder: Path | None,
    nights_differ: float,
) -> None:
    """Print the last session of every figure as metrics of Prometheus: values, open changes,
    failed runs, and when the last session ran.

    With -o, they are written to a file completely or not at all, as the textfile collector of
    node_exporter asks for. The changes are those of `understudy trend`.

    Example: understudy metrics --system archer2 -f -o /var/lib/node_exporter/understudy.prom
    """
    folder = folder or store.folder()
    expect_not_read(output, folder=folder)
    expect_new(output, force)
    index = indexes.of_folder(folder)
    where = select.equal(system=system, partition=partition)
    unread = index.unread_files(*where).values()
    for message in unread:
        print_error(UnderstudyError(f"left out: {message}"))
    rule = Rule(nights=nights_differ)
    trend = trends.of(index, where, acknowledgements.load(folder), rule)
    if not trend.runs:
        raise UnderstudyError(f"{system}: no run; run checks first")
    whole = {"system": _label(system), "partition": _label(partition)}
    text = exposition(whole, trend, len(unread))
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)


def exposition(whole: dict[str, str], trend: Trend, unread: int) -> str:
    """The text format of Prometheus, escaped by its own library."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.registry import Collector

    class Figures(Collector):
        def collect(self) -> Iterator["GaugeMetricFamily"]:
            return iter(_families(whole, trend, unread))

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Figures())
    return generate_latest(registry).decode("utf-8")


def _families(whole: dict[str, str], trend: Trend, unread: int) -> list["GaugeMetricFamily"]:
    """`whole` are the labels of what is of all figures."""
    from prometheus_client.metrics_core import GaugeMetricFamily

    families: dict[str, GaugeMetricFamily] = {}

    def add(name: str, text: str, labels: dict[str, str], value: float) -> None:
        name = f"{PREFIX}_{name}"
        if name not in families:
            families[name] = GaugeMetricFamily(name, text, labels=list(labels))
        families[name].add_metric(list(labels.values()), value)

    for figure in trend.figures:
        labels, series = _of_figure(figure), figure.series
        add(*VALUES.get(series.unit, OTHER), labels, figure.values[-1])
        text = "When the last session began."
        add("last_session_timestamp_seconds", text, labels, _seconds(series.times[-1]))
        text = "The last change that is open, after over before; 1 where there is none."
        add("open_change_ratio", text, labels, figure.open[-1].ratio if figure.open else 1.0)
        slower = sum(step.slower for step in figure.open)
        add("open_losses", "Changes to slower that nobody has acknowledged.", labels, slower)
        if figure.words:
            text = "What tells a condition from others of its case."
            add("condition_info", text, labels | {"words": _label(figure.words)}, 1)
    failed: dict[Subject, list[str]] = {figure.series.subject: [] for figure in trend.figures}
    for failure in trend.failures:
        failed.setdefault(failure.subject, []).append(failure.time)
    for subject, times in failed.items():
        add("failed_runs", "Runs that failed.", _of_subject(subject), len(times))
        if times:
            text = "When the last run that failed began."
            labels = _of_subject(subject)
            add("last_failure_timestamp_seconds", text, labels, _seconds(max(times)))
    add("runs", "Runs of all sessions, failed ones included.", whole, trend.runs)
    add("unread_records", "Records that cannot be read, and do not count.", whole, unread)
    text = "Status of understudy trend --fail: 0 fine, 1 an open loss, 3 nothing can be told."
    add("trend_status", text, whole, trend.status or (UNDECIDED if unread else 0))
    return list(families.values())


def _of_figure(figure: Figure) -> dict[str, str]:
    """The labels of a figure: no two have the same."""
    series = figure.series
    facts = {
        "condition": series.condition[:DIGITS],
        "stream": series.stream,
        "metric": series.metric,
        "unit": series.unit,
    }
    return _of_subject(series.subject) | {key: _label(value) for key, value in facts.items()}


def _of_subject(subject: Subject) -> dict[str, str]:
    return {key: _label(value) for key, value in asdict(subject).items()}


def _label(value: str | None) -> str:
    """Without control characters; what differs stays different."""
    return one_line((value or "").replace("\\", "\\\\"))


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()
