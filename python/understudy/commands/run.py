"""understudy run: the whole way, from traces to a page."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click

from understudy import samples, workload
from understudy.errors import UnderstudyError
from understudy.files import write_text
from understudy.paths import ROOT

OUT = ROOT / "reports" / "out"
DESK_BYTES = 4 << 30  # larger workloads of the room are left to `reframe`


@click.command()
@click.argument("traces", nargs=-1, type=click.Path(path_type=Path))
@click.option("--system", default="localhost", show_default=True, help="ReFrame's system.")
@click.option(
    "--ranks", type=int, default=lambda: 4 * (os.cpu_count() or 1),
    help="Traces of more ranks are played by 4, with the same total bytes (strong scaling). "
    "[default: 4 per processor]",
)  # fmt: skip
def command(traces: tuple[Path, ...], system: str, ranks: int) -> None:
    """Describe TRACES, play them by every method on every file system, check and show them.

    Without TRACES: the logs of a MACSio run (from the PyPI package darshan), LAMMPS, Meep and
    OpenFOAM. Workloads, results and the page go to reports/out of the checkout.
    """
    from understudy.readers import darshan

    folder = OUT / "workloads"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json"):
        old.unlink()
    for name, trace in samples.traces(OUT / "downloads") if not traces else _named(traces):
        described = darshan.read(trace, name=name)
        if described.ranks > ranks:
            _say(f"{name} has {described.ranks} ranks; it is scaled strongly to 4")
            described = workload.scale(described, min(4, ranks), "strong")
        _say(f"described {trace.name} as {described.name}: {len(described.streams)} streams")
        write_text(folder / f"{described.name}.json", described.to_text())
    shutil.rmtree(OUT / "output", ignore_errors=True)
    status = _reframe(system, folder, ranks)
    subprocess.run(
        [sys.executable, "-m", "understudy", "report", OUT / "output", "-o", OUT / "index.html"],
        check=True,
    )
    _summary(status)


def _named(traces: tuple[Path, ...]) -> list[tuple[str, Path]]:
    return [(f"trace-{k}", trace) for k, trace in enumerate(traces)]


def _say(sentence: str) -> None:
    click.echo(f"understudy: {sentence}", err=True)


def _reframe(system: str, described: Path, ranks: int) -> int:
    """Run all checks of the workloads that are small enough; ReFrame's exit status."""
    more = os.environ.get("UNDERSTUDY_WORKLOADS")
    folders = f"{described}:{more}" if more else str(described)
    os.environ["UNDERSTUDY_WORKLOADS"] = folders
    wanted = [name for name in workload.names() if _small(name, ranks)]
    _say(f"playing {', '.join(wanted)} on {system}")
    arguments: list[str | Path] = [
        "-c", "checks/", "-r", "--system", system, "--mode", "serial",
        "--filter-expr", f"'workload' in locals() and workload in {wanted!r}",
        "--output", OUT / "output", "--report-file", OUT / "report.json",
    ]  # fmt: skip
    (OUT / "report.json").unlink(missing_ok=True)
    return subprocess.run(["reframe", *arguments], cwd=ROOT, check=False).returncode


def _small(name: str, ranks: int) -> bool:
    """Whether the workload can be shown on a desk: few ranks, few bytes."""
    described = workload.get(name)
    return described.ranks <= ranks and described.bytes <= DESK_BYTES


def _summary(status: int) -> None:
    try:
        session = json.loads((OUT / "report.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UnderstudyError("ReFrame ran no test; its words are above") from None
    cases = [case for run in session["runs"][:1] for case in run["testcases"]]
    count = {"pass": 0, "fail": 0, "skip": 0}
    for case in cases:
        if case["result"] == "skip":
            _say(f"skipped {case['display_name']}: {case.get('fail_reason') or 'no reason given'}")
        count[case["result"]] = count.get(case["result"], 0) + 1
    failed = len(cases) - count["pass"] - count["skip"]
    click.echo(f"page: {OUT / 'index.html'}")
    click.echo(f"{count['pass']} passed, {failed} failed, {count['skip']} skipped")
    if failed or not count["pass"]:
        raise SystemExit(status or 1)
