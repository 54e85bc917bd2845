"""What -S and -P of the command line may name, and types of their values."""

import math

from understudy.errors import UnderstudyError
from understudy.reframe import reframe_internals
from understudy.reframe.session import session
from understudy.units import parse_size


class Size(int):
    """Bytes, which -S gives with a unit: 1GiB. A ValueError tells of a mistake."""

    def __new__(cls, value: int | str) -> "Size":
        try:
            return super().__new__(cls, parse_size(str(value)))
        except UnderstudyError as error:
            raise ValueError(str(error)) from None


def check_names() -> None:
    """End the session if -S or -P name what no check has."""
    session.check_given(has_variable, has_parameter)


def has_variable(test: str | None, name: str) -> bool:
    """True if a class of tests that ReFrame has loaded (None: any) has a variable."""
    return any(
        reframe_internals.has_variable(loaded, name)
        for loaded in reframe_internals.loaded_tests(test)
    )


def has_parameter(test: str | None, name: str) -> bool:
    """Whether one has a parameter, or a variable, which -P takes, too."""
    return has_variable(test, name) or any(
        reframe_internals.has_parameter(loaded, name)
        for loaded in reframe_internals.loaded_tests(test)
    )


def number(value: float | None, lowest: float) -> bool:
    """True if a number is finite and at least the lowest; None is the default."""
    return value is None or (math.isfinite(value) and value >= lowest)
