"""Hold the readers of workloads in Python and in C against each other with random workloads.

    python -m tests.random_workloads --count 100000 --seed 1
    python -m tests.random_workloads --features 10000

Two kinds are read by both sides: valid workloads, and damaged ones, in whose instructions one
value is changed. What Python accepts, the player reads; nothing makes either side fail otherwise
than by one message. A number, the seed, determines a workload: --seed N --count 1 repeats it.
"""

import argparse
import copy
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

from tests.support.random_workloads import PAIRED, features, valid
from understudy.contracts.workload import build
from understudy.errors import UnderstudyError
from understudy.program.workload import row_of

BUILD = Path(__file__).resolve().parents[1] / "build"
KINDS = ("valid", "damaged")
GOOD = ("accepted", "refused")
BLOCK = 500


def read(row: Any) -> str:
    """What Python says of a workload: "ok" or the message of the refusal."""
    try:
        build(row, "workload")
    except UnderstudyError as error:
        return str(error)
    return "ok"


def answers(texts: Sequence[str]) -> list[str]:
    """What C says of workloads, each a line."""
    program = BUILD / "bin" / "workload_lines"
    lines = "".join(f"{text}\n" for text in texts).encode("utf-8", "surrogatepass")
    done = subprocess.run([program], input=lines, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    found = done.stdout.decode("utf-8", "replace").split("\n")[:-1]
    assert len(found) == len(texts)
    return found


def damaged(rng: Random, row: Any) -> Any:
    """The value with one change somewhere."""
    row = copy.deepcopy(row)
    at, key = row, ""
    while True:
        key = rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
        if not isinstance(at[key], dict | list) or not at[key] or rng.random() < 0.1:
            break
        at = at[key]
    kind = rng.random()
    if kind < 0.3:
        del at[key]
    elif kind < 0.4 and isinstance(at, list):
        at.insert(key, copy.deepcopy(at[key]))
    elif kind < 0.5 and isinstance(at, dict):
        at[rng.choice(["do", "x", "at", "open", "read", "repeat"])] = copy.deepcopy(at[key])
    else:
        others = [None, -1, 0, 1, 7, 1 << 62, 1 << 63, 0.5, "x", "close", [], {}, [1], True, False]
        at[key] = rng.choice(others)
    return row


def program(kind: str, seed: int) -> Any:
    """The instructions of a seed."""
    rng = Random(f"{kind} {seed}")
    row = row_of(build(valid(rng), "workload"))
    return damaged(rng, row) if kind == "damaged" else row


def verdict(ours: str, its: str) -> str:
    """What came of a case: `accepted`, `refused`, or how Python and C disagree. The player refuses
    less: it reads some programs that no keys mean."""
    if ours == its == "ok":
        return "accepted"
    if ours != "ok" and "\n" not in ours:
        return "refused"
    return f"Python says {ours}, C says {its}"


def block(kind: str, seeds: range) -> list[tuple[int, str]]:
    """What came of some cases."""
    rows = [program(kind, seed) for seed in seeds]
    found = answers([json.dumps(row) for row in rows])
    return [(n, verdict(read(row), c)) for n, row, c in zip(seeds, rows, found, strict=True)]


def compare(kind: str, first: int, count: int) -> tuple[Counter[str], list[tuple[int, str]]]:
    """How many cases came to what, and the disagreements."""
    counts: Counter[str] = Counter()
    wrong = []
    blocks = [range(n, min(n + BLOCK, first + count)) for n in range(first, first + count, BLOCK)]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for rows in pool.map(block, [kind] * len(blocks), blocks):
            for seed, what in rows:
                counts[what if what in GOOD else "disagreed"] += 1
                if what not in GOOD:
                    wrong.append((seed, what))
    return counts, wrong


def usage(count: int) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """How many of so many valid workloads use a feature, and have a stream with two of them."""
    single: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for seed in range(count):
        streams = features(valid(Random(f"valid {seed}")))
        single.update(set().union(*streams))
        pairs.update(
            {pair for found in streams for pair in combinations(sorted(found & PAIRED), 2)}
        )
    return single, pairs


def _print_usage(count: int) -> None:
    single, pairs = usage(count)
    for name in sorted(single):
        print(f"{single[name]:7} {name}")
    for pair in combinations(sorted(PAIRED), 2):
        print(f"{pairs[pair]:7} {' and '.join(pair)}")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="the first case; default: 0")
    parser.add_argument("--count", type=int, default=1000, help="of each kind; default: 1000")
    parser.add_argument("--kind", choices=KINDS, action="append", help="default: all")
    parser.add_argument("--features", type=int, help="only count what so many valid ones use")
    given = parser.parse_args()
    if given.features:
        _print_usage(given.features)
        return
    failed = 0
    for kind in given.kind or KINDS:
        counts, wrong = compare(kind, given.seed, given.count)
        print(
            f"{kind}: " + ", ".join(f"{counts[k]} {k}" for k in (*GOOD, "disagreed")), flush=True
        )
        for seed, what in wrong:
            print(f"{kind} {seed}: {what}")
        failed += len(wrong)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
