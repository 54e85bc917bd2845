"""The run record (contract: schemas/run.schema.json): everything about one run, in one envelope.

A condition is everything recorded but identity and measured values. Which keys those are stands in
the schema itself (`"condition": false`), so that a new option counts from the day it is recorded.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from understudy.contracts import schema
from understudy.contracts.measurement import Node
from understudy.errors import UnderstudyError
from understudy.files import write_text

KIND = "run"
SCHEMA = "understudy/run/1"
RECORD_FILE = "run.json"
ID_DIGITS = 16
OPTIONAL = ("canary", "cache")  # keys that a record has only where it has a value
OPTIONAL_IDENTITY = ("turn",)
TURN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*/[1-9][0-9]*")  # of a campaign, as in the schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which run it is; `round` counts from 0 where arms are played in turn in one job, `turn` is
    that of a campaign in which sessions are: NAME/3."""

    id: str = ""
    time: str = ""
    session: str | None = None
    campaign: str | None = None
    tags: tuple[str, ...] = ()
    case: str | None = None
    arm: str = ""
    round: int | None = None
    turn: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    system: str | None = None
    partition: str | None = None
    environment: str | None = None
    job_id: str | None = None
    launcher: str | None = None
    nodes: tuple[Node, ...] = ()
    scratch: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """The directory's storage by `understudy-storage`; what was requested, and what applied."""

    type: str | None = None
    source: str | None = None
    mount_point: str | None = None
    mount_options: str | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    total_inodes: int | None = None
    free_inodes: int | None = None
    client_version: str | None = None
    server_version: str | None = None
    health: str | None = None
    default_layout: dict[str, Any] | None = None
    asked: dict[str, Any] = field(default_factory=dict)
    applied: dict[str, Any] = field(default_factory=dict)
    streams: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Software:
    version: str
    commit: str | None = None
    program_sha256: str | None = None
    mpi: str | None = None
    libraries: dict[str, str] = field(default_factory=dict)
    mpi_settings: dict[str, str] = field(default_factory=dict)
    spack_lock: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The workload of a run; of a program, that of the bytes that each process wrote."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Producer:
    """The program and its run; `failure`: why it has no measurement, or why that is invalid."""

    name: str
    workload: Played | None = None
    options: dict[str, Any]
    command_line: tuple[str, ...]
    exit_status: int | None
    failure: str | None


class Sample(NamedTuple):
    """A tuple, since a record has many. `better` is higher, lower or exact; None: of all streams,
    of all repetitions."""

    metric: str
    unit: str
    better: str
    stream: str | None
    repetition: int | None
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """`measurement` is the producer's own document, word for word; None where it has none."""

    identity: Identity
    place: Place
    storage: Storage
    software: Software
    producer: Producer
    measurement: dict[str, Any] | None
    samples: tuple[Sample, ...]
    canary: tuple[dict[str, Any], ...] = ()
    cache: dict[str, Any] | None = None

    @property
    def failed(self) -> bool:
        return self.failure is not None

    @property
    def failure(self) -> str | None:
        """Why the run failed, None where it did not. A status other than 0 is a failure, also
        where the record states none."""
        if self.producer.failure is not None:
            return self.producer.failure
        if self.producer.exit_status:
            return f"it ended with status {self.producer.exit_status}"
        return "it left no measurement" if self.measurement is None else None

    @property
    def fault(self) -> str | None:
        """Why its speed counts for nothing, None where it does: it failed, or wrote or read wrong
        bytes, however fast it was."""
        wrong = ((self.measurement or {}).get("verification") or {}).get("wrong_bytes")
        if self.failure is None and wrong:
            return f"{wrong:,} B read back differ from what was written"
        return self.failure


def load(path: Path) -> Run:
    """The record in a file; one of an earlier version is brought into the form of today."""
    row = schema.read(path, "run record")
    return from_row(row, str(path))


def from_row(row: dict[str, Any], where: str) -> Run:
    """A record of a JSON object; `where` begins messages."""
    kind = schema.kind_of(row, where)
    if kind != KIND:
        raise UnderstudyError(
            f"{where}: schema: expected {SCHEMA}, found {row['schema']}; understudy records "
            "migrate makes a run record of a measurement"
        )
    schema.check(row, where)
    if not schema.is_time(row["identity"]["time"]):
        raise UnderstudyError(
            f"{where}: identity.time: expected a time of the calendar, such as "
            f"2026-01-31T23:59:59Z, found {row['identity']['time']}"
        )
    identity, place, storage, producer = (
        row[key] for key in ("identity", "place", "storage", "producer")
    )
    workload = producer["workload"]
    return Run(
        identity=Identity(**(identity | {"tags": tuple(identity["tags"])})),
        place=Place(**(place | {"nodes": tuple(Node(**node) for node in place["nodes"])})),
        storage=Storage(**(storage | {"streams": tuple(storage["streams"])})),
        software=Software(**row["software"]),
        producer=Producer(
            **(
                producer
                | {
                    "workload": Played(**workload) if workload else None,
                    "command_line": tuple(producer["command_line"]),
                }
            )
        ),
        measurement=row["measurement"],
        samples=tuple([Sample(**sample) for sample in row["samples"]]),
        canary=tuple(row.get("canary", ())),
        cache=row.get("cache"),
    )


