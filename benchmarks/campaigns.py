"""Real campaigns on file systems of known rate, unchanged or with a loss, and the verdicts of
`understudy compare`.

    PYTHONPATH=python:. python benchmarks/campaigns.py DIR [--pairs 20] [--losses 0.2 0.3 0.5]
        [--loss-pairs 3] [--turns 8] [--rate 60e6] [--first COMMAND]

Each campaign is one of `understudy campaign`: the check Replay with a canary, on two partitions
that are file systems of this behaviour (understudy-slowfs, over DIR). The rate of the partition
`after` is that of `before`, or lower by a loss.

A campaign ends early where every figure is decided. A line is printed for each, and at the end
how often each loss had which verdict. Records,
logs and output stay in DIR, and the same command goes on where it was stopped. COMMAND runs before
each campaign, such as one that waits for the machine to be free.
"""

import argparse
import contextlib
import json
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.support import sides
from nightly.rehearsal.slow import mounted
from understudy.contracts.workload import Dump, Pattern, Variable

ROOT = Path(__file__).resolve().parents[1]
SIDES = ("before", "after")
FAIL_BELOW = "10%"
RANKS, BYTES = 2, 12 << 20  # of each rank
SELECTION = [
    "-c",
    str(ROOT / "checks" / "replay.py"),
    "-n",
    "^Replay",
    "-P",
    "workload=bench",
    "-P",
    "method=posix",
    "-P",
    "stripe_count=default",
    "-S",
    "fsync=1",
    "-S",
    "canary=1",
    "-S",
    "verify=0",
    "-S",
    "time_scale=0",
]
SYSTEM = '''
"""This machine, with a file system of known rate for each side."""

from understudy.reframe.systems import per_filesystem

nodes = {{
    "scheduler": "local", "launcher": "mpirun", "environs": ["throttled"], "max_jobs": 1,
    "features": ["mpi", "shared"],
    "extras": {{
        "max_nodes": 1, "ranks_per_node": 16, "needs": ["mpirun", "understudy-replay"],
        "type": "fuse.slowfs",
    }},
}}
system = {{
    "name": "throttled", "descr": "This machine, throttled", "hostnames": ["^throttled$"],
    "max_local_jobs": 1,
    "partitions": per_filesystem(nodes, **{{
        side: {{"extras": {{"scratch": scratch}}}} for side, scratch in {places!r}.items()
    }}),
}}
environments = [{{
    "name": "throttled", "target_systems": ["throttled"], "cc": "mpicc", "cxx": "", "ftn": "",
    "features": ["mpi"],
}}]
'''


def checkpoint() -> str:
    """A workload of one checkpoint, many times what the limit lets through at once (0.1 s)."""
    data = Variable(name="data", type="byte", shape=(RANKS * BYTES,))
    stream = Pattern(
        name="checkpoint",
        role="checkpoint",
        operation="write",
        files="new",
        layout="file-per-process",
        method="posix",
        transfer_bytes=1 << 20,
        dumps=(Dump(time_s=0, variables=(data,)),),
    )
    return sides.workload(RANKS, stream)


@contextlib.contextmanager
def mounts(folder: Path, **rates: float) -> Iterator[None]:
    """The file systems of both sides, which write so many bytes a second."""
    with contextlib.ExitStack() as stack:
        for side, rate in rates.items():
            places = folder / "scratch" / side, folder / "backing" / side
            for place in places:
                place.mkdir(parents=True, exist_ok=True)
            stack.enter_context(mounted(*places, "--write-rate", f"{rate:.0f}"))
        yield


def understudy(environment: dict[str, str], *words: str, fine: tuple[int, ...]) -> tuple[int, str]:
    """The status and the output of a command, which is not killed but waited for on Ctrl-C."""
    command = [sys.executable, "-m", "understudy", *words]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        out, _ = process.communicate()
    except KeyboardInterrupt:
        process.wait()
        raise
    if process.returncode not in fine:
        sys.exit(f"{shlex.join(command)}: status {process.returncode}")
    return process.returncode, out


