"""What a program needs of the method of each stream, in the words of the player's --list."""

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


def _needs(thread: Stream, threads: Sequence[Stream]) -> Iterator[str]:
    owner = next(t for t in threads if t.name == thread.set.name)
    opens = list(opening(thread))
    own, last = owner is thread, borrows(thread)
    again = thread.set.names is not None and contents(thread) > thread.set.names
    keeps = own and any(o.mode == KEEP for o in opens)
    if again and keeps and thread.set.numbered:
        yield "update"
    if again and not thread.set.numbered and not thread.closes:
        yield "reopen"
    if again and not last and _empties(owner):
        yield "rewrite"
    if (
        any(not borrows(t) and t.set == thread.set for t in threads if t is not thread)
        and not last
    ):
        yield "extends"
    if last:
        yield "reads"
    if goes_on(thread) or _has_places(thread, threads) or reads_open(thread, threads):
        yield "continues"
    if thread.set.owner == EACH_ROW:
        yield "flood"
    if thread.set.tree is not None:
        yield "calls"
    if any(o.write_through for o in opens):
        yield "write_through"
    if any(isinstance(i, Move) and i.lookups for i in instructions(thread)):
        yield "lookups"
    if any(isinstance(i, Move) and i.nonblocking for i in instructions(thread)):
        yield "nonblocking"


def contents(thread: Stream) -> int:
    """Contents that its files have one after the other; of one set for all time, its dumps."""
    return sum(
        s.count
        for s in thread.steps
        if thread.set.tree is not None
        or not thread.set.numbered
        or any(isinstance(i, Begin) for i in s.body)
    )


def borrows(thread: Stream) -> bool:
    """Whether it reads files of another stream."""
    return thread.last is not None


def reads_open(thread: Stream, threads: Sequence[Stream]) -> bool:
    """Whether it reads files of another stream that this one has open."""
    owner = next((t for t in threads if t.name == thread.last), None)
    return owner is not None and (owner.closes or goes_on(owner))


def _empties(thread: Stream) -> bool:
    return any(
        isinstance(i, Remove) or (isinstance(i, Open) and i.mode == TRUNCATE)
        for i in instructions(thread)
    )


def goes_on(thread: Stream) -> bool:
    """Whether dumps go on with the files of the one before."""
    return contents(thread) < sum(s.count for s in thread.steps)


def _has_places(thread: Stream, threads: Sequence[Stream]) -> bool:
    """Whether places in its files are used again."""
    alike = [t for t in threads if t.set == thread.set]
    return any(isinstance(i, Move) and i.at is not None for t in alike for i in instructions(t))
