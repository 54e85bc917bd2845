"""What the page cache may have served, and what would make storage serve it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import results as samples
from tests.support.said import said
from tests.test_accept import accept, finding, marks
from tests.test_benchmark_producers import GOLDEN
from understudy import producers
from understudy.contracts import run as runs
from understudy.contracts import workload
from understudy.contracts.measurement import Benchmark, Node
from understudy.contracts.run import Identity, Place, Run
from understudy.judge.acceptance import site_references
from understudy.judge.page import benchmarks
from understudy.judge.statistics import cache, conditions
from understudy.producers import ior
from understudy.reframe.bases import recording
from understudy.report import page

GIB = 1 << 30
NAME = "s3d"  # which flushes nothing itself


def measured(nodes: int = 1, fsync: bool = True) -> Benchmark:
    """Of IOR, on 4 ranks of as many nodes."""
    row = ior.of_summary(
        GOLDEN / "ior-4.0.0.json",
        name="ior-easy",
        started="2026-11-22T11:15:02Z",
        command_line=["ior"],
    )
    row["options"] |= {"fsync": fsync, "reorderTasks": True, "blockSize": 512 << 20}
    result = producers.parse(row, "ior")[1]
    assert isinstance(result, Benchmark)
    where = tuple(Node(name=f"n{k}", ranks=4 // nodes) for k in range(nodes))
    return replace(result, environment=replace(result.environment, ranks=4, nodes=where))


def test_reads_of_ior_on_one_node_need_nodes_blocks_or_dropped_caches() -> None:
    result = cache.may_serve(measured(), 16 * GIB)
    assert list(result) == ["read"]
    for words in (
        "use at least 2 nodes",
        "blocks of at least 4.00 GiB (-S Ior.block_bytes)",
        "drop the caches",
    ):
        assert words in result["read"]
    assert "--mode accept" not in result["read"]
    assert cache.may_serve(measured(nodes=2), 16 * GIB) == {}
    assert cache.may_serve(measured(), 2 * GIB) == {}
    assert "ior -e" in cache.may_serve(measured(fsync=False), 16 * GIB)["write"]


def of_player(folder: Path, memory_bytes: int = GIB, **options: Any) -> list[Run]:
    """Seven equal sessions of s3d, with what the cache may serve as their records say it."""
    items = []
    for k in range(7):
        row = samples.result(workload.get(NAME), **options)
        row["environment"]["started"] = f"2026-01-{k + 1:02d}T00:00:00Z"
        run = producers.record(
            samples.write(row, folder / f"{k}.json"),
            place=Place(system="sample", partition="disk", environment="gnu"),
            identity=Identity(session=f"session {k}", case=f"Replay %workload={NAME}"),
        )
        played = producers.measured(run)
        assert played is not None
        served = list(cache.may_serve(played, memory_bytes))
        values = {"node_memory_bytes": memory_bytes, "may_serve": served}
        items.append(replace(run, cache=values))
    return items


def test_a_mark_says_what_would_help_and_not_what_was_done(tmp_path: Path) -> None:
    result = finding(tmp_path, of_player(tmp_path), at_least="1 MiB/s", workload=NAME)
    assert result.state == "undecided" and "-S fsync=1" in result.why
    flushed = of_player(tmp_path, fsync=True, restart=True)
    assert finding(tmp_path, flushed, at_least="1 MiB/s", workload=NAME).state == "pass"
    mark = {"metric": "restart", "at_most": "1 h", "workload": NAME}
    result = finding(tmp_path, flushed, **mark)
    assert result.state == "undecided" and "-S drop_cache=1" in result.why
    assert "fsync" not in result.why
    dropped = of_player(tmp_path, fsync=True, restart=True, drop_cache=True)
    assert finding(tmp_path, dropped, **mark).state == "pass"


def test_a_read_of_the_mode_accept_is_told_what_it_lacks(tmp_path: Path) -> None:
    """IOR on one node, as the mode accept runs it."""
    row = ior.of_summary(
        GOLDEN / "ior-4.0.0.json",
        name="ior-easy",
        started="2026-11-22T11:15:02Z",
        command_line=["ior"],
    )
    row["options"] |= {"fsync": True, "reorderTasks": True}
    runs_ = []
    for k in range(7):
        row["environment"]["started"] = f"2026-01-{k + 1:02d}T00:00:00Z"
        run = producers.record(
            samples.write(row, tmp_path / f"{k}.json"),
            producer="ior",
            place=Place(system="sample", partition="disk", environment="gnu"),
            identity=Identity(session=f"session {k}", case="Ior %case=easy"),
        )
        runs_.append(
            replace(
                run,
                cache={"node_memory_bytes": 1 << 50, "may_serve": ["read"]},
            )
        )
    mark = {"program": "ior", "workload": "ior-easy", "operation": "read"}
    run = finding(tmp_path, runs_, at_least="1 B/s", **mark)
    assert run.state == "undecided"
    assert "nodes" in run.why and "--mode accept" not in run.why
    [told] = recording.from_cache(runs_)
    said("page-cache-may-have", told)
    [case] = site_references.cases(runs_)
    refused = {item.name: item.refused for item in case.references}
    assert refused["write_bandwidth"] is None
    said("may-come-from-page", str(refused["read_bandwidth"]))
    text = site_references.text("sample", [case], None)
    [row] = [row for row in benchmarks.rows(runs_) if row.operation == "read"]
    said("use-least-nodes", row.remedy)
    shown = page.render([], beside=benchmarks.rows(runs_))
    assert shown.count('class="range">may come from cache<') == 1 and row.remedy in shown
    assert '\n      "write_bandwidth": [' in text and '\n      # "read_bandwidth": ' in text


@pytest.mark.parametrize("method", ["posix", "uring", "stdio"])
def test_direct_methods_go_around_the_cache(tmp_path: Path, method: str) -> None:
    """Writes with their own option; stdio has none."""
    options = {f"{other}.direct": "yes" for other in ("posix", "uring") if other != method}
    [run, *_] = of_player(tmp_path, method=method, method_options=options)
    assert run.cache is not None and run.cache["may_serve"]
    [run, *_] = of_player(tmp_path, method=method, method_options={f"{method}.direct": "yes"})
    assert run.cache is not None and bool(run.cache["may_serve"]) == (method == "stdio")


@pytest.mark.parametrize("fsync", [True, False])
def test_references_demand_nothing_that_the_cache_may_serve(tmp_path: Path, fsync: bool) -> None:
    [case] = site_references.cases(of_player(tmp_path, fsync=fsync))
    values = {item.name: item for item in case.references}
    stored = workload.get(NAME).streams[0].name
    for name in (f"{stored}_bandwidth", "elapsed"):
        assert bool(values[name].remedy) != fsync
        assert fsync or "may come from the page cache: flush" in str(values[name].refused)


def test_references_come_from_no_run_that_wrote_wrong_bytes(tmp_path: Path) -> None:
    good, spoiled = of_player(tmp_path, fsync=True), of_player(tmp_path, fsync=True, verify=True)
    for run in spoiled[:3]:
        assert run.measurement is not None
        run.measurement["verification"]["wrong_bytes"] = 5
    [case] = site_references.cases([*good, *spoiled[:3]])
    assert (len(case.used), len(case.failed)) == (7, 3)
    said("b-read-back-differ", str(spoiled[0].fault))


def test_a_volume_below_the_memory_of_the_nodes_is_warned_of(tmp_path: Path) -> None:
    large = of_player(tmp_path, memory_bytes=1 << 20, fsync=True)
    assert finding(tmp_path, large, at_least="1 MiB/s", workload=NAME).warning == ""
    small = of_player(tmp_path, memory_bytes=GIB, fsync=True)
    result = finding(tmp_path, small, at_least="1 MiB/s", workload=NAME)
    assert result.state == "pass"
    said("runs-move-less-than", result.warning)
    mark = {"at_least": "1 MiB/s", "workload": NAME, "cache": "allowed"}
    assert finding(tmp_path, small, **mark).warning == ""
    for k, run in enumerate(small):
        (tmp_path / str(k)).mkdir()
        runs.write(tmp_path / str(k) / "run.json", run)
    done = accept(
        marks(tmp_path, {"workload": NAME}),
        *(tmp_path / str(k) for k in range(7)),
        "-o",
        tmp_path / "page.html",
    )
    assert done.exit_code == 0, done.output
    said("warning-mark", done.stderr, made_warning=result.warning)
    assert result.warning in (tmp_path / "page.html").read_text()


def test_the_page_says_what_would_help(tmp_path: Path) -> None:
    for k, run in enumerate(of_player(tmp_path)):
        (tmp_path / str(k)).mkdir()
        runs.write(tmp_path / str(k) / "run.json", run)
    measured_, failed = conditions.load(producers.find([tmp_path / str(k) for k in range(7)]))
    text = page.render(conditions.group(measured_), failed)
    said("may-come-from-cache", text)
    said("where-page-cache-may", text)