def prepared(folder: Path) -> dict[str, str]:
    """The environment of the campaigns in a folder, with its workload and its system."""
    for name in ("site/systems", "workloads"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "site/systems/throttled.py").write_text(
        SYSTEM.lstrip().format(places={side: str(folder / "scratch" / side) for side in SIDES})
    )
    (folder / "workloads/bench.json").write_text(checkpoint())
    return sides.environment() | {
        "UNDERSTUDY_PATH": str(folder / "site"),
        "UNDERSTUDY_WORKLOADS": str(folder / "workloads"),
        "UNDERSTUDY_RECORDS": str(folder / "records"),
        "UNDERSTUDY_OUTPUT": str(folder / "out"),
    }


def campaign(name: str, turns: int, environment: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """Run it, or what is left of it: exit status and verdicts of the comparison."""
    _, printed = understudy(
        environment,
        "campaign",
        name,
        "--system",
        "throttled",
        "--before",
        "partition=before",
        "--after",
        "partition=after",
        "--turns",
        str(turns),
        "--",
        *SELECTION,
        fine=(0,),
    )
    words = shlex.split(printed.splitlines()[-1])[1:]
    status, text = understudy(
        environment, *words, "--fail-below", FAIL_BELOW, "--json", fine=(0, 1, 3)
    )
    return status, json.loads(text)


def line(name: str, loss: float, status: int, outcome: dict[str, Any], took_s: float) -> str:
    verdicts = outcome["verdicts"]
    states = ", ".join(verdict["state"] for verdict in verdicts) or "none"
    changes = ", ".join(
        f"{100 * (verdict['ratio'] - 1):+.1f} % ({100 * (verdict['low'] - 1):+.1f} to "
        f"{100 * (verdict['high'] - 1):+.1f})"
        for verdict in verdicts
    )
    causes = ", ".join(dict.fromkeys(verdict["cause"] for verdict in verdicts if verdict["cause"]))
    turns = ", ".join(dict.fromkeys(str(verdict["nights_with_both"]) for verdict in verdicts))
    return (
        f"| {name} | {loss:.0%} | {turns} | {status} | {states} | {changes} | {causes} | "
        f"{took_s:.0f} s |"
    )


def planned(pairs: int, losses: list[float], of_each: int) -> list[tuple[str, float]]:
    """Name and loss of each campaign; losses early, and not all in one part of the day."""
    lossy = [(f"loss{100 * loss:.0f}-{i}", loss) for i in range(of_each) for loss in losses]
    same = [(f"same-{i}", 0.0) for i in range(pairs)]
    campaigns: list[tuple[str, float]] = []
    while same or lossy:
        campaigns += same[:2] + lossy[:1]
        del same[:2], lossy[:1]
    return campaigns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="for the files of all campaigns")
    parser.add_argument("--pairs", type=int, default=20, help="campaigns without a change")
    parser.add_argument("--losses", type=float, nargs="*", default=[0.2, 0.3, 0.5])
    parser.add_argument("--loss-pairs", type=int, default=3, help="campaigns of each loss")
    parser.add_argument("--turns", type=int, default=8, help="of a campaign")
    parser.add_argument("--rate", type=float, default=60e6, help="bytes/s without a loss")
    parser.add_argument("--first", help="command to run before each campaign")
    args = parser.parse_args()
    folder = args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    counts: dict[float, Counter[str]] = {}
    print("| campaign | loss | turns | status | verdict | change and interval | cause | took |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    environment = prepared(folder)
    for name, loss in planned(args.pairs, args.losses, args.loss_pairs):
        if args.first:
            subprocess.run(args.first, shell=True, check=True)
        begin = time.monotonic()
        with mounts(folder, before=args.rate, after=args.rate * (1 - loss)):
            status, outcome = campaign(name, args.turns, environment)
        print(line(name, loss, status, outcome, time.monotonic() - begin), flush=True)
        of_loss = counts.setdefault(loss, Counter())
        of_loss.update(verdict["state"] for verdict in outcome["verdicts"])
        of_loss[f"exit {status}"] += 1
    for loss, of_loss in sorted(counts.items()):
        told = ", ".join(f"{n} {what}" for what, n in sorted(of_loss.items()))
        print(f"loss {loss:.0%}: {told}")


if __name__ == "__main__":
    main()
