"""Claims of publications, and references from records: what is decided, and what is not."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from click.testing import CliRunner

from tests.support import results
from understudy import producers
from understudy.cli import main
from understudy.contracts import run as runs
from understudy.contracts import workload
from understudy.contracts.run import Identity, Place, Run
from understudy.errors import UnderstudyError
from understudy.judge.acceptance import site_references
from understudy.judge.statistics import paired_errors
from understudy.paths import where
from understudy.reframe.bases import canary
from understudy_papers.judge import claim_sides, claims

REFERENCES = Path(__file__).parents[1] / "references"
CLAIM: dict[str, Any] = {
    "name": "more-is-better",
    "source": "a study, Fig. 1",
    "says": "more is better",
    "workload": "growing",
    "stream": "checkpoint",
    "of": {"stripe_count": "cores", "method": "posix"},
    "to": {"stripe_count": "default", "method": "posix"},
    "ratio": [1.4, 1.6],
}


CASE = "Replay %workload=growing %method=posix %stripe_count="
OPENED = "runs of growing with stripe_count"


def record(
    folder: Path, name: str, *, stripe_count: str = "default", day: str = "01-01", **row: Any
) -> None:
    """The record of a check on the system `sample`, in a session that is called as it is."""
    options = {key: row.pop(key) for key in ("fsync",) if key in row}
    result = results.result(results.growing(), **{"repetitions": 2} | row)
    result["environment"] |= {"started": f"2026-{day}T00:00:00Z"}
    result["options"] |= options
    case = f"{CASE}{stripe_count}"
    results.write_record(result, folder / name, partition="disk", session=name, case=case)


def records(
    folder: Path, *, stripe_count: str = "default", speed: float = 1.0, sessions: int, **more: Any
) -> None:
    """One run of a check in each session."""
    for n in range(sessions):
        values = {"speed": speed * (1 + 0.01 * (n % 3)), "seed": n + 1, "day": f"01-{n + 1:02d}"}
        record(folder, f"{stripe_count}-{n}", stripe_count=stripe_count, **values | more)


def loaded(folder: Path) -> list[Run]:
    return [run for _, run in producers.load_all(producers.find([folder]))]


@pytest.fixture(scope="module")
def faster(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Nine sessions by default stripes, and nine by one stripe a core, faster by half."""
    folder = tmp_path_factory.mktemp("faster")
    records(folder, stripe_count="cores", speed=1.5, sessions=9)
    records(folder, sessions=9)
    return loaded(folder)


def by(runs_: list[Run], stripe_count: str) -> list[Run]:
    return [run for run in runs_ if str(run.identity.case).endswith(f"={stripe_count}")]


def failed(run: Run) -> Run:
    return replace(run, producer=replace(run.producer, failure="it failed"))


def of_session(run: Run, session: str) -> Run:
    return replace(run, identity=replace(run.identity, session=session))


def claim_in(folder: Path, **changes: Any) -> claims.Claim:
    return one_claim(folder, CLAIM | changes)


def one_claim(folder: Path, row: dict[str, Any]) -> claims.Claim:
    path = folder / "sample.yaml"
    path.write_text(yaml.safe_dump({"Claims": [row]}))
    [claim] = claims.load(path)
    return claim


@pytest.mark.parametrize(
    ("bounds", "state"),
    [
        ([1.3, 1.7], claims.HOLDS),
        ([1, None], claims.HOLDS),
        ([None, 1], claims.FAILS),
        ([2, 3], claims.FAILS),
        ([1.5, 3], claims.UNDECIDED),
    ],
)
def test_a_claim_is_judged_by_its_interval(
    bounds: list[float | None], state: str, tmp_path: Path, faster: list[Run]
) -> None:
    judged = claims.judge(claim_in(tmp_path, ratio=bounds), faster)
    assert judged.state == state, judged
    sides = "stripe_count cores, method posix over stripe_count default, method posix: 1."
    assert sides in str(judged) and str(judged).endswith("(a study, Fig. 1)")


