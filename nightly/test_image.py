"""The container image is made from packages of Debian 13, and plays a workload on four ranks, for
any user."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = "from understudy.paths import where; print(where('workloads'))"


def printed(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_the_image_plays_a_workload(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without cgroups and devices of its own, so that it may run in a container.
    monkeypatch.setenv("BUILDAH_ISOLATION", "chroot")
    subprocess.run(["make", "image"], cwd=ROOT, check=True)
    container = printed("buildah", "from", "localhost/understudy")
    inside = ("buildah", "run", "--user", "65534:65534", container, "--")
    assert "version" in printed(*inside, "understudy", "--version")
    methods = printed(*inside, "understudy-replay", "--list").splitlines()
    available = {method.split()[0] for method in methods if " available" in method}
    assert available >= {"hdf5", "mpiio", "posix"}
    workload = printed(*inside, "/opt/understudy/bin/python", "-c", WORKLOADS) + "/n-1.json"
    play = ("mpirun", "-n", "4", "understudy-replay", "-w", workload, "-o", "/tmp/run")
    printed(*inside, *play, "-O", "/tmp/result.json")
    assert "understudy/player/1" in printed(*inside, "head", "-c", "100", "/tmp/result.json")
    printed("buildah", "rm", container)
