"""Names that -S and -P of the command line may have, and their values."""

import math
from typing import Any, NoReturn

from understudy.errors import UnderstudyError
from understudy.reframe import reframe_internals
from understudy.reframe.session import session
from understudy.units import parse_size

# What a variable or parameter takes, by the name of its type.
VALUES = {
    "Bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "str": "text",
    "Duration": "a time such as 90s, 10m or 1h30m",
    "Size": "bytes, such as 4194304, 4MiB or 4MB",
}


class Size(int):
    """Bytes, which -S gives with a unit: 1GiB. A ValueError tells of a mistake."""

    def __new__(cls, value: int | str) -> "Size":
        try:
            return super().__new__(cls, parse_size(str(value)))
        except UnderstudyError as error:
            raise ValueError(str(error)) from None


class Abstract(reframe_internals.AbstractMeta):
    """The metaclass of checks: one message for a wrong value of -S."""

    def refuse_value(cls, name: str, text: str) -> NoReturn:
        # ReFrame would skip the file and go on without its checks, or print a traceback.
        session.end(f"-S {name}={text}: expected {of_variable(cls, name)}")


def check() -> None:
    """End the session if it cannot run as the command line says."""
    check_names()
    session.check_selection()


def check_names() -> None:
    """End the session if -S or -P name what no check has, or give what it does not take."""
    session.check_given(has_variable, expected)


def has_variable(test: str | None, name: str) -> bool:
    """True if a class of tests that ReFrame has loaded (None: any) has a variable."""
    return any(
        reframe_internals.has_variable(loaded, name)
        for loaded in reframe_internals.loaded_tests(test)
    )


def of_variable(test: Any, name: str) -> str:
    """Values that a variable of a class of tests takes, in words."""
    types = [kind.__name__ for kind in reframe_internals.variable_types(test, name)]
    words = dict.fromkeys(VALUES.get(kind, kind) for kind in types if kind != "NoneType")
    if "Size" in types:
        words = dict.fromkeys([VALUES["Size"]])
    return " or ".join(words)


def expected(test: str | None, name: str, value: str) -> str | None:
    """Values that -P takes for a variable or parameter instead of this one: None if some class
    takes it, empty if none has the name. ReFrame goes on with other cases."""
    words = ""
    for loaded in reframe_internals.loaded_tests(test):
        words_of_test = _expected_by(loaded, name, value)
        if words_of_test is None:
            return None
        words = words_of_test or words
    return words


def _expected_by(test: Any, name: str, value: str) -> str | None:
    """Values that a class of tests takes instead of this one; as `expected`."""
    if reframe_internals.has_variable(test, name):
        return (
            None if reframe_internals.takes_value(test, name, value) else of_variable(test, name)
        )
    kind: Any = reframe_internals.parameter_type(test, name)
    if kind is None:
        return ""
    try:
        kind(value)
    except (TypeError, ValueError):
        return VALUES.get(kind.__name__, str(kind.__name__))
    listed = getattr(test, "choices", {}).get(name)
    choices = None if listed is None else list(listed())
    return None if choices is None or value in choices else f"one of {', '.join(choices)}"


def number(value: float | None, lowest: float) -> bool:
    """True if a number is finite and at least the lowest; None is the default."""
    return value is None or (math.isfinite(value) and value >= lowest)
