"""Metrics for Prometheus: values, open changes and failures, read by Prometheus itself."""

import functools
import http.server
import json
import re
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families as parse

from tests.support.needs import need
from tests.test_compare import keep
from tests.test_trend import night, site  # noqa: F401  # a fixture
from understudy.cli import main
from understudy.commands.metrics import exposition
from understudy.judge.comparison import trend as trends
from understudy.paths import ROOT, where
from understudy.records import index as indexes
from understudy.records import select

WAIT_S = 60.0
HOSTILE = 'quote " back \\ line\nend \x1b[31m'
SHOWN = 'quote " back \\\\ line\\nend \\x1b[31m'  # what a terminal may show


def metrics(*words: object) -> str:
    done = CliRunner().invoke(main, ["metrics", "--system", "star", *map(str, words)])
    assert (done.exit_code, done.stderr) == (0, "")
    return done.stdout


def by_name(text: str) -> dict[tuple[str, str], float]:
    """Values by name and case."""
    return {
        (sample.name.removeprefix("understudy_"), sample.labels.get("case", "")): sample.value
        for family in parse(text)
        for sample in family.samples
    }


@pytest.fixture
def nights(site: Path) -> Path:  # noqa: F811
    """A case that loses half, one with a hostile name and a failure, and one that always fails."""
    for i in range(6):
        night(site, i, 0.5 if i >= 4 else 1.0)
        night(site, i, 1.0, HOSTILE, failure="broken" if i == 2 else None)
        night(site, i, 1.0, "lost", failure="broken")
    return site


@pytest.mark.usefixtures("nights")
def test_values_changes_and_failures_are_told() -> None:
    text = metrics()
    result = by_name(text)
    hostile = f"Replay {SHOWN}"
    calm, lost = (result["bandwidth_bytes_per_second", case] for case in (hostile, "Replay n"))
    assert 0.4 < lost / calm < 0.6
    assert result["open_losses", "Replay n"] == 1 and result["open_losses", hostile] == 0
    assert 0.4 < result["open_change_ratio", "Replay n"] < 0.6
    assert result["open_change_ratio", hostile] == 1
    failed = {case: result["failed_runs", case] for case in ("Replay n", hostile, "Replay lost")}
    assert list(failed.values()) == [0, 1, 6]
    assert (result["runs", ""], result["trend_status", ""], result["unread_records", ""]) == (
        18,
        1,
        0,
    )
    last = datetime(2026, 8, 6, 1, 30, tzinfo=timezone.utc).timestamp()
    assert result["last_session_timestamp_seconds", "Replay n"] == last
    assert result["last_failure_timestamp_seconds", "Replay lost"] == last
    assert "\x1b" not in text


def test_each_figure_has_labels_of_its_own(site: Path) -> None:  # noqa: F811
    """Prometheus refuses a file with one twice: conditions and names differ, if only a little."""
    names = ("a", "a\x1b", "a\\x1b", "a\\\\x1b", "a\n", "a\\n")
    for name in names:
        night(site, 1, 1.0, name)
        keep(site, "s-2", 2, 1.0, name=name, change_row=_direct)
    samples = [sample for family in parse(metrics()) for sample in family.samples]
    keys = {(sample.name, *sorted(sample.labels.items())) for sample in samples}
    assert len(keys) == len(samples)
    values = [
        sample for sample in samples if sample.name == "understudy_bandwidth_bytes_per_second"
    ]
    assert len(values) == 2 * len(names)
    words = {
        sample.labels["words"] for sample in samples if sample.name == "understudy_condition_info"
    }
    assert len(words) == 2


def _direct(row: dict[str, Any]) -> None:
    row["producer"]["options"]["method"] = row["measurement"]["options"]["method"] = "mpiio"


@pytest.mark.usefixtures("nights")
def test_a_record_that_cannot_be_read_is_counted(nights: Path) -> None:
    [path, *_] = sorted(nights.rglob("*.json.gz"))
    path.write_bytes(b"damaged")
    done = CliRunner().invoke(main, ["metrics", "--system", "star"])
    assert done.exit_code == 0 and f"left out: {path}" in done.stderr
    assert by_name(done.stdout)["unread_records", ""] == 1


