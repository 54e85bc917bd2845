"""The turns of a campaign in one job, on a stand-in for Slurm that runs jobs at once."""

import json
import os
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.said import said
from tests.test_campaign import SELECTION
from understudy.cli import main
from understudy.paths import OUTPUT_VARIABLE, RECORDS_VARIABLE
from understudy.records import index
from understudy.reframe.session import campaign as sessions

SYSTEM = """
from understudy.reframe.systems import per_filesystem

nodes = {
    "scheduler": "slurm", "launcher": "srun", "environs": ["star"], "max_jobs": 1,
    "access": ["-p batch"], "sched_options": {"use_nodes_option": True},
    "features": ["mpi", "shared"],
    "extras": {"max_nodes": 4, "ranks_per_node": 2, "needs": ["sbatch"], "type": "disk"},
}
system = {
    "name": "star", "descr": "A cluster", "hostnames": ["^star$"],
    "partitions": per_filesystem(
        nodes, old={"extras": {"scratch": "FOLDER/old"}}, new={"extras": {"scratch": "FOLDER/new"}}
    ),
}
environments = [{
    "name": "star", "target_systems": ["star"], "cc": "mpicc", "cxx": "", "ftn": "",
    "features": ["mpi"],
}]
"""
PROGRAMS = {
    "sbatch": """
[ "${1-}" != --version ] || { echo slurm 22.05.8; exit; }
for script; do :; done
echo "$script" >>FOLDER/jobs
cp "$script" FOLDER/script
out=$(sed -n 's/^#SBATCH --output=//p' "$script")
err=$(sed -n 's/^#SBATCH --error=//p' "$script")
SLURM_JOB_ID=7 bash "$script" >"$out" 2>"$err" </dev/null
echo Submitted batch job 7
""",
    "sacct": "echo '7|COMPLETED|0:0|1700000000|n1'",
    "squeue": ":",
    "scontrol": "echo n1",
    "scancel": ":",
    "sinfo": "echo batch",
    # The ranks of a step, on this host.
    "srun": """
[ "${1-}" != --version ] || { echo slurm 22.05.8; exit; }
ranks=
while case ${1-} in -*) true ;; *) false ;; esac; do
  case $1 in --ntasks=*) ranks=${1#*=} ;; esac
  echo "$1" >>FOLDER/steps
  shift
done
. OPEN_MPI
exec mpirun -n "${ranks:?}" "$@"
""",
}


@pytest.fixture
def star(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    settings = Path(sessions.__file__).parents[2] / "open-mpi.sh"
    for name in ("bin", "old", "new", "site/systems"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "site/systems/star.py").write_text(SYSTEM.replace("FOLDER", str(tmp_path)))
    for name, text in PROGRAMS.items():
        path = tmp_path / "bin" / name
        text = text.replace("FOLDER", str(tmp_path)).replace("OPEN_MPI", str(settings))
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("UNDERSTUDY_PATH", str(tmp_path / "site"))
    monkeypatch.setenv(RECORDS_VARIABLE, str(tmp_path / "records"))
    monkeypatch.setenv(OUTPUT_VARIABLE, str(tmp_path / "out"))
    return tmp_path


START = (
    "campaign",
    "c",
    "--system",
    "star",
    "--before",
    "partition=old",
    "--after",
    "partition=new",
    "--turns",
    "2",
    "--submit",
)


def test_all_turns_run_in_one_job(star: Path) -> None:
    more = ["--all-turns", "--nights-differ", "5%"]
    command = [*START, *more, "--time", "1h30m", "--", *SELECTION, "-J", "account=me"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert len((star / "jobs").read_text().splitlines()) == 1, "the cases are no jobs"
    script = (star / "script").read_text()
    for line in (
        "-p batch",
        "--nodes=2",
        "--ntasks=4",
        "--ntasks-per-node=2",
        "--time=1:30:0",
        "--account=me",
    ):
        assert re.search(rf"(?m)^#SBATCH {line}$", script), script
    steps = (star / "steps").read_text()
    assert "--nodes=2\n--ntasks=4\n--ntasks-per-node=2\n" in steps
    rows = list(index.of_folder().select(("campaign", "turn", "system", "partition", "failed")))
    assert rows == [
        (f"c-{side_name}", f"c/{turn}", "star", {"before": "old", "after": "new"}[side_name], 0)
        for turn in (1, 2)
        for side_name in sessions.order("c", turn)
    ]
    [job] = star.rglob("job.sh")
    assert " --nights-differ 0.05 --all-turns -- " in job.read_text(), "as the command said"
    printed = done.stdout.splitlines()[-1]
    assert printed.endswith(" --nights-differ 0.05")
    done_ = json.loads(CliRunner().invoke(main, [*shlex.split(printed)[1:], "--json"]).stdout)
    assert {tuple(side_name["nights"]) for side_name in done_["verdicts"]} == {(2, 2)}
    again = CliRunner().invoke(main, command)
    assert again.exit_code == 0 and len((star / "jobs").read_text().splitlines()) == 1


def test_a_job_that_is_not_taken_is_one_message(star: Path) -> None:
    (star / "bin/sbatch").write_text("#!/bin/sh\necho Invalid account >&2; exit 1\n")
    done = CliRunner().invoke(main, [*START, "--", *SELECTION])
    assert done.exit_code == 2 and "Invalid account" in done.stderr, done.stderr
    assert not (star / "records").exists(), "no session was begun"


def test_a_job_that_ended_early_says_how_far_it_came(star: Path) -> None:
    done = CliRunner().invoke(main, [*START, "--", "--mode", "nosuch", *SELECTION])
    assert done.exit_code == 2 and said("invalid-mode-nosuch", done.stderr), done.stderr


def test_a_system_without_a_batch_system_has_no_job(star: Path) -> None:
    words = ("campaign", "c", "--system", "localhost:disk", "--submit", "--", *SELECTION)
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    said("submit-localhost-disk-has", done.stderr)
