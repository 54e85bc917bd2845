"""The page of a comparison: what is slower, faster, within the limit or open, a row each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from understudy import __version__
from understudy.errors import printable
from understudy.report import colours
from understudy.report.template import environment

SPAN = math.log(2)  # from the middle of an interval's picture to its ends: half and twice


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A case as the page words it; `ratios` are after over before and the ends of its interval
    (infinite: not known)."""

    state: str
    name: str
    before: str
    after: str
    change: str
    interval: str
    nights: str
    why: str
    ratios: tuple[float, float, float]

    @property
    def places(self) -> tuple[float, float, float] | None:
        """Where change, low and high stand in a picture of width 100 whose middle is no change;
        None without an interval. What is beyond an end stands at it."""
        if not all(0 < ratio < math.inf for ratio in self.ratios):
            return None
        middle, low, high = (
            50 + 50 * max(-1.0, min(1.0, math.log(ratio) / SPAN)) for ratio in self.ratios
        )
        return middle, low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """All that the page says; `counts` by state, `messages` on cases that were not compared,
    turns, and records that were left out."""

    before: str
    after: str
    sentence: str
    counts: Sequence[tuple[str, int]]
    lines: Sequence[Line]
    messages: Sequence[str]


def render(compared: Compared) -> str:
    """The HTML."""
    text = (
        environment()
        .get_template("comparison.html")
        .render(compared=compared, role_colours=colours.ROLE_COLOURS, version=__version__)
    )
    return printable(text)
