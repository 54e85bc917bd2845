"""understudy records migrate: every old result becomes a record, and nothing is lost."""

import json
import shutil
from pathlib import Path

from click.testing import CliRunner, Result

from tests.support.said import said
from understudy import cli, producers
from understudy.contracts import run as runs
from understudy.paths import where

FIXTURES = sorted((where("schemas") / "old" / "fixtures" / "result-1").glob("*.json"))


def migrate(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, ["records", "migrate", *map(str, arguments)])


def tree(folder: Path) -> Path:
    for path in FIXTURES:
        (folder / path.stem).mkdir(parents=True)
        shutil.copy(path, folder / path.stem / "result.json")
    return folder


def test_records_are_written_beside_the_results(tmp_path: Path) -> None:
    folder = tree(tmp_path / "old")
    done = migrate(folder, "--system", "s", "--campaign", "first")
    assert done.exit_code == 0, done.output
    said("migrated-up-date-failed", done.output.splitlines()[-1], FIXTURES=len(FIXTURES))
    for path in FIXTURES:
        assert (folder / path.stem / "result.json").read_bytes() == path.read_bytes()
        run = runs.load(folder / path.stem / "run.json")
        assert run.measurement == json.loads(path.read_text())
        assert (run.place.system, run.identity.campaign) == ("s", "first")
    again = migrate(folder)
    said("migrated-up-date-failed-2", again.output.splitlines()[-1], FIXTURES=2 * len(FIXTURES))


def test_in_place_keeps_the_measurement_in_the_record(tmp_path: Path) -> None:
    folder = tree(tmp_path / "old")
    done = migrate(folder, "--in-place")
    assert done.exit_code == 0, done.output
    for path in FIXTURES:
        assert [p.name for p in (folder / path.stem).iterdir()] == ["result.json"]
        run = producers.load(folder / path.stem / "result.json")
        assert run.measurement == json.loads(path.read_text())
        assert run == producers.record(path)


def test_a_file_of_another_name_gets_a_record_of_its_own(tmp_path: Path) -> None:
    for path in FIXTURES[:2]:
        shutil.copy(path, tmp_path / path.name)
    done = migrate(*sorted(tmp_path.glob("*.json")))
    assert done.exit_code == 0, done.output
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        name for p in FIXTURES[:2] for name in (p.name, f"{p.stem}.run.json")
    )


def test_a_damaged_file_is_reported_and_the_others_are_migrated(tmp_path: Path) -> None:
    folder = tree(tmp_path / "old")
    bad = folder / FIXTURES[0].stem / "result.json"
    text = bad.read_text()[:-200]
    bad.write_text(text)
    done = migrate(folder)
    assert done.exit_code == 2
    said("migrated-up-date-failed-3", done.output, FIXTURES=len(FIXTURES) - 1)
    assert done.stderr.count("understudy: ") == 1 and str(bad) in done.stderr
    assert bad.read_text() == text and not bad.with_name("run.json").exists()


def test_a_private_file_stays_private(tmp_path: Path) -> None:
    for name in ("result.json", "other.json"):
        shutil.copy(FIXTURES[0], tmp_path / name)
        (tmp_path / name).chmod(0o600)
    assert migrate(tmp_path / "result.json").exit_code == 0
    assert migrate("--in-place", tmp_path / "other.json").exit_code == 0
    assert {p.stat().st_mode & 0o777 for p in tmp_path.iterdir()} == {0o600}


def test_a_link_to_nothing_is_not_replaced(tmp_path: Path) -> None:
    shutil.copy(FIXTURES[0], tmp_path / "result.json")
    (tmp_path / "run.json").symlink_to("elsewhere.json")
    done = migrate(tmp_path / "result.json")
    assert done.exit_code == 2 and done.stderr.count("\n") == 1
    said("run-json-symbolic-link", done.stderr)
    assert (tmp_path / "run.json").is_symlink()


def test_a_record_of_another_run_is_never_replaced(tmp_path: Path) -> None:
    shutil.copy(FIXTURES[0], tmp_path / "result.json")
    runs.write(tmp_path / "run.json", producers.record(FIXTURES[1]))
    before = (tmp_path / "run.json").read_bytes()
    done = migrate(tmp_path / "result.json")
    assert done.exit_code == 2 and said("exists-already-record-another", done.stderr)
    assert (tmp_path / "run.json").read_bytes() == before


def test_what_stands_in_the_way_is_one_message(tmp_path: Path) -> None:
    shutil.copy(FIXTURES[0], tmp_path / "result.json")
    (tmp_path / "run.json").mkdir()
    done = migrate(tmp_path / "result.json")
    assert done.exit_code == 2 and done.stderr.count("\n") == 1
    said("run-json-cannot-read", done.stderr)


def test_a_workload_names_the_command_that_rewrites_it(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    shutil.copy(where("workloads") / "n-1.json", path)
    done = migrate(path)
    assert done.exit_code == 2 and f"understudy describe {path} -o NEW.json" in done.stderr


def test_what_is_no_measurement_says_what_is_expected(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text('{"schema": "understudy/player/7"}')
    done = migrate(tmp_path)
    assert done.exit_code == 2
    assert said("player-newer-than-player", done.stderr) and "upgrade" in done.stderr
