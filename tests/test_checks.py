"""The checks: what proves that work was done, and the job scripts of a system that is not here."""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import player
from tests.support.keys import patterns_of, with_keys, with_patterns
from tests.support.needs import need
from tests.support.said import said
from understudy import producers
from understudy.contracts import run as runs
from understudy.contracts import strict, workload
from understudy.contracts.workload import (
    Dump,
    Pattern,
    Provenance,
    Source,
    Step,
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
    """A complete result of playing the descriptor in `text`, as JSON."""
    described = workload.parse(text, "sample")
    seconds = dict.fromkeys(("min", "q25", "median", "q75", "q95", "max", "mean"), 0.01)

    def dump(index: int, d: Step) -> dict[str, Any]:
        start_s = d.time_s * time_scale
        phases = [
            {
                "phase": phase,
                "bytes": d.bytes if phase == "write" else 0,
                "operations": 4,
                "first_start_s": start_s + i * 0.01,
                "last_end_s": start_s + i * 0.01 + 0.01,
                "rank_s": seconds,
            }
            for i, phase in enumerate(("open", "write", "close"))
        ]
        return {
            "dump": index,
            "scheduled_s": start_s,
            "start_s": start_s,
            "lateness_s": 0.0,
            "described_bytes": d.bytes,
            "bytes": d.bytes,
            "file_bytes": d.bytes,
            "files": 1,
            "phases": phases,
        }

    streams = [
        {
            "name": s.name,
            "operation": s.operation,
            "method": method or s.method,
            "transfer_bytes": s.transfer_bytes,
            "collective": s.collective,
            "sync": s.sync,
            "dumps": [dump(i, d) for i, d in enumerate(s.steps)],
        }
        for s in described.streams
    ]
    return {
        "schema": "understudy/result/1",
        "workload": text,
        "workload_sha256": sha256(text.encode()).hexdigest(),
        "options": {
            "method": method,
            "transfer_bytes": None,
            "collective": None,
            "fsync": False,
            "repetitions": 1,
            "keep": False,
            "time_scale": time_scale,
            "bytes_scale": 1.0,
            "verify": True,
            "restart": False,
            "compute": None,
            "restart_stream": None,
            "restart_dump": None,
            "restart_from": None,
            "shift_ranks": 0,
            "drop_cache": False,
            "method_options": {},
        },
        "environment": {
            "understudy_version": "0",
            "command_line": ["understudy-replay"],
            "started": "2026-01-01T00:00:00Z",
            "ranks": described.ranks,
            "nodes": 1,
            "host": "node",
            "kernel": "Linux",
            "processors": 2,
            "mpi": "MPI",
            "libraries": {},
            "directory": "data",
            "file_system": file_system,
            "total_bytes": 1 << 40,
            "free_bytes": 1 << 40,
        },
        "repetitions": [{"repetition": 0, "elapsed_s": 2.0, "streams": streams}],
        "verification": {"bytes": 1, "wrong_bytes": 0},
        "finished": True,
    }


def of_this_job(path: Path | str, *keys: str) -> str:
    """The command that prints a prepared measurement with the time and the run directory of the
    job; `keys`: one of them alone."""
    now = {"started": "date -u +%Y-%m-%dT%H:%M:%SZ", "directory": "sed -n 2p run-directory"}
    edits = [rf"s|\"{key}\": \"[^\"]*\"|\"{key}\": \"$({now[key]})\"|" for key in keys or now]
    return f'sed "{"; ".join(edits)}" {path}'


def the_dump(row: dict[str, Any]) -> Any:
    return row["repetitions"][0]["streams"][0]["dumps"][1]


def lose_bytes(row: dict[str, Any]) -> None:
    the_dump(row)["bytes"] -= 1


def lose_bytes_of_phase(row: dict[str, Any]) -> None:
    the_dump(row)["phases"][1]["bytes"] -= 1


def truncate_file(row: dict[str, Any]) -> None:
    the_dump(row)["file_bytes"] -= 1


def lose_dump(row: dict[str, Any]) -> None:
    row["repetitions"][0]["streams"][0]["dumps"].pop()


def lose_stream(row: dict[str, Any]) -> None:
    row["repetitions"][0]["streams"].pop()


def change_method(row: dict[str, Any]) -> None:
    row["repetitions"][0]["streams"][1]["method"] = "mpiio"


def change_ranks(row: dict[str, Any]) -> None:
    row["environment"]["ranks"] = 1


def repeat(row: dict[str, Any]) -> None:
    row["repetitions"].append(row["repetitions"][0] | {"repetition": 1})


def skip_pauses(row: dict[str, Any]) -> None:
    row["options"]["time_scale"] = 0.0


def skip_verification(row: dict[str, Any]) -> None:
    row["options"]["verify"] = False


def find_wrong_bytes(row: dict[str, Any]) -> None:
    row["verification"]["wrong_bytes"] = 3


def change_file_system(row: dict[str, Any]) -> None:
    row["environment"]["file_system"] = "ext4"


def change_workload(row: dict[str, Any]) -> None:
    row["workload"] += "\n"
    row["workload_sha256"] = sha256(row["workload"].encode()).hexdigest()


FAULTS: Mapping[Callable[[dict[str, Any]], None], str] = {
    lose_bytes: "repetitions[0].checkpoint.dumps[1]: bytes: expected 196608, got 196607",
    lose_bytes_of_phase: (
        "repetitions[0].checkpoint.dumps[1]: bytes of phase write: expected 196608, got 196607"
    ),
    truncate_file: ("repetitions[0].checkpoint.dumps[1]: its files lack 1 bytes"),
    lose_dump: "repetitions[0].checkpoint.dumps: expected 3, got 2",
    lose_stream: "repetitions[0].streams: expected checkpoint, viz; got checkpoint",
    change_method: "repetitions[0].viz.method: expected posix, got mpiio",
    change_ranks: "environment.ranks: expected 16, got 1",
    repeat: "repetitions: expected 1, got 2",
    skip_pauses: "options.time_scale: expected 0.1, got 0.0",
    skip_verification: "options.verify: expected True, got False",
    find_wrong_bytes: "verification.wrong_bytes: expected 0, got 3",
    change_file_system: "storage.type: ext4, but the partition says tmpfs",
    change_workload: "workload: another descriptor was played, SHA-256",
}


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


def test_a_complete_result_proves_the_work(tmp_path: Path) -> None:
    text = sample().to_text()
    assert faults_of(played(text, "posix", 0.1, "tmpfs"), text, tmp_path) == []


@pytest.mark.parametrize("spoil", FAULTS, ids=lambda f: f.__name__)
def test_each_fault_is_seen(spoil: Callable[[dict[str, Any]], None], tmp_path: Path) -> None:
    text = sample().to_text()
    row = played(text, "posix", 0.1, "tmpfs")
    spoil(row)
    found = faults_of(row, text, tmp_path)
    assert found and found[0].startswith(FAULTS[spoil])


@pytest.mark.parametrize(
    ("growth", "good"),
    [
        ([65536] * 4, True),
        ([131072, 0, 131072, 0], True),
        ([65536, 0, 131072, 65536], False),
    ],
)
def test_an_open_file_may_grow_early_but_not_late(
    growth: list[int], good: bool, tmp_path: Path
) -> None:
    text = sample().to_text()
    row = played(text, "posix", 0.1, "tmpfs")
    for dump, file_bytes in zip(row["repetitions"][0]["streams"][1]["dumps"], growth, strict=True):
        dump["file_bytes"] = file_bytes
    found = faults_of(row, text, tmp_path)
    assert found == ([] if good else ["repetitions[0].viz.dumps[1]: its files lack 65536 bytes"])


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
    found = faults_of(row, text, tmp_path)
    fault = "repetitions[0].checkpoint.dumps[1]: its files lack 1 bytes"
    assert found == ([fault] if lost and files != "update" else [])


@pytest.mark.parametrize(
    ("type_", "on", "good"),
    [
        ("disk", "ext4", True),
        ("disk", "overlayfs", True),
        ("disk", "tmpfs", False),
        ("lustre", "lustre", True),
        ("lustre", "nfs", False),
    ],
)
def test_file_system_is_the_one_of_the_partition(
    type_: str, on: str, good: bool, tmp_path: Path
) -> None:
    text = sample().to_text()
    path = tmp_path / "result.json"
    path.write_text(json.dumps(played(text, "posix", 0.1, on)))
    found = list(
        completeness.faults(measurements.read(path), replace(asked(text), file_system=type_))
    )
    assert (found == []) is good


def test_verdict_states_the_exact_error(tmp_path: Path) -> None:
    row = played(sample().to_text(), "posix", 0.1, "tmpfs")
    the_dump(row)["bytes"] -= 8653  # of 884,736
    path = tmp_path / "result.json"
    path.write_text(json.dumps(row))
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
    made = Session(tmp_path, sample())
    made.program("understudy-replay", LISTED)
    return made


def cases(printed: str) -> tuple[int, int, int]:
    """How many cases ran, failed and were skipped, as ReFrame counts them."""
    found = re.search(r"Ran (\d+)/\d+ test case.*\((\d+) failure.*, (\d+) skipped", printed)
    assert found, printed
    ran, failed, skipped = map(int, found.groups())
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
    ("ranks", "nodes", "counts"),
    [
        (16, 1, [1, 16]),
        (65 * 16, 65, [65, 1008]),
        (32768, 2048, [1008]),
    ],
)
def test_stripe_counts_follow_nodes_and_cores(
    titan: Session, ranks: int, nodes: int, counts: list[int]
) -> None:
    done = titan.run("--dry-run", "--system=titan", "-S", "scaling=weak", "-S", f"ranks={ranks}")
    assert done.returncode == 0, done.stdout + done.stderr
    scripts = "\n".join(titan.scripts())
    asked = re.findall(r"understudy-replay .* --stripe-count (\d+) ", scripts)
    assert sorted(map(int, asked)) == counts
    assert scripts.count(f"#PBS -l nodes={nodes}:ppn=16\n") == scripts.count("#!/bin/bash")


