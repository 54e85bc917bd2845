"""Meshes and variables: MACSio's bytes as golden numbers, and dumps that are exact."""

from itertools import groupby
from math import prod

import numpy as np
import pytest

from understudy.contracts.workload import Variable
from understudy.errors import UnderstudyError
from understudy_papers.model import composition
from understudy_papers.model.composition import (
    KINDS,
    Field,
    Kind,
    Mesh,
    macsio_fields,
    macsio_mesh,
)


def macsio_bytes(part_bytes: int, count: int, kind: Kind | None) -> int:
    """Bytes of a part: of the fields, and of the mesh unless the kind is None."""
    mesh, fields = macsio_mesh(kind or "rectilinear", part_bytes), macsio_fields(count)
    return mesh.bytes(fields) - (0 if kind else mesh.bytes(()))


@pytest.mark.parametrize(
    ("part_bytes", "count", "shape", "fields_bytes", "file_bytes"),
    [(80_008, 8, (137, 73), 594_208, 600_736), (80_056, 8, (10_007, 1), 320_224, 325_520)],
)
def test_real_files_of_macsio(
    part_bytes: int, count: int, shape: tuple[int, int], fields_bytes: int, file_bytes: int
) -> None:
    """Measured: HDF5 files of one part; the container adds about 341 B a dataset and 3.8 kB."""
    assert macsio_mesh("rectilinear", part_bytes).shape == shape
    assert macsio_bytes(part_bytes, count, None) == fields_bytes
    assert abs(file_bytes - fields_bytes - (341 * count + 3800)) <= 1300


def test_a_prime_number_of_nodes_loses_the_zones() -> None:
    """The expected size is 0.9375 of eight variables' part size each; 46 % less is written."""
    assert macsio_mesh("curvilinear", 80_056).zones == 0
    good, prime = (macsio_bytes(size, 8, None) for size in (80_008, 80_056))
    assert prime / good - 1 == pytest.approx(-0.46, abs=0.002)


@pytest.mark.parametrize(
    ("ranks", "part_bytes", "count", "dump_bytes"),
    [
        (16, 588_880, 20, 215_783_168),  # A: 215.8 MB
        (16, 588_880, 43, 417_548_800),  # A with the variables of C and E: 417 MB
        (80, 75_100, 43, 264_303_360),  # C, first: 264 MB
        (80, 8 * 8 * 8803, 43, 1_878_811_520),  # C, last, on parts of 8 x 8803 nodes: 1.88 GB
        (80, 2_276_448, 43, 8_085_348_480),  # E: 8.09 GB
    ],
)
def test_command_lines_of_the_paper_s_replicas(
    ranks: int, part_bytes: int, count: int, dump_bytes: int
) -> None:
    assert ranks * macsio_bytes(part_bytes, count, "unstructured") == dump_bytes


@pytest.mark.parametrize("count", range(1, 50))
def test_macsio_s_cycle_of_eight_kinds(count: int) -> None:
    fields = macsio_fields(count)
    assert sum(f.count for f in fields) == count
    q, r = divmod(count, 8)
    counts = {(f.centring, f.type): f.count for f in fields}
    assert counts.get(("zone", "f64"), 0) == 3 * q + min(r, 3)
    assert counts.get(("node", "f64"), 0) == 4 * q + (r - 3 if r > 3 else 0)
    assert counts.get(("zone", "i32"), 0) == q


def test_variables_are_15_16_of_the_part_size_on_average() -> None:
    part_bytes = 8 * 1000 * 1000
    assert macsio_bytes(part_bytes, 40, None) / 40 == pytest.approx(0.9375 * part_bytes, rel=2e-3)
    mesh = macsio_mesh("unstructured", part_bytes)
    assert mesh.bytes(()) == pytest.approx(4 * part_bytes, rel=2e-3)


@pytest.mark.parametrize(
    ("kind", "shape", "mesh_bytes"),
    [
        ("rectilinear", (5,), 40),
        ("rectilinear", (5, 7), 96),
        ("rectilinear", (3, 5, 7), 120),
        ("curvilinear", (5,), 40),
        ("curvilinear", (5, 7), 560),
        ("curvilinear", (3, 5, 7), 24 * 105),
        ("unstructured", (5,), 40 + 8 * 4),
        ("unstructured", (5, 7), 16 * 35 + 16 * 24),
        ("unstructured", (3, 5, 7), 24 * 105 + 32 * 48),
    ],
)
def test_bytes_of_a_mesh(kind: Kind, shape: tuple[int, ...], mesh_bytes: int) -> None:
    mesh = Mesh(kind=kind, shape=shape)
    assert mesh.bytes(()) == mesh_bytes
    one_of_each = [
        Field(name="a", centring="node", type="f64", count=2),
        Field(name="b", centring="zone", type="f32", count=3),
    ]
    assert mesh.bytes(one_of_each) == mesh_bytes + 16 * mesh.nodes + 12 * mesh.zones


