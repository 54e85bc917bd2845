"""From a BP file to a skeletal application, and job scripts."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from studies.skel.tests.support import (
    LOCAL,
    WORDS,
    WORDS_VALUES,
    bpls,
    bpls_path,
    descriptor,
    make,
    run,
    shapes,
    succeed,
    understudy,
)
from understudy import producers
from understudy.contracts import workload
from understudy.errors import UnderstudyError
from understudy_skel import bpfile, expressions
from understudy_skel.generate import submit_systems

UNEVEN = ("nx=of_rank(5, 9, 2)", "gx=16", "ox=of_rank(0, 5, 14)")
LISTING = """\
  integer           n                    2*scalar = 7 / 7 / 7 / 0
        step 0: 3 instances available
        step 1: 3 instances available
  unsigned integer  /p/u                 scalar = 4
        step 0: 3 instances available
  string            words                scalar = "hm"
        step 0: 3 instances available
  double            a                    2*{12, 4} = 0 / 2 / null  / null
        step 0:
          block 0: [ 0: 4, 0:3] = 0 / 0/ N/A / N/A
          block 1: [ 5: 5, 0:3] = 1 / 1/ N/A / N/A
          block 2: [ 6:11, 0:3] = 2 / 2/ N/A / N/A
        step 1:
          block 0: [ 0: 3, 0:3] = 0 / 0/ N/A / N/A
"""


def test_a_listing_is_understood() -> None:
    n, u, words, a = bpfile.parse(LISTING, Path("x.bp"))
    assert (n.name, n.type, n.shape, n.steps, n.value, n.instances) == (
        "n",
        "integer",
        (),
        2,
        "7",
        3,
    )
    assert (u.name, u.type, u.value) == ("/p/u", "unsigned integer", "4")
    assert (words.type, words.value) == ("string", "hm")
    assert (a.shape, a.steps) == ((12, 4), 2)
    assert a.parts == [((0, 4), (0, 3)), ((5, 5), (0, 3)), ((6, 11), (0, 3))]
    with pytest.raises(UnderstudyError, match="bpls says what is not understood: 'what'"):
        bpfile.parse(LISTING + "        what\n", Path("x.bp"))
    with pytest.raises(UnderstudyError, match=r"x\.bp: a: bpls does not tell which part"):
        bpfile.parse(LISTING.replace("[ 0: 4, 0:3]", "[null, null]"), Path("x.bp"))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ([0, 7, 14, 21], "7 * skel_mpi_rank"),
        ([0, 0, 4, 4], "4 * coordinate(2, 0)"),
        ([0, 3, 0, 3], "3 * coordinate(2, 1)"),
        ([5, 9, 2, 1], "of_rank(5, 9, 2, 1)"),
        ([0, 0, 0, 0, 1, 1, 1, 1], "1 * coordinate(3, 0)"),
    ],
)
def test_numbers_of_ranks_become_expressions(column: list[int], expected: str) -> None:
    text = bpfile.expression_of(np.asarray(column, dtype=np.int64))
    assert text == expected
    assert expressions.parse(text).evaluate({}, len(column)).tolist() == column


def files_of(folder: Path) -> dict[str, str]:
    [path] = folder.glob("*.0.bp")
    return shapes(path)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("POSIX", []),
        ("MPI_AMR", ["-p", "num_aggregators=2;num_ost=2"]),
        ("MPI", []),
    ],
)
def test_a_replayed_file_is_the_same(method: str, words: list[str], tmp_path: Path) -> None:
    """Uneven parts in three ranks, a scalar, an array without global bounds; the same variables
    and shapes, the same method, and the same parts once more."""
    bpls_path()
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    program = make(descriptor(first), first, *UNEVEN, cores=3)
    done = run(program, 3, "-o", "out", "-k", "-a", method, *words)
    assert done.returncode == 0, done.stderr
    replayed = succeed("skel", "replay", first / "out" / "g.0.bp", "-d", second)
    assert "2 integer scalars are added" in replayed.stderr
    assert f'method="{method}"' in (second / "g_skel.xml").read_text()
    done = run(second / "build" / "g_skel_g_write", 3, "-o", "out", "-k")
    assert done.returncode == 0, done.stderr
    before, after = files_of(first / "out"), files_of(second / "out")
    added = {name for name in after if name.startswith("skel_part_")}
    assert len(added) == 2
    assert {n: s for n, s in after.items() if n not in added} == before
    again = bpfile.read(second / "out" / "g.0.bp").parameters.groups["g"].scalars
    assert {"of_rank(5, 9, 2)", "of_rank(0, 5, 14)"} <= set(again.values())
    refused = run(second / "build" / "g_skel_g_write", 4, "-o", "more")
    assert refused.returncode != 0
    assert "exceeds the global size of 16" in refused.stderr


def test_texts_and_complex_numbers_are_written_and_learned_again(tmp_path: Path) -> None:
    """Check the output of bpls, the bytes, and a second skeleton from the file of the first."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    source = descriptor(first, LOCAL, WORDS)
    program = make(source, first, *WORDS_VALUES)
    done = run(program, 4, "-o", "out", "-k", "-r", "r.json")
    assert done.returncode == 0, done.stderr
    said = bpls(first / "out" / "g.0.bp", "-l")
    for row in (
        r's +scalar = "a "b" <c> & d/e é"',
        r"c +scalar = \(1.5,i?-2\)",
        r"d +scalar = \(3,i?0\)",
    ):
        assert re.search(row, said), said
    described = tmp_path / "w.json"
    succeed("describe", source, "-n", 4, "-o", described)
    [dump] = producers.read(first / "r.json").repetitions[0].streams[0].dumps
    words = len('a "b" <c> & d/e é'.encode()) + 8 + 16
    arrays = sum(v.bytes for v in workload.load(described).streams[0].steps[0].variables[:5])
    assert dump.bytes == workload.load(described).bytes == arrays + 4 * words
    replayed = succeed("skel", "replay", first / "out" / "g.0.bp", "-d", second)
    assert "is left out" not in replayed.stderr
    done = run(second / "build" / "g_skel_g_write", 4, "-o", "out", "-k")
    assert done.returncode == 0, done.stderr
    again = bpls(second / "out" / "g.0.bp", "-l")
    assert [row for row in again.splitlines() if "skel_part" not in row] == said.splitlines()


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("s=", "--set s=: expected NAME=VALUE"),
        ("s=a\nb", "expected a text of one line"),
        ("c=two", "'two': expected a number or two in parentheses, as (1,2)"),
        ("c=(1,2,3)", "expected a number or two in parentheses"),
        ("t=(1,2)", "'(1,2)': expected a number\n"),
        ("t=nan", "'nan': expected a number\n"),
    ],
)
def test_what_is_no_text_or_number_is_one_message(
    setting: str, message: str, tmp_path: Path
) -> None:
    path = descriptor(tmp_path, LOCAL, WORDS)
    done = understudy("skel", "params", path, "--set", setting, "-o", tmp_path / "app_params.xml")
    if done.exit_code == 0:
        done = understudy("skel", "source", path, "-d", tmp_path)
    assert done.exit_code == 2 and message in done.stderr, done.stderr
    assert done.stderr.count("understudy: ") == 1
    assert not list(tmp_path.glob("*.c"))


