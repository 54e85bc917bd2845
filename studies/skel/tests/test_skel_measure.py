"""An application that calls ADIOS itself, measured without a change of its source."""

import re
from pathlib import Path

import pytest

from studies.skel.tests.support import bpls, run, shapes, succeed, understudy
from tests.support.needs import need
from tests.support.player import needs
from understudy import producers

CONFIG = """\
<?xml version="1.0"?>
<adios-config host-language="C">
  <adios-group name="field">
    <var name="n" type="integer"/>
    <var name="all" type="integer"/>
    <var name="first" type="integer"/>
    <global-bounds dimensions="all" offsets="first">
      <var name="t" type="double" dimensions="n"/>
    </global-bounds>
  </adios-group>
  <method group="field" method="MPI"/>
  <buffer size-MB="10" allocate-time="now"/>
</adios-config>
"""
SOURCE = r"""
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "adios.h"
int main(int argc, char **argv)
{
    int rank, ranks, n = 1000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int all = n * ranks, first = n * rank, steps = argc > 1 ? atoi(argv[1]) : 3;
    double *t = malloc(n * sizeof *t);
    adios_init("app.xml", MPI_COMM_WORLD);
    for (int step = 0; step < steps; ++step) {
        int64_t file;
        uint64_t total;
        char name[64];
        for (int i = 0; i < n; ++i)
            t[i] = 1e6 * step + first + i;
        snprintf(name, sizeof name, "mine.%d.bp", step);
        adios_open(&file, "field", name, step && argc > 2 ? "a" : "w", MPI_COMM_WORLD);
        adios_group_size(file, 3 * sizeof n + n * sizeof *t, &total);
        adios_write(file, "n", &n);
        adios_write(file, "all", &all);
        adios_write(file, "first", &first);
        adios_write(file, "t", t);
        adios_close(file);
    }
    adios_finalize(rank);
    MPI_Finalize();
    free(t);
    return 0;
}
"""


