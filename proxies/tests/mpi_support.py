"""Runs the player for tests; states, independently of it, what a workload must leave behind."""

import hashlib
import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
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
# Of the names of a method's files, by its own row.
SUFFIXES = {
    path.stem: found[1]
    for path in sorted([*ROOT.glob("proxies/methods/*.c"), *ROOT.glob("studies/*/methods/*.c")])
    if (found := re.search(r'\.suffix = "(.*?)"', path.read_text()))
}
TYPE_BYTES = {"byte": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "i64": 8}
TYPE_BYTES |= {"u64": 8, "f32": 4, "f64": 8}

HYDRA_REPORT = re.compile(
    r"\n={60,}\n=   BAD TERMINATION .*\n(?:=   .*\n)*={60,}\n(?:YOUR APPLICATION TERMINATED .*\n"
    r"(?:.*\n)?.*debugging suggestions\n)?"
)

Json = dict[str, Any]


class Skip(Exception):
    """A case that cannot run here, for what this machine lacks; tests/skips.txt counts them."""

    def __init__(self, need: str, why: str) -> None:
        super().__init__(f"{why}\nneeds: {need}")


WROTE = re.compile(r"^wrote .*: [0-9]+ repetitions? of .*\n", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one run of the player ended."""

    status: int
    out: str
    err: str

    @property
    def complaints(self) -> str:
        """What is on stderr besides the line of a run that succeeded."""
        found, count = WROTE.subn("", self.err)
        expect(count == (self.status == 0), f"status {self.status}, {count} lines of success")
        return found

    def message(self) -> str:
        """The player's one message on stderr."""
        lines = [line for line in self.err.splitlines() if line.startswith("understudy: ")]
        expect(
            len(lines) == 1, f"one message was expected on stderr, found {lines} in\n{self.err}"
        )
        return lines[0]


def program(workload: Json) -> Json:
    """The instructions of a workload of keys, which the cases are made of; one that is none stays
    as it is."""
    try:
        return row_of(build(workload, "workload"))
    except UnderstudyError:
        return workload


def begun(described: Json) -> Json:
    """Its program with moves that are begun, computing beside them, and waited for then."""
    made = program(described)
    for one in made["streams"]:
        for step in one["steps"]:
            body: list[Any] = step["do"]
            moves = [i for i in body if isinstance(i, dict) and ("write" in i or "read" in i)]
            for move in moves:
                move["nonblocking"] = True
            behind = body.index(moves[-1]) + 1
            body[behind:behind] = [{"compute": 0.01}, "wait_all"]
    return made


def keys(path: Path) -> Json:
    """A workload in a file, as keys."""
    found: Json = json.loads(to_keys(load(path)))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Player:
    """The program, the way to start ranks, and an empty folder for this case."""

    program: Path
    mpiexec: str
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)

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
            env=os.environ | self.environment | preloaded,
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

    def play(self, workload: Json | Path, *arguments: object, ranks: int | None = None) -> Json:
        """A run that must succeed and say no more, into ./data; returns the checked result."""
        path = self.describe(workload)
        text = path.read_text()
        result = self.folder / "result.json"
        result.unlink(missing_ok=True)
        outcome = self.run(
            ranks or json.loads(text)["ranks"], "-w", path, "-o", "data", "-O", result, *arguments
        )
        expect(outcome.status == 0, f"{arguments}: status {outcome.status}\n{outcome.err}")
        expect(outcome.out == "", f"{arguments}: stdout is not empty: {outcome.out}")
        expect(outcome.complaints == "", f"{arguments}: stderr: {outcome.err}")
        found: Json = json.loads(result.read_text())
        check_result(found, text)
        return found

    def describe(self, workload: Json | Path) -> Path:
        """The path of the descriptor, written to the folder where it is not a file yet."""
        if isinstance(workload, Path):
            return workload
        path = self.folder / "workload.json"
        path.write_text(json.dumps(program(workload)))
        return path

    def data(self) -> dict[str, bytes]:
        """Names and contents of the files below ./data; without files it need not be there."""
        return files_below(self.folder / "data")

    def listed(self) -> dict[str, str]:
        """What --list says of each method."""
        lines = self.run(0, "--list").out.splitlines()
        return {line.split()[0]: line.split(maxsplit=1)[1] for line in lines if line.strip()}

    def methods(self, names: list[str], word: str = "") -> list[str]:
        """Those methods that the build was configured with, and of which --list says the word."""
        built = [name for name in names if name in configured_methods()]
        if not word:
            return built
        listed = self.listed()
        return [name for name in built if word in listed[name]]

    def collective(self, method: str) -> bool:
        """Has the method collective calls?"""
        return self.methods([method], "collective calls") == [method]

    def clear(self) -> None:
        """Removes ./data."""
        shutil.rmtree(self.folder / "data", ignore_errors=True)


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


def expect(condition: bool, message: str) -> None:
    """Fails the case with the message (also under python -O, unlike assert)."""
    if not condition:
        raise AssertionError(message)


