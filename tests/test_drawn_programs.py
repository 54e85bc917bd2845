"""Programs that hypothesis draws: which of them Python and the player read, what keys say of them,
and that what is counted of a program are the calls that it makes.

PROGRAMS=20 draws so many times as many, others each time.
"""

import json
import re
from collections import Counter
from copy import deepcopy
from dataclasses import replace
from typing import Any

from hypothesis import given

from tests.support import call_lines
from tests.support.both_readers import answers, read
from tests.support.keys import keys_of
from tests.support.programs import Row, damaged, examples, programs
from understudy.contracts.workload import build, parse
from understudy.inference.log.interface_counters import of_streams
from understudy.model.scaling import scale
from understudy.program.calls import calls_of
from understudy.program.equal_dumps import with_equal_dumps_together
from understudy.program.instructions import Program
from understudy.program.needs import needs
from understudy.program.opens import files_of, opens_of, prepared_opens
from understudy.program.predicted_counters import predict
from understudy.program.sizes import bytes_of
from understudy.program.syncs import syncs_of
from understudy.program.workload import row_of

# What the player reads, and then takes for something else, or cannot play.
STRICTER = re.compile(
    "workload: (labels|overheads)"
    "|expected that of the moves before it"
    "|each_file"
    "|expected either behind or last"
    "|expected (None|'.*'), as before in the stream"
    "|expected begin in each step of"
    "|expected dump .* or later, as that of"
    r"|\.at: expected a variable in the files"
    "|bytes of file .* by then"
    "|expected read, since the stream reads|expected new, truncate or keep, since"
    "|key 'sets' is unknown|expected true or false, got null"  # no schema, or a null
)


@examples(400)
@given(programs(ranks=24))
def test_what_is_read_is_written_the_same_and_played(row: Row) -> None:
    workload = build(row, "drawn")
    assert row_of(workload) == row
    assert parse(workload.to_text(), "again").streams == workload.streams
    assert answers([row]) == ["ok"]


def test_both_refuse_the_same_of_what_is_damaged_by_one_message() -> None:
    counts = Counter[bool]()

    @examples(600)
    @given(damaged(programs()))
    def alike(row: Row) -> None:
        ours, [its] = read(row), answers([row])
        assert "\n" not in ours and len(ours) < 500
        counts[ours == "ok"] += 1
        assert (ours == "ok") == (its == "ok") or (its == "ok" and STRICTER.search(ours)), its

    alike()
    assert min(counts[True], counts[False]) > 20


