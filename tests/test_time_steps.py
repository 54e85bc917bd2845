"""Time steps of a file that stays open, from the bursts of its trace."""

from itertools import pairwise

from understudy.inference.steps.heatmap import Burst
from understudy.inference.steps.split_dump import divide
from understudy.inference.streams.file_series import Cell, DumpFacts


def test_what_does_not_divide_equally_changes_its_size_once() -> None:
    """The player makes a file that it reads anew for each dump of another size."""
    whole = DumpFacts(cells={((), 0): Cell(shared_bytes=10_179_552, end_s=19.0)})
    moments = [Burst(start_s=float(at), end_s=float(at), bytes=1) for at in range(20)]
    step_bytes = [step.bytes for step in divide(whole, moments)]
    assert sum(step_bytes) == 10_179_552
    assert step_bytes == sorted(step_bytes)
    assert sum(a != b for a, b in pairwise(step_bytes)) == 1
