"""What an input is, and the files of its skeletal application."""

import re
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import click

from understudy.adios2 import bp_file
from understudy.adios2.output import Output
from understudy.errors import UnderstudyError
from understudy.messages import tell
from understudy_skel import generate, identifiers
from understudy_skel.adios2 import plan, source
from understudy_skel.adios2.dialects import CPP, DIALECTS
from understudy_skel.escape import WORD
from understudy_skel.project import write
from understudy_skel.subcommands.build import make

CONFIGURATIONS = (".yaml", ".yml", ".json", ".toml")


def is_bp_directory(path: Path) -> bool:
    """Is it a file of BP4 or BP5? Those of ADIOS 1 are plain files."""
    return (path / "md.idx").is_file() or (path / "md.0").is_file()


def is_adios2(path: Path) -> bool:
    """Is it an input of ADIOS2, and not a descriptor of ADIOS 1? Told by its content."""
    if path.is_dir() or path.suffix.lower() in CONFIGURATIONS:
        return True
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return bool(re.search(r"<io\b", text)) and not re.search(
        r"<adios-group\b", text, re.IGNORECASE
    )


def application_of(path: Path) -> str:
    """The application's name: that of its file."""
    stem = path.stem.removesuffix("_skel")
    return stem if WORD.fullmatch(stem) and len(stem) <= 50 else str(identifiers.plain(stem))


def output_of(path: Path) -> Output:
    """What a file says was written."""
    if path.is_dir() and not is_bp_directory(path):
        raise UnderstudyError(f"{path}: expected a BP4 or BP5 file, a directory with md.idx")
    return bp_file.read(path)


def generate_files(path: Path, language: str, directory: Path, makes: bool, force: bool) -> None:
    """Writes the skeletal application of an input, and builds it."""
    if language not in DIALECTS:
        raise UnderstudyError(
            f"--language {language}: expected {' or '.join(DIALECTS)} for ADIOS2"
        )
    output = output_of(path)
    io, application = source.IO, application_of(path)
    planned = plan.of(output)
    files = {source.names(application)["config"]: source.config(planned, io)}
    files |= source.files(planned, application, io, language)
    if language == CPP:
        files |= source.build_files(application)
    files |= generate.runtime_files(language, adios=2)
    write({directory / name: text for name, text in files.items()}, force, directory)
    _report(planned, application)
    if makes and language == CPP:
        make(directory, _library())


def _report(planned: plan.Plan, application: str) -> None:
    output = planned.output
    for note in output.notes:
        tell(f"{output.path}: {note}")
    per_step = planned.bytes.sum(axis=1)
    least, most = int(per_step.min()), int(per_step.max())
    each = f"{most} bytes" if least == most else f"{least} to {most} bytes"
    click.echo(
        f"understudy: {application}: {output.steps} steps of {each} by {output.writers} processes",
        err=True,
    )


def _library() -> Path | None:
    """Where CMake finds the library of the module adios2, for a single process, if no other is
    installed."""
    spec = None if which("adios2-config") else find_spec("adios2")
    folder = Path(spec.origin).parent / "cmake" / "adios2" if spec and spec.origin else None
    return folder if folder and folder.is_dir() else None
