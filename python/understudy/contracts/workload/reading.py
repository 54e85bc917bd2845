"""Strict reading of descriptors, of this version and of the one before.

An unknown or missing key, a wrong type or an inconsistent sum is an `UnderstudyError` that names
the file, the key and what was expected.
"""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from understudy.contracts import strict
from understudy.contracts.valid import TYPES, Check, explaining, validator
from understudy.contracts.workload import migration
from understudy.errors import UnderstudyError
from understudy.files import read_text
from understudy.semantics import rules
from understudy.semantics.descriptor import old_schema, schema
from understudy.semantics.types import (
    Content,
    Decomposition,
    Dump,
    Lookups,
    Operation,
    Order,
    Provenance,
    Repeat,
    Scaling,
    Source,
    Stream,
    Variable,
    Workload,
)


def load(path: Path) -> Workload:
    """Read and check a descriptor."""
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        other = "not UTF-8 text; expected what understudy describe makes of a log"
        reason = error.strerror if isinstance(error, OSError) else other
        raise UnderstudyError(f"{path}: cannot read the workload: {reason}") from None
    return parse(text, str(path))


def parse(text: str, where: str) -> Workload:
    """A workload from JSON text; `where` names it in messages."""
    return build(strict.decode(text, where, nul=False), where)


def build(row: Any, where: str) -> Workload:
    """A workload from a JSON value; `where` names it in messages."""
    old = migration.is_old(row)
    worst = _worst(row, old)
    if worst is not None:
        key, message = _fault(worst)
        raise UnderstudyError(f"{where}: {key}: {message}")
    workload = _build(migration.migrated(row) if old else row)
    rules.check(workload, where)
    return workload


def faults(row: Any) -> Iterator[rules.Fault]:
    """The key and the message of every fault of a JSON value: those of the schema, or if there is
    none, those of the rules, of which one may hide others."""
    old = migration.is_old(row)
    if _valid(old)(row):
        yield from rules.faults(_build(migration.migrated(row) if old else row))
    else:
        yield from (_fault(_of_rule(error)) for error in _errors(row, old))


def is_current(text: str) -> bool:
    """Whether a valid descriptor states this version, and not the one before."""
    return not migration.is_old(json.loads(text))


@cache
def _valid(old: bool) -> Check:
    return validator(old_schema() if old else schema())


def _worst(row: Any, old: bool) -> Any:
    """The most informative schema error, or None if the row is valid."""
    if _valid(old)(row):
        return None
    import jsonschema  # takes 0.1 s to import, so only where needed

    worst = jsonschema.exceptions.best_match(_errors(row, old))
    return None if worst is None else _of_rule(worst)


def _errors(row: Any, old: bool) -> Iterator[Any]:
    """Every schema error."""
    import jsonschema

    base = jsonschema.Draft202012Validator
    # As in the player: integers have no decimal point and fit in 64 bits; NaN is not a number.
    types = base.TYPE_CHECKER.redefine_many(
        {kind: lambda _, v, check=TYPES[kind]: check(v) for kind in ("integer", "number")}
    )
    slow = explaining(old_schema() if old else schema(), type_checker=types)
    found: Iterator[Any] = slow.iter_errors(row)
    return found


def _of_rule(error: Any) -> Any:
    """Of an object with a known rule, the error in the branch of that rule; of one that might be
    null, the error in the object."""
    import jsonschema

    if error.validator != "oneOf" or not isinstance(error.instance, dict):
        return error
    for n, branch in enumerate(error.validator_value):
        ruled = branch.get("properties", {}).get("rule", {})
        if "$ref" in branch or ruled.get("const", error) == error.instance.get("rule"):
            of_branch = [e for e in error.context if e.schema_path[0] == n]
            return jsonschema.exceptions.best_match(iter(of_branch))
    return error


def _fault(error: Any) -> rules.Fault:
    return _key(error.absolute_path), _expectation(error)


