"""The page: cases, metrics with known answers, every figure, the HTML, messages of errors."""

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result
from matplotlib.figure import Figure

from tests.support import results as samples
from tests.support.results import cases_in
from tests.support.said import said
from understudy import cli, units
from understudy.contracts import workload
from understudy.contracts.workload import Provenance, origins
from understudy.errors import UnderstudyError
from understudy.judge.page import summary
from understudy.judge.statistics import metrics
from understudy.judge.statistics.conditions import Case
from understudy.paths import ROOT, files
from understudy.producers import player
from understudy.report import figures, inline_svg, page, values
from understudy_papers.judge.published_sizes import against_published

# Those draw no workload: test_programs.py, test_transfer.py, test_darshan_checks.py.
OF_PROGRAMS = {"processes", "throughput", "transfer"}
OF_DARSHAN = {"archival", "logparts", "logsizes", "operations", "overhead", "shutdown"}
# Those need several settings, sessions or cases: test_summary.py.
OF_SEVERAL = {"beside", "checkpoints", "error", "heatmap", "history", "stripes", "weak"}
FIGURES = sorted(set(files("figures", ".py")) - OF_PROGRAMS - OF_DARSHAN - OF_SEVERAL)
WORKLOADS = {w.name: w for w in (samples.growing(), samples.per_process(), samples.grouped())}


def case_of(tmp_path: Path, *rows: dict[str, Any]) -> Case:
    """The one case that these results make, each in a folder of its own."""
    for i, row in enumerate(rows):
        samples.write(row, tmp_path / "results" / str(i) / "result.json")
    (case,) = cases_in(tmp_path / "results")
    return case


def report(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, ["report", *map(str, arguments)])


class Elements(HTMLParser):
    """Attributes of every element, and whether each one that was opened was closed in order."""

    VOID = frozenset({"meta", "br", "wbr", "link", "img", "hr", "input"})

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def values(self, name: str) -> list[str]:
        return [value or "" for _, attrs in self.tags for n, value in attrs.items() if n == name]


@pytest.fixture(scope="module")
def sample_page(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Case]]:
    folder = samples.write_tree(tmp_path_factory.mktemp("tree"), WORKLOADS.values(), repetitions=3)
    cases = cases_in(folder)
    return page.render(cases), cases


def test_each_number_of_the_overview_has_its_name(sample_page: tuple[str, list[Case]]) -> None:
    """A narrow screen shows no head of the table."""
    text = sample_page[0].partition('class="overview"')[2].partition("</table>")[0]
    assert text.count('class="num" data-label=') == 2 * text.count('<td class="verdict">') > 0
    assert "attr(data-label)" in sample_page[0]


def stated_page(tmp_path: Path, **options: Any) -> str:
    """The page of a result of simulation A, as plain text."""
    row = samples.result(workload.get("mphys-a"), method="hdf5", **options)
    case = case_of(tmp_path, row)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.render([case])))


# Cases


def test_the_place_comes_from_the_record_and_never_from_folder_names(tmp_path: Path) -> None:
    tree = tmp_path / "output/archer/work/gnu/Replay_1"
    samples.write_record(samples.result(samples.per_process()), tree, partition="disk")
    assert cases_in(tmp_path)[0].places == ["sample:disk"]
    (tree / "run.json").unlink()
    assert cases_in(tmp_path)[0].places == ["sample-host:ext4"]


def test_a_copy_counts_once(tmp_path: Path) -> None:
    row = samples.result(samples.per_process(), repetitions=2)
    for folder in ("output", "stage"):
        samples.write(row, tmp_path / folder / "s/p/e/t/result.json")
    (case,) = cases_in(tmp_path)
    assert [s.repetitions for s in case.conditions] == [2]


def test_runs_of_one_setting_pool_their_repetitions(tmp_path: Path) -> None:
    workload_ = samples.per_process()
    case = case_of(tmp_path, *(samples.result(workload_, repetitions=2, seed=s) for s in (1, 2)))
    assert [s.repetitions for s in case.conditions] == [4]
    assert len(case.conditions[0].dumps("dump")[0]) == 4


