"""Programs of known truth are recorded again, under Darshan and strace."""

from pathlib import Path

import pytest

from tests.support.needs import need
from tests.workshop import live
from tests.workshop.cases import BY_NAME
from tests.workshop.compare import compared
from tests.workshop.truth import save
from understudy.reframe.bases.observer import preloaded, runtime


@pytest.mark.parametrize("name", ["rewrite", "synced"])
def test_a_run_of_now(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("strace", "ptrace", "Darshan's runtime")
    preloaded(prefix := runtime())
    monkeypatch.setattr(live, "BASE", tmp_path)
    case = BY_NAME[name]
    assert not live.missing(case)
    live.build(tmp_path / "bin")
    log = tmp_path / f"{name}.dxt.darshan"
    save(live.record(case, prefix, True, log), log.with_suffix(".truth.json"))
    assert [m for m in compared(log, case) if m.verdict == "wrong"] == []
