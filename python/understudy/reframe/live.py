"""How a campaign goes, on standard error: a line for each case that ended, if it is a terminal.

ReFrame prints its own lines to standard output, so that no line is redrawn here.
"""

import time
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from understudy import units
from understudy.errors import one_line


class Live:
    """Counts cases, bytes and seconds. `expected` is the number of cases, None where unknown."""

    def __init__(
        self, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.console = console or Console(stderr=True)
        self.clock = clock
        self.began: dict[str, float] = {}
        self.done = self.skipped = self.moved_bytes = 0
        self.first_s: float | None = None
        self.slowest: tuple[float, str] = (0.0, "")

    def begin(self, name: str) -> None:
        """A case was started."""
        self.began[name] = self.clock()
        if self.first_s is None:
            self.first_s = self.began[name]

    def skip(self) -> None:
        self.skipped += 1

    def end(self, name: str, moved_bytes: int, expected: int | None) -> None:
        """A case ended, well or not, having been asked to move so many bytes."""
        now = self.clock()
        took_s = now - self.began.pop(name, now)
        self.done += 1
        self.moved_bytes += moved_bytes
        self.slowest = max(self.slowest, (took_s, name))
        if self.console.is_terminal:
            text = Text(one_line(self.line(now, expected)), style="dim")
            self.console.print(text, no_wrap=True, overflow="ellipsis", crop=True)

    def line(self, now: float, expected: int | None) -> str:
        """3 of 10 cases, 1.2 GiB, about 4 min left; slowest: Replay ... 30 s"""
        elapsed_s = now - (now if self.first_s is None else self.first_s)
        parts = [f"{self.done} of {expected} cases" if expected else f"{self.done} cases"]
        if self.skipped:
            parts[0] += f" ({self.skipped} skipped)"
        parts.append(units.size(self.moved_bytes))
        if expected is not None:
            left = max(0, expected - self.done - self.skipped)
            parts.append(f"about {units.seconds(left * elapsed_s / self.done)} left")
        took_s, name = self.slowest
        return f"{', '.join(parts)}; slowest: {units.seconds(took_s)}, {name}"
