"""Calls of storage that fail or do not return: each run ends, says why, leaves nothing unsaid.

`mpi_fault.py --list` names the cases, `mpi_fault.py CASE PROGRAM MPIEXEC FOLDER` runs one. The
case `some-of-the-table` runs some of a table, one entry of each call and others, chosen by a seed.
The whole table, for which the variables UND_FAULT and UND_METHODS are set as by ctest:

    mpi_fault.py --table                                   # names its entries
    mpi_fault.py --all PROGRAM MPIEXEC FOLDER [WORD...]    # runs those named with all words

What is expected of an entry is what a user needs, whatever the player does: the run ends within
60 s with a status that is not 0, one line says the reason in the system's words, files of others
are as before, no result is there, and what is left of the run's own files is said.
"""

import errno
import itertools
import os
import random
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from mpi_support import (
    BYTE_METHODS,
    FILE_METHODS,
    STEP_METHODS,
    Json,
    Outcome,
    Player,
    configured_methods,
    dump,
    equal,
    expect,
    files_below,
    finish,
    main,
    named,
    stream,
    timed,
    variable,
    wait_for,
    workload,
)

LIMIT_S, WATCHDOG_S = 60, 4
DEPTH = ["-m", "uring.depth=4"]
SEED, SAMPLE = 39, 30

