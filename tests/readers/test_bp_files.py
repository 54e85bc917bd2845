"""BP4 and BP5 files: the block of each writer in each time step, against what the program wrote,
and against ADIOS2's own module."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.readers.logs import BP
from tests.support.needs import need
from tests.support.said import said
from understudy.adios2 import bp_file, description, ffs
from understudy.adios2.output import Instance, Output
from understudy.cli import main as understudy

RANKS = 4
FILES = {path.stem: path for path in BP}
BLOCKS = [FILES["blocks-bp4"], FILES["blocks-bp5"]]
Block = tuple[int, list[int], list[int]]  # writer, start, count


def describe(*arguments: object) -> Result:
    return CliRunner().invoke(understudy, ["describe", *map(str, arguments)])


def blocks(instance: Instance) -> list[Block]:
    rows = instance.blocks
    return list(
        zip(rows.writers.tolist(), rows.starts.tolist(), rows.counts.tolist(), strict=True)
    )


def by_name(output: Output) -> dict[str, dict[int, Instance]]:
    return {v.name: {i.step: i for i in v.instances} for v in output.variables}


# Each as blocks.cpp writes it: of a rank r and a step k.
ARRAYS: dict[str, Callable[[int, int], list[tuple[list[int], list[int]]]]] = {
    "slabs": lambda r, k: [([r * (r + 1) // 2, 0], [r + 1, 5])],
    "columns": lambda r, k: [([0, 3 * r], [6, 3])] * (k != 1),
    "group/grid": lambda r, k: [([4 * (r // 2), 5 * (r % 2)], [4, 5])],
    "some": lambda r, k: [([8 * r + 8 * b], [8]) for b in range(2) if r % 2 == 0],
    "local": lambda r, k: [([0, 0], [r + 1, 2])],
    "several": lambda r, k: [([0], [b + 1]) for b in range(r)],
    "empty": lambda r, k: [([4 * r], [0 if r == 1 else 4])],
    "wave": lambda r, k: [([2 * r], [2])],
    "growing": lambda r, k: [([r * (k + 1)], [k + 1])],
    "reversed": lambda r, k: [([RANKS - 1 - r, 0, 0], [1, 3, 4])],
}


def writers(step: int) -> range:
    """In step 1 the last rank wrote nothing."""
    return range(RANKS - (step == 1))


def expected(name: str, step: int) -> list[Block]:
    return [(r, *block) for r in writers(step) for block in ARRAYS[name](r, step)]


@pytest.mark.parametrize("path", BLOCKS, ids=lambda path: path.stem)
def test_each_block_has_its_writer(path: Path) -> None:
    output = bp_file.read(path)
    assert (output.engine, output.version) == (path.stem[-3:].upper(), "2.12.0")
    assert (output.writers, output.steps, output.subfiles, output.notes) == (RANKS, 3, 2, ())
    read = by_name(output)
    assert {*read} == {*ARRAYS, "step", "time", "name", "each", "joined"}
    for name in ARRAYS:
        for step in range(3):
            rows = expected(name, step)
            assert (step in read[name]) == bool(rows), (name, step)
            assert not rows or blocks(read[name][step]) == rows, (name, step)


@pytest.mark.parametrize("path", BLOCKS, ids=lambda path: path.stem)
def test_kinds_shapes_and_values(path: Path) -> None:
    output = bp_file.read(path)
    kinds = {v.name: (v.type, v.kind, v.bytes) for v in output.variables}
    assert kinds == {
        "slabs": ("double", "global array", 8),
        "columns": ("float", "global array", 4),
        "group/grid": ("int32_t", "global array", 4),
        "some": ("uint64_t", "global array", 8),
        "local": ("int16_t", "local array", 2),
        "several": ("uint8_t", "local array", 1),
        "step": ("int32_t", "global value", 4),
        "time": ("double", "global value", 8),
        "name": ("string", "global value", 0),
        "each": ("int64_t", "local value", 8),
        "joined": ("double", "joined array", 8),
        "empty": ("float", "global array", 4),
        "wave": ("double complex", "global array", 16),
        "growing": ("double", "global array", 8),
        "reversed": ("float", "global array", 4),
    }
    read = by_name(output)
    assert {step: read["growing"][step].shape for step in range(3)} == {0: (4,), 1: (8,), 2: (12,)}
    assert read["local"][0].shape is None and read["group/grid"][0].shape == (8, 10)
    assert {s: i.value for s, i in read["time"].items()} == {1: "0.5", 2: "1.0"}
    assert [i.value for i in read["name"].values()] == ["step 0", "step 1", "step 2"]
    for step in range(3):
        each = read["each"][step]
        assert (each.value, each.blocks.writers.tolist()) == (str(100 * step), [*writers(step)])
        heights = [r + 2 for r in writers(step)]
        whole = read["joined"][step]
        assert whole.shape == (sum(heights), 3)
        starts = np.cumsum(heights) - heights
        assert blocks(whole) == [(r, [starts[r], 0], [r + 2, 3]) for r in writers(step)]
    attributes = {a.name: (a.type, a.values) for a in output.attributes}
    assert attributes == {
        "title": ("string", ("blocks",)),
        "units": ("string", ("m", "s")),
        "dt": ("double", ("0.25",)),
        "sizes": ("int32_t", ("1", "2", "3")),
        "slabs/unit": ("string", ("K",)),
    }


@pytest.mark.parametrize("format_", ["bp4", "bp5"])
def test_an_operators_bytes_are_those_of_the_file(format_: str) -> None:
    [image] = bp_file.read(FILES[f"operator-{format_}"]).variables
    [instance] = image.instances
    assert image.operators == (("bzip2", {}),) and instance.shape == (120, 40)
    assert instance.stored is not None and instance.stored.sum() < 4 * 30 * 40
    described = json.loads(describe(FILES[f"operator-{format_}"]).stdout)
    [write] = [i for i in described["streams"][0]["steps"][0]["do"] if "write" in i]
    assert (write["type"], write["shape"]) == ("u8", [int(instance.stored.sum())])


def test_profiles_name_no_directory_of_a_machine() -> None:
    profiles = [path / "profiling.json" for path in FILES.values()]
    rows = [row for file in profiles if file.exists() for row in json.loads(file.read_text())]
    names = [row["transport_0"]["name"] for row in rows if "name" in row.get("transport_0", {})]
    assert names and not [name for name in names if name.startswith("/")]


def test_times_of_each_rank_are_those_of_the_profile() -> None:
    for path in BLOCKS:
        measured = bp_file.read(path).profile
        assert measured is not None and measured.ranks.tolist() == [*range(RANKS)]
        rows = json.loads((path / "profiling.json").read_text())
        for name in ("ES", "BS") if "bp5" in path.stem else ("buffering", "aggregation"):
            stated = [row[f"{name}_mus"] * 1e-6 for row in rows]
            assert measured.seconds[name].tolist() == pytest.approx(stated)
        assert json.loads(describe(path).stdout)["streams"][0]["steps"][0]["lasting"] > 0


@pytest.mark.parametrize("missing", ["none", "data.*"])
@pytest.mark.parametrize("path", BLOCKS, ids=lambda path: path.stem)
def test_a_profile_is_of_the_last_session(path: Path, missing: str, tmp_path: Path) -> None:
    """Of a file that was appended to, the profile has the steps of the last session only."""
    copy = tmp_path / path.name
    shutil.copytree(path, copy, ignore=shutil.ignore_patterns(missing))
    rows = json.loads((copy / "profiling.json").read_text())
    for row in rows:
        if "bp5" in path.stem:
            row["ES"]["nCalls"] = 2
        else:  # data.0 and data.1 have 20,507 bytes; the second step begins at 3,838 and 4,340
            row["bytes"] = (20507 - 3838 - 4340) * (row["rank"] == 0)
    (copy / "profiling.json").write_text(json.dumps(rows))
    whole, last = (json.loads(describe(p).stdout) for p in (path, copy))
    lasting = [d["streams"][0]["steps"][0]["lasting"] for d in (whole, last)]
    assert lasting[1] == pytest.approx(lasting[0] * 3 / 2, rel=1e-6)
    said("last-session", "\n".join(last["source"]["notes"]))


@pytest.mark.parametrize("path", BLOCKS, ids=lambda path: path.stem)
def test_the_metadata_are_enough(path: Path, tmp_path: Path) -> None:
    """Without its data, a file is described as with them."""
    copy = tmp_path / path.name
    shutil.copytree(path, copy, ignore=shutil.ignore_patterns("data.*"))
    whole, bare = (json.loads(describe(p).stdout) for p in (path, copy))
    assert whole["streams"] == bare["streams"]
    [note] = [n for n in bare["source"]["notes"] if n not in whole["source"]["notes"]]
    said("data-missing", note)


def test_names_are_kept_only_if_asked() -> None:
    path = FILES["blocks-bp5"]
    assert "slabs" not in describe(path).stdout
    kept = json.loads(describe("--keep-names", path).stdout)
    assert "slabs" in kept["labels"].values() and kept["streams"][0]["name"] == "blocks-bp5"


def test_a_directory_of_other_things_is_not_searched(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    shutil.copytree(FILES["operator-bp5"], tmp_path / "run" / "out.bp")
    said("no-log", describe(tmp_path / "run").stderr, folder=tmp_path / "run")


@pytest.mark.parametrize("name", ["file", "empty"])
def test_a_bp_name_that_is_none(name: str, tmp_path: Path) -> None:
    path = tmp_path / "old.bp"
    if name == "file":
        path.write_bytes(b"BP of ADIOS 1")
    else:
        path.mkdir()
    done = describe(path)
    assert done.exit_code == 2
    said(f"{name}-of-that-name", done.stderr, path=path)


@pytest.mark.parametrize(
    ("text", "hashes"),
    [
        (b"", (0xDEADBEEF, 0xDEADBEEF)),
        (b"Four score and seven years ago", (0x17770551, 0xCE7226E6)),
    ],
)
def test_the_hash_of_formats(text: bytes, hashes: tuple[int, int]) -> None:
    """Values that the author of the hash published (lookup3.c, driver5)."""
    assert ffs.hash_of(text) == hashes


# Files of ADIOS2's own module, of one rank.


def numbers(count: int) -> np.ndarray[Any, Any]:
    return np.arange(float(count))


def written(folder: Path, engine: str, parameters: dict[str, str]) -> Path:
    """A BP file of ADIOS2's module, with several pieces of data in a step."""
    import adios2.bindings as bindings  # type: ignore[import-untyped,unused-ignore]

    adios = bindings.ADIOS()
    io = adios.DeclareIO("written")
    io.SetEngine(engine)
    io.SetParameters(parameters)
    path = folder / f"written-{engine}.bp"
    writer = io.Open(str(path), bindings.Mode.Write)
    data = numbers(3000)
    x, y = (io.DefineVariable(name, data, [6000], [0], [3000], False) for name in "xy")
    for step in range(3):
        writer.BeginStep()
        x.SetSelection([[0], [1000 * step]])
        writer.Put(x, data, bindings.Mode.Sync)
        if engine == "BP5":
            writer.PerformDataWrite()
        y.SetSelection([[3000], [3000]])
        writer.Put(y, data, bindings.Mode.Sync)
        x.SetSelection([[4000], [7]])
        writer.Put(x, data, bindings.Mode.Sync)
        writer.EndStep()
    writer.Close()
    return path


