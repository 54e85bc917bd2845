"""The workload of an output of ADIOS2."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from understudy import __version__
from understudy.adios2.output import (
    GLOBAL_VALUE,
    LOCAL_ARRAY,
    LOCAL_VALUE,
    STRING,
    TYPE_BYTES,
    Instance,
    Integers,
    Output,
)
from understudy.adios2.output import Variable as Written
from understudy.errors import UnderstudyError, one_line
from understudy.program import tilings
from understudy.program.patterns import Dump, Pattern, Repeat, streams_of
from understudy.program.types import (
    Decomposition,
    Provenance,
    Source,
    Variable,
    identifier,
)
from understudy.program.workload import Workload

METHODS = {"BP4": "adios2", "BP5": "adios2", "HDF5": "hdf5"}
# The types of a workload, and how many of them an element has.
TYPES = {
    "char": ("i8", 1),
    STRING: ("i8", 1),
    "long double": ("u8", 16),
    "float": ("f32", 1),
    "double": ("f64", 1),
    "float complex": ("f32", 2),
    "double complex": ("f64", 2),
    **{
        f"{sign}int{8 * size}_t": (f"{sign or 'i'}{8 * size}", 1)
        for sign in ("", "u")
        for size in (1, 2, 4, 8)
    },
}
STORED = "u8"  # of blocks that an operator changed
# What profiling.json calls the times of a rank within steps: of BP5, and of BP4.
STEP_TIMES = (
    ("BS", "PP", "ES"),
    ("buffering", "memcpy", "minmax", "aggregation", "meta_sort_merge", "transport_0.write"),
)
Layer = tuple[tuple[int, ...], Decomposition]


@dataclass(slots=True, kw_only=True)
class _Composer:
    """Makes the variables of each step. Equal blocks are looked at once."""

    output: Output
    keep_names: bool
    names: dict[str, str] = field(default_factory=dict)
    layers: dict[tuple[int, int, tuple[int, ...] | None], list[Layer]] = field(
        default_factory=dict
    )
    divided: set[str] = field(default_factory=set)
    layered: set[str] = field(default_factory=set)
    stored: set[str] = field(default_factory=set)
    empty: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        used: set[str] = set()
        for number, variable in enumerate(self.output.variables):
            kind = "array" if variable.instances[0].blocks.counts.shape[1] else "scalar"
            name = identifier(variable.name) if self.keep_names else f"{kind}-{number}"
            unique, again = name, 2
            while unique in used:
                unique, again = f"{name[:90]}-{again}", again + 1
            used.add(unique)
            self.names[variable.name] = unique

    def variables(self, written: Written, instance: Instance) -> list[Variable]:
        """Its blocks in a step: a variable, or one of each block that ranks have."""
        name = self.names[written.name]
        kind, parts = (
            (STORED, 1) if instance.stored is not None else _type(written, self.output.path)
        )
        layers = self._layers(written, instance)
        return [
            Variable(
                name=name if number == 0 else f"{name[:90]}.{number}",
                label=_label(written.name) if self.keep_names else "",
                type=kind,
                shape=shape + (parts,) * (parts > 1),
                decomposition=_widened(rule, parts),
            )
            for number, (shape, rule) in enumerate(layers)
        ]

    def _layers(self, written: Written, instance: Instance) -> list[Layer]:
        if not instance.blocks.counts.shape[1]:
            return [self._scalar(written, instance)]
        key = id(instance.blocks), id(instance.stored), instance.shape
        if key not in self.layers:
            self.layers[key] = self._array(written, instance)
        return self.layers[key]

    def _scalar(self, written: Written, instance: Instance) -> Layer:
        """The bytes of a value on the ranks that wrote it."""
        text = (instance.value or "").encode(errors="surrogateescape")
        size = max(len(text), 1) if written.type == STRING else 1
        rows = np.zeros(self.output.writers, np.int64)
        rows[instance.blocks.writers] = size
        return tilings.one_behind_the_other(rows[:, None])

    def _array(self, written: Written, instance: Instance) -> list[Layer]:
        blocks = instance.blocks
        ranks = self.output.writers
        if instance.stored is not None:
            self.stored.add(written.name)
            rows = np.zeros(ranks, np.int64)
            np.add.at(rows, blocks.writers, instance.stored)
            total = int(rows.sum())
            return [((total,), tilings.of_rows(rows))] if total else []
        used = (blocks.counts > 0).all(axis=1)
        if not used.any():
            self.empty.add(written.name)
            return []
        parts = _by_rank(blocks.writers[used], blocks.starts[used], blocks.counts[used], ranks)
        if written.kind != LOCAL_ARRAY and instance.shape is not None:
            whole = parts if len(parts) == 1 else _stacked(parts)
            if whole and (tiling := tilings.tiling(*whole[0], instance.shape)):
                return [tiling]
            self.divided.add(written.name)
        if len(parts) > 1:
            self.layered.add(written.name)
        return [tilings.one_behind_the_other(counts) for _, counts in parts]

    def notes(self) -> list[str]:
        """What the variables do not hold."""
        notes = []
        if self.divided:
            notes.append(
                f"{_arrays(len(self.divided))}: the blocks leave gaps, overlap or are not in rank "
                "order; each rank's block is a separate array."
            )
        if self.layered:
            notes.append(
                f"{_arrays(len(self.layered))} with several blocks of a rank: the first blocks "
                "are an array, the second ones another, and so on."
            )
        if self.stored:
            operators = {
                name
                for variable in self.output.variables
                if variable.name in self.stored
                for name, _ in variable.operators
            }
            notes.append(
                f"{_arrays(len(self.stored))} went through an operator "
                f"({', '.join(sorted(operators))}): described by the bytes that it left, without "
                "the time that it took."
            )
        if self.empty:
            notes.append(f"{_arrays(len(self.empty))} without elements in some steps.")
        return notes


def _label(name: str) -> str:
    """A name as Unicode text, with escapes for bytes that are not UTF-8."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _arrays(count: int) -> str:
    return f"{count} array{'s' * (count != 1)}"


