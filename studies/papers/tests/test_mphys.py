"""The five workloads of the M-Phys study against what its paper states, and how they are made."""

import json
import subprocess
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support import player, results
from understudy import cli
from understudy.contracts import strict, workload
from understudy.contracts.measurement import PlayedRepetition
from understudy.contracts.workload import Stream, Workload
from understudy.errors import UnderstudyError
from understudy.model import scaling
from understudy.paths import ROOT, where
from understudy.producers import player as reading
from understudy_papers.judge import published_sizes as judge
from understudy_papers.model import schedule, simulation
from understudy_papers.model.schedule import Timesteps
from understudy_papers.model.simulation import Accuracy, Simulation

LETTERS = "abcde"
MB, GB = 10**6, 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """Facts of a simulation in the paper (Section V-B), in decimal units."""

    ranks: int
    runtime_s: float
    checkpoints: int
    first_bytes: int
    last_bytes: int
    states: int
    viz_bytes: int


def stated(ranks: int, runtime_s: int, checkpoints: list[int], states: list[int]) -> Stated:
    """Numbers of dumps; of checkpoints the first and last bytes, of states the bytes of all, in
    MB."""
    return Stated(
        ranks=ranks,
        runtime_s=runtime_s,
        checkpoints=checkpoints[0],
        first_bytes=checkpoints[1] * MB,
        last_bytes=checkpoints[2] * MB,
        states=states[0],
        viz_bytes=states[1] * MB,
    )


STATED = {
    "a": stated(16, 119 * 60, [49, 213, 213], [50, 1750]),
    "b": stated(80, 131 * 60, [27, 259, 1900], [28, 285]),
    "c": stated(80, 131 * 60, [27, 259, 1900], [28, 20200]),
    "d": stated(80, 754, [3, 7300, 7300], [116, 1800]),
    "e": stated(80, 754, [3, 7700, 7700], [88, 1400]),
}
ERRORS = ("checkpoint_mean_error", "checkpoint_max_error", "total_error", "state_error")
# Table II of the paper, as fractions.
TABLE_II = {
    letter: Accuracy(**dict(zip(ERRORS, row, strict=True)))
    for letter, row in {
        "a": (0.0017, 0.0043, 0.0829, 0.0016),
        "b": (0.0190, 0.1622, 0.0023, 0.0001),
        "c": (0.0305, 0.1627, 0.0572, 0.0020),
        "d": (0.0114, 0.0116, 0.0188, 0.0002),
        "e": (0.0046, 0.0046, 0.0196, 0.0002),
    }.items()
}
each_simulation = pytest.mark.parametrize("letter", LETTERS)


def described(letter: str) -> Workload:
    return workload.get(f"mphys-{letter}")


def streams(letter: str) -> tuple[Stream, Stream]:
    checkpoint, visualization = described(letter).streams
    return checkpoint, visualization


def sizes(stream: Stream) -> list[int]:
    return [dump.bytes for dump in stream.steps]


def stated_checkpoints(letter: str) -> list[int]:
    """All checkpoints: as stated, or by the factors reconstructed between the stated sizes."""
    said = STATED[letter]
    if said.first_bytes == said.last_bytes:
        return [said.first_bytes] * said.checkpoints
    steps = schedule.reconstructed_growth(
        dumps=said.checkpoints,
        first_bytes=said.first_bytes,
        activation_dump=5,
        peak_dump=10,
        peak_bytes=1600 * MB,
        last_bytes=said.last_bytes,
    )
    return list(schedule.grown(said.first_bytes, (step.factor for step in steps)))


@each_simulation
def test_the_workload_is_what_its_specification_gives(letter: str) -> None:
    command = ["compose", str(where("simulations") / f"mphys-{letter}.json")]
    done = CliRunner().invoke(cli.main, command, catch_exceptions=False)
    assert done.exit_code == 0 and done.stderr == ""
    path = where("workloads") / f"mphys-{letter}.json"
    assert done.stdout_bytes == path.read_bytes() and path.stat().st_size < 90_000


