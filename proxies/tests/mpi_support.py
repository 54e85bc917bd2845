"""Runs the player for tests; states, independently of it, what a workload must leave behind."""

import copy
import ctypes
import hashlib
import itertools
import json
import math
import mmap
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT)]

from tests.support.keys import to_keys  # noqa: E402
from understudy.contracts.workload import build, load  # noqa: E402
from understudy.errors import UnderstudyError  # noqa: E402
from understudy.program.workload import row_of  # noqa: E402

SKIPPED = 77
SOURCES = sorted([*ROOT.glob("proxies/methods/*.c"), *ROOT.glob("studies/*/methods/*.c")])
METHODS = sorted(path.stem for path in SOURCES)
FILE_METHODS = [method for method in METHODS if method != "null"]
STEP_METHODS = ("adios", "adios2")  # whose libraries keep a step until it ends
# Whose files hold the payload and nothing else.
BYTE_METHODS = ("posix", "stdio", "mpiio", "uring")
# Of the names of a method's files, by its own row.
SUFFIXES = {
    path.stem: match[1]
    for path in SOURCES
    if (match := re.search(r'\.suffix = "(.*?)"', path.read_text()))
}
SHARED, SINGLE = HERE / "samples" / "shared.json", HERE / "samples" / "single.json"
CLAIM = ".understudy"  # of a run on its directory, while it runs
EVEN = {"rule": "even"}
TYPE_BYTES = {"byte": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8}
TYPE_BYTES |= {"u64": 8, "f32": 4, "f64": 8}

HYDRA_REPORT = re.compile(
    r"\n={60,}\n=   BAD TERMINATION .*\n(?:=   .*\n)*={60,}\n(?:YOUR APPLICATION TERMINATED .*\n"
    r"(?:.*\n)?.*debugging suggestions\n)?"
)
WROTE = re.compile(r"^wrote .*: [0-9]+ repetitions? of .*\n", re.MULTILINE)
PROGRESS = re.compile(r"(?m)^understudy: \S+: (?:waits .* for|dump \d+, due at) .*\n")  # of -v
MOVED = re.compile(r"(?:write|read) run/(\S+?)(?:\.h5|\.bp)? (\S+) offset (\d+) bytes (\d+) .*")

Json = dict[str, Any]


class Skip(Exception):
    """A case that cannot run here, for what this machine lacks; tests/skips.txt counts them."""

    def __init__(self, need: str, why: str) -> None:
        super().__init__(f"{why}\nneeds: {need}")


def expect(condition: bool, message: object) -> None:
    """Fails the case with the message (also under python -O, unlike assert)."""
    if not condition:
        raise AssertionError(message)


def equal(value: object, expected: object, where: object = "") -> None:
    expect(value == expected, f"{where}: {value}, expected {expected}")


# -- workloads, as keys ---------------------------------------------------------------------------


def keys(path: Path) -> Json:
    """A workload in a file, as keys."""
    row: Json = json.loads(to_keys(load(path)))
    return row


def sample(name: str) -> Json:
    """One of the sample workloads."""
    return keys(HERE / "samples" / f"{name}.json")


def program(workload: Json) -> Json:
    """The instructions of a workload of keys; anything else stays as it is."""
    try:
        return row_of(build(workload, "workload"))
    except UnderstudyError:
        return workload


def moves_of(row: Json) -> list[Json]:
    """The moves of a stream of a program."""
    instructions = itertools.chain(*(step["do"] for step in row["steps"]))
    return [i for i in instructions if isinstance(i, dict) and ("write" in i or "read" in i)]


def in_flight(described: Json, depth: int) -> Json:
    """Its program with so many calls of each move in flight."""
    row = program(described)
    for move in itertools.chain(*map(moves_of, row["streams"])):
        move["depth"] = depth
    return row


def variable(name: str = "v", shape: Sequence[int] = (30, 37), **changes: Any) -> Json:
    """By default rows of 296 bytes, not a multiple of a page or of a transfer."""
    row = {"name": name, "label": "", "count": 1, "type": "f64", "shape": list(shape)}
    return row | {"decomposition": EVEN, "file": 0} | changes


