"""Strict reading of descriptors, of this version, of the one before, and of instructions.

An unknown or missing key, a wrong type or an inconsistent sum is an `UnderstudyError` that names
the file, the key and what was expected.
"""

import json
import marshal
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from understudy.contracts import strict
from understudy.contracts.valid import TYPES, Check, explaining, validator
from understudy.contracts.workload import migration, program_reader
from understudy.errors import UnderstudyError
from understudy.files import read_text
from understudy.program import key_rules, patterns, rules
from understudy.program.descriptor import old_schema, program_schema, schema
from understudy.program.instructions import Stream
from understudy.program.types import KEYS, SCHEMA, Provenance, Scaling, Source
from understudy.program.workload import Workload


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
    said = row.get("schema") if isinstance(row, dict) else None
    if isinstance(said, str) and said not in (SCHEMA, KEYS, migration.OLD):
        got = json.dumps(said, ensure_ascii=False)
        raise UnderstudyError(f"{where}: schema: expected {SCHEMA!r}, got {got}")
    worst = _worst(row, _version(row))
    if worst is not None:
        key, message = _fault(worst)
        raise UnderstudyError(f"{where}: {key}: {message}")
    if is_program(row):
        row = _with_shared_bodies(row)
        _check_instructions(row, where)
        streams = program_reader.streams_of(row, where)
    else:
        row = migration.migrated(row) if migration.is_old(row) else row
        for key, message in _key_faults(row):
            raise UnderstudyError(f"{where}: {key}: {message}")
        streams = patterns.streams_of(map(migration.pattern_of, row["streams"]), row["ranks"])
    workload = _workload(row, streams)
    rules.check(workload, where)
    return workload


def _key_faults(row: Any) -> Iterator[rules.Fault]:
    """Those of a descriptor of the second version."""
    return key_rules.faults([migration.pattern_of(s) for s in row["streams"]], row["ranks"])


def is_program(row: Any) -> bool:
    """True if the document states that it is a workload of instructions."""
    return isinstance(row, dict) and row.get("schema") == SCHEMA


def _version(row: Any) -> str:
    if is_program(row):
        return SCHEMA
    return migration.OLD if migration.is_old(row) else KEYS


@cache
def _words() -> tuple[list[str], list[str]]:
    """The instructions that are a word, and the keys that say which one an object is."""
    words, *objects = program_schema()["$defs"]["instruction"]["anyOf"]
    return words["enum"], [branch["$ref"].rpartition("/")[2] for branch in objects]


def _with_shared_bodies(row: Any) -> Any:
    """The row with one list for equal bodies of steps: thousands of steps often differ in their
    times alone, and a body that they share is checked and read once. 1, 1.0 and true are not
    equal here."""
    bodies: dict[bytes, Any] = {}

    def shared(step: Any) -> Any:
        do = step["do"]
        return step | {"do": bodies.setdefault(marshal.dumps(do, 2), do)}

    streams = [s | {"steps": list(map(shared, s["steps"]))} for s in row["streams"]]
    return row | {"streams": streams}


def _check_instructions(row: Any, where: str) -> None:
    """Each by the schema of its kind, which says more than that of any."""
    sound: set[int] = set()  # identities of bodies, which the row keeps
    for k, stream in enumerate(row["streams"]):
        for j, step in enumerate(stream["steps"]):
            if id(step["do"]) not in sound:
                _check_body(step["do"], f"streams[{k}].steps[{j}].do", where)
                sound.add(id(step["do"]))


def _check_body(body: Any, at: str, where: str) -> None:
    words, verbs = _words()
    for i, instruction in enumerate(body):
        here = f"{at}[{i}]"
        if isinstance(instruction, str):
            if instruction not in words:
                raise UnderstudyError(
                    f"{where}: {here}: expected one of {', '.join(words)}, got {instruction!r}"
                )
            continue
        verb = next((v for v in verbs if v in instruction), None)
        if verb is None:
            raise UnderstudyError(
                f"{where}: {here}: expected an object with the key {' or '.join(verbs)}"
            )
        worst = _worst(instruction, verb)
        if worst is not None:
            key, message = _fault(worst)
            key = "" if key == TOP else f".{key}"
            raise UnderstudyError(f"{where}: {here}{key}: {message}")
        if verb == "calls":
            _check_calls(instruction["do"], f"{here}.do", where)
            continue
        inner = "in_turn" if verb == "in_turn" else "do"
        _check_body(instruction.get(inner, []), f"{here}.{inner}", where)


