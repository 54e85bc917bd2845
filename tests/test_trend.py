"""Sessions over time: what is told of them, the page, and changes that are acknowledged."""

import math
import random
import re
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from click.testing import CliRunner, Result

from tests.support.said import said
from tests.test_compare import keep
from understudy.cli import main
from understudy.contracts.acknowledgements import FILE
from understudy.judge.comparison import trend as trends
from understudy.judge.statistics.compared_samples import Series, Subject
from understudy.paths import RECORDS_VARIABLE
from understudy.records import index as indexes
from understudy.records import select
from understudy.report import trend as page


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(RECORDS_VARIABLE, str(tmp_path / "kept"))
    return tmp_path / "kept"


def night(
    site: Path,
    number: int,
    speed: float,
    name: str = "n",
    *,
    failure: str | None = None,
    server: str | None = None,
) -> None:
    """One session of a night from 2026-08-01 on."""
    time = datetime(2026, 8, 1, 1, 30) + timedelta(days=number)

    def change(row: dict[str, Any]) -> None:
        begun = time.strftime("%Y-%m-%dT%H:%M:%SZ")
        row["identity"]["time"] = row["measurement"]["environment"]["started"] = begun
        row["storage"]["server_version"] = server

    noise = random.Random(f"{number} {name}").lognormvariate(0, 0.03)
    keep(
        site,
        f"s-{number}",
        number % 28 + 1,
        speed * noise,
        name=name,
        failure=failure,
        change_row=change,
    )


def upgraded(site: Path, sessions: int = 30, loss: float = 0.3, name: str = "n") -> None:
    """A step in the middle, at an upgrade."""
    for i in range(sessions):
        late = i >= sessions // 2
        night(site, i, 1 - loss if late else 1.0, name, server="2.16" if late else "2.15")


def trend(*words: object) -> Result:
    return CliRunner().invoke(main, ["trend", "--system", "star", *map(str, words)])


def told(done: Result) -> str:
    """The lines, of which none is longer than a terminal of 80 columns, as they were before they
    were wrapped."""
    assert max(map(len, done.stdout.splitlines()), default=0) <= 80
    return re.sub(r"\n +", " ", done.stdout)


def draw(folder: Path) -> str:
    path = folder / "trend.html"
    done = trend("-o", path, "-f")
    assert done.exit_code == 0, done.output
    return path.read_text()


def every_kind(site: Path) -> None:
    """A change, a drift, a bad night, failures, an upgrade, cases of one session and of none."""
    upgraded(site, 40)
    for i in range(40):
        night(site, i, math.exp(-0.01 * i), "fills up")
        failure = "No space left\nsecond line" if i == 12 else None
        night(site, i, 0.4 if i == 9 else 1.0, "calm", failure=failure)
    night(site, 39, 1.0, "new")
    night(site, 39, 1.0, "broken", failure="cannot open")


def test_a_step_is_told_with_its_days_levels_and_upgrade(site: Path) -> None:
    upgraded(site)
    done = trend()
    assert (done.exit_code, done.stderr) == (0, "")
    assert re.search(
        r"^change: Replay n replica on star:disk, dump, bandwidth: slower since 2026-08-16: "
        r"\N{MINUS SIGN}(29|3\d) %, \d{3} → \d{3} MiB/s \(last as before on 2026-08-15\); "
        r"all 15 after lie below all 15 before; "
        r"upgrade: storage.server_version: 2.15 → 2.16$",
        told(done),
        re.M,
    )
    said("figure-open-change-acknowledged", told(done))
    assert trend("--fail").exit_code == 1


def test_one_session_of_each_case_is_no_figure(tmp_path: Path) -> None:
    every_kind(tmp_path)
    trends_ = trends.of(indexes.of_folder(tmp_path), select.ALL)
    assert "<h3>Figures" in page.render("star", trends_)
    alone = replace(trends_, figures=tuple(f for f in trends_.figures if not f.several))
    assert alone.figures
    text = page.render("star", alone)
    assert said("one-session-so-far", text) and "<h3>Figures" not in text and "<svg" not in text


