"""The corpus of descriptions has what tests ask for, and nothing else."""

import re

import pytest

from tests.support.described import FOLDER, corpus
from understudy.paths import ROOT

MODULES = {path.stem: path for path in (ROOT / "tests").rglob("test_*.py")}
CORPUS = sorted(path.stem for path in FOLDER.glob("*.txt"))


@pytest.mark.parametrize("module", CORPUS)
def test_each_description_is_of_a_test(module: str) -> None:
    source = MODULES[module].read_text(encoding="utf-8")
    names = {re.split(r"[\[#]", name)[0] for name in corpus(module)}
    assert names and [name for name in names if f"def {name}(" not in source] == []
    assert all(text.startswith("program ") for text in corpus(module).values())
