"""understudy compare: did anything change between two sets of sessions?"""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from understudy import producers
from understudy.cli import print_error
from understudy.commands._options import FOLDER, NIGHTS_DIFFER, PARTITION
from understudy.commands._output import JSON, TestCase, document, junit, print_json
from understudy.contracts import run as runs
from understudy.errors import UnderstudyError
from understudy.files import expect_new, expect_not_read, expect_page, write_text
from understudy.judge.comparison import case_comparison as comparing
from understudy.judge.comparison.case_comparison import Comparison, Verdict
from understudy.judge.statistics import compared_samples as judged
from understudy.judge.statistics.compared_samples import Row
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.judge.statistics.night_statistics import SLOWER, STATES, UNDECIDED, Rule
from understudy.records import index as indexes
from understudy.records import select, store
from understudy.tables import wrapped
from understudy.units import RATE, plural, rate, seconds, three, time_unit, unit

SHOWN = 5  # of the messages on records that are left out
SHOWN_NIGHTS = 12


@click.command()
@click.argument("before")
@click.argument("after")
@FOLDER
@click.option("--system", help="Only runs on this system.")
@PARTITION
@click.option(
    "--history",
    metavar="WHICH",
    help="More sessions of the condition before, which count as more nights before.",
)
@click.option(
    "--across",
    metavar="KEY",
    multiple=True,
    help="Compare although conditions differ in this key, such as storage.server_version, or in "
    "those below it, such as software.",
)
@click.option(
    "--night",
    "night_h",
    type=click.FloatRange(0, 1000),
    default=judged.NIGHT_H,
    show_default=True,
    metavar="HOURS",
    help="Sessions that begin within it share the night and count as one.",
)
@NIGHTS_DIFFER
@click.option("--metric", "metrics", multiple=True, help="Judge these metrics, not the rates.")
@click.option(
    "--fail-below",
    metavar="SHARE",
    help="Set the exit status by losses of this share, such as 10%: 0 fine, 1 slower, 3 not "
    "decided.",
)
@click.option("--strict", is_flag=True, help="A loss whose cause is not shown is not decided.")
@JSON
@click.option(
    "--junit",
    "junit_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JUnit XML file to write.",
)
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    help="HTML page to write: a row for each case.",
)
@click.option("-f", "--force", is_flag=True, help="Replace files of --junit and --html.")
def command(
    before: str,
    after: str,
    folder: Path | None,
    system: str | None,
    partition: str | None,
    history: str | None,
    across: tuple[str, ...],
    metrics: tuple[str, ...],
    fail_below: str | None,
    strict: bool,
    as_json: bool,
    junit_file: Path | None,
    page: Path | None,
    force: bool,
    night_h: float,
    nights_differ: float,
) -> None:
    """Compare the runs BEFORE with those AFTER, case by case: slower, faster, within the limit, or
    not decided.

    BEFORE and AFTER are sessions, tags, campaigns, dates or ranges (see understudy records), or
    files and folders with records. Only equal conditions are compared. What counts is how far
    nights differ, which is stated: one night shows a loss of a half, but not of a tenth. Where
    both sides ran in a night, in turn, the night is not in their difference, and a few suffice.
    The runs of `understudy campaign` are compared turn by turn.

    The exit status is 0 without --fail-below; it is 2 after an error. Records that cannot be
    read and may belong to BEFORE or AFTER are named and counted; with them it is never 0 with
    --fail-below. `understudy records set-aside` moves them to where they do not count.

    Example: understudy compare before-upgrade after-upgrade --fail-below 10%
    """
    written = [path for path in (junit_file, page) if path is not None]
    if written:
        words = filter(None, (before, after, history))
        named = [path for path in map(Path, words) if path.exists()]
        read = producers.find(named) if named else []
        for path in written:
            expect_not_read(path, read, folder or store.folder())
    expect_new(junit_file, force)
    if page is not None:
        expect_page(page, force)
    limit = comparing.parse_share(fail_below, "--fail-below") if fail_below else None
    if strict and limit is None:
        raise UnderstudyError("--strict: expected --fail-below, too, such as --fail-below 10%")
    rule = Rule(nights=nights_differ)
    if limit is not None:
        rule = replace(rule, limit=limit, effect=limit / 2)
    for key in across:
        if not runs.knows(key):
            raise UnderstudyError(
                f"--across {key}: no key of a condition; expected one such as "
                "storage.server_version, or software for all below it"
            )
    wanted = select.equal(system=system, partition=partition)
    found = compare(before, after, history, folder, wanted, metrics, across, rule, night_h)
    if junit_file is not None:
        write_text(junit_file, junit_of(found, limit or LIMIT_FRACTION))
    if page is not None:
        write_text(page, html(found, before, after))
    if as_json:
        print_json(as_row(found, rule))
    else:
        for line in lines(found):
            click.echo(line)
    if limit is not None:
        raise SystemExit(found.status(limit, strict))


