"""ADIOS' own methods in every layout, what is left of them, and kernels that write by ADIOS."""

import array
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mpi_errors import fill, small_disk
from mpi_modes import LAYOUTS, one_stream
from mpi_support import (
    ROOT,
    Outcome,
    Player,
    check_schema,
    disturbed,
    dry_run,
    dump,
    dumps_of,
    equal,
    expect,
    failed,
    for_each,
    left_only,
    main,
    named,
    need_method,
    need_program,
    output,
    payload,
    refused,
    stopped,
    stream,
    timed,
    variable,
    verified,
    workload,
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
    """Every byte is found again; parts, files and bytes on storage are what the method makes, and
    what a dry run announces."""
    need_method("adios")
    ranks_of_file = {"shared": 4, "grouped": 2, "file-per-process": 1}[layout]
    for method, (_, parts_of) in METHODS.items():
        for files in ("new", "append"):
            row = one_stream(layout, files=files)
            result, kept = player.kept(row, *options(method), "--verify")
            verified(result, payload(row))
            sets = 4 // ranks_of_file * (2 if files == "new" else 1)
            expected = sets * (1 + parts_of(ranks_of_file))
            where = f"{method}, {layout}, {files}"
            equal(len(kept), expected, f"{where}: files")
            stored = sum(map(len, kept.values()))
            equal(sum(dump["file_bytes"] for dump in dumps_of(result)), stored, f"{where}: stored")
            expect(stored > payload(row), f"{where}: {stored} bytes are less than payload")
            each = expected // 2 if files == "new" else expected
            equal([dump["files"] for dump in dumps_of(result)], [each, each], f"{where}: files")
            for name in kept:
                part = re.fullmatch(r"(.*)\.dir/(.*)\.(\d+)", name)
                expect(not part or part[1] == part[2], f"{where}: a part called {name}")
            player.play(row, *options(method), "--verify", "--restart", "--drop-cache")
            left_only(player, result=True)
            if files == "new":
                dry_run(player, row, *options(method), lines=[f"files on storage {expected}"])


def read_by_bpls(player: Player) -> None:
    """A program that is not the player finds the variables, their shapes and their values."""
    need_method("adios")
    need_program("bpls", "libadios-bin")
    row = one_stream("shared", dumps=1)
    shapes = {v["name"]: v["shape"] for v in row["streams"][0]["dumps"][0]["variables"]}
    _, plain = player.kept(row)
    values = array.array("i", plain["field.000000"][-997 * 4 :])
    for method in METHODS:
        player.clear()
        player.play(row, *options(method), "-k")
        target = player.data / "field.000000.bp"
        seen = dict(re.findall(r"\w+ +(\w+) +\{([\d, ]+)\}", output(player, "bpls", target)))
        equal(seen, {k: ", ".join(map(str, shape)) for k, shape in shapes.items()}, method)
        shown = output(player, "bpls", "-d", "-n", "1", "-y", "-f", "%d", target, "count")
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
    row = one_stream("shared", dumps=1, transfer_bytes=100_000)
    dump = row["streams"][0]["dumps"][0]
    dump["variables"] = [dump["variables"][1] | {"shape": [300_000, 5]}]
    for method in METHODS:
        given = [*options(method), "-m", "adios.max_buffer_size=1MiB", "--verify"]
        if method == "POSIX":
            verified(player.play(row, *given), payload(row))
            (player.folder / "result.json").unlink()
            continue
        path = player.describe(row)
        outcome = player.run(4, "-w", path, "-o", "data", *given, "-O", "result.json")
        failed(outcome, "adios: cannot write", "field.000000.bp")
        left_only(player)


def full_disk(player: Player, method: str) -> None:
    """The disk fills up between two dumps: the run fails, although ADIOS may say nothing."""
    need_method("adios")
    row = timed([0, 2], "shared", variable(shape=[1 << 18]))
    with small_disk(player, "6m"):
        outcome = disturbed(
            player, lambda p, _: fill(p.data / "stranger"), *options(method), described=row
        )
        failed(outcome, "adios", "No space left on device")
        left_only(player, "stranger")


def stops_cleanly(player: Player, method: str) -> None:
    """A signal: parts and their directories go, what others put there stays."""
    need_method("adios")
    for number in (signal.SIGINT, signal.SIGTERM):
        kept: list[str] = []

        def stop(player: Player, process: "subprocess.Popen[str]") -> None:
            parts = [name for name in player.files() if ".dir/" in name]
            expect(bool(parts) == (METHODS[method][1](4) > 0), f"parts {parts}")
            folder = next(player.data.glob("*.dir"), player.data)
            (folder / "mine").write_text("mine")
            kept[:] = ["mine"] if folder == player.data else [folder.name, f"{folder.name}/mine"]  # noqa: B023
            process.send_signal(number)  # noqa: B023

        row = timed([0, 30], "shared")
        outcome = disturbed(player, stop, *options(method), described=row)
        expect(stopped(player, outcome), f"signal {number}: status 0")
        left_only(player, *kept)


def cut_part(player: Player) -> None:
    """A part that is cut or gone is said, and not read as if it were there."""
    need_method("adios")
    row = one_stream("shared", dumps=1)
    given = ("--restart-from", "data", *options("POSIX"), "--verify")
    for size in (20_000, None):
        player.clear()
        player.play(row, *options("POSIX"), "-k")
        part = player.data / "field.000000.bp.dir" / "field.000000.bp.2"
        part.unlink() if size is None else os.truncate(part, size)
        failed(
            player.run(4, "-w", player.describe(row), *given), "adios: cannot", "field.000000.bp"
        )


def kernel_run(player: Player, name: str, *arguments: object, ranks: int = 2) -> Outcome:
    """A run of the kernel of that name, started like the player."""
    path = player.program.with_name(f"understudy-kernel-{name.split('-')[0]}")
    return replace(player, program=path).run(ranks, *arguments)


def two_steps(player: Player, name: str, *arguments: object) -> Path:
    """A kernel's two steps of 4 ranks, which are kept; its descriptor."""
    config = ROOT / "traces" / f"{name.split('-')[0]}.xml"
    options = ("-c", config, "-o", "data", "-r", "r.json", "-k", "-s", 2, *arguments)
    outcome = kernel_run(player, name, *options, ranks=4)
    expect(outcome.status == 0, outcome.err)
    return config


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
    config = two_steps(player, name, *given)
    result = json.loads((player.folder / "r.json").read_text())
    check_schema(result, "application")
    equal(len(dumps_of(result)), 2, "dumps")
    for row in dumps_of(result):
        equal(row["processes"]["bytes"], [bytes_of_process] * 4, "bytes of processes")
        over = row["file_bytes"] / (4 * bytes_of_process) - 1
        expect(0 < over < 0.1, f"{over:.4f} of the payload is container")
    need_program("bpls", "libadios-bin")
    target = player.data / f"{group}.1.bp"
    names = {
        line.split()[1] for line in output(player, "bpls", target).splitlines() if line.strip()
    }
    names = {name for name in names if not name.startswith("/__adios__")}
    equal(names, variables_of(config, electrons="electrons" in name), "variables")
    mean = output(player, "bpls", "-l", target)
    expect("nan" not in mean.lower() and "inf " not in mean, f"values are no numbers:\n{mean}")


def kernels_compute(player: Player) -> None:
    """Steps differ, by what was computed between them, and so do processes."""
    need_method("adios")
    need_program("bpls", "libadios-bin")
    for name, group, values, small in (
        ("chimera", "restart.model", "t_c", ("--rays=2",)),
        ("gts", "restart", "zion", ("--mimax=2000", "--mgrid=500")),
    ):
        player.clear()
        two_steps(player, name, *small)
        first, second = (
            output(player, "bpls", "-d", "-n", "1", player.data / f"{group}.{step}.bp", values)
            for step in range(2)
        )
        expect(first != second, f"{name}: {values} is the same in both steps")
        expect(len(set(first.split())) > 100, f"{name}: {values} has hardly any values")


def kernel_invalid_input(player: Player) -> None:
    """Bad options and descriptors: one message of the kernel, status not 0, no result."""
    need_method("adios")
    to, of_gts = ("-o", "data"), ("-c", ROOT / "traces" / "gts.xml")
    rays = "expected a whole number from 1 to 4096"
    cases: list[tuple[str, tuple[object, ...], str]] = [
        ("chimera", (*to, "--rays", 0), f"--rays 0: {rays}"),
        ("chimera", (*to, "--rays"), f"--rays: {rays}"),
        ("chimera", (*to, "--cycles=x"), "--cycles x: expected a whole number"),
        ("chimera", (*to, "--colour"), "--colour: unknown option"),
        ("chimera", to, "chimera.xml: the adios-config cannot be read"),
        ("chimera", (*to, *of_gts), "undefined group: restart.model"),
        ("gts", ("--mimax=1e5",), "--mimax 1e5: expected a whole number"),
        ("gts", (), "--directory is missing"),
        ("gts", (*to, *of_gts, "-a", "FLOPPY"), "--method FLOPPY: in ADIOS 1.13.1"),
    ]
    for name, given, message in cases:
        outcome = kernel_run(player, name, *given)
        expect(outcome.status != 0, f"{given}: status 0")
        expect(message in outcome.err, f"{given}: {outcome.err}, expected {message}")
        expect(not (player.folder / "result.json").exists(), f"{given}: a result was written")
        shutil.rmtree(player.data, ignore_errors=True)
    for name in ("chimera", "gts"):
        outcome = kernel_run(player, name, "--help", ranks=0)
        expect(outcome.status == 0 and outcome.err == "", outcome.err)
        expect("--cycles" in outcome.out and "--steps" in outcome.out, outcome.out)


def memory_of_indices(player: Player) -> None:
    """ADIOS keeps an entry of its indices for each call of a dump: the estimate has them."""
    need_method("adios")
    dumps = [dump(0, variable("data", [1 << 18]))]
    path = player.describe(workload(stream("out", transfer_bytes=16, dumps=dumps), ranks=1))
    planned = player.run(0, "-w", path, "-a", "adios", "--dry-run")
    (estimate,) = map(int, re.findall(r"memory per rank +(\d+)", planned.out))
    process = player.start(0, "-w", path, "-a", "adios", "-o", "data", "-O", "result.json")
    _, status, usage = os.wait4(process.pid, 0)
    equal(status, 0)
    peak = usage.ru_maxrss << 10
    expect(estimate / 2 < peak < estimate + (64 << 20), f"{peak} bytes, {estimate} planned")


def without_adios(player: Player) -> None:
    """Where ADIOS is missing the kernels still build, and say so in one message."""
    proxies, skel = ROOT / "proxies", ROOT / "studies" / "skel" / "programs"
    for name in ("chimera", "gts"):
        target = player.folder / f"understudy-kernel-{name}"
        sources = [skel / f"kernel-{name}.c", skel / "kernel" / "kernel.c"]
        sources += [proxies / "core" / "text" / f"{part}.c" for part in ("error", "print")]
        include = ["-I", proxies / "core", "-I", skel]
        compiler = os.environ["UND_MPICC"]
        output(player, compiler, "-std=c11", "-Wall", "-Werror", *include, "-o", target, *sources)
        outcome = replace(player, program=target).run(2, "-o", "data")
        expect(outcome.status != 0, "status 0")
        lines = [x for x in outcome.err.splitlines() if x.startswith("kernel-")]
        message = f"kernel-{name}: cannot write: this program was built without ADIOS 1.13"
        equal(lines, [message])


CASES = {
    **named(read_by_bpls, invalid_input, small_buffers, cut_part, kernels_compute),
    **named(memory_of_indices),
    **named(kernel_invalid_input, without_adios),
    **for_each(methods, LAYOUTS),
    **for_each(full_disk, METHODS),
    **for_each(stops_cleanly, METHODS),
    **for_each(kernel, KERNELS),
}

if __name__ == "__main__":
    sys.exit(main("adios", CASES))