def test_every_specification_has_its_workload() -> None:
    names = set(simulation.names())
    assert names >= {f"mphys-{letter}" for letter in LETTERS}
    assert names <= set(workload.names())
    with pytest.raises(UnderstudyError, match="no simulation is called 'mphys-z'; known: mphys-a"):
        simulation.get("mphys-z")


@each_simulation
def test_a_workload_is_known_as_that_of_its_simulation(letter: str) -> None:
    whole, simulated = described(letter), simulation.get(f"mphys-{letter}")
    for same in (whole, scaling.scale(whole, 8, "strong")):
        assert simulation.played_by(same) == simulated
    others = (replace(whole, runtime_s=1.0), replace(whole, name="another"))
    for other in (scaling.scale(whole, 160, "weak"), *others):
        assert simulation.played_by(other) is None


@each_simulation
def test_the_paper_s_accuracy_stands_in_the_specification(letter: str) -> None:
    published = simulation.get(f"mphys-{letter}").published
    assert published is not None
    assert (published.where, published.accuracy) == ("Table II", TABLE_II[letter])


def on_storage(letter: str, folder: Path, method: str = "hdf5") -> PlayedRepetition:
    """A result of which every dump has a container of 2,048 B."""
    row = results.result(described(letter), method=method)
    return reading.read(results.write(row, folder / "result.json")).repetitions[0]


@each_simulation
def test_accuracy_is_that_of_the_bytes_on_storage(letter: str, tmp_path: Path) -> None:
    accuracy = judge.accuracy(simulation.get(f"mphys-{letter}"), on_storage(letter, tmp_path))
    said = stated_checkpoints(letter)
    total_error = 2048 * STATED[letter].states / STATED[letter].viz_bytes
    assert accuracy.checkpoint_max_error == pytest.approx(2048 / min(said))
    assert accuracy.checkpoint_mean_error == pytest.approx(sum(2048 / s for s in said) / len(said))
    assert accuracy.total_error == pytest.approx(total_error)
    assert accuracy.state_error == pytest.approx(total_error / STATED[letter].states)


def test_no_files_and_no_states_have_no_accuracy(tmp_path: Path) -> None:
    stated, played = simulation.get("mphys-a"), on_storage("a", tmp_path)
    [checkpoint, *_] = stated.series
    with pytest.raises(UnderstudyError, match="mphys-a: expected a series of checkpoints and one"):
        judge.accuracy(replace(stated, series=(checkpoint,)), played)
    [first, *rest] = played.streams
    lost = replace(first, dumps=tuple(replace(d, file_bytes=None) for d in first.dumps))
    with pytest.raises(UnderstudyError, match="checkpoint: the method hdf5 has no files"):
        judge.accuracy(stated, replace(played, streams=(lost, *rest)))


@each_simulation
def test_stated_numbers_stand_in_the_workload(letter: str) -> None:
    said, whole = STATED[letter], described(letter)
    checkpoint, visualization = whole.streams
    assert (whole.ranks, whole.runtime_s) == (said.ranks, said.runtime_s)
    assert len(checkpoint.steps) == said.checkpoints
    assert checkpoint.steps[0].bytes == said.first_bytes
    assert checkpoint.steps[-1].bytes == said.last_bytes
    assert len(visualization.steps) == said.states
    assert visualization.bytes == said.viz_bytes


@each_simulation
def test_our_table_ii_is_zero(letter: str) -> None:
    """Payload: mean and largest error of the checkpoints, error of all states, per state."""
    checkpoint, visualization = streams(letter)
    total = STATED[letter].viz_bytes
    ours = judge.errors_of(
        stated_checkpoints(letter), total, sizes(checkpoint), sizes(visualization)
    )
    assert ours == Accuracy(**dict.fromkeys(ERRORS, 0))


