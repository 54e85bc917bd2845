"""Engines of ADIOS2, the parameters of those that write files, and operators (2.12)."""

from collections.abc import Mapping
from dataclasses import dataclass

from understudy.errors import UnderstudyError

BOOL = "yes or no"
COUNT = "a number of 0 or more"
INTEGER = "a whole number"
SECONDS = "a number"
SIZE = "a size, such as 4MB"
TEXT = "text"
_YES = ("yes", "true", "on")
_NO = ("no", "false", "off")
_UNITS = ("", "b", "kb", "mb", "gb")  # as of ADIOS2: powers of 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of an engine: `kind` of its values, its `default`, the only `values` that it
    takes (else empty), and whether it has an effect on a `writer`."""

    name: str
    kind: str
    default: str
    values: tuple[str, ...] = ()
    writer: bool = True

    def check(self, value: str) -> None:
        """A ValueError with what was expected, where ADIOS2 would refuse the value, or take a part
        of it."""
        text = value.strip().lower()
        if self.values:
            if text not in self.values:
                raise ValueError(f"expected one of {', '.join(self.values)}")
        elif self.kind == BOOL:
            if text not in _YES + _NO:
                raise ValueError(f"expected {', '.join(_YES + _NO)}")
        elif self.kind == COUNT:
            if not (text.isascii() and text.isdecimal() and len(text) < 19):
                raise ValueError(f"expected {COUNT}")
        elif self.kind == INTEGER:
            if not (text.isascii() and text.lstrip("-").isdecimal() and len(text) < 19):
                raise ValueError(f"expected {INTEGER}")
        elif self.kind == SECONDS:
            try:
                number = float(text)
            except ValueError:
                number = float("nan")
            if not abs(number) < float("inf"):
                raise ValueError(f"expected {SECONDS}")
        elif self.kind == SIZE:
            size_bytes(value)


def size_bytes(text: str) -> int:
    """The bytes of a size as ADIOS2 reads it, such as 16Kb or 4MB, with units of 1024."""
    value = text.strip().lower()
    digits = value.rstrip("bkmg ")
    unit = value[len(digits) :].strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 19 and unit in _UNITS):
        raise ValueError(f"expected {SIZE}")
    return int(digits) << 10 * max(0, _UNITS.index(unit) - 1)


def _p(
    name: str, kind: str, default: str, *values: str, writer: bool = True
) -> tuple[str, Parameter]:
    row = Parameter(name=name, kind=kind, default=default, values=values, writer=writer)
    return name.lower(), row


BP5: Mapping[str, Parameter] = dict(
    (
        _p("NumAggregators", COUNT, "0"),
        _p("AggregatorRatio", COUNT, "0"),
        _p("NumSubFiles", COUNT, "0"),
        _p(
            "AggregationType",
            TEXT,
            "TwoLevelShm",
            "everyonewrites",
            "auto",
            "everyonewritesserial",
            "twolevelshm",
            "datasizebased",
        ),
        _p("EnableWriterRerouting", BOOL, "false"),
        _p("ReroutingThresholdFactor", SECONDS, "0.3"),
        _p("StripeSize", COUNT, "4096"),
        _p("MaxShmSize", SIZE, "4294762496"),
        _p("BufferVType", TEXT, "chunk", "chunk", "malloc"),
        _p("BufferChunkSize", SIZE, "134217728"),
        _p("InitialBufferSize", SIZE, "16384"),
        _p("GrowthFactor", SECONDS, "1.05"),
        _p("MinDeferredSize", SIZE, "4194304"),
        _p(
            "AsyncWrite",
            TEXT,
            "Sync",
            "sync",
            "off",
            "false",
            "guided",
            "auto",
            "on",
            "true",
            "naive",
        ),
        _p("AsyncOpen", BOOL, "true"),
        _p("DirectIO", BOOL, "false"),
        _p("DirectIOAlignOffset", COUNT, "512"),
        _p("DirectIOAlignBuffer", COUNT, "0"),
        _p("BurstBufferPath", TEXT, ""),
        _p("BurstBufferDrain", BOOL, "true"),
        _p("NodeLocal", BOOL, "false"),
        _p("AppendAfterSteps", INTEGER, "2147483647"),
        _p("StatsLevel", COUNT, "1"),
        _p("MetadataThreads", COUNT, "8"),
        _p("UseOneTimeAttributes", BOOL, "true"),
        _p("UseSelectiveMetadataAggregation", BOOL, "true"),
        _p("OneLevelGatherRanksLimit", INTEGER, "6000"),
        _p("FlattenSteps", BOOL, "false"),
        _p("DataFileTransport", TEXT, ""),
        _p("UUID", TEXT, ""),
        _p("S3Endpoint", TEXT, ""),
        _p("S3Bucket", TEXT, ""),
        _p("S3AccessKeyID", TEXT, ""),
        _p("S3SecretKey", TEXT, ""),
        _p("S3SessionToken", TEXT, ""),
        _p("S3ObjectMode", TEXT, "multi"),
        _p("S3DirectUploadThreshold", TEXT, ""),
        _p("Verbose", INTEGER, "0"),
        _p("OpenTimeoutSecs", SECONDS, "-1", writer=False),
        _p("BeginStepPollingFrequencySecs", SECONDS, "1", writer=False),
        _p("StreamReader", BOOL, "false", writer=False),
        _p("SelectSteps", TEXT, "", writer=False),
        _p("ReaderShortCircuitReads", BOOL, "false", writer=False),
        _p("Threads", COUNT, "0", writer=False),
        _p("IgnoreFlattenSteps", BOOL, "false", writer=False),
        _p("RemoteDataPath", TEXT, "", writer=False),
        _p("RemoteHost", TEXT, "", writer=False),
        _p("TarInfo", TEXT, "", writer=False),
        _p("MaxOpenFilesAtOnce", COUNT, "4294967295", writer=False),
    )
)
BP4: Mapping[str, Parameter] = dict(
    (
        _p("NumAggregators", INTEGER, "0"),
        _p("SubStreams", INTEGER, "0"),  # the earlier name of NumAggregators
        _p("AggregatorRatio", INTEGER, "0"),
        _p("InitialBufferSize", SIZE, "16384"),
        _p("MaxBufferSize", SIZE, ""),
        _p("BufferGrowthFactor", SECONDS, "1.05"),
        _p("FlushStepsCount", COUNT, "1"),
        _p("CollectiveMetadata", BOOL, "true"),
        _p("StatsLevel", COUNT, "1"),
        _p("StatsBlockSize", COUNT, ""),
        _p("AsyncOpen", BOOL, "true"),
        _p("BurstBufferPath", TEXT, ""),
        _p("BurstBufferDrain", BOOL, "true"),
        _p("BurstBufferVerbose", INTEGER, "0"),
        _p("NodeLocal", BOOL, "false"),
        _p("Node-Local", BOOL, "false"),
        _p("Profile", BOOL, "true"),
        _p(
            "ProfileUnits",
            TEXT,
            "Microseconds",
            "microseconds",
            "milliseconds",
            "seconds",
            "minutes",
            "hours",
        ),
        _p("Threads", COUNT, "1"),
        _p("OpenTimeoutSecs", SECONDS, "0", writer=False),
        _p("BeginStepPollingFrequencySecs", SECONDS, "1", writer=False),
        _p("StreamReader", BOOL, "false", writer=False),
    )
)
HDF5: Mapping[str, Parameter] = dict(
    (
        _p("H5CollectiveMPIO", BOOL, "no"),
        _p("H5ChunkDim", TEXT, ""),
        _p("H5ChunkVar", TEXT, ""),
        _p("IdleH5Writer", BOOL, "no"),
    )
)
PLAYED: Mapping[str, Mapping[str, Parameter]] = {"BP5": BP5, "BP4": BP4, "HDF5": HDF5}
"""Engines that write files, and that can be played, with their parameters by the names in lower
case."""

# What opens a file as BP5 when it writes: names that a program or configuration may state.
ALIASES = {
    "": "BP5",
    "file": "BP5",
    "filestream": "BP5",
    "bpfile": "BP5",
    "bp": "BP5",
    "bp5": "BP5",
    "bp4": "BP4",
    "hdf5": "HDF5",
}
_STREAM = "it moves data from program to program and writes no file"
_NOTHING = "it discards all data"
REFUSED: Mapping[str, str] = {
    "bp3": "its files are of the format before BP4; use BP4 or BP5",
    "sst": _STREAM,
    "effis": _STREAM,
    "insituviz": _STREAM,
    "insituvisualization": _STREAM,
    "insituanalysis": _STREAM,
    "codecoupling": _STREAM,
    "ssc": _STREAM,
    "dataman": _STREAM,
    "dataspaces": _STREAM,
    "inline": "it hands data to a reader in the same process and writes no file",
    "null": _NOTHING,
    "nullcore": _NOTHING,
    "skeleton": "it is an example for developers of engines and writes no file",
    "mhs": "it writes a file for each level of a hierarchy, which the workload does not have",
    "daos": "it writes to objects of DAOS, not to files",
    "plugin": "what it writes is known only to its plugin",
    "campaign": "it only reads",
    "timeseries": "it only reads",
}

OPERATORS = (
    "bigwhoop",
    "blosc",
    "bzip2",
    "caesar",
    "libpressio",
    "mdr",
    "mgard",
    "mgard_complex",
    "mgardplus",
    "null",
    "plugin",
    "png",
    "prodm",
    "sirius",
    "sz",
    "sz3",
    "zfp",
)


def engine_of(name: str) -> str:
    """The engine that plays what an engine of this name writes, a key of PLAYED; an
    UnderstudyError that says why where there is none."""
    lower = name.strip().lower()
    if lower in ALIASES:
        return ALIASES[lower]
    names = ", ".join(PLAYED)
    if lower in REFUSED:
        raise UnderstudyError(f"engine {name}: {REFUSED[lower]}; expected one of {names}")
    raise UnderstudyError(f"engine {name!r}: unknown; expected one of {names}")
