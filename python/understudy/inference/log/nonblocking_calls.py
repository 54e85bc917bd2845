"""Moves that an application only began, by the nonblocking calls of MPI-IO.

Darshan counts them, but neither sees the waits nor which calls were waited for together: all of a
dump are taken to be in flight at once. The time between them is no computing that could be told
from waiting.
"""

from collections.abc import Iterator
from dataclasses import replace

from understudy.inference.log.counter_totals import CounterTotals
from understudy.program.instructions import (
    Compute,
    Instruction,
    Move,
    Spread,
    Step,
    Stream,
    WaitAll,
    instructions,
)
from understudy.units import plural

NOTE = (
    "its moves are begun together and then waited for: Darshan counts nonblocking calls of "
    "MPI-IO, but no waits, nor computing beside them"
)

WAYS = {"write": "WRITES", "read": "READS"}


def split_note(stream: Stream, totals: CounterTotals) -> str | None:
    """A note on split collective calls, of which the replica makes each at once."""
    counted = totals.counters.get("MPI-IO", {})
    count = counted.get(f"MPIIO_SPLIT_{WAYS[stream.operation]}", 0)
    if stream.method != "mpiio" or not count:
        return None
    return (
        f"{stream.name}: {plural(count, 'collective call')} began and ended apart "
        f"(MPI_File_{stream.operation}_all_begin and _end), between which an application may "
        "compute: the replica makes each at once, or with -m mpiio.split=yes as two calls."
    )


def is_in_flight(stream: Stream, totals: CounterTotals) -> bool:
    """True if all calls by which the stream's files were moved, in its direction, were
    nonblocking, and can be so in the replica."""
    counted = totals.counters.get("MPI-IO")
    if stream.method != "mpiio" or not counted:
        return False
    way = WAYS[stream.operation]
    begun, others = (
        counted[f"MPIIO_NB_{way}"],
        (f"MPIIO_{kind}_{way}" for kind in ("INDEP", "COLL")),
    )
    moves = [i for i in instructions(stream) if isinstance(i, Move)]
    alone = {m for step in stream.steps for m in step.body if isinstance(m, Move)} == set(moves)
    plain = not any(m.collective or m.lookups or m.flush_bytes for m in moves)
    return begun > 0 and not any(counted[name] for name in others) and alone and plain


def in_flight(stream: Stream) -> Stream:
    """The stream with moves that are begun and then waited for."""
    return replace(stream, steps=tuple(map(_begun, stream.steps)))


def _begun(step: Step) -> Step:
    last = max((k for k, i in enumerate(step.body) if isinstance(i, Move)), default=-1)

    def body() -> Iterator[Instruction]:
        for k, instruction in enumerate(step.body):
            if isinstance(instruction, Move):
                yield replace(instruction, nonblocking=True)
            elif not isinstance(instruction, Compute | Spread):
                yield instruction
            if k == last:
                yield WaitAll()

    return replace(step, body=tuple(body()))
