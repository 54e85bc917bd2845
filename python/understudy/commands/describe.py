"""understudy describe: from a trace, or several, to a workload."""

import re
from collections.abc import Iterator, Sequence
from math import log
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from click.core import ParameterSource
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn

from understudy import readers
from understudy.contracts.workload import Workload, identifier, parse
from understudy.darshanlog import DAMAGED, logs_below
from understudy.errors import UnderstudyError, one_line
from understudy.files import write_text
from understudy.inference.score.explanation import (
    BESIDE,
    CONTRADICTED,
    CREATED,
    EXPLAINED,
    INHERITED,
    LIBRARY,
    MAPPED,
    ORDER,
    PLACES,
    RANKS,
    SEEKS,
    SIZES,
    STATES,
    SUMS,
    UNCOUNTED,
    UNKNOWN,
    Explanation,
    Part,
)
from understudy.inference.streams.stream_role import decided, known
from understudy.judge.fidelity import calibration
from understudy.messages import progress, tell, tell_some
from understudy.tables import wrapped

SHOWN_KEYS = 5
SHOWN = 3  # parts of a log that are named
TRACE = "a trace of the application's calls (understudy record)"
DXT = f"{TRACE} or Darshan's DXT"
SOURCES = {
    SIZES: TRACE,
    SUMS: DXT,
    PLACES: DXT,
    LIBRARY: TRACE,
    ORDER: DXT,
    RANKS: DXT,
    MAPPED: "nothing",
    BESIDE: DXT,
    UNCOUNTED: TRACE,
    CREATED: TRACE,
    INHERITED: TRACE,
    SEEKS: TRACE,
}


