"""ReFrame's report of a session (--report-file): its cases, and what it skipped."""

import json
from collections.abc import Container
from pathlib import Path
from typing import Any

from understudy.errors import UnderstudyError
from understudy.files import read_text


def load(report: Path, of: Container[str | None] | None = None) -> dict[str, Any]:
    """ReFrame's report of a session, which is one `of` these."""
    try:
        session_report: dict[str, Any] = json.loads(read_text(report))
        skipped(session_report)
        name = session_report["session_info"]["uuid"] if of is not None else None
    except OSError as error:
        raise UnderstudyError(f"{report}: cannot be read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise UnderstudyError(f"{report}: expected a report of ReFrame (--report-file)") from None
    if of is not None and name not in of:
        raise UnderstudyError(f"{report}: is of the session {name}, of which there is no run")
    return session_report


def cases(session_report: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of a session."""
    return [case for run in session_report["runs"][:1] for case in run["testcases"]]


def skipped(session_report: dict[str, Any]) -> list[tuple[str, str]]:
    """Cases that ReFrame skipped in a session, and why."""
    return [
        (
            f"{case['display_name']} on {case.get('partition', 'no partition')}",
            str(case.get("skip_reason") or "no reason was given"),
        )
        for case in cases(session_report)
        if case["result"] == "skip"
    ]