def test_options_that_differ_tell_settings_apart(tmp_path: Path) -> None:
    workload_ = samples.per_process()
    case = case_of(
        tmp_path,
        samples.result(workload_, transfer_bytes=1024, fsync=True),
        samples.result(workload_, transfer_bytes=None, fsync=True),
    )
    assert [s.label for s in case.conditions] == ["posix", "posix transfer 1024 B"]


def test_one_name_with_two_descriptors_makes_two_cases(tmp_path: Path) -> None:
    workload_ = samples.per_process()
    other = samples.workload(workload_.name, workload_.streams, runtime_s=4.0)
    for i, played in enumerate((workload_, other)):
        samples.write(samples.result(played), tmp_path / str(i) / "result.json")
    cases = cases_in(tmp_path)
    assert len({c.key for c in cases}) == 2


def test_reading_a_checkpoint_back_is_a_restart(tmp_path: Path) -> None:
    case = case_of(tmp_path, samples.result(samples.growing(), restart=True))
    assert case.role("checkpoint-restart") == "restart"
    assert case.role("checkpoint") == "checkpoint"


# Metrics


@pytest.mark.parametrize(
    ("moved", "planned", "error"),
    [(100, 100, 0.0), (90, 100, -0.1), (150, 100, 0.5), (0, 0, 0.0), (1, 0, math.inf)],
)
def test_payload_error(moved: int, planned: float, error: float) -> None:
    assert metrics.payload_error(moved, planned) == pytest.approx(error)


def test_spread_of_known_values() -> None:
    figure_ = metrics.spread([4.0, 1.0, 3.0, 2.0])
    assert figure_ == metrics.Spread(low=1.0, median=2.5, high=4.0, n=4)
    assert metrics.spread([]) is None


def test_bandwidth_from_open_to_close(tmp_path: Path) -> None:
    row = samples.result(samples.per_process())
    for dump in row["repetitions"][0]["streams"][0]["dumps"]:
        dump["phases"][0] |= {"first_start_s": 10.0, "last_end_s": 10.5}
        dump["phases"][1] |= {"first_start_s": 10.5, "last_end_s": 11.5}
        dump["phases"][2] |= {"first_start_s": 11.5, "last_end_s": 12.0}
    (setting,) = case_of(tmp_path, row).conditions
    total = metrics.verdict(setting).elapsed[0]
    assert total is not None and total.median == 3 * 64 * 2**20 / 6.0
    assert metrics.total_bandwidth(setting, "read") is None


