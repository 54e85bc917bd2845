"""Skeletal applications that are built and run, where ADIOS is; the others are skipped by name."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from studies.skel.tests.support import (
    EXAMPLES,
    LOCAL,
    TRACES,
    bpls,
    bpls_path,
    descriptor,
    launch,
    make,
    run,
    run_line,
    shapes,
    succeed,
    understudy,
)
from tests.support.needs import need
from tests.support.player import needs, play, strace
from understudy import producers
from understudy.contracts import workload
from understudy.contracts.measurement import Measurement, Processes
from understudy.paths import where
from understudy_skel import blocks, parameters
from understudy_skel.descriptor import METHODS as WORKING
from understudy_skel.descriptor import read

NAMES = ("gts", "s3d", "geos5", "grapes", "picongpu", "genarray3d")
METHODS = {
    "POSIX": "",
    "MPI": "",
    "MPI_LUSTRE": "stripe_count=2;stripe_size=65536;block_size=65536",
    "MPI_AMR": "num_aggregators=2;num_ost=2;merging_pgs=0",
}
FILES = {"POSIX": 5, "MPI": 1, "MPI_LUSTRE": 1, "MPI_AMR": 3}


def test_parameters_that_were_edited_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    config = Path(shutil.copy(TRACES / "gts.xml", tmp_path))  # away from its parameters
    succeed("skel", "make", config, "-d", folder, "--no-make")
    values = folder / "gts_params.xml"
    values.write_text(values.read_text().replace('cores="4"', 'cores="2"'))
    edited = values.read_text()
    assert 'cores="2"' in edited
    for words in ([], ["-l", "fortran"]):  # programs and build files are generated anew
        done = succeed("skel", "make", config, "-d", folder, "--no-make", *words)
        assert values.read_text() == edited and "each of 2 processes" in done.stderr
    for more in (["--set", "mimax=1"], ["-n", 8]):
        refused = understudy("skel", "make", config, "-d", folder, *more)
        assert refused.exit_code == 2 and "gts_params.xml: exists already" in refused.stderr
        assert values.read_text() == edited


def example(name: str) -> Path:
    path = EXAMPLES / name / f"{name}.xml"
    need("examples of ADIOS")
    return path


def expected(config: Path, values: Path, ranks: int) -> tuple[dict[str, str], list[int]]:
    """Name and shape of every variable as bpls shows it, and the bytes of each process."""
    parsed_descriptor = read(config)
    [group] = parsed_descriptor.groups
    group_blocks = blocks.of_group(
        group, parameters.read(values, parsed_descriptor).groups[group.name], ranks
    )
    shown = {}
    for block in group_blocks.blocks:
        shape = block.whole or tuple(block.local[0].tolist())
        text = "{" + ", ".join(map(str, shape)) + "}" if block.variable.dimensions else "scalar"
        shown[block.variable.name] = text
    return shown, group_blocks.bytes.tolist()


def processes(run_of: Measurement) -> list[Processes]:
    per_dump = [
        d.processes for r in run_of.repetitions for s in r.streams for d in s.dumps if d.processes
    ]
    assert per_dump
    return per_dump


@pytest.mark.parametrize("name", NAMES)
def test_an_example_of_adios_goes_the_whole_way(name: str, tmp_path: Path) -> None:
    program = make(example(name), tmp_path)
    config, values = tmp_path / f"{name}_skel.xml", tmp_path / f"{name}_params.xml"
    for ranks in (4, 8):
        done = run(program, ranks, "-o", "out", "-k", "-r", "r.json")
        assert done.returncode == 0, done.stderr
        shown, sizes = expected(config, values, ranks)
        [path] = (tmp_path / "out").glob("*.0.bp")
        assert shapes(path) == shown
        run_of = producers.read(tmp_path / "r.json")
        assert [list(p.bytes) for p in processes(run_of)] == [sizes]
        stored = sum(p.stat().st_size for p in (tmp_path / "out").rglob("*.bp*") if p.is_file())
        assert sum(sizes) <= stored == run_of.repetitions[0].streams[0].dumps[0].file_bytes
        for entry in sorted((tmp_path / "out").rglob("*"), reverse=True):
            entry.rmdir() if entry.is_dir() else entry.unlink()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program of two million bytes a process."""
    folder = tmp_path_factory.mktemp("small")
    return make(descriptor(folder), folder, "nx=130000")


