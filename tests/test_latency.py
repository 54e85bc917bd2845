"""Latencies of data calls: percentiles, what runs put together say, marks, and where they show."""

import copy
import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support import player, results
from tests.support.said import raises, said
from tests.test_accept import STORAGE, finding
from understudy import producers
from understudy.cli import main
from understudy.contracts import run as runs
from understudy.contracts import workload
from understudy.contracts.measurement import Latency
from understudy.contracts.run import Identity, Place, Run
from understudy.errors import UnderstudyError
from understudy.judge.statistics import latencies
from understudy.paths import ROOT
from understudy.producers import player as reading
from understudy.records import store
from understudy.reframe.session import live

NAME = "n-n"
SHARES = (0, 0.001, 0.5, 0.9, 0.99, 0.999, 1)
WIDTH = 1 / 128  # of a bucket, of its latencies
PERCENTILES = ("p50_s", "p99_s", "p999_s", "max_s")
RANGE = {"min": 1, "max": 2}
ENDS = {"stopped_ranks": 0, "bytes": 1, "rank_bytes": RANGE, "rank_transfers": RANGE}


def histogram(times_ns: Sequence[int]) -> list[list[int]]:
    """The pairs that the player makes of latencies."""
    counts: dict[int, int] = {}
    for ns in times_ns:
        width = 1 << max(0, ns.bit_length() - 8)
        upper = ns // width * width + width - 1
        counts[upper] = counts.get(upper, 0) + 1
    return [[ns, counts[ns]] for ns in sorted(counts)]


def exact(times_ns: Sequence[int], share: float) -> float:
    """The smallest latency with at least the share of all at or below it, in seconds."""
    return sorted(times_ns)[max(0, math.ceil(share * len(times_ns)) - 1)] / 1e9


def row_of(times_ns: Sequence[int]) -> dict[str, Any]:
    """Of a measurement."""
    pairs, max_s = histogram(times_ns), max(times_ns) / 1e9
    bare = Latency(
        **dict.fromkeys(("count", "bytes", "p50_s", "p99_s", "p999_s"), 0),
        max_s=max_s,
        histogram_ns=pairs,
    )
    shares = {"p50_s": 0.5, "p99_s": 0.99, "p999_s": 0.999}
    percentiles = {key: bare.quantile(share) for key, share in shares.items()}
    row = {"count": len(times_ns), "bytes": 4096 * len(times_ns), "max_s": max_s}
    return row | percentiles | {"histogram_ns": pairs}


def scattered(seed: int, count: int = 5000) -> list[int]:
    """Latencies from 20 µs on, one of a hundred a hundred times as long."""
    dice = random.Random(seed)
    return [
        int(20_000 * dice.lognormvariate(0, 0.5)) * (100 if dice.random() < 0.01 else 1)
        for _ in range(count)
    ]


def measured(times_ns: Sequence[int] | None, seed: int = 1, **options: Any) -> dict[str, Any]:
    """A measurement of the player's of today, whose streams each have these latencies."""
    row = results.of_today(results.result(workload.get(NAME), seed=seed, **options))
    for stream in (s for r in row["repetitions"] for s in r["streams"]):
        if times_ns is not None:
            stream["latency"] = {stream["operation"]: row_of(times_ns)}
    return row


def run_of(folder: Path, night: int, times_ns: Sequence[int] | None, **options: Any) -> Run:
    row = measured(times_ns, seed=night, **options)
    row["environment"]["started"] = f"2026-01-{night + 1:02d}T00:00:00Z"
    run = producers.record(
        results.write(row, folder / f"{night}.json"),
        place=Place(system="sample", partition="disk", environment="gnu"),
        identity=Identity(session=f"session {night}", case=f"Replay %workload={NAME}"),
    )
    return replace(run, cache=STORAGE)


def text_of(*arguments: object, status: int = 0) -> str:
    done = CliRunner().invoke(main, [*map(str, arguments)])
    assert done.exit_code == status, done.output
    return done.output


def test_percentiles_are_those_of_sorted_latencies() -> None:
    for seed in range(5):
        parts = [scattered(seed), scattered(seed + 10, 77), [1], [255, 256, 257], [5_000_000_000]]
        times_ns = [ns for part in parts for ns in part]
        whole = latencies.merged(Latency(**row_of(part)) for part in parts)
        assert whole is not None and whole.count == len(times_ns)
        assert whole.bytes == 4096 * len(times_ns)
        assert whole.max_s == exact(times_ns, 1)
        assert [list(pair) for pair in whole.histogram_ns] == histogram(times_ns)
        for share in SHARES:
            expected = exact(times_ns, share)
            value = whole.quantile(share)
            assert expected <= value + 1e-15 and value <= expected * (1 + WIDTH), share
        assert (whole.p50_s, whole.p999_s) == tuple(
            whole.quantile(share) for share in (0.5, 0.999)
        )
    assert latencies.merged([]) is None


