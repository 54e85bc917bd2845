"""Which bytes of a striped file are in which of its objects, by Ceph's documentation of layouts.

Independent of the player's backend, which it checks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Of a file: `count` objects at a time take `unit` bytes in turn, up to `object_size` each."""

    unit: int
    count: int
    object_size: int
    pool: str

    @classmethod
    def of(cls, path: Path, kind: str = "file") -> Layout:
        text = os.getxattr(path, f"ceph.{kind}.layout").decode()
        fields = dict(field.split("=", 1) for field in text.split())
        return cls(
            unit=int(fields["stripe_unit"]),
            count=int(fields["stripe_count"]),
            object_size=int(fields["object_size"]),
            pool=fields["pool"],
        )

    def striped(self, count: int) -> Layout:
        return replace(self, count=count)

    @property
    def text(self) -> bytes:
        return (
            f"stripe_unit={self.unit} stripe_count={self.count} "
            f"object_size={self.object_size} pool={self.pool}"
        ).encode()

    def pieces(self, size: int) -> Iterator[tuple[int, int]]:
        """The object and the bytes of each stripe unit of a file of `size` bytes, in order."""
        units = self.object_size // self.unit * self.count  # in one set of objects
        for number in range(-(-size // self.unit)):
            first = number // units * self.count
            yield first + number % self.count, min(self.unit, size - number * self.unit)

    def objects(self, size: int) -> dict[int, int]:
        """Bytes of each object of a file of `size` bytes without holes."""
        lengths: dict[int, int] = {}
        for number, length in self.pieces(size):
            lengths[number] = lengths.get(number, 0) + length
        return lengths


def expected_rate(shares: Sequence[float], rates: Sequence[float]) -> float:
    """The bandwidth at which the slowest OSD is done with its share of the bytes, in the unit of
    the OSDs' rates. Shares need not add up to 1."""
    total = sum(shares)
    return min(rate * total / share for share, rate in zip(shares, rates, strict=True) if share)
