"""The page of programs: cases of an application, pairs, winners, processes, figures, HTML."""

import re
import shutil
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pytest

from tests.support import results as samples
from tests.support.results import cases_in
from understudy.judge.statistics.conditions import Case
from understudy.paths import files, where
from understudy.report import figures, page
from understudy_skel import accuracy_rows

MIB = 2**20


def cases_of(folder: Path, rows: Iterable[dict[str, Any]]) -> list[Case]:
    for i, row in enumerate(rows):
        samples.write(row, folder / "results" / f"{i:03d}" / "result.json")
    return cases_in(folder / "results")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Case:
    (case,) = cases_in(samples.write_study(tmp_path_factory.mktemp("study")))
    return case


def test_an_application_and_its_skeletons_on_any_ranks_are_one_case(study: Case) -> None:
    assert study.programs and study.workload.name == "star"
    assert study.ranks == [4, 16, 64]
    assert study.places == ["sample:disk", "sample:memory"]
    assert len(study.conditions) == 2 * 3 * 3 * 4  # places, methods, ranks, arms
    assert study.process_bytes == [10 * MIB]


def test_another_application_is_another_case(tmp_path: Path) -> None:
    rows = [samples.program_result(name=name) for name in ("kernel-star", "kernel-torus")]
    cases = cases_of(tmp_path, [*rows, samples.result(samples.per_process())])
    assert [(c.workload.name, c.programs) for c in cases] == [
        ("per-process", False),
        ("star", True),
        ("torus", True),
    ]


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"ranks": 8}, "8 ranks"),
        ({"kind": "skeleton", "name": "star-restart"}, "skeleton"),
        ({"speeds": [1e8] * 3}, "3 steps"),
        ({"process_bytes": 5 * MIB}, "5242880 B a process"),
        ({"slow_rank": (1, 0.5)}, "rank 1 slow"),
        ({"collective_s": 0.5}, "extra collective"),
        ({"parameters": "stripe_count=8"}, "stripe_count=8"),
    ],
)
def test_what_programs_differ_in_tells_settings_apart(
    change: dict[str, Any], fact: str, tmp_path: Path
) -> None:
    (case,) = cases_of(tmp_path, [samples.program_result(), samples.program_result(**change)])
    assert len(case.conditions) == 2
    assert sum(fact in s.facts for s in case.conditions) == 1


def test_parameters_of_one_method_are_no_facts_of_another(tmp_path: Path) -> None:
    (case,) = cases_of(
        tmp_path,
        [
            samples.program_result(),
            samples.program_result(method="MPI_AMR", parameters="num_aggregators=1;x=2"),
            samples.program_result(method="MPI_AMR", parameters="num_aggregators=2,x=2"),
        ],
    )
    assert sorted(s.label for s in case.conditions) == [
        "MPI_AMR num_aggregators=1",
        "MPI_AMR num_aggregators=2",
        "POSIX",
    ]


def test_series_join_what_has_the_same_ranks_for_an_aggregator(tmp_path: Path) -> None:
    rows = [samples.program_result(ranks=n) for n in (2, 8, 16)]
    for n, many in ((2, 1), (8, 2), (16, 4), (16, 1)):
        rows.append(
            samples.program_result(ranks=n, method="MPI_AMR", parameters=f"num_aggregators={many}")
        )
    (case,) = cases_of(tmp_path, rows)
    series = accuracy_rows.series(case.conditions)
    assert {name: [s.ranks for s in same] for name, same in series.items()} == {
        "MPI_AMR": [16],
        "MPI_AMR, 1 aggregator for 4": [2, 8, 16],
        "POSIX": [2, 8, 16],
    }


