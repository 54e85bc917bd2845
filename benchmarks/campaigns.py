"""Real campaigns: sets of sessions on one disk, unchanged or throttled, compared pair by pair.

    PYTHONPATH=python:. python benchmarks/campaigns.py DIR [--pairs 20] [--sessions 5]
        [--losses 0.2 0.5] [--loss-pairs 3] [--rate 60e6] [--before COMMAND]

Each pair has sessions of its own, before and after, which share none with another pair: the check
Replay with a canary, in a control group whose writing to the disk of DIR is limited (cgroup 1,
blkio; needs root). The rate after is the same, or lower by a loss. Then `understudy compare
--fail-below` judges each pair. Records and output stay in DIR, and a run that was stopped goes on
where it ended. COMMAND runs before each session, such as one that waits for a machine to be free.
"""

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.support import sides
from understudy import paths
from understudy.contracts.workload import Dump, Stream, Variable

ROOT = Path(__file__).resolve().parents[1]
BLKIO = Path("/sys/fs/cgroup/blkio")
LIMIT = "blkio.throttle.write_bps_device"
FAIL_BELOW = "10%"
RANKS, BYTES = 2, 12 << 20  # of each rank
CHECK = [
    "-n", "^Replay", "-P", "workload=bench", "-P", "method=posix", "-P", "stripe_count=default",
    "-S", "fsync=1", "-S", "canary=1", "-S", "verify=0", "-S", "time_scale=0",
]  # fmt: skip


def device(folder: Path) -> str:
    """major:minor of the whole disk below the folder's file system."""
    number = folder.stat().st_dev
    block = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    if (block / "partition").exists():
        block = block.parent
    return (block / "dev").read_text().strip()


def checkpoint() -> str:
    """A workload of one checkpoint, many times what the limit lets through at once (0.1 s)."""
    data = Variable(name="data", type="byte", shape=(RANKS * BYTES,))
    stream = Stream(
        name="checkpoint", role="checkpoint", operation="write", files="new",
        layout="file-per-process", method="posix", transfer_bytes=1 << 20,
        dumps=(Dump(time_s=0, variables=(data,)),),
    )  # fmt: skip
    return sides.workload(RANKS, stream)


class Group:
    """A control group of our own, removed at the end."""

    def __init__(self, of: Path) -> None:
        self.path = BLKIO / f"understudy-{os.getpid()}"
        self.device = device(of)

    def __enter__(self) -> "Group":
        self.path.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        self.path.rmdir()

    def limit(self, rate: float) -> None:
        (self.path / LIMIT).write_text(f"{self.device} {rate:.0f}")

    def command(self, argv: list[str]) -> list[str]:
        return ["sh", "-c", f'echo $$ >{self.path}/cgroup.procs && exec "$@"', "sh", *argv]


def session(group: Group, folder: Path, campaign: str, repetitions: int) -> None:
    """One session of ReFrame, at the rate of the group."""
    reframe = [
        "reframe", "-r",
        "-C", str(paths.where("config")), "-c", str(ROOT / "checks" / "replay.py"),
        "--system", "localhost:disk", *CHECK, "-S", f"repetitions={repetitions}",
        "-S", f"campaign={campaign}", "--prefix", str(folder / "reframe"),
    ]  # fmt: skip
    workloads = folder / "workloads"
    workloads.mkdir(exist_ok=True)
    (workloads / "bench.json").write_text(checkpoint())
    environment = sides.environment() | {
        "UNDERSTUDY_WORKLOADS": str(workloads),
        "UNDERSTUDY_RECORDS": str(folder / "records"),
        "UNDERSTUDY_OUTPUT": str(folder / "out"),
    }
    done = subprocess.run(
        group.command(reframe), cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"a session ended with status {done.returncode}:\n{done.stdout}{done.stderr}")


def compared(folder: Path, name: str) -> tuple[int, dict[str, Any]]:
    """Exit status and verdicts of one pair."""
    done = subprocess.run(
        [
            sys.executable, "-m", "understudy", "compare", f"campaign:{name}-before",
            f"campaign:{name}-after", "--folder", folder / "records", "--fail-below", FAIL_BELOW,
            "--json",
        ],
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode not in (0, 1, 3):
        sys.exit(done.stderr)
    return done.returncode, json.loads(done.stdout)


def kept(folder: Path) -> Counter[str]:
    """Sessions of each campaign that are kept already."""
    if not (folder / "records").is_dir():
        return Counter()
    done = subprocess.run(
        [sys.executable, "-m", "understudy", "records", "list", "--json", "--folder",
         folder / "records"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows = map(json.loads, done.stdout.splitlines())
    return Counter(name for row in rows for name in row["campaign"])


def report(folder: Path, pairs: list[tuple[str, float]]) -> None:
    print("| pair | loss | exit status | verdicts | change and interval | cause |")
    print("|---|---|---|---|---|---|")
    statuses: dict[float, Counter[str]] = {}
    for name, loss in pairs:
        status, found = compared(folder, name)
        verdicts = found["verdicts"]
        for one in verdicts:
            states = statuses.setdefault(loss, Counter())
            states[one["state"]] += 1
        statuses[loss][f"exit {status}"] += 1
        states_ = ", ".join(v["state"] for v in verdicts) or "none"
        changes = ", ".join(
            f"{100 * (v['ratio'] - 1):+.1f} % ({100 * ((v['low'] or 0) - 1):+.1f} to "
            f"{100 * ((v['high'] or 0) - 1):+.1f})" for v in verdicts
        )  # fmt: skip
        causes = ", ".join(dict.fromkeys(v["cause"] for v in verdicts if v["cause"]))
        print(f"| {name} | {loss:.0%} | {status} | {states_} | {changes} | {causes} |")
    for loss, counts in sorted(statuses.items()):
        told = ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
        print(f"loss {loss:.0%}: {told}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="on the disk to throttle")
    parser.add_argument("--pairs", type=int, default=20, help="without a change")
    parser.add_argument("--losses", type=float, nargs="*", default=[0.2, 0.5])
    parser.add_argument("--loss-pairs", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=5, help="on each side of a pair")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--rate", type=float, default=60e6, help="bytes/s without a loss")
    parser.add_argument("--before", help="command to run before each session")
    parser.add_argument("--only-report", action="store_true")
    args = parser.parse_args()
    folder = args.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    lossy = [(f"loss{100 * loss:.0f}-{i}", loss) for i in range(args.loss_pairs)
             for loss in args.losses]  # fmt: skip
    same = [(f"same-{i}", 0.0) for i in range(args.pairs)]
    pairs: list[tuple[str, float]] = []  # losses early, and not all in one part of the day
    while same or lossy:
        pairs += same[:2] + lossy[:1]
        del same[:2], lossy[:1]
    if not args.only_report:
        have = kept(folder)
        with Group(folder) as group:
            for name, loss in pairs:
                for side, rate in (("before", args.rate), ("after", args.rate * (1 - loss))):
                    campaign = f"{name}-{side}"
                    for _ in range(args.sessions - have[campaign]):
                        if args.before:
                            subprocess.run(args.before, shell=True, check=True)
                        group.limit(rate)
                        session(group, folder, campaign, args.repetitions)
                status, _ = compared(folder, name)
                print(f"{name}: exit status {status}", file=sys.stderr, flush=True)
    report(folder, pairs)


if __name__ == "__main__":
    main()
