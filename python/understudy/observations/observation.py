"""An observation: streams of an application or of its replica, and what was counted of them."""

from dataclasses import dataclass

from understudy.contracts.workload import Stream, Workload
from understudy.inference.log.interface_counters import Interfaces, of_streams
from understudy.program.calls import Calls, calls_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A stream as it was observed; `calls` is None where they cannot be told apart, `guessed`
    says that the times and sizes of its dumps are assumed.

    `stands_for` is the original's stream whose files these are, where names tell; else empty.
    """

    stream: Stream
    calls: Calls | None
    stands_for: str = ""
    guessed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """`workload`: what it was described as, for an observation that can be scaled."""

    ranks: int
    streams: tuple[Seen, ...]
    interfaces: Interfaces  # of a log, its raw counters
    notes: tuple[str, ...] = ()
    workload: Workload | None = None


def as_described(described: Workload) -> Observation:
    """Predicted observation of a played workload."""
    return Observation(
        ranks=described.ranks,
        streams=tuple(
            Seen(stream=stream, calls=calls_of(stream, described.ranks))
            for stream in described.streams
        ),
        interfaces=of_streams(described.streams, described.ranks),
        workload=described,
    )
