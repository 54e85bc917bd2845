"""IOR and mdtest: their outputs of versions 3.3.0 and 4.0.0, damaged ones, records and checks."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support import player
from tests.support.needs import need
from tests.support.said import raises, said
from understudy import producers
from understudy.cli import main
from understudy.contracts import run as runs
from understudy.contracts.run import Identity, Place
from understudy.errors import UnderstudyError
from understudy.judge.page import benchmarks
from understudy.paths import ROOT
from understudy.producers import ior, mdtest
from understudy.reframe.bases.benchmark import Mdtest

GOLDEN = Path(__file__).parent / "golden" / "benchmarks"
VERSIONS = ("3.3.0", "4.0.0")
MDTEST_VERSIONS = (*VERSIONS, "4.1.0-dev")
STARTED = "2026-11-22T11:15:02Z"


def of_ior(path: Path) -> dict[str, Any]:
    return ior.of_summary(path, name="ior-easy", started=STARTED, command_line=["ior"])


def of_mdtest(path: Path) -> dict[str, Any]:
    return mdtest.of_output(
        path,
        name="mdtest-easy",
        options={"case": "-F"},
        started=STARTED,
        command_line=["mdtest"],
    )


def written(row: dict[str, Any], folder: Path, name: str = "result.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(row))
    return path


@pytest.mark.parametrize("version", VERSIONS)
def test_a_summary_of_ior_is_a_measurement(version: str, tmp_path: Path) -> None:
    summary = GOLDEN / f"ior-{version}.json"
    whole = ior.read(written(of_ior(summary), tmp_path))
    assert whole.environment.libraries == {"ior": version}
    assert (whole.environment.ranks, len(whole.environment.nodes)) == (4, 1)
    assert (whole.options["transferSize"], whole.options["blockSize"]) == (262144, 1048576)
    [test] = json.loads(summary.read_text())["tests"]
    results = test["Results"][0] if version == "3.3.0" else test["Results"]
    stated = {row["access"]: row for row in results if row["access"] != "remove"}
    values = {(r.operation, r.metric): r.value for r in whole.rates}
    assert set(stated) == {"write", "read"}
    for operation, row in stated.items():
        assert values[operation, "bandwidth_bytes_per_s"] == row["bwMiB"] * (1 << 20)
        assert values[operation, "total_s"] == row["totalTime"]


OPERATIONS = (
    "File creation",
    "File stat",
    "File read",
    "File removal",
    "Tree creation",
    "Tree removal",
)


@pytest.mark.parametrize("version", MDTEST_VERSIONS)
@pytest.mark.parametrize("case", sorted(Mdtest.cases))
def test_the_table_of_mdtest_is_a_measurement(version: str, case: str, tmp_path: Path) -> None:
    """With all options that the check gives: with -P, a table of times follows that of rates."""
    path = GOLDEN / f"mdtest-{version}-{case}.txt"
    lines = path.read_text().splitlines()
    [command] = (line for line in lines if line.startswith("Command line used"))
    given = [word.strip("'") for word in command.split("mdtest ")[1].split()]
    assert given[2:-6] == Mdtest.cases[case].split()
    result = mdtest.read(written(of_mdtest(path), tmp_path))
    first = next(i for i, line in enumerate(lines) if line.startswith("SUMMARY rate"))
    table = [line.replace(":", " ").split() for line in lines[first + 3 : first + 9]]
    assert [(r.operation, r.value) for r in result.rates] == [
        (" ".join(row[:2]), float(row[3])) for row in table
    ]
    assert tuple(r.operation for r in result.rates) == OPERATIONS
    assert result.environment.libraries == {"mdtest": version.replace("-dev", "+dev")}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("   File stat  ", "   File stat (cold)", "expected an operation and its rates, found"),
        ("Max            Min", "Min            Max", "expected one table of the rates"),
        ("SUMMARY rate", "SUMMARY rate per s", "expected one table of the rates"),
        ("SUMMARY time:", "SUMMARY rate:", "expected one table of the rates"),
    ],
)
def test_a_table_that_is_not_understood_is_refused(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    text = (GOLDEN / "mdtest-4.0.0-easy.txt").read_text()
    assert old in text
    (tmp_path / "m.txt").write_text(text.replace(old, new, 1))
    with pytest.raises(UnderstudyError, match=message):
        of_mdtest(tmp_path / "m.txt")


def test_records_with_times_for_rates_are_left_out(tmp_path: Path) -> None:
    row = of_mdtest(GOLDEN / "mdtest-4.0.0-easy.txt")
    folder = record(tmp_path / "a", row, "mdtest", "s")
    kept = folder / "run.json"
    row_ = json.loads(kept.read_text())
    row_["measurement"]["rates"] += [
        rate | {"value": 0.001} for rate in row_["measurement"]["rates"][:4]
    ]
    kept.write_text(json.dumps(row_))
    with raises(UnderstudyError, "rates-file-creation-expected"):
        producers.load(kept)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("share", [0, 0.3, 0.9])
def test_half_an_output_is_refused(version: str, share: float, tmp_path: Path) -> None:
    for name, read in ((f"ior-{version}.json", of_ior), (f"mdtest-{version}-easy.txt", of_mdtest)):
        text = (GOLDEN / name).read_text()
        path = tmp_path / name
        path.write_text(text[: int(share * len(text))])
        with pytest.raises(UnderstudyError, match=re.escape(str(path))):
            read(path)
    with raises(UnderstudyError, "ior-wrote-no-result"):
        of_ior(tmp_path / "missing.json")


@pytest.mark.parametrize("value", ["NaN", "-1", '"x"', "1e999", "null"])
def test_a_figure_that_is_none_is_refused(value: str, tmp_path: Path) -> None:
    text = (GOLDEN / "ior-4.0.0.json").read_text()
    path = tmp_path / "s.json"
    path.write_text(re.sub(r'"bwMiB": [0-9.]+', f'"bwMiB": {value}', text, count=1))
    with raises(UnderstudyError, "expected-one-test-json"):
        of_ior(path)


def test_several_iterations_of_mdtest_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    text = (GOLDEN / "mdtest-4.0.0-easy.txt").read_text()
    path.write_text(text.replace("(of 1 iterations)", "(of 3 iterations)"))
    with raises(UnderstudyError, "expected-one-table-rates"):
        of_mdtest(path)


def record(folder: Path, row: dict[str, Any], case: str, session: str, **more: Any) -> Path:
    folder.mkdir()
    run = producers.record(
        written(row, folder),
        place=Place(system="here", partition="disk"),
        identity=Identity(case=case, session=session),
        **more,
    )
    runs.write(folder / "run.json", run)
    return folder


def test_figures_of_one_condition_are_pooled_and_others_are_not(tmp_path: Path) -> None:
    rows = [of_ior(GOLDEN / f"ior-{version}.json") for version in ("4.0.0",) * 3]
    for k, row in enumerate(rows):
        row["environment"]["started"] = f"2026-11-22T11:15:0{k}Z"
        row["rates"][0]["value"] = float(1 + k)
    rows[2]["options"]["transferSize"] = 4096
    folders = [record(tmp_path / str(k), row, "ior", "s") for k, row in enumerate(rows)]
    run = [producers.load(folder / "run.json") for folder in folders]
    items = [r for r in benchmarks.rows(run) if r.operation == "write"]
    assert sorted((r.values.n, r.values.low, r.values.high) for r in items) == [
        (1, 3.0, 3.0),
        (2, 1.0, 2.0),
    ]
    assert len({r.condition for r in items}) == 2


def test_the_page_shows_benchmarks_and_counts_failed_ones(tmp_path: Path) -> None:
    record(tmp_path / "a", of_ior(GOLDEN / "ior-4.0.0.json"), "ior", "s")
    record(tmp_path / "b", of_mdtest(GOLDEN / "mdtest-4.0.0-easy.txt"), "mdtest", "s")
    failed = of_ior(GOLDEN / "ior-4.0.0.json") | {"name": "ior-hard"}
    record(tmp_path / "c", failed, "ior", "s", producer="ior", failure="expected 4 ranks, found 3")
    page = tmp_path / "page.html"
    done = CliRunner().invoke(main, ["report", str(tmp_path), "-o", str(page)])
    assert done.exit_code == 0, done.output
    said("runs-failed", done.output)
    text = page.read_text()
    assert said("ior-mdtest", text) and "90,766 /s" in text and "expected 4 ranks" in text


def fake(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def reframe(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "bin").mkdir(exist_ok=True)
    path = [folder / "bin", Path(player.program()).parent, os.environ["PATH"]]
    environment = {
        **os.environ,
        "PATH": ":".join(map(str, path)),
        "RFM_COLORIZE": "0",
        "RFM_CONFIG_FILES": str(ROOT / "configs" / "settings.py"),
        "RFM_PREFIX": str(folder / "reframe"),
        "RFM_REPORT_FILE": str(folder / "report.json"),
        "UNDERSTUDY_OUTPUT": str(folder / "out"),
    }
    command = [Path(sys.executable).parent / "reframe", "-c", ROOT / "checks", *arguments]
    return subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


RUN = ("-r", "--system=localhost:tmpfs", "-S", "rounds=2")
# Its first two words are -a API.
SUMMARY = (
    'directory=$(sed -n 2p run-directory); for w; do case $w in summaryFile=*) sed "s/POSIX/$2/; '
    's|/dev/shm/g/|$directory/|" {} >${{w#summaryFile=}};; esac; done'
)


def test_the_check_of_ior_reads_what_it_wrote(tmp_path: Path) -> None:
    golden = GOLDEN / "ior-4.0.0.json"
    (tmp_path / "bin").mkdir()
    fake(tmp_path / "bin", "ior", SUMMARY.format(golden))
    size = ("-S", "block_bytes=1MiB", "-n", "^Ior%case=darshan%stripe_count=default")
    done = reframe(tmp_path, *RUN, *size)
    assert done.returncode == 0, done.stdout + done.stderr
    said("verdict-ior-darshan-localhost", done.stdout)
    assert len(list((tmp_path / "out" / "records").rglob("*.json.gz"))) == 2
    done = reframe(tmp_path, *RUN, *size, "-S", "block_bytes=2MiB")
    said("expected-blocks-bytes-found", done.stdout)
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("echo 'ior: no space' >&2; exit 3", "the job ended with status 3: ior: no space"),
        ("true", "IOR wrote no result"),
    ],
)
def test_an_ior_that_fails_is_told(script: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    fake(tmp_path / "bin", "ior", script)
    done = reframe(
        tmp_path, *RUN, "-S", "block_bytes=1MiB", "-n", "^Ior%case=easy%stripe_count=default"
    )
    assert done.returncode == 1
    assert fault in done.stdout


def test_the_benchmarks_themselves(tmp_path: Path) -> None:
    need("IOR and mdtest")
    done = reframe(
        tmp_path,
        *RUN,
        "-S",
        "block_bytes=1MiB",
        "-S",
        "files=20",
        "-n",
        "^(Ior|Mdtest).*stripe_count=default",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("verdict: ") == 5


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda t: t["Parameters"].update(api="DUMMY"), "api DUMMY, asked for POSIX"),
        (lambda t: t["Options"].update(api="DUMMY"), "api DUMMY, asked for POSIX"),
        (lambda t: t["Parameters"].update(blockSize=1), "write: 4 bytes in "),
        (lambda t: [r.update(bwMiB=1e9) for r in t["Results"]], "but a bandwidth of 10485"),
        (lambda t: [r.update(bwMiB=1e9, totalTime=0.0) for r in t["Results"]], None),
    ],
)
def test_ior_that_contradicts_itself_is_refused(
    spoil: Callable[[dict[str, Any]], object], told: str | None, tmp_path: Path
) -> None:
    """A time of 0 tells nothing: such a run is too short to be judged."""
    row = json.loads((GOLDEN / "ior-4.0.0.json").read_text())
    spoil(row["tests"][0])
    path = tmp_path / "summary.json"
    path.write_text(json.dumps(row))
    command = ["ior", "-a", "POSIX"]
    if told is None:
        assert ior.of_summary(path, name="x", started=STARTED, command_line=command)
        return
    with pytest.raises(UnderstudyError, match=told):
        ior.of_summary(path, name="x", started=STARTED, command_line=command)
