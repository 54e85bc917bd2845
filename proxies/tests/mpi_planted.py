"""The player removes and overwrites only what it created: files and links are planted in its way.

`mpi_planted.py --list` names the cases, `mpi_planted.py CASE PROGRAM MPIEXEC FOLDER` runs one.
A run has a dump at 0 s and one at 4 s; what is planted is planted while it waits for the second.
"""

import itertools
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from mpi_run import METHODS, timed
from mpi_support import (
    SUFFIXES,
    Json,
    Outcome,
    Player,
    expect,
    files_below,
    finish,
    in_time,
    main,
    need_method,
    need_strace,
    together,
    variable_of_rank,
)

FILE_METHODS = [method for method in METHODS if method != "null"]
FIRST, SECOND = "field.000000.f0", "field.000001.f0"


def waiting(
    player: Player,
    plant: Callable[[Path], None],
    *options: object,
    workload: Json | None = None,
    second_files: str = "field.000001*",
) -> Outcome:
    """A run whose folder is given to `plant` between its two dumps; ends with that of the run."""
    outcomes = []

    def once() -> None:
        for left in player.folder.iterdir():
            if left.is_dir() and not left.is_symlink():
                shutil.rmtree(left)
            else:
                left.unlink()
        path = player.describe(workload or timed([0, 4], "shared"))
        process = player.start(4, "-w", path, "-o", "data", "-O", "result.json", "-v", *options)
        data = player.folder / "data"
        assert process.stderr is not None
        line = process.stderr.readline()  # of -v: the first dump has ended on rank 0
        while line and not line.endswith("for dump 1\n"):
            line = process.stderr.readline()
        time.sleep(0.5)
        second = list(data.glob(second_files))
        planted = data.is_dir()  # not so if the run has ended already
        if planted:
            plant(player.folder)
        outcome = finish(process)
        expect(planted and not second, "the machine was too busy to plant in time")
        outcomes.append(outcome)

    in_time(once)
    return outcomes[-1]


def foreign(folder: Path, suffix: str) -> dict[str, bytes]:
    """A directory of somebody else, with files of the run's names."""
    (folder / "foreign").mkdir()
    for name in (FIRST, SECOND, "field.000000.f1", "field.000001.f1"):
        (folder / "foreign" / (name + suffix)).write_text(f"mine: {name}")
    return files_below(folder / "foreign")


def run_directory_becomes_a_link(player: Player) -> None:
    """Nothing is written to where the link leads, nor removed there."""

    def one(player: Player, method: str) -> None:
        planted = {}

        def plant(folder: Path, method: str = method, planted: dict = planted) -> None:
            planted.clear()
            planted.update(foreign(folder, SUFFIXES.get(method, "")))
            (folder / "data").rename(folder / "moved")
            (folder / "data").symlink_to("foreign")

        outcome = waiting(player, plant, "-a", method)
        expect(outcome.status != 0, f"{method}: status 0")
        expect("no longer the run directory" in outcome.err, f"{method}: {outcome.err}")
        expect(
            files_below(player.folder / "foreign") == planted, f"{method}: foreign files changed"
        )
        expect((player.folder / "data").is_symlink(), f"{method}: the link is gone")
        expect(not files_below(player.folder / "moved"), f"{method}: files of the run are left")
        expect(not (player.folder / "result.json").exists(), f"{method}: a result was written")

    together(player, player.methods(FILE_METHODS), one)


def run_directory_becomes_another(player: Player) -> None:
    """An empty directory of somebody else with the name of the run directory stays."""

    def plant(folder: Path) -> None:
        (folder / "data").rename(folder / "moved")
        (folder / "data").mkdir()

    outcome = waiting(player, plant)
    expect(outcome.status != 0, "status 0")
    expect("no longer the run directory" in outcome.err, outcome.err)
    expect((player.folder / "data").is_dir(), "the other directory is gone")