def compare(
    before: str,
    after: str,
    history: str | None,
    folder: Path | None,
    wanted: select.Where,
    metrics: tuple[str, ...],
    across: tuple[str, ...],
    rule: Rule,
    night_h: float,
) -> Comparison:
    """The comparison of what the words name."""
    site: list[indexes.Index] = []
    conditions: dict[str, Any] = {}
    unread: dict[str, None] = {}

    def rows(word: str) -> list[Row]:
        if Path(word).exists():
            index = indexes.of_files([Path(word)])
            where = wanted
        else:
            if not site:
                site.append(indexes.of_folder(folder))
            index = site[0]
            try:
                where = select.both(select.parse(word, index), wanted)
            except UnderstudyError:
                tell(index, select.ALL)  # perhaps this is why it selects nothing
                raise
        tell(index, where)
        found = judged.read(index, where, metrics, across)
        if not found:
            limits = " with --system and --partition" if wanted[1] else ""
            raise UnderstudyError(f"{word}: selects no run{limits} that can be read")
        for digest, row in index.connection.execute("SELECT hash, row FROM conditions"):
            conditions[digest] = row
        for row in found:
            conditions.setdefault(row.condition, conditions[row.whole])
        return found

    def tell(index: indexes.Index, where: select.Where) -> None:
        found = [one for one in index.unread_files(*where).values() if one not in unread]
        unread.update(dict.fromkeys(found))
        for message in found[:SHOWN]:
            print_error(UnderstudyError(f"left out: {message}"))
        if len(found) > SHOWN:
            more = len(found) - SHOWN
            print_error(UnderstudyError(f"left out: {more} more, {len(found)} in all"))

    def differ(one: str, other: str) -> str:
        first, second = (json.loads(conditions[digest]) for digest in (one, other))
        return comparing.differences(first, second, across)

    past = rows(history) if history else []
    first, second = rows(before), rows(after)
    known = {row.key for row in first} | {row.run for row in first}
    if shared := [row.run for row in second if {row.key, row.run} & known]:
        raise UnderstudyError(
            f"{before} and {after} share {len(shared)} runs, such as {min(shared)}: "
            "expected two separate sets"
        )
    made = comparing.compare(first, second, past, rule, differ, night_h)
    return replace(made, unread=tuple(unread))


def shown(value: float, verdict: Verdict) -> str:
    if verdict.unit == "bytes/s":
        return rate(value)
    if verdict.unit == "s":
        return seconds(value)
    return f"{value:.4g} {verdict.unit}"


def percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %".replace("-", "\N{MINUS SIGN}")


def ratio(verdict: Verdict) -> tuple[float, float, float]:
    """After over before of the values shown, with its interval: of a time that doubles, 2. That of
    a `Change` is of values of which more is better."""
    middle, (low, high) = verdict.change.ratio, verdict.change.interval()
    return (middle, low, high) if verdict.better != "lower" else (1 / middle, 1 / high, 1 / low)


def levels(verdict: Verdict) -> tuple[float, float]:
    """Both sides as estimated."""
    before, after = verdict.change.levels
    return (before, after) if verdict.better != "lower" else (1 / before, 1 / after)


def change(verdict: Verdict) -> str:
    return percent(ratio(verdict)[0])


def interval(verdict: Verdict) -> str:
    _, low, high = ratio(verdict)
    return f"{percent(low)} to {percent(high)}"


def nights(verdict: Verdict) -> str:
    """How many sessions, and in how many nights or turns."""
    one = verdict.change
    if verdict.turns:
        return plural(one.shared, "turn")
    (before, after), (first, second) = one.nights, one.sessions
    if one.shared == before == after:
        shared = f"{before} nights" if before > 1 else "night"
        return f"{first} and {second} sessions of the same {shared}"
    count = "1 night each" if before == after == 1 else f"{before} and {after} nights"
    if (before, after) == (first, second):
        return count
    return f"{first} and {second} sessions of {count}"


def each(verdict: Verdict) -> str:
    """The median of each night, or turn, of both sides, and whether they lie apart."""
    sides = [sorted(side) for side in verdict.sides]
    divisor, name = 1.0, verdict.unit
    largest = max(value for side in sides for value in side)
    if verdict.unit == RATE:
        divisor, name = unit(largest)
        name += "/s"
    elif verdict.unit == "s":
        divisor, name = time_unit(largest)
    words = []
    for word, side in zip(("before", "after"), verdict.sides, strict=True):
        more = f" and {len(side) - SHOWN_NIGHTS} more" if len(side) > SHOWN_NIGHTS else ""
        words.append(f"{word} {' '.join(three(v / divisor) for v in side[:SHOWN_NIGHTS])}{more}")
    text = f"{'turns' if verdict.turns else 'nights'}: {', '.join(words)} {name}"
    return "; ".join(filter(None, (text, comparing.apart(*sides))))


