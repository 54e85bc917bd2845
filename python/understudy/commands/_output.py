"""Output of commands for programs: JSON of a contract in schemas/, and JUnit XML."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

import click

from understudy.errors import printable

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def document(kind: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """With the name and version of its contract."""
    return {"schema": f"understudy/{kind}/1", **row}


def print_json(row: Mapping[str, Any]) -> None:
    click.echo(json.dumps(_finite(row), indent=1, ensure_ascii=True, allow_nan=False))


def _finite(value: Any) -> Any:
    """JSON has no infinity: null is no bound."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(member) for key, member in value.items()}
    return [_finite(member) for member in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCase:
    """A test case of JUnit; `fault` is "failure", "error", or empty where it passed."""

    name: str
    fault: str = ""
    kind: str = ""
    message: str = ""


def junit(suite: str, cases: Sequence[TestCase]) -> str:
    """JUnit XML of the command `suite`."""
    failures, errors = (
        sum(case.fault == fault for case in cases) for fault in ("failure", "error")
    )
    body = "".join(_testcase(suite, case) for case in cases)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuite name="understudy {suite}" tests="{len(cases)}" failures="{failures}" '
        f'errors="{errors}">\n{body}</testsuite>\n'
    )


def _testcase(suite: str, case: TestCase) -> str:
    inside = ""
    if case.fault:
        inside = f"<{case.fault} type={_attribute(case.kind)} message={_attribute(case.message)}/>"
    return (
        f'  <testcase classname="understudy.{suite}" name={_attribute(case.name)}>{inside}'
        "</testcase>\n"
    )


def _attribute(text: str) -> str:
    """Quoted, without characters that XML cannot hold."""
    return quoteattr(printable(text))