UNDECIDED: dict[str, tuple[dict[str, Any], Callable[[list[Run], list[Run]], list[Run]], str]] = {
    "too few runs": (
        {},
        lambda cores, default: [*cores, *default[:2]],
        f"2 {OPENED} default, method posix, expected at least 3",
    ),
    "failed runs": (
        {},
        lambda cores, default: [*map(failed, cores[:6]), *cores[6:], *default],
        f"6 of 9 {OPENED} cores, method posix failed",
    ),
    "one session": (
        {},
        lambda cores, default: [*cores, *(of_session(run, "same") for run in default)],
        f"the {OPENED} default, method posix are of 1 session, expected at least 3",
    ),
    "runs by any method": (
        {"of": {"stripe_count": "cores"}, "to": {"stripe_count": "default"}},
        lambda cores, default: [*cores, *default],
        f"0 {OPENED} cores, expected at least 3",
    ),
    "runs by other options": (
        {},
        lambda cores, default: [*cores, *default, with_options(cores[0], fsync=True)],
        "the runs of growing differ in their options: fsync",
    ),
    **{
        str(changes): (changes, lambda cores, default: [*cores, *default], "0 runs of ")
        for changes in (
            {"workload": "other"},
            {"of": {"system": "elsewhere"}},
            {"stream": "none"},
            {"of": {"stripe_count": "nodes"}},
            {"of": {"nodes": 7}},
        )
    },
}


def with_options(run: Run, **options: Any) -> Run:
    producer = replace(run.producer, options={**run.producer.options, **options})
    return replace(run, producer=producer)


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_decides_nothing(name: str, tmp_path: Path, faster: list[Run]) -> None:
    changes, choose, why = UNDECIDED[name]
    chosen = choose(by(faster, "cores"), by(faster, "default"))
    judged = claims.judge(claim_in(tmp_path, **changes), chosen)
    assert judged.state == claims.UNDECIDED
    assert judged.why.startswith(why) and (judged.why == why or why == "0 runs of ")


def test_a_measurement_counts_once_whatever_its_session(tmp_path: Path) -> None:
    record(tmp_path, "first")
    [path] = tmp_path.rglob("run.json")
    row = json.loads(path.read_text())
    for n in range(4):
        (tmp_path / f"copy-{n}").mkdir()
        row["identity"] |= {"session": f"copy-{n}", "id": f"{n}" * 16}
        (tmp_path / f"copy-{n}" / "run.json").write_text(json.dumps(row))
    assert len(loaded(tmp_path)) == 1


def test_dumps_of_one_run_are_compared(tmp_path: Path, faster: list[Run]) -> None:
    sides = {key: {"dump": dump, "method": "posix"} for key, dump in DUMPS.items()}
    claim = claim_in(tmp_path, **sides, ratio=[0.1, 10])
    judged = claims.judge(claim, by(faster, "default"))
    assert judged.state == claims.HOLDS
    assert "method posix, dump largest over method posix, dump first" in judged.why


DUMPS = {"of": "largest", "to": "first"}


SHARE: dict[str, Any] = {
    **{key: CLAIM[key] for key in ("name", "source", "says")},
    **{"workload": "star", "stream": "restart", "error": 0.1, "share": [0.7, None]},
    "cases": [
        {"method": "POSIX", "stripe_count": "default"},
        {"method": "MPI_LUSTRE", "stripe_count": "default"},
        {"method": "MPI_AMR", "stripe_count": "default", "ranks_per_aggregator": 4},
    ],
}
SECONDS = {key: CLAIM[key] for key in CLAIM if key not in ("to", "ratio")} | {"seconds": [1, 2]}
BOUNDS = "expected [low, high], of which one may be null"
INVALID: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    (CLAIM, {"ratio": [None, None]}, f"ratio: {BOUNDS}"),
    (CLAIM, {"ratio": [0, 1]}, "ratio: expected"),
    (CLAIM, {"ratio": "1.5"}, "ratio: expected"),
    (CLAIM, {"says": ""}, "says: expected text, got ''"),
    (CLAIM, {"of": {"osts": 4}}, "of: expected the keys system, stripe_count, method, arm"),
    (CLAIM, {"to": {"nodes": "four"}}, "to: nodes: expected a number above 0, got 'four'"),
    (CLAIM, {"of": {"ranks": 1.5}}, "of: ranks: expected a number above 0, got 1.5"),
    (CLAIM, {"to": {"dump": "last"}}, "to: dump: expected first or largest, got 'last'"),
    (CLAIM, {"more": 1}, "expected the keys "),
    (CLAIM, {"seconds": [1, 2]}, "expected one of the keys ratio, seconds, share"),
    (CLAIM, {"of": {"time": "waiting"}}, "of: time: expected communication or io or total"),
    (CLAIM, {"of": {"processes": "all"}}, "of: processes: expected the key time beside it"),
    (CLAIM, {"of": {"time": "io"}}, "to: expected the key time on both sides, or on neither"),
    (SECONDS, {}, "of: expected the key time, of which seconds"),
    (SHARE, {"cases": []}, "cases: expected a list, at least one entry"),
    (SHARE, {"cases": [{"osts": 4}]}, "cases[0]: expected the keys system, stripe_count, method"),
    (SHARE, {"cases": [{"ranks": 4}]}, "cases[0]: ranks: expected a list, got 4"),
    (SHARE, {"cases": [{"ranks": [0]}]}, "cases[0]: expected ranks above 0, got 0"),
    (
        SHARE,
        {"cases": [{"ranks_per_aggregator": "x"}]},
        "cases[0]: expected ranks above 0, got 'x'",
    ),
    (SHARE, {"error": 10}, "error: expected a fraction, got 10"),
    (SHARE, {"share": [None, None]}, f"share: {BOUNDS}"),
    (SHARE, {"of": {}}, "expected the keys cases, error, name, says, share, source, stream, "),
]


