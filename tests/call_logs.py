"""What the player does with a workload, call by call, frozen as digests.

    python -m tests.call_logs                     # compares all with tests/golden/call_logs.json
    python -m tests.call_logs --keep FOLDER NAME  # keeps the logs of one for a look
    python -m tests.call_logs --freeze            # writes them anew

The program `calllog` is the player whose methods write their calls down in place of their I/O
(proxies/tests/calllog.c), and its own calls on names. Names are workloads/NAME.json,
samples/NAME.json, traces/NAME (a description, scaled to at most 4 ranks) and random/SEED.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

from tests.support.random_workloads import Limits, Row, can_be_played, playable, valid
from understudy.contracts.workload import build, load
from understudy.model.scaling import scale
from understudy.paths import ROOT
from understudy.readers import darshan

PROGRAM = ROOT / "build" / "bin" / "calllog"
GOLDEN = ROOT / "tests" / "golden" / "call_logs.json"
RANDOM = Limits(ranks=4, streams=3, entries=4, variables=3, bytes=2048, files=2, long_repeat=10)
COUNT, DIGITS, MOST_RANKS, FEW_RANKS = 2000, 16, 16, 4


def names() -> Iterator[str]:
    """Of all that is frozen."""
    for folder, kind in (("workloads", "workloads"), ("proxies/tests/samples", "samples")):
        for path in sorted((ROOT / folder).glob("*.json")):
            if load(path).ranks <= MOST_RANKS:
                yield f"{kind}/{path.name}"
    yield from (f"traces/{path.name}" for path in sorted((ROOT / "traces").glob("*.darshan")))
    yield from (f"random/{seed}" for seed in range(COUNT) if can_be_played(random(seed)))


def random(seed: int) -> Row:
    """A random workload whose methods are those of any build."""
    return playable(valid(Random(f"call log {seed}"), RANDOM))


def workload(name: str, folder: Path) -> tuple[Path, int]:
    """The file of the workload with that name, and its ranks."""
    kind, _, rest = name.partition("/")
    path = folder / "workload.json"
    if kind == "random":
        described = build(random(int(rest)), name)
        path.write_text(described.to_text(), encoding="utf-8")
        return path, described.ranks
    if kind == "traces":
        described = darshan.read(ROOT / "traces" / rest, partial=True)
        if described.ranks > FEW_RANKS:
            described = scale(described, FEW_RANKS, "strong")
        path.write_text(described.to_text(), encoding="utf-8")
        return path, described.ranks
    given = ROOT / {"workloads": "workloads", "samples": "proxies/tests/samples"}[kind] / rest
    return given, load(given).ranks


def logs(name: str, folder: Path) -> list[Path]:
    """One file for each rank that makes calls; none where the player refuses the workload or
    fails, as it also does with I/O."""
    made, ranks = workload(name, folder)
    return played(made, ranks, folder)


def played(made: Path, ranks: int, folder: Path) -> list[Path]:
    """The same of a workload in a file."""
    (folder / "logs").mkdir()
    command = ["mpirun", "-n", str(ranks), str(PROGRAM), "-w", str(made), "-o", "run"]
    command += ["-O", "result.json", "--time-scale", "0"]
    done = subprocess.run(
        ["bash", "-c", '. "$0/setup-env.sh" && exec "$@"', str(ROOT), *command],
        cwd=folder,
        env=os.environ | {"UND_CALLLOG": str(folder / "logs")},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        return []
    return [p for r in range(ranks) if (p := folder / "logs" / f"rank.{r}").exists()]


def digest(name: str) -> str:
    """Of the calls of all ranks, or "none"."""
    with tempfile.TemporaryDirectory() as folder:
        found = logs(name, Path(folder))
        made = [f"{p.name}\n".encode() + p.read_bytes() for p in found]
    return hashlib.sha256(b"".join(made)).hexdigest()[:DIGITS] if made else "none"


def digests(chosen: list[str]) -> dict[str, str]:
    """Of workloads, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(chosen, pool.map(digest, chosen), strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--freeze", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    chosen = given.names or list(names())
    if given.keep:
        given.keep.mkdir(parents=True)
        for path in map(partial(logs, folder=given.keep), chosen):
            print(*path, sep="\n")
        return 0
    found = digests(chosen)
    if given.freeze:
        GOLDEN.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
        return 0
    frozen = json.loads(GOLDEN.read_text(encoding="utf-8"))
    other = [name for name in chosen if found[name] != frozen[name]]
    print(*other, f"{len(chosen)} workloads, {len(other)} with other calls", sep="\n")
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
