"""Skeletal applications for ADIOS2: the file of a skeleton equals that which it was made from.

Here ADIOS2 is PyPI's library for a single process.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studies.skel.tests import support
from studies.skel.tests.support import succeed, understudy
from tests.support.needs import need
from tests.support.said import said
from understudy.adios2 import bp_file
from understudy.adios2.output import Output

HOSTILE = 'é"\\ */ ??/ %s\n\t$(x) "; int y;'
STEPS = 4


def write(path: Path) -> None:
    """A file with each kind of variable that changes from step to step."""
    need("adios2")
    adios2 = import_module("adios2")
    with adios2.Stream(str(path), "w") as stream:
        for _ in stream.steps(STEPS):
            step = stream.current_step()
            stream.write("T", np.random.default_rng(step).random((4, 8)), [4, 8], [0, 0], [4, 8])
            stream.write("dt", 0.25 * step)
            stream.write("local", np.arange(6, dtype=np.int16), [], [], [6])
            stream.write(
                "growing", np.arange(5 + step, dtype=np.float32), [5 + step], [0], [5 + step]
            )
            stream.write("complex", np.arange(5) * 1j, [5], [0], [5])
            stream.write(re.sub(r"[\n(]", " ", HOSTILE), 7)  # ADIOS2 2.10 ends names at "("
            if step in (0, 2):
                stream.write("sometimes", np.arange(10, dtype=np.uint8), [10], [0], [10])
            if step == 0:
                stream.write("text", HOSTILE)
                stream.write("largest", np.array(2**64 - 1, dtype=np.uint64))
                stream.write("smallest", np.array(-(2**63), dtype=np.int64))
                stream.write_attribute("unit/*x*/", HOSTILE)
                stream.write_attribute("one", np.array([0.5]))
                stream.write_attribute("single", np.array(0.5))
                stream.write_attribute("words", ["a", "b\\", ""])
                stream.write_attribute("numbers", np.arange(3.0))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("adios2") / "app.bp"
    write(path)
    return path


@pytest.fixture(scope="module")
def program(original: Path) -> Path:
    """In C++."""
    succeed("skel", "replay", original, "-d", original.parent / "skeleton")
    return original.parent / "skeleton" / "build" / "app_skel_write"


@pytest.fixture(scope="module")
def script(original: Path) -> Path:
    """In Python."""
    folder = original.parent / "script"
    succeed("skel", "replay", original, "-d", folder, "-l", "python")
    return folder / "app_skel_write.py"


@pytest.fixture(params=["program", "script"])
def either(request: pytest.FixtureRequest) -> Path:
    path = request.getfixturevalue(request.param)
    assert isinstance(path, Path)
    return path


def run(program: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Runs a program in the directory of its files."""
    python = [sys.executable] if program.suffix else []
    return subprocess.run(
        [*python, program, *map(str, words)],
        cwd=program.parent if program.suffix else program.parent.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def facts(output: Output) -> dict[str, Any]:
    """All that a file states, but for its contents."""
    rows: dict[str, Any] = {
        variable.name: [
            variable.type,
            variable.kind,
            [
                (i.step, i.shape, i.value, *(b.tolist() for b in _arrays(i.blocks)))
                for i in variable.instances
            ],
        ]
        for variable in output.variables
    }
    rows["attributes"] = sorted((a.name, a.type, a.array, a.values) for a in output.attributes)
    rows["file"] = (output.engine, output.steps, output.writers, output.subfiles)
    return rows


def _arrays(blocks: Any) -> tuple[Any, ...]:
    return blocks.writers, blocks.starts, blocks.counts


def test_file_of_the_skeleton_equals_the_original(
    original: Path, either: Path, tmp_path: Path
) -> None:
    done = run(either, "-o", tmp_path / "run", "-r", tmp_path / "result.json", "-k", "--verify")
    assert done.returncode == 0, done.stderr
    assert facts(bp_file.read(tmp_path / "run/app.bp")) == facts(bp_file.read(original))


def test_measurement_states_the_bytes_of_each_step(either: Path, tmp_path: Path) -> None:
    result = tmp_path / "result.json"
    done = run(either, "-o", tmp_path / "run", "-r", result, "-i", 2)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "run").exists()
    repetitions = json.loads(result.read_text())["repetitions"]
    [stream] = repetitions[1]["streams"]
    fixed = 4 * 8 * 8 + 8 + 6 * 2 + 5 * 16 + 8
    growing = [4 * (5 + step) for step in range(STEPS)]
    texts = len(HOSTILE.encode()) + 16
    assert [dump["bytes"] for dump in stream["dumps"]] == [
        fixed + growing[0] + 10 + texts,
        fixed + growing[1],
        fixed + growing[2] + 10,
        fixed + growing[3],
    ]
    succeed("show", result)