def test_too_many_ranks_are_skipped_with_the_reason(titan: Session) -> None:
    ranks = 16 * 18689
    done = titan.run("--dry-run", "--system=titan", "-S", "scaling=weak", "-S", f"ranks={ranks}")
    ran, failed, skipped = cases(done.stdout)
    assert (ran, failed, skipped) == (0, 0, 3 * len(METHODS) + 2)
    said("ranks-need-nodes-titan", done.stdout, ranks=ranks)


def test_a_real_run_without_the_batch_system_ends_with_one_message(titan: Session) -> None:
    need("no qsub")
    done = titan.run("-r", "--system=titan")
    assert done.returncode == 1
    said("system-titan-needs-qsub", done.stderr)
    assert "RUN" not in done.stdout


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        (
            ["ranks=8"],
            "scaling=none with ranks=8: give both, as in -S scaling=weak -S ranks=64; "
            "for another check, name it, as in -S Ior.ranks=64",
        ),
        (["scaling=wide", "ranks=8"], "scaling rule 'wide': expected strong or weak"),
    ],
)
def test_an_invalid_variable_ends_with_one_message(
    titan: Session, variables: list[str], message: str
) -> None:
    done = titan.run("-l", "--system=titan", *(a for v in variables for a in ("-S", v)))
    assert done.returncode == 1
    assert done.stderr == f"understudy: {message}\n"


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


