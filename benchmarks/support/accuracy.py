"""The counts of docs/results/accuracy.md, from the measurements that are kept.

    PYTHONPATH=python:. python -m benchmarks.support.accuracy   # writes the tables of the page

Every case counts, failed and undecided ones too; first results and those after a repair are series
of their own.
"""

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import requests
from benchmarks.support.counted import NAMED, SILENT
from tests.workshop import table as workshop
from understudy.judge.fidelity.transfer import FAILED, OUTSIDE, UNDECIDED, WITHIN, Requests
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.paths import ROOT

PAGE = ROOT / "docs" / "results" / "accuracy.md"
MEASURED = ROOT / "benchmarks" / "measured"
VERDICTS = (WITHIN, OUTSIDE, UNDECIDED, FAILED)
TITLES = {
    "first-counters": "24 programs, first result",
    "counters": "24 programs, after repair",
    "again-counters": "`sort` again",
    "first": "12 programs, first result",
    "second": "24 programs, after repair",
    "third": "2 of them again",
}
_BEGIN, _END = "<!-- counts of {} -->", "<!-- end -->"
Row = Mapping[str, str]


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table of benchmarks/measured, without the comments that precede them."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def transfers() -> dict[str, Counter[str]]:
    """Verdicts of the check `transfer`, by series."""
    verdicts: dict[str, Counter[str]] = {}
    for row in rows(MEASURED / "transfers.csv"):
        if row["verdict"]:
            verdicts.setdefault(row["series"], Counter())[row["verdict"]] += 1
    for row in rows(MEASURED / "transfer_counts.csv"):
        verdicts[row["series"]] = Counter({verdict: int(row[verdict]) for verdict in VERDICTS})
    return verdicts


def skeletons() -> dict[str, Counter[str]]:
    """Verdicts of the check `Skel`, by application."""
    return {
        row["program"]: Counter({verdict: int(row[verdict]) for verdict in VERDICTS})
        for row in rows(MEASURED / "skeletons.csv")
    }


def states(cases: Sequence[requests.Row]) -> Counter[str]:
    """States of cases; one without a storage stands for all of them."""
    counts = Counter[str]()
    for case in cases:
        counts[requests.state(case)] += 1 if "storage" in case else len(requests.STORAGES)
    return counts


def repeated(cases: Sequence[requests.Row]) -> tuple[int, int]:
    """Cases in which the program repeats each kind of its own requests, of those that ran."""
    ran = [case for case in cases if "application" in case]
    alike = 0
    for case in ran:
        kinds = requests.compared(case | {"replica": case["again"]})
        alike += all(kind.state == WITHIN for kind in map(_again, kinds))
    return alike, len(ran)


def _again(pair: Requests) -> Requests:
    return Requests(
        kind=pair.kind,
        application=pair.application,
        replica=pair.control,
        control=pair.application,
    )


def _line(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _head(*cells: str) -> list[str]:
    return [_line(*cells), "|" + "---|" * len(cells)]


def _counts(title: str, count: Counter[str], words: Sequence[str]) -> str:
    return _line(title, count.total(), *(count[word] for word in words))


def time_table() -> Iterator[str]:
    """I/O time of replicas of logs."""
    yield from _head("series", "cases", *VERDICTS)
    for series, count in transfers().items():
        yield _counts(series, count, VERDICTS)


def request_table() -> Iterator[str]:
    """Requests of replicas of traces, and in how many cases the program repeats its own."""
    yield from _head("series", "cases", *VERDICTS, "program repeats itself")
    for series, cases in requests.kept("trace").items():
        alike, ran = repeated(cases)
        counts = _counts(TITLES[series], states(cases), VERDICTS)
        yield f"{counts} {alike} of {ran} |"


def counter_table() -> Iterator[str]:
    """Requests of replicas of logs, by what the description says of them."""
    words = (WITHIN, NAMED, SILENT, FAILED)
    yield from _head("series", "cases", *words)
    for series, cases in requests.kept("counters").items():
        yield _counts(TITLES[series], states(cases), words)


def skeleton_table() -> Iterator[str]:
    """Throughput of skeletons, with their controls."""
    controls = {row["program"]: row for row in rows(MEASURED / "skeleton_controls.csv")}
    yield from _head("application", "cases", *VERDICTS, "controls within")
    for program, count in skeletons().items():
        row = controls[program]
        within = f"{row['by their whole interval']} of {row['controls']}"
        yield f"{_counts(program, count, VERDICTS)} {within} |"


def workshop_table() -> Iterator[str]:
    """Descriptions of logs whose truth is known, and their replicas."""
    described, quantities, played = workshop.counts(workshop.described())
    yield from _head("", "all", "right", "noted", "wrong")
    for title, count in (("logs", described), ("quantities", quantities)):
        yield _counts(title, count, ("right", "noted", "wrong"))
    yield ""
    yield f"{played['within 1 %']} of {played.total()} replicas make what their logs have."


TABLES = {
    "descriptions": workshop_table,
    "requests of logs": counter_table,
    "requests of traces": request_table,
    "time": time_table,
    "skeletons": skeleton_table,
}


def written(text: str) -> str:
    """The page with its tables made anew."""
    for name, table in TABLES.items():
        before, begin, rest = text.partition(_BEGIN.format(name))
        _, end, after = rest.partition(_END)
        text = "\n".join([before + begin, "", *table(), "", end + after])
    return text


def controls_within() -> tuple[int, int]:
    """Cases of applications/measured.csv whose application repeats its I/O time within the limit,
    of those that have a control."""
    intervals = [
        (float(row["control_low"]), float(row["control_high"]))
        for row in rows(ROOT / "applications" / "measured.csv")
        if row["control_low"]
    ]
    limit = 100 * LIMIT_FRACTION
    return sum(-limit <= low and high <= limit for low, high in intervals), len(intervals)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
