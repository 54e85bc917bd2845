"""What the program of one stream makes."""

from collections.abc import Sequence

from understudy.contracts.workload import Stream
from understudy.program import calls, opens, sizes, times
from understudy.program.calls import Calls


def calls_of(stream: Stream, ranks: int) -> Calls:
    """Its data calls."""
    return calls.calls_of(stream, ranks)


def opens_of(stream: Stream, ranks: int, base: Stream | None = None) -> int:
    """How often it opens files, some of which `base` may have open."""
    return opens.opens_of(stream, ranks, base)


def prepared_opens(stream: Stream, ranks: int) -> tuple[int, int]:
    """What the player opens before it takes time; nothing of the files of another stream."""
    return opens.prepared_opens(stream, ranks)


def stored_bytes(stream: Stream) -> int:
    """Bytes in its files when everything is written."""
    return sizes.stored_by(stream)


def open_at(stream: Stream, at_s: Sequence[float]) -> list[bool]:
    """Whether its files are open then."""
    return times.open_at(stream, at_s)