def files_become_others(player: Player) -> None:
    """What has the name of a file of the run, but is another file or a link, stays."""

    def one(player: Player, method: str) -> None:
        suffix = SUFFIXES.get(method, "")

        def plant(folder: Path, suffix: str = suffix) -> None:
            (folder / "precious").write_text("mine")
            for name in (FIRST, "field.000000.f1"):
                (folder / "data" / (name + suffix)).unlink()
            (folder / "data" / (FIRST + suffix)).write_text("mine")
            (folder / "data" / f"field.000000.f1{suffix}").symlink_to("../precious")

        outcome = waiting(player, plant, "-a", method)
        expect(outcome.status == 0, f"{method}: {outcome.err}")
        left = sorted(p.name for p in (player.folder / "data").iterdir())
        expect(left == [FIRST + suffix, f"field.000000.f1{suffix}"], f"{method}: left {left}")
        expect((player.folder / "data" / (FIRST + suffix)).read_text() == "mine", "it was changed")
        expect((player.folder / "precious").read_text() == "mine", "the link's target was changed")

    together(player, player.methods(FILE_METHODS), one)


def with_operations(time_s: float, *kinds: str, **stream: object) -> Json:
    """Two dumps of the stream `field`: files are created, and at this time these operations."""
    workload = timed([0, time_s], "shared")
    made = workload["streams"][0]
    for dump, names in zip(made["dumps"], (("create",), kinds), strict=True):
        dump["operations"] = [{"operation": name, "runs": [[4, 2]]} for name in names]
    made |= stream
    return workload


def directories_become_links(player: Player) -> None:
    """No file is created, renamed, removed or written through a link in a directory's place."""
    kinds = ("create", "rename", "unlink")  # directories, which come first, show that it was late
    made = [with_operations(2, "mkdir", kind, files_per_directory=2) for kind in kinds]
    for workload in made:
        for dump in workload["streams"][0]["dumps"]:
            dump["variables"] = []
    flood = timed([0, 2], "shared")
    flood["streams"][0] |= {"layout": "flood", "files_per_directory": 2, "turns": False}
    for dump in flood["streams"][0]["dumps"]:
        variable = dump["variables"][0] | {"shape": [8, 100], "decomposition": {"rule": "even"}}
        dump["variables"] = [variable | {"count": 1}]
    cases = [(workload, "field.directories.*") for workload in made]
    for workload, second in (*cases, (flood, "field.000001.d*/*")):
        planted: dict[str, bytes] = {}

        def plant(folder: Path, planted: dict = planted) -> None:
            (folder / "foreign").mkdir()
            for directory in sorted((folder / "data").glob("field.*.d*")):
                foreign = folder / "foreign" / directory.name
                foreign.mkdir()
                for file in directory.iterdir():
                    (foreign / file.name).write_text("mine")
                directory.rename(folder / f"moved.{directory.name}")
                directory.symlink_to(foreign)
            planted.clear()
            planted.update(files_below(folder / "foreign"))

        outcome = waiting(player, plant, workload=workload, second_files=second)
        expect(outcome.status != 0, "status 0")
        expect("no longer the directory" in outcome.message(), outcome.err)
        expect(bool(planted), "nothing was planted")
        expect(files_below(player.folder / "foreign") == planted, "foreign files changed")


def updated_file_becomes_a_link(player: Player) -> None:
    """A file that is opened again is not opened through a link."""

    def one(player: Player, method: str) -> None:
        name = "field.000000.f0" + SUFFIXES.get(method, "")

        def plant(folder: Path, name: str = name) -> None:
            (folder / "data" / name).rename(folder / "moved")
            (folder / "foreign").write_text("mine")
            (folder / "data" / name).symlink_to("../foreign")

        workload = with_operations(2, "create", files="update", names=1, method=method)
        outcome = waiting(player, plant, workload=workload, second_files="field.made.00000008")
        expect(outcome.status != 0, f"{method}: status 0")
        expect("no longer the file" in outcome.message(), f"{method}: {outcome.err}")
        expect((player.folder / "foreign").read_text() == "mine", f"{method}: it was written to")

    together(player, player.methods(["posix", "stdio", "mpiio", "hdf5"]), one)