FIELDS = (
    Field(name="pressure", centring="zone", type="f64", count=3),
    Field(name="velocity", centring="node", type="f64", count=2),
    Field(name="material", centring="zone", type="i32", count=1),
)


def made(kind: Kind, dimensions: int, size: int, parts: int = 7) -> tuple[Variable, ...]:
    return composition.compose(
        size, name="mesh", kind=kind, dimensions=dimensions, fields=FIELDS, parts=parts
    )


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_every_dump_has_exactly_its_bytes(kind: Kind, dimensions: int) -> None:
    rng = np.random.default_rng(dimensions)
    for size in (int(10**exponent) for exponent in rng.uniform(4.5, 10.5, size=25)):
        variables = made(kind, dimensions, size)
        assert sum(v.bytes for v in variables) == size
        whole = [v for v in variables if not v.name.startswith("mesh_rest_")]
        assert all(v.shape[0] == 7 for v in whole)
        rest = size - sum(v.bytes for v in whole)
        if size > 10**8:
            assert rest < 0.002 * size
        [nodes] = [prod(v.shape[1:]) for v in variables if v.name == "velocity"]
        left = [v.name for v in variables if v.type == "byte"]
        assert left == [f"mesh_rest_{nodes}"] * bool(rest)


@pytest.mark.parametrize("dimensions", [2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_no_mesh_is_a_strip(kind: Kind, dimensions: int) -> None:
    for budget in (10**4, 10**5, 80_056, 10**6, 123_456_789):
        shape = composition.fitted_mesh(kind, dimensions, FIELDS, budget).shape
        assert max(shape) < 3 * min(shape), (budget, shape)


def test_the_fitted_mesh_is_the_best_of_its_neighbours() -> None:
    budget = 1_234_567
    best = composition.fitted_mesh("curvilinear", 2, FIELDS, budget)
    y, x = best.shape
    assert Mesh(kind="curvilinear", shape=(y, x)).bytes(FIELDS) <= budget
    column = Mesh(kind="curvilinear", shape=(y, x + 1)).bytes(FIELDS) - best.bytes(FIELDS)
    assert column > budget - best.bytes(FIELDS)
    assert column > 30 * (budget - best.bytes(FIELDS))  # many shapes were tried


@pytest.mark.parametrize(
    ("per_rank", "runs"),
    [
        (1.0, [(8, 1)]),
        (2.5, [(4, 3), (4, 2)]),
        (1.25, [(2, 2), (6, 1)]),
        (0.5, [(4, 1), (4, 0)]),
    ],
)
def test_parts_per_rank_may_be_a_fraction(per_rank: float, runs: list[tuple[int, int]]) -> None:
    parts = composition.parts_of(8, per_rank)
    [coordinates, *_] = made("curvilinear", 2, 10**7, parts)
    of_part = coordinates.bytes // parts
    of_ranks = [size // of_part for n, size in coordinates.rank_runs(8) for _ in range(n)]
    assert [(len(list(same)), value) for value, same in groupby(of_ranks)] == runs


def test_more_variables_on_as_fine_a_mesh() -> None:
    """A package that is switched on adds bytes by variables; the mesh need not change."""
    package = Field(name="energy", centring="zone", type="f64", count=6)
    before = composition.fitted_mesh("curvilinear", 2, FIELDS, 10**6)
    grown = before.bytes((*FIELDS, package))
    after = composition.fitted_mesh("curvilinear", 2, (*FIELDS, package), grown)
    assert after.nodes == pytest.approx(before.nodes, rel=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: made("unstructured", 2, 500), "71 B a part: expected at least the "),
        (lambda: made("unstructured", 4, 10**6), "4 dimensions: expected 1, 2 or 3"),
        (lambda: composition.parts_of(4, 0.1), "0.1 parts per rank on 4 ranks: expected a part"),
        (lambda: macsio_fields(0), "0 variables: expected at least 1"),
        (lambda: macsio_mesh("rectilinear", 7), "part size 7 B: expected at least 8"),
        (
            lambda: composition.square_mesh("rectilinear", 31),
            "part size 31 B: expected at least 32",
        ),
    ],
)
def test_what_cannot_be_composed_is_one_message(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(UnderstudyError, match=message):
        call()
