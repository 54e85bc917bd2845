"""Every file of the plugin directories checks, systems and references."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import player
from tests.support.said import raises, said
from understudy.contracts import workload
from understudy.errors import UnderstudyError
from understudy.paths import ROOT, directories, files, where
from understudy.reframe import systems
from understudy.reframe.bases import references
from understudy.reframe.bases.fitting import even_ranks_per_node
from understudy.reframe.bases.played import AS_DESCRIBED
from understudy_papers.judge import claims

CHECKS = sorted((ROOT / "checks").glob("*.py"))
SYSTEMS = list(files("systems", ".py").values())
EXPECTED = list(files("references", ".yaml").values())


def test_no_plugin_directory_is_empty() -> None:
    assert {p.stem for p in CHECKS} >= {"replay", "fidelity"}
    assert {p.stem for p in SYSTEMS} >= {"localhost", "titan"}


def reframe(
    folder: Path, *arguments: str | Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """ReFrame on all checks, on all workloads."""
    environment = {
        **os.environ,
        "PATH": f"{Path(player.program()).parent}:{os.environ['PATH']}",
        "RFM_CONFIG_FILES": str(ROOT / "configs" / "settings.py"),
        "RFM_PREFIX": str(folder / "reframe"),
        "RFM_REPORT_FILE": str(folder / "report.json"),
        "RFM_COLORIZE": "0",
        **variables,
    }
    command = [Path(sys.executable).parent / "reframe", "-c", ROOT / "checks", *arguments]
    return subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def fitting(system: str) -> int:
    """How many workloads fit all partitions of the system."""
    [row] = [s for s in systems.load(directories("systems"))[0] if s["name"] == system]

    def holds(extras: dict[str, Any], value: workload.Workload) -> bool:
        on_a_node = even_ranks_per_node(value.ranks, extras[systems.RANKS_PER_NODE])
        fits = value.bytes <= extras.get(systems.MAX_BYTES, value.bytes)
        return bool(fits and value.ranks // on_a_node <= extras[systems.MAX_NODES])

    all_ = [workload.get(name) for name in workload.names()]
    return sum(all(holds(p["extras"], item) for p in row["partitions"]) for item in all_)


def classes(check: Path) -> list[str]:
    return re.findall(r"(?m)^@rfm\.simple_test\nclass (\w+)", check.read_text())


@pytest.mark.parametrize("path", CHECKS, ids=lambda p: p.stem)
def test_a_check_asks_one_question_and_names_no_system(path: Path) -> None:
    text = path.read_text()
    assert re.match(r'"""[^"]*\?"""\n', text), "the docstring is the question"
    assert len(classes(path)) == 1
    for system in SYSTEMS:
        assert system.stem not in text


@pytest.mark.parametrize("path", SYSTEMS, ids=lambda p: p.stem)
def test_a_system_states_what_checks_read(path: Path) -> None:
    result, environments = systems.load([path.parent])
    system = next(s for s in result if s["name"] == path.stem)
    items = [e["name"] for e in environments if path.stem in e["target_systems"]]
    assert system["partitions"]
    for partition in system["partitions"]:
        assert list(systems.faults(partition)) == []
        assert systems.MPI in partition["features"]
        assert partition["max_jobs"] == 1, "replays must not run at the same time"
        assert partition["environs"] and set(partition["environs"]) <= set(items)


@pytest.mark.parametrize("path", SYSTEMS, ids=lambda p: p.stem)
def test_every_case_of_a_system_has_a_job_script(path: Path, tmp_path: Path) -> None:
    every = path.stem == "titan"  # of the others, every check on fewer workloads
    names = "%workload=(n-1|mphys-a)%|^Skel%method=POSIX.*gts|^Transfer%|^Ior%|^Mdtest%|^Claims"
    names += "|^Overhead|^Operations|^Shutdown"
    names += (
        "|^Sweep.*=(default|aggregators=.*|stripe_count=cores)$|^Scaling.*=(default|nodes=[14])$"
    )
    some = [] if every else ["-n", names]
    done = reframe(tmp_path, "--dry-run", f"--system={path.stem}", *some)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stdout  # ReFrame skips a broken check with one
    match = re.search(r"Ran (\d+)/(\d+) test case.*\(0 failure.*, (\d+) skipped", done.stdout)
    assert match, done.stdout
    ran, all_, skipped = map(int, match.groups())
    workloads = fitting(path.stem) if every else 2
    assert ran + skipped == all_ and ran >= workloads * len(player.methods())
    for check in CHECKS:
        assert f" {classes(check)[0]} " in done.stdout, "no case of the check"
    reasons = (
        r"\d+ ranks need |\d+ bytes exceed |\S+: no program that writes by ADIOS"
        r"|no publication claims anything of|judged on \S+"
        r"|stripe count \d+ is|\S+ asks for the same as|\S+: no collective calls, so that"
        r"|skipped due to skipped dependencies|\S+ names no original, nor is one given"
        "|taurus:scratch: users cannot override the striping"
        "|tinis:gpfs: GPFS gives users no control of striping"
    )
    assert len(re.findall(rf"SKIP \].*\[(?:{reasons})", done.stdout)) == skipped
    stage = tmp_path / "reframe" / "stage"
    items = [path for name in ("job", "build") for path in stage.rglob(f"rfm_{name}.sh")]
    assert len({path.parent for path in items}) == ran
    scripts = [path.read_text() for path in items if path.name == "rfm_job.sh"]
    starts = re.compile(
        r"understudy-replay -w (?:workload|timed)\.json |/build/\w+_write -c |SKELETON_OPTIONS="
        "| ior -a | mdtest -n | understudy-darshan-shutdown |\ntrue"
    )
    assert all(starts.search(script) for script in scripts)
    [row] = [s for s in systems.load([path.parent])[0] if s["name"] == path.stem]
    parts = {part["name"]: part for part in row["partitions"]}
    jobs = {p: parts[p.relative_to(stage).parts[1]] for p in items if p.name == "rfm_job.sh"}
    assert [fault for p, part in jobs.items() for fault in job_faults(p.read_text(), part)] == []
    if "local" not in {part["scheduler"] for part in parts.values()}:
        assert limits_listed(tmp_path, path.stem, *some) == sum(map(limit_of, scripts)) > 0


def limits_listed(folder: Path, system: str, *arguments: str, **variables: str) -> int:
    """Seconds of the time limits of all jobs, as a listing has them."""
    listed = reframe(folder, "-l", f"--system={system}", *arguments, **variables)
    [total] = re.findall(r"time limits of their jobs are (\S+) in total", listed.stderr)
    return of_hms(total)


def of_hms(text: str) -> int:
    hours, minutes, seconds = map(int, text.split(":"))
    return 3600 * hours + 60 * minutes + seconds


def limit_of(script: str) -> int:
    """Seconds for which a job asks; 0 of one that only reads records on this host."""
    match = re.search(r"(?m)^#(?:SBATCH --time=|PBS -l walltime=)([0-9:]+)$", script)
    assert match or re.search(r"\ntrue\n*$", script), script
    return of_hms(match[1]) if match else 0


def test_the_time_limits_of_the_machine_at_hand_are_those_listed(tmp_path: Path) -> None:
    """As a system with a batch system, whose jobs state them."""
    text = (where("systems") / "localhost.py").read_text()
    text = text.replace('"localhost"', '"asked"').replace('"local"', '"slurm"')
    (tmp_path / "site" / "systems").mkdir(parents=True)
    (tmp_path / "site" / "systems" / "asked.py").write_text(text)
    site = {"UNDERSTUDY_PATH": str(tmp_path / "site")}
    done = reframe(tmp_path, "--dry-run", "--system=asked", **site)
    assert done.returncode == 0, done.stdout + done.stderr
    paths = (tmp_path / "reframe" / "stage").rglob("rfm_job.sh")
    limits = sum(limit_of(path.read_text()) for path in paths)
    assert limits_listed(tmp_path, "asked", **site) == limits > 0


# What a job asks of the batch system and of the launcher: nodes, ranks, ranks on each node.
ASKED = {
    "torque": r"(?m)^#PBS -l nodes=(?P<nodes>\d+):ppn=(?P<each>\d+)$",
    "pbs": r"(?m)^#PBS -l select=(?P<nodes>\d+):mpiprocs=(?P<each>\d+):ncpus=(?P=each)$",
    "slurm": r"(?m)^#SBATCH --ntasks=(?P<ranks>\d+)\n#SBATCH --ntasks-per-node=(?P<each>\d+)$",
}
STARTED = {
    "alps": r"(?m)^aprun -n (?P<ranks>\d+) -N (?P<each>\d+) ",
    "mpirun": r"(?m)^mpirun -np (?P<ranks>\d+) ",
    "mpiexec": r"(?m)^mpiexec -n (?P<ranks>\d+) ",
    "srun": r"(?m)^srun --kill-on-bad-exit=1 ",
}


def job_faults(script: str, partition: dict[str, Any]) -> Iterator[str]:
    """Where the lines of a job do not fit each other or the nodes; one that starts nothing, as it
    only reads records, has none and runs on this host."""
    if partition["scheduler"] == "local" or re.search(r"\ntrue\n*$", script):
        return
    match = re.search(ASKED[partition["scheduler"]], script)
    started = list(re.finditer(STARTED[partition["launcher"]], script))
    if match is None or not started:
        yield f"no batch line or no launcher:\n{script}"
        return
    each = int(match["each"])
    if each > partition["extras"][systems.RANKS_PER_NODE]:
        yield f"{each} ranks on a node:\n{script}"
    for line in started:
        words = match.groupdict() | line.groupdict()
        nodes = int(words.get("nodes") or -(-int(words["ranks"]) // each))
        ranks = int(words["ranks"])
        if (nodes - 1) * each >= ranks or ranks > nodes * each or int(words["each"]) != each:
            yield f"{ranks} ranks on {nodes} nodes:\n{script}"


def test_the_example_of_the_how_to_is_a_check(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "how-to" / "add-a-check.md").read_text()
    [example] = re.findall(r"(?s)```python\n(.*?)```", text)
    (tmp_path / "collective.py").write_text(example)
    done = reframe(tmp_path, "-c", tmp_path, "--dry-run", "--system=localhost", "-n", "Collective")
    assert done.returncode == 0, done.stdout + done.stderr
    scripts = [p.read_text() for p in (tmp_path / "reframe" / "stage").rglob("rfm_job.sh")]
    assert len(scripts) == 2 * 2 * fitting("localhost")  # methods, partitions, workloads
    assert all(" -t 16777216 -c " in script for script in scripts)


SYSTEM = """\
from understudy.reframe.systems import *
system = {{"name": "x", "partitions": per_filesystem({{"features": [MPI]}},
    scratch={{"features": [LUSTRE, STRIPING], "extras": {extras}}})}}
environments = []
"""
GOOD = {
    "scratch": "/s",
    "type": "lustre",
    "max_nodes": 4,
    "ranks_per_node": 2,
    "needs": ["sbatch"],
    "stripe_count": 1,
    "stripe_count_max": 8,
}


def load_one(folder: Path, extras: dict[str, Any]) -> list[dict[str, Any]]:
    (folder / "x.py").write_text(SYSTEM.format(extras=extras))
    return systems.load([folder])[0]


def test_partitions_inherit_from_their_nodes(tmp_path: Path) -> None:
    [system] = load_one(tmp_path, GOOD)
    [partition] = system["partitions"]
    assert partition["name"] == "scratch"
    assert partition["features"] == ["mpi", "lustre", "striping"]
    assert partition["extras"] == GOOD


@pytest.mark.parametrize("extra", GOOD)
def test_a_missing_extra_is_one_message(extra: str, tmp_path: Path) -> None:
    with pytest.raises(UnderstudyError) as error:
        load_one(tmp_path, {k: v for k, v in GOOD.items() if k != extra})
    kind = "int | None" if extra.startswith("stripe") else type(GOOD[extra]).__name__
    said(
        "py-partition-scratch-extra",
        str(error.value),
        tmp_path=tmp_path,
        extra=f"{extra!r}",
        kind_=kind,
    )


def test_an_extra_of_a_wrong_type_is_one_message(tmp_path: Path) -> None:
    with raises(UnderstudyError, "extra-max-nodes-expected"):
        load_one(tmp_path, {**GOOD, "max_nodes": "4"})


def test_a_file_without_a_system_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("environments = []\n")
    with raises(UnderstudyError, "py-system-missing"):
        systems.load([tmp_path])


def test_reframe_ends_with_that_message(tmp_path: Path) -> None:
    (tmp_path / "systems").mkdir()
    (tmp_path / "systems" / "x.py").write_text("environments = []\n")
    done = reframe(tmp_path, "-l", "--system=x", UNDERSTUDY_PATH=str(tmp_path))
    assert done.returncode == 1
    said("systems-py-system-missing", done.stderr, tmp_path=tmp_path)


@pytest.mark.parametrize(
    ("kind", "status", "action"),
    [("systems", "0", "-r"), ("systems", "3", "-l"), ("checks", "", "-r"), ("checks", "0", "-l")],
)
def test_a_plugin_that_ends_python_ends_the_session_with_one_message(
    kind: str, status: str, action: str, tmp_path: Path
) -> None:
    """Not with status 0, and nothing run."""
    path = tmp_path / kind / "x.py"
    path.parent.mkdir()
    check = "@rfm.simple_test\nclass X(rfm.RunOnlyRegressionTest):\n    pass\n"
    path.write_text(f"import sys\nimport reframe as rfm\nsys.exit({status})\n{check}")
    here = [] if kind == "systems" else ["-c", path]
    done = reframe(tmp_path, action, "--system=localhost", *here, UNDERSTUDY_PATH=str(tmp_path))
    assert done.returncode == 1, done.stdout
    said("file-ends-python-sys", done.stderr, path=path, value=status or None)


def reference_faults(system: str, text: str) -> Iterator[str]:
    """Keys of a file of references that name nothing, and units that are not the check's."""
    [row] = [s for s in systems.load(directories("systems"))[0] if s["name"] == system]
    partitions = {f"{system}:{p['name']}" for p in row["partitions"]}
    workload_ = {
        "$partition": partitions,
        "workload": set(workload.names()),
        "method": {*player.methods(), AS_DESCRIBED},
    }
    for check, entries in yaml.safe_load(text).items():
        if check == claims.KEY:
            continue
        if check not in {c for p in CHECKS for c in classes(p)}:
            yield f"{check}: no such check"
        index = entries.pop("$index", ())
        if index[:1] != ["$partition"]:
            yield f"{check}: $index: expected a list that begins with $partition"
        for keys, values in _leaves(entries, ()):
            for key, axis in zip(keys, index, strict=False):
                names = workload_.get(axis, {key})
                if key not in names:
                    yield f"{check}: {key}: expected one of {', '.join(sorted(names))}"
            unit = "s" if keys[-1] in ("elapsed", "write_time") else "MiB/s"
            if values[3] != unit:
                yield f"{check}: {keys[-1]}: expected the unit {unit}, got {values[3]}"


def _leaves(entries: Any, keys: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    if not isinstance(entries, dict):
        yield keys, entries[-1] if entries[0] == "$xfail" else entries
        return
    for key, value in entries.items():
        yield from _leaves(value, (*keys, key))


def test_references_name_what_exists() -> None:
    assert {p.stem for p in EXPECTED} >= {"titan", "archer", "cab", "tinis", "edison"}
    for path in EXPECTED:
        claims.load(path)
        assert list(reference_faults(path.stem, path.read_text())) == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("localhost:nvme: {w: {posix: {elapsed: [1, null, 0.1, s]}}}", "localhost:nvme: expected"),
        ("localhost:disk: {nothing: {posix: {elapsed: [1, null, 0.1, s]}}}", "nothing: expected"),
        ("localhost:disk: {w: {fortran: {elapsed: [1, null, 0.1, s]}}}", "fortran: expected"),
        (
            "localhost:disk: {w: {posix: {a_bandwidth: [1, -0.1, null, GB/s]}}}",
            "expected the unit",
        ),
        (
            "localhost:disk: {w: {posix: {elapsed: [$xfail, x, [1, null, 0, h]]}}}",
            "expected the unit",
        ),
        ("localhost:disk: {w: {posix: {elapsed: [1, null, 0.1, s]}}}", None),
    ],
)
def test_a_fault_in_references_is_seen(
    line: str, fault: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "w.json").touch()
    monkeypatch.setenv("UNDERSTUDY_WORKLOADS", str(tmp_path))
    text = f"Replay:\n  $index: [$partition, workload, method]\n  {line}\n"
    faults_ = list(reference_faults("localhost", text))
    assert (faults_ == []) if fault is None else (fault in " ".join(faults_))


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("[1.0e9, null, null, MiB/s]", "YAML takes 1e9 for a text"),
        ("[.inf, null, 0.1, s]", "got [inf"),
        ("[1]", "expected [value"),
        ("[1, -0.1, null, 5]", "expected [value"),
        ("7", "expected [value"),
        ("[1, -0.1, null, s]\n      elapsed: [2, null, null, s]", "elapsed is there twice"),
        ("[$xfail, x, [1, null, 0, h]]", None),
        ("[1, -0.1, null, s]", None),
    ],
)
def test_references_that_reframe_would_leave_out_end_the_session(
    entry: str, told: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "x.yaml"
    text = f"Replay:\n  $index: [$partition, workload]\n  x:p:\n    w:\n      elapsed: {entry}\n"
    path.write_text(text)
    if told is None:
        assert set(references.read(path)) == {"Replay"}
        return
    with pytest.raises(SystemExit) as error:
        references.read(path)
    assert str(error.value).startswith(f"understudy: {path}: ") and told in str(error.value)


def test_a_scratch_directory_is_one_word_of_the_shell(tmp_path: Path) -> None:
    for name in ("a b", 'q"uote', "$(touch x)", "back`tick`", "new\nline", "it's"):
        result = f"$UNDERSTUDY_HERE/{name}/${{UNDERSTUDY_HERE}}"
        done = subprocess.run(
            ["bash", "-c", f"printf %s {systems.quoted(result)}"],
            capture_output=True,
            text=True,
            env={"UNDERSTUDY_HERE": "/h"},
            cwd=tmp_path,
            check=True,
        )
        assert done.stdout == f"/h/{name}//h"
    unset = [
        "bash",
        "-c",
        f"set -e; x=$(mktemp -d -p {systems.quoted('$NONE_SUCH')}); echo here",
    ]
    done = subprocess.run(unset, capture_output=True, text=True, env={}, check=False)
    assert done.returncode != 0 and done.stdout == "" and said("none-such-set", done.stderr)
    assert list(tmp_path.iterdir()) == []
    with raises(UnderstudyError, "extra-scratch-expected-directory"):
        load_one(tmp_path, GOOD | {"scratch": ""})
