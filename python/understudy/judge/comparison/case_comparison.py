"""Two sets of runs, case by case: slower, faster, within the limit or not decided, and the cause.

Only runs of equal conditions are compared; where they differ, it is said in which key. The
statistics are those of `night_statistics`. The cause is a question of its own: the canary or IOR
of the same place show whether it is the storage, and what is not told apart from it is named.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import mean, median
from typing import Any

from understudy.contracts import run as runs
from understudy.contracts import schema
from understudy.errors import UnderstudyError
from understudy.judge.statistics import night_statistics
from understudy.judge.statistics.compared_samples import (
    NIGHT_H,
    Row,
    Subject,
    below,
    blocks,
    kinds_of,
    turned,
)
from understudy.judge.statistics.conditions import is_benchmark
from understudy.judge.statistics.night_statistics import (
    FASTER,
    SLOWER,
    UNDECIDED,
    Change,
    Rule,
    Session,
)

MOST = 0.01  # of losses that are named as excluded: what is left
SHOWN_KEYS = 6  # of the differences between two conditions
STORAGE, REPLICA, NEIGHBOUR, UNKNOWN = "storage", "library or layout", "noisy neighbour", ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict on one figure of a case; the change is of values for which higher is better. `why`
    is on the state, `cause_why` on the cause, which is shown to be one where `cause` names it."""

    subject: Subject
    condition: str
    metric: str
    unit: str
    better: str
    stream: str | None
    sides: tuple[tuple[float, ...], tuple[float, ...]]  # each night's median, in the unit
    change: Change
    turns: bool
    state: str
    why: str
    cause: str
    cause_why: str
    runs: tuple[int, int]
    failed: tuple[int, int]

    @property
    def name(self) -> str:
        return " ".join(filter(None, (str(self.subject), self.stream, self.metric)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A case that is not compared, and why; `lost`: it ran before, and every run after failed."""

    subject: Subject
    why: str
    lost: bool = False

    @property
    def state(self) -> str:
        return SLOWER if self.lost else "not compared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    verdicts: tuple[Verdict, ...]
    skipped: tuple[Skipped, ...]
    failed: tuple[tuple[int, int], tuple[int, int]]  # before, after: failed, all
    unread: tuple[str, ...] = ()  # a message for each record that does not count
    notes: tuple[str, ...] = ()  # on the turns, see `compared_samples`

    def status(self, limit: float, strict: bool = False) -> int:
        """For cron: 1 where a case is slower and a loss of `limit` is not excluded, or where every
        run after failed; 3 where something is not decided or not compared, or a record does not
        count, which may hold a loss; else 0. `strict`: a loss without a cause that is shown is not
        decided, either."""
        lost = [v for v in self.verdicts if v.state == SLOWER]
        lost = [v for v in lost if v.change.interval()[0] <= 1 - limit]
        if any(s.lost for s in self.skipped) or any(v.cause or not strict for v in lost):
            return 1
        open_ = bool(lost) or any(v.state == UNDECIDED for v in self.verdicts)
        return 3 if open_ or self.skipped or self.unread or not self.verdicts else 0


def compare(
    before: Sequence[Row],
    after: Sequence[Row],
    history: Sequence[Row] = (),
    rule: Rule = Rule(),  # noqa: B008
    differ: Any = None,
    night_h: float = NIGHT_H,
) -> Comparison:
    """Every figure of every subject. `history` are more runs of the conditions of `before`;
    `differ(digest, digest)` tells in which keys two conditions differ. Sessions that begin within
    `night_h` hours count as one night; turns of a campaign count as they are."""
    found_blocks = blocks(before, after, history, night_h)
    before, after, history = found_blocks.sides
    subjects = {row.subject for row in (*before, *after) if row.subject.workload}
    sides = [_by_subject(rows, subjects) for rows in (before, after, history)]
    ran_in = [_sessions_of(rows) for rows in (before, after)]
    drafts: list[dict[str, Any]] = []
    skipped: list[Skipped] = []
    for subject in sorted(sides[0].keys() | sides[1].keys(), key=str):
        rows_before, rows_after, past = (side.get(subject, []) for side in sides)
        if not rows_before or not rows_after:
            skipped.append(
                Skipped(subject=subject, why=_ran_only(subject, bool(rows_before), sides))
            )
            continue
        ran = [_sessions_of(rows).get(subject.system, set()) for rows in (rows_before, rows_after)]
        every = [some.get(subject.system, set()) for some in ran_in]
        absent = [(len(e - r), len(e)) for e, r in zip(every, ran, strict=True)]
        figures = _of_subject(
            subject, rows_before, rows_after, past, skipped, differ, found_blocks.turns, rule
        )
        drafts += [draft | {"_absent": absent} for draft in figures]
    states = night_statistics.decide([draft["change"] for draft in drafts], rule)
    attributed = _beside(drafts)
    verdicts = []
    for draft, state in zip(drafts, states, strict=True):
        why = _open(draft["change"], len(drafts), rule) if state == UNDECIDED else ""
        state, why = _with_failures(draft, state, why)
        state, why = _with_absences(draft, state, why)
        cause, cause_why = UNKNOWN, ""
        if state in (SLOWER, FASTER):
            cause, cause_why = _cause(draft, attributed, rule)
        draft = {k: v for k, v in draft.items() if not k.startswith("_")}
        verdicts.append(Verdict(**draft, state=state, why=why, cause=cause, cause_why=cause_why))
    return Comparison(
        verdicts=tuple(verdicts),
        skipped=tuple(skipped),
        failed=(_failed(before), _failed(after)),
        notes=found_blocks.notes,
    )


def _ran_only(subject: Subject, before: bool, sides: Sequence[Iterable[Subject]]) -> str:
    """With the partition on which the other side ran the same, if there is one."""
    names = ("before", "after") if before else ("after", "before")
    others = {
        s.partition
        for s in sides[before]
        if replace(s, partition=None) == replace(subject, partition=None)
    } - {subject.partition}
    if len(others) != 1:
        return f"ran only {names[0]}"
    return (
        f"ran only {names[0]}, and on the partition {others.pop()} {names[1]}; "
        "--across place.partition compares them"
    )


def _failed(rows: Iterable[Row]) -> tuple[int, int]:
    every = list(rows)
    return sum(row.failure is not None for row in every), len(every)


def _sessions_of(rows: Iterable[Row]) -> dict[str | None, set[str]]:
    """By system."""
    sessions_by_system: dict[str | None, set[str]] = {}
    for row in rows:
        sessions_by_system.setdefault(row.subject.system, set()).add(row.session)
    return sessions_by_system


def _by_subject(rows: Iterable[Row], subjects: set[Subject]) -> dict[Subject, list[Row]]:
    rows_by_subject: dict[Subject, list[Row]] = {}
    for row in rows:
        rows_by_subject.setdefault(row.subject, []).append(row)
    # A run that failed before its workload was known belongs to the subject of its case.
    for subject in [s for s in rows_by_subject if s.workload is None]:
        whole = [s for s in subjects if _alike(s, subject)]
        if len(whole) == 1:
            rows_by_subject.setdefault(whole[0], []).extend(rows_by_subject.pop(subject))
    return rows_by_subject


def _alike(subject: Subject, other: Subject) -> bool:
    keys = ("case", "arm", "system", "partition")
    return all(getattr(subject, key) == getattr(other, key) for key in keys)


def _of_subject(
    subject: Subject,
    before: list[Row],
    after: list[Row],
    past: list[Row],
    skipped: list[Skipped],
    differ: Any,
    turns: bool,
    rule: Rule,
) -> list[dict[str, Any]]:
    good = [[row for row in side if row.failure is None] for side in (before, after)]
    failed = (len(before) - len(good[0]), len(after) - len(good[1]))

    def skip(why: str) -> None:
        skipped.append(Skipped(subject=subject, why=why))

    if not good[0] or not good[1]:
        side = 1 if good[0] else 0
        first = (before, after)[side][0]
        why = f"all {failed[side]} runs {('before', 'after')[side]} failed: {first.failure}"
        skipped.append(Skipped(subject=subject, why=why, lost=side == 1))
        return []
    conditions = [{row.condition for row in side} for side in good]
    common = conditions[0] & conditions[1]
    if not common:
        hashes = [{row.sha256 for row in side} for side in good]
        if not hashes[0] & hashes[1]:
            some = [sorted(str(h)[:12] for h in side_hashes)[0] for side_hashes in hashes]
            skip(f"the workload differs: SHA-256 {some[0]} before, {some[1]} after")
        else:
            how = differ(good[0][-1].condition, good[1][0].condition) if differ else ""
            skip(f"the condition differs{': ' if how else ''}{how}")
        return []
    for side, name in ((0, "before"), (1, "after")):
        if more := len({row.condition for row in good[side]} - common):
            skip(f"{more} of {len(conditions[side])} conditions ran only {name}")
    drafts = []
    for digest in sorted(common):
        of = [[row for row in side if row.condition == digest] for side in (*good, past)]
        of[2] = [row for row in of[2] if row.failure is None]
        drafts += _of_condition(subject, digest, of, failed, skip, turns, rule)
    return drafts


def _of_condition(
    subject: Subject,
    digest: str,
    sides: list[list[Row]],
    failed: tuple[int, int],
    skip: Any,
    turns: bool,
    rule: Rule,
) -> list[dict[str, Any]]:
    keys = [dict.fromkeys((s[0], s[3]) for row in side for s in row.samples) for side in sides]
    for side, name in ((0, "before"), (1, "after")):
        if not keys[side]:
            skip(f"no samples {name}: {len(sides[side])} runs, none has a rate or a time")
            return []
        if empty := sum(not row.samples for row in sides[side]):
            skip(f"{empty} of {len(sides[side])} runs {name} have no rate and no time")
    drafts = []
    for metric, stream in dict.fromkeys([*keys[0], *keys[1]]):
        shown = " ".join(filter(None, (stream, metric)))
        missing = [
            n for n, k in zip(("before", "after"), keys, strict=False) if (metric, stream) not in k
        ]
        if missing:
            skip(f"{shown}: no samples {missing[0]}")
            continue
        kinds = [kinds_of(side, metric, stream) for side in sides[:2]]
        if len(kinds[0] | kinds[1]) > 1:
            units = [" and ".join(sorted(" ".join(k) for k in kind)) for kind in kinds]
            skip(f"{shown}: the unit differs: {units[0]} before, {units[1]} after")
            continue
        [(unit, better)] = kinds[0]
        every = (s for side in sides for row in side for s in row.samples)
        if any(s[4] <= 0 for s in every if (s[0], s[3]) == (metric, stream)):
            skip(f"{shown}: a value is not above 0")
            continue
        first, second = (
            _sessions(side, metric, stream, better) for side in ([*sides[2], *sides[0]], sides[1])
        )
        if turns and not {s.night for s in first} & {s.night for s in second}:
            skip(f"{shown}: no turn has values of both sides")  # turns are no nights
            continue
        drafts.append(
            {
                "subject": subject,
                "condition": digest,
                "metric": metric,
                "unit": unit,
                "better": better,
                "stream": stream,
                "sides": (_by_night(first, better), _by_night(second, better)),
                "change": night_statistics.measure(first, second, rule),
                "turns": turns,
                "runs": (len(sides[0]), len(sides[1])),
                "failed": failed,
                "_rows": sides[:2],
                "_operation": sides[1][0].operations.get(stream) or stream or "",
                "_sessions": (first, second),
            }
        )
    return drafts


def _sessions(rows: Iterable[Row], metric: str, stream: str | None, better: str) -> list[Session]:
    """By time; of values of which higher is better."""
    values_by_session: dict[tuple[int, str], list[float]] = {}
    for row in sorted(rows, key=lambda row: (row.block, row.time)):
        values = [s[4] for s in row.samples if (s[0], s[3]) == (metric, stream)]
        if values:
            values_by_session.setdefault((row.block, row.session), []).extend(values)
    every = turned(list(values_by_session.values()), better)
    return [
        Session(night=night, values=tuple(session_values))
        for (night, _), session_values in zip(values_by_session, every, strict=True)
    ]


def _by_night(side: Iterable[Session], better: str) -> tuple[float, ...]:
    """Medians of nights, as they are shown."""
    values_by_night: dict[int, list[float]] = {}
    for session in side:
        values_by_night.setdefault(session.night, []).extend(session.values)
    [medians] = turned([[median(values) for values in values_by_night.values()]], better)
    return tuple(medians)


def _in_order(sides: Sequence[Iterable[Row]], block: str) -> str:
    """A drift within nights, or turns, in all of which one side ran before the other."""
    times: dict[int, tuple[list[float], list[float]]] = {}
    for side, rows in enumerate(sides):
        for row in rows:
            time = datetime.fromisoformat(row.time.replace("Z", "+00:00")).timestamp()
            times.setdefault(row.block, ([], []))[side].append(time)
    signs = {
        (mean(second) > mean(first)) - (mean(second) < mean(first))
        for first, second in times.values()
        if first and second
    }
    if signs not in ({1}, {-1}):
        return ""
    return f"a drift within the {block}: one side ran first in every {block}"


def _with_failures(draft: dict[str, Any], state: str, why: str) -> tuple[str, str]:
    """Those that did not fail may be the lucky ones: with more failures than before nothing is
    fine."""
    before, after = draft["failed"]
    every = [count + lost for count, lost in zip(draft["runs"], draft["failed"], strict=True)]
    if not after or after / every[1] <= before / every[0]:
        return state, why
    text = f"{after} of {every[1]} runs after failed, {before} of {every[0]} before"
    return (state, text) if state == SLOWER else (UNDECIDED, text)


def _with_absences(draft: dict[str, Any], state: str, why: str) -> tuple[str, str]:
    """State and reason of a case that skipped sessions, which leave no record: undecided, unless
    slower, if it ran in fewer of its system's sessions than before."""
    (before, of_before), (after, of_after) = draft["_absent"]
    if not after or after / of_after <= before / of_before:
        return state, why
    text = f"did not run in {after} of {of_after} sessions after, {before} of {of_before} before"
    return (state if state == SLOWER else UNDECIDED), "; ".join(filter(None, (why, text)))


def _open(change: Change, figures: int, rule: Rule) -> str:
    """Limits of an undecided change, and the turns or nights to decide it."""
    low, high = change.interval(1 - 2 * rule.alpha)
    excluded = f"no loss above {1 - low:.0%}" if low < 1 - rule.limit else "no loss that matters"
    if low < MOST:
        excluded = "no loss is excluded"
    if 1 / (1 - rule.limit) < high < 1 / MOST:
        excluded += f", no gain above {high - 1:.0%}"
    in_turn = change.shared > 0
    blocks = "turns" if in_turn else "nights on each side"
    count = night_statistics.needed(change.scatter, in_turn, figures, rule)
    enough = f"{count} {blocks}" if count else f"more than {night_statistics.MOST_NIGHTS} {blocks}"
    text = f"{excluded}; {enough} would decide"
    if change.contradicted:
        seen = math.sqrt(change.scatter.night)
        text += f" (nights differ by {seen:.0%}, {rule.nights:.0%} is stated)"
    return text


# -- what a change is due to ----------------------------------------------------------------------


def _beside(drafts: Iterable[dict[str, Any]]) -> dict[tuple[str, str], Change]:
    """Changes of IOR and mdtest, by place and operation."""
    changes: dict[tuple[str, str], Change] = {}
    for draft in drafts:
        if is_benchmark(draft["subject"].producer):
            place = f"{draft['subject'].system}:{draft['subject'].partition}"
            changes.setdefault((place, draft["stream"] or ""), draft["change"])
    return changes


def _cause(
    draft: dict[str, Any], beside: dict[tuple[str, str], Change], rule: Rule
) -> tuple[str, str]:
    """Cause and reason, with other causes that cannot be told apart from it."""
    cause, why = _shown(draft, beside, rule)
    apart = _not_apart(draft)
    if apart and cause != NEIGHBOUR:
        cause = cause if cause == REPLICA else UNKNOWN
        why = "; ".join(filter(None, (f"not told apart from {apart}", why)))
    return cause, why


def _not_apart(draft: dict[str, Any]) -> str:
    """A drift or a single night that the change may be."""
    change: Change = draft["change"]
    before, after = draft["_sessions"]
    if change.shared and change.nights[0] == change.nights[1] == change.shared:
        return _in_order(draft["_rows"], "turn" if draft["turns"] else "night")
    sessions = (len(before) + len(after)) / 2
    word = "falling" if change.step < 0 else "rising"
    for side, name in ((before, "before"), (after, "after")):
        if night_statistics.drifting(side, change, sessions):
            return f"a drift: those {name} were {'already ' * (name == 'before')}{word}"
    return "what one night does: there is one night after" if change.nights[1] == 1 else ""


def _shown(
    draft: dict[str, Any], beside: dict[tuple[str, str], Change], rule: Rule
) -> tuple[str, str]:
    subject: Subject = draft["subject"]
    if is_benchmark(subject.producer):
        return STORAGE, f"{subject.producer} itself measures the storage"
    moved = _moved(draft["_rows"], draft["_operation"], rule)
    if moved:
        return NEIGHBOUR, moved
    name = "the canary"
    storage_change = _canary(draft["_rows"], draft["_operation"], draft["turns"], rule)
    if storage_change is None:
        place = f"{subject.system}:{subject.partition}"
        name, storage_change = "IOR", beside.get((place, draft["_operation"]))
    if storage_change is None:
        return UNKNOWN, "no canary and no IOR ran on both sides; -S canary=1 adds one"
    return _by_canary(name, storage_change, draft["change"], rule)


def _by_canary(name: str, canary: Change, change: Change, rule: Rule) -> tuple[str, str]:
    """Half of the loss (of the logarithm) is the border: a canary that surely lost more moved as
    the replica did, and one that surely lost less did not."""
    half = math.sqrt(change.ratio)
    low, high = canary.interval()
    fell = f"{canary.ratio - 1:+.0%}".replace("-", "\N{MINUS SIGN}")
    down = change.ratio < 1
    verb = "fell" if down else "rose"
    more = high < half if down else low > half
    less = low > half if down else high < half
    if more:
        return STORAGE, f"{name} {verb} by as much ({fell}): storage"
    if less and (high < 1 - rule.effect if down else low > 1 / (1 - rule.effect)):
        return STORAGE, f"{name} {verb} as well ({fell}), but by less: storage, at least in part"
    if less:
        return REPLICA, f"only the replica {verb}, {name} did not ({fell}): library or layout"
    return UNKNOWN, f"{name} ({fell}) does not tell whether it is the storage"


def _canary_sessions(rows: Iterable[Row], operation: str) -> dict[str, list[Session]]:
    """By program: the rates of each session, before and after the runs together."""
    sessions_by_program: dict[str, dict[tuple[int, str], list[float]]] = {}
    for row in sorted(rows, key=lambda row: (row.block, row.time)):
        for canary in row.canary:
            for rate in canary["rates"]:
                if rate["operation"] == operation and rate["value"] > 0:
                    sessions = sessions_by_program.setdefault(canary["program"], {})
                    sessions.setdefault((row.block, row.session), []).append(rate["value"])
    return {
        program: [Session(night=n, values=tuple(v)) for (n, _), v in sessions.items()]
        for program, sessions in sessions_by_program.items()
    }


def _canary(
    sides: Sequence[Iterable[Row]], operation: str, turns: bool, rule: Rule
) -> Change | None:
    """Programs are never compared with each other."""
    before, after = (_canary_sessions(side, operation) for side in sides)
    for program in sorted(before.keys() & after.keys()):
        change = night_statistics.measure(before[program], after[program], rule)
        return change if change.shared or not turns else None
    return None


def _moved(sides: Sequence[Iterable[Row]], operation: str, rule: Rule) -> str | None:
    """Text if the canary moved within the jobs after, by more than twice the limit and twice what
    it did before; else None."""
    moves = []
    for side in sides:
        run_changes = []
        for row in side:
            rates = {
                canary["when"]: rate["value"]
                for canary in row.canary
                for rate in canary["rates"]
                if rate["operation"] == operation and rate["value"] > 0
            }
            if len(rates) == 2:
                run_changes.append(abs(math.log(rates["after"] / rates["before"])))
        moves.append(median(run_changes) if run_changes else 0.0)
    if moves[1] > 2 * max(-math.log1p(-rule.limit), moves[0]):
        return (
            f"the canary moved within the job by {math.expm1(moves[1]):.0%} "
            f"(before: {math.expm1(moves[0]):.0%}): noisy neighbour"
        )
    return None


# -- conditions -----------------------------------------------------------------------------------


def differences(before: runs.Condition, after: runs.Condition, across: Sequence[str] = ()) -> str:
    """In which keys two conditions differ, besides those of --across: key: value before, value
    after."""
    first, second = runs.differences([before, after])
    keys = [key for key in first if not below(key, across)]
    told = [f"{key}: {_short(first[key])} before, {_short(second[key])} after" for key in keys]
    more = f"; and {len(keys) - SHOWN_KEYS} more keys" if len(keys) > SHOWN_KEYS else ""
    return "; ".join(told[:SHOWN_KEYS]) + more


def _short(value: Any) -> str:
    text = "nothing" if value is None else schema.canonical(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def apart(before: Sequence[float], after: Sequence[float]) -> str:
    """Text if all values after lie on one side of all before; else empty."""
    if min(len(before), len(after)) < 2:
        return ""
    below, above = max(after) < min(before), min(after) > max(before)
    if not below and not above:
        return ""
    where = "below" if below else "above"
    return f"all {len(after)} after lie {where} all {len(before)} before"


def parse_share(text: str, name: str) -> float:
    """A fraction of 10%, 10 % or 0.1."""
    try:
        number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        number = math.nan
    if not 0 < number < 1:
        raise UnderstudyError(f"{name} {text}: expected a share such as 10%")
    return number
