"""What Python and the player say of the same workloads."""

import json
import subprocess
from collections.abc import Sequence
from typing import Any

from understudy.contracts.workload import build
from understudy.errors import UnderstudyError
from understudy.paths import ROOT

PROGRAM = ROOT / "build" / "bin" / "workload_lines"


def read(row: Any) -> str:
    """What Python says of a workload: "ok" or the message of the refusal."""
    try:
        build(row, "workload")
    except UnderstudyError as error:
        return str(error)
    return "ok"


def answers(rows: Sequence[Any]) -> list[str]:
    """What the player says of each workload: "ok" or the message of the refusal."""
    lines = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    done = subprocess.run([PROGRAM], input=lines, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    said = done.stdout.decode("utf-8", "replace").split("\n")[:-1]
    assert len(said) == len(rows)
    return said