@pytest.mark.parametrize(
    ("options", "spoil", "state", "error"),
    [
        ({}, None, "pass", 0.0),
        ({"verify": False}, None, "undecided", 0.0),
        ({"lost_bytes": 64 * 2**20 // 100}, None, "pass", -0.01),
        ({"lost_bytes": 64 * 2**20 // 4}, None, "fail", -0.25),
        ({"bytes_scale": 0.5, "lost_bytes": 32 * 2**20}, None, "pass", 0.0),
        ({}, lambda row: row["verification"].update(wrong_bytes=1), "fail", 0.0),
        (
            {"repetitions": 2},
            lambda row: row["repetitions"][1]["streams"][0]["dumps"].pop(),
            "fail",
            -1.0,
        ),
    ],
)
def test_verdict(
    tmp_path: Path, options: dict[str, Any], spoil: Any, state: str, error: float
) -> None:
    row = samples.result(samples.per_process(), **options)
    if spoil:
        spoil(row)
    [condition] = case_of(tmp_path, row).conditions
    verdict = metrics.verdict(condition)
    assert (verdict.state, verdict.error) == (state, pytest.approx(error, abs=1e-6))


def test_reads_between_writes_are_no_payload_error(tmp_path: Path) -> None:
    """They are stated apart, and are no container either."""
    between = 27 * 2**20
    row = samples.of_today(samples.result(samples.per_process(), mix_percent=30))
    for dump in row["repetitions"][0]["streams"][0]["dumps"]:
        dump["phases"].insert(2, dump["phases"][1] | {"phase": "read", "bytes": between})
        dump["bytes"] += between
    case = case_of(tmp_path, row)
    verdict = metrics.verdict(case.conditions[0])
    assert (verdict.state, verdict.error, verdict.mixed_bytes) == ("pass", 0.0, 3 * between)
    overhead = metrics.container_bytes(case.conditions[0].stream("dump"))
    assert overhead is not None and overhead.median == 0
    text = page.render([case])
    assert "outside</a>" not in text and text.count("81.0 MiB read between writes") == 2
    row["options"]["mix_percent"] = None
    assert metrics.verdict(case_of(tmp_path / "not", row).conditions[0]).state == "fail"


@pytest.mark.parametrize(("stopped", "state"), [(1, "undecided"), (0, "fail")])
def test_a_deadline_bounds_the_payload(tmp_path: Path, stopped: int, state: str) -> None:
    options = {"lost_bytes": 48 * 2**20, "deadline_s": 1e-3}
    row = samples.of_today(samples.result(samples.per_process(), **options))
    for dump in row["repetitions"][0]["streams"][0]["dumps"]:
        some = {"min": 1, "max": 2}
        ends = {"stopped_ranks": stopped, "bytes": dump["bytes"]}
        dump["deadline"] = ends | {"rank_bytes": some, "rank_transfers": some}
        dump["file_bytes"] += 7
    case = case_of(tmp_path, row)
    (judged,) = summary.summarize([case]).cases
    assert judged.state == state
    text = page.render([case])
    if stopped:
        assert said("bounded-by-the-deadline", judged.why)
        assert "by the deadline" in text and "payload error is" not in text
        assert metrics.container_bytes(case.conditions[0].stream("dump")) is None
        assert "Compare the contents" not in text
    else:
        assert "payload error is" in judged.why


def test_container_overhead(tmp_path: Path) -> None:
    case = case_of(tmp_path, samples.result(samples.per_process(), method="hdf5"))
    overhead = metrics.container_bytes(case.conditions[0].stream("dump"))
    assert overhead is not None and overhead.median == 3 * 2048


def test_a_simulation_s_sizes_stand_beside_those_published(tmp_path: Path) -> None:
    """Each of the 49 checkpoints of 213 MB and of the 50 states has a container of 2,048 B."""
    text = stated_page(tmp_path)
    assert "Table II 0.17 % 0.43 % 8.29 % 0.16 %" in text
    assert "sample-host:ext4 hdf5 0.00096 % 0.00096 % 0.0059 % 0.00012 %" in text


def test_other_sizes_are_not_held_against_those_stated(tmp_path: Path) -> None:
    stated = workload.get("mphys-a")
    for name, row in (
        ("scaled", samples.result(stated, method="hdf5", bytes_scale=0.5)),
        ("other", samples.result(samples.growing())),
    ):
        assert against_published(case_of(tmp_path / name, row)) is None


def test_pauses_are_those_of_the_worst_repetition(tmp_path: Path) -> None:
    row = samples.result(samples.per_process(), repetitions=2, time_scale=1.0)
    dumps = row["repetitions"][1]["streams"][0]["dumps"]
    for repetition in row["repetitions"]:
        for dump in repetition["streams"][0]["dumps"]:
            dump["start_s"] = dump["scheduled_s"]
    dumps[2]["start_s"] += 0.22  # of 0.2 s to 2.4 s
    [figure_] = metrics.kept_pauses(case_of(tmp_path, row))
    assert figure_.pauses.asked_s == pytest.approx(2.2)
    assert figure_.pauses.error == pytest.approx(0.1)
    none = samples.result(samples.per_process(), time_scale=0.0)
    assert list(metrics.kept_pauses(case_of(tmp_path / "b", none))) == []


def test_slowest_phase_is_the_one_with_the_slowest_rank(tmp_path: Path) -> None:
    row = samples.result(samples.per_process())
    statistics = row["repetitions"][0]["streams"][0]["dumps"][1]["phases"][1]["rank_s"]
    statistics |= {"q95": 80.0, "max": 90.0, "median": 45.0}
    case = case_of(tmp_path, row)
    (figure_,) = [r for r in metrics.slowest_phases(case.conditions[0]) if r.phase == "write"]
    assert (figure_.dump, figure_.seconds[-1], figure_.imbalance) == (1, 90.0, 2.0)


def test_origins_counts_each_number_once_and_the_last_entry_wins() -> None:
    workload_ = samples.per_process()
    assert origins(workload_) == {"assumed": 10, "derived": 3, "read": 9}
    bare = samples.workload("bare", workload_.streams)
    object.__setattr__(bare, "provenance", (Provenance(path="/ranks", origin="read", how="x"),))
    assert origins(bare) == {"read": 1, "not stated": 21}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.size(0), "0 B"),
        (units.size(37_750_784), "36.0 MiB"),
        (units.size(10 * 2**30), "10.0 GiB"),
        (units.size(None), "not measured"),
        (units.exact(37_750_784), "37,750,784 B"),
        (units.rate(1.5 * 2**30), "1.50 GiB/s"),
        (units.seconds(0.0000812), "81.2 µs"),
        (units.seconds(3.416), "3.42 s"),
        (units.seconds(9.5), "9.50 s"),
        (units.seconds(0.123), "123 ms"),
        (units.seconds(7260), "2 h 01 min"),
        (units.percent(0), "0 %"),
        (units.percent(0.125), "+12.5 %"),
        (units.percent(-0.00002), "\N{MINUS SIGN}0.002 %"),
        (units.share(0), "0 %"),
        (units.share(0.00000069271), "0.000069 %"),
        (units.share(0.1627), "16.27 %"),
        (units.shorten("abcdefghij", 5), "ab…ij"),
    ],
)
def test_numbers_as_a_person_reads_them(text: str, expected: str) -> None:
    assert text == expected


# Figures


@pytest.mark.parametrize("name", FIGURES)
def test_figure_draws(name: str, tmp_path: Path) -> None:
    """The page of `sample_page` has those of the other workloads."""
    workload = WORKLOADS["growing"]
    case = case_of(
        tmp_path,
        samples.result(workload, method="posix", repetitions=3, restart=True),
        samples.result(workload, method="hdf5", repetitions=3, restart=True, speed=0.5),
    )
    (drawer,) = [d for d in figures.drawers() if d.name == name]
    text = figures.svg(drawer, case)
    assert text is not None
    root = ElementTree.fromstring(text)
    assert root.tag == "svg"
    words = "".join(root.itertext())
    nameless = ("profile", "original")
    assert any(s.name in words for s in workload.streams) or name in nameless
    assert drawer.title.endswith("?") and drawer.caption


@pytest.mark.parametrize("name", FIGURES)
def test_figure_bears_a_crowd_of_dumps_and_streams(name: str, crowd: Case) -> None:
    (drawer,) = [d for d in figures.drawers() if d.name == name]
    text = figures.svg(drawer, crowd)
    assert (text is None) == (name == "repetitions")
    assert len(text or "") < 1_500_000
    cut = name in ("bandwidth", "phases")
    assert ("of 40 rows; the tables have all" in (text or "")) == (name == "ranks")
    assert ("of 40 streams; the tables have all" in (text or "")) == cut


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return case_of(tmp_path_factory.mktemp("crowd"), samples.result(samples.crowded()))


def test_crowded_timeline_groups_small_streams(crowd: Case) -> None:
    (drawer,) = [d for d in figures.drawers() if d.name == "timeline"]
    words = "".join(ElementTree.fromstring(figures.svg(drawer, crowd) or "").itertext())
    assert "smaller, checkpoint" in words and "10.0 GiB" not in words


def test_thousands_of_checkpoints_are_shown_by_their_smallest_and_largest(tmp_path: Path) -> None:
    sizes = [1_000_000 + 1000 * k for k in range(1500)]
    stream = samples.stream("s", "checkpoint", sizes, [1.0 * k for k in range(1500)])
    case = case_of(tmp_path, samples.result(samples.workload("w", [stream])))
    (drawer,) = [d for d in figures.drawers() if d.name == "checkpoints"]
    drawn = figures.draw(drawer, case)
    assert drawn is not None
    assert "payload: smallest and largest of each 2 dumps" in drawn.svg
    rows = [line.split(",") for line in drawn.csv.splitlines()]
    low, high = ([r[-1] for r in rows if r[1].startswith(w)] for w in ("smallest", "largest"))
    assert len(low) == len(high) == 750
    unit = sizes[-1] / float(high[-1])
    assert [float(v) * unit for v in (low[1], high[1])] == pytest.approx(
        [sizes[2], sizes[3]], 1e-4
    )


def test_marks_of_a_style_share_it(tmp_path: Path) -> None:
    """What thousands of marks have in common stands in the page once."""
    rows = [samples.result(samples.growing(), repetitions=3, seed=k) for k in range(3)]
    (drawer,) = [d for d in figures.drawers() if d.name == "bandwidth"]
    drawn = figures.draw(drawer, case_of(tmp_path, *rows))
    assert drawn is not None
    root = ElementTree.fromstring(drawn.svg)
    ids = {element.get("id"): element for element in root.iter()}
    lines = list(root.iter("polyline"))
    places = [line.get("points", "").split() for line in lines]
    replica = [row for row in drawn.csv.splitlines()[1:] if "original, its own" not in row]
    assert 0.9 * len(replica) < sum(map(len, places)) <= len(replica)  # few are on their own
    for line in lines:
        marker = ids[line.get("style", "").partition("marker: url(#")[2].rstrip(")")]
        (use,) = marker
        assert marker.tag == "marker" and use.get("href", "")[1:] in ids
        assert "fill" in use.get("style", "")


def test_marks_with_titles_are_elements_of_their_own() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0, 1, 2, float("nan")], [3, 4, 5, 6], "o", gid="many")
    axes.plot([0, 1], [5, 6], "o", gid="few")
    titles = {"many": ["<a>", "b"], "few": ["d\x07", "e"]}
    text = inline_svg.element(figure, prefix="p-", label="two lines", titles=titles)
    marks = [
        use for use in ElementTree.fromstring(text).iter("use") if use.find("title") is not None
    ]
    assert [use.findtext("title") for use in marks] == ["<a>", "b", "d\\x07", "e"]


