"""The real logs that the tests read: of the checkout, of pydarshan and of a folder by choice."""

import hashlib
import importlib.util
import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "UNDERSTUDY_DARSHAN_LOGS"


def pydarshan_logs() -> list[Path]:
    """The example logs inside the PyPI package darshan, none where it is not installed."""
    spec = importlib.util.find_spec("darshan")
    if spec is None or spec.origin is None:
        return []
    return sorted(Path(spec.origin).parent.rglob("*.darshan"))


def chosen_logs() -> list[Path]:
    """All logs below the folder that the environment variable UNDERSTUDY_DARSHAN_LOGS names."""
    folder = os.environ.get(VARIABLE)
    return sorted(Path(folder).rglob("*.darshan")) if folder else []


def real_logs() -> list[Path]:
    """Every real log at hand, the same content only once."""
    logs: dict[str, Path] = {}
    for path in [*sorted((ROOT / "traces").glob("*.darshan")), *pydarshan_logs(), *chosen_logs()]:
        logs.setdefault(hashlib.sha256(path.read_bytes()).hexdigest(), path)
    return list(logs.values())
