"""The wording of messages, which tests/messages.json holds: a test names a message and its values.

    said("cut-log", done.stderr, path=path)

A sentence may hold `{path}` for a value of the test, `{}` for anything on its line, and begins
with `^` or ends with `$` where the text does. `pytest --rewrite-messages` writes what is said now:
read the difference. A value that the new sentence does not hold is a failure all the same.
"""

import difflib
import functools
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

MESSAGES = Path(__file__).resolve().parents[1] / "messages.json"
REWRITE = "--rewrite-messages"
PLACE = re.compile(r"\{(\w*)\}")


@functools.cache
def catalogue() -> dict[str, dict[str, str]]:
    """The sentences, by the module of tests and their names."""
    sentences: dict[str, dict[str, str]] = json.loads(MESSAGES.read_text(encoding="utf-8"))
    return sentences


def write() -> None:
    text = json.dumps(catalogue(), indent=1, ensure_ascii=False, sort_keys=True)
    MESSAGES.write_text(text + "\n", encoding="utf-8")


def pattern(sentence: str, values: Mapping[str, object]) -> re.Pattern[str]:
    """What finds the sentence with these values in a text."""
    parts = PLACE.split(sentence.removeprefix("^").removesuffix("$"))
    named = [re.escape(str(values[name])) if name else ".*?" for name in parts[1::2]]
    body = "".join(map("".join, zip(map(re.escape, parts[::2]), [*named, ""], strict=True)))
    begin = r"\A" if sentence.startswith("^") else ""
    return re.compile(begin + body + (r"\Z" if sentence.endswith("$") else ""))


def reworded(sentence: str, text: str, values: Mapping[str, object]) -> str:
    """The sentence of a text that is the most like this one, with places for the same values."""
    whole = sentence.startswith("^") and sentence.endswith("$")
    lines = [text] if whole else text.splitlines() or [""]
    line = max(
        lines, key=lambda candidate: difflib.SequenceMatcher(None, sentence, candidate).ratio()
    )
    for name, value in sorted(values.items(), key=lambda item: -len(str(item[1]))):
        line = line.replace(str(value), f"{{{name}}}")
    return f"^{line}$" if whole else line


def said(name: str, text: object, **values: object) -> bool:
    """True if the text holds the sentence of this name with these values, else an error."""
    module = os.environ["PYTEST_CURRENT_TEST"].partition(".py")[0].rpartition("/")[2]
    sentences, text = catalogue().setdefault(module, {}), str(text)
    sentence, rewrite = sentences.get(name, ""), REWRITE in os.environ.get("PYTEST_SAID", "")
    assert rewrite or sentence, f"{MESSAGES.name}: {module} has no {name}"
    assert not sentence or {*PLACE.findall(sentence)} - {""} == {*values}, f"{name}: {values}"
    if not sentence or not pattern(sentence, values).search(text):
        assert rewrite, f"{name}: expected {sentence!r} {values or ''}, got {text!r}"
        sentences[name] = reworded(sentence, text, values)
        assert {*values} <= {*PLACE.findall(sentences[name])}, f"{name}: {sentences[name]}"
    return True


@contextmanager
def raises(kind: type[BaseException], name: str, **values: object) -> Iterator[None]:
    """An error of this kind, whose message holds the sentence."""
    with pytest.raises(kind) as error:
        yield
    said(name, error.value, **values)