def test_pairs_are_made_in_the_order_of_time(tmp_path: Path) -> None:
    """Both programs slow down from pair to pair; the file names say nothing of the order."""
    rows = []
    for pair in (2, 0, 3, 1):
        for kind, name, gain in (
            ("skeleton", "star-restart", 1.0),
            ("application", "kernel-star", 1.0),
        ):
            rows.append(
                samples.program_result(
                    name=name,
                    kind=kind,
                    speeds=[1e8 / (1 + pair // 2) * gain] * 2,
                    started=f"2026-01-01T00:0{pair}:00Z",
                )
            )
    (case,) = cases_of(tmp_path, rows)
    (row,) = accuracy_rows.accuracies(case)
    assert (row.rounds, row.unpaired) == (2, 0)
    for error in row.errors.values():  # in any other order the intervals were wide
        assert error.error.reach < 1e-6 and error.floor < 1e-6


def test_accuracy_of_each_case_is_judged_by_its_interval(study: Case) -> None:
    rows = list(accuracy_rows.accuracies(study))
    assert len(rows) == 2 * 3 * 3
    states = {(r.skeleton.method, r.skeleton.ranks): r.state for r in rows}
    assert {(r.rounds, r.unpaired) for r in rows} == {(12, 0)}
    assert states.pop(("MPI_LUSTRE", 4)) == "outside"
    assert set(states.values()) == {"within"}
    counted = accuracy_rows.share(rows)
    assert counted is not None
    assert counted.cases == 18
    assert counted.states == {"within": 16, "undecided": 0, "outside": 2}
    assert counted.by_value == {"average": 16, "maximum": 16} and counted.compared == 18


def test_a_round_without_a_control_is_left_out(tmp_path: Path) -> None:
    samples.write_study(tmp_path, rounds=4, ranks=(16,), places=1)
    for folder in list(tmp_path.rglob("skeleton-control/03")):
        shutil.rmtree(folder)
    (case,) = cases_in(tmp_path)
    rows = list(accuracy_rows.accuracies(case))
    assert {(row.rounds, row.unpaired) for row in rows} == {(3, 3)}


def test_unequal_numbers_of_runs_are_not_compared(tmp_path: Path) -> None:
    rows = [
        samples.program_result(started="2026-01-01T00:00:01Z"),
        samples.program_result(started="2026-01-01T00:00:02Z"),
        samples.program_result(name="star-restart", kind="skeleton"),
    ]
    (case,) = cases_of(tmp_path, rows)
    (row,) = accuracy_rows.accuracies(case)
    assert not row.errors
    assert row.reason.startswith("2 runs of the application and 1 of the skeleton make no pairs")
    counted = accuracy_rows.share([row])
    assert counted is not None and counted.states["undecided"] == counted.cases == 1
    assert f"not compared: {row.reason}" in text_of(page.render([case]))


def test_runs_of_other_lengths_are_settings_of_their_own(tmp_path: Path) -> None:
    once = samples.program_result(name="star-restart", kind="skeleton")
    again = once["repetitions"][0] | {"repetition": 1}
    twice = {**once, "repetitions": [*once["repetitions"], again]}
    twice["options"] = once["options"] | {"repetitions": 2}
    (case,) = cases_of(tmp_path, [once, twice, samples.program_result()])
    assert len(case.conditions) == 3
    (row,) = accuracy_rows.accuracies(case)
    assert row.reason.startswith("one run of each") and row.skeleton.repetitions == 1
    assert "<svg" in page.render([case])


@pytest.mark.parametrize(("more", "rows"), [(200, 1), (300, 0)])
def test_a_skeleton_may_pause_and_have_a_few_scalars_more(
    more: int, rows: int, tmp_path: Path
) -> None:
    skeleton = samples.program_result(
        name="star-restart", kind="skeleton", process_bytes=10 * MIB + more
    )
    skeleton["program"]["pause_s"] = 2
    application = samples.program_result(process_bytes=10 * MIB)
    (case,) = cases_of(tmp_path, [skeleton, application])
    assert len(case.conditions) == 2
    assert len(list(accuracy_rows.accuracies(case))) == rows


def test_the_fastest_method_of_each_place_and_number_of_ranks(study: Case) -> None:
    winners = {(r.place, r.kind, r.ranks): r.winner for r in accuracy_rows.winners(study)}
    assert len(winners) == 2 * 2 * 3
    assert {w.name for w in winners.values()} == {"POSIX"}
    assert all(
        w.decided and w.second == "MPI_AMR, 1 aggregator for 4"
        for key, w in winners.items()
        if key[2] > 4
    )


def test_a_run_with_a_fault_wins_nothing(tmp_path: Path) -> None:
    rows = [
        samples.program_result(),
        samples.program_result(method="MPI_AMR", speeds=[1e12] * 2, slow_rank=(0, 1e-9)),
    ]
    (case,) = cases_of(tmp_path, rows)
    assert list(accuracy_rows.winners(case)) == []


def test_processes_stand_in_the_order_of_their_totals(tmp_path: Path) -> None:
    row = samples.program_result(ranks=8, speeds=[1e9] * 3, slow_rank=(5, 0.25))
    (case,) = cases_of(tmp_path, [row])
    parts = accuracy_rows.parts(case.conditions[0])
    assert parts.ranks[-1] == 5
    assert (np.diff(parts.total_s) >= 0).all()
    assert parts.io_s[-1] - parts.io_s[0] == pytest.approx(0.25)
    assert parts.communication_s[-1] == pytest.approx(parts.communication_s[0])


def test_a_typical_step_is_the_one_of_median_duration(tmp_path: Path) -> None:
    (case,) = cases_of(tmp_path, [samples.program_result(speeds=[4e8, 1e8, 2e8])])
    parts = accuracy_rows.parts(case.conditions[0])
    assert parts.total_s.max() == pytest.approx(4 * 10 * MIB / 2e8)


def heights(case: Case) -> dict[str, float]:
    """Largest and smallest height of each part in the picture of processes."""
    drawer = next(d for d in figures.drawers() if d.name == "processes")
    figure = drawer.draw(case)
    assert figure is not None
    below = np.zeros(2)
    part_heights = {}
    names = ("communication", "io", "rest")
    areas = [c for c in figure.axes[0].collections if len(c.get_paths()[0].vertices) > 4]
    for name, area in zip(names, areas, strict=False):
        top = area.get_paths()[0].vertices[:, 1]
        part_heights[name] = float(top.max() - below.max())
        below = np.array([0, top.max()])
    return part_heights


def test_a_slow_rank_and_a_collective_are_seen_in_the_picture(tmp_path: Path) -> None:
    faults: dict[str, Any] = {
        "calm": {},
        "slow": {"slow_rank": (3, 2.0)},
        "together": {"collective_s": 2.0},
    }
    heights_by_fault = {}
    for name, fault in faults.items():
        row = samples.program_result(ranks=80, speeds=[1e10], **fault)
        heights_by_fault[name] = heights(cases_of(tmp_path / name, [row])[0])
    calm, slow, together = heights_by_fault.values()
    assert slow["io"] / slow["communication"] > 3 * calm["io"] / calm["communication"]
    assert together["communication"] / together["io"] > 3 * calm["communication"] / calm["io"]


def test_the_picture_names_the_process_that_waits_most_for_storage(tmp_path: Path) -> None:
    """Others may have waited for it, and have the same total."""
    row = samples.program_result(ranks=8, slow_rank=(3, 0.5))
    for dump in row["repetitions"][0]["streams"][0]["dumps"]:
        processes = dump["processes"]
        longest = max(processes["total_s"])
        for rank in set(range(8)) - {3}:
            processes["communication_s"][rank] += longest - processes["total_s"][rank] + 1e-3
            processes["total_s"][rank] = longest + 1e-3
    (case,) = cases_of(tmp_path, [row])
    drawer = next(d for d in figures.drawers() if d.name == "processes")
    figure = drawer.draw(case)
    assert figure is not None
    assert figure.axes[0].get_title(loc="right") == "most I/O: rank 3"


@pytest.mark.parametrize("name", list(files("figures", ".py")))
def test_every_figure_bears_a_case_of_programs(name: str, study: Case) -> None:
    drawer = next(d for d in figures.drawers() if d.name == name)
    if drawer.of != figures.WORKLOAD:
        return  # never given a case
    drawn = figures.svg(drawer, study)
    for_programs = name in ("throughput", "processes", "phases", "repetitions")
    assert (drawn is not None) == for_programs


def test_figures_of_programs_bear_one_run_and_many_ranks(tmp_path: Path) -> None:
    alone = [samples.program_result(ranks=1, speeds=[1e8])]
    crowd = [
        samples.program_result(ranks=n, method=f"METHOD_{m}", speeds=[1e8])
        for n in (1, 3000)
        for m in range(6)
    ]
    for i, rows in enumerate((alone, crowd)):
        (case,) = cases_of(tmp_path / str(i), rows)
        assert "<svg" in page.render([case])


def test_a_figure_of_many_methods_leaves_space_for_its_legend(tmp_path: Path) -> None:
    rows = [samples.program_result(method=f"METHOD_{m}", ranks=1) for m in range(60)]
    (case,) = cases_of(tmp_path, rows)
    drawer = next(d for d in figures.drawers() if d.name == "throughput")
    with warnings.catch_warnings(), matplotlib.rc_context(fname=str(where("style"))):
        warnings.simplefilter("error")
        figure = drawer.draw(case)
        assert figure is not None
        figure.draw_without_rendering()


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_the_page_tells_errors_winners_and_nothing_of_a_descriptor(study: Case) -> None:
    text = text_of(page.render([study]))
    assert "16 of 18 cases within 10 %, 2 outside, 0 undecided" in text
    assert "16 of 18 errors of the average and 16 of 18 errors of the maximum" in text
    assert "application against itself" in text and "skeleton against itself" in text
    assert "POSIX wins" in text
    assert "What the descriptor states" not in text and "Provenance" not in text
    assert "skeleton" in text and "application" in text
