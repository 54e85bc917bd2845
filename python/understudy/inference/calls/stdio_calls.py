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
three are played as equal calls. Where the shortest code of these and that of items before an array
are nearly as long, the log does not tell how many calls reached the storage.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.inference import constants as levels
from understudy.inference.calls.transfers import of_average
from understudy.inference.table import ALL_RANKS
from understudy.program.counters import bin_of

ITEM_BYTES = 8  # a scalar
BUFFER_BYTES = 4096  # of a stream of the GNU C library, on most file systems
PAST_BUFFER = 2  # calls of the system for a large one: to empty the buffer, and for its own bytes
SURE_BITS = levels.TIMES  # distance to the next code: one against a thousand

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


def flushes_of_writes(block: Any) -> Whole:
    """Flushes through stdio that do not come before a read, as those between writes and reads
    (ISO C, 7.21.5.3)."""
    flushes, reads = block["STDIO_FLUSHES"], np.maximum(block["STDIO_READS"], 0)
    of_writes: Whole = np.where(reads < flushes, flushes - reads, flushes)
    return of_writes


def units_of(block: Any, verb: str, ranks: int) -> tuple[Whole, Mask]:
    """How often the calls of records begin anew: for each flush but the last of an open, else for
    each open; and whether there are as many in each as ranks, all by one of these. Opens are
    divided between reads and writes like the bytes."""
    read, written = (np.maximum(block[f"STDIO_BYTES_{w}"], 0) for w in ("READ", "WRITTEN"))
    share = (read if verb == "READ" else written) / np.maximum(read + written, 1)
    opens = np.rint(block["STDIO_OPENS"] * share).astype(np.int64)
    if verb == "READ":
        return opens, np.zeros(len(block), np.bool_)
    alone = (block["rank"] != ALL_RANKS) & (ranks > 1)
    count, flushes = block["STDIO_WRITES"], flushes_of_writes(block)
    of_flushes = alone & (count == ranks * flushes)
    units = np.maximum(opens, flushes - np.where(of_flushes, 0, opens))
    return units, alone & (count == ranks * units)


def system_calls(block: Any, verb: str, ranks: int) -> tuple[Whole, Whole]:
    """How many calls of the system those of each record are taken to make, without seeks, and by
    how many it may be otherwise, since another explanation of their sizes is nearly as short."""
    count = np.maximum(block[f"STDIO_{verb}S"], 0)
    moved = np.maximum(block[f"STDIO_BYTES_{'READ' if verb == 'READ' else 'WRITTEN'}"], 0)
    units, gathered = units_of(block, verb, ranks)
    units = np.clip(units, 1, np.maximum(count, 1))
    items, others = _lengths(count, units, moved, gathered)
    pages, rest = np.divmod(moved, BUFFER_BYTES)
    whole = (pages >= count) & (count > 0)
    buffers = np.maximum(units, -(-moved // BUFFER_BYTES))
    aligned = (rest == 0) & (pages % np.maximum(count, 1) == 0)
    equal = np.where(whole, np.where(aligned, 1, PAST_BUFFER) * count, buffers)
    arrays = np.minimum(PAST_BUFFER * units, buffers)
    unsure = (np.abs(items - others) < SURE_BITS) & (count > 0)
    taken = np.where(count > 0, np.where(items < others, arrays, equal), 0)
    return taken, np.where(unsure, np.abs(equal - arrays), 0)


def _has_arrays(count: Whole, units: Whole, moved: Whole, gathered: Mask | bool) -> Mask:
    """Where items before an array are the shortest explanation."""
    items, others = _lengths(count, units, moved, gathered)
    shorter: Mask = items < others
    return shorter


def _lengths(count: Whole, units: Whole, moved: Whole, gathered: Mask | bool) -> tuple[Real, Real]:
    """Bits of items before an array, infinite where that cannot be, and of the shortest code of
    calls that are alike."""
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
    possible = (count >= 2 * units) & (array > ITEM_BYTES)
    return np.where(possible, items, np.inf), np.minimum.reduce(others)


def _bits(numbers: Whole | Real) -> Real:
    """Length of the universal code of numbers of at least 1."""
    rest = np.maximum(np.asarray(numbers, np.float64), 1.0)
    length = np.full_like(rest, _LOG_OF_SUM)
    while (rest > 1).any():
        rest = np.log2(np.maximum(rest, 1))
        length += np.maximum(rest, 0)
    return length
