"""The orders of transfers and files, as proxies/core/workload/order.c has them."""

from understudy.program.types import Order

_BITS = (1 << 64) - 1


def _mix(value: int) -> int:
    value = value + 0x9E3779B97F4A7C15 & _BITS
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _BITS
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _BITS
    return value ^ value >> 31


def key(order: Order, dump: int, variable: int, rank: int) -> int:
    """Of the shuffled order of a rank's transfers of a variable, or with a rank of 0 of files."""
    mixed = order.seed
    for number in (dump, variable, rank):
        mixed = _mix(mixed) ^ number
    return _mix(mixed)


def position(order: Order, key_: int, n: int, at: int) -> int:
    """Which of n things is at a position."""
    if order.rule == "shuffled":
        return _shuffled(key_, n, at)
    return _strided(order.step, n, at) if order.rule == "strided" else at


def _strided(step: int, n: int, at: int) -> int:
    rows, longer = divmod(n, step)
    if at < longer * (rows + 1):
        return at % (rows + 1) * step + at // (rows + 1)
    at -= longer * (rows + 1)
    return at % rows * step + longer + at // rows


def _shuffled(key_: int, n: int, at: int) -> int:
    half = 1
    while 1 << 2 * half < n:
        half += 1
    mask = (1 << half) - 1
    while True:
        left, right = at >> half, at & mask
        for turn in range(4):
            left, right = right, left ^ _mix(key_ ^ turn << 56 ^ right) & mask
        at = left << half | right
        if at < n:
            return at
