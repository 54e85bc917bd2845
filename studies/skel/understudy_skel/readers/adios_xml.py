"""ADIOS descriptors (adios-config XML): the output of an application, as a workload.

The descriptor names types and dimensions; the sizes come from parameters, a file as `understudy
skel params` makes it. The method becomes a point of method and layout (ADIOS' own library is the
method adios, which plays the same workload):

    POSIX         posix, a file per process
    MPI           mpiio, one shared file
    MPI_LUSTRE    mpiio, one shared file; at most block_size bytes a transfer
    MPI_AMR       mpiio, a file for each of num_aggregators groups of processes

Stripes are the file system's: the method parameters stand in the notes.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from understudy import __version__
from understudy.contracts.workload import (
    Decomposition,
    Dump,
    Pattern,
    Provenance,
    Source,
    Variable,
    Workload,
    identifier,
    streams_of,
)
from understudy.errors import UnderstudyError
from understudy.program import tilings
from understudy_skel import blocks, descriptor, identifiers, parameters
from understudy_skel.blocks import Blocks, GroupBlocks
from understudy_skel.descriptor import METHODS, Descriptor, Group
from understudy_skel.generate import Names, method_parameters
from understudy_skel.parameters import Parameters, Test
from understudy_skel.project import SETTINGS, application_of

KIND = "an ADIOS descriptor"
SUFFIXES = (".xml",)
STARTS = (b"<",)
OPTIONS = (
    click.option(
        "-n",
        "--ranks",
        type=click.IntRange(min=1),
        default=None,
        help="ADIOS: MPI ranks of the workload; default: the cores of the parameters' batch.",
    ),
    click.option(
        "-p",
        "--parameters",
        "parameters_file",
        type=click.Path(path_type=Path),
        default=None,
        help="ADIOS: parameters with the sizes, from `understudy skel params`; default: "
        "the file next to the descriptor.",
    ),
    SETTINGS,
    click.option(
        "-a",
        "--method",
        default=None,
        help="ADIOS: method, e.g. POSIX, MPI_LUSTRE, MPI_AMR, or adios for the library "
        "itself; default: the method of the descriptor.",
    ),
)
POINTS = {
    "POSIX": ("posix", "file-per-process"),
    "MPI": ("mpiio", "shared"),
    "MPI_LUSTRE": ("mpiio", "shared"),
    "MPI_AMR": ("mpiio", "grouped"),
    "MPI_AGGREGATE": ("mpiio", "grouped"),
    "ADIOS": ("adios", "shared"),
}


def read(
    path: Path,
    *,
    name: str | None = None,
    keep_names: bool = False,
    tick: Callable[[float], None] = lambda _: None,
    ranks: int | None = None,
    parameters_file: Path | None = None,
    settings: Mapping[str, str] | None = None,
    method: str | None = None,
) -> Workload:
    """The workload of a descriptor.

    `ranks` (default: the cores of the parameters' first batch), `parameters_file` (default: the
    one beside the descriptor, else default sizes), `settings` of scalars and switches, `method` of
    ADIOS, or adios for the library itself (default: the descriptor's). `name` and `keep_names` are
    as for other traces.
    """
    config = descriptor.read(path, method)
    values = _parameters(path, config, parameters_file)
    values = parameters.with_values(config, values, settings or {})
    batch = values.batches[0]
    ranks = ranks or batch.cores
    tests = _tests(config, values, method, ranks)
    streams = []
    notes = []
    for number, test in enumerate(tests):
        tick(0.0)
        group = config.group(test.group)
        group_blocks = blocks.of_group(group, values.groups[group.name], ranks)
        _check_transforms(group_blocks)
        stream, more = _stream(group, group_blocks, test, number, keep_names)
        streams.append(stream)
        notes += more
    if config.ignored:
        notes.append(f"{len(config.ignored)} attributes of the descriptor have no effect.")
    return Workload(
        name=name or (identifier(application_of(path)) if keep_names else f"adios-{ranks}-ranks"),
        description="Output of an application, from its ADIOS descriptor.",
        ranks=ranks,
        streams=streams_of(streams, ranks),
        source=Source(
            format="adios-config",
            version="1.13",
            reader=f"understudy {__version__}",
            notes=tuple(notes),
        ),
        provenance=_provenance(),
    )


def _check_transforms(group_blocks: GroupBlocks) -> None:
    for variable in (block.variable for block in group_blocks.blocks):
        if variable.transform:
            raise variable.element.fault(
                f"transform {variable.transform!r}: the bytes that reach storage depend on the "
                "contents, which a workload does not have; expected a descriptor without it, or "
                "a skeletal application (understudy skel source)"
            )


def _parameters(path: Path, config: Descriptor, given: Path | None) -> Parameters:
    names = Names(application=application_of(path))
    beside = path.with_name(names.parameters)
    if given is None and not beside.exists():
        return parameters.default(config, names.application)
    return parameters.read(given or beside, config)


def _tests(config: Descriptor, values: Parameters, method: str | None, ranks: int) -> list[Test]:
    """A test of each group that has one in the parameters, with the requested method and its
    parameters there, or else with those of the descriptor."""
    tests = {}
    for test in (t for batch in values.batches for t in batch.tests):
        stated = config.method(test.group)
        wanted = (method or (stated.name if stated else test.method)).upper()
        if wanted not in POINTS:
            names = ", ".join([*METHODS, "adios"])
            raise UnderstudyError(f"--method {method}: expected one of {names}")
        if test.group not in tests:
            words = stated.parameters if stated and stated.name == wanted else ""
            tests[test.group] = Test(
                group=test.group, method=wanted, method_parameters=words, steps=test.steps
            )
        if test.method == wanted and not tests[test.group].method_parameters:
            words = method_parameters(test, ranks)
            tests[test.group] = Test(
                group=test.group, method=wanted, method_parameters=words, steps=test.steps
            )
    return list(tests.values())


def _stream(
    group: Group, group_blocks: GroupBlocks, test: Test, number: int, keep_names: bool
) -> tuple[Pattern, list[str]]:
    how, layout = POINTS[test.method]
    stated = _stated(test.method_parameters)
    variables, parted = _variables(group_blocks, keep_names)
    largest = max(int(block.bytes.max()) for block in group_blocks.blocks)
    transfer = stated.get("block_size", 0) if test.method in ("MPI_LUSTRE", "MPI_AMR") else 0
    groups = None
    if layout == "grouped":
        groups = min(max(stated.get("num_aggregators", group_blocks.ranks), 1), group_blocks.ranks)
    stream = Pattern(
        name=identifier(group.name) if keep_names else f"group-{number}",
        label=group.name if keep_names else "",
        role="checkpoint",
        operation="write",
        files="new",
        layout=layout,
        groups=groups,
        method=how,
        transfer_bytes=transfer or largest,
        dumps=tuple(Dump(time_s=0.0, variables=variables) for _ in range(test.steps)),
    )
    words = f" with {test.method_parameters}" if test.method_parameters else ""
    whose = "the ADIOS library" if how == "adios" else f"ADIOS method {test.method}{words}"
    notes = [f"Stream {stream.name}: {whose}."]
    if parted:
        notes.append(
            f"Stream {stream.name}: the blocks of {parted} global arrays leave gaps, overlap or "
            "are not in rank order; each rank's block is a separate array."
        )
    return stream, notes


def _stated(text: str) -> dict[str, int]:
    """The method parameters that are whole numbers."""
    return {key: int(value) for key, value in re.findall(r"(\w+)\s*=\s*(\d+)\s*(?=[;,]|$)", text)}


def _variables(group_blocks: GroupBlocks, keep_names: bool) -> tuple[tuple[Variable, ...], int]:
    """The variables of the group in order, and how many global arrays were divided."""
    variables = []
    parted = 0
    names = identifiers.of(block.variable.name for block in group_blocks.blocks)
    for number, block in enumerate(group_blocks.blocks):
        source = block.variable
        tiling = _tiling(block)
        shape, rule = tiling or tilings.one_behind_the_other(block.local)
        parted += block.whole is not None and tiling is None
        parts = (source.type.parts,) if source.type.parts > 1 else ()
        kind = "array" if source.dimensions else "scalar"
        name = names[source.name] if keep_names else f"{kind}-{number}"
        if rule.rule == "grid":
            rule = Decomposition(rule="grid", grid=rule.grid + (1,) * len(parts))
        variables.append(
            Variable(
                name=name,
                label=source.name if keep_names else "",
                type=source.type.workload,
                shape=shape + parts,
                decomposition=rule,
            )
        )
    return tuple(variables), parted


def _tiling(block: Blocks) -> tilings.Tiling | None:
    """Global shape and decomposition of blocks that tile the global array in rank order."""
    return None if block.whole is None else tilings.tiling(block.offsets, block.local, block.whole)


def _provenance() -> tuple[Provenance, ...]:
    rows = (
        ("/ranks", "assumed", "Requested, or the cores of the batch in the parameters."),
        (
            "/streams",
            "read",
            "Method, its parameters and the number of steps in the descriptor and the parameters.",
        ),
        (
            "/streams/*/transfer_bytes",
            "derived",
            "block_size of the method, else the largest block of a variable: ADIOS buffers the "
            "output of a process.",
        ),
        (
            "/streams/*/dumps/*/time_s",
            "assumed",
            "A descriptor has no times; one step follows another.",
        ),
        (
            "/streams/*/dumps/*/variables",
            "derived",
            "The dimensions of the descriptor, with the values of the parameters on each rank.",
        ),
    )
    return tuple(Provenance(path=path, origin=origin, how=how) for path, origin, how in rows)
