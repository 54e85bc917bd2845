"""Files whose datasets HDF5 filters (compresses): they are described by what it asked of the
storage.

Darshan's H5D module counts the bytes that an application hands over, and knows no filter. Where
far fewer reached the storage, a replica of the datasets would write what the application never
stored. Of these files, the records of HDF5 are left out, and MPI-IO or POSIX describes them.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.darshanlog import Log
from understudy.inference import constants as levels
from understudy.inference.calls.calls import PREFIXES

SAVED = levels.SOME  # share of the bytes of datasets that did not reach the storage

Ids = npt.NDArray[np.uint64]


@lru_cache(maxsize=1)
def filtered(log: Log) -> tuple[Ids, int]:
    """The files whose datasets are filtered, sorted, and the bytes that were handed over."""
    none = np.zeros(0, np.uint64)
    usable = all(
        m in log.modules and log.modules[m].supported and not log.modules[m].partial
        for m in ("H5D", "POSIX")
    )
    if not usable or log.modules["H5D"].version < 2:  # whose records do not name their file
        return none, 0
    files, asked = _written(log, "H5D", "file_rec_id", none)
    _, moved = _written(log, "POSIX", "id", files)
    if "MPI-IO" in log.modules and log.modules["MPI-IO"].supported:
        moved = np.maximum(moved, _written(log, "MPI-IO", "id", files)[1])
    less = (moved > 0) & (asked - moved > SAVED * asked)
    return files[less], int(asked[less].sum())


def _written(log: Log, module: str, name: str, wanted: Ids) -> tuple[Ids, npt.NDArray[np.int64]]:
    """Files (those that are wanted, if any) and the bytes written to them by the records of a
    module."""
    ids: list[Ids] = [wanted]
    sizes: list[npt.NDArray[np.int64]] = [np.zeros(len(wanted), np.int64)]
    for block in log.records(module):
        wrote = block[f"{PREFIXES[module]}_BYTES_WRITTEN"]
        matched = wrote > 0
        if len(wanted):
            matched &= np.isin(block[name], wanted)
        ids.append(block[name][matched])
        sizes.append(wrote[matched])
    files, which = np.unique(np.concatenate(ids), return_inverse=True)
    total = np.zeros(len(files), np.int64)
    np.add.at(total, which.ravel(), np.concatenate(sizes))
    return files, total


def without_filtered(log: Log, module: str, block: Any) -> Any:
    """A block of records of a module without those of HDF5 whose datasets are filtered."""
    if module not in ("H5F", "H5D") or not len(filtered(log)[0]):
        return block
    ids = block["file_rec_id" if module == "H5D" else "id"]
    return block[~np.isin(ids, filtered(log)[0])]
