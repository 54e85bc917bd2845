"""The run record: what old and new measurements become, conditions, and messages of bad files."""

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import results as samples
from tests.support.numbers import rounded
from tests.support.said import raises
from understudy import producers
from understudy.contracts import run as runs
from understudy.contracts import schema
from understudy.contracts.measurement import Node, ProgramDump
from understudy.contracts.run import Identity, Place, Run
from understudy.errors import UnderstudyError
from understudy.paths import where
from understudy.records import index

SCHEMAS = where("schemas")
OLD = SCHEMAS / "old" / "fixtures" / "result-1"
FIXTURES = sorted(OLD.glob("*.json"))


def test_there_is_a_fixture_of_every_shape_that_result_1_had() -> None:
    """The player's, without `program`; programs' with and without the application's name."""
    rows = [json.loads(path.read_text()) for path in FIXTURES]
    programs = [row["program"] for row in rows if "program" in row]
    assert len(rows) >= 12 and len(rows) > len(programs)
    for kind in ("skeleton", "application"):
        named = {"application" in p for p in programs if p["kind"] == kind}
        assert named == {True, False}, kind


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: p.stem)
def test_an_old_result_becomes_a_record_that_reads_back(path: Path, tmp_path: Path) -> None:
    run = producers.record(path)
    runs.write(tmp_path / "run.json", run)
    assert runs.load(tmp_path / "run.json") == run == producers.load(tmp_path / "run.json")
    assert run.measurement == json.loads(path.read_text()), "the measurement is kept as it was"
    assert run.identity.arm == {"p": "replica", "s": "skeleton", "a": "application"}[path.stem[0]]
    assert run.place.nodes[0].name == "node1"
    assert run.producer.workload is not None and not run.failed


def test_programs_without_the_application_s_name_get_it_from_their_own() -> None:
    names = {
        stem: producers.record(OLD / f"{stem}.json").producer.options["application"]
        for stem in ("application", "application-second", "skeleton", "skeleton-second")
    }
    assert names == {
        "application": "gts",
        "application-second": "gts",
        "skeleton": "app",
        "skeleton-second": "app",
    }


def test_samples_of_the_player() -> None:
    """Bytes and seconds of the streams, added up by hand from the fixture."""
    run = producers.record(OLD / "player-verify.json")
    row = json.loads((OLD / "player-verify.json").read_text())
    stream = row["repetitions"][1]["streams"][0]
    items = [s for s in run.samples if s.stream == stream["name"] and s.repetition == 1]
    by_metric = {s.metric: s for s in items}
    ends = [
        (min(p["first_start_s"] for p in d["phases"]), max(p["last_end_s"] for p in d["phases"]))
        for d in stream["dumps"]
    ]
    moved = sum(d["bytes"] for d in stream["dumps"])
    took_s = sum(end - start for start, end in ends)
    assert by_metric["bytes"].value == moved and by_metric["bytes"].better == "exact"
    speed = by_metric["bandwidth_bytes_per_s"]
    assert (speed.unit, speed.better) == ("bytes/s", "higher")
    assert speed.value == pytest.approx(moved / took_s)
    io_s = sum(
        min(end - start, sum(p["rank_s"]["max"] for p in d["phases"]))
        for d, (start, end) in zip(stream["dumps"], ends, strict=True)
    )
    assert by_metric["io_s"].value == pytest.approx(io_s)
    assert by_metric["io_bandwidth_bytes_per_s"].value == pytest.approx(moved / io_s)
    close_s = sum(
        p["last_end_s"] - p["first_start_s"]
        for d in stream["dumps"]
        for p in d["phases"]
        if p["phase"] == "close"
    )
    assert by_metric["close_s"].value == pytest.approx(close_s)
    assert by_metric["close_s"].better == "lower"
    dumps = [s.value for s in items if s.metric == "dump_bandwidth_bytes_per_s"]
    assert dumps == pytest.approx(
        [d["bytes"] / (end - start) for d, (start, end) in zip(stream["dumps"], ends, strict=True)]
    )
    whole = [s.value for s in run.samples if s.metric == "elapsed_s" and s.stream is None]
    assert whole == [r["elapsed_s"] for r in row["repetitions"]]