@pytest.mark.parametrize(
    ("files", "fault"),
    [
        (("md.idx", "md.0", "mmd.0", "data.0"), "/md.idx: 0 bytes: expected at least 64"),
        ((), ": expected a BP4 or BP5 file, a directory with md.idx"),
    ],
)
def test_a_directory_that_is_no_bp_file_is_one_message(
    files: tuple[str, ...], fault: str, tmp_path: Path
) -> None:
    path = tmp_path / "a2.bp"
    path.mkdir()
    for name in files:
        (path / name).touch()
    done = understudy("skel", "replay", path, "-d", tmp_path)
    assert (done.exit_code, done.stderr) == (2, f"understudy: {path}{fault}\n")


@pytest.mark.parametrize("name", ["none.bp", "text.bp"])
def test_what_is_no_bp_file_is_one_message(name: str, tmp_path: Path) -> None:
    bpls_path()
    (tmp_path / "text.bp").write_text("not one\n" * 99)
    before = sorted(tmp_path.iterdir())
    done = understudy("skel", "replay", tmp_path / name, "-d", tmp_path)
    assert done.exit_code == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"understudy: {tmp_path / name}: ")
    assert sorted(tmp_path.iterdir()) == before


DIRECTIVES = {
    "slurm": [
        "#SBATCH --ntasks=12",
        "#SBATCH --nodes=3",
        "#SBATCH --ntasks-per-node=5",
        "srun -n 12 build/app_skel_g_write",
    ],
    "pbs": ["#PBS -l select=3:ncpus=5:mpiprocs=5", "mpirun -n 12 build/app_skel_g_write"],
    "torque": ["#PBS -l nodes=3:ppn=5", "mpirun -n 12 build/app_skel_g_write"],
}


def test_every_batch_system_of_the_room_is_tested() -> None:
    assert sorted(DIRECTIVES) == submit_systems()


@pytest.mark.parametrize("system", DIRECTIVES)
def test_a_job_script_passes_the_method_parameters(system: str, tmp_path: Path) -> None:
    path = descriptor(tmp_path)
    values = tmp_path / "app_params.xml"
    succeed("skel", "params", path, "-n", 12, "-o", values)
    text = values.read_text()
    test = re.search(r"    <test .*/>\n", text)
    assert test is not None
    amr = (
        test.group(0)
        .replace("POSIX", "MPI_AMR")
        .replace(
            'method_params=""',
            'method_params="stripe_count=1;num_aggregators={skel_mpi_size / 4}"',
        )
        .replace('iterations="1"', 'iterations="11"')
    )
    values.write_text(text.replace(test.group(0), test.group(0) + amr))
    succeed(
        "skel",
        "submit",
        path,
        "--system",
        system,
        "--cores-per-node",
        5,
        "-A",
        "abc",
        "-t",
        "/scratch/my data",
        "-d",
        tmp_path,
    )
    script = tmp_path / f"submit_{system}_writes"
    lines = script.read_text()
    for line in [*DIRECTIVES[system], "abc", "'/scratch/my data'", "--repetitions 11"]:
        assert line in lines, line
    assert lines.count("--method") == 2
    assert "--method MPI_AMR --parameters 'stripe_count=1;num_aggregators=3'" in lines
    assert "rm -" not in lines
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0


def test_a_job_script_runs(tmp_path: Path) -> None:
    """The template's script is started by hand, with the batch system's own names set."""
    program = make(descriptor(tmp_path), tmp_path)
    succeed(
        "skel",
        "submit",
        tmp_path / "app_skel.xml",
        "-d",
        tmp_path,
        "-t",
        tmp_path / "t",
        "--launcher",
        "mpirun -n 4",
    )
    script = (tmp_path / "submit_slurm_writes").read_text()
    job = tmp_path / "job"
    job.write_text(
        f". {Path(__file__).parents[3] / 'setup-env.sh'}\n"
        f"export SLURM_JOB_ID=7 SLURM_SUBMIT_DIR={tmp_path}\n{script}"
    )
    done = subprocess.run(["bash", job], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "app_skel_g_write-0-POSIX-7.json").exists()
    assert program.exists() and list((tmp_path / "t").iterdir()) == []
