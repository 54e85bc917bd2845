"""What a program in Python that writes through ADIOS2 needs to be measured.

One file because skeletal applications in Python, as `understudy skel make` generates them, carry
it with them. It needs NumPy and ADIOS2's module, and mpi4py for more than one process. Measured
are, per process and step: open (Open, BeginStep), write (Put) and close (EndStep, Close). Calls
inside ADIOS2 cannot be intercepted from Python: all of their time is `rest_s`.
"""

import argparse
import hashlib
import json
import os
import platform
import shutil
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from adios2 import bindings, is_built_with_mpi

VERSION = "1"
ENGINES = ("BP5", "BP4", "HDF5", "BP", "BPFile", "File", "FileStream")
DEFAULT_ENGINE = "BP5"
PHASES = ("open", "write", "close")
TYPES = {
    "float complex": "complex64",
    "double complex": "complex128",
    "float": "float32",
    "double": "float64",
    "long double": "longdouble",
}
FILLS = ("rank", "index", "random", "zero")
VERIFICATION = "verification"


@dataclass
class Layout:
    """Global shape (None: local arrays) and blocks of this process: where each begins (empty for
    local and joined arrays) and its shape."""

    shape: list
    blocks: list


@dataclass
class Program:
    """`ranks`: processes; `steps` that write_step knows: further ones are as the last."""

    name: str
    application: str
    config: str
    io: str
    file: str
    ranks: int
    steps: int


class UsageError(Exception):
    """The program's user can correct it; one message."""


def reason(error):
    """What went wrong, without the time and the places that ADIOS2 states before it."""
    text = str(error).rpartition("> : ")[2].split("\x1b")[0].strip().replace("\n", " ")
    if "BZ_OUTBUFF_FULL" in text:
        text += "; the contents do not compress: choose others with --fill"
    return text


class OneProcess:
    """What is used of a communicator, where there is no mpi4py."""

    def Get_rank(self):
        return 0

    def Get_size(self):
        return 1

    def gather(self, value):
        return [value]

    def bcast(self, value):
        return value

    def barrier(self):
        pass


