"""understudy doctor: what this machine has, what it serves, and how to get the rest."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import click

from understudy import paths
from understudy.cli import FAILED, print_error
from understudy.errors import UnderstudyError, one_line, printable
from understudy.launch import with_settings
from understudy.reframe.bases import canary, methods, observer
from understudy.release import version
from understudy.tables import table

SECONDS = 20  # for a program to state its version
# Of a method that the player has and that this system does not let it use.
USABLE = "the player has the method: no library is missing, the system has to allow it"
REFRAME = (4, 10, 3), (4, 11)  # the oldest, and the first that is too new


EVERY, ROOT = "every", "root"  # kinds of paths: all, and the directory that holds them


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`installed` says what there is; without it, `remedy` says how to get it. A basic one must
    be."""

    name: str
    installed: str | None
    serves: str
    remedy: str
    basic: bool = False


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--paths",
    "kind",
    metavar="[KIND]",
    is_flag=False,
    flag_value=EVERY,
    help="Print only where the files of a KIND are, or without KIND all of them. KIND is one of "
    f"{', '.join((ROOT, *paths.kinds()))}.",
)
def command(as_json: bool, kind: str | None) -> None:
    """List the software on this machine, what it enables, and how to install the rest.

    The exit status is 0 if the basics work: Python, ReFrame, the player with a method, and MPI.
    It is 1 if one of them is missing.
    Nothing is submitted, installed or written. On a cluster, run it where jobs are submitted; the
    nodes can have other programs.

    \b
    Example: reframe -C "$(understudy doctor --paths config)" -l --system localhost
    """
    if kind is not None and as_json:
        raise click.UsageError("--json: expected without --paths")
    if kind is not None:
        kinds = (ROOT, *paths.kinds()) if kind == EVERY else ()
        listed = table(
            "", ("kind", "path"), [(kind_name, str(_path(kind_name))) for kind_name in kinds]
        )
        click.echo("\n".join(listed) if kinds else _path(kind))
        return
    all_findings = list(findings())
    broken = [
        finding.name for finding in all_findings if finding.basic and finding.installed is None
    ]
    if as_json:
        rows = [_row(finding) for finding in all_findings]
        click.echo(json.dumps({"works": not broken, "findings": rows}, indent=1))
    else:
        click.echo("\n".join(_lines(all_findings)))
    if broken:
        print_error(
            UnderstudyError(f"missing: {', '.join(broken)}; without these, no check can run")
        )
        raise SystemExit(FAILED)


def _row(finding: Finding) -> dict[str, str | bool | None]:
    """As JSON."""
    return {
        "name": finding.name,
        "found": finding.installed,
        "serves": finding.serves,
        "remedy": finding.remedy,
        "basic": finding.basic,
    }


def _path(kind: str) -> Path:
    """The directory or file of a kind."""
    return paths.ROOT if kind == ROOT else paths.where(kind)


def _lines(all_findings: list[Finding]) -> Iterator[str]:
    width = max(len(finding.name) for finding in all_findings)
    for finding in all_findings:
        mark = "ok" if finding.installed else "no"
        state = printable(finding.installed or f"missing: {finding.remedy}")
        yield f"{mark:<3} {finding.name:<{width}}  {state}"
        if not finding.installed:
            yield f"{'':<3} {'':<{width}}  serves: {finding.serves}"


def findings() -> Iterator[Finding]:
    yield Finding(
        name="understudy",
        installed=f"{version()}, Python {sys.version.split()[0]}",
        basic=True,
        serves="everything",
        remedy="",
    )
    yield _reframe()
    yield from _player()
    yield Finding(
        name="MPI",
        installed=_first("mpirun", "srun", "aprun", "mpiexec", "flux", "jsrun"),
        serves="starts the ranks",
        basic=True,
        remedy="apt install openmpi-bin libopenmpi-dev, or load the module of your MPI",
    )
    yield Finding(
        name="Darshan runtime",
        installed=_asked(_runtime),
        serves="an independent observer of replicas (Fidelity, Transfer)",
        remedy="spack install darshan-runtime, and set DARSHAN_RUNTIME to its prefix",
    )
    for name, programs, serves, remedy in PROGRAMS:
        yield Finding(name=name, installed=_first(*programs), serves=serves, remedy=remedy)
    batch = _first("sbatch", "qsub", "bsub", "flux")
    silent = batch and "/sbatch" in batch and _output(["sinfo", "-h"]) is None
    yield Finding(
        name="batch system",
        installed=None if silent else batch,
        serves="jobs on other nodes; without it, only those of this host",
        remedy="sbatch is there, but sinfo gets no answer from a controller of Slurm"
        if silent
        else "run this where jobs are submitted: Slurm, PBS, Torque, LSF or Flux",
    )


# Name, programs of which one is enough, what it serves, how to get it.
PROGRAMS = (
    (
        "Darshan util",
        ("darshan-parser",),
        "a second reader of logs; ours needs none",
        "spack install darshan-util, or build https://github.com/darshan-hpc/darshan",
    ),
    (
        "IOR",
        ("ior",),
        "the check Ior, and the canary",
        "spack install ior, or build https://github.com/hpc/ior",
    ),
    ("mdtest", ("mdtest",), "the check Mdtest, and the canary", "it comes with IOR"),
    (
        "bpls",
        ("bpls",),
        "reads back what skeletons write (Skel)",
        "apt install libadios-bin on Debian 12, or spack install adios@1.13.1",
    ),
    (
        "Spack",
        ("spack",),
        "the environments of spack-repo/",
        "git clone https://github.com/spack/spack",
    ),
    (
        "Lustre tools",
        ("lfs",),
        "a look at layouts; the player needs no tool",
        "they are part of a Lustre client",
    ),
    (
        "Chromium",
        ("chromium", "chromium-browser", "google-chrome"),
        "tests of the page in a browser",
        "apt install chromium",
    ),
)