def test_further_steps_are_as_the_last_and_each_may_have_a_file(
    either: Path, tmp_path: Path
) -> None:
    options = ["-o", tmp_path / "run", "-r", tmp_path / "result.json", "-k", "--verify"]
    done = run(either, *options, "-s", STEPS + 2, "--new-files", "--engine", "BP4")
    assert done.returncode == 0, done.stderr
    last = bp_file.read(tmp_path / f"run/app.{STEPS + 1}.bp")
    [growing] = [v for v in last.variables if v.name == "growing"]
    assert growing.instances[0].shape == (5 + STEPS - 1,)
    assert last.engine == "BP4"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--engine", "SST"], "stream-engine"),
        (["--parameter", "NumAgregators=2"], "no-parameter"),
        (["--parameter", "=2"], "no-key"),
        (["--method", "POSIX"], "method-of-adios-1"),
        (["--fill", "ones"], "no-fill"),
    ],
)
def test_invalid_options_are_refused(
    program: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    done = run(program, "-o", tmp_path / "run", *words)
    assert done.returncode != 0
    said(message, done.stderr)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words", [["--engine", "SST"], ["--parameter", "=2"], ["--fill", "ones"], ["-s", "0"]]
)
def test_invalid_options_of_a_script_are_refused(
    script: Path, tmp_path: Path, words: list[str]
) -> None:
    done = run(script, "-o", tmp_path / "run", *words)
    assert done.returncode == 2
    assert words[-1] in done.stderr
    assert not (tmp_path / "run").exists()