def planted_in(
    player: Player,
    workload: Json,
    options: tuple[str, ...],
    rank: int,
    turn: int,
    name: str,
    at: str,
    link: bool,
    method: str,
) -> None:
    """A link or a file that takes the place in the moment of an open is not written to."""
    library = os.environ["UND_PLANT"]
    for left in ("data", "foreign"):
        shutil.rmtree(player.folder / left, ignore_errors=True)
    away = player.folder / "away"
    if away.is_dir():
        shutil.rmtree(away)
    away.unlink(missing_ok=True)
    foreign = player.folder / "foreign"
    foreign.mkdir()
    mine = foreign / "mine"
    mine.write_text("mine")
    place = player.folder / "data" / at
    is_directory = name != at
    plant = {
        "RANK": rank,
        "RANK_VARIABLE": variable_of_rank(player.mpiexec),
        "NAME": name,
        "TURN": turn,
        "AT": place,
        "AWAY": away,
    } | ({"WITH": foreign if is_directory else mine} if link else {})
    environment = {f"PLANT_{key}": str(value) for key, value in plant.items()}
    planting = Player(
        program=player.program,
        mpiexec=player.mpiexec,
        folder=player.folder,
        environment=environment | {"LD_PRELOAD": library},
    )
    path = player.describe(workload)
    outcome = planting.run(workload["ranks"], "-w", path, "-o", "data", "-a", method, *options)
    where = f"{method}, {name} in turn {turn} of rank {rank}"
    expect(away.exists(), f"{where}: nothing was planted\n{outcome.err}")
    expect(files_below(foreign) == {"mine": b"mine"}, f"{where}: foreign files changed")
    expect(place.is_symlink() == link, f"{where}: what was planted is gone")
    if not link:
        expect(place.read_text() == "mine", f"{where}: what was planted has changed")
    if not is_directory:
        expect(outcome.status != 0, f"{where}: status 0")
        expect(at in outcome.message(), f"{where}: {outcome.err}")


def backup_in_the_way(player: Player) -> None:
    """A file that has the name of a backup is not replaced, nor a link, nor what took the place of
    the backup that the run has made."""
    name = f"{FIRST}.backup"

    def foreign(folder: Path) -> None:
        (folder / "data" / name).write_text("mine")

    def link(folder: Path) -> None:
        (folder / "foreign").write_text("mine")
        (folder / "data" / name).symlink_to("../foreign")

    for plant, kept in ((foreign, f"data/{name}"), (link, "foreign")):
        workload = timed([0, 4], "shared")
        workload["streams"][0] |= {"files": "rewrite", "removes": True, "backup": True}
        outcome = waiting(player, plant, workload=workload, second_files="none")
        expect(outcome.status != 0, "status 0")
        expect("File exists" in outcome.message(), outcome.err)
        expect((player.folder / kept).read_text() == "mine", f"{kept} was written to")


def opened_again_in_between(player: Player) -> None:
    """What takes the place of a file of the run after the last look at it is not written to."""
    for method, files in itertools.product(("posix", "stdio", "mpiio"), ("rewrite", "update")):
        if not player.methods([method]):
            continue
        for link, rank in itertools.product((True, False), (0, 1)):
            workload = timed([0, 0.1], "shared")
            workload["streams"][0] |= {"files": files, "names": 1}
            # The creation, the library's open beside it, the open of the second dump.
            turn = 2 if rank == 1 else 3 if method == "mpiio" and files == "update" else 2
            if method == "mpiio" and files == "rewrite" and rank == 0:
                turn = 3
            planted_in(player, workload, (), rank, turn, FIRST, FIRST, link, method)


def flood_in_between(player: Player) -> None:
    """Files of a flood go to the directories that the run made, wherever their paths lead to."""
    flood = timed([0], "shared")
    flood["streams"][0] |= {"layout": "flood", "files_per_directory": 2, "turns": False}
    variable = flood["streams"][0]["dumps"][0]["variables"][0]
    variable |= {"shape": [16, 100], "decomposition": {"rule": "even"}, "count": 1}
    flood["streams"][0]["dumps"][0]["variables"] = [variable]
    for method in player.methods(["posix", "stdio", "mpiio", "hdf5"]):
        name = "00000001" + SUFFIXES.get(method, "")
        planted_in(player, flood, (), 0, 1, name, "field.000000.d000000", True, method)


