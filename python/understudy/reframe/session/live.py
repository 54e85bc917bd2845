"""How a campaign goes: a line for each case that ended, on standard error if it is a terminal, and
as JSON lines in the file that UNDERSTUDY_LIVE names, for a dashboard.

ReFrame prints its own lines to standard output, so that no line is redrawn here.
"""

import json
import math
import os
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.text import Text

from understudy import units
from understudy.contracts.measurement import Measurement
from understudy.errors import UnderstudyError, one_line
from understudy.judge.statistics import latencies
from understudy.messages import tell

VARIABLE = "UNDERSTUDY_LIVE"
TAIL = 0.99


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures of the writes of one case, or of its reads where it has no others: payload over the
    times of all dumps, and those times."""

    operation: str
    bandwidth_bytes_per_s: float
    dump_median_s: float
    dump_p99_s: float
    call_p99_s: float | None = None  # of the data calls, where their latencies were noted

    def __str__(self) -> str:
        calls = (
            "" if self.call_p99_s is None else f", a call 99 %: {units.seconds(self.call_p99_s)}"
        )
        return (
            f"{self.operation} {units.rate(self.bandwidth_bytes_per_s)}, a dump "
            f"{units.seconds(self.dump_median_s)} (99 %: {units.seconds(self.dump_p99_s)}){calls}"
        )


def figures(measured: Iterable[Measurement | None]) -> Figures | None:
    """Figures of the runs of a case; None where none has dumps that took time."""
    whole = [m for m in measured if m]
    every = [s for m in whole for r in m.repetitions for s in r.streams]
    for operation in ("write", "read"):
        dumps = [d for s in every if s.operation == operation for d in s.dumps]
        times = sorted(d.elapsed_s for d in dumps)
        if sum(times) > 0:
            called = [latencies.of_operation(m, operation) for m in whole]
            calls = latencies.merged(filter(None, called))
            return Figures(
                operation=operation,
                bandwidth_bytes_per_s=sum(d.bytes for d in dumps) / sum(times),
                dump_median_s=median(times),
                dump_p99_s=times[math.ceil(TAIL * len(times)) - 1],
                call_p99_s=calls.p99_s if calls else None,
            )
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A case that ended: what came of it, and how far the session is then. `expected` and `left_s`
    are None where the number of cases is unknown; `campaign` and `turn` where there is none."""

    time: str
    campaign: str | None
    turn: str | None
    case: str
    passed: bool
    verdict: str
    took_s: float
    done: int
    skipped: int
    expected: int | None
    moved_bytes: int
    left_s: float | None
    slowest_s: float
    slowest: str
    figures: Figures | None = None

    def row(self) -> str:
        """One line of JSON; the figures are null where nothing was measured."""
        return json.dumps(asdict(self))

    @classmethod
    def of_row(cls, text: str) -> "Event":
        """Raises ValueError, KeyError or TypeError of what is no such line."""
        row = json.loads(text)
        figures_row = row.pop("figures")
        event = cls(**row, figures=Figures(**figures_row) if figures_row else None)
        event.line()  # what cannot be shown is none
        return event

    def line(self) -> str:
        """3 of 10 cases, about 4 min left: ✓ Replay n-1 posix on host:tmpfs: write 1.1 GiB/s, a
        dump 2 ms (99 %: 7 ms); 1.2 GiB, slowest: 30 s, Replay ..."""
        of_all = f" of {self.expected}" if self.expected else ""
        skipped = f" ({self.skipped} skipped)" if self.skipped else ""
        left = "" if self.left_s is None else f", about {units.seconds(self.left_s)} left"
        said = str(self.figures) if self.passed and self.figures else self.verdict
        return (
            f"{self.done}{of_all} cases{skipped}{left}: {'✓' if self.passed else '✗'} "
            f"{_short(self.case)}: {said}; {units.size(self.moved_bytes)}, slowest: "
            f"{units.seconds(self.slowest_s)}, {_short(self.slowest)}"
        )


def _short(case: str) -> str:
    """Its values without their names."""
    return re.sub(r"%\w+=", "", case)


def show(event: Event, console: Console) -> None:
    """Its line, on a terminal; nothing anywhere else."""
    if console.is_terminal:
        text = Text(one_line(event.line()), style="dim")
        console.print(text, no_wrap=True, overflow="ellipsis", crop=True)


class Live:
    """Counts cases, bytes and seconds, and tells each case that ended."""

    def __init__(
        self, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.console = console or Console(stderr=True)
        self.clock = clock
        self.began: dict[str, float] = {}
        self.done = self.skipped = self.moved_bytes = 0
        self.first_s: float | None = None
        self.slowest: tuple[float, str] = (0.0, "")
        named = os.environ.get(VARIABLE)
        self.file = Path(named) if named else None

    def begin(self, name: str) -> None:
        """A case was started."""
        self.began[name] = self.clock()
        if self.first_s is None:
            self.first_s = self.began[name]

    def skip(self) -> None:
        self.skipped += 1

    def end(
        self,
        name: str,
        moved_bytes: int,
        expected: int | None,
        *,
        passed: bool = True,
        verdict: str = "",
        campaign: str | None = None,
        turn: str | None = None,
        measured: Iterable[Measurement | None] = (),
    ) -> None:
        """A case ended, well or not, having been asked to move so many bytes. `measured` is read
        only where somebody looks."""
        now = self.clock()
        took_s = now - self.began.pop(name, now)
        self.done += 1
        self.moved_bytes += moved_bytes
        self.slowest = max(self.slowest, (took_s, name))
        left = None if expected is None else max(0, expected - self.done - self.skipped)
        each_s = (now - (now if self.first_s is None else self.first_s)) / self.done
        event = Event(
            time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            campaign=campaign,
            turn=turn,
            case=name,
            passed=passed,
            verdict=verdict,
            took_s=took_s,
            done=self.done,
            skipped=self.skipped,
            expected=expected,
            moved_bytes=self.moved_bytes,
            left_s=None if left is None else left * each_s,
            slowest_s=self.slowest[0],
            slowest=self.slowest[1],
            figures=figures(measured) if self.console.is_terminal or self.file else None,
        )
        show(event, self.console)
        self._write(event)

    def _write(self, event: Event) -> None:
        if self.file is None:
            return
        try:
            with self.file.open("a", encoding="utf-8") as out:
                out.write(f"{event.row()}\n")
        except OSError as error:
            tell(f"{self.file}: cannot be written: {error.strerror}")
            self.file = None


class Follower:
    """Reads the events that are added to a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = path.stat().st_size if path.is_file() else 0

    def read(self) -> list[Event]:
        """Those since the last time; what is no event is none."""
        if not self.path.is_file():  # a device has no end
            return []
        try:
            with self.path.open("rb") as text:
                text.seek(self.offset)
                new = text.read()
        except OSError:
            return []
        whole, _, _ = new.rpartition(b"\n")
        self.offset += len(whole) + bool(whole)
        events = []
        for line in whole.decode(errors="replace").splitlines():
            try:
                events.append(Event.of_row(line))
            except (ValueError, KeyError, TypeError, AttributeError):
                continue
        return events


def follow(file: Path | None) -> None:
    """Checks that run from here on add their lines to the file. Raises UnderstudyError."""
    if file is None:
        return
    if file.exists() and not file.is_file():
        raise UnderstudyError(f"--live {file}: expected a regular file, or one to be created")
    try:
        with file.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise UnderstudyError(f"--live {file}: cannot be written: {error.strerror}") from None
    os.environ[VARIABLE] = str(file.absolute())
