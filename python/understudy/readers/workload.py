"""Workloads of this version and of earlier ones, also for another number of ranks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import click

from understudy.contracts import workload
from understudy.contracts.workload import Workload
from understudy.errors import UnderstudyError
from understudy.model import scaling

KIND = "a workload"
SUFFIXES = (".json",)
NAMED = True
OPTIONS = (
    click.option(
        "-n",
        "--ranks",
        type=click.IntRange(min=1),
        default=None,
        help="Workload: convert it to this number of MPI ranks, by --rule.",
    ),
    click.option(
        "--rule",
        type=click.Choice(scaling.RULES),
        default=None,
        help="Workload, with -n: strong keeps the total bytes, weak the bytes per rank.",
    ),
)


def read(
    path: Path,
    *,
    name: str | None = None,
    keep_names: bool = False,
    tick: Callable[[float], None] = lambda _: None,
    ranks: int | None = None,
    rule: str | None = None,
) -> Workload:
    """The workload in a file, scaled to `ranks` by `rule` where both are given. Its labels stay,
    whatever `keep_names` is; without `name`, its name, too."""
    if (ranks is None) != (rule is None):
        raise UnderstudyError(f"{path}: expected -n and --rule together, or neither")
    loaded = workload.load(path)
    if ranks is not None and rule is not None:
        loaded = scaling.scale(loaded, ranks, rule)
    return loaded if name is None else replace(loaded, name=name)