def test_samples_of_a_program_say_where_time_went() -> None:
    run = producers.record(OLD / "skeleton.json")
    measured = producers.measured(run)
    assert measured is not None
    dump = measured.repetitions[0].streams[0].dumps[0]
    assert isinstance(dump, ProgramDump)
    items = [s.value for s in run.samples if s.metric == "process_io_s" and s.repetition == 0]
    assert items == pytest.approx([sum(dump.processes.io_s) / 2])


# Conditions


def of(row: dict[str, Any], tmp_path: Path, name: str = "result.json", **more: Any) -> Run:
    return producers.record(samples.write(row, tmp_path / name), **more)


def test_what_identifies_and_what_was_measured_is_no_condition(tmp_path: Path) -> None:
    workload_ = samples.per_process()
    first = of(
        samples.result(workload_, seed=1),
        tmp_path,
        identity=Identity(session="a", round=0),
        place=Place(job_id="17", scratch="/x"),
    )
    second = of(
        samples.result(workload_, seed=2),
        tmp_path,
        identity=Identity(session="b", round=1),
        place=Place(job_id="18", scratch="/y"),
    )
    second = replace(
        second,
        storage=replace(second.storage, free_bytes=7, health="degraded"),
        place=replace(second.place, nodes=(Node(name="other", ranks=16),)),
    )
    assert runs.condition(first) == runs.condition(second)
    assert runs.short_hash(runs.condition(first)) == runs.short_hash(runs.condition(second))
    assert runs.differences([runs.condition(first), runs.condition(second)]) == [{}, {}]


def test_every_other_key_of_a_record_counts(tmp_path: Path) -> None:
    """Options that nobody has heard of, too."""
    row = of(samples.result(samples.per_process()), tmp_path)
    changed = {
        "place.system": replace(row, place=replace(row.place, system="x")),
        "place.nodes": replace(row, place=replace(row.place, nodes=(Node(name="a", ranks=8),))),
        "storage.asked.stripe_count": replace(
            row, storage=replace(row.storage, asked={"stripe_count": 4})
        ),
        "storage.applied.stripe_count": replace(
            row, storage=replace(row.storage, applied={"stripe_count": 4, "targets": [1]})
        ),
        "storage.server_version": replace(
            row, storage=replace(row.storage, server_version="2.15")
        ),
        "software.mpi": replace(row, software=replace(row.software, mpi="other")),
        "producer.options.unheard_of": replace(
            row,
            producer=replace(row.producer, options=row.producer.options | {"unheard_of": 3}),
        ),
    }
    for key, other in changed.items():
        pair = [runs.condition(row), runs.condition(other)]
        assert [list(run) for run in runs.differences(pair)] == [[key], [key]]
        assert runs.short_hash(pair[0]) != runs.short_hash(pair[1])


# Failed runs, and files that are not what they should be


def test_a_record_keeps_its_turn_and_others_have_no_such_key(tmp_path: Path) -> None:
    """Records of earlier versions remain valid, and a turn is no condition."""
    run = producers.record(OLD / "player-verify.json")
    row = json.loads(json.dumps(runs.to_row(run)))
    assert "turn" not in row["identity"]
    of_turn = replace(run, identity=replace(run.identity, turn="upgrade/3"))
    runs.write(tmp_path / "run.json", of_turn)
    assert runs.load(tmp_path / "run.json") == of_turn
    assert runs.condition(of_turn) == runs.condition(run)
    (read,) = index.of_files([tmp_path / "run.json"]).select(("turn",))
    assert read == ("upgrade/3",)
    row["identity"]["turn"] = "three"
    with raises(UnderstudyError, "identity-turn-three-does"):
        runs.from_row(row, "row")


