"""ADIOS' own methods in every layout, what is left of them, and the kernels that write by ADIOS.

`mpi_adios.py --list` names the cases, `mpi_adios.py CASE PROGRAM MPIEXEC FOLDER` runs one.
"""

import array
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mpi_errors import failed, fill, refused, small_disk
from mpi_modes import LAYOUTS, one_stream, payload_of, verified
from mpi_run import dumps_of, timed, wait_for
from mpi_support import (
    HERE,
    ROOT,
    Json,
    Player,
    expect,
    finish,
    main,
    need_method,
    need_program,
    stopped,
)

# Method, its parameters, and how many parts a file of so many ranks has; -1: none beside the file.
METHODS: dict[str, tuple[tuple[str, ...], Callable[[int], int]]] = {
    "MPI": ((), lambda ranks: 0),
    "POSIX": ((), lambda ranks: ranks if ranks > 1 else 0),
    "MPI_LUSTRE": (("stripe_count=4", "stripe_size=64KiB", "block_size=64KiB"), lambda ranks: 0),
    "MPI_AMR": (("num_aggregators=3", "num_ost=2", "stripe_count=1"), lambda ranks: min(3, ranks)),
}
KERNELS = {
    "chimera": (("--rays", "12"), "restart.model", 10_605_108),
    "chimera-11": (("--rays=11",), "restart.model", 9_722_452),
    "gts": ((), "restart", 57_288_412),
    "gts-784000": (("--mimax", "784000"), "restart", 54_984_412),
    "gts-electrons": (("--electrons=1", "--mimax=5000", "--mgrid=999"), "restart", 681_144),
}


def options(method: str) -> list[str]:
    """-a adios with one of its methods and parameters for it."""
    given = ["-a", "adios", "-m", f"adios.method={method}"]
    for parameter in METHODS[method][0]:
        given += ["-m", f"adios.{parameter}"]
    return given


def methods(player: Player, layout: str) -> None:
    """Every byte is found again; parts, files and bytes on storage are what the method makes."""
    need_method("adios")
    ranks_of_file = {"shared": 4, "grouped": 2, "file-per-process": 1}[layout]
    for method, (_, parts_of) in METHODS.items():
        for files in ("new", "append"):
            player.clear()
            workload = one_stream(layout, files=files)
            result = player.play(workload, *options(method), "--verify", "-k")
            verified(result, payload_of(workload))
            found = player.data()
            whole = 4 // ranks_of_file * (2 if files == "new" else 1)
            expected = whole * (1 + parts_of(ranks_of_file))
            where = f"{method}, {layout}, {files}"
            expect(len(found) == expected, f"{where}: files {list(found)}, expected {expected}")
            stored = sum(map(len, found.values()))
            grown = [dump["file_bytes"] for dump in dumps_of(result)]
            expect(sum(grown) == stored, f"{where}: {grown} on storage, found {stored}")
            expect(stored > payload_of(workload), f"{where}: {stored} bytes are less than payload")
            counted = [dump["files"] for dump in dumps_of(result)]
            each = expected // 2 if files == "new" else expected
            expect(counted == [each, each], f"{where}: files {counted}, expected {each} each")
            for name in found:
                part = re.fullmatch(r"(.*)\.dir/(.*)\.(\d+)", name)
                expect(not part or part[1] == part[2], f"{where}: a part called {name}")
            player.clear()
            player.play(workload, *options(method), "--verify", "--restart", "--drop-cache")
            expect(not (player.folder / "data").exists(), f"{where}: files were left behind")


def dry_run(player: Player) -> None:
    """The files that a dry run announces are those that are made, parts and all."""
    need_method("adios")
    for layout in LAYOUTS:
        for method in METHODS:
            workload = one_stream(layout)
            path = player.describe(workload)
            said = player.run(4, "-w", path, "-o", "data", *options(method), "--dry-run").out
            result = player.play(workload, *options(method))
            made = sum(dump["files"] for dump in dumps_of(result))
            expect(f"files on storage       {made}\n" in said, f"{made} files, {method}:\n{said}")