def _type(written: Written, path: object) -> tuple[str, int]:
    if written.type in TYPES:
        return TYPES[written.type]
    if not 0 < written.bytes < 1 << 20:
        raise UnderstudyError(
            f"{path}: variable {one_line(written.name)}: type {written.type}: expected one of "
            f"{', '.join(TYPE_BYTES)}"
        )
    return STORED, written.bytes


def _widened(rule: Decomposition, parts: int) -> Decomposition:
    if rule.rule == "grid" and parts > 1:
        return Decomposition(rule="grid", grid=(*rule.grid, 1))
    return rule


def _by_rank(
    writers: Integers, starts: Integers, counts: Integers, ranks: int
) -> list[tuple[Integers, Integers]]:
    """Starts and counts of a block of each rank, int64[ranks, dimensions], zeros of those without
    one: first of the first block that a rank wrote, then of the second, and so on."""
    order = np.argsort(writers, kind="stable")
    writers, starts, counts = writers[order], starts[order], counts[order]
    first = np.searchsorted(writers, writers)
    nth = np.arange(len(writers)) - first
    parts = []
    for number in range(int(nth.max()) + 1):
        here = nth == number
        part = np.zeros((2, ranks, counts.shape[1]), np.int64)
        part[0, writers[here]] = starts[here]
        part[1, writers[here]] = counts[here]
        parts.append((part[0], part[1]))
    return parts


def _stacked(parts: list[tuple[Integers, Integers]]) -> list[tuple[Integers, Integers]]:
    """The blocks of each rank as one, where each begins along the slowest dimension where the one
    before it ends; none where they do not."""
    starts, counts = parts[0][0].copy(), parts[0][1].copy()
    for more_starts, more in parts[1:]:
        used = (more > 0).all(axis=1)
        rows = counts[used]
        same = (rows[:, 1:] == more[used, 1:]).all()
        aside = (starts[used, 1:] == more_starts[used, 1:]).all()
        if not (same and aside and (starts[used, 0] + rows[:, 0] == more_starts[used, 0]).all()):
            return []
        counts[used, 0] += more[used, 0]
    return [(starts, counts)]


def workload_of(
    output: Output, *, name: str | None = None, keep_names: bool = False, model: bool = False
) -> Workload:
    """The workload of an output: a stream of its time steps, played by the method of its engine.

    `name` (default: the number of ranks, or with `keep_names` the name of the file), `keep_names`
    keeps those of variables as labels, `model` says that a person stated the output.
    """
    if output.writers < 1:
        raise UnderstudyError(f"{output.path}: no process wrote anything")
    composer = _Composer(output=output, keep_names=keep_names)
    dumps = _dumps(output, composer)
    if not dumps:
        raise UnderstudyError(f"{output.path}: no time step in it has data")
    stem = output.path.stem
    stream = Pattern(
        name=identifier(stem) if keep_names else "output-0",
        label=output.path.name if keep_names else "",
        role="output",
        operation="write",
        files="append" if output.steps > 1 else "new",
        layout="shared",
        method=METHODS[output.engine],
        transfer_bytes=max(
            bytes_
            for dump in dumps
            for v in dump.variables
            for _, bytes_ in v.rank_runs(output.writers)
        ),
        dumps=tuple(dumps),
    )
    return Workload(
        name=name or (identifier(stem) if keep_names else f"adios2-{output.writers}-ranks"),
        description="Output of an application through ADIOS2.",
        ranks=output.writers,
        streams=streams_of([stream], output.writers),
        source=Source(
            format="adios2-model" if model else f"adios2-{output.engine.lower()}",
            version=output.version,
            reader=f"understudy {__version__}",
            notes=tuple(_notes(output, composer)),
        ),
        provenance=_of_model(output) if model else _provenance(output),
    )