def dump(time_s: float = 0.0, *variables: Json, **changes: Any) -> Json:
    """A dump of the variables, or of `v`; `operations` by name as runs."""
    row: Json = {"time_s": time_s, "duration_s": None, "overhead_bytes": None}
    row |= {"variables": list(variables) or [variable()]} | changes
    if isinstance(row.get("operations"), dict):
        runs = row["operations"].items()
        row["operations"] = [{"operation": name, "runs": each} for name, each in runs]
    return row


@cache
def _plain_stream() -> Json:
    row: Json = sample("single")["streams"][0]
    row |= {"role": "output", "operation": "write", "files": "new", "layout": "shared"}
    row |= {"groups": None, "method": "posix", "transfer_bytes": 700, "collective": False}
    return row | {"sync": False, "turns": False, "dumps": [dump()]}


def stream(name: str, **changes: Any) -> Json:
    return copy.deepcopy(_plain_stream() | {"name": name} | changes)


def workload(*streams: Json, ranks: int = 3) -> Json:
    scaling = {"rule": "none", "from_ranks": ranks}
    return sample("single") | {"ranks": ranks, "scaling": scaling, "streams": list(streams)}


def timed(times_s: Sequence[float], name: str = "single", *variables: Json) -> Json:
    """A workload of one rank (or of four: shared) whose only stream has dumps at these times."""
    row = sample(name)
    first = row["streams"][0]
    changes = {"variables": list(variables)} if variables else {}
    first["dumps"] = [copy.deepcopy(first["dumps"][0]) | changes | {"time_s": t} for t in times_s]
    return row | {"streams": [first]}


def begun(described: Json) -> Json:
    """Its program with moves that are begun, computing beside them, and waited for then."""
    row = program(described)
    for step in itertools.chain(*(s["steps"] for s in row["streams"])):
        body: list[Any] = step["do"]
        moves = [i for i in body if isinstance(i, dict) and ("write" in i or "read" in i)]
        for move in moves:
            move["nonblocking"] = True
        behind = body.index(moves[-1]) + 1
        body[behind:behind] = [{"compute": 0.01}, "wait_all"]
    return row


def at(row: Json, path: Sequence[str | int]) -> Any:
    """The value at a path in a workload."""
    value: Any = row
    for key in path:
        value = value[key]
    return value


REMOVED = object()


def changed(row: Json, path: Sequence[str | int], value: Any) -> Json:
    """A copy with one value replaced, REMOVED, or by what a function makes of it."""
    twin = copy.deepcopy(row)
    above, last = at(twin, path[:-1]), path[-1]
    if value is REMOVED:
        del above[last]
    else:
        above[last] = value(above[last]) if callable(value) else value
    return twin


def variable_bytes(row: Json) -> int:
    """Bytes over all ranks, of all its like variables."""
    return int(row["count"] * math.prod(row["shape"]) * TYPE_BYTES[row["type"]])


def dump_bytes(row: Json) -> int:
    """Bytes over all ranks."""
    return sum(map(variable_bytes, row["variables"]))


def payload(row: Json) -> int:
    """Bytes of all dumps of a workload, each once."""
    return sum(dump_bytes(d) for s in row["streams"] for d in s["dumps"])


def expected_files(row: Json) -> dict[str, list[tuple[str, int, int]]]:
    """Every file that the workload makes, without the suffix of a method: the variables that stand
    in it, one behind the other, each with its first byte and the byte behind its last."""
    from tests.support import call_lines  # needs NumPy, which listing the cases does without

    moves_of: dict[str, set[tuple[int, int, str]]] = {}
    for line in itertools.chain(*call_lines.lines(build(program(row), "expected").program)):
        if (moved := MOVED.fullmatch(line)) and int(moved[4]):
            file, name, offset, size = moved.groups()
            moves_of.setdefault(file, set()).add((int(offset), int(size), name))
    files = {}
    for file, moves in moves_of.items():
        begins = [
            (next(group)[0], name)
            for name, group in itertools.groupby(sorted(moves), lambda move: move[2])
        ]
        ends = [offset for offset, _ in begins[1:]] + [sum(size for _, size, _ in moves)]
        files[file] = [(name, b, end) for (b, name), end in zip(begins, ends, strict=True)]
    return files


