"""Configurations of ADIOS2 and openPMD, and models of outputs: what is read and refused."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tests.readers.logs import BP
from tests.support.needs import need
from tests.support.said import said
from understudy.adios2 import bp_file, configuration, engines, model_file
from understudy.cli import main as understudy
from understudy.errors import UnderstudyError

FILE = next(path for path in BP if path.stem == "blocks-bp5")
XML = """<?xml version="1.0"?>
<adios-config>
  <operator name="small" type="zfp"><parameter key="accuracy" value="0.1"/></operator>
  <io name="checkpoint">
    <engine type=BP4>
      <parameter key="SubStreams" value="2"/>
      <parameter key="QueueLimit" value="1"/>
    </engine>
    <transport type="File"><parameter key="Library" value="POSIX"/></transport>
    <variable name="slabs">
      <operation operator="small"><parameter key="rate" value="8"/></operation>
      <operation type="bzip2"/>
    </variable>
  </io>
  <io name="stream"><engine type="SST"/></io>
  <io name="default"/>
</adios-config>
"""
YAML = """---
- IO: "out"
  Engine:
    Type: BP5
    NumAggregators: 4
    AsyncWrite: On
  Variables:
  - Variable: U
    Operations:
    - {Type: zfp, accuracy: 0.001}
  Transports:
  - {Type: file, Library: fstream}
