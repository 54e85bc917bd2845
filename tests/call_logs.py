"""What the player does with workloads, call by call.

    python -m tests.call_logs                     # compares all with tests/golden/call_logs.json
    python -m tests.call_logs --keep FOLDER NAME  # keeps the logs of one for a look
    python -m tests.call_logs --freeze            # writes them anew

The program `calllog` is the player whose methods write their calls down in place of their I/O
(proxies/tests/calllog.c), and its own calls on names. Names are workloads/NAME.json,
samples/NAME.json and traces/NAME (a description, scaled to at most 4 ranks).
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from tests.support import call_lines
from understudy.contracts.workload import Workload, load
from understudy.model.scaling import scale
from understudy.paths import ROOT
from understudy.program.instructions import Program
from understudy.readers import darshan

PROGRAM = ROOT / "build" / "bin" / "calllog"
GOLDEN = ROOT / "tests" / "golden" / "call_logs.json"
DIGITS, MOST_RANKS, FEW_RANKS = 16, 16, 4

# What a program says: calls of methods. Calls on names are the player's own, most of them checks
# (is it still the file that the run made?); others depend on what it says nothing of.
SAID = re.compile(r"(open|define|i?write|i?read|sync|close) .*")
UNSAID = {
    r" creates$": "",  # whether the player or the library makes a file: by options of the storage
    r" run/\S+\.made\b\S*": " made",  # which of its own files an operation opens
    r"^(define .*) rows \d+": r"\1 rows 0",  # where an appended dataset of HDF5 goes on, and
    r"_state\d+": "",  # its name where it cannot: no byte of another method depends on them
}


def names() -> Iterator[str]:
    """Those of all that is frozen."""
    for folder, kind in (("workloads", "workloads"), ("proxies/tests/samples", "samples")):
        for path in sorted((ROOT / folder).glob("*.json")):
            if load(path).ranks <= MOST_RANKS:
                yield f"{kind}/{path.name}"
    yield from (f"traces/{path.name}" for path in sorted((ROOT / "traces").glob("*.darshan")))


def workload(name: str) -> Workload:
    """The workload of that name."""
    kind, _, file = name.partition("/")
    if kind != "traces":
        return load(ROOT / {"samples": "proxies/tests/samples"}.get(kind, kind) / file)
    described = darshan.read(ROOT / "traces" / file, partial=True)
    many = described.ranks > FEW_RANKS
    return scale(described, FEW_RANKS, "strong") if many else described


def played(text: str, ranks: int, folder: Path) -> dict[str, str]:
    """The log of each rank that makes calls, of a workload that is played in the folder; an
    `AssertionError` with the player's message if it is refused or fails."""
    logs = folder / "logs"
    logs.mkdir()
    (folder / "workload.json").write_text(text, encoding="utf-8")
    command = ["mpirun", "-n", str(ranks), str(PROGRAM), "-w", "workload.json", "-o", "run"]
    command += ["-O", "result.json", "--time-scale", "0"]
    done = subprocess.run(
        ["bash", "-c", '. "$0/setup-env.sh" && exec "$@"', str(ROOT), *command],
        cwd=folder,
        env=os.environ | {"UND_CALLLOG": str(logs)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    paths = [path for rank in range(ranks) if (path := logs / f"rank.{rank}").exists()]
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


def difference(program: Program, logs: dict[str, str]) -> str:
    """The first call that the player makes otherwise than the program says; empty if none."""
    for rank, expected in enumerate(call_lines.lines(program)):
        calls = said(logs.get(f"rank.{rank}", ""))
        for number, (line, other) in enumerate(zip_longest(expected, calls)):
            if line != other:
                return f"rank {rank} call {number}: {line}, but the player makes: {other}"
    return ""


def said(log: str) -> Iterator[str]:
    """The lines of a log that a program says."""
    for line in filter(SAID.fullmatch, log.splitlines()):
        for pattern, other in UNSAID.items():
            line = re.sub(pattern, other, line)
        yield line


def digest(logs: dict[str, str]) -> str:
    """A digest of the calls of all ranks."""
    text = "".join(f"{name}\n{log}" for name, log in logs.items())
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--freeze", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    digests = {}
    for name in given.names or names():
        played_one = workload(name)
        with tempfile.TemporaryDirectory() as temporary:
            folder = given.keep or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            digests[name] = digest(played(played_one.to_text(), played_one.ranks, folder))
    if given.freeze:
        GOLDEN.write_text(json.dumps(digests, indent=0) + "\n", encoding="utf-8")
        return 0
    frozen = json.loads(GOLDEN.read_text(encoding="utf-8"))
    other = [name for name, each in digests.items() if each != frozen[name]]
    print(*other, f"{len(digests)} workloads, {len(other)} with other calls", sep="\n")
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
