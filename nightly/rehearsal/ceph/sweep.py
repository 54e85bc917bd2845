"""Cases: is the bandwidth that of the OSDs that a file is on?

Each OSD's traffic is limited, so that it is slower than everything else. A file whose largest
share on one OSD is s is written with an OSD's rate / s, whatever its stripe count: two objects on
one OSD halve the bandwidth. Where its objects are decides what is expected of it, and the OSDs'
own counters confirm it. A host can only be too busy for that bandwidth, so that the fastest run
counts, and a run that is slow is repeated.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nightly.rehearsal.ceph import placement
from nightly.rehearsal.ceph.cluster import MBIT_BYTES, throttle
from nightly.rehearsal.ceph.layouts import check_objects
from nightly.rehearsal.ceph.stage import MIB, Skip, Stage, expect, files_of
from nightly.rehearsal.ceph.striping import Layout, expected_rate
from tests.support.needs import lacking

RATE_MBIT = 6.0  # of an OSD
SLOW = 4  # times slower: the straggler
COUNTS = (1, 2, 4, 8)
REPEATS = 2  # of a job
AGGREGATORS = (1, 2)
TRIES = 6  # of a run
SIZE = 8 * MIB
DENSE = 0.9  # at least that of a file's size is written: ADIOS leaves holes
BAND = (0.6, 1.25)  # of the expected bandwidth; headers below, bursts above


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One run."""

    count: int
    rate: float  # bytes per second
    expected: float
    shares: Sequence[float]

    @property
    def even(self) -> bool:
        """Are the stripes on different OSDs?"""
        return max(self.shares) < 1.5 / self.count  # metadata too are written

    @property
    def decides(self) -> bool:
        """Was the host fast enough for the bandwidth of the OSDs, and are the stripes apart?"""
        return self.even and self.rate > BAND[0] * self.expected


@contextmanager
def limited(rates: Sequence[float]) -> Any:
    throttle(rates)
    try:
        yield
    finally:
        throttle([])


def rate_of(measured: Any) -> float:
    """Bytes per second of the only dump, from the first call to the last."""
    [dump] = measured["repetitions"][0]["streams"][0]["dumps"]
    phases = [phase for phase in dump["phases"] if phase["operations"]]
    start = min(phase["first_start_s"] for phase in phases)
    return float(dump["bytes"]) / (max(phase["last_end_s"] for phase in phases) - start)


def point(count: int, rate: float, moved: Sequence[int], rates: Sequence[float]) -> Point:
    shares = [number / sum(moved) for number in moved]
    expected = expected_rate(shares, [mbit * MBIT_BYTES for mbit in rates])
    return Point(count=count, rate=rate, expected=expected, shares=shares)


def difference(after: Sequence[int], before: Sequence[int]) -> list[int]:
    return [a - b for a, b in zip(after, before, strict=True)]


