"""A workload and the player as one archive, for somebody who must not see the application.

The archive holds the descriptor, the player's source, how to build and run it, the bytes to
expect and checksums. The same input gives the same archive, byte for byte.
"""

import gzip
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import understudy
from understudy import __version__, studies
from understudy.contracts.workload import Workload
from understudy.errors import UnderstudyError
from understudy.paths import ROOT, where
from understudy.program.sizes import stored_bytes

MODIFIED_S = 1_767_225_600  # of every file: 2026-01-01T00:00:00Z
# Names that the project itself makes up.
_OWN_NAME = re.compile(r"(checkpoint|visualization|output|restart|input)(-\d+)?|v\d*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A string of the descriptor that is no word of the contract, and the keys it stands under."""

    keys: tuple[str, ...]
    text: str


def contents(workload: Workload) -> dict[str, bytes]:
    """Every file of the archive, by its path in it, in order."""
    text = workload.to_text().encode()
    files = {f"workloads/{workload.name}.json": text}
    files["python/understudy/__init__.py"] = Path(understudy.__file__).read_bytes()  # the version
    for path in _player():
        files[path.relative_to(ROOT).as_posix()] = path.read_bytes()
    for name, base in studies.bases().items():
        for path in (*base.glob("methods/*"), *base.glob("cmake/*")):
            files[f"studies/{name}/{path.relative_to(base).as_posix()}"] = path.read_bytes()
    files["README.md"] = _readme(workload).encode()
    files["build.sh"] = _BUILD.encode()
    files["expected.json"] = (json.dumps(expected(workload, text), indent=1) + "\n").encode()
    sums = (f"{hashlib.sha256(files[p]).hexdigest()}  {p}\n" for p in sorted(files))
    files["SHA256SUMS"] = "".join(sums).encode()
    return dict(sorted(files.items()))


def of_workload(workload: Workload) -> tuple[str, ...]:
    """Those that tell of the workload; the others are the player and checksums."""
    return f"workloads/{workload.name}.json", "README.md", "expected.json"


def archive(workload: Workload, files: Mapping[str, bytes]) -> bytes:
    """The files as a compressed tar archive with one folder, <workload>-player."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path, data in files.items():
            entry = tarfile.TarInfo(f"{workload.name}-player/{path}")
            entry.size, entry.mtime = len(data), MODIFIED_S
            entry.mode = 0o755 if path.endswith(".sh") else 0o644
            tar.addfile(entry, io.BytesIO(data))
    return gzip.compress(plain.getvalue(), mtime=0)


def expected(workload: Workload, text: bytes) -> dict[str, Any]:
    """Content of a complete result: bytes of the payload per stream and dump."""
    return {
        "schema": "understudy/expected/1",
        "workload": workload.name,
        "workload_sha256": hashlib.sha256(text).hexdigest(),
        "ranks": workload.ranks,
        "bytes": workload.bytes,
        "streams": [
            {
                "name": stream.name,
                "operation": stream.operation,
                "bytes": stream.bytes,
                "dumps": [{"dump": k, "bytes": d.bytes} for k, d in enumerate(stream.expanded())],
            }
            for stream in workload.streams
        ],
    }


def refuse_labels(workload: Workload) -> None:
    """An UnderstudyError where the descriptor keeps a name of its source."""
    for stream in workload.streams:
        labels = [(f"labels.{stream.name}", stream.label)]
        labels += [
            (f"labels.{stream.name}/{move.variable.name}", move.variable.label)
            for move in stream.moves
        ]
        for key, label in labels:
            if label:
                raise UnderstudyError(
                    f"{workload.name}: {key}: {label!r} is a name of the source, expected none; "
                    "describe it without --keep-names, or let names out with --keep-names"
                )


def strings(workload: Workload) -> list[Text]:
    """Every string of the descriptor that is neither a number nor a word of the contract."""
    keys_by_text: dict[str, dict[str, None]] = {}
    words = set(_words())
    for key, text in _walk(json.loads(workload.to_text()), ""):
        named_freely = key.endswith(".name") and _OWN_NAME.fullmatch(text)
        if text and text not in words and not named_freely and key != "provenance.path":
            keys_by_text.setdefault(text, {})[key] = None
    return [Text(keys=tuple(keys), text=text) for text, keys in keys_by_text.items()]


def _walk(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """(key, text) of every string; keys without indices."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, child in value.items():
            yield from _walk(child, f"{key}.{name}".lstrip("."))
    elif isinstance(value, list):
        for child in value:
            yield from _walk(child, key)


def _words() -> Iterator[str]:
    """Constants and choices of the schema, and the player's methods."""

    def choices(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            yield from (w for w in value.get("enum", ()) if isinstance(w, str))
            if isinstance(value.get("const"), str):
                yield value["const"]
            for child in value.values():
                yield from choices(child)
        elif isinstance(value, list):
            for child in value:
                yield from choices(child)

    yield from choices(
        json.loads((where("schemas") / "workload.schema.json").read_text(encoding="utf-8"))
    )
    for folder in (where("proxies") / "methods", *studies.directories("methods")):
        yield from (path.stem for path in folder.glob("*.c"))


def _player() -> Iterator[Path]:
    """The source of the player, without its tests and the programs beside it."""
    yield from (ROOT / "CMakeLists.txt", ROOT / "LICENSE")
    yield from sorted(p for p in where("cmake").iterdir() if p.suffix != ".in")
    yield from sorted(where("schemas").glob("*.json"))
    proxies = where("proxies")
    yield proxies / "CMakeLists.txt"
    yield from sorted((proxies / "programs").glob("replay.*"))
    for directory in ("core", "methods", "stripings", "programs/replay"):
        yield from sorted(
            p
            for p in (proxies / directory).rglob("*")
            if p.suffix in (".c", ".h", ".def", ".cmake")
        )


_BUILD = """\
#!/bin/sh
# Builds build/bin/understudy-replay; arguments go to CMake, e.g. -DMPI_C_COMPILER=cc.
set -e
cd "$(dirname "$0")"
cmake -S . -B build -DBUILD_TESTING=OFF "$@"
cmake --build build
"""


def _readme(workload: Workload) -> str:
    streams = "\n".join(
        f"| {s.name} | {s.operation} | {s.method} | {s.layout} | {s.dump_count} | {s.bytes:,} |"
        for s in workload.streams
    )
    last_s = max(s.last_s for s in workload.streams)
    stored = stored_bytes(workload.program)
    play = (
        f"mpirun -n {workload.ranks} build/bin/understudy-replay "
        f"-w workloads/{workload.name}.json -o /scratch/try"
    )
    return f"""\
# {workload.name}: an application's I/O, without the application

`workloads/{workload.name}.json` states which MPI ranks move how many bytes of which files, and
when. `understudy-replay` {__version__} plays it: {workload.ranks} ranks, {workload.bytes:,} bytes,
last dump due after {last_s:,.1f} s. Contents are made up. Licence of the player: Apache-2.0.

| stream | operation | method | layout | dumps | bytes |
|---|---|---|---|---|---|
{streams}

## Build

A C11 compiler, CMake 3.18, MPI, jansson 2.9 and pkg-config are needed; parallel HDF5 for the
method hdf5, ADIOS2 with MPI for adios2, liburing 2.2 for uring.

```sh
sha256sum -c SHA256SUMS
./build.sh                      # build/bin/understudy-replay
build/bin/understudy-replay --list
```

## Run

The directory must be empty or not exist, with room for {stored:,} bytes; what the
player makes there it removes.

```sh
{play} --dry-run
{play} -i 5 -O result.json
{play} --verify -O verified.json
```

`--time-scale 0` plays without pauses, `-a` by another method; `--help` has the other options.
Each that was used stands in the result.

## What to send back

`result.json` and `verified.json`, unchanged, and a description of the system (nodes, file system,
striping of the directory). A complete run ends with exit status 0, and the `bytes` of every stream
and dump in the result are those of `expected.json`, for the same `workload_sha256`. The result
also holds the host name of rank 0, the kernel, the versions of MPI and libraries, the directory
and the command line: read it before you send it.
"""
