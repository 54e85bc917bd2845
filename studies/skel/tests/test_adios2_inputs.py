"""Inputs of skeletal applications for ADIOS2: models, configurations, and what is refused."""

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studies.skel.tests.support import succeed, understudy
from tests.readers.logs import BP
from tests.support.said import raises, said
from understudy.adios2 import configuration as adios2_configuration
from understudy.adios2 import engines, model_file
from understudy.adios2.output import (
    GLOBAL_ARRAY,
    GLOBAL_VALUE,
    LOCAL_ARRAY,
    LOCAL_VALUE,
    Attribute,
    Blocks,
    Instance,
    Output,
    Variable,
)
from understudy.errors import UnderstudyError
from understudy.paths import where
from understudy_skel.adios2 import plan, source
from understudy_skel.adios2.dialects import CPP, DIALECTS, PYTHON

MODEL = """\
ranks: 6
steps: 3
variables:
- {name: U, type: double, shape: [13, 8], split: [3, 2]}
- {name: particles, type: float, shape: [5, 6], of: each rank}
- {name: step, type: int32_t}
"""
CONFIGURATION = """\
<adios-config>
  <io name="first"><engine type="BP4"/></io>
  <io name="second">
    <engine type="bp5"><parameter key="NumAggregators" value="2"/></engine>
    <variable name="U">
      <operation type="blosc"><parameter key="clevel" value="1"/></operation>
    </variable>
  </io>
  <io name="stream"><engine type="SST"/></io>
</adios-config>
"""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "heat.yaml"
    path.write_text(MODEL)
    return path


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    path = tmp_path / "adios2.xml"
    path.write_text(CONFIGURATION)
    return path


def global_array(name: str, shape: Sequence[int], blocks: Sequence[Sequence[int]]) -> Variable:
    """Of one step; each block is the writer, starts and counts."""
    rows = np.array(blocks, dtype=np.int64)
    d = len(shape)
    return Variable(
        name=name,
        type="double",
        kind=GLOBAL_ARRAY,
        instances=(
            Instance(
                step=0,
                shape=tuple(shape),
                blocks=Blocks(
                    writers=rows[:, 0], starts=rows[:, 1 : 1 + d], counts=rows[:, 1 + d :]
                ),
            ),
        ),
    )


def value(kind: str, text: str, name: str = "v") -> Variable:
    none = np.zeros((1, 0), np.int64)
    blocks = Blocks(writers=np.zeros(1, np.int64), starts=none, counts=none)
    instance = Instance(step=0, blocks=blocks, value=text)
    return Variable(name=name, type=kind, kind=GLOBAL_VALUE, instances=(instance,))


def output(*variables: Variable, writers: int = 1, attributes: Any = ()) -> Output:
    return Output(
        path=Path("a.bp"),
        engine="BP5",
        writers=writers,
        steps=1,
        variables=variables,
        attributes=attributes,
    )


def layouts(planned: plan.Plan, folder: Path) -> list[list[list[int]]]:
    """The blocks of all processes that the generated functions of Python give, for each layout."""
    texts = source.files(planned, "a", "output", PYTHON)
    program = texts["a_skel_write.py"].replace(
        "from skeleton.output import", "from stand_in import"
    )
    table = texts.get("a_skel_blocks.py", "")
    stand_in = (
        "from collections import namedtuple\n"
        "Layout = namedtuple('Layout', 'shape blocks')\n"
        "Program = dict\nplay = None\n"
        "def table(shape, d, local, rows, rank):\n"
        "    return Layout(shape, [(row[1:-d], row[-d:]) for row in rows if row[0] == rank])\n"
    )
    program = re.sub(r"from (stand_in|a_skel_blocks) import .*", "", program)
    module: dict[str, Any] = {"__name__": "a"}
    exec(stand_in + table + program, module)
    functions = [module[f"layout_{layout.number}"] for layout in planned.layouts]
    return [
        [
            [rank, *start, *count]
            for rank in range(planned.writers)
            for start, count in function(rank).blocks
        ]
        for function in functions
    ]


def grid(shape: Sequence[int], sides: Sequence[int], fortran: bool) -> list[list[int]]:
    """Blocks of a decomposition into as many parts of each dimension as there are ranks, the
    first ones larger by one."""
    rows = []
    for rank in range(int(np.prod(sides))):
        place = np.unravel_index(rank, sides, order="F" if fortran else "C")
        starts, counts = [], []
        for size, side, i in zip(shape, sides, place, strict=True):
            count, larger = divmod(size, side)
            starts.append(int(i * count + min(int(i), larger)))
            counts.append(int(count + (i < larger)))
        rows.append([rank, *starts, *counts])
    return rows