_WORDS = {
    "integer": "an integer of at most 64 bits",
    "number": "a finite number of at most 64 bits",
    "string": "a string",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_PATTERNS = {
    "^/": "a JSON pointer, which starts with /",
    "^[A-Za-z0-9][A-Za-z0-9_.-]*$": "letters, digits, '_', '.' and '-', a letter or digit first",
}


def _expectation(error: Any) -> str:
    """What was expected and what was found, from a jsonschema error."""
    rule, value = str(error.validator), error.validator_value
    if rule == "required":
        missing = next(k for k in value if k not in error.instance)
        return f"key {missing!r} is missing, expected {', '.join(value)}"
    if rule == "additionalProperties":
        known = error.schema["properties"]
        unknown = next(k for k in error.instance if k not in known)
        return f"key {unknown!r} is unknown, expected {', '.join(known)}"
    if rule == "oneOf" and not all("properties" in branch for branch in value):
        expected = "an object or null"
    elif rule == "oneOf":
        rules = " or ".join(b["properties"]["rule"]["const"] for b in value)
        expected = f"an object whose rule is {rules}"
    else:
        kinds = value if isinstance(value, list) else [value]
        expected = {
            "type": lambda: " or ".join(_WORDS[k] for k in kinds),
            "enum": lambda: "one of " + ", ".join(map(str, kinds)),
            "const": lambda: repr(value),
            "minimum": lambda: f"at least {value}",
            "exclusiveMinimum": lambda: f"more than {value}",
            "maximum": lambda: f"at most {value}",
            "minItems": lambda: f"a list of at least {value}",
            "maxItems": lambda: f"a list of at most {value}",
            "minLength": lambda: f"at least {value} character",
            "maxLength": lambda: f"at most {value} characters",
            "pattern": lambda: _PATTERNS[value],
        }[rule]()
    got = json.dumps(error.instance, ensure_ascii=False)
    return f"expected {expected}, got {got if len(got) <= 60 else got[:60] + '…'}"


def _key(path: Iterable[str | int]) -> str:
    text = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")
    return text or "top level"


def _build(row: dict[str, Any]) -> Workload:
    return Workload(
        **{k: row[k] for k in ("name", "description", "ranks", "runtime_s", "compute")},
        scaling=Scaling(**row["scaling"]),
        source=Source(**(row["source"] | {"notes": tuple(row["source"]["notes"])})),
        provenance=tuple(Provenance(**p) for p in row["provenance"]),
        streams=tuple(_build_stream(s) for s in row["streams"]),
    )


def _build_stream(row: dict[str, Any]) -> Stream:
    made = row | {"dumps": tuple(map(_build_dump, row["dumps"]))}
    if "order" in row:
        made["order"] = Order(**row["order"])
    if row.get("lookups"):
        made["lookups"] = Lookups(**row["lookups"])
    return Stream(**(made | {"content": Content(**row["content"])}))


def _build_dump(row: dict[str, Any]) -> Dump:
    made = row | {"variables": tuple(map(_build_variable, row["variables"]))}
    if "repeat" in row:
        made["repeat"] = Repeat(**row["repeat"])
    if "operations" in row:
        made["operations"] = tuple(
            Operation(operation=o["operation"], runs=_pairs(o["runs"])) for o in row["operations"]
        )
    if "skew" in row:
        made["skew"] = tuple((ranks, late_s) for ranks, late_s in row["skew"])
    return Dump(**made)


def _pairs(rows: list[list[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((ranks, each) for ranks, each in rows)


def _build_variable(row: dict[str, Any]) -> Variable:
    rule = row["decomposition"]
    return Variable(
        **(
            row
            | {
                "shape": tuple(row["shape"]),
                "decomposition": Decomposition(
                    rule=rule["rule"],
                    grid=tuple(rule.get("grid", ())),
                    runs=_pairs(rule.get("runs", [])),
                    block=rule.get("block", 0),
                ),
            }
        )
    )