def _roles(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Roles by the names of streams."""
    roles: dict[str, str] = {}
    for text in given:
        stream, equals, role = text.rpartition("=")
        if not equals or role not in known():
            expected = f"expected STREAM=ROLE with one of the roles {', '.join(known())}"
            raise click.BadParameter(f"{text!r}: {expected}")
        if stream in roles:
            raise click.BadParameter(f"{text!r}: {stream} has the role {roles[stream]} already")
        roles[stream] = role
    return roles


class _WithReaders(click.Command):
    """The command with the options of all readers behind its own, which are imported only here."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        parameters = super().get_params(ctx)
        return [*parameters[:-1], *readers.options(), parameters[-1]]  # the last is --help


@click.command(cls=_WithReaders)
@click.argument(
    "traces", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=None,
    help="Write the workload to this file; default: standard output.",
)
@click.option(
    "--name",
    default=None,
    help="Name of the workload; default: its own, or the name of the output file, unless it "
    "repeats the user, job, executable or file name of a log.",
)
@click.option(
    "--keep-names",
    is_flag=True,
    help="Keep names of files or variables as labels. By default, the workload contains "
    "no name, path, user or host of the source.",
)
@click.option(
    "--job",
    type=click.IntRange(min=0),
    default=None,
    help="Several Darshan logs: describe those of this job; default: they must be of one.",
)
@click.option(
    "--role",
    "roles",
    metavar="STREAM=ROLE",
    multiple=True,
    callback=_roles,
    help="Decide what a stream is for, e.g. output-0=checkpoint; may be repeated. Streams keep "
    "the names that they have without this option.",
)
@click.option("-f", "--force", is_flag=True, help="Replace the output file if it exists.")
def command(
    traces: tuple[Path, ...],
    output: Path | None,
    name: str | None,
    keep_names: bool,
    job: int | None,
    roles: dict[str, str],
    force: bool,
    **options: Any,
) -> None:
    """Describe the I/O in TRACE as a workload. TRACE is a Darshan log, a trace of strace or a
    directory of Recorder, a BP4 or BP5 file of ADIOS2 or a model of one, or an ADIOS descriptor
    (adios-config XML) with a parameter file in the same directory. Several Darshan logs of one
    job, or a directory with them, are joined into one workload.

    A workload of this version or of an earlier one is written in the format of this version, and
    converted to another number of ranks if -n and --rule are given.

    \b
    Example: understudy describe app.darshan -o app.json
             understudy describe logs/ --job 4711 -o app.json
             understudy describe gts.xml -n 64 -a MPI_AMR -o gts-64.json
             understudy describe out.bp --config adios2.xml -o out.json
             understudy describe app.json -n 64 --rule weak -o app-64.json
             understudy describe old.json -o new.json
    """
    if output is not None and output.exists() and not force:
        raise UnderstudyError(f"{output}: exists already; choose another name or use --force")
    if name is not None and name != identifier(name):
        raise UnderstudyError(
            f"--name {name}: expected at most 100 letters, digits, '_', '.' and '-', "
            "a letter or digit first"
        )
    reader, traces = _chosen(traces, job)
    trace = traces[0]
    repeated = ""
    if name is None and output is not None and not hasattr(reader, "NAMED"):
        name = identifier(output.stem)
        if not keep_names and (repeated := _repeated(reader, traces, output.stem)):
            name = None
    context = click.get_current_context()
    given = {key: value for key, value in options.items() if _is_given(context, key)}
    if len(traces) > 1:
        given["others"] = traces[1:]
    for key in given:
        if not readers.takes(reader, key):
            raise UnderstudyError(_unfit(context, key, trace))
    explanations: list[Explanation] = []
    if readers.takes(reader, "told"):
        given["told"] = explanations.append
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
    )
    with progress(*columns) as bar:
        task = bar.add_task(f"reading {one_line(trace.name)}", total=1.0)
        workload = readers.asked(
            reader,
            "read",
            trace,
            trace,
            name=name,
            keep_names=keep_names,
            tick=lambda share: bar.update(task, completed=share),
            **given,
        )
    try:
        workload = decided(workload, roles)
    except UnderstudyError as error:
        raise click.BadParameter(str(error), param_hint="'--role'") from None
    if repeated:
        tell(
            f"{output}: the file name repeats {repeated!r} of the log, so the workload is named "
            f"{workload.name}; choose a name with --name"
        )
    text = workload.to_text()
    parse(text, f"{trace}: the workload described from it")  # never write what no reader accepts
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)
    said = [text for explanation in explanations for text in _sentences(explanation, workload)]
    if hasattr(reader, "closing"):
        said.append(reader.closing(workload))  # of which an empty one has no line
    for line in (line for text in said for line in wrapped(text)):
        click.echo(line, err=True)


def _sentences(explanation: Explanation, workload: Workload) -> Iterator[str]:
    """Sentences on what is explained, what is a guess, and what to expect of a replica."""
    share = {state: explanation.share(explanation.of(state)) for state in STATES}
    yield f"explained: {_percent(share[EXPLAINED])} of the I/O time of the log"
    if differ := explanation.of(CONTRADICTED):
        told = [
            f"{part.name} ({_percent(explanation.share([part]))}): {_worst(part)}"
            for part in differ
        ]
        yield f"contradicted: {_percent(share[CONTRADICTED])}: {_some(told)}"
    if unknown := explanation.lacking():
        lacking = list(dict.fromkeys(lack for part in unknown for lack in part.unknown))
        told = [f"{lack}; {_source(lack, explanation.traced)} tells it" for lack in lacking]
        yield f"not known: {_percent(share[UNKNOWN])}: {_some(told)}"
    yield (
        "not known: calls that Darshan does not count, such as looks at names and attributes, "
        "unlink, ftruncate, readdir and posix_fadvise (how far the system reads ahead), what is "
        "moved in files that are mapped into memory, and through descriptors that a program "
        f"inherits (redirections); {TRACE} tells them"
    )
    if explanation.traced:
        yield "traced: each read and write (DXT); understudy describe --calls plays each as it was"
    guesses = [p.path for p in workload.provenance if p.confidence == "guess"]
    keys = list(dict.fromkeys(path.rpartition("/")[2] for path in guesses))
    more = ", …" * (len(keys) > SHOWN_KEYS)
    yield "unsure: " + (
        f"{len(guesses)} of {len(workload.provenance)} values are guesses: "
        f"{', '.join(keys[:SHOWN_KEYS])}{more}; see understudy show --why"
        if guesses
        else "no value is a guess"
    )
    notes = workload.source.notes if workload.source else ()
    yield from (f"unsure: {note}" for note in notes if f" {DAMAGED}: " in note)
    if measured := calibration.sentence(calibration.ours()):
        yield f"expect: {measured}"


