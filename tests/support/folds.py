"""What the program of one stream makes."""

from collections.abc import Sequence

from understudy.contracts.workload import Stream
from understudy.semantics import calls, opens, sizes, times
from understudy.semantics.calls import Calls
from understudy.semantics.lowering import thread_of, threads_of


def calls_of(stream: Stream, ranks: int) -> Calls:
    """Its data calls."""
    return calls.calls_of(thread_of(stream, ranks), ranks)


def opens_of(stream: Stream, ranks: int, base: Stream | None = None) -> int:
    """How often it opens files, some of which `base` may have open."""
    *before, thread = threads_of([*([base] if base else []), stream], ranks)
    return opens.opens_of(thread, ranks, before[0] if before else None)


def prepared_opens(stream: Stream, ranks: int, base: Stream | None = None) -> tuple[int, int]:
    """What the player opens before it takes time; nothing of the files of `base`."""
    *_, thread = threads_of([*([base] if base else []), stream], ranks)
    return opens.prepared_opens(thread, ranks)


def stored_bytes(stream: Stream, ranks: int) -> int:
    """Bytes in its files when everything is written."""
    return sizes.stored_by(thread_of(stream, ranks))


def open_at(stream: Stream, ranks: int, at_s: Sequence[float]) -> list[bool]:
    """Whether its files are open then."""
    return times.open_at(thread_of(stream, ranks), at_s)
