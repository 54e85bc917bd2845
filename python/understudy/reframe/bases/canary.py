"""The canary: a short run of IOR and mdtest before and after a replica, in the same job.

It tells whether a replica is slower because the storage is: what IOR and mdtest lose, the storage
has lost. Where they are missing, the player makes the same pattern, and the record says so.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from understudy.contracts.measurement import Played, Rate
from understudy.contracts.workload import (
    Dump,
    Operation,
    Pattern,
    Provenance,
    Source,
    Variable,
    Workload,
    streams_of,
)
from understudy.errors import UnderstudyError
from understudy.files import read_text
from understudy.producers import ior, mdtest, player

FOLDER = Path("canary")
BEFORE, AFTER = "before", "after"
WORKLOAD = "canary.json"
BLOCK_BYTES = 16 << 20  # of each rank
TRANSFER_BYTES = 2 << 20
FILES = 100  # of each rank
IOR = f"ior -a POSIX -F -t {TRANSFER_BYTES} -b {BLOCK_BYTES} -w -r -e -C"
MDTEST = f"mdtest -n {FILES} -u -L -F -N 1 -i 1"
TIMED_OUT = ("124", "137")  # of timeout
NOTE = "ior or mdtest is not on PATH; the player made the same pattern"
DATA, CREATE, STAT, REMOVE = "data", "create", "stat", "unlink"
# What mdtest calls the operations of the player.
OPERATIONS = {CREATE: "File creation", STAT: "File stat", REMOVE: "File removal"}


def workload(ranks: int) -> Workload:
    """The pattern of IOR and mdtest as one workload: a file for each rank, then empty files."""
    common: dict[str, Any] = {
        "operation": "write",
        "files": "new",
        "layout": "file-per-process",
        "method": "posix",
        "transfer_bytes": TRANSFER_BYTES,
    }
    block = Variable(name="block", type="byte", shape=(ranks * BLOCK_BYTES,))
    data = Pattern(
        name=DATA, role="checkpoint", dumps=(Dump(time_s=0, variables=(block,)),), **common
    )
    metadata = [
        Pattern(
            name=name,
            role="output",
            **common,
            dumps=(
                Dump(
                    time_s=0,
                    operations=tuple(
                        Operation(operation=operation, runs=((ranks, FILES),))
                        for operation in needed
                    ),
                ),
            ),
        )
        for name, needed in (
            (CREATE, (CREATE,)),
            (STAT, (CREATE, STAT)),
            (REMOVE, (CREATE, REMOVE)),
        )
    ]
    return Workload(
        name="canary",
        description="As IOR -F and mdtest -u -F.",
        ranks=ranks,
        streams=streams_of((data, *metadata), ranks),
        source=Source(format="hand"),
        provenance=tuple(
            Provenance(path=path, origin="assumed", how="pattern of IOR and mdtest")
            for path in ("/ranks", "/runtime_s", "/streams")
        ),
    )


def limit_s(ranks: int, bytes_per_s: float) -> int:
    """How long each of its programs may take."""
    return 60 + round(4 * ranks * BLOCK_BYTES / bytes_per_s)


def lines(when: str, launch: str, seconds: int) -> Iterator[str]:
    """Lines of the job. A canary that fails, or that does not end within `seconds` for each
    program, is recorded and does not end the job."""
    launch = f"timeout -k 10 {seconds} {launch}"
    folder = FOLDER / when
    data = '"$dir/canary"'
    failed = f"|| echo $? >{folder}/failed"
    play = (
        f"understudy-replay -w {WORKLOAD} -o {data} -O {folder}/player.json -e --restart "
        "--shift-ranks 1 --time-scale 0"
    )
    yield f"mkdir -p {folder}"
    yield "if command -v ior >/dev/null && command -v mdtest >/dev/null; then"
    yield f"  mkdir {data}"
    yield (
        f"  {launch} {IOR} -o {data}/data -O summaryFormat=JSON "
        f"-O summaryFile={folder}/ior.json >{folder}/ior.out {failed}"
    )
    yield f"  {launch} {MDTEST} -d {data}/files >{folder}/mdtest.out {failed}"
    yield "else"
    yield f"  {launch} {play} {failed}"
    yield "fi"
    yield f'rm -rf {data}; sync -f "$dir"'


def read(stage: Path) -> list[dict[str, Any]]:
    """For the run record: what the canary measured before and after, as far as it ran."""
    return [_read(stage / FOLDER / when, when) for when in (BEFORE, AFTER)]


def _read(folder: Path, when: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "when": when,
        "program": "ior, mdtest",
        "note": None,
        "failure": None,
        "rates": [],
    }
    try:
        if not folder.is_dir():
            raise UnderstudyError("it did not run")
        if (folder / "player.json").exists() or not (folder / "mdtest.out").exists():
            row |= {"program": "player", "note": NOTE}
        if (folder / "failed").exists():
            status = read_text(folder / "failed", errors="replace").strip()
            timed_out = " (its time limit)" if status in TIMED_OUT else ""
            raise UnderstudyError(f"it ended with status {status}{timed_out}")
        if row["program"] == "player":
            row["rates"] = list(_of_player(player.read(folder / "player.json")))
        else:
            row["rates"] = list(_of_benchmarks(folder))
    except (UnderstudyError, OSError) as error:
        row["failure"] = str(error).replace(f"{folder}/", "")
    return row


def _of_benchmarks(folder: Path) -> Iterator[dict[str, Any]]:
    """Bandwidths and rates; the times of IOR's phases are left out."""
    row = ior.of_summary(folder / "ior.json", name="canary", started="", command_line=())
    also = mdtest.of_output(
        folder / "mdtest.out",
        name="canary",
        options={},
        started="",
        command_line=(),
    )
    for rate in map(lambda r: Rate(**r), [*row["rates"], *also["rates"]]):
        if rate.metric in ("bandwidth_bytes_per_s", "rate_per_s"):
            yield _rate(rate.operation, rate.metric, rate.unit, rate.value)


def _of_player(played: Played) -> Iterator[dict[str, Any]]:
    for stream in played.repetitions[0].streams:
        if stream.name.startswith(DATA):
            yield _rate(
                stream.operation, "bandwidth_bytes_per_s", "bytes/s", stream.bandwidth_bytes_per_s
            )
            continue
        [dump] = stream.dumps
        [phase] = [p for p in dump.phases if p.phase == "metadata"]
        elapsed_s = phase.last_end_s - phase.first_start_s
        # A stream that stats or removes files creates them first: its rate is that of both.
        rate = phase.operations / elapsed_s if elapsed_s > 0 else 0.0
        yield _rate(OPERATIONS[stream.name], "rate_per_s", "1/s", rate)


def _rate(operation: str, metric: str, unit: str, value: float) -> dict[str, Any]:
    return {"operation": operation, "metric": metric, "unit": unit, "value": value}
