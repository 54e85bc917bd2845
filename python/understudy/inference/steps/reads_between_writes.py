"""Files that are read between the writes to them, through the same open, as databases are.

Opens explain one change from writing to reading each. Where there were more, the reads of a file
were made between its writes, if both went on at the same time, and become one stream with them.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from understudy.inference import constants as levels
from understudy.inference.streams.file_series import DumpFacts
from understudy.inference.streams.stream_grouping import Draft
from understudy.program.reads_between_writes import bytes_of_reads
from understudy.program.types import CONSECUTIVE, Lookups

# Share of the reads that files of few bytes may lack: the limit of what is faithful.
MISSED = levels.PART
METHODS = ("posix", "stdio")  # that can read between their writes


def joined(drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts; those that are read between writes have `lookups`, and their reads are no draft
    of their own."""
    gone: set[int] = set()
    for written in drafts:
        if not written.write or not _is_one_file(written):
            continue
        for read in drafts:
            if (
                id(read) in gone
                or read.write
                or not _is_one_file(read)
                or not _same(written, read)
            ):
                continue
            lookups = _between(written, read)
            if lookups is not None:
                written.lookups = lookups
                gone.add(id(read))
                break
    return [draft for draft in drafts if id(draft) not in gone]


def _is_one_file(draft: Draft) -> bool:
    return len(draft.series) == 1 and bool(draft.series[0].template) and not draft.scratch_dumps


def _same(written: Draft, read: Draft) -> bool:
    write_series, read_series = written.series[0], read.series[0]
    same = (
        write_series.template == read_series.template and write_series.method == read_series.method
    )
    at_once = read.start_s(0) < written.end_s(0) and written.start_s(0) < read.end_s(0)
    return same and at_once and written.spans == read.spans and write_series.key == read_series.key


def _between(written: Draft, read: Draft) -> Lookups | None:
    """The reads as they stand between the writes; None where they do not."""
    times = sum(d.count * sum(c.switches for c in d.cells.values()) for d in _dumps(written))
    calls = sum(d.count * sum(c.calls for c in d.cells.values()) for d in _dumps(read))
    if not times or not calls or written.order != CONSECUTIVE:
        return None
    cells = [cell for dump in _dumps(written) for cell in dump.cells.values()]
    extent = sum(cell.extent for cell in cells) or written.bytes
    each = [c.rank_bytes for c in cells if c.rank_bytes is not None]
    ranks = max((int(np.count_nonzero(some)) for some in each), default=1) or 1
    contents = ranks * max(written.bytes / extent, *(float(cell.opens) for cell in cells))
    content = int(written.bytes / contents)
    every = max(1, round(written.bytes / times))
    lookups = Lookups(every_bytes=every, calls=calls / times, transfer_bytes=content)
    lost = times - contents * (content // every) > MISSED * times
    if lost or written.method not in METHODS:
        return None
    if contents * bytes_of_reads(lookups, content) < read.bytes:
        return None
    low, high = 0, content
    while high - low > 1:  # what is there may be less than is asked for
        middle = (low + high) // 2
        moved = contents * bytes_of_reads(replace(lookups, transfer_bytes=middle), content)
        low, high = (low, middle) if moved >= read.bytes else (middle, high)
    return replace(lookups, transfer_bytes=high)


def _dumps(draft: Draft) -> list[DumpFacts]:
    return draft.series[0].dumps
