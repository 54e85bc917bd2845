"""What streams are for: the signs in a log, how sure they are, and a person who decides."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.said import said
from understudy.cli import main
from understudy.contracts.workload import Workload, provenance_of
from understudy.darshanlog.writer import write_log
from understudy.readers import darshan

MB = 1_000_000
RANKS = 4


class Run:
    """Files of a run of 1000 s; each has its name, start, bytes, and the rank (-1: all)."""

    def __init__(self) -> None:
        self.names: dict[int, bytes] = {}
        self.records: list[dict[str, Any]] = []

    def file(
        self, name: str, start_s: float, size: int, *, rank: int = -1, reads: bool = False
    ) -> None:
        self.names[number := len(self.names) + 1] = name.encode()
        way, past = ("READ", "READ") if reads else ("WRITE", "WRITTEN")
        self.records.append(
            {
                "id": number,
                "rank": rank,
                "POSIX_OPENS": 1,
                f"POSIX_{way}S": 4,
                f"POSIX_BYTES_{past}": size,
                f"POSIX_MAX_BYTE_{past}": size - 1,
                "POSIX_F_OPEN_START_TIMESTAMP": start_s,
                f"POSIX_F_{way}_START_TIMESTAMP": start_s,
                f"POSIX_F_{way}_END_TIMESTAMP": start_s + 1,
            }
        )

    def write(self, folder: Path) -> Path:
        return write_log(
            folder / "x.darshan",
            nprocs=RANKS,
            run_time_s=1000,
            names=self.names,
            POSIX=self.records,
        )

    def roles(self, folder: Path) -> dict[str, tuple[str, str]]:
        """Role and confidence by label."""
        found = darshan.read(self.write(folder), keep_names=True)
        made = {}
        for i, stream in enumerate(found.streams):
            entry = provenance_of(found, f"/streams/{i}/role")
            assert entry is not None and entry.path == f"/streams/{i}/role"
            assert (entry.origin == "assumed") == (entry.confidence == "guess")
            made[stream.label] = (stream.role, entry.confidence)
        return made


def history_and_restart() -> Run:
    """As WRF: a history file each hour by rank 0, the whole state by all ranks every three."""
    run = Run()
    for hour in range(9):
        run.file(f"/s/wrfout.{hour:02d}", 100.0 * hour + 10, 20 * MB, rank=0)
    for k in range(3):
        run.file(f"/s/wrfrst.{3 * k:02d}", 300.0 * k + 50, 90 * MB)
    return run


def test_smaller_files_written_more_often_are_history(tmp_path: Path) -> None:
    assert history_and_restart().roles(tmp_path) == {
        "/s/wrfout.*": ("visualization", "likely"),
        "/s/wrfrst.*": ("checkpoint", "likely"),
    }


def test_one_kind_of_file_of_one_rank_is_a_guess(tmp_path: Path) -> None:
    run = Run()
    for k in range(5):
        run.file(f"/s/data.{k}", 100.0 * k + 10, 20 * MB, rank=0)
    assert run.roles(tmp_path) == {"/s/data.*": ("checkpoint", "guess")}


def test_files_that_are_read_at_the_start_are_checkpoints_where_written(tmp_path: Path) -> None:
    run = Run()
    run.file("/s/state.0", 1.0, 50 * MB, reads=True)
    run.file("/s/state.1", 900.0, 50 * MB)  # a single one
    streams = darshan.read(run.write(tmp_path)).streams
    assert [(s.operation, s.role) for s in streams] == [
        ("read", "restart"),
        ("write", "checkpoint"),
    ]


@pytest.mark.parametrize(("start_s", "role"), [(1.0, "restart"), (500.0, "input")])
def test_what_is_read_in_the_course_of_the_run_is_input(
    start_s: float, role: str, tmp_path: Path
) -> None:
    run = Run()
    run.file("/s/begin.dat", start_s, 60 * MB, reads=True)
    for k in range(4):
        run.file(f"/s/ckpt.{k}", 200.0 * k + 100, 50 * MB)
    assert run.roles(tmp_path) == {
        "/s/begin.dat": (role, "guess"),
        "/s/ckpt.*": ("checkpoint", "likely"),
    }


def describe(folder: Path, *options: str) -> Any:
    log = history_and_restart().write(folder)
    return CliRunner().invoke(main, ["describe", str(log), *options])


def test_a_person_decides(tmp_path: Path) -> None:
    done = describe(
        tmp_path, "--role", "visualization-0=checkpoint", "--role", "checkpoint-0=output"
    )
    assert done.exit_code == 0, done.output
    row = json.loads(done.stdout)
    assert {s["name"]: s["role"] for s in row["streams"]} == {
        "visualization-0": "checkpoint",
        "checkpoint-0": "output",
    }
    last = [p for p in row["provenance"] if p["path"] == "/streams/0/role"][-1]
    assert (last["confidence"], last["how"]) == ("certain", "decided by a person with --role")
    assert isinstance(darshan.read(tmp_path / "x.darshan"), Workload)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "nothing-0=output",
            "no stream 'nothing-0', expected one of visualization-0, checkpoint-0",
        ),
        (
            "checkpoint-0=restarts",
            "one of the roles checkpoint, visualization, output, restart, in",
        ),
        ("checkpoint-0", "expected STREAM=ROLE"),
    ],
)
def test_an_unknown_stream_or_role_is_a_usage_error(
    given: str, message: str, tmp_path: Path
) -> None:
    done = describe(tmp_path, "--role", given)
    assert done.exit_code == 2 and done.stdout == ""
    assert message in " ".join(done.stderr.split())


def test_two_roles_of_one_stream_are_a_usage_error(tmp_path: Path) -> None:
    roles = ("checkpoint-0=output", "checkpoint-0=restart")
    done = describe(tmp_path, *(word for role in roles for word in ("--role", role)))
    assert done.exit_code == 2 and done.stdout == ""
    said("checkpoint-has-role-output", " ".join(done.stderr.split()))