@pytest.mark.parametrize("name", ["Ior", "Mdtest", "Overhead"])
def test_a_check_that_is_not_selected_refuses_no_value(titan: Session, name: str) -> None:
    done = titan.run("-l", "--system=titan", "-S", "ranks=2", names=f"^{name}")
    assert done.returncode == 0, done.stderr
    assert f"- {name} " in done.stdout and "give both" not in done.stderr
    done = titan.run("-l", "--system=titan", "-S", "ranks=2", names=f"^(Replay|{name})")
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
        ("", "/understudy-replay --list: expected a line '<method> available' or"),
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


@pytest.mark.parametrize(
    ("variable", "name"),
    [
        ("Fidelity.tolerance=0.2", "tolerance_percent"),
        ("Skel.tolerance=20", "tolerance_percent"),
        ("Schedule.tolerance=2", "pauses_tolerance_percent"),
        ("Simulation.mean_tolerance=0.2", "mean_tolerance_percent"),
        ("Simulation.max_tolerance=1", "max_tolerance_percent"),
    ],
)
def test_a_former_variable_ends_with_one_message_that_names_the_new_one(
    titan: Session, variable: str, name: str
) -> None:
    done = titan.run("-l", "--system=localhost", "-S", variable)
    given = variable.partition(".")[2]
    assert (done.returncode, done.stderr) == (
        1,
        f"understudy: -S {given}: the variable is now {name}, in percent\n",
    )


