"""The sessions that an acceptance is to be decided by
(contract: schemas/plan.schema.json)."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from understudy.contracts import schema
from understudy.errors import UnderstudyError

KIND = "plan"
SCHEMA = f"understudy/{KIND}/1"
DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`sessions` are numbered from 1. `workloads` has the SHA-256 of each mark's workload."""

    marks_sha256: str
    system: str
    since: str
    until: str
    night_s: float
    sessions: int
    workloads: Mapping[str, str | None]
    ledger_head: str | None

    @property
    def sha256(self) -> str:
        return schema.digest({"schema": SCHEMA} | asdict(self))

    @property
    def name(self) -> str:
        return f"accept-{self.sha256[:DIGITS]}"

    def turn(self, number: int) -> str:
        """The turn that the records of a session state, by -S turn=."""
        return f"{self.name}/{number}"

    def text(self) -> str:
        return schema.json_text({"schema": SCHEMA} | asdict(self) | {"sha256": self.sha256})


def load(path: Path) -> Plan:
    """The plan in a file; an UnderstudyError where it was edited."""
    row = schema.read(path, "plan of an acceptance")
    if row.get("schema") != SCHEMA:
        raise UnderstudyError(f"{path}: schema: expected {SCHEMA}, found {row.get('schema')!r}")
    schema.check(row, str(path))
    plan = Plan(**{key: row[key] for key in row if key not in ("schema", "sha256")})
    if plan.sha256 != row["sha256"]:
        raise UnderstudyError(
            f"{path}: sha256: expected {plan.sha256}, found {row['sha256']}: the plan was edited"
        )
    return plan