@pytest.mark.parametrize(("base", "changes", "fault"), INVALID)
def test_an_invalid_claim_is_one_message(
    base: dict[str, Any], changes: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(UnderstudyError, match=re.escape(f"sample.yaml: Claims[0]: {fault}")):
        one_claim(tmp_path, base | changes)


@pytest.mark.parametrize(
    ("text", "fault"),
    [("Claims: [", "cannot be read: "), ("Claims: 3", "Claims: expected a list")],
)
def test_an_invalid_file_is_one_message(text: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(UnderstudyError, match=rf"x\.yaml: {fault}"):
        claims.load(tmp_path / "x.yaml")


def references(*arguments: object) -> Any:
    return CliRunner().invoke(main, ["references", "--system", "sample", *map(str, arguments)])


def written(text: str) -> dict[str, Any]:
    """The references of each condition on the partition disk."""
    row = yaml.safe_load(text)["Replay"]
    assert row.pop("$index") == ["$partition", "condition"]
    [conditions] = row.values()
    return dict(conditions)


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of six sessions."""
    folder = tmp_path_factory.mktemp("six")
    records(folder, sessions=6)
    return folder


@pytest.fixture
def folder(six: Path, tmp_path: Path) -> Path:
    """A copy of the six sessions, to be changed."""
    return Path(shutil.copytree(six, tmp_path / "six"))


def edit(folder: Path, change: Callable[[dict[str, Any]], object], which: int = 0) -> Path:
    """Changes a record."""
    path = sorted(folder.rglob("run.json"))[which]
    row = json.loads(path.read_text())
    change(row)
    path.write_text(json.dumps(row))
    return path


def fail(row: dict[str, Any]) -> None:
    row["producer"]["failure"] = "it failed"


def test_references_come_from_the_scatter_between_sessions(six: Path) -> None:
    done = references(six)
    assert done.exit_code == 0, done.output
    [(key, bounds)] = written(done.stdout).items()
    assert {site_references.condition(run) for run in loaded(six)} == {key}
    names = {f"{name}_bandwidth" for name in ("checkpoint", "plot", "start", "log")}
    assert set(bounds) == {"elapsed", *names}
    value, low, high, unit = bounds["checkpoint_bandwidth"]
    speeds = [
        median(v for name, _, v in site_references.values(run) if name == "checkpoint_bandwidth")
        for run in loaded(six)
    ]
    assert min(speeds) < value < max(speeds)
    assert -site_references.WIDEST <= low <= -site_references.NARROWEST
    assert (high, unit) == (None, "MiB/s")
    assert value * (1 + low) <= min(speeds)  # every session would pass
    assert bounds["elapsed"][1] is None and bounds["elapsed"][2] >= site_references.NARROWEST
    assert done.stderr.replace("\N{MULTIPLICATION SIGN}", "x") == (
        f"understudy: Replay on sample:disk, condition {key}: 6 runs of 6 sessions, 2026-01-01 to "
        "2026-01-06, 0 failed: %workload=growing %method=posix %stripe_count=default; 1 node with "
        "16 ranks, method posix, environment gnu, 2 repetitions, time x0.01, bytes x1, verify\n"
    )


def test_what_demands_nothing_is_written_as_a_comment(folder: Path) -> None:
    few = "of too few sessions: 4, expected at least 5"
    for path in sorted(folder.iterdir())[4:]:
        shutil.rmtree(path)
    done = references(folder)
    assert f"5 of 5 values are written as comments, which demand nothing: {few}" in done.stderr
    assert few in done.stdout and list(written(done.stdout).values()) == [{}]
    record(folder, "slow", speed=0.1, seed=9, day="01-09")
    done = references(folder)
    [bounds] = written(done.stdout).values()
    assert "checkpoint_bandwidth" not in bounds and "sessions differ by 9" in done.stderr
    comment = (
        r'# "checkpoint_bandwidth": [0-9.e+]+ MiB/s, sessions differ by 9[0-9]%, expected at most '
    )
    assert re.search(f"{comment}50%\n", done.stdout)


def in_the_future(row: dict[str, Any]) -> None:
    row["identity"]["time"] = "2999-01-01T00:00:00Z"
    row["measurement"]["environment"]["started"] = "2999-01-01T00:00:00Z"


LEFT_OUT: dict[str, tuple[Callable[[dict[str, Any]], object], int, str]] = {
    "failed": (
        fail,
        0,
        r"failed: Replay %workload=growing %method=posix %stripe_count=default of "
        r"2026-01-01T00:00:00Z: it failed",
    ),
    "dated in the future": (
        in_the_future,
        -1,
        r"dated in the future: \S+run\.json \(2999-01-01T00:00:00Z\)",
    ),
    "on other storage": (
        lambda row: row["storage"].update(client_version="2.15"),
        0,
        r"1 runs of condition [0-9a-f]{12} that differ from its latest run in "
        r"storage\.client_version",
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_runs_that_do_not_count_are_named(name: str, folder: Path) -> None:
    change, which, words = LEFT_OUT[name]
    path = edit(folder, change, which)
    measurement = json.loads(path.read_text())["measurement"]
    path.with_name("result.json").write_text(json.dumps(measurement))
    done = references(folder)
    assert "# 5 sessions" in done.stdout
    assert re.search(f"left out: {words}\n", done.stderr), done.stderr


def test_runs_since_a_date_and_of_a_system(six: Path) -> None:
    assert "of too few sessions: 3" in references(six, "--since", "2026-01-04").stdout
    done = references(six, "--since", "14d")
    assert done.exit_code == 2 and "no measured run of a check on sample since 20" in done.stderr
    assert references(six, "--since", "soon").stderr == (
        "understudy: --since soon: expected 14d, 36h, 8w or a date such as 2026-01-31\n"
    )
    other = CliRunner().invoke(main, ["references", "--system", "other", str(six)])
    assert "there are records of sample" in other.stderr


def test_references_of_flushed_and_other_runs_are_kept_apart(folder: Path) -> None:
    """One case with and without a flush, which failed once with it."""
    for n in range(6):
        record(folder, f"flushed-{n}", speed=0.2, fsync=True, seed=n, day=f"02-{n + 1:02d}")
    edit(folder / "flushed-0", fail)
    done = references(folder)
    keys = {
        run.producer.options["fsync"]: site_references.condition(run) for run in loaded(folder)
    }
    bounds = written(done.stdout)
    assert set(bounds) == {keys[True], keys[False]}
    fast, slow = (bounds[keys[fsync]]["checkpoint_bandwidth"][0] for fsync in (False, True))
    assert 4 < fast / slow < 6
    assert "# 5 sessions" in done.stdout and "# 6 sessions" in done.stdout
    assert ", fsync, " in done.stderr
    counted = re.findall(r"(\d) runs of (\d) sessions, .*, (\d) failed", done.stderr)
    assert sorted(counted) == [("5", "5", "1"), ("6", "6", "0")]


@pytest.mark.parametrize(
    ("each", "unit", "bound"),
    [
        ([100.0] * 5, "MiB/s", 0.05),  # no narrower
        ([100, 100, 100, 100, 60], "MiB/s", 0.4),  # the worst session
        ([80, 90, 100, 110, 120], "MiB/s", 0.45),  # three deviations
        ([100, 100, 100, 100, 250], "s", 1.5),  # a time may take longer
        ([100, 1000, 10, 500, 2], "MiB/s", 4.36),  # deviations of 0, 90, 98, 400, 900
    ],
)
def test_a_bound_holds_every_session(each: list[float], unit: str, bound: float) -> None:
    assert site_references.bound_of(each, 100, unit) == pytest.approx(bound)


def test_a_canary_that_hangs_is_ended_and_recorded(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name, script in (("ior", "exec sleep 1000"), ("mdtest", "exit 0")):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    script = "\n".join(
        ["set -e", "dir=data; mkdir data", *canary.lines(canary.BEFORE, "", 1), "echo on"]
    )
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "on\n"
    assert canary.read(tmp_path)[0]["failure"] == "it ended with status 124 (its time limit)"


def test_a_canary_and_what_memory_served_are_in_the_record(tmp_path: Path) -> None:
    path = results.write(results.result(results.growing()), tmp_path / "result.json")
    written = producers.record(path, place=Place(system="s"), identity=Identity(session="1"))
    rate = {"operation": "write", "metric": "bandwidth_bytes_per_s", "unit": "bytes/s", "value": 1}
    before = {
        "when": "before",
        "program": "player",
        "note": "x",
        "failure": None,
        "rates": [rate],
    }
    cache = {"node_memory_bytes": 1 << 30, "may_serve": ["plot"]}
    row = json.loads(json.dumps(runs.to_row(written))) | {"canary": [before], "cache": cache}
    read = runs.from_row(row, "run.json")
    assert read.canary == (before,) and read.cache == cache
    assert runs.condition(read) == runs.condition(written)  # neither is part of the condition
    for spoiled in ({"canary": [before | {"when": "later"}]}, {"cache": {"may_serve": []}}):
        with pytest.raises(UnderstudyError, match=r"run\.json: "):
            runs.from_row(row | spoiled, "run.json")


STAR: dict[str, Any] = {"method": "POSIX", "stripe_count": "default", "ranks": 16}


def study(folder: Path, cases: list[dict[str, Any]], sessions: int = 6, **more: Any) -> list[Run]:
    """Sessions of an application and its skeleton in turn, which writes faster by the gain of the
    case, and may spend longer in communication."""
    for session, case, arm in product(range(sessions), cases, ("application", "skeleton")):
        method, ranks, skeleton = case["method"], case["ranks"], arm == "skeleton"
        aggregators = case.get("aggregators", max(1, ranks // 4))
        speed = 1e8 * case.get("speed", 1) * (case["gain"] if skeleton else 1)
        row = results.program_result(
            name="star-restart" if skeleton else "kernel-star",
            kind=arm,
            ranks=ranks,
            method=method,
            parameters=f"num_aggregators={aggregators};x=1" if method == "MPI_AMR" else None,
            speeds=[speed * (1 + 0.001 * session)] * 2,
            started=f"2026-01-{session + 1:02d}T00:00:00Z",
            **(more if skeleton else {}),
        )
        row["program"] |= {"config": f"<{arm}/>", "extra_collective_bytes": 0}
        name = (
            f"Skel %method={method} %ranks={ranks} %stripe_count=default %built.application=star"
        )
        results.write_record(
            row,
            folder / f"{session}-{method}-{ranks}-{aggregators}-{arm}",
            partition="disk",
            session=f"s{session}",
            arm=arm,
            round=0,
            case=name,
        )
    return loaded(folder)


@pytest.fixture(scope="module")
def star(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """By two methods, one of them with two numbers of aggregators, on 4 and 16 ranks."""
    cases: list[dict[str, Any]] = []
    for ranks in (4, 16):
        amr = {"method": "MPI_AMR", "ranks": ranks, "gain": 1.05}
        cases.append({"method": "POSIX", "ranks": ranks, "gain": 1.05})
        cases.append(amr | {"speed": 2.0, "aggregators": ranks // 4})
        cases.append(amr | {"speed": 3.0, "aggregators": ranks // 2})
    return study(tmp_path_factory.mktemp("star"), cases, sessions=3)


def star_claim(folder: Path, of: dict[str, Any], to: dict[str, Any]) -> claims.Claim:
    sides = {"of": STAR | of, "to": STAR | to}
    return claim_in(folder, workload="star", stream="restart", ratio=[1.01, 1.09], **sides)


def test_a_skeleton_is_held_against_its_application(tmp_path: Path, star: list[Run]) -> None:
    """Arms differ in their names and descriptors; both sides are on the ranks that are named."""
    arms: tuple[dict[str, Any], dict[str, Any]] = ({"arm": "skeleton"}, {"arm": "application"})
    judged = claims.judge(star_claim(tmp_path, *arms), star)
    assert (judged.state, judged.why.partition(":")[0]) == (
        claims.HOLDS,
        "stripe_count default, method POSIX, arm skeleton, ranks 16 over stripe_count default, "
        "method POSIX, arm application, ranks 16",
    )
    elsewhere = [side | {"ranks": 64} for side in arms]
    judged = claims.judge(star_claim(tmp_path, *elsewhere), star)
    assert judged.state == claims.UNDECIDED and judged.why.startswith("0 runs of star with ")
    judged = claims.judge(star_claim(tmp_path, {}, {}), star)
    assert judged.why == "the runs of star differ in their options: config, name"


def test_methods_with_their_parameters_are_held_against_each_other(
    tmp_path: Path, star: list[Run]
) -> None:
    skeleton = {"arm": "skeleton"}
    amr = skeleton | {"method": "MPI_AMR", "parameters": "num_aggregators=4"}
    judged = claims.judge(star_claim(tmp_path, amr, skeleton), star)
    assert judged.state == claims.FAILS and "ranks 16: 2 (" in judged.why
    del amr["parameters"]  # two numbers of aggregators are no one condition
    judged = claims.judge(star_claim(tmp_path, amr, skeleton), star)
    assert judged.why == "the runs of star differ in their options: parameters"


def test_a_run_that_left_no_measurement_fails_its_side(tmp_path: Path, star: list[Run]) -> None:
    lost = next(run for run in star if _is(run, "skeleton", "POSIX", 16))
    producer = replace(lost.producer, workload=None, options={}, failure="it was killed")
    lost = replace(lost, producer=producer, measurement=None, samples=())
    claim = star_claim(tmp_path, {"arm": "skeleton"}, {"arm": "application"})
    judged = claims.judge(claim, [*star, lost])
    assert (judged.state, judged.why[:28]) == (claims.UNDECIDED, "1 of 4 runs of star with str")


def _is(run: Run, arm: str, method: str, ranks: int) -> bool:
    case = f"%method={method} %ranks={ranks} "
    return run.identity.arm == arm and case in str(run.identity.case)


WITHIN = [
    {"method": method, "ranks": ranks, "gain": 1.02}
    for method in ("POSIX", "MPI_AMR")
    for ranks in (4, 16)
]


@pytest.mark.parametrize(
    ("gain", "states"),
    [
        (1.02, (claims.HOLDS, claims.HOLDS)),
        (1.3, (claims.HOLDS, claims.FAILS)),
    ],
)
def test_a_share_counts_every_case_and_statistic(
    gain: float, states: tuple[str, str], tmp_path: Path
) -> None:
    measured = study(tmp_path, [*WITHIN, {"method": "MPI_LUSTRE", "ranks": 4, "gain": gain}])
    for share, state in zip((0.7, 0.9), states, strict=True):
        judged = claims.judge(one_claim(tmp_path, SHARE | {"share": [share, None]}), measured)
        assert judged.state == state, judged
    outside = 2 * (gain > 1.1)
    assert judged.why == (
        f"of 10 cases of star {10 - outside} are within 10%, {outside} outside and 0 undecided: "
        f"{100 - 10 * outside}% to {100 - 10 * outside}%, claimed at least 90% of the cases"
    )
    assert judged.value is not None and judged.value.value == 1 - outside / 10


def test_cases_that_are_not_measured_may_lie_on_either_side(tmp_path: Path) -> None:
    """Two of the three cases of each method are within; the third was never run."""
    measured = study(tmp_path, WITHIN)
    cases = [
        {"method": "POSIX", "stripe_count": "default", "ranks": [4, 16, 64]},
        {
            "method": "MPI_AMR",
            "stripe_count": "default",
            "ranks": [4, 16, 64],
            "ranks_per_aggregator": 4,
        },
    ]
    for share, state in (
        ([0.6, None], claims.HOLDS),
        ([0.7, None], claims.UNDECIDED),
        ([None, 0.5], claims.FAILS),
    ):
        judged = claims.judge(
            one_claim(tmp_path, SHARE | {"share": share, "cases": cases}), measured
        )
        assert (judged.state, judged.value) == (state, None)
    assert judged.why == (
        "of 12 cases of star 8 are within 10%, 0 outside and 4 undecided: 66.7% to 100%, claimed "
        "at most 50% of the cases; 4 are not measured, the first: 0 runs of star with "
        "stripe_count default, method POSIX, arm application, ranks 64, expected at least 3"
    )
    judged = claims.judge(one_claim(tmp_path, SHARE | {"workload": "other"}), measured)
    assert judged.why == "no runs of other by an application and its skeleton"


def test_a_run_without_its_counterpart_leaves_the_case_open(tmp_path: Path) -> None:
    measured = study(tmp_path, WITHIN[:1])
    lost = next(run for run in measured if run.identity.arm == "application")
    cases = [{"method": "POSIX", "stripe_count": "default", "ranks": [4]}]
    claim = one_claim(tmp_path, SHARE | {"cases": cases})
    assert claims.judge(claim, measured).state == claims.HOLDS
    judged = claims.judge(claim, [run for run in measured if run is not lost])
    assert judged.state == claims.UNDECIDED and judged.why.endswith(
        "the runs of star with stripe_count default, method POSIX, ranks 4 are not in pairs"
    )


def test_times_of_processes_are_claimed_in_seconds(tmp_path: Path) -> None:
    """A step of 4 ranks takes 0.4 s, of which a tenth is communication, and 55 s more."""
    measured = study(
        tmp_path, [{"method": "MPI_LUSTRE", "ranks": 4, "gain": 1.0}], collective_s=55
    )
    row = {key: CLAIM[key] for key in ("name", "source", "says")}
    row |= {"workload": "star", "stream": "restart"}
    side = {"method": "MPI_LUSTRE", "arm": "skeleton", "time": "communication"}
    slowest = side | {"processes": "slowest"}
    for bounds, state in (([49.5, 60.5], claims.HOLDS), ([None, 50], claims.FAILS)):
        claim = one_claim(tmp_path, row | {"of": slowest, "seconds": bounds})
        judged = claims.judge(claim, measured)
        assert judged.state == state and judged.value is not None
        assert judged.value.value == pytest.approx(55, abs=0.1)
    assert judged.why.endswith(" s, claimed at most 50 s")
    other = one_claim(
        tmp_path, row | {"of": slowest, "to": slowest | {"arm": "application"}, "ratio": [1, None]}
    )
    judged = claims.judge(other, measured)
    assert judged.state == claims.HOLDS and judged.value is not None and judged.value.value > 500
    same = one_claim(
        tmp_path, row | {"of": slowest, "to": side | {"processes": "all"}, "ratio": [0.9, 1.1]}
    )
    assert claims.judge(same, measured).state == claims.HOLDS  # all communicate as long


def test_the_slowest_processes_are_those_with_the_longest_total_times(tmp_path: Path) -> None:
    row = results.program_result(ranks=20, slow_rank=(7, 30.0), speeds=[1e8])
    results.write_record(row, tmp_path / "one", partition="disk", arm="application")
    [run] = loaded(tmp_path)
    sides = {
        many: claim_sides.Side(time="io", processes=many)
        for many in claim_sides.CHOICES["processes"]
    }
    judged = {many: claim_sides.values(run, "restart", side)[0] for many, side in sides.items()}
    io_s = 0.5 * 20 * 10 * 2**20 / 1e8
    assert judged == pytest.approx(
        {"slowest": io_s + 30, "slowest-tenth": io_s + 15, "all": io_s + 1.5}
    )


def test_the_study_counts_56_of_its_60_cases_within_10_percent() -> None:
    """The errors of Fig. 2 outside of the limit, of all that its text lists."""
    [claim] = [
        c
        for c in claims.load(REFERENCES / "sith.yaml")
        if c.name == "chimera-skeleton-is-accurate"
    ]
    cases = sum(len(case.ranks or ()) for case in claim.cases) * len(paired_errors.OF_THE_PAPER)
    outside = (-15.586524, 22.9848149, 25.8798844, 19.0632635)
    assert cases == 60 and claim.low == pytest.approx((cases - len(outside)) / cases, abs=0.005)


def test_claims_are_of_workloads_and_streams_that_exist() -> None:
    described = {
        (name, stream.name) for name in workload.names() for stream in workload.get(name).streams
    }
    for path in where("traces").glob("*.xml"):
        groups = ElementTree.parse(path).getroot().findall("adios-group")
        described |= {(path.stem, str(group.get("name"))) for group in groups}
    paths = list(REFERENCES.glob("*.yaml"))
    assert len(paths) == 8
    for path in paths:
        for claim in claims.load(path):
            assert (claim.workload, claim.stream) in described, f"{path.name}: {claim.name}"
