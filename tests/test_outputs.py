"""Files that commands write: what they never take the place of."""

import os
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.said import raises, said
from understudy.cli import main
from understudy.errors import UnderstudyError
from understudy.files import expect_new, new_file
from understudy.paths import ROOT
from understudy.report import page

LOG = ROOT / "traces" / "lammps_growth.darshan"
WORKLOAD = ROOT / "workloads" / "n-n.json"

COMMANDS = {
    "synthesize": ["synthesize", "-n", "2", "-f", "OUT"],
    "describe": ["describe", str(LOG), "-f", "-o", "OUT"],
    "export": ["export", str(WORKLOAD), "-f", "-o", "OUT"],
    "scale": ["describe", str(WORKLOAD), "-n", "4", "--rule", "weak", "-f", "-o", "OUT"],
    "fidelity": ["fidelity", str(LOG), str(LOG), "-f", "--json", "OUT"],
    "rank": ["rank", str(LOG), "-f", "--json", "OUT"],
    "archive": ["archive", str(LOG), "--into", "INTO", "-f", "--csv", "OUT"],
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_force_does_not_replace_a_pipe(words: list[str], tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "into").mkdir()
    names = {"OUT": str(pipe), "INTO": str(tmp_path / "into")}
    done = CliRunner().invoke(main, [names.get(word, word) for word in words])
    assert done.exit_code in (1, 2) and "Traceback" not in done.output
    said("no-regular-file", done.output, pipe=pipe)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["into", "pipe"]
    assert not list((tmp_path / "into").iterdir())


@pytest.mark.parametrize("name", ["null", "full", "stdout", "there-is-no-such-device"])
def test_nothing_is_written_in_dev(name: str) -> None:
    path = Path("/dev") / name
    before = sorted(Path("/dev").iterdir())
    with raises(UnderstudyError, "no-regular-file-2"):
        expect_new(path, force=True)
    with raises(UnderstudyError, "no-regular-file-2"), new_file(path):
        raise AssertionError("a temporary file in /dev")
    with raises(UnderstudyError, "no-regular-file-2"):
        page.save("text", path)
    assert sorted(Path("/dev").iterdir()) == before


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    with raises(UnderstudyError, "no-regular-file-2"), new_file(tmp_path):
        pass
