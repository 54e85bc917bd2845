"""ReFrame's configuration: each file of systems/ adds one system, with no edit here."""

import sys
from pathlib import Path

from understudy.errors import UnderstudyError
from understudy.paths import ROOT
from understudy.reframe.systems import load

OUT = ROOT / "reports" / "out" / "reframe"
OUT.mkdir(parents=True, exist_ok=True)  # ReFrame opens its log file at once

try:
    systems, environments = load(Path(__file__).parent / "systems")
except UnderstudyError as error:
    sys.exit(f"understudy: {error}")
for system in systems:
    system.setdefault("prefix", str(OUT))

site_configuration = {
    "systems": systems,
    "environments": environments,
    "modes": [
        {"name": "serial", "options": ["--exec-policy=serial"]},
        {"name": "accept", "options": ["--exec-policy=serial", "-S require_reference=1"]},
    ],
    "general": [
        {
            "check_search_path": [str(ROOT / "checks")],
            "report_file": str(OUT / "reports" / "{sessionid}.json"),
            "topology_prefix": str(OUT / "topology"),
            "resolve_module_conflicts": False,
        }
    ],
    "logging": [
        {
            "handlers": [
                {
                    "type": "file",
                    "name": str(OUT / "reframe.log"),
                    "level": "debug2",
                    "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
                }
            ],
            "handlers_perflog": [],  # the database below holds the same and more
        }
    ],
    "storage": [{"enable": True, "sqlite_db_file": str(OUT / "results.db")}],
}