# -- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one run of the player ended."""

    status: int
    out: str
    err: str

    @property
    def complaints(self) -> str:
        """What is on stderr besides the line of a run that succeeded."""
        text, count = WROTE.subn("", self.err)
        expect(count == (self.status == 0), f"status {self.status}, {count} lines of success")
        return text

    @property
    def lines(self) -> list[str]:
        """Messages of the player on stderr."""
        return [line for line in self.err.splitlines() if line.startswith("understudy: ")]

    def message(self) -> str:
        """The player's one message on stderr."""
        expect(len(self.lines) == 1, f"expected one message, found {self.lines} in\n{self.err}")
        return self.lines[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """The program, the way to start ranks, and an empty folder for this case."""

    program: Path
    mpiexec: str
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        """The run directory."""
        return self.folder / "data"

    def command(self, ranks: int, *arguments: object) -> list[str]:
        """The command line; no ranks: without mpiexec."""
        start = [self.mpiexec, "-n", str(ranks)] if ranks else []
        return [*start, str(self.program), *map(str, arguments)]

    def start(self, ranks: int, *arguments: object) -> "subprocess.Popen[str]":
        """Starts the player and returns at once; what ctest preloads stays so."""
        given = [os.environ.get("LD_PRELOAD"), self.environment.get("LD_PRELOAD")]
        preloaded = {"LD_PRELOAD": " ".join(filter(None, given))} if any(given) else {}
        return subprocess.Popen(
            self.command(ranks, *arguments),
            cwd=self.folder,
            env=os.environ | dict(self.environment) | preloaded,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, ranks: int, *arguments: object, timeout_s: float = 120) -> Outcome:
        """Runs the player to its end, which must come within the time.

        A process without a launcher can crash while Open MPI 4.1 finalizes: an event of its own
        thread comes after the component that handles it was closed. It is run once more then."""
        outcome = finish(self.start(ranks, *arguments), timeout_s)
        if ranks or outcome.status != -signal.SIGSEGV:
            return outcome
        print(f"run again, since Open MPI crashed in MPI_Finalize: {outcome.err}")
        return finish(self.start(ranks, *arguments), timeout_s)

    def play(self, described: Json | Path, *arguments: object) -> Json:
        """A run that must succeed and say no more, into ./data; returns the checked result."""
        path = self.describe(described)
        text = path.read_text()
        result = self.folder / "result.json"
        result.unlink(missing_ok=True)
        ranks = json.loads(text)["ranks"]
        outcome = self.run(ranks, "-w", path, "-o", "data", "-O", result, *arguments)
        expect(outcome.status == 0, f"{arguments}: status {outcome.status}\n{outcome.err}")
        equal(outcome.out + outcome.complaints, "", f"{arguments}: printed")
        row: Json = json.loads(result.read_text())
        check_result(row, text)
        return row

    def kept(self, described: Json | Path, *arguments: object) -> tuple[Json, dict[str, bytes]]:
        """The result of a run, and its files."""
        self.clear()
        result = self.play(described, "-k", *arguments)
        files = self.files()
        self.clear()
        return result, files

    def describe(self, described: Json | Path, name: str = "workload.json") -> Path:
        """The path of the descriptor, written to the folder where it is not a file yet."""
        if isinstance(described, Path):
            return described
        path = self.folder / name
        path.write_text(json.dumps(program(described)))
        return path

    def files(self) -> dict[str, bytes]:
        """Names and contents of the files below ./data; without files it need not be there."""
        return files_below(self.data)

    def listed(self) -> dict[str, str]:
        """What --list says of each method."""
        lines = self.run(0, "--list").out.splitlines()
        return {line.split()[0]: line.split(maxsplit=1)[1] for line in lines if line.strip()}

    def methods(self, names: Iterable[str], word: str = "") -> list[str]:
        """Those methods that the build was configured with, and of which --list says the word."""
        built = [name for name in names if name in configured_methods()]
        listed = self.listed() if word else {}
        return [name for name in built if word in listed.get(name, "")]

    def collective(self, method: str) -> bool:
        """Has the method collective calls?"""
        return self.methods([method], "collective calls") == [method]

    def clear(self) -> None:
        """Removes ./data."""
        shutil.rmtree(self.data, ignore_errors=True)

    def script(self, text: str) -> "Player":
        """The player started by a line of a shell."""
        path = self.folder / "script"
        path.write_text(f'#!/bin/bash\n{text} {self.program} "$@"\n')
        path.chmod(0o755)
        return replace(self, program=path)

    def preloading(self, library: str, prefix: str, **variables: object) -> "Player":
        """With a library that ctest names, and what tells it what to do."""
        given = {f"{prefix}_{name}": str(value) for name, value in variables.items()}
        return replace(self, environment={"LD_PRELOAD": os.environ[library]} | given)


def files_below(folder: Path) -> dict[str, bytes]:
    """Paths in the folder and contents of all files below it."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def finish(process: "subprocess.Popen[str]", timeout_s: float = 120) -> Outcome:
    """Waits for the player."""
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.terminate()
        out, err = process.communicate(timeout=60)
        raise AssertionError(
            f"no end within {timeout_s} s: {process.args!r}\n{out}{err}"
        ) from None
    # Open MPI 5 ends what it prints of an abort with a NUL, in front of the next line; Hydra
    # reports one on standard output.
    out = HYDRA_REPORT.sub("", out)
    return Outcome(status=process.returncode, out=out, err=err.replace("\0", ""))


def output(player: Player, *command: object) -> str:
    """What another program prints in the case's folder."""
    words = list(map(str, command))
    return subprocess.run(
        words, cwd=player.folder, check=True, capture_output=True, text=True
    ).stdout


def wait_until(holds: Callable[[], bool], what: str = "it", timeout_s: float = 60) -> None:
    end = time.monotonic() + timeout_s
    while not holds():
        expect(time.monotonic() < end, f"waited {timeout_s} s for {what}")
        time.sleep(0.02)


def wait_for(folder: Path, files: int) -> None:
    """Waits until the folder holds so many files besides the claim of the run."""
    names = partial(folder.glob, "*")
    wait_until(lambda: len([n for n in names() if n.name != CLAIM]) >= files, f"{files} files")


def in_time(attempt: Callable[[], Any], attempts: int = 5) -> Any:
    """Makes an attempt that a busy machine can be too late for, until it succeeds; the last one's
    failure is the case's."""
    for left in reversed(range(attempts)):
        try:
            return attempt()
        except AssertionError:
            if not left:
                raise


def disturbed(
    player: Player,
    act: Callable[[Player, "subprocess.Popen[str]"], object],
    *options: object,
    described: Json | None = None,
    after: str = "field.000001*",
    ranks: int = 4,
) -> Outcome:
    """A run to which something is done while it waits for its second dump, whose files are called
    as `after` says. The case's folder is emptied before."""

    def attempt() -> Outcome:
        for left in player.folder.iterdir():
            shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        path = player.describe(described or timed([0, 2], "shared"))
        process = player.start(
            ranks, "-w", path, "-o", "data", "-O", "result.json", "-v", *options
        )
        assert process.stderr is not None
        lines = [process.stderr.readline()]  # of -v: the first dump has ended on rank 0
        while lines[-1] and not lines[-1].endswith("for dump 1\n"):
            lines.append(process.stderr.readline())
        time.sleep(0.5)
        late = [*player.data.glob(after)] if after else []
        waits = player.data.is_dir()  # not so if the run has ended already
        if waits:
            act(player, process)
        outcome = finish(process)
        expect(waits and not late, f"too busy to be in time, or no pause: {lines} {outcome.err}")
        return replace(outcome, err=PROGRESS.sub("", outcome.err))

    outcome: Outcome = in_time(attempt)
    return outcome


def flip(path: Path, place: int, bit: int = 1) -> None:
    """Changes a bit of a file."""
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ bit]))


