# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Does the replica write as many bytes as the descriptor states?"""

from reframe.core.builtins import run_before, variable

from understudy.contracts.workload import Stream
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.program.sizes import PLAIN, growth
from understudy.reframe.bases.played import Played, stream_of


class Volume(Played):
    """Volume of every stream and every dump, against the descriptor.

    Volume is the growth of the files, container included; of a read, and where the files are not
    known to grow, the payload. What a dump writes in the place of other bytes is none. Time steps
    of a file that stays open count by their payload, since a library may allocate for several at
    once; their stream counts by its files.
    """

    tolerance_percent = variable(float, value=100 * LIMIT_FRACTION, loggable=True)
    tolerance = variable(float, type(None), value=None)
    renamed = {"tolerance": "tolerance_percent"}

    @run_before("performance")
    def one_volume_per_dump(self) -> None:
        expected = {}
        self._in_place: dict[str, list[int]] = {}
        for stream in self.described.streams:
            name = stream.name
            self._in_place[name] = in_place = _in_place(stream)
            sizes = expected_sizes(stream, in_place)
            expected[f"{name}_bytes"] = sum(sizes)
            self.measure(f"{name}_bytes", "B", self._stream_bytes, name)
            for i, size in enumerate(sizes):
                expected[f"{name}_{i:03d}_bytes"] = size
                self.measure(f"{name}_{i:03d}_bytes", "B", self._dump_bytes, name, i)
        limit = self.tolerance_percent / 100
        self.reference = {"*": {k: (v, -limit, limit, "B") for k, v in expected.items()}}

    def _stream_bytes(self, name: str) -> int:
        return sum(self._volume(name, i) for i in range(len(self._in_place[name])))

    def _dump_bytes(self, name: str, index: int) -> int:
        return self._volume(name, index, payload=self.described.stream(name).grows)

    def _volume(self, name: str, index: int, payload: bool = False) -> int:
        """Growth of the dump's files; payload that is asked for, or where no growth is known."""
        dump = stream_of(self.played.repetitions[0], name).dumps[index]
        if payload or dump.file_bytes is None:
            return dump.bytes - self._in_place[name][index]
        return dump.file_bytes


def expected_sizes(stream: Stream, in_place: list[int]) -> list[int]:
    """Bytes by which the files of each dump grow. What they hold beyond the payload is the
    library's; of a file of plain bytes it is a hole, or bytes that were written again, and the
    replica makes neither."""
    plain = stream.method in PLAIN
    return [
        d.bytes - less + (0 if plain else d.overhead_bytes or 0)
        for d, less in zip(stream.expanded(), in_place, strict=True)
    ]


def _in_place(stream: Stream) -> list[int]:
    """Bytes that each dump writes over others."""
    moved = [dump.bytes for dump in stream.expanded()]
    new_bytes = [new for _, new in growth(stream)] or moved
    return [bytes_ - new for bytes_, new in zip(moved, new_bytes, strict=True)]