def test_a_new_file_is_a_new_figure(tmp_path: Path) -> None:
    for name, order in (("later", 2), ("early", 1)):
        text = (
            f'"""Is {name} found?\n\nYes.\n"""\nORDER = {order}\ndef draw(case):\n    return 7\n'
        )
        (tmp_path / f"{name}.py").write_text(text)
    figure_ = figures.drawers(tmp_path.glob("*.py"))
    assert [(d.name, d.title, d.caption) for d in figure_] == [
        ("early", "Is early found?", "Yes."),
        ("later", "Is later found?", "Yes."),
    ]


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("ORDER = 1\ndef draw(case): ...\n", "the docstring is missing"),
        ('"""Q?"""\ndef draw(case): ...\n', "ORDER is missing"),
        ('"""Q?"""\nORDER = 1\n', "draw is missing"),
    ],
)
def test_an_incomplete_figure_is_named(tmp_path: Path, text: str, missing: str) -> None:
    (tmp_path / "odd.py").write_text(text)
    with pytest.raises(UnderstudyError, match=rf"odd\.py: a figure needs .*{missing}"):
        figures.drawers(tmp_path.glob("*.py"))


def test_example_of_the_how_to_is_a_figure(tmp_path: Path) -> None:
    guide = (ROOT / "docs/how-to/add-a-figure.md").read_text(encoding="utf-8")
    (tmp_path / "example.py").write_text(guide.split("```python\n")[1].split("```")[0])
    (drawer,) = figures.drawers(tmp_path.glob("*.py"))
    case = case_of(tmp_path, samples.result(samples.growing()))
    assert "checkpoint" in (figures.svg(drawer, case) or "")
    alone = case_of(tmp_path / "alone", samples.result(samples.per_process()))
    assert figures.svg(drawer, alone) is None


