"""Role of a stream, inferred from its files, and its confidence.

A log does not say which files hold the state of the application. Three signs speak for a
checkpoint: the same names are written again and again, files of these names are also read, and all
ranks write as much as in the largest dumps. Files that are appended to, and files that are smaller
and written more often than the largest ones, are history (`visualization`). `understudy describe
--role` lets a person decide.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from understudy.contracts.workload import Provenance, Workload
from understudy.errors import UnderstudyError
from understudy.inference import constants as levels
from understudy.inference.streams.stream_grouping import Draft
from understudy.program.descriptor import schema

SMALL = levels.SMALL  # share of the largest dump below which a stream does not hold the state
LARGE = levels.HALF  # share of the largest dump from which on it can
ALIKE = levels.TIMES  # factor by which what is read at the start may differ from a checkpoint
MOST = 1 - levels.PART  # share of the ranks that count as all
ORIGIN = {"likely": "reconstructed", "guess": "assumed"}


@dataclass(frozen=True, slots=True)
class Role:
    """A role, its confidence (`likely` or `guess`) and the reason."""

    name: str
    confidence: str
    how: str

    def provenance(self, stream: int) -> Provenance:
        """The entry for the role of the stream of that number."""
        return Provenance(
            path=f"/streams/{stream}/role",
            origin=ORIGIN[self.confidence],
            confidence=self.confidence,
            how=self.how,
        )


class Roles:
    """The roles of the streams of one log, which are judged against each other."""

    def __init__(self, drafts: Sequence[Draft], ranks: int) -> None:
        self._ranks = ranks
        self._written = [d for d in drafts if d.write]
        self._names_written = _names(self._written)
        self._names_read = _names(d for d in drafts if not d.write)
        self._largest = max(map(_size, self._written), default=0)
        large = [d for d in self._written if _size(d) >= LARGE * self._largest]
        self._first_s = min((d.start_s(0) for d in large), default=0.0)

    def of(self, draft: Draft) -> Role:
        """The role of a stream."""
        return self._of_written(draft) if draft.write else self._of_read(draft)

    @staticmethod
    def of_flood(write: bool, dumps: int) -> str:
        """The role of very many small files."""
        return ("checkpoint" if dumps > 1 else "output") if write else "input"

    def _of_written(self, draft: Draft) -> Role:
        small = _size(draft) < SMALL * self._largest
        if draft.files in ("rewrite", "update"):
            if small:
                return Role("output", "guess", "small files, written again and again")
            how = "the same files are written again and again, as restart files are"
            return Role("checkpoint", "likely", how)
        if draft.files == "append":
            if small:
                return Role("output", "guess", "little is appended to files that stay open")
            return Role("visualization", "likely", "time steps are appended to files")
        if _names([draft]) & self._names_read and not small:
            return Role("checkpoint", "likely", "files of these names are read in the same run")
        if draft.dumps == 1:
            return Role("output", "guess", "files that are written once")
        if small:
            how = "dumps are smaller than 1 % of the largest"
            return Role("visualization", "likely", how)
        if any(n < draft.dumps and s >= 2 * _size(draft) for n, s in self._repeated.items()):
            how = "files are smaller than others and written more often"
            return Role("visualization", "likely", how)
        if self._all_ranks(draft) and _size(draft) >= LARGE * self._largest:
            how = "all ranks write new files, as large as any, in each dump"
            return Role("checkpoint", "likely", how)
        return Role("checkpoint", "guess", "new files in each dump")

    def _of_read(self, draft: Draft) -> Role:
        if _names([draft]) & self._names_written:
            return Role("restart", "likely", "files of these names are also written in the run")
        alike = self._largest < ALIKE * _size(draft) < ALIKE**2 * self._largest
        if alike and draft.start_s(0) <= self._first_s:
            how = "read before the first large dump is written, and about as large"
            return Role("restart", "guess", how)
        return Role("input", "guess", "no files of these names are written")

    @cached_property
    def _repeated(self) -> dict[int, float]:
        """The largest size of streams of several dumps of new files, by the number of dumps."""
        largest: dict[int, float] = {}
        for draft in self._written:
            if draft.dumps > 1 and draft.files != "append":
                largest[draft.dumps] = max(largest.get(draft.dumps, 0.0), _size(draft))
        return largest

    def _all_ranks(self, draft: Draft) -> bool:
        """True if most ranks write, of more than one."""
        wrote: set[int] = set()
        for series in draft.series:
            for cell in series.dumps[0].cells.values():
                if cell.shared_bytes:
                    return self._ranks > 1
                if cell.rank_bytes is not None:
                    if len(cell.rank_bytes) < self._ranks:  # blocks of ranks
                        return bool(
                            np.count_nonzero(cell.rank_bytes) >= MOST * len(cell.rank_bytes)
                        )
                    wrote.update(np.flatnonzero(cell.rank_bytes).tolist())
        return self._ranks > 1 and len(wrote) >= MOST * self._ranks


def _size(draft: Draft) -> float:
    """Bytes of a dump."""
    return draft.dump_bytes


def _names(drafts: Iterable[Draft]) -> frozenset[bytes]:
    """Templates of the names of their files."""
    return frozenset(t for d in drafts for t in d.templates if t)


# -- what a person decides ------------------------------------------------------------------------


def known() -> tuple[str, ...]:
    """All roles."""
    return tuple(schema()["$defs"]["stream"]["properties"]["role"]["enum"])


def decided(workload: Workload, roles: Mapping[str, str]) -> Workload:
    """The workload with the roles that a person gives some streams, by name, which they keep.

    Raises UnderstudyError, which lists the streams, where one of that name is missing.
    """
    names = [s.name for s in workload.streams]
    for name in roles:
        if name not in names:
            raise UnderstudyError(f"no stream {name!r}, expected one of {', '.join(names)}")
    return replace(
        workload,
        streams=tuple(replace(s, role=roles.get(s.name, s.role)) for s in workload.streams),
        provenance=(
            *workload.provenance,
            *(
                Provenance(
                    path=f"/streams/{names.index(name)}/role",
                    origin="assumed",
                    confidence="certain",
                    how="decided by a person with --role",
                )
                for name in roles
            ),
        ),
    )
