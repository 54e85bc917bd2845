"""Strict reading of JSON: `decode` for every JSON text from outside, `load` and `parse` for small
files that become dataclasses, whose field types are the contract.

An unknown or missing key, or a value of a wrong type, is an `UnderstudyError` that names the file,
the key and what was expected. Known types: bool, int, float, str, None, `Literal`, tuples,
dataclasses, and unions of them; in a union of dataclasses the `Literal` field `rule` decides.
"""

import json
import math
import re
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from understudy.errors import UnderstudyError
from understudy.files import read_text

T = TypeVar("T")
WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    types.NoneType: "null",
}

MAX_DEPTH = 50
MAX_STEPS = 10  # of a key in a message
TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"
NO_TEXT = "expected a string of Unicode text, found one with half of a surrogate pair"
NOT_FINITE = "expected a finite number"
LONG_INTEGER = "an integer of more than 308 digits"
LARGEST = sys.float_info.max
NUL = "expected a string without the character U+0000"
_SURROGATE = re.compile("[\ud800-\udfff]")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_COLON = "\\u003"  # begins a colon that is escaped
_ESCAPED = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")


def load(kind: type[T], path: Path) -> T:
    """The file as an object of the dataclass `kind`."""
    try:
        text = read_text(path)
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnderstudyError(f"{path}: not UTF-8 text") from None
    return parse(kind, text, str(path))


def parse(kind: type[T], text: str, where: str) -> T:
    """JSON text as an object of the dataclass `kind`; `where` names the text in messages."""
    built: T = _Place(file=where, key="").build(kind, decode(text, where))
    return built