# The page


def test_page_is_well_formed_and_complete(sample_page: tuple[str, list[Case]]) -> None:
    text, result = sample_page
    elements = Elements(text)
    assert elements.open == []
    ids = elements.values("id")
    assert len(ids) == len(set(ids)), "an id stands twice"
    for case in result:
        assert case.key in ids
        for name in FIGURES:
            assert f"{case.key}-{name}" in ids
    data = [link for link in elements.values("href") if link.startswith("data:text/csv")]
    assert len(data) == text.count("<figure ") > 0
    links = [link for link in elements.values("href") if not link.startswith("data:")]
    assert links and all(link.startswith("#") for link in links)
    assert {link[1:] for link in links} <= set(ids), "a link leads nowhere"


def test_page_refers_to_nothing_outside_itself(sample_page: tuple[str, list[Case]]) -> None:
    text, _ = sample_page
    elements = Elements(text)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in elements.tags}
    for token in ("http:", "https:", "src=", "@import", "xmlns"):
        assert token not in text, token
    assert text.count("url(") == text.count("url(#")


def test_overview_has_a_verdict_for_every_setting(sample_page: tuple[str, list[Case]]) -> None:
    text, result = sample_page
    overview = text[: text.index("<section")]
    settings = sum(len(case.conditions) for case in result)
    assert settings == 3 * 3 * 2
    assert overview.count('<td class="verdict">') == settings
    assert overview.count("not verified") == settings / 3  # hdf5 runs of the sample


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    row = samples.result(samples.grouped(), method="mpiio", verify=False)
    samples.write(row, tmp_path / "result.json")
    text = page.render(cases_in(tmp_path))
    overview = text[: text.index("<section")]
    assert overview.count('<span class="empty">not measured</span>') == 1  # grouped reads nothing
    assert "unknown" in text  # run time of the grouped sample