def play(
    stage: Stage,
    words: Sequence[str | Path],
    count: int,
    ahead: int = 0,
    slow: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Point:
    """One run, on a file whose stripes are on different OSDs and which `ahead` others precede.

    `slow`: the OSD of the object of that number is slower than the others.
    """
    cluster = stage.cluster
    osd_of = placement.placed_by(cluster)
    objects = max(count, 0 if slow is None else slow + 1)
    inode = placement.advance(stage.mount, ahead, objects, osd_of)
    rates = [RATE_MBIT] * cluster.osds
    if slow is not None:
        rates[osd_of(placement.object_name(inode, slow))] /= SLOW
    with limited(rates):
        before = cluster.written()
        measured = stage.measured(words, environment=environment)
        moved = difference(cluster.written(), before)
    placed = [0] * cluster.osds
    for path in files_of(Path(words[words.index("-o") + 1])):
        for number, size in cluster.objects(path.stat().st_ino).items():
            placed[osd_of(placement.object_name(path.stat().st_ino, number))] += size
    expect(sum(placed) >= SIZE, f"objects of {placed} bytes on the OSDs, expected {SIZE} in all")
    lacking = [osd for osd, size in enumerate(placed) if moved[osd] < DENSE * size]
    expect(not lacking, f"OSDs got {moved} bytes, and have objects of {placed}")
    return point(count, rate_of(measured), placed, rates)


def decided(run: Callable[[], Point]) -> list[Point]:
    """Runs until one decides, at most TRIES."""
    points = [run()]
    while not points[-1].decides and len(points) < TRIES:
        points.append(run())
    return points


def check(points: Sequence[Point]) -> str:
    """The bandwidth by stripe count, as text, if it is that of the placement.

    No run can be faster. Where the host is too busy to be as fast, nothing is decided.
    """
    rows, busy = [], False
    for count in sorted({measured.count for measured in points}):
        runs = [measured for measured in points if measured.count == count]
        rates = [measured.rate / MIB for measured in runs]
        ratios = [measured.rate / measured.expected for measured in runs]
        busy = busy or max(ratios) < BAND[0]
        uneven = sum(not measured.even for measured in runs)
        note = f", {uneven} with stripes that share an OSD" if uneven else ""
        rows.append(
            f"{count}: {max(rates):.1f} (the fastest of {len(runs)}{note}; "
            f"{max(ratios):.2f} of what the OSDs' shares imply)"
        )
        expect(max(ratios) < BAND[1], f"faster than the OSDs: {rows[-1]}")
    text = f"MiB/s by stripe count: {'; '.join(rows)}"
    if busy:
        raise Skip(f"this host is too busy for the bandwidth, placement is right: {text}")
    return text


def growth(points: Sequence[Point], less: int, more: int) -> float:
    """How much faster the larger stripe count is, of runs with stripes on different OSDs."""
    rates = {
        count: [measured.rate for measured in points if measured.count == count and measured.even]
        for count in (less, more)
    }
    for count, even_rates in rates.items():
        shares = [[round(share, 2) for share in measured.shares] for measured in points]
        expect(
            even_rates,
            f"stripe count {count}: no run with its stripes on different OSDs: {shares}",
        )
    return max(rates[more]) / max(rates[less])


def sweep(stage: Stage) -> str:
    """The player alone: the bandwidth follows the stripe count."""
    points = [
        measured for count in COUNTS for measured in decided(lambda n=count: by_player(stage, n))
    ]
    text = check(points)
    expect(growth(points, 1, 4) > 2.5, f"stripe count 4 is not 2.5 times as fast as 1: {text}")
    return text


def by_player(stage: Stage, count: int, slow: int | None = None) -> Point:
    """The player makes its directory, then the file."""
    workload = stage.workload("sweep", "shared", SIZE)
    given = ("-a", "posix", "-e", "-k", "--stripe-count", str(count))
    run = stage.mount / "run"
    try:
        return play(stage, stage.player(workload, run, *given), count, ahead=1, slow=slow)
    finally:
        shutil.rmtree(run, ignore_errors=True)


def straggler(stage: Stage) -> str:
    """One slow OSD makes a file on all OSDs slower than one on four others."""
    last = stage.cluster.osds - 1
    points = [
        measured
        for count in (4, last + 1)
        for measured in decided(lambda n=count: by_player(stage, n, slow=last))
    ]
    text = check(points)
    expect(growth(points, 4, last + 1) < 1, f"the slow OSD does not count: {text}")
    return text


def adios(stage: Stage) -> str:
    """The genuine ADIOS: its method MPI_LUSTRE, whose ioctls become layouts of CephFS."""
    if reason := lacking("ADIOS 1.13"):
        raise Skip(reason)
    expect(bool(stage.methods("adios")), "this build of the player has no ADIOS")
    library = stage.base / "lustre_on_ceph.so"
    source = Path(__file__).with_name("lustre_on_ceph.c")
    stage.succeed("cc", "-std=c11", "-O2", "-shared", "-fPIC", "-o", library, source, "-ldl")
    preload = {"LD_PRELOAD": str(library)}
    workload = stage.workload("sweep", "shared", SIZE)
    points = []
    for count in (1, 2, 4):
        points += decided(lambda n=count: by_adios(stage, workload, n, preload))
    return check(points)


def by_adios(stage: Stage, workload: Path, count: int, preload: Mapping[str, str]) -> Point:
    with stage.directory("adios") as run:
        given = ["-a", "adios", "-m", "adios.method=MPI_LUSTRE", "-e", "-k"]
        given += ["-m", f"adios.stripe_count={count}", "-m", "adios.stripe_size=1MiB"]
        words = stage.player(workload, run, *given)
        outcome = play(stage, words, count, environment=preload)
        [path] = [path for path in files_of(run) if path.stat().st_size >= SIZE]
        layout = Layout.of(path)
        expect((layout.count, layout.unit) == (count, MIB), f"{path.name}: {layout}")
        expect(check_objects(stage, path) == count, f"{path.name}: objects")
        [entry] = json.loads(stage.result.read_text())["striping"]
        expect(entry["applied"]["stripe_count"] == count, f"recorded: {entry['applied']}")
        return outcome


def checks(stage: Stage) -> str:
    """ReFrame's check Replay, with records, on what `understudy system new` writes."""
    log = stage.base / "placement.log"
    # The directory that the check makes is ahead of the file.
    module = f"PYTHONPATH={stage.root} {sys.executable} -B -m {placement.__name__}"
    environment = site(stage, "cephfs", f"{module} {stage.mount} 1 {log}")
    stage.workload("striped", "shared", SIZE)
    counts = ",".join(map(str, COUNTS))
    words = [
        "reframe",
        "-c",
        stage.root / "checks",
        "-r",
        "--system",
        "cephfs",
        "--exec-policy=serial",
        "-n",
        "Replay",
        "-P",
        "workload=striped",
        "-P",
        "method=mpiio",
        "-P",
        f"stripe_count={counts}",
        "-S",
        "Replay.fsync=1",
        f"--repeat={REPEATS}",
    ]
    rates = [RATE_MBIT] * stage.cluster.osds
    with limited(rates):
        done = stage.run(*words, environment=environment, limit_s=600)
    expect(done.status == 0, f"reframe: status {done.status}: {(done.out + done.err)[-1500:]}")
    jobs = [json.loads(line) for line in log.read_text().splitlines()]
    ends = [job["written"] for job in jobs[1:]] + [stage.cluster.written()]
    points, osd_of = [], placement.placed_by(stage.cluster)
    for job, end in zip(jobs, ends, strict=True):
        record = read_record(Path(environment["UNDERSTUDY_OUTPUT"]), Path(job["job"]).name)
        count = record["storage"]["asked"]["stripe_count"]
        [stream] = record["measurement"]["striping"]
        expect(stream["applied"]["stripe_count"] == count, f"recorded: {stream}")
        moved = difference(end, job["written"])
        placed = [0] * stage.cluster.osds
        for number, size in Layout.of(stage.mount, "dir").striped(count).objects(SIZE).items():
            placed[osd_of(placement.object_name(job["inode"], number))] += size
        # The client gives a file another inode where others made files at the same time.
        if all(got >= DENSE * size for got, size in zip(moved, placed, strict=True)):
            points.append(point(count, rate_of(record["measurement"]), placed, rates))
    expect(len(jobs) == len(COUNTS) * REPEATS, f"{len(jobs)} runs:\n{done.out[-1500:]}")
    lacking = set(COUNTS) - {measured.count for measured in points}
    expect(not lacking, f"stripe counts {sorted(lacking)}: no run whose bytes are on its OSDs")
    text = check(points)
    expect(growth(points, 1, 4) > 2.5, f"stripe count 4 is not 2.5 times as fast as 1: {text}")
    return text


def heat_map(stage: Stage) -> str:
    """The page's heat map of stripe counts and aggregators, from sessions of ReFrame with each."""
    module = f"PYTHONPATH={stage.root} {sys.executable} -B -m {placement.__name__}"
    environment = site(stage, "heat", f"{module} {stage.mount} 1 {stage.base / 'heat.log'}")
    output = Path(environment["UNDERSTUDY_OUTPUT"])
    stage.workload("heated", "shared", SIZE)
    for aggregators in AGGREGATORS:
        words = [
            "reframe",
            "-c",
            stage.root / "checks",
            "-r",
            "--system",
            "heat",
            "--exec-policy=serial",
            "-n",
            "Replay",
            "-P",
            "workload=heated",
            "-P",
            "method=mpiio",
            "-P",
            "stripe_count=1,4",
            "-S",
            "Replay.fsync=1",
            "-S",
            "Replay.collective=1",
            "-S",
            f"Replay.hints=cb_nodes={aggregators}",
        ]
        with limited([3 * RATE_MBIT] * stage.cluster.osds):
            done = stage.run(*words, environment=environment, limit_s=300)
        expect(done.status == 0, f"reframe: status {done.status}: {(done.out + done.err)[-1500:]}")
    cells = {}
    for path in output.glob("records/*/*.json.gz"):
        record = json.loads(gzip.decompress(path.read_bytes()))
        hints = record["measurement"]["striping"][0]["applied"]["hints"]
        count = record["storage"]["asked"]["stripe_count"]
        cells[count, int(hints["cb_nodes"])] = rate_of(record["measurement"]) / MIB
    expect(sorted(cells) == [(c, a) for c in (1, 4) for a in AGGREGATORS], f"recorded: {cells}")
    page = output / "page.html"
    stage.succeed("understudy", "report", output, "-o", page)
    drawn = re.search(r'<figure id="heated-\w+-heatmap">.*?</figure>', page.read_text(), re.DOTALL)
    expect(drawn, "the page has no heat map")
    assert drawn is not None
    for speed in cells.values():
        expect(f">{speed:.3g}<" in drawn[0], f"{speed:.3g} MiB/s is not in the heat map")
    best = [max(speed for (c, _), speed in cells.items() if c == count) for count in (1, 4)]
    text = "; ".join(f"{c}, {a}: {speed:.1f}" for (c, a), speed in sorted(cells.items()))
    expect(best[1] > 1.5 * best[0], f"stripe count 4 is not 1.5 times as fast as 1: {text}")
    return f"MiB/s by stripe count and aggregators, as drawn: {text}"


def read_record(output: Path, job: str) -> Any:
    """Of the job with that stage directory."""
    records = read_records(output, job)
    expect(len(records) == 1, f"{output}: records of {job}: {len(records)}, expected 1")
    return records[0]


def read_records(output: Path, job: str | None = None) -> list[Any]:
    """Those that ReFrame kept, of all jobs or of one."""
    paths = [path for path in output.rglob("run.json") if "output" in path.parts]
    return [json.loads(p.read_text()) for p in paths if job is None or job in p.parts]


def site(stage: Stage, name: str, first: str = "") -> dict[str, str]:
    """The file system as a system of that name, of which jobs start with a command; the variables
    of its sessions."""
    here = stage.base / "site" / "systems"
    here.mkdir(parents=True, exist_ok=True)
    tools = stage.base / f"bin-{name}"  # of this host alone: it may have a batch system
    tools.mkdir()
    for program in ("mpirun", "ceph", "bash"):
        if path_of_program := shutil.which(program):
            (tools / program).symlink_to(path_of_program)
    command = shutil.which("understudy")
    assert command is not None
    path = here / f"{name}.py"
    stage.succeed(
        command,
        "system",
        "new",
        name,
        "--scratch",
        str(stage.mount),
        "-o",
        path,
        environment={"PATH": str(tools)},
    )
    text = path.read_text()
    for word in ("STRIPING", '"fuse.ceph-fuse"'):
        expect(word in text, f"understudy system new: no {word} in\n{text}")
    if first:
        text += f'\nfor _one in partitions:\n    _one["prepare_cmds"] = [{first!r}]\n'
        path.write_text(text)
    return {
        "UNDERSTUDY_PATH": str(here.parent),
        "UNDERSTUDY_OUTPUT": str(stage.base / f"out-{name}"),
        "RFM_CONFIG_FILES": str(stage.root / "configs" / "settings.py"),
        "RFM_COLORIZE": "0",
    }
