"""The head of the page: the verdict over all cases, filters, the data of figures, many cases."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from matplotlib.figure import Figure

from tests.support import results as samples
from tests.support.said import raises, said
from understudy import producers
from understudy.contracts.run import Identity, Place, write
from understudy.errors import UnderstudyError
from understudy.judge.page import file_system_speeds, headline, last_two_sessions, matrix, summary
from understudy.judge.page.benchmarks import Row
from understudy.judge.statistics import conditions, metrics, pooling
from understudy.judge.statistics.conditions import Case, Failed
from understudy.model.scaling import scale
from understudy.paths import files
from understudy.program.instructions import Compute, Occurrence
from understudy.records import reports
from understudy.report import figures, page, values
from understudy.report.book import Book
from understudy.report.colours import place_colour
from understudy.units import rate


def played(
    folder: Path,
    name: str,
    *,
    partition: str = "disk",
    session: str | None = None,
    failure: str | None = None,
    asked: dict[str, Any] | None = None,
    case: str = "case",
    of: Any = None,
    **options: Any,
) -> None:
    """A run with its record, in a folder of its own."""
    row = samples.result(of or samples.per_process(), **options)
    here = folder / name
    record = producers.record(
        samples.write(row, here / "result.json"),
        place=Place(system="sample", partition=partition, environment="gnu"),
        identity=Identity(session=session, case=case),
        asked=asked,
        failure=failure,
        exit_status=1 if failure else 0,
    )
    write(here / "run.json", record)


def load(folder: Path) -> tuple[list[Case], list[Failed]]:
    measured, failed = conditions.load(producers.find([folder]))
    return conditions.group(measured), failed


def test_every_case_counts_once(tmp_path: Path) -> None:
    played(tmp_path, "good", case="a")
    played(tmp_path, "open", case="b", method="mpiio", verify=False)
    played(tmp_path, "off", case="c", method="hdf5", lost_bytes=30 << 20)
    played(tmp_path, "bad", case="d", seed=9, failure="no space left")
    cases, failed = load(tmp_path)
    whole = summary.summarize(cases, failed)
    said("replicas-bytes-original-within", whole.counts)
    assert [c.state for c in whole.cases] == ["failed", "fail", "undecided", "pass"]
    said("no-space-left", whole.cases[0].why)
    (system,) = file_system_speeds.places(whole.cases)
    assert (system.place, system.cases) == ("sample:disk", 4)
    text = page.render(cases, failed)
    assert text.index(f"{whole.counts}.") < text.index("<table") and "Do next" in text
    ((why, [worst]), _) = whole.reasons
    assert said("no-space-left", why) and worst is whole.cases[0]


def test_a_failed_run_makes_its_case_a_failed_one(tmp_path: Path) -> None:
    played(tmp_path, "good", session="1", seed=1)
    played(tmp_path, "bad", session="2", seed=2, failure="killed")
    whole = summary.summarize(*load(tmp_path))
    said("replica-bytes-original-within", whole.counts)
    said("runs-failed-killed", whole.cases[0].why)


@pytest.mark.parametrize("scaled", ["weak", "strong", "bytes", ""])
def test_the_original_s_speed_is_not_compared_with_a_scaled_replica(
    tmp_path: Path, scaled: str
) -> None:
    """Its durations are those of other ranks and bytes."""
    workload_ = samples.per_process()
    if scaled in ("weak", "strong"):
        workload_ = scale(workload_, 2, scaled)
    for repetition in (1, 2):
        options = {"bytes_scale": 0.01} if scaled == "bytes" else {}
        played(tmp_path, f"{repetition}", of=workload_, session=f"{repetition}", **options)
    cases, failed = load(tmp_path)
    text = page.render(cases, failed)
    assert ("times the originals' speed" in text) == (not scaled)
    (condition,) = cases[0].conditions
    assert bool(metrics.original_bandwidth(condition, "dump")) == (not scaled)
    lines = {row["series"] for row in table(drawer("bandwidth").draw(cases[0]))}
    assert any("original" in line for line in lines) == (not scaled), lines


def nights(folder: Path, count: int, speed: float, first: int = 1) -> None:
    for i in range(first, first + count):
        started = f"2026-01-{i:02d}T01:00:00Z"
        played(folder, f"{i}", session=f"night-{i}", seed=i, speed=speed, started=started)


def test_sessions_before_and_after_a_change_are_not_pooled(tmp_path: Path) -> None:
    nights(tmp_path, 6, 1.0)
    nights(tmp_path, 6, 0.25, first=7)
    cases, failed = load(tmp_path)
    (case,) = pooling.apart(cases)
    assert [len(c.runs) for c in case.conditions] == [6, 6]
    speeds = [metrics.verdict(c).write for c in case.conditions]
    assert speeds[0] and speeds[1] and speeds[0].low > 2 * speeds[1].high
    whole = summary.summarize([case], failed)
    assert whole.counts == ""
    said("condition-changed-between-sessions", whole.divided)
    text = page.render([case], failed)
    assert whole.divided in text and "sessions 7 to 12" in text


def test_two_sessions_that_differ_are_told(tmp_path: Path) -> None:
    nights(tmp_path, 1, 1.0)
    nights(tmp_path, 1, 0.1, first=2)
    cases, failed = load(tmp_path)
    changes = last_two_sessions.changes(cases)
    assert changes is not None and (changes.conditions, changes.changed) == (1, 1)
    (row,) = changes.shown
    assert len(row.values) == 2 and -0.95 < row.change < -0.85
    assert changes.places == (("sample:disk", 1, 0, 1, row.change, "2026-01-02"),)
    text = page.render(cases, failed)
    assert "slower since 2026-01-02" in re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", text))
    assert row.points not in text
    whole = summary.summarize(pooling.apart(cases), failed)
    said("condition-changed-between-sessions-2", whole.divided)


def test_a_slower_restart_and_the_largest_loss_are_told(tmp_path: Path) -> None:
    for night, speed in ((1, 1.0), (2, 0.02)):
        started = f"2026-01-0{night}T01:00:00Z"
        played(tmp_path, f"w{night}", session=f"{night}", speed=speed, started=started)
    for k in range(8):  # gains that are larger as a share, and smaller as a ratio
        for night, speed in ((1, 1.0), (2, 3.0)):
            more = {"method": "mpiio", "seed": k, "transfer_bytes": 1 << (20 + k)}
            started = f"2026-01-0{night}T01:00:00Z"
            played(
                tmp_path, f"{k}{night}", session=f"{night}", speed=speed, started=started, **more
            )
    cases, _ = load(tmp_path)
    changes = last_two_sessions.changes(cases)
    assert changes is not None and changes.changed == 9
    assert changes.shown[0].change < -0.9 and changes.shown[0].days == ("2026-01-01", "2026-01-02")


def test_a_failed_run_counts_for_the_condition_that_it_is_nearest_to(tmp_path: Path) -> None:
    """Two versions of MPI are two conditions of one case."""
    for k, (mpi, failure) in enumerate((("MPI 4", None), ("MPI 5", None), ("MPI 5", "it broke"))):
        row = samples.result(samples.per_process(), seed=k)
        row["environment"]["mpi"] = mpi
        place = Place(system="sample", partition="disk", environment="gnu")
        path = samples.write(row, tmp_path / str(k) / "result.json")
        record = producers.record(
            path, place=place, identity=Identity(case="a"), failure=failure, exit_status=k // 2
        )
        write(tmp_path / str(k) / "run.json", record)
    cases, failed = load(tmp_path)
    whole = summary.summarize(cases, failed)
    assert len(failed) == 1 and [c.state for c in whole.cases] == ["failed", "pass"]
    assert "MPI 5" in whole.cases[0].label and "MPI 4" in whole.cases[1].label


def test_a_run_that_moved_nothing_has_no_speed(tmp_path: Path) -> None:
    whole = samples.per_process().streams[0].steps[0].bytes
    for night in (1, 2):
        started = f"2026-01-0{night}T01:00:00Z"
        played(tmp_path, str(night), session=str(night), lost_bytes=whole, started=started)
    cases, failed = load(tmp_path)
    assert "sample:disk" in page.render(pooling.apart(cases), failed)


def test_what_is_to_be_copied_is_quoted() -> None:
    whole = summary.Summary(cases=(judged("a", "$(x); y:disk", summary.FAILED),))
    said("records-list-failed-system", whole.next_steps()[0][1])


def test_what_was_skipped_stands_with_its_reason(tmp_path: Path) -> None:
    played(tmp_path / "in", "good", case="a")
    cases, failed = load(tmp_path / "in")
    skipped = [("Replay a", "needs 512 nodes"), ("Replay b", "needs 512 nodes"), ("c", "<b>")]
    whole = summary.summarize(cases, failed, skipped=skipped)
    assert whole.not_run == 3 and whole.skipped[0] == ("needs 512 nodes", ("Replay a", "Replay b"))
    text = page.render(cases, failed, skipped=skipped)
    assert said("needs-nodes-cases", text) and "&lt;b&gt;" in text and 'href="#skipped"' in text


DEEP = "[" * 200_000 + "]" * 200_000


@pytest.mark.parametrize("text", ["{", "[]", '{"runs": [{}]}', '{"runs": 1}', DEEP])
def test_a_report_that_is_none_of_reframe_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    path.write_text(text)
    with raises(UnderstudyError, "expected-report-reframe"):
        reports.load(path)


def test_a_report_of_another_session_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    case = {"display_name": "Replay", "partition": "disk", "result": "skip", "skip_reason": "why"}
    row = {"session_info": {"uuid": "night-1"}, "runs": [{"testcases": [case]}]}
    path.write_text(json.dumps(row))
    result = reports.load(path, {"night-1", None})
    assert reports.skipped(result) == [("Replay on disk", "why")]
    with raises(UnderstudyError, "session-night"):
        reports.load(path, {"night-2"})


@pytest.mark.parametrize(
    ("state", "more", "command"),
    [
        (summary.FAILED, {}, "understudy records list --failed --system s"),
        (summary.FAIL, {}, "understudy report RECORDS --workload a"),
        (summary.PASS, {"cached": frozenset({"write"})}, "understudy run --mode accept"),
        (summary.UNDECIDED, {"kind": "skeleton"}, "-S rounds=24"),
        (summary.UNDECIDED, {}, "-S verify=1"),
    ],
)
def test_there_is_one_command_to_do_next(state: str, more: dict[str, Any], command: str) -> None:
    whole = summary.Summary(cases=(judged("a", "s:disk", state, **more),))
    ((_, shown),) = whole.next_steps()
    assert command in shown
    assert summary.Summary(cases=(judged("a", "s:disk", summary.PASS),)).next_steps() == []


def test_after_the_mode_accept_it_is_not_advised(tmp_path: Path) -> None:
    """What the page cache can have served then needs something else."""
    for name, flushed in (("before", False), ("after", True)):
        played(tmp_path / name, "run", fsync=flushed)
        cases, _ = load(tmp_path / name)
        (whole,) = summary.summarize(cases).cases
        assert whole.verdict is not None
        cached = frozenset({"write"})
        verdict = replace(whole.verdict, cached=cached, remedies=("move more; or wait",))
        whole_ = summary.Summary(cases=(replace(whole, verdict=verdict, cached=cached),))
        assert whole_.flushed == flushed and whole_.remedies == ["move more", "or wait"]
        assert (not whole_.next_steps()) == flushed


def test_places_are_compared_by_the_cases_that_both_have() -> None:
    fast, slow = (metrics.spread([speed]) for speed in (2e9, 1e8))
    whole = summary.Summary(
        cases=(
            judged("a", "s:disk", summary.PASS, write=slow),
            judged("a", "s:ram", summary.PASS, write=fast),
            judged("b", "s:disk", summary.PASS, write=fast),
            judged("c", "s:ram", summary.PASS, write=fast, cached=frozenset({"write"})),
            judged("a", "s:tmpfs", summary.PASS, write=fast, in_memory=True),
        )
    )
    first, second, memory = file_system_speeds.places(whole.cases)
    assert (first.place, first.slower) == ("s:ram", None)
    assert second.slower == (20.0, 1)
    assert (memory.place, memory.slower) == ("s:tmpfs", (1.0, 1))


def test_computing_in_a_dump_is_not_in_its_rate(tmp_path: Path) -> None:
    """Not of the replica, nor of the original, whose dump lasts a second of which it computes."""
    row = samples.result(samples.per_process())
    for repetition in row["repetitions"]:
        for dump in (d for s in repetition["streams"] for d in s["dumps"]):
            for phase in (p for p in dump["phases"] if p["phase"] == "close"):
                phase["first_start_s"] += 1.0
                phase["last_end_s"] += 1.0
    samples.write(row, tmp_path / "result.json")
    ((case,), _) = load(tmp_path)
    (condition,) = case.conditions
    verdict = metrics.verdict(condition)
    assert verdict.write and verdict.elapsed[0] and verdict.write.low > 2 * verdict.elapsed[0].high
    text = page.render([case])
    said("from-open-close", text, median=rate(verdict.elapsed[0].median))
    first = samples.per_process().streams[0].steps[0]
    dump = replace(first, duration_s=1.5, body=(*first.body, Compute(1.0)))
    assert Occurrence(0.0, dump.bytes, dump).io_s == 0.5


def told(
    cases: list[summary.Judged], changes: last_two_sessions.Changes | None = None
) -> list[str]:
    whole = summary.Summary(cases=tuple(cases))
    return headline.headline(whole, file_system_speeds.places(cases), changes)


def test_the_first_sentence_is_how_fast_storage_is() -> None:
    """Of what storage served, by the names of a person; bytes that are right are no news."""
    slow, fast = metrics.spread([1 << 27]), metrics.spread([1 << 29])
    cached = {"write": fast, "cached": frozenset({"write"})}
    row = ("s:disk", 3, 0, 8, -0.31, "2026-11-12")
    moved = last_two_sessions.Recent(
        name="a", place="s:disk", label="", operation="write", values=(2.0, 1.0)
    )
    whole = told(
        [
            judged("a", "s:disk", summary.PASS, write=fast),
            judged("b", "s:disk", summary.PASS, write=slow),
            judged("c", "s:disk", summary.PASS, **cached),
            judged("b", "s:scratch", summary.PASS, write=metrics.spread([1 << 26])),
            judged("a", "s:ram", summary.PASS, write=fast, in_memory=True),
        ],
        last_two_sessions.Changes(conditions=8, every=(moved,) * 3, places=(row,)),
    )
    assert whole == [
        "disk writes a, b at 128 to 512 MiB/s, 2 times scratch; slower since 2026-11-12 by 31 % "
        "(3 of 8 figures); speeds of 1 workload may be of the cache.",
        "scratch writes b at 64.0 MiB/s.",
    ]
    (only,) = told([judged("c", "s:disk", summary.PASS, **cached)])
    said("nothing-here-measured-storage", only)


@pytest.mark.parametrize("scaled", [1.0, 0.5])
def test_i_o_time_of_an_application_is_told(tmp_path: Path, scaled: float) -> None:
    """Of a replica that plays it as it was, and not of one that is scaled."""
    plain = samples.per_process()
    log = replace(plain, source=replace(plain.source, format="darshan"))
    for seed in range(2):
        row = samples.result(log, seed=seed, bytes_scale=scaled)
        row["options"]["method"] = None
        samples.write(row, tmp_path / str(seed) / "result.json")
    whole = summary.summarize(*load(tmp_path))
    lines = headline.headline(whole, file_system_speeds.places(whole.cases), None)
    assert any(re.match(f"{log.name}: .*s of I/O on ", line) for line in lines) == (scaled == 1)


def test_requests_that_are_not_played_are_told_beside_the_verdict(tmp_path: Path) -> None:
    plain = samples.per_process()
    note = "500 of 502 requests (reads, writes and asynchronous ones) are not played."
    lacks = replace(plain, source=replace(plain.source, notes=("Other.", note)))
    samples.write(samples.result(lacks), tmp_path / "result.json")
    whole = summary.summarize(*load(tmp_path))
    lines = headline.headline(whole, file_system_speeds.places(whole.cases), None)
    assert said("requests-left-out", "\n".join(lines), workload=plain.name)
    other = replace(plain, source=replace(plain.source, notes=(f"{note} More.",)))
    assert other.source.requests_left_out == ""


def test_nothing_is_a_verdict_too() -> None:
    whole = summary.summarize([])
    assert whole.cases == () and headline.headline(whole, [], None) == ["No case was judged."]


def test_the_page_is_filtered_by_what_differs(tmp_path: Path) -> None:
    for method in ("posix", "mpiio"):
        for seed, partition in enumerate(("disk", "memory")):
            played(tmp_path, method + partition, method=method, partition=partition, seed=seed)
    text = page.render(load(tmp_path)[0])
    assert 'id="by-method"' in text and 'id="by-system"' not in text
    rows = re.findall(r'<tr(?: id="[a-z-]+")? data-method="([01])">', text)
    assert sorted(rows) == ["0", "0", "1", "1"]
    assert '<section id="per-process-' in text and re.search(r'<section [^>]*="0 1">', text)
    assert text.count(":not([data-method~=") == 2


def test_of_many_cases_the_worst_are_shown_in_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = samples.stream("dump", "output", [1 << 20], [0.0], method="posix")
    for k in range(6):
        workload_ = samples.workload(f"made-{k}", [stream])
        played(tmp_path, str(k), of=workload_, lost_bytes=(1 << 19) * (k == 4))
    cases, _ = load(tmp_path)
    text = page.render(cases, in_full=1)
    said("workloads-shown-full", text)
    drawn = set(re.findall(r'<figure id="(made-\d)', text))
    assert drawn == {"made-4"}
    assert len(page.render(cases, in_full=0)) < len(text) * 2 / 3
    monkeypatch.setattr(page, "FIGURE_BYTES", 1)  # of which the first takes more
    assert page.render(cases, in_full=6) == text


def table(figure: Figure | None) -> list[dict[str, str]]:
    assert figure is not None
    return list(csv.DictReader(io.StringIO(values.csv_of(figure))))


def drawer(name: str) -> figures.Drawer:
    (figure_,) = figures.drawers([files("figures", ".py")[name]])
    return figure_


def test_the_data_of_a_figure_are_its_values(tmp_path: Path) -> None:
    played(tmp_path, "one", repetitions=3, of=samples.growing())
    (case,) = load(tmp_path)[0]
    rows = table(drawer("bandwidth").draw(case))
    speeds = [float(r["y"]) for r in rows if r["panel"] == "checkpoint" and r["y axis"]]
    assert speeds and all(r["x"] and r["y"] for r in rows)
    text = page.render([case])
    (link,) = re.findall(r'download="[^"]*-bandwidth.csv" href="data:text/csv[^,]*,([^"]*)"', text)
    assert unquote(link).startswith(",".join(values.HEAD))


def test_no_cell_is_a_formula() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.set_title("=cmd()\x1b")
    axes.bar([0, 1], [2, 3])
    axes.set_xticks([0, 1], ["@a", "plain"])
    rows = table(figure)
    assert rows[0]["panel"] == "'=cmd()\\x1b"
    assert [r["x"] for r in rows] == ["'@a", "plain"]


def test_stripes_and_aggregators(tmp_path: Path) -> None:
    for stripes in (1, 4):
        for count in ("1", "2"):
            asked = {"stripe_count": stripes, "hints": {"cb_nodes": count}}
            for seed in (1, 2):
                played(
                    tmp_path,
                    f"{stripes}{count}{seed}",
                    asked=asked,
                    session=str(seed),
                    seed=int(f"{stripes}{count}{seed}"),
                    speed=stripes,
                )
    (case,) = load(tmp_path)[0]
    rows = table(drawer("stripes").draw(case))
    assert {r["x"] for r in rows} >= {"1", "4"}
    rows = table(drawer("heatmap").draw(case))
    best = max(
        (r for r in rows if r["series"].startswith("value")),
        key=lambda r: float(r["series"].split()[1]),
    )
    assert best["x"] == "4"
    assert drawer("history").draw(case) is not None


def test_places_of_a_history_share_an_axis_that_shows_all(tmp_path: Path) -> None:
    for seed, (partition, speed) in enumerate((p, s) for p, s in (("a", 1), ("b", 9)) * 2):
        played(tmp_path, str(seed), partition=partition, session=str(seed), seed=seed, speed=speed)
    (case,) = load(tmp_path)[0]
    figure = drawer("history").draw(case)
    assert figure is not None and len(figure.axes) == 2
    for axes in figure.axes:
        highest = max(float(v) for line in axes.get_lines() for v in line.get_ydata())
        assert 0 == axes.get_ylim()[0] < highest < axes.get_ylim()[1]


def test_figures_of_one_setting_are_left_out(tmp_path: Path) -> None:
    played(tmp_path, "one")
    (case,) = load(tmp_path)[0]
    for name in ("stripes", "heatmap", "history"):
        assert drawer(name).draw(case) is None
    for name in ("weak", "beside"):
        assert drawer(name).draw(Book(cases=[case])) is None


def test_checkpoints(tmp_path: Path) -> None:
    played(tmp_path, "a", of=samples.growing())
    (case,), _ = load(tmp_path)
    rows = table(drawer("checkpoints").draw(case))
    assert {r["y axis"].partition(" ")[0] for r in rows} >= {"payload"}
    assert {r["series"] for r in rows} >= {"posix"}


def test_a_place_has_one_colour_in_figures_and_tables(tmp_path: Path) -> None:
    for seed, place in enumerate(("a", "b") * 2):
        workload_ = samples.workload(
            "made", [samples.stream("d", "output", [9], [0.0], method="posix")]
        )
        played(tmp_path, str(seed), partition=place, session=f"{seed}", seed=seed, of=workload_)
    (case,) = load(tmp_path)[0]
    figure = drawer("history").draw(case)
    assert figure is not None
    for axes in figure.axes:
        name = axes.get_title("left") or axes.get_title()
        drawn = {axes._left_title.get_color(), axes.title.get_color()}
        assert place_colour(name, case.everywhere) in drawn, name
        assert page.render([case]).count(place_colour(name, case.everywhere)) >= 2
    assert len({place_colour(place, case.everywhere) for place in case.everywhere}) == 2


def test_the_profile_has_the_original_beside_what_was_measured(tmp_path: Path) -> None:
    row = samples.result(samples.growing())
    for stream in row["repetitions"][0]["streams"]:
        for dump in stream["dumps"]:
            dump["files"] = 7
    samples.write(row, tmp_path / "result.json")
    ((case,), _) = load(tmp_path)
    rows = table(drawer("profile").draw(case))
    dumps = [d for s in case.workload.streams for d in s.expanded()]
    items = [(r["panel"], r["x"], float(r["y"])) for r in rows]
    files = [y for panel, _, y in items if panel == "files"]
    assert sum(files) >= 7 * len(dumps) > 0, items
    panels = {panel for panel, _, y in items if y}
    assert panels == {"time in I/O (%)", "data calls, bytes up to", "operations", "files"}
    sizes = [y for panel, _, y in items if panel == "data calls, bytes up to"]
    moved = [y for panel, x, y in items if panel == "operations" and x in ("read", "write")]
    assert sum(sizes) == sum(moved)


def test_figures_of_a_page(tmp_path: Path) -> None:
    stream = samples.stream("dump", "output", [1 << 20], [0.0], method="posix")
    for ranks in (4, 16):
        name = "made" if ranks == 4 else f"made-weak-{ranks}"
        played(tmp_path, name, of=samples.workload(name, [stream], ranks=ranks))
    cases = load(tmp_path)[0]
    low_to_high = metrics.spread([1e8, 2e8, 3e8])
    assert low_to_high is not None
    ior = Row(
        benchmark="ior-easy",
        place="sample:disk",
        ranks=4,
        condition="x",
        operation="write",
        unit="bytes/s",
        values=low_to_high,
    )
    book = Book(cases=cases, beside=[ior])
    assert {r["x"] for r in table(drawer("weak").draw(book))} >= {"4", "16"}
    assert "ior-easy" in {r["y"] for r in table(drawer("beside").draw(book))}
    text = page.render(cases, beside=[ior])
    assert 'id="page-weak"' in text and 'id="page-beside"' in text


@pytest.mark.parametrize("wanted", ["posix", "mpiio"])
def test_runs_are_chosen_by_method(tmp_path: Path, wanted: str) -> None:
    for method in ("posix", "mpiio"):
        played(tmp_path, method, method=method)
    measured, _ = conditions.load(producers.find([tmp_path]))
    chosen = conditions.Chosen(methods=(wanted,))
    assert [conditions.method_of(m) for m in measured if chosen.has(m.run)] == [wanted]


# -- the matrix -----------------------------------------------------------------------------------


def judged(name: str, place: str, state: str, **more: Any) -> summary.Judged:
    return summary.Judged(
        name=name, place=place, method="posix", label="posix", state=state, why="", **more
    )


def test_a_cell_of_the_matrix_is_the_worst_of_its_cases() -> None:
    fast, slow = (metrics.spread([speed]) for speed in (2e9, 1e8))
    whole = matrix.matrix(
        [
            judged("b", "s:disk", summary.FAILED),
            judged("a", "s:disk", summary.PASS, write=slow),
            judged("b", "s:disk", summary.PASS, write=slow),
            judged("b", "s:ram", summary.PASS, write=fast, cached=frozenset({"write"})),
        ]
    )
    assert whole is not None
    assert whole.places == (("s:disk", ("posix",)), ("s:ram", ("posix",)))
    (worst, (failed, cached)), (other, (plain, absent)) = whole.rows
    assert (worst, other, absent) == ("b", "a", None)
    assert failed and failed.worst.state == summary.FAILED and failed.speed is None
    assert cached and cached.cached and cached.speed == ("write", 2e9)
    assert plain and not plain.cached and plain.speed == ("write", 1e8)


def test_a_method_has_one_column_whatever_its_options() -> None:
    tuned = replace(judged("a", "s:disk", summary.FAIL), label="posix cb_write=enable")
    whole = matrix.matrix(
        [tuned, judged("a", "s:disk", summary.PASS), judged("b", "s:disk", summary.PASS)]
    )
    assert whole is not None and whole.places == (("s:disk", ("posix",)),)
    (_, (worst,)), _ = whole.rows
    assert worst and worst.worst is tuned and len(worst.cases) == 2


def test_a_matrix_of_one_case_is_no_picture() -> None:
    assert matrix.matrix([]) is matrix.matrix([judged("a", "s:disk", summary.PASS)]) is None


def test_speeds_of_the_cache_set_no_range(tmp_path: Path) -> None:
    """They are counted beside those of storage, and the page says what would avoid them."""
    fast, slow = (metrics.spread([speed]) for speed in (2e9, 1e8))
    whole = summary.Summary(
        cases=(
            judged("a", "s:disk", summary.PASS, write=slow),
            judged("b", "s:disk", summary.PASS, write=fast, cached=frozenset({"write"})),
        )
    )
    (system,) = file_system_speeds.places(whole.cases)
    assert system.speeds["write"] == slow and system.left_out == {"write": {"b": "b"}, "read": {}}
    assert whole.cached == 1


def test_the_first_screen_has_all_counts_and_the_date(tmp_path: Path) -> None:
    played(tmp_path, "good", session="night", started="2026-01-02T01:00:00Z")
    played(tmp_path, "bad", case="d", seed=9, failure="no space left")
    text = page.render(*load(tmp_path))
    first = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text.partition("<section")[0]))
    assert "1 ✗ failed 1 ✓ within" in first and "0 ✗" not in first
    assert 'href="#cases-failed"' in text and 'id="cases-failed"' in text
    assert re.search(r"Measured 20\d\d-\d\d-\d\d.* on sample", first)
