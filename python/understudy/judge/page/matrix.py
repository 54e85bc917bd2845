"""The cases of a page as a matrix: what was run, by where and how."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import median

from understudy import units
from understudy.judge.page.judged import Judged

LEAST = 2  # cells that are a picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """The cases of one name in one place by one method, worst first."""

    cases: tuple[Judged, ...]

    @property
    def worst(self) -> Judged:
        return self.cases[0]

    @property
    def speed(self) -> tuple[str, float] | None:
        """The operation and the median bandwidth (bytes/s) of the worst case: of writes, or of
        reads where it has no other."""
        for name, spread in (("write", self.worst.write), ("read", self.worst.read)):
            if spread:
                return name, spread.median
        return None

    @property
    def cached(self) -> bool:
        """True if the page cache can have served it."""
        return self.speed is not None and self.speed[0] in self.worst.cached


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """`places` have the columns of each, its methods; `rows` a cell for each of them, or None."""

    places: tuple[tuple[str, tuple[str, ...]], ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...]], ...]

    @property
    def unit(self) -> tuple[float, str]:
        """Divisor and name of one unit for all cells: that of the middle speed."""
        speeds = [c.speed[1] for _, cells in self.rows for c in cells if c and c.speed]
        return units.unit(median(speeds) if speeds else 1.0)


def matrix(cases: Sequence[Judged]) -> Matrix | None:
    """The matrix of cases that are sorted worst first; rows keep that order. None where it would
    show no more than the list."""
    columns = sorted({(case.place, case.method) for case in cases})
    cases_by_name: dict[str, dict[tuple[str, str], list[Judged]]] = {}
    for case in cases:
        row = cases_by_name.setdefault(case.name, {})
        row.setdefault((case.place, case.method), []).append(case)
    if sum(map(len, cases_by_name.values())) < LEAST:
        return None
    return Matrix(
        places=tuple(
            (place, tuple(method for _, method in place_columns))
            for place, place_columns in groupby(columns, key=lambda column: column[0])
        ),
        rows=tuple(
            (
                name,
                tuple(Cell(cases=tuple(here[c])) if c in here else None for c in columns),
            )
            for name, here in cases_by_name.items()
        ),
    )
