"""Claims of publications, and references from records: what is decided, and what is not."""

import json
import os
import re
import subprocess
from dataclasses import replace
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


def records(
    folder: Path,
    *,
    stripe_count: str,
    speed: float,
    sessions: int,
    name: str = "Replay",
    **options: Any,
) -> None:
    """One run of a check in each session, on the system `sample`."""
    for n in range(sessions):
        row = results.result(
            results.growing(), speed=speed * (1 + 0.01 * (n % 3)), repetitions=2, seed=n + 1
        )
        row["environment"] |= {"started": f"2026-01-{n + 1:02d}T00:00:00Z"}
        row["options"] |= options
        results.write_record(
            row,
            folder / f"{name}-{stripe_count}-{n}",
            partition="disk",
            session=f"s{n}",
            case=f"{name} %workload=growing %method=posix %stripe_count={stripe_count}",
        )


def loaded(folder: Path) -> list[Run]:
    return [run for _, run in producers.load_all(producers.find([folder]))]


def claim_in(folder: Path, **changes: Any) -> claims.Claim:
    return one_claim(folder, CLAIM | changes)


def one_claim(folder: Path, row: dict[str, Any]) -> claims.Claim:
    path = folder / "sample.yaml"
    path.write_text(yaml.safe_dump({"Claims": [row]}))
    [made] = claims.load(path)
    return made


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
    bounds: list[float | None], state: str, tmp_path: Path
) -> None:
    records(tmp_path, stripe_count="cores", speed=1.5, sessions=6)
    records(tmp_path, stripe_count="default", speed=1.0, sessions=6)
    found = claims.judge(claim_in(tmp_path, ratio=bounds), loaded(tmp_path))
    assert found.state == state, found
    assert "stripe_count cores, method posix over stripe_count default, method posix: 1." in str(
        found
    )
    assert str(found).endswith("(a study, Fig. 1)")


def test_too_few_runs_decide_nothing(tmp_path: Path) -> None:
    records(tmp_path, stripe_count="cores", speed=1.5, sessions=6)
    records(tmp_path, stripe_count="default", speed=1.0, sessions=2)
    found = claims.judge(claim_in(tmp_path), loaded(tmp_path))
    assert (found.state, found.why) == (
        claims.UNDECIDED,
        "2 runs of growing with stripe_count default, method posix, expected at least 3",
    )


def test_failed_runs_decide_nothing(tmp_path: Path) -> None:
    records(tmp_path, stripe_count="cores", speed=1.5, sessions=9)
    records(tmp_path, stripe_count="default", speed=1.0, sessions=9)
    for path in sorted(tmp_path.glob("Replay-cores-*/run.json"))[:6]:
        row = json.loads(path.read_text())
        row["producer"]["failure"] = "it failed"
        path.write_text(json.dumps(row))
    found = claims.judge(claim_in(tmp_path), loaded(tmp_path))
    assert (found.state, found.why) == (
        claims.UNDECIDED,
        "6 of 9 runs of growing with stripe_count cores, method posix failed",
    )


def test_one_session_decides_nothing(tmp_path: Path) -> None:
    records(tmp_path, stripe_count="cores", speed=1.5, sessions=6)
    records(tmp_path, stripe_count="default", speed=1.0, sessions=6)
    for path in tmp_path.glob("Replay-default-*/run.json"):
        row = json.loads(path.read_text())
        row["identity"]["session"] = "same"
        path.write_text(json.dumps(row))
    found = claims.judge(claim_in(tmp_path), loaded(tmp_path))
    assert (found.state, found.why) == (
        claims.UNDECIDED,
        "the runs of growing with stripe_count default, method posix are of 1 session, expected "
        "at least 3",
    )


def test_runs_of_another_system_or_workload_do_not_count(tmp_path: Path) -> None:
    records(tmp_path, stripe_count="cores", speed=1.5, sessions=3)
    records(tmp_path, stripe_count="default", speed=1.0, sessions=3)
    runs_ = loaded(tmp_path)
    for changes in (
        {"workload": "other"},
        {"of": {"system": "elsewhere"}},
        {"stream": "none"},
        {"of": {"stripe_count": "nodes"}},
        {"of": {"nodes": 7}},
    ):
        found = claims.judge(claim_in(tmp_path, **changes), runs_)
        assert found.state == claims.UNDECIDED and found.why.startswith("0 runs of ")


