"""Layouts and hints: applied, read back, recorded; and refused where that cannot be.

`mpi_striping.py --list` names the cases, `mpi_striping.py CASE PROGRAM MPIEXEC FOLDER` runs one.
The file systems are those of fake_striped.c.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from mpi_support import Json, Outcome, Player, expect, main, need_method, sample

MIB = 1 << 20
KINDS = ("lustre", "lustre-composite", "lustre-ioctl", "ceph", "beegfs")
METHODS = ("posix", "mpiio", "hdf5")
BACKENDS = {kind: kind.partition("-")[0] for kind in KINDS}
DEFAULTS = {"lustre": (1, MIB), "ceph": (1, 4 * MIB), "beegfs": (1, MIB // 2)}
LAYOUT = ("--stripe-count", 4, "--stripe-size", 2 * MIB)
NOTHING = {"stripe_count": None, "stripe_size_bytes": None, "stripe_targets": None, "pool": None}


def on(player: Player, kind: str, **more: str) -> Player:
    """The player with ./data on a fake file system."""
    library = os.environ["UND_FAKE_STRIPED"]
    state = player.folder / "state"
    state.mkdir(exist_ok=True)
    fake = {"LD_PRELOAD": library, "FAKE_ROOT": str((player.folder / "data").resolve())}
    fake |= {"FAKE_STATE": str(state), "FAKE_KIND": kind} | more
    return replace(player, environment=player.environment | fake)


def workload(layout: str = "shared", dumps: int = 2) -> Json:
    """One stream of several files, or of one."""
    found = sample("file-per-process" if layout == "file-per-process" else "shared")
    found["streams"] = found["streams"][:1]
    stream = found["streams"][0]
    stream["dumps"] = [stream["dumps"][0] | {"time_s": 0.0} for _ in range(dumps)]
    return found


def only(result: Json) -> tuple[Json, Json]:
    """What was asked and applied, of the only stream."""
    expect(len(result["striping"]) == 1, f"striping: {result['striping']}")
    entry = result["striping"][0]
    expect(entry["stream"] == result["repetitions"][0]["streams"][0]["name"], str(entry))
    return entry["asked"], entry["applied"]


def fails(player: Player, status: int, text: str, *arguments: object, **changes: Json) -> Outcome:
    """A run that ends with one message that holds the text, without result and without files."""
    path = player.describe(changes.get("workload", workload()))
    result = player.folder / "result.json"
    result.unlink(missing_ok=True)
    outcome = player.run(4, "-w", path, "-o", "data", "-O", result, *arguments)
    expect(outcome.status != 0, f"{arguments}: status 0")
    expect(status != 2 or outcome.status == 2, f"{arguments}: status {outcome.status}")
    expect(text in outcome.message(), f"{arguments}: {text!r} is not in {outcome.message()!r}")
    expect(not result.exists(), f"{arguments}: there is a result")
    expect(not (player.folder / "data").exists(), f"{arguments}: files are left")
    return outcome


def applies(player: Player, kind: str, method: str) -> None:
    """Every file has the layout, and the record says on how many targets it is."""
    need_method(method)
    for layout in ("shared", "file-per-process"):
        result = on(player, kind).play(workload(layout), "-a", method, "-i", 2, *LAYOUT)
        asked, applied = only(result)
        expect(asked["stripe_count"] == 4 and asked["stripe_size_bytes"] == 2 * MIB, str(asked))
        expect(asked["pool"] is None and asked["stripe_targets"] is None, str(asked))
        expect(applied["backend"] == BACKENDS[kind], str(applied))
        expect(
            (applied["stripe_count"], applied["stripe_size_bytes"]) == (4, 2 * MIB), str(applied)
        )
        files = sum(d["files"] for r in result["repetitions"] for d in r["streams"][0]["dumps"])
        on_targets = applied["files_per_target"]
        expect(sum(on_targets.values()) == 4 * files, f"{files} files: {applied}")
        expect(applied["targets"] == sorted(int(t) for t in on_targets), str(applied))
        options = result["options"]
        expect(options["stripe_count"] == 4 and options["stripe_size"] == 2 * MIB, str(options))
        expect(result["storage"]["type"] == BACKENDS[kind], str(result["storage"]))


def applies_to_appended(player: Player, kind: str) -> None:
    """Files that several dumps write to are looked at once, whether they stay open or not."""
    for keys in (
        {"files": "append"},
        {"files": "append", "reopen": True},
        {"files": "update", "reopen": False},
    ):
        described = workload()
        described["streams"][0] |= keys
        result = on(player, kind).play(described, "-i", 2, *LAYOUT)
        _, applied = only(result)
        expect(applied["stripe_count"] == 4, f"{keys}: {applied}")
        files = len({v["file"] for v in described["streams"][0]["dumps"][0]["variables"]})
        on_targets = sum(applied["files_per_target"].values())
        expect(on_targets == 2 * files * 4, f"{keys}: {files} files: {applied}")


def all_methods(player: Player, kind: str) -> None:
    """The layout reaches the files of every method."""
    for method in player.methods(list(METHODS)):
        applies(player, kind, method)


def applies_nothing(player: Player, kind: str) -> None:
    """Without the options nothing is asked; files have what the directory gives."""
    result = on(player, kind).play(workload("file-per-process"))
    asked, applied = only(result)
    expect(asked == NOTHING | {"hints": {}}, str(asked))
    found = (applied["stripe_count"], applied["stripe_size_bytes"])
    expect(found == DEFAULTS[BACKENDS[kind]], str(applied))
    if kind == "lustre-composite":  # most bytes of larger files are in the second component
        asked, applied = only(on(player, kind).play(workload(), "--bytes-scale", 50))
        expect(applied["stripe_count"] == 3 and asked["stripe_count"] is None, str(applied))


def chooses(player: Player) -> None:
    """Targets, pools and all targets, where the file system has them."""
    lustre = on(player, "lustre")
    _, applied = only(lustre.play(workload(), "-a", "posix", "--stripe-targets", "1,5-6"))
    expect(applied["targets"] == [1, 5, 6] and applied["stripe_count"] == 3, str(applied))
    asked, applied = only(lustre.play(workload(), "--stripe-pool", "fast", "--stripe-count", -1))
    expect(asked["pool"] == applied["pool"] == "fast", str(applied))
    expect(asked["stripe_count"] == -1 and applied["stripe_count"] == 8, str(applied))
    _, applied = only(on(player, "ceph").play(workload(), "--stripe-pool", "fast"))
    expect(applied["pool"] == "fast" and applied["stripe_count"] == 1, str(applied))
    _, applied = only(on(player, "beegfs").play(workload(), "--stripe-count", -1))
    expect(applied["stripe_count"] == 8 and applied["targets"] == [*range(101, 109)], str(applied))


def finds_lies(player: Player, kind: str) -> None:
    """A file system that gives another layout than was asked ends the run."""
    text = "--stripe-count 6 was asked, but the file system gave"
    capped, ignored = on(player, kind, FAKE_LIE="cap4"), on(player, kind, FAKE_LIE="ignore")
    for layout in ("shared", "file-per-process"):
        given = {"workload": workload(layout)}
        fails(capped, 1, f"{text} 4", "--stripe-count", 6, **given)
        fails(ignored, 1, f"{text} 1", "--stripe-count", 6, **given)
    fails(ignored, 1, "--stripe-size 8388608 was asked, but", "--stripe-size", "8MiB")
    only(capped.play(workload(), "--stripe-count", 4))


def refuses(player: Player) -> None:
    """What cannot be given is refused before the run starts."""
    text = "cannot be given a layout; expected a file system of beegfs, ceph, lustre"
    fails(player, 2, "--stripe-count: files on ", "--stripe-count", 4)
    fails(player, 2, text, "--stripe-count", 4)
    fails(player, 2, text, "--stripe-size", "1MiB")
    fails(player, 2, text, "--stripe-pool", "fast")
    fails(player, 2, text, "--stripe-targets", "1")
    for value in ("0", "-2", "4x"):
        expected = f"--stripe-count {value}: expected a whole number of at least 1, or -1 for all"
        fails(player, 2, expected, "--stripe-count", value)
    fails(player, 2, "--stripe-targets 1-: expected a list", "--stripe-targets", "1-")
    lustre = on(player, "lustre")
    fails(lustre, 2, "--stripe-size 1000: lustre expects a multiple of", "--stripe-size", 1000)
    fails(lustre, 2, "names 2 targets", "--stripe-targets", "1,2", "--stripe-count", 3)
    fails(lustre, 1, "cannot give", "--stripe-targets", "77")
    fails(lustre, 2, "no stream has files", "--stripe-count", 4, "-a", "null")
    fails(on(player, "ceph"), 2, "cannot stripe over all targets", "--stripe-count", -1)
    fails(on(player, "ceph"), 2, "cannot choose the targets", "--stripe-targets", 1)
    fails(on(player, "ceph"), 1, "No such file or directory", "--stripe-pool", "slow")
    fails(on(player, "beegfs"), 2, "cannot choose the pool", "--stripe-pool", "fast")
    fails(on(player, "beegfs"), 2, "a power of two", "--stripe-size", 3 * 65536)
    if player.methods(["adios"]):
        text = "streams[0] is played by adios, which creates files itself"
        fails(lustre, 2, text, "--stripe-count", 4, "-a", "adios")
    outcome = player.run(0, "-w", "x", "--restart-from", "data", "--stripe-count", 4)
    expect("--stripe-count" in outcome.message() and outcome.status == 2, outcome.err)


def damaged(player: Player) -> None:
    """A layout that is not understood is unknown; where one was asked, the run ends."""
    record = player.folder / "record"
    record.write_bytes(b"\xd0\x0b\xd6\x0b" + b"\xff" * 100)
    lustre = on(player, "lustre", FAKE_RECORD=str(record))
    expect(only(lustre.play(workload(), "-a", "posix"))[1] is None, "a layout was read")
    fails(lustre, 1, "is cut off", "--stripe-count", 4)
    record.write_bytes(b"")
    fails(lustre, 1, "is not known", "--stripe-count", 4)


def hints(player: Player, method: str) -> None:
    """Hints reach MPI; those in force are recorded beside those asked for."""
    need_method(method)
    asked, applied = only(player.play(workload(), "-a", method))
    default = {"romio_ds_write": "disable"} if method == "mpiio" else {}
    expect(asked == NOTHING | {"hints": default}, str(asked))
    expect(applied is not None and applied["backend"] is None, str(applied))
    expect(applied["files_per_target"] is None and applied["stripe_count"] is None, str(applied))
    given = ["--hint", "romio_ds_write=enable", "--hint", "cb_nodes=1", "--hint", "x=y=z"]
    result = player.play(workload(), "-a", method, *given)
    asked, applied = only(result)
    expected = {"romio_ds_write": "enable", "cb_nodes": "1", "x": "y=z"}
    expect(asked["hints"] == expected, str(asked))
    expect(result["options"]["hints"] == expected, str(result["options"]))
    wrong = {k: v for k, v in applied["hints"].items() if expected.get(k, v) != v}
    expect(not wrong, f"in force: {applied['hints']}")
    for other in ("posix", "null"):
        text = "--hint cb_nodes=1: no stream is played by a method that takes hints"
        fails(player, 2, text, "-a", other, "--hint", "cb_nodes=1")
    fails(player, 2, "--hint cb_nodes: expected KEY=VALUE", "-a", method, "--hint", "cb_nodes")
    path = player.describe(workload())
    for key in ("cb_nodes", "cb_buffer_size", "striping_factor", "striping_unit"):
        for value in ("-5", "0", "1k", "99999999999"):
            given = ("-a", method, "--dry-run", "--hint", f"{key}={value}")
            outcome = player.run(0, "-w", path, "-o", "data", *given)
            text = f"--hint {key}={value}: expected a whole number from 1 to 2147483647"
            expect(text in outcome.message() and outcome.status == 2, outcome.err)


def layout_hints(player: Player, method: str) -> None:
    """MPI creates the files, and the layout that they have must be the one of the hints."""
    need_method(method)
    given = ("-a", method, "--hint", "striping_factor=4")
    fails(player, 2, "cannot be read back", *given)
    fails(player, 2, "expected a whole number", "-a", method, "--hint", "striping_factor=4x")
    fails(player, 2, "exclude each other", *given, "--stripe-count", 4)
    lustre = on(player, "lustre")
    text = "--hint striping_factor=4 was asked, but the file system gave 1"
    for layout in ("shared", "file-per-process"):
        fails(lustre, 1, text, *given, workload=workload(layout))
    # A directory that gives what the hints ask for: the files are those of a run that succeeds.
    data = player.folder / "data"
    data.mkdir()
    storage = Path(player.program).with_name("understudy-storage")
    command = [storage, "--stripe-count", "4", data]
    environment = os.environ | lustre.environment
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)
    for layout in ("shared", "file-per-process"):
        _, applied = only(lustre.play(workload(layout), "--verify", *given))
        expect(applied["stripe_count"] == 4, str(applied))
        expect(lustre.data() == {}, f"files are left: {list(lustre.data())}")
    kept = lustre.play(workload(), "-k", *given)
    expect(len(lustre.data()) == 4 and kept["finished"], f"kept: {list(lustre.data())}")


def lists(player: Player) -> None:
    """--list -v names the backends."""
    lines = player.run(0, "--list", "-v").out.splitlines()
    named = [line.split()[1] for line in lines if line.startswith("striping ")]
    expect(named == ["beegfs:", "ceph:", "lustre:", "none:"], str(named))
    result = json.dumps(player.play(workload(), "-a", "null")["striping"])
    expect('"applied": null' in result, result)


CASES: dict[str, Callable[[Player], None]] = {
    case.__name__: case for case in (chooses, refuses, damaged, lists)
}
for _kind in KINDS:
    CASES[f"applies-nothing.{_kind}"] = partial(applies_nothing, kind=_kind)
for _kind in ("lustre", "lustre-ioctl", "ceph", "beegfs"):  # a composite one is never asked for
    CASES[f"applies.{_kind}"] = partial(all_methods, kind=_kind)
    CASES[f"applies-to-appended.{_kind}"] = partial(applies_to_appended, kind=_kind)
for _kind in ("lustre", "ceph", "beegfs"):
    CASES[f"finds-lies.{_kind}"] = partial(finds_lies, kind=_kind)
for _method in ("mpiio", "hdf5"):
    CASES[f"hints.{_method}"] = partial(hints, method=_method)
    CASES[f"layout-hints.{_method}"] = partial(layout_hints, method=_method)

if __name__ == "__main__":
    sys.exit(main("striping", CASES))