def test_histograms_are_those_of_hdrhistogram() -> None:
    from hdrh.histogram import HdrHistogram

    oracle = HdrHistogram(1, 1 << 42, 2)
    parts = [scattered(seed, 1000) for seed in range(5)]
    whole = latencies.merged(Latency(**row_of(part)) for part in parts)
    assert whole is not None
    for ns in (ns for part in parts for ns in part):
        oracle.record_value(ns)
    for ns, count in whole.histogram_ns:
        assert oracle.get_highest_equivalent_value(ns) == ns
        assert oracle.get_count_at_value(ns) == count
    for share in (0.5, 0.9, 0.99, 0.999):
        expected = oracle.get_value_at_percentile(100 * share)
        assert whole.quantile(share) == expected / 1e9


def test_the_player_notes_what_the_record_has(tmp_path: Path) -> None:
    path = ROOT / "proxies" / "tests" / "samples" / "mixed.json"
    played = player.play(path, 4, tmp_path / "data", "--time-scale", "0", "-i", "2")
    run = producers.record(tmp_path / "result.json")
    for repetition in played.repetitions:
        for stream in repetition.streams:
            latency = stream.latency[stream.operation]
            assert all(histogram([ns]) == [[ns, 1]] for ns, _ in latency.histogram_ns)
            assert latencies.merged([latency]) == replace(
                latency, histogram_ns=tuple(tuple(pair) for pair in latency.histogram_ns)
            )
            values = {
                s.metric: s.value
                for s in run.samples
                if (s.stream, s.repetition) == (stream.name, repetition.repetition)
            }
            for key in ("p50_s", "p99_s", "p999_s", "max_s"):
                assert values[f"{stream.operation}_latency_{key}"] == getattr(latency, key)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("count", 7, "latency-count"),
        ("histogram_ns", [[300, 2], [200, 3]], "latency-order"),
        ("histogram_ns", [[200, 2], [300, 3]], "latency-buckets"),
        ("p99_s", 1e9, "latency-percentiles"),
        ("max_s", 1.0, "latency-maximum"),
    ],
)
def test_a_latency_that_contradicts_itself(
    tmp_path: Path, key: str, value: Any, words: str
) -> None:
    row = measured(scattered(1))
    row["repetitions"][0]["streams"][0]["latency"]["write"][key] = value
    with raises(UnderstudyError, words):
        reading.read(results.write(row, tmp_path / "result.json"))


FORGED: dict[str, tuple[tuple[str | int, ...], Any]] = {
    "latency-below": (("latency", "write"), dict.fromkeys(PERCENTILES, 1e-6)),
    "latency-percentiles": (("latency", "write"), {"p99_s": 1e9}),
    "latency-maximum": (("latency", "write"), {"max_s": 1.0}),
    "first-end": (("dumps", 0, "phases", 1), {"first_end_s": 1e9}),
    "first-end-bytes": (("dumps", 0, "phases", 1), {"first_end_bytes": 1 << 60}),
    "last-end": (("dumps", 0, "phases", 1), {"first_start_s": 1e9}),
    "deadline-early": (("dumps", 0), {"deadline": ENDS | {"stopped_ranks": 2}}),
    "deadline-bytes": (("dumps", 0), {"deadline": ENDS | {"bytes": 1 << 60}}),
    "deadline-range": (("dumps", 0), {"deadline": ENDS | {"rank_bytes": {"min": 2, "max": 1}}}),
}


