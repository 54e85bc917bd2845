"""Effect of the page cache on a run: what it can have served, and what would make storage serve
it."""

from collections.abc import Container, Iterator
from typing import Any

from understudy.contracts.measurement import Benchmark, Measurement, Played
from understudy.contracts.run import Run
from understudy.judge.statistics.conditions import RESTART_SUFFIX
from understudy.units import size

IN_MEMORY = ("tmpfs", "ramfs")
ACCEPT = "as --mode accept does"
FLUSH = f"flush what is written, {ACCEPT} (-S fsync=1)"
DROP = f"drop the pages before they are read back, {ACCEPT} (-S restart=1 -S drop_cache=1)"
AROUND = "read around the cache (-S method_options={}.direct=read)"
DIRECT = ("posix", "uring")  # methods with an option `direct`


def may_serve(measurement: Measurement, node_memory_bytes: int) -> dict[str, str]:
    """The streams, or the operations of a benchmark, whose bandwidth may be that of memory, and
    what would make it that of storage.

    A write may end in the page cache if it is neither flushed within the timed region nor direct,
    a read may be served by it if the pages were not dropped, it is not direct, and its rank may
    run where the bytes were written; both only as far as the bytes of a node fit into its memory.
    """
    nodes = max(1, len(measurement.environment.nodes))
    limit = node_memory_bytes * nodes
    if isinstance(measurement, Played):
        return dict(_of_player(measurement, limit, nodes))
    if isinstance(measurement, Benchmark):
        return dict(_of_benchmark(measurement, limit, nodes))
    return {}


def volume(measurement: Measurement, names: Container[str]) -> int | None:
    """Bytes that a repetition moves in the streams, or a benchmark in an operation, of these
    names; None where that is not known."""
    if isinstance(measurement, Benchmark):
        block = measurement.options.get("blockSize")
        segments = int(measurement.options.get("segmentCount", 1))
        return None if block is None else int(block) * segments * measurement.environment.ranks
    if isinstance(measurement, Played):
        return sum(s.bytes for s in measurement.repetitions[0].streams if s.name in names)
    return None


def memory_of_nodes(run: Run, measurement: Measurement) -> int | None:
    """Memory of all nodes of a run; None where the record does not state it."""
    if run.cache is None:
        return None
    return int(run.cache["node_memory_bytes"]) * max(1, len(measurement.environment.nodes))


def remedies(run: Run, measurement: Measurement, names: Container[str]) -> str:
    """Remedies for the streams or operations of these names that the cache may have served; empty
    where it cannot. Computed anew: a record's own may be of an earlier version, or edited."""
    if run.cache is None:
        return ""
    remedies_by_name = may_serve(measurement, int(run.cache["node_memory_bytes"]))
    return "; ".join(
        dict.fromkeys(remedies_by_name[name] for name in remedies_by_name if name in names)
    )


def _more(limit: int) -> str:
    return f"move at least {size(limit)}, the memory of all nodes"


def _of_player(played: Played, limit: int, nodes: int) -> Iterator[tuple[str, str]]:
    options = played.options
    described = {stream.name: stream for stream in played.workload.streams}
    on_a_node = -(-played.environment.ranks // nodes)
    elsewhere = nodes > 1 and options.get("shift_ranks", 0) % played.environment.ranks >= on_a_node
    method_options = options.get("method_options", {})
    for stream in played.repetitions[0].streams:
        restart = stream.name.endswith(RESTART_SUFFIX) and stream.name not in described
        if stream.bytes == 0 or stream.bytes >= limit:
            continue
        described_stream = described.get(stream.name.removesuffix(RESTART_SUFFIX))
        has_direct = stream.method in DIRECT
        is_direct = bool(described_stream and described_stream.open.direct) and has_direct
        direct = method_options.get(f"{stream.method}.direct", "no") if has_direct else "no"
        if stream.operation == "write":
            stored = (
                options.get("fsync")
                or stream.sync
                or bool(described_stream and described_stream.open.write_through)
            )
            safe = stored or is_direct or direct == "yes"
            remedy = FLUSH
        else:
            safe = (
                direct in ("read", "yes")
                or is_direct
                or (restart and (options.get("drop_cache") or elsewhere))
            )
            remedy = DROP if restart else _more(limit)
            if not restart and has_direct:
                remedy = f"{AROUND.format(stream.method)}, or {remedy}"
        if not safe and played.storage.get("type") not in IN_MEMORY:
            yield stream.name, remedy


def _of_benchmark(measured: Benchmark, limit: int, nodes: int) -> Iterator[tuple[str, str]]:
    """Remedies for IOR: -e flushes writes, -C reads what another node wrote, if there is any."""
    options: dict[str, Any] = measured.options
    block = options.get("blockSize")
    if block is None:
        return
    ranks = measured.environment.ranks
    segments = int(options.get("segmentCount", 1))
    if int(block) * segments * ranks >= limit:
        return
    larger = f"write blocks of at least {size(-(-limit // (segments * ranks)))}"
    if not options.get("fsync"):
        yield "write", f"flush what is written (ior -e), or {larger}"
    if nodes == 1 or not options.get("reorderTasks"):
        apart = (
            "use at least 2 nodes"
            if options.get("reorderTasks")
            else ("use at least 2 nodes, of which one reads what another wrote (ior -C)")
        )
        yield (
            "read",
            (
                f"{apart}, {larger} (-S Ior.block_bytes), or drop the caches of the nodes before "
                "they read"
            ),
        )
