"""understudy campaign: run two sides in turn, so that they can be compared within one night."""

import shlex
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from understudy.commands import _submission, compare
from understudy.commands._options import LIVE, NIGHTS_DIFFER, words
from understudy.commands._output import JSON, document, print_json
from understudy.errors import UnderstudyError
from understudy.files import read_text
from understudy.judge.comparison.case_comparison import Comparison
from understudy.judge.statistics import compared_samples as judged
from understudy.judge.statistics import night_statistics
from understudy.judge.statistics.night_statistics import UNDECIDED, Rule, Scatter
from understudy.messages import tell
from understudy.records import select
from understudy.reframe.session import live
from understudy.reframe.session.campaign import SIDES, Campaign, error_in, order, seed, side
from understudy.reframe.session.reframe_process import Ended
from understudy.units import seconds

TURNS = 8
QUIET = 0.02  # how far sessions differ on a quiet system, for what turns can find
EARLY = 0.1  # of the rate of false discoveries: to end before the last turn (Haybittle and Peto)


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("name")
@click.argument("selection", nargs=-1, type=click.UNPROCESSED)
@click.option("--system", required=True, help="ReFrame's system.")
@click.option(
    "--before", multiple=True, metavar="SETTING", help="What is particular to the side before."
)
@click.option(
    "--after", multiple=True, metavar="SETTING", help="What is particular to the side after."
)
@click.option(
    "--turns",
    type=click.IntRange(1, 10_000),
    default=TURNS,
    show_default=True,
    help="Turns of the whole campaign, with those that ran already.",
)
@NIGHTS_DIFFER
@click.option("--all-turns", is_flag=True, help="Go on when every figure is decided.")
@click.option(
    "--submit",
    is_flag=True,
    help="Run the turns within one job of the batch system, and wait for it.",
)
@click.option(
    "--nodes",
    type=click.IntRange(1),
    metavar="N",
    help="Nodes of that job.  [default: those of the largest case]",
)
@click.option(
    "--time",
    "time_limit",
    metavar="TIME",
    help="Time limit of that job, such as 2h30m.  [default: the limits of all cases together]",
)
@LIVE
@JSON
@click.option("--dry-run", is_flag=True, help="Print what would run, in which order, how long.")
def command(
    name: str,
    selection: tuple[str, ...],
    system: str,
    before: tuple[str, ...],
    after: tuple[str, ...],
    turns: int,
    nights_differ: float,
    all_turns: bool,
    submit: bool,
    nodes: int | None,
    time_limit: str | None,
    live_file: Path | None,
    as_json: bool,
    dry_run: bool,
) -> None:
    """Run the sides before and after in turn: the campaign NAME.

    A turn is one session of ReFrame of each side, in an order that is drawn at random; in two
    turns each side is first once. A SETTING is partition=NAME, an environment variable
    (SCRATCH=/mnt/new) or a variable of the checks (fsync=1); without any, a side is the system as
    it is. What follows -- selects checks, as options of ReFrame.

    The records of the sides have the campaigns NAME-before and NAME-after. A campaign that was
    ended goes on where it was with the same command. The last line printed is the command that
    compares the sides; with --json, it is compared. Checks that fail count, and do not end the
    campaign. It says what its turns can find, and ends early where every figure is surely decided.

    Example: understudy campaign upgrade --system archer2 --before partition=old
    --after partition=new -- -n Replay -S canary=1
    """
    sides = side(SIDES[0], before), side(SIDES[1], after)
    if as_json and dry_run:
        raise UnderstudyError("--json and --dry-run: expected one of them")
    live.follow(live_file)
    rule = Rule(nights=nights_differ)
    campaign = Campaign(name=name, system=system, sides=sides, selection=selection)
    if dry_run:
        _show(campaign, turns, rule)
        return
    try:
        if submit:
            more = [*words(nights_differ), *(["--all-turns"] if all_turns else [])]
            _submit(campaign, turns, nodes, time_limit, more)
        else:
            with campaign.begun():
                _run(campaign, turns, all_turns, rule)
    except (Ended, KeyboardInterrupt) as caught:  # the latter between two sessions
        ended = caught if isinstance(caught, Ended) else Ended(signal.SIGINT)
        tell(f"{name}: ended by {ended}; the same command goes on with the next turn")
        raise SystemExit(128 + ended.number) from None
    tell(f"the sides differ in {', '.join(campaign.differences()) or 'nothing that is recorded'}")
    if as_json:
        print_json(document("campaign", _as_row(campaign, turns, rule)))
    else:
        click.echo(shlex.join(campaign.comparison(words(nights_differ))))


def _submit(
    campaign: Campaign,
    turns: int,
    nodes: int | None,
    time_limit: str | None,
    more: Sequence[str],
) -> None:
    with campaign.begun():
        left = turns - sum(campaign.turns().values())
    if left <= 0:
        return
    tell(f"{campaign.name}: {left} of {turns} turns are left; waiting for the job")
    log = _submission.submit(campaign, turns, left, nodes, time_limit, more)
    done = sum(campaign.turns().values())
    if done < turns:
        said = error_in(read_text(log, errors="replace"))
        raise UnderstudyError(
            f"the job ended after {done} of {turns} turns: {said} ({log}); the same command goes "
            "on"
        )