def test_a_failed_run_has_a_record_without_a_measurement(tmp_path: Path) -> None:
    run = producers.record(
        tmp_path / "none.json",
        place=Place(system="s", partition="p"),
        identity=Identity(case="replay", round=2),
        exit_status=1,
        failure="the player ended with status 1: disk full",
        options={"method": "posix"},
    )
    runs.write(tmp_path / "run.json", run)
    back = runs.load(tmp_path / "run.json")
    assert back == run and back.failed and back.measurement is None and back.samples == ()
    assert (back.identity.arm, back.producer.name) == ("replica", "player")
    assert back.producer.exit_status == 1 and len(back.identity.id) == runs.ID_DIGITS
    assert producers.measured(back) is None


def test_a_run_that_measured_and_yet_failed_keeps_its_measurement(tmp_path: Path) -> None:
    row = of(samples.result(samples.per_process()), tmp_path, failure="asked 4 stripes, applied 1")
    assert row.failed and row.measurement is not None and row.samples


def spoiled(change: Any) -> dict[str, Any]:
    row = json.loads((OLD / "player.json").read_text())
    change(row)
    return row  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda row: row.pop("finished"), "'finished' is a required property"),
        (lambda row: row.update(colour=1), "'colour' was unexpected"),
        (lambda row: row.update(workload_sha256="0" * 64), "not the SHA-256 of the workload"),
        (lambda row: row.update(schema="understudy/player/9"), "player/9 is "),
        (lambda row: row.update(schema="understudy/toy/1"), "is no measurement; known producers"),
        (lambda row: row.update(schema=7), "expected understudy/<kind>/<n>, found 7"),
        (lambda row: row.pop("schema"), "expected understudy/<kind>/<n>, found nothing"),
        (lambda row: row["repetitions"].clear(), "should be non-empty"),
    ],
)
def test_a_damaged_measurement_is_one_message(tmp_path: Path, change: Any, message: str) -> None:
    path = samples.write(spoiled(change), tmp_path / "bad.json")
    with pytest.raises(UnderstudyError) as raised:
        producers.record(path)
    text = str(raised.value)
    assert message in text and str(path) in text and "\n" not in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a measurement"),
        ("[]", "expected a JSON object"),
        ("\xff", "schema"),
        ('{"schema": "a", "schema": "b"}', "key 'schema' stands twice"),
        ('{"schema": NaN}', "schema: expected a finite number, found NaN"),
    ],
)
def test_what_is_no_json_object_is_one_message(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"a": 1}' if text == "\xff" else text)
    with pytest.raises(UnderstudyError, match=message):
        producers.record(path)


def test_a_newer_record_says_what_to_do(tmp_path: Path) -> None:
    row = runs.to_row(producers.record(OLD / "player.json")) | {"schema": "understudy/run/2"}
    path = samples.write(row, tmp_path / "run.json")
    for read in (runs.load, producers.load):
        with raises(UnderstudyError, "run-newer-than-run"):
            read(path)


def test_a_measurement_is_no_record_and_the_message_says_what_to_do() -> None:
    with pytest.raises(UnderstudyError, match="understudy records migrate makes a run record"):
        runs.load(OLD / "player.json")


def test_a_record_that_breaks_its_contract_is_not_written(tmp_path: Path) -> None:
    run = producers.record(OLD / "player.json")
    bad = replace(run, producer=replace(run.producer, exit_status="one"))  # type: ignore[arg-type]
    with raises(UnderstudyError, "exit-statusis-type-integer"):
        runs.write(tmp_path / "run.json", bad)
    assert list(tmp_path.iterdir()) == []


def test_a_producer_reads_only_its_own() -> None:
    assert set(producers.names()) >= {"application", "observed", "player", "skeleton"}
    for name, stem in (
        ("player", "skeleton"),
        ("skeleton", "application"),
        ("skeleton", "player"),
    ):
        with pytest.raises(UnderstudyError, match=f"expected a measurement of .*{name}"):
            producers.get(name).read(OLD / f"{stem}.json")
    with raises(UnderstudyError, "no-producer-called-fio"):
        producers.get("fio")


# Versions


