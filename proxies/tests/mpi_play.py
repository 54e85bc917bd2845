"""Every sample with every method: bytes, files and contents are as the descriptor states.

`mpi_play.py --list` names the cases, `mpi_play.py CASE PROGRAM MPIEXEC FOLDER` plays one. A case
is <sample>.<method>; <sample>.h5dump reads the HDF5 files with a program that is not the player.
"""

import math
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial

from mpi_support import (
    HERE,
    ROOT,
    SUFFIXES,
    TYPE_BYTES,
    Json,
    Player,
    dump_bytes,
    expect,
    expected_files,
    main,
    need_method,
    need_program,
    sample,
)

SAMPLES = sorted(path.stem for path in (HERE / "samples").glob("*.json"))
METHODS = sorted(
    path.stem for folder in ("proxies", "studies/*") for path in ROOT.glob(f"{folder}/methods/*.c")
)
BYTE_METHODS = ("posix", "stdio", "mpiio")


def longest_scaled(shape: list[int], factor: float) -> list[int]:
    """The shape with its longest dimension scaled."""
    d = shape.index(max(shape))
    return [max(1, math.floor(n * factor + 0.5)) if i == d else n for i, n in enumerate(shape)]


def check_streams(workload: Json, result: Json, method: str, scale: float = 1) -> None:
    """Streams, dumps and bytes are those of the descriptor."""
    for repetition in result["repetitions"]:
        played = {s["name"]: s for s in repetition["streams"]}
        names = [stream["name"] for stream in workload["streams"]]
        if result["options"]["restart"]:
            names += [f"{s['name']}-restart" for s in workload["streams"] if is_restarted(s)]
        expect(list(played) == names, f"streams {list(played)}, expected {names}")
        for stream in workload["streams"]:
            dumps = played[stream["name"]]["dumps"]
            expect(played[stream["name"]]["method"] == method, f"another method than {method}")
            expect(len(dumps) == len(stream["dumps"]), f"{stream['name']}: {len(dumps)} dumps")
            for described, dump in zip(stream["dumps"], dumps, strict=True):
                where = f"{stream['name']} dump {dump['dump']}"
                expect(
                    dump["described_bytes"] == dump_bytes(described), f"{where}: described_bytes"
                )
                if scale == 1:
                    expect(
                        dump["bytes"] == dump_bytes(described), f"{where}: {dump['bytes']} bytes"
                    )
                check_sizes(where, stream, dump, method)
            if is_restarted(stream) and result["options"]["restart"]:
                again = played[f"{stream['name']}-restart"]
                expect(again["operation"] == "read", "a restart that is no read")
                expect(len(again["dumps"]) == 1, "a restart has one dump")
                read, wrote = again["dumps"][0], dumps[-1]
                expect(read["bytes"] == wrote["bytes"], f"restart of {read['bytes']} bytes")


def is_restarted(stream: Json) -> bool:
    """--restart reads back what a checkpoint stream wrote last."""
    return bool(stream["role"] == "checkpoint" and stream["operation"] == "write")


def check_sizes(where: str, stream: Json, dump: Json, method: str) -> None:
    """What the files grew by is the payload, or more where there is a container."""
    if method == "null" or stream["operation"] == "read":
        expect(dump["file_bytes"] is None, f"{where}: file_bytes {dump['file_bytes']}")
    elif method in BYTE_METHODS:
        expect(dump["file_bytes"] == dump["bytes"], f"{where}: file_bytes {dump['file_bytes']}")
    elif stream["files"] == "new":
        expect(dump["file_bytes"] >= dump["bytes"], f"{where}: file_bytes {dump['file_bytes']}")


def check_files(player: Player, workload: Json, method: str) -> None:
    """The files in ./data are those of the layout, of the right size."""
    found = player.data()
    suffix = SUFFIXES.get(method, "")
    expected = expected_files(workload) if method != "null" else {}
    names = sorted(name + suffix for name in expected)
    expect(sorted(found) == names, f"files {sorted(found)}, expected {names}")
    for name, variables in expected.items():
        size, payload = len(found[name + suffix]), variables[-1][-1]
        if method in BYTE_METHODS:
            expect(size == payload, f"{name} has {size} bytes, expected {payload}")
        expect(size >= payload, f"{name} has {size} bytes, less than its payload {payload}")


def check_verification(workload: Json, result: Json, method: str, scale: float = 1) -> None:
    """Every byte was compared, and was right; null has none that could be."""
    if method == "null":
        return
    expect(result["verification"] is not None, "nothing was verified")
    expect(result["verification"]["wrong_bytes"] == 0, f"wrong bytes: {result['verification']}")
    total = sum(dump_bytes(dump) for stream in workload["streams"] for dump in stream["dumps"])
    total *= result["options"]["repetitions"]
    if scale == 1:
        compared = result["verification"]["bytes"]
        expect(compared >= total, f"{compared} bytes compared, expected {total}")


