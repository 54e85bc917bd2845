"""Python and the player agree on random programs, most of which no keys of the versions before can
say: which of them are valid, and call by call what they do.

RANDOM_PROGRAMS=5000 plays so many.
"""

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests import call_logs
from tests import random_workloads as both
from tests.support.random_programs import Row, program
from tests.test_evaluator import difference
from understudy.contracts.workload import build
from understudy.model.scaling import scale
from understudy.program.predicted_counters import predict
from understudy.program.text import text_of
from understudy.program.workload import row_of

READ = 600
PLAYED = int(os.environ.get("RANDOM_PROGRAMS", "120"))
# What the player reads, and then takes for something else, or cannot play.
STRICTER = re.compile(
    "expected that of the moves before it"
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


def programs(count: int) -> list[Row]:
    return [program(Random(f"program {seed}")) for seed in range(count)]


def test_both_read_what_is_valid() -> None:
    rows = programs(READ)
    assert set(both.answers([json.dumps(row) for row in rows])) == {"ok"}
    for row in rows:
        made = build(row, "program")
        again = build(row_of(made), "again")
        assert again.streams == made.streams
        assert row_of(again) == row_of(made)


def test_both_refuse_the_same_of_what_is_damaged() -> None:
    rng = Random("damaged random programs")
    rows = [both.damaged(rng, row) for row in programs(READ)]
    found = both.answers([json.dumps(row) for row in rows])
    other, counts = [], {"ok": 0, "refused": 0}
    for row, its in zip(rows, found, strict=True):
        ours = both.read(row)
        counts["ok" if ours == "ok" else "refused"] += 1
        if (ours == "ok") != (its == "ok") and not (its == "ok" and STRICTER.search(ours)):
            other.append((ours, its))
    assert other == []
    assert min(counts.values()) > READ // 25


def test_what_is_valid_can_be_scaled_and_predicted() -> None:
    for row in programs(READ // 6):
        made = build(row, "program")
        assert predict(made.program)
        if all(m.variable.decomposition.rule != "grid" for s in made.streams for m in s.moves):
            for rule in ("strong", "weak"):
                build(row_of(scale(made, 2 * made.ranks, rule)), rule)


def of_seed(seed: int) -> str:
    """The first call that the evaluator does not tell; "none" if the player makes none."""
    row = program(Random(f"program {seed}"))
    made = build(row, "program")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "workload.json"
        path.write_text(json.dumps(row), encoding="utf-8")
        logs = call_logs.played(path, row["ranks"], Path(folder))
        found = difference(made, logs) if logs else "none"
    return f"{seed} {found}\n{text_of(made.program)}" if found and logs else found


def test_the_evaluator_says_what_the_player_does() -> None:
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(of_seed, range(PLAYED)))
    assert [text for text in found if text not in ("", "none")] == []
    assert found.count("none") <= PLAYED // 20
