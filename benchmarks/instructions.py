"""Instructions and system calls of one transfer, the player's and IOR's: what noise cannot touch.

Both programs write a file on one rank, then write and read it, with few and with many transfers;
the difference over the transfers is what one costs. Instructions are those of the processes
themselves, libraries included and the kernel left out, by valgrind's callgrind; system calls are
counted by strace. Ratios below 1 speak for the player.
"""

import argparse
import shutil
from pathlib import Path

from benchmarks.support import ior, sides
from benchmarks.support.ior import Pattern

COUNTS = {4096: (1000, 5000), 1 << 20: (16, 512)}  # transfer size: few and many transfers


def instructions(folder: Path, command: list[str], *variables: str) -> int:
    """Instructions of the command with variables NAME=VALUE, by callgrind."""
    out = folder / "callgrind.out"
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
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


def main() -> None:
    """Everything, one line per figure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--build", type=Path, default=sides.ROOT / "build", help="CMake's build folder"
    )
    asked = parser.parse_args()
    replay = sides.program(asked.build, "understudy-replay")
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