@pytest.mark.parametrize(
    ("shape", "sides"), [((12,), (4,)), ((13, 8), (3, 2)), ((9, 10, 11), (2, 3, 4)), ((7,), (7,))]
)
@pytest.mark.parametrize("fortran", [False, True])
def test_regular_blocks_are_formulas(
    tmp_path: Path, shape: tuple[int, ...], sides: tuple[int, ...], fortran: bool
) -> None:
    rows = grid(shape, sides, fortran)
    planned = plan.of(output(global_array("a", shape, rows), writers=len(rows)))
    assert planned.tables == ()
    assert layouts(planned, tmp_path) == [rows]


def test_last_block_may_be_smaller(tmp_path: Path) -> None:
    rows = [[0, 0, 3], [1, 3, 3], [2, 6, 3], [3, 9, 1]]
    planned = plan.of(output(global_array("a", (10,), rows), writers=4))
    assert planned.tables == ()
    assert layouts(planned, tmp_path) == [rows]


def test_irregular_blocks_are_tables_that_variables_share(tmp_path: Path) -> None:
    rows = [[0, 0, 3], [0, 5, 1], [2, 3, 2]]
    arrays = [global_array(name, (6,), rows) for name in "ab"]
    planned = plan.of(output(*arrays, writers=3))
    assert len(planned.layouts) == len(planned.tables) == 1
    assert layouts(planned, tmp_path) == [rows]
    assert planned.bytes.tolist() == [[64, 0, 32]]


@pytest.mark.parametrize("name", ["run.2-a", "2nd", "a"])
def test_tables_are_a_module_whatever_the_file_is_called(name: str) -> None:
    planned = plan.of(
        output(global_array("a", (6,), [[0, 0, 3], [0, 5, 1], [2, 3, 2]]), writers=3)
    )
    program, tables = source.files(planned, name, "output", PYTHON)
    module = tables.removesuffix(".py")
    assert module.isidentifier()
    assert f"from {module} import" in source.files(planned, name, "output", PYTHON)[program]


@pytest.mark.parametrize("language", sorted(DIALECTS))
@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("int8_t", "128", "too-large"),
        ("uint64_t", "-1", "negative"),
        ("double", "x); system(", "no-real-number"),
        ("int32_t", "1; int y", "no-whole-number"),
        ("string", "a\0b", "nul"),
    ],
)
def test_values_that_are_none_are_refused(
    language: str, kind: str, text: str, message: str
) -> None:
    planned = plan.of(output(value(kind, text)))
    with raises(UnderstudyError, message):
        source.files(planned, "a", "output", language)


def test_output_without_data_is_refused() -> None:
    """Its program would write nothing, and have no bandwidth."""
    attribute = Attribute(name="unit", type="string", values=("K",))
    empty = global_array("a", (0,), [[0, 0, 0]])
    for written in (output(attributes=(attribute,)), output(empty), replace(output(), steps=0)):
        with raises(UnderstudyError, "no-data"):
            plan.of(written)


def test_names_of_a_file_stay_inside_of_their_strings() -> None:
    name = '"); system("x'
    attribute = Attribute(name="*/ int a; /*", type="string", values=("??/",))
    planned = plan.of(output(value("int32_t", "1", name), attributes=(attribute,)))
    [text] = source.files(planned, "a", "output", CPP).values()
    assert 'output.value<int32_t>("\\"); system(\\"x", 1);' in text
    assert '("*/ int a; /*", "\\?\\?/");' in text


def test_names_that_are_not_utf_8_are_bytes_of_c() -> None:
    attribute = Attribute(name="a\udcfe", type="int32_t", values=("1",))
    planned = plan.of(output(value("int32_t", "1", "\udcff"), attributes=(attribute,)))
    [text] = source.files(planned, "a", "output", CPP).values()
    assert 'value<int32_t>("\\377", 1)' in text and '"a\\376"' in text
    with raises(UnderstudyError, "bytes-of-python"):
        source.files(planned, "a", "output", PYTHON)


