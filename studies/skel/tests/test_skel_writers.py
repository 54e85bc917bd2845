"""Programs that others wrote for ADIOS: each runs as it is, a skeleton is learned from the file
that it wrote, and the skeleton writes the same bytes.

The programs are those of Debian's libadios-examples, and one of ours where these are missing.
"""

import re
from pathlib import Path

import pytest

from studies.skel.tests.support import run, shapes, succeed, understudy
from studies.skel.tests.test_skel_measure import CONFIG, SOURCE
from tests.support.needs import need
from understudy.contracts.measurement import ProgramRun
from understudy.judge.statistics.conditions import SCALARS_BYTES
from understudy_skel.producers import application, skeleton

EXAMPLES = Path("/usr/share/doc/libadios-examples/examples/C")
# A program that is taken needs no arguments and declares nothing by itself, and all processes
# write files of one group.
LACKS = ("adios_init_noxml", "MPI_Comm_split", "argc < ")
OPENS = re.compile(r'adios_open \(\s*&\w+,\s*"(\w+)",[^;]*"[wa]"')
# Of their files no skeleton can be learned, for this reason.
REFUSED = {"stat_write": "bpls does not tell which part each process wrote"}
RANKS = 4


def programs() -> dict[str, Path]:
    """The programs in C that write by an adios-config."""
    paths = {}
    for path in sorted(EXAMPLES.glob("*/*.c")):
        text = path.read_text(encoding="utf-8", errors="replace")
        groups = set(OPENS.findall(text))
        if "adios_init (" in text and len(groups) == 1 and not any(word in text for word in LACKS):
            paths[f"{path.parent.name}/{path.stem}"] = path
    return paths


def process_bytes(measured: ProgramRun) -> list[tuple[int, ...]]:
    [stream] = measured.repetitions[0].streams
    return [dump.processes.bytes for dump in stream.dumps]


def compare(source: Path, tmp_path: Path, method: str) -> None:
    """Runs the program, learns a skeleton from its file and runs that."""
    need("ADIOS 1.13", "bpls")
    for path in source.parent.iterdir():  # its config, which it opens where it runs
        if path.suffix == ".xml":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    appends = '"a"' in source.read_text(encoding="utf-8", errors="replace")
    more = ["--append"] if appends else []
    succeed("skel", "measure", source, "-d", tmp_path)
    options = " ".join(["-o files -r app.json -k -a", method, *more])
    done = run(tmp_path / "build" / source.stem, RANKS, environment={"SKELETON_OPTIONS": options})
    assert done.returncode == 0, done.stderr
    wrote = application.read(tmp_path / "app.json")
    [first] = (tmp_path / "files").glob("*.bp" if appends else "*.0.bp")
    (tmp_path / "learned").mkdir()
    learned = understudy("skel", "replay", first, "-d", tmp_path / "learned")
    if source.stem in REFUSED:
        assert learned.exit_code != 0 and REFUSED[source.stem] in learned.stderr
        return
    assert learned.exit_code == 0, learned.stderr
    steps = len(process_bytes(wrote))
    [program] = (tmp_path / "learned" / "build").glob("*_skel_*_write")
    done = run(
        program, RANKS, "-o", "files", "-r", "r.json", "-k", "-a", method, "-s", steps, *more
    )
    assert done.returncode == 0, done.stderr
    again = skeleton.read(tmp_path / "learned" / "r.json")
    assert len(process_bytes(again)) == steps
    # But for scalars that hold what differs from process to process, and strings, of which only
    # the first process' is known.
    for theirs, ours in zip(process_bytes(wrote), process_bytes(again), strict=True):
        for application_bytes, skeleton_bytes in zip(theirs, ours, strict=True):
            assert abs(skeleton_bytes - application_bytes) <= SCALARS_BYTES
    [second] = (tmp_path / "learned" / "files").glob(first.name)
    assert {k: v for k, v in shapes(second).items() if not k.startswith("skel_part_")} == {
        k: v for k, v in shapes(first).items()
    }


@pytest.mark.parametrize("method", ["MPI", "POSIX"])
def test_a_skeleton_of_a_program_writes_the_same(method: str, tmp_path: Path) -> None:
    source = tmp_path / "theirs" / "app.c"
    source.parent.mkdir()
    source.write_text(SOURCE.replace('step && argc > 2 ? "a" : "w"', '"w"'))
    (source.parent / "app.xml").write_text(CONFIG)
    compare(source, tmp_path, method)


@pytest.mark.parametrize("name", programs() or ["none"])
def test_a_skeleton_of_each_of_debian_s_programs_writes_the_same(
    name: str, tmp_path: Path
) -> None:
    need("examples of ADIOS")
    compare(programs()[name], tmp_path, "POSIX" if len(name) % 2 else "MPI")


def test_debian_s_programs_are_found() -> None:
    """None is left out unseen where the package is there."""
    need("examples of ADIOS")
    assert len(programs()) >= 5