@pytest.mark.usefixtures("nights")
def test_a_file_is_replaced_only_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "understudy.prom"
    for _ in range(2):
        assert metrics("-o", path, "-f") == ""
    assert by_name(path.read_text()) == by_name(metrics())
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    done = CliRunner().invoke(main, ["metrics", "--system", "star", "-o", str(other)])
    assert done.exit_code == 2 and other.read_text() == "mine" and str(other) in done.stderr


def queries() -> list[str]:
    """Those of the panels, for all systems and partitions, the metrics of the variables, and the
    rules for alerts of the tutorial."""
    dashboard = json.loads((where("dashboard")).read_text())
    asked = [item["expr"] for panel in dashboard["panels"] for item in panel["targets"]]
    listed = [
        item["definition"] for item in dashboard["templating"]["list"] if "definition" in item
    ]
    asked += [text.removeprefix("label_values(").rpartition(",")[0] for text in listed]
    tutorial = (ROOT / "docs" / "tutorial" / "nightly.md").read_text(encoding="utf-8")
    asked += re.findall(r"^ +expr: (.*)$", tutorial, re.MULTILINE)
    return [re.sub(r"\$(system|partition)", ".*", text) for text in asked]


def test_the_dashboard_asks_for_what_is_printed(nights: Path) -> None:
    """Of figures in each unit."""
    trends_ = trends.of(indexes.of_folder(nights), select.ALL)
    figures = [
        replace(figure, words="x", series=replace(figure.series, unit=unit))
        for figure in trends_.figures
        for unit in ("bytes/s", "1/s", "s")
    ]
    text = exposition({"system": "star"}, replace(trends_, figures=tuple(figures)), 0)
    printed = {family.name: family.samples[0].labels for family in parse(text)}
    asked = {name for query in queries() for name in re.findall(r"understudy_\w+", query)}
    assert asked <= printed.keys() and len(asked) > 8
    matched = [re.findall(r"(\w+)\{(.*?)\}", query) for query in queries()]
    for name, labels in (pair for pairs in matched for pair in pairs):
        assert set(re.findall(r"(\w+)=~", labels)) <= printed[name].keys() | {"partition"}


@functools.cache
def prometheus(folder: Path) -> str:
    """That of the system, else that of Debian's package, which need not be installed."""
    need("Prometheus")
    try:
        subprocess.run(["prometheus", "--version"], capture_output=True, check=True)
        return "prometheus"
    except FileNotFoundError:
        subprocess.run(["apt-get", "-q", "download", "prometheus"], cwd=folder, check=True)
        [package] = folder.glob("prometheus_*.deb")
        subprocess.run(["dpkg", "-x", str(package), str(folder)], check=True)
        return str(folder / "usr/bin/prometheus")


def test_prometheus_reads_them(nights: Path, tmp_path: Path) -> None:
    program = prometheus(tmp_path)
    (tmp_path / "metrics").write_text(metrics("--folder", nights))
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    target = f"127.0.0.1:{server.server_port}"
    scrape = {"job_name": "understudy", "static_configs": [{"targets": [target]}]}
    config = tmp_path / "prometheus.yml"
    config.write_text(
        json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [scrape]})
    )
    asked = urllib.parse.quote("understudy_open_losses == 1")
    command = [program, f"--config.file={config}", f"--web.listen-address={address}"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, f"--storage.tsdb.path={tmp_path / 'data'}"], stdout=log, stderr=log
        )
    try:
        result = answer(f"http://{address}/api/v1/query?query={asked}")
        for query in queries():
            url = f"http://{address}/api/v1/query?query={urllib.parse.quote(query)}"
            with urllib.request.urlopen(url, timeout=5) as response:  # else 400: it cannot be read
                assert json.load(response)["status"] == "success"
    finally:
        process.terminate()
        process.wait()
        server.shutdown()
        server.server_close()
    assert [item["metric"]["case"] for item in result] == ["Replay n"], (
        tmp_path / "log"
    ).read_text()


def answer(url: str) -> list[dict[str, dict[str, str]]]:
    """What a query finds, once it finds anything; nothing after a minute."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                result: list[dict[str, dict[str, str]]] = json.load(response)["data"]["result"]
        except OSError:
            result = []
        if result:
            return result
        time.sleep(0.5)
    return []
