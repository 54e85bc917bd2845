"""A campaign: its sides, the order of its turns, its sessions, and how far its records are."""

import fcntl
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from understudy import paths
from understudy.contracts import run as runs
from understudy.errors import UnderstudyError
from understudy.files import read_text, write_text
from understudy.records import index, reports, store
from understudy.reframe import systems
from understudy.reframe.session import live, reframe_process
from understudy.reframe.session.listing import VARIABLE, Total

SIDES = ("before", "after")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")
OWN = ("campaign", "turn")  # variables of the checks that the campaign sets
EXPECTED = (
    "expected partition=NAME, an environment variable such as SCRATCH=/mnt/new, or a variable of "
    "the checks such as fsync=1"
)
_ENVIRONMENT = re.compile(r"[A-Z][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*\.)?[a-z_][A-Za-z0-9_]*")
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Options of one side: its partition, environment variables, and variables of the checks
    (NAME=VALUE, as -S takes them)."""

    name: str
    partition: str | None = None
    environment: dict[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()

    @property
    def settings(self) -> list[str]:
        """As the command line gave them."""
        partition = [f"partition={self.partition}"] if self.partition else []
        given = [f"{key}={value}" for key, value in self.environment.items()]
        return [*partition, *given, *self.variables]


def side(name: str, words: Sequence[str]) -> Side:
    """Parse the words of --before or --after, each KEY=VALUE. Names of environment variables begin
    with a capital letter, those of variables of the checks do not, but for the check before a dot
    (Replay.fsync)."""
    partition, environment = None, {}
    variables: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        where = f"--{name} {word}"
        if not equals or not key:
            raise UnderstudyError(f"{where}: {EXPECTED}")
        if (key == "partition" and partition) or key in environment or key in variables:
            raise UnderstudyError(f"{where}: {key} is given twice")
        if key == "partition":
            if not re.fullmatch(r"[\w.-]+", value):
                raise UnderstudyError(f"{where}: expected the name of a partition")
            partition = value
        elif _ENVIRONMENT.fullmatch(key):
            environment[key] = value
        elif _VARIABLE.fullmatch(key):
            if key.rpartition(".")[2] in OWN:
                raise UnderstudyError(f"{where}: the campaign itself sets {key}")
            variables[key] = word
        else:
            raise UnderstudyError(f"{where}: {EXPECTED}")
    return Side(
        name=name,
        partition=partition,
        environment=environment,
        variables=tuple(variables.values()),
    )


def seed(name: str) -> int:
    """Seed for the order of a campaign's turns."""
    return int.from_bytes(sha256(name.encode()).digest()[:4], "big")


