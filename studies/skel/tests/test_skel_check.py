"""The check of skeletal applications: its job, its demands on results and bpls, a real run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support import results as samples
from tests.support.needs import need
from tests.support.results import cases_in
from understudy import producers
from understudy.judge.statistics import paired_errors
from understudy.paths import ROOT, where
from understudy.reframe.bases import completeness
from understudy_skel import accuracy_rows, listing
from understudy_skel.blocks import GroupBlocks, of_group
from understudy_skel.checks import skeleton
from understudy_skel.project import load

MIB = 2**20

# What the results of programs must say


def asked() -> completeness.AskedProgram:
    return completeness.AskedProgram(
        kind="skeleton",
        group="restart",
        method="MPI_AMR",
        parameters="num_aggregators=2",
        process_bytes=(10 * MIB,) * 4,
        steps=2,
        repetitions=1,
        file_system="disk",
    )


def done() -> dict[str, Any]:
    return samples.program_result(
        kind="skeleton", name="star-restart", method="MPI_AMR", parameters="num_aggregators=2"
    )


def faults_of(row: dict[str, Any], folder: Path) -> list[str]:
    path = samples.write(row, folder / "result.json")
    measured: Any = producers.measured(producers.record(path))
    return list(completeness.program_faults(measured, asked()))


STREAM = ("repetitions", 0, "streams", 0)
STEP = (*STREAM, "dumps", 1)
AT = "repetitions[0].restart.dumps"
# Where a result is changed, to what (None: removed), and what is said.
FAULTS: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("program", "kind"), "application", "program.kind: expected skeleton, got application"),
    (("program", "method"), "POSIX", "program.method: expected MPI_AMR, got POSIX"),
    (
        ("program", "parameters"),
        "num_aggregators=4",
        "program.parameters: expected num_aggregators=2, got num_aggregators=4",
    ),
    (
        ("environment", "file_system"),
        "tmpfs",
        "storage.type: tmpfs, but the partition says disk",
    ),
    ((*STREAM, "name"), "other", "repetitions[0].streams: expected restart, got other"),
    (STEP, None, f"{AT}: expected 2, got 1"),
    (
        (*STEP, "processes", "bytes", 3),
        10 * MIB - 1,
        f"{AT}[1].processes.bytes[3]: expected 10485760, got 10485759",
    ),
    (
        (*STEP, "file_bytes"),
        40 * MIB - 1,
        f"{AT}[1]: its files hold 41943039 bytes, less than the payload",
    ),
]


def fewer_ranks(row: dict[str, Any]) -> None:
    row["environment"]["ranks"] = 3
    for dump in row["repetitions"][0]["streams"][0]["dumps"]:
        for key, values in dump["processes"].items():
            dump["processes"][key] = values and values[:3]


def test_a_complete_result_of_a_program_has_no_fault(tmp_path: Path) -> None:
    assert faults_of(done(), tmp_path) == []
    row = done()
    fewer_ranks(row)
    assert faults_of(row, tmp_path)[0] == "environment.ranks: expected 4, got 3"
    row = done()
    row["repetitions"].append(row["repetitions"][0] | {"repetition": 1})
    assert faults_of(row, tmp_path)[0] == "repetitions: expected 1, got 2"


@pytest.mark.parametrize(("path", "value", "message"), FAULTS)
def test_each_fault_of_a_program_is_seen(
    path: tuple[str | int, ...], value: object, message: str, tmp_path: Path
) -> None:
    row: Any = done()
    above = row
    for key in path[:-1]:
        above = above[key]
    if value is None:
        del above[path[-1]]
    else:
        above[path[-1]] = value
    assert faults_of(row, tmp_path)[0] == message


# What bpls must tell


def blocks(application: str, ranks: int) -> tuple[GroupBlocks, dict[str, str]]:
    descriptor, parameters = load(where("traces") / f"{application}.xml", None)
    (group,) = descriptor.groups
    values = parameters.groups[group.name]
    return of_group(group, values, ranks), dict(values.fills)


def listed(group_blocks: GroupBlocks, wanted: list[listing.Sample]) -> str:
    """Output of bpls for a file in which all is right."""
    lines = []
    for block in group_blocks.blocks:
        whole = block.whole or tuple(int(n) for n in block.local[0])
        shape = f"{{{', '.join(map(str, whole))}}}" if block.variable.dimensions else "scalar"
        lines.append(f"  double   {block.variable.name}   {shape}")
    for sample in wanted:
        start = ",".join(map(str, sample.start))
        lines += [
            f"sample {sample.variable} {start}",
            f"  double {sample.variable} {{8, 8}}",
            "    slice (0:0, 4:4)",
            f"    {sample.value}",
        ]
    return "\n".join(lines)


def test_samples_are_of_the_first_and_the_last_process() -> None:
    group_blocks, fills = blocks("chimera", 4)
    elements = {s.variable: [] for s in listing.samples(group_blocks, fills)}
    for sample in listing.samples(group_blocks, fills):
        elements[sample.variable].append((sample.start, sample.value))
    assert elements["xn_c"] == [((0, 0, 0, 0), 0), ((3, 4, 0, 0), 3)]
    assert "x_ef" not in elements  # all processes write the whole of it
    assert len(elements) > 50


def test_an_array_that_is_not_filled_by_rank_is_not_sampled() -> None:
    group_blocks, fills = blocks("chimera", 4)
    assert "xn_c" not in {
        s.variable for s in listing.samples(group_blocks, {**fills, "xn_c": "random"})
    }


def test_a_right_listing_has_no_fault_and_each_wrong_one_has() -> None:
    group_blocks, fills = blocks("gts", 4)
    wanted = listing.samples(group_blocks, fills)
    text = listed(group_blocks, wanted)
    assert wanted and list(listing.faults(text, group_blocks, wanted)) == []
    name = wanted[-1].variable
    start = ",".join(map(str, wanted[-1].start))
    row = next(line for line in text.splitlines() if f" {name} " in line)
    shape = row[row.index("{") :]
    spoiled = {
        f"{name}: not in the file; expected {shape}": text.replace(row, ""),
        f"{name}: expected {shape}, got {{7}}": text.replace(row, row.replace(shape, "{7}")),
        f"{name}: element ({start}): expected 3, got 2": text[: text.rindex("3")] + "2",
        f"{name}: element ({start}): expected 3, got nothing": text[: text.rindex("    3")],
    }
    for message, wrong in spoiled.items():
        assert list(listing.faults(wrong, group_blocks, wanted)) == [message]


# The jobs

TWO_RANKS = "^Skel%method=POSIX%ranks=2%ranks_per_aggregator=4%.*=chimera"


class Session:
    """ReFrame on the check alone, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "RFM_CONFIG_FILES": str(ROOT / "configs" / "settings.py"),
            "RFM_PREFIX": str(folder / "reframe"),
            "RFM_REPORT_FILE": str(folder / "report.json"),
            "RFM_COLORIZE": "0",
            "RFM_ENABLE_RESULTS_STORAGE": "0",
        }

    def run(self, line: str, shell: bool = True) -> subprocess.CompletedProcess[str]:
        """`shell`: with what setup-env.sh puts on PATH."""
        command = [Path(sys.executable).parent / "reframe", "-c", ROOT / "checks" / "skel.py"]
        before = ["bash", "-c", '. "$0/setup-env.sh" && exec "$@"', str(ROOT)] if shell else []
        return subprocess.run(
            [*before, *map(str, command), *line.split()],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def jobs(self) -> list[str]:
        paths = (self.folder / "reframe" / "stage").rglob("Skel_*/rfm_job.sh")
        return [path.read_text() for path in sorted(paths)]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def test_descriptors_with_parameters_are_the_applications() -> None:
    assert skeleton.names() == sorted(
        p.name.removesuffix("_params.xml") for p in where("traces").glob("*_params.xml")
    )
    assert {"chimera", "gts"} <= set(skeleton.names())
    assert skeleton.methods() == ["MPI_AMR", "MPI_LUSTRE", "POSIX"]


def test_the_job_runs_both_programs_twice_in_turn_after_one_step_that_is_verified(
    session: Session,
) -> None:
    done = session.run(
        "--dry-run --system=localhost:tmpfs -S Skel.rounds=4 -n "
        "^Skel%method=MPI_AMR%ranks=8%ranks_per_aggregator=4%.*=chimera"
    )
    assert done.returncode == 0, done.stdout
    (job,) = session.jobs()
    started = re.findall(r"mpirun -np 8 \S*?(kernel-chimera|skel_restart_model_write) ", job)
    kernel, skeleton = "kernel-chimera", "skel_restart_model_write"
    around, between = [kernel, skeleton, skeleton, kernel], [skeleton, kernel, kernel, skeleton]
    assert started == [skeleton, *around, *between, *around, *between]
    arms = re.findall(r"-r (\S+)/\d/result\.json", job)
    places = [[arms[4 * n : 4 * n + 4].index(arm) for n in range(4)] for arm in set(arms)]
    assert len(places) == 4 and all(sorted(arm_places) == [0, 1, 2, 3] for arm_places in places)
    parameters = (
        "stripe_count=1;stripe_size=4194304;block_size=4194304;num_aggregators=2;merging_pgs=0"
    )
    assert job.count(f"-a MPI_AMR -p '{parameters}'") == 17
    assert job.index("trap ") < job.index("mpirun")
    assert job.index("--keep") < job.index("bpls") < job.index("application/0/result.json")


def test_aggregators_are_swept_once_for_each_number_of_them(session: Session) -> None:
    done = session.run("-l --system=localhost -n ^Skel%.*=chimera")
    parameters = re.findall(
        r"(?m)^- Skel %method=(\w+) %ranks=(\d+) %ranks_per_aggregator=(\d+)", done.stdout
    )
    swept = [(int(ranks), int(size)) for method, ranks, size in parameters if method == "MPI_AMR"]
    assert sorted(swept) == [
        (2, 4),
        (4, 4),
        (8, 4),
        (8, 16),
        (128, 4),
        (128, 16),
        (1024, 4),
        (1024, 16),
    ]
    assert {size for method, _, size in parameters if method != "MPI_AMR"} == {"4"}


def test_stripe_counts_go_to_the_directory_and_the_method(session: Session) -> None:
    done = session.run(
        "--dry-run --system=titan -n "
        "^Skel%method=MPI_LUSTRE%ranks=128%ranks_per_aggregator=4%stripe_count=nodes%.*gts"
    )
    assert done.returncode == 0, done.stdout
    (job,) = session.jobs()
    assert 'understudy-storage --stripe-count 8 "$dir"' in job
    assert "stripe_count=8;stripe_size=57344000;block_size=57344000" in job
    assert "aprun -n 128 -N 16 " in job


def test_a_real_run_is_verified_and_judged(session: Session) -> None:
    need("ADIOS 1.13", "bpls")
    done = session.run(
        f"-r -v --mode=serial --system=localhost:tmpfs -n {TWO_RANKS} -S Skel.rounds=2 -S "
        f"Skel.repetitions=2 -S Skel.tolerance_percent=1e6"
    )  # two rounds decide nothing
    assert done.returncode == 0, done.stdout
    said = done.stdout + done.stderr
    (verdict,) = re.findall(r"verdict: chimera POSIX 2 ranks localhost:tmpfs: (.*)", said)
    assert re.match(
        r"(within|undecided): error of the overall throughput .*, application against itself .*, "
        r"skeleton against itself .*; error of the average .*; error of the maximum .*; 2 rounds "
        r"of runs of 2 steps of 21,210,216 bytes, skeleton ",
        verdict,
    ), verdict
    (kept,) = (session.folder / "reframe" / "output").rglob("verified.json")
    loaded: Any = producers.measured(producers.record(kept))
    (dump,) = loaded.repetitions[0].streams[0].dumps
    assert dump.processes is not None and dump.processes.bytes == (10_605_108, 10_605_108)
    total_s = np.array(dump.processes.total_s)
    parts_s = [dump.processes.communication_s, dump.processes.io_s, dump.processes.rest_s]
    assert np.sum(parts_s, axis=0) == pytest.approx(total_s, rel=0.02)
    report = json.loads((session.folder / "report.json").read_text())
    (case,) = [c for c in report["runs"][0]["testcases"] if c["unique_name"].startswith("Skel_")]
    values = {key.rpartition(":")[2]: row[0] for key, row in case["perfvalues"].items()}
    assert values["skeleton_min"] <= values["skeleton_mean"] <= values["skeleton_max"]
    assert {"average_error", "maximum_error", "application_mean"} <= set(values)
    assert values["skeleton_against_itself_low"] <= values["skeleton_against_itself_high"]
    assert not list(Path("/dev/shm").glob("understudy.*/verified"))
    (study,) = cases_in(session.folder / "reframe" / "output")
    assert [len(s.runs) for s in study.conditions] == [2, 2, 2, 2]
    (row,) = accuracy_rows.accuracies(study)
    assert row.rounds == 2 and row.errors["average"].error.value * 100 == pytest.approx(
        values["average_error"]
    )
    low = row.errors["overall"].controls["application"].low
    assert low * 100 == pytest.approx(values["application_against_itself_low"])


def test_undecided_is_a_failure_where_a_decision_is_asked_for(session: Session) -> None:
    """The intervals of two rounds reach beyond a limit of a millionth of a percent."""
    need("ADIOS 1.13")
    done = session.run(
        "-r --system=localhost:tmpfs -S Skel.rounds=2 -S Skel.repetitions=1 -S "
        "Skel.must_decide=1 -S Skel.verify=0 -S Skel.tolerance_percent=1e-6 "
        f"-n {TWO_RANKS}"
    )
    (verdict,) = re.findall(r"verdict: \S+ POSIX 2 ranks localhost:tmpfs: (\w+)", done.stdout)
    assert done.returncode == 1, done.stdout
    if verdict == "undecided":
        assert "undecided: error of the overall throughput" in done.stdout
    else:
        assert "error_decided" in done.stdout


def test_the_mode_accept_asks_for_a_decision(session: Session) -> None:
    done = session.run("--describe --mode=accept --system=localhost -n ^Skel%.*gts")
    assert all(test["must_decide"] for test in json.loads(done.stdout)), done.stdout


def test_one_round_decides_nothing_and_ends_no_session(session: Session) -> None:
    done = session.run("-l --system=localhost -S rounds=1")
    assert done.returncode == 0, done.stderr
    speeds = [[1e8, 1e8]]
    errors = paired_errors.errors(speeds, speeds, (speeds, speeds))
    assert {error.state() for error in errors.values()} == {paired_errors.UNDECIDED}


def test_a_method_of_no_application_is_told(session: Session) -> None:
    done = session.run("-l --system=localhost -P method=foo")
    assert "Traceback" not in done.stdout + done.stderr
    assert "have no test of foo\n" in done.stdout + done.stderr


def test_without_adios_the_cases_are_skipped_and_the_reason_is_told(session: Session) -> None:
    player = session.folder / "understudy-replay"
    player.write_text("#!/bin/sh\necho 'adios  unavailable: built without ADIOS 1.13'\n")
    player.chmod(0o755)
    session.environment["PATH"] = f"{session.folder}:{os.environ['PATH']}"
    done = session.run(f"-r --system=localhost:tmpfs -n {TWO_RANKS}", shell=False)
    assert done.returncode == 1  # nothing ran
    assert "adios: built without ADIOS 1.13" in done.stdout
    assert re.search(r"Ran 0/2 test case.*\(0 failure.*, 2 skipped", done.stdout), done.stdout


def test_without_bpls_the_cases_are_skipped_and_the_way_on_is_told(session: Session) -> None:
    need("ADIOS 1.13")
    programs = session.folder / "bin"
    programs.mkdir()
    folders = [f"{ROOT}/build/bin", *os.environ["PATH"].split(":")]
    # The first of a name counts, and one directory may stand in PATH twice (/bin and /usr/bin).
    paths = {path.name: path for folder in reversed(folders) for path in Path(folder).glob("*")}
    for name, path in paths.items():
        if not name.startswith("bpls"):
            (programs / name).symlink_to(path)
    session.environment["PATH"] = str(programs)
    done = session.run(f"-r --system=localhost:tmpfs -n {TWO_RANKS}", shell=False)
    assert done.returncode == 1  # nothing ran
    assert "bpls is not on this host; -S Skel.verify=0 does without" in done.stdout, done.stdout
