# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Does the replica write as many bytes as the descriptor states?"""

from reframe.core.builtins import run_before, variable

from understudy.contracts.measurement import DumpResult
from understudy.judge.limits import LIMIT_FRACTION
from understudy.reframe.played import Played, stream_of


class Volume(Played):
    """Volume of every stream and every dump, against the descriptor.

    Volume is the growth of the files, container included. Time steps of a file that stays open
    count by their payload, since a library may allocate for several at once; their stream counts
    by its files.
    """

    tolerance_percent = variable(float, value=100 * LIMIT_FRACTION, loggable=True)
    tolerance = variable(float, type(None), value=None)
    renamed = {"tolerance": "tolerance_percent"}

    @run_before("performance")
    def one_volume_per_dump(self) -> None:
        expected = {}
        for stream in self.described.streams:
            sizes = [d.bytes + (d.overhead_bytes or 0) for d in stream.expanded()]
            expected[f"{stream.name}_bytes"] = sum(sizes)
            self.measure(f"{stream.name}_bytes", "B", self._stream_bytes, stream.name)
            for i, size in enumerate(sizes):
                expected[f"{stream.name}_{i:03d}_bytes"] = size
                self.measure(f"{stream.name}_{i:03d}_bytes", "B", self._dump_bytes, stream.name, i)
        limit = self.tolerance_percent / 100
        self.reference = {"*": {k: (v, -limit, limit, "B") for k, v in expected.items()}}

    def _stream_bytes(self, name: str) -> int:
        return sum(_volume(d) for d in stream_of(self.played.repetitions[0], name).dumps)

    def _dump_bytes(self, name: str, index: int) -> int:
        dump = stream_of(self.played.repetitions[0], name).dumps[index]
        return dump.bytes if self.described.stream(name).grows else _volume(dump)


def _volume(dump: DumpResult) -> int:
    """Growth of the dump's files; payload of a read, or where the method has no files."""
    return dump.bytes if dump.file_bytes is None else dump.file_bytes
