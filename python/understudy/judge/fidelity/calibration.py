"""Calibration of descriptions of logs: measured transfers of their replicas.

`applications/measured.csv` has a row for every case of the check `transfer`, failed and undecided
ones too; `benchmarks/transfers.py` writes it.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from understudy.errors import UnderstudyError
from understudy.files import read_text
from understudy.judge.fidelity.transfer import OUTSIDE, UNDECIDED, WITHIN
from understudy.paths import where


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A replica on a storage: the share (0 to 1) of the log's I/O time that its description
    explained; the error of its I/O time, percent, with the interval, and that of the application
    against itself; the verdict on it; and the error of its time in metadata, with the share (0 to
    1) that this is of the application's I/O time. None: not measured."""

    application: str
    storage: str
    developed: bool  # with this application
    explained: float | None
    error: float | None
    low: float | None
    high: float | None
    control_low: float | None
    control_high: float | None
    verdict: str
    metadata_error: float | None = None
    metadata_share: float | None = None


def ours() -> list[Measured]:
    """The rows of our table; none where applications are not installed."""
    try:
        path = where("applications") / "measured.csv"
    except UnderstudyError:
        return []
    return load(path)


def load(path: Path) -> list[Measured]:
    """The rows of a table."""
    try:
        return [_row(row) for row in csv.DictReader(read_text(path).splitlines(keepends=True))]
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise UnderstudyError(f"{path}: cannot read the measured transfers: {error}") from None


def _row(row: dict[str, str]) -> Measured:
    def number(key: str) -> float | None:
        return float(row[key]) if row.get(key) else None

    return Measured(
        application=row["application"],
        storage=row["storage"],
        developed=row["developed"] == "yes",
        explained=number("explained"),
        error=number("error"),
        low=number("low"),
        high=number("high"),
        control_low=number("control_low"),
        control_high=number("control_high"),
        verdict=row["verdict"],
        metadata_error=number("metadata_error"),
        metadata_share=number("metadata_share"),
    )


def save(path: Path, rows: Sequence[Measured]) -> None:
    """Write a table; a number that is not known is empty."""
    names = list(Measured.__slots__)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(names)
        for row in rows:
            values = (getattr(row, name) for name in names)
            writer.writerow([_text(value) for value in values])


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)


def sentence(rows: Sequence[Measured]) -> str:
    """Accuracy of descriptions from counters, for applications that the describer was not
    developed with; empty where none was measured."""
    held_out = [row for row in rows if not row.developed]
    if not held_out:
        return ""
    count = {v: sum(r.verdict == v for r in held_out) for v in (WITHIN, OUTSIDE, UNDECIDED)}
    failed = len(held_out) - sum(count.values())
    more = [f"{count[UNDECIDED]} undecided", f"{failed} failed"]
    told = ", ".join(text for text in more if not text.startswith("0 "))
    programs = len({row.application for row in held_out})
    return (
        f"Of {len(held_out)} measured transfers of {programs} "
        f"{'program' if programs == 1 else 'programs'} that were held out and described from "
        f"counters, {count[WITHIN]} were within 10 % and {count[OUTSIDE]} were not"
        f"{f' ({told})' if told else ''}."
    )
