"""The checks: what proves that work was done, and the job scripts of a system that is not here."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import player, results
from tests.support.keys import patterns_of, with_keys, with_patterns
from tests.support.needs import need
from tests.support.said import said
from understudy import producers
from understudy.contracts import run as runs
from understudy.contracts import strict, workload
from understudy.contracts.measurement import Played
from understudy.contracts.workload import (
    Dump,
    Pattern,
    Provenance,
    Source,
    Variable,
    Workload,
    streams_of,
)
from understudy.judge.acceptance import site_references
from understudy.paths import ROOT, where
from understudy.producers import player as measurements
from understudy.reframe.bases import completeness
from understudy.reframe.bases.fitting import even_ranks_per_node
from understudy.reframe.session import session
from understudy_papers.model import simulation
from understudy_papers.model.simulation import Simulation

GOLDEN = Path(__file__).parent / "golden" / "titan"
MEASUREMENT = GOLDEN.parent / "measurements" / "player.json"
BUILD_BIN = ROOT / "build" / "bin"
METHODS = ("adios", "hdf5", "mpiio", "posix")
LISTED = "; ".join(f"echo '{name} available'" for name in METHODS)  # of a stand-in for the player


def sample(name: str = "sample", ranks: int = 16) -> Workload:
    """Three growing shared checkpoints and one appended visualization of four states."""

    def dump(time_s: float, rows: int) -> Dump:
        shape = (ranks * rows, 256)
        return Dump(time_s=time_s, variables=(Variable(name="p", type="f64", shape=shape),))

    common: dict[str, Any] = {"operation": "write", "layout": "shared", "transfer_bytes": 1 << 20}
    checkpoint = Pattern(
        name="checkpoint",
        role="checkpoint",
        files="new",
        method="posix",
        **common,
        dumps=tuple(dump(time_s, rows) for time_s, rows in ((1, 4), (11, 6), (21, 9))),
    )
    viz = Pattern(
        name="viz",
        role="visualization",
        files="append",
        method="posix",
        **common,
        dumps=tuple(dump(time_s, 2) for time_s in (2, 8, 14, 20)),
    )
    return Workload(
        name=name,
        description="A sample for tests.",
        ranks=ranks,
        streams=streams_of((checkpoint, viz), ranks),
        source=Source(format="hand"),
        provenance=tuple(
            Provenance(path=path, origin="assumed", how="sample")
            for path in ("/ranks", "/runtime_s", "/streams")
        ),
    )


def played(text: str, method: str | None, time_scale: float, file_system: str) -> dict[str, Any]:
    """A complete result of playing the descriptor in `text`: on time, 0.03 s for each dump."""
    described = workload.parse(text, "sample")
    row = results.result(
        described, method=str(method), time_scale=time_scale, file_system=file_system
    )
    row["options"]["method"] = method
    row["repetitions"][0]["elapsed_s"] = 2.0
    streams = row["repetitions"][0]["streams"]
    for s, stream in zip(described.streams, streams, strict=True):
        stream["method"] = method or s.method
        for dump in stream["dumps"]:
            start_s = dump["scheduled_s"]
            dump |= {"start_s": start_s, "lateness_s": 0.0, "file_bytes": dump["bytes"]}
            open_, write, *_, close = dump["phases"]
            for i, phase in enumerate((open_, write, close)):
                phase["first_start_s"] = start_s + i * 0.01
                phase["last_end_s"] = start_s + i * 0.01 + 0.01
            dump["phases"] = [open_, write, close]
    digest = sha256(text.encode()).hexdigest()
    return row | {"workload": text, "workload_sha256": digest}


def of_this_job(path: Path | str, *keys: str) -> str:
    """The command that prints a prepared measurement with the time and the run directory of the
    job; `keys`: one of them alone."""
    now = {"started": "date -u +%Y-%m-%dT%H:%M:%SZ", "directory": "sed -n 2p run-directory"}
    edits = [rf"s|\"{key}\": \"[^\"]*\"|\"{key}\": \"$({now[key]})\"|" for key in keys or now]
    return f'sed "{"; ".join(edits)}" {path}'


REMOVED = object()
FIRST = "repetitions.0.streams.0.dumps"
FAULTS: dict[str, tuple[dict[str, Any], str]] = {  # what is set in a complete result
    "bytes": (
        {f"{FIRST}.1.bytes": 196607},
        "repetitions[0].checkpoint.dumps[1]: bytes: expected 196608, got 196607",
    ),
    "bytes of a phase": (
        {f"{FIRST}.1.phases.1.bytes": 196607},
        "repetitions[0].checkpoint.dumps[1]: bytes of phase write: expected 196608, got 196607",
    ),
    "file": (
        {f"{FIRST}.1.file_bytes": 196607},
        "repetitions[0].checkpoint.dumps[1]: its files lack 1 bytes",
    ),
    "open file that grows early": (
        {
            f"repetitions.0.streams.1.dumps.{i}.file_bytes": b
            for i, b in enumerate((131072, 0) * 2)
        },
        "",
    ),
    "open file that grows late": (
        {"repetitions.0.streams.1.dumps.1.file_bytes": 0},
        "repetitions[0].viz.dumps[1]: its files lack 65536 bytes",
    ),
    "dump": ({f"{FIRST}.2": REMOVED}, "repetitions[0].checkpoint.dumps: expected 3, got 2"),
    "stream": (
        {"repetitions.0.streams.1": REMOVED},
        "repetitions[0].streams: expected checkpoint, viz; got checkpoint",
    ),
    "method": (
        {"repetitions.0.streams.1.method": "mpiio"},
        "repetitions[0].viz.method: expected posix, got mpiio",
    ),
    "ranks": ({"environment.ranks": 1}, "environment.ranks: expected 16, got 1"),
    "pauses": ({"options.time_scale": 0.0}, "options.time_scale: expected 0.1, got 0.0"),
    "verification": ({"options.verify": False}, "options.verify: expected True, got False"),
    "wrong bytes": (
        {"verification.wrong_bytes": 3},
        "verification.wrong_bytes: expected 0, got 3",
    ),
    "file system": (
        {"environment.file_system": "ext4"},
        "storage.type: ext4, but the partition says tmpfs",
    ),
    "nothing": ({}, ""),
}


def spoiled(row: dict[str, Any], fault: str) -> dict[str, Any]:
    for path, value in FAULTS[fault][0].items():
        *keys, last = (int(key) if key.isdigit() else key for key in path.split("."))
        inner: Any = row
        for key in keys:
            inner = inner[key]
        if value is REMOVED:
            del inner[last]
        else:
            inner[last] = value
    return row


def asked(text: str) -> completeness.Asked:
    return completeness.Asked(
        workload=workload.parse(text, "sample"),
        workload_sha256=sha256(text.encode()).hexdigest(),
        method="posix",
        options={"fsync": False},
        repetitions=1,
        time_scale=0.1,
        verify=True,
        file_system="tmpfs",
    )


def faults_of(row: dict[str, Any], text: str, folder: Path) -> list[str]:
    path = folder / "result.json"
    path.write_text(json.dumps(row))
    return list(completeness.faults(measurements.read(path), asked(text)))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_result_has_to_be_complete(fault: str, tmp_path: Path) -> None:
    text = sample().to_text()
    faults = faults_of(spoiled(played(text, "posix", 0.1, "tmpfs"), fault), text, tmp_path)
    assert [fault_.startswith(FAULTS[fault][1]) for fault_ in faults[:1]] == [True] * bool(
        FAULTS[fault][1]
    )


def limited(
    row: dict[str, Any], limit: dict[str, float], folder: Path
) -> tuple[Played, list[str]]:
    """A measurement of the player and its faults, where these options were asked for."""
    row["options"] |= limit
    result = measurements.read(results.write(row, folder / "result.json"))
    wanted = replace(
        asked(row["workload"]),
        method=None,
        options=limit,
        repetitions=len(result.repetitions),
        time_scale=row["options"]["time_scale"],
        verify=row["options"]["verify"],
        file_system=row["storage"]["type"],
        restarts=[s.name for s in result.repetitions[0].streams if s.name.endswith("-restart")],
    )
    return result, list(completeness.faults(result, wanted))


@pytest.mark.parametrize(
    ("stopped_ranks", "limit", "valid"),
    [(2, {"deadline_s": 1e-6}, True), (0, {"deadline_s": 1e-6}, False), (2, {}, False)],
)
def test_deadline_that_was_asked_for_leaves_bytes(
    stopped_ranks: int, limit: dict[str, float], valid: bool, tmp_path: Path
) -> None:
    row = json.loads(MEASUREMENT.read_text(encoding="utf-8"))
    [dump, *_] = row["repetitions"][0]["streams"][0]["dumps"]
    [moved] = [phase for phase in dump["phases"] if phase["bytes"]]
    dump["bytes"] = moved["bytes"] = moved["bytes"] // 2
    some = {"min": 1, "max": 2}
    ends = {"stopped_ranks": stopped_ranks, "bytes": dump["bytes"]}
    dump["deadline"] = ends | {"rank_bytes": some, "rank_transfers": some}
    assert (not limited(row, limit, tmp_path)[1]) is valid


@pytest.mark.parametrize(("limit", "valid"), [({"mix_percent": 30}, True), ({}, False)])
def test_mixed_reads_are_besides_what_is_written(
    limit: dict[str, float], valid: bool, tmp_path: Path
) -> None:
    row = json.loads(MEASUREMENT.read_text(encoding="utf-8"))
    [dump, *_] = row["repetitions"][0]["streams"][0]["dumps"]
    [moved] = [phase for phase in dump["phases"] if phase["bytes"]]
    dump["phases"].append(moved | {"phase": "read", "bytes": 1000})
    dump["bytes"] += 1000
    result, wrong = limited(row, limit, tmp_path)
    assert (not wrong) is valid
    assert ("error +0.0000%" in completeness.verdict(result)) is valid


def test_other_repetitions_and_another_workload_are_faults(tmp_path: Path) -> None:
    text = sample().to_text()
    row = played(text, "posix", 0.1, "tmpfs")
    twice = row | {
        "repetitions": [r | {"repetition": i} for i in (0, 1) for r in row["repetitions"]]
    }
    assert faults_of(twice, text, tmp_path)[0] == "repetitions: expected 1, got 2"
    other = played(f"{text}\n", "posix", 0.1, "tmpfs")
    [fault, *_] = faults_of(other, text, tmp_path)
    assert fault.startswith("workload: another descriptor was played, SHA-256")


@pytest.mark.parametrize(
    ("type_", "on", "valid"),
    [
        ("disk", "ext4", True),
        ("disk", "overlayfs", True),
        ("disk", "tmpfs", False),
        ("lustre", "lustre", True),
        ("lustre", "nfs", False),
    ],
)
def test_file_system_is_the_one_of_the_partition(
    type_: str, on: str, valid: bool, tmp_path: Path
) -> None:
    text = sample().to_text()
    path = results.write(played(text, "posix", 0.1, on), tmp_path / "result.json")
    wanted = replace(asked(text), file_system=type_)
    assert (not list(completeness.faults(measurements.read(path), wanted))) is valid


def written_again(**keys: Any) -> Workload:
    """A stream whose second dump goes on with the files of the first, of which it writes the
    variable `p` again beside a new one, and whose third begins other files or the same anew."""
    whole = sample()
    checkpoint = patterns_of(whole)[0]
    p = checkpoint.dumps[0].variables[0]
    dumps = (
        checkpoint.dumps[0],
        Dump(time_s=2, continues=True, variables=(replace(p, at="p"), replace(p, name="q"))),
        checkpoint.dumps[1],
    )
    return with_patterns(whole, [replace(checkpoint, dumps=dumps, **keys)])


@pytest.mark.parametrize("files", ["new", "rewrite", "update", "append"])
@pytest.mark.parametrize("lost", [0, 1])
def test_a_dump_must_grow_files_only_by_what_is_new(files: str, lost: int, tmp_path: Path) -> None:
    described = written_again(files=files)
    text = described.to_text()
    row = played(text, "posix", 0.1, "tmpfs")
    played_dumps = row["repetitions"][0]["streams"][0]["dumps"]
    p, third = 16 * 4 * 256 * 8, 16 * 6 * 256 * 8
    for dump, grown in zip(played_dumps, [p, p - lost, third], strict=True):
        dump["file_bytes"] = None if files == "update" else grown
    faults_ = faults_of(row, text, tmp_path)
    fault = "repetitions[0].checkpoint.dumps[1]: its files lack 1 bytes"
    assert faults_ == ([fault] if lost and files != "update" else [])


def test_verdict_states_the_exact_error(tmp_path: Path) -> None:
    row = played(sample().to_text(), "posix", 0.1, "tmpfs")
    row["repetitions"][0]["streams"][0]["dumps"][1]["bytes"] -= 8653  # of 884,736
    path = results.write(row, tmp_path / "result.json")
    said("dumps-streams-ranks-bytes", completeness.verdict(measurements.read(path)))


@pytest.mark.parametrize(
    ("ranks", "most", "on_a_node"),
    [
        (1, 16, 1),
        (4, 16, 4),
        (16, 16, 16),
        (17, 16, 1),
        (65, 16, 13),
        (80, 16, 16),
        (100, 16, 10),
    ],
)
def test_all_nodes_get_as_many_ranks(ranks: int, most: int, on_a_node: int) -> None:
    assert even_ranks_per_node(ranks, most) == on_a_node


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("-c checks/ -r", True),
        ("-vr", True),
        ("--run --system titan", True),
        ("-rv", True),
        ("-c checks/ -l", False),
        ("--dry-run", False),
        ("-r --dry-run", False),
        ("-R -l", False),
        ("-n replay -l", False),
    ],
)
def test_a_real_run_is_known_by_its_arguments(line: str, runs: bool) -> None:
    assert session.asks_to_run(line.split()) is runs


class Session:
    """ReFrame in a folder of its own, with the sample as its only extra workload."""

    def __init__(self, folder: Path, described: Workload) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.text = described.to_text()
        workloads = folder / "workloads"
        workloads.mkdir()
        (workloads / f"{described.name}.json").write_text(self.text)
        self.environment = {
            **os.environ,
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "RFM_CONFIG_FILES": str(ROOT / "configs" / "settings.py"),
            "RFM_PREFIX": str(folder / "reframe"),
            "RFM_REPORT_FILE": str(folder / "report.json"),
            "RFM_COLORIZE": "0",
            "RFM_ENABLE_RESULTS_STORAGE": "0",
            "UNDERSTUDY_OUTPUT": str(folder / "out"),
            "UNDERSTUDY_WORKLOADS": str(workloads),
            "DARSHAN_RUNTIME": str(folder),  # has none
        }

    def run(
        self, *arguments: str, check: str = "", names: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """ReFrame on the checks of the sample only: on all, or on the one of that name; or on
        those whose names match."""
        command = [Path(sys.executable).parent / "reframe", "-c", ROOT / "checks", *arguments]
        return subprocess.run(
            [*map(str, command), "-n", f"{check}%workload=sample" if names is None else names],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def program(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def hide(self, name: str) -> None:
        """Take a program off PATH."""
        folders = self.environment["PATH"].split(":")
        left = [folder for folder in folders if not (Path(folder) / name).exists()]
        self.environment["PATH"] = ":".join(left)

    def scripts(self) -> list[str]:
        """Text of the job script of each test of the method posix that was staged."""
        paths = (self.folder / "reframe" / "stage").rglob("rfm_job.sh")
        return [text for text in (p.read_text() for p in paths) if " -a posix " in text]


@pytest.fixture
def titan(tmp_path: Path) -> Session:
    session_ = Session(tmp_path, sample())
    session_.program("understudy-replay", LISTED)
    return session_


def cases(printed: str) -> tuple[int, int, int]:
    """How many cases ran, failed and were skipped, as ReFrame counts them."""
    match = re.search(r"Ran (\d+)/\d+ test case.*\((\d+) failure.*, (\d+) skipped", printed)
    assert match, printed
    ran, failed, skipped = map(int, match.groups())
    return ran, failed, skipped


def anonymous(script: str) -> list[str]:
    """The lines of a job script without the two that differ from host to host."""
    text = re.sub(r"(?m)^(#PBS -N) .*", r"\1 NAME", script)
    return re.sub(r"(?m)^cd .*", "cd STAGE", text).splitlines()


def test_titan_gets_the_scripts_of_the_study(titan: Session) -> None:
    done = titan.run("--dry-run", "--system=titan", "-S", "scaling=weak", "-S", "ranks=80")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout
    ran, failed, skipped = cases(done.stdout)
    assert (ran, failed, skipped) == (
        3 * len(METHODS) + 2,
        0,
        0,
    )  # stripe counts x methods, observers
    golden = {p.stem: p.read_text().splitlines() for p in GOLDEN.glob("*.sh")}
    assert set(golden) == {"default", "nodes", "cores"}
    assert sorted(map(anonymous, titan.scripts())) == sorted(golden.values())


@pytest.mark.parametrize(
    ("ranks", "nodes", "counts"), [(16, 1, [1, 16]), (65 * 16, 65, [65, 1008])]
)
def test_stripe_counts_follow_nodes_and_cores(
    titan: Session, ranks: int, nodes: int, counts: list[int]
) -> None:
    done = titan.run("--dry-run", "--system=titan", "-S", "scaling=weak", "-S", f"ranks={ranks}")
    assert done.returncode == 0, done.stdout + done.stderr
    scripts = "\n".join(titan.scripts())
    given = re.findall(r"understudy-replay .* --stripe-count (\d+) ", scripts)
    assert sorted(map(int, given)) == counts
    assert scripts.count(f"#PBS -l nodes={nodes}:ppn=16\n") == scripts.count("#!/bin/bash")


def test_too_many_ranks_are_skipped_with_the_reason(titan: Session) -> None:
    ranks = 16 * 18689
    done = titan.run("--dry-run", "--system=titan", "-S", "scaling=weak", "-S", f"ranks={ranks}")
    assert cases(done.stdout) == (0, 0, 3 * len(METHODS) + 2)
    said("ranks-need-nodes-titan", done.stdout, ranks=ranks)


def test_a_real_run_without_the_batch_system_ends_with_one_message(titan: Session) -> None:
    need("no qsub")
    done = titan.run("-r", "--system=titan")
    assert done.returncode == 1
    said("system-titan-needs-qsub", done.stderr)
    assert "RUN" not in done.stdout


def test_the_mode_accept_warns_of_cases_that_fit_into_memory(here: Session) -> None:
    small = ("-l", "--system=localhost:disk", "--mode=accept")
    done = here.run(*small, check="Replay")
    told = (
        r"understudy: warning: (\d+) of \1 cases move less than the memory of their nodes, such as"
    )
    assert re.search(told, done.stderr), done.stderr
    assert "warning" not in here.run(*small[:2], check="Replay").stderr
    large = ["-S", "Ior.block_bytes=1PiB", "-S", "max_bytes=1EiB"]
    assert "warning" not in here.run(*small, *large, names="^Ior").stderr


def test_a_check_that_is_not_selected_refuses_no_value(titan: Session) -> None:
    names = ("Ior", "Mdtest", "Overhead")
    done = titan.run("-l", "--system=titan", "-S", "ranks=2", names=f"^({'|'.join(names)})")
    assert done.returncode == 0, done.stderr
    assert all(f"- {name} " in done.stdout for name in names) and "give both" not in done.stderr
    done = titan.run("-l", "--system=titan", "-S", "ranks=2", names="^(Replay|Ior)")
    assert done.returncode == 1
    assert said("scaling-none-ranks-give", done.stderr) and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (
            None,
            "understudy-replay is not on PATH, and the checks ask it for its methods; build it",
        ),
        (
            "echo no MPI >&2; exit 3",
            "/understudy-replay --list: failed with exit status 3: no MPI",
        ),
        ("echo posix: yes", "/understudy-replay --list: expected a line '<method> available' or"),
    ],
)
def test_without_a_working_player_the_session_ends_with_one_message(
    titan: Session, script: str | None, message: str
) -> None:
    (titan.bin / "understudy-replay").unlink()
    titan.hide("understudy-replay")
    if script is not None:
        titan.program("understudy-replay", script)
    done = titan.run("-l", "--system=titan")
    assert done.returncode == 1, done.stdout
    assert message in done.stderr and done.stderr.count("\n") == 1
    assert done.stderr.startswith("understudy: ") and "Traceback" not in done.stdout


def test_methods_are_those_that_the_player_lists(titan: Session) -> None:
    titan.program("understudy-replay", "echo 'null available'; echo 'daos unavailable: no DAOS'")
    done = titan.run("-l", "--system=titan", check="Replay")
    assert set(re.findall(r"%method=(\w+)", done.stdout)) == {"daos"}


@pytest.fixture
def here(tmp_path: Path) -> Session:
    """The host itself; its mpirun does not start the player but leaves a prepared result, as if
    the job had made it."""
    session_ = Session(tmp_path, sample())
    session_.program("mpirun", f"{of_this_job(tmp_path / 'made.json')} >result.json")
    session_.program("understudy-replay", LISTED)
    return session_


def leave(session: Session, row: dict[str, Any]) -> None:
    (session.folder / "made.json").write_text(json.dumps(row))


def replay_here(session: Session, *arguments: str) -> subprocess.CompletedProcess[str]:
    return session.run(
        "-r",
        "--system=localhost:tmpfs",
        "-E",
        "method == 'posix'",
        "-S",
        "time_scale=0.1",
        *arguments,
    )


def test_a_faithful_replay_passes_with_its_verdict(here: Session) -> None:
    """A later session replaces no record, and adds to a performance log without escapes, which
    collectors of logs and cron read: output that is no terminal has no colours."""
    leave(here, played(here.text, "posix", 0.1, "tmpfs"))
    del here.environment["RFM_COLORIZE"]
    for _ in range(2):
        done = replay_here(here)
        assert done.returncode == 0, done.stdout + done.stderr
        assert cases(done.stdout) == (1, 0, 0) and "\x1b" not in done.stdout + done.stderr
        said("verdict-sample-posix-localhost", done.stdout)
        assert re.search(r"P: checkpoint_bandwidth: 6\.597\d* MiB/s", done.stdout)
    names = sorted(
        p.name for p in (here.folder / "reframe/output/localhost/tmpfs/mpi").glob("*/*.json")
    )
    assert names == ["result.json", "run.json", "workload.json"]
    kept = [runs.load(path) for path in (here.folder / "out" / "records").glob("*/*.json.gz")]
    assert len({run.identity.session for run in kept}) == 2
    assert record_of(here, "output") in kept
    [log] = (here.folder / "out").rglob("perflogs/localhost/tmpfs/*/Replay.log")
    head, *lines = log.read_text().splitlines()
    assert "checkpoint_bandwidth_value|checkpoint_bandwidth_unit" in head
    assert len(lines) == 2 and all(line.count("|") == head.count("|") for line in lines)


@pytest.mark.parametrize("fault", ["bytes", "stream"])
def test_a_check_fails_with_the_fault(fault: str, here: Session) -> None:
    leave(here, spoiled(played(here.text, "posix", 0.1, "tmpfs"), fault))
    done = replay_here(here)
    assert done.returncode == 1
    assert cases(done.stdout) == (1, 1, 0)
    said("verdict-sample-posix-localhost-2", done.stdout, spoil=FAULTS[fault][1])
    said("sanity-error-result-json", done.stdout, spoil=FAULTS[fault][1])
    run = record_of(here, "stage")
    assert run.failed and run.producer.exit_status == 0
    assert run.producer.failure == f"result.json: {FAULTS[fault][1]}"


WAITS, HANGS = (
    f"understudy: rank {rank} on n1: no progress for 9 s: stream field, dump 1, {where}"
    for rank, where in ((1, "waits for other ranks"), (0, "write, call 1"))
)
GONE, FULL = (
    "understudy: rank 4 on n7: posix: cannot open /s/a: No such file or directory (posix.c:1)",
    "understudy: rank 0 on n5: posix: cannot write /s/a: No space left on device (posix.c:2)",
)


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        (["understudy: -t: 4m: expected 4MiB, 4MB or bytes"], ""),
        ([GONE, FULL], FULL),
        ([WAITS, HANGS], f"{HANGS}; nothing from ranks 2, 3, 4, 5 and 10 more"),
    ],
    ids=["the only message", "not a file that another rank removed", "the rank that hangs"],
)
def test_a_failed_run_leaves_its_record_with_the_cause(
    messages: list[str], told: str, here: Session
) -> None:
    text = " ".join(f"'{message}'" for message in messages)
    here.program("mpirun", f"printf '%s\\n' {text} >&2; exit 2")
    done = replay_here(here)
    assert done.returncode == 1
    message = f"job ended with status 2: {told or messages[0]}"
    assert message in done.stdout
    run = record_of(here, "stage")
    assert run.failed and run.measurement is None and run.samples == ()
    assert run.producer.exit_status == 2
    assert message in str(run.producer.failure)
    assert run.place.partition == "tmpfs" and run.storage.mount_point == "/dev/shm"
    assert run.producer.command_line[0] == "understudy-replay"


@pytest.mark.parametrize("stale", ["started", "directory"])
def test_a_measurement_of_another_job_fails(stale: str, here: Session) -> None:
    """Even with all of the bytes: this job moved none."""
    leave(here, played(here.text, "posix", 0.1, "tmpfs"))
    [other] = {"started", "directory"} - {stale}
    result = of_this_job(here.folder / "made.json", other)
    here.program("mpirun", f"{result} >result.json")
    done = replay_here(here)
    assert done.returncode == 1 and cases(done.stdout) == (1, 1, 0)
    said("result-json-environment-expected", done.stdout, stale=stale)
    assert record_of(here, "stage").failed


def record_of(session: Session, folder: str) -> runs.Run:
    """The only record of a session, in ReFrame's folder `output` or `stage`."""
    [path] = (session.folder / "reframe").rglob("run.json")
    assert path.relative_to(session.folder / "reframe").parts[0] == folder
    return runs.load(path)