def test_the_page_begins_with_what_was_found(site: Path, tmp_path: Path) -> None:
    every_kind(site)
    text = draw(tmp_path)
    heads = re.findall(r"<h3>([^<]*)</h3>", text)
    assert heads[:4] == ["Changed", "Failed", "Upgrades", "Figures"]
    assert [head.split()[1] for head in heads[4:7]] == ["calm", "fills", "n"]
    said("one-session-so-far-2", heads[7])
    assert text.count("<figure>") == 3  # none of one dot
    marked = r'<g id="trend-\d-change-\d">\s*<path[^>]*></path>\s*<title>slower since'
    assert len(re.findall(marked, text)) == 3
    assert "<title>Upgrade by 2026-08-21: storage.server_version" in text
    assert "2026-08-13 No space left" in text and "second line" not in text
    assert text.count("<title>failed 2026-08-13 01:30: No space left</title>") == 1
    assert text.count("<title>2026-08-13 01:30: ") == 2, "of the two that did not fail then"
    assert "cannot open" in text
    assert "bytes_per_s" not in text and "MiB/s" in text


def test_the_axis_is_that_of_dates(site: Path) -> None:
    for i in (*range(8), 98, 99):
        night(site, i, 1.0)
    trends_ = trends.of(indexes.of_folder(site), select.ALL)
    drawn = page.draw(trends_.figures[0])
    (axes,) = drawn.axes
    (sessions,) = [line for line in axes.get_lines() if line.get_label() == "session"]
    places = np.asarray(sessions.get_xdata())
    assert (np.diff(places) == [*[1] * 7, 91, 1]).all()
    assert np.asarray(sessions.get_ydata()) == pytest.approx(
        [value / 2**20 for value in trends_.figures[0].values]
    )
    assert axes.get_ylabel() == "MiB/s"


def test_the_page_is_self_contained_and_escaped(site: Path, tmp_path: Path) -> None:
    for i in range(16):
        night(site, i, 0.5 if i >= 8 else 1.0, "<b>", server=f"<script>{i // 8}\x1b</script>")
    night(site, 9, 1.0, "<b>", failure="<img src=x>")
    text = draw(tmp_path)
    assert "<script" not in text and "<b>Replay <b>" not in text and "<img" not in text
    assert "http" not in text and "&lt;script&gt;1" in text and "\x1b" not in text
    assert "\x1b" not in told(trend())
    path = tmp_path / "trend.html"
    path.write_text("mine")
    assert trend("-o", path).exit_code == 2 and path.read_text() == "mine"


def test_conditions_of_a_case_are_told_apart(site: Path, tmp_path: Path) -> None:
    for i in range(4):
        night(site, i, 1.0)

        def slower(row: dict[str, Any]) -> None:
            row["producer"]["options"]["method"] = "mpiio"
            row["measurement"]["options"]["method"] = "mpiio"

        keep(site, f"other-{i}", i + 1, 1.0, change_row=slower)
    heads = re.findall(r"<figure>\n<h3>([^<]*)</h3>", draw(tmp_path))
    assert len(set(heads)) == 2 and any("mpiio" in head for head in heads)


def acknowledge(word: str = "Replay n@2026-08-16", *more: object) -> Result:
    return trend("--acknowledge", word, "--why", "new # firmware", "--by", "me", *more)


def test_a_known_change_is_listed_apart_and_not_open(site: Path, tmp_path: Path) -> None:
    upgraded(site)
    done = acknowledge()
    assert done.exit_code == 0 and "change:" not in told(done)
    assert re.search(r"^acknowledged: Replay n .*; me: new # firmware$", told(done), re.M)
    said("open-changes-acknowledged", told(done))
    assert yaml.safe_load((site / FILE).read_text())["changes"][0]["case"] == "Replay n"
    text = draw(tmp_path)
    assert "<h3>Acknowledged</h3>" in text and "<h3>Changed</h3>" not in text


