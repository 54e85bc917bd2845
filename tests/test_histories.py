"""Ten histories of one case, told alike by compare, campaign, trend, report and accept."""

import random
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import campaigns
from tests.support import results as samples
from tests.support.said import said
from tests.test_accept import STORAGE, marks
from tests.test_compare import site
from understudy import producers
from understudy.cli import main
from understudy.commands import campaign
from understudy.commands._campaign import Campaign, side
from understudy.contracts import acceptance, workload
from understudy.contracts.run import Identity, Place
from understudy.judge.acceptance import marks as accepting
from understudy.judge.comparison import trend as trends
from understudy.judge.page import last_two_sessions
from understudy.judge.statistics import conditions, pooling
from understudy.judge.statistics.night_statistics import FASTER, SLOWER, Rule
from understudy.records import index as indexes
from understudy.records import select, store

__all__ = ["site"]  # a fixture


def around(*levels: float, scatter: float = 0.05) -> list[float]:
    dice = random.Random(11)
    return [level * dice.lognormvariate(0, scatter) for level in levels]


NAME = "bench"
MARK = {"metric": "bandwidth", "workload": NAME}
MOUNT = [7.10, 7.79, 8.15, 3.56, 1.59, 1.03, 5.74, 2.44, 1.27, 2.21]
SLOWED = [0.38, 0.35, 0.32, 0.37, 0.35, 0.39, 0.36, 0.33, 0.36, 0.26]
# Speeds by night, the first night after each change, and the exit status of `trend --fail`.
HISTORIES: dict[str, tuple[list[float], list[int] | None, int]] = {
    "unchanged": (around(*[1] * 20), [], 0),
    "a bad night": (around(*[1] * 12, 0.35, *[1] * 7), [12, 13], 1),
    "-90 % in one night": (around(*[1] * 10, 0.1), [10], 1),
    "-50 % in one night": (around(*[1] * 10, 0.5), [10], 1),
    "-30 % in three nights": (around(*[1] * 10, *[0.7] * 3), [10], 1),
    "a slow drift": (around(*(0.97**i for i in range(24))), None, 1),
    "the slowed mount": (MOUNT + SLOWED, [3, 4, 10], 1),
    "its first three sessions": (MOUNT[:3] + SLOWED[:3], [3], 1),
    "noisy nights": (around(*[1] * 20, scatter=0.45), None, 1),
    "recovered after a bad week": (around(*[1] * 8, *[0.5] * 7, *[1] * 8), [8, 15], 1),
    "faster": (around(*[1] * 8, *[1.5] * 6), [8], 0),
}


@pytest.fixture(autouse=True)
def workloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "workloads").mkdir()
    (tmp_path / f"workloads/{NAME}.json").write_text(campaigns.checkpoint())
    monkeypatch.setenv("UNDERSTUDY_WORKLOADS", str(tmp_path / "workloads"))


def keep(folder: Path, night: int, speed: float, campaign_: str, case: str = NAME) -> None:
    row = samples.result(workload.get(NAME), seed=sum(case.encode()), speed=speed)
    row["environment"]["started"] = f"2026-01-{night + 1:02d}T01:00:00Z"
    run = producers.record(
        samples.write(row, folder.parent / "result.json"),
        place=Place(system="sample", partition="disk", environment="gnu"),
        identity=Identity(session=f"s-{night}", campaign=campaign_, case=f"Replay {case}"),
    )
    store.keep(replace(run, cache=STORAGE), folder)