STORAGE = {
    "type": "lustre",
    "source": "10.0.0.1@o2ib:/lus",
    "mount_point": "/lus",
    "mount_options": "rw,flock",
    "total_bytes": 9,
    "free_bytes": 8,
    "total_inodes": 7,
    "free_inodes": 6,
    "client_version": "2.15.3",
    "server_version": None,
    "health": "healthy",
    "default_layout": {
        "backend": "lustre",
        "stripe_count": 4,
        "stripe_size_bytes": 1 << 20,
        "pool": None,
        "targets": None,
    },
}


def test_a_run_leaves_its_record(here: Session) -> None:
    leave(here, played(here.text, "posix", 0.1, "tmpfs"))
    (here.folder / "before.json").write_text(json.dumps(STORAGE))
    (here.folder / "after.json").write_text(json.dumps(STORAGE | {"health": "degraded"}))
    here.program(
        "understudy-storage",
        f"cd {here.folder}; cat before.json; mv after.json before.json; echo $1 >>asked",
    )
    done = replay_here(here, "-S", "campaign=upgrade", "-S", "tags=quiet,before")
    assert done.returncode == 0, done.stdout + done.stderr
    run = record_of(here, "output")
    assert (run.identity.campaign, run.identity.tags) == ("upgrade", ("before", "quiet"))
    assert run.identity.arm == "replica" and run.identity.round is None
    said("replay-workload-sample-method", run.identity.case)
    report = json.loads((here.folder / "report.json").read_text())
    [case] = report["runs"][0]["testcases"]
    assert run.identity.session == case["session"] and run.identity.session
    place = run.place
    assert (place.system, place.partition, place.environment) == ("localhost", "tmpfs", "mpi")
    assert place.launcher == "mpirun" and place.job_id
    assert [node.ranks for node in place.nodes] == [16]
    assert run.storage.source == STORAGE["source"]
    assert run.storage.default_layout == STORAGE["default_layout"]
    said("healthy-after-job-degraded", run.storage.health)
    assert (run.producer.exit_status, run.producer.failure) == (0, None)
    assert run.measurement is not None and run.samples
    asked = (here.folder / "asked").read_text().splitlines()
    assert len(asked) == 2 and len(set(asked)) == 1  # the run directory, before and after


