"""No text from outside reaches the terminal as it is, whichever program prints it."""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mpi_support import (
    HERE,
    ROOT,
    Outcome,
    Player,
    at,
    changed,
    equal,
    expect,
    main,
    named,
    need_method,
    program,
    sample,
    timed,
    together,
)

# Commands of a terminal, C1, ends of lines, and what changes the direction or cannot be seen.
TEXT = "A\x1b[2J\x1b]0;B\x07\x7f\x9b31m\n\r\t\u2028\u2029\u202e\u2066\u2069\u200e\u200f\u061cC"
# As a word of the command line or the name of a file, which need not be UTF-8.
WORD = TEXT + os.fsdecode(b"\xff\xe2\x80")
ESCAPED = r"A\x1b[2J\x1b]0;B\x07\x7f\x9b31m"


def harmless(outcome: Outcome, where: str, *, shown: bool = True) -> None:
    """Everything printed can be seen, and the text is there."""
    for text in (outcome.out, outcome.err):
        bad = sorted({c for c in text if not c.isprintable() and c != "\n"})
        expect(not bad, f"{where}: printed {bad} in {text!r}")
    both = outcome.out + outcome.err
    expect(not shown or ESCAPED in both, f"{where}: not shown in {both!r}")


def texts_in(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where texts stand in a descriptor, except for titles, which nothing prints."""
    if isinstance(value, str):
        yield path
    lists = enumerate(value) if isinstance(value, list) else ()
    for key, below in value.items() if isinstance(value, dict) else lists:
        if key not in ("title", "label", "provenance", "notes", "description"):
            yield from texts_in(below, (*path, key))


def values_of_a_workload(player: Player) -> None:
    """Every text of a descriptor, and every key."""
    workload = program(sample("shared"))
    where = {"-".join(map(str, path)): path for path in texts_in(workload)}
    expect(len(where) > 10, f"only {len(where)} texts")

    def once(player: Player, name: str) -> None:
        *above, _ = path = where[name]
        rows = {"value": changed(workload, path, TEXT)}
        if isinstance(at(workload, above), dict):
            rows["key"] = changed(workload, (*above, TEXT), 1)
        for kind, row in rows.items():
            outcome = player.run(0, "-w", player.describe(row), "-o", "data", "--dry-run")
            harmless(outcome, f"{kind} {name}", shown=outcome.status != 0)

    together(player, where, once)


def syntax_errors(player: Player) -> None:
    """What is no JSON."""
    path = player.folder / "bad.json"
    for bad in (TEXT, f'{{"{TEXT}', f'{{"a": {TEXT}', '{"a": "\x1b[2J"}', '{"a": 1\x9b'):
        for data in (bad.encode(), bad.encode() + b"\xff", bad.encode("utf-16")):
            path.write_bytes(data)
            outcome = player.run(0, "-w", path, "-o", "data")
            expect(outcome.status == 2 and "bad.json" in outcome.message(), outcome.err)
            harmless(outcome, repr(data), shown=False)


def options_of_the_player(player: Player) -> None:
    """Every option with such a value."""
    path = player.describe(sample("single"))
    rows = re.findall(r'UND_OPTION\((\w+), \w+, "([a-z-]+)"', OPTIONS.read_text())
    names = [name for kind, name in rows if kind not in ("FLAG", "TOGGLE")]
    expect(len(names) > 15, f"only {names}")

    def once(player: Player, name: str) -> None:
        given = {"workload": ("-w", path), "directory": ("-o", "data")}
        words = [x for key, pair in given.items() if key != name for x in pair]
        harmless(player.run(0, *words, f"--{name}", WORD, "--dry-run"), name, shown=False)

    together(player, names, once)
    for words in ((WORD,), (f"--{WORD}",), (f"-{WORD}",), ("-m", f"posix.direct={WORD}")):
        outcome = player.run(0, "-w", path, "-o", "data", *words)
        expect(outcome.status == 2, f"{words}: status {outcome.status}")
        harmless(outcome, repr(words), shown=words[0] != f"-{WORD}")


OPTIONS = HERE.parent / "core" / "options" / "option.def"


def names_of_files(player: Player) -> None:
    """Directories and files of such names: in a plan, a refusal, an error of a rank, an alarm."""
    path = player.describe(timed([0, 0.1], "shared"))
    plan = player.run(0, "-w", path, "-o", WORD, "--dry-run")
    expect(plan.status == 0, plan.err)
    (player.folder / "full").mkdir()
    (player.folder / "full" / WORD).touch()
    variables = {"RANK": 2, "CALL": "write", "ERROR": "hang", "UNDER": player.folder.resolve()}
    hanging = player.preloading("UND_FAULT", "FAULT", **variables)
    alarm = hanging.run(4, "-w", path, "-o", TEXT, "-O", "no.json", "--watchdog", 3)
    expect("no progress for" in alarm.err, alarm.err)
    row = sample("shared")["streams"][0]
    row["dumps"] = [dump | {"variables": dump["variables"][:1]} for dump in row["dumps"]]
    twin = row | {"name": "field.000000", "files": "append"}  # the name of a file of the other
    twins = player.describe(sample("shared") | {"streams": [row, twin]}, "twins.json")
    error = player.run(4, "-w", twins, "-o", TEXT, "-O", "no.json")
    expect("understudy: rank" in error.err and "File exists" in error.err, error.err)
    for where, outcome in (
        ("a plan", plan),
        ("a workload that is not there", player.run(0, "-w", player.folder / WORD, "-o", "data")),
        ("a directory that is not empty", player.run(4, "-w", path, "-o", "full")),
        ("an alarm", alarm),
        ("an error of a rank", error),
    ):
        harmless(outcome, where)


def other_programs(player: Player) -> None:
    """Their options and directories."""
    (player.folder / "full").mkdir()
    (player.folder / "full" / WORD).touch()
    stripes = [(f"--stripe-{name}", WORD, ".") for name in ("size", "count", "targets", "pool")]
    cases: dict[str, list[tuple[str, ...]]] = {
        "storage": [(WORD,), (f"--{WORD}",), *stripes],
        "darshan-shutdown": [
            *((f"--{WORD}",), (WORD, "-o", ".", "-O", "x")),
            *(("--samples", WORD), ("--warm-up", WORD)),
        ],
    }
    for name, given in cases.items():
        program = replace(player, program=player.program.with_name(f"understudy-{name}"))
        for words in given:
            outcome = program.run(0, *words)
            expect(outcome.status == 2, f"{name} {words}: status {outcome.status}")
            harmless(outcome, f"{name} {words}", shown="--stripe-pool" not in words)


def storage_in_ascii(player: Player) -> None:
    """Names of mounts stand in JSON, which a terminal shows."""
    folder = player.folder / TEXT
    folder.mkdir()
    program = replace(player, program=player.program.with_name("understudy-storage"))
    outcome = program.run(0, folder)
    expect(outcome.status == 0 and outcome.out.isascii(), outcome.out)
    harmless(outcome, "storage", shown=False)


def kernels(player: Player) -> None:
    """The kernels, and what they share with generated skeletons."""
    need_method("adios")
    program = replace(player, program=player.program.with_name("understudy-kernel-gts"))
    valued = ("mimax", "steps", "repetitions", "barrier", "pause", "slow-rank", "extra-collective")
    given = [(f"--{name}", WORD, "-o", "data") for name in valued]
    given += [(WORD, "-o", "data"), (f"--{WORD}",), ("-c", WORD, "-o", "data")]
    config = str(ROOT / "traces" / "gts.xml")
    given += [("-c", config, "-o", f"no/{WORD}"), ("-c", config, "-o", "data", "-a", WORD)]
    given += [("-c", config, "-o", "data", "-r", f"no/{WORD}/r.json")]
    given += [("--application", WORD, "--help"), ("-r", WORD, "--help"), ("-c", WORD, "--help")]
    for words in given:
        outcome = program.run(0, *words)
        expect(outcome.status != 0 or "--help" in words, f"{words}: status {outcome.status}")
        harmless(outcome, f"kernel {words}", shown="-a" not in words)


def one_way_out(player: Player) -> None:
    """The sources print by und_print, or a text of their own."""
    del player
    banned = re.compile(
        r"\bprintf\(|\bfprintf\(std(err|out)|\bperror\(|\bputs\(|\bfputs\([^\"]*std(err|out)"
    )
    sources = [
        path
        for kind in ("core", "methods", "stripings", "programs", "skeleton")
        for path in (HERE.parent / kind).rglob("*.c")
    ]
    expect(len(sources) > 50, f"only {len(sources)} sources")
    lines = [
        f"{path.name}:{number}: {line.strip()}"
        for path in sources
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if banned.search(line)
    ]
    equal(lines, [], "print these by und_print")


CASES = named(
    *(values_of_a_workload, syntax_errors, options_of_the_player, names_of_files),
    *(other_programs, storage_in_ascii, kernels, one_way_out),
)

if __name__ == "__main__":
    sys.exit(main("terminal", CASES))
