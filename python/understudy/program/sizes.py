"""Bytes that a stream moves, and those that its files hold."""

from collections.abc import Iterator

from understudy.program.instructions import (
    KEEP,
    Begin,
    Program,
    Remove,
    Step,
    Stream,
    instructions,
    moved_bytes,
    opening,
    variables_of,
    writes,
)
from understudy.program.needs import borrows

# Methods whose files hold what is written and nothing else.
PLAIN = ("posix", "stdio", "mpiio", "uring")


def bytes_of(stream: Stream) -> int:
    """Bytes that all dumps move over all ranks."""
    return sum(step.count * moved_bytes(step.body) for step in stream.steps)


def stored_bytes(program: Program) -> int:
    """Bytes in all files when everything is written, and in their backups."""
    backed_up = {t.set for t in program.streams if _backs_up(t)}
    return sum((1 + (t.set in backed_up)) * stored_by(t) for t in program.streams)


def stored_by(stream: Stream) -> int:
    """Bytes in its files when all dumps are written: what is written again counts once. A set that
    is written again holds its largest content."""
    if borrows(stream):
        return 0
    if stream.set.tree is not None:
        return stream.set.tree.stored_bytes
    if stream.set.names is None or not stream.set.numbered:
        return sum(step.count * _new_bytes(step) for step in stream.steps)
    names = stream.set.names
    sets: dict[int, int] = {}
    first = content = 0
    for step in stream.steps:
        if any(isinstance(i, Begin) for i in step.body):
            used = range(first, first + min(step.count, names))
            content = _new_bytes(step)
            first += step.count
        else:
            used = range(first - 1, first)
            content += step.count * _new_bytes(step)
        for k in used:
            sets[k % names] = max(sets.get(k % names, 0), content)
    return sum(sets.values())


def growth(stream: Stream) -> Iterator[tuple[bool, int]]:
    """For each dump, whether it begins a content, and by how many bytes the files of the content
    are larger behind it at least: bytes in the place of others, such as those of an `at`, add
    none. Nothing for files that are kept from one content to the next."""
    again = stream.set.numbered and stream.set.names is not None
    kept = again and any(o.mode == KEEP for o in opening(stream))
    if stream.set.tree is not None or not writes(stream) or kept:
        return
    for step in stream.steps:
        begins = any(isinstance(i, Begin) for i in step.body)
        for _ in range(step.count):
            yield begins, _new_bytes(step)


def _backs_up(stream: Stream) -> bool:
    return any(isinstance(i, Remove) and i.backup for i in instructions(stream))


def _new_bytes(step: Step) -> int:
    """Bytes of a dump, without those that go over others of its files."""
    return sum(v.bytes for v in variables_of([step.body]) if v.at is None)