def play(site: Path, speeds: list[float], points: list[int]) -> None:
    """The sides of the campaign h are the sessions around the last change, or both halves."""
    first, last = [0, *points][-2:] if points else (0, len(speeds) // 2)
    for night, speed in enumerate(speeds):
        name = "past" if night < first else f"h-{'before' if night < last else 'after'}"
        keep(site, night, speed, name)


def trend(*words: str) -> Any:
    return CliRunner().invoke(main, ["trend", "--system", "sample", *words])


def told(site: Path) -> tuple[trends.Figure, last_two_sessions.Recent | None, accepting.Finding]:
    """What trend, the page and accept make of the records."""
    (figure,) = trends.of(indexes.of_folder(site), select.ALL).figures
    measured, _ = conditions.load(producers.find([site]))
    cases = conditions.group(measured)
    changed = last_two_sessions.changes(cases)
    assert changed is not None
    assert len(pooling.apart(cases)[0].conditions) == len(figure.points) + 1
    runs = [producers.load(one) for one in producers.find([site])]
    runs = [replace(run, identity=replace(run.identity, campaign=None)) for run in runs]
    path = marks(site.parent, MARK | {"at_least": "1 MiB/s"})
    (mark,) = accepting.judge(acceptance.load(path), runs).findings
    first = [row.values[0] for row in mark.rows[: (*figure.points, len(runs))[0]]]
    path = marks(
        site.parent,
        MARK | {"at_least": f"{0.8 * median(first) / (1 << 20):.2f} MiB/s"},
    )
    (mark,) = accepting.judge(acceptance.load(path), runs).findings
    return figure, next(iter(changed.shown), None), mark


@pytest.mark.parametrize("name", HISTORIES)
def test_all_tell_the_same(site: Path, name: str) -> None:
    speeds, points, status = HISTORIES[name]
    play(site, speeds, points or [])
    figure, row, mark = told(site)
    if points is None:  # where it is found, all have to find it there
        points = list(figure.points)
        for path in site.glob("*/*.gz"):
            path.unlink()
        play(site, speeds, points)
        figure, row, mark = told(site)
    done = trend("--fail")
    text = " ".join(done.stdout.split())
    assert (list(figure.points), done.exit_code) == (points, status), done.output
    assert text.count(f"{SLOWER} since") == sum(s.slower for s in figure.changes)
    compared = CliRunner().invoke(
        main, ["compare", "campaign:h-before", "campaign:h-after", "--fail-below", "5%"]
    )
    made = Campaign(
        name="h", system="localhost", sides=(side("before", ()), side("after", ())), selection=()
    )
    decided = campaign._decided(made, Rule())
    if not points:
        assert row is None and compared.exit_code == 3, compared.output
        assert f"0 {SLOWER}" in decided if decided else True
        assert mark.state == "pass" and "since" not in mark.why
        return
    step = figure.changes[-1]
    state, day = (SLOWER if step.slower else FASTER), f"2026-01-{points[-1] + 1:02d}"
    if not step.confirmed:
        assert "0 open changes" in trend("--nights-differ", "45%").stdout
        assert name == "noisy nights" and said("confirmed-sessions-since", text)
        assert compared.stdout.startswith("not decided: ") and f"0 {state}" in compared.stdout
        return
    assert compared.stdout.startswith(f"{state}: "), compared.output
    assert compared.exit_code == (1 if step.slower else 0)
    assert f"1 {state}" in decided
    assert f"{state} since {day}: " in text
    assert row is not None and row.days[1] == day and (row.change < 0) == step.slower
    assert row.change == pytest.approx(step.ratio - 1, abs=0.03)
    said("since-than-before", mark.why, day=day, state=state)
    nights = len(speeds) - points[-1]
    if nights >= 5 and name != "a slow drift":
        assert mark.state == ("fail" if step.slower else "pass"), mark.why
    else:
        assert mark.state != "pass"


def test_a_change_that_was_found_stays_whatever_runs_later(site: Path) -> None:
    """More sessions, other levels, more figures, other units and values of 0."""
    speeds, points, _ = HISTORIES["-50 % in one night"]
    assert points
    later = around(*[0.5] * 6, *[1.0] * 6)
    play(site, speeds, points)
    (before,) = trends.of(indexes.of_folder(site), select.ALL).figures
    assert trend("--fail").exit_code == 1
    for night, speed in enumerate(later, len(speeds)):
        keep(site, night, speed, "h-after")
        for more in range(3):
            keep(site, night, 1.0, "h-after", f"other {more}")
        found = trends.of(indexes.of_folder(site), select.ALL).figures
        (after,) = (one for one in found if one.name == before.name)
        assert after.points[:1] == before.points and after.open[0].time == before.open[0].time
        assert trend("--fail").exit_code == 1


def test_how_far_nights_differ_is_stated_alike(site: Path, tmp_path: Path) -> None:
    """Each command has the option, and nights that may differ more hide what a bad night was."""
    speeds, points, _ = HISTORIES["noisy nights"]
    play(site, speeds, points or [])
    mark = marks(site.parent, MARK | {"at_least": "1 MiB/s", "campaign": "h-after"})
    changed = {}
    for share in ("10%", "45%"):
        option = ("--nights-differ", share)
        page, accepted = tmp_path / "page.html", tmp_path / "accepted.html"
        for words in (
            ("report", site, "-o", page, "-f"),
            ("accept", mark, site, "-o", accepted, "-f"),
            ("trend", "--system", "sample"),
            ("campaign", "c", "--system", "localhost", "--dry-run"),
        ):
            done = CliRunner().invoke(main, [*map(str, words), *option])
            assert done.exit_code in (0, 3), done.output
            texts = {"report": page, "accept": accepted}
            path = texts.get(str(words[0]))
            changed[words[0], share] = path.read_text() if path else done.stdout
    assert "sessions 1 to" in changed["report", "10%"]
    assert "sessions 1 to" not in changed["report", "45%"]
    assert "than before" in changed["accept", "10%"] and "10 %" in changed["accept", "10%"]
    assert "than before" not in changed["accept", "45%"] and "45 %" in changed["accept", "45%"]
    assert "0 open changes" not in changed["trend", "10%"]
    assert "0 open changes" in changed["trend", "45%"]
    assert "where sessions differ by 45%" in changed["campaign", "45%"]


@pytest.mark.parametrize("name", ["accept", "campaign", "compare", "plan", "report", "trend"])
def test_a_share_that_is_none_is_one_message(name: str) -> None:
    words = {"accept": ["accept", "x"]}
    own = words.get(name, [name])
    done = CliRunner().invoke(main, [*own, "--nights-differ", "much"])
    assert (done.exit_code, done.stdout) == (2, "")
    said("nights-differ-much-expected", done.stderr)