def flood_files_become_others(player: Player) -> None:
    """What takes the place of files of a flood, or of a storm, is neither removed nor renamed."""
    flood = timed([0, 4], "shared")
    for dump, names in zip(flood["streams"][0]["dumps"], ("create", "stat"), strict=True):
        variable = dump["variables"][0] | {"shape": [8, 100], "decomposition": {"rule": "even"}}
        dump["variables"] = [variable | {"count": 1}]
        dump["operations"] = [{"operation": names, "runs": [[4, 2]]}]
    flood["streams"][0] |= {"layout": "flood", "turns": False}
    names = ["field.000000.00000003", "field.made.00000002"]

    def plant(folder: Path) -> None:
        for name in names:
            plant_one(folder, name)

    outcome = waiting(player, plant, workload=flood)
    expect(outcome.status == 0, outcome.err)
    expect(player.data() == dict.fromkeys(names, b"mine"), f"left {player.data()}")
    for kind in ("rename", "unlink"):
        storm = with_operations(4, kind)
        outcome = waiting(player, lambda folder: plant_one(folder, names[1]), workload=storm)
        expect(outcome.status != 0, f"{kind}: status 0")
        expect("no longer the file" in outcome.message(), f"{kind}: {outcome.err}")
        expect(player.data() == {names[1]: b"mine"}, f"{kind}: left {player.data()}")


def plant_one(folder: Path, name: str) -> None:
    """Another file under the name of one of the run."""
    (folder / "data" / name).unlink()
    (folder / "data" / name).write_text("mine")


def link_in_the_way(player: Player) -> None:
    """A link under the name of a file to come is not followed."""

    def one(player: Player, method: str) -> None:
        name = SECOND + SUFFIXES.get(method, "")

        def plant(folder: Path, name: str = name) -> None:
            (folder / "precious").write_text("mine")
            (folder / "data" / name).symlink_to("../precious")

        outcome = waiting(player, plant, "-a", method)
        expect(outcome.status != 0, f"{method}: status 0")
        expect("File exists" in outcome.err, f"{method}: {outcome.err}")
        expect((player.folder / "precious").read_text() == "mine", f"{method}: it was overwritten")
        left = [p.name for p in (player.folder / "data").iterdir()]
        expect(left == [name], f"{method}: left {left}")

    together(player, player.methods(FILE_METHODS), one)


SUBFILES = ("-a", "adios", "-m", "adios.method=POSIX")


def subfile_directory_becomes_a_link(player: Player) -> None:
    """Subfiles are removed where they were created, not where a link of that name leads."""
    need_method("adios")
    planted = {}

    def plant(folder: Path) -> None:
        (folder / "foreign").mkdir()
        directory = folder / "data" / f"{FIRST}.bp.dir"
        for file in directory.iterdir():
            (folder / "foreign" / file.name).write_text("mine")
        planted.update(files_below(folder / "foreign"))
        directory.rename(folder / "data" / "moved")
        directory.symlink_to("../foreign")

    outcome = waiting(player, plant, *SUBFILES)
    expect(outcome.status == 0, outcome.err)
    expect(planted and files_below(player.folder / "foreign") == planted, "foreign files changed")
    left = sorted(p.name for p in (player.folder / "data").rglob("*"))
    expect(left == [f"{FIRST}.bp.dir", "moved"], f"left {left}")


def subfile_directory_in_the_way(player: Player) -> None:
    """A link under the name of a subfile directory to come is not followed."""
    need_method("adios")

    def plant(folder: Path) -> None:
        (folder / "foreign").mkdir()
        (folder / "data" / f"{SECOND}.bp.dir").symlink_to("../foreign")

    outcome = waiting(player, plant, *SUBFILES)
    expect(outcome.status != 0 and "File exists" in outcome.err, outcome.err)
    expect(not list((player.folder / "foreign").iterdir()), "files were created behind the link")
    left = [p.name for p in (player.folder / "data").iterdir()]
    expect(left == [f"{SECOND}.bp.dir"], f"left {left}")


def result_is_a_link(player: Player) -> None:
    """A link is not taken for the result."""
    (player.folder / "precious").write_text("mine")
    (player.folder / "result.json").symlink_to("precious")
    path = player.describe(timed([0]))
    outcome = player.run(1, "-w", path, "-o", "data", "-O", "result.json")
    expect(outcome.status == 2, f"status {outcome.status}")
    expect(
        "result.json" in outcome.message() and "symbolic link" in outcome.message(), outcome.err
    )
    expect((player.folder / "precious").read_text() == "mine", "the target was overwritten")
    expect(not (player.folder / "data").exists(), "the run directory is left")


