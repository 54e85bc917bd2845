"""understudy accept: whether storage reached the marks of a contract."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import click

from understudy import paths
from understudy.cli import FAILED, UNDECIDED, print_error
from understudy.commands._options import NIGHTS_DIFFER
from understudy.commands._output import JSON, TestCase, document, junit, print_json
from understudy.errors import UnderstudyError, one_line
from understudy.messages import tell
from understudy.tables import wrapped

STATUS = {"pass": 0, "fail": FAILED, "undecided": UNDECIDED}
KIND = "acceptance"
JUDGE = "judge"
MOST_SESSIONS = 1000

if TYPE_CHECKING:
    from understudy.contracts.acceptance import Acceptance
    from understudy.contracts.acceptance_plan import Plan
    from understudy.judge.acceptance.marks import Verdict


class _Group(click.Group):
    """`accept FILE …` judges; `accept plan FILE` plans."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = bool(args) and args[0] in self.commands
        return super().parse_args(ctx, args if named else [JUDGE, *args])


@click.group("accept", cls=_Group)
def command() -> None:
    """Judge the marks of a contract by run records, or plan the sessions for it."""


class _Judge(click.Command):
    """Its name is not needed."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage("understudy accept", " ".join(self.collect_usage_pieces(ctx)))


@command.command(JUDGE, cls=_Judge)
@click.argument("marks", metavar="FILE")
@click.argument("records", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=lambda: paths.output() / "acceptance.html",
    help=f"Page to sign.  [default: {paths.output() / 'acceptance.html'}]",
)
@click.option(
    "--pdf",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The same page as PDF, printed by Chromium; left out, with a message, without it.",
)
@click.option("-f", "--force", is_flag=True, help="Replace files that are no pages of understudy.")
@JSON
@click.option(
    "--junit",
    "junit_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JUnit XML file to write: a test case for each mark.",
)
@click.option(
    "--plan",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The plan of the sessions, of understudy accept plan: no others count.",
)
@click.option(
    "--signers",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Who may have signed the ledger of the records: see understudy records sign.",
)
@NIGHTS_DIFFER
def judge(
    marks: str,
    records: tuple[Path, ...],
    output: Path,
    pdf: Path | None,
    force: bool,
    as_json: bool,
    junit_file: Path | None,
    plan: Path | None,
    signers: Path | None,
    nights_differ: float,
) -> None:
    """Judge the marks in FILE by RECORDS: run records, or folders that are searched for them; by
    default those kept in the directory for output.

    FILE is YAML, or the name of a file in a plugin directory acceptance/. Each mark passes, fails
    or is undecided. What was not run is undecided, and a failed run counts against its mark. The
    exit status is 0 if all marks passed, 1 if one failed, 3 if none failed and one is undecided
    or a record cannot be read, was edited or removed, and 2 if FILE or RECORDS cannot be used.

    `understudy accept plan FILE -o PLAN` plans the sessions to run.
    """
    state = _accept(
        marks, records, output, pdf, force, as_json, junit_file, plan, signers, nights_differ
    )
    raise SystemExit(STATUS[state])


@command.command("plan")
@click.argument("marks", metavar="FILE")
@click.option("--sessions", default=8, show_default=True, help="Sessions to run.")
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Plan to write (JSON).",
)
@click.option("-f", "--force", is_flag=True, help="Replace the output file if it exists.")
def plan_(marks: str, sessions: int, output: Path, force: bool) -> None:
    """Write the sessions by which the marks in FILE are to be decided.

    Each session of ReFrame states its number in the plan, as the output says. With `understudy
    accept FILE --plan`, only these sessions count, and one that is missing, because it was never
    run or was left away, decides nothing.

    Example: understudy accept plan marks.yaml --sessions 10 -o plan.json
    """
    from understudy.contracts import acceptance
    from understudy.contracts.acceptance_plan import Plan
    from understudy.files import expect_new, expect_not_read, write_text
    from understudy.judge.acceptance import pinned_runs
    from understudy.records import ledger, store

    file = _file(marks)
    asked = acceptance.load(file)
    least = max(mark.sessions for mark in asked.marks)
    if not least <= sessions <= MOST_SESSIONS:
        raise UnderstudyError(
            f"--sessions {sessions}: expected {least}, which the marks need, to {MOST_SESSIONS}"
        )
    expect_not_read(output, (file,), store.folder())
    expect_new(output, force)
    kept = ledger.audit(store.folder())
    plan = Plan(
        marks_sha256=asked.sha256,
        system=asked.system,
        since=asked.since,
        until=asked.until,
        night_s=asked.night_s,
        sessions=sessions,
        workloads={mark.name: pinned_runs.pin(mark) for mark in asked.marks},
        ledger_head=kept.head if kept else None,
    )
    write_text(output, plan.text())
    click.echo(f"{output}: {plan.sha256}")
    for number in range(1, sessions + 1):
        click.echo(f"-S turn={plan.turn(number)}")


def _ledgers(
    folders: Iterable[Path],
    files: Iterable[Path],
    asked: Acceptance,
    plan: Plan | None,
    signers: Path | None,
) -> tuple[str, list[str]]:
    """Check the ledgers of folders of records for files with runs of the system and the dates.
    Return a text, and what does not agree."""
    from understudy.judge.acceptance.marks import NO_LEDGER
    from understudy.records import ledger

    said, faults = [], []
    without = [path.resolve() for path in files]
    for folder in folders:
        audit = ledger.audit(folder)
        if audit is None:
            continue
        words = f"ledger of {audit.records}, head {audit.head}"
        if signers is not None:
            try:
                words += f", signed by {ledger.signer(folder, signers)}"
            except UnderstudyError as error:
                faults.append(str(error))
        said.append(words)
        without = [path for path in without if folder.resolve() not in path.parents]
        if plan is not None and plan.ledger_head is None:
            said.append("the plan is older than the ledger")
        faults += [
            f"{folder / fault.file}: {fault.what}"
            for fault in audit.faults
            if asked.covers(fault.system or asked.system, fault.time or asked.since)
        ]
        if plan is not None and plan.ledger_head not in (None, *audit.heads):
            faults.append(
                f"{folder / ledger.FILE}: does not begin with what it was when the plan was made, "
                f"{plan.ledger_head}"
            )
    if said and without:
        said.append(f"{len(without)} in no ledger")
    if without and (plan is not None or signers is not None):
        faults.append(
            f"{without[0]}: is in no ledger, as are {len(without)} records of the system and the "
            "dates; expected the folder of records, with its ledger"
        )
    return "; ".join(said) or NO_LEDGER, faults


def _accept(
    marks: str,
    records: tuple[Path, ...],
    output: Path,
    pdf: Path | None,
    force: bool,
    as_json: bool,
    junit_file: Path | None,
    plan: Path | None,
    signers: Path | None,
    nights_differ: float,
) -> str:
    from understudy import producers
    from understudy.contracts import acceptance, acceptance_plan
    from understudy.files import expect_new, expect_not_read, expect_page, write_text
    from understudy.judge.acceptance import marks as judging
    from understudy.judge.statistics.night_statistics import Rule
    from understudy.records import store
    from understudy.report import acceptance as page
    from understudy.report import pdf as printing

    file = _file(marks)
    asked = acceptance.load(file)
    unread: list[str] = []
    kept = store.folder()
    if not records and not kept.is_dir():
        tell(f"{kept}: no records yet, so that no mark was run")
        files = []
    else:
        files = producers.find(records or (kept,), empty=() if records else (kept.resolve(),))
    for output_file in filter(None, (output, pdf, junit_file)):
        expect_not_read(output_file, (file, *filter(None, (plan, signers)), *files), kept)
    expect_page(output, force)
    expect_new(pdf, force)
    expect_new(junit_file, force)
    all_runs = producers.load_all(files, unread=lambda _, error: unread.append(str(error)))
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    unread += [
        f"{path}: dated in the future ({run.identity.time})"
        for path, run in all_runs
        if run.identity.time > now
    ]
    present = [run for _, run in all_runs if run.identity.time <= now]
    planned = acceptance_plan.load(plan) if plan else None
    folders = [path for path in records or (kept,) if path.is_dir()]
    judged = [path for path, run in all_runs if asked.covers(run.place.system, run.identity.time)]
    said, faults = _ledgers(folders, judged, asked, planned, signers)
    unread += faults
    rule = Rule(nights=nights_differ)
    verdict = judging.judge(asked, present, unread, planned, said, rule)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnderstudyError(f"{output}: cannot be written: {error.strerror}") from None
    write_text(output, page.render(verdict))
    if junit_file is not None:
        write_text(junit_file, _junit(verdict))
    for reason in unread:
        print_error(UnderstudyError(reason if reason in faults else f"left out: {reason}"))
    if pdf is not None:
        times = [run.identity.time for run in page.evidence(verdict)]
        try:
            printing.write(output, pdf, max(times, default="1970-01-01T00:00:00Z"))
        except UnderstudyError as error:
            print_error(error)
    for finding in verdict.findings:
        if finding.warning:
            tell(f"warning: {finding.mark.name}: {finding.warning}")
    if as_json:
        print_json(document("verdict", page.as_row(verdict)))
    else:
        for finding in verdict.findings:
            line = (
                f"{finding.state}: {finding.mark.name}: {finding.mark.metric} "
                f"{finding.mark.demand}: {finding.result}: {finding.why}"
            )
            _say(line)
            if finding.omitted:
                _say(finding.omitted, indent=2)
        _say(f"sessions: {verdict.sessions}")
        _say(f"records: {verdict.kept}")
        _say(verdict.sentence)
        click.echo(f"page: {one_line(str(output))}")
    return verdict.state


def _say(text: str, indent: int = 0) -> None:
    for line in wrapped(text, indent):
        click.echo(line)


def _junit(verdict: Verdict) -> str:
    """Undecided is an error, as it did not pass."""
    faults = {"fail": "failure", "undecided": "error"}
    cases = [
        TestCase(
            name=f"{finding.mark.name}: {finding.mark.metric} {finding.mark.demand}",
            fault=faults.get(finding.state, ""),
            kind=finding.state,
            message="; ".join(filter(None, (finding.result, finding.why, finding.omitted))),
        )
        for finding in verdict.findings
    ]
    if verdict.unread:
        text = "; ".join(verdict.unread)
        cases.append(TestCase(name="records", fault="error", kind="undecided", message=text))
    return junit("accept", cases)


def _file(named: str) -> Path:
    """A path, or the name of a file of a plugin directory."""
    path = Path(named)
    mark_files = paths.files(KIND, ".yaml")
    if path.suffix not in (".yaml", ".yml") and not path.exists():
        if named not in mark_files:
            raise UnderstudyError(
                f"{named}: no such file, and none of that name in acceptance/, which has "
                f"{', '.join(mark_files) or 'none'}"
            )
        return mark_files[named]
    return path