def test_directory_with_files_is_refused_and_kept(either: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    done = run(either, "-o", tmp_path)
    assert done.returncode != 0
    said("directory-not-empty", done.stderr, folder=tmp_path)
    assert (tmp_path / "mine").read_text() == "x"


def test_changed_file_does_not_verify(script: Path, tmp_path: Path) -> None:
    """A process that finds other contents than it wrote ends the run."""
    text = script.read_text().replace("values_0[step]", "step + (output.mode == 'verify')")
    changed = script.with_name("changed.py")
    changed.write_text(text)
    done = run(changed, "-o", tmp_path / "run", "-r", tmp_path / "result.json", "--verify")
    assert done.returncode != 0
    said("value-differs", done.stderr)
    assert not (tmp_path / "result.json").exists()


@pytest.mark.parametrize("engine", ["BP4", "BP5"])
@pytest.mark.parametrize("language", ["c++", "python"])
def test_blocks_that_overlap_verify_each_by_itself(
    engine: str, language: str, tmp_path: Path
) -> None:
    """As ghost cells do: no box has the contents of one block."""
    need("adios2")
    adios2 = import_module("adios2")
    with adios2.Stream(str(tmp_path / "ghost.bp"), "w") as stream:
        for _ in stream.steps(2):
            for start in (0, 3):
                stream.write("a", np.full(7, start + 0.5), [10], [start], [7])
                stream.write("b", np.full((2, 7), start, np.uint8), [2, 10], [0, start], [2, 7])
                stream.write("l", np.arange(start, start + 7), [], [], [7])
    folder = tmp_path / "skeleton"
    succeed("skel", "make", tmp_path / "ghost.bp", "-d", folder, "-l", language)
    names = {"c++": "build/ghost_skel_write", "python": "ghost_skel_write.py"}
    done = run(
        folder / names[language], "-o", tmp_path / "run", "-r", tmp_path / "result.json",
        "--verify", "--engine", engine,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_operator_that_the_library_lacks_ends_in_one_message(
    program: Path, tmp_path: Path
) -> None:
    """ADIOS2 throws it where it must not."""
    config = tmp_path / "operator.xml"
    config.write_text(
        '<adios-config><io name="output"><variable name="T"><operation type="sz"/></variable>'
        "</io></adios-config>"
    )
    done = run(program, "-o", tmp_path / "run", "-c", config)
    assert done.returncode != 0
    said("no-operator", done.stderr, config=config)
    assert "terminate" not in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("operator", ["sz", "none"])
def test_operator_that_the_module_lacks_ends_in_one_message(
    script: Path, tmp_path: Path, operator: str
) -> None:
    """ADIOS2 ends the process where it would be used."""
    config = tmp_path / "operator.xml"
    config.write_text(
        f'<adios-config><io name="output"><variable name="T"><operation type="{operator}"/>'
        "</variable></io></adios-config>"
    )
    done = run(script, "-o", tmp_path / "run", "-c", config)
    assert done.returncode == 1
    said("module-without-operator", done.stderr, config=config, operator=operator)
    assert "terminate" not in done.stderr


def test_contents_that_an_operator_does_not_compress_name_the_option() -> None:
    need("adios2")
    output = import_module("studies.skel.skeleton.output")
    text = "[time] [ADIOS2 EXCEPTION] <Operator> <CompressBZIP2> <CheckStatus> : BZ_OUTBUFF_FULL"
    said("other-contents", output.reason(ValueError(f"{text} BZIP2 detected\x1b[0m")))


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_step_without_data_is_measured(tmp_path: Path, empty: int) -> None:
    need("adios2")
    adios2 = import_module("adios2")
    with adios2.Stream(str(tmp_path / "gap.bp"), "w") as stream:
        for step in stream.steps(3):
            if step.current_step() != empty:
                stream.write("a", np.ones(9), [9], [0], [9])
    succeed("skel", "make", tmp_path / "gap.bp", "-d", tmp_path, "-l", "python")
    result = tmp_path / "result.json"
    done = run(tmp_path / "gap_skel_write.py", "-o", tmp_path / "run", "-r", result)
    assert done.returncode == 0, done.stderr
    assert "gap" in succeed("show", result).stdout


@pytest.mark.parametrize("kind", ["fifo", "link", "directory", "no directory"])
def test_result_that_is_no_regular_file_is_refused_and_stays(
    either: Path, tmp_path: Path, kind: str
) -> None:
    """Before anything is written."""
    result = tmp_path / "result"
    if kind == "fifo":
        os.mkfifo(result)
    elif kind == "link":
        result.symlink_to("/dev/null")
    elif kind == "directory":
        result.mkdir()
    else:
        result = tmp_path / "none" / "result"
    before = result.lstat().st_mode if result.parent.exists() else 0
    done = run(either, "-o", tmp_path / "run", "-r", result)
    assert done.returncode != 0 and f"{result}: " in done.stderr
    assert not (tmp_path / "run").exists()
    assert before == (result.lstat().st_mode if result.parent.exists() else 0)


@pytest.mark.parametrize("engine", ["BP4", "BP5"])
def test_failed_script_leaves_no_files(script: Path, tmp_path: Path, engine: str) -> None:
    """As the program in C++: here a file cannot grow."""
    changed = script.with_name("limited.py")
    changed.write_text(
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n" + script.read_text()
    )
    done = run(changed, "-o", tmp_path / "run", "-r", tmp_path / "result.json", "-a", engine, "-k")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr and str(tmp_path / "run") in done.stderr
    assert [*tmp_path.iterdir()] == []


def test_what_does_not_fit_the_memory_names_no_command_of_adios_1(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SKELETON_MEMORY_BYTES", "1")
    done = run(program, "-o", tmp_path / "run")
    assert done.returncode != 0 and said("smaller-arrays", done.stderr)
    assert "skel params" not in done.stderr


def test_another_number_of_processes_is_refused(program: Path, tmp_path: Path) -> None:
    done = support.run(program, 2, "-o", tmp_path / "run")
    assert done.returncode != 0
    said("other-processes", done.stderr)


def test_fault_in_the_file_is_reported(original: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.bp"
    shutil.copytree(original, copy)
    (copy / "md.idx").write_bytes((copy / "md.idx").read_bytes()[:100])
    done = understudy("skel", "replay", copy, "-d", tmp_path / "skeleton")
    assert done.exit_code != 0
    said("damaged", done.stderr, copy=copy)


def test_file_of_openpmd_api_is_written_as_it_is(tmp_path: Path) -> None:
    """Its blocks have no minima and maxima."""
    need("openPMD-api", "adios2")
    openpmd = import_module("openpmd_api")
    path = tmp_path / "particles.bp"
    series = openpmd.Series(
        str(path), openpmd.Access.create, '{"iteration_encoding": "variable_based"}'
    )
    for step in range(2):
        iteration = series.write_iterations()[step]
        for name in ("position", "positionOffset"):
            values = np.arange(10.0 + step)
            record = iteration.particles["e"][name]["x"]
            record.reset_dataset(openpmd.Dataset(values.dtype, values.shape))
            record.store_chunk(values)
        iteration.close()
    series.close()
    succeed("skel", "make", path, "-d", tmp_path / "script", "-l", "python")
    script = tmp_path / "script" / "particles_skel_write.py"
    done = run(script, "-o", tmp_path / "run", "-r", tmp_path / "result.json", "-k", "--verify")
    assert done.returncode == 0, done.stderr
    written = tmp_path / "run" / "particles.bp"
    assert facts(bp_file.read(written)) == facts(bp_file.read(path))
    assert b"MetaArrayMM" not in (written / "mmd.0").read_bytes()
