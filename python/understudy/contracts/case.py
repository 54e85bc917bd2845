"""Applications that the check transfer runs (contract: schemas/case.schema.json)."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.contracts import schema
from understudy.errors import UnderstudyError
from understudy.paths import files

KIND = "case"


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """How an application is started, and what its replica is made from."""

    name: str
    description: str
    ranks: int
    command: tuple[str, ...]
    environment: dict[str, str]
    inputs: Path | None
    original: Path


def names() -> list[str]:
    """The files of the plugin directory applications/, and of users'."""
    return list(files("applications", ".json"))


def get(name: str) -> Application:
    """The application of that name."""
    return load(files("applications", ".json")[name])


def load(path: Path) -> Application:
    """The application of a file; what it names must exist."""
    row = schema.read(path, "description of an application")
    found = schema.kind_of(row, str(path))
    if found != KIND:
        raise UnderstudyError(
            f"{path}: schema: expected understudy/{KIND}/1, found {row['schema']}"
        )
    schema.check(row, str(path))
    inputs = path.parent / row["inputs"] if row["inputs"] is not None else None
    if inputs is not None and not inputs.is_dir():
        raise UnderstudyError(f"{path}: inputs: {inputs} is not a directory")
    original = path.parent / row["original"]
    if not original.is_file():
        raise UnderstudyError(f"{path}: original: {original} is not a file")
    made: dict[str, Any] = {key: row[key] for key in ("description", "ranks", "environment")}
    return Application(
        **made, name=path.stem, command=tuple(row["command"]), inputs=inputs, original=original
    )