def communicator():
    """That of all processes."""
    launched = any(int(os.environ.get(n, 1)) > 1 for n in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"))
    try:
        return import_module("mpi4py.MPI").COMM_WORLD
    except ImportError:
        if launched:
            raise UsageError("mpi4py is missing, which more than one process needs") from None
        return OneProcess()


def table(shape, dimensions, local, rows, rank):
    """The rows of a process in a table: rank, starts unless local, counts."""
    starts = 0 if local else dimensions
    blocks = [
        (list(row[1 : 1 + starts]), list(row[1 + starts :])) for row in rows if row[0] == rank
    ]
    return Layout(shape, blocks)


@dataclass
class Record:
    """What one process measured of a step: by phase seconds, calls, first start and last end."""

    step: int
    bytes: int = 0
    seconds: list = field(default_factory=lambda: [0.0] * 3)
    calls: list = field(default_factory=lambda: [0] * 3)
    starts: list = field(default_factory=lambda: [0.0] * 3)
    ends: list = field(default_factory=lambda: [0.0] * 3)


class Output:
    """A file that is written step by step, and measured. Variables are defined when they are first
    written."""

    def __init__(self, program, options, comm):
        self.program, self.options, self.comm = program, options, comm
        self.rank = comm.Get_rank()
        arguments = () if isinstance(comm, OneProcess) else (comm,)
        if arguments and not is_built_with_mpi:
            if comm.Get_size() > 1:
                raise UsageError("this ADIOS2 was built without MPI; expected one process")
            arguments = ()
        self.adios = bindings.ADIOS(options.config, *arguments)
        self._check_operators()
        self.io = self.adios.DeclareIO(program.io)
        if options.engine:
            self.io.SetEngine(options.engine)
        for key, value in options.parameters:
            self.io.SetParameter(key, value)
        if self.io.EngineType().lower() not in [name.lower() for name in ENGINES]:
            raise UsageError(
                f"engine {self.io.EngineType()}: it writes no files, or is unknown; expected BP5, "
                "BP4 or HDF5"
            )
        # HDF5: all processes define each variable, or wait for ever.
        self.is_collective = comm.Get_size() > 1 and self.io.EngineType().lower() == "hdf5"
        self.engine = None
        self.mode = "plan"
        self.bytes = 0
        self.used, self.most, self.contents = {}, {}, {}
        self.record = Record(step=0)
        self.begin_s = 0.0

    def _check_operators(self):
        """One that the library lacks ends the program, unless it is asked for here."""
        try:
            rows = ElementTree.parse(self.options.config).iter()
        except ElementTree.ParseError:
            return  # ADIOS2 says so, or takes it
        kinds = {row.get("type") for row in rows if row.tag in ("operation", "operator")}
        for kind in sorted(kinds - {None}):
            try:
                self.adios.DefineOperator(f"check of {kind}", kind, {})
            except (RuntimeError, ValueError) as error:
                raise UsageError(f"{self.options.config}: {reason(error)}") from None

    # ---- What a step writes

    def attribute(self, name, kind, value):
        """`value`: one, or a list."""
        content = value if kind == "string" else np.array(value, dtype=_dtype(kind))
        self.io.DefineAttribute(name, content)

    def value(self, name, kind, value, writes=True):
        """A value that all processes share; `writes`: does this process write it?"""
        if writes or self.is_collective:
            self._put_value(name, kind, value, ())

    def local_value(self, name, kind, value, writes=True):
        self._check_collective(name, False)
        if writes:
            self._put_value(name, kind, value, (bindings.LocalValueDim,))

    def _check_collective(self, name, has_global_block):
        """Before a step is written: can the engine write the variable?"""
        if self.mode == "plan" and self.is_collective and not has_global_block:
            raise UsageError(
                f"{name}: the engine HDF5 writes on more than one process only values of all, and "
                "global arrays of which each process has a block; expected BP5 or BP4"
            )

    def _put_value(self, name, kind, value, shape):
        if self.mode == "list":
            return
        if kind == "string":
            self.bytes += len(value.encode())
            content = value
        else:
            content = np.array(value, dtype=_dtype(kind))
            self.bytes += content.nbytes
        if self.mode == "verify":
            self._verify_value(name, kind, content, shape)
            return
        variable = self.io.InquireVariable(name)
        if not variable:
            if kind == "string":
                variable = self.io.DefineVariable(name)
            else:
                variable = self.io.DefineVariable(name, content, list(shape), [], [])
        if self.mode == "write":
            self._timed(1, self.engine.Put, variable, content)

    def put(self, name, kind, layout):
        if self.mode == "list":
            if name == self.listed:
                self.boxes += [(list(start), list(count)) for start, count in layout.blocks]
            return
        counts = [int(np.prod(count, dtype=np.int64)) for _, count in layout.blocks]
        at = self.used.get(kind, 0)
        self.used[kind] = at + sum(counts)
        self.most[kind] = max(self.most.get(kind, 0), self.used[kind])
        self.bytes += sum(counts) * _dtype(kind).itemsize
        self._check_collective(name, bool(layout.blocks) and bool(layout.blocks[0][0]))
        if self.mode == "plan" or not layout.blocks:
            return
        for (start, count), elements in zip(layout.blocks, counts, strict=True):
            content = self.contents[kind][at : at + elements].reshape(count)
            at += elements
            if self.mode == "verify":
                self._verify_block(name, start, count, content)
                continue
            variable = self.io.InquireVariable(name)
            if not variable:
                variable = self.io.DefineVariable(name, content, layout.shape or [], start, count)
            elif layout.shape and start:
                variable.SetShape(layout.shape)
            variable.SetSelection((start, count))
            self._timed(1, self.engine.Put, variable, content)

    # ---- Steps

    def begin_plan(self):
        self.mode, self.bytes, self.used = "plan", 0, {}

    def allocate(self):
        fill = self.options.fill
        random = np.random.default_rng(self.rank)
        for kind, count in self.most.items():
            dtype = _dtype(kind)
            if fill == "rank":
                contents = np.full(count, self.rank).astype(dtype)
            elif fill == "index":
                contents = np.arange(count).astype(dtype)
            elif fill == "zero":
                contents = np.zeros(count, dtype)
            elif dtype.kind in "iu":
                contents = np.frombuffer(random.bytes(count * dtype.itemsize), dtype).copy()
            else:
                contents = random.random(count).astype(dtype)
            self.contents[kind] = contents

    def begin_step(self, path, step, opens):
        self.record = Record(step=step)
        self.mode, self.bytes, self.used = "write", 0, {}
        self.comm.barrier()
        if opens:
            self.engine = self._timed(0, self.io.Open, str(path), bindings.Mode.Write)
        self._timed(0, self.engine.BeginStep)

    def end_step(self, closes):
        self.record.bytes = self.bytes
        self._timed(2, self.engine.EndStep)
        if closes:
            self._timed(2, self.engine.Close)
        return self.record

    def _timed(self, phase, call, *arguments):
        start = time.perf_counter()
        answer = call(*arguments)
        end = time.perf_counter()
        record = self.record
        if record.calls[phase] == 0:
            record.starts[phase] = max(0.0, start - self.begin_s)
        record.seconds[phase] += end - start
        record.ends[phase] = max(0.0, end - self.begin_s)
        record.calls[phase] += 1
        return answer

    # ---- Verification

    def verify(self, path, steps, write_step):
        """Read back what this process wrote, and compare."""
        self.comm.barrier()
        self.reader = bindings.ADIOS()  # must live as long as its io
        io = self.reader.DeclareIO(VERIFICATION)
        if self.io.EngineType().lower() == "hdf5":
            io.SetEngine("HDF5")
        self.stored, self.path = io, path
        self.engine = io.Open(str(path), bindings.Mode.Read)
        self.mode = "verify"
        for step in steps:
            self.used, self.verified = {}, step
            if self.engine.BeginStep(bindings.StepMode.Read, 0.0) != bindings.StepStatus.OK:
                raise UsageError(f"{path}: has less than the {len(steps)} steps that were written")
            self.write_rank = lambda rank, step=step: write_step(self, rank, step)
            self.write_rank(self.rank)
            self.engine.EndStep()
        self.engine.Close()
        self.comm.barrier()

    def _differs(self, name, what):
        raise UsageError(
            f"{self.path}: {name} in step {self.verified}: {what} differs from what was written"
        )

    def _verify_value(self, name, kind, content, shape):
        variable = self.stored.InquireVariable(name)
        if not variable:
            self._differs(name, "the value")
        if shape:
            return
        if kind == "string":
            same = self.engine.Get(variable, bindings.Mode.Sync) == content
        else:
            copy = np.zeros_like(content)
            self.engine.Get(variable, copy, bindings.Mode.Sync)
            same = copy.tobytes() == content.tobytes()
        if not same:
            self._differs(name, "the value")

    def _verify_block(self, name, start, count, content):
        variable = self.stored.InquireVariable(name)
        if not variable:
            self._differs(name, "the variable")
        if not content.size:
            return
        lossy = "<operation" in Path(self.options.config).read_text()
        engine, blocks = self.io.EngineType().lower(), []
        # BlocksInfo of HDF5 is empty, and fails on minima of one byte, which may be no text.
        if engine != "hdf5" and content.itemsize > 1:
            text, begins = ",".join(map(str, count)), ",".join(map(str, start))
            blocks = [
                int(row["BlockID"])
                for row in self.engine.BlocksInfo(name, self.engine.CurrentStep())
                if row["Count"] == text and (not start or row["Start"] == begins)
            ]
            if not blocks:
                self._differs(name, "a block")
        if lossy:
            return
        if engine != "bp4" and blocks:  # BP4 reads their boxes
            same = any(self._block_equals(variable, block, content) for block in blocks)
        else:
            same = not start or self._box_equals(variable, name, start, content)
        if not same:
            self._differs(name, "a block's contents")

    def _block_equals(self, variable, block, content):
        variable.SetBlockSelection(block)
        return self._read(variable, content).tobytes() == content.tobytes()

    def _box_equals(self, variable, name, start, content):
        """But for what other blocks have too: of which a reader gets it is not defined."""
        variable.SetSelection((start, list(content.shape)))
        copy = self._read(variable, content)
        if copy.tobytes() == content.tobytes():
            return True
        self.mode, self.listed, self.boxes = "list", name, []
        for rank in range(self.comm.Get_size()):
            self.write_rank(rank)
        self.mode = "verify"
        self.boxes.remove((list(start), list(content.shape)))
        single = np.ones(content.shape, bool)
        for begins, counts in self.boxes:
            sides = zip(begins, counts, start, strict=True)
            single[tuple(slice(max(b - s, 0), max(b + c - s, 0)) for b, c, s in sides)] = False
        return copy[single].tobytes() == content[single].tobytes()

    def _read(self, variable, content):
        copy = np.zeros_like(content)
        self.engine.Get(variable, copy, bindings.Mode.Sync)
        return copy


def _dtype(kind):
    return np.dtype(TYPES.get(kind, kind.removesuffix("_t")))


# ---- The program


def play(program, attributes, write_step):
    """The whole program: options, steps, result. Returns its exit status."""
    rank, options = 0, None
    try:
        comm = communicator()
        rank = comm.Get_rank()
        options = _options(program)
        _check(program, options, comm)
        _run(program, options, comm, attributes, write_step)
    except (UsageError, OSError, RuntimeError, ValueError, MemoryError) as error:
        print(
            f"{program.name}: rank {rank} on {socket.gethostname()}: {reason(error)}",
            file=sys.stderr,
        )
        if options is not None:
            _remove(program, options)
        if "mpi4py.MPI" in sys.modules and comm.Get_size() > 1:
            sys.stderr.flush()
            comm.Abort(1)
        if options is not None and options.is_prepared:
            sys.stderr.flush()
            os._exit(1)  # an engine of ADIOS2 that is not closed would write, and end the process
        return 1
    return 0


def _options(program):
    parser = argparse.ArgumentParser(
        prog=program.name,
        description="Writes through ADIOS2 and measures it, process by process.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-o", "--directory", type=Path, required=True, help="run directory: empty, or created")
    add("-r", "--result", type=Path, default=Path("result.json"), help="the result, JSON")
    add("-c", "--config", default=program.config, help="adios-config XML [%(default)s]")
    add("-a", "--engine", choices=ENGINES, help="engine [as in the config]")
    add(
        "-p",
        "--parameter",
        dest="parameters",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a parameter of the engine; may be repeated [as in the config]",
    )
    add("-s", "--steps", type=_count, default=program.steps, help="steps [%(default)s]")
    add("-i", "--repetitions", type=_count, default=1, help="repetitions [%(default)s]")
    add("--append", action="store_true", help="all steps into one file, which is the default")
    add("--new-files", action="store_true", help="a file for each step [all steps into one]")
    add("--fill", choices=FILLS, default="random", help="contents of arrays [%(default)s]")
    add("--verify", action="store_true", help="read back what was written, and compare")
    add("-k", "--keep", action="store_true", help="leave the files of the last repetition")
    add("--pause", type=_seconds, default=0.0, help="seconds before each step [%(default)s]")
    add("--application", default=program.application, help="compared in a report [%(default)s]")
    options = parser.parse_args()
    for word in options.parameters:
        if "=" not in word.lstrip("="):
            parser.error(f"--parameter {word}: expected KEY=VALUE, such as NumAggregators=2")
    options.parameters = [tuple(word.split("=", 1)) for word in options.parameters]
    options.created = options.is_prepared = options.is_verifying = False
    return options


def _count(text):
    number = int(text)
    if not 1 <= number <= 1_000_000:
        raise ValueError(text)
    return number


def _seconds(text):
    number = float(text)
    if not 0 <= number < float("inf"):
        raise ValueError(text)
    return number


def _check(program, options, comm):
    if comm.Get_size() != program.ranks:
        raise UsageError(
            f"its blocks are those of {program.ranks} processes; expected as many, found "
            f"{comm.Get_size()}"
        )
    if not Path(options.config).is_file():
        raise UsageError(
            f"{options.config}: the adios-config cannot be read; give one with --config"
        )
    problem = None
    if comm.Get_rank() == 0:
        problem = _result_problem(options.result)
    if comm.Get_rank() == 0 and not problem:
        try:
            options.directory.mkdir()
            options.created = True
        except FileExistsError:
            if not options.directory.is_dir() or any(options.directory.iterdir()):
                problem = f"{options.directory} is not empty; expected an empty directory"
        except OSError as error:
            problem = f"{options.directory}: cannot be created: {error.strerror}"
    problem = comm.bcast(problem)
    if problem:
        raise UsageError(problem)
    options.is_prepared = True


def _remove(program, options):
    """The files of a run that failed; those that do not verify stay with --keep."""
    if not options.is_prepared or (options.is_verifying and options.keep):
        return
    for path in {_path(program, options, step) for step in range(options.steps)}:
        shutil.rmtree(path, ignore_errors=True)
        if path.is_file():
            path.unlink()
    if options.created:
        with suppress(OSError):
            options.directory.rmdir()


def _result_problem(path):
    """Why the result cannot be written, before anything else is; None if it can. A new file would
    take the place of a device, or of a link such as /dev/stdout."""
    if (path.exists() and not path.is_file()) or path.parent.resolve() == Path("/dev"):
        return f"{path}: is no regular file; expected the name of a file to write"
    if not os.access(path.parent, os.W_OK | os.X_OK):
        return f"{path}: cannot be written; expected a directory that can be"
    return None


def _run(program, options, comm, attributes, write_step):
    output = Output(program, options, comm)
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    storage = _storage(options.directory)
    attributes(output)
    for step in range(min(program.steps, options.steps)):
        output.begin_plan()
        write_step(output, output.rank, step)
    output.allocate()
    repetitions = [
        _repetition(program, options, comm, output, write_step, n)
        for n in range(options.repetitions)
    ]
    nodes = comm.gather(socket.gethostname())
    if output.rank == 0:
        if options.created and not options.keep:
            options.directory.rmdir()
        environment = _environment(program, options, comm, nodes, started)
        _write(
            options.result,
            {
                "schema": "understudy/skeleton/1",
                "program": _program(options, output, program),
                "environment": environment,
                "storage": storage,
                "repetitions": repetitions,
                "finished": True,
            },
        )


def _path(program, options, step):
    name = f"{program.file}.{step}.bp" if options.new_files else f"{program.file}.bp"
    return options.directory / name


def _repetition(program, options, comm, output, write_step, number):
    comm.barrier()
    output.begin_s = time.perf_counter()
    records = []
    for step in range(options.steps):
        time.sleep(options.pause)
        output.begin_step(_path(program, options, step), step, options.new_files or step == 0)
        write_step(output, output.rank, min(step, program.steps - 1))
        records.append(output.end_step(options.new_files or step == options.steps - 1))
    options.is_verifying = options.verify
    if options.verify:
        steps = [min(step, program.steps - 1) for step in range(options.steps)]
        path = _path(program, options, options.steps - 1)
        output.verify(path, steps[-1:] if options.new_files else steps, write_step)
    options.is_verifying = False
    gathered = comm.gather(records)
    if output.rank != 0:
        return None
    dumps = []
    for step in range(options.steps):
        path = _path(program, options, step)
        dumps.append(_dump([rows[step] for rows in gathered], path, options.new_files))
    if not (options.keep and number == options.repetitions - 1):
        for path in {_path(program, options, step) for step in range(options.steps)}:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    elapsed = max(max(record.ends) for rows in gathered for record in rows)
    streams = [{"name": program.file, "method": "adios2", "dumps": dumps}]
    return {"repetition": number, "elapsed_s": elapsed, "streams": streams}


# ---- The result


def _dump(records, path, own_file):
    files = [p for p in path.rglob("*") if p.is_file()] if path.is_dir() else [path]
    seconds = np.array([record.seconds for record in records])
    totals = seconds.sum(axis=1).tolist()
    zeros = [0.0] * len(records)
    phases = []
    for p, name in enumerate(PHASES):
        column = np.sort(seconds[:, p])
        shares = {"q25": 0.25, "median": 0.5, "q75": 0.75, "q95": 0.95}
        ranks = {key: _quantile(column, share) for key, share in shares.items()}
        phases.append(
            {
                "phase": name,
                "bytes": sum(r.bytes for r in records) if name == "write" else 0,
                "operations": sum(r.calls[p] for r in records),
                "first_start_s": min(r.starts[p] for r in records),
                "last_end_s": max(r.ends[p] for r in records),
                "rank_s": {"min": float(column[0]), "max": float(column[-1])}
                | ranks
                | {"mean": float(column.mean())},
            }
        )
    return {
        "dump": records[0].step,
        "start_s": min(r.starts[0] for r in records),
        "bytes": sum(r.bytes for r in records),
        "file_bytes": sum(p.stat().st_size for p in files) if own_file else None,
        "files": len(files),
        "phases": phases,
        "processes": {
            "bytes": [r.bytes for r in records],
            "open_s": seconds[:, 0].tolist(),
            "write_s": seconds[:, 1].tolist(),
            "close_s": seconds[:, 2].tolist(),
            "total_s": totals,
            "communication_s": zeros,
            "io_s": zeros,
            "rest_s": totals,
            "library": None,
        },
    }


def _quantile(column, share):
    """The smallest value with at least that share of the values at or below it."""
    return float(column[max(0, int(np.ceil(share * len(column))) - 1)])


def _program(options, output, program):
    engine = options.engine or output.io.EngineType()
    if engine.lower() in ("bp", "bpfile", "file", "filestream"):
        engine = DEFAULT_ENGINE
    return {
        "name": program.name,
        "application": options.application,
        "method": engine,
        "parameters": ";".join("=".join(pair) for pair in options.parameters) or None,
        "config": Path(options.config).read_text(),
        "steps": options.steps,
        "append": not options.new_files,
        "pause_s": options.pause,
        "barriers": ["open"],
        "slow_rank": None,
        "extra_collective_bytes": 0,
        "repetitions": options.repetitions,
        "keep": options.keep,
    }


def _environment(program, options, comm, nodes, started):
    system = platform.uname()
    mpi = "none"
    if not isinstance(comm, OneProcess):
        mpi = sys.modules["mpi4py.MPI"].Get_library_version().splitlines()[0]
    return {
        "understudy_version": f"skeleton {VERSION}",
        "command_line": sys.argv,
        "started": started,
        "ranks": comm.Get_size(),
        "nodes": [{"name": n, "ranks": nodes.count(n)} for n in dict.fromkeys(nodes)],
        "host": socket.gethostname(),
        "kernel": f"{system.system} {system.release} {system.machine}",
        "processors": os.cpu_count() or 1,
        "mpi": mpi,
        "libraries": {"adios2": str(bindings.__version__)},
        "directory": str(options.directory),
        "program_sha256": hashlib.sha256(Path(sys.argv[0]).read_bytes()).hexdigest(),
        "commit": None,
    }


def _storage(directory):
    """The mount that the directory is on, and its size and fill."""
    whole, best = os.path.realpath(directory), None
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, behind = line.split(" - ", 1)
        point = before.split()[4].encode().decode("unicode_escape")
        inside = point == "/" or whole == point or whole.startswith(point + "/")
        if inside and (best is None or len(point) >= len(best[0])):
            best = (point, before.split()[5], *behind.split()[:2])
    point, options, kind, source = best or (None, None, None, None)
    status = os.statvfs(directory)
    return {
        "type": kind,
        "source": source,
        "mount_point": point,
        "mount_options": options,
        "total_bytes": status.f_blocks * status.f_frsize,
        "free_bytes": status.f_bavail * status.f_frsize,
        "total_inodes": status.f_files or None,
        "free_inodes": status.f_favail if status.f_files else None,
        "client_version": None,
        "server_version": None,
        "health": None,
        "default_layout": None,
    }


def _write(path, result):
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(result, indent=1) + "\n")
    temporary.replace(path)
