"""How programs start on this host: with more ranks than cores, and as root."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support import player
from tests.support.said import said
from tests.test_checks import Session, sample
from understudy.launch import with_settings


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_program_starts_with_the_settings_of_a_host(ranks: int) -> None:
    """More ranks than cores, and as root; without the environment of a checkout."""
    many = ranks * (os.cpu_count() or 1) + 1
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PRTE_"))}
    done = subprocess.run(
        with_settings(["mpirun", "-n", str(many), "echo", "rank"]),
        env=plain,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["rank"] * many), done.stderr


def test_a_case_runs_without_the_environment_of_a_checkout(tmp_path: Path) -> None:
    """As from a wheel: nothing tells Open MPI that ranks may share cores, nor root to start."""
    here = Session(tmp_path, sample(ranks=2 * (os.cpu_count() or 1) + 1))
    here.environment = {
        k: v for k, v in here.environment.items() if not k.startswith(("OMPI_", "PRTE_"))
    }
    here.environment["PATH"] = f"{Path(player.program()).parent}:{here.environment['PATH']}"
    done = here.run(
        "-r",
        "--system=localhost:tmpfs",
        "-S",
        "time_scale=0",
        "-E",
        "method == 'posix'",
        check="Replay",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [script] = (tmp_path / "reframe" / "output").rglob("rfm_job.sh")
    said("if-id-then", script.read_text())
