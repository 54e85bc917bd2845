"""What a log counted of some files: the counters that a description of these is held against.

Files are known by the templates of their names. Counters are those that can be predicted for a
workload (`understudy.semantics.counters`), summed over the records.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.inference.known_files import lookup
from understudy.inference.names import Templates
from understudy.inference.table import Rows
from understudy.semantics.counters import COUNTERS

Whole = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint64]
_NAME = np.dtype([("file", "u8"), ("template", "i4")])
MAX_FILES = 16_384  # of a log whose counters are kept by template


@dataclass(slots=True)
class Evidence:
    """The counters of some files by module, how many files there are, and their bytes on storage
    (0: unknown)."""

    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    files: int = 0
    stored: int = 0


class Records:
    """The counters of the records of a log by template and module, if the log has at most as many
    `files` as are worth it. Names are added first, then records, then accesses."""

    def __init__(self, templates: Templates, files: int) -> None:
        self._templates = templates
        self._kept = files <= MAX_FILES
        self._names: list[Rows] = []
        self._sums: dict[str, Whole] = {}  # [templates, counters]
        self._seen: list[Ids] = []  # files of records, sorted
        self._stored: Whole = np.zeros(0, np.int64)

    def name(self, rows: Rows) -> None:
        """Add names, which have the index of their template."""
        if self._kept:
            self._names.append(rows[["file", "template"]].astype(_NAME))

    def add(self, module: str, block: Any) -> None:
        """Add records."""
        if not self._kept or module not in COUNTERS:
            return
        ids = block["file_rec_id" if module == "H5D" else "id"]
        known, place = lookup(self._known["file"], ids)
        template = self._known["template"][place[known]]
        self._seen.append(np.unique(ids[known][template > 0]))
        counters = COUNTERS[module]
        sums = self._sums.setdefault(module, np.zeros((len(self._stored), len(counters)), "i8"))
        for k, name in enumerate(counters):
            if name in block.dtype.names:
                np.add.at(sums[:, k], template, np.maximum(block[name][known], 0))

    def store(self, rows: Rows) -> None:
        """Add the sizes of files."""
        if self._kept:
            np.add.at(self._stored, rows["template"], rows["extent"])

    @cached_property
    def _known(self) -> Rows:
        """The names in order of files; the template of those that do not count is 0."""
        names = np.concatenate([np.zeros(0, _NAME), *self._names])
        names = names[np.argsort(names["file"], kind="stable")]
        usual = self._templates.meaningful()[names["template"]]
        names["template"] = np.where(names["template"] < 0, 0, usual)
        self._stored = np.zeros(len(self._templates.names), np.int64)
        return names

    @cached_property
    def _index(self) -> dict[bytes, int]:
        return {name: n for n, name in enumerate(self._templates.names)}

    @cached_property
    def _files(self) -> Whole:
        """How many files have records, by template."""
        seen = np.unique(np.concatenate(self._seen))
        template = self._known["template"][lookup(self._known["file"], seen)[1]]
        return np.bincount(template, minlength=len(self._stored))

    def of(self, templates: Iterable[bytes]) -> Evidence:
        """The counters of all files with names of these templates."""
        which = [n for name in templates if (n := self._index.get(name, 0))]
        if not which or not self._sums:
            return Evidence()
        return Evidence(
            counters={
                module: dict(zip(COUNTERS[module], sums[which].sum(axis=0).tolist(), strict=True))
                for module, sums in self._sums.items()
                if sums[which].any()
            },
            files=int(self._files[which].sum()),
            stored=int(self._stored[which].sum()),
        )
