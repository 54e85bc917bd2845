"""Warning of cases of a session that move too few bytes to measure storage, not memory."""

import os
from collections.abc import Iterable
from typing import Any

from understudy.judge.statistics.cache import IN_MEMORY
from understudy.reframe.systems import NODE_MEMORY, TYPE
from understudy.units import plural, size

TAG = "bandwidth"  # of checks whose volume matters


def warning(cases: Iterable[Any]) -> str | None:
    """Warning of ReFrame's test cases that move less than the memory of their nodes; None where
    there is none, or the memory is not known."""
    small = []
    case_count = 0
    for case in cases:
        check, here = case.check, case.partition
        memory_bytes = _memory(here)
        if TAG not in check.tags or here.extras.get(TYPE) in IN_MEMORY or memory_bytes is None:
            continue
        if next(check.reasons(here), None) or check.oversized(here):
            continue
        case_count += 1
        nodes, _ = check.distribution(here)
        moved = check.bytes_on(here)
        if moved < memory_bytes * nodes:
            small.append(
                f"{check.display_name}: {size(moved)} on {plural(nodes, 'node')} of "
                f"{size(memory_bytes)} each"
            )
    if not small:
        return None
    return (
        f"warning: {len(small)} of {case_count} cases move less than the memory of their nodes, "
        f"such as {small[0]}: caches of clients and servers may take it; choose a larger "
        "workload, or use -S scaling=weak -S ranks=N and -S Ior.block_bytes=SIZE"
    )


def _memory(here: Any) -> int | None:
    """Memory of a node of a partition: as its system states it, or of this host."""
    stated: int | None = here.extras.get(NODE_MEMORY)
    if stated is None and here.scheduler.is_local:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return stated