def bare(value: Any) -> Any:
    """A schema without its words."""
    if isinstance(value, dict):
        words = [k for k in ("description", "title") if isinstance(value.get(k), str)]
        return {k: bare(v) for k, v in value.items() if k not in words}
    return [bare(v) for v in value] if isinstance(value, list) else value


def schemas() -> dict[str, Path]:
    items = [*SCHEMAS.glob("*.schema.json"), *(SCHEMAS / "old").glob("*.schema.json")]
    return {json.loads(path.read_text())["$id"]: path for path in items}


def test_a_published_schema_does_not_change() -> None:
    """schemas/versions.json holds the digest of each version that was released."""
    versions = json.loads((SCHEMAS / "versions.json").read_text())
    for name, path in schemas().items():
        assert name in versions, f"{path.name}: add {name}: null to schemas/versions.json"
        result = schema.digest(bare(json.loads(path.read_text())))
        assert versions[name] in (None, result), (
            f"{path.name}: {name} is released and may not change. Give the new shape the next "
            f"number, move the old file to schemas/old/ with fixtures, write the migration. "
            f"(null in versions.json: not released yet; at the release it becomes {result}.)"
        )


def test_a_change_of_a_schema_changes_its_digest() -> None:
    row = json.loads((SCHEMAS / "run.schema.json").read_text())
    other = copy.deepcopy(row)
    other["properties"]["identity"]["required"].remove("round")
    words = copy.deepcopy(row)
    words["properties"]["identity"]["description"] = "Other words."
    assert schema.digest(bare(row)) != schema.digest(bare(other))
    assert schema.digest(bare(row)) == schema.digest(bare(words))


def test_every_key_of_the_record_is_explained() -> None:
    def explained(rule: dict[str, Any], where: str) -> None:
        for key, inner in rule.get("properties", {}).items():
            assert inner.get("description"), f"{where}.{key}"
            explained(inner, f"{where}.{key}")
        if isinstance(rule.get("items"), dict):
            explained(rule["items"], f"{where}[]")

    row = json.loads((SCHEMAS / "run.schema.json").read_text())
    explained(row, "run")
    explained(row["$defs"]["layout"], "layout")


# Golden: what producers write, and the record of it


GOLDEN = Path(__file__).parent / "golden" / "measurements"
MEASUREMENTS = sorted(p for p in GOLDEN.glob("*.json") if not p.name.endswith(".run.json"))


@pytest.mark.parametrize("path", MEASUREMENTS, ids=lambda p: p.stem)
def test_a_measurement_of_today_becomes_the_golden_record(path: Path, tmp_path: Path) -> None:
    assert path.stem in producers.names()
    run = producers.record(path)
    runs.write(tmp_path / "run.json", run)
    row = json.loads((tmp_path / "run.json").read_text())
    assert row.pop("measurement") == json.loads(path.read_text())
    golden = json.loads(path.with_suffix(".run.json").read_text())
    golden.pop("measurement")
    assert rounded(row) == rounded(golden)


@pytest.mark.parametrize("path", MEASUREMENTS, ids=lambda p: p.stem)
def test_a_measurement_that_lost_a_key_or_its_end_is_an_error(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    for key in json.loads(text):
        row = json.loads(text)
        del row[key]
        with pytest.raises(UnderstudyError, match=r"schema: expected|is a required property"):
            producers.record(samples.write(row, tmp_path / "lost.json"))
    (tmp_path / "short.json").write_text(text[: len(text) // 2])
    with pytest.raises(UnderstudyError, match="not a measurement"):
        producers.record(tmp_path / "short.json")


def test_the_example_of_the_how_to_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(__file__).parents[1] / "docs" / "how-to"
    guide = (folder / "use-run-records.md").read_text(encoding="utf-8")
    for stem in ("player", "player-direct"):
        row = json.loads((OLD / f"{stem}.json").read_text())
        samples.write_record(row, tmp_path / "output" / stem, partition="disk")
    monkeypatch.chdir(tmp_path)
    exec(compile(guide.split("```python\n")[1].split("```")[0], "how-to", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and sum("posix.direct" in line for line in lines) == 2
