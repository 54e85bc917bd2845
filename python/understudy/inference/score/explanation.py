"""Explanation of a log by its workload: parts that are explained, contradicted or not known, and
the share of the I/O time of each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from understudy.inference.log.counter_totals import WAYS

LIBRARIES = {"H5D": "HDF5", "H5F": "HDF5", "STDIO": "stdio"}
READ, WRITE, OTHER = WAYS
EITHER = "EITHER"
FILES = {READ: "files that are read", WRITE: "files that are written"}
USES = {
    READ: "reading",
    WRITE: "writing",
    OTHER: "other calls on",
    EITHER: "reading or writing",
}


# Of a part.
STATES = EXPLAINED, CONTRADICTED, UNKNOWN = "explained", "contradicted", "not known"
# What a log does not tell.
SIZES = "which sizes the calls of stdio had"
SUMS = "which sizes its calls had, since the counters of sizes do not add up to the calls"
PLACES = "where in their files the calls of MPI-IO went"
LIBRARY = "which calls HDF5 made of those of the application"
ORDER = "how reads and writes alternated"
RANKS = "how much of it each rank moved"
MAPPED = "what was read and written in files that were mapped into memory"
UNCOUNTED = (
    "what was moved in files of which it counts opens alone (stdio's putc, fprintf and _unlocked "
    "calls, copies within the system, descriptors that other programs inherit)"
)
INHERITED = (
    "what processes that wrote to no file moved through descriptors that they inherit "
    "(redirections), and which files were opened or created for it"
)
CREATED = (
    "which opens of files without counted reads and writes created them, or were of directories"
)
SEEKS = "which seeks were to the end of a file, whose size the storage is asked for"
BESIDE = "why files of a library were used through POSIX in a way in which it was not asked to"


@dataclass(frozen=True, slots=True)
class Difference:
    """A number that is predicted to be another one than was counted."""

    what: str
    predicted: int
    counted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One way of using the files of some streams (none: of files that no stream describes)."""

    streams: tuple[str, ...]
    module: str
    way: str
    time_s: float
    differences: tuple[Difference, ...]
    unknown: tuple[str, ...]

    @property
    def name(self) -> str:
        """The direction, the files and the library of the part."""
        of = ", ".join(self.streams) if self.streams else "files that no stream has"
        return f"{USES[self.way]} {of} through {LIBRARIES.get(self.module, self.module)}"

    @property
    def state(self) -> str:
        if self.differences:
            return CONTRADICTED
        return UNKNOWN if self.unknown else EXPLAINED


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All parts of a log, and whether it has a trace of every call that moved bytes."""

    parts: tuple[Part, ...]
    traced: bool = False

    def of(self, state: str) -> list[Part]:
        """Those in a state, the one that took longest first."""
        return sorted((p for p in self.parts if p.state == state), key=lambda p: -p.time_s)

    def lacking(self) -> list[Part]:
        """Parts of which something is not known, contradicted ones last."""
        return [p for state in (UNKNOWN, CONTRADICTED) for p in self.of(state) if p.unknown]

    def notes(self) -> Iterator[str]:
        """A sentence for each part that is not explained, and for what is not known of one that is
        contradicted."""
        for part in self.of(CONTRADICTED):
            told = "; ".join(
                f"{d.what} {d.predicted:,} predicted, {d.counted:,} counted"
                for d in part.differences
            )
            yield f"Contradicted: {part.name} ({self.share([part]):.1%} of the I/O time): {told}."
        for part in self.lacking():
            told = ", ".join(part.unknown)
            yield f"Not known: {part.name} ({self.share([part]):.1%} of the I/O time): {told}."

    def share(self, parts: Sequence[Part]) -> float:
        """Share of the parts in the log's I/O time, 0 to 1, or else in their number."""
        whole = sum(p.time_s for p in self.parts)
        if not whole:
            return len(parts) / len(self.parts) if self.parts else 0.0
        return sum(p.time_s for p in parts) / whole