@each_simulation
def test_the_paper_s_error_per_state_is_its_total_error_over_the_states(letter: str) -> None:
    table, states = TABLE_II[letter], STATED[letter].states
    total = STATED[letter].viz_bytes
    written = [0] * (states - 1) + [round(total * (1 + table.total_error))]
    errors = judge.errors_of([100, 100], total, [100, 101], written)
    assert errors.total_error == pytest.approx(table.total_error, abs=1e-8)
    assert errors.state_error == pytest.approx(table.state_error, abs=0.6e-4)
    assert (errors.checkpoint_mean_error, errors.checkpoint_max_error) == (0.005, 0.01)


def test_accuracy_of_nothing_is_one_message() -> None:
    with pytest.raises(UnderstudyError, match="1 checkpoints against 2 stated, 3 states"):
        judge.errors_of([1, 1], 1, [1], [1, 1, 1])


@each_simulation
def test_checkpoints_are_new_files_and_states_are_appended(letter: str) -> None:
    checkpoint, visualization = streams(letter)
    for stream, role, files in (
        (checkpoint, "checkpoint", "new"),
        (visualization, "visualization", "append"),
    ):
        assert (stream.role, stream.files, stream.operation) == (role, files, "write")
        assert (stream.layout, stream.method, stream.collective) == ("shared", "hdf5", True)
        blocks = [
            v.bytes // v.count // STATED[letter].ranks for d in stream.steps for v in d.variables
        ]
        assert max(blocks) <= stream.transfer_bytes  # a call per rank and variable
    assert visualization.sync and visualization.steps[0].time_s == 0


@each_simulation
def test_times_are_those_of_the_paper_s_schedule(letter: str) -> None:
    said = STATED[letter]
    steps = Timesteps(checkpoints=said.checkpoints, states=said.states)
    checkpoint, visualization = streams(letter)
    expected = [steps.time_s(step, said.runtime_s) for step in steps.state_steps]
    assert [d.time_s for d in visualization.steps] == pytest.approx(expected, abs=1e-6)
    times = [d.time_s for d in checkpoint.steps]
    if letter in "abc":
        expected = [steps.time_s(step, said.runtime_s) for step in steps.checkpoint_steps]
        assert times == pytest.approx(expected, abs=1e-6)
    else:
        gaps = {round(after - before, 3) for before, after in pairwise([0, *times])}
        assert len(gaps) == len(times)  # notably irregular
        assert times[0] > 0 and times[-1] < said.runtime_s
        [origin] = [
            p.origin for p in described(letter).provenance if p.path == "/streams/0/dumps/*/time_s"
        ]
        assert origin == "assumed"


@each_simulation
def test_states_grow_as_the_checkpoints(letter: str) -> None:
    """Equation 3: a state has its data from the checkpoint before it, the first from the first."""
    checkpoint, visualization = streams(letter)
    first = checkpoint.steps[0].bytes
    for state in visualization.steps:
        before = [d.bytes for d in checkpoint.steps if d.time_s <= state.time_s] or [first]
        grown = visualization.steps[0].bytes * before[-1] / first
        assert state.bytes == pytest.approx(grown, abs=8 + grown * 1e-6)


@each_simulation
def test_states_hold_a_subset_of_the_variables(letter: str) -> None:
    checkpoint, visualization = streams(letter)
    full = {v.name: v.count for v in checkpoint.steps[0].variables}
    for state in visualization.steps:
        fields = {v.name: v.count for v in state.variables if v.name in full}
        assert fields and all(count < full[name] for name, count in fields.items())
        more = [v.name for v in state.variables if v.name not in full]
        assert all(n.startswith(("view_", "transport")) for n in more)
        assert any(n.startswith("transport") for n in more) == (letter == "c")


def test_c_is_b_with_a_package() -> None:
    (b_checkpoint, b_states), (c_checkpoint, c_states) = streams("b"), streams("c")
    assert b_checkpoint == c_checkpoint
    for of_b, of_c in zip(b_states.steps, c_states.steps, strict=True):
        assert of_c.variables[: len(of_b.variables)] == of_b.variables
        assert all(v.name.startswith("transport") for v in of_c.variables[len(of_b.variables) :])