def _source(lack: str, traced: bool) -> str:
    """The source that has the missing information; for a log with DXT, its own trace."""
    return "understudy describe --calls" if traced and SOURCES[lack] == DXT else SOURCES[lack]


def _worst(part: Part) -> str:
    """The difference that is largest beside what was counted, with both values."""
    worst = max(part.differences, key=lambda d: abs(log((1 + d.predicted) / (1 + d.counted))))
    more = len(part.differences) - 1
    told = f"{worst.what} {worst.predicted:,} predicted, {worst.counted:,} counted"
    return f"{told}, and {more} more" if more else told


def _some(told: list[str]) -> str:
    """The first, and how many more there are."""
    rest = len(told) - SHOWN
    return "; ".join(told[:SHOWN]) + (f"; {rest} more, in the notes" if rest > 0 else "")


def _percent(share: float) -> str:
    """100 only where nothing is missing, 0 only where all is."""
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    return f"{min(99.99, max(0.01, 100 * share)):.4g} %"


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) is not ParameterSource.DEFAULT


def _unfit(context: click.Context, key: str, trace: Path) -> str:
    """Why an argument does not fit the reader of a trace."""
    kinds = " or ".join(readers.kinds_with(key))
    if key == "others":
        return f"{trace}: expected alone; several traces can only each be {kinds}"
    option = next(p for p in context.command.get_params(context) if p.name == key)
    return f"{option.opts[-1]}: expected only with {kinds}, not {trace}"


def _chosen(traces: Sequence[Path], job: int | None) -> tuple[ModuleType, tuple[Path, ...]]:
    """The reader of all traces, and the traces without directories: of `job`, if given."""
    trace_paths: list[Path] = []
    lost: list[str] = []
    for trace in traces:
        if trace.is_dir() and (index := readers.trace_in(trace)) is not None:
            trace_paths.append(index)
        elif trace.is_dir():
            below = logs_below(trace)
            trace_paths += below.logs
            lost += below.left_out
        else:
            trace_paths.append(trace)
    tell_some(lost, f"{len(lost)} left out of directories", "the workload is without them")
    by_trace = [(trace, readers.reader_of(trace)) for trace in trace_paths]
    first, reader = by_trace[0]
    for trace, other in by_trace:
        if other is not reader:
            raise UnderstudyError(
                f"{trace}: {other.KIND}, expected traces of one kind, but {first} is {reader.KIND}"
            )
    if job is not None:
        if not hasattr(reader, "of_job"):
            kinds = " or ".join(m.KIND for m in readers.modules() if hasattr(m, "of_job"))
            raise UnderstudyError(f"--job: expected only with {kinds}, not {first}")
        trace_paths = readers.asked(reader, "of_job", first, trace_paths, job)
    return reader, tuple(trace_paths)


def _repeated(reader: ModuleType, traces: Sequence[Path], name: str) -> str:
    """The longest private word of the traces in the name; empty if there is none. Short words
    count only where they stand alone."""
    if not hasattr(reader, "private_words"):
        return ""
    name = name.lower()
    alone = set(re.split(r"[^a-z0-9]+", name))
    words = {w for t in traces for w in readers.asked(reader, "private_words", t, t)}
    name_words = [w for w in words if w in alone or (len(w) > 3 and w in name)]
    return max(name_words, key=len, default="")