def test_structures_and_characters_of_python_are_refused() -> None:
    with raises(UnderstudyError, "structure"):
        plan.of(output(value("struct", "1")))
    planned = plan.of(output(value("char", "65")))
    with raises(UnderstudyError, "char-of-python"):
        source.files(planned, "a", "output", PYTHON)


def test_model_and_configuration_give_engine_parameters_and_operators(
    model: Path, configuration: Path, tmp_path: Path
) -> None:
    made = succeed(
        "skel", "make", configuration, "--variables", model, "--io", "second", "-d", tmp_path,
        "--no-make",
    )  # fmt: skip
    config = (tmp_path / "heat_skel.xml").read_text()
    assert '<io name="second">' in config and '<engine type="BP5">' in config
    assert '<parameter key="NumAggregators" value="2"/>' in config
    assert '<operation type="blosc">' in config
    assert 'program.io = "second";' in (tmp_path / "heat_skel_write.cpp").read_text()
    said("steps-and-bytes", made.stderr)


def test_operators_of_a_configuration_take_the_place_of_those_of_the_file(
    configuration: Path,
) -> None:
    """As with ADIOS2, whose engine BP5 takes one of them; a variable that the configuration does
    not name keeps its own."""
    rows = [[0, 0, 3]]
    arrays = [
        replace(global_array(name, (3,), rows), operators=(("bzip2", {}),)) for name in ("U", "V")
    ]
    read = adios2_configuration.read(configuration)
    planned = plan.of(adios2_configuration.applied(output(*arrays), read, "second"))
    text = source.config(planned, "second")
    assert re.findall(r'<(?:variable name|operation type)="(\w+)"', text) == [
        "U", "blosc", "V", "bzip2",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["bp4", "bp5"])
def test_operators_get_contents_that_fill_chooses(kind: str, tmp_path: Path) -> None:
    """The bytes that they left are told, and the option that changes them."""
    [path] = (path for path in BP if path.stem == f"operator-{kind}")
    made = succeed("skel", "make", path, "-d", tmp_path, "--no-make")
    said("operators-left", made.stderr, bytes=120 * 40 * 4)


