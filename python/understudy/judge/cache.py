"""What a run measured that need not have been storage: what the page cache can have served."""

from collections.abc import Iterator
from typing import Any

from understudy.contracts.measurement import Benchmark, Measurement, Played
from understudy.judge.conditions import RESTART_SUFFIX

IN_MEMORY = ("tmpfs", "ramfs")


def streams(measurement: Measurement, node_memory_bytes: int) -> list[str]:
    """The streams, or the operations of a benchmark, whose bandwidth may be that of memory.

    A write may end in the page cache if it is neither flushed within the timed region nor direct,
    a read may be served by it if the pages were not dropped, it is not direct, and its rank may
    run where the bytes were written; both only as far as the bytes of a node fit into its memory.
    """
    nodes = max(1, len(measurement.environment.nodes))
    limit = node_memory_bytes * nodes
    if isinstance(measurement, Played):
        return list(_of_player(measurement, limit, nodes))
    if isinstance(measurement, Benchmark):
        return list(_of_benchmark(measurement, limit, nodes))
    return []


def _of_player(played: Played, limit: int, nodes: int) -> Iterator[str]:
    options = played.options
    described = {stream.name: stream for stream in played.workload.streams}
    on_a_node = -(-played.environment.ranks // nodes)
    elsewhere = nodes > 1 and options.get("shift_ranks", 0) % played.environment.ranks >= on_a_node
    direct = str(options.get("method_options", {}).get("posix.direct", "no"))
    for stream in played.repetitions[0].streams:
        restart = stream.name.endswith(RESTART_SUFFIX) and stream.name not in described
        if stream.bytes == 0 or stream.bytes >= limit:
            continue
        own = described.get(stream.name.removesuffix(RESTART_SUFFIX))
        is_direct = bool(own and own.direct) and stream.method == "posix"
        if stream.operation == "write":
            stored = options.get("fsync") or stream.sync or bool(own and own.write_through)
            safe = stored or is_direct or (direct == "yes" and stream.method == "posix")
        else:
            asked = direct in ("read", "yes") and stream.method == "posix"
            safe = asked or is_direct or (restart and (options.get("drop_cache") or elsewhere))
        if not safe and played.storage.get("type") not in IN_MEMORY:
            yield stream.name


def _of_benchmark(measured: Benchmark, limit: int, nodes: int) -> Iterator[str]:
    """Of IOR: -e flushes writes, and -C reads what another node wrote, if there is another."""
    options: dict[str, Any] = measured.options
    block = options.get("blockSize")
    if block is None:
        return
    moved = int(block) * int(options.get("segmentCount", 1)) * measured.environment.ranks
    if moved >= limit:
        return
    if not options.get("fsync"):
        yield "write"
    if nodes == 1 or not options.get("reorderTasks"):
        yield "read"