def decode(text: str, where: str, what: str = "JSON", *, nul: bool = True) -> Any:
    """The value of a JSON text that others wrote; `where` and `what` name it in messages.

    Refused besides what is no JSON: a key twice in one object, nesting deeper than any contract
    has, numbers that are not finite, and strings that are not Unicode text or, without `nul`, have
    a U+0000.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        row = dict(pairs)
        if len(row) < len(pairs):
            raise _not_unique(pairs, where)
        return row

    try:
        value = json.loads(text)
        if _is_sound(value, text):
            return value
        value = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        raise UnderstudyError(f"{where}: not {what}: {error.msg} at {at}") from None
    except RecursionError:
        raise UnderstudyError(f"{where}: {TOO_DEEP}") from None
    except ValueError:  # more digits than Python converts
        raise UnderstudyError(f"{where}: {NOT_FINITE}, found {LONG_INTEGER}") from None
    refused = _SURROGATE if nul else _NO_TEXT
    fault = _fault(value, MAX_DEPTH, refused if _ESCAPED.search(text) else None)
    if fault is not None:
        steps, message = fault
        place = _Place(file=where, key="")
        for step in reversed(steps[-MAX_STEPS:]):
            place = place.below(step)
        raise place.fault(message)
    return value


def _is_sound(value: Any, text: str) -> bool:
    """True if nothing in the value of a text has to be refused: no key is lost, as each colon of
    the text is one of a string or follows a key, numbers and the depth are in their limits. False
    where that is not known."""
    left, least, most = text.count(":"), -LARGEST, LARGEST
    level = [value] if type(value) in (dict, list) else []
    for _ in range(MAX_DEPTH):
        if not level:
            return not left and not _ESCAPED.search(text) and _COLON not in text
        below: list[Any] = []
        for outer in level:
            if type(outer) is dict:
                left -= len(outer)
                outer = outer.values()
            for inner in outer:
                kind = type(inner)
                if kind is float or kind is int:
                    if not least <= inner <= most:
                        return False
                elif kind is dict or kind is list:
                    below.append(inner)
                elif kind is str and ":" in inner:
                    left -= inner.count(":")
        level = below
    return False


def _not_unique(pairs: list[tuple[str, Any]], where: str) -> UnderstudyError:
    seen: set[str] = set()
    twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return UnderstudyError(f"{where}: key {twice!r} stands twice in one object")


def _fault(
    value: Any, depth: int, strings: re.Pattern[str] | None
) -> tuple[list[str | int], str] | None:
    """The steps to the first value that is refused, innermost first, and why; `strings`: what none
    may have, if they are looked at."""
    kind = type(value)
    if kind is float or kind is int:
        return None if abs(value) <= LARGEST else ([], f"{NOT_FINITE}, found {_shown(value)}")
    if kind is str:
        refused = strings.search(value) if strings else None
        return ([], _no_text(refused)) if refused else None
    if kind is not dict and kind is not list:
        return None
    if not depth:
        return [], TOO_DEEP
    if kind is dict and strings:
        refused = next(filter(None, map(strings.search, value)), None)
        if refused is not None:
            return [], _no_text(refused).replace("string", "key")
    for step, inner in value.items() if kind is dict else enumerate(value):
        kind = type(inner)
        if kind is float or kind is int:
            if -LARGEST <= inner <= LARGEST:
                continue  # most values are numbers
        elif kind is not dict and kind is not list and not strings:
            continue
        fault = _fault(inner, depth - 1, strings)
        if fault is not None:
            fault[0].append(step)
            return fault
    return None


def _no_text(refused: re.Match[str]) -> str:
    return NUL if refused[0] == "\0" else NO_TEXT


def _shown(value: float) -> str:
    return LONG_INTEGER if isinstance(value, int) else json.dumps(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """Where in which file a value stands."""

    file: str
    key: str

    def below(self, step: str | int) -> "_Place":
        added = f"[{step}]" if isinstance(step, int) else f".{step}"
        return _Place(file=self.file, key=(self.key + added).lstrip("."))

    def fault(self, message: str) -> UnderstudyError:
        return UnderstudyError(f"{self.file}: {self.key or 'top level'}: {message}")

    def unexpected(self, expected: str, value: Any) -> UnderstudyError:
        text = json.dumps(value, ensure_ascii=False)
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        return self.fault(f"expected {expected}, found {shown}")

    def build(self, kind: Any, value: Any) -> Any:
        origin = get_origin(kind)
        if origin is Literal:
            if value not in get_args(kind) or isinstance(value, bool):
                raise self.unexpected(_listed(get_args(kind)), value)
            return value
        if origin is tuple:
            return self._tuple(get_args(kind), value)
        if origin in (Union, types.UnionType):
            return self._union(get_args(kind), value)
        if is_dataclass(kind):
            return self._object(kind, value)
        return self._scalar(kind, value)

    def _scalar(self, kind: Any, value: Any) -> Any:
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind or (kind is float and not math.isfinite(value)):
            raise self.unexpected(WORDS[kind], value)
        return value

    def _tuple(self, kinds: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise self.unexpected("a list", value)
        if kinds[-1] is Ellipsis:
            kinds = (kinds[0],) * len(value)
        if len(value) != len(kinds):
            raise self.unexpected(f"a list of {len(kinds)}", value)
        return tuple(
            self.below(i).build(k, v) for i, (k, v) in enumerate(zip(kinds, value, strict=True))
        )

    def _union(self, kinds: tuple[Any, ...], value: Any) -> Any:
        if value is None and types.NoneType in kinds:
            return None
        kinds = tuple(k for k in kinds if k is not types.NoneType)
        if len(kinds) == 1:
            return self.build(kinds[0], value)
        if not isinstance(value, dict):
            raise self.unexpected("an object with the key rule", value)
        rules = {get_args(get_type_hints(k)["rule"])[0]: k for k in kinds}
        if not isinstance(value.get("rule"), str) or value["rule"] not in rules:
            raise self.below("rule").unexpected(_listed(rules), value.get("rule"))
        return self._object(rules[value["rule"]], value)

    def _object(self, kind: Any, value: Any) -> Any:
        names = [f.name for f in fields(kind)]
        if not isinstance(value, dict):
            raise self.unexpected(f"an object with the keys {', '.join(names)}", value)
        for key in value:
            if key not in names:
                raise self.fault(f"unknown key {key!r}, expected {_listed(names)}")
        for name in names:
            if name not in value:
                raise self.fault(f"the key {name!r} is missing")
        hints = get_type_hints(kind)
        parts = {name: self.below(name).build(hints[name], value[name]) for name in names}
        try:
            return kind(**parts)
        except ValueError as error:  # from __post_init__
            raise self.fault(str(error)) from None


def _listed(words: Iterable[object]) -> str:
    *most, last = map(str, words)
    return f"{', '.join(most)} or {last}" if most else last
