"""A fast check of JSON values by a schema: the question is only whether a value is valid.

`validator(schema)` turns a schema into functions, once; they take a fiftieth of the time of the
package jsonschema, which is asked only where a value is not known to be valid, to say why. A False
is therefore no verdict: it also stands for schemas with keywords that are not known here.
"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

Check = Callable[[Any], bool]

MOST = sys.float_info.max
_NUMBERS = ("integer", "number")
_SILENT = {"$schema", "$id", "$defs", "title", "description", "condition", "default"}


def exact(pattern: str) -> str:
    """A pattern of a schema as one of Python, where a $ also fits before a last line break."""
    return pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern


def explaining(schema: dict[str, Any], **more: Any) -> Any:
    """A validator of the package jsonschema that agrees with the fast one on patterns; `more` as
    for its function extend."""
    import jsonschema  # 0.1 s to import: only for documents that are not valid

    def pattern(_: Any, wanted: str, value: Any, __: Any) -> Iterator[Any]:
        if isinstance(value, str) and not re.search(exact(wanted), value):
            yield jsonschema.ValidationError(f"{value!r} does not match {wanted!r}")

    extend = cast(Any, jsonschema.validators).extend
    # Without its name, which older versions take for an address that references are relative to.
    schema = {key: value for key, value in schema.items() if key != "$id"}
    return extend(jsonschema.Draft202012Validator, {"pattern": pattern}, **more)(schema)


# Belong to properties, to items and to if.
_OF_OTHERS = ("additionalProperties", "prefixItems", "then", "else")


class _UnknownError(Exception):
    """A keyword that is not known here."""


def validator(schema: dict[str, Any]) -> Check:
    """A function that is True only for values that are valid by the schema."""
    try:
        return _Compiler(schema).check(schema)
    except _UnknownError:
        return lambda value: False


def _all(checks: list[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]
    if len(checks) == 2:
        first, second = checks
        return lambda value: first(value) and second(value)

    def check(value: Any) -> bool:
        for each in checks:  # noqa: SIM110
            if not each(value):
                return False
        return True

    return check


def _is_number(schema: Any) -> bool:
    words = schema.keys() - _SILENT
    return words <= {"type", "minimum", "maximum"} and schema.get("type") in _NUMBERS


def _limits(schema: Any) -> tuple[bool, float, float]:
    """Of a number: if it is whole, its least and its largest value."""
    whole = schema["type"] == "integer"
    least, most = (-(1 << 63), (1 << 63) - 1) if whole else (-MOST, MOST)
    low, high = schema.get("minimum", least), schema.get("maximum", most)
    return whole, max(least, low), min(most, high)


_TESTS = {
    "string": "type(v) is str",
    "boolean": "type(v) is bool",
    "array": "type(v) is list",
    "object": "type(v) is dict",
    "null": "v is None",
}


def _test(schema: Any) -> str | None:
    """The test of a value `v` as an expression, of a schema that has no more than types, limits of
    one number and texts; else None."""
    if type(schema) is bool:
        return None
    if _is_number(schema):
        whole, low, high = _limits(schema)
        if whole:
            return f"(type(v) is int and {low!r} <= v <= {high!r})"
        small = "type(v) is int and -0x8000000000000000 <= v < 0x8000000000000000"
        return f"((type(v) is float or {small}) and {low!r} <= v <= {high!r})"
    words = schema.keys() - _SILENT
    kinds = schema.get("type")
    if words > {"type"} and type(kinds) is list and len(kinds) == 2 and kinds[1] == "null":
        rest = _test(schema | {"type": kinds[0]})
        return rest and f"(v is None or {rest})"
    if words == {"type"}:
        kinds = kinds if type(kinds) is list else [kinds]
        return (
            f"({' or '.join(_TESTS.get(kind) or _test({'type': kind}) or '' for kind in kinds)})"
        )
    texts = schema.get("enum", [schema.get("const")])
    if words in ({"enum"}, {"const"}) and all(type(text) is str for text in texts):
        return f"(type(v) is str and v in {tuple(texts)!r})"
    return None


TYPES: Mapping[str, Check] = {
    kind: eval(f"lambda v: {_test({'type': kind})}", {}) for kind in _NUMBERS
}


class _Compiler:
    """Makes the functions of one schema; definitions are made once and can be recursive."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._checks: dict[str, list[Check]] = {}

    def check(self, schema: Any) -> Check:
        """All keywords of a schema."""
        if type(schema) is bool:
            return lambda value: schema
        if test := _test(schema):
            check: Check = eval(f"lambda v: {test}", {})
            return check
        checks: list[Check] = []
        for word, argument in schema.items():
            if word in _SILENT or word in _OF_OTHERS:
                continue
            if word in ("type", "required") and schema.get("type") == "object":
                continue  # with the properties
            make = getattr(self, "_" + word.lstrip("$"), None)
            if make is None:
                raise _UnknownError(word)
            checks.append(make(argument, schema))
        if "prefixItems" in schema and "items" not in schema:
            checks.append(self._items(True, schema))
        if "properties" not in schema and (
            "additionalProperties" in schema or schema.get("type") == "object"
        ):
            checks.append(self._properties({}, schema))
        return _all(checks)

    def _ref(self, name: str, _: Any) -> Check:
        if name not in self._checks:
            checks = self._checks[name] = []
            target = self._root
            for step in name.removeprefix("#/").split("/"):
                target = target[step]
            checks.append(self.check(target))
        checks = self._checks[name]
        return checks[0] if checks else lambda value: checks[0](value)

    def _type(self, kinds: Any, _: Any) -> Check:
        check: Check = eval(f"lambda v: {_test({'type': kinds})}", {})
        return check

    def _enum(self, values: list[Any], _: Any) -> Check:
        if any(type(v) in (dict, list, float) for v in values):
            raise _UnknownError("enum")
        allowed = {(type(v), v) for v in values}
        return lambda value: type(value) not in (dict, list) and (type(value), value) in allowed

    def _const(self, value: Any, schema: Any) -> Check:
        return self._enum([value], schema)

    def _properties(self, properties: dict[str, Any], schema: Any) -> Check:
        checks = {key: self.check(value) for key, value in properties.items()}
        more = schema.get("additionalProperties", True)
        other = None if more is True else self.check(more)
        only = schema.get("type") == "object"
        wanted = frozenset(schema.get("required", ()) if only else ())
        if only and wanted <= checks.keys():
            return self._object(properties, checks, wanted, other)

        def check(value: Any) -> bool:
            if type(value) is not dict:
                return not only
            if not wanted <= value.keys():
                return False
            for key, inner in value.items():
                inner_check = checks.get(key, other)
                if inner_check is not None and not inner_check(inner):
                    return False
            return True

        return check

    def _object(
        self,
        properties: dict[str, Any],
        checks: dict[str, Check],
        wanted: frozenset[str],
        other: Check | None,
    ) -> Check:
        """A function written for the keys of one kind of object: most of a record are objects of
        numbers, which it compares itself."""
        lines = ["def check(value):", " if type(value) is not dict: return False", " try:"]
        scope: dict[str, Any] = {"other": other}
        for i, key in enumerate(wanted):
            scope[f"check_{i}"] = checks[key]
            lines += [
                f"  v = value[{key!r}]",
                f"  if not {_test(properties[key]) or f'check_{i}(v)'}: return False",
            ]
        lines += ["  pass", " except KeyError: return False", f" count = {len(wanted)}"]
        for i, key in enumerate(checks.keys() - wanted, len(wanted)):
            scope[f"check_{i}"] = checks[key]
            lines += [
                f" if {key!r} in value:",
                "  count += 1",
                f"  v = value[{key!r}]",
                f"  if not {_test(properties[key]) or f'check_{i}(v)'}: return False",
            ]
        if other is None:
            lines.append(" return True")
        else:
            scope["known"] = frozenset(checks)
            lines += [
                " if len(value) == count: return True",
                " return all([other(v) for key, v in value.items() if key not in known])",
            ]
        exec("\n".join(lines), scope)
        check: Check = scope["check"]
        return check

    def _required(self, keys: list[str], _: Any) -> Check:
        wanted = frozenset(keys)
        return lambda value: type(value) is not dict or wanted <= value.keys()

    def _items(self, items: Any, schema: Any) -> Check:
        first = [self.check(s) for s in schema.get("prefixItems", ())]
        rest = self.check(items)

        def check(value: Any) -> bool:
            if type(value) is not list:
                return True
            for item_check, inner in zip(first, value, strict=False):
                if not item_check(inner):
                    return False
            return all(map(rest, value[len(first) :] if first else value))

        return check

    def _if(self, asked: Any, schema: Any) -> Check:
        """Only questions for texts of keys: there, a False of ours is one of the schema too."""
        if type(asked) is not dict or not asked.keys() <= {"properties", "required"}:
            raise _UnknownError("if")
        for rule in asked.get("properties", {}).values():
            values = rule.get("enum", [rule.get("const")])
            if len(rule) != 1 or not all(type(value) is str for value in values):
                raise _UnknownError("if")
        met = self.check(asked)
        then, other = (self.check(schema.get(word, True)) for word in ("then", "else"))
        return lambda value: then(value) if met(value) else other(value)

    def _oneOf(self, schemas: list[Any], _: Any) -> Check:
        checks = [self.check(s) for s in schemas]
        return lambda value: sum([check(value) for check in checks]) == 1

    def _anyOf(self, schemas: list[Any], _: Any) -> Check:
        checks = [self.check(s) for s in schemas]
        return lambda value: any(check(value) for check in checks)

    def _minimum(self, limit: float, _: Any) -> Check:
        return lambda value: type(value) not in (int, float) or value >= limit

    def _maximum(self, limit: float, _: Any) -> Check:
        return lambda value: type(value) not in (int, float) or value <= limit

    def _exclusiveMinimum(self, limit: float, _: Any) -> Check:
        return lambda value: type(value) not in (int, float) or value > limit

    def _minItems(self, count: int, _: Any) -> Check:
        return lambda value: type(value) is not list or len(value) >= count

    def _maxItems(self, count: int, _: Any) -> Check:
        return lambda value: type(value) is not list or len(value) <= count

    def _minLength(self, count: int, _: Any) -> Check:
        return lambda value: type(value) is not str or len(value) >= count

    def _maxLength(self, count: int, _: Any) -> Check:
        return lambda value: type(value) is not str or len(value) <= count

    def _pattern(self, pattern: str, _: Any) -> Check:
        search = re.compile(exact(pattern)).search
        return lambda value: type(value) is not str or search(value) is not None

    def _uniqueItems(self, wanted: bool, _: Any) -> Check:
        if not wanted:
            return lambda value: True

        def check(value: Any) -> bool:
            if type(value) is not list:
                return True
            plain = all(type(v) in (str, int, float) for v in value)
            return plain and len(set(value)) == len(value)

        return check
