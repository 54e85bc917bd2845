"""Give a workload another layout: the same bytes in one file, in a file for each group, or each
process."""

from dataclasses import replace

from understudy.contracts.workload import Provenance, Workload
from understudy.errors import UnderstudyError
from understudy.program.instructions import (
    ALL_RANKS,
    EACH_GROUP,
    EACH_RANK,
    Instruction,
    Move,
    Stream,
)

SHARED, GROUPED, OWN = "shared", "grouped", "file-per-process"

OWNERS = {SHARED: ALL_RANKS, GROUPED: EACH_GROUP, OWN: EACH_RANK}


def with_layout(workload: Workload, layout: str, groups: int) -> Workload:
    """The workload with that layout of all its streams, which stay what they are otherwise.

    `groups` counts for the layout grouped. An UnderstudyError where a stream has no such layout:
    floods of files, and files whose parts depend on who writes them.
    """
    streams = []
    for stream in workload.streams:
        if stream.layout not in (SHARED, GROUPED, OWN) or stream.takes_turns:
            what = "takes turns" if stream.takes_turns else f"has the layout {stream.layout}"
            raise UnderstudyError(f"{stream.name} {what}, which cannot become {layout}")
        owners, many = OWNERS[layout], {SHARED: 1, GROUPED: groups, OWN: workload.ranks}[layout]
        files = replace(stream.set, owner=owners, groups=many)
        streams.append(replace(stream if layout != OWN else _alone(stream), set=files))
    how = f"layout {layout} asked for"
    return replace(
        workload,
        name=f"{workload.name[:80]}-{layout}",
        streams=tuple(streams),
        provenance=(
            *workload.provenance,
            *(
                Provenance(path=f"/streams/*/{key}", origin="assumed", how=how)
                for key in ("layout", "groups", "collective")
            ),
        ),
    )


def _alone(stream: Stream) -> Stream:
    """The stream without collective calls."""

    def of(instruction: Instruction) -> Instruction:
        return (
            replace(instruction, collective=False)
            if isinstance(instruction, Move)
            else instruction
        )

    return stream.mapped(of)