FORTRAN = """\
program app
  use mpi
  implicit none
  integer, parameter :: n = 1000
  integer :: rank, ranks, all, first, step, i, code
  integer(8) :: file, bytes, total
  real(8) :: t(n)
  character(len=64) :: name = "mine.bp"
  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  all = n * ranks
  first = n * rank
  bytes = 3 * 4 + n * 8
  call adios_init("app.xml", MPI_COMM_WORLD, code)
  do step = 0, 2
    t = [(1d6 * step + first + i, i = 0, n - 1)]
    call adios_open(file, "field", name, "w", MPI_COMM_WORLD, code)
    call adios_group_size(file, bytes, total, code)
    call adios_write(file, "n", n, code)
    call adios_write(file, "all", all, code)
    call adios_write(file, "first", first, code)
    call write_array(file, t)
    call adios_close(file, code)
  end do
  call adios_finalize(rank, code)
  call MPI_Finalize(code)
contains
  subroutine write_array(file, values)
    use adios_write_mod
    integer(8), intent(in) :: file
    real(8), intent(in) :: values(:)
    integer :: code
    call adios_write(file, "t", values, code)
  end subroutine
end program
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("adios")
    folder = tmp_path_factory.mktemp("measured")
    (folder / "src").mkdir()
    (folder / "src" / "app.c").write_text(SOURCE)
    (folder / "app.xml").write_text(CONFIG)
    succeed("skel", "measure", folder / "src" / "app.c", "-d", folder)
    assert (folder / "src" / "app.c").read_text() == SOURCE
    return folder / "build" / "app"


@pytest.fixture(scope="module")
def fortran_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """It calls ADIOS with and without its module, by different names."""
    need("ADIOS 1.13", "Fortran with MPI")
    folder = tmp_path_factory.mktemp("measured_fortran")
    (folder / "app.F90").write_text(FORTRAN)
    (folder / "app.xml").write_text(CONFIG.replace('"C"', '"Fortran"'))
    succeed("skel", "measure", folder / "app.F90", "-d", folder)
    return folder / "build" / "app"


def test_an_application_in_fortran_is_measured_too(fortran_program: Path, tmp_path: Path) -> None:
    status, said = measured(fortran_program, f"-o {tmp_path / 'out'} -r {tmp_path / 'r'} -k")
    assert (status, said) == (0, "")
    [stream] = producers.read(tmp_path / "r").repetitions[0].streams
    assert (stream.name, [d.bytes for d in stream.dumps]) == ("field", [4 * 8012] * 3)
    assert [phase.operations for phase in stream.dumps[2].phases] == [8, 16, 4]
    listed = bpls(tmp_path / "out" / "field.2.bp", "-d", "t", "-s", "3999", "-c", "1")
    assert re.search(r"2.004e\+06|2003999", listed), listed


def measured(program: Path, options: str, *words: object) -> tuple[int, str]:
    done = run(program, 4, *words, environment={"SKELETON_OPTIONS": options})
    said = [line for line in done.stderr.splitlines() if line.startswith("app: ")]
    return done.returncode, "\n".join(said)


def test_its_result_is_that_of_a_skeleton(program: Path, tmp_path: Path) -> None:
    for method, given in (("MPI", None), ("POSIX", "-a POSIX")):
        out, result_path = tmp_path / method, tmp_path / f"{method}.json"
        more = given or "--application other"
        status, said = measured(program, f"-o {out} -r {result_path} -k {more}")
        assert (status, said) == (0, "")
        measurement = producers.read(result_path)
        assert measurement.program is not None
        assert (measurement.program.kind, measurement.program.name) == ("application", "app")
        assert measurement.program.application == ("app" if given else "other")
        assert (measurement.program.steps, measurement.program.method) == (3, given and method)
        [stream] = measurement.repetitions[0].streams
        assert (stream.name, [d.bytes for d in stream.dumps]) == ("field", [4 * 8012] * 3)
        for dump in stream.dumps:
            assert dump.processes is not None and dump.processes.bytes == (8012,) * 4
            assert [phase.operations for phase in dump.phases] == [8, 16, 4]
        assert (stream.dumps[0].processes.library is not None) == (method == "POSIX")  # type: ignore[union-attr]
        assert shapes(out / "field.2.bp")["t"] == "{4000}"
        listed = bpls(out / "field.2.bp", "-d", "t", "-s", "3999", "-c", "1")
        assert re.search(r"2.004e\+06|2003999", listed), listed
    assert not (program.parent.parent / "mine.0.bp").exists()


def test_a_file_that_steps_are_appended_to(program: Path, tmp_path: Path) -> None:
    status, said = measured(program, f"-o {tmp_path / 'out'} -r {tmp_path / 'r'}", 3, "a")
    assert status != 0
    assert "mine.1.bp: the application appends; expected --append in SKELETON_OPTIONS" in said
    assert not (tmp_path / "out").exists() and not (tmp_path / "r").exists()
    where = f"-o {tmp_path / 'out'} -r {tmp_path / 'r'} -k --append"
    assert measured(program, where, 3, "a") == (0, "")
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["field.bp"]
    assert "3*{4000}" in bpls(tmp_path / "out" / "field.bp")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "--directory is missing"),
        (
            "-o out -s 3",
            "SKELETON_OPTIONS: the application's own steps are measured, once; "
            "expected neither -s nor -i",
        ),
        ("-o out --fast", "--fast: unknown option"),
        ("-o out --\x1b[2J\x9bm", r"--\x1b[2J\x9bm: unknown option"),
    ],
)
def test_options_that_make_no_sense(program: Path, options: str, message: str) -> None:
    status, said = measured(program, options)
    assert status == 2
    assert said.count("\n") == 0 and message in said
    assert not (program.parent.parent / "out").exists()


def test_sources_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "app.f").touch()
    for name, message in (
        ("app.c", "app.c: not there; expected a source in C or Fortran"),
        ("app.f", "app.f: expected a source in C or Fortran: *.c, *.f90, *.F90"),
    ):
        done = understudy("skel", "measure", tmp_path / name, "-d", tmp_path)
        assert done.exit_code == 2 and message in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["app.f"]
