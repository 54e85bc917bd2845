"""Results of IOR and mdtest beside the replicas: a row for each figure of one condition."""

from collections.abc import Iterable
from dataclasses import dataclass

from understudy import producers
from understudy.contracts import run as runs
from understudy.contracts.run import Run
from understudy.contracts.schema import digest
from understudy.judge.statistics import cache
from understudy.judge.statistics.conditions import is_benchmark, place_of
from understudy.judge.statistics.metrics import Spread, spread
from understudy.units import PER_SECOND, RATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure over the runs of one condition; times are left to the records. `remedy` is what
    would make storage serve what the page cache may have served; else empty."""

    benchmark: str
    place: str
    ranks: int
    condition: str  # short hash: two rows that read alike differ in an option
    operation: str
    unit: str
    values: Spread
    remedy: str = ""


def rows(all_runs: Iterable[Run]) -> list[Row]:
    """Bandwidths and rates, by benchmark, place and condition; failed runs are left out, and are
    counted where the page lists them."""
    pooled: dict[tuple[str, str, int, str], list[Run]] = {}
    for run in all_runs:
        if is_benchmark(run.producer.name) and not run.failed and run.producer.workload:
            condition = runs.condition(run)
            ranks = int((run.measurement or {})["environment"]["ranks"])
            key = (run.producer.workload.name, place_of(run), ranks, digest(condition))
            pooled.setdefault(key, []).append(run)
    pooled_rows = []
    for (name, place, ranks, _), same in sorted(pooled.items()):
        values: dict[tuple[str, str], list[float]] = {}
        for sample in (s for run in same for s in run.samples if s.unit in (RATE, PER_SECOND)):
            values.setdefault((sample.stream or "", sample.unit), []).append(sample.value)
        pooled_rows += [
            Row(
                benchmark=name,
                place=place,
                ranks=ranks,
                condition=runs.short_hash(runs.condition(same[0])),
                operation=operation,
                unit=unit,
                values=low_to_high,
                remedy=_remedy(same, operation),
            )
            for (operation, unit), of in values.items()
            if (low_to_high := spread(of))
        ]
    return pooled_rows


def _remedy(same: Iterable[Run], operation: str) -> str:
    measured = ((run, producers.measured(run)) for run in same if run.cache is not None)
    remedies = (
        cache.remedies(run, measurement, (operation,))
        for run, measurement in measured
        if measurement
    )
    return "; ".join(dict.fromkeys(filter(None, remedies)))