@pytest.mark.parametrize("method", METHODS)
def test_a_process_s_time_adds_up(method: str, small: Path) -> None:
    words = ["-p", METHODS[method]] if METHODS[method] else []
    line = f"-s 2 -i 2 -r {method}.json -o out-{method} -a {method}"
    done = run_line(small, 4, line, *words)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    run_of = producers.read(small.parent.parent / f"{method}.json")
    assert not (small.parent.parent / f"out-{method}").exists()
    assert run_of.program is not None and run_of.program.method == method
    for step in processes(run_of):
        for rank in range(4):
            parts = step.communication_s[rank] + step.io_s[rank] + step.rest_s[rank]
            assert parts == pytest.approx(step.total_s[rank], rel=0.02)
            phases = step.open_s[rank] + step.write_s[rank] + step.close_s[rank]
            assert phases == pytest.approx(step.total_s[rank], abs=1e-8)
        assert sum(step.communication_s) > 0 and sum(step.io_s) > 0
        assert (step.library is None) == (method == "MPI")
        if step.library is not None:  # the last step's too
            assert sum(step.library.close_s) > 0
            # The library's own clock of its I/O starts a little before what is caught, and ends
            # a little after it.
            assert sum(step.library.io_s) <= 1.05 * (sum(step.io_s) + sum(step.rest_s))
    [stream] = run_of.repetitions[1].streams
    assert [d.files for d in stream.dumps] == [FILES[method]] * 2
    assert [d.bytes for d in stream.dumps] == [4 * (3 * 4 + 8 + 130000 * 16)] * 2


def test_contents_are_the_ranks(small: Path) -> None:
    done = run(small, 4, "-o", "kept", "-k")
    assert done.returncode == 0, done.stderr
    path = small.parent.parent / "kept" / "g.0.bp"
    said = bpls(path, "-d", "a", "-n", "1", "-s", "260000", "-c", "1")
    assert re.search(r"\(260000\)\s+2$", said, re.MULTILINE), said
    assert bpls_path()


def test_a_slow_rank_is_seen(small: Path) -> None:
    """Its I/O is longer by what was put in, and the others wait for it in communication."""
    line = "-o slow -a MPI_LUSTRE -p block_size=65536 --slow-rank 2:1.5 -r slow.json"
    done = run_line(small, 4, line)
    assert done.returncode == 0, done.stderr
    [step] = processes(producers.read(small.parent.parent / "slow.json"))
    others = [0, 1, 3]
    assert step.io_s[2] >= 1.5 and step.io_s[2] == max(step.io_s)
    assert min(step.communication_s[r] for r in others) > 1 > step.communication_s[2]


def test_an_extra_collective_is_seen(small: Path) -> None:
    medians = {}
    for bytes_ in (0, 30_000_000):
        line = f"-o more -a POSIX -i 3 -r more.json --extra-collective {bytes_}"
        done = run_line(small, 4, line)
        assert done.returncode == 0, done.stderr
        run_of = producers.read(small.parent.parent / "more.json")
        assert run_of.program is not None
        assert run_of.program.extra_collective_bytes == bytes_
        sums = sorted(min(step.communication_s) for step in processes(run_of))
        medians[bytes_] = sums[1]
    assert medians[30_000_000] > medians[0] + 0.02


def test_steps_can_share_a_file(small: Path) -> None:
    done = run_line(small, 4, "-o one -a MPI -s 3 --append -k -r one.json")
    assert done.returncode == 0, done.stderr
    assert "3*{520000}" in bpls(small.parent.parent / "one" / "g.bp", "a")
    run_of = producers.read(small.parent.parent / "one.json")
    assert [s.files for s in run_of.workload.streams] == ["append"]
    assert len(run_of.repetitions[0].streams[0].dumps) == 3


