"""Values that may differ in their last digits from one Python to the next."""

from typing import Any


def rounded(value: Any) -> Any:
    """The same, with 12 digits of each number: Python 3.12 sums more exactly."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(each) for each in value]
    return float(f"{value:.12g}") if isinstance(value, float) else value