"""
OPENPMD = {
    "backend": "adios2",
    "adios2": {
        "engine": {"type": "bp5", "parameters": {"NumAggregators": 2, "StatsLevel": "0"}},
        "dataset": {"operators": [{"type": "blosc", "parameters": {"clevel": 5}}]},
    },
}
TOML = """[adios2.engine]
type = "bp4"
[adios2.engine.parameters]
InitialBufferSize = "16Mb"
"""
MODEL = """ranks: 6
steps: 3
every: 10
variables:
- {name: U, type: double, shape: [9, 8], split: [3, 2]}
- {name: V, type: float, shape: [8]}
- {name: W, type: int32_t, shape: [5], of: each rank}
- {name: time, type: double}
"""


def selecting(*datasets: Mapping[str, object]) -> str:
    """A configuration of openPMD-api for datasets that patterns select."""
    return json.dumps({"adios2": {"engine": {"type": "bp4"}, "dataset": datasets}})


def describe(*arguments: object) -> Result:
    return CliRunner().invoke(understudy, ["describe", *map(str, arguments)])


def saved(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def notes(done: Result) -> list[str]:
    assert done.exit_code == 0, done.stderr
    rows: list[str] = json.loads(done.stdout)["source"]["notes"]
    return rows


def test_xml(tmp_path: Path) -> None:
    read = configuration.read(saved(tmp_path, "adios2.xml", XML))
    assert [*read.ios] == ["checkpoint", "stream", "default"]
    io = read.io("checkpoint")
    assert (io.engine, io.parameters) == ("BP4", {"SubStreams": "2", "QueueLimit": "1"})
    assert io.transports == (("File", {"Library": "POSIX"}),)
    assert io.operators == {"slabs": (("zfp", {"accuracy": "0.1", "rate": "8"}), ("bzip2", {}))}
    applied = configuration.applied(bp_file.read(FILE), read, "checkpoint")
    assert (applied.engine, applied.parameters) == ("BP4", {"SubStreams": "2"})
    operators = {v.name: v.configured for v in applied.variables if v.configured}
    assert operators == io.operators
    assert configuration.applied(bp_file.read(FILE), read, "default").engine == "BP5"


def test_yaml(tmp_path: Path) -> None:
    io = configuration.read(saved(tmp_path, "adios2.yaml", YAML)).io()
    assert (io.name, io.engine) == ("out", "BP5")
    assert io.parameters == {"NumAggregators": "4", "AsyncWrite": "On"}
    assert io.operators == {"U": (("zfp", {"accuracy": "0.001"}),)}
    assert io.transports == (("file", {"Library": "fstream"}),)


def test_json_and_toml_of_openpmd(tmp_path: Path) -> None:
    io = configuration.read(saved(tmp_path, "pmd.json", json.dumps(OPENPMD))).io()
    assert (io.engine, io.parameters) == ("bp5", {"NumAggregators": "2", "StatsLevel": "0"})
    assert io.operators == {"*": (("blosc", {"clevel": "5"}),)}
    plugin = {"ext": "bp5", "backend_config": OPENPMD}
    assert configuration.read(saved(tmp_path, "sink.json", json.dumps(plugin))).io() == io
    io = configuration.read(saved(tmp_path, "pmd.toml", TOML)).io()
    assert (io.engine, io.parameters) == ("bp4", {"InitialBufferSize": "16Mb"})


def operators_of(kind: str) -> dict[str, object]:
    return {"operators": [{"type": kind}]}


SELECTIONS = [
    [{"select": "meshes/E/.*", "cfg": operators_of("blosc")}],
    [{"select": "/data/5/meshes/E/.*", "cfg": operators_of("blosc")}],
    [{"select": "meshes/E", "cfg": operators_of("blosc")}],
    [{"select": "meshes/.*/[x-y]", "cfg": operators_of("zfp")}, {"cfg": operators_of("blosc")}],
    [
        {"select": ["meshes/E/x", "meshes/./y"], "cfg": operators_of("blosc")},
        {"select": ".*shes.*x.*", "cfg": operators_of("zfp")},
    ],
    [{"select": "meshes/E/x", "cfg": {}}, {"cfg": operators_of("zfp")}],
    [{"cfg": operators_of("zfp")}, {"select": "meshes/E/x", "cfg": {"operators": []}}],
]


@pytest.mark.parametrize("datasets", SELECTIONS)
def test_patterns_select_what_openpmd_selects(
    datasets: list[Mapping[str, object]], tmp_path: Path
) -> None:
    need("openPMD-api")
    import openpmd_api  # type: ignore[import-untyped,unused-ignore]

    text = selecting(*datasets)
    written = tmp_path / "series.bp"
    series = openpmd_api.Series(str(written), openpmd_api.Access.create, text)
    zeros = np.zeros(4096)
    for mesh in ("E", "B"):
        for axis in ("x", "y"):
            record = series.iterations[5].meshes[mesh][axis]
            record.reset_dataset(openpmd_api.Dataset(zeros.dtype, zeros.shape))
            record.store_chunk(zeros)
    series.close()
    read = configuration.read(saved(tmp_path, "pmd.json", text))
    variables = configuration.applied(bp_file.read(written), read).variables
    theirs = {v.name: [kind for kind, _ in v.operators] for v in variables}
    assert len(theirs) == 4
    assert {v.name: [kind for kind, _ in v.configured or ()] for v in variables} == theirs


def test_a_configuration_may_say_that_there_are_no_operators(tmp_path: Path) -> None:
    file = bp_file.read(next(path for path in BP if path.stem == "operator-bp5"))
    [before] = [v for v in file.variables if v.operators]
    for datasets, after in (
        ({"select": before.name, "cfg": {"operators": []}}, ()),
        ({"select": "other", "cfg": {"operators": []}}, before.operators),
    ):
        read = configuration.read(saved(tmp_path, "pmd.json", selecting(datasets)))
        [variable] = [
            v for v in configuration.applied(file, read).variables if v.name == before.name
        ]
        assert variable.effective_operators == after


def test_a_hostile_pattern_takes_no_time(tmp_path: Path) -> None:
    """To try every place for each segment would take years."""
    text = selecting({"select": ".*a" * 500, "cfg": operators_of("zfp")})
    io = configuration.read(saved(tmp_path, "pmd.json", text)).io()
    assert io.operators_of("a" * 499) is None
    assert io.operators_of("a" * 501) == (("zfp", {}),)


def test_what_a_workload_says_of_a_configuration(tmp_path: Path) -> None:
    path = saved(tmp_path, "adios2.xml", XML)
    plain = describe(FILE)
    with_config = describe(FILE, "--config", path, "--io", "checkpoint")
    streams = (json.loads(done.stdout)["streams"] for done in (plain, with_config))
    assert len({json.dumps(rows) for rows in streams}) == 1
    engine, *rows = notes(with_config)
    said("engine-parameters", engine)
    for name, begin in {
        "from-io": "Engine and",
        "ignored": "BP4 ignores",
        "operators": "Operators",
    }.items():
        [note] = [row for row in rows if row.startswith(begin)]
        said(name, note)


def test_the_engine_hdf5_is_the_method_hdf5(tmp_path: Path) -> None:
    path = saved(tmp_path, "h5.xml", XML.replace("=BP4", '="HDF5"'))
    done = describe(FILE, "--config", path, "--io", "checkpoint")
    assert json.loads(done.stdout)["streams"][0]["method"] == "hdf5"
    [note] = [row for row in notes(done) if "ignores" in row]
    said("hdf5-ignores", note)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("engine-unknown", "=BP4", '="BP7"'),
        ("engine-sst", "=BP4", '="sst"'),
        ("engine-bp3", "=BP4", '="BP3"'),
        ("engine-plugin", "=BP4", '="plugin"'),
        ("engine-null", "=BP4", '="NullCore"'),
        ("number", 'value="2"', 'value="two"'),
        ("operator-unknown", 'type="bzip2"', 'type="brotli"'),
        ("operator-undefined", 'operator="small"', 'operator="large"'),
        ("operator-both", 'operator="small"', 'operator="small" type="zfp"'),
        ("engine-twice", "<transport", '<engine type="BP5"/><transport'),
        ("no-key", 'key="SubStreams"', ""),
        ("no-value", 'value="2"', ""),
        ("given-twice", "QueueLimit", "SubStreams"),
        ("io-twice", 'name="stream"', 'name="checkpoint"'),
        ("io-without-name", 'io name="checkpoint"', "io"),
        ("not-xml", "</adios-config>", ""),
        ("adios-1", "<operator name", '<adios-group name="g"/><operator name'),
        ("document-type", "<adios-config>", '<!DOCTYPE a [<!ENTITY b "c">]><adios-config>'),
        ("control", "SubStreams", "Sub&#10;Streams"),
    ],
)
def test_what_is_said_of_xml(name: str, old: str, new: str, tmp_path: Path) -> None:
    assert old in XML
    path = saved(tmp_path, "adios2.xml", XML.replace(old, new, 1))
    done = describe(FILE, "--config", path, "--io", "checkpoint")
    assert done.exit_code == 2 and done.stderr.count("\n") == 1
    said(name, done.stderr, path=path)


@pytest.mark.parametrize(
    ("name", "file", "text"),
    [
        ("yaml-alias", "a.yaml", "- &a {IO: o}\n- *a\n"),
        ("yaml-merge", "a.yaml", "- &a {IO: o}\n- {<<: *a}\n"),
        ("yaml-deep", "a.yaml", "[" * 100_000),
        ("yaml-twice", "a.yaml", "- {IO: o, Engine: {Type: BP5, Type: BP4}}\n"),
        ("yaml-map", "a.yaml", "IO: o\n"),
        ("yaml-engine-list", "a.yaml", "- {IO: o, Engine: [BP5]}\n"),
        ("yaml-nested", "a.yaml", "- {IO: o, Engine: {Type: BP5, NumAggregators: {a: 1}}}\n"),
        ("yaml-operation", "a.yaml", "- {IO: o, Variables: [{Variable: v, Operations: [zfp]}]}\n"),
        ("yaml-empty", "a.yaml", ""),
        ("json-deep", "a.json", "[" * 100_000),
        ("json-none", "a.json", "{}"),
        ("json-hdf5", "a.json", '{"backend": "hdf5", "adios2": {}}'),
        ("json-type", "a.json", '{"adios2": {"engine": {"type": 5, "parameters": []}}}'),
        ("json-other-file", "a.json", '{"ext": "bp4", "backend_config": "@./adios.json"}'),
        ("json-select", "a.json", selecting({"select": "E/(x|y)", "cfg": {}})),
        ("json-two-defaults", "a.json", selecting({"cfg": {}}, {"cfg": {}})),
        ("toml", "a.toml", "adios2 = "),
        ("suffix", "a.txt", ""),
    ],
)
def test_what_is_said_of_others(name: str, file: str, text: str, tmp_path: Path) -> None:
    path = saved(tmp_path, file, text)
    done = describe(FILE, "--config", path)
    assert done.exit_code == 2 and done.stderr.count("\n") == 1, done.stderr
    said(name, done.stderr, path=path)


def test_a_configuration_alone_has_no_variables(tmp_path: Path) -> None:
    for name, text in (("adios2.xml", XML), ("adios2.yaml", YAML)):
        path = saved(tmp_path, name, text)
        done = describe(path)
        assert done.exit_code == 2
        said(f"alone-{name}", done.stderr, path=path)


def test_an_io_is_chosen(tmp_path: Path) -> None:
    path = saved(tmp_path, "adios2.xml", XML)
    said("choose-io", describe(FILE, "--config", path).stderr, path=path)
    said("no-io", describe(FILE, "--config", path, "--io", "other").stderr, path=path)
    said("io-alone", describe(FILE, "--io", "other").stderr)


@pytest.mark.parametrize(
    ("engine", "key", "value", "right"),
    [
        ("BP5", "NumAggregators", "0", True),
        ("BP5", "NumAggregators", "-1", False),
        ("BP5", "AggregationType", "TwoLevelShm", True),
        ("BP5", "AggregationType", "Everything", False),
        ("BP5", "MaxShmSize", "4gb", True),
        ("BP5", "MaxShmSize", "4 TB", False),
        ("BP5", "AsyncWrite", "Guided", True),
        ("BP5", "StatsLevel", "1e3", False),
        ("BP5", "DirectIO", "on", True),
        ("BP5", "DirectIO", "1", False),
        ("BP5", "GrowthFactor", "inf", False),
        ("BP4", "BufferGrowthFactor", "1.5", True),
        ("BP4", "ProfileUnits", "Parsecs", False),
    ],
)
def test_values_of_parameters(engine: str, key: str, value: str, right: bool) -> None:
    parameter = engines.PLAYED[engine][key.lower()]
    if right:
        parameter.check(value)
    else:
        with pytest.raises(ValueError, match="expected"):
            parameter.check(value)


@pytest.mark.parametrize(
    ("text", "size"), [("16Kb", 16 << 10), ("4MB", 4 << 20), ("2gb", 2 << 30), ("7b", 7), ("9", 9)]
)
def test_sizes_have_units_of_1024(text: str, size: int) -> None:
    assert engines.size_bytes(text) == size


def test_a_model_is_described(tmp_path: Path) -> None:
    path = saved(tmp_path, "model.yaml", MODEL)
    output = model_file.read(path)
    assert (output.engine, output.writers, output.steps) == ("BP5", 6, 3)
    by_name = {v.name: v.instances[0].blocks for v in output.variables}
    assert by_name["U"].starts[3].tolist() == [3, 4] and by_name["U"].counts.prod(1).sum() == 72
    assert by_name["V"].counts.ravel().tolist() == [2, 2, 1, 1, 1, 1]
    assert by_name["W"].counts.ravel().tolist() == [5] * 6
    described = json.loads(describe(path, "--keep-names").stdout)
    [step] = described["streams"][0]["steps"]
    assert (step["repeat"], step["every"]) == (3, 10.0)
    writes = {
        i["write"]: (i["type"], i["shape"], i.get("split")) for i in step["do"] if "write" in i
    }
    assert writes == {
        "U": ("f64", [9, 8], {"rule": "grid", "grid": [3, 2]}),
        "V": ("f32", [8], None),
        "W": ("i32", [6, 5], None),
        "time": ("f64", [1], None),
    }
    config = saved(tmp_path, "adios2.xml", XML)
    rows = notes(describe(path, "--config", config, "--io", "checkpoint"))
    assert any(row.startswith("Engine BP4") for row in rows)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("no-ranks", "ranks: 6\n", ""),
        ("ranks", "ranks: 6", "ranks: 0"),
        ("split", "split: [3, 2]", "split: [3, 3]"),
        ("split-length", "split: [3, 2]", "split: [6]"),
        ("type", "type: double, shape", "type: real, shape"),
        ("shape", "[9, 8]", "[9, -8]"),
        ("shape-huge", "[9, 8]", "[99999999999, 99999999999]"),
        ("of", "each rank", "some ranks"),
        ("key", "steps: 3", "stages: 3"),
        ("name-twice", "name: V", "name: U"),
        ("no-variables", "name: U", "nome: U"),
        ("seconds", "every: 10", "every: soon"),
        ("key-twice", "steps: 3", "steps: 3\nranks: 3"),
        ("deep", "steps: 3", "steps: " + "[" * 100_000),
    ],
)
def test_what_is_said_of_a_model(name: str, old: str, new: str, tmp_path: Path) -> None:
    assert old in MODEL
    path = saved(tmp_path, "model.yaml", MODEL.replace(old, new, 1))
    done = describe(path)
    assert done.exit_code == 2 and done.stderr.count("\n") == 1, done.stderr
    said(f"model-{name}", done.stderr, path=path)


def test_engines_are_played_or_refused_with_a_reason() -> None:
    for name in (*engines.ALIASES, *engines.PLAYED):
        assert engines.engine_of(name) in engines.PLAYED
    for name in engines.REFUSED:
        with pytest.raises(UnderstudyError, match="expected one of BP5, BP4, HDF5"):
            engines.engine_of(name)