def test_runs_by_other_methods_or_options_are_not_pooled(tmp_path: Path) -> None:
    records(tmp_path, stripe_count="cores", speed=1.5, sessions=6)
    records(tmp_path, stripe_count="default", speed=1.0, sessions=6)
    described = {"of": {"stripe_count": "cores"}, "to": {"stripe_count": "default"}}
    found = claims.judge(claim_in(tmp_path, **described), loaded(tmp_path))
    assert found.why == "0 runs of growing with stripe_count cores, expected at least 3"
    row = results.result(results.growing(), fsync=True, repetitions=2, seed=77)
    results.write_record(
        row,
        tmp_path / "flushed",
        partition="disk",
        session="f",
        case="Replay %workload=growing %method=posix %stripe_count=cores",
    )
    found = claims.judge(claim_in(tmp_path), loaded(tmp_path))
    assert (found.state, found.why) == (
        claims.UNDECIDED,
        "the runs of growing differ in their options: fsync",
    )


def test_a_measurement_counts_once_whatever_its_session(tmp_path: Path) -> None:
    records(tmp_path, stripe_count="cores", speed=1.5, sessions=1)
    [path] = tmp_path.rglob("run.json")
    row = json.loads(path.read_text())
    for n in range(4):
        (tmp_path / f"copy-{n}").mkdir()
        row["identity"] |= {"session": f"copy-{n}", "id": f"{n}" * 16}
        (tmp_path / f"copy-{n}" / "run.json").write_text(json.dumps(row))
    assert len(loaded(tmp_path)) == 1