@pytest.mark.parametrize(
    ("engine", "parameters"),
    [
        ("BP4", {}),
        ("BP5", {}),
        ("BP5", {"FlattenSteps": "on"}),
        ("BP5", {"StatsLevel": "0", "DirectIO": "on"}),
    ],
)
def test_files_of_adios2s_module(engine: str, parameters: dict[str, str], tmp_path: Path) -> None:
    need("adios2")
    output = bp_file.read(written(tmp_path, engine, parameters))
    assert (output.steps, output.writers, output.notes) == (3, 1, ())
    read = by_name(output)
    for step in range(3):
        assert blocks(read["x"][step]) == [(0, [0], [1000 * step]), (0, [4000], [7])]
        assert blocks(read["y"][step]) == [(0, [3000], [3000])]
    assert description.workload_of(output).ranks == 1


def listed(path: Path, engine: str) -> Iterator[tuple[str, int, list[Block]]]:
    """The blocks of arrays as ADIOS2's module lists them: variable, step, blocks. It cannot list
    arrays of bytes, whose largest value it takes for text."""
    import adios2.bindings as bindings

    adios = bindings.ADIOS()
    io = adios.DeclareIO("listed")
    io.SetEngine(engine)
    reader = io.Open(str(path), bindings.Mode.Read)
    step = 0
    while reader.BeginStep(bindings.StepMode.Read, 0.0) == bindings.StepStatus.OK:
        for name, variable in io.AvailableVariables().items():
            if variable["Type"] == "uint8_t":
                continue
            rows = []
            for row in reader.BlocksInfo(name, 0):
                count = [int(n) for n in row["Count"].split(",")]
                start = [int(n) for n in row["Start"].split(",")]
                start += [0] * (len(count) - len(start))
                rows.append((int(row["WriterID"]), start, count))
            yield name, step, rows
        reader.EndStep()
        step += 1
    reader.Close()


