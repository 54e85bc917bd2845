"""Files of references (configs/references/): ReFrame reads the values. What it would leave out
with a warning, together with its check, ends the session here."""

import math
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from understudy.contracts import human
from understudy.errors import UnderstudyError
from understudy.paths import files

CLAIMS, INDEX, EXPECTED_TO_FAIL = "Claims", "$index", "$xfail"
EXPECTED = "[value, lower, upper, unit], numbers and a text; null where there is no bound"


@cache
def file_of(system: str) -> Path | None:
    """The file of references of a system, ours or a user's."""
    return files("references", ".yaml").get(system)


class _Loader(yaml.SafeLoader):
    """Refuses a key that is there twice; of those, the last would count."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            name = getattr(key, "value", None)
            if isinstance(name, str) and name in seen:
                raise yaml.YAMLError(f"line {key.start_mark.line + 1}: {name} is there twice")
            seen.add(str(name))
        return super().construct_mapping(node, deep)


@cache
def read(path: Path) -> dict[str, Any]:
    """A file of references, by the checks that it is about."""
    try:
        document = human.loaded(path, _Loader)
    except UnderstudyError as error:
        sys.exit(f"understudy: {error}")
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        sys.exit(f"understudy: {path}: cannot be read: {' '.join(str(error).split())}")
    if not isinstance(document, dict):
        sys.exit(f"understudy: {path}: expected a section for each check")
    sections = {str(check): section for check, section in document.items()}
    for check, section in sections.items():
        for fault in () if check == CLAIMS else _faults(check, section):
            sys.exit(f"understudy: {path}: {fault}")
    return sections


def _faults(key: str, entry: Any) -> Iterator[str]:
    """Faults of the references below a key, which may be nested by conditions."""
    if isinstance(entry, dict):
        for name, inner in entry.items():
            if name != INDEX:
                yield from _faults(f"{key}: {name}", inner)
        return
    values = entry
    if isinstance(entry, list) and entry[:1] == [EXPECTED_TO_FAIL]:
        values = entry[-1]
    if not _is_reference(values):
        said = f"{key}: expected {EXPECTED}; got {entry!r}"
        texts = isinstance(values, list) and any(isinstance(v, str) for v in values[:3])
        yield said + ("; YAML takes 1e9 for a text, and 1.0e+9 for a number" if texts else "")


def _is_reference(values: Any) -> bool:
    if not isinstance(values, list) or len(values) not in (3, 4):
        return False
    value, *bounds = values[:3]
    unit = values[3] if len(values) == 4 else ""
    bounded = all(bound is None or _is_number(bound) for bound in bounds)
    return _is_number(value) and bounded and isinstance(unit, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def names(entries: Any) -> Iterator[str]:
    """The keys above the values of nested references."""
    for name, inner in entries.items() if isinstance(entries, dict) else ():
        if isinstance(inner, dict):
            yield from names(inner)
        else:
            yield str(name)