def test_runs_in_output_and_stage_count_once(here: Session) -> None:
    leave(here, played(here.text, "posix", 0.1, "tmpfs"))
    assert replay_here(here).returncode == 0
    here.program("mpirun", "exit 3")
    done = here.run(
        "-r", "--system=localhost:disk", "-S", "time_scale=0.1", "-E", "method == 'posix'"
    )
    assert done.returncode == 1
    [kept] = (here.folder / "reframe" / "output").rglob("run.json")
    shutil.copytree(kept.parent, here.folder / "reframe" / "stage" / "again")
    paths = producers.load_all(producers.find([here.folder / "reframe"]))
    assert sorted(run.failed for _, run in paths) == [False, True]


def test_a_layout_that_is_not_given_ends_the_job(here: Session) -> None:
    here.program(
        "understudy-storage", "echo 'understudy: /x: asked for 4 stripes, got 1' >&2; exit 1"
    )
    here.program("mpirun", f"touch {here.folder}/started")
    said("job-ended-status-asked", replay_here(here).stdout)
    assert not (here.folder / "started").exists()
    assert record_of(here, "stage").producer.exit_status == 1


def test_a_method_that_the_build_lacks_is_skipped_with_its_reason(here: Session) -> None:
    here.program("understudy-replay", "echo 'posix    unavailable: there is no POSIX'")
    done = replay_here(here)
    assert cases(done.stdout) == (0, 0, 1)
    said("posix-there-no-posix", done.stdout)


