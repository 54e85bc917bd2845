"""Hold the readers of workloads in Python and in C against each other with random workloads.

    python -m tests.random_workloads --count 100000 --seed 1
    python -m tests.random_workloads --features 10000

Three kinds of texts are read by both sides: valid workloads, damaged ones (a change or two) and
torn ones (a change of the text). Both have to accept a text, or both to refuse it for a fault of
one class. The class of a fault is

* its kind: `syntax` (no JSON, or none that a contract can have: a key twice, a number that does
  not fit in 64 bits), `key` (one that is missing or unknown) or `value` (a type, a range, a
  choice, or a contradiction with another value);
* its place: the key that the message names, such as streams[0].dumps[1].time_s. One side may name
  what the other's place is in (streams[0].dumps[1]), but of what is in a stream at least that.

Reads beyond the end of files that another stream writes are refused by Python alone: they end a
run of the player when it gets there.

Each side reports the first fault that it finds, and looks in another order. The class of C's
fault therefore has to be that of any of the faults that Python finds: in the workload, or in one
with some of the changes. A number, the seed, determines a text: --seed N --count 1 repeats it.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

from tests.support.damaged_workloads import damage, torn, undone
from tests.support.random_workloads import PAIRED, features, valid
from understudy.contracts.workload import reading
from understudy.errors import UnderstudyError

BUILD = Path(__file__).resolve().parents[1] / "build"
KINDS = ("valid", "damaged", "torn")
BLOCK = 500
MESSAGE = re.compile(
    r"workload: (?:(?P<place>[A-Za-z]\w*(?:\[\d+\]|\.\w+)*): )?(?P<text>.*)", re.S
)
KEY = re.compile(r"(?:unknown |the )?key (?:'(\w*)'|\"(\w*)\") is (?:missing|unknown)")
UNKNOWN = re.compile(r'unknown key "(\w*)"')
SUBJECT = re.compile(r"(\w+) is .*, expected ")
SYNTAX = re.compile(
    r"line \d+, column -?\d+: |.*not JSON: |.*key '.*' stands twice|"
    r".*(half of a surrogate pair|U\+0000|expected a finite number, found|levels deep)"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """The class of a refusal."""

    kind: str
    place: str

    def agrees(self, other: "Fault") -> bool:
        """Whether both are of one class."""
        if self.kind != other.kind:
            return False
        short, long = sorted((steps(self.place), steps(other.place)), key=len)
        below_stream = long[:1] != ["streams"] or len(short) > 1
        return short == long or (below_stream and short == long[: len(short)] and bool(short))


def steps(place: str) -> list[str]:
    return re.findall(r"\w+|\[\d+\]", place)


def fault(message: str) -> Fault:
    """The class of a message of either side."""
    found = MESSAGE.fullmatch(message)
    assert found, message
    place, text = found["place"] or "", found["text"]
    if SYNTAX.match(text) or (not place and text.startswith("expected an object")):
        return Fault("syntax", "")
    named = KEY.match(text) or UNKNOWN.match(text)
    if named:
        return Fault("key", f"{place}.{named[1] or (named[2] if named.re is KEY else '') or ''}")
    subject = SUBJECT.match(text)
    if subject and not text.startswith("expected"):
        place += f".{subject[1]}"
    return Fault("value", place)


def read(text: str) -> str:
    """What Python says of a workload: "ok" or the message of the refusal."""
    try:
        reading.parse(text, "workload")
    except UnderstudyError as error:
        return str(error)
    return "ok"


def answers(texts: Sequence[str], option: str = "--check") -> list[str]:
    """What C says of workloads; a text of several lines comes as a string of JSON."""
    program = BUILD / "bin" / "workload_lines"
    lines = "".join(f"{text}\n" for text in texts).encode("utf-8", "surrogatepass")
    done = subprocess.run([program, option], input=lines, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    found = done.stdout.decode("utf-8", "replace").split("\n")[:-1]
    assert len(found) == len(texts)
    return [json.loads(line) if line.startswith('"') else line for line in found]


@dataclass(frozen=True, slots=True)
class Case:
    """A text, and the values that have some of its changes, the last one all."""

    text: str
    rows: list[Any]

    @staticmethod
    def of(kind: str, seed: int) -> "Case":
        """The case of a seed."""
        rng = Random(f"{kind} {seed}")
        original = valid(rng)
        rows = damage(original, rng) if kind == "damaged" else [original]
        text = json.dumps(rows[-1], ensure_ascii=rng.random() < 0.5)
        if kind == "damaged":
            return Case(text, [*undone(rows[-1], original), *rows])
        if kind == "torn":
            text = torn(text, rng)
            with suppress(ValueError):
                rows = [json.loads(text)]
        return Case(text, rows)

    def faults(self) -> Iterator[Fault]:
        """Every fault that Python finds, also with some of the changes."""
        for row in reversed(self.rows):
            if not _fits(row):
                yield Fault("syntax", "")
            with suppress(LookupError):  # behind a fault, a rule may not find what it looks for
                for key, message in reading.faults(row):
                    yield fault(f"workload: {key}: {message}".replace(": top level: ", ": "))


def _fits(value: Any) -> bool:
    """Whether all integers fit in 64 bits."""
    if isinstance(value, dict | list):
        return all(map(_fits, value.values() if isinstance(value, dict) else value))
    return type(value) is not int or -(1 << 63) <= value < 1 << 63


def verdict(case: Case, ours: str, its: str) -> str:
    """What came of a case: `accepted`, `refused`, `refused for another fault`, or how the two
    sides, Python and C, disagree."""
    if its == "ok" and BEYOND.search(ours):
        return "refused"
    if "ok" in (ours, its):
        return "accepted" if ours == its else f"Python says {ours}, C says {its}"
    ours = ours.replace(": top level: ", ": ")
    if fault(its).agrees(fault(ours)):
        return "refused"
    if any(fault(its).agrees(other) for other in case.faults()):
        return "refused for another fault"
    return f"Python says {ours}, C says {its}"


BEYOND = re.compile(r"expected at most \d+ bytes of file \d+ by then")
GOOD = ("accepted", "refused", "refused for another fault")


def block(kind: str, seeds: range) -> list[tuple[int, str]]:
    """What came of some cases."""
    cases = [Case.of(kind, seed) for seed in seeds]
    found = answers([case.text for case in cases])
    return [
        (seed, verdict(case, read(case.text), its))
        for seed, case, its in zip(seeds, cases, found, strict=True)
    ]


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
