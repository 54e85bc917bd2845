"""Options that several commands have, and how far nights differ on a command line."""

from pathlib import Path

import click

from understudy.judge.comparison.case_comparison import parse_share
from understudy.judge.statistics.night_statistics import NIGHTS

NAME = "--nights-differ"


def _parse(_: click.Context, __: click.Parameter, text: str) -> float:
    return parse_share(text, NAME)


NIGHTS_DIFFER = click.option(
    NAME,
    "nights_differ",
    metavar="SHARE",
    default=f"{NIGHTS:.0%}",
    show_default=True,
    callback=_parse,
    help="How far nights differ without any change: a standard deviation.",
)

SYSTEM = click.option("--system", required=True, help="The system of the runs.")
PARTITION = click.option("--partition", help="Only runs on this partition.")

FOLDER = click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of records.  [default: that of the site]",
)

LIVE = click.option(
    "--live",
    "live_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Add a line of JSON to FILE for each case that ends: bandwidth, dump times, time left.",
)


def words(share: float) -> list[str]:
    """The option on a command line; none where it is the default."""
    return [] if share == NIGHTS else [NAME, f"{share:g}"]
