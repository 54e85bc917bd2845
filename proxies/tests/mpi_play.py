"""Every sample with every method: bytes, files and contents are as the descriptor states.

A case is <sample>.<method>; <sample>.h5dump reads the HDF5 files with a program that is not the
player.
"""

import math
import re
import sys
from functools import partial

from mpi_support import (
    BYTE_METHODS,
    HERE,
    METHODS,
    SUFFIXES,
    TYPE_BYTES,
    Json,
    Player,
    dump_bytes,
    equal,
    expect,
    expected_files,
    main,
    need_method,
    need_program,
    output,
    payload,
    sample,
)

SAMPLES = sorted(path.stem for path in (HERE / "samples").glob("*.json"))


def longest_scaled(shape: list[int], factor: float) -> list[int]:
    """The shape with its longest dimension scaled."""
    d = shape.index(max(shape))
    return [max(1, math.floor(n * factor + 0.5)) if i == d else n for i, n in enumerate(shape)]


def check_streams(workload: Json, result: Json, method: str, scale: float = 1) -> None:
    """Streams, dumps and bytes are those of the descriptor; every byte was compared, and right."""
    restarts = workload["streams"] if result["options"]["restart"] else []
    restarted = [s["name"] for s in restarts if is_restarted(s)]
    for repetition in result["repetitions"]:
        played = {s["name"]: s for s in repetition["streams"]}
        names = [stream["name"] for stream in workload["streams"]]
        equal([*played], [*names, *(f"{name}-restart" for name in restarted)], "streams")
        for stream in workload["streams"]:
            name, dumps = stream["name"], played[stream["name"]]["dumps"]
            equal(played[name]["method"], method, f"{name}: method")
            sizes = [dump_bytes(d) for d in stream["dumps"]]
            equal([d["described_bytes"] for d in dumps], sizes, f"{name}: described_bytes")
            if scale == 1:
                equal([d["bytes"] for d in dumps], sizes, f"{name}: bytes")
            for dump in dumps:
                check_sizes(f"{name} dump {dump['dump']}", stream, dump, method)
            if name in restarted:
                again = played[f"{name}-restart"]
                equal(again["operation"], "read", "a restart")
                equal([d["bytes"] for d in again["dumps"]], [dumps[-1]["bytes"]], "restart")
    if method != "null":
        compared, total = result["verification"], payload(workload)
        equal(compared["wrong_bytes"], 0, f"wrong bytes of {compared}")
        least = total * result["options"]["repetitions"] if scale == 1 else 1
        expect(compared["bytes"] >= least, f"{compared} compared, expected {least}")


def is_restarted(stream: Json) -> bool:
    """--restart reads back what a checkpoint stream wrote last."""
    return bool(stream["role"] == "checkpoint" and stream["operation"] == "write")


def check_sizes(where: str, stream: Json, dump: Json, method: str) -> None:
    """What the files grew by is the payload, or more where there is a container."""
    grown = dump["file_bytes"]
    if method == "null" or stream["operation"] == "read":
        equal(grown, None, f"{where}: file_bytes")
    elif method in BYTE_METHODS:
        equal(grown, dump["bytes"], f"{where}: file_bytes")
    elif stream["files"] == "new":
        expect(grown >= dump["bytes"], f"{where}: file_bytes {grown}")


def check_files(files: dict[str, bytes], workload: Json, method: str) -> None:
    """They are those of the layout, of the right size."""
    suffix = SUFFIXES.get(method, "")
    expected = expected_files(workload) if method != "null" else {}
    names = {re.sub(r"\.bp/.*", ".bp", name) for name in files}
    equal(sorted(names), sorted(name + suffix for name in expected), "files")
    for name, variables in expected.items():
        parts = (name + suffix, f"{name}{suffix}/")
        size = sum(len(text) for path, text in files.items() if path.startswith(parts))
        least = variables[-1][-1]
        exact = size == least or method not in BYTE_METHODS
        expect(size >= least and exact, f"{name} has {size} bytes, expected {least}")


