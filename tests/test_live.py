"""Progress of a campaign: a line for each case on a terminal, and nothing anywhere else."""

import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from tests.support.said import raises, said
from understudy.contracts.measurement import DumpResult, Phase, RankSeconds
from understudy.errors import UnderstudyError
from understudy.reframe.session.live import VARIABLE, Follower, Live, figures, follow


def live(terminal: bool) -> tuple[Live, io.StringIO, list[float]]:
    text, now = io.StringIO(), [100.0]
    console = Console(file=text, force_terminal=terminal, width=160, color_system=None)
    return Live(console, lambda: now[0]), text, now


def dump(index: int, *, start_s: float, took_s: float) -> DumpResult:
    ranks = RankSeconds(
        **dict.fromkeys(("min", "q25", "median", "q75", "q95", "max", "mean"), 0.0)
    )
    phase = Phase(
        phase="write",
        bytes=1,
        operations=1,
        first_start_s=start_s,
        last_end_s=start_s + took_s,
        rank_s=ranks,
    )
    return DumpResult(
        dump=index, start_s=start_s, bytes=1, file_bytes=None, files=1, phases=(phase,)
    )


def measured(dumps: list[DumpResult]) -> Any:
    stream = SimpleNamespace(operation="write", dumps=dumps)
    return SimpleNamespace(repetitions=(SimpleNamespace(streams=(stream,)),))


def test_each_case_has_a_line() -> None:
    result, text, now = live(True)
    result.skip()
    for name, took_s in (("a", 20.0), ("b\x1b[2J", 60.0), ("c", 10.0)):
        result.begin(name)
        now[0] += took_s
        result.end(name, 1 << 30, 10)
    lines = text.getvalue().splitlines()
    assert len(lines) == 3
    said("cases-skipped-about-left", lines[0])
    said("cases-skipped-about-left-2", lines[2])
    assert "3.00 GiB, slowest: 60.0 s" in lines[2]
    assert "b\\x1b[2J" in lines[2] and "\x1b[2J" not in text.getvalue()


def test_without_a_terminal_nothing_is_printed() -> None:
    result, text, _ = live(False)
    result.begin("a")
    result.end("a", 1, None)
    assert text.getvalue() == "" and result.done == 1


def test_an_unknown_number_of_cases_has_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "live.jsonl"
    path.write_text("what was there before\n")
    follower = Follower(path)
    monkeypatch.setenv(VARIABLE, str(path))
    result, _, now = live(False)
    result.begin("a")
    now[0] += 5
    dumps = [dump(k, start_s=float(k), took_s=0.1 if k < 99 else 9.0) for k in range(100)]
    figure_ = figures([measured(dumps)])
    assert figure_ is not None and figure_.dump_median_s == pytest.approx(0.1)
    assert figure_.dump_p99_s == pytest.approx(0.1)
    result.end("a", 7, None, passed=False, verdict="lost\nbytes", measured=[measured(dumps)])
    (event,) = follower.read()
    assert (event.left_s, event.passed, event.took_s, event.figures) == (None, False, 5.0, figure_)
    assert event.line().startswith("1 cases: \N{BALLOT X} a: lost")
    assert "; 7 B, slowest: 5.00 s, a" in event.line()
    with path.open("a") as out:
        out.write('{"case": 1}\n[]\n')
        out.write(event.row().replace('"moved_bytes": 7', '"moved_bytes": "x"') + "\nhalf")
    assert follower.read() == []
    assert follower.read() == []


def test_a_file_that_cannot_be_written_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "no" / "live.jsonl"))
    result, _, _ = live(False)
    for name in ("a", "b"):
        result.begin(name)
        result.end(name, 1, 2)
    assert capsys.readouterr().err.count("cannot be written") == 1
    assert figures([None]) is None


@pytest.mark.parametrize("kind", ["device", "pipe", "folder"])
def test_only_a_regular_file_is_followed(kind: str, tmp_path: Path) -> None:
    """A device has no end, and a pipe waits for its reader."""
    path = {"device": Path("/dev/full"), "pipe": tmp_path / "pipe", "folder": tmp_path}[kind]
    if kind == "pipe":
        os.mkfifo(path)
    assert Follower(path).read() == []
    with raises(UnderstudyError, "expected-regular-file"):
        follow(path)
