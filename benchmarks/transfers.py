"""Accuracy of descriptions of logs: the measured transfers of their replicas.

    PYTHONPATH=python:. python benchmarks/transfers.py RECORDS… --originals LOGS [-o TABLE.csv]

RECORDS are folders of run records of the check `transfer` (make rehearse FS=slow), LOGS the logs
from which the replicas were described (python -m nightly.rehearsal.record). Every case is a row;
where one was measured in several sessions, all are. Prints a table of all cases and one of their
verdicts; TABLE.csv has the columns of applications/measured.csv.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from understudy import producers
from understudy.contracts import case as applications
from understudy.contracts.run import Run
from understudy.darshanlog import logs_below
from understudy.inference.score.explanation import EXPLAINED, Explanation
from understudy.judge.fidelity import calibration, transfer
from understudy.judge.fidelity.calibration import Measured
from understudy.judge.statistics import conditions
from understudy.readers import darshan

METADATA = "metadata_slowest_rank_s"
NEAR = 20.0  # percent, to which metadata time is held
VERDICTS = ("within", "outside", "undecided", "failed")


def explained(originals: Path, name: str) -> float:
    """The share of an application's log that its description explains."""
    log, folder = originals / f"{name}.darshan", originals / name
    paths = [log] if log.exists() else sorted(logs_below(folder).logs)
    explanations: list[Explanation] = []
    darshan.read(paths[0], others=paths[1:], join_jobs=True, told=explanations.append)
    return explanations[0].share(explanations[0].of(EXPLAINED))


def rows(records: Sequence[Path], originals: Path) -> Iterator[Measured]:
    runs: list[Run] = []
    conditions.load(producers.find(records), observed=runs.append)
    shares: dict[str, float] = {}
    for case in transfer.cases(runs):
        name = case.application
        if name not in shares:
            shares[name] = explained(originals, name)
        headline = case.headline
        metadata = case.errors.get(METADATA)
        yield Measured(
            application=name,
            storage=case.place.partition(":")[2].partition("+")[0] or case.place,
            developed=applications.get(name).original is not None,
            explained=shares[name],
            error=headline and 100 * headline.error.value,
            low=headline and 100 * headline.error.low,
            high=headline and 100 * headline.error.high,
            control_low=headline and 100 * headline.control.low,
            control_high=headline and 100 * headline.control.high,
            verdict=case.state(),
            metadata_error=metadata and 100 * metadata.error.value,
            metadata_share=metadata
            and headline
            and metadata.application_s / headline.application_s,
        )


def shown(measured: Sequence[Measured]) -> Iterator[str]:
    """Lines of Markdown: every case, and how many of each verdict there are."""
    names = "application", "storage", "explained", "error (interval)", "application itself"
    yield f"| {' | '.join(names)} | | metadata |"
    yield "|---|---|---|---|---|---|---|"
    for row in sorted(measured, key=lambda r: (not r.developed, r.application, r.storage)):
        error = control = ""
        if row.error is not None and row.low is not None and row.high is not None:
            error = f"{row.error:+.1f} % ({row.low:+.1f} to {row.high:+.1f})"
        if row.control_low is not None and row.control_high is not None:
            control = f"{row.control_low:+.1f} to {row.control_high:+.1f} %"
        metadata = ""
        if row.metadata_error is not None and row.metadata_share is not None:
            metadata = f"{row.metadata_error:+.0f} % of {100 * row.metadata_share:.0f} %"
        held = "" if row.developed else " (held out)"
        share = "" if row.explained is None else f"{100 * row.explained:.4g} %"
        yield (
            f"| {row.application}{held} | {row.storage} | {share} | {error} | "
            f"{control} | {row.verdict} | {metadata} |"
        )
    yield ""
    told = [row.metadata_error for row in measured if row.metadata_error is not None]
    near = sum(abs(error) <= NEAR for error in told)
    yield f"Metadata time: {near} of {len(told)} within {NEAR:g} %."
    yield ""
    yield "| | cases | within | outside | undecided | failed |"
    yield "|---|---|---|---|---|---|"
    for developed, title in ((True, "developed with"), (False, "held out")):
        rows_of_kind = [row for row in measured if row.developed == developed]
        count = [sum(r.verdict == v for r in rows_of_kind) for v in VERDICTS]
        yield f"| {title} | {' | '.join(map(str, [len(rows_of_kind), *count]))} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("records", nargs="+", type=Path)
    parser.add_argument("--originals", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    measured = list(rows(given.records, given.originals))
    print("\n".join(shown(measured)))
    if given.output:
        calibration.save(given.output, measured)


if __name__ == "__main__":
    main()