BAD_OPTIONS = [
    ("-o x -s 0", 2, "--steps 0: expected a whole number from 1 to 1000000"),
    ("-o x -b lunch", 2, "--barrier lunch: expected some of open,write,close"),
    ("-o x -p a=1", 2, "--parameters without --method"),
    ("-o x -a MPI_AMR -p num_agregators=1", 1, "--parameters num_agregators: no me"),
    ("-o x --bogus", 2, "--bogus: unknown option; see --help"),
    ("", 2, "--directory is missing: expected an empty directory, or one to be created"),
    ("-o x --slow-rank 9:1", 1, "--slow-rank 9: expected a rank of 0 to 1"),
    ("-o x -c none.xml", 1, "none.xml: the adios-config cannot be read"),
    ("-o x -r none/r.json", 1, "none/r.json: cannot be written: No such file"),
    ("-o x -a BOGUS", 1, "--method BOGUS: in ADIOS 1.13.1 it writes no files, loses"),
    ("-o x -a phdf5", 1, "--method phdf5: in ADIOS 1.13.1 it writes no files, loses"),
    ("-o build", 1, "build is not empty; expected an empty directory"),
]


@pytest.mark.parametrize(("line", "status", "message"), BAD_OPTIONS)
def test_an_error_is_one_message_and_leaves_nothing(
    line: str, status: int, message: str, small: Path
) -> None:
    here = small.parent.parent
    before = sorted(p.name for p in here.iterdir())
    done = run_line(small, 2, line)
    assert done.returncode == status
    # ADIOS writes its "ERROR: " on its own, before the rest of its line.
    lines = [line.removeprefix("ERROR: ") for line in done.stderr.splitlines()]
    [said] = [line for line in lines if line.startswith("app-g: ")]
    assert message in said, done.stderr
    assert sorted(p.name for p in here.iterdir()) == before


HOSTILE = "A\x1b[2J\x7f\x9b31m\n\u202e\u2066\u2028B"
ESCAPED = r"A\x1b[2J\x7f\x9b31m\n\u202e\u2066\u2028B"


@pytest.mark.parametrize(
    "words",
    [
        (HOSTILE, "-o", "x"),
        ("-b", HOSTILE, "-o", "x"),
        ("-c", HOSTILE, "-o", "x"),
        ("-o", "x", "-r", f"none/{HOSTILE}/r.json"),
        ("-o", f"none/{HOSTILE}"),
        ("--application", HOSTILE, "--help"),
    ],
)
def test_text_from_outside_is_no_command_to_a_terminal(words: list[str], small: Path) -> None:
    done = run(small, 1, *words)
    printed = done.stdout + done.stderr
    assert ESCAPED in printed
    assert all(c.isprintable() or c == "\n" for c in printed)


def test_a_method_that_loses_data_in_a_config_is_refused(small: Path, tmp_path: Path) -> None:
    text = (small.parent.parent / "app_skel.xml").read_text()
    config = tmp_path / "theirs.xml"
    config.write_text(text.replace('method="POSIX"', 'method="VAR_MERGE"'))
    done = run(small, 2, "-o", tmp_path / "out", "-c", config)
    assert done.returncode != 0
    assert ": method VAR_MERGE: in ADIOS 1.13.1 it writes no files, loses" in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_program_has_the_working_methods_of_the_generator() -> None:
    source = (where("skeleton") / "config.c").read_text()
    [names] = re.findall(r"working\[\] = \{(.*?)\};", source)
    assert tuple(re.findall(r"\w+", names)) == WORKING


@pytest.mark.parametrize(("method", "fits"), [("POSIX", True), ("MPI", False)])
def test_a_buffer_that_is_too_small_is_refused(
    method: str, fits: bool, small: Path, tmp_path: Path
) -> None:
    """Two million bytes of a process, by a config whose buffer holds one."""
    text = (small.parent.parent / "app_skel.xml").read_text()
    config = tmp_path / "theirs.xml"
    config.write_text(text.replace("</adios-config>", '<buffer size-MB="1"/></adios-config>'))
    done = run(small, 2, "-o", tmp_path / "out", "-c", config, "-a", method)
    assert (done.returncode == 0) == fits, done.stderr
    message = "<buffer>: a buffer of 1 MB cannot hold the 2080020 bytes that this process writes"
    assert (message in done.stderr) == (not fits), done.stderr


