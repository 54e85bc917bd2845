"""Records that are kept: nothing is lost or overwritten, and all is found again."""

import csv
import gzip
import hashlib
import json
import os
import re
import sqlite3
import sys
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.support.said import raises, said
from understudy import producers
from understudy.cli import main
from understudy.contracts import run as runs
from understudy.contracts import schema
from understudy.contracts.run import Identity, Place, Run
from understudy.errors import UnderstudyError
from understudy.paths import RECORDS_VARIABLE, where
from understudy.records import index, ledger, select, store, table
from understudy.reframe.bases import recording

OLD = where("schemas") / "old" / "fixtures" / "result-1"


def made(name: str = "player", **identity: Any) -> Run:
    """A real run; each identity is one of its own, with a measurement of its own."""
    row = json.loads((OLD / f"{name}.json").read_text())
    row["environment"]["started"] = identity.get("time") or "2026-01-01T00:00:00Z"
    row["environment"]["host"] = schema.digest(sorted(identity.items(), key=str))[:12]
    return producers.record(
        OLD / f"{name}.json",
        place=Place(system="star", partition="disk"),
        row=row,
        identity=Identity(**identity),
    )


def failed(**identity: Any) -> Run:
    return producers.record(
        Path("missing.json"),
        place=Place(system="star"),
        identity=Identity(**identity),
        failure="no space left",
        exit_status=1,
    )