def order(name: str, turn: int) -> tuple[str, str]:
    """The sides of a turn, from 1, in their order: drawn for each pair of turns, in which each
    side is first once (ABBA or BAAB)."""
    pair, second = divmod(turn - 1, 2)
    dice = Random(seed(name))
    draws = [dice.getrandbits(1) for _ in range(pair + 1)]
    return SIDES if draws[-1] == second else (SIDES[1], SIDES[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of one session: counts of its cases, and the seconds it took."""

    passed: int
    failed: int
    skipped: int
    took_s: float
    log: Path

    def __str__(self) -> str:
        parts = [f"{self.passed} passed", f"{self.failed} failed"]
        return ", ".join([*parts, *([f"{self.skipped} skipped"] if self.skipped else [])])


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    name: str
    system: str  # of ReFrame, perhaps with a partition for both sides
    sides: tuple[Side, Side]
    selection: tuple[str, ...]

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise UnderstudyError(
                f"{self.name!r}: expected a name of at most 80 letters, digits, '_', '.' and '-'"
            )
        for word in self.selection:
            if word == "--system" or word.startswith("--system="):
                raise UnderstudyError(f"{word}: the campaign itself sets the system of ReFrame")
        self._check_partitions()

    @property
    def system_name(self) -> str:
        return self.system.partition(":")[0]

    def partitions(self) -> list[systems.Row]:
        """Those of the system, as ReFrame's configuration has them."""
        name = self.system_name
        systems_by_name = {
            system["name"]: system for system in systems.load(paths.directories("systems"))[0]
        }
        if name not in systems_by_name:
            raise UnderstudyError(
                f"--system {name}: expected one of {', '.join(sorted(systems_by_name))}"
            )
        rows: list[systems.Row] = systems_by_name[name]["partitions"]
        return rows

    def _check_partitions(self) -> None:
        name, _, both = self.system.partition(":")
        partitions = [row["name"] for row in self.partitions()]
        for this_side in self.sides:
            if both and this_side.partition:
                raise UnderstudyError(
                    f"--{this_side.name} partition={this_side.partition}: --system {self.system} "
                    "names a partition, too"
                )
            if (asked := this_side.partition or both) and asked not in partitions:
                where = (
                    f"--{this_side.name} partition={asked}" if this_side.partition else self.system
                )
                raise UnderstudyError(
                    f"{where}: {name} has no such partition; expected one of "
                    f"{', '.join(partitions)}"
                )

    @property
    def folder(self) -> Path:
        """With the logs and reports of its sessions, and what it was begun with."""
        return paths.made_output("campaigns") / self.name

    def side(self, name: str) -> Side:
        return self.sides[SIDES.index(name)]

    def of_side(self, name: str) -> str:
        """Name of the campaign in the records of a side."""
        return f"{self.name}-{name}"

    def command(self, this_side: Side, *action: str) -> list[str]:
        """ReFrame's command line of a session of a side."""
        system = f"{self.system}:{this_side.partition}" if this_side.partition else self.system
        variables = [word for variable in this_side.variables for word in ("-S", variable)]
        return [
            reframe_process.program(),
            "-C",
            str(paths.where("config")),
            "--system",
            system,
            *self.selection,
            *variables,
            "-S",
            f"campaign={self.of_side(this_side.name)}",
            *action,
        ]

    def environment(self, this_side: Side) -> dict[str, str]:
        return reframe_process.environment() | this_side.environment

    def words(self, turns: int, more: Sequence[str]) -> list[str]:
        """Arguments of `understudy campaign` that run this campaign here."""
        settings = [
            word
            for this_side in self.sides
            for setting in this_side.settings
            for word in (f"--{this_side.name}", setting)
        ]
        return [
            self.name,
            "--system",
            self.system,
            *settings,
            "--turns",
            str(turns),
            *more,
            "--",
            *self.selection,
        ]

    # -- what was done ------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        sides = {this_side.name: this_side.settings for this_side in self.sides}
        return {"system": self.system, **sides, "selection": list(self.selection)}

    @contextmanager
    def begun(self) -> Iterator[None]:
        """The campaign is this process's; an UnderstudyError if it is another's, or was begun
        with something else."""
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UnderstudyError(f"{self.name}: another process runs this campaign") from None
            except OSError:
                pass  # a file system without locks
            self._expect_same()
            yield

    def _expect_same(self) -> None:
        path, now = self.folder / "campaign.json", self.settings()
        if not self._ran() or not path.exists():
            write_text(path, json.dumps(now, indent=1) + "\n")
            return
        try:
            then = json.loads(read_text(path))
            changed = next((key for key in now if then[key] != now[key]), None)
        except (OSError, ValueError, KeyError, TypeError):
            raise UnderstudyError(
                f"{path}: damaged: expected the settings of a campaign"
            ) from None
        if changed:
            raise UnderstudyError(
                f"{path}: {self.name} was begun with {changed} {json.dumps(then[changed])}, not "
                f"{json.dumps(now[changed])}; expected the same, or another name"
            )

    def _rows(self) -> list[tuple[str, str | None, str | None]]:
        """Campaign, turn and case of its records."""
        if not store.folder().is_dir():
            return []
        where = "campaign IN (?, ?)", tuple(self.of_side(name) for name in SIDES)
        return [
            (c, t, case)
            for c, t, case in index.of_folder().select(("campaign", "turn", "case"), *where)
        ]

    def _ran(self) -> bool:
        """True if any case ran; a session that selected none is not binding."""
        self.turns()
        return any(case is not None for _, _, case in self._rows())

    def turns(self) -> dict[int, bool]:
        """The turns of which there are records, and whether each is whole: both sides ran, and no
        session was ended."""
        sides_by_turn: dict[int, dict[str, bool]] = {}
        for campaign, turn, case in self._rows():
            name, _, number = (turn or "").rpartition("/")
            if name != self.name:
                raise UnderstudyError(
                    f"{campaign}: has runs of {turn or 'no turn'}; expected another name for this "
                    "campaign"
                )
            sides = sides_by_turn.setdefault(int(number), {})
            sides[campaign] = sides.get(campaign, True) and case is not None
        return {
            number: len(sides) == len(SIDES) and all(sides.values())
            for number, sides in sorted(sides_by_turn.items())
        }

    # -- sessions -----------------------------------------------------------------------------

    def run(self, turn: int, name: str, told: Callable[[live.Event], None]) -> Outcome:
        """One session of a side, whose cases are told as they end. Those that fail count; an
        UnderstudyError where none ran."""
        this_side = self.side(name)
        stem = self.folder / f"turn-{turn}-{name}"
        log, report = stem.with_suffix(".log"), stem.with_suffix(".json")
        report.unlink(missing_ok=True)
        command = self.command(
            this_side, "-S", f"turn={self.name}/{turn}", "--report-file", str(report), "-r"
        )
        begin = time.monotonic()
        events = Path(os.environ.get(live.VARIABLE) or self.folder / "live.jsonl").absolute()
        follower = live.Follower(events)

        def tell_new() -> None:
            for event in follower.read():
                told(event)

        environment = self.environment(this_side) | {live.VARIABLE: str(events)}
        with log.open("wb") as out:
            reframe_process.run(command, environment, out, tell_new)
        took_s = time.monotonic() - begin
        results = _results(report)
        passed, failed, skipped = (results.count(kind) for kind in ("pass", "fail", "skip"))
        if not passed + failed:
            raise UnderstudyError(f"turn {turn}, {name}: {first_error(log)} ({log})")
        return Outcome(passed=passed, failed=failed, skipped=skipped, took_s=took_s, log=log)

    def listed(self, this_side: Side) -> tuple[Total, list[str]]:
        """Return the total of a session of a side, and the same as lines of text."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "listing.json"
            done = subprocess.run(
                self.command(this_side, "-l"),
                env=self.environment(this_side) | {VARIABLE: str(path)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
            total = Total(**json.loads(path.read_text())) if path.exists() else Total()
        lines = [line for line in done.stderr.splitlines() if line.startswith("understudy: ")]
        if done.returncode or not total.cases:
            raise UnderstudyError(f"{this_side.name}: {error_in(done.stdout + done.stderr)}")
        return total, [line.removeprefix("understudy: ") for line in lines]

    # -- what to compare ----------------------------------------------------------------------

    def differences(self) -> list[str]:
        """The keys of conditions in which the sides differ, as they ran last; the partition also
        where a case never ran well on both."""
        site_index = index.of_folder()
        last: list[dict[Any, str]] = []
        for name in SIDES:
            where = "campaign = ? AND failed = 0", (self.of_side(name),)
            rows = site_index.select(("case", "arm", "condition"), *where)
            last.append({(case, arm): condition for case, arm, condition in rows})
        keys: dict[str, None] = {}
        if len({this_side.partition for this_side in self.sides}) > 1:
            keys["place.partition"] = None
        for case in last[0].keys() & last[1].keys():
            both = [site_index.condition(conditions[case]) for conditions in last]
            keys |= dict.fromkeys(runs.differences(both)[0])
        return sorted(keys)

    def comparison(self, more: Sequence[str]) -> list[str]:
        """The command that compares the sides."""
        words = ["understudy", "compare", *(f"campaign:{self.of_side(name)}" for name in SIDES)]
        across = [word for key in self.differences() for word in ("--across", key)]
        return [*words, *across, *more]


def _results(report: Path) -> list[str]:
    """Results of the cases of a session; none where ReFrame did not get so far."""
    try:
        return [case["result"] for case in reports.cases(reports.load(report))]
    except UnderstudyError:
        return []


def first_error(log: Path) -> str:
    return error_in(read_text(log, errors="replace"))


def error_in(text: str) -> str:
    """The first error that ReFrame told, else the last message of ours, else its last line."""
    lines = [line.strip().removeprefix("* Reason: ") for line in _COLOR.sub("", text).splitlines()]
    lines = [line for line in lines if line and not line.startswith("---")]  # of what it ran
    errors = [
        f"{line} {after}" if line.endswith(":") else line
        for line, after in zip(lines, [*lines[1:], ""], strict=False)
        if re.search(r"\berror: ", line, re.IGNORECASE)
    ]
    ours = [line.removeprefix("understudy: ") for line in lines if line.startswith("understudy: ")]
    return [*errors[:1], *ours[-1:], *lines[-1:], "ReFrame printed nothing"][0]