def to_row(run: Run) -> dict[str, Any]:
    """The record as a JSON object."""
    samples = [sample._asdict() for sample in run.samples]
    row = _without_empty({"schema": SCHEMA} | asdict(run) | {"samples": samples}, OPTIONAL)
    return row | {"identity": _without_empty(row["identity"], OPTIONAL_IDENTITY)}


def _without_empty(row: dict[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in keys or value}


def write(path: Path, run: Run, like: Path | None = None) -> None:
    """Write a record whole or not at all; one that breaks its contract is not written. It has the
    permissions of the file `like`, by default of the one that it replaces."""
    row = to_row(run)
    text = schema.json_text(row)
    from_row(schema.parse(text, str(path), "run record"), str(path))
    write_text(path, text, like)


# -- conditions -----------------------------------------------------------------------------------

Condition = dict[str, Any]
MISSING = None
_PLAIN = (str, int, float, bool, type(None))


def condition(run: Run) -> Condition:
    """Everything recorded but identity and measured values, as the schema marks them."""
    # What was measured is no part of it, and takes long to copy.
    row = _shallow(replace(run, measurement=None, samples=(), canary=()))
    kept: Condition = _kept({"schema": SCHEMA} | _without_empty(row, OPTIONAL), _of_records())
    return kept


def _shallow(value: Any) -> dict[str, Any]:
    """The fields of a dataclass by name, as they are."""
    return {name: getattr(value, name) for name in value.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """What of an object belongs to the condition: by key the rule of its value, None of what does
    not. `other` is the rule of keys that the schema does not name, `items` that of a list's."""

    keys: dict[str, "_Rule | None"] = field(default_factory=dict)
    other: "_Rule | None" = None
    items: "_Rule | None" = None


_ALL = _Rule()


@cache
def _of_records() -> _Rule:
    contract = schema.current(KIND)
    assert contract is not None, "the package has the schema of the run record"
    return _rule(contract, contract) or _ALL


def _rule(stated: Mapping[str, Any], contract: Mapping[str, Any]) -> _Rule | None:
    if not _counts(stated):
        return None
    stated = _resolved(stated, contract)
    keys = {key: _rule(inner, contract) for key, inner in stated.get("properties", {}).items()}
    other = stated.get("additionalProperties")
    others = _rule(other, contract) if isinstance(other, dict) else _ALL
    listed = stated.get("items")
    items = _rule(listed | {"condition": True}, contract) if listed else _ALL
    if all(inner is _ALL for inner in (*keys.values(), others)) and items in (_ALL, None):
        return _ALL
    return _Rule(keys=keys, other=others, items=items or _ALL)


def _kept(value: Any, rule: _Rule) -> Any:
    """A value without what does not belong to the condition."""
    kind = type(value)
    if kind in _PLAIN or (rule is _ALL and kind is dict):
        return value
    if kind is list or kind is tuple:
        return [_kept(inner, rule.items or _ALL) for inner in value]
    kept = {}
    for key, inner in (value if kind is dict else _shallow(value)).items():
        inner_rule = _ALL if rule is _ALL else rule.keys.get(key, rule.other)
        if inner_rule is not None:
            kept[key] = _kept(inner, inner_rule)
    return kept


def _counts(rule: Mapping[str, Any]) -> bool:
    return rule.get("condition") is not False


def knows(key: str) -> bool:
    """True if a condition can have a key, a.b.c, or keys below it. Options, layouts and libraries
    are of programs: they can have any name."""
    contract = schema.current(KIND)
    assert contract is not None, "the package has the schema of the run record"
    rule: Mapping[str, Any] = contract
    for part in key.split("."):
        inner = _resolved(rule, contract).get("properties", {}).get(part)
        if inner is None:
            free = _resolved(rule, contract)
            return "object" in _types(free) and free.get("additionalProperties") is not False
        if not _counts(_resolved(inner, contract)):
            return False
        rule = inner
    return True


def _types(rule: Mapping[str, Any]) -> Sequence[str]:
    stated = rule.get("type", ())
    return [stated] if isinstance(stated, str) else stated


def _resolved(rule: Mapping[str, Any], contract: Mapping[str, Any]) -> Mapping[str, Any]:
    """A rule with what it refers to."""
    if "$ref" not in rule:
        return rule
    base: dict[str, Any] = contract["$defs"][rule["$ref"].rpartition("/")[2]]
    return base | {k: v for k, v in rule.items() if k != "$ref"}


def short_hash(of: Condition) -> str:
    """Twelve hexadecimal digits that tell conditions apart."""
    return schema.digest(of)[:12]


def differences(conditions: Sequence[Condition]) -> list[dict[str, Any]]:
    """For each condition, the keys, a.b.c, in which not all are equal; a missing key is None."""
    flat = [dict(_leaves(condition, "")) for condition in conditions]
    keys = dict.fromkeys(key for leaves in flat for key in leaves)
    varying = [
        key
        for key in keys
        if len({schema.canonical(leaves.get(key, MISSING)) for leaves in flat}) > 1
    ]
    return [{key: leaves.get(key, MISSING) for key in varying} for leaves in flat]


def _leaves(value: Any, key: str) -> Any:
    """Pairs of key and value; lists are values."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{key}.{name}" if key else name)
    elif value not in ({}, []):
        yield key, value
