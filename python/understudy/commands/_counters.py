"""The part of `understudy show` that predicts what Darshan will count when a workload is played.

`prepared` are calls that only the player makes: it writes files that are read, before it takes
time. Counters are those of Darshan 3.5 for a run with the default options; those that a library
decides (HDF5, MPI-IO) are not known and have a -, or null in JSON.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from understudy.contracts.workload import Workload
from understudy.program.counters import BINS, Counters, total
from understudy.program.predicted_counters import predict
from understudy.tables import table

FEW = 6  # counters that are not known and are still listed are not more
ENDS = [name.replace("_PLUS", "+").rpartition("_")[2] for name in BINS]


def row(shown: Workload) -> dict[str, Any]:
    """The predicted counters of each set of files and of all, for JSON."""
    sets = predict(shown.program)
    return {
        "sets": [
            {
                "name": each.name,
                "streams": list(each.streams),
                "first_s": each.first_s,
                "last_s": each.last_s,
                "calls": each.calls,
                "prepared": each.prepared,
            }
            for each in sets
        ],
        "total": total([each.all for each in sets]),
    }


def lines(shown: Workload) -> Iterator[str]:
    """A table for each set of files, and one of all."""
    sets = predict(shown.program)
    for each in sets:
        yield f"{each.name}: dumps from {each.first_s:.3f} s to {each.last_s:.3f} s"
        yield from _tables(each.all, each.prepared)
        yield ""
    yield "All files"
    yield from _tables(total([each.all for each in sets]), total([each.prepared for each in sets]))


def _tables(counters: Mapping[str, Counters], prepared: Mapping[str, Counters]) -> Iterator[str]:
    """The counters that are not 0, how large the calls are, and what is not known."""
    rows = [
        (name, f"{number:,}", f"{prepared.get(module, {}).get(name) or 0:,}")
        for module, names in counters.items()
        for name, number in names.items()
        if "_SIZE_" not in name and number
    ]
    yield from table("", ("counter", ">number", ">prepared"), rows)
    sizes = [
        (f"{module} {way}S", *(f"{n:,}" for n in numbers if n is not None))
        for module, names in counters.items()
        for way in ("READ", "WRITE")
        if any(numbers := [n for name, n in names.items() if f"_SIZE_{way}_" in name])
        and None not in numbers
    ]
    if sizes:
        yield ""
        yield from table("", ("bytes of calls, up to", *(f">{end}" for end in ENDS)), sizes)
    for module, names in counters.items():
        unknown = [name for name, n in names.items() if n is None and "_SIZE_" not in name]
        if unknown:
            listed = ", ".join(unknown) if len(unknown) <= FEW else f"{len(unknown)} counters"
            yield f"Not known of {module}: {listed}"
