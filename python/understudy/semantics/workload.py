"""The workload: what it says, and its text."""

from dataclasses import dataclass

from understudy.errors import UnderstudyError
from understudy.semantics.descriptor import as_text, plain
from understudy.semantics.instructions import program_text
from understudy.semantics.types import KEYS, Described


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(Described):
    """A workload, which is written as its program."""

    def to_text(self) -> str:
        """The descriptor as JSON text, one line per instruction."""
        return program_text(self)

    def to_keys(self) -> str:
        """The same as keys (understudy/workload/2), one line per variable. An `UnderstudyError`
        where these cannot say it."""
        if any(stream.tree for stream in self.streams):
            raise UnderstudyError(f"{self.name}: calls of the system have no keys")
        row = {"schema": KEYS, **plain(self)}
        row["scaling"] = row["scaling"] or {"rule": "none", "from_ranks": self.ranks}
        return as_text(row)