@pytest.mark.parametrize("letter", "bc")
def test_the_jump_is_a_package_of_variables(letter: str) -> None:
    """Until the fifth checkpoint the mesh grows; there, variables are added on as fine a mesh."""
    dumps = streams(letter)[0].steps
    names = [{v.name for v in d.variables} for d in dumps]
    added = {"component_zonal", "component_nodal", "component_index"}
    assert all(not added & n for n in names[:4]) and all(added <= n for n in names[4:])
    nodes = [next(v.shape[1] for v in d.variables if v.name == "nodal") for d in dumps]
    assert nodes[4] == pytest.approx(nodes[3], rel=0.03)
    assert dumps[4].bytes > 2 * dumps[3].bytes
    assert nodes[26] > 2.5 * nodes[4]


@each_simulation
def test_every_number_has_its_origin(letter: str) -> None:
    whole = described(letter)
    counts = workload.origins(whole)
    assert counts.pop("not stated", 0) == 0
    assert set(counts) == {"read", "derived", "assumed"} | (
        {"reconstructed"} if letter in "bc" else set()
    )
    entries = {p.path: p for p in whole.provenance}
    reconstructed = [p for p in whole.provenance if p.origin == "reconstructed"]
    assert len(reconstructed) == (26 if letter in "bc" else 0)
    assert entries["/ranks"].origin == ("derived" if letter == "a" else "assumed")
    if letter in "bc":
        factors = schedule.growth_factors(sizes(whole.streams[0]))
        for k, (entry, factor) in enumerate(zip(reconstructed, factors, strict=True)):
            assert entry.path == f"/streams/0/dumps/{k + 1}/variables"
            assert entry.how.startswith(f"F_{k} = {factor:.6f}: ")


def play(letter: str, folder: Path, *options: object) -> subprocess.CompletedProcess[str]:
    path = where("workloads") / f"mphys-{letter}.json"
    start = [] if "--dry-run" in options else ["mpirun", "-n", STATED[letter].ranks]
    command = [*start, player.program(), "-w", path, "-o", folder / "files"]
    command += ["--method", "null", *options]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


@each_simulation
def test_the_player_accepts_it(letter: str, tmp_path: Path) -> None:
    done = play(letter, tmp_path, "--dry-run")
    assert done.returncode == 0, done.stderr
    numbers = [
        line.split()[1] for line in done.stdout.splitlines() if line.startswith("    bytes  ")
    ]
    assert [int(n) for n in numbers] == [s.bytes for s in streams(letter)]


