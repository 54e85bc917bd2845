"""Funnels and aggregators stay what they are on another number of ranks."""

from dataclasses import replace

import pytest

from tests.support import results as samples
from tests.support.keys import patterns_of, with_keys, with_patterns
from tests.support.said import said
from understudy.contracts.workload import Operation, Workload, parse, provenance_of, runs
from understudy.model.aggregators import Aggregators, found, scaled
from understudy.model.scaling import scale

Pairs = list[tuple[int, int]]


def aggregators(every: int, offset: int, *rows: int) -> Aggregators:
    return Aggregators(every=every, offset=offset, rows=rows)


@pytest.mark.parametrize(
    ("places", "ranks", "expected"),
    [
        ([0], 4, (4, 0)),
        ([2], 4, (4, 2)),
        ([0, 4], 8, (4, 0)),
        ([1, 5], 8, (4, 1)),
        ([0, 4], 6, (4, 0)),
        ([0, 4], 14, None),  # the last ranks have none
        ([0, 4, 6], 7, None),
        ([0, 1], 4, None),
        ([0], 1, None),
        ([], 4, None),
    ],
)
def test_aggregators_are_found(
    places: list[int], ranks: int, expected: tuple[int, int] | None
) -> None:
    result = found(places, ranks)
    assert (result and (result.every, result.offset)) == expected


@pytest.mark.parametrize(
    ("before", "old", "new", "grow", "expected"),
    [
        (aggregators(4, 0, 8), 4, 8, False, [(1, 8), (7, 0)]),
        (aggregators(4, 0, 8), 4, 8, True, [(1, 16), (7, 0)]),
        (aggregators(4, 2, 8), 4, 2, True, [(1, 0), (1, 4)]),
        (
            aggregators(4, 0, 5, 6),
            8,
            16,
            True,
            [(1, 5), (3, 0), (1, 5), (3, 0), (1, 6), (3, 0), (1, 6), (3, 0)],
        ),
        (
            aggregators(4, 0, 5, 6),
            8,
            16,
            False,
            [(1, 2), (3, 0), (1, 3), (3, 0), (1, 3), (3, 0), (1, 3), (3, 0)],
        ),
        (aggregators(4, 1, 5, 6), 8, 4, False, [(1, 0), (1, 11), (2, 0)]),
        (aggregators(4, 3, 5, 6), 8, 2, False, [(1, 0), (1, 11)]),
    ],
)
def test_aggregators_are_placed_anew(
    before: Aggregators, old: int, new: int, grow: bool, expected: Pairs
) -> None:
    assert scaled(before, old, new, grow=grow) == expected
    assert sum(n for n, _ in expected) == new


def of_runs(pairs: Pairs, *more: Pairs, groups: int | None = None) -> Workload:
    """Ranks write variables with these rows each, and make as many opens as the first has rows."""
    workload = samples.per_process()
    stream = patterns_of(workload)[0]
    dump = stream.dumps[0]
    variables = tuple(
        replace(
            dump.variables[0],
            name=f"v{k}",
            shape=(sum(n * rows for n, rows in item),),
            decomposition=runs(item),
        )
        for k, item in enumerate((pairs, *more))
    )
    opens = Operation(operation="open", runs=runs(pairs).runs)
    dumps = (replace(dump, variables=variables, operations=(opens,)),)
    layout = "grouped" if groups else "shared"
    result = replace(stream, dumps=dumps, layout=layout, groups=groups)
    return with_patterns(replace(workload, ranks=sum(n for n, _ in pairs), scaling=None), [result])


def of_scaled(workload: Workload, ranks: int, rule: str) -> list[Pairs]:
    """Runs of rows of each variable, and then of the opens, on so many ranks."""
    workload_ = scale(workload, ranks, rule)
    parse(workload_.to_text(), "scaled")
    (dump,) = workload_.streams[0].steps
    opens = list(dump.operations[0].runs)
    return [[*v.decomposition.runs] for v in dump.variables] + [opens]


def test_a_funnel_stays_a_funnel() -> None:
    funnel = of_runs([(1, 8), (3, 0)], [(1, 2), (3, 0)])
    weak, strong = (scale(funnel, 8, rule) for rule in ("weak", "strong"))
    assert of_scaled(funnel, 8, "weak") == [[(1, 16), (7, 0)], [(1, 4), (7, 0)], [(1, 8), (7, 0)]]
    assert of_scaled(funnel, 8, "strong") == [[(1, 8), (7, 0)], [(1, 2), (7, 0)], [(1, 8), (7, 0)]]
    assert weak.bytes == 2 * funnel.bytes and strong.bytes == funnel.bytes
    said("one-rank-moves-data", weak.source.notes[-1])
    entry = provenance_of(strong, "/streams/0/dumps/0/variables/0/decomposition/runs/0/0")
    assert entry is not None and entry.confidence == "likely"
    said("scaled-strongly-from-ranks", entry.how)