def read_by_bpls(player: Player) -> None:
    """A program that is not the player finds the variables, their shapes and their values."""
    need_method("adios")
    need_program("bpls", "libadios-bin")
    workload = one_stream("shared", dumps=1)
    shapes = {v["name"]: v["shape"] for v in workload["streams"][0]["dumps"][0]["variables"]}
    player.play(workload, "-a", "posix", "-k")
    plain = player.data()["field.000000"]
    values = array.array("i", plain[-997 * 4 :])
    for method in METHODS:
        player.clear()
        player.play(workload, *options(method), "-k")
        target = player.folder / "data" / "field.000000.bp"
        listed = subprocess.run(
            ["bpls", target], capture_output=True, text=True, check=True
        ).stdout
        found = dict(re.findall(r"\w+ +(\w+) +\{([\d, ]+)\}", listed))
        expected = {name: ", ".join(map(str, shape)) for name, shape in shapes.items()}
        expect(found == expected, f"{method}: bpls lists {found}, expected {expected}")
        dump = ["bpls", "-d", "-n", "1", "-y", "-f", "%d", target, "count"]
        shown = subprocess.run(dump, capture_output=True, text=True, check=True).stdout
        numbers = [int(x) for x in shown.splitlines()[1:] if re.fullmatch(r"\s*-?\d+\s*", x)]
        expect(numbers == list(values), f"{method}: bpls reads {len(numbers)} other values")


def invalid_input(player: Player) -> None:
    """Methods that lose data, and parameters that a method would ignore, are refused."""
    need_method("adios")
    path = player.describe(one_stream("shared"))
    cases = [
        (("method=VAR_MERGE",), ("VAR_MERGE", "MPI, POSIX, MPI_LUSTRE or MPI_AMR")),
        (("method=PHDF5",), ("PHDF5", "MPI, POSIX, MPI_LUSTRE or MPI_AMR")),
        (("num_aggregators=2",), ("adios.num_aggregators", "adios.method=MPI_AMR")),
        (("method=POSIX", "num_ost=2"), ("adios.num_ost", "adios.method=MPI_AMR")),
        (("method=MPI_AMR", "block_size=1MiB"), ("adios.block_size", "MPI_LUSTRE")),
        (("method=MPI_AMR", "stripe_count=1"), ("adios.stripe_count", "adios.num_ost")),
        (("stripe_size=1m",), ("stripe_size=1m", "1MiB")),
        (("colour=red",), ("adios.OPTION=VALUE", "method, num_aggregators")),
    ]
    for given, words in cases:
        parameters = [x for parameter in given for x in ("-m", f"adios.{parameter}")]
        refused(player, 4, "-w", path, "-o", "data", "-a", "adios", *parameters, words=words)
    refused(player, 4, "-w", path, "-o", "data", "-a", "adios", "-c", words=("no collective",))


def small_buffers(player: Player) -> None:
    """A buffer that is too small: POSIX writes more often, the others end the run."""
    need_method("adios")
    workload = one_stream("shared", dumps=1, transfer_bytes=100_000)
    variable = workload["streams"][0]["dumps"][0]["variables"][1]
    workload["streams"][0]["dumps"][0]["variables"] = [variable | {"shape": [300_000, 5]}]
    path = player.describe(workload)
    for method in METHODS:
        given = [*options(method), "-m", "adios.max_buffer_size=1MiB", "--verify"]
        if method == "POSIX":
            verified(player.play(workload, *given), payload_of(workload))
            continue
        outcome = player.run(4, "-w", path, "-o", "data", *given, "-O", "no.json")
        failed(outcome, "adios: cannot write", "field.000000.bp")
        expect(not (player.folder / "data").exists(), f"{method}: files were left behind")
        expect(not (player.folder / "no.json").exists(), f"{method}: a result was written")


def full_disk(player: Player, method: str) -> None:
    """The disk fills up between two dumps: the run fails, although ADIOS may say nothing."""
    need_method("adios")
    workload = timed([0, 4], "shared")
    for dump in workload["streams"][0]["dumps"]:
        dump["variables"] = [dump["variables"][1] | {"shape": [1 << 18], "count": 1}]
    path = player.describe(workload)
    with small_disk(player, "6m") as disk:
        given = ("-w", path, "-o", disk / "data", *options(method), "-O", "no.json")
        process = player.start(4, *given)
        wait_for(disk / "data", 1)
        time.sleep(1)
        fill(disk / "data" / "stranger")
        outcome = finish(process)
        failed(outcome, "adios", "No space left on device")
        left = sorted(p.name for p in (disk / "data").iterdir())
        expect(left == ["stranger"], f"left {left}")
        expect(not (player.folder / "no.json").exists(), "a result was written")