def test_a_configuration_in_utf_16_is_of_adios2(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "wide.xml"
    path.write_text(CONFIGURATION, encoding="utf-16")
    succeed(
        "skel", "make", path, "--variables", model, "--io", "first", "-d", tmp_path, "--no-make"
    )
    assert '<engine type="BP4">' in (tmp_path / "heat_skel.xml").read_text()


@pytest.mark.parametrize(("times", "pauses"), [((0.0, 0.0, 0.0), False), ((0.0, 2.0, 4.0), True)])
def test_pause_is_told_where_there_is_one(
    times: tuple[float, ...],
    pauses: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: Path,
) -> None:
    """The times of a file of BP4 are to a second, and often the same."""
    read = model_file.read(model)
    monkeypatch.setattr(model_file, "read", lambda _: replace(read, times=times))
    made = succeed("skel", "make", model, "-d", tmp_path / "out", "--no-make")
    assert ("--pause 2" in made.stderr) == pauses
    assert ("--pause" in made.stderr) == pauses


def test_example_of_a_model_makes_a_program(tmp_path: Path) -> None:
    succeed("skel", "model", "new", tmp_path / "a.yaml")
    succeed("skel", "make", tmp_path / "a.yaml", "-d", tmp_path, "--no-make")
    assert (tmp_path / "a_skel_write.cpp").is_file()
    again = understudy("skel", "model", "new", tmp_path / "b" / "a.yaml")
    assert again.exit_code != 0 and said("no-folder", again.stderr)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("{xml}", "states-no-variables"),
        ("{xml} --variables {yaml}", "several-ios"),
        ("{xml} --variables {yaml} --io none", "no-such-io"),
        (
            "{xml} --variables {yaml} --io stream",
            "stream-engine",
        ),
        ("{xml} --variables {xml} --io first", "no-variables-in-it"),
        ("{yaml} --variables {yaml}", "variables-without-configuration"),
        ("{yaml} --io first", "io-without-configuration"),
        ("{yaml} --method POSIX", "method-of-adios-1"),
        ("{yaml} --set nx=4", "set-of-adios-1"),
        ("{yaml} -n 4", "cores-of-adios-1"),
        ("{yaml} -l fortran", "language-of-adios-1"),
        ("{folder}", "plain-directory"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(
    model: Path, configuration: Path, tmp_path: Path, words: str, message: str
) -> None:
    filled = words.format(xml=configuration, yaml=model, folder=tmp_path)
    done = understudy("skel", "make", *filled.split(), "-d", tmp_path / "out", "--no-make")
    assert done.exit_code != 0
    said(message, done.stderr)
    assert not (tmp_path / "out").exists()


def test_descriptor_of_adios_1_takes_no_options_of_adios2(model: Path, tmp_path: Path) -> None:
    done = understudy(
        "skel", "make", where("traces") / "gts.xml", "--variables", model, "-d", tmp_path / "out"
    )
    assert done.exit_code != 0 and said("only-for-adios2", done.stderr)


def test_runtime_has_the_parameters_of_the_engines() -> None:
    text = (where("skeleton") / "output.cpp").read_text()
    [listed] = re.findall(r"parameters\[\] = \{(.*?)\};", text, re.DOTALL)
    names = {
        parameter.name
        for parameters in engines.PLAYED.values()
        for parameter in parameters.values()
        if parameter.writer
    }
    assert set(re.findall(r'"([^"]+)"', listed)) == names


@pytest.mark.parametrize("language", sorted(DIALECTS))
def test_processes_that_write_no_value_define_it(language: str) -> None:
    """With HDF5 they would hang otherwise."""
    rows = [[0, 0, 3], [1, 3, 3]]
    written = output(value("int32_t", "1"), global_array("a", (6,), rows), writers=2)
    [text] = source.files(plan.of(written), "a", "output", language).values()
    assert ", 1, rank == 0)" in text


@pytest.mark.parametrize("language", sorted(DIALECTS))
def test_local_values_are_those_of_each_process(language: str) -> None:
    none = np.zeros((3, 0), np.int64)
    blocks = Blocks(writers=np.arange(3), starts=none, counts=none)
    steps = [
        Instance(step=0, blocks=blocks, value="7", values=("7", "8", "9")),
        Instance(step=1, blocks=blocks, value="5", values=("5", "5", "5")),
    ]
    variable = Variable(name="l", type="int32_t", kind=LOCAL_VALUE, instances=tuple(steps))
    written = replace(output(variable, writers=3), steps=2)
    [text] = source.files(plan.of(written), "a", "output", language).values()
    assert "7, 8, 9, 5, 5, 5," in text
    assert "values_0[step * 3 + rank]" in text


def test_local_arrays_have_no_starts() -> None:
    instance = Instance(
        step=0,
        blocks=Blocks(
            writers=np.array([0]),
            starts=np.zeros((1, 1), np.int64),
            counts=np.array([[5]], dtype=np.int64),
        ),
    )
    variable = Variable(name="l", type="float", kind=LOCAL_ARRAY, instances=(instance,))
    [text] = source.files(plan.of(output(variable)), "a", "output", CPP).values()
    assert "return {{}, {{{}, {5}}}};" in text


ADIOS2_OF_MPI = """\
set(adios2_FOUND TRUE)
add_library(adios2::cxx_mpi INTERFACE IMPORTED)
target_link_libraries(adios2::cxx_mpi INTERFACE MPI::MPI_C MPI::MPI_CXX)
"""


def test_library_that_is_asked_for_is_linked_and_finds_its_targets(
    model: Path, tmp_path: Path
) -> None:
    """An ADIOS2 with MPI needs MPI's C++; that of an earlier build, or another, is not taken."""
    succeed("skel", "make", model, "-d", tmp_path / "out", "--no-make")
    libraries = [tmp_path / "first", tmp_path / "second"]
    for folder in libraries:
        (folder / "lib/cmake/adios2").mkdir(parents=True)
        (folder / "lib/cmake/adios2/adios2-config.cmake").write_text(ADIOS2_OF_MPI)
        assert "Build files have been written" in _configured(tmp_path / "out", folder)
        cache = (tmp_path / "out/build/CMakeCache.txt").read_text()
        assert f"adios2_DIR:PATH={folder}/lib/cmake/adios2\n" in cache
    (tmp_path / "empty").mkdir()
    assert "Could not find a package" in _configured(tmp_path / "out", tmp_path / "empty")


def _configured(folder: Path, library: Path) -> str:
    """What CMake says of the program, before it is compiled."""
    done = subprocess.run(
        ["make", "-C", folder, f"ADIOS2_ROOT={library}", "configure"],
        env=os.environ | {"CMAKE_PREFIX_PATH": str(library.parent / "first")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stdout + done.stderr
