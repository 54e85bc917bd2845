"""understudy accept: whether storage reached the marks of a contract."""

import json
from pathlib import Path

import click

from understudy import paths
from understudy.cli import FAILED, UNDECIDED, print_error
from understudy.errors import UnderstudyError, printable
from understudy.messages import tell

STATUS = {"pass": 0, "fail": FAILED, "undecided": UNDECIDED}
KIND = "acceptance"


@click.command("accept")
@click.argument("marks", metavar="FILE")
@click.argument("records", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False),
    default=lambda: paths.output() / "acceptance.html",
    help=f"Page to sign.  [default: {paths.output() / 'acceptance.html'}]",
)  # fmt: skip
@click.option(
    "--pdf", type=click.Path(path_type=Path, dir_okay=False),
    help="The same page as PDF, printed by Chromium; left out, with a message, without it.",
)  # fmt: skip
@click.option("-f", "--force", is_flag=True, help="Replace files that are no pages of understudy.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON, not as a table.")
def command(
    marks: str, records: tuple[Path, ...], output: Path, pdf: Path | None, force: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Judge the marks in FILE by RECORDS: run records, or folders that are searched for them; by
    default those kept in the directory for output.

    FILE is YAML, or the name of a file in a plugin directory acceptance/. Each mark passes, fails
    or is undecided. What was not run is undecided, and a failed run counts against its mark. The
    exit status is 0 if all marks passed, 1 if one failed, 3 if none failed and one is undecided
    or a record cannot be read, and 2 if FILE or RECORDS cannot be used.
    """
    raise SystemExit(STATUS[_accept(marks, records, output, pdf, force, as_json)])


def _accept(
    marks: str, records: tuple[Path, ...], output: Path, pdf: Path | None, force: bool,
    as_json: bool,
) -> str:  # fmt: skip
    from understudy import producers
    from understudy.contracts import acceptance
    from understudy.files import expect_new, expect_not_read, expect_page, write_text
    from understudy.judge.acceptance import judge
    from understudy.records import store
    from understudy.report import acceptance as page
    from understudy.report import pdf as printing

    file = _file(marks)
    asked = acceptance.load(file)
    unread: list[str] = []
    kept = store.folder()
    if not records and not kept.is_dir():
        raise UnderstudyError(f"{kept}: no records; run checks first, or name records")
    files = producers.find(records or (kept,))
    for made in filter(None, (output, pdf)):
        expect_not_read(made, (file, *files), kept)
    expect_page(output, force)
    expect_new(pdf, force)
    found = producers.load_all(files, unread=lambda _, error: unread.append(str(error)))
    verdict = judge(asked, [run for _, run in found], unread)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnderstudyError(f"{output}: cannot be written: {error.strerror}") from None
    write_text(output, page.render(verdict))
    for reason in unread:
        print_error(UnderstudyError(f"left out: {reason}"))
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
        click.echo(json.dumps(page.document(verdict), indent=1, ensure_ascii=False))
    else:
        for finding in verdict.findings:
            line = (
                f"{finding.state:9}  {finding.mark.name}: {finding.mark.metric} "
                f"{finding.mark.demand}: {finding.result}: {finding.why}"
            )
            click.echo(printable(line))
        click.echo(f"{printable(verdict.sentence)}\npage: {output}")
    return verdict.state


def _file(named: str) -> Path:
    """A path, or the name of a file of a plugin directory."""
    path = Path(named)
    known = paths.files(KIND, ".yaml")
    if path.suffix not in (".yaml", ".yml") and not path.exists():
        if named not in known:
            raise UnderstudyError(
                f"{named}: no such file, and none of that name in acceptance/, which has "
                f"{', '.join(known) or 'none'}"
            )
        return known[named]
    return path
