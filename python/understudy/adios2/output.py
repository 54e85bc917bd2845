"""The output of ADIOS2 as its metadata state it: variables, the block of each writer in each time
step, attributes and measured times. Dimensions are in C order (slowest first)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Operator = tuple[str, Mapping[str, str]]  # its type and parameters

GLOBAL_VALUE = "global value"
LOCAL_VALUE = "local value"
GLOBAL_ARRAY = "global array"
LOCAL_ARRAY = "local array"
JOINED_ARRAY = "joined array"
KINDS = (GLOBAL_VALUE, LOCAL_VALUE, GLOBAL_ARRAY, LOCAL_ARRAY, JOINED_ARRAY)
VALUES = (GLOBAL_VALUE, LOCAL_VALUE)

# ADIOS2's types and the bytes of an element; a text has as many as its encoding.
STRING = "string"
TYPE_BYTES = {
    "char": 1,
    "int8_t": 1,
    "int16_t": 2,
    "int32_t": 4,
    "int64_t": 8,
    "uint8_t": 1,
    "uint16_t": 2,
    "uint32_t": 4,
    "uint64_t": 8,
    "float": 4,
    "double": 8,
    "long double": 16,
    "float complex": 8,
    "double complex": 16,
    STRING: 1,
}


def element_bytes(kind: str) -> int:
    """The bytes of an element of a type of ADIOS2, 0 for texts and structures."""
    return 0 if kind == STRING else TYPE_BYTES.get(kind, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Blocks of a variable in a time step, in order of the writers, and of one writer in the order
    in which it wrote them.

    `writers` int64[n]: the rank that wrote each; `starts` int64[n, d]: where it begins in the
    global array, zeros for local arrays; `counts` int64[n, d]: its shape. Values have d = 0.
    """

    writers: Integers
    starts: Integers
    counts: Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """A variable in a time step: `shape` of the global array, None for local arrays and values,
    and the `value` of a scalar as text (of a local value, that of the first writer; `values` are
    those of its blocks). `stored`
    int64[n] are the bytes of each block in the file where an operator changed them."""

    step: int
    shape: tuple[int, ...] | None = None
    blocks: Blocks
    value: str | None = None
    values: tuple[str, ...] = ()
    stored: Integers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """`type` by ADIOS2's name ("struct" for structures), `kind` one of KINDS, the bytes of an
    element (0 for texts), `operators` with their parameters, where they are known, `configured`
    ones of a configuration (None: it does not say), and an instance of each time step that has
    the variable."""

    name: str
    type: str
    kind: str
    bytes: int = 0
    operators: tuple[Operator, ...] = ()
    configured: tuple[Operator, ...] | None = None
    instances: tuple[Instance, ...]

    @property
    def effective_operators(self) -> tuple[Operator, ...]:
        """Those of the configuration, if it states them; else those of the file."""
        return self.operators if self.configured is None else self.configured


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """An attribute and its values as text; `array` of one value or more, rather than a value."""

    name: str
    type: str
    values: tuple[str, ...]
    array: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Times of each rank, from profiling.json: `seconds` float64[ranks] by the names of the file
    ("ES_AWD", "buffering", "transport_0.write", ...), `calls` int64[ranks] and `bytes`
    int64[ranks] by the same names where they are stated. `ranks` are those of the rows, `steps`
    the number of time steps, which are the last ones: those of the last session that wrote."""

    ranks: Integers
    seconds: Mapping[str, npt.NDArray[np.float64]]
    calls: Mapping[str, Integers] = field(default_factory=dict)
    bytes: Mapping[str, Integers] = field(default_factory=dict)
    steps: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What one or more ranks wrote to one name.

    `engine` (BP4, BP5, or of a configuration any that can be played), `version` of the library
    ("2.12.0", empty if unknown), numbers of `writers`, `steps` and `subfiles` (0 if not known),
    `parameters` of the engine where they are known, `times` when the steps ended, in seconds since
    the first one did (BP4; to a second), `notes` on what is missing or assumed.
    """

    path: Path
    engine: str
    version: str = ""
    writers: int
    steps: int
    subfiles: int = 0
    variables: tuple[Variable, ...]
    attributes: tuple[Attribute, ...] = ()
    profile: Profile | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    times: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()