def _reframe() -> Finding:
    oldest, too_new = (".".join(map(str, numbers)) for numbers in REFRAME)
    usable_version: str | None
    try:
        version = metadata.version("ReFrame-HPC")
        numbers = tuple(map(int, re.findall("[0-9]+", version)[:3]))
        usable_version = version if REFRAME[0] <= numbers < REFRAME[1] else None
    except metadata.PackageNotFoundError:
        usable_version = None
    return Finding(
        name="ReFrame",
        installed=usable_version,
        serves="all checks",
        basic=True,
        remedy=f"pip install 'ReFrame-HPC>={oldest},<{too_new}'",
    )


def _player() -> Iterator[Finding]:
    """The player, and its methods with the libraries that they use."""
    remedy = paths.how_to_build()
    try:
        listed = _listed()
    except UnderstudyError as error:
        yield Finding(
            name="player", installed=None, serves="replays", basic=True, remedy=str(error)
        )
        return
    able = [
        f"{name} ({words})" if words else name
        for name, (words, reason) in listed.items()
        if reason is None and name != methods.MOVES_NO_BYTES
    ]
    yield Finding(
        name="player",
        installed=f"methods {', '.join(able)}" if able else None,
        serves="replays",
        basic=True,
        remedy=remedy,
    )
    started, cause = _started()
    yield Finding(
        name="player on 2 ranks",
        installed=started,
        serves="every replay",
        basic=True,
        remedy=cause,
    )
    for name, (_, reason) in listed.items():
        if reason is not None:
            in_build = methods.BUILT in reason
            advice = "install the library and build again" if in_build else USABLE
            yield Finding(
                name=f"method {name}",
                installed=None,
                serves=f"replays through {name}",
                remedy=f"{reason}; {advice}",
            )


def _started() -> tuple[str | None, str]:
    """Start the player under this host's launcher; return its version or None, and a remedy. What
    would submit a job is only named: what a batch system starts is not tried."""
    remedy = "see that mpirun -n 2 starts 2 ranks of one program, and that the player was built "
    remedy += "with its MPI"
    launcher = next(filter(None, map(shutil.which, ("mpirun", "mpiexec"))), None)
    if launcher is None:
        other = next(filter(None, map(shutil.which, ("srun", "aprun", "flux", "jsrun"))), None)
        return other and f"not tried: {other} starts jobs", remedy
    player = paths.program(methods.PLAYER)
    with tempfile.TemporaryDirectory() as folder:
        # A workload for 2 ranks, by the method that moves no bytes: players that a launcher of
        # another MPI starts, each on its own, refuse it, and one that starts nothing leaves no
        # result.
        described, result = Path(folder, "workload.json"), Path(folder, "result.json")
        described.write_text(canary.workload(2).to_text(), encoding="utf-8")
        play = [player, "-w", str(described), "-a", methods.MOVES_NO_BYTES]
        play += ["-o", f"{folder}/data", "-O", str(result)]
        done = _ran(with_settings([launcher, "-n", "2", *play]))
        if done is None or done.returncode != 0 or not result.exists():
            said = done.stderr.decode("utf-8", "replace").splitlines() if done else []
            messages = [line for line in said if line.startswith("understudy: ")]
            return None, one_line(
                messages[0].removeprefix(f"understudy: {described}: ")
            ) if messages else remedy
    text = _output([player, "--version"])
    return text.splitlines()[0].strip() if text and text.strip() else None, remedy


def _listed() -> dict[str, tuple[str, str | None]]:
    """The methods of the player, each with its library, or with the reason why it is missing."""
    program = paths.program(methods.PLAYER)
    text = _output([program, "--list"])
    if text is None:
        raise UnderstudyError(f"{program} --list fails")
    library_states: dict[str, tuple[str, str | None]] = {}
    for line in text.splitlines():
        name, _, words = line.partition(" ")
        words = words.strip()
        gone = words.startswith(methods.UNAVAILABLE)
        library = words.rpartition(", ")[2]
        library_states[name] = (
            library if re.search("[0-9]", library) and not gone else "",
            words.removeprefix(methods.UNAVAILABLE) if gone else None,
        )
    return library_states


def _runtime() -> str:
    prefix = observer.runtime()
    observer.preloaded(prefix)
    return prefix


def _asked(ask: Callable[[], str]) -> str | None:
    try:
        return ask()
    except UnderstudyError:
        return None


def _first(*programs: str) -> str | None:
    """The first of the programs that is on PATH, with the first line of its version."""
    for program in programs:
        path = shutil.which(program)
        if path is not None:
            return f"{path}{_version(path)}"
    return None


def _version(path: str) -> str:
    """The first line that --version prints, where it looks like a version."""
    name = Path(path).name
    text = _output([path, "--version"]) if name not in UNVERSIONED else None
    line = next((line for line in (text or "").splitlines() if re.search(r"\d\.\d", line)), None)
    return f", {line.strip()[:100]}" if line else ""


# Programs that take --version for something to run, or start to work.
UNVERSIONED = ("ior", "mdtest", "darshan-parser", "bpls", "qsub", "bsub", "jsrun", "aprun")


def _output(command: list[str]) -> str | None:
    """Standard output of a program; None if it fails or does not end."""
    done = _ran(command)
    if done is None or done.returncode != 0:
        return None
    return done.stdout.decode("utf-8", "replace")


def _ran(command: list[str]) -> subprocess.CompletedProcess[bytes] | None:
    """How a program ended; None if it does not end, or is not there."""
    try:
        return subprocess.run(
            command,
            capture_output=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env=os.environ | {"LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