def test_a_workload_that_does_not_fit_is_skipped_with_both_sizes(tmp_path: Path) -> None:
    small = sample()
    huge = Variable(name="p", type="f64", shape=(1 << 50,))  # 8 PiB
    dump = Dump(time_s=1, variables=(huge,))
    session = Session(tmp_path, with_keys(small, dumps=(dump,)))
    session.program("mpirun", "exit 1")
    session.program("understudy-replay", LISTED)
    done = replay_here(session)
    assert cases(done.stdout) == (0, 0, 1)
    assert re.search(r"\[/dev/shm: 9007199255003136 bytes are needed, \d+ are free\]", done.stdout)


def test_replays_of_one_host_never_run_beside_each_other(here: Session) -> None:
    lock = here.folder / "lock"
    here.program("mpirun", f"mkdir {lock} || exit 9; sleep 0.3; rmdir {lock}; exit 8")
    done = here.run("-r", "--system=localhost")
    ran, _, skipped = cases(done.stdout)
    assert ran + skipped == 2 * (len(METHODS) + 2) and ran > 1
    assert done.stdout.count("verdict: ") == ran
    assert len(re.findall("verdict: .* status 8: ", done.stdout)) == ran


def test_no_data_stay_behind(here: Session) -> None:
    here.program(
        "mpirun",
        f"""while [ "$1" != -o ]; do shift; done; echo "$2" >{here.folder}/was
        touch "$2/data"; exit 3""",
    )
    assert replay_here(here).returncode == 1
    data = Path((here.folder / "was").read_text().strip())
    assert data.name.startswith("understudy.") and not data.exists()


