"""Instructions and system calls of one transfer, the player's and IOR's: what noise cannot touch.

Both programs write a file on one rank, then write and read it, with few and with many transfers;
the difference over the transfers is what one costs. Instructions are those of the processes
themselves, libraries included and the kernel left out, by valgrind's callgrind; system calls are
counted by strace. Ratios below 1 speak for the player.

Of a transfer of 4 KiB the player's instructions are kept in benchmarks/measured/instructions.csv,
as --record writes them; a test fails where one has become a tenth more expensive.
"""

import argparse
import csv
import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.support import ior, sides
from benchmarks.support.ior import Pattern

KEPT = sides.ROOT / "benchmarks" / "measured" / "instructions.csv"
# Options of the player whose transfers of 4 KiB are kept.
OPTIONS = ("-a posix", "-a posix --no-latency", "-a uring -m uring.depth=16")
MOVE, TRANSFERS = "und_stream_player_move", 5000
COUNTS = {4096: (1000, 5000), 1 << 20: (16, 512)}  # transfer size: few and many transfers


def instructions(folder: Path, command: list[str], *variables: str, within: str = "") -> int:
    """Instructions of the command with variables NAME=VALUE, by callgrind; those of a function."""
    out = folder / "callgrind.out"
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
    valgrind += [f"--toggle-collect={within}"] if within else []
    sides.run(folder, ["env", *variables, *valgrind, *command])
    totals = next(line for line in out.read_text().splitlines() if line.startswith("totals: "))
    return int(totals.removeprefix("totals: "))


def system_calls(folder: Path, command: list[str]) -> int:
    """Number of the command's calls that read, write or seek, by strace."""
    out = folder / "strace.out"
    calls = "read,write,pread64,pwrite64,readv,writev,preadv,pwritev,lseek"
    sides.run(folder, ["strace", "-f", "-qq", "-e", f"trace={calls}", "-o", str(out), *command])
    return len(out.read_text(errors="replace").splitlines())


METERS = {"valgrind": ("instructions", instructions), "strace": ("system calls", system_calls)}


def player(replay: Path, folder: Path, pattern: Pattern, method: str, reads: bool) -> list[str]:
    """The player's command; its workload is in the folder then."""
    workload = folder / "workload.json"
    workload.write_text(pattern.workload())
    command = [str(replay), "-w", str(workload), "-o", "data", "-a", method]
    return command + (["--restart"] if reads else [])


def compare(replay: Path, ior_program: str, folder: Path, transfer_bytes: int, tool: str) -> None:
    """A line per method."""
    name, meter = METERS[tool]
    few, many = COUNTS[transfer_bytes]

    def count(program: str, method: str, reads: bool, transfers: int) -> int:
        pattern = Pattern(
            ranks=1,
            layout="shared",
            transfer_bytes=transfer_bytes,
            block_bytes=transfer_bytes * transfers,
        )
        if program == "IOR":
            command = ior.command(ior_program, pattern, method) + (["-r"] if reads else [])
        else:
            command = player(replay, folder, pattern, method, reads)
        counted = meter(folder, command)
        ior.clear(folder)
        return counted

    def each(program: str, method: str, reads: bool) -> float:
        low, high = (count(program, method, reads, n) for n in (few, many))
        return (high - low) / (many - few)

    for method in ior.methods(ior_program, replay):
        write, other_write = (each(program, method, False) for program in ("player", "IOR"))
        both, other_both = (each(program, method, True) for program in ("player", "IOR"))
        text = f"{transfer_bytes:8} B {name:12} {method:6}"
        print(f"{text} write {write:8.1f}, IOR {other_write:8.1f}")
        print(f"{text} read  {both - write:8.1f}, IOR {other_both - other_write:8.1f}", flush=True)


def costs(replay: Path, folder: Path, options: str) -> Iterator[tuple[str, float]]:
    """Instructions of a write and of a read of 4 KiB in one shared file of one rank."""

    size = 4096 * TRANSFERS
    pattern = Pattern(ranks=1, layout="shared", transfer_bytes=4096, block_bytes=size)
    command = [*player(replay, folder, pattern, "posix", False), *options.split()]
    write = instructions(folder, command, within=MOVE)
    yield "write", write / TRANSFERS
    both = instructions(folder, [*command, "--restart"], within=MOVE)
    yield "read", (both - write) / TRANSFERS


def kept() -> dict[tuple[str, str], float]:
    """Instructions by options and kind of transfer."""
    with KEPT.open() as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {(row["options"], row["kind"]): float(row["instructions"]) for row in rows}


def record(replay: Path, folder: Path) -> None:
    """Keeps them, and prints them."""
    lines = ["# python benchmarks/instructions.py --record"]
    lines += ["# Of a transfer of 4 KiB, within the function that moves them, by callgrind."]
    lines += ["options,kind,instructions"]
    for options in OPTIONS:
        lines += [f"{options},{kind},{n:.0f}" for kind, n in costs(replay, folder, options)]
    KEPT.write_text("\n".join(lines) + "\n")
    print(*lines[1:], sep="\n")


def main() -> None:
    """Everything, one line per figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--build", type=Path, default=sides.ROOT / "build", help="CMake's build folder"
    )
    parser.add_argument("--record", action="store_true", help="keep the player's, and end")
    asked = parser.parse_args()
    replay = sides.program(asked.build, "understudy-replay")
    if asked.record:
        with sides.folder_in(sides.memory_folder()) as folder:
            record(replay, folder)
        return
    ior_program = ior.find()
    if not ior_program:
        print(f"SKIPPED: all beside IOR: {ior.MISSING}")
        return
    with sides.folder_in(sides.memory_folder()) as folder:
        for tool, (name, _) in METERS.items():
            if not shutil.which(tool):
                print(f"SKIPPED: {name}: no {tool} on PATH")
                continue
            for transfer_bytes in COUNTS:
                compare(replay, ior_program, folder, transfer_bytes, tool)


if __name__ == "__main__":
    main()
