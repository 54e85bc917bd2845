"""tests/messages.json holds what tests ask for, and is rewritten where messages are."""

import re

import pytest

from tests.support import said
from understudy.paths import ROOT

FOLDERS = ROOT / "tests", ROOT / "nightly", ROOT / "studies"
MODULES = {path.stem: path for folder in FOLDERS for path in folder.rglob("test_*.py")}


@pytest.mark.parametrize("module", said.catalogue())
def test_each_sentence_is_asked_for(module: str) -> None:
    text = MODULES[module].read_text(encoding="utf-8")
    beside = (MODULES[module].with_name(name) for name in re.findall(r'"(\w+\.yaml)"', text))
    text += "".join(path.read_text(encoding="utf-8") for path in beside if path.exists())
    words = {*re.findall(r"[\w-]+", text), *re.findall(r"[\w.-]+", text)}
    forms = [
        re.sub(r"\{[^}]*\}", r"([\\w.-]+)", form)
        for form in re.findall(r'said\(f"([\w{}.-]+)"', text)
    ]

    def is_asked(name: str) -> bool:
        """By its name, or by a name that is put together of words of the module."""
        parts = [match.groups() for form in forms if (match := re.fullmatch(form, name))]
        return name in words or any(each and words.issuperset(each) for each in parts)

    assert [name for name in said.catalogue()[module] if not is_asked(name)] == []


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    sentences = {"cut": "{path}: the log ends early", "all": "^{} in {n} files$"}
    monkeypatch.setattr(said, "catalogue", lambda: {"test_said": sentences})
    return sentences


def test_a_sentence_is_compared_with_its_values(catalogue: dict[str, str]) -> None:
    said.said("cut", "understudy: /a.b: the log ends early\n", path="/a.b")
    said.said("all", "7 B in 2 files", n=2)
    for text in ("/a_b: the log ends early", "the log ends early", "/a.b: the log is cut"):
        with pytest.raises(AssertionError, match="cut: expected"):
            said.said("cut", text, path="/a.b")
    for text in ("7 B in 2 files\n", "7 B in 3 files", "7\nB in 2 files"):
        with pytest.raises(AssertionError, match="all: expected"):
            said.said("all", text, n=2)
    with pytest.raises(AssertionError, match="has no other"):
        said.said("other", "")
    with pytest.raises(AssertionError, match=r"cut: \{\}"):
        said.said("cut", "the log ends early")


def test_a_sentence_is_rewritten_with_its_values(
    catalogue: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_SAID", said.REWRITE)
    said.said("cut", "understudy:\n/a.b: the log is cut\n", path="/a.b")
    said.said("all", "moved: 7 B, 2 of 2 files", n=2)
    said.said("new", "3 of 4", n=4)
    assert catalogue == {
        "cut": "{path}: the log is cut",
        "all": "^moved: 7 B, {n} of {n} files$",
        "new": "3 of {n}",
    }
    with pytest.raises(AssertionError, match="all: "):
        said.said("all", "nothing", n=2)