def test_references_hold_under_their_condition(here: Session) -> None:
    leave(here, played(here.text, "posix", 0.1, "tmpfs"))
    here.environment["RFM_REFERENCE_PREFIX"] = str(here.folder)
    accept = ("-S", "Replay.require_reference=1")
    said("no-reference-checkpoint-bandwidth", replay_here(here, *accept).stdout)
    [record] = (here.folder / "out" / "records").rglob("*.json.gz")
    key = site_references.condition(runs.load(record))
    other = (
        "no reference for checkpoint_bandwidth, viz_bandwidth, elapsed on localhost:tmpfs "
        f"under condition {key}; understudy references"
    )
    for condition, bandwidth, message in (
        (key, 7, ""),
        (key, 70, "failed to meet reference(s): checkpoint_bandwidth=6.597"),
        (f"{key}0", 7, other),
    ):
        names = {
            "checkpoint_bandwidth": [bandwidth, -0.1, None, "MiB/s"],
            "viz_bandwidth": [0.01, -0.1, None, "MiB/s"],
            "elapsed": [2, None, 0.1, "s"],
        }
        section = {"$index": ["$partition", "condition"], "localhost:tmpfs": {condition: names}}
        (here.folder / "localhost.yaml").write_text(yaml.safe_dump({"Replay": section}))
        done = replay_here(here, *accept)
        assert done.returncode == bool(message), done.stdout + done.stderr
        assert message in done.stdout
    dry = here.run("--dry-run", "--system=localhost:tmpfs", "-E", "method == 'posix'", *accept)
    assert dry.returncode == 0, dry.stdout  # it measures nothing, and the names are known


