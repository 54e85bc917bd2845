"""Runs of several arms in turn: their order, their records, and statistics that read these."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.said import said
from understudy.contracts import run as runs
from understudy.paths import ROOT, where
from understudy.reframe.bases.interleaved import Arm, order


def arms(count: int) -> list[Arm]:
    return [Arm(name=name, producer="player", program=name) for name in "abcde"[:count]]


def orders(count: int, rounds: int) -> list[str]:
    return ["".join(arm.name for arm in order(arms(count), n)) for n in range(rounds)]


def test_two_arms_change_places_in_each_round() -> None:
    assert orders(2, 4) == ["ab", "ba", "ab", "ba"]


@pytest.mark.parametrize("count", [3, 4, 5])
def test_every_arm_is_first_and_last_as_often_and_has_changing_neighbours(count: int) -> None:
    round_orders = orders(count, 2 * count)
    assert all(sorted(names) == sorted("abcde"[:count]) for names in round_orders)
    for place in range(count):
        assert set(Counter(names[place] for names in round_orders).values()) == {2}
    followers = Counter(names[i : i + 2] for names in round_orders for i in range(count - 1))
    assert followers["ab"] == followers["ba"] > 0


def test_of_four_arms_two_pairs_lie_around_the_middle_of_every_round() -> None:
    """A drift within a round meets the first and the last as much as the two between them."""
    round_orders = orders(4, 4)
    assert round_orders == ["abcd", "badc", "dcba", "cdab"]
    for names in round_orders:
        assert names.index("a") + names.index("d") == names.index("b") + names.index("c") == 3


def test_one_arm_runs_alone() -> None:
    assert orders(1, 3) == ["a", "a", "a"]


TOY_PRODUCER = """\
from pathlib import Path

from understudy.contracts import schema
from understudy.contracts.measurement import Measurement
from understudy.contracts.run import Sample
from understudy.producers import player

SCHEMA = "understudy/toy/1"
ARM = "canary"


def read(path):
    return parse(schema.read(path, "measurement of the toy"), str(path))


def parse(row, where):
    schema.check(row, where)
    return player.parse(row["played"], where)


def samples(measurement):
    yield Sample(metric="speed", unit="1/s", better="higher", stream=None, repetition=0, value=2.5)
"""

CHECK = """\
import sys
from pathlib import Path

sys.path.insert(0, {folder!r})
from understudy import producers
from understudy.contracts import schema

producers.__path__.append({folder!r} + "/producers")
schema.directory = lambda kind: Path({folder!r}) / kind

import reframe as rfm
from reframe.core.builtins import parameter, run_before
from understudy.reframe.bases.interleaved import Arm, Interleaved

TOY = {folder!r} + "/toy.sh"


@rfm.simple_test
class Turns(Interleaved):
    stripe_count = parameter(["default"])
    ranks = 1
    num_tasks = 1
    rounds = 3
    bytes_needed = 1
    methods_needed = set()
    title = "toy"
    arms = [Arm(name="canary", producer="toy", program="toy"),
            Arm(name="other", producer="toy", program="toy")]
    keep_files = ["canary", "other"]

    def command(self, arm, directory, measurement):
        return f"{{TOY}} {{arm.name}} {{measurement}}"

    def faults_of(self, arm, measured):
        if measured.environment.ranks != 4:
            yield f"expected 4 ranks, got {{measured.environment.ranks}}"

    @run_before("run")
    def one_job(self):
        make_folder, first, *others = self.turns()
        self.executable = self.planned_runs[0].command
        self.prerun_cmds = [*self.run_directory(), make_folder]
        self.postrun_cmds = others

    def _verdict(self):
        return str([self.samples(arm, "speed") for arm in self.arms])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A check with a toy producer, whose measurements hold one of the player's."""
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    for path in where("schemas").iterdir():
        (schemas / path.name).symlink_to(path)
    (schemas / "toy.schema.json").write_text(
        json.dumps(
            {
                "$id": "understudy/toy/1",
                "type": "object",
                "required": ["schema", "played"],
            }
        )
    )
    (tmp_path / "producers").mkdir()
    (tmp_path / "producers" / "toy.py").write_text(TOY_PRODUCER)
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks" / "turns.py").write_text(CHECK.format(folder=str(tmp_path)))
    fixture = where("schemas") / "old" / "fixtures" / "result-1" / "player.json"
    played = json.loads(fixture.read_text())
    played["environment"]["file_system"] = "tmpfs"  # as the job finds it
    measurements = {"schema": "understudy/toy/1", "played": played}
    (tmp_path / "made.json").write_text(json.dumps(measurements))
    toy(tmp_path, made_by(tmp_path))
    return tmp_path