def in_time(attempt: Callable[[], None], attempts: int = 5) -> None:
    """Makes an attempt that a busy machine can be too late for, until it succeeds; the last one's
    failure is the case's."""
    for left in reversed(range(attempts)):
        try:
            return attempt()
        except AssertionError:
            if not left:
                raise


def configured_methods() -> list[str]:
    """The methods whose libraries CMake found; ctest passes them on."""
    names = os.environ.get("UND_METHODS", "").split()
    expect(bool(names), "UND_METHODS is not set; ctest sets it")
    return names


def need_method(method: str) -> None:
    """Skips the case where the build was configured without the method."""
    if method not in configured_methods():
        need = {"adios": "ADIOS 1.13", "hdf5": "parallel HDF5"}[method]
        raise Skip(need, f"CMake found no library for the method {method}")


def need_program(name: str, package: str) -> None:
    """Skips the case where the program is not on PATH."""
    if not shutil.which(name):
        raise Skip(name, f"{name} (Debian: {package}) is not on PATH")


def need_strace(*options: str) -> None:
    """Skips the case where strace is missing, or may not trace `true` with the options."""
    need_program("strace", "strace")
    command = ["strace", *options, "-o", "/dev/null", "true"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    if tried.returncode:
        raise Skip("ptrace", f"strace may not trace here: {tried.stderr.strip()[-200:]}")


def need_injection(folder: Path) -> None:
    """Skips the case where strace cannot let `cat` fail to read a file."""
    need_strace()
    file, log = folder / "injected", folder / "injected.log"
    file.touch()
    command = ["strace", "-o", log, "-P", file, "-e", "trace=read", "-e", "inject=read:error=EIO"]
    tried = subprocess.run([*command, "cat", file], capture_output=True, text=True, check=False)
    injected = "INJECTED" in log.read_text()
    file.unlink()
    log.unlink()
    if not injected:
        raise Skip("ptrace", f"strace cannot inject errors here: {tried.stderr.strip()[-200:]}")


def need_direct_io(folder: Path) -> None:
    """Skips the case where no file in the folder can be opened with O_DIRECT."""
    file = folder / "direct"
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_DIRECT))
    except OSError as error:
        raise Skip("O_DIRECT", f"no file of {folder} can be opened so: {error.strerror}") from None
    finally:
        file.unlink(missing_ok=True)


@cache
def variable_of_rank(mpiexec: str) -> str:
    """The environment variable in which the launcher tells each process its rank."""
    asked = subprocess.run(
        [mpiexec, "-n", "3", "env"], capture_output=True, text=True, check=True
    ).stdout
    values: dict[str, list[str]] = {}
    for name, value in re.findall(r"(?m)^(\w*(?:RANK|PROCID))=(\d+)$", asked):
        values.setdefault(name, []).append(value)
    found = [name for name in sorted(values) if sorted(values[name]) == ["0", "1", "2"]]
    expect(bool(found), f"{mpiexec} tells its processes no rank: {values}")
    return found[0]


def ranks_below(player: Player, launcher: int) -> dict[int, int]:
    """The process of each rank that a launcher started, itself or through its daemons."""
    name = variable_of_rank(player.mpiexec).encode()
    found, parents = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            status = (entry / "stat").read_text()
            environment = (entry / "environ").read_bytes()
        except (OSError, ValueError):
            continue
        parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
        if match := re.search(rb"(?:^|\0)%b=(\d+)\0" % name, environment):
            found[int(entry.name)] = int(match[1])

    def below(process: int) -> bool:
        return process == launcher or (process in parents and below(parents[process]))

    return {rank: process for process, rank in found.items() if below(process)}


@cache
def stops_in_order(mpiexec: str) -> bool:
    """Does the launcher let the other ranks clean up when one is killed? Hydra kills them, too."""
    rank = variable_of_rank(mpiexec)
    script = f'trap "echo stopped; exit 1" TERM; sleep 1; [ ${rank} = 1 ] && kill -9 $$; '
    asked = subprocess.run(
        [mpiexec, "-n", "2", "sh", "-c", f"{script} sleep 20 & wait"],
        capture_output=True,
        text=True,
        check=False,
    )
    return "stopped" in asked.stdout


def stopped(player: Player, outcome: Outcome) -> bool:
    """Does the status of a launcher that got a signal tell of it? Hydra may return 0 where the
    ranks ended before it looked."""
    return outcome.status != 0 or not stops_in_order(player.mpiexec)


def aborted(outcome: Outcome) -> bool:
    """Did an error of a rank end the run? 2 is a usage error; Hydra returns the signal that it
    ends the other ranks with, where a rank aborts with the status 1."""
    return outcome.status not in (0, 2)


def together(player: Player, names: Iterable[str], attempt: Callable[[Player, str], None]) -> None:
    """The attempt for each name, each in a folder of its own; several at once, since they wait."""

    def one(name: str) -> None:
        folder = player.folder / name
        folder.mkdir()
        try:
            attempt(replace(player, folder=folder), name)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None

    with ThreadPoolExecutor(3) as pool:
        for _ in pool.map(one, names):
            pass


