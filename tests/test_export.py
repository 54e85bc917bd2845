"""The archive for a vendor: complete, reproducible, without names of the source, and it plays."""

import json
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.said import said
from understudy import export
from understudy.cli import main
from understudy.contracts import workload
from understudy.contracts.workload import Workload
from understudy.paths import ROOT, where
from understudy.producers import player as reading

# The filter came to Python's later releases of 3.10 and 3.11; the archive is the test's own.
SAFELY: Any = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}

CORNERS = ("n-1", "n-m", "n-n")
N_1 = where("workloads") / "n-1.json"


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["export", *arguments])
    return done.exit_code, done.stdout, done.stderr


def unpacked(workload_file: Path, folder: Path) -> Path:
    """The archive's only folder, after unpacking."""
    path = folder / "a.tar.gz"
    status, _, wrong = run(str(workload_file), "-o", str(path))
    assert (status, wrong) == (0, "")
    with tarfile.open(path) as tar:
        tar.extractall(folder, **SAFELY)
    [top] = [p for p in folder.iterdir() if p.is_dir()]
    return top


def labelled(label: str) -> Workload:
    n_to_1 = workload.get("n-1")
    first = n_to_1.streams[0]
    name = next(first.moves).variable.name
    stream = first.with_variables(lambda v: replace(v, label=label if v.name == name else ""))
    return replace(n_to_1, streams=(stream, *n_to_1.streams[1:]))


def test_the_archive_is_complete_and_its_sums_are_right(tmp_path: Path) -> None:
    top = unpacked(N_1, tmp_path)
    assert top.name == "n-1-player"
    done = subprocess.run(
        ["sha256sum", "--strict", "-c", "SHA256SUMS"], cwd=top, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    files = {p.relative_to(top).as_posix() for p in top.rglob("*") if p.is_file()}
    assert len(done.stdout.splitlines()) == len(files) - 1
    assert files >= {
        "README.md",
        "LICENSE",
        "build.sh",
        "expected.json",
        "workloads/n-1.json",
        "schemas/player.schema.json",
        "proxies/programs/replay.c",
    }
    assert not any("tests" in f or f.endswith(".md") for f in files - {"README.md"})
    assert workload.load(top / "workloads" / "n-1.json") == workload.load(N_1)


def test_two_archives_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    n_to_1 = workload.load(N_1)
    first = export.archive(n_to_1, export.contents(n_to_1))
    assert first == export.archive(n_to_1, export.contents(workload.load(N_1)))
    (tmp_path / "a").write_bytes(first)
    with tarfile.open(tmp_path / "a") as tar:
        entries = tar.getmembers()
    assert [e.name for e in entries] == sorted(e.name for e in entries)
    assert {(e.uid, e.gid, e.uname, e.gname, e.mtime) for e in entries} == {
        (0, 0, "", "", export.MODIFIED_S)
    }
    assert {e.name for e in entries if e.mode & 0o111} == {"n-1-player/build.sh"}


def test_nothing_of_this_machine_is_in_it() -> None:
    files = export.contents(workload.load(N_1))
    for path, data in files.items():
        assert str(ROOT).encode() not in data, path


def test_a_label_is_refused_by_its_key(tmp_path: Path) -> None:
    path = tmp_path / "named.json"
    path.write_text(labelled("secret_field").to_text())
    status, out, wrong = run(str(path), "-o", str(tmp_path / "a"))
    assert status == 2 and out == "" and not (tmp_path / "a").exists()
    said("labels-checkpoint-density-secret", wrong)
    status, out, _ = run(str(path), "-o", str(tmp_path / "a"), "--keep-names")
    assert status == 0 and "secret_field" in out


def test_a_person_sees_every_string_that_leaves(tmp_path: Path) -> None:
    n_to_1 = workload.get("n-1")
    provenance = replace(n_to_1.provenance[0], how="as user jane on /lustre/[bold]x")
    path = tmp_path / "n.json"
    path.write_text(replace(n_to_1, provenance=(provenance, *n_to_1.provenance[1:])).to_text())
    status, out, _ = run(str(path), "-o", str(tmp_path / "a"))
    assert status == 0
    assert "provenance.how" in out and "as user jane on /lustre/[bold]x" in out
    assert "workloads/n-1.json" in out and "proxies/" not in out, "what leaves, not our sources"
    assert max(map(len, out.replace(str(tmp_path), "").splitlines())) <= 80
    shown = {t.text for t in export.strings(workload.load(path))}
    assert n_to_1.description in shown and "density" in shown
    assert not shown & {"checkpoint", "visualization", "shared", "mpiio", "f64", "even", "sleep"}


def test_an_archive_is_not_replaced_unasked(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    status, _, wrong = run(str(N_1), "-o", str(tmp_path / "a"))
    assert status == 2 and (tmp_path / "a").read_text() == "mine"
    said("exists-already-choose-another", wrong, tmp_path=tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = unpacked(N_1, tmp_path_factory.mktemp("export"))
    done = subprocess.run([top / "build.sh"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return top / "build" / "bin" / "understudy-replay"


@pytest.mark.parametrize("name", CORNERS)
def test_it_builds_and_moves_the_expected_bytes(name: str, built: Path, tmp_path: Path) -> None:
    top = unpacked(where("workloads") / f"{name}.json", tmp_path)
    wanted = json.loads((top / "expected.json").read_text())
    command = [
        "mpirun",
        "-n",
        str(wanted["ranks"]),
        str(built),
        "-w",
        f"workloads/{name}.json",
        "-o",
        "data",
        "--time-scale",
        "0",
        "--verify",
    ]
    done = subprocess.run(
        ["bash", "-c", '. "$0/setup-env.sh" && exec "$@"', str(ROOT), *command],
        cwd=top,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    played = reading.read(top / "result.json")
    assert played.workload_sha256 == wanted["workload_sha256"]
    assert played.verification is not None and played.verification.wrong_bytes == 0
    moved = [
        {
            "name": s.name,
            "operation": s.operation,
            "bytes": s.bytes,
            "dumps": [{"dump": d.dump, "bytes": d.bytes} for d in s.dumps],
        }
        for s in played.repetitions[0].streams
    ]
    assert moved == wanted["streams"]
    assert sum(s["bytes"] for s in wanted["streams"]) == wanted["bytes"]