def test_dumps_of_one_run_are_compared(tmp_path: Path) -> None:
    records(tmp_path, stripe_count="default", speed=1.0, sessions=4)
    sides = {
        "of": {"dump": "largest", "method": "posix"},
        "to": {"dump": "first", "method": "posix"},
    }
    found = claims.judge(claim_in(tmp_path, **sides, ratio=[0.1, 10]), loaded(tmp_path))
    assert (
        found.state == claims.HOLDS
        and "method posix, dump largest over method posix, dump first" in found.why
    )


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            {"ratio": [None, None]},
            "Claims[0]: ratio: expected [low, high], of which one may be null",
        ),
        ({"ratio": [0, 1]}, "Claims[0]: ratio: expected"),
        ({"ratio": "1.5"}, "Claims[0]: ratio: expected"),
        ({"says": ""}, "Claims[0]: says: expected text, got ''"),
        (
            {"of": {"osts": 4}},
            "Claims[0]: of: expected the keys system, stripe_count, method, arm",
        ),
        ({"to": {"nodes": "four"}}, "Claims[0]: to: nodes: expected a number above 0, got 'four'"),
        ({"of": {"ranks": 1.5}}, "Claims[0]: of: ranks: expected a number above 0, got 1.5"),
        ({"to": {"dump": "last"}}, "Claims[0]: to: dump: expected first or largest, got 'last'"),
        ({"more": 1}, "Claims[0]: expected the keys name, of, ratio, says"),
        ({"seconds": [1, 2]}, "Claims[0]: expected one of the keys ratio, seconds, share"),
        (
            {"of": {"time": "waiting"}},
            "Claims[0]: of: time: expected communication or io or total",
        ),
        (
            {"of": {"processes": "all"}},
            "Claims[0]: of: processes: expected the key time beside it",
        ),
        (
            {"of": {"time": "io"}},
            "Claims[0]: to: expected the key time on both sides, or on neither",
        ),
    ],
)
def test_a_claim_that_is_none_is_one_message(
    changes: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    text = re.escape(fault).replace("name,\\ of", ".*")
    with pytest.raises(UnderstudyError, match=text):
        claim_in(tmp_path, **changes)


SHARE: dict[str, Any] = {
    **{key: CLAIM[key] for key in ("name", "source", "says")},
    "workload": "star",
    "stream": "restart",
    "error": 0.1,
    "share": [0.7, None],
    "cases": [
        {"method": "POSIX", "stripe_count": "default"},
        {"method": "MPI_LUSTRE", "stripe_count": "default"},
        {"method": "MPI_AMR", "stripe_count": "default", "ranks_per_aggregator": 4},
    ],
}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"cases": []}, "cases: expected a list, at least one entry"),
        ({"cases": [{"osts": 4}]}, "cases[0]: expected the keys system, stripe_count, method"),
        ({"cases": [{"ranks": 4}]}, "cases[0]: ranks: expected a list, got 4"),
        ({"cases": [{"ranks": [0]}]}, "cases[0]: expected ranks above 0, got 0"),
        ({"cases": [{"ranks_per_aggregator": "x"}]}, "cases[0]: expected ranks above 0, got 'x'"),
        ({"error": 10}, "error: expected a fraction, got 10"),
        ({"share": [None, None]}, "share: expected [low, high], of which one may be null"),
        (
            {"of": {}},
            "expected the keys cases, error, name, says, share, source, stream, workload",
        ),
    ],
)
def test_a_share_that_is_none_is_one_message(
    changes: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(UnderstudyError, match=re.escape(f"sample.yaml: Claims[0]: {fault}")):
        one_claim(tmp_path, SHARE | changes)


def test_seconds_are_of_a_time(tmp_path: Path) -> None:
    row = {key: CLAIM[key] for key in CLAIM if key not in ("to", "ratio")} | {"seconds": [1, 2]}
    with pytest.raises(UnderstudyError, match="of: expected the key time, of which seconds"):
        one_claim(tmp_path, row)


def test_a_file_that_is_no_yaml_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("Claims: [")
    with pytest.raises(UnderstudyError, match=r"x\.yaml: cannot be read: "):
        claims.load(tmp_path / "x.yaml")
    (tmp_path / "x.yaml").write_text("Claims: 3")
    with pytest.raises(UnderstudyError, match=r"x\.yaml: Claims: expected a list"):
        claims.load(tmp_path / "x.yaml")


def references(*arguments: object) -> Any:
    return CliRunner().invoke(main, ["references", "--system", "sample", *map(str, arguments)])


def written(text: str) -> dict[str, Any]:
    """The references of each condition on the partition disk."""
    row = yaml.safe_load(text)["Replay"]
    assert row.pop("$index") == ["$partition", "condition"]
    [found] = row.values()
    return dict(found)


def test_references_come_from_the_scatter_between_sessions(tmp_path: Path) -> None:
    records(tmp_path, stripe_count="default", speed=1.0, sessions=6)
    done = references(tmp_path)
    assert done.exit_code == 0, done.output
    [(key, found)] = written(done.stdout).items()
    assert {site_references.condition(run) for run in loaded(tmp_path)} == {key}
    assert set(found) == {
        "elapsed",
        *(f"{name}_bandwidth" for name in ("checkpoint", "plot", "start", "log")),
    }
    value, low, high, unit = found["checkpoint_bandwidth"]
    speeds = [
        median(v for name, _, v in site_references.values(run) if name == "checkpoint_bandwidth")
        for run in loaded(tmp_path)
    ]
    assert min(speeds) < value < max(speeds)
    assert -site_references.WIDEST <= low <= -site_references.NARROWEST and (high, unit) == (
        None,
        "MiB/s",
    )
    assert value * (1 + low) <= min(speeds)  # every session would pass
    assert found["elapsed"][1] is None and found["elapsed"][2] >= site_references.NARROWEST
    assert done.stderr.replace("\N{MULTIPLICATION SIGN}", "x") == (
        f"understudy: Replay on sample:disk, condition {key}: 6 runs of 6 sessions, 2026-01-01 to "
        "2026-01-06, 0 failed: %workload=growing %method=posix %stripe_count=default; 1 node with "
        "16 ranks, method posix, environment gnu, 2 repetitions, time x0.01, bytes x1, verify\n"
    )


def test_too_few_sessions_demand_nothing_and_are_stated(tmp_path: Path) -> None:
    records(tmp_path, stripe_count="default", speed=1.0, sessions=4)
    done = references(tmp_path)
    assert (
        "5 of 5 values are written as comments, which demand nothing: of too few sessions: 4, "
        "expected at least 5" in done.stderr
    )
    assert "of too few sessions: 4, expected at least 5" in done.stdout
    assert list(written(done.stdout).values()) == [{}]


def test_a_scatter_above_a_half_demands_nothing(tmp_path: Path) -> None:
    records(tmp_path, stripe_count="default", speed=1.0, sessions=5)
    row = results.result(results.growing(), speed=0.1, repetitions=2, seed=9)
    row["environment"] |= {"started": "2026-01-09T00:00:00Z"}
    results.write_record(
        row,
        tmp_path / "slow",
        partition="disk",
        session="slow",
        case="Replay %workload=growing %method=posix %stripe_count=default",
    )
    done = references(tmp_path)
    [found] = written(done.stdout).values()
    assert "checkpoint_bandwidth" not in found
    assert re.search(
        r'# "checkpoint_bandwidth": [0-9.e+]+ MiB/s, sessions differ by 9[0-9]%, expected at most '
        "50%\n",
        done.stdout,
    )
    assert "sessions differ by 9" in done.stderr


def test_failed_and_older_runs_and_other_systems_do_not_count(tmp_path: Path) -> None:
    records(tmp_path, stripe_count="default", speed=1.0, sessions=6)
    [first, *_] = sorted(tmp_path.rglob("run.json"))
    row = json.loads(first.read_text())
    row["producer"]["failure"] = "it failed"
    first.write_text(json.dumps(row))
    done = references(tmp_path)
    assert "# 5 sessions" in done.stdout and "5 sessions, 2026-01-02 to 2026-01-06, 1 failed" in (
        done.stderr
    )
    assert (
        "understudy: left out: failed: Replay %workload=growing %method=posix "
        "%stripe_count=default of 2026-01-01T00:00:00Z: it failed\n" in done.stderr
    )
    late = references(tmp_path, "--since", "2026-01-04")
    assert "of too few sessions: 3" in late.stdout
    done = references(tmp_path, "--since", "14d")
    assert done.exit_code == 2 and "no measured run of a check on sample since 20" in done.stderr
    assert references(tmp_path, "--since", "soon").stderr == (
        "understudy: --since soon: expected 14d, 36h, 8w or a date such as 2026-01-31\n"
    )
    other = CliRunner().invoke(main, ["references", "--system", "other", str(tmp_path)])
    assert "there are records of sample" in other.stderr


def test_failed_runs_count_under_their_own_condition(tmp_path: Path) -> None:
    """One case with and without a flush, which failed once with it."""
    for name, flushes in (("plain", False), ("flushed", True)):
        records(tmp_path / name, stripe_count="default", speed=1.0, sessions=6, fsync=flushes)
    [first, *_] = sorted((tmp_path / "flushed").rglob("run.json"))
    row = json.loads(first.read_text())
    row["producer"]["failure"] = "it failed"
    first.write_text(json.dumps(row))
    done = references(tmp_path)
    counted = re.findall(r"(\d) runs of (\d) sessions, .*, (\d) failed", done.stderr)
    assert sorted(counted) == [("5", "5", "1"), ("6", "6", "0")]


def test_runs_dated_in_the_future_are_named_and_left_out(tmp_path: Path) -> None:
    records(tmp_path, stripe_count="default", speed=1.0, sessions=6)
    [*_, last] = sorted(tmp_path.rglob("run.json"))
    row = json.loads(last.read_text())
    row["identity"]["time"] = "2999-01-01T00:00:00Z"
    row["measurement"]["environment"]["started"] = "2999-01-01T00:00:00Z"
    last.write_text(json.dumps(row))
    last.with_name("result.json").write_text(json.dumps(row["measurement"]))
    done = references(tmp_path)
    assert "# 5 sessions" in done.stdout
    assert f"left out: dated in the future: {last} (2999-01-01T00:00:00Z)\n" in done.stderr


def test_references_of_flushed_and_other_runs_are_kept_apart(tmp_path: Path) -> None:
    records(tmp_path, stripe_count="default", speed=1.0, sessions=6)
    for n in range(5):
        row = results.result(results.growing(), speed=0.2, fsync=True, seed=n)
        row["environment"] |= {"started": f"2026-02-{n + 1:02d}T00:00:00Z"}
        results.write_record(
            row,
            tmp_path / f"flushed-{n}",
            partition="disk",
            session=f"f{n}",
            case="Replay %workload=growing %method=posix %stripe_count=default",
        )
    done = references(tmp_path)
    keys = {
        run.producer.options["fsync"]: site_references.condition(run) for run in loaded(tmp_path)
    }
    found = written(done.stdout)
    assert set(found) == {keys[True], keys[False]}
    fast, slow = (found[keys[fsync]]["checkpoint_bandwidth"][0] for fsync in (False, True))
    assert 4 < fast / slow < 6
    assert f"# {'5 sessions'}" in done.stdout and "# 6 sessions" in done.stdout
    assert ", fsync, " in done.stderr


def test_runs_that_found_other_storage_are_left_out_and_counted(tmp_path: Path) -> None:
    records(tmp_path, stripe_count="default", speed=1.0, sessions=6)
    [first, *_] = sorted(tmp_path.rglob("run.json"))
    row = json.loads(first.read_text())
    row["storage"]["client_version"] = "2.15"
    first.write_text(json.dumps(row))
    done = references(tmp_path)
    assert "# 5 sessions" in done.stdout
    assert re.search(
        "left out: 1 runs of condition [0-9a-f]{12} that differ from its latest run in "
        "storage.client_version\n",
        done.stderr,
    )


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
    assert site_references._bound(each, 100, unit) == pytest.approx(bound)


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
    made = producers.record(path, place=Place(system="s"), identity=Identity(session="1"))
    rate = {"operation": "write", "metric": "bandwidth_bytes_per_s", "unit": "bytes/s", "value": 1}
    one = {"when": "before", "program": "player", "note": "x", "failure": None, "rates": [rate]}
    cache = {"node_memory_bytes": 1 << 30, "may_serve": ["plot"]}
    row = json.loads(json.dumps(runs.to_row(made))) | {"canary": [one], "cache": cache}
    read = runs.from_row(row, "run.json")
    assert read.canary == (one,) and read.cache == cache
    assert runs.condition(read) == runs.condition(made)  # neither is part of the condition
    for spoiled in ({"canary": [one | {"when": "later"}]}, {"cache": {"may_serve": []}}):
        with pytest.raises(UnderstudyError, match=r"run\.json: "):
            runs.from_row(row | spoiled, "run.json")


STAR: dict[str, Any] = {"method": "POSIX", "stripe_count": "default", "ranks": 16}


def star_records(folder: Path) -> list[Run]:
    """Three sessions of an application and its skeleton, by two methods, on 4 and 16 ranks."""
    speeds = {"application": 1.0, "skeleton": 1.05}
    for session in range(3):
        for ranks in (4, 16):
            for method, factor, text in (
                ("POSIX", 1.0, None),
                ("MPI_AMR", 2.0, f"num_aggregators={ranks // 4};x=1"),
                ("MPI_AMR", 3.0, f"num_aggregators={ranks // 2};x=1"),
            ):
                for arm, gain in speeds.items():
                    name = "kernel-star" if arm == "application" else "star-restart"
                    row = results.program_result(
                        name=name,
                        kind=arm,
                        ranks=ranks,
                        method=method,
                        parameters=text,
                        speeds=[1e8 * factor * gain * (1 + 0.01 * session)] * 2,
                        started=f"2026-01-{session + 1:02d}T00:00:00Z",
                    )
                    row["program"]["config"] = f"<{arm}/>"
                    results.write_record(
                        row,
                        folder / f"{session}-{ranks}-{method}-{factor:g}-{arm}",
                        partition="disk",
                        session=f"s{session}",
                        arm=arm,
                        case=f"Skel %method={method} %ranks={ranks} %stripe_count=default "
                        "%built.application=star",
                    )
    return loaded(folder)


def star_claim(folder: Path, of: dict[str, Any], to: dict[str, Any]) -> claims.Claim:
    sides = {"of": STAR | of, "to": STAR | to}
    return claim_in(folder, workload="star", stream="restart", ratio=[1.01, 1.09], **sides)


def test_a_skeleton_is_held_against_its_application(tmp_path: Path) -> None:
    """Arms differ in their names and descriptors; both sides are on the ranks that are named."""
    found_runs = star_records(tmp_path)
    arms: tuple[dict[str, Any], dict[str, Any]] = ({"arm": "skeleton"}, {"arm": "application"})
    found = claims.judge(star_claim(tmp_path, *arms), found_runs)
    assert (found.state, found.why.partition(":")[0]) == (
        claims.HOLDS,
        "stripe_count default, method POSIX, arm skeleton, ranks 16 over stripe_count default, "
        "method POSIX, arm application, ranks 16",
    )
    elsewhere = [side | {"ranks": 64} for side in arms]
    found = claims.judge(star_claim(tmp_path, *elsewhere), found_runs)
    assert found.state == claims.UNDECIDED and found.why.startswith("0 runs of star with ")
    found = claims.judge(star_claim(tmp_path, {}, {}), found_runs)
    assert found.why == "the runs of star differ in their options: config, name"


def test_methods_with_their_parameters_are_held_against_each_other(tmp_path: Path) -> None:
    found_runs = star_records(tmp_path)
    skeleton = {"arm": "skeleton"}
    amr = skeleton | {"method": "MPI_AMR", "parameters": "num_aggregators=4"}
    found = claims.judge(star_claim(tmp_path, amr, skeleton), found_runs)
    assert found.state == claims.FAILS and "ranks 16: 2 (" in found.why
    del amr["parameters"]  # two numbers of aggregators are no one condition
    found = claims.judge(star_claim(tmp_path, amr, skeleton), found_runs)
    assert found.why == "the runs of star differ in their options: parameters"


def test_a_run_that_left_no_measurement_fails_its_side(tmp_path: Path) -> None:
    found_runs = star_records(tmp_path)
    lost = next(run for run in found_runs if _is(run, "skeleton", "POSIX", 16))
    producer = replace(lost.producer, workload=None, options={}, failure="it was killed")
    lost = replace(lost, producer=producer, measurement=None, samples=())
    claim = star_claim(tmp_path, {"arm": "skeleton"}, {"arm": "application"})
    found = claims.judge(claim, [*found_runs, lost])
    assert (found.state, found.why[:28]) == (claims.UNDECIDED, "1 of 4 runs of star with str")


def _is(run: Run, arm: str, method: str, ranks: int) -> bool:
    case = f"%method={method} %ranks={ranks} "
    return run.identity.arm == arm and case in str(run.identity.case)


def study(
    folder: Path,
    gains: dict[tuple[str, int], float],
    *,
    collective_s: float = 0,
    sessions: int = 6,
) -> list[Run]:
    """Sessions of an application and its skeleton in turn, which writes faster by the factor of
    its method and ranks, and spends so much longer in communication."""
    for session in range(sessions):
        for (method, ranks), gain in gains.items():
            text = f"num_aggregators={max(1, ranks // 4)};x=1" if method == "MPI_AMR" else None
            for arm in ("application", "skeleton"):
                row = results.program_result(
                    name="kernel-star" if arm == "application" else "star-restart",
                    kind=arm,
                    ranks=ranks,
                    method=method,
                    parameters=text,
                    speeds=[1e8 * (gain if arm == "skeleton" else 1) * (1 + 0.001 * session)] * 2,
                    started=f"2026-01-{session + 1:02d}T00:00:00Z",
                    collective_s=collective_s if arm == "skeleton" else 0,
                )
                row["program"] |= {"config": f"<{arm}/>", "extra_collective_bytes": 0}
                results.write_record(
                    row,
                    folder / f"{session}-{method}-{ranks}-{arm}",
                    partition="disk",
                    session=f"s{session}",
                    arm=arm,
                    round=0,
                    case=f"Skel %method={method} %ranks={ranks} %stripe_count=default "
                    "%built.application=star",
                )
    return loaded(folder)


WITHIN = {(method, ranks): 1.02 for method in ("POSIX", "MPI_AMR") for ranks in (4, 16)}


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
    found_runs = study(tmp_path, WITHIN | {("MPI_LUSTRE", 4): gain})
    for share, state in zip((0.7, 0.9), states, strict=True):
        found = claims.judge(one_claim(tmp_path, SHARE | {"share": [share, None]}), found_runs)
        assert found.state == state, found
    outside = 2 * (gain > 1.1)
    assert found.why == (
        f"of 10 cases of star {10 - outside} are within 10%, {outside} outside and 0 undecided: "
        f"{100 - 10 * outside}% to {100 - 10 * outside}%, claimed at least 90% of the cases"
    )
    assert found.value is not None and found.value.value == 1 - outside / 10


def test_cases_that_are_not_measured_may_lie_on_either_side(tmp_path: Path) -> None:
    """Two of the three cases of each method are within; the third was never run."""
    found_runs = study(tmp_path, WITHIN)
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
        found = claims.judge(
            one_claim(tmp_path, SHARE | {"share": share, "cases": cases}), found_runs
        )
        assert (found.state, found.value) == (state, None)
    assert found.why == (
        "of 12 cases of star 8 are within 10%, 0 outside and 4 undecided: 66.7% to 100%, claimed "
        "at most 50% of the cases; 4 are not measured, the first: 0 runs of star with "
        "stripe_count default, method POSIX, arm application, ranks 64, expected at least 3"
    )
    found = claims.judge(one_claim(tmp_path, SHARE | {"workload": "other"}), found_runs)
    assert found.why == "no runs of other by an application and its skeleton"


def test_a_run_without_its_counterpart_leaves_the_case_open(tmp_path: Path) -> None:
    found_runs = study(tmp_path, {("POSIX", 4): 1.02})
    lost = next(run for run in found_runs if run.identity.arm == "application")
    cases = [{"method": "POSIX", "stripe_count": "default", "ranks": [4]}]
    claim = one_claim(tmp_path, SHARE | {"cases": cases})
    assert claims.judge(claim, found_runs).state == claims.HOLDS
    found = claims.judge(claim, [run for run in found_runs if run is not lost])
    assert found.state == claims.UNDECIDED and found.why.endswith(
        "the runs of star with stripe_count default, method POSIX, ranks 4 are not in pairs"
    )


def test_times_of_processes_are_claimed_in_seconds(tmp_path: Path) -> None:
    """A step of 4 ranks takes 0.4 s, of which a tenth is communication, and 55 s more."""
    found_runs = study(tmp_path, {("MPI_LUSTRE", 4): 1.0}, collective_s=55)
    row = {key: CLAIM[key] for key in ("name", "source", "says")}
    row |= {"workload": "star", "stream": "restart"}
    side = {"method": "MPI_LUSTRE", "arm": "skeleton", "time": "communication"}
    slowest = side | {"processes": "slowest"}
    for bounds, state in (([49.5, 60.5], claims.HOLDS), ([None, 50], claims.FAILS)):
        claim = one_claim(tmp_path, row | {"of": slowest, "seconds": bounds})
        found = claims.judge(claim, found_runs)
        assert found.state == state and found.value is not None
        assert found.value.value == pytest.approx(55, abs=0.1)
    assert found.why.endswith(" s, claimed at most 50 s")
    other = one_claim(
        tmp_path, row | {"of": slowest, "to": slowest | {"arm": "application"}, "ratio": [1, None]}
    )
    found = claims.judge(other, found_runs)
    assert found.state == claims.HOLDS and found.value is not None and found.value.value > 500
    same = one_claim(
        tmp_path, row | {"of": slowest, "to": side | {"processes": "all"}, "ratio": [0.9, 1.1]}
    )
    assert claims.judge(same, found_runs).state == claims.HOLDS  # all communicate as long


def test_the_slowest_processes_are_those_with_the_longest_total_times(tmp_path: Path) -> None:
    row = results.program_result(ranks=20, slow_rank=(7, 30.0), speeds=[1e8])
    results.write_record(row, tmp_path / "one", partition="disk", arm="application")
    [run] = loaded(tmp_path)
    sides = {
        many: claim_sides.Side(time="io", processes=many)
        for many in claim_sides.CHOICES["processes"]
    }
    found = {many: claim_sides.values(run, "restart", side)[0] for many, side in sides.items()}
    io_s = 0.5 * 20 * 10 * 2**20 / 1e8
    assert found == pytest.approx(
        {"slowest": io_s + 30, "slowest-tenth": io_s + 15, "all": io_s + 1.5}
    )


def test_the_study_counts_56_of_its_60_cases_within_10_percent() -> None:
    """The errors of Fig. 2 outside of the limit, of all that its text lists."""
    [claim] = [
        c
        for c in claims.load(where("references") / "sith.yaml")
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
    for path in where("references").glob("*.yaml"):
        for claim in claims.load(path):
            assert (claim.workload, claim.stream) in described, f"{path.name}: {claim.name}"
