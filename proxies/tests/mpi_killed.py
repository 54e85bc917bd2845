"""What a run leaves that could not end in order, and what the next run makes of it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mpi_support import (
    CLAIM,
    FILE_METHODS,
    Json,
    Outcome,
    Player,
    disturbed,
    equal,
    expect,
    files_below,
    main,
    named,
    ranks_below,
    refused,
    timed,
)

SLEEP = ["sleep", "600"]


TO = ("-o", "data", "-O", "result.json")


def kill_a_run(player: Player, *options: object) -> dict[str, bytes]:
    """All ranks of a run that waits for its second dump are killed; what they leave."""

    def kill(player: Player, process: "subprocess.Popen[str]") -> None:
        ranks = ranks_below(player, process.pid)
        equal(len(ranks), 4, "ranks")
        for pid in ranks.values():
            with suppress(ProcessLookupError):  # Hydra kills the others of one that was killed
                os.kill(pid, signal.SIGKILL)

    outcome = disturbed(player, kill, *options, described=timed([0, 30], "shared"))
    expect(outcome.status != 0, "status 0")
    left = player.files()
    names = {name.partition("/")[0] for name in left}  # a file of ADIOS2 is a directory
    expect(CLAIM in left and len(names) == 3, f"left {left.keys()}")
    return left


def next_run(player: Player, *options: object) -> Outcome:
    """A run in the directory that must succeed."""
    path = player.describe(timed([0], "shared"))
    outcome = player.run(4, "-w", path, *TO, *options)
    expect(outcome.status == 0, f"{options}: {outcome.err}")
    return outcome


def next_run_removes_the_files(player: Player) -> None:
    """The next run says so, plays, and leaves nothing of either."""
    for method in player.methods(FILE_METHODS):
        kill_a_run(player, "-a", method)
        before = {p.name for p in player.folder.iterdir()} - {"data"}
        outcome = next_run(player, "-a", method)
        words = "understudy: data: removed 3 files of a run that was killed\n"
        equal(outcome.complaints, words, method)
        after = {p.name for p in player.folder.iterdir()}
        gone = {name for name in before if name.endswith(".part")}
        equal(after, before - gone | {"result.json"}, f"{method}: left")


def unfinished_series_is_removed(player: Player) -> None:
    """As the unfinished result is."""
    kill_a_run(player, "--time-series", "series.jsonl")
    equal(len([*player.folder.glob("series.jsonl.*.part")]), 1, "series in work")
    outcome = next_run(player)
    words = "understudy: data: removed 4 files of a run that was killed\n"
    equal(outcome.complaints, words, "message")
    equal([*player.folder.glob("*.part")], [], "left")


def kept_files_are_no_remains(player: Player) -> None:
    """Files that a run kept carry no claim: they are refused as those of anybody."""
    player.play(timed([0], "shared"), "-k")
    kept = player.files()
    expect(CLAIM not in kept and len(kept) == 2, f"kept {kept.keys()}")
    not_removed(player, "not empty")


def not_removed(player: Player, words: str) -> None:
    """The next run is refused with the words, and nothing is removed or changed."""
    before, path = player.files(), player.describe(timed([0], "shared"))
    refused(player, 4, "-w", path, *TO, words=(words,))
    equal(player.files() == before, True, f"{words}: all is left")


def running_run_keeps_its_files(player: Player) -> None:
    """A second run in the directory of a first that still runs is refused, the first goes on."""

    def second(player: Player, process: "subprocess.Popen[str]") -> None:
        names = player.files().keys()
        path = player.describe(timed([0], "shared"), "second.json")
        outcome = player.run(4, "-w", path, "-o", "data", "-O", "second.result.json")
        expect(outcome.status == 2 and "has its files there" in outcome.message(), outcome.err)
        equal(player.files().keys(), names, "left")
        process.terminate()

    disturbed(player, second, described=timed([0, 30], "shared"))


def change(player: Player, changed: Callable[[Json], object]) -> None:
    """Changes the claim."""
    path = player.data / CLAIM
    claim = json.loads(path.read_text())
    changed(claim)
    path.write_text(json.dumps(claim))


def claims_that_prove_nothing(player: Player) -> None:
    """Of another boot, host or container, of a process that lives, damaged: nothing is removed."""
    folder = player.data
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
                not_removed(player, words)
        finally:
            other.kill()
    for text in (b"", b"{", b"[]", b"\0" * 100, claim + b"x"):
        (folder / CLAIM).write_bytes(text)
        not_removed(player, "no claim")


def number_that_is_used_again(player: Player) -> None:
    """A process of that number that started at another time is none of the run."""
    kill_a_run(player)
    change(player, lambda c: c["processes"].append([os.getpid(), 1]))
    outcome = next_run(player)
    expect("removed 3 files" in outcome.err, outcome.err)


def links_and_files_of_others(player: Player) -> None:
    """Anything else in the directory, or behind a link: nothing is removed, nothing followed."""
    claim = kill_a_run(player)[CLAIM]
    folder, precious = player.data, player.folder / "precious"
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
        not_removed(player, f"it holds {path.name}, besides files of a run")
        path.unlink()
    (folder / CLAIM).unlink()
    (precious / "claim").write_bytes(claim)
    for link in (Path.symlink_to, Path.hardlink_to):
        link(folder / CLAIM, precious / "claim")
        not_removed(player, "no claim")
        (folder / CLAIM).unlink()
    os.mkfifo(folder / CLAIM)
    not_removed(player, "no claim")
    (precious / "claim").unlink()
    expect(files_below(precious) == kept, "it was changed")


def result_of_another(player: Player) -> None:
    """The claim names a file that is not the unfinished result of that run: it stays."""
    kill_a_run(player)
    other = player.folder / "precious.part"
    for path in (other, other.with_suffix("")):
        path.write_text("mine")
    change(player, lambda c: c["part"].update(path=str(other)))
    next_run(player)
    equal(other.read_text(), "mine")
    kill_a_run(player)
    (part,) = player.folder.glob("*.part")
    other = part.rename(player.folder / "download.part")  # the very file, of another name
    change(player, lambda c: c["part"].update(path=str(other)))
    next_run(player)
    expect(other.exists(), "it is gone")


CASES = named(
    *(next_run_removes_the_files, unfinished_series_is_removed, kept_files_are_no_remains),
    running_run_keeps_its_files,
    *(claims_that_prove_nothing, number_that_is_used_again, links_and_files_of_others),
    result_of_another,
)

if __name__ == "__main__":
    sys.exit(main("killed", CASES))
