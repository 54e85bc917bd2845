"""What -S and -P of the command line may name, and which values they take."""

import math
from collections.abc import Iterator
from typing import Any

import reframe as rfm
from reframe.core.fields import make_convertible

# What a variable or parameter takes, by the name of its type.
VALUES = {
    "Bool": "true or false", "int": "an integer", "float": "a number", "str": "text",
    "Duration": "a time such as 90s, 10m or 1h30m", "Size": "bytes, such as 4194304, 4MiB or 4MB",
}  # fmt: skip


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
