"""Every element and attribute of an adios-config is carried into the skeletal application, refused
in one message, or ignored with a message."""

import re
from pathlib import Path

import pytest

from studies.skel.tests.support import (
    DESCRIPTOR,
    bpls,
    bpls_path,
    descriptor,
    make,
    run,
    succeed,
    understudy,
)
from understudy_skel import bpindex
from understudy_skel.descriptor import read
from understudy_skel.producers import skeleton

ARRAY = '<var name="a" type="double" dimensions="nx"/>'
GROUP = '<adios-group name="g">'
METHOD = '<method group="g" method="POSIX"/>'


def with_transform(kind: str, dimensions: str = "nx") -> str:
    return f'<var name="a" type="double" dimensions="{dimensions}" transform="{kind}"/>'


CARRIED = [
    (ARRAY, with_transform("zlib:5"), 'dimensions="nx" transform="zlib:5"/>'),
    (ARRAY, with_transform("zlib:5").replace("transform", "TRANSFORM"), 'transform="zlib:5"/>'),
    (ARRAY, with_transform("blosc:lvl=3", "7"), 'dimensions="7" transform="blosc:lvl=3"/>'),
    (
        ARRAY,
        ARRAY.replace("/>", ' mesh="m" center="cell" time-steps="t"/>'),
        'mesh="m" center="cell" time-steps="t"/>',
    ),
    (GROUP, '<adios-group name="g" stats="full">', 'stats="full"'),
    (GROUP, '<adios-group name="g" host-language="fortran">', 'host-language="Fortran"'),
    ('host-language="C"', 'host-language="C" schema-version="1.1"', 'schema-version="1.1"'),
    (
        ARRAY,
        f'{ARRAY}</global-bounds><mesh name="m" type="uniform" time-varying="no">'
        '<dimensions value="4 &amp; 5"/></mesh><global-bounds dimensions="gx" offsets="ox">',
        '<mesh name="m" type="uniform" time-varying="no"><dimensions value="4 &amp; 5">'
        "</dimensions></mesh>",
    ),
]


@pytest.mark.parametrize(("old", "new", "carried"), CARRIED)
def test_what_is_carried_is_in_the_config(
    old: str, new: str, carried: str, tmp_path: Path
) -> None:
    text = DESCRIPTOR.replace(
        '<global-bounds dimensions="gx" offsets="ox">\n      </global-bounds>', ""
    )
    path = descriptor(tmp_path, old, new, text)
    config = tmp_path / "made.xml"
    done = succeed("skel", "xml", path, "-o", config)
    assert "ignored" not in done.stderr
    assert carried in config.read_text()
    again = tmp_path / "again.xml"
    succeed("skel", "xml", config, "-o", again)
    assert again.read_text() == config.read_text()


IGNORED = [
    (
        METHOD,
        METHOD.replace("/>", ' base-path="x/"/>'),
        'line 13: <method group="g">: base-path="x/" is ignored: the program writes to the',
    ),
    (
        ARRAY,
        ARRAY.replace("/>", ' dimensoins="nx"/>'),
        'line 9: <var name="a">: dimensoins="nx" is ignored: ADIOS 1.13.1 does not know it',
    ),
    (
        METHOD,
        f'{METHOD}<buffer size-MB="4" allocate-time="now"/>',
        'line 13: <buffer>: allocate-time="now" is ignored',
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), IGNORED)
def test_what_has_no_effect_is_told(old: str, new: str, message: str, tmp_path: Path) -> None:
    path = descriptor(tmp_path, old, new)
    values = tmp_path / "app_params.xml"
    for words in (
        ("skel", "params", path, "-o", values),
        ("skel", "xml", path, "-o", tmp_path / "m.xml"),
    ):
        assert message in succeed(*words).stderr
    described = tmp_path / "w.json"
    succeed("describe", path, "-n", 2, "-o", described)
    assert "1 attributes of the descriptor have no effect." in described.read_text()


def test_a_group_may_have_a_language_of_its_own(tmp_path: Path) -> None:
    path = descriptor(tmp_path, GROUP, '<adios-group name="g" host-language="Fortran">')
    assert (read(path).language, read(path).groups[0].language) == ("C", "Fortran")
    described = tmp_path / "w.json"
    succeed("describe", path, "-n", 1, "--set", "nx=5", "--keep-names", "-o", described)
    assert re.search(r'"shape": \[\s*1,\s*5,\s*2\s*\]', described.read_text())