def test_a_part_out_of_bounds_ends_the_program(tmp_path: Path) -> None:
    """The source was edited after it was checked: the program checks again."""
    program = make(descriptor(tmp_path), tmp_path)
    source = tmp_path / "app_skel_g_write.c"
    text = source.read_text()
    assert "* rank)" in text
    source.write_text(text.replace("* rank)", "* (rank + 1))"))
    succeed("skel", "build", tmp_path / "app_skel.xml", "-d", tmp_path)
    done = run(program, 2, "-o", "x")
    assert done.returncode != 0
    assert "a: a block of size 128 at offset 256 exceeds the global size of 256" in done.stderr
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize("method", ["POSIX", "MPI_LUSTRE", "MPI_AMR"])
def test_the_native_point_writes_the_same(method: str, tmp_path: Path) -> None:
    """Payload equal; what storage holds within 0.1 %, but for what MPI_LUSTRE pads to 64 KiB a
    process."""
    source = tmp_path / "s3d.xml"
    source.write_text((TRACES / "s3d.xml").read_text())
    values = (TRACES / "s3d_params.xml").read_text()
    (tmp_path / "s3d_params.xml").write_text(values)
    program = make_of(source, tmp_path)
    words = ["-p", METHODS[method]] if METHODS[method] else []
    done = run(program, 4, "-o", "bp", "-a", method, *words, "-r", "bp.json")
    assert done.returncode == 0, done.stderr
    described = tmp_path / "w.json"
    succeed("describe", source, "-n", 4, "-a", method, "-o", described)
    native = play(described, 4, tmp_path / "data")
    [ours] = producers.read(tmp_path / "bp.json").repetitions[0].streams[0].dumps
    [theirs] = native.repetitions[0].streams[0].dumps
    assert ours.bytes == theirs.bytes == workload.load(described).bytes
    assert ours.file_bytes is not None and theirs.file_bytes == theirs.bytes
    padding = 4 * 65536 if method == "MPI_LUSTRE" else 0
    assert ours.bytes <= ours.file_bytes <= ours.bytes * 1.001 + padding


def make_of(source: Path, folder: Path) -> Path:
    """The program of a descriptor that has its parameters beside it."""
    needs("adios")
    succeed("skel", "source", source, "-d", folder)
    succeed("skel", "build", source, "-d", folder)
    [program] = (folder / "build").glob("*_write")
    return program


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("method", ["MPI", "POSIX", "MPI_AMR"])
def test_a_program_that_is_stopped_leaves_nothing(
    method: str, number: int, tmp_path: Path
) -> None:
    program = make(descriptor(tmp_path), tmp_path)
    words = ["-a", method, *(["-p", METHODS[method]] if METHODS[method] else [])]
    files = tmp_path / "out"
    # Before it writes; between writing and writing, each process at another step.
    for more, wanted in (
        (("-s", 2, "--pause", 20), 1),
        (("-s", 100000, "--pause", 0.01, "-b", "none"), 6),
    ):
        command = launch(program, 4, "-o", "out", "-r", "r.json", *words, *more)
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        while process.poll() is None and (
            not files.exists() or len(list(files.rglob("*"))) < wanted
        ):
            time.sleep(0.01)
        assert process.poll() is None, process.stderr
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
        assert process.returncode != 0
        assert not files.exists(), sorted(str(p) for p in files.rglob("*"))
        assert not list(tmp_path.glob("r.json*"))
        assert "Traceback" not in said


