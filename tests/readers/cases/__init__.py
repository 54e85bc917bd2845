"""Cases of the corpus: functions that make the logs of small runs, one module for each topic.

    @case(trace=FLAGS)
    def file_of_each_rank(trace: bool) -> Run: ...

`tests/readers/described/<topic>.txt` has the description of each. A function with parameters is a
case for each combination of their values. A list of runs is described as one job.
"""

import itertools
from collections.abc import Callable, Iterable
from functools import partial

from tests.readers.synthetic import Run

Runs = Run | list[Run]
FLAGS = (False, True)
MIB = 1 << 20
CASES: dict[str, Callable[[], Runs]] = {}


def case(**values: Iterable[object]) -> Callable[[Callable[..., Runs]], Callable[..., Runs]]:
    """Adds a function to the cases, once for each combination of the values."""

    def add(make: Callable[..., Runs]) -> Callable[..., Runs]:
        name = f"{make.__module__.rpartition('.')[2]}.{make.__name__}"
        for number, row in enumerate(itertools.product(*values.values())):
            plain = all(isinstance(value, bool | int | float | str | None) for value in row)
            suffix = "-".join(map(str, row)) if plain else str(number)
            key = f"{name}[{suffix}]" if row else name
            assert key not in CASES, key
            CASES[key] = partial(make, **dict(zip(values, row, strict=True)))
        return make

    return add
