"""Tidy tables of any number of runs, in polars: one row for each run, or for each sample.

docs/how-to/keep-records.md explains every column. A run that failed, or that has no samples, has
one row in which the columns of a sample are null, so that no count can lose it.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from understudy.errors import UnderstudyError, one_line
from understudy.files import write_bytes
from understudy.records.index import RUN_COLUMNS, SAMPLE_COLUMNS, Index

if TYPE_CHECKING:
    import polars as pl

# What a table has of a run; the rest is in the index for other uses.
OF_RUN = [name for name in RUN_COLUMNS if name != "canary"]
TEXT_CATEGORIES = ("metric", "unit", "better", "stream")


def of_runs(index: Index, where: str = "1", values: Sequence[Any] = ()) -> "pl.DataFrame":
    """One row for each run, by time, with its file; `where` selects, see `Index.select`."""
    import polars as pl

    columns = ["number", "file", *OF_RUN]
    kinds = {"number": "INTEGER", "file": "TEXT"} | RUN_COLUMNS
    rows = list(index.select(columns, where, values))
    made = pl.DataFrame(rows, schema={c: _type(kinds[c]) for c in columns}, orient="row")
    return made.with_columns(
        pl.col("time").str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_zone="UTC", strict=False),
        pl.col("failed").cast(pl.Boolean),
        pl.col("tags").str.json_decode(pl.List(pl.String)),
    )


def of_samples(index: Index, where: str = "1", values: Sequence[Any] = ()) -> "pl.DataFrame":
    """One row for each sample of the runs that `where` selects, with all columns of its run."""
    import polars as pl

    found = of_runs(index, where, values)
    names = ", ".join(f'"{name}"' for name in SAMPLE_COLUMNS)
    sql = f"SELECT number, {names} FROM samples"
    if where != "1":
        sql += f" WHERE number IN (SELECT number FROM runs WHERE {where})"
        cursor = index.connection.execute(sql, values)
    else:
        cursor = index.connection.execute(sql)
    schema = {"number": pl.Int64} | {c: _type(k) for c, k in SAMPLE_COLUMNS.items()}
    pieces = []
    while rows := cursor.fetchmany(250_000):
        columns = list(zip(*rows, strict=True))
        pieces.append(pl.DataFrame(dict(zip(schema, columns, strict=True)), schema=schema))
    samples = pl.concat(pieces) if pieces else pl.DataFrame(schema=schema)
    samples = samples.with_columns(pl.col(*TEXT_CATEGORIES).cast(pl.Categorical))
    return found.join(samples, on="number", how="left", maintain_order="left").drop("number")


def _type(kind: str) -> Any:
    import polars as pl

    return {"TEXT": pl.String, "INTEGER": pl.Int64, "REAL": pl.Float64}[kind]


def _printable(column: "pl.Series") -> "pl.Series":
    """Text without control characters, with escapes in their place."""
    odd = column.unique().drop_nulls()
    odd = odd.filter(odd.str.contains(r"[\p{C}\p{Zl}\p{Zp}]"))
    return column.replace(odd, odd.to_list() and [one_line(text) for text in odd])


def write(made: "pl.DataFrame", path: Path) -> None:
    """Write a table as .parquet or .csv, whole or not at all. In CSV, tags are separated by
    blanks, and text that a spreadsheet would take for a formula begins with an apostrophe."""
    import polars as pl

    buffer = io.BytesIO()
    if path.suffix == ".parquet":
        made.write_parquet(buffer)
    elif path.suffix == ".csv":
        flat = made.with_columns(pl.col("tags").list.join(" "), pl.col(pl.Categorical).cast(str))
        flat = flat.with_columns(_printable(flat[name]) for name, kind in flat.schema.items()
                                 if kind == pl.String)  # fmt: skip
        flat = flat.with_columns(pl.col(pl.String).str.replace(r"^([=+\-@\t\r])", "'$1"))
        flat.write_csv(buffer)
    else:
        raise UnderstudyError(f"{path}: expected a name that ends with .parquet or .csv")
    write_bytes(path, buffer.getvalue())
