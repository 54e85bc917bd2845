"""What the cases share: the cluster, its mount, and how programs are started on them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nightly.rehearsal.ceph.cluster import STEP_S, Cluster, Failure
from nightly.rehearsal.ceph.striping import Layout

MIB = 1 << 20
OBJECT_SIZE = 64 * MIB  # no file is larger: a stripe count is a number of objects
RANKS = 4
LIMIT_S = 120.0  # of a program


class Skip(Exception):
    """Why a case cannot run here."""


def expect(holds: object, message: str) -> None:
    if not holds:
        raise Failure(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of a program that has ended."""

    status: int
    out: str
    err: str

    def message(self, program: str = "understudy: ") -> str:
        """Its first error message, or the end of what it printed."""
        lines = [line for line in self.err.splitlines() if line.startswith(program)]
        return lines[0] if lines else (self.err or self.out).strip()[-500:]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A cluster that is up, with a client at `mount`; files of the cases go below `base`."""

    cluster: Cluster
    mount: Path
    base: Path
    root: Path  # of the checkout
    environment: Mapping[str, str] = field(default_factory=dict)

    def start(
        self, words: Sequence[str | Path], environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """In a process group of its own."""
        return subprocess.Popen(
            words,
            cwd=self.base,
            env={**os.environ, **self.environment, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def finish(self, process: subprocess.Popen[str], limit_s: float = LIMIT_S) -> Outcome:
        """A Failure if it has not ended in time; then all of its processes are killed.

        Time in which the host stands still does not count.
        """
        for _ in range(round(limit_s / STEP_S)):
            try:
                out, err = process.communicate(timeout=STEP_S)
            except subprocess.TimeoutExpired:
                continue
            return Outcome(status=process.returncode, out=out, err=err)
        os.killpg(process.pid, signal.SIGKILL)
        raise Failure(f"{process.args}: no end within {limit_s:g} s")

    def run(
        self,
        *words: str | Path,
        limit_s: float = LIMIT_S,
        environment: Mapping[str, str] | None = None,
    ) -> Outcome:
        return self.finish(self.start(words, environment), limit_s)

    def succeed(self, *words: str | Path, **more: Any) -> Outcome:
        done = self.run(*words, **more)
        expect(done.status == 0, f"{words[0]}: exit status {done.status}: {done.message()}")
        return done

    def player(self, workload: Path, directory: Path, *options: str) -> list[str | Path]:
        """A command that plays the workload in the directory."""
        words = ["mpirun", "-n", str(RANKS), "understudy-replay", "-w", workload, "-o", directory]
        return [*words, "-O", self.result, *options]

    @property
    def result(self) -> Path:
        return self.base / "result.json"

    def measured(self, words: Sequence[str | Path], **more: Any) -> Any:
        """The measurement of such a command, which succeeds."""
        self.result.unlink(missing_ok=True)
        self.succeed(*words, **more)
        return json.loads(self.result.read_text())

    def methods(self, *wanted: str) -> list[str]:
        """Those of them that this build of the player has."""
        listed = self.succeed("understudy-replay", "--list").out.splitlines()
        here = {line.split()[0] for line in listed if line.split()[1].startswith("available")}
        return [method for method in wanted if method in here]

    @contextmanager
    def directory(self, name: str, mount: Path | None = None) -> Iterator[Path]:
        """An empty directory of the file system, and nothing of it afterwards."""
        path = (mount or self.mount) / name
        path.mkdir()
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def workload(
        self, name: str, layout: str, size: int, dumps: int = 1, gap_s: float = 0.0
    ) -> Path:
        """Dumps of one variable of `size` bytes, every `gap_s` seconds."""
        variable = {
            "name": "field",
            "label": "",
            "count": 1,
            "type": "u8",
            "shape": [size],
            "decomposition": {"rule": "even"},
            "file": 0,
        }
        dump = {"duration_s": None, "overhead_bytes": None, "variables": [variable]}
        stream = {
            "name": "checkpoint",
            "label": "",
            "role": "checkpoint",
            "operation": "write",
            "files": "new",
            "layout": layout,
            "groups": None,
            "method": "posix",
            "transfer_bytes": MIB,
            "collective": False,
            "sync": True,
            "turns": False,
            "content": {"kind": "random", "compressibility": 0},
            "dumps": [{"time_s": i * gap_s, **dump} for i in range(dumps)],
        }
        source = {"format": "hand", "version": "", "reader": "", "notes": []}
        workload = {
            "schema": "understudy/workload/2",
            "name": name,
            "description": "Synthetic.",
            "ranks": RANKS,
            "scaling": {"rule": "none", "from_ranks": RANKS},
            "runtime_s": None,
            "compute": "sleep",
            "streams": [stream],
            "source": source,
            "provenance": [],
        }
        path = self.base / "site" / "workloads" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(workload))
        return path


def set_default(directory: Path, **changes: int) -> None:
    """The layout of new files in the directory."""
    layout = {"unit": MIB, "count": 1, "object_size": OBJECT_SIZE, **changes}
    os.setxattr(directory, "ceph.dir.layout", Layout(pool="cephfs_data", **layout).text)


def files_of(directory: Path) -> list[Path]:
    """Regular files below it. Their bytes are on the OSDs."""
    files = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    return files
