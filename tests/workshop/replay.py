"""Play the descriptions of the logs under Darshan, and compare with the originals."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from tests.workshop.cases import Case
from tests.workshop.compare import LIMIT
from tests.workshop.live import BASE, MPI
from understudy.contracts.workload import load
from understudy.errors import UnderstudyError
from understudy.files import write_text
from understudy.judge.fidelity.stream_fidelity import compare
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.observations.observed_logs import observe
from understudy.readers.darshan import read
from understudy.reframe.bases.observer import SETTINGS, settings

PLAYER = Path(__file__).resolve().parents[2] / "build" / "bin" / "understudy-replay"


def play(log: Path, case: Case, runtime: str) -> dict[str, Any]:
    """What of a log and of its replica was compared: by stream or interface and quantity."""
    folder = BASE / "replay"
    shutil.rmtree(folder, ignore_errors=True)
    data = folder / "data"
    data.mkdir(parents=True)
    described, replica = folder / "described.json", folder / "replica.darshan"
    try:
        write_text(described, read(log, name=case.name).to_text())
    except UnderstudyError as error:
        return {"reason": f"not described: {str(error).partition(': ')[2]}"}
    (folder / SETTINGS).write_text("\n".join([*settings(str(data)), ""]))
    environment = {
        **os.environ,
        **MPI,
        "DARSHAN_CONFIG_PATH": str(folder / SETTINGS),
        "DARSHAN_LOGFILE": str(replica),
    }
    preload = ["env", "-u", "LD_BIND_NOW", f"LD_PRELOAD={runtime}/lib/libdarshan.so"]
    command = [str(PLAYER), "-w", str(described), "-o", str(data), "-O", str(folder / "r.json")]
    ranks = load(described).ranks
    done = subprocess.run(
        ["mpirun", "-n", str(ranks), *preload, *command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return {"reason": f"not played: {done.stderr.strip().splitlines()[-1]}"}
    original = observe(log)
    comparison = compare(original, observe(replica, original), tolerance_fraction=LIMIT)
    failures = [f for f in comparison.failures() if "timeline:" not in f]
    failures += [
        f"{name}: {m.quantity}: {m.original} became {m.replica} ({m.error:+.1%})"
        for name, m in comparison.rows()
        if m.quantity == "timeline" and m.error is not None and abs(m.error) > LIMIT_FRACTION
    ]
    rows = [
        [layer.name, m.quantity, m.original, m.replica, round(m.error, 4)]
        for layer in comparison.layers
        for m in layer.measures
        if m.error is not None
    ]
    shutil.rmtree(folder)
    dumps = sum(
        int(m.replica.replace(",", ""))
        for pair in comparison.pairs
        for m in pair.measures
        if m.quantity == "dumps"
    )
    return {"dumps": dumps, "failures": failures, "rows": rows}


def save(replicas: dict[str, Any], target: Path) -> None:
    """Merge these replicas into the file of all."""
    all_replicas = json.loads(target.read_text()) if target.exists() else {}
    all_replicas.update(replicas)
    lines = [
        f" {json.dumps(name)}: {json.dumps(all_replicas[name])}" for name in sorted(all_replicas)
    ]
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n")
