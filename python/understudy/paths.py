"""Where the checkout keeps its rooms. Nothing else in the package builds such a path."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "schemas"
SIMULATIONS = ROOT / "simulations"
WORKLOADS = ROOT / "workloads"
TRACES = ROOT / "traces"
PROXIES = ROOT / "proxies"
REFERENCES = ROOT / "configs" / "references"
REPORTS = ROOT / "reports"


def workload_directories() -> list[Path]:
    """The folders that hold workloads: the room, then those of UNDERSTUDY_WORKLOADS (a:b)."""
    return [WORKLOADS, *_listed("UNDERSTUDY_WORKLOADS")]


def simulation_directories() -> list[Path]:
    """The folders that hold simulations: the room, then those of UNDERSTUDY_SIMULATIONS (a:b)."""
    return [SIMULATIONS, *_listed("UNDERSTUDY_SIMULATIONS")]


def _listed(variable: str) -> list[Path]:
    return [Path(p) for p in os.environ.get(variable, "").split(":") if p]
