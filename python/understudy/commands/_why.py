"""The part of `understudy show` that tells where the values of a stream come from."""

from collections.abc import Iterator
from pathlib import Path

from understudy.contracts.workload import Provenance, Workload
from understudy.errors import UnderstudyError, one_line
from understudy.tables import wrapped

LONGEST = 10_000  # characters of a reason that are shown


def lines(shown: Workload, stream: str, file: Path) -> Iterator[str]:
    """Each key of the stream that has an origin: what it is, how sure, and why."""
    names = [s.name for s in shown.streams]
    if stream not in names:
        raise UnderstudyError(
            f"{file}: no stream {stream!r}; expected one of {', '.join(names[:20])}"
            + (", …" if len(names) > 20 else "")
        )
    index = str(names.index(stream))
    told: dict[str, Provenance] = {}
    for entry in shown.provenance:
        steps = entry.path.split("/")[1:]
        if steps[0] == "streams" and (len(steps) < 2 or steps[1] in ("*", index)):
            told[".".join(steps[2:]) or "all"] = entry
    yield f"{stream}: where its values come from"
    for key, entry in told.items():
        yield f"\n{one_line(key)}: {entry.origin}, {entry.confidence}"
        for part in entry.how[:LONGEST].split("; "):
            yield from wrapped(part, indent=2)
        if len(entry.how) > LONGEST:
            yield f"  … ({len(entry.how):,} characters)"