def test_the_player_moves_all_of_a(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    done = play("a", tmp_path, "--time-scale", 0, "--output", path)
    assert done.returncode == 0, done.stderr
    [repetition] = reading.read(path).repetitions
    for played, said in zip(repetition.streams, streams("a"), strict=True):
        assert [d.bytes for d in played.dumps] == sizes(said)


def test_containers_of_states_that_grow_stay_small(tmp_path: Path) -> None:
    """Most of B's states have another mesh, thus datasets of their own, in 285 MB."""
    player.needs("hdf5")
    b = described("b")
    only = replace(b, streams=b.streams[1:], provenance=())
    (tmp_path / "w.json").write_text(scaling.scale(only, 4, "strong").to_text())
    played = player.play(tmp_path / "w.json", 4, tmp_path / "data", "--time-scale=0", "--verify")
    [states] = played.repetitions[0].streams
    stored = [d.file_bytes for d in states.dumps if d.file_bytes is not None]
    assert len(stored) == 28
    assert 0 < sum(stored) - 285 * MB <= 0.0007 * 285 * MB


def compose(text: str, folder: Path, *arguments: str) -> Result:
    (folder / "spec.json").write_text(text)
    return CliRunner().invoke(
        cli.main, ["compose", str(folder / "spec.json"), *arguments], catch_exceptions=False
    )


def small() -> dict[str, Any]:
    """A specification of ours: one series, a growth sequence."""
    row: dict[str, Any] = json.loads((where("simulations") / "mphys-a.json").read_text())
    row |= {"name": "small", "ranks": 3}
    row["series"] = row["series"][:1]
    row["series"][0]["times"] = {"rule": "at", "times_s": [1, 2.5, 2.5]}
    row["series"][0]["meshes"][0] |= {
        "parts_per_rank": 1.5,
        "kind": "rectilinear",
        "dimensions": 3,
        "sizes": {"rule": "growth", "first_bytes": 1_000_001, "factors": [1.5, 2]},
    }
    return row


def test_a_specification_of_one_s_own(tmp_path: Path) -> None:
    done = compose(json.dumps(small()), tmp_path, "-o", str(tmp_path / "small.json"))
    assert done.exit_code == 0, done.stderr
    read = workload.load(tmp_path / "small.json")
    assert [d.time_s for d in read.streams[0].steps] == [1, 2.5, 2.5]
    assert sizes(read.streams[0]) == [1_000_001, 1_500_002, 3_000_003]
    assert {v.shape[0] for v in read.streams[0].steps[0].variables if v.type != "byte"} == {4}
    again = compose(json.dumps(small()), tmp_path, "-o", str(tmp_path / "small.json"))
    assert again.exit_code == 2 and "exists already" in again.stderr


def test_the_example_of_the_docs_is_a_specification(tmp_path: Path) -> None:
    example = (ROOT / "docs" / "plume.json").read_text()
    done = compose(example, tmp_path, "-o", str(tmp_path / "plume.json"))
    assert done.exit_code == 0, done.stderr
    checkpoint, visualization = workload.load(tmp_path / "plume.json").streams
    assert sizes(checkpoint) == [40 * MB, 44 * MB, 110 * MB, 121 * MB]
    assert visualization.bytes == 20 * MB
    named = [any(v.name == "species" for v in d.variables) for d in checkpoint.steps]
    assert named == [False, False, True, True]


SERIES = ("series", 0)
MESH = (*SERIES, "meshes", 0)
BOUNDED = {"rule": "bounded", "first_bytes": MB, "activation_dump": 2, "peak_dump": 3}
BOUNDED |= {"peak_bytes": 2 * MB, "last_bytes": 3 * MB}
FOLLOWS = {"rule": "total", "total_bytes": MB, "follows": "restart"}
SPREAD = {"rule": "spread", "dumps": 0, "from_start": True}
OF_SERIES, OF_MESH = "series[0]", "series[0].meshes[0]"
# Where a value is changed, to what (None: removed; TWICE: the entry is there twice), what is said.
TWICE = object()
INVALID: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("ranks",), 0, "top level: ranks: expected at least 1, found 0"),
    (("ranks",), True, "ranks: expected a whole number, found true"),
    (("runtime_s",), 0, "top level: runtime_s: expected more than 0, found 0.0"),
    (("colour",), "red", "top level: unknown key 'colour', expected schema, name"),
    (("notes",), None, "top level: the key 'notes' is missing"),
    (("series",), {}, "series: expected a list, found {}"),
    (
        (*SERIES, "role"),
        "dump",
        f'{OF_SERIES}.role: expected checkpoint, visualization or output, found "dump"',
    ),
    (
        (*SERIES, "times", "rule"),
        "often",
        f'{OF_SERIES}.times.rule: expected spread or at, found "often"',
    ),
    (
        (*SERIES, "times"),
        5,
        f"{OF_SERIES}.times: expected an object with the key rule, found 5",
    ),
    (
        (*SERIES, "times", "times_s"),
        [2, 1],
        f"{OF_SERIES}.times: times_s: expected one or more times from 0 on, in order",
    ),
    ((*SERIES, "times"), SPREAD, f"{OF_SERIES}.times: dumps: expected at least 1, found 0"),
    (
        (*MESH, "sizes", "factors"),
        [2],
        f"{OF_MESH}: sizes: 1 growth factors, expected one fewer than the 3 dumps",
    ),
    (
        (*MESH, "sizes", "first_bytes"),
        99,
        f"{OF_MESH}: dump 1 of 99 B: 24 B a part: expected at least the ",
    ),
    (
        (*MESH, "sizes"),
        FOLLOWS,
        f"{OF_MESH}: sizes: follows 'restart', expected an earlier series",
    ),
    ((*MESH, "sizes"), BOUNDED, f"{OF_MESH}: activation_dump 2, peak_dump 3 of 3 dumps: expected"),
    (
        (*MESH, "packages", 0, "fields", 0, "count"),
        0,
        f"{OF_MESH}.packages[0].fields[0]: count: expected at least 1, found 0",
    ),
    (("provenance", 0, "origin"), "guessed", "provenance[0].origin: "),
    (
        ("published", "accuracy"),
        0.1,
        "published.accuracy: expected an object with the keys checkpoint_mean_error",
    ),
    (SERIES, TWICE, "checkpoint"),
    (MESH, TWICE, "streams[0].steps[0].do: "),
]


