"""The workloads that `understudy run` plays: each described from a trace, with a name of its own,
and small enough for this machine."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from understudy import readers
from understudy.contracts import workload
from understudy.contracts.workload import Workload, identifier
from understudy.errors import UnderstudyError
from understudy.inference.score.explanation import Explanation
from understudy.messages import tell
from understudy.model.scaling import scale
from understudy.units import parse_size, plural, size

DESK_BYTES = 4 << 30  # what is larger is scaled, or left to `reframe`
MOST = "max_bytes"  # the variable of the checks
FEW = 4  # ranks that a trace is scaled to


def with_names(traces: tuple[Path, ...], names: tuple[str, ...]) -> Iterator[tuple[str, Path]]:
    """Each trace with a name that no other workload has."""
    if names and len(names) != len(traces):
        raise UnderstudyError(f"--name: expected one for each of {len(traces)} traces")
    for name in names:
        if name != identifier(name):
            raise UnderstudyError(
                f"--name {name}: expected at most 100 letters, digits, '_', '.' and '-', "
                "a letter or digit first"
            )
    taken = set(workload.names())
    for k, trace in enumerate(traces):
        wanted = names[k] if names else identifier(_public_name(trace) or "log")
        if names and wanted in taken:
            raise UnderstudyError(f"--name {wanted}: another workload has this name")
        free = (wanted, *(f"{wanted[:90]}-{n}" for n in range(2, len(taken) + 3)))
        name = next(name for name in free if name not in taken)
        taken.add(name)
        yield name, trace


def _public_name(trace: Path) -> str:
    """The reader's name of a trace, without words that tell of a user; else the file's name."""
    name = getattr(readers.reader_of(trace), "public_name", lambda trace: trace.stem)
    public_name: str = name(trace)
    return public_name


def describe(trace: Path, name: str, partial: bool, recorded: tuple[Path, ...] = ()) -> Workload:
    """The workload of a trace; of logs recorded now, call by call where they tell all of these."""
    reader = readers.reader_of(trace)
    options: dict[str, Any] = {"others": recorded[1:]} if recorded[1:] else {}
    if partial and readers.takes(reader, "partial"):
        options["partial"] = True
    explained: list[Explanation] = []
    if recorded and readers.takes(reader, "told"):
        options["told"] = explained.append
    described: Workload = readers.asked(reader, "read", trace, trace, name=name, **options)
    if any(explanation.traced for explanation in explained):
        described = readers.asked(reader, "read", trace, trace, name=name, calls=True, **options)
    if hasattr(reader, "closing") and (kept := reader.closing(described)):
        tell(kept)
    return described


def most_bytes(variables: tuple[str, ...], mode: str) -> int:
    """Maximum bytes of a workload here: as given, else by the mode."""
    given = [value for name, _, value in (v.partition("=") for v in variables) if name == MOST]
    try:
        return parse_size(given[-1]) if given else DESK_BYTES >> 2 * (mode == "quick")
    except UnderstudyError as error:
        raise UnderstudyError(f"-S {MOST}: {error}") from None


def fit(described: Workload, ranks: int, most: int) -> Workload:
    """The workload, scaled where it has too many bytes or ranks; one that cannot be is skipped."""
    name = described.name
    if any(stream.tree for stream in described.streams):  # which cannot be scaled
        if described.ranks > ranks:
            tell(f"{name} has {described.ranks} ranks, more than --ranks {ranks}")
        return described
    if described.bytes > most:
        for few in range(min(FEW, ranks, described.ranks - 1), 0, -1):
            with suppress(UnderstudyError):
                scaled = scale(described, few, "weak")
                if scaled.bytes <= most:
                    tell(
                        f"{name} moves {size(described.bytes)}, more than {MOST} ({size(most)}); "
                        f"it is scaled weakly to {plural(few, 'rank')}: {scaled.name}, "
                        f"{size(scaled.bytes)}"
                    )
                    return scaled
    if described.ranks > ranks:
        few = min(FEW, ranks)
        tell(f"{name} has {described.ranks} ranks; it is scaled strongly to {few}")
        return scale(described, few, "strong")
    return described
