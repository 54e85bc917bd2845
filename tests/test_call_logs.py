"""The player makes the calls that it made before, whatever its code looks like.

CALL_LOGS=1 compares all random workloads, as `python -m tests.call_logs` does.
"""

import json
import os
import re
from pathlib import Path

import pytest

from tests import call_logs
from understudy.contracts.workload import load

FROZEN = json.loads(call_logs.GOLDEN.read_text(encoding="utf-8"))
REFUSED = 53  # mostly by a method that cannot play them
# Once ranks that take turns and flush were to agree on numbers of calls, which they cannot.
ONCE = ["random/715", "random/899", "random/1133"]
EVERY = 1 if "CALL_LOGS" in os.environ else 25
MOVED = re.compile(r"(?m)^write .* bytes (\d+) runs \d+")


def test_all_are_frozen() -> None:
    assert list(FROZEN) == list(call_logs.names())
    none = [name for name, digest in FROZEN.items() if digest == "none"]
    assert all(name.startswith("random/") for name in none)
    assert len(none) == REFUSED


@pytest.mark.parametrize("kind", ["workloads", "samples", "traces", "random"])
def test_the_calls_are_those_of_before(kind: str) -> None:
    named = [name for name in FROZEN if name.startswith(f"{kind}/")]
    chosen = [*named[::EVERY], *ONCE] if kind == "random" else named
    found = call_logs.digests(chosen)
    assert {name: found[name] for name in chosen} == {name: FROZEN[name] for name in chosen}


@pytest.mark.parametrize(
    "name", ["samples/shared.json", "samples/types.json", "workloads/n-m.json"]
)
def test_a_log_has_all_bytes(name: str, tmp_path: Path) -> None:
    made, _ = call_logs.workload(name, tmp_path)
    texts = [p.read_text(encoding="utf-8") for p in call_logs.logs(name, tmp_path)]
    moved = sum(int(n) for text in texts for n in MOVED.findall(text))
    played = load(made)
    assert moved == played.bytes > 0
