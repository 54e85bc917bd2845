"""Plugin directories: ours and users', found by one function, and the output of a session."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.said import raises, said
from understudy import cli, paths
from understudy.contracts import workload
from understudy.errors import UnderstudyError
from understudy.paths import ROOT

# A path of a plugin directory that is put together by hand, as in ROOT / "workloads".
BY_HAND = re.compile(
    r"""\bROOT\b\s*/|/\s*["'](?:workloads|simulations|configs|proxies|checks|schemas)["']"""
)
SYSTEM = """\
from understudy.reframe.systems import *
system = {{"name": "{name}", "hostnames": ["^{name}$"], "partitions": per_filesystem(
    {{"scheduler": "local", "launcher": "mpirun", "environs": ["toy"], "features": [MPI],
      "extras": {{MAX_NODES: 1, RANKS_PER_NODE: 16, NEEDS: []}}}},
    memory={{"extras": {{TYPE: "tmpfs", SCRATCH: "/dev/shm"}}}})}}
environments = [{{"name": "toy", "target_systems": ["{name}"], "features": [MPI]}}]
"""
CHECK = """\
\"\"\"Is a check of a site found?\"\"\"

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.contracts.workload import names
from understudy.reframe.checks.bandwidth import Bandwidth


@rfm.simple_test
class OfSite(Bandwidth):
    workload = parameter(names(), loggable=True)
    method = parameter(["posix"], loggable=True)
    stripe_count = parameter(["default"], loggable=True)
"""
FIGURE = (
    '"""Is a figure of a site found?\n\nYes.\n"""\nORDER = 99\ndef draw(case):\n    return None\n'
)


def reframe(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).parent / "reframe", "-C", paths.where("config"), *arguments]
    more = {"RFM_CONFIG_FILES": "", "PWD": str(folder), "RFM_COLORIZE": "0", **variables}
    path = f"{ROOT / 'build' / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=os.environ | {"PATH": path} | more,
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_other_module_builds_the_path_of_a_plugin_directory() -> None:
    searched = [
        path
        for folder in ("python/understudy", "checks", "configs", "reports/figures", "studies")
        for path in (ROOT / folder).rglob("*.py")
        if path != Path(paths.__file__) and "tests" not in path.parts
    ]
    assert len(searched) > 80
    # export.py names CMakeLists.txt and LICENSE; a run directory has workloads of its own.
    allowed = {"export.py": 2, "run.py": 2}
    counts = {
        path.name: n for path in searched if (n := len(BY_HAND.findall(path.read_text("utf-8"))))
    }
    assert {name: n for name, n in counts.items() if n > allowed.get(name, 0)} == {}


@pytest.mark.parametrize("kind", paths.kinds())
def test_every_kind_is_there(kind: str) -> None:
    done = CliRunner().invoke(cli.main, ["doctor", "--paths", kind])
    assert done.exit_code == 0
    assert Path(done.stdout.strip()).exists()


def test_an_unknown_kind_lists_those_known() -> None:
    done = CliRunner().invoke(cli.main, ["doctor", "--paths", "nothing"])
    assert done.exit_code == 2
    said("kind-nothing-expected-one", done.stderr, kinds=", ".join(paths.kinds()))


def test_one_file_of_each_kind_of_a_site_is_found(tmp_path: Path) -> None:
    """A relative UNDERSTUDY_PATH too, though ReFrame changes directory."""
    files = {
        "systems/toy.py": SYSTEM.format(name="toy"),
        "checks/of_site.py": CHECK,
        "figures/of_site.py": FIGURE,
        "references/toy.yaml": "OfSite: {}\n",
        "workloads/w.json": paths.files("workloads", ".json")["n-1"].read_text(),
        "workloads/s.json": paths.files("workloads", ".json")["mphys-a"].read_text(),
        "simulations/s.json": paths.files("simulations", ".json")["mphys-a"].read_text(),
    }
    for name, text in files.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(text)
    done = reframe(tmp_path, "-l", "--system=toy", UNDERSTUDY_PATH="site/")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "- OfSite %workload=w " in done.stdout and "- Replay %workload=w " in done.stdout
    assert "WARNING" not in done.stdout
    code = (
        "from understudy.paths import *; from understudy.report import figures;"
        "print([k for k in ('references', 'simulations') if {'toy', 's'} & {*files(k, '.yaml'),"
        " *files(k, '.json')}], 'of_site' in [d.name for d in figures.drawers()])"
    )
    asked = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"UNDERSTUDY_PATH": "site"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    said("references-simulations-true", asked.stdout)


