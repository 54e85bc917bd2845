"""The fast check of documents agrees with the package jsonschema."""

import copy
import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from understudy.contracts import schema
from understudy.contracts.valid import validator

ROOT = Path(__file__).parents[1]
SCHEMAS = {
    row["$id"]: row
    for row in map(json.loads, (p.read_text() for p in (ROOT / "schemas").rglob("*.schema.json")))
}


def states_a_schema(path: Path) -> bool:
    row = json.loads(path.read_text(encoding="utf-8"))
    return isinstance(row, dict) and schema.NAME.fullmatch(str(row.get("schema"))) is not None


FILES = [
    *sorted((ROOT / "workloads").glob("*.json"))[:3],
    *sorted((ROOT / "tests" / "golden" / "measurements").glob("*.json")),
    *filter(states_a_schema, sorted((ROOT / "schemas" / "old" / "fixtures").rglob("*.json"))),
]
ODD: list[Any] = [None, True, 0, -1, 1.5, "", "x", "a b", [], {}, [1], {"a": 1}, "\n"]


def places(value: Any, depth: int = 0) -> list[tuple[Any, Any]]:
    """Containers and the key of each value in them; a few of each list."""
    items = list(value.items()) if isinstance(value, dict) else list(enumerate(value))[:2]
    spots = [(value, key) for key, _ in items]
    for _, inner in items:
        if isinstance(inner, dict | list):
            spots += places(inner, depth + 1)
    return spots


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_documents_and_what_is_wrong_with_edited_ones(path: Path) -> None:
    row = json.loads(path.read_text(encoding="utf-8"))
    document_schema = SCHEMAS[row["schema"]]
    fast = validator(document_schema)
    slow = jsonschema.Draft202012Validator(document_schema)
    if fast(row):
        schema.check(row, str(path))
    else:
        assert not slow.is_valid(row)
        return
    rng = random.Random(path.name)
    wrong = 0
    for container, key in rng.sample(spots := places(row), min(25, len(spots))):
        edited = copy.deepcopy(row)
        other = next(
            c
            for (c, k), (o, _) in zip(places(edited), spots, strict=True)
            if o is container and k == key
        )
        value = rng.choice([*ODD, "delete", "add"])
        if value == "delete":
            del other[key]
        elif value == "add" and isinstance(other, dict):
            other["unknown"] = 1
        else:
            other[key] = value
        assert fast(edited) == slow.is_valid(edited), (key, value)
        wrong += not fast(edited)
    assert wrong > 3


def test_unknown_keywords_leave_the_verdict_to_jsonschema() -> None:
    assert not validator({"multipleOf": 2})(4)
    assert validator({"type": "array", "prefixItems": [{"const": 1}], "items": False})([1])
    assert not validator({"type": "array", "prefixItems": [{"const": 1}], "items": False})([1, 2])