@pytest.mark.parametrize(("path", "value", "message"), INVALID)
def test_an_invalid_specification_is_one_message(
    path: tuple[str | int, ...], value: object, message: str, tmp_path: Path
) -> None:
    row: Any = small()
    above = row
    for key in path[:-1]:
        above = above[key]
    if value is None:
        del above[path[-1]]
    elif value is TWICE:
        above.append(above[path[-1]])
    else:
        above[path[-1]] = value
    done = compose(json.dumps(row), tmp_path)
    assert done.exit_code == 2 and done.stdout == ""
    assert done.stderr.startswith("understudy: ") and done.stderr.count("\n") == 1
    assert message in done.stderr
    assert f"{tmp_path / 'spec.json'}: " in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON: Expecting property name"),
        ("[]", "top level: expected an object with the keys schema, name"),
        ('{"name": 1, "name": 2}', "key 'name' stands twice in one object"),
    ],
)
def test_what_is_no_specification_is_one_message(text: str, message: str, tmp_path: Path) -> None:
    done = compose(text, tmp_path)
    assert done.exit_code == 2 and message in done.stderr and done.stderr.count("\n") == 1
    with pytest.raises(UnderstudyError, match="cannot be read: No such file"):
        strict.load(Simulation, tmp_path / "nowhere.json")


def test_containers_are_predicted_where_asked(tmp_path: Path) -> None:
    constants = {"alpha": 0, "beta": 0, "gamma": 0, "delta": 0, "psi": 100, "eta": 1000}
    fit = {
        "constants": constants,
        "residuals": {"samples": 9, "mean": 0, "max": 0},
        "held_out_ranks": [],
        "held_out": None,
    }
    row = {
        "schema": "understudy/sizing/1",
        "method": "hdf5",
        "libraries": [],
        "samples": [],
        "mesh": "unstructured",
        "file": fit,
        "container": fit,
    }
    (tmp_path / "sizing.json").write_text(json.dumps(row))
    text = (where("simulations") / "mphys-d.json").read_text()
    done = compose(text, tmp_path, "--sizing", str(tmp_path / "sizing.json"))
    assert done.exit_code == 0
    checkpoint = streams("d")[0]
    datasets = sum(v.count for v in checkpoint.steps[0].variables)
    assert datasets == 43 + 3 + 1  # the mesh's three arrays, and the bytes that are left
    first, second = done.stderr.splitlines()
    assert first.endswith(f"containers about {3 * (100 * datasets + 1000)} B more")
    assert second.startswith("understudy: visualization: no prediction; ")
    assert done.stdout_bytes == (where("workloads") / "mphys-d.json").read_bytes()
