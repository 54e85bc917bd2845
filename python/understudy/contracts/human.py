"""Contracts that people write: YAML of the version 1 of a schema, read as strictly as JSON."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from understudy.contracts import schema, strict
from understudy.errors import Mistakes, UnderstudyError
from understudy.files import read_bytes, read_text

MAX_BYTES = 1 << 20  # of a file: longer ones are refused


class _Once(yaml.constructor.BaseConstructor):
    """Refuses a key that stands twice in a map."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if str(key.value) in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"key {key.value!r} stands twice", problem_mark=key.start_mark
                )
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)


class TextLoader(_Once, yaml.BaseLoader):
    """YAML whose values are all texts, and in which a key stands once."""


class Loader(_Once, yaml.SafeLoader):
    """YAML whose dates stay text, and in which a key stands once."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


Steps = tuple[str | int, ...]  # keys and indices down to a value


def load(path: Path, kind: str) -> tuple[dict[str, Any], bytes]:
    """Return the content of a file of the contract `kind`, and its bytes; an UnderstudyError names
    the file, the keys and what was expected."""
    row, data, faults = read(path, kind)
    if faults:
        raise mistakes(path, row, faults)
    return row, data


def mistakes(path: Path, row: dict[str, Any], faults: list[tuple[Steps, str]]) -> Mistakes:
    """The error of a file with these mistakes."""
    return Mistakes([f"{path}: {_place(row, steps)}: {message}" for steps, message in faults])


def _place(row: dict[str, Any], steps: Steps) -> str:
    """Where a value stands; what is in a list by its number, counted from 1, and its name."""
    if len(steps) < 2 or not isinstance(steps[1], int):
        return ".".join(map(str, steps)) or "top level"
    item = row[str(steps[0])][steps[1]]
    name = item.get("name") if isinstance(item, dict) else None
    number = f"{str(steps[0]).removesuffix('s')} {steps[1] + 1}"
    number += f" ({name[:60]})" if isinstance(name, str) else ""
    return ": ".join(filter(None, (number, ".".join(map(str, steps[2:])))))


def read(path: Path, kind: str) -> tuple[dict[str, Any], bytes, list[tuple[Steps, str]]]:
    """Return a file of the contract `kind`, its bytes, and what its schema does not allow."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UnderstudyError(f"{path}: longer than {MAX_BYTES} B")
        data = read_bytes(path)
        text = data.decode("utf-8")
        for event in events(text, str(path)):
            if isinstance(event, yaml.AliasEvent):
                raise UnderstudyError(f"{path}: alias *{event.anchor}: expected the value itself")
        row = yaml.load(text, Loader=Loader)
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnderstudyError(f"{path}: not UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f" at line {mark.line + 1}" if mark else ""
        raise UnderstudyError(f"{path}: not YAML: {error.problem}{line}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UnderstudyError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(row, dict):
        raise UnderstudyError(f"{path}: top level: expected keys and values")
    _plain(row, str(path))
    stated = row.get("schema")
    if stated != f"understudy/{kind}/1":
        shown = "nothing" if stated is None else repr(stated)[:60]
        raise UnderstudyError(f"{path}: schema: expected understudy/{kind}/1, found {shown}")
    return row, data, schema.mistakes(row, str(path))


def events(text: str, where: str) -> Iterator[Any]:
    """The events of a text of YAML. An UnderstudyError where it is nested deeper than a contract:
    PyYAML reads that in a time that grows with the square of the depth."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > strict.MAX_DEPTH:
            raise UnderstudyError(f"{where}: {strict.TOO_DEEP}")
        yield event


def loaded(path: Path, loader: Any) -> Any:
    """Return the content of a YAML file that is no contract. Raises OSError, UnicodeDecodeError,
    YAMLError, or an UnderstudyError where it is nested too deep."""
    text = read_text(path)
    for _ in events(text, str(path)):
        pass
    return yaml.load(text, loader)


def _plain(row: Any, where: str) -> None:
    """Refuse what YAML has and JSON has not."""
    try:
        text = schema.json_text(row)
    except (TypeError, ValueError, RecursionError):
        raise UnderstudyError(
            f"{where}: expected text, numbers, true, false, lists, and keys that are text"
        ) from None
    strict.decode(text, where)
