"""Damaged BP files: a message of one line or a description, never a traceback, in bounded time.

Most damage is refused or noted. What the metadata state once, such as names and starts of blocks,
has no checksum: a change of these is described as it stands.
"""

import random
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.readers.logs import BP
from tests.support.said import raises, said
from understudy.adios2 import bp_file, description, ffs
from understudy.adios2.bp4_writers import Writers
from understudy.adios2.metadata import Metadata
from understudy.errors import UnderstudyError

CASES = 400
SILENT_SHARE = 0.02  # of the damage, at most
METADATA = ("md.0", "md.idx", "mmd.0")
HUGE = (b"\xff" * 8, *(n.to_bytes(8, "little") for n in (1 << 63, 1 << 62, 1 << 40, 10**6)))


def described(path: Path) -> str:
    return description.workload_of(bp_file.read(path)).to_text()


def damage(folder: Path, draw: random.Random) -> str:
    """Damage a file in a directory; return what was done."""
    files = sorted(folder.iterdir())
    file = draw.choice([f for f in files if f.name in METADATA or draw.random() < 0.2])
    data = bytearray(file.read_bytes())
    at = draw.randrange(len(data))
    how = draw.choice(("bit", "byte", "cut", "swap", "missing", "huge", "zeros", "twice", "more"))
    if how == "bit":
        data[at] ^= 1 << draw.randrange(8)
    elif how == "byte":
        data[at] = draw.randrange(256)
    elif how == "cut":
        del data[at:]
    elif how == "swap":
        other = draw.choice([f for f in files if f != file])
        data, replaced = bytearray(other.read_bytes()), data
        other.write_bytes(replaced)
    elif how == "huge":
        data[at // 8 * 8 : at // 8 * 8 + 8] = draw.choice(HUGE)
    elif how == "zeros":
        data[at : at + 8] = bytes(len(data[at : at + 8]))
    elif how == "twice":
        data[at:at] = data[at : at + 64]
    elif how == "more":
        data += bytes(draw.randrange(1, 200))
    file.write_bytes(data)
    if how == "missing":
        file.unlink()
    return f"{how} {file.name} {at}"


@pytest.mark.parametrize("path", BP, ids=lambda path: path.stem)
def test_damage_is_told(path: Path, tmp_path: Path) -> None:
    whole = described(path)
    notes = {*(bp_file.read(path).notes)}
    outcomes: Counter[str] = Counter()
    for case in range(CASES // len(BP)):
        draw = random.Random(f"{path.stem} {case}")
        folder = tmp_path / f"{case}.bp"
        shutil.copytree(path, folder)
        how = damage(folder, draw)
        try:
            text = described(folder)
        except UnderstudyError as error:
            assert "\n" not in str(error) and str(error).startswith(str(folder)), how
            outcomes["message"] += 1
            continue
        noted = {*bp_file.read(folder).notes} - notes or not (folder / "profiling.json").exists()
        outcomes["equal" if text == whole else "noted" if noted else "silent"] += 1
    assert outcomes["message"] > 0.5 * CASES / len(BP), outcomes
    assert outcomes["silent"] <= SILENT_SHARE * CASES / len(BP), outcomes


# Damage of one kind, and what is said.


def changed(path: Path, folder: Path, file: str, at: int, new: bytes) -> Path:
    """A copy whose file has other bytes at a place."""
    copy = folder / path.name
    shutil.copytree(path, copy)
    data = bytearray((copy / file).read_bytes())
    data[at : at + len(new)] = new
    (copy / file).write_bytes(data)
    return copy


FILES = {path.stem: path for path in BP}


@pytest.mark.parametrize(
    ("name", "stem", "file", "at", "new"),
    [
        ("format-hash", "blocks-bp5", "mmd.0", 200, b"X"),
        ("format-unknown", "blocks-bp5", "md.0", 8 + 16 * 4 + 6, b"X"),
        ("writers-in-record", "blocks-bp5", "md.idx", 64 + 9, b"\x05"),
        ("step-position", "blocks-bp5", "md.idx", 64 + 9 + 56 + 9, b"\x08"),
        ("step-number", "blocks-bp4", "md.idx", 64, b"\x02"),
        ("step-time", "blocks-bp4", "md.idx", 64 + 48, bytes(8)),
        ("version", "blocks-bp4", "md.idx", 33, b"9"),
        ("bp-version", "blocks-bp5", "md.idx", 37, b"\x03"),
        ("bp-minor-version", "blocks-bp5", "md.idx", 38, b"\x01"),
        ("step-bytes", "blocks-bp5", "md.0", 0, b"\x00"),
        ("processes", "blocks-bp4", "md.0", 64, b"\x05"),
    ],
)
def test_what_is_said_of_damage(
    name: str, stem: str, file: str, at: int, new: bytes, tmp_path: Path
) -> None:
    copy = changed(FILES[stem], tmp_path, file, at, new)
    with pytest.raises(UnderstudyError) as error:
        bp_file.read(copy)
    said(name, error.value, copy=copy)


@pytest.mark.parametrize("name", ["md.0", "md.idx", "mmd.0", "data.1"])
def test_what_is_said_of_a_missing_file(name: str, tmp_path: Path) -> None:
    copy = tmp_path / "out.bp"
    shutil.copytree(FILES["blocks-bp5"], copy)
    (copy / name).unlink()
    with pytest.raises(UnderstudyError) as error:
        bp_file.read(copy)
    said(f"missing-{name}", error.value, copy=copy)


def test_what_is_said_of_short_data(tmp_path: Path) -> None:
    for stem in ("blocks-bp4", "blocks-bp5"):
        copy = tmp_path / f"{stem}.bp"
        shutil.copytree(FILES[stem], copy)
        with (copy / "data.1").open("r+b") as file:
            file.truncate(1000)
        with pytest.raises(UnderstudyError) as error:
            bp_file.read(copy)
        said(f"short-data-{stem}", error.value, copy=copy)


def test_a_writer_without_data_may_be_placed_behind_the_end(tmp_path: Path) -> None:
    """As in a last step without variables, where ADIOS2 states the place of the next data."""
    path = FILES["blocks-bp5"]
    place = (path / "md.idx").read_bytes().index((4656).to_bytes(8, "little"))  # rank 3, step 1
    copy = changed(path, tmp_path, "md.idx", place, (1 << 20).to_bytes(8, "little"))
    assert described(copy) == described(path)


@pytest.mark.parametrize("text", ["{", "[1]", '[{"rank": -1}]', '[{"rank": 0}, {"rank": 0}]'])
def test_a_wrong_profile_is_left_out(text: str, tmp_path: Path) -> None:
    copy = tmp_path / "out.bp"
    shutil.copytree(FILES["blocks-bp5"], copy)
    (copy / "profiling.json").write_text(text)
    output = bp_file.read(copy)
    assert output.profile is None
    said("profile-left-out", output.notes)


def test_a_profile_of_adios2_2_7_has_commas_too_many(tmp_path: Path) -> None:
    copy = tmp_path / "out.bp"
    shutil.copytree(FILES["blocks-bp4"], copy)
    file = copy / "profiling.json"
    file.write_text(file.read_text().replace("},\n", ",  },\n"))
    whole, read = (bp_file.read(path).profile for path in (FILES["blocks-bp4"], copy))
    assert whole is not None and read is not None
    assert {k: v.tolist() for k, v in read.seconds.items()} == {
        k: v.tolist() for k, v in whole.seconds.items()
    }


def test_a_writer_that_did_not_close_is_noted(tmp_path: Path) -> None:
    said("active", bp_file.read(changed(FILES["blocks-bp5"], tmp_path, "md.idx", 39, b"\1")).notes)


# Formats of BP5 that are wrong on purpose: their hashes fit.


def forged(folder: Path, path: Path, old: bytes, new: bytes) -> Path:
    """A copy of a file of BP5 in whose formats bytes are replaced, with new hashes of these."""
    assert len(old) == len(new)
    copy = folder / "forged.bp"
    shutil.copytree(path, copy)
    formats, metadata = (copy / "mmd.0").read_bytes(), (copy / "md.0").read_bytes()
    written = b""
    at = 0
    while at < len(formats):
        length = int.from_bytes(formats[at + 8 : at + 16], "little")
        identity, text = formats[at + 16 : at + 28], formats[at + 28 : at + 28 + length]
        changed_text = text.replace(old, new)
        size = int.from_bytes(text[6:8] + text[:2], "big")
        hashes = b"".join(n.to_bytes(4, "big") for n in ffs.hash_of(changed_text[:size]))
        written += formats[at : at + 16] + identity[:4] + hashes + changed_text
        metadata = metadata.replace(identity, identity[:4] + hashes)
        at += 28 + length
    (copy / "mmd.0").write_bytes(written)
    (copy / "md.0").write_bytes(metadata)
    return copy


def test_a_forged_file_is_read_where_nothing_is_wrong(tmp_path: Path) -> None:
    whole = bp_file.read(FILES["blocks-bp5"])
    output = bp_file.read(forged(tmp_path, FILES["blocks-bp5"], b"_slabs\0", b"_slab2\0"))
    assert len(output.variables) == len(whole.variables)
    assert {v.name for v in output.variables} - {v.name for v in whole.variables} == {"slab2"}


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("no-bits", b"BitField\0", b"BitFielX\0"),
        ("no-bit-count", b"BitFieldCount\0", b"BitFieldCounX\0"),
        ("no-dimensions", b"Dims\0", b"DimX\0"),
        ("no-counts", b"Count\0integer[DBCount]", b"CounX\0integer[DBCount]"),
        ("no-variable", b"BPG_8_10_slabs", b"BPX_8_10_slabs"),
        ("no-type", b"BPG_8_10_slabs", b"BPG_8_99_slabs"),
        ("no-attributes", b"GenericAttributes\0", b"GenericAttributeX\0"),
        ("no-attribute-part", b"StrAttr\0", b"StrAttX\0"),
        ("no-attribute-name", b"name\0", b"namX\0"),
        ("odd-size", b"\x08\0\0\0\x10\0\0\0", b"\x03\0\0\0\x10\0\0\0"),
        ("no-record", b"MetaData\0", b"MetaDatX\0"),
    ],
)
def test_what_is_said_of_a_forged_format(
    name: str, old: bytes, new: bytes, tmp_path: Path
) -> None:
    copy = forged(tmp_path, FILES["blocks-bp5"], old, new)
    try:
        output = bp_file.read(copy)
    except UnderstudyError as error:
        assert "\n" not in str(error) and str(error).startswith(str(copy))
        said(f"forged-{name}", error, copy=copy)
    else:
        assert name == "no-record" and output.writers == 4  # the name has no meaning


def test_processes_of_every_nth_subfile() -> None:
    """As where each node has an aggregator and its ranks are dealt in turn."""
    processes = np.arange(4)
    begins = np.array([64, 64, 300, 500])
    blocks = np.array([[0, 100, 200], [1, 100, 400], [0, 350, 400], [1, 550, 600], [0, 200, 240]])
    writers = Writers(processes, 2, lambda subfile, step: None)
    data = Metadata("md.0", b"")
    assert writers.of_step(data, 0, processes, begins, blocks).tolist() == [0, 1, 2, 3, 0]


@pytest.mark.parametrize("groups", [None, [64, 300]])
def test_a_process_without_blocks_is_that_of_the_data(groups: list[int] | None) -> None:
    processes = np.arange(2)
    places = None if groups is None else np.array(groups)
    writers = Writers(processes, 1, lambda subfile, step: places)
    data = Metadata("md.0", b"")
    arguments = data, 0, processes, np.array([64, 300]), np.array([[0, 350, 400]])
    if groups:
        assert writers.of_step(*arguments).tolist() == [1]
    else:
        with raises(UnderstudyError, "which-wrote-none"):
            writers.of_step(*arguments)
