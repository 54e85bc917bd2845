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
    comparison = compare(before, after, history, folder, wanted, metrics, across, rule, night_h)
    if junit_file is not None:
        write_text(junit_file, junit_of(comparison, limit or LIMIT_FRACTION))
    if page is not None:
        write_text(page, html(comparison, before, after))
    if as_json:
        print_json(as_row(comparison, rule))
    else:
        for line in lines(comparison):
            click.echo(line)
    if limit is not None:
        raise SystemExit(comparison.status(limit, strict))


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
    read: dict[str, indexes.Index] = {}

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
        read[word] = index
        tell(index, where)
        selected_rows = judged.read(index, where, metrics, across)
        if not selected_rows:
            limits = " with --system and --partition" if wanted[1] else ""
            raise UnderstudyError(f"{word}: selects no run{limits} that can be read")
        for digest, row in index.connection.execute("SELECT hash, row FROM conditions"):
            conditions[digest] = row
        for row in selected_rows:
            conditions.setdefault(row.condition, conditions[row.whole])
        return selected_rows

    def tell(index: indexes.Index, where: select.Where) -> None:
        unread_messages = [
            message for message in index.unread_files(*where).values() if message not in unread
        ]
        unread.update(dict.fromkeys(unread_messages))
        for message in unread_messages[:SHOWN]:
            print_error(UnderstudyError(f"left out: {message}"))
        if len(unread_messages) > SHOWN:
            more = len(unread_messages) - SHOWN
            print_error(UnderstudyError(f"left out: {more} more, {len(unread_messages)} in all"))

    def differ(digest_before: str, digest_after: str) -> str:
        first, second = (
            json.loads(conditions[digest]) for digest in (digest_before, digest_after)
        )
        return comparing.differences(first, second, across)

    past = rows(history) if history else []
    first, second = rows(before), rows(after)
    alike = {row.sketch for row in first} & {row.sketch for row in second}
    keys = [read[word].keys_of(alike) for word in (before, after)]
    of_first = {row.run for row in first} | {keys[0].get(row.run, row.run) for row in first}
    if shared := [r.run for r in second if {r.run, keys[1].get(r.run, r.run)} & of_first]:
        raise UnderstudyError(
            f"{before} and {after} share {len(shared)} runs, such as {min(shared)}: "
            "expected two separate sets"
        )
    ended = [row for row in first + second if row.failure is None]
    if metrics and ended and not any(row.samples for row in ended):
        raise UnderstudyError(f"--metric {', '.join(metrics)}: no run has such samples")
    comparison = comparing.compare(first, second, past, rule, differ, night_h)
    notes = comparison.notes
    if not metrics and any(row.has_latencies for row in ended):
        notes += ("latencies are not compared: --metric write_latency_p99_s does",)
    return replace(comparison, unread=tuple(unread), notes=notes)


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
    verdict_change = verdict.change
    if verdict.turns:
        return plural(verdict_change.shared, "turn")
    (before, after), (first, second) = verdict_change.nights, verdict_change.sessions
    if verdict_change.shared == before == after:
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


def lines(comparison: Comparison) -> list[str]:
    """Text for a terminal."""
    text_lines = []
    ranked = sorted(comparison.verdicts, key=lambda v: STATES.index(v.state))
    for v in ranked:
        text_lines += wrapped(f"{v.state}: {v.name}: {change(v)}")
        before, after = (shown(level, v) for level in levels(v))
        parts = [
            f"{before} \N{RIGHTWARDS ARROW} {after}, {interval(v)} (95 %), {nights(v)}",
            each(v),
        ]
        cause = f"cause: {v.cause or 'not known'}; {v.cause_why}" if v.cause_why else ""
        for part in filter(None, (*parts, v.why, cause)):
            text_lines += wrapped(part, indent=2)
    for message in messages(comparison):
        text_lines += wrapped(message)
    text_lines += wrapped(sentence(comparison))
    if comparison.unread:
        text_lines += wrapped(f"{left_out(comparison)}, which may hold a loss")
    return text_lines


def messages(comparison: Comparison) -> list[str]:
    """On what was not compared, and on the turns."""
    skipped_messages = [
        f"{skipped.state}: {skipped.subject}: {skipped.why}" for skipped in comparison.skipped
    ]
    return skipped_messages + [f"note: {note}" for note in comparison.notes]


def counted(comparison: Comparison) -> list[tuple[str, int]]:
    """How many cases are in each state; a case of which every run after failed is slower."""
    states = [v.state for v in comparison.verdicts]
    states += [SLOWER for skipped in comparison.skipped if skipped.lost]
    return [(state, states.count(state)) for state in STATES]


def sentence(comparison: Comparison) -> str:
    """The counts of cases and of failed runs."""
    counts = [f"{number} {state}" for state, number in counted(comparison)]
    open_ = sum(not skipped.lost for skipped in comparison.skipped)
    (lost, every), (lost_after, every_after) = comparison.failed
    return (
        f"{', '.join(counts)}, {open_} not compared; failed runs: {lost} of {every} "
        f"before, {lost_after} of {every_after} after"
    )


def html(compared: Comparison, before: str, after: str) -> str:
    """The page."""
    from understudy.report import comparison

    more = [
        f"{left_out(compared)}, which may hold a loss: {message}" for message in compared.unread
    ]
    return comparison.render(
        comparison.Compared(
            before=before,
            after=after,
            sentence=f"{sentence(compared)}.",
            counts=counted(compared),
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
                for v in sorted(compared.verdicts, key=lambda v: STATES.index(v.state))
            ],
            messages=[*messages(compared), *more],
        )
    )


def left_out(comparison: Comparison) -> str:
    count = len(comparison.unread)
    return f"{plural(count, 'record')} left out"


def as_row(comparison: Comparison, rule: Rule) -> dict[str, Any]:
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
            for v in comparison.verdicts
        ],
        "not_compared": [
            asdict(skipped.subject) | {"state": skipped.state, "why": skipped.why}
            for skipped in comparison.skipped
        ],
        "failed_runs": {"before": comparison.failed[0], "after": comparison.failed[1]},
        "notes": list(comparison.notes),
        "unread": len(comparison.unread),
        "unread_records": list(comparison.unread),
    }
    return document("comparison", row)


def junit_of(comparison: Comparison, limit: float) -> str:
    """JUnit XML: slower is a failure; not decided, not compared and left out are errors, as none
    passed."""
    cases = []
    for v in comparison.verdicts:
        text = f"{change(v)} ({interval(v)}) {v.why} {v.cause_why}".strip()
        fault = ""
        if v.state == SLOWER and v.change.interval()[0] <= 1 - limit:
            fault = "failure"
        elif v.state == UNDECIDED:
            fault = "error"
        cases.append(TestCase(name=v.name, fault=fault, kind=v.state, message=text))
    for skipped in comparison.skipped:
        fault = "failure" if skipped.lost else "error"
        cases.append(
            TestCase(
                name=str(skipped.subject), fault=fault, kind=skipped.state, message=skipped.why
            )
        )
    if comparison.unread:
        text = "; ".join([left_out(comparison), *comparison.unread])
        cases.append(TestCase(name="records", fault="error", kind="left out", message=text))
    return junit("compare", cases)
