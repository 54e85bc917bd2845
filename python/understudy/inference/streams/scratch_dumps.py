"""The dumps of files that are read and written in turn, and their variables."""

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from understudy.contracts.workload import EVEN, Dump, Variable, runs


@dataclass(frozen=True, slots=True)
class Part:
    """Records that follow one another: as many of one size, always written together. Or what is
    read from the first of them on by calls of another size."""

    number: int
    records: int
    bytes: int  # of a record, or all that is read
    again: bool  # over those that are there
    call_bytes: int = 0  # of that other size


@dataclass(slots=True)
class ScratchDump:
    """A dump: the segments of a direction from `first` to before `last`."""

    write: bool
    first: int
    last: int
    start_s: float
    parts: list[Part] = field(default_factory=list)
    continues: bool = False


def variables(dump: ScratchDump, shares: npt.NDArray[np.float64]) -> tuple[Variable, ...]:
    """The variables of a dump; each rank moves its share of the bytes of the traced one's."""
    dump_variables = []
    for part in dump.parts:
        each = np.rint(shares * part.bytes).astype(np.int64)
        rule = runs((1, int(size)) for size in each)
        dump_variables.append(
            Variable(
                name=f"r{part.number}",
                count=part.records,
                type="byte",
                shape=(int(each.sum()),),
                decomposition=rule if len(rule.runs) > 1 else EVEN,
                transfer_bytes=part.call_bytes or int(each.max()),
                at=f"r{part.number}" if part.again else None,
            )
        )
    return tuple(dump_variables)


def without_places(dump: Dump) -> Dump:
    """The same behind one another."""
    return replace(dump, variables=tuple(replace(v, at=None) for v in dump.variables))