def traced(player: Player, calls: str, *options: object, name: str = "$$") -> Player:
    """The player with the system calls of each rank in a file trace.NAME, by process or rank."""
    need_strace()
    words = " ".join(map(str, options))
    return player.script(
        f"exec strace -f {words} -e trace={calls} -o {player.folder}/trace.{name}"
    )


def traces(player: Player) -> dict[str, list[str]]:
    """The lines of each trace, which are removed."""
    paths = sorted(player.folder.glob("trace.*"))
    lines = {p.suffix[1:]: p.read_text(errors="replace").splitlines() for p in paths}
    for path in paths:
        path.unlink()
    return lines


def largest_mapping(player: Player, *arguments: object) -> int:
    """Bytes of the largest memory that a run by one rank asks the system for at once."""
    outcome = traced(player, "mmap").run(0, *arguments, "-O", "mapping.json")
    equal(outcome.status, 0, outcome.err)
    (player.folder / "mapping.json").unlink()
    shutil.rmtree(player.data, ignore_errors=True)
    lines = itertools.chain(*traces(player).values())
    return max(int(size) for line in lines for size in re.findall(r"mmap\(NULL, (\d+)", line))


def together(player: Player, names: Iterable[str], attempt: Callable[[Player, str], None]) -> None:
    """The attempt for each name, each in a folder of its own; several at once, since they wait."""

    def alone(name: str) -> None:
        folder = player.folder / name
        folder.mkdir()
        try:
            attempt(replace(player, folder=folder), name)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(alone, names))