def test_a_transform_is_no_part_of_a_workload(tmp_path: Path) -> None:
    path = descriptor(tmp_path, ARRAY, with_transform("zlib:5"))
    done = understudy("describe", path, "-n", 2)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(
        f"understudy: {path}: line 9: <var name=\"a\">: transform 'zlib:5': the bytes that reach "
    )
    path = descriptor(tmp_path, ARRAY, with_transform("none"))
    succeed("describe", path, "-n", 2)


def transformed(folder: Path, kind: str, dimensions: str) -> tuple[Path, Path]:
    """The source, and its program of two ranks with 800,000 bytes of `a` each."""
    source = descriptor(folder, ARRAY, with_transform(kind, dimensions))
    return source, make(source, folder, "nx=100000", cores=2)


@pytest.mark.parametrize(
    ("kind", "dimensions"),
    [
        ("zlib:5", "nx"),
        ("bzip2", "nx"),
        ("szip", "nx"),
        ("identity", "nx"),
        ("lz4", "100000"),
        ("blosc:lvl=5,compressor=zlib", "100000"),
    ],
)
def test_a_skeleton_transforms_as_the_original_does(
    kind: str, dimensions: str, tmp_path: Path
) -> None:
    """By its own config, and by the original's: the same bytes, fewer than the payload, and the
    same contents."""
    source, program = transformed(tmp_path, kind, dimensions)
    stored = []
    for number, config in enumerate((tmp_path / "app_skel.xml", source)):
        out, result = f"out-{number}", tmp_path / f"{number}.json"
        done = run(program, 2, "-o", out, "-k", "-c", config, "-a", "MPI", "-r", result)
        lacking = re.search(f"Transform method {kind.split(':')[0]} is not supported", done.stderr)
        if lacking:
            pytest.skip(f"this ADIOS was built without {kind}")
        assert done.returncode == 0, done.stderr
        [dump] = skeleton.read(result).repetitions[0].streams[0].dumps
        file = tmp_path / out / "g.0.bp"
        assert dump.file_bytes == file.stat().st_size
        assert set(dump.processes.bytes) == {1_600_020}
        stored.append((dump.file_bytes, bpls(file, "-l")))
        assert bpindex.transforms(file) == {"a": kind.split(":")[0]}
    assert stored[0] == stored[1]
    assert (stored[0][0] < 2_000_000) == (kind != "identity")
    replayed = understudy(
        "skel", "replay", tmp_path / "out-0" / "g.0.bp", "-d", tmp_path / "again"
    )
    if kind == "identity":
        return
    assert replayed.exit_code == 2
    assert (
        f"g.0.bp: a: transform '{kind.split(':')[0]}': the file tells neither" in replayed.stderr
    )


def test_source_tells_of_transforms(tmp_path: Path) -> None:
    path = descriptor(tmp_path, ARRAY, with_transform("zlib:5"))
    succeed("skel", "params", path, "-o", tmp_path / "app_params.xml")
    done = succeed("skel", "source", path, "-d", tmp_path)
    assert "understudy: g: variables are transformed (zlib:5): bytes on storage" in done.stderr


def test_a_program_refuses_steps_that_stay_in_the_buffer(tmp_path: Path) -> None:
    program = make(descriptor(tmp_path), tmp_path, cores=2)
    config = tmp_path / "theirs.xml"
    for bytes_, refused in (("9000000", True), ("0", False)):
        more = f'<time-aggregation group="g" buffer-size="{bytes_}"/></adios-config>'
        config.write_text(DESCRIPTOR.replace("</adios-config>", more))
        done = run(program, 2, "-o", f"out-{bytes_}", "-c", config)
        message = 'theirs.xml: <time-aggregation group="g">: steps stay in the buffer of ADIOS'
        assert (done.returncode != 0, message in done.stderr) == (refused, refused), done.stderr


def test_a_mesh_is_in_the_file(tmp_path: Path) -> None:
    bpls_path()
    mesh = (
        '<mesh name="m" type="uniform" time-varying="no"><dimensions value="gx"/></mesh>\n'
        "  </adios-group>"
    )
    text = DESCRIPTOR.replace(ARRAY, ARRAY.replace("/>", ' mesh="m" center="point"/>'))
    text = text.replace("</adios-group>", mesh)
    program = make(descriptor(tmp_path, text=text), tmp_path, cores=2)
    done = run(program, 2, "-o", "out", "-k", "-a", "MPI")
    assert done.returncode == 0, done.stderr
    said = bpls(tmp_path / "out" / "g.0.bp", "-la", "--hidden_attrs")
    assert re.search(r'adios_schema/m/type +attr += "uniform"', said), said