def test_hostile_names_are_escaped(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>"
    workload_ = samples.workload(
        "hostile",
        [samples.stream("dump", "output", [1000], [0.0], label=evil, method="posix")],
        description=evil,
        notes=(evil,),
    )
    row = samples.result(workload_)
    row["environment"] |= {"mpi": evil, "host": evil, "kernel": evil, "file_system": evil}
    row["environment"]["command_line"] = [evil]
    samples.write(row, tmp_path / "result.json")
    text = page.render(cases_in(tmp_path))
    elements = Elements(text)
    assert not {"script", "img"} & {tag for tag, _ in elements.tags}
    assert "onerror" not in {name for _, attrs in elements.tags for name in attrs}
    assert evil in "".join(elements.text)


def test_control_characters_are_escaped_in_figures_and_on_the_page(tmp_path: Path) -> None:
    """An SVG with one is no XML, and a terminal that shows the page's text would obey it."""
    evil = "h\x1b[2J\x00\u202e $\\frac$"
    described = evil.replace("\x00", "")  # which no workload has
    workload_ = samples.workload(
        "hostile",
        [samples.stream("dump", "output", [1000], [0.0], label=described)],
        description=described,
    )
    row = samples.result(workload_, repetitions=2, file_system=evil)
    samples.write(row, tmp_path / "result.json")
    undrawn: list[UnderstudyError] = []
    text = page.render(cases_in(tmp_path), undrawn=undrawn.append)
    assert undrawn == []
    assert all(c.isprintable() or c == "\n" for c in text)
    assert r"h\x1b[2J\x00\u202e" in text


# The command


def test_a_damaged_record_in_a_folder_does_not_block_the_page(tmp_path: Path) -> None:
    samples.write(samples.result(samples.per_process()), tmp_path / "in/good/result.json")
    bad = tmp_path / "in/bad/run.json"
    bad.parent.mkdir()
    bad.write_text("")
    output = tmp_path / "new/folder/index.html"
    ran = report(tmp_path / "in", "-o", output)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert [p.name for p in output.parent.iterdir()] == ["index.html"]
    (line,) = [line for line in ran.stderr.splitlines() if "the page lacks this record" in line]
    said("run-record", line, bad=bad)
    text = output.read_text(encoding="utf-8")
    assert said("record-could-read", text) and "per-process" in text
    assert f"<li>{bad}: not a run record" in text
    output.unlink()
    assert_one_message(report(tmp_path / "in", bad, "-o", output), "not a run record", str(bad))
    assert not output.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"finished": False}, "finished: True was expected"),
        ({"workload_sha256": "0" * 64}, "workload_sha256 is not the SHA-256"),
        ({"colour": "blue"}, "'colour' was unexpected"),
    ],
)
def test_a_bad_result_is_one_message(tmp_path: Path, change: Any, message: str) -> None:
    samples.write(samples.result(samples.per_process()) | change, tmp_path / "result.json")
    output = tmp_path / "index.html"
    output.write_text(before := "<title>Understudy: the page before")
    assert_one_message(report(tmp_path, "-o", output), message, "result.json")
    assert output.read_text() == before


