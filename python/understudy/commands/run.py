"""understudy run: the whole way, from traces to a page."""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from understudy import paths, samples
from understudy.cli import FAILED
from understudy.commands import report
from understudy.commands._options import LIVE
from understudy.contracts import workload
from understudy.contracts.workload import identifier
from understudy.errors import UnderstudyError
from understudy.files import write_text
from understudy.messages import tell
from understudy.records import reports
from understudy.reframe.session import live, reframe_process
from understudy.reframe.session.replica_workloads import (
    DESK_BYTES,
    describe,
    fit,
    most_bytes,
    with_names,
)

PROGRAM = f"{__name__}.program"  # in the context: the words behind --
MORE = {"accept": ("-S", "require_reference=0")}  # by mode: a first run has no references


class Command(click.Command):
    """Takes the words behind -- as a command to run."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does, without these words."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[PROGRAM] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """As click does, with these words."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND]"]


@click.command(cls=Command)
@click.argument("traces", nargs=-1, type=click.Path(path_type=Path))
@click.option("--system", default="localhost", show_default=True, help="ReFrame's system.")
@click.option(
    "--ranks",
    type=click.IntRange(1),
    default=lambda: 4 * (os.cpu_count() or 1),
    help="Traces of more ranks are scaled to 4 ranks with the same total bytes (strong scaling). "
    "[default: 4 per processor]",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    help="Name of the workload, for each trace in turn.  [default: the name of the file, without "
    "user, job and account]",
)
@click.option("--partial", is_flag=True, help="Describe what is there of incomplete logs.")
@click.option(
    "-S",
    "--setvar",
    "variables",
    metavar="VARIABLE=VALUE",
    multiple=True,
    help="Set a variable of the checks, as -S of reframe does. Traces of more bytes than "
    "max_bytes (by default 4GiB, in the mode quick 1GiB) are scaled to at most 4 ranks with the "
    "same bytes per rank (weak scaling), and skipped if they still have more.",
)
@click.option(
    "--mode",
    type=click.Choice(["serial", "quick", "accept"]),
    default="serial",
    show_default=True,
    help="accept: measure storage, not memory; quick: without methods and sweeps that take long.",
)
@click.option(
    "--open/--no-open",
    "opens",
    default=None,
    help="Open the page in a browser.  [default: where there is a display and a terminal]",
)
@LIVE
def command(
    traces: tuple[Path, ...],
    system: str,
    ranks: int,
    names: tuple[str, ...],
    partial: bool,
    variables: tuple[str, ...],
    mode: str,
    opens: bool | None,
    live_file: Path | None,
) -> None:
    """Describe TRACES, play them with every method on every file system, check and show them.

    COMMAND behind -- is run and traced (see understudy record), and its calls are played.

    Example: understudy run -- mpirun -n 4 ./app

    Without TRACES: the logs of a MACSio run (from the PyPI package darshan), LAMMPS, Meep and
    OpenFOAM, and all small workloads of the suite. Workloads, results and the page go to the
    directory that UNDERSTUDY_OUTPUT names; by default to reports/out of a checkout, else to
    understudy-out in the working directory.
    """
    live.follow(live_file)
    out = paths.made_output(".")
    workloads = []  # before anything is written, since a trace may be refused
    most = most_bytes(variables, mode)
    program = click.get_current_context().meta.get(PROGRAM)
    recorded: tuple[Path, ...] = () if program is None else _recorded(program, out)
    traces = (*traces, *recorded[:1])
    for name, trace in with_names(traces, names) if traces else samples.traces(out / "downloads"):
        described = describe(trace, name, partial, recorded if trace in recorded else ())
        tell(f"described {trace.name} as {described.name}: {len(described.streams)} streams")
        workloads.append(fit(described, ranks, most))
    folder = Path(tempfile.mkdtemp(prefix=time.strftime("run-%Y%m%dT%H%M%S-"), dir=out))
    described_in = folder / "workloads"
    described_in.mkdir()
    for described in workloads:
        write_text(described_in / f"{described.name}.json", described.to_text())
    names_to_play = [described.name for described in workloads]
    try:
        status = _played(system, folder, names_to_play, not traces, ranks, mode, variables)
    except reframe_process.Ended as ended:
        tell(f"run: ended by {ended}; what was measured is in {paths.records()}")
        raise SystemExit(128 + ended.number) from None
    page = out / "index.html"
    session = _session(folder / "report.json")
    shown = _show(
        paths.records() / str(session["session_info"]["uuid"]), page, folder / "report.json"
    )
    if shown and (_has_display() if opens is None else opens):
        click.launch(page.resolve().as_uri())
    _summary(status, session, page if shown else None)


