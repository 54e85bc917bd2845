"""The cases that ReFrame leaves in stage/: those that failed. What passed is moved to output/, so
that output/ alone has no failed case.
"""

import json
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from understudy import producers
from understudy.contracts.run import RECORD_FILE, Identity, Place, Run
from understudy.errors import UnderstudyError

STAGE, OUTPUT = "stage", "output"
SCRIPTS = "rfm_*.sh"  # of the job or the build of a case
DEPTH = 4  # system, partition, environment, case


def beside(path: Path) -> Path | None:
    """The stage of the same sessions, of a folder output; None of any other."""
    name = path.resolve().name
    if name != OUTPUT and not name.startswith(f"{OUTPUT}-"):
        return None
    stage = path.resolve().with_name(STAGE + name.removeprefix(OUTPUT))
    return stage if any(_cases(stage)) else None


def lost(path: Path) -> Iterator[tuple[Path, Run]]:
    """The cases in a stage, or in a folder that has some, that left no record, each with a record
    that says so; a case that has passed since is in output."""
    for stage in [path, *sorted(path.glob(f"{STAGE}*"))]:
        if not stage.resolve().name.startswith(STAGE):
            continue
        for case in _cases(stage):
            if not any(case.rglob(RECORD_FILE)) and not _passed_since(stage, case):
                yield case, _record(stage, case)


def session(report: Path, of: Container[str | None] | None = None) -> dict[str, Any]:
    """ReFrame's report of a session, which is one `of` these."""
    try:
        found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
        skipped(found)
        name = found["session_info"]["uuid"]
    except OSError as error:
        raise UnderstudyError(f"{report}: cannot be read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise UnderstudyError(f"{report}: expected a report of ReFrame (--report-file)") from None
    if of is not None and name not in of:
        raise UnderstudyError(f"{report}: is of the session {name}, of which there is no run")
    return found


def cases(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of a session."""
    return [case for run in found["runs"][:1] for case in run["testcases"]]


def skipped(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Of a session what ReFrame skipped, and why."""
    return [
        (
            f"{case['display_name']} on {case.get('partition', 'no partition')}",
            str(case.get("skip_reason") or "no reason was given"),
        )
        for case in cases(found)
        if case["result"] == "skip"
    ]


def _cases(stage: Path) -> Iterator[Path]:
    for case in sorted(stage.glob("/".join("*" * DEPTH))):
        if case.is_dir() and any(case.glob(SCRIPTS)):
            yield case


def _passed_since(stage: Path, case: Path) -> bool:
    """ReFrame empties both folders of a case before it uses them."""
    output = stage.resolve().with_name(OUTPUT + stage.resolve().name.removeprefix(STAGE))
    return any((output / case.relative_to(stage)).glob("*"))


def _record(stage: Path, case: Path) -> Run:
    system, partition, environment, name = case.relative_to(stage).parts
    return producers.record(
        case / producers.MEASUREMENT_FILE,
        place=Place(system=system, partition=partition, environment=environment),
        identity=Identity(case=name),
        exit_status=None,
        failure=f"the case left no record; what it printed is in {case}",
        row={},
    )
