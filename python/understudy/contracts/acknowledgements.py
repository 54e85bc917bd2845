"""Changes over time that somebody knows of (contract: schemas/acknowledgements.schema.json).

They stand in a file in the folder of records, which people may edit.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from understudy.contracts import human
from understudy.errors import UnderstudyError
from understudy.files import write_text

KIND = "acknowledgements"
FILE = "acknowledged.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """A change of a case that is known; `date` is that of the first session after it."""

    system: str
    case: str
    date: str
    by: str
    why: str


def load(folder: Path) -> list[Acknowledgement]:
    """Those of a folder of records, none where it has no such file."""
    path = folder / FILE
    if not path.exists() and not path.is_symlink():
        return []
    row, _ = human.load(path, KIND)
    return [Acknowledgement(**change) for change in row["changes"]]


def add(folder: Path, new: Sequence[Acknowledgement]) -> Path:
    """Write them after those that are there; what people wrote in the file stays where the list
    of changes is the end of it."""
    path = folder / FILE
    earlier = load(folder)
    head = (
        path.read_text(encoding="utf-8") if earlier else f"schema: understudy/{KIND}/1\nchanges:\n"
    )
    rows = list(map(asdict, new))
    text = f"{head.rstrip()}\n{_list(rows)}"
    try:
        whole = yaml.load(text, Loader=human.Loader)["changes"] == [*map(asdict, earlier), *rows]
    except yaml.YAMLError:
        whole = False
    if not whole:
        text = f"schema: understudy/{KIND}/1\nchanges:\n{_list([*map(asdict, earlier), *rows])}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnderstudyError(f"{folder}: cannot be created: {error.strerror}") from None
    write_text(path, text)
    return path


def _list(rows: Sequence[dict[str, str]]) -> str:
    return str(yaml.dump(rows, sort_keys=False, allow_unicode=True, width=90, Dumper=_Dumper))


class _Dumper(yaml.SafeDumper):
    """Quotes no more than our reader needs: dates are text there."""

    yaml_implicit_resolvers = human.Loader.yaml_implicit_resolvers
