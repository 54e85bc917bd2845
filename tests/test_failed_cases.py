"""No failed case vanishes: a real session whose cases fail in every way, and its pages."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support import results as samples
from tests.support.said import said
from tests.test_checks import of_this_job
from understudy import producers
from understudy.commands import report
from understudy.paths import ROOT

CHECK = """\
import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import fixture, parameter, run_after, run_before, sanity_function

from understudy.reframe.bases.interleaved import Arm, Interleaved

FOLDER = {folder!r}


class Program(rfm.CompileOnlyRegressionTest):
    sourcesdir = None
    build_system = "CustomBuild"
    valid_systems = ["*"]
    valid_prog_environs = ["*"]

    @run_before("compile")
    def build(self):
        self.build_system.commands = ["false"]

    @sanity_function
    def built(self):
        return True


class Toy(Interleaved):
    stripe_count = "default"
    ranks = 1
    num_tasks = 1
    rounds = 1
    bytes_needed = 1
    methods_needed = set()
    title = "toy"
    arms = [Arm(name="replica", producer="player", program="toy")]
    keep_files = ["replica"]

    def command(self, arm, directory, measurement):
        return f"{{FOLDER}}/toy.sh {{self.kind}} {{measurement}}"

    def faults_of(self, arm, measured):
        if self.kind == "sanity":
            yield "a fault"

    @run_before("run")
    def one_job(self):
        make_folder, first, *others = self.turns()
        self.executable = self.planned_runs[0].command
        before = ["exit 3"] if self.kind == "before" else []
        self.prerun_cmds = [*before, *self.run_directory(), make_folder]
        self.postrun_cmds = others
        if self.kind == "timeout":
            self.time_limit = "1s"

    def _verdict(self):
        return "done"


@rfm.simple_test
class Ways(Toy):
    kind = parameter(["good", "sanity", "run", "timeout", "before", "skip"], loggable=True)

    @run_after("setup")
    def leave_one_out(self):
        self.skip_if(self.kind == "skip", "not today")


@rfm.simple_test
class Dependent(Toy):
    kind = "good"
    program = fixture(Program, scope="environment")
"""
PROGRAM = """\
#!/bin/sh
case $1 in
run) echo "toy: no space" >&2; exit 5 ;;
timeout) sleep 1000 ;;
esac
{print_measurements} | sed "s/name-of-the-case/$1/" >"$2"
"""
FAILED = {"sanity", "run", "timeout", "before"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for output of a session of which one case is good and one is skipped."""
    folder = tmp_path_factory.mktemp("site")
    checks = folder / "checks"
    checks.mkdir()
    (checks / "ways.py").write_text(CHECK.format(folder=str(folder)))
    row = samples.result(samples.per_process(), file_system="tmpfs")
    row["environment"]["host"] = "name-of-the-case"  # no two cases have the same measurement
    (folder / "made.json").write_text(json.dumps(row))
    program = folder / "toy.sh"
    program.write_text(PROGRAM.format(print_measurements=of_this_job(folder / "made.json")))
    program.chmod(0o755)
    environment = {
        **os.environ,
        "RFM_CONFIG_FILES": str(ROOT / "configs" / "settings.py"),
        "RFM_COLORIZE": "0",
        "UNDERSTUDY_OUTPUT": str(folder / "out"),
    }
    environment.pop("UNDERSTUDY_RECORDS", None)
    command = [
        str(Path(sys.executable).parent / "reframe"),
        "-c",
        str(checks),
        "-r",
        "--system=localhost:tmpfs",
    ]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert re.search(r"Ran \d/8 test case\(s\)", done.stdout), done.stdout + done.stderr
    return folder / "out"


def page(*paths: Path, to: Path) -> tuple[Result, str]:
    done = CliRunner().invoke(report.command, [*map(str, paths), "-o", str(to)])
    html = to.read_text() if to.exists() else ""
    return done, re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def test_every_failed_case_of_a_session_has_a_record(site: Path) -> None:
    (session,) = (path for path in (site / "records").iterdir() if path.is_dir())
    run_ = [producers.load(path) for path in session.iterdir()]
    failed = {run.identity.case: str(run.producer.failure) for run in run_ if run.failed}
    assert set(failed) == {"Dependent", *(f"Ways %kind={kind}" for kind in FAILED)}
    assert {run.place.partition for run in run_} == {"tmpfs"}
    said("started-case-depends-failed", failed["Dependent"])
    said("failed-its-stage-sanity", failed["Ways %kind=before"])
    assert "status 3" in failed["Ways %kind=before"]
    said("toy-no-space", failed["Ways %kind=run"])
    assert [run.identity.case for run in run_ if not run.failed] == ["Ways %kind=good"]


def test_the_page_of_the_records_counts_them(site: Path, tmp_path: Path) -> None:
    (session,) = (path for path in (site / "records").iterdir() if path.is_dir())
    done, text = page(session, to=tmp_path / "page.html")
    assert done.exit_code == 0
    said("replicas-bytes-original-within", done.stderr)
    said("replicas-bytes-original-within", text)
    said("toy-no-space-2", text)


@pytest.mark.parametrize("name", ["output", ".", "stage"])
def test_folders_of_reframe_have_the_failed_cases_too(
    name: str, site: Path, tmp_path: Path
) -> None:
    """A case without a record, as one whose build failed, is named."""
    folder = site / "reframe" / name
    done, text = page(folder, to=tmp_path / "page.html")
    assert done.exit_code == 0, done.stderr
    passed = int(name != "stage")
    counts = (
        f"{passed} of {5 + passed} replicas with the bytes of the original within 10 %, 5 failed"
    )
    assert f"{counts}." in done.stderr
    told = "read too, as ReFrame keeps failed cases there" in done.stderr
    assert told == (name == "output")
    for case in ("Program_", "Ways_", "the case left no record"):
        assert case in text


def test_a_folder_whose_cases_all_left_no_record_has_a_page(site: Path, tmp_path: Path) -> None:
    for case in (site / "reframe" / "stage").glob("*/*/*/Program_*"):
        shutil.copytree(case, tmp_path / "stage" / case.relative_to(site / "reframe" / "stage"))
    (tmp_path / "output").mkdir()
    done, text = page(tmp_path / "output", to=tmp_path / "page.html")
    assert done.exit_code == 0, done.output
    assert said("replica-bytes-original-within", done.stderr) and "Program_" in text
