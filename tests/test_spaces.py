"""Parameter spaces: their points, what is left out and why, and the cases of the studies."""

import json
import os
import re
import shutil
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import player, refused
from tests.support.keys import with_keys
from tests.support.said import raises, said
from tests.test_checks import (
    LISTED,
    Session,
    asked,
    cases,
    played,
    sample,
)
from tests.test_plugins import GOOD, load_one
from understudy import producers
from understudy.contracts import workload
from understudy.errors import UnderstudyError
from understudy.model.layouts import with_layout
from understudy.producers import player as measurements
from understudy.reframe import spaces
from understudy.reframe.bases import completeness

MIB = 1 << 20
COLLECTIVE = LISTED.replace("mpiio available", "mpiio available, collective calls")


def dry(folder: Path, system: str, *arguments: str, check: str) -> tuple[list[str], str]:
    """Job scripts by any method, and what was printed."""
    session = Session(folder, sample())
    session.program("understudy-replay", COLLECTIVE)
    done = session.run("--dry-run", f"--system={system}", *arguments, names=f"^{check}%")
    paths = (folder / "reframe" / "stage").rglob("rfm_job.sh")
    return [path.read_text() for path in sorted(paths)], done.stdout + done.stderr


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ("default", {}),
        ("stripe_count=8", {"stripe_count": "8"}),
        ("stripe_count=nodes+stripe_size=4MiB", {"stripe_count": "nodes", "stripe_size": "4MiB"}),
        ("aggregators=per-4", {"aggregators": "per-4"}),
        ("layout=grouped", {"layout": "grouped"}),
        ("nodes=1024", {"nodes": "1024"}),
    ],
)
def test_a_point_is_what_it_asks_for(point: str, expected: dict[str, str]) -> None:
    assert spaces.parse(point) == expected


@pytest.mark.parametrize(
    ("point", "fault"),
    [
        ("", "point '': expected default, or AXIS=VALUE of different axes, joined by +"),
        ("stripe_count", "point 'stripe_count': expected default, or"),
        ("nodes=1+nodes=2", "point 'nodes=1+nodes=2': expected default, or"),
        ("default+nodes=2", "point 'default+nodes=2': expected default, or"),
        (
            "pool=fast",
            "axis 'pool': expected one of layout, stripe_count, stripe_size, aggregators",
        ),
        ("stripe_count=0", "stripe_count=0: expected nodes, cores or a number of targets"),
        ("stripe_size=4mb", "'4mb': expected bytes, such as 4194304, 4MiB or 4MB"),
        ("aggregators=per-0", "aggregators=per-0: expected a number, node"),
        ("nodes=-1", "nodes=-1: expected a number of nodes"),
        ("layout=$(x)", "layout=$(x): expected shared, grouped, file-per-process"),
    ],
)
def test_another_point_is_one_message(point: str, fault: str) -> None:
    with pytest.raises(UnderstudyError, match=re.escape(fault)):
        spaces.parse(point)


AGGREGATORS = {"1": 1, "3": 3, "100": 64, "node": 4, "per-4": 16, "per-16": 4, "per-100": 1}


@pytest.mark.parametrize(("value", "count"), [*AGGREGATORS.items(), ("all", 64)])
def test_aggregators_are_so_many_ranks(value: str, count: int) -> None:
    assert spaces.aggregators(value, ranks=64, nodes=4) == count


def test_more_than_one_aggregator_of_a_node_is_asked_for() -> None:
    common = {"romio_cb_write": "enable"}
    assert spaces.hints(4, nodes=4) == common | {"cb_nodes": "4"}
    assert spaces.hints(5, nodes=4) == common | {"cb_nodes": "5", "cb_config_list": "*:2"}


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (["sweep"], "extra 'spaces': expected a dict by sweep and scaling, got ['sweep']"),
        ({"all": {}}, "extra 'spaces': 'all': expected sweep or scaling"),
        (
            {"sweep": {"nodes": [1]}},
            "extra 'spaces': 'sweep': expected a dict by workload, method, ",
        ),
        ({"sweep": {"stripe_count": "8"}}, "'sweep': 'stripe_count': expected a list of texts or"),
        ({"sweep": {"stripe_count": [0]}}, "'sweep': stripe_count=0: expected nodes, cores or a"),
        ({"scaling": {"nodes": [1, "x"]}}, "'scaling': nodes=x: expected a number of nodes"),
    ],
)
def test_a_fault_in_the_space_of_a_partition_is_one_message(
    given: Any, fault: str, tmp_path: Path
) -> None:
    with pytest.raises(UnderstudyError, match=re.escape(fault)):
        load_one(tmp_path, GOOD | {"spaces": given})