def _dumps(output: Output, composer: _Composer) -> list[Dump]:
    """The time steps with data; equal ones at equal distances are one entry."""
    by_step: dict[int, list[Variable]] = {}
    for variable in output.variables:
        for instance in variable.instances:
            by_step.setdefault(instance.step, []).extend(composer.variables(variable, instance))
    duration = _duration(output)
    dumps: list[Dump] = []
    for step, rows in sorted(by_step.items()):
        if not rows:
            continue
        time = output.times[step] if output.times else 0.0
        dump = Dump(time_s=max(time, 0.0), variables=tuple(rows), duration_s=duration)
        if not dumps or not (more := _again(dumps[-1], dump)):
            dumps.append(dump)
        else:
            dumps[-1] = more
    return dumps


def _again(before: Dump, dump: Dump) -> Dump | None:
    """Both as one entry, if they are equal."""
    if before.variables != dump.variables or dump.time_s < before.last_s:
        return None
    period = dump.time_s - before.last_s
    if before.repeat and before.repeat.period_s != period:
        return None
    return Dump(
        time_s=before.time_s,
        variables=before.variables,
        duration_s=before.duration_s,
        repeat=Repeat(count=before.count + 1, period_s=period),
    )


def _duration(output: Output) -> float | None:
    """Seconds of a step on the slowest rank, on average; None where they are not known."""
    if (times := _times(output)) is None or output.profile is None or not output.profile.steps:
        return None
    return float(times.max()) / output.profile.steps


def _times(output: Output) -> npt.NDArray[np.float64] | None:
    """Seconds of each rank within steps."""
    if output.profile is None:
        return None
    seconds: Mapping[str, npt.NDArray[np.float64]] = output.profile.seconds
    for names in STEP_TIMES:
        if names[-1] in seconds or names[0] in seconds:
            return sum(
                (seconds[name] for name in names if name in seconds),
                np.zeros(len(output.profile.ranks)),
            )
    return None


def _notes(output: Output, composer: _Composer) -> list[str]:
    subfiles = f", {output.subfiles} subfile{'s' * (output.subfiles != 1)}"
    subfiles *= output.subfiles > 0
    words = ", ".join(f"{key} {value}" for key, value in output.parameters.items())
    steps = f"{output.steps} time step{'s' * (output.steps != 1)}"
    notes = [f"Engine {output.engine} of ADIOS2{subfiles}, {steps}{f': {words}' * bool(words)}."]
    if output.profile and (times := _times(output)) is not None and len(times):
        last = f"last {output.profile.steps} of the "
        last *= output.profile.steps < output.steps
        notes.append(
            f"profiling.json: the {last}steps took the ranks {times.min():.3g} to "
            f"{times.max():.3g} s."
        )
    scalars = sum(v.kind in (GLOBAL_VALUE, LOCAL_VALUE) for v in output.variables)
    if scalars:
        notes.append(
            f"{scalars} variable{'s' * (scalars != 1)} with single values: ADIOS2 keeps them in "
            "its metadata."
        )
    if output.attributes:
        count = len(output.attributes)
        notes.append(f"{count} attribute{'s' * (count != 1)}: left out.")
    return [*notes, *composer.notes(), *output.notes]


_ASSUMED = (
    ("/streams/*/role", "assumed", "Any output; nothing states what it is for."),
    ("/streams/*/content", "assumed", "Contents are not read; data that do not compress."),
)


def _provenance(output: Output) -> tuple[Provenance, ...]:
    rows = [
        ("/ranks", "read", "The number of writers in the metadata of ADIOS2."),
        ("/streams", "read", "Engine and time steps in the metadata of ADIOS2."),
        *_ASSUMED,
        (
            "/streams/*/transfer_bytes",
            "derived",
            "The largest block of a variable: ADIOS2 buffers the output of a process.",
        ),
        (
            "/streams/*/dumps/*/variables",
            "read",
            "The block of each writer in each time step, from the metadata of ADIOS2.",
        ),
    ]
    if output.times:
        rows.append(
            ("/streams/*/dumps/*/time_s", "read", "The index of BP4, which has whole seconds.")
        )
    else:
        rows.append(
            (
                "/streams/*/dumps/*/time_s",
                "assumed",
                f"{output.engine} has no times; one step follows another.",
            )
        )
    if _duration(output) is not None:
        rows.append(
            (
                "/streams/*/dumps/*/duration_s",
                "derived",
                "profiling.json: the time of the slowest rank, divided by its steps.",
            )
        )
    return tuple(Provenance(path=path, origin=origin, how=how) for path, origin, how in rows)


def _of_model(output: Output) -> tuple[Provenance, ...]:
    how = "The model."
    rows = [("/ranks", "read", how), ("/streams", "read", how), *_ASSUMED]
    rows.append(("/streams/*/dumps/*/variables", "read", how))
    rows.append(
        ("/streams/*/dumps/*/time_s", "read", how)
        if output.times
        else ("/streams/*/dumps/*/time_s", "assumed", "The model has no times.")
    )
    rows.append(("/streams/*/transfer_bytes", "derived", "The largest block of a variable."))
    return tuple(Provenance(path=path, origin=origin, how=how) for path, origin, how in rows)
