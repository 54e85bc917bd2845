"""ADIOS2's engines in every layout, what is left of them, and files that are damaged."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from mpi_errors import fill, small_disk
from mpi_modes import LAYOUTS, one_stream
from mpi_support import (
    Player,
    disturbed,
    dry_run,
    dumps_of,
    equal,
    expect,
    failed,
    for_each,
    left_only,
    main,
    named,
    need_method,
    output,
    payload,
    refused,
    stopped,
    timed,
    variable,
    verified,
)

# Options of an engine, and how many files of data it makes of a file of so many ranks.
ENGINES: dict[str, tuple[tuple[str, ...], int]] = {
    "BP5": ((), 1),
    "BP5-sync": (("put=sync", "stripe_size=1MiB", "buffer_chunk_size=1MiB"), 1),
    "BP5-subfiles": (("num_aggregators=4", "num_subfiles=2", "max_shm_size=1MiB"), 2),
    "BP5-everyone": (("aggregation_type=EveryoneWrites", "num_aggregators=3"), 3),
    "BP5-serial": (("aggregation_type=EveryoneWritesSerial", "num_aggregators=2"), 2),
    "BP5-async": (("async_write=yes",), 1),
    "BP5-direct": (("direct_io=yes", "put=sync"), 1),
    "BP4": (("num_aggregators=2",), 2),
    "HDF5": ((), 0),
}
CUT = {"BP5": ("data.0", "md.0", "md.idx", "mmd.0"), "BP4": ("data.0", "md.0", "md.idx")}


def options(name: str) -> list[str]:
    """-a adios2 with an engine and parameters for it."""
    given = ["-a", "adios2", "-m", f"adios2.engine={name.partition('-')[0]}"]
    for parameter in ENGINES[name][0]:
        given += ["-m", f"adios2.{parameter}"]
    return given


def has_engine(player: Player, name: str) -> bool:
    """Is the engine one of this ADIOS2?"""
    (words,) = re.findall(r"adios2\.engine=(\S+)", output(player, player.program, "--list", "-v"))
    return name.partition("-")[0] in words.split("|")


def engines(player: Player, layout: str) -> None:
    """Every byte is found again, and files and bytes on storage are counted."""
    need_method("adios2")
    ranks_of_file = {"shared": 4, "grouped": 2, "file-per-process": 1}[layout]
    played = 0
    for name, (_, data) in ENGINES.items():
        for files in ("new", "append"):
            if not has_engine(player, name) or (name == "HDF5" and files == "append"):
                continue
            row = one_stream(layout, files=files, sync=name != "BP5-async")
            result, kept = player.kept(row, *options(name), "--verify")
            verified(result, payload(row))
            sets = 4 // ranks_of_file * (2 if files == "new" else 1)
            where = f"{name}, {layout}, {files}"
            tops = {path.partition("/")[0] for path in kept}
            equal(len(tops), sets, f"{where}: files")
            of_data = [path for path in kept if "/data." in path]
            equal(len(of_data), sets * min(data, ranks_of_file), f"{where}: files of data")
            stored = sum(map(len, kept.values()))
            equal(sum(dump["file_bytes"] for dump in dumps_of(result)), stored, f"{where}: stored")
            expect(stored > payload(row), f"{where}: {stored} bytes are less than payload")
            player.play(row, *options(name), "--verify", "--restart", "--drop-cache")
            left_only(player, result=True)
            dry_run(player, row, *options(name), lines=[f"files {sets}"])
            played += 1
    expect(played >= 16, f"{played} runs")


def invalid_input(player: Player) -> None:
    """Engines that write no files, and options that an engine has not, are refused."""
    need_method("adios2")
    path = player.describe(one_stream("shared"))
    cases = [
        (("engine=SST",), ("engine=SST", "another program", "BP5")),
        (("engine=Inline",), ("engine=Inline", "another program")),
        (("engine=BP3",), ("engine=BP3", "BP5")),
        (("engine=BP4", "num_subfiles=2"), ("adios2.num_subfiles", "BP4")),
        (("engine=BP4", "aggregation_type=EveryoneWrites"), ("adios2.aggregation_type", "BP4")),
        (("engine=BP4", "direct_io=yes"), ("adios2.direct_io", "BP4")),
        (
            ("aggregation_type=EveryoneWrites", "num_subfiles=2"),
            ("num_subfiles", "EveryoneWrites"),
        ),
        (("aggregation_type=EveryoneWrites", "max_shm_size=1MiB"), ("max_shm_size", "Everyone")),
        (("max_shm_size=64",), ("max_shm_size=64", "4096")),
        (("num_aggregators=2", "aggregator_ratio=2"), ("exclude each other",)),
        (("stripe_size=1m",), ("stripe_size=1m", "1MiB")),
        (("colour=red",), ("adios2.OPTION=VALUE", "engine, put")),
    ]
    if has_engine(player, "HDF5"):
        cases += [(("engine=HDF5", "stripe_size=1MiB"), ("adios2.stripe_size", "HDF5"))]
        cases += [(("engine=HDF5", "num_aggregators=2"), ("adios2.num_aggregators", "HDF5"))]
    else:
        cases += [(("engine=HDF5",), ("engine=HDF5", "without HDF5"))]
    for given, words in cases:
        parameters = [x for parameter in given for x in ("-m", f"adios2.{parameter}")]
        refused(player, 4, "-w", path, "-o", "data", "-a", "adios2", *parameters, words=words)
    refused(player, 4, "-w", path, "-o", "data", "-a", "adios2", "-c", words=("no collective",))
    later = ("-m", "adios2.async_write=yes", "-e")
    refused(player, 4, "-w", path, "-o", "data", "-a", "adios2", *later, words=("async_write",))


def full_disk(player: Player, name: str) -> None:
    """The disk fills up between two dumps: the run fails with the reason, and nothing is left."""
    need_method("adios2")
    row = timed([0, 2], "shared", variable(shape=[1 << 18]))
    with small_disk(player, "6m"):
        outcome = disturbed(
            player, lambda p, _: fill(p.data / "stranger"), *options(name), described=row
        )
        failed(outcome, "adios2", "No space left on device")
        left_only(player, "stranger")


def stops_cleanly(player: Player, name: str) -> None:
    """A signal: directories of files go, what others put there stays."""
    need_method("adios2")
    for number in (signal.SIGINT, signal.SIGTERM):
        kept: list[str] = []

        def stop(player: Player, process: "subprocess.Popen[str]") -> None:
            folder = next(player.data.glob("*.bp"))
            (folder / "mine").write_text("mine")
            kept[:] = [folder.name, f"{folder.name}/mine"]  # noqa: B023
            process.send_signal(number)  # noqa: B023

        row = timed([0, 30], "shared")
        outcome = disturbed(player, stop, *options(name), described=row)
        expect(stopped(player, outcome), f"signal {number}: status 0")
        left_only(player, *kept)


def cut_file(player: Player, name: str) -> None:
    """A file in the directory that is cut or gone is said, and not read as if it were there."""
    need_method("adios2")
    row = one_stream("shared", dumps=1)
    given = ("--restart-from", "data", *options(name), "--verify")
    player.play(row, *options(name), "-k")
    (target,) = player.data.iterdir()
    path = player.describe(row)
    for member in CUT[name]:
        part: Path = target / member
        whole = part.read_bytes()
        for size in (len(whole) // 2, 0, None):
            part.unlink() if size is None else os.truncate(part, size)
            outcome = player.run(4, "-w", path, *given)
            expect(outcome.status != 0, f"{member} of {size} bytes: status 0")
            part.write_bytes(whole)
    part = target / "data.0"
    text = bytearray(part.read_bytes())
    text[len(text) // 3] ^= 1
    part.write_bytes(text)
    outcome = player.run(4, "-w", path, *given)
    expect(outcome.status != 0 and "instead of" in outcome.err, f"a flipped bit: {outcome.err}")


CASES = {
    **named(invalid_input),
    **for_each(engines, LAYOUTS),
    **for_each(full_disk, ("BP5", "BP5-sync", "BP5-everyone", "BP4")),
    **for_each(stops_cleanly, ("BP5", "BP4")),
    **for_each(cut_file, CUT),
}

if __name__ == "__main__":
    sys.exit(main("adios2", CASES))
