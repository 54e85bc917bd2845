"""What CONTRIBUTING.md states: how many files a method, a striping backend, a run option, a
producer and a reader touch. Systems, checks, figures and workloads are in test_paths.py."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import results
from tests.support.said import said
from understudy import producers
from understudy.contracts.measurement import Played
from understudy.paths import ROOT

METHOD = r"""
#include "job/die.h"
#include "interfaces/method.h"
#include "storage/run_directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

struct und_file {
    int descriptor;
    int64_t *operations;
};

static struct und_file *toy_open(const struct und_open *how)
{
    struct und_file *file = malloc(sizeof *file);
    UND_CHECK(file, "toy: no memory to open %s", how->path);
    file->operations = how->operations;
    const int flags = how->mode == UND_READ ? O_RDONLY : O_RDWR;
    file->descriptor = open(und_directory_name(how->directory, how->path), flags);
    UND_CHECK(file->descriptor >= 0, "toy: cannot open %s", how->path);
    return file;
}

/* Both directions: every run of consecutive bytes is one call. */
#define MOVE(call, data_type)                                                       \
    const int64_t size = und_type_bytes(dataset->type);                             \
    data_type at = data;                                                            \
    struct und_spans spans;                                                         \
    int64_t element;                                                                \
    und_spans_begin(&spans, dataset, box);                                          \
    for (; und_spans_next(&spans, &element); at += spans.elements * size) {         \
        const off_t from = (off_t)(dataset->file_offset + element * size);          \
        const size_t bytes = (size_t)(spans.elements * size);                       \
        UND_CHECK(call(file->descriptor, at, bytes, from) == (ssize_t)bytes, #call); \
        ++*file->operations;                                                        \
    }

static void toy_write(struct und_file *file, const struct und_dataset *dataset,
                      const struct und_box *box, const void *data)
{
    MOVE(pwrite, const char *)
}

static void toy_read(struct und_file *file, const struct und_dataset *dataset,
                     const struct und_box *box, void *data)
{
    MOVE(pread, char *)
}

static void toy_sync(struct und_file *file)
{
    UND_CHECK(fsync(file->descriptor) == 0, "toy: cannot flush");
}

static void toy_close(struct und_file *file)
{
    close(file->descriptor);
    free(file);
}

static const struct und_setting settings[] = {
    {.name = "color", .most = 7, .default_value = "0", .help = "of nothing"},
    {.name = NULL},
};

const struct und_method und_method_toy = {
    .name = "toy",
    .has_files = true,
    .settings = settings,
    .open = toy_open,
    .write = toy_write,
    .read = toy_read,
    .sync = toy_sync,
    .close = toy_close,
};
"""
# Handles every file system. Its name is the first one, so that it is asked before lustre.
STRIPING = r"""
#include "interfaces/layout_backend.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static bool any_handles(const struct und_storage *storage)
{
    (void)storage;
    return true;
}

static int any_create(int directory, const char *name, const struct und_layout_request *request,
                      struct und_error *error)
{
    (void)request;
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    const int made = openat(directory, name, flags, 0666);
    if (made < 0)
        und_fail(error, "any: cannot create %s: %s", name, strerror(errno));
    return made;
}

static bool any_read(int descriptor, struct und_file_layout *layout, struct und_error *error)
{
    (void)descriptor;
    (void)error;
    und_file_layout_unknown(layout);
    snprintf(layout->backend, sizeof layout->backend, "any");
    layout->stripe_count = 3;
    return true;
}

const struct und_layout_backend und_layout_backend_any = {
    .name = "any",
    .handles = any_handles,
    .create = any_create,
    .read = any_read,
    .max_stripe_count = 8,
};
"""
PRODUCER = """\
from understudy.contracts import schema
from understudy.contracts.run import Sample
from understudy.errors import UnderstudyError
from understudy.producers import player

SCHEMA = "understudy/toy/1"
ARM = "canary"


def check(row, where):
    if "played" not in row:
        raise UnderstudyError(f"{where}: played: expected a measurement of the player")


def parse(row, where):
    return player.parse(row["played"], where)


def read(path):
    row = schema.read(path, "measurement of the toy")
    check(row, str(path))
    return parse(row, str(path))


def samples(measurement):
    yield Sample(metric="speed", unit="1/s", better="higher", stream=None, repetition=0, value=2.5)
"""
LIFT = """\
import sys
from pathlib import Path
from understudy import producers
from understudy.contracts import run as runs
from understudy.errors import UnderstudyError

made = producers.record(Path("made.json"))
runs.write(Path("run.json"), made)
assert producers.load(Path("run.json")) == made
assert producers.measured(made) == producers.read(Path("made.json"))
print(producers.names(), made.producer.name, made.identity.arm, [s.value for s in made.samples])
try:
    producers.record(Path("damaged.json"))
except UnderstudyError as error:
    print(error)
"""
# Readers, whose names sort before those of others; one has beginnings, an option and hooks.
READER = """\
import click

from understudy.contracts.workload import Dump, Pattern, Source, Variable, Workload
from understudy.contracts.workload import streams_of
from understudy.errors import UnderstudyError

KIND = "a toy"
SUFFIXES = (".toy",)
STARTS = (b"#toy",)
OPTIONS = (click.option("--repeat", "times", type=int, default=1, help="Toys: dumps."),)


def private_words(path):
    return {path.read_text().split()[2]}


def of_job(paths, job):
    found = [path for path in paths if f"job={job}" in path.read_text()]
    if not found:
        raise UnderstudyError(f"--job {job}: none of {len(paths)} toys is of this job")
    return found


def closing(workload):
    return f"{workload.streams[0].dump_count} dumps of a toy."


def read(path, *, name=None, keep_names=False, tick=lambda _: None, times=1, others=()):
    tick(1.0)
    word, size, *_ = path.read_text().split()
    if word != "#toy":
        raise UnderstudyError(f"{path}: it starts with {word!r}, expected '#toy'")
    bytes_ = int(size) * (1 + len(others))
    dumps = tuple(
        Dump(time_s=float(k), variables=(Variable(name="v", type="byte", shape=(bytes_,)),))
        for k in range(times)
    )
    stream = Pattern(
        name="s", role="output", operation="write", files="new", layout="shared",
        method="posix", transfer_bytes=4096, dumps=dumps,
    )
    return Workload(name=name or "toy", description="A toy.", ranks=1,
                    streams=streams_of([stream], 1),
                    source=Source(format="toy", version="1", reader="toy", notes=()),
                    provenance=())
"""
PLAIN_READER = """\
from pathlib import Path

KIND = "a plain text"
SUFFIXES = (".plain",)


def read(path: Path, *, name=None, keep_names=False, tick=lambda _: None):
    raise AssertionError(path.read_text())
"""


def run(*command: object, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done


def build(folder: Path) -> Path:
    """The player of a copy of the source tree with one more method and striping backend."""
    copy = folder / "understudy"
    for name in ("cmake", "proxies"):
        shutil.copytree(ROOT / name, copy / name)
    (copy / "python" / "understudy").mkdir(parents=True)
    for name in ("CMakeLists.txt", "python/understudy/__init__.py"):
        shutil.copy(ROOT / name, copy / name)
    (copy / "proxies" / "methods" / "toy.c").write_text(METHOD)
    (copy / "proxies" / "stripings" / "any.c").write_text(STRIPING)
    configure = (
        "-DBUILD_TESTING=OFF",
        "-DUND_ADIOS=OFF",
        "-DUND_ADIOS2=OFF",
        "-DCMAKE_BUILD_TYPE=Debug",
    )
    run("cmake", "-S", copy, "-B", folder / "build", *configure, folder=folder)
    run("cmake", "--build", "build", "--target", "understudy-replay", "-j2", folder=folder)
    return folder / "build" / "bin" / "understudy-replay"


def test_a_method_and_a_striping_backend_are_one_file(tmp_path: Path) -> None:
    player = build(tmp_path)
    listed = run(player, "--list", "-v", folder=tmp_path).stdout.splitlines()
    brief = run(player, "--list", folder=tmp_path).stdout
    assert "\ntoy      available, not for " in brief, brief
    assert "         -m toy.color=N  of nothing (default 0)" in listed
    assert "striping any: files" in listed

    dump = results.stream("dump", "output", [10_000], [0.0], method="posix")
    (tmp_path / "w.json").write_text(results.workload("toy", [dump], ranks=2).to_text())
    options = "-w w.json -o data -a toy -m toy.color=5 -t 1000 --verify --stripe-count 3"
    prepare = '. "$0/setup-env.sh" 2>/dev/null; exec "$@"'
    command = ["bash", "-c", prepare, ROOT, "mpirun", "-n", "2", player, *options.split()]
    run(*command, folder=tmp_path)
    measured = producers.read(tmp_path / "result.json")
    assert isinstance(measured, Played)
    assert measured.verification is not None and measured.verification.wrong_bytes == 0
    assert measured.options["method_options"] == {"toy.color": "5"}
    stream = measured.repetitions[0].streams[0]
    assert (stream.method, stream.bytes) == ("toy", 10_000)
    applied = measured.striping[0]["applied"]
    assert (applied["backend"], applied["stripe_count"]) == ("any", 3)


def test_run_options_are_read_where_runs_are_planned() -> None:
    """So that one more is its row, the plan's two files, and the module that acts."""
    sources = [*(ROOT / "proxies" / "core").rglob("*.[ch]")]
    users = {path.parent.name for path in sources if "options->" in path.read_text()}
    assert users == {"options", "plan"}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package, in a directory with the plugin directories beside it."""
    copy = tmp_path / "python" / "understudy"
    leave = shutil.ignore_patterns("__pycache__", "data")
    shutil.copytree(ROOT / "python" / "understudy", copy, ignore=leave)
    for name in ("applications", "configs", "reports", "schemas", "simulations", "workloads"):
        (tmp_path / name).symlink_to(ROOT / name)
    return copy


def test_a_producer_is_one_file(package: Path, tmp_path: Path) -> None:
    """Its output is made a run record, which is read again."""
    (package / "producers" / "toy.py").write_text(PRODUCER)
    played = json.loads((ROOT / "tests/golden/measurements/player.json").read_text())
    (tmp_path / "made.json").write_text(
        json.dumps({"schema": "understudy/toy/1", "played": played})
    )
    (tmp_path / "damaged.json").write_text('{"schema": "understudy/toy/1"}')
    done = run(sys.executable, "-c", LIFT, folder=tmp_path, PYTHONPATH=str(package.parent))
    assert done.stdout.splitlines() == [
        "['ior', 'mdtest', 'observed', 'player', 'toy'] toy canary [2.5]",
        "damaged.json: played: expected a measurement of the player",
    ]


@pytest.mark.parametrize("where", ["import", "function"])
@pytest.mark.parametrize("kind", ["figure", "reader", "producer"])
def test_a_plugin_that_ends_python_is_an_error(
    kind: str, where: str, package: Path, tmp_path: Path
) -> None:
    """A command ends with one message that names it, not with status 0 and nothing done."""
    files = {"reader": "readers/aaa.py", "producer": "producers/toy.py"}
    body = "import sys\n" + ("sys.exit(0)\n" if where == "import" else "")
    ends = "    sys.exit(0)\n"
    environment = {"PYTHONPATH": str(package.parent)}
    source = ROOT / "tests/golden/measurements/player.json"
    result_file = tmp_path / "result.json"
    command = ["show", str(result_file)]
    result_file.write_bytes(source.read_bytes())
    if kind == "figure":
        path = tmp_path / "site" / "figures" / "toy.py"
        path.parent.mkdir(parents=True)
        path.write_text(f'"""Why?"""\nORDER = 1\n{body}\ndef draw(case):\n{ends}')
        environment["UNDERSTUDY_PATH"] = str(tmp_path / "site")
        command = ["report", str(result_file), "-o", str(tmp_path / "page.html")]
    elif kind == "reader":
        body += f"KIND = 'toys'\nSUFFIXES = ('.toy',)\n\ndef read(path, **more):\n{ends}"
        command = ["describe", str(tmp_path / "a.toy")]
        (tmp_path / "a.toy").write_text("")
    else:
        body += "SCHEMA = 'understudy/toy/1'\n\ndef check(row, where):\n    pass\n"
        body += f"\ndef parse(row, where):\n{ends}"
        result_file.write_text('{"schema": "understudy/toy/1"}')
    if kind in files:
        (package / files[kind]).write_text(body)
    done = subprocess.run(
        [sys.executable, "-m", "understudy", *command],
        cwd=tmp_path,
        text=True,
        env=os.environ | environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0, done.stdout
    said("file-ends-python-sys", done.stderr)
    assert "Traceback" not in done.stderr


# Each command of a list, in one process: its status, and what it printed.
DESCRIBE = """\
import json
import sys
from click.testing import CliRunner
from understudy.cli import main

for words in json.loads(sys.argv[1]):
    done = CliRunner().invoke(main, ["describe", *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    print(json.dumps([done.exit_code, done.stdout, done.stderr]))
"""
TRACES = {
    "a.toy": b"#toy 1000 jane job=7",
    "b.toy": b"#toy 500 joe job=8",
    "c.data": b"#toy 250 jane",
    "d.plain": b"\xff\xfe\0",
    "e.data": b"\xff\xfe\0",
    "f.toy": b"#toy 7 \xff\xfe",
    "g.toy": b"no 7 x",
}
# What is described, and the bytes of its first dump.
DESCRIBED = {"a.toy --repeat 3": 1000, "c.data": 250, "a.toy b.toy c.data": 3000}
DESCRIBED |= {"a.toy b.toy --job 8": 500}
# What is refused, and the message.
REFUSED = {
    "d.plain": "d.plain: not a plain text: no text at byte 0 (invalid start byte)",
    "e.data": "e.data: it starts with b'\\xff\\xfe\\x00', expected a plain text (.plain) or a toy "
    "(.toy) or a model of an output of ADIOS2 (.yaml, .yml) or a BP4 or BP5 file of ADIOS2 (.bp, "
    ".bp4, .bp5, .idx) or a Darshan log (.darshan) or a trace of Recorder (.mt) or a trace of "
    "strace (.strace) or a workload (.json)",
    "f.toy": "f.toy: not a toy: no text at byte 7 (invalid start byte)",
    "f.toy -o out.json": "f.toy: not a toy: no text at byte 7 (invalid start byte)",
    "f.toy --job 1": "f.toy: not a toy: no text at byte 7 (invalid start byte)",
    "g.toy": "g.toy: it starts with 'no', expected '#toy'",
    "a.toy --job 9": "--job 9: none of 1 toys is of this job",
    "a.toy --partial": "--partial: expected only with a Darshan log, not a.toy",
    "h.data --repeat 2": "--repeat: expected only with a toy, not h.data",
    "a.toy h.data": "h.data: a Darshan log, expected traces of one kind, but a.toy is a toy",
    "none.data": "none.data: cannot be opened: No such file or directory",
}


def test_a_reader_is_one_file(package: Path, tmp_path: Path) -> None:
    """With an option, beginnings and hooks; one without beginnings takes only its suffix."""
    (package / "readers" / "aaa_plain.py").write_text(PLAIN_READER)
    (package / "readers" / "aab_toy.py").write_text(READER)
    traces = tmp_path / "in"
    traces.mkdir()
    log = (ROOT / "traces" / "mphys_dyn.darshan").read_bytes()
    for name, content in (TRACES | {"h.data": log}).items():
        (traces / name).write_bytes(content)
    others = ["a.toy -o of-jane.json", "h.data", "--help"]
    words = [line.split() for line in (*DESCRIBED, *REFUSED, *others)]
    command = [sys.executable, "-c", DESCRIBE, json.dumps(words)]
    done = run(*command, folder=traces, PYTHONPATH=str(package.parent))
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    *described, named, of_log, helped = answers
    for size, (status, text, _) in zip(DESCRIBED.values(), described, strict=False):
        steps = json.loads(text)["streams"][0]["steps"]
        [move] = [i for i in steps[0]["do"] if "write" in i]
        assert (status, move["shape"]) == (0, [size])
    assert described[0][2] == "3 dumps of a toy.\n"
    messages = [[2, "", f"understudy: {message}\n"] for message in REFUSED.values()]
    assert described[len(DESCRIBED) :] == messages
    assert named[0] == 0 and said("file-name-repeats-jane", named[2])
    assert json.loads((traces / "of-jane.json").read_text())["name"] == "toy"
    assert json.loads(of_log[1])["source"]["format"] == "darshan"
    assert helped[1].count("--repeat INTEGER") == 1