def stops_cleanly(player: Player, method: str) -> None:
    """A signal: parts and their directories go, what others put there stays."""
    need_method("adios")
    for number in (signal.SIGINT, signal.SIGTERM):
        player.clear()
        workload = timed([0, 30], "shared")
        process = player.start(
            4, "-w", player.describe(workload), "-o", "data", *options(method), "-O", "no.json"
        )
        wait_for(player.folder / "data", 2)
        time.sleep(1)
        parts = [name for name in player.data() if ".dir/" in name]
        expect(bool(parts) == (METHODS[method][1](4) > 0), f"parts {parts}")
        stranger = next((player.folder / "data").glob("*.dir"), player.folder / "data") / "mine"
        stranger.write_text("mine")
        process.send_signal(number)
        outcome = finish(process)
        expect(stopped(player, outcome), f"signal {number}: status 0")
        left = set((player.folder / "data").rglob("*"))
        expected = {stranger, stranger.parent} - {player.folder / "data"}
        expect(left == expected, f"signal {number}: left {left}, expected {expected}")


def cut_part(player: Player) -> None:
    """A part that is cut or gone is said, and not read as if it were there."""
    need_method("adios")
    workload = one_stream("shared", dumps=1)
    path = player.describe(workload)
    given = ("-w", path, "--restart-from", "data", *options("POSIX"), "--verify")
    for harm in ("cut", "gone"):
        player.clear()
        player.play(workload, *options("POSIX"), "-k")
        part = player.folder / "data" / "field.000000.bp.dir" / "field.000000.bp.2"
        if harm == "cut":
            part.write_bytes(part.read_bytes()[:20_000])
        else:
            part.unlink()
        outcome = player.run(4, *given)
        failed(outcome, "adios: cannot", "field.000000.bp")


def kernel_of(player: Player, name: str) -> Player:
    """The kernel of that name, started like the player."""
    program = player.program.parent / f"understudy-kernel-{name.split('-')[0]}"
    return Player(program=program, mpiexec=player.mpiexec, folder=player.folder)


def variables_of(config: Path, electrons: bool) -> set[str]:
    """Names of the variables of a descriptor; those behind a condition only where it holds."""
    names, open_switch = set(), False
    for element in xml.etree.ElementTree.parse(config).getroot().iter():
        if element.tag == "gwrite":
            open_switch = not open_switch
        if element.tag == "var" and (electrons or not open_switch):
            names.add(element.attrib["name"])
    return names


def kernel(player: Player, name: str) -> None:
    """The bytes of a process are those of the descriptor, and bpls finds every variable."""
    need_method("adios")
    given, group, bytes_of_process = KERNELS[name]
    config = ROOT / "traces" / f"{name.split('-')[0]}.xml"
    program = kernel_of(player, name)
    outcome = program.run(4, "-c", config, "-o", "data", "-r", "r.json", "-k", "-s", 2, *given)
    expect(outcome.status == 0, outcome.err)
    result = json.loads((player.folder / "r.json").read_text())
    check_kernel_result(result, bytes_of_process)
    need_program("bpls", "libadios-bin")
    target = player.folder / "data" / f"{group}.1.bp"
    listed = subprocess.run(["bpls", target], capture_output=True, text=True, check=True).stdout
    found = {line.split()[1] for line in listed.splitlines() if line.strip()}
    expected = variables_of(config, electrons="electrons" in name)
    found = {x for x in found if not x.startswith("/__adios__")}
    expect(found == expected, f"bpls finds {found ^ expected} too much or too little")
    mean = subprocess.run(
        ["bpls", "-l", target], capture_output=True, text=True, check=True
    ).stdout
    expect("nan" not in mean.lower() and "inf " not in mean, f"values are no numbers:\n{mean}")


def check_kernel_result(result: Json, bytes_of_process: int) -> None:
    """It keeps to the schema, and each of the 4 processes wrote that much in each of 2 steps."""
    try:
        import jsonschema
    except ImportError:
        print("the schema is not checked: jsonschema is not installed")
    else:
        schema = json.loads((ROOT / "schemas" / "application.schema.json").read_text())
        jsonschema.validate(result, schema)
    dumps = dumps_of(result)
    expect(len(dumps) == 2, f"{len(dumps)} dumps, expected 2")
    for dump in dumps:
        written = dump["processes"]["bytes"]
        expect(written == [bytes_of_process] * 4, f"{written}, expected {bytes_of_process} each")
        over = dump["file_bytes"] / (4 * bytes_of_process) - 1
        expect(0 < over < 0.1, f"{over:.4f} of the payload is container")