@pytest.mark.parametrize("slowest", [0, -1.5, "1GB", True])
def test_a_slowest_bandwidth_is_a_number(slowest: Any, tmp_path: Path) -> None:
    with pytest.raises(UnderstudyError, match="extra 'slowest_bytes_per_s': expected bytes/s"):
        load_one(tmp_path, GOOD | {"slowest_bytes_per_s": slowest})


def test_the_space_of_a_partition_takes_the_place_of_the_defaults() -> None:
    axes = {"stripe_count": [3], "stripe_size": [], "layout": [], "aggregators": ["all"]}
    assert spaces.points({"sweep": axes}, spaces.SWEEP) == [
        "default",
        "stripe_count=3",
        "aggregators=all",
    ]
    assert spaces.points({}, spaces.SCALING)[:2] == ["nodes=1", "nodes=2"]


def test_a_workload_gets_another_layout() -> None:
    given = sample(ranks=4)
    for layout, files in (("shared", None), ("grouped", 2), ("file-per-process", None)):
        other = workload.parse(with_layout(given, layout, 2).to_text(), "other")
        assert {(s.layout, s.groups) for s in other.streams} == {(layout, files)}
        assert other.bytes == given.bytes
    turning = with_keys(given, turns=True, collective=False)
    with raises(UnderstudyError, "checkpoint-takes-turns-which"):
        with_layout(turning, "grouped", 2)


# What a sweep asks for, and what it leaves out


def test_a_sweep_visits_one_axis_after_the_other(tmp_path: Path) -> None:
    options = "--mode=sweep -P workload=sample -S Sweep.scaling=weak -S Sweep.ranks=96"
    scripts, printed = dry(tmp_path, "archer", *options.split(), check="Sweep")
    started = [line for s in scripts for line in s.splitlines() if " -a mpiio " in line]
    layouts = sorted(re.findall(r"(?:--stripe-\w+ \d+ )+", "\n".join(started)))
    assert layouts == sorted(
        [f"--stripe-count {n} " for n in (48, 1, 2, 8, 16, 32)]
        + [f"--stripe-size {n * MIB} " for n in (1, 4, 16, 64)]
    )
    hints = [" ".join(re.findall(r"--hint (\S+)", line)) for line in started if "cb_" in line]
    enabled = "romio_cb_write=enable"
    assert sorted(hints) == sorted(
        [f"cb_nodes=1 {enabled}", f"cb_nodes=4 {enabled}"]
        + [
            f"cb_nodes={n} {enabled} 'cb_config_list=*:{k}'"
            for n, k in ((6, 2), (24, 6), (96, 24))
        ]
    )
    assert all(" -c " in line for line in started if "cb_nodes" in line)
    for reason in (
        "stripe_count=nodes asks for the same as default on archer:work",
        "stripe_count=4 asks for the same as default on archer:work",
        "posix: no collective calls, so that aggregators change nothing",
    ):
        assert f"[{reason}]" in printed, reason


def test_a_point_can_join_axes(tmp_path: Path) -> None:
    options = "-P point=stripe_count=2+stripe_size=4MiB -P workload=sample -P method=posix"
    [script], _ = dry(tmp_path, "archer", *options.split(), check="Sweep")
    assert " --stripe-count 2 --stripe-size 4194304 " in script