def test_nothing_to_show_is_one_message(tmp_path: Path) -> None:
    assert_one_message(
        report(tmp_path), "no run.json and no result.json in this folder", str(tmp_path)
    )
    assert_one_message(report(tmp_path / "none"), "no such file or folder", "none")
    (tmp_path / "result.json").write_text("{")
    assert_one_message(report(tmp_path), "not a run record", "result.json")


def test_an_unwritable_target_is_one_message(tmp_path: Path) -> None:
    samples.write(samples.result(samples.per_process()), tmp_path / "result.json")
    (tmp_path / "file").write_text(json.dumps({}))
    ran = report(tmp_path / "result.json", "-o", tmp_path / "file/index.html")
    assert_one_message(ran, "cannot be written", "index.html")


def assert_one_message(ran: Result, *parts: str) -> None:
    assert ran.exit_code == 2
    assert ran.stdout == ""
    assert ran.stderr.startswith("understudy: ") and ran.stderr.count("\n") == 1
    for part in parts:
        assert part in ran.stderr


def test_a_page_of_many_dumps_has_its_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One measurement is parsed once, and neither tables nor figures grow with the dumps."""
    monkeypatch.setattr(values, "MAX_VALUES", 1000)
    monkeypatch.setattr(page, "MAX_ROWS", 100)
    count = values.MAX_VALUES + 1
    stream = samples.stream(
        "s", "output", [1000 + k for k in range(count)], [0.01 * k for k in range(count)]
    )
    path = samples.write(samples.result(samples.workload("w", [stream])), tmp_path / "result.json")
    calls = []
    parse = player.parse

    def counted(row: dict[str, Any], where: str) -> Any:
        calls.append(where)
        return parse(row, where)

    monkeypatch.setattr(player, "parse", counted)
    done = CliRunner().invoke(cli.main, ["show", str(path)])
    assert done.exit_code == 0 and len(calls) == 1
    done = report(path, "-o", tmp_path / "page.html")
    assert done.exit_code == 0 and len(calls) == 2
    text = (tmp_path / "page.html").read_text()
    said("first-rows", text, page_MAX_ROWS=page.MAX_ROWS, count=count)
    items = [unquote(data) for data in re.findall(r'href="data:text/csv[^,]*,([^"]*)"', text)]
    assert max(data.count("\n") for data in items) == values.MAX_VALUES + 2
    assert len(text) < 1000 * count, "some 100 bytes for each value and figure"