def made_by(folder: Path) -> str:
    """The line that writes a measurement: no two runs have the same."""
    return f"""sed 's/^{{/{{"run": "'$$'", /' {folder}/made.json >"$2\""""


def toy(folder: Path, script: str) -> None:
    path = folder / "toy.sh"
    path.write_text(f'#!/bin/sh\necho "$1" >>{folder}/started\necho >>$2.tmp\n{script}\n')
    path.chmod(0o755)


def reframe(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "RFM_CONFIG_FILES": str(ROOT / "configs" / "settings.py"),
        "RFM_PREFIX": str(folder / "reframe"),
        "RFM_REPORT_FILE": str(folder / "report.json"),
        "RFM_COLORIZE": "0",
        "RFM_ENABLE_RESULTS_STORAGE": "0",
        "UNDERSTUDY_OUTPUT": str(folder / "out"),
    }
    command = [
        str(Path(sys.executable).parent / "reframe"),
        "-c",
        str(folder / "checks"),
        "-r",
        "--system=localhost:tmpfs",
        *arguments,
    ]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def records(folder: Path) -> dict[tuple[str, int | None], runs.Run]:
    run_records = [runs.load(path) for path in (folder / "reframe").rglob("run.json")]
    assert len({run.identity.id for run in run_records}) == len(run_records)
    return {(run.identity.arm, run.identity.round): run for run in run_records}


def ranks_in_the_fixture(folder: Path) -> int:
    row = json.loads((folder / "made.json").read_text())
    return int(row["played"]["environment"]["ranks"])


def test_arms_of_a_toy_producer_run_in_turn_and_statistics_read_their_records(
    folder: Path,
) -> None:
    assert ranks_in_the_fixture(folder) == 4
    done = reframe(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    started = (folder / "started").read_text().split()
    assert started == ["canary", "other", "other", "canary", "canary", "other"]
    run_records = records(folder)
    assert set(run_records) == {(arm, n) for arm in ("canary", "other") for n in range(3)}
    assert all(run.producer.name == "toy" and not run.failed for run in run_records.values())
    said("verdict-toy-localhost-tmpfs", done.stdout)


def test_a_run_that_fails_ends_the_job_and_only_started_runs_have_records(folder: Path) -> None:
    toy(
        folder,
        f"""\
[ $(wc -l <{folder}/started) -lt 3 ] || {{ echo 'toy: no space' >&2; exit 5; }}
{made_by(folder)}""",
    )
    done = reframe(folder)
    assert done.returncode == 1
    said("sanity-error-job-ended", done.stdout)
    run_records = records(folder)
    assert set(run_records) == {("canary", 0), ("other", 0), ("other", 1)}
    assert not run_records["canary", 0].failed and not run_records["other", 0].failed
    failed = run_records["other", 1].producer
    assert (failed.name, failed.exit_status) == ("toy", 5)
    said("job-ended-status-toy", failed.failure)


def test_a_fault_names_its_measurement_and_counts_the_others(folder: Path) -> None:
    row = json.loads((folder / "made.json").read_text())
    row["played"]["environment"]["ranks"] = 3
    (folder / "made.json").write_text(json.dumps(row))
    done = reframe(folder)
    assert done.returncode == 1
    assert re.search(
        r"sanity error: canary/0/result\.json: expected 4 ranks, got 3 \(and 5 more\)", done.stdout
    )
    assert all(run.failed for run in records(folder).values())
