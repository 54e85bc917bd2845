"""Time steps of a file that stays open, from its datasets and the bursts of its trace."""

from itertools import pairwise

import numpy as np

from understudy.inference.division import divide
from understudy.inference.heatmap import Burst
from understudy.inference.series import Cell, DumpFacts
from understudy.inference.time_steps import _by_growth, _lasting, _without_tiny

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


def sizes(*cells: Cell, moments: tuple[float, ...] = (0, 10, 20, 30)) -> list[int]:
    dump = DumpFacts(cells={((), part): cell for part, cell in enumerate(cells)})
    made = _by_growth(dump, bursts(*moments))
    assert all(step.start_s == at for step, at in zip(made, moments, strict=False))
    return [step.bytes for step in made]


def test_a_dataset_of_every_state_is_divided_equally() -> None:
    assert sizes(dataset(4, 0.1, 30.4)) == [800] * 4
    assert sizes(dataset(4, 0.1, 30.4, opened=SHAPE)) == [800] * 4  # it stayed open


def test_datasets_that_span_some_states_stand_in_those() -> None:
    """The first two time steps share datasets, the others have their own."""
    found = sizes(
        dataset(2, 0.1, 10.4), dataset(1, 20.1, 20.2), dataset(3, 30.1, 30.2, opened=300)
    )
    assert found == [800, 800, 800, 2400]


def test_a_dataset_of_every_state_needs_no_gaps() -> None:
    """A late time step was cut in two; all that is known of the dataset is its multiple."""
    assert sizes(dataset(4, 0.6, 30.4), moments=(0, 0.55, 20, 30)) == [800] * 4


def test_an_element_more_or_less_is_still_the_shape() -> None:
    found = sizes(dataset(4, 0.1, 30.4, more=2, opened=301))  # 100, 100, 101 and 101 elements
    assert sum(found) == 4 * 800 + 16
    assert set(found) == {800, 808}


def test_what_does_not_divide_equally_changes_its_size_once() -> None:
    """The player makes a file that it reads anew for each dump of another size."""
    whole = DumpFacts(cells={((), 0): Cell(shared_bytes=10_179_552, end_s=19.0)})
    moments = [Burst(start_s=float(at), end_s=float(at), bytes=1) for at in range(20)]
    found = [step.bytes for step in divide(whole, moments)]
    assert sum(found) == 10_179_552
    assert found == sorted(found)
    assert sum(a != b for a, b in pairwise(found)) == 1


def test_of_two_unequal_states_the_first_is_known() -> None:
    """The dataset of the last two time steps had 130 elements when it was opened last."""
    found = sizes(dataset(2, 0.1, 10.4), dataset(2, 20.1, 30.4, opened=130))
    assert found == [800, 800, 8 * 130, 8 * 70]


def test_other_growth_is_left_to_the_trace() -> None:
    assert sizes(dataset(4, 0.1, 30.4, more=50)) == []  # unequal shapes
    assert sizes(dataset(3, 0.1, 10.4)) == []  # three shapes in two time steps
    assert sizes(dataset(1, 0.1, 0.4), dataset(1, 10.1, 10.4)) == []  # none grew
    assert sizes(dataset(2, 0.1, 10.4)) == []  # and the other time steps?
    assert sizes(dataset(4, 0.1, 30.4), moments=()) == []


def test_what_is_too_small_to_matter_is_divided_equally_too() -> None:
    """Datasets whose shape changed between time steps, next to one a hundred times as large."""
    large = Cell(shared_bytes=4 * 8000, element=8, start_s=0.1, end_s=30.4, file=1, points=1000)
    small = Cell(shared_bytes=8 * 7, element=8, start_s=0.1, end_s=20.4, file=1, points=4)
    assert sizes(large, small) == [8016, 8016, 8024, 8000]
    assert sizes(large, dataset(4, 0.1, 30.4, more=50)) == []


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
