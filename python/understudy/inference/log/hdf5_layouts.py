"""How the datasets of HDF5 files lie on storage: in chunks, and filled before they are written.

Darshan's H5D module has the shape of the chunks of each dataset. That datasets are filled, as they
are where ranks share a file and nobody asks for the contrary (H5Pset_fill_time), is told by POSIX:
below HDF5 their bytes are written twice. A log has no alignment of objects.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from understudy.inference import constants as levels
from understudy.inference.table import Rows

LARGE = levels.LINES  # bytes of the datasets of a file, beside which its metadata are few
NEAR = levels.SOME  # share of their bytes by which what is written beyond them may differ
HOW = "H5D_CHUNK_SIZE_D* x H5D_DATATYPE_SIZE"
FILLED = "POSIX_BYTES_WRITTEN, the bytes of the datasets twice"


@dataclass(frozen=True, slots=True)
class Hdf5Layout:
    """Layout of the datasets of a file that moved most: bytes of a chunk, or None; `fill` if all
    are filled."""

    chunk_bytes: int | None = None
    fill: bool = False


def find(datasets: Rows, posix: Rows) -> Iterator[tuple[int, Hdf5Layout]]:
    """The layouts of the files of rows of datasets, given those of POSIX, where they are not
    contiguous and unfilled."""
    if not len(datasets):
        return
    files, which = np.unique(datasets["file"], return_inverse=True)
    _, first = np.unique(datasets[["file", "record"]], return_index=True)
    whole, written, below = np.zeros((3, len(files)), np.int64)
    sizes = datasets["points"][first] * datasets["element"][first]
    np.add.at(whole, which.ravel()[first], sizes)
    np.add.at(written, which.ravel(), np.where(datasets["write"], datasets["bytes"], 0))
    posix_writes = posix[posix["write"] & np.isin(posix["file"], files)]
    np.add.at(below, np.searchsorted(files, posix_writes["file"]), posix_writes["bytes"])
    beyond = below - written  # of datasets that grow, as much as was written to them
    twice = [np.abs(beyond - size) <= NEAR * size for size in (whole, written)]
    fill = (written > 0) & (whole >= LARGE) & np.any(twice, axis=0)
    largest = np.lexsort((datasets["bytes"], which.ravel()))  # of each file the last
    chunks = datasets["chunk"][largest[np.flatnonzero(np.diff(which.ravel()[largest], append=-1))]]
    for n in np.flatnonzero(fill | (chunks > 0)).tolist():
        yield int(files[n]), Hdf5Layout(chunk_bytes=int(chunks[n]) or None, fill=bool(fill[n]))


def common(layouts: Collection[Hdf5Layout | None]) -> Hdf5Layout:
    """The layout that all files have; of several, chunks as large as the largest."""
    of_files = [layout or Hdf5Layout() for layout in layouts]
    chunks = [layout.chunk_bytes for layout in of_files if layout.chunk_bytes]
    chunked = len(chunks) == len(of_files)
    return Hdf5Layout(
        chunk_bytes=max(chunks) if chunked and chunks else None,
        fill=bool(of_files) and all(layout.fill for layout in of_files),
    )
