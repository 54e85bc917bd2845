"""Descriptors: what is refused in one message, and what is set right."""

import json
import sys
import time
from pathlib import Path

import pytest

from studies.skel.tests.support import DESCRIPTOR, LOCAL, TRACES, descriptor, succeed, understudy
from understudy.errors import UnderstudyError
from understudy_skel import blocks, expressions, generate, identifiers, parameters, project
from understudy_skel.descriptor import read

GROUP = '<adios-group name="g">'
METHOD = '<method group="g" method="POSIX"/>'
ARRAY = '<var name="a" type="double" dimensions="nx"/>'


def with_transform(kind: str, dimensions: str = "nx") -> str:
    return f'<var name="a" type="double" dimensions="{dimensions}" transform="{kind}"/>'


REFUSED = [
    ("</adios-config>", "", "line 15: <adios-config>: not XML: no element found"),
    ('type="double"/>', 'type="double">', "not XML: mismatched tag"),
    (
        "<adios-config ",
        "<!DOCTYPE x [<!ENTITY e SYSTEM 'f'>]>\n<adios-config ",
        "line 2: <!DOCTYPE>: a document type is not read; expected a file without one",
    ),
    ("adios-config host", "skel-config host", "mismatched tag"),
    (
        'host-language="C"',
        'host-language="Ada"',
        "line 2: <adios-config>: host-language 'Ada': expected C or Fortran",
    ),
    (
        GROUP,
        "<adios-group>",
        'line 3: <adios-group>: the attribute name="..." is missing or empty',
    ),
    (
        METHOD,
        f'<adios-group name="g"><var name="x" type="byte"/></adios-group>{METHOD}',
        'line 13: <adios-group name="g">: a group of this name stands in line 3 already',
    ),
    (LOCAL, ARRAY, 'line 11: <var name="a">: a variable of this name stands in line 9 already'),
    (
        LOCAL,
        '<var name="l" type="floot"/>',
        "line 11: <var name=\"l\">: unknown type 'floot'; expected one of byte, short, integer",
    ),
    (
        LOCAL,
        '<var name="l" type="string" dimensions="nx"/>',
        'line 11: <var name="l">: type string: ADIOS has no arrays of texts; expected a scalar',
    ),
    (
        LOCAL,
        '<var name="l" type="long double"/>',
        "type long double: its bytes differ from machine to machine; expected one "
        "with a fixed size",
    ),
    (
        LOCAL,
        '<var name="l" type="real" dimensions="nope"/>',
        "line 11: <var name=\"l\">: dimension 'nope' is no number, nor an integer "
        "scalar that stands "
        "before it in the group",
    ),
    (
        LOCAL,
        '<var name="l" type="real" dimensions="t"/>',
        "dimension 't': expected an integer scalar",
    ),
    (
        LOCAL,
        '<var name="l" type="real" dimensions="2,,nx"/>',
        "a dimension is missing between two commas",
    ),
    (
        LOCAL,
        '<var name="l" type="real" dimensions="0,nx"/>',
        "line 11: <var name=\"l\">: dimension '0' is 0 on rank 0; expected at least 1",
    ),
    (
        ARRAY,
        '<var name="a" type="double" dimensions="2,nx"/>',
        'line 9: <var name="a">: 2 dimensions (2, nx) in global bounds of 1 dimensions (gx) and 1 '
        "offsets",
    ),
    ('offsets="ox"', "", 'line 8: <global-bounds>: the attribute offsets="..." is missing'),
    (LOCAL, "<vars/>", "line 11: <vars>: unknown element; expected var, global-bounds"),
    (
        METHOD,
        '<method group="g" method="BOGUS"/>',
        "line 13: <method group=\"g\">: method 'BOGUS' writes no files in ADIOS "
        "1.13.1; expected one "
        "of POSIX, MPI",
    ),
    (
        METHOD,
        '<method group="g" method="PHDF5"/>',
        "method PHDF5: in ADIOS 1.13.1 it drops arrays",
    ),
    (METHOD, '<method group="h" method="POSIX"/>', "there is no group 'h'; expected one of g"),
    (METHOD, '<method group="g"/>', 'the attribute method="..." is missing or empty'),
    (LOCAL, '<gwrite src="if (x) then"/>', "the condition of line 11, 'if (x) then', is never"),
    (LOCAL, '<gwrite src="endif"/>', "line 11: <gwrite>: 'endif' ends a condition that was not"),
    (METHOD, '<buffer max-size-MB="much"/>', "line 13: <buffer>: max-size-MB 'much': expected a"),
    (
        ARRAY,
        with_transform("zip"),
        "line 9: <var name=\"a\">: transform 'zip': expected one of none, identity, zlib",
    ),
    (
        ARRAY,
        with_transform("lz4:lvl=2"),
        "transform 'lz4:lvl=2': adios_group_size of ADIOS 1.13.1 fails for it where "
        "a scalar holds a "
        "dimension (nx); expected numbers",
    ),
    (
        METHOD,
        f'{METHOD}<time-aggregation group="g" buffer-size="9"/>',
        'line 13: <time-aggregation group="g">: buffer-size 9: steps stay in the buffer of ADIOS',
    ),
    (
        METHOD,
        f'{METHOD}<time-aggregation group="h" buffer-size="0"/>',
        "line 13: <time-aggregation group=\"h\">: there is no group 'h'; expected one of g",
    ),
    (
        METHOD,
        f'{METHOD}<time-aggregation group="g" buffer-size="much"/>',
        "buffer-size 'much': expected a whole number",
    ),
    (
        METHOD,
        f'{METHOD}<analysis adios-group="g" var="a" count="3"/>',
        "line 13: <analysis>: ADIOS 1.13.1 crashes on it",
    ),
    (METHOD, f'{METHOD}<speed group="g"/>', 'line 13: <speed group="g">: unknown element'),
    (METHOD, f"{METHOD}{ARRAY}", 'line 13: <var name="a">: unknown element; expected adios-group'),
    (
        METHOD,
        f'{METHOD}<method group="g" method="MPI"/>',
        "line 13: <method group=\"g\">: the group 'g' has a method in line 13 already",
    ),
    (
        GROUP,
        '<adios-group name="g" host-language="Ada">',
        "line 3: <adios-group name=\"g\">: host-language 'Ada': expected C or Fortran",
    ),
    (GROUP, '<adios-group name="g" stats="some">', "stats 'some': expected on, off, default"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_a_bad_descriptor_is_one_message_and_makes_nothing(
    old: str, new: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = descriptor(tmp_path, old, new)
    monkeypatch.chdir(tmp_path)
    done = understudy("skel", "params", path)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"understudy: {path}: line ")
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["app.xml"]
    described = understudy("describe", path, "-n", 2)
    assert (described.exit_code, described.stderr) == (2, done.stderr)


@pytest.mark.parametrize("method", ["FLEXPATH", "DATASPACES", "PHDF5"])
def test_another_method_takes_the_place_of_one_that_writes_no_files(
    method: str, tmp_path: Path
) -> None:
    path = descriptor(tmp_path, METHOD, f'<method group="g" method="{method}">verbose=3</method>')
    refused = understudy("skel", "make", path, "-d", tmp_path / "no", "--no-make")
    assert refused.exit_code == 2 and "--method" in refused.stderr + "--method" * (
        method[0] == "P"
    )
    folder = tmp_path / "made"
    succeed("skel", "make", path, "-d", folder, "--no-make", "--method", "mpi")
    parsed_descriptor, values = project.load(folder / "app_skel.xml", None)
    assert (
        parsed_descriptor.method("g") is not None and parsed_descriptor.methods[0].parameters == ""
    )
    assert (parsed_descriptor.methods[0].name, values.batches[0].tests[0].method) == ("MPI", "MPI")
    described = succeed("describe", path, "-a", "POSIX", "-n", 2)
    assert json.loads(described.stdout)["streams"][0]["method"] == "posix"
    wrong = understudy("skel", "make", path, "-d", folder, "--no-make", "--method", "BOGUS", "-f")
    assert wrong.exit_code == 2 and "--method: method 'BOGUS' writes no files" in wrong.stderr


def test_a_file_that_an_application_wrote_is_for_skel_replay(tmp_path: Path) -> None:
    (tmp_path / "restart.bp").write_bytes(bytes(64))
    done = understudy("describe", tmp_path / "restart.bp")
    assert done.exit_code == 2 and "understudy skel replay" in done.stderr


def test_values_without_quotes_are_read_as_by_adios(tmp_path: Path) -> None:
    """In tags only: not in comments, in texts, or within quotes."""
    new = """<!-- <a b=c/> --><attribute name=u value="p=q r=s" type='string'/>
    <var name=l type=real dimensions=2,nx/>"""
    path = descriptor(tmp_path, LOCAL, new)
    [group] = read(path).groups
    assert group.variables[-1].name == "l" and group.variables[-1].dimensions == ("2", "nx")
    assert [(a.name, a.value) for a in group.attributes] == [("u", "p=q r=s")]


def test_a_broken_file_is_searched_for_missing_quotes_in_time(tmp_path: Path) -> None:
    path = tmp_path / "app.xml"
    for piece in (b'<a "', b"<!--", b"<a b=c ", b"<![CDATA[", b"=" * 20):
        path.write_bytes(b"<adios-config>" + piece * 100_000)
        started = time.process_time()
        with pytest.raises(UnderstudyError, match="not XML"):
            read(path)
        assert time.process_time() - started < 5


def test_the_path_of_the_root_is_part_of_a_name(tmp_path: Path) -> None:
    scalar = '<var name="n5" path="/" type="integer"/>'
    path = descriptor(tmp_path, LOCAL, f'{scalar}<var name="l" type="real" dimensions="/n5"/>')
    [group] = read(path).groups
    assert group.variables[-2].name == "/n5" and group.variables[-2].leaf == "n5"
    assert group.variables[-1].dimensions == ("/n5",)
    succeed("skel", "xml", path, "-o", tmp_path / "app_skel.xml")
    assert read(tmp_path / "app_skel.xml").groups[0].variables[-1].dimensions == ("/n5",)


BUFFER = '<buffer max-size-MB="1"/>'


@pytest.mark.parametrize(("nx", "fits"), [(130_000, True), (131_072, False), (200_000, False)])
def test_a_variable_larger_than_the_buffer_is_refused(nx: int, fits: bool, tmp_path: Path) -> None:
    """POSIX writes the buffer when it is full, but no variable in pieces."""
    path = descriptor(tmp_path, LOCAL, "")
    path.write_text(path.read_text().replace("</adios-config>", f"{BUFFER}</adios-config>"))
    done = understudy("skel", "params", path, "--set", f"nx={nx}", "-o", tmp_path / "p.xml")
    assert (done.exit_code == 0) is fits, done.stderr
    if not fits:
        assert f"one writes {8 * nx} bytes of the variable 'a'" in done.stderr
        assert (
            "at least max-size-MB" in done.stderr and f"--set NAME=VALUE (nx={nx})" in done.stderr
        )


def test_default_sizes_of_many_dimensions_are_small(tmp_path: Path) -> None:
    scalars = "".join(f'<var name="n{i}" type="integer"/>' for i in range(6))
    names = ",".join(f"n{i}" for i in range(6))
    path = descriptor(
        tmp_path, LOCAL, f'{scalars}<var name="l" type="real" dimensions="{names}"/>'
    )
    parsed_descriptor = read(path)
    values = parameters.default(parsed_descriptor, "app").groups["g"]
    group_blocks = blocks.of_group(parsed_descriptor.groups[0], values, 4)
    assert (
        group_blocks.blocks[-1].variable.name == "l"
        and group_blocks.blocks[-1].bytes.max() < 1 << 20
    )


def test_the_descriptor_that_is_spoiled_is_good(tmp_path: Path) -> None:
    path = descriptor(tmp_path)
    succeed("skel", "params", path, "-o", tmp_path / "p.xml")
    assert len(read(path).groups[0].variables) == 6


def test_a_file_that_cannot_be_read_is_one_message(tmp_path: Path) -> None:
    done = understudy("skel", "xml", tmp_path / "none.xml")
    assert (
        done.stderr
        == f"understudy: {tmp_path}/none.xml: cannot be read: No such file or directory\n"
    )


def test_configs_of_adios2_are_called_so(tmp_path: Path) -> None:
    config = tmp_path / "a2.xml"
    config.write_text(
        '<?xml version="1.0"?>\n<adios-config>\n <io name="o">\n </io>\n</adios-config>\n'
    )
    done = understudy("skel", "xml", config)
    assert (done.exit_code, done.stderr) == (
        2,
        f'understudy: {config}: line 3: <io name="o">: this is a config of ADIOS2, which has '
        "engines but no variables; expected a descriptor of ADIOS 1.x, with <adios-group>, or a "
        "BP file with this config: understudy describe FILE.bp --config CONFIG\n",
    )
    assert understudy("describe", config, "-n", 2).stderr == done.stderr
    config = tmp_path / "a2.yaml"
    config.write_text("- IO: o\n")
    done = understudy("skel", "params", config)
    assert (done.exit_code, done.stderr) == (
        2,
        f"understudy: {config}: a YAML file, as ADIOS2 takes it; expected a descriptor of "
        "ADIOS 1.x (adios-config XML)\n",
    )


@pytest.mark.parametrize("command", ["source", "submit"])
def test_the_directory_is_created(command: str, tmp_path: Path) -> None:
    path = descriptor(tmp_path)
    succeed("skel", "params", path, "-o", tmp_path / "app_params.xml")
    succeed("skel", command, path, "-d", tmp_path / "new" / "one")
    assert list((tmp_path / "new" / "one").iterdir())
    done = understudy("skel", command, path, "-d", path / "below")
    assert done.exit_code == 2 and done.stderr.count("\n") == 1
    done = understudy("skel", "xml", path, "-o", tmp_path / "none" / "x.xml")
    assert done.exit_code == 2 and "there is no folder" in done.stderr


@pytest.mark.parametrize("transform", ["", "zlib"])
@pytest.mark.parametrize("method", ["POSIX", "MPI"])
def test_a_buffer_that_is_too_small_is_predicted(
    method: str, transform: str, tmp_path: Path
) -> None:
    """A process writes 20 + 16 * nx bytes; only POSIX writes them in pieces. What is transformed
    needs its room in the buffer first."""
    buffer = f'<method group="g" method="{method}"/><buffer max-size-MB="1"/>'
    path = descriptor(tmp_path, METHOD, buffer)
    if transform:
        text = path.read_text()
        assert 'type="double"' in text
        path.write_text(text.replace('type="double"', f'type="double" transform="{transform}"', 1))
    for size, fits in ((65534, True), (65535, method == "POSIX")):
        values = tmp_path / "app_params.xml"
        succeed("skel", "params", path, "--set", "nx=128", "-o", values, "-f")
        text = values.read_text().replace('value="128"', f'value="{size}"')
        values.write_text(text)
        done = understudy("skel", "source", path, "-d", tmp_path / str(size))
        assert (done.exit_code == 0) == fits, done.stderr
    if method != "POSIX":
        assert done.stderr == (
            f'understudy: {path}: <buffer max-size-MB="1">: on 4 processes, one writes 1048580 '
            "bytes of the group 'g' a step, and the method MPI needs all of them in the buffer; "
            'expected at least max-size-MB="2", or the method POSIX, or smaller sizes by '
            f"understudy skel make --set NAME=VALUE (nx={size})\n"
        )


def test_ten_thousand_variables_are_read_in_linear_time(tmp_path: Path) -> None:
    """Counted, not timed: what is called for twice the variables is at most twice as much."""
    counts = []
    for number in (200, 400):
        text = "".join(
            f'<var name="o{i}" type="integer"/><attribute name="t{i}" value="3" type="integer"/>'
            for i in range(number)
        )
        text += "".join(
            f'<global-bounds dimensions="gx" offsets="o{i}"><var name="v{i}" '
            f'type="byte" dimensions="nx"/></global-bounds>'
            f'<var name="w{i}" type="byte" dimensions="t{i}"/>'
            for i in range(number)
        )
        path = descriptor(tmp_path, LOCAL, text)
        counts.append(_calls(path))
    assert counts[1] < 2.2 * counts[0], counts


def _calls(path: Path) -> int:
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        parsed_descriptor = read(path)
        values = parameters.default(parsed_descriptor, "app")
        blocks.of_group(parsed_descriptor.groups[0], values.groups["g"], 4)
        generate.config(parsed_descriptor)
    finally:
        sys.setprofile(None)
    return calls


PARAMS = [
    (
        'name="ox" type="integer" value="nx * skel_mpi_rank"',
        'name="ox" type="integer" value="512"',
        'app.xml: line 9: <var name="a">: rank 0 of 4 would write outside its global '
        "bounds: offset "
        "ox = 512 and size nx = 128 in a global size gx = 512",
    ),
    (
        'name="nx" type="integer" value="128"',
        'name="nx" type="integer" value="0"',
        "app.xml: line 9: <var name=\"a\">: dimension 'nx' is 0 on rank 0; expected at least 1",
    ),
    (
        'name="gx" type="integer" value="nx * skel_mpi_size"',
        'name="gx" type="integer" value="512 + skel_mpi_rank"',
        "its global size 'gx' is 513 on rank 1, but 512 on rank 0; expected the same on all",
    ),
    ('value="nx * skel_mpi_size"', 'value="nx * many"', "'many' is no integer scalar of the"),
    ('value="nx * skel_mpi_size"', 'value="nx ** 2"', "'nx ** 2': expected numbers, names of"),
    ('value="nx * skel_mpi_size"', 'value="__import__(0)"', "expected numbers, names of scalars"),
    ('value="nx * skel_mpi_size"', 'value="gx + 1"', "'gx + 1': the value depends on itself"),
    ('value="nx * skel_mpi_size"', 'value="nx / (nx - 128)"', "divides by 0"),
    ('value="nx * skel_mpi_size"', 'value="99999999999"', "does not fit the type integer"),
    ('fill-method="rank"', 'fill-method="tar"', "fill-method 'tar': expected one of rank, index"),
    ('method="POSIX"', 'method="NC4"', '<test group="g">: method NC4: in ADIOS 1.13.1'),
    ('steps="1"', 'steps="0"', "steps '0': expected a whole number of at least 1"),
    ('walltime="0:30:00"', 'walltime="soon"', "walltime 'soon': expected hours:minutes:seconds"),
    ('<scalar name="t" type="double" value="1"/>', "", "the scalar 't' has no value"),
    ('<scalar name="t"', '<scalar name="u"', "expected a scalar, an array or a switch of the"),
]


@pytest.mark.parametrize(("old", "new", "message"), PARAMS)
def test_bad_parameters_are_one_message_and_make_nothing(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    path = descriptor(tmp_path)
    values = tmp_path / "app_params.xml"
    succeed("skel", "params", path, "-o", values)
    text = values.read_text()
    assert old in text
    values.write_text(text.replace(old, new, 1))
    folder = tmp_path / "made"
    folder.mkdir()
    for command in ("source", "build", "submit"):
        done = understudy("skel", command, path, "-d", folder)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert message in done.stderr, done.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("ranks", [1, 4, 6, 8, 13, 60])
@pytest.mark.parametrize("name", ["chimera", "gts", "s3d"])
def test_recognised_values_tile_the_global_arrays(name: str, ranks: int) -> None:
    """On any number of ranks, without any parameters: no part sticks out, none overlap."""
    parsed_descriptor = read(TRACES / f"{name}.xml")
    values = parameters.default(parsed_descriptor, name)
    for group in parsed_descriptor.groups:
        group_blocks = blocks.of_group(group, values.groups[group.name], ranks)
        shared = [b for b in group_blocks.blocks if b.whole is not None]
        assert shared
        for block in shared:
            assert block.whole is not None
            whole = 1
            for n in block.whole:
                whole *= n
            assert int(block.local.prod(axis=1).sum()) == whole, block.variable.name
            assert len({tuple(o) for o in block.offsets.tolist()}) == ranks


BYTES = [
    ("chimera", [], 10_605_108, 71, 71),
    ("chimera", ["ij_ray_dim=11", "ik_ray_dim=1"], 9_722_452, 71, 71),
    ("gts", [], 57_288_412, 18, 27),
    ("gts", ["mimax=784000"], 54_984_412, 18, 27),
    ("gts", ["ifelectron_1=yes"], None, 27, 27),
    ("s3d", [], 16_000_068, 16, 16),
]


@pytest.mark.parametrize(("name", "settings", "expected", "written", "arrays"), BYTES)
def test_bytes_of_a_process_are_those_of_the_study(
    name: str, settings: list[str], expected: int | None, written: int, arrays: int
) -> None:
    parsed_descriptor = read(TRACES / f"{name}.xml")
    values = parameters.read(TRACES / f"{name}_params.xml", parsed_descriptor)
    values = parameters.with_values(
        parsed_descriptor, values, dict(s.split("=") for s in settings)
    )
    [group] = parsed_descriptor.groups
    for ranks in (1, 8, 128):
        group_blocks = blocks.of_group(group, values.groups[group.name], ranks)
        assert len(group.arrays) == arrays
        assert sum(1 for b in group_blocks.blocks if b.variable.dimensions) == written
        if expected is not None:
            assert set(group_blocks.bytes.tolist()) == {expected}


def test_the_paper_s_method_parameters_are_there() -> None:
    for name, per, stripe in (("chimera", 4, 10485760), ("gts", 16, 57344000)):
        parsed_descriptor = read(TRACES / f"{name}.xml")
        values = parameters.read(TRACES / f"{name}_params.xml", parsed_descriptor)
        assert [b.cores for b in values.batches] == [128, 256, 512, 1024, 2048, 4096]
        for batch in values.batches:
            words = {t.method: generate.method_parameters(t, batch.cores) for t in batch.tests}
            assert words == {
                "POSIX": "",
                "MPI_LUSTRE": f"stripe_count=160;stripe_size={stripe};block_size={stripe}",
                "MPI_AMR": "stripe_count=1;stripe_size=4194304;block_size=4194304;"
                f"num_aggregators={batch.cores // per};merging_pgs=0",
            }
            assert {t.iterations for t in batch.tests} == {50 if name == "chimera" else 25}


def test_names_become_identifiers_of_their_own() -> None:
    names = ["mpsi+1", "mpsi_plus_1", "a/b", "a b", "A_B", "int", "elements", "9x", "%", "x" * 80]
    members = identifiers.members(names)
    assert list(members) == names
    assert members["mpsi+1"] == "mpsi_plus_1_" and members["mpsi_plus_1"] == "mpsi_plus_1_2_"
    assert len({m.lower() for m in members.values()}) == len(names)
    assert all(m.isidentifier() and m.isascii() and len(m) <= 63 for m in members.values())
    assert not {"int", "elements"} & set(members.values())


@pytest.mark.parametrize(
    ("text", "ranks", "expected"),
    [
        ("7 / 2 - 8 % 3", 1, [1]),
        ("skel_mpi_rank % 2 + skel_mpi_size", 3, [3, 4, 3]),
        ("grid(2, 0) * 10 + grid(2, 1)", 6, [32] * 6),
        ("coordinate(2, 0) * 10 + coordinate(2, 1)", 6, [0, 1, 10, 11, 20, 21]),
        ("-(3) / 2", 1, [-1]),
        ("-(3) % 2", 1, [-1]),
    ],
)
def test_expressions_count_as_c_does(text: str, ranks: int, expected: list[int]) -> None:
    assert expressions.parse(text).evaluate({}, ranks).tolist() == expected


def test_a_grid_is_balanced() -> None:
    grids = [expressions.grid(n, d) for n, d in ((1, 2), (12, 2), (128, 2), (64, 3), (30, 3))]
    assert grids == [(1, 1), (4, 3), (16, 8), (4, 4, 4), (5, 3, 2)]
    with pytest.raises(UnderstudyError):
        expressions.grid(0, 1)


WRONG_PLACES = """\
<adios-config host-language="C">
  <adios-group name="g" time-index="steps">
    <var name="n" path="/dim" type="integer"/>
    <attribute name="two" path="/dim" type="integer" value="2"/>
    <var name="a" path="/v" type="double" dimensions="n,two,steps"/>
    <gwrite src="if (big)"/>
    <var name="b" type="byte" dimensions="n"/>
    <gwrite src="else"/>
    <var name="c" type="byte" dimensions="n"/>
    <gwrite src="endif"/>
  </adios-group>
  <method group="g" method="mpi_amr">num_aggregators=2</method>
</adios-config>
"""


def test_what_has_one_meaning_is_set_right(tmp_path: Path) -> None:
    path = descriptor(tmp_path, text=WRONG_PLACES)
    succeed("skel", "xml", path, "-o", tmp_path / "app_skel.xml")
    text = (tmp_path / "app_skel.xml").read_text()
    assert text.startswith('<?xml version="1.0"?>\n')
    assert 'name="a" path="/v" type="double" dimensions="steps,/dim/n,/dim/two"' in text
    assert 'method="MPI_AMR">num_aggregators=2<' in text
    sources = [line.strip() for line in text.splitlines() if "gwrite" in line]
    assert sources == [f'<gwrite src="{s}"/>' for s in ("if (big)", "else", "endif")]
    again, first = read(tmp_path / "app_skel.xml"), read(path)
    assert [(v.name, v.dimensions, v.when) for v in again.groups[0].variables] == [
        (v.name, v.dimensions, v.when) for v in first.groups[0].variables
    ]
    assert first.groups[0].constant("/dim/two") == 2
    values = parameters.default(first, "app")
    written = blocks.of_group(first.groups[0], values.groups["g"], 2).blocks
    assert [b.variable.name for b in written] == ["/dim/n", "/v/a", "c"]


def test_files_are_not_replaced_unasked(tmp_path: Path) -> None:
    path = descriptor(tmp_path)
    output = tmp_path / "out.xml"
    output.write_text("mine")
    done = understudy("skel", "params", path, "-o", output)
    assert done.stderr == f"understudy: {output}: exists already; use --force to replace it\n"
    assert output.read_text() == "mine"
    succeed("skel", "params", path, "-o", output, "--force")
    assert "<skel-config" in output.read_text()


def test_the_shipped_parameters_of_skel_are_read(tmp_path: Path) -> None:
    """Skel's own words: special values, expressions and a test with tags."""
    path = descriptor(tmp_path)
    values = tmp_path / "old.xml"
    values.write_text(
        '<skel-config application="old"><adios-group name="g">'
        '<scalar name="nx" type="integer" value="64"/>'
        '<scalar name="gx" type="integer" value="skel_mpi_size*nx"/>'
        '<scalar name="ox" type="integer" value="nx*(skel_mpi_rank%skel_mpi_size)"/>'
        '<scalar name="t" type="double" value="0.5"/>'
        '<array name="a" type="double" dims="nx" fill-method="rank"></array></adios-group>'
        '<batch name="writes" cores="16" walltime="0:30:00">'
        '<test type="write" group="g" method="POSIX" iterations="10" rm="pre" tags="n:v"/>'
        "</batch></skel-config>"
    )
    parsed_descriptor = read(path)
    read_back = parameters.read(values, parsed_descriptor)
    group_blocks = blocks.of_group(parsed_descriptor.groups[0], read_back.groups["g"], 16)
    assert set(group_blocks.bytes.tolist()) == {3 * 4 + 8 + 64 * 8 + 2 * 64 * 4}
    assert read_back.batches[0].tests[0].iterations == 10


def test_the_sample_is_whole() -> None:
    assert DESCRIPTOR.count("<var") == 6
