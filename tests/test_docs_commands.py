"""The commands of the README and the tutorials, run in order and literally.

Each document is run by one shell in a fresh directory with what a clone has. What is replaced or
left out is in the tables below, and only that.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from understudy.paths import ROOT

CLONE = (
    "docs",
    ".venv",
    "acceptance",
    "build",
    "checks",
    "configs",
    "setup-env.sh",
    "traces",
)
BLOCK = re.compile(r"^( *)```sh\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
PROGRAM = "dd if=/dev/zero of=block bs=4096 count=10"
ONE_CASE = "-n Replay%workload=n-1%method=posix -P stripe_count=default"
# (part of a command, what stands for it): names, sizes and waits of a site.
REPLACED = [
    ("make run ARGS=", "understudy run --no-open --system localhost:disk "),  # which make starts
    ("run -- mpirun -n 4 ./app", f"run --no-open --system localhost:disk -- {PROGRAM}"),
    ("mpirun -n 4 ./app", PROGRAM),
    ("/scratch/try", "$SCRATCH/try"),
    ("/projects/storage/records", "$SCRATCH/records"),
    ("'/lustre/$USER'", "$SCRATCH"),
    ("new mine ", "new mine --no-batch "),
    ("new mycluster ", "new mycluster --no-batch "),
    ("mycluster:lustre", "mycluster:$PARTITION"),
    ("mphys-e%method=mpiio", "n-1%method=posix"),
    ("ranks=1024", "ranks=4"),
    ("seq 10", "seq 1"),
    ("6 * 3600", "0"),
    ("-r --system mine ", f"-r --system mine {ONE_CASE} "),
    ("-t nightly", f"-t nightly {ONE_CASE}"),
    ("before/ after/", "$(ls -dtr reports/out/records/*/ | tail -2)"),
]
# Beginnings of commands that are left out, and why.
LEFT_OUT = {
    "make run ": "CI runs it by itself",
    "make test": "this is it",
    "spack ": "tests/test_spack.py",
    "understudy trend --system mycluster --acknowledge": "of a change that a site saw",
    "understudy compare 28d..14d": "of records of four weeks",
}
# Exit status 3 is "undecided": a session or two decide nothing.
FINE = {"understudy accept": (0, 3), "understudy compare": (0, 3)}
DOCUMENTS = {
    "README.md": "accept contract.yaml",
    "docs/how-to/record-a-program.md": "--below data",
    "docs/tutorial/first-log.md": "understudy show lammps.json",
    "docs/tutorial/accept-in-a-weekend.md": "--pdf acceptance.pdf",
    "docs/tutorial/nightly.md": "trend --system mycluster -o",
}


def script(text: str) -> list[str]:
    """The commands of a document, with those of a loop together."""
    commands: list[str] = []
    for indent, block in BLOCK.findall(text):
        lines = [line.removeprefix(indent) for line in block.splitlines()]
        whole = re.sub(r"\\\n", " ", "\n".join(lines))
        commands += re.findall(r"^for .*?^done$|^[^\n]+$", whole, re.MULTILINE | re.DOTALL)
    return commands


def ready(command: str) -> str | None:
    """What is run for a command; None where it is left out."""
    for part, other in REPLACED:
        command = command.replace(part, other)
    if any(command.startswith(start) for start in LEFT_OUT):
        return None
    fine = next((s for start, s in FINE.items() if command.startswith(start)), (0,))
    body, _, _ = command.partition("  #")
    good = " || ".join(f"[ $s = {status} ]" for status in fine)
    return f's=0; {body.rstrip()} || s=$?; {good} || {{ echo "exit status $s" >&2; exit 1; }}'


def run(document: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """All commands of a document, of which the first that fails ends the shell."""
    (folder / "reports").mkdir()
    (folder / "scratch").mkdir()
    for name in CLONE:
        (folder / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "traces" / "openfoam_dambreak_nn.darshan", folder / "job.darshan")
    shutil.copy(ROOT / "acceptance" / "example.yaml", folder / "contract.yaml")
    commands = script((ROOT / document).read_text(encoding="utf-8"))
    if document.endswith("nightly.md"):  # which asks for the system of the weekend
        commands.insert(0, "understudy system new mycluster --scratch '/lustre/$USER'")
    lines = ["source setup-env.sh", *filter(None, map(ready, commands))]
    partition = (
        """PARTITION=$(sed -nE 's/^    "([a-z0-9-]+)": \\{$/\\1/p' understudy-site/*/*.py)"""
    )
    shell = "\n".join(["set -x", *lines])
    env = {k: v for k, v in os.environ.items() if not k.startswith(("UNDERSTUDY_", "RFM_"))}
    env |= {"UNDERSTUDY_OUTPUT": str(folder / "reports" / "out"), "SCRATCH": f"{folder}/scratch"}
    return subprocess.run(
        ["bash", "-c", shell.replace("session=", f"{partition}; session=")],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_run_in_order(document: str, tmp_path: Path) -> None:
    done = run(document, tmp_path)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert DOCUMENTS[document] in done.stderr  # as set -x shows it


def test_each_replacement_is_of_a_document() -> None:
    texts = "".join((ROOT / document).read_text(encoding="utf-8") for document in DOCUMENTS)
    commands = "\n".join(script(texts))
    assert all(part in commands for part, _ in REPLACED)
    assert all(f"\n{start}" in f"\n{commands}" for start in LEFT_OUT)