def test_the_mode_accept_demands_references(here: Session) -> None:
    leave(here, played(here.text, "posix", 0.1, "tmpfs"))
    off = ("-S", "Replay.fsync=0", "-S", "Replay.restart=0", "-S", "Replay.drop_cache=0")
    done = replay_here(here, "--mode=accept", *off)
    assert done.returncode == 1
    said("no-reference-checkpoint-bandwidth-2", done.stdout)
    said("references-system-localhost-writes", done.stdout)


@pytest.mark.parametrize(
    ("growth", "percent", "status"),
    [
        (1.09, 10, 0),
        (1.11, 10, 1),
        (1.11, 12, 0),
    ],
)
def test_volume_may_differ_by_the_tolerance(
    here: Session, growth: float, percent: float, status: int
) -> None:
    row = played(here.text, None, 0.1, "tmpfs")
    dump = row["repetitions"][0]["streams"][0]["dumps"][1]
    dump["file_bytes"] = round(dump["file_bytes"] * growth)
    leave(here, row)
    done = here.run(
        "-r",
        "--system=localhost:tmpfs",
        "-S",
        "time_scale=0.1",
        "-S",
        f"tolerance_percent={percent}",
        "-E",
        "method == 'described' and observer == 'player'",
    )
    assert cases(done.stdout) == (1, status, 0)
    assert ("reference(s): checkpoint_001_bytes=" in done.stdout) is bool(status)