def test_blocks_and_writers_are_those_of_adios2s_module() -> None:
    need("adios2")
    path = FILES["blocks-bp5"]
    read = by_name(bp_file.read(path))
    compared = 0
    for name, step, rows in listed(path, "BP5"):
        if read[name][step].blocks.counts.shape[1]:
            assert blocks(read[name][step]) == rows, (name, step)
            compared += len(rows)
    assert compared == 108


@pytest.mark.parametrize("engine", ["bp4", "bp5"])
def test_a_series_of_openpmd(engine: str, tmp_path: Path) -> None:
    need("openPMD-api")
    import openpmd_api  # type: ignore[import-untyped,unused-ignore]

    path = tmp_path / "series.bp"
    config = json.dumps({"adios2": {"engine": {"type": engine}}})
    series = openpmd_api.Series(str(path), openpmd_api.Access.create, config)
    for k in range(3):
        iteration = series.write_iterations()[k]
        for axis in "xyz":
            mesh = iteration.meshes["E"][axis]
            mesh.reset_dataset(openpmd_api.Dataset(np.dtype("float64"), [8, 6]))
            mesh[:, :] = np.full((8, 6), float(k))
        iteration.close()
    series.close()
    del series
    output = bp_file.read(path)
    assert (output.engine, output.steps) == (engine.upper(), 3)
    shapes = {v.name: {i.shape for i in v.instances} for v in output.variables}
    fields = {name: shape for name, shape in shapes.items() if "/E/" in name}
    assert len(fields) >= 3 and set().union(*fields.values()) == {(8, 6)}
    assert any(a.name == "/openPMD" for a in output.attributes)
    assert json.loads(describe(path).stdout)["streams"][0]["method"] == "adios2"


def test_dimensions_of_fortran_are_turned(tmp_path: Path) -> None:
    """A program with columns first states the fastest dimension first."""
    copy = tmp_path / "fortran.bp"
    shutil.copytree(FILES["blocks-bp5"], copy)
    index = bytearray((copy / "md.idx").read_bytes())
    assert index[40:41] == b"n"
    index[40:41] = b"y"
    (copy / "md.idx").write_bytes(index)
    plain, turned = (by_name(bp_file.read(path)) for path in (FILES["blocks-bp5"], copy))
    for name in ARRAYS:
        for step, instance in plain[name].items():
            rows = [(w, start[::-1], count[::-1]) for w, start, count in blocks(instance)]
            assert blocks(turned[name][step]) == rows
            shape = turned[name][step].shape
            assert instance.shape == (None if shape is None else shape[::-1])