@pytest.mark.parametrize("words", FORGED)
@pytest.mark.parametrize("command", ["records import", "records migrate", "report", "compare"])
def test_no_command_takes_a_result_whose_times_contradict_each_other(
    command: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNDERSTUDY_RECORDS", str(tmp_path / "records"))
    row = measured(scattered(1), deadline_s=1e6)
    path, keys = FORGED[words]
    place = row["repetitions"][0]["streams"][0]
    for key in path:
        place = place[key]
    place |= keys
    file = results.write(row, tmp_path / "forged.json")
    good = results.write(measured(scattered(2), seed=2), tmp_path / "good.json")
    said(words, text_of(*command.split(), file, *[good] * (command == "compare"), status=2))
    assert not (tmp_path / "forged.run.json").exists()
    assert not list((tmp_path / "records").rglob("*.json.gz"))


def test_show_has_a_column_of_them(tmp_path: Path) -> None:
    file = results.write(measured([2_000_000] * 98 + [7_000_000] * 2), tmp_path / "r.json")
    lines = text_of("show", file, "--no-dumps").splitlines()
    (head,) = [line for line in lines if "99 % of calls" in line]
    assert any("7.00 ms" in line for line in lines[lines.index(head) :])
    assert "7.00 ms" not in text_of(
        "show", results.write(measured(None), tmp_path / "s.json"), "--no-dumps"
    )


def test_the_live_line_has_them() -> None:
    noted, silent = (
        reading.parse(copy.deepcopy(measured(times)), "here")
        for times in ([2_000_000] * 98 + [7_000_000] * 2, None)
    )
    figures = live.figures([noted])
    assert figures is not None and figures.call_p99_s == pytest.approx(7e-3)
    said("live-calls", str(figures))
    figures = live.figures([silent])
    assert figures is not None and figures.call_p99_s is None and "call" not in str(figures)


def test_marks_of_latencies(tmp_path: Path) -> None:
    fast, slow = [1_000_000] * 1000, [1_000_000] * 980 + [9_000_000] * 20
    runs = [run_of(tmp_path, k, fast) for k in range(7)]
    mark = {"metric": "latency", "at_most": "5 ms"}
    assert finding(tmp_path, runs, **mark).state == "pass"
    assert finding(tmp_path, runs, **mark | {"at_most": "500 us"}).state == "fail"
    name = workload.get(NAME).streams[0].name
    assert finding(tmp_path, runs, **mark, stream=name, statistic="every").state == "pass"
    runs = [run_of(tmp_path, k, slow) for k in range(7)]
    assert finding(tmp_path, runs, **mark).state == "fail"
    assert finding(tmp_path, runs, **mark, quantile="95 %").state == "pass"
    worst = finding(tmp_path, runs, **mark, quantile="100 %", statistic="every")
    assert (worst.state, worst.value) == ("fail", pytest.approx(9e-3))
    mixed = [run_of(tmp_path, 0, None), *runs[1:]]
    silent = finding(tmp_path, mixed, **mark | {"at_most": "1 h"})
    assert (silent.state, silent.value) == ("undecided", None)
    said("latency-not-noted", silent.why)
    other = finding(tmp_path, runs, **mark, stream=name, operation="read")
    assert other.state == "undecided"
    said("latency-other-kind", other.why)
    other = finding(tmp_path, runs, **mark, operation="read")
    assert other.state == "undecided"
    said("no-stream-read", other.why)


def test_nights_of_latencies_are_compared(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    for night in range(12):
        longer = 1 if night < 6 else 3
        times = [longer * ns for ns in scattered(night)]
        store.keep(run_of(tmp_path, night, times), kept)
    metric = ("--metric", "write_latency_p50_s")
    text = text_of("trend", "--system", "sample", *metric, "--folder", kept)
    said("trend-latency", " ".join(text.split()))
    said(
        "trend-no-metric",
        text_of("trend", "--system", "sample", "--metric", "x_s", "--folder", kept, status=2),
    )


def test_the_page_has_a_table_of_them(tmp_path: Path) -> None:
    records = tmp_path / "records"
    for night in range(2):
        store.keep(run_of(tmp_path, night, [2_000_000] * 98 + [7_000_000] * 2), records)
    page = tmp_path / "page.html"
    text_of("report", records, "-o", page)
    html = page.read_text()
    assert "Latencies of data calls (" in html
    (table,) = [part for part in html.split("<details>") if "Latencies of data calls (" in part]
    repetitions = len(json.loads((tmp_path / "0.json").read_text())["repetitions"])
    assert f">{2 * 100 * repetitions}<" in table and "7.00 ms" in table and "2.0" in table


def test_compare_says_that_latencies_are_not_compared(tmp_path: Path) -> None:
    for side in ("before", "after"):
        for night in range(2):
            row = measured([1_000_000 + 1000 * night + 9 * len(side)] * 100)
            folder = tmp_path / side / str(night)
            folder.mkdir(parents=True)
            run = producers.record(
                results.write(row, folder / "result.json"),
                place=Place(system="star", partition="disk"),
                identity=Identity(session=f"{side}-{night}", case="Replay"),
            )
            (folder / "result.json").unlink()
            runs.write(folder / "run.json", run)
    both = str(tmp_path / "before"), str(tmp_path / "after")
    assert said("compare-latencies", text_of("compare", *both))
    refused = text_of("compare", *both, "--metric", "write_latency_p99", status=2)
    assert said("compare-no-samples", refused)
    assert "latencies are not" not in text_of("compare", *both, "--metric", "write_latency_p99_s")
