# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc"
"""What -S and -P of the command line may name, and which values they take."""

import math
import sys
from abc import ABCMeta
from collections.abc import Iterator
from functools import cache, wraps
from typing import Any

import reframe as rfm
from reframe.core.fields import make_convertible, remove_convertible
from reframe.core.meta import RegressionTestMeta

from understudy.errors import UnderstudyError
from understudy.reframe import session
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


class Abstract(RegressionTestMeta, ABCMeta):
    """ReFrame's metaclass, with abstract methods, and one message for a wrong value of -S."""

    def __new__(cls, name: str, bases: Any, namespace: Any, **options: Any) -> Any:
        if "deferrable" in namespace:  # a builtin of class bodies, which ReFrame takes out
            return super().__new__(cls, name, bases, namespace, **options)
        # -P and --repeat call ReFrame's metaclass by its name, which has done its work by now.
        return ABCMeta.__new__(cls, name, bases, namespace, **options)

    def setvar(cls, name: str, value: Any) -> bool:
        """What -S NAME=VALUE does to a class of checks."""
        try:
            return bool(super().setvar(name, value))
        except (TypeError, ValueError):
            if value is (text := remove_convertible(value)):
                raise
            # ReFrame would skip the file and go on without its checks, or print a traceback.
            session.end(f"-S {name}={text}: expected {of_variable(cls, name)}")


def check() -> None:
    """End the session if it cannot run as the command line says."""
    session.check_given(has_variable, expected)
    session.check_selection()


@cache
def check_before_parameterizing() -> None:
    """From now on, what the command line says is checked before ReFrame gives each case the values
    of -P: it would warn of a name that it does not know once for each case."""
    module: Any = sys.modules.get("reframe.frontend.cli")
    parameterize = getattr(module, "parameterize_tests", None)
    if parameterize is None:
        return

    @wraps(parameterize)
    def checked(*arguments: Any) -> Any:
        session.check_given(has_variable, expected)
        return parameterize(*arguments)

    module.parameterize_tests = checked


def has_variable(test: str | None, name: str) -> bool:
    """Whether a class of tests that ReFrame has loaded (None: any) has a variable."""
    return any(name in known._rfm_var_space for known in _classes(test))


def of_variable(test: Any, name: str) -> str:
    """What a variable of a class of tests takes."""
    types = test._rfm_var_space[name].field.valid_types
    names = [t.__name__ for t in types if t is not type(None)]
    words = dict.fromkeys(VALUES.get(name, name) for name in names)
    if "Size" in names:
        words = dict.fromkeys([VALUES["Size"]])
    return " or ".join(words)


def expected(test: str | None, name: str, value: str) -> str | None:
    """What -P takes for a variable or parameter instead of a value: None where some class takes
    it, and no text where none has the name. ReFrame goes on with other cases."""
    found = ""
    for known in _classes(test):
        wrong = _wrong(known, name, value)
        if wrong is None:
            return None
        found = wrong or found
    return found


def _wrong(test: Any, name: str, value: str) -> str | None:
    if name in test.var_space:
        field = test._rfm_var_space[name].field
        try:
            field.__set__(_Probe(), make_convertible(value))
        except (TypeError, ValueError):
            return of_variable(test, name)
        return None
    if name not in test.param_space.params:
        return ""
    kind = test.param_space.params[name].type
    try:
        kind(value)
    except (TypeError, ValueError):
        return VALUES.get(kind.__name__, str(kind.__name__))
    choices = getattr(test, "choices", {}).get(name)
    known = None if choices is None else list(choices())
    return None if known is None or value in known else f"one of {', '.join(known)}"


class _Probe:
    """Takes a value of a variable, and is thrown away."""


def _classes(test: str | None) -> Iterator[Any]:
    """Those of the checks at hand: ReFrame keeps no list of them."""
    classes = [rfm.RegressionTest]
    for known in classes:
        classes += known.__subclasses__()
    return (known for known in classes if test in (None, known.__name__))


def number(value: float | None, lowest: float) -> bool:
    """Whether a number is finite and at least the lowest; None is the default."""
    return value is None or (math.isfinite(value) and value >= lowest)