# -- how runs end ---------------------------------------------------------------------------------


def refused(player: Player, ranks: int, *arguments: object, words: Iterable[str]) -> None:
    """The run is refused for a usage error, with these words, and leaves nothing new."""
    before = sorted(player.folder.rglob("*"))
    outcome = player.run(ranks, *arguments)
    shown = f"{[str(a) for a in arguments]}: status {outcome.status}\n{outcome.err}"
    expect((outcome.status, outcome.out) == (2, ""), shown)
    message = outcome.message()
    expect(not re.search(r"rank \d+ on|\.c:\d+", message), f"not an error of a rank: {shown}")
    for word in words:
        expect(word.lower() in message.lower(), f"{word!r} is missing: {shown}")
    expect(sorted(player.folder.rglob("*")) == before, f"files were left behind: {shown}")


def failed(outcome: Outcome, *words: str) -> None:
    """A rank met an error: its message has rank, host, place in the source, and these words."""
    expect(aborted(outcome), f"status {outcome.status}\n{outcome.err}")
    # ADIOS' MPI_LUSTRE says there that a file is gone, which the rank that failed has removed.
    equal(re.sub(r"Warning: statfs failed .*\n\s*", "", outcome.out), "", "stdout")
    lines = [line for line in outcome.lines if line.startswith("understudy: rank ")]
    expect(bool(lines), f"no message of a rank:\n{outcome.err}")
    expect(bool(re.search(r"rank \d+ on \S+: .* \([\w/]+\.c:\d+\)$", lines[0])), lines[0])
    for word in words:
        expect(any(word in line for line in lines), f"{word!r} is missing: {lines}")


def left_only(player: Player, *names: str, result: bool = False) -> None:
    """In ./data nothing but these is left, and there is a result only where the run was good."""
    paths = player.data.rglob("*")
    equal(sorted(str(p.relative_to(player.data)) for p in paths), sorted(names), "left")
    equal((player.folder / "result.json").exists(), result, "a result")


def aborted(outcome: Outcome) -> bool:
    """Did an error of a rank end the run? 2 is a usage error; Hydra returns the signal that it
    ends the other ranks with, where a rank aborts with the status 1."""
    return outcome.status not in (0, 2)