def test_the_site_of_the_working_directory_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless UNDERSTUDY_PATH is set, if only to nothing, or the folder is another user's."""
    system = tmp_path / "understudy-site" / "systems" / "toy.py"
    system.parent.mkdir(parents=True)
    system.write_text(SYSTEM.format(name="toy"))
    asked = ("-l", "--system=toy", "-n", "Replay%workload=n-1")
    monkeypatch.delenv("UNDERSTUDY_PATH", raising=False)
    assert reframe(tmp_path, *asked).returncode == 0
    assert reframe(tmp_path, *asked, UNDERSTUDY_PATH="").returncode != 0
    if os.geteuid() == 0:
        os.chown(tmp_path / "understudy-site", 12345, -1)
        assert reframe(tmp_path, *asked).returncode != 0


def test_redirected_output_has_no_colours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RFM_COLORIZE", raising=False)
    command = [Path(sys.executable).parent / "reframe", "-C", paths.where("config"), "--dry-run"]
    asked = [*map(str, command), "--system=localhost", "-n", "Replay%workload=n-1%method=posix"]
    more = {"UNDERSTUDY_OUTPUT": str(tmp_path), "PWD": str(tmp_path)}
    done = subprocess.run(
        asked, cwd=tmp_path, env=os.environ | more, capture_output=True, text=True, check=False
    )
    assert "OK ]" in done.stdout and "\x1b" not in done.stdout + done.stderr


def test_a_name_that_is_taken_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads" / "n-1.json").touch()
    monkeypatch.setenv("UNDERSTUDY_PATH", str(tmp_path))
    with pytest.raises(UnderstudyError) as error:
        workload.names()
    said(
        "workloads-json-workloads-name",
        str(error.value),
        tmp_path=tmp_path,
        workloads=paths.where("workloads"),
    )


def test_a_system_that_exists_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "systems").mkdir()
    titan = paths.files("systems", ".py")["titan"]
    (tmp_path / "systems" / "mine.py").write_text(SYSTEM.format(name="titan"))
    done = reframe(tmp_path, "-l", "--system=titan", UNDERSTUDY_PATH=str(tmp_path))
    assert done.returncode == 1
    said("systems-mine-py-system", done.stderr, tmp_path=tmp_path, titan=titan)


@pytest.mark.parametrize("variable", ["UNDERSTUDY_PATH", "UNDERSTUDY_WORKLOADS"])
def test_a_directory_that_does_not_exist_is_an_error(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "gone"))
    with pytest.raises(UnderstudyError, match=rf"^{variable}: .*/gone: no such directory$"):
        workload.names()


def test_a_site_without_a_plugin_directory_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNDERSTUDY_PATH", str(tmp_path))
    with raises(UnderstudyError, "expected-least-one-directory"):
        workload.names()


def test_a_page_shows_what_passed_and_what_failed(tmp_path: Path) -> None:
    """The page of a session holds all its records."""
    golden = ROOT / "tests" / "golden" / "measurements"
    record = json.loads((golden / "player.run.json").read_text(encoding="utf-8"))
    record["measurement"] = json.loads((golden / "player.json").read_text(encoding="utf-8"))
    session = tmp_path / "records" / "one"
    for name in ("good", "bad"):
        record["identity"]["id"] = f"{name}-run"
        (session / name).mkdir(parents=True)
        (session / name / "run.json").write_text(json.dumps(record), encoding="utf-8")
        record["measurement"], record["samples"] = None, []
        record["producer"]["failure"] = "the disk is full"
    page = tmp_path / "index.html"
    done = CliRunner().invoke(cli.main, ["report", str(session), "-o", str(page)])
    assert done.exit_code == 0, done.output
    text = page.read_text(encoding="utf-8")
    assert "<html" in text and said("disk-full", text)