def play(player: Player, name: str, method: str) -> None:
    """The sample as described, with other calls and sizes, repeated, and scaled."""
    need_method(method)
    workload = sample(name)
    path = HERE / "samples" / f"{name}.json"
    common: tuple[object, ...] = ("-a", method, "--time-scale", 0)
    common += ("--verify",) if method != "null" else ()
    variants: list[tuple[object, ...]] = [
        (),
        ("--independent", "-t", 64),
        ("--independent", "-t", "4MiB"),
    ]
    if player.collective(method) and not any(s["turns"] for s in workload["streams"]):
        variants = [(), ("-c", "-t", 100), ("--independent", "-t", "1kB"), ("-c", "-t", "4MiB")]
    contents = []
    for variant in variants:
        result, files = player.kept(path, *common, *variant)
        check_streams(workload, result, method)
        check_files(files, workload, method)
        contents.append(files)
    if method in BYTE_METHODS:
        contents.append(player.kept(path, *common, "-a", "posix")[1])
        equal(contents.count(contents[0]), len(contents), f"{variants}, posix: equal contents")

    result = player.play(path, *common, "-i", 2, "-e", "--restart")
    check_streams(workload, result, method)
    expect(not player.data.exists(), "files were left behind")
    for stream in result["repetitions"][1]["streams"]:
        equal(stream["sync"], stream["operation"] == "write", f"-e: sync of {stream['name']}")

    result = player.play(path, *common, "--bytes-scale", 2.5)
    check_streams(workload, result, method, scale=2.5)
    played = result["repetitions"][0]["streams"]
    for of, row in zip(workload["streams"], played, strict=True):
        for described, dump in zip(of["dumps"], row["dumps"], strict=True):
            if all(v["decomposition"]["rule"] != "runs" for v in described["variables"]):
                size = sum(
                    v["count"] * math.prod(longest_scaled(v["shape"], 2.5)) * TYPE_BYTES[v["type"]]
                    for v in described["variables"]
                )
                equal(dump["bytes"], size, "scaled")


def h5dump(player: Player, name: str) -> None:
    """The datasets of the HDF5 files hold the bytes that the files of posix hold."""
    need_method("hdf5")
    need_program("h5dump", "hdf5-tools")
    path = HERE / "samples" / f"{name}.json"
    _, plain = player.kept(path, "-a", "posix", "--time-scale", 0)
    player.play(path, "-a", "hdf5", "--time-scale", 0, "-k")
    compared = 0
    for file, variables in expected_files(sample(name)).items():
        expected: dict[str, bytes] = {}
        for variable, begin, end in variables:
            expected[variable] = expected.get(variable, b"") + plain[file][begin:end]
        # A state goes on with the dataset of the one before, unless type or shape changed.
        datasets: dict[str, bytes] = {}
        listed = output(player, "h5dump", "-n", "1", f"data/{file}.h5")
        for dataset in re.findall(r" dataset +/(\S+)", listed):
            to = ("-b", "MEMORY", "-o", "bytes")
            output(player, "h5dump", "-d", f"/{dataset}", *to, f"data/{file}.h5")
            variable = re.sub(r"_state\d+$", "", dataset)
            data = (player.folder / "bytes").read_bytes()
            datasets[variable] = datasets.get(variable, b"") + data
        equal(datasets == expected, True, f"{file}.h5 is as of posix: {sorted(datasets)}")
        compared += sum(map(len, datasets.values()))
    equal(compared, payload(sample(name)), "bytes that were compared")


CASES = {
    f"{name}.{method}": partial(play, name=name, method=method)
    if method != "h5dump"
    else partial(h5dump, name=name)
    for name in SAMPLES
    for method in (*METHODS, "h5dump")
}

if __name__ == "__main__":
    sys.exit(main("play", CASES))
