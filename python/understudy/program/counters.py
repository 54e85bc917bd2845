"""The counters of Darshan, by its names, and their sums."""

from collections import Counter
from collections.abc import Mapping, Sequence

Counters = dict[str, int | None]

# Bins of access sizes, and their upper ends; the last bin has none.
BINS = (
    "0_100",
    "100_1K",
    "1K_10K",
    "10K_100K",
    "100K_1M",
    "1M_4M",
    "4M_10M",
    "10M_100M",
    "100M_1G",
    "1G_PLUS",
)
BIN_BYTES = (100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30)


def bin_of(size: float) -> int:
    """Index of the bin of `BINS` that a call of this many bytes is in."""
    return sum(size > end for end in BIN_BYTES)


def _names(prefix: str, words: str, sizes: str | None = None) -> tuple[str, ...]:
    bins = [f"SIZE_{way}{sizes}_{b}" for way in ("READ", "WRITE") for b in BINS]
    return tuple(f"{prefix}_{w}" for w in (*words.split(), *(bins if sizes is not None else ())))


_BYTES = "BYTES_READ BYTES_WRITTEN"
_MAX = "MAX_BYTE_READ MAX_BYTE_WRITTEN"
COUNTERS: Mapping[str, tuple[str, ...]] = {
    "POSIX": _names(
        "POSIX",
        f"OPENS READS WRITES SEEKS STATS FSYNCS {_BYTES} {_MAX} CONSEC_READS CONSEC_WRITES "
        "SEQ_READS SEQ_WRITES RW_SWITCHES FILE_NOT_ALIGNED",
        "",
    ),
    "STDIO": _names("STDIO", f"OPENS READS WRITES SEEKS FLUSHES {_BYTES} {_MAX}"),
    "MPI-IO": _names(
        "MPIIO",
        "INDEP_OPENS COLL_OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES NB_READS "
        "NB_WRITES SYNCS "
        f"{_BYTES} RW_SWITCHES",
        "_AGG",
    ),
    "H5F": _names("H5F", "OPENS FLUSHES"),
    "H5D": _names("H5D", f"OPENS READS WRITES {_BYTES} RW_SWITCHES", "_AGG"),
}
# The methods whose calls are known.
PLAYED = frozenset({"posix", "stdio", "mpiio", "hdf5"})
# The modules that see a method, from the top, and those in which a library makes the calls.
MODULES = {
    "posix": ("POSIX",),
    "stdio": ("STDIO", "POSIX"),
    "mpiio": ("MPI-IO", "POSIX"),
    "hdf5": ("H5F", "H5D", "MPI-IO", "POSIX"),
    "adios": ("POSIX",),
    "adios2": ("POSIX",),
    "uring": ("POSIX",),
    "null": (),
}
_OF_LIBRARY = {"mpiio": ("POSIX",), "hdf5": ("MPI-IO", "POSIX")}
_OF_LIBRARY |= {"adios": ("POSIX",), "adios2": ("POSIX",), "uring": ("POSIX",)}
_OF_OTHERS = ("POSIX",)  # the methods of studies
_KNOWN_BELOW = {"hdf5": ("MPIIO_COLL_OPENS", "MPIIO_INDEP_OPENS")}
OF_SIZE = " calls of bytes "  # calls of a module of one size, beside its counters
NOT_ALIGNED = "POSIX_FILE_NOT_ALIGNED"
RECORDS = "records"  # files of a rank, each once


def total(parts: Sequence[Mapping[str, Counters]]) -> Mapping[str, Counters]:
    """Counters of several sets together: sums and, of MAX_…, maxima; None where one is None."""
    modules = [m for m in COUNTERS if any(m in part for part in parts)]
    totals: dict[str, Counters] = {}
    for module in modules:
        rows = [part[module] for part in parts if module in part]
        totals[module] = {}
        for name in COUNTERS[module]:
            values = [row[name] for row in rows]
            numbers = [v for v in values if v is not None]
            join = max if "_MAX_" in name else sum
            totals[module][name] = join(numbers) if len(numbers) == len(values) else None
    return totals


class Tally:
    """Sums and maxima, and what nobody knows."""

    def __init__(self) -> None:
        self.sums: Counter[str] = Counter()
        self.tops: dict[str, int] = {}
        self.unknown: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self.sums or self.tops)

    def add(self, name: str, number: int) -> None:
        self.sums[name] += number

    def top(self, name: str, byte: int) -> None:
        self.tops[name] = max(self.tops.get(name, 0), byte)

    def sizes(self, module: str) -> Counter[int]:
        """The data calls of a module by size; none where a counter of sizes is not known."""
        if any("_SIZE_" in name and name.startswith(module) for name in self.unknown):
            return Counter()
        start = f"{module}{OF_SIZE}"
        named = {name: number for name, number in self.sums.items() if name.startswith(start)}
        return Counter({int(name[len(start) :]): number for name, number in named.items()})

    def decline(self, *parts: str) -> None:
        """Counters whose names hold one of these are not known."""
        self.unknown.update(
            n for names in COUNTERS.values() for n in names for p in parts if p in n
        )

    def counters(self, method: str) -> Mapping[str, Counters]:
        """By module; what a library decides is None, and transfers by io_uring, which Darshan does
        not see."""
        of_library = _OF_LIBRARY.get(method, () if method in MODULES else _OF_OTHERS)
        below = _KNOWN_BELOW.get(method, ())
        by_module: dict[str, Counters] = {}
        for module in MODULES.get(method, _OF_OTHERS):
            by_module[module] = {}
            for name in COUNTERS[module]:
                hidden = name in self.unknown or (module in of_library and name not in below)
                value = self.tops.get(name, 0) if "_MAX_" in name else self.sums[name]
                by_module[module][name] = None if hidden else value
        return by_module
