"""What the claims of descriptions are worth: transfers that were measured, beside them.

    PYTHONPATH=python:. python benchmarks/transfers.py RECORDS… --originals LOGS [-o TABLE.csv]

RECORDS are folders of run records of the check `transfer` (make rehearse FS=slow), LOGS the logs
from which the replicas were described (python -m tests.rehearsal.record). Every case is a row;
where one was measured in several sessions, all are. Prints a table of all cases and one of claims
for docs/metrics.md, and draws docs/images/calibration.svg with --draw.
"""

import argparse
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from understudy import producers
from understudy.contracts import case as applications
from understudy.contracts.run import Run
from understudy.darshanlog import logs_below
from understudy.inference.coverage import Coverage
from understudy.judge import calibration, conditions, transfer
from understudy.judge.calibration import Measured
from understudy.readers import darshan

METADATA = "metadata_slowest_rank_s"
NEAR = 20.0  # percent, to which metadata time is held
COLOURS = {"within": "#2a7", "outside": "#d33", "undecided": "#999", "failed": "#000"}


def claimed(originals: Path, name: str) -> float:
    """The smallest share that the description of an application's log stands for."""
    log, folder = originals / f"{name}.darshan", originals / name
    paths = [log] if log.exists() else sorted(logs_below(folder).logs)
    found: list[Coverage] = []
    darshan.read(paths[0], others=paths[1:], join_jobs=True, told=found.append)
    return found[0].claim


def rows(records: Sequence[Path], originals: Path) -> Iterator[Measured]:
    runs: list[Run] = []
    conditions.load(producers.find(records), observed=runs.append)
    claims: dict[str, float] = {}
    for case in transfer.cases(runs):
        name = case.application
        if name not in claims:
            claims[name] = claimed(originals, name)
        found = case.headline
        metadata = case.errors.get(METADATA)
        yield Measured(
            application=name,
            storage=case.place.partition(":")[2].partition("+")[0] or case.place,
            developed=applications.get(name).original is not None,
            claim=claims[name],
            error=found and 100 * found.error.value,
            low=found and 100 * found.error.low,
            high=found and 100 * found.error.high,
            control_low=found and 100 * found.control.low,
            control_high=found and 100 * found.control.high,
            verdict=case.state(),
            metadata_error=metadata and 100 * metadata.error.value,
            metadata_share=metadata and found and metadata.application_s / found.application_s,
        )


def shown(found: Sequence[Measured]) -> Iterator[str]:
    """Lines of Markdown: every case, and what claims were worth."""
    yield "| application | storage | claim | error (interval) | application itself | | metadata |"
    yield "|---|---|---|---|---|---|---|"
    for row in sorted(found, key=lambda r: (not r.developed, r.application, r.storage)):
        error = control = ""
        if row.error is not None and row.low is not None and row.high is not None:
            error = f"{row.error:+.1f} % ({row.low:+.1f} to {row.high:+.1f})"
        if row.control_low is not None and row.control_high is not None:
            control = f"{row.control_low:+.1f} to {row.control_high:+.1f} %"
        metadata = ""
        if row.metadata_error is not None and row.metadata_share is not None:
            share = 100 * row.metadata_share
            metadata = f"{row.metadata_error:+.0f} % of {share:.0f} %"
        held = "" if row.developed else " (held out)"
        yield (
            f"| {row.application}{held} | {row.storage} | {100 * row.claim:.4g} % | {error} | "
            f"{control} | {row.verdict} | {metadata} |"
        )
    yield ""
    told = [row.metadata_error for row in found if row.metadata_error is not None]
    near = sum(abs(error) <= NEAR for error in told)
    yield f"Metadata time: {near} of {len(told)} within {NEAR:g} %."
    yield ""
    yield "| claim | cases | within | outside | undecided | failed |"
    yield "|---|---|---|---|---|---|"
    for held, title in ((False, "developed with"), (True, "held out")):
        mine = [row for row in found if row.developed != held]
        ends = [1.01, *calibration.CLAIMS, 0.0]
        for high, low in itertools.pairwise(ends):
            some = [row for row in mine if low <= row.claim < high]
            count = [sum(r.verdict == v for r in some) for v in COLOURS]
            counts = " | ".join(map(str, [len(some), *count]))
            yield f"| {title}, from {100 * low:g} % | {counts} |"


def draw(found: Sequence[Measured], path: Path) -> None:
    """Errors over claims."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "calibration"
    matplotlib.rcParams["svg.fonttype"] = "none"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    axes.axhspan(-10, 10, color="#2a7", alpha=0.12)
    for developed, marker in ((True, "o"), (False, "D")):
        for verdict, colour in COLOURS.items():
            some = [r for r in found if r.developed == developed and r.verdict == verdict]
            some = [r for r in some if r.error is not None]
            label = f"{verdict}, {'developed with' if developed else 'held out'}"
            if some:
                axes.plot(
                    [100 * r.claim for r in some],
                    [max(-100, min(100, r.error or 0)) for r in some],
                    marker,
                    color=colour,
                    label=label,
                    alpha=0.8,
                )
    axes.set_xlabel("smallest share that the description claims, %")
    axes.set_ylabel("error of the I/O time, % (at most 100)")
    axes.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("records", nargs="+", type=Path)
    parser.add_argument("--originals", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--draw", type=Path)
    given = parser.parse_args()
    found = list(rows(given.records, given.originals))
    print("\n".join(shown(found)))
    if given.output:
        calibration.save(given.output, found)
    if given.draw:
        draw(found, given.draw)


if __name__ == "__main__":
    main()