def play(player: Player, name: str, method: str) -> None:
    """The sample as described, with other calls and sizes, repeated, and scaled."""
    need_method(method)
    workload = sample(name)
    path = HERE / "samples" / f"{name}.json"
    common: tuple[object, ...] = ("-a", method, "--time-scale", 0)
    common += ("--verify",) if method != "null" else ()

    result = player.play(path, *common, "-k")
    check_streams(workload, result, method)
    check_verification(workload, result, method)
    check_files(player, workload, method)
    first = player.data() if method in BYTE_METHODS else {}

    variants = [("--independent", "-t", 64), ("--independent", "-t", "4MiB")]
    takes_turns = any(stream["turns"] for stream in workload["streams"])
    if player.collective(method) and not takes_turns:
        variants = [("-c", "-t", 100), ("--independent", "-t", "1kB"), ("-c", "-t", "4MiB")]
    for variant in variants:
        player.clear()
        result = player.play(path, *common, "-k", *variant)
        check_streams(workload, result, method)
        check_verification(workload, result, method)
        check_files(player, workload, method)
        if first:
            expect(player.data() == first, f"{variant}: other contents than as described")
    if method in BYTE_METHODS and method != "posix":
        player.clear()
        player.play(path, *common, "-k", "-a", "posix")
        expect(player.data() == first, f"posix and {method} wrote different bytes")

    player.clear()
    result = player.play(path, *common, "-i", 2, "-e", "--restart")
    check_streams(workload, result, method)
    check_verification(workload, result, method)
    left = sorted(p.name for p in player.folder.iterdir())
    expect("data" not in left, f"files were left behind: {left}")
    for stream in result["repetitions"][1]["streams"]:
        writes = stream["operation"] == "write"
        expect(stream["sync"] is writes, f"-e: sync is {stream['sync']} in {stream['name']}")

    result = player.play(path, *common, "--bytes-scale", 2.5)
    check_streams(workload, result, method, scale=2.5)
    for stream, played in zip(
        workload["streams"], result["repetitions"][0]["streams"], strict=True
    ):
        for described, dump in zip(stream["dumps"], played["dumps"], strict=True):
            if all(v["decomposition"]["rule"] != "runs" for v in described["variables"]):
                size = sum(
                    v["count"] * math.prod(longest_scaled(v["shape"], 2.5)) * TYPE_BYTES[v["type"]]
                    for v in described["variables"]
                )
                expect(dump["bytes"] == size, f"scaled to {dump['bytes']}, expected {size}")


def h5dump(player: Player, name: str) -> None:
    """The datasets of the HDF5 files hold the bytes that the files of posix hold."""
    need_method("hdf5")
    need_program("h5dump", "hdf5-tools")
    workload = sample(name)
    path = HERE / "samples" / f"{name}.json"
    player.play(path, "-a", "posix", "--time-scale", 0, "-k")
    plain = player.data()
    player.clear()
    player.play(path, "-a", "hdf5", "--time-scale", 0, "-k")

    compared = 0
    for file, variables in expected_files(workload).items():
        expected: dict[str, bytes] = {}
        for name, begin, end in variables:
            expected[name] = expected.get(name, b"") + plain[file][begin:end]
        listed = subprocess.run(
            ["h5dump", "-n", "1", f"data/{file}.h5"],
            cwd=player.folder,
            check=True,
            capture_output=True,
            text=True,
        )
        # A state goes on with the dataset of the one before, unless type or shape changed.
        found: dict[str, bytes] = {}
        for dataset in re.findall(r" dataset +/(\S+)", listed.stdout):
            subprocess.run(
                ["h5dump", "-d", f"/{dataset}", "-b", "MEMORY", "-o", "dumped", f"data/{file}.h5"],
                cwd=player.folder,
                check=True,
                capture_output=True,
            )
            name = re.sub(r"_state\d+$", "", dataset)
            found[name] = found.get(name, b"") + (player.folder / "dumped").read_bytes()
        expect(found == expected, f"{file}.h5 differs from posix: {sorted(found)}")
        compared += sum(map(len, found.values()))
    total = sum(dump_bytes(dump) for stream in workload["streams"] for dump in stream["dumps"])
    expect(compared == total, f"{compared} bytes were compared, expected {total}")


CASES: dict[str, Callable[[Player], None]] = {}
for _name in SAMPLES:
    for _method in METHODS:
        CASES[f"{_name}.{_method}"] = partial(play, name=_name, method=_method)
    CASES[f"{_name}.h5dump"] = partial(h5dump, name=_name)

if __name__ == "__main__":
    sys.exit(main("play", CASES))
