"""The cases by name, in their order, and how they are counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from nightly.rehearsal.ceph import faults, layouts, lies, sweep
from nightly.rehearsal.ceph.cluster import Failure
from nightly.rehearsal.ceph.stage import Skip, Stage

CASES: dict[str, Callable[[Stage], str]] = {
    "layouts": layouts.layouts,
    "object-sets": layouts.object_sets,
    "directory-default": layouts.directory_default,
    "sweep": sweep.sweep,
    "straggler": sweep.straggler,
    "adios": sweep.adios,
    "checks": sweep.checks,
    "heat-map": sweep.heat_map,
    "lies": lies.lies,
    "osd-restarted": faults.osd_restarted,
    "osd-lost": faults.osd_lost,
    "full": faults.file_system_full,
    "quota-before": faults.quota_before,
    "quota-exceeded": faults.quota_exceeded,
}


def play(stage: Stage, wanted: Sequence[str], say: Callable[[str], None]) -> int:
    """The exit status; a line for each case, and a last one that counts them."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for name, case in CASES.items():
        if wanted and name not in wanted:
            continue
        start = time.monotonic()
        try:
            outcome, text = "passed", case(stage)
        except Skip as reason:
            outcome, text = "skipped", str(reason)
        except (Failure, OSError, ValueError, LookupError) as failure:
            outcome, text = "failed", f"{type(failure).__name__}: {failure}"
        counts[outcome] += 1
        say(f"{outcome} {name} ({time.monotonic() - start:.1f} s): {text}")
    say(", ".join(f"{number} {outcome}" for outcome, number in counts.items()))
    return 1 if counts["failed"] or not counts["passed"] else 0
