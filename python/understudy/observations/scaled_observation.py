"""An original held against a replica of another number of ranks, or of scaled bytes."""

import math
from dataclasses import replace
from pathlib import Path

from understudy.contracts import workload
from understudy.darshanlog import open_log
from understudy.errors import UnderstudyError
from understudy.model.scaling import RULES, scale, scale_bytes
from understudy.observations.observation import Observation, as_described
from understudy.observations.observed_logs import observe


def observe_both(
    original: Path,
    replica: Path,
    *,
    rule: str | None = None,
    bytes_scale: float = 1.0,
    partial: bool = False,
) -> tuple[Observation, Observation]:
    """Both sides; the original as it is scaled to the ranks of the replica, and its bytes by
    `bytes_scale`. Its notes state the rule: `rule`, or the one (`scaling.RULES`) whose bytes are
    nearest to the replica's."""
    first = observe(original, partial=partial)
    ranks = _ranks(replica)
    if ranks == first.ranks and bytes_scale == 1:
        return first, observe(replica, first, partial)
    if ranks == first.ranks:
        reference = scaled(first, ranks, "", bytes_scale)
        return reference, observe(replica, reference, partial)
    pairs: list[tuple[Observation, Observation]] = []
    for tried in RULES if rule is None else (rule,):
        try:
            reference = scaled(first, ranks, tried, bytes_scale)
        except UnderstudyError:
            if rule is not None or (tried == RULES[-1] and not pairs):
                raise
            continue  # a rule that does not give a workload of so many ranks
        pairs.append((reference, observe(replica, reference, partial)))
    reference, seen = min(pairs, key=lambda pair: _far(*pair))
    how = f"given by --rule {rule}" if rule else "the rule with bytes nearest to the replica's"
    return replace(reference, notes=(f"{reference.notes[0]}; {how}.", *reference.notes[1:])), seen


def scaled(seen: Observation, ranks: int, rule: str, bytes_scale: float) -> Observation:
    """An observation as its workload is on so many ranks (by no rule: on its own ones), with its
    bytes multiplied as the player does; the first note says how."""
    assert seen.workload is not None
    workload, words = seen.workload, []
    if rule:
        workload = scale(workload, ranks, rule)
        words.append(f"scaled {rule}ly from {seen.ranks} to {ranks} ranks")
    if bytes_scale != 1:
        workload = scale_bytes(workload, bytes_scale)
        words.append(f"with its bytes multiplied by {bytes_scale:g}, rounded as the player does")
    described = as_described(workload)
    streams = tuple(
        replace(new, guessed=old.guessed)
        for new, old in zip(described.streams, seen.streams, strict=True)
    )
    how = f"The original was compared as described, {' and '.join(words)}"
    return replace(described, streams=streams, notes=(how, *seen.notes))


def _ranks(path: Path) -> int:
    if path.suffix == ".json":
        return workload.load(path).ranks
    with open_log(path) as log:
        return log.job.nprocs


def _far(original: Observation, replica: Observation) -> float:
    """How far the bytes of both are apart, in doublings, without files prepared for reading."""
    reads = {s.stream.name for s in original.streams if s.stream.operation == "read"}
    moved = sum(
        s.stream.bytes
        for s in replica.streams
        if s.stream.operation == "read" or s.stands_for not in reads
    )
    wanted = sum(s.stream.bytes for s in original.streams)
    return abs(math.log2(max(1, moved)) - math.log2(max(1, wanted)))
