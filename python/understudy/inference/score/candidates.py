"""Alternative streams: other ways to use the files, and which of all fits the counters best.

The counters of the program of each candidate are predicted (`understudy.program`). Its score is
the length in bits of a text that tells the counters of the log to someone who has the prediction:
of each counter, by how much it is wrong. The shortest text wins, and its distance to
the next one is the confidence (minimum description length; Rissanen, Automatica 14, 1978). All
ways are as likely beforehand; when the dumps begin and what they move is the same in all.
"""

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from understudy.inference import constants as levels
from understudy.inference.log.counter_totals import CounterTotals
from understudy.program.counters import total
from understudy.program.instructions import Program, writes
from understudy.program.key_rules import faults
from understudy.program.opens import files_of
from understudy.program.patterns import Pattern, streams_of
from understudy.program.predicted_counters import predict
from understudy.program.sizes import stored_by

SURE_BITS = levels.TIMES  # distance to the next candidate: one against a thousand
NOTHING = levels.SMALL  # share of a counter that mean sizes may be wrong by
SHOWN = 3  # counters of a candidate that are wrong and are named
# What the player makes otherwise; of files of stdio, POSIX has no more than their flushes.
SILENT = frozenset({"POSIX_SEEKS", "POSIX_STATS", "POSIX_RW_SWITCHES", "H5F_FLUSHES"})
BESIDE = {("stdio", "POSIX"): ("POSIX_FSYNCS",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A possible stream, the bits of its text, and the counters that take a bit or more of these,
    since they differ from the log: (name, predicted, counted)."""

    stream: Pattern
    what: str
    bits: float
    wrong: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The candidates of a stream, the best first."""

    candidates: tuple[Candidate, ...]

    @property
    def stream(self) -> Pattern:
        return self.candidates[0].stream

    @property
    def confidence(self) -> str:
        """By the distance to the next candidate, and by what the best one leaves unexplained."""
        best, other = (candidate.bits for candidate in self.candidates[:2])
        sure = (other - best >= SURE_BITS) + (best < SURE_BITS)
        return ("guess", "likely", "certain")[sure] if other - best >= 1 else "guess"

    @property
    def how(self) -> str:
        """The candidates and their bits, in words."""
        told = "; ".join(map(_told, self.candidates))
        return f"the counters fit best of {len(self.candidates)} ways: {told}"


def _told(candidate: Candidate) -> str:
    largest = sorted(candidate.wrong, key=lambda w: -_bits(*w[1:]))
    missed = [
        f"{name} {predicted:,}, not {counted:,}" for name, predicted, counted in largest[:SHOWN]
    ]
    told = f" ({' and '.join(missed)})" if missed else ""
    return f"{candidate.what}, {candidate.bits:.0f} bits{told}"


def ways(stream: Pattern) -> Iterator[tuple[str, Pattern]]:
    """All ways to use the files of a stream, each with the stream that does so."""
    if stream.operation == "write":
        yield from _of_writer(stream)
    else:
        yield from _of_reader(stream)


def _of_writer(stream: Pattern) -> Iterator[tuple[str, Pattern]]:
    again = ("rewrite", "update")
    for what, files, reopen in (
        ("new files", "new", None),
        ("appended", "append", None),
        ("appended, opened each time", "append", True),
        ("rewritten", "rewrite", None),
        ("updated", "update", None),
        ("updated, open throughout", "update", False),
    ):
        variant = replace(stream, files=files, reopen=reopen)
        if files != "rewrite":
            variant = replace(variant, removes=False, backup=False)
        yield what, variant if files in again else replace(variant, names=1)


def _of_reader(stream: Pattern) -> Iterator[tuple[str, Pattern]]:
    for what, files, reopen in (
        ("new files", "new", None),
        ("the same files", "update", None),
        ("the same files, open throughout", "update", False),
    ):
        yield what, replace(stream, files=files, reopen=reopen)


def choose(
    stream: Pattern,
    before: Sequence[Pattern],
    behind: Sequence[Pattern],
    totals: CounterTotals,
    ranks: int,
) -> Choice | None:
    """The choice among the ways of a stream; those before and behind it use the same files and
    stay as they are. None where there is no choice: of one dump that no other reads, of files of
    another stream, or where nothing is known of the files."""
    several = stream.dump_count > 1 or behind
    if not several or not totals.counters or stream.is_flood or stream.base:
        return None
    candidates = []
    for what, other in ways(stream):
        all_ = (*before, other, *behind)
        if other == stream or not any(True for _ in faults(all_, ranks)):
            program = Program(name="", ranks=ranks, streams=streams_of(all_, ranks))
            candidates.append((what, other, dict(_predicted(program, totals))))
    if len(candidates) < 2:
        return None
    alike = set.intersection(*(set(counters) for *_, counters in candidates))
    scored = [_scored(what, other, counters, alike) for what, other, counters in candidates]
    scored.sort(key=lambda c: (round(c.bits), c.stream != stream))  # a bit is none
    return Choice(candidates=tuple(scored))


def _scored(
    what: str, stream: Pattern, counters: Mapping[str, tuple[int, int]], alike: Container[str]
) -> Candidate:
    """Over the counters that are known of all candidates alike."""
    wrong = tuple(
        (name, predicted, counted)
        for name, (predicted, counted) in counters.items()
        if name in alike and _bits(predicted, counted) >= 1
    )
    bits = sum(_bits(*both) for name, both in counters.items() if name in alike)
    return Candidate(stream=stream, what=what, bits=bits, wrong=wrong)


def _predicted(program: Program, totals: CounterTotals) -> Iterator[tuple[str, tuple[int, int]]]:
    """Pairs of predicted and counted values, by name."""
    methods = {stream.method for stream in program.streams}
    for module, counters in total([each.calls for each in predict(program)]).items():
        counted = totals.counters.get(module, {})
        comparable = {
            n for m in methods for n in BESIDE.get((m, module), counted)
        } & counted.keys()
        for name, predicted in counters.items():
            told = name in comparable - SILENT and "_MAX_" not in name
            if told and predicted is not None:
                yield name, (predicted, counted[name])
    files = [0, 0]  # streams that read have files of their own, which may be those written
    for stream in program.streams:
        files[writes(stream)] += files_of(stream, program.ranks)
    yield "files", (max(files), totals.files)
    stored = sum(stored_by(stream) for stream in program.streams if writes(stream))
    if totals.stored:
        yield "bytes on storage", (stored, totals.stored)


def _bits(predicted: int, counted: int) -> float:
    """Bits of a number, given its prediction: twice the digits of their distance on a logarithmic
    scale (Elias, 1975), in units of a negligible difference."""
    return 2 * math.log2(1 + abs(math.log((1 + predicted) / (1 + counted))) / NOTHING)
