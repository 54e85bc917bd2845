"""How fast each place is, of the cases of a page."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from understudy.judge.page.judged import Judged
from understudy.judge.page.summary import WORST_FIRST
from understudy.judge.statistics import metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceRow:
    """The cases of one place, by state. `speeds` has by operation those that storage served, `of`
    the workloads of these, `left_out` those of the others, in words. `original` has, of the former
    whose original is known, the median of the originals, how many, and the median of the ratio to
    their own original. `noise` is by how much runs of one case differ, see `noise`."""

    place: str
    cases: int
    states: dict[str, int]
    speeds: dict[str, metrics.Spread | None]
    of: dict[str, tuple[str, ...]]
    left_out: dict[str, dict[str, str]]
    original: dict[str, tuple[float, int, float] | None]
    noise: float | None
    in_memory: bool
    slower: tuple[float, int] | None = None  # writes of the first place over these, alike cases

    @property
    def speed(self) -> float:
        """Sort key of places: the median of writes, else of reads; 0 where storage served none."""
        spread = self.speeds["write"] or self.speeds["read"]
        return spread.median if spread else 0.0


def places(cases: Sequence[Judged]) -> list[PlaceRow]:
    """A row for each place, the fastest first; memory comes after storage."""
    names = sorted({case.place for case in cases})
    here = {place: [c for c in cases if c.place == place] for place in names}
    rows = [_row(place, place_cases) for place, place_cases in here.items()]
    rows.sort(key=lambda row: (row.in_memory, -row.speed))
    if not rows:
        return []
    best = _written(here[rows[0].place])
    return [rows[0], *(replace(r, slower=_slower(here[r.place], best)) for r in rows[1:])]


def names(cases: Sequence[Judged]) -> Callable[[str], str]:
    """Places as a person calls them: without the system where all are of one."""
    single_system = len({case.system for case in cases}) == 1
    return lambda place: (place.partition(":")[2] if single_system else "") or place


def noise(cases: Sequence[Judged]) -> float | None:
    """By how much a case differs from itself from run to run: half the range of its bandwidths
    over their median, the larger of writes and reads that storage served; the median of cases;
    None where each ran once."""
    halves = []
    for case in cases:
        spreads = (("write", case.write), ("read", case.read))
        speeds = [
            s for name, s in spreads if s and s.n > 1 and s.median and name not in case.cached
        ]
        if speeds:
            halves.append(max((s.high - s.low) / (2 * s.median) for s in speeds))
    return median(halves) if halves else None


def _written(cases: Sequence[Judged]) -> dict[tuple[str, str], float]:
    """By workload, which its content makes, and label the write bandwidths that storage served."""
    stored = [(c, c.write) for c in cases if c.write and "write" not in c.cached]
    return {(case.anchor or case.name, case.label): speed.median for case, speed in stored}


def _slower(
    cases: Sequence[Judged], best: Mapping[tuple[str, str], float]
) -> tuple[float, int] | None:
    slowdowns = [best[key] / speed for key, speed in _written(cases).items() if best.get(key)]
    return (median(slowdowns), len(slowdowns)) if slowdowns else None


def _row(place: str, here: Sequence[Judged]) -> PlaceRow:
    speeds: dict[str, metrics.Spread | None] = {}
    original: dict[str, tuple[float, int, float] | None] = {}
    of, left_out = {}, {}
    for name in metrics.DATA_PHASES:
        measured = [(c, s) for c in here if (s := {"write": c.write, "read": c.read}[name])]
        stored = [(c, s) for c, s in measured if name not in c.cached]
        comparisons = [
            (c.original[name], s.median / c.original[name])
            for c, s in stored
            if name in c.original
        ]
        speeds[name] = metrics.spread(s.median for _, s in stored)
        speed, ratio = (
            (median(v) for v in zip(*comparisons, strict=True)) if comparisons else (0.0, 0.0)
        )
        original[name] = (speed, len(comparisons), ratio) if comparisons else None
        of[name] = tuple(dict.fromkeys(c.name for c, _ in stored))
        some = Counter(c.name for c, _ in measured if name in c.cached)
        words = (
            f"{n} case{'s' * (n > 1)} of {case_name}" * (case_name in of[name])
            for case_name, n in some.items()
        )
        left_out[name] = {
            case_name: words_ or case_name for case_name, words_ in zip(some, words, strict=True)
        }
    return PlaceRow(
        place=place,
        cases=len(here),
        states={s: sum(c.state == s for c in here) for s in WORST_FIRST},
        speeds=speeds,
        of=of,
        left_out=left_out,
        original=original,
        noise=noise(here),
        in_memory=any(c.in_memory for c in here),
    )
