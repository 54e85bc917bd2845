"""Bytes that a stream moves."""

from understudy.semantics.program import Body, Thread, moves


def moved_bytes(body: Body) -> int:
    """Bytes that one dump moves over all ranks, every pass counted."""
    return sum(m.times * m.move.variable.bytes for m in moves(body))


def bytes_of(thread: Thread) -> int:
    """Bytes that all dumps move over all ranks."""
    return sum(step.count * moved_bytes(step.body) for step in thread.steps)


def writes(thread: Thread) -> bool:
    """Whether it moves bytes into files."""
    return any(m.move.writes for step in thread.steps for m in moves(step.body))