def observed_here(session: Session) -> subprocess.CompletedProcess[str]:
    return session.run(
        "-r",
        "--system=localhost:tmpfs",
        "-S",
        "time_scale=0.1",
        "-E",
        "method == 'described' and observer == 'darshan'",
    )


def test_without_darshan_its_observation_is_skipped_with_the_reason(here: Session) -> None:
    done = observed_here(here)
    assert cases(done.stdout) == (0, 0, 1)
    reason = f"[DARSHAN_RUNTIME={here.folder}: there is no lib/libdarshan.so in it]"
    assert reason in done.stdout


def test_a_replica_without_a_log_fails(here: Session) -> None:
    (here.folder / "lib").mkdir()
    (here.folder / "lib" / "libdarshan.so").touch()
    row = played(here.text, None, 0.1, "tmpfs")
    row["options"]["verify"] = False
    leave(here, row)
    done = observed_here(here)
    assert cases(done.stdout) == (1, 1, 0)
    assert re.search(r"sanity error: .*/replica\.darshan: cannot be opened: No such", done.stdout)


SIZES = {"first_bytes": 8_000_000, "factors": [1.5, 1.25]}  # of the checkpoints


def small_simulation() -> dict[str, Any]:
    """A specification: three growing checkpoints and four states of two variables each."""
    row: dict[str, Any] = json.loads((where("simulations") / "mphys-a.json").read_text())
    row |= {"name": "sample", "ranks": 2, "runtime_s": 20.0}
    checkpoint, states = row["series"]
    checkpoint["times"] = {"rule": "spread", "dumps": 3, "from_start": False}
    states["times"] = {"rule": "spread", "dumps": 4, "from_start": True}
    checkpoint["meshes"][0]["sizes"] = {"rule": "growth", **SIZES}
    states["meshes"][0]["sizes"] = {"rule": "total", "total_bytes": 16_000_000, "follows": None}
    for series in (checkpoint, states):
        [package] = series["meshes"][0]["packages"]
        package["fields"] = package["fields"][:1]
        package["fields"][0]["count"] = 2
    return row


@pytest.fixture
def stated_here(tmp_path: Path) -> Session:
    """As `here`, with a simulation of which the sample is the workload."""
    row = small_simulation()
    text = json.dumps(row)
    result = simulation.workload_of(strict.parse(Simulation, text, "sample"), "sample")
    session = Session(tmp_path, result)
    session.program("mpirun", f"{of_this_job(tmp_path / 'made.json')} >result.json")
    session.program("understudy-replay", LISTED)
    (tmp_path / "simulations").mkdir()
    (tmp_path / "simulations" / "sample.json").write_text(text)
    session.environment["UNDERSTUDY_SIMULATIONS"] = str(tmp_path / "simulations")
    return session


def hold_against_stated(session: Session, *arguments: str) -> subprocess.CompletedProcess[str]:
    return session.run("-r", "--system=localhost:disk", *arguments, check="Simulation")


@pytest.mark.parametrize(
    ("containers", "missed"),  # of the first checkpoint, and of the last state
    [
        ((23_900, 0), None),  # of 8 MB: 0.3 %, the mean 0.1 %
        ((0, 15_900), None),  # of 16 MB: 0.1 %
        ((24_100, 0), "checkpoint_mean_error=0.1004"),
        ((40_100, 0), "checkpoint_max_error=0.50125"),
        ((0, 16_100), "total_error=0.1006"),
    ],
)
def test_sizes_are_held_against_those_stated(
    stated_here: Session, containers: tuple[int, int], missed: str | None
) -> None:
    row = played(stated_here.text, None, 0.0, "ext4")
    checkpoints, states = row["repetitions"][0]["streams"]
    checkpoints["dumps"][0]["file_bytes"] += containers[0]
    states["dumps"][3]["file_bytes"] += containers[1]
    leave(stated_here, row)
    done = hold_against_stated(stated_here)
    assert cases(done.stdout) == (1, int(missed is not None), 0), done.stdout
    assert missed is None or re.search(rf"(?s)failed to meet reference.*{missed}", done.stdout)
    said("table-ii-error-checkpoints", done.stdout)


def test_sizes_are_those_stated_with_the_same_total_only(stated_here: Session) -> None:
    done = hold_against_stated(stated_here, "-S", "scaling=weak", "-S", "ranks=4")
    assert cases(done.stdout) == (0, 0, 1)
    said("sample-scaled-weakly-has", done.stdout)
    leave(stated_here, played(stated_here.text, None, 0.0, "ext4"))
    done = hold_against_stated(stated_here, "-S", "scaling=strong", "-S", "ranks=4")
    said("workload-another-descriptor-was", done.stdout)  # it was that for 4 ranks