def _recorded(program: tuple[str, ...], out: Path) -> tuple[Path, ...]:
    """The trace of a command, which must succeed; of Darshan, a log of each process."""
    from understudy.tracing import recording

    if not program:
        raise UnderstudyError("run: expected a command behind --")
    tool = recording.chosen()
    if tool.why:
        tell(f"{tool.why}; Darshan records")
    folder = Path(tempfile.mkdtemp(prefix=time.strftime("trace-%Y%m%dT%H%M%S-"), dir=out))
    # Behind a launcher of MPI, the program that it starts.
    executables = (
        word for word in program[1:] if Path(word).is_file() and os.access(word, os.X_OK)
    )
    named = next(executables, program[0])
    status, written = recording.record(
        program, folder / f"{identifier(Path(named).stem)}.{tool.name}", tool
    )
    if status != 0:
        how = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
        raise UnderstudyError(
            f"{program[0]} {how}; nothing is played. What it did until then, if anything, plays: "
            f"understudy run {written[0]}"
        )
    if len(written) > 1:
        tell(f"{len(written)} processes have logs of their own, which are joined: {folder}")
    return tuple(written)


def _has_display() -> bool:
    """True if a person can see a display here."""
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(shown) and sys.stderr.isatty() and not os.environ.get("CI")


def _show(records: Path, page: Path, session_report: Path | None = None) -> bool:
    """Make the page of a session: of its records, which are those of failed cases, too."""
    if not records.is_dir():  # nothing was measured: the summary says why
        tell("no page: no check left a record")
        return False
    try:
        click.get_current_context().invoke(
            report.command, runs=(records,), output=page, session_report=session_report
        )
    except UnderstudyError as error:
        tell(f"no page: {error}")
        return False
    return True


def _played(
    system: str,
    folder: Path,
    workload_names: list[str],
    suite: bool,
    ranks: int,
    mode: str,
    variables: tuple[str, ...],
) -> int:
    """Run all checks of the user's workloads, of `workload_names`, and of those of the `suite`
    that are small enough; ReFrame's exit status."""
    more = os.environ.get("UNDERSTUDY_WORKLOADS")
    described = str(folder / "workloads")
    os.environ["UNDERSTUDY_WORKLOADS"] = f"{described}:{more}" if more else described
    others = (name for name in workload.names() if suite and name not in workload_names)
    wanted = [*workload_names, *(name for name in others if _small(name, ranks))]
    tell(f"playing {', '.join(wanted)} on {system}")
    arguments: list[str | Path] = [
        "-C",
        paths.where("config"),
        "-r",
        "--system",
        system,
        "--mode",
        mode,
        *MORE.get(mode, ()),
        *(word for variable in variables for word in ("-S", variable)),
        "--filter-expr",
        f"'workload' in locals() and workload in {wanted!r}",
        "--output",
        folder / "output",
        "--stage",
        folder / "stage",
        "--report-file",
        folder / "report.json",
    ]
    command = [reframe_process.program(), *arguments]
    return reframe_process.run(command, reframe_process.environment())


def _small(name: str, ranks: int) -> bool:
    """True if the workload is small enough for a desktop: few ranks, few bytes."""
    described = workload.get(name)
    return described.ranks <= ranks and described.bytes <= DESK_BYTES


def _session(session_report: Path) -> dict[str, Any]:
    if not session_report.exists():
        raise UnderstudyError("ReFrame ran no test; its messages are above")
    return reports.load(session_report)


def _summary(status: int, session: dict[str, Any], page: Path | None) -> None:
    cases = reports.cases(session)
    count = {"pass": 0, "fail": 0, "skip": 0}
    for case in cases:
        count[case["result"]] = count.get(case["result"], 0) + 1
    for name, reason in reports.skipped(session):
        tell(f"skipped {name}: {reason}")
    failed = len(cases) - count["pass"] - count["skip"]
    if page is not None:
        click.echo(f"page: {page}")
    click.echo(f"{count['pass']} passed, {failed} failed, {count['skip']} skipped")
    if failed or not count["pass"]:
        raise SystemExit(status or FAILED)