@cache
def stops_in_order(mpiexec: str) -> bool:
    """Does the launcher let the other ranks clean up when one is killed? Hydra kills them, too."""
    rank = variable_of_rank(mpiexec)
    script = f'trap "echo stopped; exit 1" TERM; sleep 1; [ ${rank} = 1 ] && kill -9 $$; '
    command = [mpiexec, "-n", "2", "sh", "-c", f"{script} sleep 20 & wait"]
    return "stopped" in subprocess.run(command, capture_output=True, text=True, check=False).stdout


def stopped(player: Player, outcome: Outcome) -> bool:
    """Does the status of a launcher that got a signal tell of it? Hydra may return 0 where the
    ranks ended before it looked."""
    return outcome.status != 0 or not stops_in_order(player.mpiexec)


@cache
def variable_of_rank(mpiexec: str) -> str:
    """The environment variable in which the launcher tells each process its rank."""
    command = [mpiexec, "-n", "3", "env"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    values: dict[str, list[str]] = {}
    for name, value in re.findall(r"(?m)^(\w*(?:RANK|PROCID))=(\d+)$", text):
        values.setdefault(name, []).append(value)
    names = [name for name in sorted(values) if sorted(values[name]) == ["0", "1", "2"]]
    expect(bool(names), f"{mpiexec} tells its processes no rank: {values}")
    return names[0]


def ranks_below(player: Player, launcher: int) -> dict[int, int]:
    """The process of each rank that a launcher started, itself or through its daemons."""
    name = variable_of_rank(player.mpiexec).encode()
    rank_of, parents = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            status = (entry / "stat").read_text()
            environment = (entry / "environ").read_bytes()
            parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
            if match := re.search(rb"(?:^|\0)%b=(\d+)\0" % name, environment):
                rank_of[int(entry.name)] = int(match[1])

    def below(process: int) -> bool:
        return process == launcher or (process in parents and below(parents[process]))

    return {rank: process for process, rank in rank_of.items() if below(process)}


# -- what a machine lacks -------------------------------------------------------------------------


LIBRARIES = {"adios": "ADIOS 1.13", "adios2": "ADIOS2", "hdf5": "parallel HDF5"}
LIBRARIES |= {"uring": "liburing"}


def methods_with_libraries() -> list[str]:
    """The methods whose libraries CMake found; ctest passes them on."""
    names = os.environ.get("UND_METHODS", "").split()
    expect(bool(names), "UND_METHODS is not set; ctest sets it")
    return names


@cache
def io_uring_works() -> bool:
    """Whether the system lets this process set up an io_uring, asked without liburing."""
    io_uring_setup, parameters = 425, ctypes.create_string_buffer(120)
    descriptor = ctypes.CDLL(None, use_errno=True).syscall(io_uring_setup, 1, parameters)
    if descriptor >= 0:
        os.close(descriptor)
    return bool(descriptor >= 0)


def configured_methods() -> list[str]:
    """The methods whose libraries CMake found, and that the system permits."""
    names = methods_with_libraries()
    return [name for name in names if name != "uring" or io_uring_works()]


def need_method(method: str) -> None:
    """Skips the case where the build lacks the method, or the system forbids it."""
    if method in configured_methods():
        return
    lacks_library = method not in methods_with_libraries()
    missing = [LIBRARIES[method]] if lacks_library else []
    missing += ["io_uring"] if method == "uring" and not io_uring_works() else []
    why = "CMake found no library for" if lacks_library else "the system forbids"
    raise Skip(", ".join(missing), f"{why} the method {method}")


def data_of(path: Path) -> Path:
    """The file itself, or that with the data in the directory that it is."""
    return path / "data.0" if path.is_dir() else path


def need_program(name: str, package: str) -> None:
    """Skips the case where the program is not on PATH."""
    if not shutil.which(name):
        raise Skip(name, f"{name} (Debian: {package}) is not on PATH")


def need_strace() -> None:
    """Skips the case where strace is missing, or may not trace `true`."""
    need_program("strace", "strace")
    command = ["strace", "-o", "/dev/null", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skip("ptrace", f"strace may not trace here: {done.stderr.strip()[-200:]}")


def need_injection(folder: Path) -> None:
    """Skips the case where strace cannot let `cat` fail to read a file."""
    need_strace()
    file, log = folder / "injected", folder / "injected.log"
    file.touch()
    command = ["strace", "-o", log, "-P", file, "-e", "trace=read", "-e", "inject=read:error=EIO"]
    done = subprocess.run([*command, "cat", file], capture_output=True, text=True, check=False)
    injected = "INJECTED" in log.read_text()
    file.unlink()
    log.unlink()
    if not injected:
        raise Skip("ptrace", f"strace cannot inject errors here: {done.stderr.strip()[-200:]}")


def need_direct_io(folder: Path) -> None:
    """Skips the case where no file in the folder can be opened with O_DIRECT."""
    file = folder / "direct"
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_DIRECT))
    except OSError as error:
        raise Skip("O_DIRECT", f"no file of {folder} can be opened so: {error.strerror}") from None
    finally:
        file.unlink(missing_ok=True)