def test_a_workload_that_its_simulation_does_not_give_is_one_message(
    stated_here: Session,
) -> None:
    row = small_simulation() | {"runtime_s": 21.0}
    (stated_here.folder / "simulations" / "sample.json").write_text(json.dumps(row))
    done = hold_against_stated(stated_here)
    assert done.returncode == 1 and said("sample-workload-differs-from", done.stderr)


def test_a_listing_composes_no_simulation(stated_here: Session) -> None:
    """That takes longer than all else, and tells a listing nothing."""
    row = small_simulation() | {"runtime_s": 21.0}
    (stated_here.folder / "simulations" / "sample.json").write_text(json.dumps(row))
    done = stated_here.run("-l", "--system=localhost:disk", check="Simulation")
    assert done.returncode == 0 and "Found 1 check(s)" in done.stdout, done.stderr


def test_a_method_without_files_has_no_accuracy(stated_here: Session) -> None:
    row = played(stated_here.text, None, 0.0, "ext4")
    for dump in row["repetitions"][0]["streams"][1]["dumps"]:
        dump["file_bytes"] = None
    leave(stated_here, row)
    done = hold_against_stated(stated_here)
    assert cases(done.stdout) == (1, 1, 0)
    said("sanity-error-visualization-method", done.stdout)


@pytest.mark.parametrize(
    ("variables", "reason"),
    [
        (["ranks=32"], "32 ranks need 2 nodes, localhost:disk has 1 with 16 ranks each"),
        (["ranks=32", "ranks_per_node=32"], None),
        (
            ["ranks=2", "max_bytes=50000000"],
            "51000000 bytes exceed the limit of 50000000 on localhost:disk; raise it with -S",
        ),
        (["ranks=2", "max_bytes=60000000"], None),
    ],
)
def test_the_limits_of_a_partition_can_be_raised(
    stated_here: Session, variables: list[str], reason: str | None
) -> None:
    done = hold_against_stated(
        stated_here, "-S", "scaling=strong", *(a for v in variables for a in ("-S", v))
    )
    assert cases(done.stdout)[2] == int(reason is not None)
    assert reason is None or f"[{reason}" in done.stdout


@pytest.mark.parametrize(("late", "error"), [(0.149, None), (0.151, "1.006")])
def test_pauses_are_held_against_the_schedule(
    stated_here: Session, late: float, error: str | None
) -> None:
    """The dumps are due from 0 to 15 s."""
    row = played(stated_here.text, None, 1.0, "ext4")
    for stream in row["repetitions"][0]["streams"]:
        for dump in stream["dumps"]:
            if dump["scheduled_s"] == 15:
                dump["start_s"] += late
                dump["lateness_s"] = late
    leave(stated_here, row)
    done = stated_here.run(
        "-r", "--system=localhost:disk", "-S", "scaling=none", "-S", "ranks=0", check="Schedule"
    )
    assert cases(done.stdout) == (1, int(error is not None), 0), done.stdout
    assert error is None or f"failed to meet reference(s): pauses_error={error}" in done.stdout
    assert f"pauses {15 + late:.3f} s of 15.000 s" in done.stdout


def test_no_pauses_cannot_be_kept(stated_here: Session) -> None:
    done = stated_here.run("-r", "--system=localhost:disk", "-S", "time_scale=0", check="Schedule")
    assert cases(done.stdout) == (0, 0, 1)
    said("there-no-pauses-time", done.stdout)


def test_a_simulation_passes_for_real(stated_here: Session) -> None:
    """Played, verified and measured on disk by the real player: sizes and pauses."""
    player.needs("hdf5")
    for program in ("mpirun", "understudy-replay"):
        (stated_here.bin / program).unlink()
    stated_here.environment["PATH"] = f"{BUILD_BIN}:{os.environ['PATH']}"
    done = hold_against_stated(stated_here)
    assert done.returncode == 0 and cases(done.stdout) == (1, 0, 0), done.stdout
    matches = dict(re.findall(r"P: (\w+): ([\d.e-]+) %", done.stdout))
    assert float(matches["payload_error"]) == 0
    assert (
        0 < float(matches["checkpoint_mean_error"]) <= float(matches["checkpoint_max_error"]) < 0.1
    )
    assert 0 < float(matches["state_error"]) < float(matches["total_error"]) < 0.1
    done = stated_here.run(
        "-r",
        "--system=localhost:disk",
        "-S",
        "scaling=none",
        "-S",
        "ranks=0",
        "-S",
        "time_scale=0.2",
        check="Schedule",
    )
    assert done.returncode == 0 and cases(done.stdout) == (1, 0, 0), done.stdout


def test_the_player_passes_for_real(tmp_path: Path) -> None:
    session = Session(tmp_path, sample(ranks=2))
    session.environment["PATH"] = f"{BUILD_BIN}:{os.environ['PATH']}"
    session.environment["DARSHAN_RUNTIME"] = os.environ.get("DARSHAN_RUNTIME", str(tmp_path))
    done = session.run("-r", "--system=localhost", "-S", "repetitions=2")
    assert done.returncode == 0, done.stdout + done.stderr
    latencies = re.findall(r"P: checkpoint_latency_p99: ([0-9.e-]+) ms", done.stdout)
    assert len(latencies) == done.stdout.count("P: checkpoint_bandwidth") >= 2
    assert min(map(float, latencies)) > 0
    ran, failed, skipped = cases(done.stdout)
    assert (ran + skipped, failed) == (2 * (len(player.methods()) + 2), 0)
    assert ran >= len(player.methods()) + 1
    records = producers.load_all(producers.find([session.folder / "reframe"]))
    assert len(records) == ran
    for path, run in records:
        assert path.name == "run.json" and not run.failed and run.samples
        assert run.place.system == "localhost" and run.place.partition in ("tmpfs", "disk")
        assert run.storage.type and run.software.program_sha256
