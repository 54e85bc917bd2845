"""Comparison of the files that a stream writes with the bytes that another one reads of each."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from understudy.contracts.workload import Pattern

_NAMED = ("hdf5", "adios", "adios2")  # methods whose bytes have no place of their own in the file
Whole = npt.NDArray[np.int64]


def hold(written: Sequence[Pattern], reader: Pattern, ranks: int) -> bool:
    """True if these streams, all of the same files, write as many bytes to each file as `reader`
    reads: those of a rank to its own file, or those of all ranks to files that they share."""
    base = written[0]
    if base.method in _NAMED or "flood" in (base.layout, reader.layout):
        return True
    apart = base.layout == reader.layout == "file-per-process"
    have: dict[int, Whole] = {}
    for each in written:
        for file, sizes in _largest(each, ranks, apart).items():
            have[file] = have.get(file, np.zeros(1, np.int64)) + sizes
    wanted = _largest(reader, ranks, apart)
    return all((sizes <= have.get(file, 0)).all() for file, sizes in wanted.items())


def _largest(stream: Pattern, ranks: int, apart: bool) -> dict[int, Whole]:
    """The maximum bytes of any content, by the number of the file in its dump: of each rank, or of
    all (int64 [ranks] or [1])."""
    most: dict[int, Whole] = {}
    content: dict[int, Whole] = {}
    for dump in stream.dumps:
        if not dump.continues and stream.files != "append":
            content = {}
        times = dump.count if stream.files == "append" else 1
        for variable in dump.variables:
            many, each = np.array(variable.rank_runs(ranks), np.int64).T
            sizes = np.repeat(each, many) if apart else np.array([(many * each).sum()])
            before = content.get(variable.file, np.zeros_like(sizes))
            content[variable.file] = before + times * variable.count * sizes
        for file, sizes in content.items():
            most[file] = np.maximum(most.get(file, sizes), sizes)
    return most
