"""Where ADIOS is, and small descriptors to be spoiled."""

import os
import re
import shutil
import subprocess
import textwrap
from pathlib import Path

from click.testing import CliRunner, Result

from tests.support.needs import need
from tests.support.player import needs
from understudy.cli import main
from understudy.paths import ROOT

TRACES = ROOT / "traces"
EXAMPLES = Path("/usr/share/doc/libadios-examples/examples/skel")

DESCRIPTOR = """\
<?xml version="1.0"?>
<adios-config host-language="C">
  <adios-group name="g">
    <var name="nx" type="integer"/>
    <var name="gx" type="integer"/>
    <var name="ox" type="integer"/>
    <var name="t" type="double"/>
    <global-bounds dimensions="gx" offsets="ox">
      <var name="a" type="double" dimensions="nx"/>
    </global-bounds>
    <var name="l" type="real" dimensions="2,nx"/>
  </adios-group>
  <method group="g" method="POSIX"/>
</adios-config>
"""

LOCAL = '<var name="l" type="real" dimensions="2,nx"/>'
WORDS = """\
<var name="s" type="string"/>
<var name="c" type="complex"/>
<var name="d" type="double complex"/>
"""
WORDS_VALUES = ('s=a "b" <c> & d/e \u00e9', "c=(1.5,-2)", "d=3")


def understudy(*words: object) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words], catch_exceptions=False)


def succeed(*words: object) -> Result:
    done = understudy(*words)
    assert done.exit_code == 0, done.output
    return done


def descriptor(folder: Path, old: str = "", new: str = "", text: str = DESCRIPTOR) -> Path:
    """The descriptor with a spot changed, in a file app.xml."""
    assert old in text
    path = folder / "app.xml"
    path.write_text(textwrap.dedent(text).replace(old, new, 1))
    return path


def bpls_path() -> str:
    """ADIOS' program that lists BP files, or a skip."""
    need("bpls")
    path = shutil.which("bpls") or shutil.which("bpls.openmpi")
    assert path is not None
    return path


def make(source: Path, folder: Path, *settings: str, cores: int = 4, language: str = "c") -> Path:
    """The program of a descriptor with one group, built in a folder; compiler warnings fail, and
    where there is no ADIOS the test is skipped."""
    needs("adios")
    app = source.stem
    words = [word for setting in settings for word in ("--set", setting)]
    built = succeed("skel", "make", source, "-n", cores, "-d", folder, "-l", language, *words)
    assert "warning" not in built.stderr
    [program] = (folder / "build").glob(f"{app}_skel_*_write")
    return program


def launch(program: Path, ranks: int, *words: object) -> list[str]:
    """The command that starts a program."""
    command = ["mpirun", "-n", str(ranks), str(program), *(str(word) for word in words)]
    return ["bash", "-c", '. "$0/setup-env.sh" && exec "$@"', str(ROOT), *command]


def run(
    program: Path, ranks: int, *words: object, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Starts a program in the folder of its descriptor."""
    return subprocess.run(
        launch(program, ranks, *words),
        cwd=program.parent.parent,
        capture_output=True,
        text=True,
        env=os.environ | (environment or {}),
        check=False,
        timeout=120,
    )


def run_line(
    program: Path, ranks: int, line: str, *words: object, **options: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Starts a program by a line of words without blanks in them, and more words."""
    return run(program, ranks, *line.split(), *words, **options)


def bpls(path: Path, *words: str) -> str:
    """Output of bpls for a BP file, without ADIOS' own variables."""
    done = subprocess.run([bpls_path(), path, *words], capture_output=True, text=True, check=True)
    return "\n".join(line for line in done.stdout.splitlines() if "/__adios__/" not in line)


def shapes(path: Path) -> dict[str, str]:
    """Name and shape of each variable: scalar, or {2, 3}."""
    rows = re.findall(
        r"^\s+\S.*?\s+(\S+)\s+(?:\d+\*)?(scalar|\{[^}]*\})", bpls(path), re.MULTILINE
    )
    return dict(rows)