@pytest.fixture
def here(tmp_path: Path) -> Session:
    """The host itself; its mpirun does not start the player but leaves a prepared result, as if
    the job had made it."""
    made = Session(tmp_path, sample())
    made.program("mpirun", f"{of_this_job(tmp_path / 'made.json')} >result.json")
    made.program("understudy-replay", LISTED)
    return made


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
    leave(here, played(here.text, "posix", 0.1, "tmpfs"))
    done = replay_here(here)
    assert done.returncode == 0, done.stdout + done.stderr
    assert cases(done.stdout) == (1, 0, 0)
    said("verdict-sample-posix-localhost", done.stdout)
    assert re.search(
        r"P: checkpoint_bandwidth: 6\.597\d* MiB/s", done.stdout
    )  # 622,592 B in 0.09 s
    kept = here.folder / "reframe/output/localhost/tmpfs/mpi"
    names = sorted(p.name for p in kept.glob("*/*.json"))
    assert names == ["result.json", "run.json", "workload.json"]


@pytest.mark.parametrize("spoil", [lose_bytes, lose_stream], ids=lambda f: f.__name__)
def test_a_check_fails_with_the_fault(
    spoil: Callable[[dict[str, Any]], None], here: Session
) -> None:
    row = played(here.text, "posix", 0.1, "tmpfs")
    spoil(row)
    leave(here, row)
    done = replay_here(here)
    assert done.returncode == 1
    assert cases(done.stdout) == (1, 1, 0)
    said("verdict-sample-posix-localhost-2", done.stdout, spoil=FAULTS[spoil])
    said("sanity-error-result-json", done.stdout, spoil=FAULTS[spoil])


@pytest.mark.parametrize("stale", ["started", "directory"])
def test_a_measurement_of_another_job_fails(stale: str, here: Session) -> None:
    """Even with all of the bytes: this job moved none."""
    leave(here, played(here.text, "posix", 0.1, "tmpfs"))
    [other] = {"started", "directory"} - {stale}
    made = of_this_job(here.folder / "made.json", other)
    here.program("mpirun", f"{made} >result.json")
    done = replay_here(here)
    assert done.returncode == 1 and cases(done.stdout) == (1, 1, 0)
    said("result-json-environment-expected", done.stdout, stale=stale)
    assert record_of(here, "stage").failed


def test_an_empty_measurement_fails(here: Session) -> None:
    leave(here, {})
    assert "schema: expected understudy/<kind>/<n>, found nothing" in replay_here(here).stdout


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


def test_a_session_leaves_a_performance_log_without_escapes(here: Session) -> None:
    """What collectors of logs and cron read: output that is no terminal has no colours."""
    leave(here, played(here.text, "posix", 0.1, "tmpfs"))
    del here.environment["RFM_COLORIZE"]
    for _ in range(2):
        done = replay_here(here)
        assert done.returncode == 0 and "\x1b" not in done.stdout + done.stderr
    [log] = (here.folder / "out").rglob("perflogs/localhost/tmpfs/*/Replay.log")
    head, *lines = log.read_text().splitlines()
    assert "checkpoint_bandwidth_value|checkpoint_bandwidth_unit" in head
    assert len(lines) == 2 and all(line.count("|") == head.count("|") for line in lines)


