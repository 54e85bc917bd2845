"""Where the checkout keeps its rooms. Nothing else in the package builds such a path."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "schemas"
WORKLOADS = ROOT / "workloads"
PROXIES = ROOT / "proxies"
REFERENCES = ROOT / "configs" / "references"
REPORTS = ROOT / "reports"


def workload_directories() -> list[Path]:
    """The folders that hold workloads: the room, then those of UNDERSTUDY_WORKLOADS (a:b)."""
    more = os.environ.get("UNDERSTUDY_WORKLOADS", "")
    return [WORKLOADS, *(Path(p) for p in more.split(":") if p)]
