"""Old results give the same values on the page as the code that wrote them did.

tests/golden/result-1-page-values.json was computed from the fixtures by the last version that read
understudy/result/1 as its own.
"""

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.numbers import rounded
from tests.support.results import cases_in
from understudy import producers
from understudy.contracts import run as runs
from understudy.judge.statistics import metrics
from understudy.judge.statistics.conditions import Case
from understudy.paths import ROOT, where
from understudy.report import page
from understudy_skel import accuracy_rows

FIXTURES = sorted((where("schemas") / "old" / "fixtures" / "result-1").glob("*.json"))
GOLDEN = json.loads((ROOT / "tests/golden/result-1-page-values.json").read_text())
STREAM = ("name", "bytes", "container", "error", "bandwidth")
# Fields that the old page did not show.
ADDED = ("condition", "cached", "remedies", "elapsed", "bounded", "mixed_bytes")


def plain(value: Any) -> Any:
    if is_dataclass(value):
        names = (f.name for f in fields(value) if f.name not in ADDED)
        return {name: plain(getattr(value, name)) for name in names}
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


def values(case: Case) -> dict[str, Any]:
    """What the page shows of a case, as the golden file has it."""
    rows = [page.stream_row(case, c, n) for c in case.conditions for n in c.stream_names()]
    verdicts = [metrics.verdict(c) for c in case.conditions]
    figure_ = {
        "places": case.places,
        "ranks": case.ranks,
        "repetitions": [c.repetitions for c in case.conditions],
        "verdicts": [plain(v) | {"state": v.state} for v in verdicts],
        "streams": [{k: plain(getattr(row, k)) for k in STREAM} for row in rows],
        "phases": [plain(r) for c in case.conditions for r in metrics.slowest_phases(c)],
    }
    if case.programs:
        parts = [accuracy_rows.parts(c) for c in case.conditions]
        names = ("communication_s", "io_s", "rest_s", "ranks")
        return figure_ | {
            "throughputs": [accuracy_rows.throughputs(c) for c in case.conditions],
            "processes": [{n: getattr(p, n).tolist() for n in names} for p in parts],
        }
    return figure_ | {
        "dumps": plain(page.dump_rows(case)),
        "pauses": plain(list(metrics.kept_pauses(case))),
    }


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: p.stem)
@pytest.mark.parametrize("migrated", [False, True], ids=["read", "migrated"])
def test_an_old_result_gives_the_values_of_old(path: Path, migrated: bool, tmp_path: Path) -> None:
    if migrated:
        runs.write(tmp_path / "run.json", producers.record(path))
        path = tmp_path / "run.json"
    (case,) = cases_in(path)
    expected = GOLDEN[path.stem if not migrated else _stem(case)]
    assert rounded(values(case)) == rounded(expected)


def _stem(case: Case) -> str:
    """The fixture whose measurement the record holds."""
    measured = case.conditions[0].runs[0].run.measurement
    return next(p.stem for p in FIXTURES if json.loads(p.read_text()) == measured)
