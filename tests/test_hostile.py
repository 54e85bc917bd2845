"""Hostile JSON files, plugins and names: one message, without a traceback or raw characters."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure

from tests.support import refused
from tests.support.keys import to_keys
from tests.support.said import said
from understudy import producers
from understudy.cli import main
from understudy.contracts import run as runs
from understudy.contracts import schema
from understudy.contracts.workload import load
from understudy.errors import UnderstudyError, printable
from understudy.paths import ROOT, where
from understudy.reframe.bases import recording
from understudy.report import figures
from understudy.report.axes import add_legend

PLAYER = Path(__file__).parent / "golden" / "measurements" / "player.json"


def record() -> dict[str, Any]:
    row = json.loads(schema.json_text(runs.to_row(producers.record(PLAYER))))
    assert isinstance(row, dict)
    return row


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"samples": [', '"samples": [' + "[" * 5000 + "]" * 5000 + ",", "nested more than 50"),
        ('"free_bytes": ', '"free_bytes": 1e999, "x": ', "free_bytes: expected a finite number"),
        ('"case": null', '"case": "\\ud800"', "identity.case: expected a string of Unicode text"),
        ('"case": null', '"case": null, "\\uDC00": 1', "identity: expected a key of Unicode text"),
    ],
)
@pytest.mark.parametrize("command", ["show", "records migrate", "report"])
def test_commands_refuse_hostile_json_alike(
    command: str, old: str, new: str, message: str, tmp_path: Path
) -> None:
    text = json.dumps(record())
    assert old in text
    path = tmp_path / "x.json"
    path.write_text(text.replace(old, new, 1))
    more = ["-o", str(tmp_path / "x.html")] if command == "report" else []
    done = CliRunner().invoke(main, [*command.split(), str(path), *more])
    assert done.exit_code == 2 and isinstance(done.exception, SystemExit)
    assert message in done.output and str(path) in done.output


CONTRADICTIONS: list[tuple[str, Any, str]] = [
    ("samples/0/value", 1e9, "samples: differ from the measurement's"),
    ("producer/options/method", "other", r"producer\.options\.method: differs from the measureme"),
    (
        "storage/streams/0/asked/stripe_count",
        "many",
        r"storage\.streams\.0\.asked\.stripe_count",
    ),
    ("identity/time", "yesterday", r"identity\.time: 'yesterday'"),
    ("identity/arm", "a b", r"identity\.arm: 'a b'"),
    (
        "measurement/repetitions",
        2 * record()["measurement"]["repetitions"],
        r"repetitions\[\d\]\.repetition: expected a number of its own for each, found 0 twice",
    ),
]


@pytest.mark.parametrize(("place", "value", "message"), CONTRADICTIONS)
@pytest.mark.parametrize("read", [producers.load, recording.load])
def test_a_record_that_contradicts_itself_is_refused(
    read: Callable[[Path], Any], place: str, value: Any, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(record()))
    assert read(path)
    path.write_text(json.dumps(refused.altered(record(), place, value)))
    with pytest.raises(UnderstudyError, match=message):
        read(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def draw(:\n", "zz.py: line 1: "),
        ("\nimport nothing_of_that_name\n", "zz.py: line 2: Mod"),
    ],
)
def test_a_broken_figure_is_one_message(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "zz.py"
    path.write_text(text)
    with pytest.raises(UnderstudyError, match=message):
        figures.drawers([path])


@pytest.mark.parametrize("body", ["raise KeyError('a' * 3)", "return 1"])
def test_a_figure_that_fails_while_drawing_is_one_message_and_the_page_is_made(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figure = tmp_path / "mine" / "figures" / "zz.py"
    figure.parent.mkdir(parents=True)
    figure.write_text(
        f'"""Is it drawn?\n\nNo.\n"""\nORDER = 99\n\n\ndef draw(case):\n    {body}\n'
    )
    monkeypatch.setenv("UNDERSTUDY_PATH", str(tmp_path / "mine"))
    output = tmp_path / "x.html"
    done = CliRunner().invoke(main, ["report", str(PLAYER), "-o", str(output)])
    assert done.exit_code == 2 and isinstance(done.exception, SystemExit)
    (message,) = [line for line in done.stderr.splitlines() if "zz.py" in line]
    assert message.startswith(f"understudy: {figure}: ") and said(
        "page-lacks-this-figure", message
    )
    assert ("line 9: " in message) == (body != "return 1")
    assert "<svg" in output.read_text() and "Is it drawn?" not in output.read_text()


def test_errors_escape_what_a_terminal_would_obey(tmp_path: Path) -> None:
    assert printable("a\u202eb\x1b[2J\u00e9") == "a\\u202eb\\x1b[2J\u00e9"
    for arguments in (["show", str(tmp_path / "a\u202e\x1b.json")], ["no\u202esuch"]):
        done = CliRunner().invoke(main, arguments)
        assert done.exit_code and "\\u202e" in done.output
        assert "\u202e" not in done.output and "\x1b" not in done.output


@pytest.mark.parametrize(
    "words",
    [
        ("show",),
        ("export", "--keep-names", "-o", "sent.tgz"),
        ("export", "-o", "sent.tgz"),
        ("show", "--counters"),
        ("describe", "-n", "8", "--rule", "weak"),
        ("describe",),
        ("run",),
    ],
    ids=" ".join,
)
def test_commands_escape_the_texts_of_a_workload(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = "\x1b]0;owned\x07\x1b[31m\x9b31m\u202e"
    row = json.loads(to_keys(load(ROOT / "proxies/tests/samples/shared.json")))
    row |= {"description": hostile, "source": row["source"] | {"notes": [hostile]}}
    for entry in row["provenance"]:
        entry["how"] = hostile
    for stream in row["streams"]:
        stream["label"] = hostile
        for dump in stream["dumps"]:
            for variable in dump["variables"]:
                variable["label"] = hostile
    monkeypatch.chdir(tmp_path)
    Path("w.json").write_text(json.dumps(row), encoding="utf-8")
    output = CliRunner().invoke(main, [words[0], "w.json", *words[1:]]).output
    assert output and all(c.isprintable() or c == "\n" for c in output), repr(output)


def test_a_long_legend_leaves_room_for_the_panels() -> None:
    import matplotlib

    with warnings.catch_warnings(), matplotlib.rc_context(fname=str(where("style"))):
        warnings.simplefilter("error")
        figure = Figure(figsize=(10.5, 2.5))
        lines = [figure.subplots().plot([0], label=f"line {n}")[0] for n in range(1)] * 120
        add_legend(figure, lines, columns=6)
        figure.draw_without_rendering()