def _check_calls(rows: Any, at: str, where: str) -> None:
    """Each by the schema of its kind."""
    for i, row in enumerate(rows):
        here = f"{at}[{i}]"
        kind = next((k for k in ("repeat", "ranks") if isinstance(row, dict) and k in row), "call")
        if kind == "call" and isinstance(row, dict) and "call" in row:
            kind = f"call_{row['call']}"
            if not isinstance(row["call"], str) or kind not in program_schema()["$defs"]:
                names = [k[5:] for k in program_schema()["$defs"] if k.startswith("call_")]
                expected = f"expected one of {', '.join(names)}"
                raise UnderstudyError(f"{where}: {here}.call: {expected}, got {row['call']!r}")
        elif kind == "call":
            expected = "expected an object with call, repeat or ranks"
            raise UnderstudyError(f"{where}: {here}: {expected}")
        worst = _worst(row, kind if kind.startswith("call_") else f"calls_{kind}")
        if worst is not None:
            key, message = _fault(worst)
            key = "" if key == TOP else f".{key}"
            raise UnderstudyError(f"{where}: {here}{key}: {message}")
        if not kind.startswith("call_"):
            _check_calls(row["do"], f"{here}.do", where)


def faults(row: Any) -> Iterator[rules.Fault]:
    """The key and the message of every fault of a JSON value: those of the schema, or if there is
    none, those of the rules, of which one may hide others."""
    wanted = _version(row)
    if not _valid(wanted)(row):
        yield from (_fault(_of_rule(error)) for error in _errors(row, wanted))
    elif wanted == SCHEMA:
        try:
            _check_instructions(row, "")
            workload = _workload(row, program_reader.streams_of(row, ""))
        except UnderstudyError as error:
            key, _, message = str(error).removeprefix(": ").partition(": ")
            yield key, message
        else:
            yield from rules.faults(workload)
    else:
        yield from _key_faults(migration.migrated(row) if migration.is_old(row) else row)


def is_current(text: str) -> bool:
    """True if a valid descriptor states this version, and not one before."""
    return is_program(json.loads(text))


@cache
def _schema(name: str) -> Any:
    """The schema of a version, of which that of instructions leaves open what each of these is; or
    of an instruction."""
    if name in (KEYS, migration.OLD):
        return schema() if name == KEYS else old_schema()
    parts = program_schema()["$defs"] | {"instruction": {"type": ["string", "object"]}}
    parts |= {"call": {"type": "object"}}
    return (program_schema() if name == SCHEMA else parts[name]) | {"$defs": parts}


@cache
def _valid(name: str) -> Check:
    return validator(_schema(name))


def _worst(row: Any, name: str) -> Any:
    """The most informative schema error, or None if the row is valid."""
    if _valid(name)(row):
        return None
    import jsonschema  # takes 0.1 s to import, so only where needed

    worst = jsonschema.exceptions.best_match(_errors(row, name))
    return None if worst is None else _of_rule(worst)


def _errors(row: Any, name: str) -> Iterator[Any]:
    """Every schema error."""
    import jsonschema

    base = jsonschema.Draft202012Validator
    # As in the player: integers have no decimal point and fit in 64 bits; NaN is not a number.
    types = base.TYPE_CHECKER.redefine_many(
        {kind: lambda _, v, check=TYPES[kind]: check(v) for kind in ("integer", "number")}
    )
    slow = explaining(_schema(name), type_checker=types)
    errors: Iterator[Any] = slow.iter_errors(row)
    return errors


def _of_rule(error: Any) -> Any:
    """For an object with a known rule, the error in the branch of that rule; for one that might be
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
    """Text of a jsonschema error: what was expected and what was found."""
    rule, value = str(error.validator), error.validator_value
    if rule == "required":
        missing = next(k for k in value if k not in error.instance)
        return f"key {missing!r} is missing, expected {', '.join(value)}"
    if rule == "additionalProperties":
        properties = error.schema["properties"]
        unknown = next(k for k in error.instance if k not in properties)
        return f"key {unknown!r} is unknown, expected {', '.join(properties)}"
    if rule == "oneOf" and not all("properties" in branch for branch in value):
        expected = "an object or null"
    elif rule == "anyOf":
        kinds = [", ".join(b["enum"]) if "enum" in b else _WORDS[b["type"]] for b in value]
        expected = " or ".join(kinds)
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


TOP = "top level"


def _key(path: Iterable[str | int]) -> str:
    text = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).lstrip(".")
    return text or TOP


def _workload(row: dict[str, Any], streams: tuple[Stream, ...]) -> Workload:
    return Workload(
        **{k: row[k] for k in ("name", "description", "ranks", "runtime_s", "compute")},
        scaling=Scaling(**row["scaling"]),
        source=Source(**(row["source"] | {"notes": tuple(row["source"]["notes"])})),
        provenance=tuple(Provenance(**p) for p in row["provenance"]),
        streams=streams,
    )