def test_scaling_doubles_the_nodes_as_in_figure_9(tmp_path: Path) -> None:
    """Of Titan: up to 1024 nodes of 16 cores, with the default and with a target for each node."""
    options = ("--mode=scaling", "-P", "workload=sample")
    scripts, printed = dry(tmp_path, "titan", *options, check="Scaling")
    assert "WARNING" not in printed
    cases_ = set()
    for script in scripts:
        ranks = int(re.search(r"aprun -n (\d+) -N", script)[1])  # type: ignore[index]
        count = re.search("--stripe-count ([0-9]+) ", script)
        cases_.add((ranks // 16, int(count[1]) if count else None))
    doubled = [1 << n for n in range(11)]
    assert cases_ == {(n, None) for n in doubled} | {(n, min(n, 1008)) for n in doubled}


# The cases of the studies, as Titan would run them


def titan_lines(
    folder: Path, names: str, *arguments: str, skipped: int = 0, program: str = ""
) -> list[tuple[str, str]]:
    """Nodes and ranks asked of the batch system, and how the program is started; of each job that
    starts it, the last line."""
    session = Session(folder, sample())
    session.program("understudy-replay", COLLECTIVE)
    done = session.run("--dry-run", "--system=titan", *arguments, names=names)
    assert done.returncode == 0, done.stdout + done.stderr
    assert cases(done.stdout)[1:] == (0, skipped), done.stdout
    scripts = [p.read_text() for p in (folder / "reframe" / "stage").rglob("rfm_job.sh")]
    starts = [(s, re.findall(f"(?m)^aprun .*{program}.*$", s)) for s in scripts]
    return [
        (re.search("(?m)^#PBS -l (nodes=.*)$", s)[1], lines[-1])  # type: ignore[index]
        for s, lines in starts
        if lines
    ]


@pytest.mark.parametrize(
    ("names", "options", "expected"),
    [
        # Figures 6 and 8: of mphys-a, and of mphys-d and mphys-e.
        ("mphys-[ade]", "", {1: [None, "1", "16"], 5: 2 * [None, "5", "80"]}),
        # Figure 8 on 128 nodes.
        ("mphys-e", "-S scaling=weak -S ranks=2048", {128: [None, "128", "1008"]}),
    ],
)
def test_titan_gets_the_cases_of_the_replication_study(
    names: str, options: str, expected: dict[int, list[str | None]], tmp_path: Path
) -> None:
    """Stripe count: the default, that of the nodes, that of the cores or all targets."""
    lines = titan_lines(tmp_path, f"^Replay%workload={names}%method=hdf5", *options.split())
    counts: dict[int, list[str | None]] = {nodes: [] for nodes in expected}
    for batch, line in lines:
        nodes = int(re.fullmatch(r"nodes=(\d+):ppn=16", batch)[1])  # type: ignore[index]
        start = f"aprun -n {16 * nodes} -N 16 understudy-replay -w workload.json -a hdf5 "
        assert line.startswith(start)
        asked_for = re.search("--stripe-count ([0-9]+) ", line)
        counts[nodes].append(asked_for[1] if asked_for else None)
    assert {nodes: Counter(each) for nodes, each in counts.items()} == {
        nodes: Counter(each) for nodes, each in expected.items()
    }


CORES = (128, 256, 512, 1024, 2048, 4096)
PARAMETERS = {
    "POSIX": None,
    "MPI_LUSTRE": "stripe_count=160;stripe_size=10485760;block_size=10485760",
    "MPI_AMR": "stripe_count=1;stripe_size=4194304;block_size=4194304;num_aggregators={n};"
    "merging_pgs=0",
}


def test_titan_gets_the_cases_of_the_skel_study(tmp_path: Path) -> None:
    """Its table: CHIMERA by three methods on 128 to 4,096 cores; one aggregator for 4 cores."""
    names = "^Skel%.*ranks=128%ranks_per_aggregator=4%stripe_count=default%.*=chimera"
    options = ("-P", f"ranks={','.join(map(str, CORES))}", "-S", "Skel.pairs=1")
    lines = titan_lines(tmp_path, names, *options, program="chimera_skel")
    expected = {
        (f"nodes={n // 16}:ppn=16", n, method, text and text.format(n=n // 4))
        for n in CORES
        for method, text in PARAMETERS.items()
    }
    seen = set()
    for batch, line in lines:
        start = re.search(r"^aprun -n (\d+) -N 16 .* -a (\w+) (?:-p '(.*?)' )?-i ", line)
        assert start, line
        seen.add((batch, int(start[1]), start[2], start[3]))
    assert seen == expected


# What was asked is read back


def striped(row: dict[str, Any]) -> dict[str, Any]:
    """The measurement with the layout and the hints that were asked for."""
    told = {
        "stripe_count": 4,
        "stripe_size_bytes": MIB,
        "stripe_targets": None,
        "pool": None,
        "hints": {"cb_nodes": "2"},
    }
    applied = {
        "backend": "lustre",
        "stripe_count": 4,
        "stripe_size_bytes": MIB,
        "pool": None,
        "targets": None,
        "files_per_target": None,
        "hints": {"cb_nodes": "2", "cb_buffer": "1"},
    }
    names = [s["name"] for s in row["repetitions"][0]["streams"]]
    return row | {
        "striping": [{"stream": name, "asked": told, "applied": applied} for name in names]
    }


# What a measurement says of the layout of viz, and the fault.
LIES: list[tuple[str, Any, str]] = [
    ("1/applied/stripe_count", 3, "striping.viz.applied.stripe_count: expected 4, got 3"),
    (
        "1/applied/stripe_size_bytes",
        2 * MIB,
        "striping.viz.applied.stripe_size_bytes: expected 1048576, got 2097152",
    ),
    ("1/applied/hints/cb_nodes", "1", "striping.viz.applied.hints.cb_nodes: expected 2, got 1"),
    (
        "1/applied/hints/cb_nodes",
        refused.MISSING,
        "striping.viz.applied.hints.cb_nodes: expected 2, got None",
    ),
    ("1/applied", None, "striping.viz.applied.stripe_count: expected 4, got None"),
    ("1", refused.MISSING, "striping: nothing is known of viz"),
    ("1/asked/stripe_count", 3, "striping.viz.asked.stripe_count: expected 4, got 3"),
]


def layout_faults(row: dict[str, Any], text: str, folder: Path) -> list[str]:
    """Of a measurement of today, with the striping of `row`."""
    striping = row.pop("striping")
    path = folder / "result.json"
    path.write_text(json.dumps(row))
    wanted = replace(
        asked(text), layout={"stripe_count": 4, "stripe_size_bytes": MIB}, hints={"cb_nodes": "2"}
    )
    return list(
        completeness.faults(replace(measurements.read(path), striping=tuple(striping)), wanted)
    )


def test_a_layout_that_was_given_is_no_fault(tmp_path: Path) -> None:
    text = sample().to_text()
    assert layout_faults(striped(played(text, "posix", 0.1, "tmpfs")), text, tmp_path) == []


@pytest.mark.parametrize(("place", "value", "fault"), LIES)
def test_a_lie_about_the_layout_fails(place: str, value: Any, fault: str, tmp_path: Path) -> None:
    text = sample().to_text()
    row = striped(played(text, "posix", 0.1, "tmpfs"))
    lie = refused.altered(row, f"striping/{place}", value)
    assert fault in layout_faults(lie, text, tmp_path)


def test_hints_that_no_stream_took_are_a_fault(tmp_path: Path) -> None:
    text = sample().to_text()
    row = striped(played(text, "posix", 0.1, "tmpfs"))
    for entry in row["striping"]:
        entry["asked"]["hints"] = {}
    faults = layout_faults(row, text, tmp_path)
    assert faults == ["striping: no stream was given the hints"]


def real(folder: Path, edit: str) -> Session:
    """A session whose player is the real one; its results are edited, as an MPI library would lie
    or leave something out."""
    player.needs("mpiio")
    mpirun = shutil.which("mpirun")
    session = Session(folder, sample(ranks=2))
    path = f"{Path(player.program()).parent}:{os.environ['PATH']}"
    session.environment["PATH"] = f"{session.bin}:{path}"
    (folder / "edit.py").write_text(
        "import json\n"
        "row = json.load(open('result.json'))\n"
        "for stream in row['striping']:\n"
        "    hints = stream['applied']['hints']\n"
        f"    {edit}\n"
        "json.dump(row, open('result.json', 'w'))\n"
    )
    session.program("mpirun", f'{mpirun} "$@" && {sys.executable} {folder}/edit.py')
    return session


@pytest.mark.parametrize(("edit", "status"), [("pass", 0), ("hints['cb_nodes'] = '7'", 1)])
def test_a_check_fails_where_a_hint_was_not_applied(
    edit: str, status: int, tmp_path: Path
) -> None:
    options = "-r --system=localhost:tmpfs -S aggregators=1 -S time_scale=0"
    names = "^Replay%workload=sample%method=mpiio"
    done = real(tmp_path, edit).run(*options.split(), names=names)
    assert cases(done.stdout) == (1, status, 0), done.stdout
    fault = "result.json: striping.checkpoint.applied.hints.cb_nodes: expected 1, got 7"
    assert (fault in done.stdout) is bool(status)


@pytest.mark.parametrize(
    ("unknown", "counts", "policy"),
    [
        (["romio_cb_write", "cb_config_list"], (1, 0, 0), "serial"),
        (["cb_nodes"], (0, 0, 1), "serial"),
        (["cb_nodes"], (0, 0, 1), "async"),
    ],
)
def test_a_hint_that_the_mpi_library_does_not_know_is_no_failure(
    unknown: list[str], counts: tuple[int, int, int], policy: str, tmp_path: Path
) -> None:
    """Those of ROMIO are not needed by another; the number of aggregators is."""
    session = real(tmp_path, f"[hints.pop(key, None) for key in {unknown}]")
    options = "-r --system=localhost:tmpfs -P point=aggregators=all -S time_scale=0"
    options += f" -P workload=sample -P method=mpiio --exec-policy={policy}"
    done = session.run(*options.split(), names="^Sweep%")
    assert cases(done.stdout) == counts, done.stdout
    if unknown != ["cb_nodes"]:
        assert done.returncode == 0, done.stdout + done.stderr
        return
    mpi = measurements.read(next(session.folder.rglob("result.json"))).environment.mpi
    said("cb-nodes-hint", done.stdout, partition=mpi.partition(",")[0])
    assert done.returncode == 1 and said("nothing-ran-all-cases", done.stderr)
    [record] = (session.folder / "out" / "records").rglob("*.json.gz")
    said("all-cases-were-skipped", str(producers.load(record).producer.failure))


# What a listing amounts to


def test_a_listing_ends_with_its_cases_bytes_and_time_on_stderr(tmp_path: Path) -> None:
    session = Session(tmp_path, sample())
    session.program("understudy-replay", COLLECTIVE)
    names = "^Replay%workload=sample%method=posix"
    done = session.run("-l", "--system=archer", names=names)
    assert done.returncode == 0 and "understudy: " not in done.stdout
    # 884,736 bytes, written and verified, with 3 stripe counts.
    said("cases-move-mib-one", done.stderr.splitlines()[0])
    larger = ("-S", "scaling=weak", "-S", "ranks=1536")
    many = session.run("-l", "--system=archer", *larger, names=names)
    assert many.stderr.splitlines()[1:] == [
        "understudy: 1 are left out, such as Replay %workload=sample %method=posix "
        "%stripe_count=cores: stripe count 48 is that of the case with a target for each node"
    ]


def test_a_listing_counts_no_case_of_a_method_that_the_player_lacks(tmp_path: Path) -> None:
    session = Session(tmp_path, sample())
    session.program("understudy-replay", "echo 'posix available'; echo 'nfs unavailable: no NFS'")
    done = session.run("-l", "--system=localhost:disk", names="^Replay%workload=sample")
    said("cases-move", done.stderr.splitlines()[0])
    said("left-out-since-this", done.stderr.splitlines()[1])


def test_a_listing_states_the_programs_that_the_host_lacks(tmp_path: Path) -> None:
    """Each of them, however many cases are left out for other reasons."""
    session = Session(tmp_path, sample())
    session.program("understudy-replay", COLLECTIVE)
    names = "^(Ior|Mdtest|Overhead|Fidelity)"
    for program in ("ior", "mdtest"):
        session.hide(program)
    told = session.run("-l", "--system=localhost:disk", names=names).stderr
    lacks = "are left out, since this host lacks what they need: "
    said("ior-found-path", told, lacks=lacks)
    said("mdtest-found-path", told, lacks=lacks)
    said("darshan-runtime-there-no", told, lacks=lacks, tmp_path=tmp_path)