def result_part_becomes_another(player: Player) -> None:
    """Another file under the name of the unfinished result is neither published nor removed."""

    def plant(folder: Path) -> None:
        part = next(folder.glob("result.json.*.part"))
        part.unlink()
        part.write_text("mine")

    outcome = waiting(player, plant)
    expect(outcome.status != 0 and "no longer the file" in outcome.err, outcome.err)
    part = next(player.folder.glob("result.json.*.part"))
    expect(part.read_text() == "mine", "it was changed")
    expect(not (player.folder / "result.json").exists(), "it was published")


def restart_leaves_all(player: Player) -> None:
    """Files that a restart reads, through links too, and those beside them stay as they are."""
    for method in player.methods(FILE_METHODS):
        for name in ("data", "real"):
            shutil.rmtree(player.folder / name, ignore_errors=True)
        workload = timed([0, 0], "shared")
        workload["streams"][0]["role"] = "checkpoint"
        player.play(workload, "-a", method, "-k")
        data = player.folder / "data"
        (player.folder / "real").mkdir()
        moved = next(p for p in sorted(data.iterdir()) if p.name.startswith(SECOND))
        moved.rename(player.folder / "real" / moved.name)
        moved.symlink_to(f"../real/{moved.name}")
        (data / "stranger").write_text("mine")
        before = files_below(player.folder / "data")
        path = player.folder / "workload.json"
        options = ("--restart-from", "data", "-a", method, "--drop-cache")
        outcome = player.run(4, "-w", path, "-O", "restart.json", *options)
        expect(outcome.status == 0, f"{method}: {outcome.err}")
        expect(files_below(player.folder / "data") == before, f"{method}: files changed")
        expect(moved.is_symlink(), f"{method}: the link is gone")


def opens_no_semaphore(player: Player) -> None:
    """No shared file pointer, so no semaphore and no file for it, unless the user asks for one."""
    need_strace()
    script = player.folder / "traced"
    script.write_text(
        "#!/bin/sh\n"
        f"exec strace -D -f -o {player.folder}/trace.$$ -e trace=open,openat,link,unlink "
        f'{player.program} "$@"\n'
    )
    script.chmod(0o755)

    def opened(method: str, **environment: str) -> int:
        for trace in player.folder.glob("trace.*"):
            trace.unlink()
        player.clear()
        traced = Player(
            program=script, mpiexec=player.mpiexec, folder=player.folder, environment=environment
        )
        path = player.describe(timed([0.0], "shared"))
        outcome = traced.run(4, "-w", path, "-o", "data", "-a", method)
        expect(outcome.status == 0, f"{method}: {outcome.err}")
        traces = list(player.folder.glob("trace.*"))
        expect(len(traces) == 4, f"{method}: {len(traces)} traces")
        text = "".join(t.read_text(errors="replace") for t in traces)
        expect("field.000000.f0" in text, f"{method}: the trace shows no file of the run")
        # A semaphore, a lock file, or the files of a pointer of each rank's own.
        return len(re.findall(r"sem\.OMPIO_|\.locktest\.|\.(?:meta)?data\.\d", text))

    os.environ.pop("OMPI_MCA_sharedfp", None)
    for method in player.methods(["mpiio", "hdf5", "adios"]):
        found = opened(method)
        expect(found == 0, f"{method}: {found} times a semaphore or a lock file")
    if "Open MPI" in subprocess.run(
        [player.mpiexec, "--version"], capture_output=True, text=True
    ).stdout.replace("OpenRTE", "Open MPI"):
        expect(opened("mpiio", OMPI_MCA_sharedfp="sm") > 0, "the user's choice was overridden")


CASES: dict[str, Callable[[Player], None]] = {
    case.__name__.replace("_", "-"): case
    for case in (
        run_directory_becomes_a_link,
        run_directory_becomes_another,
        files_become_others,
        directories_become_links,
        updated_file_becomes_a_link,
        backup_in_the_way,
        opened_again_in_between,
        flood_in_between,
        flood_files_become_others,
        link_in_the_way,
        subfile_directory_becomes_a_link,
        subfile_directory_in_the_way,
        result_is_a_link,
        result_part_becomes_another,
        restart_leaves_all,
        opens_no_semaphore,
    )
}

if __name__ == "__main__":
    sys.exit(main("planted", CASES))