def need_sectors(folder: Path) -> None:
    """Skips the case where direct calls cannot end within a page."""
    need_direct_io(folder)
    file = folder / "direct"
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    try:
        os.pwrite(descriptor, memoryview(mmap.mmap(-1, 4096))[:512], 512)
    except OSError as error:
        raise Skip("sectors of 512 bytes", f"{folder}: {error.strerror}") from None
    finally:
        os.close(descriptor)
        file.unlink()


def resident_bytes(path: Path) -> int:
    """Bytes of the file in the page cache, in whole pages."""
    page, size = os.sysconf("SC_PAGESIZE"), path.stat().st_size
    pages = -(-size // page)
    resident = (ctypes.c_ubyte * pages)()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), size) as mapped:
        first = ctypes.c_char.from_buffer(mapped)
        code = ctypes.CDLL(None).mincore(ctypes.byref(first), ctypes.c_size_t(size), resident)
        del first
    expect(code == 0, f"mincore of {path}")
    return page * sum(number & 1 for number in resident)


# -- results --------------------------------------------------------------------------------------


def check_schema(row: Json, name: str) -> None:
    """A result keeps to its schema."""
    try:
        import jsonschema
    except ImportError:
        print("the schema is not checked: jsonschema is not installed")
    else:
        jsonschema.validate(
            row, json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text())
        )


def check_result(result: Json, described: str) -> None:
    """The result keeps to its schema and to what the schema says in words."""
    check_schema(result, "player")
    expect(result["workload"] == described, "the result holds another descriptor")
    equal(result["workload_sha256"], hashlib.sha256(described.encode()).hexdigest(), "SHA-256")
    equal(len(result["repetitions"]), result["options"]["repetitions"], "repetitions")
    for repetition in result["repetitions"]:
        for row in repetition["streams"]:
            for each in row["dumps"]:
                check_dump(f"{row['name']} dump {each['dump']}", row, each, repetition)


def check_dump(where: str, of: Json, row: Json, repetition: Json) -> None:
    """Times are in order, bytes and phases belong together."""
    late = row["start_s"] - row["scheduled_s"]
    expect(math.isclose(row["lateness_s"], late, abs_tol=1e-6), f"{where}: lateness_s {late}")
    expect(late >= -1e-6, f"{where}: began too early")
    moved = {p["phase"]: p["bytes"] for p in row["phases"] if p["bytes"]}
    expected = {of["operation"]: row["bytes"]} if row["bytes"] else {}
    if len(moved) == 2:  # calls of the system
        expected = {"read": moved["read"], "write": row["bytes"] - moved["read"]}
    equal(moved, expected, f"{where}: bytes of phases")
    for phase in row["phases"]:
        name = f"{where}, {phase['phase']}"
        s = phase["rank_s"]
        ordered = [s[key] for key in ("min", "q25", "median", "q75", "q95", "max")]
        equal(ordered, sorted(ordered), f"{name}: order statistics")
        within = s["min"] <= s["mean"] * (1 + 1e-9) + 1e-12 and s["mean"] <= s["max"] * (1 + 1e-9)
        expect(within or s["max"] < 1e-12, f"{name}: the mean is not within {s}")
        span = phase["last_end_s"] - phase["first_start_s"]
        expect(s["max"] <= span + 1e-6, f"{name}: a rank took {s['max']} s of {span} s")
        expect(phase["last_end_s"] <= repetition["elapsed_s"] + 1e-6, f"{name}: ends too late")
        expect(phase["first_start_s"] >= row["start_s"] - 1e-6, f"{name}: begins before its dump")
        check_first_end(name, phase)