def _finds(turns: int, rule: Rule) -> str:
    """Smallest losses that so many turns can find in one figure."""
    losses = [
        f"{night_statistics.findable(scatter, turns, True, 1, rule):.0%} "
        f"where sessions differ by {of:.0%}"
        for of in (QUIET, rule.nights)
        for scatter in [Scatter(night=0.0, session=of**2, session_known=True, noise=0.0)]
    ]
    return f"{turns} turns find a loss of {', of '.join(losses)}"


def _as_row(campaign: Campaign, turns: int, rule: Rule) -> dict[str, Any]:
    """As JSON, see schemas/campaign.schema.json."""
    whole_by_turn = campaign.turns()
    return {
        "name": campaign.name,
        "system": campaign.system,
        "selection": list(campaign.selection),
        "sides": {
            this_side.name: {
                "campaign": campaign.of_side(this_side.name),
                "settings": this_side.settings,
            }
            for this_side in campaign.sides
        },
        "turns": turns,
        "turns_done": [number for number, whole in whole_by_turn.items() if whole],
        "turns_not_whole": [number for number, whole in whole_by_turn.items() if not whole],
        "differences": campaign.differences(),
        "command": campaign.comparison(words(rule.nights)),
        "comparison": compare.as_row(_comparison(campaign, rule), rule),
    }


def _decided(campaign: Campaign, rule: Rule) -> str:
    """The decision as a sentence; empty where anything is undecided."""
    comparison = _comparison(campaign, replace(rule, alpha=rule.alpha * EARLY))
    if comparison.skipped or any(v.state == UNDECIDED for v in comparison.verdicts):
        return ""
    return compare.sentence(comparison) if comparison.verdicts else ""


def _comparison(campaign: Campaign, rule: Rule) -> Comparison:
    before, after = (f"campaign:{campaign.of_side(name)}" for name in SIDES)
    return compare.compare(
        before,
        after,
        None,
        None,
        select.ALL,
        (),
        tuple(campaign.differences()),
        rule,
        judged.NIGHT_H,
    )


def _run(campaign: Campaign, turns: int, all_turns: bool, rule: Rule) -> None:
    whole_by_turn = campaign.turns()
    for number in (number for number, whole in whole_by_turn.items() if not whole):
        tell(f"{campaign.name}: turn {number} is not whole, and does not count")
    done, turn = sum(whole_by_turn.values()), max(whole_by_turn, default=0)
    tell(f"{campaign.name}: {done} of {turns} turns are done, seed {seed(campaign.name)}")
    tell(_finds(turns, rule))
    times: list[float] = []
    console = Console(stderr=True)

    def told(event: live.Event) -> None:
        live.show(event, console)

    while done < turns:
        turn += 1
        for side_name in order(campaign.name, turn):
            outcome = campaign.run(turn, side_name, told)
            times.append(outcome.took_s)
            left = 2 * (turns - done) - (len(times) - 1) % 2 - 1
            text = f"turn {turn}, {side_name}: {outcome}, {seconds(outcome.took_s)}"
            if left:
                text += f"; about {seconds(left * sum(times) / len(times))} left"
            tell(text + (f"; {outcome.log}" if outcome.failed else ""))
        done += 1
        if not campaign.turns().get(turn):
            raise UnderstudyError(
                f"turn {turn}: not both sides left records of cases; see {campaign.folder}"
            )
        if not all_turns and 1 < done < turns and (decided := _decided(campaign, rule)):
            tell(f"{campaign.name}: decided after {done} of {turns} turns: {decided}")
            return


def _show(campaign: Campaign, turns: int, rule: Rule) -> None:
    whole_by_turn = campaign.turns()
    longest_s = 0.0
    first, left = max(whole_by_turn, default=0) + 1, max(0, turns - sum(whole_by_turn.values()))
    click.echo(f"{campaign.name}: {left} turns of two sessions, seed {seed(campaign.name)}")
    click.echo(_finds(turns, rule))
    for this_side in campaign.sides:
        given = [f"{key}={value}" for key, value in this_side.environment.items()]
        click.echo(f"{this_side.name}: {shlex.join([*given, *campaign.command(this_side, '-r')])}")
        total, lines = campaign.listed(this_side)
        longest_s += left * total.longest_s
        for line in lines:
            click.echo(f"{this_side.name}: each session: {line}")
    for turn in range(first, first + left):
        click.echo(f"turn {turn}: {', '.join(order(campaign.name, turn))}")
    click.echo(
        f"{2 * left} sessions: at most {seconds(longest_s)} at the slowest bandwidth that is "
        "expected, without starting and waiting"
    )
