"""Errors of a replica's sizes on storage against those that the text of its simulation states.

As Table II of the M-Phys study has them; docs/metrics.md defines the errors.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, fields

from understudy.contracts.measurement import Repetition, StreamResult
from understudy.errors import UnderstudyError
from understudy.judge.statistics.conditions import Case, Condition
from understudy_papers.model.simulation import (
    Accuracy,
    Published,
    Simulation,
    dump_sizes,
    played_by,
    stated_sizes,
)

_ERRORS = tuple(f.name for f in fields(Accuracy))


def accuracy(simulation: Simulation, played: Repetition) -> Accuracy:
    """Bytes on storage, containers included, against those stated (Table II).

    Checkpoints are compared one by one, visualization states together, since a file that stays
    open may grow earlier for a later state. Raises UnderstudyError where the simulation states no
    checkpoints or no states, or where the method that was played has no files.
    """
    stated: dict[str, list[int]] = {"checkpoint": [], "visualization": []}
    played_sizes: dict[str, list[int]] = {"checkpoint": [], "visualization": []}
    streams = {s.name: s for s in played.streams}
    sizes = stated_sizes(simulation, simulation.name)
    for series, of_meshes in zip(simulation.series, sizes, strict=True):
        if series.role in stated:
            on_storage = _on_storage(streams[series.name])
            stated[series.role].extend(dump_sizes(of_meshes, len(on_storage)))
            played_sizes[series.role].extend(on_storage)
    if not all(stated.values()):
        raise UnderstudyError(
            f"{simulation.name}: expected a series of checkpoints and one of visualization states"
        )
    return errors_of(
        stated["checkpoint"],
        sum(stated["visualization"]),
        played_sizes["checkpoint"],
        played_sizes["visualization"],
    )


def largest(errors: Iterable[Accuracy]) -> Accuracy:
    """The largest of each error, of one or more repetitions."""
    columns = zip(*map(astuple, errors), strict=True)
    return Accuracy(**dict(zip(_ERRORS, map(max, columns), strict=True)))


def _on_storage(stream: StreamResult) -> list[int]:
    sizes = [dump.file_bytes for dump in stream.dumps if dump.file_bytes is not None]
    if len(sizes) < len(stream.dumps):
        raise UnderstudyError(f"{stream.name}: the method {stream.method} has no files")
    return sizes


def errors_of(
    stated_checkpoints: Sequence[int],
    stated_total: int,
    checkpoints: Sequence[int],
    states: Sequence[int],
) -> Accuracy:
    """Compare bytes made of all checkpoints and all states with those stated."""
    if not stated_checkpoints or not states or len(stated_checkpoints) != len(checkpoints):
        raise UnderstudyError(
            f"{len(checkpoints)} checkpoints against {len(stated_checkpoints)} stated, "
            f"{len(states)} states: expected as many, and one or more of each"
        )
    errors = [
        abs(checkpoint - said) / said
        for checkpoint, said in zip(checkpoints, stated_checkpoints, strict=True)
    ]
    total_error = abs(sum(states) - stated_total) / stated_total
    return Accuracy(
        checkpoint_mean_error=sum(errors) / len(errors),
        checkpoint_max_error=max(errors),
        total_error=total_error,
        state_error=total_error / len(states),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """A condition against what the text of its simulation states."""

    condition: Condition
    accuracy: Accuracy


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstPublished:
    """Accuracy of the text's own replica, and of the conditions."""

    published: Published | None
    rows: list[PublishedRow]


def against_published(case: Case) -> AgainstPublished | None:
    """None where the workload is not that of a simulation, or nothing left files of its sizes."""
    source = played_by(case.workload)
    if source is None:
        return None
    rows = []
    for condition in (s for s in case.conditions if s.bytes_scale == 1):
        played = (r for run in condition.runs for r in run.measurement.repetitions)
        with suppress(UnderstudyError):  # a method without files, a text without states
            accuracy_of_condition = largest(accuracy(source, r) for r in played)
            rows.append(PublishedRow(condition=condition, accuracy=accuracy_of_condition))
    return AgainstPublished(published=source.published, rows=rows) if rows else None
