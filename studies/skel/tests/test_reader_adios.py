"""ADIOS descriptors as workloads: the parts of every rank, the point of method and layout."""

import re
from pathlib import Path

import pytest

from studies.skel.tests.support import TRACES, descriptor, succeed, understudy
from tests.support.keys import to_keys
from understudy.contracts import workload
from understudy.contracts.workload import EVEN, Decomposition, Variable, runs
from understudy.paths import where
from understudy_skel.readers import adios_xml

GLOBAL = '<global-bounds dimensions="gx" offsets="ox">'


@pytest.mark.parametrize("name", ["chimera", "gts", "s3d"])
def test_the_workload_is_what_its_descriptor_gives(name: str, tmp_path: Path) -> None:
    """The command that docs/how-to/skel.md states makes our file, byte for byte but for the
    version of the reader: a release leaves workloads, and so their hashes, as they are."""
    path = tmp_path / f"{name}.json"
    succeed("describe", TRACES / f"{name}.xml", "-n", 4, "--keep-names", "-o", path)
    ours = (where("workloads") / f"{name}.json").read_text(encoding="utf-8")
    reader = re.compile(r'"reader": "understudy [0-9.]+"')
    assert reader.sub("", path.read_text(encoding="utf-8")) == reader.sub("", ours)


@pytest.mark.parametrize(
    ("name", "bytes_"),
    [
        ("chimera", 10_605_108),
        ("gts", 57_288_412),
        ("s3d", 16_000_068),
    ],
)
@pytest.mark.parametrize("ranks", [1, 4, 12, 128])
def test_every_rank_has_the_bytes_of_the_study(name: str, bytes_: int, ranks: int) -> None:
    xml_workload = adios_xml.read(TRACES / f"{name}.xml", ranks=ranks)
    [dump] = xml_workload.streams[0].steps
    assert dump.bytes == ranks * bytes_
    each = [0] * ranks
    for variable in dump.variables:
        rank = 0
        for n, size in variable.rank_runs(ranks):
            for _ in range(n):
                each[rank] += size
                rank += 1
    assert set(each) == {bytes_}


POINTS = [
    ("POSIX", "posix", "file-per-process", None, 36_736_000 + 9_184_000),
    ("MPI", "mpiio", "shared", None, 36_736_000 + 9_184_000),
    ("MPI_LUSTRE", "mpiio", "shared", None, 57_344_000),
    ("MPI_AMR", "mpiio", "grouped", 2, 4_194_304),
    ("adios", "adios", "shared", None, 36_736_000 + 9_184_000),
]


@pytest.mark.parametrize(("method", "native", "layout", "groups", "transfer"), POINTS)
def test_a_method_is_a_point(
    method: str, native: str, layout: str, groups: int | None, transfer: int
) -> None:
    xml_workload = adios_xml.read(TRACES / "gts.xml", ranks=32, method=method)
    [stream] = xml_workload.streams
    assert (stream.method, stream.layout, stream.groups) == (native, layout, groups)
    assert stream.transfer_bytes == transfer
    assert ("stripe_count=160" in xml_workload.source.notes[0]) == (method == "MPI_LUSTRE")


def test_names_stay_only_where_they_may() -> None:
    kept = adios_xml.read(TRACES / "gts.xml", ranks=2, keep_names=True)
    assert {v.label for v in kept.streams[0].steps[0].variables} >= {"zion", "mpsi+1"}
    text = to_keys(adios_xml.read(TRACES / "gts.xml", ranks=2))
    for name in ("zion", "mpsi", "restart", "gts", "mimax", "sprng"):
        assert name not in text.lower(), name


def variable(path: Path, ranks: int, **settings: str) -> tuple[Variable, tuple[str, ...]]:
    xml_workload = adios_xml.read(path, ranks=ranks, keep_names=True, settings=settings)
    [array] = [v for v in xml_workload.streams[0].steps[0].variables if v.label == "a"]
    return array, xml_workload.source.notes


def test_decompositions_are_recognised(tmp_path: Path) -> None:
    path = descriptor(tmp_path)
    even, _ = variable(path, 3, nx="5")
    assert (even.shape, even.decomposition) == ((15,), EVEN)
    uneven, _ = variable(
        path,
        3,
        nx="5 + skel_mpi_rank",
        gx="18",
        ox="5 * skel_mpi_rank + skel_mpi_rank * (skel_mpi_rank - 1) / 2",
    )
    assert (uneven.shape, uneven.decomposition) == ((18,), runs([(1, 5), (1, 6), (1, 7)]))
    holes, notes = variable(path, 3, nx="5", gx="100")
    assert (holes.shape, holes.decomposition) == ((3, 5), EVEN)
    assert "1 global arrays leave gaps, overlap or" in notes[1]
    backwards, notes = variable(
        path, 2, nx="5 + skel_mpi_rank", gx="11", ox="6 - 6 * skel_mpi_rank"
    )
    assert (backwards.shape, backwards.decomposition) == ((11,), runs([(1, 5), (1, 6)]))
    assert len(notes) == 2


def test_a_grid_is_in_c_order_whatever_the_language(tmp_path: Path) -> None:
    xml_workload = adios_xml.read(
        TRACES / "s3d.xml", ranks=12, settings={"nx": "2", "ny": "3", "nz": "5"}
    )
    array = xml_workload.streams[0].steps[0].variables[-1]
    assert array.decomposition == Decomposition(rule="grid", grid=(3, 2, 2))
    assert array.shape == (3 * 5, 2 * 3, 2 * 2)  # z, y, x


def test_steps_are_dumps_and_complex_numbers_pairs(tmp_path: Path) -> None:
    old = 'name="l" type="real" dimensions="2,nx"'
    path = descriptor(tmp_path, old, 'name="l" type="double complex" dimensions="2,nx"')
    values = tmp_path / "p.xml"
    succeed("skel", "params", path, "-o", values)
    values.write_text(values.read_text().replace('steps="1"', 'steps="3"'))
    xml_workload = adios_xml.read(path, ranks=2, parameters_file=values)
    assert len(xml_workload.streams[0].steps) == 3
    last = xml_workload.streams[0].steps[0].variables[-1]
    assert (last.type, last.shape) == ("f64", (2, 2, 128, 2))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["traces/gts.xml", "-a", "BOGUS"], "--method BOGUS: expected one of POSIX, MPI"),
        (["traces/gts.xml", "--set", "nope=1"], "traces/gts.xml: nope: no scalar and no switch"),
        (["traces/gts.xml", "--set", "mimax"], "--set mimax: expected NAME=VALUE"),
        (["traces/gts.xml", "--partial"], "--partial: expected only with a Darshan log"),
        (["traces/gts.xml", "-p", "none.xml"], "none.xml: cannot be read: No such file"),
        (
            ["traces/mphys_dyn.darshan", "-n", "4"],
            "--ranks: expected only with an ADIOS descriptor",
        ),
        (
            ["traces/mphys_dyn.darshan", "--set", "a=1"],
            "--set: expected only with an ADIOS descrip",
        ),
    ],
)
def test_an_error_is_one_message(
    words: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TRACES.parent)
    done = understudy("describe", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr and done.stderr.count("\n") == 1


def test_what_is_described_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    succeed("describe", descriptor(tmp_path), "-n", 7, "-o", path)
    assert workload.load(path).bytes == 7 * (3 * 4 + 8 + 128 * 8 + 2 * 128 * 4)
