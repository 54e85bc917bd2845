"""Tables of text on a terminal: they fit, and no cell loses a word."""

import os
import pty
import subprocess
import sys

import pytest

from understudy.tables import table

ROWS = [
    ("Replay %workload=mphys-a %method=posix replica on mycluster:lustre", "1.2", "a" * 30),
    ("short", "12345.6", "one two three four five six seven eight nine"),
]


@pytest.mark.parametrize("room", [40, 60, 80, 500])
def test_it_fits_and_has_every_word(room: int) -> None:
    lines = list(table("", ("case", ">rate", "why"), ROWS, room))
    assert max(map(len, lines)) <= room
    text = "".join("".join(lines).split())
    for row in ROWS:
        for word in " ".join(row).split():
            assert all(part in text for part in (word[:6], word[-6:]))
    if room == 500:
        assert lines == list(table("", ("case", ">rate", "why"), ROWS)), "as where there is none"
        assert len(lines) == 1 + len(ROWS)


def test_a_column_of_numbers_keeps_its_width() -> None:
    lines = list(table("", ("x", ">value"), [("a b " * 30, "123456789")], 20))
    assert lines[1].endswith("123456789") and max(map(len, lines)) <= 20


def test_a_terminal_of_80_columns_is_not_overrun() -> None:
    """As a command prints it."""
    code = (
        "from understudy.tables import table\n"
        f"print('\\n'.join(table('', ('case', '>rate', 'why'), {ROWS!r})))"
    )
    reader, writer = pty.openpty()
    env = os.environ | {"COLUMNS": "80"}
    done = subprocess.run([sys.executable, "-c", code], env=env, stdout=writer, check=True)
    os.close(writer)
    text = os.read(reader, 65536).decode()
    os.close(reader)
    assert done.returncode == 0 and 60 < max(map(len, text.splitlines())) <= 80