def test_a_later_session_replaces_no_record(here: Session) -> None:
    leave(here, played(here.text, "posix", 0.1, "tmpfs"))
    for _ in range(2):
        assert replay_here(here).returncode == 0
    kept = [runs.load(path) for path in (here.folder / "out" / "records").glob("*/*.json.gz")]
    assert len({run.identity.session for run in kept}) == 2
    assert record_of(here, "output") in kept


def test_a_failed_run_leaves_its_record_with_the_error_message(here: Session) -> None:
    here.program("mpirun", "echo 'understudy: -t: 4m: expected 4MiB, 4MB or bytes' >&2; exit 2")
    done = replay_here(here)
    assert done.returncode == 1
    message = "ended with status 2: understudy: -t: 4m: expected 4MiB, 4MB or bytes"
    assert message in done.stdout
    run = record_of(here, "stage")
    assert run.failed and run.measurement is None and run.samples == ()
    assert run.producer.exit_status == 2
    assert message in str(run.producer.failure)
    assert run.place.partition == "tmpfs" and run.storage.mount_point == "/dev/shm"
    assert run.producer.command_line[0] == "understudy-replay"


def test_a_file_that_another_rank_removed_is_not_the_cause(here: Session) -> None:
    told = (
        "understudy: rank 4 on n7: posix: cannot open /s/a: No such file or directory (posix.c:1)",
        "understudy: rank 0 on n5: posix: cannot write /s/a: No space left on device (posix.c:2)",
    )
    here.program("mpirun", f"printf '%s\\n' '{told[0]}' '{told[1]}' >&2; exit 1")
    done = replay_here(here)
    assert done.returncode == 1
    said("verdict-sample-posix-localhost-3", done.stdout, told=told[1])


def test_the_rank_that_others_wait_for_is_told(here: Session) -> None:
    waits, hangs = (
        f"understudy: rank {rank} on n1: no progress for 9 s: stream field, dump 1, {where}"
        for rank, where in ((1, "waits for other ranks"), (0, "write, call 1"))
    )
    here.program("mpirun", f"printf '%s\\n' '{waits}' '{hangs}' >&2; exit 1")
    done = replay_here(here)
    told = f"{hangs}; nothing from ranks 2, 3, 4, 5 and 10 more"
    said("job-ended-status", done.stdout, told=told)


def test_a_measurement_that_proves_no_work_is_recorded_as_failed(here: Session) -> None:
    row = played(here.text, "posix", 0.1, "tmpfs")
    lose_bytes(row)
    leave(here, row)
    assert replay_here(here).returncode == 1
    run = record_of(here, "stage")
    assert run.failed and run.producer.exit_status == 0
    assert run.producer.failure == f"result.json: {FAULTS[lose_bytes]}"


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
    found = producers.load_all(producers.find([here.folder / "reframe"]))
    assert sorted(run.failed for _, run in found) == [False, True]


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


REFERENCE = """\
Replay:
  $index: [$partition, workload, method]
  localhost:tmpfs:
    sample:
      posix:
        checkpoint_bandwidth: [{bandwidth}, -0.1, null, MiB/s]
"""


@pytest.mark.parametrize(("bandwidth", "status"), [(7, 0), (70, 1)])
def test_a_reference_is_met_or_fails(here: Session, bandwidth: int, status: int) -> None:
    leave(here, played(here.text, "posix", 0.1, "tmpfs"))
    (here.folder / "localhost.yaml").write_text(REFERENCE.format(bandwidth=bandwidth))
    here.environment["RFM_REFERENCE_PREFIX"] = str(here.folder)
    done = replay_here(here)
    assert done.returncode == status, done.stdout
    assert ("failed to meet reference(s): checkpoint_bandwidth=6.597" in done.stdout) is bool(
        status
    )