def cli(*words: object) -> Result:
    return CliRunner().invoke(main, [str(w) for w in words])


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two sessions, and a run that failed."""
    folder = tmp_path / "kept"
    monkeypatch.setenv(RECORDS_VARIABLE, str(folder))
    store.keep(made(session="aaaa-1", time="2026-01-01T01:00:00Z", campaign="before"))
    store.keep(made(session="aaaa-1", time="2026-01-01T02:00:00Z", tags=("nightly", "quick")))
    store.keep(made(session="bbbb-2", time="2026-01-02T01:00:00Z", campaign="after"))
    store.keep(failed(session="bbbb-2", time="2026-01-02T02:00:00Z", case="Replay"))
    return folder


def test_a_check_keeps_each_record_and_replaces_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RECORDS_VARIABLE, str(tmp_path / "kept"))
    (tmp_path / "result.json").write_bytes((OLD / "player.json").read_bytes())
    run = recording.PlannedRun(folder=Path(), producer="player", arm="replica", command="x")

    def write(session: str, failure: str | None = None) -> None:
        recording.write(
            tmp_path,
            run,
            place=Place(),
            identity=Identity(session=session),
            asked={},
            exit_status=0,
            failure=failure,
        )

    write("one")
    (kept,) = (tmp_path / "kept").rglob("*.gz")
    inode = kept.stat().st_ino
    assert runs.load(kept) == runs.load(tmp_path / "run.json")
    write("one")
    assert kept.stat().st_ino == inode
    with raises(UnderstudyError, "other-content-was-replaced"):
        write("one", "it failed")
    write("two", "it failed")
    assert len(list((tmp_path / "kept").rglob("*.json.gz"))) == 2


def test_names_from_records_leave_no_folder(tmp_path: Path) -> None:
    hostile = (
        "../../out",
        "/etc/passwd",
        "a/b",
        "..",
        "",
        ".hidden",
        "x" * 300,
        "\n\x1b[31m",
        "-rf",
    )
    for i, text in enumerate(hostile):
        path = store.keep(made(session=text or None, case=str(i)), tmp_path / "kept")
        assert path.resolve().is_relative_to(tmp_path / "kept") and path.is_file()
    assert len({p.parent.name for p in (tmp_path / "kept").rglob("*.gz")}) == len(hostile)
    database = index.of_folder(tmp_path / "kept")
    assert {row[0] for row in database.select(["session"])} == {t or None for t in hostile}


def test_the_index_is_made_again(site: Path) -> None:
    first = table.of_samples(index.of_folder())
    assert first["run"].n_unique() == 4
    (site / index.FILE).unlink()
    assert table.of_samples(index.of_folder()).equals(first)
    (site / index.FILE).write_bytes(b"no database" * 100)
    assert table.of_samples(index.of_folder()).equals(first)
    assert (site / "index.sqlite.damaged").read_bytes().startswith(b"no database")
    (site / index.FILE).write_bytes(b"again" * 100)
    assert table.of_samples(index.of_folder()).equals(first)
    assert (site / "index.sqlite.damaged").read_bytes().startswith(b"no database")


def test_an_index_that_nobody_closes_is_closed(site: Path) -> None:
    """Python 3.13 warns of a connection that is lost."""
    connection = index.of_folder().connection
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_an_index_of_another_version_is_made_again(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.of_folder().close()
    monkeypatch.setattr(index, "VERSION", 99)
    assert len(list(index.of_folder().select(["run"]))) == 4


def test_the_index_follows_the_files(site: Path) -> None:
    database = index.of_folder()
    store.keep(made(session="cccc-3", time="2026-01-03T01:00:00Z"))
    next(site.glob("aaaa-1/*")).unlink()
    database.update(site)
    assert len(list(database.select(["run"]))) == 4
    assert {row[0] for row in database.select(["session"])} == {"aaaa-1", "bbbb-2", "cccc-3"}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data[: len(data) // 2], "damaged: the file ends early"),
        (lambda data: gzip.compress(gzip.decompress(data)[:-40]), "run record"),
        (lambda data: gzip.compress(b"{}"), "schema: expected understudy/<kind>/<n>"),
        (lambda data: gzip.compress(gzip.decompress(data).replace(b"run/1", b"run/7")), "newer"),
        (lambda data: b"\x1f\x8b" + b"junk" * 9, "damaged: cannot be decompressed"),
        (lambda data: b"", "run record"),
    ],
)
def test_a_damaged_record_is_told_once_and_the_others_are_found(
    site: Path, damage: Any, message: str
) -> None:
    path = next(site.glob("aaaa-1/*"))
    path.write_bytes(damage(path.read_bytes()))
    for _ in range(2):
        done = cli("records", "list", "--runs")
        (line,) = [line for line in done.stderr.splitlines() if "left out" in line]
        assert message in line and path.name in line
        said("runs-sessions-failed", done.stderr)


def test_a_folder_of_which_no_record_can_be_read_is_an_error(site: Path, tmp_path: Path) -> None:
    paths = list(site.glob("*/*.json.gz"))
    for path in paths:
        path.write_bytes(b"damaged")
    for command in (["list"], ["list", "--json"], ["table", "-o", str(tmp_path / "t.csv")]):
        done = cli("records", *command)
        assert done.exit_code == 2 and not done.stdout, command
        said("none-records-can-read", done.stderr.splitlines()[-1], site=site, paths=len(paths))
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize(
    "session", ["SHA256SUMS", "SHA256SUMS.sig", "index.sqlite", "index.sqlite-wal", ".set-aside"]
)
def test_a_session_has_no_name_of_a_file_of_the_folder(session: str, site: Path) -> None:
    before = len(list(index.of_folder(site).select(["run"])))
    path = store.keep(made(session=session, time="2026-01-04T01:00:00Z"), site)
    assert path.is_file() and path.parent.name != session
    again = store.keep(made(session="dddd", time="2026-01-05T01:00:00Z"), site)
    database = index.of_folder(site)
    assert len(list(database.select(["run"]))) == before + 2 and again.is_file()
    assert cli("records", "list", f"session:{session}").exit_code == 0
    assert cli("records", "verify").exit_code == 0


def test_a_bomb_is_no_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("understudy.contracts.schema.MAX_BYTES", 1 << 20)
    path = tmp_path / "run.json.gz"
    path.write_bytes(gzip.compress(b" " * (3 << 20)))
    with raises(UnderstudyError, "holds-more-than-mib"):
        runs.load(path)


def test_a_header_of_another_time_is_damaged(tmp_path: Path) -> None:
    """Reserved bits say that the rest is in a way that is not known."""
    path = tmp_path / "run.json.gz"
    data = bytearray(gzip.compress(schema.json_text(runs.to_row(made())).encode()))
    path.write_bytes(data)
    runs.load(path)
    data[3] |= 0x20
    path.write_bytes(data)
    with raises(UnderstudyError, "damaged-cannot-be-decompressed"):
        runs.load(path)


def test_the_table_has_a_row_for_each_sample_and_each_run_without(site: Path) -> None:
    database = index.of_folder()
    whole = table.of_samples(database)
    run = made()
    assert len(whole) == 3 * len(run.samples) + 1
    (lost,) = whole.filter(whole["failed"]).to_dicts()
    assert (lost["failure"], lost["metric"], lost["value"]) == ("no space left", None, None)
    assert whole["time"].dtype.time_zone == "UTC"  # type: ignore[union-attr]
    assert {tag for tags in whole["tags"] for tag in tags} == {"nightly", "quick"}
    dumps = whole.filter(whole["metric"].cast(str) == "dump_bandwidth_bytes_per_s")
    expected = [s.value for s in run.samples if s.metric == "dump_bandwidth_bytes_per_s"]
    item = dumps.filter(dumps["run"] == dumps["run"][0])
    assert item["value"].to_list() == expected
    assert item["position"].to_list()[:2] == [0, 1]
    part = table.of_samples(database, *select.parse("aaaa-1", database))
    assert part["session"].unique().to_list() == ["aaaa-1"]


def test_copies_of_one_run_count_once(site: Path, tmp_path: Path) -> None:
    run = next(iter(site.glob("aaaa-1/*")))
    row = json.loads(gzip.decompress(run.read_bytes()))
    row["identity"]["session"] = None
    runs.write(tmp_path / "run.json", runs.from_row(row, "x"))
    assert "1 kept" in cli("records", "import", tmp_path / "run.json").stdout
    database = index.of_folder()
    assert len(list(database.select(["run"]))) == 4
    assert None not in {row[0] for row in database.select(["session"])}


def test_one_measurement_under_another_name_is_one_run(site: Path) -> None:
    whole = made(session="aaaa-0", time="2026-01-04T01:00:00Z")
    for i in range(3):
        again = replace(whole.identity, id=f"{i:016x}", session=f"copy-{i}")
        store.keep(replace(whole, identity=again))
    lost = replace(whole.identity, id="f" * 16, session="lost")
    failure = replace(whole.producer, failure="no space left", exit_status=1)
    store.keep(replace(whole, identity=lost, producer=failure))
    database = index.of_folder()
    (row,) = database.select(("run", "failed"), "time >= '2026-01-04'")
    assert row == ("f" * 16, 1)
    assert len(list(database.select(["run"]))) == 5
    assert len(producers.load_all(producers.find([site]))) == 5
    done = cli("records", "prune", "--older-than", "2027-01-01")
    assert "8 records" in done.stdout, "a copy is a file, too"


def test_what_a_site_has_besides_sessions_is_no_record(site: Path) -> None:
    """A shell names all of it for records/*."""
    cli("records", "list")
    beside = {path.name for path in site.iterdir() if path.is_file()}
    assert beside == {ledger.FILE, index.FILE} and beside < {*producers.BESIDE}
    assert ledger.SIGNATURE in producers.BESIDE
    assert producers.find(sorted(site.iterdir())) == producers.find([site])


def test_more_nodes_than_ranks_are_none(tmp_path: Path) -> None:
    row = json.loads((OLD / "player.json").read_text())
    row["environment"]["nodes"] = (1 << 63) - 1
    path = tmp_path / "result.json"
    path.write_text(json.dumps(row))
    with raises(UnderstudyError, "environment-nodes-expected-at"):
        producers.load(path)


def test_samples_need_a_measurement(site: Path) -> None:
    run = failed(session="cccc-3", time="2026-01-03T02:00:00Z", case="Replay")
    samples = made(session="x").samples
    store.keep(replace(run, samples=samples))
    (message,) = index.of_folder().unread
    said("samples-expected-none-without", message, samples=len(samples))


@pytest.mark.parametrize(
    ("word", "count"),
    [
        ("aaaa", 2),
        ("aaaa-1", 2),
        ("session:bbbb-2", 2),
        ("nightly", 1),
        ("tag:quick", 1),
        ("before", 1),
        ("campaign:after", 1),
        ("2026-01-01", 2),
        ("2026-01-01..2026-01-02", 4),
        ("2026-01-01T01:30..2026-01-02T01:30", 2),
        ("..2026-01-01", 2),
        ("2026-01-02..", 2),
    ],
)
def test_words_select_runs(site: Path, word: str, count: int) -> None:
    database = index.of_folder()
    assert len(list(database.select(["run"], *select.parse(word, database)))) == count
    done = cli("records", "list", "--runs", "--json", word)
    assert len(done.stdout.splitlines()) == count


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("zzzz", "expected a session, a tag, a campaign, a date"),
        ("2030-01-01", "selects no run"),
        ("tag:'; DROP TABLE files", "selects no run"),
        ("2026-13-41", "expected 14d, 36h, 8w or a date"),
        ("session:zz", "no session is called so"),
    ],
)
def test_words_that_select_nothing(site: Path, word: str, message: str) -> None:
    done = cli("records", "list", word)
    assert done.exit_code == 2 and message in done.stderr and "Traceback" not in done.output


def test_a_word_of_two_meanings_is_refused(site: Path) -> None:
    store.keep(made(session="dddd", tags=("before",), time="2026-01-03T01:00:00Z"))
    done = cli("records", "list", "before")
    assert done.exit_code == 2
    said("before-tag-campaign-write", done.stderr)


def test_prune_lists_first_and_removes_what_the_store_made_only(
    site: Path, tmp_path: Path
) -> None:
    other = site / "aaaa-1" / "mine.json.gz"
    other.write_bytes(next(site.glob("bbbb-2/*")).read_bytes())
    plain = site / "old" / "x" / "run.json"
    plain.parent.mkdir(parents=True)
    runs.write(plain, made(session="old", time="2026-01-01T00:00:00Z"))
    before = sorted(p for p in site.rglob("*.json*"))
    done = cli("records", "prune", "--older-than", "2026-01-02")
    assert "2 records of" in done.stdout and "--yes removes them" in done.stdout
    assert sorted(p for p in site.rglob("*.json*")) == before
    done = cli("records", "prune", "--older-than", "2026-01-02", "--yes")
    assert done.exit_code == 0 and "2 records removed" in done.stdout
    assert other.exists() and plain.exists() and len(list(site.glob("bbbb-2/*"))) == 2
    done = cli("records", "prune", "--session", "bbbb-2", "--yes")
    assert other.exists() and "records removed" in done.stdout
    done = cli("records", "prune")
    assert done.exit_code == 2 and "--older-than TIME or --session" in done.stderr


def test_prune_takes_what_both_options_select(site: Path) -> None:
    done = cli("records", "prune", "--older-than", "2026-01-02T01:30Z", "--session", "bbbb-2")
    assert "1 records of" in done.stdout and "aaaa-1" not in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "before", "after", "-f", "--junit"],
        ["trend", "--system", "star", "-f", "-o"],
        ["metrics", "--system", "star", "-f", "-o"],
        ["records", "table", "-f", "-o"],
        ["report", "kept", "-f", "-o"],
        ["references", "--system", "star", "-f", "-o"],
    ],
)
def test_no_record_is_written_over(site: Path, words: list[str]) -> None:
    index.of_folder()
    words = [str(site) if word == "kept" else word for word in words]
    for target in (next(site.glob("aaaa-1/*.gz")), site / "index.sqlite"):
        before = target.read_bytes()
        done = cli(*words, target)
        assert done.exit_code == 2 and said("lies-folder-records", done.stderr), done.output
        assert target.read_bytes() == before
    for new in (site / "new.json.gz", site / "aaaa-1" / "run.json"):
        done = cli(*words, new)
        assert done.exit_code == 2 and said("lies-folder-records", done.stderr), done.output
        assert not new.exists()


def damage(path: Path, month: int = 0) -> None:
    """A record cut off, in a file of that month of 2026."""
    path.write_bytes(path.read_bytes()[:300])
    if month:
        then = datetime(2026, month, 1, tzinfo=timezone.utc).timestamp()
        os.utime(path, (then, then))


def counting(*words: str) -> list[str]:
    """Files of records that cannot be read and that one of the words may select."""
    database = index.of_folder()
    where = select.any_of([select.parse(word, database) for word in words])
    return sorted(database.unread_files(*where))


def test_a_record_that_cannot_be_read_counts_where_it_may_belong(site: Path) -> None:
    """Its session is known by its folder, and the campaign by the other records there."""
    store.keep(made(session="bbbb-2", time="2026-01-02T03:00:00Z", campaign="after", case="x"))
    path = next(p for p in site.glob("bbbb-2/*.gz") if not producers.load(p).failed)
    damage(path)
    assert counting("aaaa-1") == counting("2026-01-01") == []
    assert counting("bbbb-2") == counting("2026-01-02") == [f"bbbb-2/{path.name}"]
    assert len(index.of_folder().unread) == 1


def test_a_session_without_a_record_that_can_be_read_counts_since_its_file(site: Path) -> None:
    """A run began before its record was written; of what campaign it was, nobody knows."""
    store.keep(made(session="cccc-3", time="2026-02-28T01:00:00Z", tags=("night",)))
    store.keep(made(session="dddd-4", time="2026-04-28T01:00:00Z", tags=("nightly",)))
    (path,) = site.glob("cccc-3/*.gz")
    damage(path, month=3)
    name = [f"cccc-3/{path.name}"]
    assert counting("2026-04-01..2026-05-01") == counting("aaaa-1") == []
    assert counting("2026-01-01..2026-01-02") == counting("before") == counting("nightly") == name


def test_records_that_cannot_be_read_are_set_aside_and_not_lost(site: Path) -> None:
    path = next(site.glob("aaaa-1/*.gz"))
    whole = path.read_bytes()
    damage(path)
    done = cli("records", "list")
    said("records-set-aside-moves", done.stderr)
    done = cli("records", "set-aside")
    assert done.exit_code == 0 and str(path) in done.stdout and path.exists()
    said("records-would-set-aside", done.stdout)
    good = next(site.glob("bbbb-2/*.gz"))
    done = cli("records", "set-aside", good, "--yes")
    assert done.exit_code == 2 and good.exists() and said("cannot-read", done.stderr)
    done = cli("records", "set-aside", "--yes")
    aside = site / ".set-aside" / "aaaa-1" / path.name
    assert done.exit_code == 0 and not path.exists() and aside.read_bytes() == whole[:300]
    done = cli("records", "list")
    assert "left out" not in done.stderr and said("records-set-aside", done.stderr)
    assert len(producers.find([site])) == 3
    path.write_bytes(whole[:200])  # again, of the same name
    assert cli("records", "set-aside", path, "--yes").exit_code == 0
    assert aside.read_bytes() == whole[:300], "nothing is replaced"
    assert len(list(aside.parent.iterdir())) == 2
    aside.write_bytes(whole)
    assert "1 kept" in cli("records", "import", aside).stdout and path.exists()


def test_one_of_two_records_with_one_identifier_is_set_aside(site: Path) -> None:
    whole = made(session="aaaa-0", time="2026-01-04T01:00:00Z")
    other = made(session="bbbb-9", time="2026-01-04T01:00:00Z")
    store.keep(whole)
    forged = store.keep(replace(other, identity=replace(other.identity, id=whole.identity.id)))
    said("records-set-aside-2", cli("records", "set-aside", "--yes").stdout)
    assert cli("records", "set-aside", forged, "--yes").exit_code == 0
    database = index.of_folder()
    assert not database.unread
    assert list(database.select(("session",), "time = '2026-01-04T01:00:00Z'")) == [("aaaa-0",)]


def test_a_copy_hides_no_failure(site: Path) -> None:
    run = failed(session="cccc-3", time="2026-01-03T02:00:00Z", case="Replay")
    whole = made(session="aaaa-0", time="2020-01-01T01:00:00Z")
    forged = replace(whole, identity=replace(whole.identity, id=run.identity.id))
    store.keep(run)
    store.keep(forged)
    for _ in range(2):
        database = index.of_folder().select(("failed",), "run = ?", (run.identity.id,))
        assert (1,) in list(database)
        (site / "index.sqlite").unlink()
    told: list[Path] = []
    kept = producers.load_all(producers.find([site]), unread=lambda path, _: told.append(path))
    assert [r.failed for _, r in kept if r.identity.id == run.identity.id] == [True]
    assert [path.parent.name for path in told] == ["aaaa-0"]


@pytest.mark.parametrize("same_id", [True, False])
def test_an_edit_of_the_last_value_is_noticed(site: Path, same_id: bool) -> None:
    """Also where the index knew one of both before."""
    whole = made(session="aaaa-0", time="2026-01-04T01:00:00Z")
    row = json.loads(schema.json_text(runs.to_row(whole)))
    row["measurement"]["repetitions"][-1]["streams"][-1]["dumps"][-1]["phases"][-1]["rank_s"][
        "mean"
    ] += 1e-9
    row["identity"] |= {"session": "bbbb-9"} | ({} if same_id else {"id": "0" * 16})
    edited = runs.from_row(row, "edited")
    assert producers.sketch(edited) == producers.sketch(whole)
    counted = []
    for run in (whole, edited, replace(whole, identity=replace(whole.identity, session="copy"))):
        store.keep(run)
        database = index.of_folder()
        counted.append(len(list(database.select(["run"], "time = '2026-01-04T01:00:00Z'"))))
    assert counted == ([1, 0, 0] if same_id else [1, 2, 2])
    assert len(database.unread) == (2 if same_id else 0)


def test_what_another_process_sees_of_an_index_is_right(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while it is made, and if that is where it ends: different runs are none's copies."""
    whole = made(session="aaaa-0", time="2026-01-04T01:00:00Z")
    for k in range(3):
        row = json.loads(schema.json_text(runs.to_row(whole)))
        row["identity"] |= {"session": f"alike-{k}", "id": f"{k:016x}"}
        dump = row["measurement"]["repetitions"][-1]["streams"][-1]["dumps"][-1]
        dump["phases"][-1]["rank_s"]["mean"] += k * 1e-9
        store.keep(runs.from_row(row, "alike"))
    monkeypatch.setattr(index, "BATCH", 1)
    counts = []

    def look(_: str) -> None:
        with sqlite3.connect(site / index.FILE) as other:
            sql = "SELECT count(*) FROM {} WHERE error IS NULL"
            counts.append([other.execute(sql.format(of)).fetchone() for of in ("files", "runs")])

    assert len(list(index.of_folder(progress=look).select(["run"]))) == 7
    assert [all_ for all_, _ in counts] == [(k,) for k in range(7)]
    assert all(all_ == different for all_, different in counts)


def test_an_edited_copy_of_a_run_leaves_neither(site: Path) -> None:
    whole = made(session="aaaa-0", time="2026-01-04T01:00:00Z")
    other = made(session="bbbb-9", time="2026-01-04T01:00:00Z")
    store.keep(whole)
    store.keep(replace(other, identity=replace(other.identity, id=whole.identity.id)))
    database = index.of_folder()
    assert not list(database.select(("run",), "time = '2026-01-04T01:00:00Z'"))
    assert len(list(database.select(("run",), "time = '2026-01-04T01:00:00Z'", copies=True))) == 2
    assert json.loads(cli("records", "show", whole.identity.id).stdout)
    told = [message for message in database.unread if "has other content" in message]
    assert len(told) == 2 and whole.identity.id in told[0] and "aaaa-0" in told[0]
    by_files: list[str] = []
    producers.load_all(producers.find([site]), unread=lambda _, e: by_files.append(str(e)))
    assert sorted(by_files) == sorted(told)
    with raises(UnderstudyError, "has-other-content-neither"):
        producers.load_all(producers.find([site]))


def test_what_is_no_file_is_no_record(site: Path) -> None:
    before = len(list(index.of_folder().select(("run",))))
    os.mkfifo(site / "aaaa-1" / "fifo.json.gz")
    (site / "aaaa-1" / "zero.json.gz").symlink_to("/dev/zero")
    (site / "dddd-4").mkdir()
    os.mkfifo(site / "dddd-4" / "run.json")
    assert len(list(index.of_folder().select(("run",)))) == before
    assert len(producers.find([site])) == before


def test_a_number_that_the_index_cannot_hold_is_told(site: Path) -> None:
    run = made(session="dddd-4", time="2026-01-04T01:00:00Z", round=10**30)
    store.keep(run)
    done = cli("records", "list")
    assert done.exit_code == 0 and "identity.round" in done.stderr


def test_nothing_is_kept_through_a_link(site: Path, tmp_path: Path) -> None:
    (tmp_path / "else").mkdir()
    (site / "eeee-5").symlink_to(tmp_path / "else")
    with raises(UnderstudyError, "symbolic-link"):
        store.keep(made(session="eeee-5", time="2026-01-05T01:00:00Z"))
    assert not list((tmp_path / "else").iterdir())


def test_prune_removes_no_link(site: Path, tmp_path: Path) -> None:
    path = next(site.glob("aaaa-1/*"))
    target = tmp_path / "elsewhere.json.gz"
    path.rename(target)
    path.symlink_to(target)
    cli("records", "prune", "--older-than", "2026-01-02", "--yes")
    assert target.exists() and path.is_symlink()


def test_records_are_shown_and_imported(site: Path, tmp_path: Path) -> None:
    run = made(session="\x1b[31m", case="escape")
    runs.write(tmp_path / "run.json", run)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "result.json").write_text("{")
    done = cli("records", "import", tmp_path)
    assert done.exit_code == 2 and said("kept-already-there-failed", done.stdout)
    assert "more/result.json" in done.stderr
    shown = cli("records", "show", run.identity.id[:8])
    assert json.loads(shown.stdout) == json.loads(json.dumps(runs.to_row(run)))
    assert "\x1b" not in shown.stdout and "\x1b" not in cli("records", "list").stdout
    said("no-record-such-run", cli("records", "show", "ffffffffffff").stderr)


def test_a_table_has_no_control_characters(site: Path, tmp_path: Path) -> None:
    store.keep(made(session="cccc-3", time="2026-01-05T01:00:00Z", case="a\x1b[2J\x00b\u202ec"))
    path = tmp_path / "table.csv"
    assert cli("records", "table", "-o", path).exit_code == 0
    assert r"a\x1b[2J\x00b\u202ec" in path.read_text()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", path.read_text())
    done = cli("records", "table", "-o", path)
    assert done.exit_code == 2 and "exists already" in done.stderr
    assert cli("records", "table", "-o", path, "-f").exit_code == 0


def test_a_bomb_is_refused_at_its_first_block(tmp_path: Path) -> None:
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(bytes(2 * schema.BLOCK_BYTES)))
    with raises(UnderstudyError, "unpacks-over-times-its"):
        schema.read(path, "run record")


def test_a_table_of_text_is_no_formula(site: Path, tmp_path: Path) -> None:
    store.keep(made(session="=HYPERLINK(1)", time="2026-01-03T01:00:00Z"))
    assert cli("records", "table", "-o", tmp_path / "t.csv").exit_code == 0
    text = (tmp_path / "t.csv").read_text()
    assert "'=HYPERLINK(1)" in text and ",=HYPERLINK" not in text
    assert cli("records", "table", "-o", tmp_path / "t.parquet").exit_code == 0
    said("parquet-csv", cli("records", "table", "-o", tmp_path / "t.xls").stderr)


def test_without_polars_there_is_the_table_as_text(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    assert cli("records", "table", "-o", tmp_path / "t.csv").exit_code == 0
    lines = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    samples = sum(1 for _ in table.rows(index.of_folder()))
    assert len(lines) == samples and list(lines[0]) == list(table.COLUMNS)
    (lost,) = (line for line in lines if line["failed"] == "true")
    assert (lost["failure"], lost["metric"], lost["value"]) == ("no space left", "", "")
    assert lines[0]["time"] == "2026-01-01T01:00:00Z"
    assert {"nightly quick"} < {line["tags"] for line in lines}
    done = cli("records", "table", "-o", tmp_path / "t.parquet")
    assert done.exit_code == 2 and said("polars-installed", done.stderr)
    assert not (tmp_path / "t.parquet").exists()


def test_old_folders_and_the_page_are_read(site: Path, tmp_path: Path) -> None:
    plain = site / "old" / "x" / "run.json"
    plain.parent.mkdir(parents=True)
    runs.write(plain, made(session="old", time="2025-01-01T00:00:00Z"))
    assert len(list(index.of_folder().select(["run"]))) == 5
    assert len(producers.find([site])) == 5


def test_a_folder_that_cannot_be_written_has_an_index_in_memory(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / index.FILE).symlink_to("/nowhere/index")
    assert len(list(index.of_folder().select(["run"]))) == 4
    assert (site / index.FILE).is_symlink()


def test_without_records_it_is_said(tmp_path: Path) -> None:
    done = cli("records", "list", "--folder", tmp_path / "none")
    assert done.exit_code == 2
    said("none-no-records-run", done.stderr, tmp_path=tmp_path)


@pytest.mark.parametrize("command", [["compare"], ["references", "--system", "x"]])
def test_a_hostile_path_is_one_plain_message(command: list[str], tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"x\x1b[31m\xff\n\xe2\x80\xaeFAKE\x7f.json")
    path.write_text('{"a":1')
    words = [str(path), str(path)] if command == ["compare"] else [str(path)]
    done = CliRunner().invoke(main, [*command, *words], standalone_mode=True)
    assert done.exit_code == 2 and not isinstance(done.exception, UnicodeError)
    assert all(c.isprintable() or c == "\n" for c in done.stderr)
    assert all(line.startswith("understudy: ") for line in done.stderr.splitlines())


def faults(of: Path) -> list[str]:
    audit = ledger.audit(of)
    assert audit is not None
    return [f"{fault.file}: {fault.what}" for fault in audit.faults]


def test_a_full_disk_leaves_no_half_line_in_the_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.keep(made(session="a", id="1"), tmp_path)
    before = (tmp_path / ledger.FILE).read_bytes()
    write = os.write

    def half(file: int, data: bytes) -> int:
        return write(file, data[: len(data) // 2])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", half)
        with pytest.raises(UnderstudyError, match="SHA256SUMS: cannot be written: No space"):
            store.keep(made(session="a", id="2"), tmp_path)
    assert (tmp_path / ledger.FILE).read_bytes() == before
    store.keep(made(session="a", id="2"), tmp_path)
    assert faults(tmp_path) == []


def test_nothing_is_added_behind_a_line_that_is_cut(tmp_path: Path) -> None:
    store.keep(made(session="a", id="1"), tmp_path)
    path = tmp_path / ledger.FILE
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(UnderstudyError, match="its last line is cut"):
        store.keep(made(session="a", id="2"), tmp_path)


def test_a_kill_between_ledger_and_record_is_mended_by_keeping_it_again(tmp_path: Path) -> None:
    store.keep(made(session="a", id="1"), tmp_path)
    path = store.keep(made(session="a", id="2"), tmp_path)
    path.unlink()  # as if its process had ended before it was written
    [told] = faults(tmp_path)
    assert told.endswith("is missing")
    store.keep(made(session="a", id="2"), tmp_path)
    assert faults(tmp_path) == []


def test_a_second_sum_of_a_record_is_told(tmp_path: Path) -> None:
    path = store.keep(made(session="a", id="1"), tmp_path)
    name = path.relative_to(tmp_path).as_posix()
    path.write_bytes(gzip.compress(b"{}"))
    with (tmp_path / ledger.FILE).open("a") as file:
        file.write(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}\n")
    assert faults(tmp_path) == [f"{name}: has two SHA-256 in the ledger"]


def test_a_comment_of_deep_brackets_is_one_message(tmp_path: Path) -> None:
    (tmp_path / ledger.FILE).write_text("# " + "[" * 100_000 + "\n")
    with pytest.raises(UnderstudyError, match="line 1: expected a SHA-256"):
        ledger.audit(tmp_path)
