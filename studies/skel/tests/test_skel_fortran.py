"""The same skeletal applications in Fortran."""

from pathlib import Path

import pytest

from studies.skel.tests.support import (
    LOCAL,
    TRACES,
    WORDS,
    WORDS_VALUES,
    bpls,
    descriptor,
    make,
    run,
    shapes,
    succeed,
)
from tests.support.needs import need
from understudy import producers

SETTINGS = {
    "gts": ("mimax=700", "mgrid=90", "ifelectron_1=yes"),
    "s3d": ("nx=6", "ny=5", "nz=4"),
}


@pytest.fixture(autouse=True)
def a_compiler_that_works() -> None:
    need("ADIOS 1.13", "Fortran with MPI")


@pytest.mark.parametrize("name", SETTINGS)
def test_fortran_writes_what_c_writes(name: str, tmp_path: Path) -> None:
    said = {}
    for language in ("c", "fortran"):
        folder = tmp_path / language
        folder.mkdir()
        program = make(TRACES / f"{name}.xml", folder, *SETTINGS[name], language=language)
        done = run(program, 4, "-o", "out", "-k", "-a", "POSIX", "-r", "r.json")
        assert done.returncode == 0, done.stderr
        [dump] = producers.read(folder / "r.json").repetitions[0].streams[0].dumps
        assert dump.processes is not None
        parts = sorted((folder / "out").glob("*.bp.dir/*"))
        said[language] = (
            shapes(folder / "out" / "restart.0.bp"),
            dump.processes.bytes,
            [p.stat().st_size for p in parts],
        )
    assert said["c"] == said["fortran"]


def test_texts_and_complex_numbers_are_those_of_c(tmp_path: Path) -> None:
    files = {}
    for language in ("c", "fortran"):
        folder = tmp_path / language
        folder.mkdir()
        path = descriptor(folder, LOCAL, WORDS)
        program = make(path, folder, *WORDS_VALUES, language=language)
        done = run(program, 4, "-o", "out", "-k", "-r", "r.json")
        assert done.returncode == 0, done.stderr
        [dump] = producers.read(folder / "r.json").repetitions[0].streams[0].dumps
        files[language] = (bpls(folder / "out" / "g.0.bp", "-l"), dump.bytes, dump.file_bytes)
    assert files["c"] == files["fortran"]


def test_expressions_are_said_in_fortran(tmp_path: Path) -> None:
    """Every operator and function; the program checks that the parts lie in their bounds."""
    program = make(
        descriptor(tmp_path),
        tmp_path,
        "nx=7 + of_rank(1, 0, 1) - -(3) * (5 / 2) % 4",
        "gx=nx * 0 + 30 + grid(2, 1) * 9",
        "ox=of_rank(0, 10, 19) + coordinate(2, 1)",
        cores=3,
        language="fortran",
    )
    done = run(program, 3, "-o", "out", "-k")
    assert done.returncode == 0, done.stderr
    assert shapes(tmp_path / "out" / "g.0.bp")["a"] == "{39}"


def test_an_error_is_one_message_in_fortran_too(tmp_path: Path) -> None:
    program = make(descriptor(tmp_path), tmp_path, language="fortran")
    done = run(program, 2, "-o", "x", "-s", "0")
    assert done.returncode == 2
    assert "app-g: --steps 0: expected a whole number from 1 to 1000000\n" in done.stderr
    assert "STOP" not in done.stderr
    helped = run(program, 2, "--help")
    assert helped.returncode == 0 and helped.stdout.startswith(
        "Usage: mpirun -n RANKS app-g -o DIR"
    )


def test_the_language_of_the_last_source_is_built(tmp_path: Path) -> None:
    path = descriptor(tmp_path)
    succeed("skel", "params", path, "-o", tmp_path / "app_params.xml")
    for language in ("fortran", "c"):
        succeed("skel", "source", path, "-d", tmp_path, "-l", language)
        succeed("skel", "build", path, "-d", tmp_path, "--no-make", "--force")
        text = (tmp_path / "CMakeLists.txt").read_text()
        assert ("app_skel_g_write.f90" in text) == (language == "fortran")