def kernels_compute(player: Player) -> None:
    """Steps differ, by what was computed between them, and so do processes."""
    need_method("adios")
    need_program("bpls", "libadios-bin")
    for name, group, variable in (("chimera", "restart.model", "t_c"), ("gts", "restart", "zion")):
        player.clear()
        small = ("--rays=2",) if name == "chimera" else ("--mimax=2000", "--mgrid=500")
        config = ROOT / "traces" / f"{name}.xml"
        outcome = kernel_of(player, name).run(
            4, "-c", config, "-o", "data", "-r", "r.json", "-k", "-s", 2, *small
        )
        expect(outcome.status == 0, outcome.err)
        dumps = []
        for step in range(2):
            target = player.folder / "data" / f"{group}.{step}.bp"
            show = ["bpls", "-d", "-n", "1", target, variable]
            dumps.append(subprocess.run(show, capture_output=True, text=True, check=True).stdout)
        expect(dumps[0] != dumps[1], f"{name}: {variable} is the same in both steps")
        expect(len(set(dumps[0].split())) > 100, f"{name}: {variable} has hardly any values")


def kernel_invalid_input(player: Player) -> None:
    """Bad options and descriptors: one message of the kernel, status not 0, no result."""
    need_method("adios")
    chimera, gts = kernel_of(player, "chimera"), kernel_of(player, "gts")
    traces = ROOT / "traces"
    cases: list[tuple[Player, tuple[object, ...], str]] = [
        (chimera, ("-o", "data", "--rays", 0), "--rays 0: expected a whole number from 1 to 4096"),
        (chimera, ("-o", "data", "--rays"), "--rays: expected a whole number from 1 to 4096"),
        (chimera, ("-o", "data", "--cycles=x"), "--cycles x: expected a whole number"),
        (chimera, ("-o", "data", "--colour"), "--colour: unknown option"),
        (chimera, ("-o", "data"), "chimera.xml: the adios-config cannot be read"),
        (chimera, ("-o", "data", "-c", traces / "gts.xml"), "undefined group: restart.model"),
        (gts, ("--mimax=1e5",), "--mimax 1e5: expected a whole number"),
        (gts, (), "--directory is missing"),
        (
            gts,
            ("-o", "data", "-c", traces / "gts.xml", "-a", "FLOPPY"),
            "--method FLOPPY: in ADIOS 1.13.1",
        ),
    ]
    for program, given, message in cases:
        outcome = program.run(2, *given)
        expect(outcome.status != 0, f"{given}: status 0")
        expect(message in outcome.err, f"{given}: {outcome.err}, expected {message}")
        expect(not (player.folder / "result.json").exists(), f"{given}: a result was written")
        shutil.rmtree(player.folder / "data", ignore_errors=True)
    for program in (chimera, gts):
        outcome = program.run(0, "--help")
        expect(outcome.status == 0 and outcome.err == "", outcome.err)
        expect("--cycles" in outcome.out and "--steps" in outcome.out, outcome.out)


def without_adios(player: Player) -> None:
    """Where ADIOS is missing the kernels still build, and say so in one message."""
    proxies = HERE.parent
    for name in ("chimera", "gts"):
        target = player.folder / f"understudy-kernel-{name}"
        skel = HERE.parents[1] / "studies" / "skel" / "programs"
        sources = [skel / f"kernel-{name}.c", skel / "kernel" / "kernel.c"]
        sources += [proxies / "core" / "text" / "error.c", proxies / "core" / "text" / "print.c"]
        command = [os.environ["UND_MPICC"], "-std=c11", "-Wall", "-Werror", "-I", proxies / "core"]
        command += ["-I", skel, "-o", target, *sources]
        subprocess.run(command, check=True)
        program = Player(program=target, mpiexec=player.mpiexec, folder=player.folder)
        outcome = program.run(2, "-o", "data")
        expect(outcome.status != 0, "status 0")
        lines = [x for x in outcome.err.splitlines() if x.startswith("kernel-")]
        message = f"kernel-{name}: cannot write: this program was built without ADIOS 1.13"
        expect(lines == [message], f"{lines}, expected {message}")


CASES: dict[str, Callable[[Player], None]] = {
    case.__name__.replace("_", "-"): case
    for case in (
        dry_run,
        read_by_bpls,
        invalid_input,
        small_buffers,
        cut_part,
        kernels_compute,
        kernel_invalid_input,
        without_adios,
    )
}
for _layout in LAYOUTS:
    CASES[f"methods.{_layout}"] = partial(methods, layout=_layout)
for _method in METHODS:
    CASES[f"full-disk.{_method}"] = partial(full_disk, method=_method)
    CASES[f"stops-cleanly.{_method}"] = partial(stops_cleanly, method=_method)
for _kernel in KERNELS:
    CASES[f"kernel.{_kernel}"] = partial(kernel, name=_kernel)

if __name__ == "__main__":
    sys.exit(main("adios", CASES))
