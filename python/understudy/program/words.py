"""Use of files by a stream, in words for tables."""

from dataclasses import replace
from typing import Any

from understudy.program.instructions import Stream

_AGAIN = {"append": ", appended", "rewrite": ", rewritten", "update": ", updated"}


def kind(stream: Stream) -> str:
    """Kind of a stream; one without a byte writes nothing, whatever its operation."""
    if stream.last is not None:
        return f"read of {stream.last}"
    if stream.bytes:
        return f"{stream.operation} {stream.files}"
    return ", ".join(sorted({o.kind for s in stream.steps for o in s.operations})) or "no bytes"


def names(stream: Stream) -> str:
    """How many sets of files are used in turn, and how they are emptied."""
    several = f" ({stream.names} names)" if stream.names > 1 else ""
    kept = ", backup" if stream.backup else ", removes"
    return several + (kept if stream.removes else "")


def layout(stream: Stream) -> str:
    """Which ranks share its files, and whether these have directories of their own."""
    groups = f" ({stream.groups})" if stream.groups else ""
    return stream.layout + groups + (", own directories" if stream.set.own_directories else "")


def again(stream: Stream) -> str:
    """Use of the files of earlier dumps by later ones; empty where each has its own."""
    return _AGAIN.get(stream.files, "") if stream.dump_count > 1 else ""


def same_use(stream: Stream, other: Stream) -> bool:
    """True if both treat the files of earlier dumps alike."""
    return stream.files == other.files


def alike(stream: Stream) -> Any:
    """Key of streams that do the same: all but names, texts and what moves when."""
    first = next(stream.moves, None)
    how = first and (first.order, first.flush_bytes, first.hands_over, first.lookups)
    files = replace(stream.set, name="", files=1)
    kinds = (stream.operation, stream.collective, stream.transfer_bytes, stream.sync)
    uses = (stream.files, stream.closes, stream.removes, stream.backup, stream.takes_turns)
    opened = (stream.role, stream.method, stream.content, stream.open, stream.base)
    return (kinds, uses, opened, files, stream.order, stream.passes, stream.pace, how)