@pytest.mark.parametrize(
    ("spoil", "bandwidth", "message"),
    [
        ("", 7, None),
        ("", 70, "failed to meet reference(s): checkpoint_bandwidth=6.597"),
        (
            "0",
            7,
            "no reference for checkpoint_bandwidth, viz_bandwidth, elapsed on localhost:tmpfs "
            "under condition {key}; understudy references",
        ),
    ],
)
def test_references_hold_under_their_condition(
    here: Session, spoil: str, bandwidth: int, message: str | None
) -> None:
    leave(here, played(here.text, "posix", 0.1, "tmpfs"))
    here.environment["RFM_REFERENCE_PREFIX"] = str(here.folder)
    accept = ("-S", "Replay.require_reference=1")
    said("no-reference-checkpoint-bandwidth", replay_here(here, *accept).stdout)
    [record] = (here.folder / "out" / "records").rglob("*.json.gz")
    key = site_references.condition(runs.load(record))
    names = {
        "checkpoint_bandwidth": [bandwidth, -0.1, None, "MiB/s"],
        "viz_bandwidth": [0.01, -0.1, None, "MiB/s"],
        "elapsed": [2, None, 0.1, "s"],
    }
    section = {"$index": ["$partition", "condition"], "localhost:tmpfs": {key + spoil: names}}
    (here.folder / "localhost.yaml").write_text(yaml.safe_dump({"Replay": section}))
    done = replay_here(here, *accept)
    assert done.returncode == (message is not None), done.stdout + done.stderr
    assert message is None or message.format(key=key) in done.stdout
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
        (1.0, 10, 0),
        (1.09, 10, 0),
        (1.11, 10, 1),
        (1.11, 12, 0),
        (1.01, 0.5, 1),
    ],
)
def test_volume_may_differ_by_the_tolerance(
    here: Session, growth: float, percent: float, status: int
) -> None:
    row = played(here.text, None, 0.1, "tmpfs")
    the_dump(row)["file_bytes"] = round(the_dump(row)["file_bytes"] * growth)
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
    made = simulation.workload_of(strict.parse(Simulation, text, "sample"), "sample")
    session = Session(tmp_path, made)
    session.program("mpirun", f"{of_this_job(tmp_path / 'made.json')} >result.json")
    session.program("understudy-replay", LISTED)
    (tmp_path / "simulations").mkdir()
    (tmp_path / "simulations" / "sample.json").write_text(text)
    session.environment["UNDERSTUDY_SIMULATIONS"] = str(tmp_path / "simulations")
    return session


def hold_against_stated(session: Session, *arguments: str) -> subprocess.CompletedProcess[str]:
    return session.run("-r", "--system=localhost:disk", *arguments, check="Simulation")


@pytest.mark.parametrize(
    ("stream", "dump", "container", "missed"),
    [
        (0, 0, 0, None),
        (0, 0, 23_900, None),  # of 8 MB: 0.3 %, the mean 0.1 %
        (0, 0, 24_100, "checkpoint_mean_error=0.1004"),
        (0, 0, 40_100, "checkpoint_max_error=0.50125"),
        (1, 3, 15_900, None),  # of 16 MB: 0.1 %
        (1, 3, 16_100, "total_error=0.1006"),
    ],
)
def test_sizes_are_held_against_those_stated(
    stated_here: Session, stream: int, dump: int, container: int, missed: str | None
) -> None:
    row = played(stated_here.text, None, 0.0, "ext4")
    row["repetitions"][0]["streams"][stream]["dumps"][dump]["file_bytes"] += container
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


@pytest.mark.parametrize(("late", "error"), [(0.0, None), (0.149, None), (0.151, "1.006")])
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
    found = dict(re.findall(r"P: (\w+): ([\d.e-]+) %", done.stdout))
    assert float(found["payload_error"]) == 0
    assert 0 < float(found["checkpoint_mean_error"]) <= float(found["checkpoint_max_error"]) < 0.1
    assert 0 < float(found["state_error"]) < float(found["total_error"]) < 0.1
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
    ran, failed, skipped = cases(done.stdout)
    assert (ran + skipped, failed) == (2 * (len(player.methods()) + 2), 0)
    assert ran >= len(player.methods()) + 1
    records = producers.load_all(producers.find([session.folder / "reframe"]))
    assert len(records) == ran
    for path, run in records:
        assert path.name == "run.json" and not run.failed and run.samples
        assert run.place.system == "localhost" and run.place.partition in ("tmpfs", "disk")
        assert run.storage.type and run.software.program_sha256