# What fails with what, and whether it goes on failing: a full storage does, a broken wire may not.
FULL, BROKEN, REFUSED = ("ENOSPC", "EDQUOT"), ("EIO",), ("EACCES", "EROFS")
LASTS = {"ENOSPC", "EDQUOT", "EROFS", "EACCES", "short", "nothing"}
CALLS: dict[str, tuple[str, ...]] = {
    "write": (*FULL, *BROKEN, "EROFS", "EFBIG", "short", "hang"),
    "close": (*FULL, *BROKEN, "hang"),
    "sync": (*FULL, *BROKEN, "hang"),
    "read": (*BROKEN, "ESTALE", "nothing", "hang"),
    "create": (*FULL, *BROKEN, *REFUSED, "hang"),
    "open": (*BROKEN, "EACCES", "ESTALE"),
    "truncate": (*FULL, *BROKEN),
    "stat": (*BROKEN, "EACCES", "hang"),
    "unlink": (*BROKEN, *REFUSED, "EBUSY", "hang"),
    "rmdir": (*BROKEN, "EBUSY"),
    "rename": (*FULL, *BROKEN),
    "mkdir": (*FULL, *BROKEN, *REFUSED, "hang"),
    "statfs": BROKEN,
    "seek": BROKEN,
    "look": (*BROKEN, "EACCES", "hang"),  # a library, at the directory of its file
}
# Calls that are made more often fail at another time as well.
LATER = {
    "write": {"*": 3, "stdio": 2},  # which writes the transfers of a dump together
    "close": {"*": 2},
    "stat": {"*": 3},
    "open": {"*": 2},
    "unlink": {"*": 2},
    "sync": {"*": 2},
    "look": {"*": 2},
}
# Calls that the player makes of the run as a whole, whatever the method.
OF_THE_RUN = {"rmdir", "rename", "mkdir", "statfs"}
LIBRARIES = {"mpiio", "hdf5", *STEP_METHODS}
# The words of the MPI standard's own classes of errors are as good as the system's.
CLASSES = {"ENOSPC": "MPI_ERR_NO_SPACE", "EDQUOT": "MPI_ERR_QUOTA", "EROFS": "MPI_ERR_READ_ONLY"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row of the table."""

    call: str
    error: str
    method: str
    ranks: int
    turn: int
    sync: bool
    verify: bool

    @property
    def name(self) -> str:
        words = [self.call, self.error, self.method, f"{self.ranks}-ranks", f"turn-{self.turn}"]
        return ".".join([*words, *["sync"] * self.sync, *["verify"] * self.verify])


def table() -> list[Entry]:
    """Every call with every error through every method, alone and shared, each with another choice
    of flushes and verification."""
    entries = []
    choices = itertools.cycle(itertools.product((False, True), repeat=2))
    for call, errors in CALLS.items():
        methods = FILE_METHODS
        if call in OF_THE_RUN:
            methods = ["posix"]
        elif call == "truncate":  # of files that are written again, which ADIOS does not do
            methods = [method for method in FILE_METHODS if method not in STEP_METHODS]
        elif call == "look":
            methods = [method for method in FILE_METHODS if method in LIBRARIES]
        times = ("first", "later") if call in LATER else ("first",)
        for error, method, ranks, time in itertools.product(errors, methods, (1, 4), times):
            sync, verify = next(choices)
            entries.append(
                Entry(
                    call=call,
                    error=error,
                    method=method,
                    ranks=ranks,
                    turn=1 if time == "first" else LATER[call].get(method, LATER[call]["*"]),
                    sync=sync or call == "sync",
                    verify=verify,
                )
            )
        next(choices)  # so that neighbours in two calls differ
    return entries


def sampled(entries: list[Entry]) -> list[Entry]:
    """One entry of each call, and others up to the number; the same for the same table."""
    chance = random.Random(SEED)
    by_call = [[e for e in entries if e.call == call] for call in CALLS]
    chosen = [chance.choice(some) for some in by_call if some]
    rest = [e for e in entries if e not in chosen and e.error != "hang"]
    return chosen + chance.sample(rest, min(len(rest), SAMPLE - len(chosen)))


def described(entry: Entry) -> Json:
    """Two dumps of a file that the ranks share, or the same files read; renames beside them."""
    data = variable("data", [512 * entry.ranks])  # two transfers of each
    keys: Json = {"operation": "read"} if entry.call == "read" else {"sync": entry.sync}
    keys |= {"files": "rewrite"} if entry.call == "truncate" else {}
    if (entry.call, entry.method) == ("sync", "uring"):  # behind transfers in flight
        keys |= {"sync_bytes": 2048}
    keys |= {"method": entry.method, "transfer_bytes": 2048}
    dumps = [dump(0.0, data), dump(0.01, data)]
    return workload(stream("field", **keys, dumps=dumps), ranks=entry.ranks)


def injected(player: Player, entry: Entry) -> Player:
    """The player with the fault: in its first rank where only that makes the call, else in its
    last one or, at a later turn, in all."""
    of_first = entry.call in OF_THE_RUN or entry.call in ("create", "unlink", "truncate", "look")
    rank = "0" if of_first else "all" if entry.turn > 1 else str(entry.ranks - 1)
    words = ("hang", "short", "flip", "nothing")
    error = entry.error if entry.error in words else getattr(errno, entry.error)
    variables = {"CALL": entry.call, "RANK": rank, "UNDER": player.folder.resolve()}
    variables |= {"TURN": entry.turn, "ERROR": error, "SILLY": 1}
    variables |= {"LOG": player.folder.with_suffix(".faults")}
    if entry.call == "look":
        variables["END"] = "/data"
    elif entry.call not in OF_THE_RUN:
        variables["NAME"] = "/data/field"
    if entry.error in LASTS:
        variables["KEEPS"] = 1
    return player.preloading("UND_FAULT", "FAULT", **variables)


def causes(entry: Entry) -> list[str]:
    """Any of these names the reason."""
    if entry.error == "hang":
        return ["no progress for"]
    if entry.error == "nothing":
        return [os.strerror(errno.ENODATA), "the file ends before", "only 0 were moved"]
    code = "ENOSPC" if entry.error == "short" else entry.error
    return [os.strerror(getattr(errno, code)), *([CLASSES[code]] if code in CLASSES else [])]


def judge(entry: Entry, outcome: Outcome, folder: Path, others: dict[str, bytes]) -> list[str]:
    """What is wrong with how the run ended."""
    said = [line for line in outcome.err.splitlines() if line.startswith("understudy: ")]
    wrong = []
    if outcome.status == 0:
        wrong.append("status 0")
    if outcome.status < 0 or "Segmentation" in outcome.err or "signal 11" in outcome.err:
        wrong.append("crashed")
    if not any(cause in line for line in said for cause in causes(entry)):
        wrong.append("the cause is not named")
    # Besides the reason, a line may say what could not be removed.
    reasons = [line for line in said if not re.search(r"cannot remove \d+ of", line)]
    if entry.error != "hang" and (len(said) > 2 or len(reasons or said) != 1):
        wrong.append(f"{len(said)} lines")
    kept = {name: text for name, text in files_below(folder).items() if name in others}
    if kept != others:
        wrong.append("files of others were changed")
    new = [p for p in folder.rglob("*") if str(p.relative_to(folder)) not in others]
    # The name that NFS gives to an open file goes with the process; only its directory stays.
    left = [p for p in new if not p.name.startswith(".nfs") and p.name != "precious"]
    unsaid = not any("cannot remove" in line for line in said)
    if left and unsaid and entry.error != "hang":
        wrong.append(f"left in silence: {[p.name for p in left]}")
    if (folder / "result.json").exists() and outcome.status != 0 and unsaid:
        wrong.append("a result was written")
    return wrong


def struck(log: Path) -> bool:
    """Whether a call failed; a line also tells of each file that kept its name."""
    lines = log.read_text().splitlines() if log.exists() else []
    return any(not line.startswith("silly ") for line in lines)


def play(player: Player, entry: Entry) -> tuple[bool, list[str], str]:
    """Runs the entry: was the call reached, what is wrong, and what was printed."""
    folder = player.folder / entry.name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "precious").mkdir(parents=True)
    (folder / "precious" / "thesis.tex").write_text("mine")
    log = folder.with_suffix(".faults")
    log.unlink(missing_ok=True)
    alone = replace(player, folder=folder)
    path = alone.describe(described(entry))
    others = files_below(folder)
    arguments = ["-w", path, "-o", "data", "-O", "result.json", *["--verify"] * entry.verify]
    arguments += DEPTH if entry.method == "uring" else []
    if entry.call == "unlink":  # the next repetition would find the file
        arguments += ["-i", "2"]
    if entry.error == "hang":
        arguments += ["--watchdog", str(WATCHDOG_S)]
    try:
        outcome = injected(alone, entry).run(entry.ranks, *arguments, timeout_s=LIMIT_S)
        # Without its call, the run is as any other.
        calm = [] if outcome.status == 0 else ["not reached, but it failed"]
        wrong = judge(entry, outcome, folder, others) if struck(log) else calm
        shown = f"status {outcome.status}\n{outcome.err}"
    except AssertionError as error:
        wrong, shown = [f"no end within {LIMIT_S} s"], str(error)
    reached = struck(log)
    log.unlink(missing_ok=True)
    shutil.rmtree(folder)
    return reached, wrong, shown


def play_all(player: Player, entries: Iterable[Entry]) -> Counter[str]:
    """Runs the entries, two at a time, prints those that fail, and counts."""
    kinds: Counter[str] = Counter()
    chosen = [entry for entry in entries if entry.method in configured_methods()]
    with ThreadPoolExecutor(2) as pool:
        for entry, (reached, wrong, shown) in zip(
            chosen, pool.map(lambda e: play(player, e), chosen), strict=True
        ):
            kind = "failed" if wrong else "passed" if reached else "not reached"
            kinds[kind] += 1
            if kind != "passed":
                print(f"{kind}: {entry.name}: {'; '.join(wrong)}", flush=True)
            if wrong:
                print("    " + shown.strip().replace("\n", "\n    "), flush=True)
    print(f"{sum(kinds.values())} entries: {dict(kinds)}")
    return kinds


def some_of_the_table(player: Player) -> None:
    """Some entries of the table, at least one of each call."""
    entries = table()
    expect(len(entries) >= 300, f"the table has {len(entries)} entries")
    kinds = play_all(player, sampled([e for e in entries if e.method in configured_methods()]))
    expect(kinds["failed"] == 0, f"{kinds['failed']} entries failed")
    expect(kinds["passed"] > kinds["not reached"], "most calls were not reached")


def wrong_reads(player: Player) -> None:
    """A bit that is wrong in the one read that is timed, and in none after it, is seen; a read of
    half of its bytes, as on NFS behind a signal, is no error."""
    cases = [("flip", method, 1, 1) for method in player.methods(BYTE_METHODS)]
    cases += [
        ("short", method, ranks, turn)
        for method, ranks, turn in itertools.product(FILE_METHODS, (1, 4), (1, 2, 3))
        if method in configured_methods() and (ranks == 1 or turn == 2)
    ]
    for error, method, ranks, turn in cases:
        entry = Entry(
            **{"call": "read", "error": error, "method": method, "ranks": ranks, "turn": turn},
            **{"sync": False, "verify": True},  # type: ignore[arg-type]
        )
        variables = {"CALL": "read", "ERROR": error, "RANK": 0, "UNDER": player.folder.resolve()}
        faulty = player.preloading(
            "UND_FAULT", "FAULT", **variables, NAME="/data/field", TURN=turn
        )
        path = player.describe(described(entry))
        more = DEPTH if method == "uring" else []
        command = ("-w", path, "-o", "data", "-O", "result.json", "--verify", *more)
        outcome = faulty.run(ranks, *command)
        equal(outcome.status, int(error == "flip"), f"{entry.name}: {outcome.err}")
        for words in ("verification: 1 of", "data/field.000000: byte 0 ") * (error == "flip"):
            expect(words in outcome.err, f"{entry.name}: {outcome.err}")
        player.clear()


def short_writes_go_on(player: Player) -> None:
    """A write of half of its bytes is followed by the rest, and flushes come behind that."""
    for method, ranks, turn in itertools.product(player.methods(BYTE_METHODS), (1, 4), (1, 2)):
        variables = {"CALL": "write", "ERROR": "half", "RANK": 0, "TURN": turn}
        variables |= {"UNDER": player.folder.resolve(), "NAME": "/data/field"}
        faulty = player.preloading("UND_FAULT", "FAULT", **variables)
        data = variable("data", [512 * ranks])
        keys: Json = {"method": method, "transfer_bytes": 2048, "sync_bytes": 4096}
        field = stream("field", **keys, dumps=[dump(0.0, data)])
        path = player.describe(workload(field, ranks=ranks))
        depth = DEPTH if method == "uring" else []
        command = ("-w", path, "-o", "data", "-O", "result.json", "--verify", *depth)
        outcome = faulty.run(ranks, *command)
        equal(outcome.status, 0, f"{method}, {ranks} ranks, {turn}: {outcome.err}")
        player.clear()


def stopped_run_leaves_no_part(player: Player) -> None:
    """A signal comes, and the files cannot be removed: the unfinished result can."""
    variables = {"CALL": "unlink", "ERROR": "hang", "RANK": 0, "UNDER": player.folder.resolve()}
    faulty = player.preloading("UND_FAULT", "FAULT", **variables, NAME="/data/")
    path = player.describe(timed([0.0, 60.0]))
    process = faulty.start(1, "-w", path, "-o", "data", "-O", "result.json", "--watchdog", 3)
    wait_for(player.data, 1)
    process.terminate()
    outcome = finish(process, LIMIT_S)
    expect(outcome.status != 0, f"status 0: {outcome.err}")
    left = sorted(p.name for p in player.folder.iterdir() if p.name != "data")
    equal(left, ["workload.json"], "left")


CASES = named(some_of_the_table, wrong_reads, short_writes_go_on, stopped_run_leaves_no_part)


def run_table(program: str, mpiexec: str, base: str, *words: str) -> int:
    folder = Path(base).resolve() / "fault.all"
    folder.mkdir(parents=True, exist_ok=True)
    player = Player(program=Path(program).resolve(), mpiexec=mpiexec, folder=folder)
    chosen = [e for e in table() if all(word in e.name.split(".") for word in words)]
    return 1 if play_all(player, chosen)["failed"] else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--table"]:
        print("\n".join(entry.name for entry in table()))
        sys.exit(0)
    if sys.argv[1:2] == ["--all"]:
        sys.exit(run_table(*sys.argv[2:]))
    sys.exit(main("fault", CASES))
