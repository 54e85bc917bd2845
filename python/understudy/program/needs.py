"""Needs of a program for the method of each stream, in the words of the player's --list."""

from collections.abc import Iterator, Sequence

from understudy.program.instructions import (
    EACH_ROW,
    KEEP,
    TRUNCATE,
    Begin,
    Move,
    Open,
    Program,
    Remove,
    Stream,
    instructions,
    opening,
)


def needs(program: Program) -> dict[str, frozenset[str]]:
    """Abilities beyond creating, writing, reading, flushing and closing files of one dump, by
    stream; proxies/core/plan/fold.c finds the same."""
    return {t.name: frozenset(_needs(t, program.streams)) for t in program.streams}


def _needs(stream: Stream, streams: Sequence[Stream]) -> Iterator[str]:
    owner = next(t for t in streams if t.set.name == stream.set.name)
    opens = list(opening(stream))
    owns_files, last = owner is stream, borrows(stream)
    again = stream.set.names is not None and contents(stream) > stream.set.names
    keeps = owns_files and any(o.mode == KEEP for o in opens)
    if again and keeps and stream.set.numbered:
        yield "update"
    if again and not stream.set.numbered and not stream.closes:
        yield "reopen"
    if again and not last and _empties(owner):
        yield "rewrite"
    if (
        any(not borrows(t) and t.set == stream.set for t in streams if t is not stream)
        and not last
    ):
        yield "extends"
    if last:
        yield "reads"
    if goes_on(stream) or _has_places(stream, streams) or reads_open(stream, streams):
        yield "continues"
    if stream.set.owner == EACH_ROW:
        yield "flood"
    if stream.set.tree is not None:
        yield "calls"
    if any(o.write_through for o in opens):
        yield "write_through"
    if any(isinstance(i, Move) and i.lookups for i in instructions(stream)):
        yield "lookups"
    if any(isinstance(i, Move) and i.nonblocking for i in instructions(stream)):
        yield "nonblocking"


def contents(stream: Stream) -> int:
    """Contents that its files have one after the other; of one set for all time, its dumps."""
    return sum(
        s.count
        for s in stream.steps
        if stream.set.tree is not None
        or not stream.set.numbered
        or any(isinstance(i, Begin) for i in s.body)
    )


def borrows(stream: Stream) -> bool:
    """True if it reads files of another stream."""
    return stream.last is not None


def reads_open(stream: Stream, streams: Sequence[Stream]) -> bool:
    """True if it reads files of another stream that this one has open."""
    owner = next((t for t in streams if t.name == stream.last), None)
    return owner is not None and (owner.closes or goes_on(owner))


def _empties(stream: Stream) -> bool:
    return any(
        isinstance(i, Remove) or (isinstance(i, Open) and i.mode == TRUNCATE)
        for i in instructions(stream)
    )


def goes_on(stream: Stream) -> bool:
    """True if dumps go on with the files of the one before."""
    return contents(stream) < sum(s.count for s in stream.steps)


def _has_places(stream: Stream, streams: Sequence[Stream]) -> bool:
    """True if places in its files are used again."""
    alike = [t for t in streams if t.set == stream.set]
    return any(isinstance(i, Move) and i.at is not None for t in alike for i in instructions(t))
