"""Numbers as a person reads them; everywhere else they are bytes, seconds and fractions."""

import re
from decimal import Decimal

from understudy.errors import UnderstudyError

NOT_MEASURED = "not measured"
# Units of limits.
RATE, SECONDS, PER_SECOND = "bytes/s", "s", "1/s"
FRACTION, BYTES, RUNS = "fraction", "bytes", "runs"


def size(count: float | None) -> str:
    """Bytes for a person, three significant digits: 37.8 MiB."""
    if count is None:
        return NOT_MEASURED
    if abs(count) < 1024:
        return f"{count:.0f} B"
    value, prefixes = count / 1024, "KMGTPEZY"
    while abs(value) >= 1023.5 and len(prefixes) > 1:
        value, prefixes = value / 1024, prefixes[1:]
    digits = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:.{digits}f} {prefixes[0]}iB"


def plural(count: int, noun: str) -> str:
    """A number of things: 1 rank, 1,024 ranks."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def exact(count: float | None) -> str:
    """Bytes in full: 37,750,784 B."""
    return NOT_MEASURED if count is None else f"{count:,.0f} B"


def rate(bytes_per_s: float | None) -> str:
    return NOT_MEASURED if bytes_per_s is None else f"{size(bytes_per_s)}/s"


def seconds(value: float | None) -> str:
    """Seconds for a person: 812 µs, 3.42 ms, 12.3 s, 2 h 04 min."""
    if value is None:
        return NOT_MEASURED
    if value == 0:
        return "0 s"
    if abs(value) < 1e-3:
        return f"{three(value * 1e6)} µs"
    if abs(value) < 1:
        return f"{three(value * 1e3)} ms"
    if abs(value) < 600:
        return f"{three(value)} s"
    minutes = round(value / 60)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def three(value: float) -> str:
    """Three significant digits, zeros kept, so that columns line up: 9.50, 10.0, 123."""
    return f"{value:#.3g}".rstrip(".")


def percent(fraction: float) -> str:
    """A signed error: 0 %, -0.0021 %, +12.5 %."""
    if fraction == 0:
        return "0 %"
    text = f"{fraction * 100:+.2g}" if abs(fraction) < 0.1 else f"{fraction * 100:+.1f}"
    return text.replace("-", "\N{MINUS SIGN}") + " %"


def share(fraction: float) -> str:
    """An error without sign: 0 %, 0.000069 %, 0.0087 %, 16.27 %."""
    if fraction < 1e-4:
        return f"{Decimal(f'{fraction * 100:.2g}'):f} %"
    return f"{fraction * 100:.4g} %"


def unit(largest: float) -> tuple[float, str]:
    """Divisor and name of the binary unit in which `largest` reads well, for an axis."""
    for power, name in ((5, "PiB"), (4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if largest >= 1024**power:
            return float(1024**power), name
    return 1.0, "B"


def time_unit(largest_s: float) -> tuple[float, str]:
    """Divisor and name of the unit of time for an axis."""
    if largest_s >= 3 * 3600:
        return 3600.0, "hours"
    if largest_s >= 600:
        return 60.0, "minutes"
    if largest_s < 1e-3:
        return 1e-6, "µs"
    if largest_s < 1:
        return 1e-3, "ms"
    return 1.0, "s"


def shorten(text: str, longest: int) -> str:
    """A name cut in its middle, where names of one series differ least."""
    if len(text) <= longest:
        return text
    head = (longest - 1) // 2
    return f"{text[:head]}…{text[len(text) - (longest - 1 - head) :]}"


def hms(seconds: int) -> str:
    """A time limit as batch systems write it: hours, minutes and seconds."""
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


_FACTORS: dict[str, int] = {"": 1} | {
    prefix + end: base**power
    for power, (prefix, binary) in enumerate(zip("kMGTPE", "KMGTPE", strict=True), start=1)
    for prefix, end, base in ((prefix, "B", 1000), (binary, "iB", 1024))
}


def parse_size(text: str) -> int:
    """Bytes of a number as the player takes it: 4194304, 4MiB (binary), 4MB (decimal).

    UnderstudyError for anything else.
    """
    match = re.fullmatch(r"([0-9]{1,18})([A-Za-z]*)", text)
    if match is None or match[2] not in _FACTORS:
        raise UnderstudyError(f"{text!r}: expected bytes, such as 4194304, 4MiB or 4MB")
    return int(match[1]) * _FACTORS[match[2]]


_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}
_EXPECTED = {
    RATE: "bytes in a second, such as 200 MiB/s or 1.5 GB/s",
    SECONDS: "a time, such as 90 s, 5 ms, 15 min or 2 h",
    PER_SECOND: "a rate, such as 5000 /s",
    FRACTION: "a share, such as 10 %",
    BYTES: "bytes, such as 0 B or 4 KiB",
    RUNS: "a number of runs, such as 3 runs",
}


def parse_quantity(text: str, kind: str) -> float:
    """The number that a limit states, in its unit `kind`: bytes/s, s, 1/s, a fraction, bytes or
    runs. UnderstudyError for anything else."""
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([A-Za-z/%]{1,8})", text)
    factor = _factor(match[2], kind) if match else None
    if match is None or factor is None:
        raise UnderstudyError(f"expected {_EXPECTED[kind]}, found {text!r}")
    value = float(match[1]) * factor
    if kind == RUNS and value != int(value):
        raise UnderstudyError(f"expected {_EXPECTED[kind]}, found {text!r}")
    return value


def _factor(word: str, kind: str) -> float | None:
    if kind in (RATE, BYTES):
        end = "/s" if kind == RATE else ""
        size_word = word.removesuffix(end) if word.endswith(end) else ""
        bytes_of = {"B": 1, **{k: v for k, v in _FACTORS.items() if k}}
        return bytes_of.get(size_word)
    if kind == SECONDS:
        return _TIMES.get(word)
    factors = {
        PER_SECOND: {"/s": 1.0, "1/s": 1.0},
        FRACTION: {"%": 0.01},
        RUNS: {"runs": 1.0, "run": 1.0},
    }
    return factors[kind].get(word)


def quantity(value: float, kind: str) -> str:
    """A value in one of these units, as a person reads it."""
    if value in (float("inf"), float("-inf")):
        return "unbounded"
    if kind == RATE:
        return rate(value)
    if kind == SECONDS:
        return seconds(value)
    if kind == FRACTION:
        return f"{value * 100:.3g} %"
    if kind == BYTES:
        return exact(value)
    return f"{value:,.0f} run{'s' * (value != 1)}" if kind == RUNS else f"{value:,.4g} /s"