def test_there_is_one_aggregator_for_as_many_ranks() -> None:
    four = of_runs([(1, 5), (3, 0), (1, 6), (3, 0)])
    weak = [(1, 5), (3, 0), (1, 5), (3, 0), (1, 6), (3, 0), (1, 6), (3, 0)]
    assert of_scaled(four, 16, "weak") == [weak, weak]
    said("one-ranks-moves-data", scale(four, 16, "weak").source.notes[-1])
    assert scale(four, 16, "strong").bytes == four.bytes


def test_each_group_keeps_its_aggregator() -> None:
    grouped = of_runs([(1, 6), (3, 0), (1, 6), (3, 0)], groups=2)
    runs_of_data = of_scaled(grouped, 12, "strong")[0]
    assert runs_of_data == [(1, 6), (5, 0), (1, 6), (5, 0)]


def test_a_header_stays_that_of_one_rank() -> None:
    workload = of_runs([(1, 8), (3, 0)], [(4, 3)])
    for rule, body in (("weak", [(8, 3)]), ("strong", [(4, 2), (4, 1)])):
        header, data, _ = of_scaled(workload, 8, rule)
        assert header == [(1, 8), (7, 0)]
        assert sum(n * rows for n, rows in data) == (24 if rule == "weak" else 12), body
    assert scale(workload, 8, "weak").source.notes == workload.source.notes


@pytest.mark.parametrize(
    ("pairs", "ranks", "rule", "expected"),
    [
        ([(4, 8)], 8, "strong", 0.5),
        ([(4, 8)], 8, "weak", 1.0),
        ([(4, 8)], 2, "strong", 1.0),  # twice the bytes of a rank, in the time of the dump
        ([(1, 8), (3, 0)], 8, "strong", 1.0),
        ([(1, 8), (3, 0)], 8, "weak", 1.0),
    ],
)
def test_a_rank_computes_as_long_for_a_byte_as_before(
    pairs: Pairs, ranks: int, rule: str, expected: float
) -> None:
    """Half the bytes of a rank take half the time between its calls, but more bytes not more."""
    workload = of_runs(pairs)
    [stream] = patterns_of(workload)
    dumps = tuple(replace(d, compute_s=1.0) for d in stream.dumps)
    workload_ = scale(with_keys(workload, dumps=dumps), ranks, rule)
    assert {d.compute_s for d in workload_.streams[0].steps} == {expected}


@pytest.mark.parametrize(
    ("pairs", "transfer_bytes", "expected"),
    [
        ([(1, 4096), (4719, 0)], 4096, [(1, 4096), (1, 0)]),  # read in one call
        ([(1, 4096), (4719, 0)], 1 << 20, [(1, 4096), (1, 0)]),
        ([(1, 1 << 20), (4719, 0)], 4096, [(1, 4096), (1, 0)]),
        ([(1, 472 << 20), (4719, 0)], 4096, [(1, (472 << 20) // 2360), (1, 0)]),
        ([(1, 0), (3, 4096), (4716, 0)], 4096, [(1, 4096), (1, 0)]),
    ],
)
def test_weak_scaling_leaves_a_transfer(
    pairs: Pairs, transfer_bytes: int, expected: Pairs
) -> None:
    many = of_runs(pairs)
    [stream] = patterns_of(many)
    [variable] = stream.dumps[0].variables
    dumps = (replace(stream.dumps[0], variables=(replace(variable, type="byte"),)),)
    workload_ = with_keys(many, transfer_bytes=transfer_bytes, dumps=dumps)
    assert of_scaled(workload_, 2, "weak")[0] == expected


@pytest.mark.parametrize("rule", ["strong", "weak"])
@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        (8, ((5, 0), (1, 0.5), (2, 1.25))),
        (16, ((10, 0), (2, 0.5), (4, 1.25))),
        (4, ((3, 0), (1, 1.25))),  # of ranks 0, 2, 4 and 6
        (3, ((2, 0), (1, 0.5))),  # 0, 2 and 5
        (12, ((8, 0), (1, 0.5), (3, 1.25))),
        (1, ()),
    ],
)
def test_ranks_are_as_late_as_those_at_their_place(
    ranks: int, expected: tuple[tuple[int, float], ...], rule: str
) -> None:
    of = of_runs([(8, 48)])
    [stream] = patterns_of(of)
    late = ((5, 0.0), (1, 0.5), (2, 1.25))
    of = with_keys(of, dumps=tuple(replace(d, skew=late) for d in stream.dumps))
    workload_ = scale(of, ranks, rule).streams[0].steps
    assert {dump.skew for dump in workload_} == {expected}
    each = [s for n, s in late for _ in range(n)]
    result = [s for n, s in workload_[0].skew for _ in range(n)] or [0.0] * ranks
    assert result == [each[r * 8 // ranks] for r in range(ranks)]
