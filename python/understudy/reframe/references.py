"""Files of references (configs/references/), as far as ReFrame does not read them itself."""

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from understudy.paths import files


@cache
def file_of(system: str) -> Path | None:
    """The file of references of a system, ours or a user's."""
    return files("references", ".yaml").get(system)


@cache
def read(path: Path) -> dict[str, Any]:
    """A file of references, by the checks that it is about."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        sys.exit(f"understudy: {path}: cannot be read: {' '.join(str(error).split())}")
    if not isinstance(found, dict):
        sys.exit(f"understudy: {path}: expected a section for each check")
    return {str(check): section for check, section in found.items()}


def names(entries: Any) -> Iterator[str]:
    """The keys above the values of nested references."""
    for name, inner in entries.items() if isinstance(entries, dict) else ():
        if isinstance(inner, dict):
            yield from names(inner)
        else:
            yield str(name)