def test_a_program_that_is_stopped_leaves_what_is_not_its_own(tmp_path: Path) -> None:
    program = make(descriptor(tmp_path), tmp_path)
    files = tmp_path / "out"
    words = ("-o", "out", "-r", "r.json", "-a", "POSIX", "-s", 100000, "--pause", 0.01)
    process = subprocess.Popen(launch(program, 4, *words), cwd=tmp_path, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(files.glob("*.bp")):
        time.sleep(0.01)
    others = {files / name for name in ("g.0.bp.mine", "g.bp2", "ga.bp", "g.0.bp.1x")}
    for other in others:
        other.write_text("mine")
    process.terminate()
    assert process.wait(timeout=60) != 0
    assert set(files.iterdir()) == others


def traced(program: Path, words: list[str], calls: str) -> str:
    """System calls of four ranks of a program."""
    command = launch(program, 4, *words)
    at = command.index(str(program))
    command[at:at] = [strace(), "-f", "-e", f"trace={calls}", "-o", "trace"]
    done = subprocess.run(
        command,
        cwd=program.parent.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return (program.parent.parent / "trace").read_text()


def test_no_semaphore_and_no_lock_file_is_opened(small: Path) -> None:
    """Open MPI names a semaphore after the file alone: it would be shared with another job that
    writes a file of the same name on this node. With the user's own choice it is there."""
    words = ["-o", "locks", "-a", "MPI", "-r", "locks.json"]
    said = traced(small, words, "openat,link,unlink,unlinkat")
    assert "locks/g.0.bp" in said
    assert not re.search(r"OMPIO_|locktest|\.metadata\.|\.bp\.data", said)
    command = launch(small, 1, *words)
    environment = os.environ | {"OMPI_MCA_sharedfp": "sm"}
    at = command.index(str(small))
    command[at:at] = [strace(), "-f", "-e", "trace=openat,link", "-o", "trace"]
    done = subprocess.run(command, cwd=small.parent.parent, env=environment, check=False)
    assert done.returncode == 0
    if "Open MPI" in producers.read(small.parent.parent / "locks.json").environment.mpi:
        assert "OMPIO_g.0.bp" in (small.parent.parent / "trace").read_text()


PLANTED = ("g.0.bp", "g.0.bp.dir", ".timers.bp", "adios-config.xml", "g.1.bp", "g.1.bp.dir")


@pytest.mark.parametrize("name", PLANTED)
def test_links_and_files_of_others_survive(name: str, small: Path, tmp_path: Path) -> None:
    """They stand where the program writes: links before it starts and while it pauses, files
    beside its own; whatever the program ends with, their targets and they themselves stay."""
    target = tmp_path / "precious"
    if name.endswith(".dir"):
        target.mkdir()
        (target / f"{name.removesuffix('.dir')}.9").write_text("mine")
    else:
        target.write_text("mine")
    files = tmp_path / "out"
    files.mkdir()
    link = files / name
    link.symlink_to(target)
    refused = run(small, 2, "-o", files, "-a", "POSIX", "-r", tmp_path / "r.json")
    assert refused.returncode != 0 and "is not empty" in refused.stderr
    link.unlink()
    words = ("-o", files, "-a", "POSIX", "-r", tmp_path / "r.json", "-s", 2, "--pause", 3, "-k")
    process = subprocess.Popen(
        launch(small, 2, *words), cwd=small.parent.parent, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and not (files / "adios-config.xml").exists():
        time.sleep(0.01)
    if not link.exists():
        link.symlink_to(target)
    beside = [files / other for other in ("g.7.bp", "g.0.bp.mine", "note")]
    for other in beside:
        other.write_text("mine")
    said = process.communicate(timeout=120)[1]
    assert link.is_symlink() or name == "adios-config.xml", said
    if name != "adios-config.xml":
        assert process.returncode != 0
        assert f"{name.removesuffix('.dir')}: exists already" in said
    inside = target / f"{name.removesuffix('.dir')}.9" if target.is_dir() else target
    assert inside.read_text() == "mine" and len(list(tmp_path.glob("precious/*"))) <= 1
    assert [other.read_text() for other in beside] == ["mine"] * 3


def test_a_directory_in_place_of_the_run_directory_survives(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("-o", out, "-a", "MPI", "-r", tmp_path / "r.json", "--pause", 3)
    process = subprocess.Popen(
        launch(small, 2, *words), cwd=small.parent.parent, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None and not (out / "adios-config.xml").exists():
        time.sleep(0.01)
    out.rename(tmp_path / "moved")
    out.mkdir()
    others = [out / name for name in ("g.0.bp", "g.1.bp", "note")]
    for other in others:
        other.write_text("mine")
    said = process.communicate(timeout=120)[1]
    # ADIOS reads its configuration even if the directory was moved before.
    assert process.returncode != 0
    assert "no longer the run directory" in said, said
    assert [other.read_text() for other in others] == ["mine"] * 3


def test_a_result_is_not_written_through_a_link(small: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine")
    for name in ("r.json", "r.json.part"):
        (tmp_path / name).symlink_to(tmp_path / "precious")
    done = run(small, 2, "-o", tmp_path / "out", "-r", tmp_path / "r.json")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "precious").read_text() == "mine"
    assert (tmp_path / "r.json.part").is_symlink() and producers.read(tmp_path / "r.json").program


def test_what_does_not_fit_the_memory_is_refused(small: Path, tmp_path: Path) -> None:
    """Four ranks of two million bytes each, and as much for ADIOS to buffer."""
    out = tmp_path / "out"
    for memory, status in ((10_000_000, 1), (1_000_000_000, 0)):
        limit = {"SKELETON_MEMORY_BYTES": str(memory)}
        done = run(small, 4, "-o", out, "-r", tmp_path / "r.json", environment=limit)
        assert (done.returncode != 0) == bool(status), done.stderr
        messages = [line for line in done.stderr.splitlines() if line.startswith("app-g: ")]
        assert len(messages) == status and not out.exists()
    assert (
        "run on more nodes, or make the arrays smaller"
        in run(small, 4, "-o", out, environment={"SKELETON_MEMORY_BYTES": "1"}).stderr
    )


def test_what_does_not_fit_the_disk_is_refused(small: Path, tmp_path: Path) -> None:
    done = run(small, 4, "-o", tmp_path / "out", "-s", 1000000, "-r", tmp_path / "r.json")
    assert done.returncode != 0
    assert re.search(
        r"1000000 steps of 4 ranks need 83\d\d\.\d GB, but .* GB are free; use another directory"
        r"|memory: the 4 ranks of this node need",
        done.stderr,
    ), done.stderr
    assert not (tmp_path / "out").exists() and not (tmp_path / "r.json").exists()


def test_the_limit_of_a_file_s_size_is_an_error_and_no_signal(small: Path, tmp_path: Path) -> None:
    limited = small.with_name("limited")
    limited.write_text(f'#!/bin/bash\nulimit -f 16384\nexec {small} "$@"\n')
    limited.chmod(0o755)
    words = ("-o", tmp_path / "out", "-r", tmp_path / "r.json", "-a", "POSIX", "--append")
    done = run(limited, 1, *words, "-s", 9)
    assert done.returncode == 1, done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("app-g: rank ")]
    assert not (tmp_path / "out").exists() and not (tmp_path / "r.json").exists()


def test_seventy_gigabytes_are_refused(tmp_path: Path) -> None:
    """Sizes with which the kernel would end the program."""
    sizes = "".join(f'<var name="n{i}" type="integer"/>' for i in range(6))
    names = ",".join(f"n{i}" for i in range(6))
    big = f'{sizes}<var name="l" type="double" dimensions="{names}"/>'
    path = descriptor(tmp_path, LOCAL, big)
    program = make(path, tmp_path, *(f"n{i}=32" for i in range(6)))
    limit = {"SKELETON_MEMORY_BYTES": "10000000000"}
    done = run_line(program, 2, "-o out -r r.json", environment=limit)
    assert done.returncode != 0 and not (tmp_path / "out").exists()
    assert "the 2 ranks of this node need 34.4 GB (this one 8.6 GB of arrays" in done.stderr