def renamed(value: Any, key: str = "") -> Any:
    """The document with other names of its sets."""
    if isinstance(value, dict):
        return {k: renamed(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [renamed(v, key) for v in value]
    is_set = isinstance(value, str) and key in ("open", "each_file", "calls", "set")
    return f"of-{value}" if is_set else value


@examples(200)
@given(programs())
def test_a_set_may_have_any_name(row: Row) -> None:
    sets = [each | {"name": f"of-{each['name']}"} for each in row["sets"]]
    other = renamed(row) | {"sets": sets}
    assert answers([other]) == ["ok"]
    program, named = build(row, "drawn").program, build(other, "drawn").program
    assert needs(named) == needs(program)
    assert [files_of(s, row["ranks"]) for s in named.streams] == [
        files_of(s, row["ranks"]) for s in program.streams
    ]


@examples(300)
@given(programs(keys=True))
def test_keys_mean_the_program_that_says_them(row: Row) -> None:
    keys = keys_of(row)
    workload = build(keys, "keys")
    assert keys_of(row_of(workload)) == keys
    assert answers([row_of(workload)]) == ["ok"]


@examples(200)
@given(programs())
def test_a_scaled_program_is_one_of_as_many_bytes(row: Row) -> None:
    workload = build(row, "drawn")
    for rule, factor in (("strong", 1), ("weak", 3)):
        scaled = scale(workload, 3 * workload.ranks, rule)
        message = read(row_of(scaled))
        assert message == "ok", message
        for before, after in zip(workload.streams, scaled.streams, strict=True):
            assert (after.files, after.names) == (before.files, before.names)
            for step, other in zip(before.steps, after.steps, strict=True):
                times, as_before = ((s.time_s, s.count, s.period_s) for s in (other, step))
                assert times == as_before
                operations = [factor * operation.count for operation in step.operations]
                assert [operation.count for operation in other.operations] == operations
                assert [v.bytes for v in other.variables] == [
                    v.bytes * (1 if is_header(v.decomposition.runs) else factor)
                    for v in step.variables
                ]


def is_header(runs: tuple[tuple[int, int], ...]) -> bool:
    """True where the first of several ranks has all bytes, which do not grow with the ranks."""
    return len(runs) > 1 and runs[0][0] == 1 and not any(rows for _, rows in runs[1:])


# -- counts ---------------------------------------------------------------------------------------

LINE = re.compile(
    r"(open|i?write|i?read|sync) run/(\w+)[./]?\S*"
    r"(?: \S+ offset (?:-?\d+) bytes (\d+) runs (\d+)( collective)?)?.*"
)
MODULES = {"posix": ("POSIX", "POSIX"), "stdio": ("STDIO", "STDIO")}
MODULES |= {"mpiio": ("MPI-IO", "MPIIO"), "hdf5": ("H5D", "H5D")}


def counted(row: Row) -> dict[str, Counter[str]]:
    """What all ranks do with each set of files, call by call."""
    counts = {files["name"]: Counter[str]() for files in row["sets"]}
    for rank in call_lines.lines(build(row, "drawn").program):
        for call, name, size, runs, together in filter(None, map(parsed, rank)):
            counts[name][call] += 1
            if size:
                way = "READ" if "read" in call else "WRITE"
                counts[name][f"{way} runs"] += int(runs)
                counts[name][f"{way} bytes"] += int(size)
                counts[name][f"{way} calls{together or ''}"] += 1
    return counts


def parsed(line: str) -> tuple[Any, ...] | None:
    match = LINE.fullmatch(line)
    return match.groups() if match else None


def expected(row: Row, method: str, calls: Counter[str]) -> dict[str, int]:
    """The counters of Darshan that these calls have."""
    module, counters = MODULES[method][1], {}
    text = json.dumps([s for s in row["streams"] if s["method"] == method])
    for way, moved in (("READ", "READ"), ("WRITE", "WRITTEN")):
        counters[f"{module}_BYTES_{moved}"] = calls[f"{way} bytes"]
        alone, together = calls[f"{way} calls"], calls[f"{way} calls collective"]
        if method == "mpiio" and not ('"nonblocking"' in text or '"depth"' in text):
            counters |= {f"MPIIO_INDEP_{way}S": alone, f"MPIIO_COLL_{way}S": together}
        elif method == "hdf5":
            counters[f"H5D_{way}S"] = alone + together
        elif method in ("posix", "stdio") and "direct" not in text:
            counters[f"{module}_{way}S"] = calls[f"{way} runs"]
    if method == "stdio" and "operate" not in text:
        counters["STDIO_OPENS"] = calls["open"]
    if method == "mpiio":
        counters["MPIIO_SYNCS"] = calls["sync"]
    return counters


@examples(500)
@given(programs())
def test_counters_are_those_of_the_calls(row: Row) -> None:
    counts = counted(row)
    methods = {s["name"]: s["method"] for s in row["streams"]}
    for each in predict(build(row, "drawn").program):
        method = methods[each.streams[0]]
        predicted = each.all[MODULES[method][0]]
        for name, number in expected(row, method, counts[each.name]).items():
            assert predicted[name] in (None, number), (name, predicted[name], number)


@examples(300)
@given(programs(methods=("mpiio",)))
def test_calls_opens_and_flushes_are_those_of_the_program(row: Row) -> None:
    program, counts = build(row, "drawn").program, counted(row)
    streams = {stream.name: stream for stream in program.streams}
    for each in program.sets:
        some = [stream for stream in program.streams if stream.set == each]
        calls, seen = [calls_of(s, program.ranks) for s in some], counts[each.name]
        if each.prepared:  # which the player writes first
            continue
        assert sum(map(bytes_of, some)) == seen["READ bytes"] + seen["WRITE bytes"]
        together = seen["READ calls collective"] + seen["WRITE calls collective"]
        assert sum(c.collective for c in calls) == together
        assert sum(c.count for c in calls) == together + seen["READ calls"] + seen["WRITE calls"]
        text = json.dumps(row["streams"])
        if "operate" not in text:
            opens = sum(opens_of(s, program.ranks, streams.get(s.last or "")) for s in some)
            assert opens == seen["open"]
            assert sum(prepared_opens(s, program.ranks)[0] for s in some) == 0
        if "flush_bytes" not in text:
            assert sum(syncs_of(s, program.ranks) for s in some) == seen["sync"]


@examples(200)
@given(programs())
def test_counters_do_not_depend_on_how_dumps_are_said_or_on_late_ranks(row: Row) -> None:
    listed = deepcopy(row)
    listed.pop("overheads", None)
    for stream in listed["streams"]:
        steps = [step for each in stream["steps"] for step in repeated(each)]
        stream["steps"] = [step | {"do": without_waits(step["do"])} for step in steps]
    program, other = (build(each, "drawn").program for each in (row, listed))
    assert predict(program) == predict(other) == predict(without_shared_bodies(other))


def test_sums_do_not_depend_on_dumps_that_share_a_body() -> None:
    """As often as a body comes, and with others between."""
    counts = Counter[bool]()

    @examples(200)
    @given(programs())
    def alike(row: Row) -> None:
        lasts = [stream["steps"][-1] for stream in row["streams"]]
        shift = 1 + max(s["at"] + s.get("repeat", 1) * s.get("every", 0) for s in lasts)
        for stream in row["streams"]:
            later = [step | {"at": step["at"] + shift} for step in stream["steps"]]
            stream["steps"] += later + [step | {"at": step["at"] + shift} for step in later]
        row.pop("overheads", None)
        program = build(row, "drawn").program
        alone = without_shared_bodies(program)
        counts[with_equal_dumps_together(program) != program] += 1
        assert predict(program) == predict(alone)
        for shared, stream in zip(program.streams, alone.streams, strict=True):
            assert calls_of(shared, program.ranks) == calls_of(stream, program.ranks)
        some, others = (of_streams(each.streams, program.ranks) for each in (program, alone))
        assert some == others

    alike()
    assert counts[True] >= 20


def without_shared_bodies(program: Program) -> Program:
    """The same program, none of whose steps is known to be equal to another."""
    streams = (
        replace(s, steps=tuple(replace(step, body=(*step.body,)) for step in s.steps))
        for s in program.streams
    )
    return replace(program, streams=tuple(streams))


def repeated(step: Row) -> list[Row]:
    rest = {key: value for key, value in step.items() if key not in ("repeat", "every")}
    starts = [k * step.get("every", 0) for k in range(step.get("repeat", 1))]
    return [rest | {"at": step["at"] + start if start else step["at"]} for start in starts]


def without_waits(body: list[Any]) -> list[Any]:
    return [i for i in body if isinstance(i, str) or "wait" not in i]
