"""Layouts and hints: applied, read back, recorded; and refused where that cannot be.

The file systems are those of fake_striped.c.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mpi_support import (
    STEP_METHODS,
    Json,
    Player,
    equal,
    expect,
    main,
    named,
    need_method,
    sample,
)

MIB = 1 << 20
KINDS = ("lustre", "lustre-composite", "lustre-ioctl", "ceph", "beegfs")
METHODS = ("posix", "mpiio", "hdf5", "uring")
BACKENDS = {kind: kind.partition("-")[0] for kind in KINDS}
DEFAULTS = {"lustre": (1, MIB), "ceph": (1, 4 * MIB), "beegfs": (1, MIB // 2)}
LAYOUT = ("--stripe-count", 4, "--stripe-size", 2 * MIB)
NOTHING = {"stripe_count": None, "stripe_size_bytes": None, "stripe_targets": None, "pool": None}


def on(player: Player, kind: str, **more: object) -> Player:
    """The player with ./data on a fake file system."""
    state = player.folder / "state"
    state.mkdir(exist_ok=True)
    places = {"ROOT": player.data.resolve(), "STATE": state, "KIND": kind}
    return player.preloading("UND_FAKE_STRIPED", "FAKE", **places | more)


def workload(layout: str = "shared", **keys: object) -> Json:
    """One stream of several files, or of one."""
    row = sample("file-per-process" if layout == "file-per-process" else "shared")
    first = row["streams"][0] | keys
    first["dumps"] = [first["dumps"][0] | {"time_s": 0.0} for _ in range(2)]
    return row | {"streams": [first]}


def only(result: Json) -> tuple[Json, Json]:
    """What was asked and applied, of the only stream."""
    (entry,) = result["striping"]
    equal(entry["stream"], result["repetitions"][0]["streams"][0]["name"])
    return entry["asked"], entry["applied"]


def applied_to(player: Player, *options: object, layout: str = "shared") -> Json:
    return only(player.play(workload(layout), *options))[1]


def holds(row: Json, **values: object) -> None:
    """Some keys have these values."""
    equal({key: row[key] for key in values}, values, row)


def fails(
    player: Player, status: int, text: str, *options: object, layout: str = "shared"
) -> None:
    """A run that ends with one message that holds the text, without result and without files."""
    path = player.describe(workload(layout))
    result = player.folder / "result.json"
    result.unlink(missing_ok=True)
    outcome = player.run(4, "-w", path, "-o", "data", "-O", result, *options)
    expect(outcome.status != 0, f"{options}: status 0")
    expect(status != 2 or outcome.status == 2, f"{options}: status {outcome.status}")
    expect(text in outcome.message(), f"{options}: {text!r} is not in {outcome.message()!r}")
    expect(not result.exists() and not player.data.exists(), f"{options}: files are left")


def applies(player: Player, kind: str) -> None:
    """Every file of every method has the layout, and the record says on how many targets it is."""
    backend = BACKENDS[kind]
    for method in player.methods(METHODS):
        for layout in ("shared", "file-per-process"):
            result = on(player, kind).play(workload(layout), "-a", method, "-i", 2, *LAYOUT)
            asked, applied = only(result)
            holds(asked, stripe_count=4, stripe_size_bytes=2 * MIB, pool=None, stripe_targets=None)
            holds(applied, backend=backend, stripe_count=4, stripe_size_bytes=2 * MIB)
            files = sum(
                d["files"] for r in result["repetitions"] for d in r["streams"][0]["dumps"]
            )
            on_targets = applied["files_per_target"]
            equal(sum(on_targets.values()), 4 * files, f"targets of {files} files")
            equal(applied["targets"], sorted(int(t) for t in on_targets))
            holds(result["options"], stripe_count=4, stripe_size=2 * MIB)
            holds(result["storage"], type=backend)


def applies_to_appended(player: Player, kind: str) -> None:
    """Files that several dumps write to are looked at once, whether they stay open or not."""
    for keys in (
        {"files": "append"},
        {"files": "append", "reopen": True},
        {"files": "update", "reopen": False},
    ):
        described = workload(**keys)
        _, applied = only(on(player, kind).play(described, "-i", 2, *LAYOUT))
        holds(applied, stripe_count=4)
        files = len({v["file"] for v in described["streams"][0]["dumps"][0]["variables"]})
        equal(sum(applied["files_per_target"].values()), 2 * files * 4, f"{keys}: targets")


def applies_nothing(player: Player, kind: str) -> None:
    """Without the options nothing is asked; files have what the directory gives."""
    asked, applied = only(on(player, kind).play(workload("file-per-process")))
    equal(asked, NOTHING | {"hints": {}}, "asked")
    count, size = DEFAULTS[BACKENDS[kind]]
    holds(applied, stripe_count=count, stripe_size_bytes=size)
    if kind == "lustre-composite":  # most bytes of larger files are in the second component
        asked, applied = only(on(player, kind).play(workload(), "--bytes-scale", 50))
        equal((applied["stripe_count"], asked["stripe_count"]), (3, None))


def chooses(player: Player) -> None:
    """Targets, pools and all targets, where the file system has them."""
    fast = ("--stripe-pool", "fast")
    lustre, every = on(player, "lustre"), [*range(101, 109)]
    holds(applied_to(lustre, "--stripe-targets", "1,5-6"), targets=[1, 5, 6], stripe_count=3)
    asked, applied = only(lustre.play(workload(), *fast, "--stripe-count", -1))
    holds(asked, pool="fast", stripe_count=-1)
    holds(applied, pool="fast", stripe_count=8)
    holds(applied_to(on(player, "ceph"), *fast), pool="fast", stripe_count=1)
    beegfs = applied_to(on(player, "beegfs"), "--stripe-count", -1)
    holds(beegfs, stripe_count=8, targets=every)


def finds_lies(player: Player, kind: str) -> None:
    """A file system that gives another layout than was asked ends the run."""
    text = "--stripe-count 6 was asked, but the file system gave"
    capped, ignored = on(player, kind, LIE="cap4"), on(player, kind, LIE="ignore")
    for layout in ("shared", "file-per-process"):
        fails(capped, 1, f"{text} 4", "--stripe-count", 6, layout=layout)
        fails(ignored, 1, f"{text} 1", "--stripe-count", 6, layout=layout)
    fails(ignored, 1, "--stripe-size 8388608 was asked, but", "--stripe-size", "8MiB")
    applied_to(capped, "--stripe-count", 4)


def refuses(player: Player) -> None:
    """What cannot be given is refused before the run starts; see storage_cases.py for values that
    are wrong in themselves."""
    text = "cannot be given a layout; expected a file system of beegfs, ceph, lustre"
    number = "expected a whole number of at least 1, or -1 for all"
    by_itself = "streams[0] is played by {}, which creates files itself"
    lustre, ceph, beegfs = (on(player, kind) for kind in ("lustre", "ceph", "beegfs"))
    cases: list[tuple[Player, int, str, tuple[object, ...]]] = [
        (player, 2, "--stripe-count: files on ", ("--stripe-count", 4)),
        (player, 2, text, ("--stripe-size", "1MiB")),
        (player, 2, text, ("--stripe-pool", "fast")),
        (player, 2, text, ("--stripe-targets", "1")),
        (player, 2, f"--stripe-count 0: {number}", ("--stripe-count", 0)),
        (player, 2, "--stripe-targets 1-: expected a list", ("--stripe-targets", "1-")),
        (lustre, 2, "--stripe-size 1000: lustre expects a multiple of", ("--stripe-size", 1000)),
        (lustre, 2, "names 2 targets", ("--stripe-targets", "1,2", "--stripe-count", 3)),
        (lustre, 1, "cannot give", ("--stripe-targets", "77")),
        (lustre, 2, "no stream has files", ("--stripe-count", 4, "-a", "null")),
        (ceph, 2, "cannot stripe over all targets", ("--stripe-count", -1)),
        (ceph, 2, "cannot choose the targets", ("--stripe-targets", 1)),
        (ceph, 1, "No such file or directory", ("--stripe-pool", "slow")),
        (beegfs, 2, "cannot choose the pool", ("--stripe-pool", "fast")),
        (beegfs, 2, "a power of two", ("--stripe-size", 3 * 65536)),
        *(
            (lustre, 2, by_itself.format(m), ("--stripe-count", 4, "-a", m))
            for m in player.methods(STEP_METHODS)
        ),
    ]
    for where, status, words, options in cases:
        fails(where, status, words, *options)
    outcome = player.run(0, "-w", "x", "--restart-from", "data", "--stripe-count", 4)
    expect("--stripe-count" in outcome.message() and outcome.status == 2, outcome.err)


def damaged(player: Player) -> None:
    """A layout that is not understood is unknown; where one was asked, the run ends."""
    record = player.folder / "record"
    record.write_bytes(b"\xd0\x0b\xd6\x0b" + b"\xff" * 100)
    lustre = on(player, "lustre", RECORD=record)
    equal(applied_to(lustre), None, "a layout")
    fails(lustre, 1, "is cut off", "--stripe-count", 4)
    record.write_bytes(b"")
    fails(lustre, 1, "is not known", "--stripe-count", 4)


def hints(player: Player, method: str) -> None:
    """Hints reach MPI; those in force are recorded beside those asked for."""
    need_method(method)
    asked, applied = only(player.play(workload(), "-a", method))
    default = {"romio_ds_write": "disable"} if method == "mpiio" else {}
    equal(asked, NOTHING | {"hints": default}, "asked")
    holds(applied, backend=None, files_per_target=None, stripe_count=None)
    given = ["--hint", "romio_ds_write=enable", "--hint", "cb_nodes=1", "--hint", "x=y=z"]
    result = player.play(workload(), "-a", method, *given)
    asked, applied = only(result)
    expected = {"romio_ds_write": "enable", "cb_nodes": "1", "x": "y=z"}
    equal((asked["hints"], result["options"]["hints"]), (expected, expected), "hints")
    wrong = {k: v for k, v in applied["hints"].items() if expected.get(k, v) != v}
    equal(wrong, {}, "in force")
    text = "--hint cb_nodes=1: no stream is played by a method that takes hints"
    for other in ("posix", "null"):
        fails(player, 2, text, "-a", other, "--hint", "cb_nodes=1")
    fails(player, 2, "--hint cb_nodes: expected KEY=VALUE", "-a", method, "--hint", "cb_nodes")
    path = player.describe(workload())
    for key in ("cb_nodes", "cb_buffer_size", "striping_factor", "striping_unit"):
        for value in ("-5", "0", "1k", "99999999999"):
            options = ("-a", method, "--dry-run", "--hint", f"{key}={value}")
            outcome = player.run(0, "-w", path, "-o", "data", *options)
            text = f"--hint {key}={value}: expected a whole number from 1 to 2147483647"
            expect(text in outcome.message() and outcome.status == 2, outcome.err)


def layout_hints(player: Player, method: str) -> None:
    """MPI creates the files, and the layout that they have must be the one of the hints."""
    need_method(method)
    given = ("-a", method, "--hint", "striping_factor=4")
    fails(player, 2, "cannot be read back", *given)
    fails(player, 2, "exclude each other", *given, "--stripe-count", 4)
    lustre = on(player, "lustre")
    text = "--hint striping_factor=4 was asked, but the file system gave 1"
    for layout in ("shared", "file-per-process"):
        fails(lustre, 1, text, *given, layout=layout)
    # A directory that gives what the hints ask for: the files are those of a run that succeeds.
    player.data.mkdir()
    storage = Path(player.program).with_name("understudy-storage")
    command = [storage, "--stripe-count", "4", player.data]
    environment = os.environ | dict(lustre.environment)
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)
    for layout in ("shared", "file-per-process"):
        holds(applied_to(lustre, "--verify", *given, layout=layout), stripe_count=4)
        equal(lustre.files(), {}, "left")
    kept = lustre.play(workload(), "-k", *given)
    expect(len(lustre.files()) == 4 and kept["finished"], f"kept: {list(lustre.files())}")


def lists(player: Player) -> None:
    """--list -v names the backends."""
    lines = player.run(0, "--list", "-v").out.splitlines()
    backends = [line.split()[1] for line in lines if line.startswith("striping ")]
    equal(backends, ["beegfs:", "ceph:", "lustre:", "none:"])
    equal(applied_to(player, "-a", "null"), None, "without files")


CASES: dict[str, Callable[[Player], None]] = named(chooses, refuses, damaged, lists)
for _kind in KINDS:
    CASES[f"applies-nothing.{_kind}"] = partial(applies_nothing, kind=_kind)
for _kind in ("lustre", "lustre-ioctl", "ceph", "beegfs"):  # a composite one is never asked for
    CASES[f"applies.{_kind}"] = partial(applies, kind=_kind)
    CASES[f"applies-to-appended.{_kind}"] = partial(applies_to_appended, kind=_kind)
for _kind in ("lustre", "ceph", "beegfs"):
    CASES[f"finds-lies.{_kind}"] = partial(finds_lies, kind=_kind)
for _method in ("mpiio", "hdf5"):
    CASES[f"hints.{_method}"] = partial(hints, method=_method)
    CASES[f"layout-hints.{_method}"] = partial(layout_hints, method=_method)

if __name__ == "__main__":
    sys.exit(main("striping", CASES))
