"""What an input is, and the files of its skeletal application."""

import codecs
import re
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import click

from understudy.adios2 import bp_file, configuration, model_file
from understudy.adios2.output import Output
from understudy.errors import UnderstudyError
from understudy.files import read_bytes
from understudy.messages import tell
from understudy.units import plural
from understudy_skel import generate, identifiers
from understudy_skel.adios2 import plan, source
from understudy_skel.adios2.dialects import CPP, DIALECTS
from understudy_skel.escape import WORD
from understudy_skel.project import write
from understudy_skel.subcommands.build import make

# Configurations and models, but for XML.
SUFFIXES = (".yaml", ".yml", ".json", ".toml")
# Operators that do not run without parameters, which no file states.
WITH_PARAMETERS = ("mgard", "mgardplus", "mgard_complex", "sz", "sz3", "zfp")

EXAMPLE_MODEL = """\
# A model of an output of ADIOS2: understudy skel make MODEL
ranks: 4
steps: 10
every: 0                # seconds from step to step
variables:
- {name: U, type: double, shape: [256, 256, 256], split: [1, 2, 2]}  # ranks per dimension
- {name: particles, type: float, shape: [1000, 6], of: each rank}    # a local array
- {name: step, type: int32_t}                                        # a value
"""


def is_bp_directory(path: Path) -> bool:
    """Is it a file of BP4 or BP5? Those of ADIOS 1 are plain files."""
    return (path / "md.idx").is_file() or (path / "md.0").is_file()


def is_adios2(path: Path) -> bool:
    """Is it an input of ADIOS2, and not a descriptor of ADIOS 1? Told by its content."""
    if path.is_dir() or path.suffix.lower() in SUFFIXES:
        return True
    try:
        data = read_bytes(path)
    except OSError:
        return False
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16" if wide else "utf-8", errors="replace")
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return "<io" in text and not re.search(r"<adios-group\b", text, re.IGNORECASE)


def application_of(path: Path) -> str:
    """The application's name: that of its file."""
    stem = path.stem.removesuffix("_skel")
    return stem if WORD.fullmatch(stem) and len(stem) <= 50 else str(identifiers.plain(stem))


def input_of(path: Path, variables: Path | None, io: str | None) -> tuple[Output, str]:
    """What a file, a model, or a configuration with the variables of one says was written, and the
    name of the io."""
    if path.is_dir() or _is_model(path):
        for option, value in (("--variables", variables), ("--io", io)):
            if value is not None:
                raise UnderstudyError(f"{option} {value}: expected only with a configuration")
        return _output(path), source.IO
    if variables is None:
        raise UnderstudyError(
            f"{path}: a configuration states no variables; expected --variables with a BP4 or BP5 "
            "file that the application wrote, or a model (understudy skel model new)"
        )
    read = configuration.read(path)
    output = _output(variables)
    return configuration.applied(output, read, io), read.io(io).name


def _is_model(path: Path) -> bool:
    yaml = path.suffix.lower() in (".yaml", ".yml")
    return yaml and not configuration.is_configuration(path)


def _output(path: Path) -> Output:
    if path.is_dir():
        if not is_bp_directory(path):
            raise UnderstudyError(f"{path}: expected a BP4 or BP5 file, a directory with md.idx")
        return _with_statistics(bp_file.read(path))
    if not _is_model(path):
        raise UnderstudyError(f"{path}: expected a BP4 or BP5 file, or a model (YAML)")
    return model_file.read(path)


def _with_statistics(output: Output) -> Output:
    """The output with StatsLevel 0 if its blocks have no minima and maxima, as openPMD-api's."""
    definitions = output.path / "mmd.0"
    if not definitions.is_file():
        return output
    text = definitions.read_bytes()
    if b"MetaArray" not in text or b"MetaArrayMM" in text or b"MetaArrayOpMM" in text:
        return output
    return replace(output, parameters={**output.parameters, "StatsLevel": "0"})


def generate_files(
    path: Path,
    language: str,
    directory: Path,
    makes: bool,
    force: bool,
    *,
    variables: Path | None = None,
    io: str | None = None,
) -> None:
    """Writes the skeletal application of an input, and builds it."""
    if language not in DIALECTS:
        raise UnderstudyError(
            f"--language {language}: expected {' or '.join(DIALECTS)} for ADIOS2"
        )
    output, name = input_of(path, variables, io)
    application = application_of(variables or path)
    planned = plan.of(output)
    files = {source.names(application)["config"]: source.config(planned, name)}
    files |= source.files(planned, application, name, language)
    if language == CPP:
        files |= source.build_files(application)
    files |= generate.runtime_files(language, adios=2)
    write({directory / name: text for name, text in files.items()}, force, directory)
    _report(planned, application)
    if makes and language == CPP:
        make(directory, library())


def _report(planned: plan.Plan, application: str) -> None:
    output = planned.output
    for note in output.notes:
        tell(f"{output.path}: {note}")
    unknown = {
        operator
        for put in planned.puts
        for operator, parameters in put.variable.effective_operators
        if operator in WITH_PARAMETERS and not parameters
    }
    if unknown:
        config = source.names(application)["config"]
        tell(f"{config}: state the parameters of {', '.join(sorted(unknown))}, which no file has")
    _report_contents(planned)
    if len(output.times) > 1 and output.times[-1] > output.times[0]:
        pause = (output.times[-1] - output.times[0]) / (len(output.times) - 1)
        tell(f"{output.path}: {pause:g} s from step to step: run with --pause {pause:g}")
    per_step = planned.bytes.sum(axis=1)
    least, most = int(per_step.min()), int(per_step.max())
    each = f"{most} bytes" if least == most else f"{least} to {most} bytes"
    click.echo(
        f"understudy: {application}: {plural(output.steps, 'step')} of {each} by "
        f"{output.writers} process{'es' * (output.writers != 1)}",
        err=True,
    )


def _report_contents(planned: plan.Plan) -> None:
    """Bytes that operators leave depend on contents, which are not those of the file."""
    arrays = [put.variable for put in planned.puts if put.layouts]
    changed = [variable for variable in arrays if variable.effective_operators]
    if not changed:
        return
    instances = [(v, i) for v in changed for i in v.instances if i.stored is not None]
    stored = sum(int(i.stored.sum()) for _, i in instances if i.stored is not None)
    whole = sum(int(i.blocks.counts.prod(axis=1).sum()) * v.bytes for v, i in instances)
    what = f"operators left {stored} of {whole} bytes" if instances else "has operators"
    tell(
        f"{planned.output.path}: {what}; those of the skeleton get the contents that its option "
        "--fill chooses, by default random, and leave other sizes"
    )


def is_installed() -> bool:
    """Is there an ADIOS2 that CMake finds by itself?"""
    programs = ("adios2-config", "adios2-config.mpi")
    return any(map(which, programs)) or any(Path("/usr").glob("lib/*/cmake/adios2"))


def library() -> Path | None:
    """Where CMake finds the library of the module adios2, for a single process, if no other is
    installed."""
    spec = None if is_installed() else find_spec("adios2")
    folder = Path(spec.origin).parent / "cmake" / "adios2" if spec and spec.origin else None
    return folder if folder and folder.is_dir() else None
