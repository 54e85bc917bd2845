"""ReFrame's configuration: each file of systems/ adds one system, with no edit here.

UNDERSTUDY_PATH lists directories with systems, checks and other files of users; by default it is
understudy-site in the working directory. Output goes to the
directory that UNDERSTUDY_OUTPUT names; by default to reports/out in a checkout, else to
understudy-out in the working directory.
"""

import sys
from pathlib import Path

# Of a checkout or a prefix of CMake. Appended, since ReFrame 4.10 removes an entry by its index
# once it has imported this file.
_package = Path(__file__).resolve().parents[1] / "python"
if _package.is_dir():
    sys.path.append(str(_package))

from understudy import paths  # noqa: E402
from understudy.errors import UnderstudyError  # noqa: E402
from understudy.reframe.session import session  # noqa: E402
from understudy.reframe.systems import load  # noqa: E402

if paths.where("config") != Path(__file__).resolve():
    sys.exit(
        f"understudy: {__file__}: belongs to another installation than {paths.__file__}; "
        f"expected {paths.where('config')}, as `understudy doctor --paths config` prints it"
    )
try:
    systems, environments = load(paths.directories("systems"))
    checks = sorted({str(path.parent) for path in paths.files("checks", ".py").values()})
    OUT = paths.made_output("reframe")  # ReFrame opens its log file at once
except UnderstudyError as error:
    sys.exit(f"understudy: {error}")
for system in systems:
    system.setdefault("prefix", str(OUT))
session.expect_a_run()
session.discard_early_log()

SERIAL = ["--exec-policy=serial"]
# Without the checks that repeat a run many times.
QUICK = ["-P stripe_count=default", "-S max_bytes=1GiB", "-T darshan", "-x '^(Skel|Transfer)'"]
# Of storage, not of the page cache: data are flushed, and read back by another rank.
STORAGE = [
    "-S Replay.fsync=1",
    "-S Replay.restart=1",
    "-S Replay.drop_cache=1",
    "-S Replay.canary=1",
]
DECIDED = ["-S Skel.must_decide=1"]  # undecided is a failure
# On a stand-in for a system: small workloads on all of four nodes, with a target for each node.
REHEARSAL = [
    "-S scaling=strong",
    "-S ranks=8",
    "-S ranks_per_node=2",
    "-S max_bytes=32MiB",
    "-P stripe_count=default,nodes",
    "-S campaign=rehearsal",
]

# One file for each case, since cases have different values, which ReFrame's head line names.
PERFLOG = [
    {
        "type": "filelog",
        "basedir": str(OUT / "perflogs"),
        "prefix": "%(check_system)s/%(check_partition)s/%(check_hashcode)s",
        "level": "info",
        "append": True,
        "datefmt": "%FT%T%:z",
        "format": (
            "%(check_job_completion_time)s|%(check_result)s|%(check_display_name)s|"
            "%(check_environ)s|%(check_jobid)s|%(check_session)s|%(check_perfvalues)s"
        ),
        "format_perfvars": "%(check_perf_value)s|%(check_perf_unit)s|%(check_perf_ref)s|",
    }
]

site_configuration = {
    "systems": systems,
    "environments": environments,
    "modes": [
        {"name": "serial", "options": SERIAL},
        {"name": "quick", "options": [*SERIAL, *QUICK]},
        {"name": "sweep", "options": [*SERIAL, "-t sweep"]},
        {"name": "scaling", "options": [*SERIAL, "-t scaling"]},
        {"name": "accept", "options": [*SERIAL, "-S require_reference=1", *STORAGE, *DECIDED]},
        {"name": "rehearsal", "options": [*SERIAL, *REHEARSAL]},
    ],
    "general": [
        {
            "check_search_path": checks,
            "report_file": str(OUT / "reports" / "{sessionid}.json"),
            "topology_prefix": str(OUT / "topology"),
            "resolve_module_conflicts": False,
            # No escape sequences in files and mail; RFM_COLORIZE overrides it.
            "colorize": sys.stdout.isatty(),
        }
    ],
    "logging": [
        {
            "handlers": [
                {
                    "type": "file",
                    "name": str(OUT / "reframe.log"),
                    "level": "debug",
                    "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
                }
            ],
            "handlers_perflog": PERFLOG,
        }
    ],
    "storage": [{"enable": True, "sqlite_db_file": str(OUT / "results.db")}],
}
