"""Where does each number of a stream come from?"""

from collections.abc import Iterator, Mapping

from understudy.contracts.workload import Provenance
from understudy.inference.calls.calls import MODULES, PREFIXES
from understudy.inference.calls.transfers import MAX_PIECES
from understudy.inference.steps import pace
from understudy.inference.streams.file_series import Series
from understudy.inference.streams.stream_grouping import Draft

_Row = tuple[str, ...]  # path in the stream, origin, how, and confidence if not sure


def prove(
    draft: Draft, at: str, main: Series, *, sized: bool, starts: Mapping[str, str]
) -> Iterator[Provenance]:
    """The provenance of a stream of a draft at a path of the workload.

    `main` is the series that moved most bytes, `sized` whether variables have transfer sizes of
    their own, `starts` the counter of a module's first write.
    """
    for rows in (
        _of_times(draft, main, starts),
        _of_sizes(draft, main, sized),
        _of_files(draft, main),
    ):
        for path, origin, how, *confidence in rows:
            yield Provenance(
                path=f"{at}{path}", origin=origin, how=how, confidence="".join(confidence)
            )


def _counters(draft: Draft, main: Series) -> tuple[str, str, str]:
    """The module, the direction, and the counter of the bytes of a file."""
    module = PREFIXES[MODULES[main.method]]
    if draft.write:
        return module, "WRITE", f"{module}_BYTES_WRITTEN"
    return module, "READ", f"{module}_BYTES_READ"


def _of_times(draft: Draft, main: Series, starts: Mapping[str, str]) -> Iterator[_Row]:
    module, verb, size = _counters(draft, main)
    how = f"{size} of the files of each dump, in the order of time"
    if any(s.corrected for s in draft.series):
        yield "/dumps", "derived", f"{how}, corrected by the rules counted in the notes"
    else:
        yield "/dumps", "read", how
    first = f"{module}_F_{verb}_START_TIMESTAMP"
    if draft.write:
        first = starts.get(module, first)
    last = f"{module}_F_{verb}_END_TIMESTAMP"
    if draft.timing:
        origin = "assumed" if draft.assumed else "derived"
        yield "/dumps", origin, draft.timing, "likely" if draft.unclear else ""
    else:
        how = f"minimum {first}; the time of the open if it is 0 (never)"
        yield "/dumps/*/time_s", "read", how
        yield "/dumps/*/duration_s", "derived", f"maximum {last} minus minimum {first}"
    if draft.method in pace.ALONE:
        how = f"duration_s minus the time in calls, {module}_F_{verb}_TIME of a rank"
        if draft.spread:
            yield "/dumps/*/compute_s", "assumed", f"{how}; all calls at equal distances"
        else:
            yield "/dumps/*/compute_s", "derived", how, "likely"


def _of_sizes(draft: Draft, main: Series, sized: bool) -> Iterator[_Row]:
    module, verb, size = _counters(draft, main)
    buffered = main.method == "stdio"
    extent = f"{'STDIO' if buffered else 'POSIX'}_MAX_BYTE_WRITTEN + 1"
    yield "/dumps/*/overhead_bytes", "derived", f"{extent} minus the payload"
    yield "/dumps/*/variables/*/count", "derived", "neighbours of equal size are one entry"
    cells = (c for s in draft.series for d in s.dumps for c in d.cells.values())
    shared = [cell for cell in cells if cell.shared_bytes]
    decomposition = "/dumps/*/variables/*/decomposition"
    if shared and all(cell.even for cell in shared):
        how = f"all ranks moved the same: {module}_F_VARIANCE_RANK_BYTES is 0"
        yield decomposition, "derived", how
    elif shared:
        how = "a shared file has no bytes per rank in the log: even is assumed"
        yield decomposition, "assumed", how
    else:
        how = f"{size} of each rank, or its access sizes where one record stands for all ranks"
        yield decomposition, "derived", how
    how = f"{size} / STDIO_{verb}S" if buffered else "access size that moved most bytes"
    yield "/transfer_bytes", "derived", f"{how}, at most 4 GiB"
    if sized:
        how = (
            f"{size} over {module}_{verb}S, all calls alike"
            if buffered
            else f"{module}_SIZE_{verb}_* and {module}_ACCESS*_ACCESS and _COUNT: calls of "
            f"each size, the largest of which are the collective ones; at most {MAX_PIECES} "
            "sizes for a file of a dump"
        )
        yield "/dumps/*/variables/*/transfer_bytes", "derived", how


def _of_files(draft: Draft, main: Series) -> Iterator[_Row]:
    module, verb, _ = _counters(draft, main)
    yield "/operation", "read", f"{module}_{verb}S of the files"
    yield "/method", "read", f"the module {module}"
    if draft.again:
        confidence = "likely" if draft.again_sure else "guess"
        yield "/files", "reconstructed", draft.again, confidence
        yield "/reopen", "reconstructed", draft.again, confidence
    else:
        yield "/files", "reconstructed", "names of the files and when they were open"
        if draft.files == "append" and draft.reopen:
            yield "/reopen", "reconstructed", "opened for each time step, by the counters"
    if draft.pace == "steady":
        how = "calls at equal distances in the DXT segments, over which the file rests"
        yield "/pace", "reconstructed", how
    elif draft.paced and not draft.spread:
        yield "/pace", "assumed", f"one burst, though {draft.paced}"
    if draft.ordered:
        path = "/dumps/*/variables/*/decomposition" if draft.block else "/order"
        yield path, "derived", draft.ordered, "likely"
    if draft.lookups:
        counter = (
            "STDIO_SEEKS - STDIO_READS" if main.method == "stdio" else f"{module}_RW_SWITCHES"
        )
        how = f"{counter}, more than opens explain; {module}_READS, {module}_BYTES_READ"
        yield "/lookups", "derived", how, "likely"
    if draft.removes:
        yield "/removes", "reconstructed", draft.removes, "guess"
    if directories_apart(draft) and len(draft.spans) > 1:
        yield "/own_directories", "read", "names of the files"
    yield "/layout", "derived", "ranks that have records of each file"
    yield "/content", "assumed", "random bytes: a log does not hold what was written"
    if len(draft.spans) > 1:
        yield "/groups", "derived", "files whose ranks are disjoint"


def directories_apart(draft: Draft) -> bool:
    """True if the directories of the files tell ranks apart."""
    return all(
        any(place < s.template.rpartition(b"/")[0].count(b"\x00") for place in s.ranked)
        for s in draft.series
    )
