"""Cases: is a file striped over the OSDs as the player was asked?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nightly.rehearsal.ceph.stage import MIB, OBJECT_SIZE, Stage, expect, files_of, set_default
from nightly.rehearsal.ceph.striping import Layout

KIB = 1 << 10
STRIPES = ((1, MIB), (3, 64 * KIB), (8, 256 * KIB))  # count and unit


def check_objects(stage: Stage, path: Path) -> int:
    """The OSDs hold the objects of the file that its layout says, of the sizes that it says."""
    have = stage.cluster.objects(path.stat().st_ino)
    want = Layout.of(path).objects(path.stat().st_size)
    expect(have == want, f"{path.name}: objects on the OSDs {have}, by the layout {want}")
    return len(have)


def check_files(stage: Stage, directory: Path, asked: Layout, entry: Any) -> tuple[int, int]:
    """Files and objects of a run that was kept, against what was asked and what it recorded."""
    files = [path for path in files_of(directory) if path.stat().st_size]
    expect(files, f"{directory}: no files")
    for path in files:
        layout = Layout.of(path)
        expect(layout == asked, f"{path.name}: {layout}, asked {asked}")
    applied = entry["applied"]
    recorded = (applied["backend"], applied["stripe_count"], applied["stripe_size_bytes"])
    expect(recorded == ("ceph", asked.count, asked.unit), f"recorded: {applied}")
    return len(files), sum(check_objects(stage, path) for path in files)


def layouts(stage: Stage) -> str:
    """Every method and both kinds of files: attributes, objects on the OSDs, contents, record."""
    methods = stage.methods("posix", "mpiio", "hdf5", "stdio")
    files = objects = 0
    for layout in ("shared", "file-per-process"):
        workload = stage.workload(layout, layout, 6 * MIB)
        for method in methods:
            for count, unit in STRIPES if method == "posix" else STRIPES[1:2]:
                with stage.directory("run") as run:
                    given = ["-a", method, "--stripe-count", str(count)]
                    given += ["--stripe-size", str(unit), "--verify", "-k"]
                    [entry] = stage.measured(stage.player(workload, run, *given))["striping"]
                    asked = Layout(
                        unit=unit, count=count, object_size=OBJECT_SIZE, pool="cephfs_data"
                    )
                    more = check_files(stage, run, asked, entry)
                    files, objects = files + more[0], objects + more[1]
    expect(objects > files > 0, f"{files} files with {objects} objects")
    return f"{', '.join(methods)}: {files} files on {objects} objects, each as its layout says"


def object_sets(stage: Stage) -> str:
    """A file that is larger than its objects goes on with other objects."""
    workload = stage.workload("sets", "shared", 10 * MIB + 5000)
    with stage.directory("run") as run:
        set_default(run, object_size=MIB)
        given = ("--stripe-count", "2", "--stripe-size", str(256 * KIB), "--verify", "-k")
        [entry] = stage.measured(stage.player(workload, run, *given))["striping"]
        asked = Layout(unit=256 * KIB, count=2, object_size=MIB, pool="cephfs_data")
        _, objects = check_files(stage, run, asked, entry)
        expect(objects == 11, f"{objects} objects")
    return f"a file of stripe count 2 on {objects} objects"


def directory_default(stage: Stage) -> str:
    """Files of any program have the layout that understudy-storage gives their directory."""
    with stage.directory("default") as run:
        given = ("--stripe-count", "4", "--stripe-size", "128KiB")
        out = stage.succeed("understudy-storage", *given, run).out
        expect('"stripe_count": 4' in out, f"understudy-storage: {out}")
        copy = run / "copy"
        copy.write_bytes(bytes(3 * MIB))
        files_of(run)
        layout = Layout.of(copy)
        expect((layout.count, layout.unit) == (4, 128 * KIB), f"{copy}: {layout}")
        objects = check_objects(stage, copy)
        expect(objects == 4, f"{objects} objects")
    return "a directory's layout is that of a new file"