@pytest.mark.parametrize("date", ["2026-08-15", "2026-08-17"])
def test_it_is_known_by_the_day_of_a_session_beside_it(site: Path, date: str) -> None:
    upgraded(site)
    acknowledge()
    path = site / FILE
    path.write_text("# mine\n" + path.read_text().replace("2026-08-16", date))
    for i in range(30, 40):
        night(site, i, 0.7, server="2.16")
    said("open-changes-acknowledged", told(trend()))


def test_another_change_is_open_again_and_notes_stay(site: Path) -> None:
    upgraded(site)
    acknowledge()
    path = site / FILE
    path.write_text("# mine\n" + path.read_text())
    for i in range(30, 45):
        night(site, i, 0.4, server="2.16")
    said("open-change-acknowledged", told(trend()))
    done = acknowledge("Replay n@2026-08-31")
    said("open-changes-acknowledged-2", told(done))
    assert path.read_text().startswith("# mine\nschema: understudy/acknowledgements/1\n")


@pytest.mark.parametrize("words", ["Replay n", "n", "Replay"])
def test_words_of_a_case_name_it(site: Path, words: str) -> None:
    upgraded(site)
    assert acknowledge(f"{words}@2026-08-16").exit_code == 0
    said("open-changes-acknowledged", told(trend()))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("Replay n", "expected CASE@DATE, such as 'Replay x@2026-10-04'"),
        ("Replay n@yesterday", "expected CASE@DATE"),
        ("Replay n@2026-08-02", "no open change; expected Replay n@2026-08-16"),
        ("other@2026-08-16", "no open change; expected Replay n@2026-08-16"),
    ],
)
def test_what_did_not_change_is_not_acknowledged(site: Path, word: str, message: str) -> None:
    upgraded(site)
    done = acknowledge(word)
    assert done.exit_code == 2 and f"--acknowledge {word}: {message}" in done.stderr
    assert not (site / FILE).exists()


def test_why_is_asked_for(site: Path) -> None:
    upgraded(site, 2)
    done = trend("--acknowledge", "Replay n@2026-08-16")
    assert done.exit_code == 2 and "--why: expected both" in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2026-08-16", "soon", "change 1: date"),
        ("by: me", "of: me", "of"),
        ("acknowledgements/1", "acceptance/1", "schema: expected understudy/acknowledgements/1"),
        ("- system", "  system: star\n- system", "not YAML"),
    ],
)
def test_a_bad_file_is_one_message(site: Path, old: str, new: str, message: str) -> None:
    upgraded(site)
    acknowledge()
    path = site / FILE
    path.write_text(path.read_text().replace(old, new))
    done = trend()
    assert done.exit_code == 2 and done.stdout == ""
    assert all(line.startswith(f"understudy: {path}: ") for line in done.stderr.splitlines())
    assert message in done.stderr


def test_a_time_that_grows_is_told_as_growing() -> None:
    dice = random.Random(1)
    values = [(0.2 if i >= 14 else 0.1) * dice.lognormvariate(0, 0.03) for i in range(28)]
    times = tuple(f"2026-08-{i + 1:02d}T01:00:00Z" for i in range(28))
    figure_ = trends.figure(
        Series(
            subject=Subject(
                case="x",
                arm="replica",
                system="star",
                partition=None,
                producer="player",
                workload=None,
            ),
            condition="",
            metric="elapsed_s",
            unit="s",
            stream=None,
            sessions=times,
            blocks=tuple(range(28)),
            times=times,
            values=tuple((1 / value,) for value in values),
            better="lower",
            repetition_s=None,
        )
    )
    said("replica-star-elapsed-time", figure_.name)
    (step,) = figure_.changes
    assert re.fullmatch(
        r"slower since 2026-08-15: \+(9|10)\d %, (9\d\.\d|10\d) → (19|20)\d ms \(last as .*",
        page.change(step, figure_),
    )


def test_a_selection_without_runs_is_an_error(site: Path) -> None:
    upgraded(site, 2)
    done = CliRunner().invoke(main, ["trend", "--system", "none"])
    assert done.exit_code == 2 and said("none-no-run", done.stderr)
