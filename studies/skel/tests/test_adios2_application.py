"""An application in C++ and its skeleton: what both write, and that they can be compared."""

import subprocess
from pathlib import Path
from shutil import which

import pytest

from studies.skel.tests import support
from studies.skel.tests.support import succeed
from studies.skel.tests.test_adios2_program import facts
from tests.support.needs import need
from understudy import studies
from understudy.adios2 import bp_file

SIZES = {"DRIFT_ROWS": "4", "DRIFT_PARTICLES": "40", "DRIFT_SWEEPS": "2"}


@pytest.fixture(scope="module", params=["adios2", "ADIOS2 with MPI"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The application, with PyPI's library for one process or with one for MPI."""
    need(request.param)
    folder = tmp_path_factory.mktemp("drift")
    [drift] = studies.directories("programs/adios2/drift.cpp")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "adios2":
            patch.delenv("ADIOS2_ROOT", raising=False)
            patch.setattr("understudy_skel.adios2.project.is_installed", lambda: False)
        elif program := which("adios2-config"):
            patch.setenv("ADIOS2_ROOT", str(Path(program).parents[1]))
        succeed("skel", "measure", drift, "-d", folder)
    (folder / "drift.xml").write_bytes(drift.with_suffix(".xml").read_bytes())
    return folder


def run(program: Path, ranks: int, *words: object) -> None:
    done = support.run(program, ranks, *words, environment=SIZES)
    assert done.returncode == 0, done.stderr


def test_skeleton_writes_what_the_application_writes_and_is_compared(built: Path) -> None:
    program = built / "build" / "drift"
    ranks = 4 if _has_mpi(program) else 1
    for k in range(2):
        folder = built / "app" / str(k)
        folder.mkdir(parents=True)
        run(program, ranks, "-o", folder / "run", "-r", folder / "result.json", "-k", "-s", 3)
    original = built / "app/0/run/drift.bp"
    learned = built / "learned"
    with pytest.MonkeyPatch.context() as patch:
        if ranks == 1:
            patch.setattr("understudy_skel.adios2.project.is_installed", lambda: False)
        succeed("skel", "replay", original, "-d", learned)
    skeleton = learned / "build" / "drift_skel_write"
    for k in range(2):
        folder = built / "skeleton" / str(k)
        folder.mkdir(parents=True)
        options = ["-o", folder / "run", "-r", folder / "result.json", "-k", "--verify"]
        run(skeleton, ranks, *options)
        assert facts(bp_file.read(folder / "run/drift.bp")) == facts(bp_file.read(original))
    page = built / "page.html"
    succeed("report", built / "app", built / "skeleton", "-o", page)
    assert "drift" in page.read_text()


def _has_mpi(program: Path) -> bool:
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return "_mpi.so" in libraries


def test_size_of_the_application_is_that_of_the_environment(built: Path, tmp_path: Path) -> None:
    run(built / "build/drift", 1, "-o", tmp_path / "run", "-r", tmp_path / "r.json", "-k", "-s", 2)
    output = bp_file.read(tmp_path / "run/drift.bp")
    [field] = [variable for variable in output.variables if variable.name == "T"]
    assert field.instances[1].shape == (2, 1024)
    [x] = [variable for variable in output.variables if variable.name == "particles/x"]
    assert x.instances[0].shape == (20,)
    assert output.steps == 2
