"""Tidy tables of any number of runs: one row for each sample.

docs/how-to/keep-records.md explains every column. A run that failed, or that has no samples, has
one row in which the columns of a sample are None, so that no count can lose it. CSV needs nothing
else; data frames and Parquet need polars, an extra of the package.
"""

import csv
import functools
import io
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.errors import UnderstudyError, one_line
from understudy.files import write_bytes
from understudy.records.index import RUN_COLUMNS, SAMPLE_COLUMNS, Index

if TYPE_CHECKING:
    import polars as pl

# What a table has of a run; the rest is in the index for other uses.
OF_RUN = {"file": "TEXT"} | {k: kind for k, kind in RUN_COLUMNS.items() if k != "canary"}
COLUMNS = OF_RUN | SAMPLE_COLUMNS
AT_ONCE = 50_000  # rows, of a piece of a data frame
_FAILED, _TAGS = list(COLUMNS).index("failed"), list(COLUMNS).index("tags")


def rows(index: Index, where: str = "1", values: Sequence[Any] = ()) -> Iterator[list[Any]]:
    """The values of COLUMNS, runs by time; `where` selects, see `Index.select`."""
    names = ", ".join(f'"{name}"' for name in SAMPLE_COLUMNS)
    sql = f"SELECT {names} FROM samples WHERE number = ? ORDER BY rowid"
    none = [[None] * len(SAMPLE_COLUMNS)]
    for number, *run in index.select(["number", *OF_RUN], where, values):
        run[_FAILED], run[_TAGS] = bool(run[_FAILED]), json.loads(run[_TAGS] or "[]")
        for sample in index.connection.execute(sql, (number,)).fetchall() or none:
            yield [*run, *sample]


def of_samples(index: Index, where: str = "1", values: Sequence[Any] = ()) -> "pl.DataFrame":
    """The table as a data frame, see `rows`."""
    try:
        import polars as pl
    except ImportError:
        raise UnderstudyError(
            "polars: not installed; data frames and Parquet need it (the extra or Spack variant "
            "'polars' of understudy); CSV does not"
        ) from None
    kinds = {"TEXT": pl.String, "INTEGER": pl.Int64, "REAL": pl.Float64}
    schema: dict[str, Any] = {name: kinds[kind] for name, kind in COLUMNS.items()}
    schema |= {"failed": pl.Boolean, "tags": pl.List(pl.String)}
    sample_rows, pieces = rows(index, where, values), [pl.DataFrame(schema=schema)]
    while piece := list(itertools.islice(sample_rows, AT_ONCE)):
        pieces.append(pl.DataFrame(piece, schema=schema, orient="row"))
    return pl.concat(pieces).with_columns(
        pl.col("time").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC", strict=False),
        pl.col("metric", "unit", "better", "stream").cast(pl.Categorical),
    )


@functools.lru_cache(maxsize=10_000)
def _cell(text: str) -> str:
    """Without control characters, with escapes in their place, and no formula."""
    return re.sub(r"^([=+\-@])", r"'\1", one_line(text))


def write(index: Index, path: Path, where: str = "1", values: Sequence[Any] = ()) -> None:
    """Write the table as .parquet or .csv, whole or not at all. In CSV, tags are separated by
    blanks, and text that a spreadsheet would take for a formula begins with an apostrophe."""
    if path.suffix == ".parquet":
        buffer = io.BytesIO()
        of_samples(index, where, values).write_parquet(buffer)
        write_bytes(path, buffer.getvalue())
    elif path.suffix == ".csv":
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(COLUMNS)
        for row in rows(index, where, values):
            row[_FAILED], row[_TAGS] = str(row[_FAILED]).lower(), " ".join(row[_TAGS])
            lines.writerow(_cell(value) if isinstance(value, str) else value for value in row)
        write_bytes(path, text.getvalue().encode())
    else:
        raise UnderstudyError(f"{path}: expected a name that ends with .parquet or .csv")
