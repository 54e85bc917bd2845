"""The ways to use the files of a stream, and which of them fits the counters best."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.readers.cases.operations import file_that_is_opened_and_written_as_a_whole
from tests.readers.synthetic import only
from tests.support.said import said
from understudy import cli
from understudy.contracts.workload import Pattern, Provenance
from understudy.inference import description
from understudy.inference.log import counter_totals
from understudy.inference.score import candidates
from understudy.readers import darshan

LOGS = Path(__file__).parents[1] / "workshop" / "logs"
# Programs of the workshop, whose files differ in how they are used.
USES = {
    "append.dxt": ("rewrite", None),
    "history": ("new", None),
    "reopened": ("append", True),
    "steps": ("append", None),
    "nearfiles": ("new", None),
    "turns": ("rewrite", None),
}


def _use(stream: Pattern) -> tuple[str, bool | None]:
    return stream.files, stream.reopen


@pytest.mark.parametrize("name", USES)
def test_from_each_of_the_other_ways_that_of_the_program_comes_out(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = []
    choose = candidates.choose

    def from_each(stream: Pattern, *rest: Any) -> candidates.Choice | None:
        choice = choose(stream, *rest)
        if choice is not None:
            best = round(choice.candidates[0].bits)
            alike = [_use(c.stream) for c in choice.candidates if round(c.bits) == best]
            for other in choice.candidates:
                again = choose(other.stream, *rest)
                assert again is not None and _use(again.stream) in alike
            chosen.append(_use(choice.stream))
        return choice

    monkeypatch.setattr(description.candidates, "choose", from_each)
    darshan.read(LOGS / f"{name}.darshan")
    assert USES[name] in chosen


@pytest.mark.parametrize(
    ("bits", "confidence"),
    [
        ((3.0, 13.0, 13.0), "certain"),
        ((3.0, 12.9), "likely"),
        ((12.0, 30.0), "likely"),  # much is not explained
        ((52.0, 53.0), "guess"),
        ((3.0, 3.9, 40.0), "guess"),
    ],
)
def test_confidence_is_the_distance_to_the_next_one(
    bits: tuple[float, ...], confidence: str
) -> None:
    some = [candidates.Candidate(stream=None, what="x", bits=b, wrong=()) for b in bits]  # type: ignore[arg-type]
    assert candidates.Choice(candidates=tuple(some)).confidence == confidence


def test_of_many_files_no_counters_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = file_that_is_opened_and_written_as_a_whole().log(tmp_path / "a.darshan")
    assert any("ways" in p.how for p in darshan.read(path).provenance)
    monkeypatch.setattr(counter_totals, "MAX_FILES", 0)
    assert not any("ways" in p.how for p in darshan.read(path).provenance)


def test_show_why_tells_what_else_fits(tmp_path: Path) -> None:
    """With escapes, and one line for what is too long."""
    workload = file_that_is_opened_and_written_as_a_whole().describe(tmp_path)
    hostile = Provenance(path="/streams/0/a\x1b[2J\u202e\n", origin="read", how="x " * 10_000_000)
    path, name = tmp_path / "app.json", only(workload).name
    entries = (*workload.provenance, hostile)
    path.write_text(replace(workload, provenance=entries).to_text(), encoding="utf-8")
    done = CliRunner().invoke(cli.main, ["show", str(path), "--why", name])
    assert done.exit_code == 0 and "\x1b" not in done.output and "\u202e" not in done.output
    assert "a\\x1b[2J\\u202e\\n: read" in done.output and "(20,000,000 characters)" in done.output
    wrong = CliRunner().invoke(cli.main, ["show", str(path), "--why", "nosuch"])
    assert wrong.exit_code != 0 and said("expected-one", wrong.output, name_=name)