def sample(name: str) -> Json:
    """One of the sample workloads."""
    found = keys(HERE / "samples" / f"{name}.json")
    return found


def check_result(result: Json, workload: str) -> None:
    """The result keeps to its schema and to what the schema says in words."""
    try:
        import jsonschema
    except ImportError:
        print("the schema is not checked: jsonschema is not installed")
    else:
        schema = json.loads((ROOT / "schemas" / "player.schema.json").read_text())
        jsonschema.validate(result, schema)
    expect(result["workload"] == workload, "the result holds another descriptor")
    digest = hashlib.sha256(workload.encode()).hexdigest()
    expect(result["workload_sha256"] == digest, "the SHA-256 of the descriptor is wrong")
    expect(
        len(result["repetitions"]) == result["options"]["repetitions"], "repetitions are missing"
    )
    for repetition in result["repetitions"]:
        for stream in repetition["streams"]:
            for dump in stream["dumps"]:
                check_dump(f"{stream['name']} dump {dump['dump']}", stream, dump, repetition)


def check_dump(where: str, stream: Json, dump: Json, repetition: Json) -> None:
    """Times are in order, bytes and phases belong together."""
    late = dump["start_s"] - dump["scheduled_s"]
    expect(math.isclose(dump["lateness_s"], late, abs_tol=1e-6), f"{where}: lateness_s {late}")
    expect(dump["start_s"] >= dump["scheduled_s"] - 1e-6, f"{where}: began too early")
    moved = {p["phase"]: p["bytes"] for p in dump["phases"] if p["bytes"]}
    expected = {stream["operation"]: dump["bytes"]} if dump["bytes"] else {}
    if len(moved) == 2:  # calls of the system
        expected["read"] = moved["read"]
        expected["write"] = dump["bytes"] - moved["read"]
    expect(moved == expected, f"{where}: bytes of phases {moved}, expected {expected}")
    for phase in dump["phases"]:
        name = f"{where}, {phase['phase']}"
        s = phase["rank_s"]
        ordered = [s[key] for key in ("min", "q25", "median", "q75", "q95", "max")]
        expect(ordered == sorted(ordered), f"{name}: order statistics {ordered}")
        expect(s["min"] <= s["mean"] * (1 + 1e-9) + 1e-12, f"{name}: mean below min")
        expect(s["mean"] <= s["max"] * (1 + 1e-9) + 1e-12, f"{name}: mean above max")
        span = phase["last_end_s"] - phase["first_start_s"]
        expect(s["max"] <= span + 1e-6, f"{name}: a rank took {s['max']} s of {span} s")
        expect(phase["last_end_s"] <= repetition["elapsed_s"] + 1e-6, f"{name}: ends too late")
        expect(phase["first_start_s"] >= dump["start_s"] - 1e-6, f"{name}: begins before its dump")


def variable_bytes(variable: Json) -> int:
    """Bytes over all ranks, of all its like variables."""
    return int(variable["count"] * math.prod(variable["shape"]) * TYPE_BYTES[variable["type"]])


def dump_bytes(dump: Json) -> int:
    """Bytes over all ranks."""
    return sum(map(variable_bytes, dump["variables"]))


MOVED = re.compile(r"(?:write|read) run/(\S+?)(?:\.h5|\.bp)? (\S+) offset (\d+) bytes (\d+) .*")


def expected_files(workload: Json) -> dict[str, list[tuple[str, int, int]]]:
    """Every file that the workload makes, without the suffix of a method: the variables that stand
    in it, one behind the other, each with its first byte and the byte behind its last."""
    from tests.support import call_lines  # needs NumPy, which listing the cases does without

    found: dict[str, set[tuple[int, int, str]]] = {}
    for line in itertools.chain(*call_lines.lines(build(program(workload), "expected").program)):
        if (moved := MOVED.fullmatch(line)) and int(moved[4]):
            file, variable, at, size = moved.groups()
            found.setdefault(file, set()).add((int(at), int(size), variable))
    files = {}
    for file, moves in found.items():
        begins = [
            (next(group)[0], variable)
            for variable, group in itertools.groupby(sorted(moves), lambda move: move[2])
        ]
        ends = [at for at, _ in begins[1:]] + [sum(size for _, size, _ in moves)]
        files[file] = [(v, at, end) for (at, v), end in zip(begins, ends, strict=True)]
    return files


def main(prefix: str, names: dict[str, Callable[[Player], None]]) -> int:
    """Lists the cases, or runs one: --list, or CASE --player P --mpiexec M --folder F."""
    if sys.argv[1:] == ["--list"]:
        print("\n".join(names))
        return 0
    case, program, mpiexec, base = sys.argv[1:5]
    folder = Path(base) / f"{prefix}.{case}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    player = Player(program=Path(program), mpiexec=mpiexec, folder=folder)
    try:
        names[case](player)
    except Skip as reason:
        print(f"{prefix}.{case}: {reason}")
        return SKIPPED
    shutil.rmtree(folder)
    print(f"{prefix}.{case}: passed")
    return 0
