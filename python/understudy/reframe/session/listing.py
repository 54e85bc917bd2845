"""Totals of a listing (reframe -l): cases, bytes and time, in lines on stderr, and as JSON in the
file that UNDERSTUDY_LISTING names."""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from understudy.files import write_text
from understudy.reframe import spack
from understudy.reframe.session.session import nothing_selected
from understudy.units import hms, seconds, size

SHOWN = 3  # reasons
VARIABLE = "UNDERSTUDY_LISTING"


@dataclass(slots=True, kw_only=True)
class Total:
    """Totals of the cases that run; `nodes` and `ranks_per_node` are those of the largest."""

    cases: int = 0
    moved_bytes: int = 0
    longest_s: float = 0.0
    limits_s: int = 0
    nodes: int = 0
    ranks_per_node: int = 0

    def add(self, check: Any, here: Any) -> None:
        nodes, each = check.distribution(here)
        self.cases += 1
        self.moved_bytes += check.moved_on(here)
        self.longest_s += check.seconds_on(here)
        self.limits_s += check.limit_s(here)
        self.nodes = max(self.nodes, nodes)
        self.ranks_per_node = max(self.ranks_per_node, each)


def summarize(testcases: Iterable[Any]) -> None:
    """Print what the cases of a listing amount to, after it."""
    for line in lines(testcases):
        print(f"understudy: {line}", file=sys.stderr)


def lines(testcases: Iterable[Any]) -> Iterator[str]:
    """Lines for ReFrame's test cases; those that measure nothing are not counted."""
    total = Total()
    reasons: dict[str, list[str]] = {}  # by what they have in common
    missing: dict[str, int] = {}  # cases by what this host lacks
    selected = list(testcases)
    if nothing := nothing_selected(bool(selected)):
        yield nothing
    for case in selected:
        check, here = case.check, case.partition
        if not hasattr(check, "reasons"):
            continue
        reason = next(check.reasons(here), None) or check.oversized(here)
        runs_here = reason is None and here.scheduler.is_local and not spack.asked()
        if runs_here and (lacking := check.missing()):
            missing[lacking] = missing.get(lacking, 0) + 1
            continue
        if reason is not None:
            common = re.sub("[0-9]+", "", reason.replace(here.fullname, ""))
            reasons.setdefault(common, []).append(f"{check.display_name}: {reason}")
            continue
        total.add(check, here)
    if file := os.environ.get(VARIABLE):
        write_text(Path(file), json.dumps(asdict(total)) + "\n")
    if total.cases:
        yield (
            f"{total.cases} cases move {size(total.moved_bytes)}, one after the other in at most "
            f"{seconds(total.longest_s)} at the slowest bandwidth that is expected; the time "
            f"limits of their jobs are {hms(total.limits_s)} in total"
        )
    for lacking, count in missing.items():
        yield f"{count} are left out, since this host lacks what they need: {lacking}"
    most_first = sorted(reasons.values(), key=len, reverse=True)
    for same in most_first[:SHOWN]:
        yield f"{len(same)} are left out, such as {same[0]}"
    if rest := sum(map(len, most_first[SHOWN:])):
        yield f"{rest} are left out for other reasons, which a dry run states"
