"""What a run leaves that could not end in order, and what the next run makes of it.

`mpi_killed.py --list` names the cases, `mpi_killed.py CASE PROGRAM MPIEXEC FOLDER` runs one.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mpi_run import CLAIM, METHODS, timed, wait_for
from mpi_support import Json, Player, expect, files_below, finish, main, ranks_below

FILE_METHODS = [method for method in METHODS if method != "null"]
SLEEP = ["sleep", "600"]


def kill_a_run(player: Player, *options: object) -> dict[str, bytes]:
    """All ranks of a run that waits for its second dump are killed; what they leave."""
    path = player.describe(timed([0, 30], "shared"))
    process = player.start(4, "-w", path, "-o", "data", "-O", "no.json", *options)
    wait_for(player.folder / "data", 2)
    ranks = ranks_below(player, process.pid)
    expect(len(ranks) == 4, f"{len(ranks)} ranks")
    for pid in ranks.values():
        with suppress(ProcessLookupError):  # Hydra kills the others of one that was killed
            os.kill(pid, signal.SIGKILL)
    expect(finish(process).status != 0, "status 0")
    left = player.data()
    expect(CLAIM in left and len(left) == 3, f"left {left.keys()}")
    return left


def next_run_removes_the_files(player: Player) -> None:
    """The next run says so, plays, and leaves nothing of either; own files beside stay."""
    (player.folder / "mine").write_text("mine")
    for method in player.methods(FILE_METHODS):
        player.clear()
        kill_a_run(player, "-a", method)
        path = player.describe(timed([0], "shared"))
        outcome = player.run(4, "-w", path, "-o", "data", "-a", method, "-O", "result.json")
        expect(outcome.status == 0, f"{method}: {outcome.err}")
        words = "understudy: data: removed 3 files of a run that was killed\n"
        expect(outcome.complaints == words, f"{method}: {outcome.err}")
        expect(not (player.folder / "data").exists(), f"{method}: the directory stays")
        left = sorted(p.name for p in player.folder.iterdir())
        expect(left == ["mine", "result.json", "workload.json"], f"{method}: {left}")


def kept_files_are_no_remains(player: Player) -> None:
    """Files that a run kept carry no claim: they are refused as those of anybody."""
    player.play(timed([0], "shared"), "-k")
    kept = player.data()
    expect(CLAIM not in kept and len(kept) == 2, f"kept {kept.keys()}")
    refused(player, "not empty", kept)


def refused(player: Player, words: str, left: dict[str, bytes]) -> None:
    """The next run is refused with the words, and nothing is removed or changed."""
    refused_with(player, words)
    found = player.data()
    expect(found == left, f"{words}: left {found.keys()}, not {left.keys()}")


def refused_with(player: Player, words: str) -> None:
    path = player.describe(timed([0], "shared"))
    outcome = player.run(4, "-w", path, "-o", "data", "-O", "result.json")
    expect(outcome.status == 2 and words in outcome.message(), f"{words}: {outcome.err}")


def running_run_keeps_its_files(player: Player) -> None:
    """A second run in the directory of a first that still runs is refused, the first goes on."""
    path = player.describe(timed([0, 30], "shared"))
    process = player.start(4, "-w", path, "-o", "data", "-O", "no.json")
    try:
        wait_for(player.folder / "data", 2)
        names = player.data().keys()  # the first dump may still be written
        refused_with(player, "has its files there")
        expect(player.data().keys() == names, f"left {player.data().keys()}, not {names}")
    finally:
        process.terminate()
        finish(process)


def change(player: Player, changed: Callable[[Json], object]) -> None:
    """Changes the claim."""
    path = player.folder / "data" / CLAIM
    claim = json.loads(path.read_text())
    changed(claim)
    path.write_text(json.dumps(claim))


def claims_that_prove_nothing(player: Player) -> None:
    """Of another boot, host or container, of a process that lives, damaged: nothing is removed."""
    folder = player.folder / "data"
    claim = kill_a_run(player)[CLAIM]
    with subprocess.Popen(SLEEP) as other:
        stat = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()
        lives = [other.pid, int(stat[19])]
        try:
            cases: list[tuple[Callable[[Json], object], str]] = [
                (lambda c: c.update(host="far", boot="another"), "run on far, of whose processes"),
                (lambda c: c.update(pids=1), "remove the directory"),
                (lambda c: c.update(nodes=2), "and other hosts"),
                (lambda c: c["processes"].append(lives), f"process {other.pid} "),
                (lambda c: c.update(processes=[]), "no claim"),
                (lambda c: c.update(processes=[[1]]), "no claim"),
                (lambda c: c.update(streams=["other"]), "expected an empty directory"),
                (lambda c: c.update(streams=[""]), "expected an empty directory"),
                (lambda c: c.update(schema="understudy/claim/2"), "no claim"),
                (lambda c: c.update(more=1), "no claim"),
                (lambda c: c.pop("boot"), "no claim"),
            ]
            for changed, words in cases:
                (folder / CLAIM).write_bytes(claim)
                change(player, changed)
                refused(player, words, player.data())
        finally:
            other.kill()
    for text in (b"", b"{", b"[]", b"\0" * 100, claim + b"x"):
        (folder / CLAIM).write_bytes(text)
        refused(player, "no claim", player.data())


def number_that_is_used_again(player: Player) -> None:
    """A process of that number that started at another time is none of the run."""
    kill_a_run(player)
    change(player, lambda c: c["processes"].append([os.getpid(), 1]))
    path = player.describe(timed([0], "shared"))
    outcome = player.run(4, "-w", path, "-o", "data", "-O", "result.json")
    expect(outcome.status == 0 and "removed 3 files" in outcome.err, outcome.err)


def links_and_files_of_others(player: Player) -> None:
    """Anything else in the directory, or behind a link: nothing is removed, nothing followed."""
    folder, precious = player.folder / "data", player.folder / "precious"
    claim = kill_a_run(player)[CLAIM]
    precious.mkdir()
    (precious / "field.000000.f0").write_text("mine")
    kept = files_below(precious)
    extra = folder / "field.000009.f0"
    plants: list[tuple[Path, Callable[[Path], object]]] = [
        (folder / "notes", lambda p: p.write_text("mine")),
        (folder / "field.txt", lambda p: p.write_text("mine")),
        (extra, lambda p: p.symlink_to(precious / "field.000000.f0")),
        (extra, lambda p: p.symlink_to(precious)),
        (extra, lambda p: p.hardlink_to(precious / "field.000000.f0")),
        (extra, lambda p: os.mkfifo(p)),
    ]
    for path, plant in plants:
        plant(path)
        refused(player, f"it holds {path.name}, besides files of a run", player.data())
        path.unlink()
    (folder / CLAIM).unlink()
    (precious / "claim").write_bytes(claim)
    for link in (Path.symlink_to, Path.hardlink_to):
        link(folder / CLAIM, precious / "claim")
        refused(player, "no claim", player.data())
        (folder / CLAIM).unlink()
    os.mkfifo(folder / CLAIM)
    refused(player, "no claim", player.data())
    (precious / "claim").unlink()
    expect(files_below(precious) == kept, "it was changed")


def result_of_another(player: Player) -> None:
    """The claim names a file that is not the unfinished result of that run: it stays."""
    kill_a_run(player)
    for name in ("precious", "precious.part"):
        (player.folder / name).write_text("mine")
    change(player, lambda c: c["part"].update(path=str(player.folder / "precious.part")))
    path = player.describe(timed([0], "shared"))
    outcome = player.run(4, "-w", path, "-o", "data", "-O", "result.json")
    expect(outcome.status == 0, outcome.err)
    expect((player.folder / "precious.part").read_text() == "mine", "it was changed")
    player.clear()
    before = set(player.folder.iterdir())
    kill_a_run(player)
    (part,) = set(player.folder.glob("*.part")) - before
    other = part.rename(player.folder / "download.part")  # the very file, of another name
    change(player, lambda c: c["part"].update(path=str(other)))
    path = player.describe(timed([0], "shared"))
    outcome = player.run(4, "-w", path, "-o", "data", "-O", "result.json")
    expect(outcome.status == 0 and other.exists(), outcome.err)


CASES: dict[str, Callable[[Player], None]] = {
    case.__name__.replace("_", "-"): case
    for case in (
        next_run_removes_the_files,
        kept_files_are_no_remains,
        running_run_keeps_its_files,
        claims_that_prove_nothing,
        number_that_is_used_again,
        links_and_files_of_others,
        result_of_another,
    )
}

if __name__ == "__main__":
    sys.exit(main("killed", CASES))
