"""BP4 and BP5 files of ADIOS2, each a directory: what their metadata state, as an `Output`."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from understudy.adios2.output import Attribute, Blocks, Instance, Output, Variable
from understudy.errors import UnderstudyError

TIMEOUT_S = 300


def read(path: Path, tick: Callable[[float], None] = lambda _: None) -> Output:
    """The output in a BP4 or BP5 file."""
    engine = "BP5" if (path / "mmd.0").is_file() else "BP4"
    command = [sys.executable, "-m", "understudy.adios2.library", str(path.absolute()), engine]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise UnderstudyError(f"{path}: ADIOS2 did not end within {TIMEOUT_S} s") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise UnderstudyError(f"{path}: {said[-1] if said else 'ADIOS2 says nothing'}")
    tick(1.0)
    return _output(path, engine, done.stdout)


def _output(path: Path, engine: str, data: bytes) -> Output:
    instances: dict[str, list[Instance]] = {}
    kinds: dict[str, tuple[str, str]] = {}
    attributes = []
    at = step = steps = 0
    while at < len(data):
        end = data.index(b"\n", at)
        row = json.loads(data[at:end])
        at = end + 1
        if "step" in row:
            step = row["step"]
        elif "end" in row:
            steps = row["end"]
        elif "attribute" in row:
            attributes.append(
                Attribute(name=row["attribute"], type=row["type"], values=tuple(row["values"]))
            )
        else:
            n, rank = row["blocks"], row["rank"]
            numbers = np.frombuffer(data, np.int64, n * (1 + 2 * rank), at)
            at += numbers.nbytes
            blocks = Blocks(
                writers=numbers[:n],
                starts=numbers[n : n + n * rank].reshape(n, rank),
                counts=numbers[n + n * rank :].reshape(n, rank),
            )
            shape = None if row["shape"] is None else tuple(row["shape"])
            kinds[row["variable"]] = (row["type"], row["kind"])
            instances.setdefault(row["variable"], []).append(
                Instance(step=step, shape=shape, blocks=blocks, value=row["value"])
            )
    writers = [i.blocks.writers for rows in instances.values() for i in rows]
    return Output(
        path=path,
        engine=engine,
        writers=1 + max((int(w.max()) for w in writers if len(w)), default=0),
        steps=steps,
        subfiles=len(list(path.glob("data.*"))),
        variables=tuple(
            Variable(name=name, type=kinds[name][0], kind=kinds[name][1], instances=tuple(rows))
            for name, rows in instances.items()
        ),
        attributes=tuple(attributes),
    )
