"""Rows of accesses: what is copied at once, merged over rows, or put into a temporary file."""

from typing import Any

import numpy as np
import pytest

from understudy.inference.log import external_sort
from understudy.inference.log.counters import TOUCH
from understudy.inference.log.external_sort import Spill
from understudy.inference.log.known_files import lookup
from understudy.inference.table import ACCESS, SHARED, Once, over_rows, shared


def test_shared_columns_are_copied_and_no_others() -> None:
    names = [name for name, *_ in SHARED]
    touches = np.zeros(3, TOUCH)
    touches.view(np.uint8)[:] = 255
    rows = np.zeros(3, ACCESS)
    shared(rows)[:] = shared(touches)
    for name in ACCESS.names or ():
        same = rows[name].tobytes() == (touches[name].tobytes() if name in names else None)
        assert same if name in names else not rows[name].any(), name


@pytest.mark.parametrize("count", [1, 15, 16, 17, 64, 100])
@pytest.mark.parametrize("merge", [np.minimum, np.maximum, np.add])
def test_over_rows_merges_every_row(merge: np.ufunc, count: int) -> None:
    words = np.random.default_rng(count).integers(-9, 1 << 40, (count, 5))
    assert (over_rows(merge, words) == merge.reduce(words, axis=0)).all()


def test_equal_keys_are_found_at_the_first_of_them() -> None:
    keys = np.array([3, 3, 7], np.uint64)
    is_key, place = lookup(keys, keys)
    assert is_key.all()
    assert place.tolist() == [0, 0, 2]


@pytest.mark.parametrize("buckets", [1, 7])
@pytest.mark.parametrize("kind", [ACCESS, np.dtype([("file", "u8"), ("rank", "i4")])])
def test_spilled_rows_come_back_in_their_order(
    kind: np.dtype[Any], buckets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(external_sort, "HELD_BYTES", 1000)
    rng = np.random.default_rng(1)
    kept, parts = Spill(kind, buckets), []
    for n in range(30):
        rows = np.zeros(int(rng.integers(0, 20)), kind)
        rows["file"] = rng.integers(0, 1 << 60, len(rows))
        rows["rank"] = rng.integers(0, 5, len(rows)) if n % 3 else n  # also all alike
        kept.add(rows)
        parts.append(rows)
    whole = np.concatenate(parts)
    for n in range(buckets):
        expected = whole[whole["file"] % np.uint64(buckets) == n]
        for rows in (kept.bucket(n), kept.bucket(n)):
            assert repr(rows.tolist()) == repr(expected.tolist())
    kept.close()


@pytest.mark.parametrize(
    "columns", [["file", "write", "bare"], ["calls", "rank", "operations", "element"]]
)
def test_some_columns_of_spilled_rows(columns: list[str]) -> None:
    rng = np.random.default_rng(2)
    rows = np.zeros(500, ACCESS)
    rows.view(np.uint8)[:] = rng.integers(0, 2, len(rows) * ACCESS.itemsize)
    rows["file"] = rng.integers(0, 1 << 60, len(rows))
    kept = Spill(ACCESS, 3)
    for n in range(3):
        expected = rows[rows["file"] % np.uint64(3) == n]
        for part in np.array_split(expected, 2):
            kept.add_block(n, part)
        columns_read = kept.bucket(n, columns)
        assert columns_read.dtype.itemsize < ACCESS.itemsize
        for name in columns:
            assert columns_read[name].tolist() == expected[name].tolist(), name
    kept.close()


def test_ids_that_are_there_once() -> None:
    once = Once()
    ids = np.array([7, 3, 9], np.uint64)
    assert once(ids)
    assert once(ids.copy())
    assert not once(np.array([7, 3, 7], np.uint64))
    assert once(ids[:2])
    assert once(ids[:0])