def check_first_end(name: str, phase: Json) -> None:
    """The first rank that moved bytes ended within the phase, and has its own bytes by then."""
    if not phase["bytes"]:
        expect("first_end_s" not in phase, f"{name}: a first end, but no bytes")
        return
    first = phase["first_end_s"]
    within = phase["first_start_s"] <= first <= phase["last_end_s"]
    expect(within, f"{name}: the first rank ended at {first} s")
    expect(0 < phase["first_end_bytes"] <= phase["bytes"], f"{name}: {phase['first_end_bytes']}")


def verified(result: Json, size: int, where: object = "") -> None:
    """So many bytes were compared, and none was wrong."""
    equal(result["verification"], {"bytes": size, "wrong_bytes": 0}, f"{where}: verified")


def dumps_of(result: Json, name: str | int = 0) -> list[Json]:
    """The dumps of a stream in the first repetition, by its name or number."""
    streams = result["repetitions"][0]["streams"]
    key = name if isinstance(name, int) else [s["name"] for s in streams].index(name)
    dumps: list[Json] = streams[key]["dumps"]
    return dumps


def phases_of(row: Json) -> dict[str, int]:
    """Operations of each phase of a dump."""
    return {p["phase"]: p["operations"] for p in row["phases"]}


def phase_of(row: Json, *names: str) -> Json:
    """The first phase of a dump that has one of the names."""
    phase: Json = next(p for p in row["phases"] if p["phase"] in names)
    return phase


def dry_run(player: Player, described: Json, *options: object, lines: Iterable[str]) -> None:
    """The plan of a workload has these lines, whatever the blanks between words."""
    outcome = player.run(0, "-w", player.describe(described), "-o", "data", "--dry-run", *options)
    expect(outcome.status == 0, outcome.err)
    shown = [" ".join(line.split()) for line in outcome.out.splitlines()]
    for line in lines:
        expect(line in shown, f"{line!r} is missing in {outcome.out}")


# -- cases ----------------------------------------------------------------------------------------


def named(*cases: Callable[[Player], None]) -> dict[str, Callable[[Player], None]]:
    """Cases by the names of their functions."""
    return {case.__name__.replace("_", "-"): case for case in cases}


def for_each(case: Callable[..., None], values: Iterable[str]) -> dict[str, Callable[..., None]]:
    """A case for each of some values, which its function takes after the player."""
    name = case.__name__.replace("_", "-")
    return {f"{name}.{value}": (lambda player, v=value: case(player, v)) for value in values}


def main(prefix: str, names: Mapping[str, Callable[[Player], None]]) -> int:
    """Lists the cases, or runs one: --list, or CASE PROGRAM MPIEXEC FOLDER."""
    if sys.argv[1:] == ["--list"]:
        print("\n".join(names))
        return 0
    case, executable, mpiexec, base = sys.argv[1:5]
    folder = Path(base) / f"{prefix}.{case}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        names[case](Player(program=Path(executable), mpiexec=mpiexec, folder=folder))
    except Skip as reason:
        print(f"{prefix}.{case}: {reason}")
        return SKIPPED
    shutil.rmtree(folder)
    print(f"{prefix}.{case}: passed")
    return 0
