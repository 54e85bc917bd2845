"""What CONTRIBUTING.md states: how many files a key of the workload touches."""

import filecmp
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support import results
from understudy.paths import ROOT

# The toy: the bytes of a written dump are written so many times over. Text before and after, by
# file; an instruction that means it, a loop, is there.
EDITS: dict[str, list[tuple[str, str]]] = {
    "schemas/workload.schema.json": [
        (
            '        "pace": {\n',
            '        "times_written": {"type": "integer", "minimum": 1},\n        "pace": {\n',
        )
    ],
    "python/understudy/semantics/types.py": [
        ("    passes: int = 1\n", "    passes: int = 1\n    times_written: int = 1\n")
    ],
    "python/understudy/semantics/lowering.py": [
        (
            "return (Passes(self._stream.passes, body),) if self._stream.passes > 1 else body",
            "times = self._stream.passes * self._stream.times_written\n"
            "        return (Passes(times, body),) if times > 1 else body",
        )
    ],
    "proxies/core/program.c": [
        ("int64_t names, groups, passes,", "int64_t names, groups, times_written, passes,"),
        (
            "keys->names = keys->passes = 1;",
            "keys->names = keys->passes = keys->times_written = 1;",
        ),
        (
            '{"passes", UND_MAX_PASSES, &keys->passes}',
            '{"passes", UND_MAX_PASSES, &keys->passes},'
            '{"times_written", 100, &keys->times_written}',
        ),
        ('"flush_bytes", NULL}', '"flush_bytes", "times_written", NULL}'),
        (
            "    if (writer->keys->passes == 1)\n",
            "    const int64_t times = writer->keys->passes * writer->keys->times_written;\n"
            "    if (times == 1)\n",
        ),
        ("loop->times = writer->keys->passes;", "loop->times = times;"),
    ],
}
COPIED = ("cmake", "proxies", "schemas", "python", "workloads")


def run(*command: object, folder: Path, **variables: str) -> str:
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def with_toy(folder: Path) -> Path:
    """A copy of the tree with the toy key; its player is in build/bin."""
    copy = folder / "understudy"
    for name in COPIED:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "CMakeLists.txt", copy)
    for name, edits in EDITS.items():
        text = (copy / name).read_text()
        for before, after in edits:
            assert text.count(before) == 1, f"{name}: {before}"
            text = text.replace(before, after)
        (copy / name).write_text(text)
    configure = ("-DBUILD_TESTING=OFF", "-DUND_ADIOS=OFF", "-DCMAKE_BUILD_TYPE=Debug")
    run("cmake", "-S", copy, "-B", copy / "build", *configure, folder=folder)
    run("cmake", "--build", copy / "build", "--target", "understudy-replay", "-j2", folder=folder)
    return copy


def differing(copy: Path) -> set[str]:
    """The files of the copy that are not as in the original."""
    paths = (path for name in COPIED for path in (copy / name).rglob("*") if path.is_file())
    names = (str(path.relative_to(copy)) for path in paths if path.suffix != ".pyc")
    return {n for n in names if not filecmp.cmp(copy / n, ROOT / n, shallow=False)}


def programs(copy: Path, workload: Path) -> tuple[str, str]:
    """What Python and the player of a tree say that the workload means."""
    python = (sys.executable, "-m", "understudy", "show", "--program", workload)
    player = copy / "build" / "bin" / "understudy-replay"
    return (
        run(*python, folder=copy, PYTHONPATH=str(copy / "python")),
        run(player, "-w", workload, "--program", folder=copy),
    )


def test_a_key_of_the_workload_is_at_most_five_files(tmp_path: Path) -> None:
    """Both sides mean the same by it, and the player does it."""
    copy = with_toy(tmp_path)
    assert differing(copy) == set(EDITS)
    assert len(EDITS) <= 5

    stream = results.stream("dump", "output", [10_000], [0.0], method="posix")
    row: dict[str, Any] = json.loads(results.workload("toy", [stream], ranks=1).to_text())
    texts = []
    for times in (1, 3):
        path = tmp_path / f"{times}.json"
        row["streams"][0] |= {"times_written": times} if times > 1 else {}
        path.write_text(json.dumps(row))
        python, player = programs(copy, path)
        assert python == player
        texts.append(python)
    assert "passes" not in texts[0] and "passes 3" in texts[1]
    assert texts[0] == run(
        sys.executable, "-m", "understudy", "show", "--program", tmp_path / "1.json", folder=ROOT
    )

    calls = []
    for times in (1, 3):
        prepare = '. "$0/setup-env.sh" 2>/dev/null; exec "$@"'
        player = copy / "build" / "bin" / "understudy-replay"
        run(
            "bash",
            "-c",
            prepare,
            ROOT,
            "mpirun",
            "-n",
            1,
            player,
            "-w",
            f"{times}.json",
            "-o",
            "data",
            "-O",
            f"result-{times}.json",
            folder=tmp_path,
        )
        (played,) = json.loads((tmp_path / f"result-{times}.json").read_text())["repetitions"]
        phases = played["streams"][0]["dumps"][0]["phases"]
        calls += [phase["operations"] for phase in phases if phase["phase"] == "write"]
    assert calls[1] == 3 * calls[0] > 0
