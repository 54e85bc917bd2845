"""Words that select runs: sessions, tags, campaigns, dates and ranges.

What they select is SQL on the columns of a run, with its values apart: nothing that a user types
becomes part of the text.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from understudy.errors import UnderstudyError
from understudy.records.index import Index

Where = tuple[str, tuple[Any, ...]]
ALL: Where = ("1", ())
FORM = "%Y-%m-%dT%H:%M:%SZ"
SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}
KINDS = ("session", "tag", "campaign")
_TIME = r"[1-9][0-9]{0,4}[hdw]|[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?Z?)?"


def both(*parts: Where) -> Where:
    """Runs that all parts select."""
    return " AND ".join(f"({sql})" for sql, _ in parts), tuple(v for _, vs in parts for v in vs)


def any_of(parts: Sequence[Where]) -> Where:
    """Runs that one of the parts selects; all, of none."""
    if not parts:
        return ALL
    return " OR ".join(f"({sql})" for sql, _ in parts), tuple(v for _, vs in parts for v in vs)


def equal(**columns: Any) -> Where:
    """Runs with these values; None demands nothing."""
    wanted = {name: value for name, value in columns.items() if value is not None}
    return both(ALL, *((f'"{name}" = ?', (value,)) for name, value in wanted.items()))


def begins(**columns: str | None) -> Where:
    """Runs whose values begin so; None demands nothing."""
    wanted = {name: value for name, value in columns.items() if value is not None}
    return both(
        ALL,
        *((f'substr("{name}", 1, ?) = ?', (len(value), value)) for name, value in wanted.items()),
    )


def session(word: str, index: Index) -> Where:
    """The session of that name, or the one that begins so."""
    rows = index.connection.execute(
        "SELECT DISTINCT session FROM runs WHERE session = ?1 OR (length(?1) >= 4 AND "
        "substr(session, 1, length(?1)) = ?1) ORDER BY session = ?1 DESC",
        (word,),
    ).fetchall()
    names = [name for (name,) in rows]
    if not names:
        raise UnderstudyError(f"{word}: no session is called so, or begins so")
    if names[0] != word and len(names) > 1:
        raise UnderstudyError(f"{word}: {len(names)} sessions begin so; expected more digits")
    return "session = ?", (names[0],)


def tag(word: str) -> Where:
    # Of a record that cannot be read, tags are null: then it is not known, instead of false.
    return (
        "iif(tags IS NULL, NULL, EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?))",
        (word,),
    )


def parse(word: str, index: Index) -> Where:
    """SQL condition for a word of the command line; `session:`, `tag:` and `campaign:` before it
    say what it is, where it could be several. An UnderstudyError where it selects no run."""
    where = _parsed(word, index)
    if not index.connection.execute(
        f"SELECT 1 FROM runs WHERE {where[0]} LIMIT 1", where[1]
    ).fetchone():
        raise UnderstudyError(
            f"{word}: selects no run; understudy records list shows what there is"
        )
    return where


def _parsed(word: str, index: Index) -> Where:
    kind, colon, rest = word.partition(":")
    if colon and kind in KINDS:
        if kind == "session":
            return session(rest, index)
        return tag(rest) if kind == "tag" else ("campaign = ?", (rest,))
    if is_time(word):
        return span(word)
    choices: dict[str, Where] = {}
    for name, where in (("tag", tag(word)), ("campaign", ("campaign = ?", (word,)))):
        if index.connection.execute(
            f"SELECT 1 FROM runs WHERE {where[0]} LIMIT 1", where[1]
        ).fetchone():
            choices[name] = where
    try:
        choices["session"] = session(word, index)
    except UnderstudyError as error:
        if "sessions begin so" in str(error) and not choices:
            raise
    if len(choices) > 1:
        clearer = " or ".join(f"{kind}:{word}" for kind in choices)
        raise UnderstudyError(f"{word}: is a {' and a '.join(choices)}; write {clearer}")
    if not choices:
        raise UnderstudyError(
            f"{word}: expected a session, a tag, a campaign, a date such as 2026-01-31, a range "
            "such as 2026-01-01..2026-01-31 or 14d..1d, or a file; understudy records list shows "
            "what there is"
        )
    [where] = choices.values()
    return where


def is_time(word: str) -> bool:
    """True if a word is a date, a time ago or a range of them."""
    return bool(re.fullmatch(rf"(?:{_TIME})?\.\.(?:{_TIME})?|{_TIME}", word)) and word != ".."


def span(word: str) -> Where:
    """SQL condition for a date (that day), a time ago (all since then) or a range (from its first
    to its last day); in UTC, as records have it."""
    first, dots, last = word.partition("..")
    if not dots and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", word):
        return "time >= ? AND time < ?", (start(word), end(word))
    parts: list[Where] = []
    if first:
        parts.append(("time >= ?", (start(first),)))
    if last:
        parts.append(("time < ?", (end(last),)))
    return both(*parts)


def start(text: str, where: str = "") -> str:
    """The time in UTC, as records have it; `where` begins messages."""
    return _time(text, where).strftime(FORM)


def end(text: str) -> str:
    """The same where it ends a range: a date is meant with its whole day."""
    day = timedelta(days=1) if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) else timedelta()
    return (_time(text) + day).strftime(FORM)


def _time(text: str, where: str = "") -> datetime:
    if match := re.fullmatch(r"([1-9][0-9]{0,4})([hdw])", text):
        ago = timedelta(seconds=int(match[1]) * SECONDS[match[2]])
        return datetime.now(timezone.utc) - ago
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"):
        try:
            return datetime.strptime(text.removesuffix("Z"), form)
        except (ValueError, OverflowError):
            continue
    raise UnderstudyError(f"{where}{text}: expected 14d, 36h, 8w or a date such as 2026-01-31")
