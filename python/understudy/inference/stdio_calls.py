"""Sizes of calls of standard I/O, of which a log tells only how many there were.

The calls of a unit (between two flushes, else those of an open) are explained in four ways. Each
way needs so many bits to state the bytes of the unit, given the number of its calls, in Rissanen's
universal code of integers (Annals of Statistics 11, 1983); the shortest one is taken:

* all of one size, if the bytes can be divided so, or one for each rank, whose parts one of them
  writes: the size;
* a buffer of a power of two, emptied when it is full and at the end: its exponent, the last call;
* sizes that vary around a mean, such as lines or blocks of compressed data: the mean, and how far
  the bytes are from what it promises, which grows with the root of the number of calls;
* items before an array: the size of an item, and that of the array.

The C library gathers small calls in its buffer and makes a few calls of a large one. The first
three are played as equal calls.
"""

import numpy as np
import numpy.typing as npt

from understudy.inference.transfers import of_average
from understudy.semantics.calls import bin_of

ITEM_BYTES = 8  # a scalar

Whole = npt.NDArray[np.int64]
Real = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

_LOG_OF_SUM = np.log2(2.865)  # makes the lengths of all integers' codes those of one code


def of_streams(
    count: Whole, units: Whole, moved: Whole, gathered: Mask | bool = False
) -> tuple[Whole, Real]:
    """Calls in each bin and their mean size, [n, 10] each, from the calls, units and bytes of n
    records; `gathered`: in each unit, one rank makes as many calls as there are ranks."""
    histogram, sizes = of_average(count, moved)
    units = np.clip(units, 1, np.maximum(count, 1))
    for n in np.flatnonzero(_has_arrays(count, units, moved, gathered)).tolist():
        small = int(count[n] - units[n])
        large = (int(moved[n]) - small * ITEM_BYTES) / int(units[n])
        histogram[n], sizes[n] = 0, 0
        for many, size in ((small, float(ITEM_BYTES)), (int(units[n]), large)):
            place = bin_of(int(size))
            histogram[n, place], sizes[n, place] = many, size
    return histogram, sizes


def _has_arrays(count: Whole, units: Whole, moved: Whole, gathered: Mask | bool) -> Mask:
    """Where items before an array are the shortest explanation."""
    calls = np.maximum(count, 1) / units
    mean = np.maximum(moved, 1) / np.maximum(count, 1)
    array = moved / units - (calls - 1) * ITEM_BYTES
    buffer = 2.0 ** np.ceil(np.log2(np.maximum(mean, 2)))
    alike = count % units == 0  # all units
    fits = alike & ((buffer - mean) * (calls - 1) < mean)  # all calls but the last are full
    words = np.gcd(moved, ITEM_BYTES)  # that any sizes may have in common
    same = alike & (moved % np.maximum(count * words, 1) == 0)
    others = [
        np.where(same | gathered, _bits(mean), np.inf),
        np.where(fits, _bits(np.log2(buffer)) + _bits(mean), np.inf),
        _bits(mean) + np.log2(np.maximum(mean, 1)) + np.log2(calls) / 2,
    ]
    items = _bits(np.array([ITEM_BYTES])) + _bits(array)
    found: Mask = (count >= 2 * units) & (array > ITEM_BYTES) & (items < np.minimum.reduce(others))
    return found


def _bits(numbers: Whole | Real) -> Real:
    """Length of the universal code of numbers of at least 1."""
    rest = np.maximum(np.asarray(numbers, np.float64), 1.0)
    length = np.full_like(rest, _LOG_OF_SUM)
    while (rest > 1).any():
        rest = np.log2(np.maximum(rest, 1))
        length += np.maximum(rest, 0)
    return length
