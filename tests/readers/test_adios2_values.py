"""Names and values of BP files as their bytes are: texts that are not UTF-8, and characters."""

import json
import shutil
from pathlib import Path

from click.testing import CliRunner

from tests.readers.test_bp_damage import FILES, forged
from understudy.adios2 import bp_file
from understudy.cli import main as understudy
from understudy.contracts import strict

ENGINES = ("bp4", "bp5")


def replaced(path: Path, folder: Path, *pairs: tuple[bytes, bytes]) -> Path:
    """A copy in whose md.0 bytes are others of the same number."""
    copy = folder / f"replaced-{path.name}"
    shutil.copytree(path, copy)
    data = (copy / "md.0").read_bytes()
    for old, new in pairs:
        assert len(old) == len(new) and old in data
        data = data.replace(old, new)
    (copy / "md.0").write_bytes(data)
    return copy


def test_names_that_are_not_utf_8_stay_apart(tmp_path: Path) -> None:
    """Two names of four bytes that differ in those that are not UTF-8."""
    for engine in ENGINES:
        path = FILES[f"blocks-{engine}"]
        if engine == "bp4":
            path = replaced(path, tmp_path, (b"wave", b"na\xffe"), (b"each", b"na\xfee"))
        else:
            (tmp_path / "first").mkdir()
            path = forged(tmp_path / "first", path, b"_wave\0", b"_na\xffe\0")
            path = forged(tmp_path, path, b"_each\0", b"_na\xfee\0")
        names = {v.name for v in bp_file.read(path).variables}
        assert len(names) == 15 and all(name in names for name in ("na\udcffe", "na\udcfee"))
        text = CliRunner().invoke(understudy, ["describe", "--keep-names", str(path)]).stdout
        labels = json.loads(text)["labels"].values()
        assert strict.decode(text, "workload")  # Unicode text, as its readers expect
        assert {"na\\xffe", "na\\xfee"} < {*labels}


def test_the_length_of_a_text_is_that_of_its_bytes(tmp_path: Path) -> None:
    path = replaced(FILES["blocks-bp4"], tmp_path, (b"step 1", b"st\xffp 1"))
    text = CliRunner().invoke(understudy, ["describe", str(path)]).stdout
    whole = CliRunner().invoke(understudy, ["describe", str(FILES["blocks-bp4"])]).stdout
    assert json.loads(text)["streams"][0]["steps"] == json.loads(whole)["streams"][0]["steps"]


def test_the_value_of_a_character_is_its_code(tmp_path: Path) -> None:
    """As an attribute of characters, of which the bytes of numbers are made here."""
    for engine, old, new, name, values in (
        ("bp4", b"sizes\0\0\x02", b"sizes\0\0\x37", "sizes", ("1", "0", "0")),
        ("bp5", b"\0:dt\0", b"\0?dt\0", "dt", ("0",) * 6 + ("208", "63")),
    ):
        path = replaced(FILES[f"blocks-{engine}"], tmp_path, (old, new))
        attributes = {a.name: a for a in bp_file.read(path).attributes}
        assert (attributes[name].type, attributes[name].values) == ("char", values)
        to = tmp_path / engine
        done = CliRunner().invoke(
            understudy, ["skel", "make", str(path), "-d", str(to), "--no-make"]
        )
        assert done.exit_code == 0, done.stderr
        [program] = to.glob("*_write.cpp")
        listed = ", ".join(f"static_cast<char>({value})" for value in values)
        assert listed in program.read_text()
