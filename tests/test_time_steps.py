"""Time steps of a file that stays open, from its datasets and the bursts of its trace."""

from itertools import pairwise

import numpy as np

from understudy.inference.steps.heatmap import Burst
from understudy.inference.steps.split_dump import divide
from understudy.inference.steps.time_steps import _lasting, _without_tiny
from understudy.inference.streams.file_series import Cell, DumpFacts

SHAPE = 100  # elements of 8 bytes of one time step


def bursts(*starts: float) -> list[Burst]:
    """One every so often, half a second long; their own bytes are the container's too."""
    return [Burst(start_s=at, end_s=at + 0.5, bytes=1_000) for at in starts]


def dataset(
    steps: int, start_s: float, end_s: float, *, opened: int | None = None, more: int = 0
) -> Cell:
    """A dataset that took its shape so often, opened anew for each time step before it grew."""
    return Cell(
        shared_bytes=8 * SHAPE * steps + 8 * more,
        element=8,
        start_s=start_s,
        end_s=end_s,
        file=1,
        points=SHAPE * (steps - 1 or 1) if opened is None else opened,
    )


def test_what_does_not_divide_equally_changes_its_size_once() -> None:
    """The player makes a file that it reads anew for each dump of another size."""
    whole = DumpFacts(cells={((), 0): Cell(shared_bytes=10_179_552, end_s=19.0)})
    moments = [Burst(start_s=float(at), end_s=float(at), bytes=1) for at in range(20)]
    found = [step.bytes for step in divide(whole, moments)]
    assert sum(found) == 10_179_552
    assert found == sorted(found)
    assert sum(a != b for a, b in pairwise(found)) == 1


def test_datasets_that_last_tell_no_states() -> None:
    short, long = dataset(1, 0.1, 0.4), dataset(2, 0.1, 10.4)
    times = bursts(0, 10, 20)
    assert not _lasting(DumpFacts(cells={((), 0): short}), times)
    assert _lasting(DumpFacts(cells={((), 0): short, ((), 1): long}), times)
    assert not _lasting(DumpFacts(cells={((), 1): long}), [])


def test_what_is_written_at_the_close_is_no_time_step() -> None:
    """Two of 4 MB in two calls each, and 96 B of a library before, between and after them."""
    sizes = np.array([96, 2_000_000, 2_000_000, 96, 2_000_000, 2_000_000, 96], np.int64)
    assert _without_tiny(sizes, (1, 3, 4, 6)) == (4,)
    assert _without_tiny(sizes[1:], (2, 3, 5)) == (3,)
    assert _without_tiny(np.array([5, 5, 5], np.int64), (1, 2)) == (1, 2)
