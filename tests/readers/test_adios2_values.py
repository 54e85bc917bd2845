"""Names and values of BP files as their bytes are: texts that are not UTF-8, and characters."""

import json
import shutil
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from tests.readers.test_bp_damage import FILES, forged
from tests.support.said import raises, said
from understudy.adios2 import bp_file
from understudy.adios2.bp4 import OFFSET, PAYLOAD
from understudy.adios2.bp4_writers import Writers
from understudy.adios2.metadata import Metadata
from understudy.cli import main as understudy
from understudy.contracts import strict
from understudy.errors import UnderstudyError

ENGINES = ("bp4", "bp5")


def replaced(path: Path, folder: Path, *pairs: tuple[bytes, bytes]) -> Path:
    """A copy in whose md.0, and data, bytes are others of the same number."""
    copy = folder / f"replaced-{path.name}"
    shutil.copytree(path, copy)
    for file in (copy / "md.0", *copy.glob("data.*")):
        data = file.read_bytes()
        for old, new in pairs:
            assert len(old) == len(new) and (old in data or file.name != "md.0")
            data = data.replace(old, new)
        file.write_bytes(data)
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


# Of a text of BP4, the place is that in the buffer of its process.


def relative(path: Path, folder: Path) -> Path:
    """A copy in which the text of the first process has such places, as that of another has."""
    copy = folder / path.name
    shutil.copytree(path, copy)
    data = bytearray((copy / "md.0").read_bytes())
    begins = [
        at for at in range(1 << 16) if (path / "data.0").read_bytes()[at : at + 4] == b"[PGI"
    ]
    for step, group in enumerate(begins[::2]):  # of two processes of this subfile
        value = data.index(b"step %d" % step) + 6 + 4  # dimensions
        for at in (value + 1, value + 10):
            assert data[at - 1] in (OFFSET, PAYLOAD)
            place = int.from_bytes(data[at : at + 8], "little") - group
            data[at : at + 8] = place.to_bytes(8, "little")
    (copy / "md.0").write_bytes(data)
    return copy


def test_a_text_is_placed_by_the_data(tmp_path: Path) -> None:
    whole = FILES["blocks-bp4"]
    path = relative(whole, tmp_path)
    assert (path / "md.0").read_bytes() != (whole / "md.0").read_bytes()
    first, second = (
        [
            [(i.value, i.values, i.blocks.writers.tolist()) for i in v.instances]
            for v in bp_file.read(p).variables
        ]
        for p in (path, whole)
    )
    assert first == second
    for file in path.glob("data.*"):
        file.unlink()
    with raises(UnderstudyError, "text-without-data"):
        bp_file.read(path)


def test_the_writers_of_texts_are_those_in_whose_data_they_stand() -> None:
    """Of three processes in the second session of a file; the first collects the data of others
    and states places in the file. The last two wrote the same."""
    stored = bytearray(400)
    for at, text in ((110, b"one"), (230, b""), (330, b"")):
        stored[at : at + 6 + len(text)] = b"[VMD" + len(text).to_bytes(2, "little") + text
    session = {1: [64, 70, 80], 2: [100, 200, 300]}

    def content(_: int, at: int, size: int) -> bytes:
        assert 0 <= size < len(stored)
        return bytes(stored[at : at + size])

    writers = Writers(np.arange(3), 1, lambda _, step: np.array(session[step]), content)
    data, ranks = Metadata("md.0", b""), np.arange(3)
    writers.place(ranks, np.array([100, 200, 300]), np.zeros((0, 3), np.int64))
    begins = writers.group_begins(1, ranks)
    assert begins is not None
    blocks = np.array([[0, 110, 119], [0, 130, 136], [0, 130, 136]])
    which, placed = writers.of_texts(data, 1, ranks, begins, blocks, [b"one", b"", b""])
    assert which.tolist() == [0, 1, 2]
    assert placed[:, 1].tolist() == [110, 230, 330]
    with raises(UnderstudyError, "text-of-none"):
        writers.of_texts(data, 1, ranks, begins, blocks, [b"one", b"six", b""])
    for wrong in ([0, 110, 5], [0, 110, 1 << 62], [0, 1 << 62, 119]):
        blocks[0] = wrong
        with raises(UnderstudyError, "text-of-none"):
            writers.of_texts(data, 1, ranks, begins, blocks, [b"one", b"", b""])


def test_an_attribute_with_several_values_is_noted(tmp_path: Path) -> None:
    """As of one that changes from step to step; here, another is given its name."""
    for engine in ENGINES:
        path = FILES[f"blocks-{engine}"]
        whole = bp_file.read(path)
        output = bp_file.read(replaced(path, tmp_path, (b"title", b"units")))
        values = {a.name: a.values for a in output.attributes}
        assert values["units"] in (("m", "s"), ("blocks",)) and "title" not in values
        [note] = {*output.notes} - {*whole.notes}
        said("several-values", note)


def test_a_profile_that_contradicts_itself_is_left_out(tmp_path: Path) -> None:
    """A flipped bit in one of the two places where BP5 states a time."""
    path = tmp_path / "out.bp"
    shutil.copytree(FILES["blocks-bp5"], path)
    text = (path / "profiling.json").read_text()
    rows = json.loads(text)
    for row, key, timer in ((rows[2], "ES_mus", "ES"), (rows[1]["BS"], "mus", "BS")):
        whole, row[key] = row[key], row[key] ^ 1 << 40
        (path / "profiling.json").write_text(json.dumps(rows))
        output = bp_file.read(path)
        assert output.profile is None
        said("profile-contradiction", output.notes, timer=timer)
        row[key] = whole
    (path / "profiling.json").write_text(json.dumps(rows))
    assert bp_file.read(path).profile is not None
