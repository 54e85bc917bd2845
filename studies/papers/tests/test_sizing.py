"""Equation 1: golden constants, fits of known and of real files, and what is refused."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.support import player
from understudy import cli, paths
from understudy.contracts import strict
from understudy.errors import UnderstudyError
from understudy_papers.model import composition, sizing
from understudy_papers.model.sizing import Constants, Sample, Sizing, Study

# Fitted to files of MACSio: its HDF5 plugin (one shared file), and TyphonIO.
HDF5 = Constants(alpha=0.9273, beta=0.4083, gamma=-679.5, delta=-190.2, psi=352.5, eta=1924)
TYPHONIO = Constants(alpha=0.92864, beta=5.37955, gamma=-665, delta=-3806, psi=1012.5, eta=12570)
MB, GB, MIB, GIB = 10**6, 10**9, 2**20, 2**30


@pytest.mark.parametrize(
    ("ranks", "part_bytes", "variables", "stated_bytes", "within"),
    [
        (8, 588_880, 43, 213 * MB, 0.002),  # A on half of its ranks
        (16, 588_880, 20, 213 * MIB, 0.01),  # A with fewer variables
        (80, 75_100, 43, 259 * MIB, 0.01),  # C, first
        (80, 75_100 * 7.502, 43, 1.9 * GIB, 0.01),  # C, last: the growth of its replica
        (80, 2_276_448, 43, 7.7 * GIB, 0.003),  # E
    ],
)
def test_equation_1_gives_the_paper_s_checkpoints(
    ranks: int, part_bytes: float, variables: int, stated_bytes: float, within: float
) -> None:
    """The published command lines with the constants of TyphonIO, against Section V-B."""
    predicted = TYPHONIO.file_bytes(ranks, part_bytes, variables)
    assert predicted == pytest.approx(stated_bytes, rel=within)


@pytest.mark.parametrize(
    ("ranks", "part_bytes", "variables", "composed_bytes"),
    [
        (16, 588_880, 20, 215_783_168),
        (80, 75_100, 43, 264_303_360),
        (80, 2_276_448, 43, 8_085_348_480),
    ],
)
def test_equation_1_is_the_data_model_in_the_large(
    ranks: int, part_bytes: int, variables: int, composed_bytes: int
) -> None:
    """15/16 of the part size per variable and 4 part sizes for the 2-D unstructured mesh."""
    model = Constants(alpha=0.9375, beta=4, gamma=0, delta=0, psi=0, eta=0)
    assert model.file_bytes(ranks, part_bytes, variables) == pytest.approx(
        composed_bytes, rel=0.02
    )
    assert TYPHONIO.file_bytes(ranks, part_bytes, variables) > composed_bytes  # and metadata


def test_equation_1_by_hand() -> None:
    c = Constants(alpha=2, beta=3, gamma=5, delta=7, psi=11, eta=13)
    assert c.file_bytes(2, 10, 4) == 2 * (10 * (2 * 4 + 3) + 5 * 4 + 7) + 11 * 4 + 13
    assert c.part_bytes(2, c.file_bytes(2, 10, 4), 4) == 10


@pytest.mark.parametrize("constants", [HDF5, TYPHONIO], ids=["hdf5", "typhonio"])
def test_the_inverse_gives_the_part_size_back(constants: Constants) -> None:
    for ranks, part_bytes, variables in product((1, 16, 4096), (8_000, 2_276_448), (1, 43)):
        size = constants.file_bytes(ranks, part_bytes, variables)
        assert constants.part_bytes(ranks, size, variables) == pytest.approx(part_bytes)


def test_a_file_smaller_than_its_container_is_one_message() -> None:
    with pytest.raises(UnderstudyError, match="than these constants give for the container alone"):
        TYPHONIO.part_bytes(1, 1000, 43)


def study(
    size: Callable[[int, int, int], float], ranks: tuple[int, ...] = (1, 2, 4, 8)
) -> Iterator[Sample]:
    for pr, ps, count in product(ranks, (10_000, 100_000, 1_000_000), (5, 10, 40)):
        yield Sample(
            ranks=pr, part_bytes=ps, variables=count, file_bytes=round(size(pr, ps, count))
        )


@pytest.mark.parametrize("constants", [HDF5, TYPHONIO], ids=["hdf5", "typhonio"])
def test_the_fit_finds_the_constants(constants: Constants) -> None:
    fitted = sizing.fit(list(study(constants.file_bytes)), [8])
    for name in Constants.__slots__:
        assert getattr(fitted.constants, name) == pytest.approx(
            getattr(constants, name), rel=1e-3, abs=0.2
        )
    assert fitted.residuals.samples == 27 and fitted.residuals.max < 1e-4
    assert fitted.held_out is not None
    assert fitted.held_out_ranks == (8,) and fitted.held_out.samples == 9
    assert fitted.held_out.max < 1e-4


def test_the_fit_tells_how_far_off_it_is() -> None:
    """Files of 1 % more or less, alternately: the residuals say so, on any scale of sizes."""
    rng = np.random.default_rng(1)
    noisy = list(study(lambda *x: HDF5.file_bytes(*x) * (1 + 0.01 * rng.choice((-1, 1)))))
    fitted = sizing.fit(noisy)
    assert 0.005 < fitted.residuals.mean < 0.012 and fitted.residuals.max < 0.03
    assert fitted.held_out is None and fitted.held_out_ranks == ()


def test_held_out_files_that_do_not_follow_show() -> None:
    """Larger runs that are 20 % larger than the equation must not be fitted to, nor hidden."""
    bent = list(study(lambda pr, *x: HDF5.file_bytes(pr, *x) * (1.2 if pr == 8 else 1)))
    fitted = sizing.fit(bent, [8])
    assert fitted.residuals.max < 1e-4
    assert fitted.held_out is not None
    assert fitted.held_out.mean == pytest.approx(0.2 / 1.2, rel=1e-3)


def test_a_study_that_varies_too_little_is_one_message() -> None:
    with pytest.raises(UnderstudyError, match="values 1 of ranks, 3 of part_bytes, 3 of variab"):
        sizing.fit(list(study(HDF5.file_bytes, (4,))))
    with pytest.raises(UnderstudyError, match="0 samples with different values 0 of ranks"):
        sizing.fit(list(study(HDF5.file_bytes)), [1, 2, 4, 8])


def calibration() -> Sizing:
    samples = tuple(study(HDF5.file_bytes))
    fitted = sizing.fit(samples, [8])
    return Sizing(
        schema="understudy/sizing/1",
        method="hdf5",
        libraries=("made up",),
        mesh="unstructured",
        file=fitted,
        container=fitted,
        samples=samples,
    )


def test_a_calibration_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "sizing.json").write_text(calibration().to_text())
    assert strict.load(Sizing, tmp_path / "sizing.json") == calibration()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"alpha":', '"alfa":', "file.constants: unknown key 'alfa', expected alpha, beta, gamma"),
        ('"method": "hdf5",', "", "top level: the key 'method' is missing"),
        ('"method": "hdf5"', '"method": 5', "method: expected a string, found 5"),
        ('"ranks": 1,', '"ranks": 1.5,', "samples[0].ranks: expected a whole number, found 1.5"),
        ('"ranks": 1,', '"ranks": 0,', "samples[0]: ranks, part_bytes, variables and file_bytes"),
        ('"mesh": "unstructured"', '"mesh": "amorphous"', "mesh: expected rectilinear, curvilin"),
        ("sizing/1", "sizing/9", 'schema: expected understudy/sizing/1, found "understudy/siz'),
        ('"libraries": [', '"libraries": [true, ', "libraries[0]: expected a string, found true"),
        ('"method"', '"mesh"', "key 'mesh' stands twice in one object"),
        ("{", "", "not JSON: Extra data at line 2, column 11"),
    ],
)
def test_a_wrong_calibration_is_one_message(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    text = calibration().to_text()
    assert old in text
    path = tmp_path / "sizing.json"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UnderstudyError) as error:
        strict.load(Sizing, path)
    assert str(error.value).startswith(f"{path}: {message}")
    assert "\n" not in str(error.value)


def test_a_study_asks_for_the_files_that_it_says() -> None:
    asked = Study(
        mesh="unstructured",
        ranks=(2,),
        held_out_ranks=(),
        part_bytes=(32_768, 8_000),
        variables=(8, 20),
    )
    [stream] = asked.workload(2).streams
    sizes = [
        2 * composition.square_mesh("unstructured", ps).bytes(composition.macsio_fields(count))
        for ps, count in product((32_768, 8_000), (8, 20))
    ]
    assert [d.bytes for d in stream.steps] == sizes
    assert stream.method == "hdf5" and stream.collective


def calibrate(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "understudy", "calibrate", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_real_files_follow_equation_1(tmp_path: Path) -> None:
    """The player writes 24 files on 1, 2 and 4 ranks; the 3 ranks left out are predicted."""
    player.needs("hdf5")
    done = calibrate(
        "-o",
        tmp_path / "sizing.json",
        "-d",
        tmp_path,
        "--ranks",
        "1,2,4",
        "--hold-out",
        "3",
        "--part-bytes",
        "8192,65536,131072",
        "--variables",
        "8,16",
    )
    assert done.returncode == 0, done.stderr
    fitted = strict.load(Sizing, tmp_path / "sizing.json")
    assert len(fitted.samples) == 4 * 3 * 2 and fitted.file.residuals.samples == 18
    assert fitted.file.constants.alpha == pytest.approx(0.9375, rel=0.02)
    assert fitted.file.constants.beta == pytest.approx(4, rel=0.05)
    assert fitted.file.residuals.max < 0.01
    for fit in (fitted.file, fitted.container):
        assert fit.held_out_ranks == (3,) and fit.held_out is not None
    assert fitted.file.held_out is not None and fitted.file.held_out.max < 0.01
    assert fitted.container.held_out is not None and fitted.container.held_out.max < 0.1
    assert 200 < fitted.container.constants.psi < 500  # bytes a dataset
    assert done.stderr.count("ranks write 6 files") == 4
    assert [p.name for p in tmp_path.iterdir()] == ["sizing.json"]


def test_the_reason_of_a_failed_run_is_the_player_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(
        "#!/bin/sh\necho ---- >&2\necho 'understudy: rank 0: disk full' >&2\nexit 3\n"
    )
    mpirun.chmod(0o755)
    player = tmp_path / "understudy-replay"
    shutil.copy(mpirun, player)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    done = CliRunner().invoke(cli.main, ["calibrate", "-o", str(tmp_path / "sizing.json")])
    assert done.exit_code == 2
    assert done.stderr.endswith("understudy: the player failed: rank 0: disk full\n")
    assert not (tmp_path / "sizing.json").exists()


def test_a_missing_program_is_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(cli.main, ["calibrate", "-o", str(tmp_path / "sizing.json")])
    assert done.exit_code == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert ": not found on PATH; " in done.stderr
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    done = CliRunner().invoke(cli.main, ["calibrate", "-o", str(tmp_path / "sizing.json")])
    assert done.stderr.startswith(
        "understudy: understudy-replay: not found on PATH; build it with"
    )


@pytest.mark.parametrize("option", ["--ranks", "--part-bytes", "--variables", "--hold-out"])
@pytest.mark.parametrize("text", ["0", "1,x", "1.5"])
def test_numbers_that_are_none_are_one_message(option: str, text: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(
        cli.main, ["calibrate", "-o", str(tmp_path / "sizing.json"), option, text]
    )
    assert done.exit_code == 2
    assert done.stderr == (
        f"understudy: {option} {text}: expected whole numbers above 0, separated by commas\n"
    )


def test_container_bytes_are_of_datasets() -> None:
    container = Constants(alpha=0, beta=0, gamma=0, delta=0, psi=300, eta=2000)
    composed = calibration()
    composed = replace(composed, container=replace(composed.container, constants=container))
    dump = (
        Study(
            mesh="unstructured",
            ranks=(4,),
            held_out_ranks=(),
            part_bytes=(32_768,),
            variables=(8,),
        )
        .workload(4)
        .streams[0]
        .steps[0]
    )
    assert sizing.container_bytes(composed, 4, dump) == 300 * (8 + 3) + 2000