def lines(found: Comparison) -> list[str]:
    """Text for a terminal."""
    made = []
    ranked = sorted(found.verdicts, key=lambda v: STATES.index(v.state))
    for v in ranked:
        made += wrapped(f"{v.state}: {v.name}: {change(v)}")
        before, after = (shown(level, v) for level in levels(v))
        parts = [
            f"{before} \N{RIGHTWARDS ARROW} {after}, {interval(v)} (95 %), {nights(v)}",
            each(v),
        ]
        cause = f"cause: {v.cause or 'not known'}; {v.cause_why}" if v.cause_why else ""
        for part in filter(None, (*parts, v.why, cause)):
            made += wrapped(part, indent=2)
    for message in messages(found):
        made += wrapped(message)
    made += wrapped(sentence(found))
    if found.unread:
        made += wrapped(f"{left_out(found)}, which may hold a loss")
    return made


def messages(found: Comparison) -> list[str]:
    """On what was not compared, and on the turns."""
    made = [f"{one.state}: {one.subject}: {one.why}" for one in found.skipped]
    return made + [f"note: {note}" for note in found.notes]


def counted(found: Comparison) -> list[tuple[str, int]]:
    """How many cases are in each state; a case of which every run after failed is slower."""
    states = [v.state for v in found.verdicts]
    states += [SLOWER for one in found.skipped if one.lost]
    return [(state, states.count(state)) for state in STATES]


def sentence(found: Comparison) -> str:
    """The counts of cases and of failed runs."""
    counts = [f"{number} {state}" for state, number in counted(found)]
    open_ = sum(not one.lost for one in found.skipped)
    (lost, every), (lost_after, every_after) = found.failed
    return (
        f"{', '.join(counts)}, {open_} not compared; failed runs: {lost} of {every} "
        f"before, {lost_after} of {every_after} after"
    )


def html(found: Comparison, before: str, after: str) -> str:
    """The page."""
    from understudy.report import comparison

    more = [f"{left_out(found)}, which may hold a loss: {one}" for one in found.unread]
    return comparison.render(
        comparison.Compared(
            before=before,
            after=after,
            sentence=f"{sentence(found)}.",
            counts=counted(found),
            lines=[
                comparison.Line(
                    state=v.state,
                    name=v.name,
                    before=shown(levels(v)[0], v),
                    after=shown(levels(v)[1], v),
                    change=change(v),
                    interval=interval(v),
                    nights=nights(v),
                    why="; ".join(filter(None, (each(v), v.why, v.cause_why))),
                    ratios=ratio(v),
                )
                for v in sorted(found.verdicts, key=lambda v: STATES.index(v.state))
            ],
            messages=[*messages(found), *more],
        )
    )


def left_out(found: Comparison) -> str:
    count = len(found.unread)
    return f"{plural(count, 'record')} left out"


def as_row(found: Comparison, rule: Rule) -> dict[str, Any]:
    """As JSON, see schemas/comparison.schema.json."""
    row = {
        "limit": rule.limit,
        "effect": rule.effect,
        "alpha": rule.alpha,
        "nights_differ": rule.nights,
        "verdicts": [
            asdict(v.subject)
            | {
                key: getattr(v, key)
                for key in (
                    "condition",
                    "metric",
                    "unit",
                    "better",
                    "stream",
                    "state",
                    "why",
                    "cause",
                    "cause_why",
                    "runs",
                    "failed",
                    "turns",
                )
            }
            | {
                **dict(zip(("ratio", "low", "high"), ratio(v), strict=True)),
                "p": v.change.p,
                **dict(zip(("before", "after"), levels(v), strict=True)),
                **dict(zip(("nights_before", "nights_after"), v.sides, strict=True)),
                "nights": list(v.change.nights),
                "sessions": list(v.change.sessions),
                "nights_with_both": v.change.shared,
                "nights_differ": math.sqrt(v.change.scatter.night),
                "nights_differ_by_more_than_stated": v.change.contradicted,
                "sessions_differ": math.sqrt(v.change.scatter.session),
            }
            for v in found.verdicts
        ],
        "not_compared": [
            asdict(one.subject) | {"state": one.state, "why": one.why} for one in found.skipped
        ],
        "failed_runs": {"before": found.failed[0], "after": found.failed[1]},
        "notes": list(found.notes),
        "unread": len(found.unread),
        "unread_records": list(found.unread),
    }
    return document("comparison", row)


def junit_of(found: Comparison, limit: float) -> str:
    """JUnit XML: slower is a failure; not decided, not compared and left out are errors, as none
    passed."""
    cases = []
    for v in found.verdicts:
        text = f"{change(v)} ({interval(v)}) {v.why} {v.cause_why}".strip()
        fault = ""
        if v.state == SLOWER and v.change.interval()[0] <= 1 - limit:
            fault = "failure"
        elif v.state == UNDECIDED:
            fault = "error"
        cases.append(TestCase(name=v.name, fault=fault, kind=v.state, message=text))
    for one in found.skipped:
        fault = "failure" if one.lost else "error"
        cases.append(TestCase(name=str(one.subject), fault=fault, kind=one.state, message=one.why))
    if found.unread:
        text = "; ".join([left_out(found), *found.unread])
        cases.append(TestCase(name="records", fault="error", kind="left out", message=text))
    return junit("compare", cases)
