"""The player removes and overwrites only what it created: files and links are planted in its way.

What is planted says `mine` and is planted while a run waits for its second dump; then it and all
links must be as they were planted.
"""

import itertools
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mpi_support import (
    BYTE_METHODS,
    EVEN,
    FILE_METHODS,
    SUFFIXES,
    Json,
    Player,
    disturbed,
    equal,
    expect,
    files_below,
    main,
    named,
    need_method,
    output,
    timed,
    together,
    traced,
    traces,
    variable_of_rank,
)

FIRST, SECOND = "field.000000.f0", "field.000001.f0"
OPENED = ("posix", "stdio", "mpiio", "hdf5", "uring")  # whose files are opened again
SUBFILES = ("-a", "adios", "-m", "adios.method=POSIX")
NAMES = (FIRST, SECOND, "field.000000.f1", "field.000001.f1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """What is done in the case's folder; and how the run ends: with these words and these names
    in ./data, to which the method's suffix is added, or well without words."""

    act: Callable[[Path, str], object]
    words: str = ""
    left: Sequence[str] | None = None
    workload: Callable[[], Json] | None = None
    after: str = "field.000001*"
    methods: Sequence[str] = ("posix",)
    options: tuple[str, ...] = ()


def write(path: Path) -> None:
    path.write_text(f"mine: {path.name}")


def link(path: Path, to: str) -> None:
    """Another file, and a link to it under the name."""
    write(path.parent / to)
    path.symlink_to(to)


def taken_away(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def replaced(path: Path) -> None:
    taken_away(path)
    write(path)


def move_data(folder: Path, suffix: str) -> None:
    """A directory of somebody else, with files of the run's names, in place of the run's."""
    (folder / "foreign").mkdir()
    for name in NAMES:
        write(folder / "foreign" / (name + suffix))
    (folder / "data").rename(folder / "moved")
    (folder / "data").symlink_to("foreign")


def new_data(folder: Path, _: str) -> None:
    (folder / "data").rename(folder / "moved")
    (folder / "data").mkdir()


def other_files(folder: Path, suffix: str) -> None:
    replaced(folder / "data" / (FIRST + suffix))
    path = folder / "data" / f"field.000000.f1{suffix}"
    taken_away(path)
    link(path, "../precious")


def updated_file(folder: Path, suffix: str) -> None:
    path = folder / "data" / (FIRST + suffix)
    path.rename(folder / "moved")
    link(path, "../precious")


def move_directories(folder: Path, _: str) -> None:
    (folder / "foreign").mkdir()
    for directory in sorted((folder / "data").glob("field.*.d*")):
        foreign = folder / "foreign" / directory.name
        foreign.mkdir()
        for file in directory.iterdir():
            write(foreign / file.name)
        directory.rename(folder / f"moved.{directory.name}")
        directory.symlink_to(foreign)
    expect(bool(files_below(folder / "foreign")), "nothing was planted")


def move_subfiles(folder: Path, _: str) -> None:
    directory = folder / "data" / f"{FIRST}.bp.dir"
    (folder / "foreign").mkdir()
    for file in directory.iterdir():
        write(folder / "foreign" / file.name)
    directory.rename(folder / "data" / "moved")
    directory.symlink_to("../foreign")


def next_subfiles(folder: Path, _: str) -> None:
    (folder / "foreign").mkdir()
    (folder / "data" / f"{SECOND}.bp.dir").symlink_to("../foreign")


def flood(*times_s: float, **changes: object) -> Json:
    """Small files of 100 values."""
    row = timed(times_s, "shared")
    first = row["streams"][0]
    moved = first["dumps"][0]["variables"][0]
    moved |= {"shape": [8, 100], "decomposition": EVEN, "count": 1}
    for dump in first["dumps"]:
        dump["variables"] = [moved]
    first |= {"layout": "flood", "turns": False} | changes
    return row


def with_operations(
    *kinds: str, data: bool = True, base: Json | None = None, **keys: object
) -> Json:
    """Two dumps of the stream `field`: files are created, and later these operations."""
    row = base or timed([0, 2], "shared")
    first = row["streams"][0]
    for dump, names in zip(first["dumps"], (("create",), kinds), strict=True):
        dump["operations"] = [{"operation": name, "runs": [[4, 2]]} for name in names]
        dump["variables"] = dump["variables"] if data else []
    first |= keys
    return row


BACKUP = {"files": "rewrite", "removes": True, "backup": True}
DIRECTORIES = Plant(act=move_directories, words="no longer the directory", after="*.directories.*")
SMALL = ("field.000000.00000003", "field.made.00000002")
PLANTS: dict[str, list[Plant]] = {
    "run-directory-becomes-a-link": [
        Plant(act=move_data, words="no longer the run directory", methods=FILE_METHODS)
    ],
    "run-directory-becomes-another": [
        Plant(act=new_data, words="no longer the run directory", left=())
    ],
    "files-become-others": [
        Plant(act=other_files, left=(FIRST, "field.000000.f1"), methods=FILE_METHODS)
    ],
    "directories-become-links": [
        *(
            replace(  # directories come first and show that it was late
                DIRECTORIES,
                workload=partial(
                    with_operations, "mkdir", kind, data=False, files_per_directory=2
                ),
            )
            for kind in ("create", "rename", "unlink")
        ),
        replace(
            DIRECTORIES,
            workload=partial(flood, 0, 2, files_per_directory=2),
            after="field.000001.d*/*",
        ),
    ],
    "updated-file-becomes-a-link": [
        Plant(
            act=updated_file,
            words="no longer the file",
            workload=partial(with_operations, "create", files="update", names=1),
            after="field.made.00000008",
            methods=OPENED,
        )
    ],
    "backup-in-the-way": [
        Plant(
            act=act,
            words="File exists",
            workload=partial(with_operations, "stat", **BACKUP),
            after="",
        )
        for act in (
            lambda folder, _: write(folder / "data" / f"{FIRST}.backup"),
            lambda folder, _: link(folder / "data" / f"{FIRST}.backup", "../precious"),
        )
    ],
    "flood-files-become-others": [
        Plant(
            act=lambda folder, _: [replaced(folder / "data" / name) for name in SMALL],
            left=SMALL,
            workload=lambda: with_operations("stat", base=flood(0, 2)),
        ),
        *(
            Plant(
                act=lambda folder, _: replaced(folder / "data" / SMALL[1]),
                words="no longer the file",
                left=SMALL[1:],
                workload=partial(with_operations, kind),
            )
            for kind in ("rename", "unlink")
        ),
    ],
    "link-in-the-way": [
        Plant(
            act=lambda folder, suffix: link(folder / "data" / (SECOND + suffix), "../precious"),
            words="File exists",
            left=(SECOND,),
            methods=FILE_METHODS,
        )
    ],
    "subfile-directory-becomes-a-link": [
        Plant(
            act=move_subfiles,
            left=(f"{FIRST}.bp.dir", "moved"),
            methods=("adios",),
            options=SUBFILES,
        )
    ],
    "subfile-directory-in-the-way": [
        Plant(
            act=next_subfiles,
            words="File exists",
            left=(f"{SECOND}.bp.dir",),
            methods=("adios",),
            options=SUBFILES,
        )
    ],
    "result-part-becomes-another": [
        Plant(
            act=lambda folder, _: replaced(next(folder.glob("result.json.*.part"))),
            words="no longer the file",
        )
    ],
}


def planted_in(folder: Path) -> tuple[dict[str, bytes], set[str]]:
    """Files of somebody else, and links."""
    paths = files_below(folder).items()
    files = {k: v for k, v in paths if v.startswith(b"mine") or k.startswith("foreign/")}
    return files, {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_symlink()}


def plant(player: Player, name: str) -> None:
    def once(player: Player, method: str, row: Plant) -> None:
        suffix = "" if row.options else SUFFIXES.get(method, "")
        before: list[object] = []

        def act(player: Player, _: object) -> None:
            row.act(player.folder, suffix)
            before[:] = [planted_in(player.folder)]

        options = ("-a", method, *row.options)
        outcome = disturbed(
            player, act, *options, described=row.workload and row.workload(), after=row.after
        )
        expect((outcome.status == 0) == (not row.words), f"status {outcome.status}: {outcome.err}")
        expect(row.words in outcome.err, outcome.err)
        equal(planted_in(player.folder), before[0], "what was planted")
        equal((player.folder / "result.json").exists(), not row.words, "a result")
        if row.left is not None:
            left = sorted(p.name for p in player.data.iterdir())
            equal(left, sorted(n + suffix for n in row.left), "left")
        moved = files_below(player.folder / "moved") if (player.folder / "moved").is_dir() else {}
        equal([*moved], [], "files of the run")

    for row in PLANTS[name]:
        if row.methods == ("adios",):
            need_method("adios")
        methods = player.methods(row.methods)
        together(player, methods, partial(once, row=row))
        for method in methods:
            shutil.rmtree(player.folder / method)


def in_between(
    player: Player,
    workload: Json,
    method: str,
    name: str,
    at: str,
    *,
    rank: int,
    turn: int,
    link: bool,
) -> None:
    """A link or a file that takes the place in the moment of an open is not written to."""
    away, foreign = player.folder / "away", player.folder / "foreign"
    for left in (player.data, away, foreign):
        shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
    foreign.mkdir()
    write(foreign / "mine")
    place, is_directory = player.data / at, name != at
    variables: Json = {"RANK": rank, "RANK_VARIABLE": variable_of_rank(player.mpiexec)}
    variables |= {"NAME": name, "TURN": turn, "AT": place, "AWAY": away}
    variables |= {"WITH": foreign if is_directory else foreign / "mine"} if link else {}
    planting = player.preloading("UND_PLANT", "PLANT", **variables)
    outcome = planting.run(4, "-w", player.describe(workload), "-o", "data", "-a", method)
    where = f"{method}, {name} in turn {turn} of rank {rank}"
    expect(away.exists(), f"{where}: nothing was planted\n{outcome.err}")
    equal(files_below(foreign), {"mine": b"mine: mine"}, f"{where}: foreign files")
    expect(place.is_symlink() == link, f"{where}: what was planted is gone")
    if not link:
        equal(place.read_text(), "mine", f"{where}: what was planted")
    if not is_directory:
        expect(outcome.status != 0, f"{where}: status 0")
        expect(at in outcome.message(), f"{where}: {outcome.err}")


def opened_again_in_between(player: Player) -> None:
    """What takes the place of a file of the run after the last look at it is not written to."""
    methods = player.methods(BYTE_METHODS)
    for method, files in itertools.product(methods, ("rewrite", "update")):
        for link, rank in ((True, 0), (True, 1), (False, int(files == "update"))):
            workload = timed([0, 0.1], "shared")
            workload["streams"][0] |= {"files": files, "names": 1}
            # The creation, the library's open beside it, the open of the second dump.
            turn = 3 if method == "mpiio" and rank == 0 else 2
            in_between(player, workload, method, FIRST, FIRST, rank=rank, turn=turn, link=link)


def flood_in_between(player: Player) -> None:
    """Files of a flood go to the directories that the run made, wherever their paths lead to."""
    for method in player.methods(OPENED):
        name, place = "00000001" + SUFFIXES.get(method, ""), "field.000000.d000000"
        row = flood(0, files_per_directory=2)
        in_between(player, row, method, name, place, rank=0, turn=1, link=True)


def result_is_a_link(player: Player) -> None:
    """A link is not taken for the result."""
    link(player.folder / "result.json", "precious")
    path = player.describe(timed([0]))
    outcome = player.run(1, "-w", path, "-o", "data", "-O", "result.json")
    equal(outcome.status, 2, "status")
    for words in ("result.json", "symbolic link"):
        expect(words in outcome.message(), outcome.err)
    equal((player.folder / "precious").read_text(), "mine: precious")
    expect(not player.data.exists(), "the run directory is left")


def restart_leaves_all(player: Player) -> None:
    """Files that a restart reads, through links too, and those beside them stay as they are."""
    for method in player.methods(FILE_METHODS):
        for name in ("data", "real"):
            shutil.rmtree(player.folder / name, ignore_errors=True)
        workload = timed([0, 0], "shared")
        workload["streams"][0]["role"] = "checkpoint"
        player.play(workload, "-a", method, "-k")
        (player.folder / "real").mkdir()
        moved = next(p for p in sorted(player.data.iterdir()) if p.name.startswith(SECOND))
        moved.rename(player.folder / "real" / moved.name)
        moved.symlink_to(f"../real/{moved.name}")
        write(player.data / "stranger")
        before = player.files()
        path = player.folder / "workload.json"
        options = ("--restart-from", "data", "-a", method, "--drop-cache")
        outcome = player.run(4, "-w", path, "-O", "restart.json", *options)
        expect(outcome.status == 0, f"{method}: {outcome.err}")
        expect(player.files() == before and moved.is_symlink(), f"{method}: files changed")


def opens_no_semaphore(player: Player) -> None:
    """No shared file pointer, so no semaphore and no file for it, unless the user asks for one."""

    def opened(method: str, **environment: str) -> int:
        player.clear()
        tracing = replace(traced(player, "open,openat,link,unlink", "-D"), environment=environment)
        path = player.describe(timed([0.0], "shared"))
        outcome = tracing.run(4, "-w", path, "-o", "data", "-a", method)
        expect(outcome.status == 0, f"{method}: {outcome.err}")
        lines = traces(player)
        equal(len(lines), 4, f"{method}: traces")
        text = str(lines)
        expect("field.000000.f0" in text, f"{method}: the trace shows no file of the run")
        # A semaphore, a lock file, or the files of a pointer of each rank's own.
        return len(re.findall(r"sem\.OMPIO_|\.locktest\.|\.(?:meta)?data\.\d", text))

    os.environ.pop("OMPI_MCA_sharedfp", None)
    for method in player.methods(["mpiio", "hdf5", "adios", "adios2"]):
        equal(opened(method), 0, f"{method}: semaphores and lock files")
    if re.search("Open MPI|OpenRTE", output(player, player.mpiexec, "--version")):
        expect(opened("mpiio", OMPI_MCA_sharedfp="sm") > 0, "the user's choice was overridden")


CASES = {
    **{name: partial(plant, name=name) for name in PLANTS},
    **named(opened_again_in_between, flood_in_between, result_is_a_link, restart_leaves_all),
    **named(opens_no_semaphore),
}

if __name__ == "__main__":
    sys.exit(main("planted", CASES))
