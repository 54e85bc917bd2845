"""understudy run: the whole way, from traces to a page."""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from understudy import paths, samples
from understudy.cli import FAILED
from understudy.commands import _reframe, report
from understudy.commands._live import LIVE, follow
from understudy.contracts import workload
from understudy.errors import UnderstudyError
from understudy.files import write_text
from understudy.model.scaling import scale
from understudy.records import reports

DESK_BYTES = 4 << 30  # larger workloads are left to `reframe`
MORE = {"accept": ("-S", "require_reference=0")}  # by mode: a first run has no references


@click.command()
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
    mode: str,
    opens: bool | None,
    live_file: Path | None,
) -> None:
    """Describe TRACES, play them with every method on every file system, check and show them.

    Without TRACES: the logs of a MACSio run (from the PyPI package darshan), LAMMPS, Meep and
    OpenFOAM, and all small workloads of the suite. Workloads, results and the page go to the
    directory that UNDERSTUDY_OUTPUT names; by default to reports/out of a checkout, else to
    understudy-out in the working directory.
    """
    from understudy.readers import darshan

    follow(live_file)
    out = paths.made_output(".")
    folder = Path(tempfile.mkdtemp(prefix=time.strftime("run-%Y%m%dT%H%M%S-"), dir=out))
    described_in = folder / "workloads"
    described_in.mkdir()
    own: list[str] = []
    for name, trace in samples.traces(out / "downloads") if not traces else _named(traces):
        described = darshan.read(trace, name=name)
        if described.ranks > ranks:
            _say(f"{name} has {described.ranks} ranks; it is scaled strongly to 4")
            described = scale(described, min(4, ranks), "strong")
        _say(f"described {trace.name} as {described.name}: {len(described.streams)} streams")
        write_text(described_in / f"{described.name}.json", described.to_text())
        own.append(described.name)
    status = _played(system, folder, ranks, own if traces else [], mode)
    page = out / "index.html"
    session = _session(folder / "report.json")
    _show(paths.records() / str(session["session_info"]["uuid"]), page, folder / "report.json")
    if page.exists() and (_has_display() if opens is None else opens):
        click.launch(page.resolve().as_uri())
    _summary(status, session, page)


def _has_display() -> bool:
    """Whether a person sits at the machine."""
    shown = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    return bool(shown) and sys.stderr.isatty() and not os.environ.get("CI")


def _show(records: Path, page: Path, session_report: Path | None = None) -> None:
    """The page of a session: of its records, which are those of failed cases, too."""
    if not records.is_dir():  # nothing was measured: the summary says why
        _say("no page: no check left a record")
        return
    try:
        click.get_current_context().invoke(
            report.command, runs=(records,), output=page, session_report=session_report
        )
    except UnderstudyError as error:
        _say(f"no page: {error}")


def _named(traces: tuple[Path, ...]) -> list[tuple[str, Path]]:
    """By content: a name of a file can tell what is confidential, and two logs are not one."""
    return [(f"trace-{_digest(trace)}", trace) for trace in traces]


def _digest(trace: Path) -> str:
    try:
        return hashlib.sha256(trace.read_bytes()).hexdigest()[:8]
    except OSError as error:
        raise UnderstudyError(f"{trace}: cannot be read: {error.strerror}") from None


def _say(message: str) -> None:
    click.echo(f"understudy: {message}", err=True)


def _played(system: str, folder: Path, ranks: int, only: list[str], mode: str) -> int:
    """Run all checks of `only`, else of all workloads, that are small enough; ReFrame's exit
    status."""
    more = os.environ.get("UNDERSTUDY_WORKLOADS")
    described = str(folder / "workloads")
    os.environ["UNDERSTUDY_WORKLOADS"] = f"{described}:{more}" if more else described
    wanted = [name for name in only or workload.names() if _small(name, ranks)]
    _say(f"playing {', '.join(wanted)} on {system}")
    arguments: list[str | Path] = [
        "-C",
        paths.where("config"),
        "-r",
        "--system",
        system,
        "--mode",
        mode,
        *MORE.get(mode, ()),
        "--filter-expr",
        f"'workload' in locals() and workload in {wanted!r}",
        "--output",
        folder / "output",
        "--stage",
        folder / "stage",
        "--report-file",
        folder / "report.json",
    ]
    return subprocess.run(
        [_reframe.program(), *arguments], env=_reframe.environment(), check=False
    ).returncode


def _small(name: str, ranks: int) -> bool:
    """Whether the workload can be shown on a desk: few ranks, few bytes."""
    described = workload.get(name)
    return described.ranks <= ranks and described.bytes <= DESK_BYTES


def _session(session_report: Path) -> dict[str, Any]:
    if not session_report.exists():
        raise UnderstudyError("ReFrame ran no test; its messages are above")
    return reports.load(session_report)


def _summary(status: int, session: dict[str, Any], page: Path) -> None:
    cases = reports.cases(session)
    count = {"pass": 0, "fail": 0, "skip": 0}
    for case in cases:
        count[case["result"]] = count.get(case["result"], 0) + 1
    for name, reason in reports.skipped(session):
        _say(f"skipped {name}: {reason}")
    failed = len(cases) - count["pass"] - count["skip"]
    click.echo(f"page: {page}")
    click.echo(f"{count['pass']} passed, {failed} failed, {count['skip']} skipped")
    if failed or not count["pass"]:
        raise SystemExit(status or FAILED)
