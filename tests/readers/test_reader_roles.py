"""Roles of streams that a person decides; `cases/roles.py` has those that a log shows."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.readers.cases import roles
from tests.support.said import said
from understudy.cli import main


def describe(folder: Path, *words: str) -> Result:
    log = roles.smaller_files_written_more_often_are_history()
    assert isinstance(log, roles.Run)
    options = [option for word in words for option in ("--role", word)]
    return CliRunner().invoke(main, ["describe", str(log.log(folder / "x.darshan")), *options])


def test_a_person_decides(tmp_path: Path) -> None:
    wanted = {"visualization-0": "checkpoint", "checkpoint-0": "output"}
    done = describe(tmp_path, *(f"{name}={role}" for name, role in wanted.items()))
    assert done.exit_code == 0, done.output
    row = json.loads(done.stdout)
    assert {s["name"]: s["role"] for s in row["streams"]} == wanted
    last = [p for p in row["provenance"] if p["path"] == "/streams/0/role"][-1]
    assert (last["confidence"], last["how"]) == ("certain", "decided by a person with --role")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["nothing-0=output"],
            "no stream 'nothing-0', expected one of visualization-0, checkpoint",
        ),
        (["checkpoint-0=restarts"], "one of the roles checkpoint, visualization, output, restart"),
        (["checkpoint-0"], "expected STREAM=ROLE"),
        (["checkpoint-0=output", "checkpoint-0=restart"], ""),
    ],
)
def test_a_wrong_role_is_a_usage_error(words: list[str], message: str, tmp_path: Path) -> None:
    done = describe(tmp_path, *words)
    stderr = " ".join(done.stderr.split())
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in stderr if message else said("checkpoint-has-role-output", stderr)
