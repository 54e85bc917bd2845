"""The ways to use the files of a stream, and which of them fits the counters best."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.readers.synthetic import Run, only
from tests.support.said import said
from understudy import cli
from understudy.contracts.workload import Pattern, Provenance
from understudy.inference import description
from understudy.inference.log import counter_totals
from understudy.inference.score import candidates
from understudy.readers import darshan

MIB = 1 << 20
LOGS = Path(__file__).parents[1] / "workshop" / "logs"
# The workshop's programs of known truth whose files differ in how they are used.
KNOWN = {
    "append.dxt": ("rewrite", None),
    "history": ("new", None),
    "reopened": ("append", True),
    "steps": ("append", None),
    "nearfiles": ("new", None),
    "turns": ("rewrite", None),
}


def _use(stream: Pattern) -> tuple[str, bool | None]:
    return stream.files, stream.reopen


def _log(name: str) -> Path:
    found = sorted(LOGS.rglob(f"{name}.darshan"))
    assert found, name
    return found[0]


def _rewritten(run: Run, dumps: int = 6, **more: int) -> None:
    """A file that is opened and written as a whole so often."""
    counters = {"OPENS": dumps, "SEQ_WRITES": 0, "MAX_BYTE_WRITTEN": MIB - 1} | more
    run.write("/s/a.chk", dumps * MIB, 1.0, rank=0, calls=dumps, duration_s=60.0, **counters)


@pytest.mark.parametrize("name", KNOWN)
def test_the_choice_does_not_depend_on_what_was_found_first(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From each of the other ways, the way of the program comes out."""
    chosen = []
    choose = candidates.choose

    def from_each(stream: Pattern, *rest: Any) -> candidates.Choice | None:
        found = choose(stream, *rest)
        if found is not None:
            best = round(found.candidates[0].bits)
            alike = [_use(c.stream) for c in found.candidates if round(c.bits) == best]
            for other in found.candidates:
                again = choose(other.stream, *rest)
                assert again is not None and _use(again.stream) in alike
            chosen.append(_use(found.stream))
        return found

    monkeypatch.setattr(description.candidates, "choose", from_each)
    darshan.read(_log(name))
    assert KNOWN[name] in chosen


def test_files_of_each_step_that_are_read_in_the_next_are_no_appended_one(tmp_path: Path) -> None:
    run = Run(nprocs=1, run_time_s=100.0)
    size = {"calls": 4, "SIZE_WRITE_100K_1M": 4, "CONSEC_WRITES": 3, "SEQ_WRITES": 3}
    for n in range(12):
        name = f"/s/p{n:03d}"
        read = {}
        if n < 11:
            read = {
                "READS": 4,
                "OPENS": 2,
                "BYTES_READ": MIB,
                "MAX_BYTE_READ": MIB - 1,
                "SIZE_READ_100K_1M": 4,
                "CONSEC_READS": 3,
                "SEQ_READS": 3,
                "RW_SWITCHES": 1,
                "F_READ_START_TIMESTAMP": 8.0 * n + 9.5,
                "F_READ_END_TIMESTAMP": 8.0 * n + 9.6,
            }
        run.write(name, MIB, 8.0 * n + 1, rank=0, **size, **read)
    run.describe(tmp_path)


def test_what_a_rule_gets_wrong_the_counters_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = description.Composer._chosen

    def wrong(self: Any, made: Any) -> Any:
        return learned(self, [replace(s, files="new", removes=False) for s in made])

    run = Run(nprocs=2, run_time_s=100.0)
    _rewritten(run)
    run.describe(tmp_path)
    monkeypatch.setattr(description.Composer, "_chosen", wrong)
    run.describe(tmp_path)


def test_confidence_is_the_distance_to_the_next_one() -> None:
    def choice(*bits: float) -> candidates.Choice:
        some = [candidates.Candidate(stream=None, what="x", bits=b, wrong=()) for b in bits]  # type: ignore[arg-type]
        return candidates.Choice(candidates=tuple(some))

    assert choice(3.0, 13.0, 13.0).confidence == "certain"
    assert choice(3.0, 12.9).confidence == "likely"
    assert choice(12.0, 30.0).confidence == "likely"  # much is not explained
    assert choice(52.0, 53.0).confidence == "guess"
    assert choice(3.0, 3.9, 40.0).confidence == "guess"


def test_a_number_takes_more_bits_the_further_it_is_off() -> None:
    bits = [candidates._bits(n, 1000) for n in (1000, 1005, 1100, 2000, 10_000, 0)]
    assert bits == sorted(bits) and bits[0] == 0 and bits[1] < 1.5
    assert candidates._bits(2000, 1000) == pytest.approx(candidates._bits(500, 1000), rel=1e-3)


def test_of_many_files_no_counters_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(nprocs=2, run_time_s=100.0)
    _rewritten(run)
    path = run.log(tmp_path / "a.darshan")
    assert any("ways" in p.how for p in darshan.read(path).provenance)
    monkeypatch.setattr(counter_totals, "MAX_FILES", 0)
    assert not any("ways" in p.how for p in darshan.read(path).provenance)


def test_show_why_tells_what_else_fits(tmp_path: Path) -> None:
    run = Run(nprocs=2, run_time_s=100.0)
    _rewritten(run)
    described = run.describe(tmp_path)
    path, name = tmp_path / "app.json", only(described).name
    path.write_text(described.to_text(), encoding="utf-8")
    told = CliRunner().invoke(cli.main, ["show", str(path), "--why", name])
    assert told.exit_code == 0, told.output
    wrong = CliRunner().invoke(cli.main, ["show", str(path), "--why", "nosuch"])
    assert wrong.exit_code != 0 and said("expected-one", wrong.output, name_=name)


def test_show_why_escapes_what_it_prints(tmp_path: Path) -> None:
    run = Run(nprocs=2, run_time_s=100.0)
    _rewritten(run)
    described = run.describe(tmp_path)
    hostile = Provenance(path="/streams/0/a\x1b[2J\u202e\n", origin="read", how="x " * 10_000_000)
    path = tmp_path / "app.json"
    entries = (*described.provenance, hostile)
    path.write_text(replace(described, provenance=entries).to_text(), encoding="utf-8")
    told = CliRunner().invoke(cli.main, ["show", str(path), "--why", only(described).name])
    assert told.exit_code == 0 and "\x1b" not in told.output and "\u202e" not in told.output
    assert "a\\x1b[2J\\u202e\\n: read" in told.output and "(20,000,000 characters)" in told.output


def test_a_note_on_truncation_is_of_the_way_that_was_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def notes(workload: Any) -> str:
        return "\n".join(workload.source.notes)

    run = Run(nprocs=2, run_time_s=100.0)
    _rewritten(run)
    said("were-truncated-each-time", notes(run.describe(tmp_path)))

    def appended(_: Any, made: Any) -> Any:
        return [replace(s, files="append", reopen=True) for s in made]

    monkeypatch.setattr(description.Composer, "_chosen", appended)
    assert "truncated" not in notes(run.describe(tmp_path))
