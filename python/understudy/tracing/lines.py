"""Lines of strace: `strace -f -ttt -T -y`, one call each, or two where others come between."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_LINE = re.compile(r"(?:\[pid +)?(\d{1,9})?\]? *(\d{1,12}\.\d{1,9}) (.*)", re.S)
_RESULT = r"(-?(?:0|[1-9]\d{0,18})|0x[0-9a-f]{1,16}|\?)"
_CALL = re.compile(rf"(\w+)\((.*)\) += {_RESULT}(?:<(.*?)>)?(?: (E[A-Z0-9]+) \(.*?\))?.*", re.S)
_SECONDS = re.compile(r" <(\d+\.\d+)>$")
_UNFINISHED = " <unfinished ...>"
_RESUMED = re.compile(r"<\.\.\. (\w+) resumed>(.*)", re.S)
_EXITED = re.compile(r"\+\+\+ (?:exited with|killed by)")
_ESCAPE = re.compile(rb"\\([0-7]{1,3}|x[0-9a-f]{2}|.)", re.S)
_CODES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f"}


@dataclass(slots=True)
class Line:
    """A call that has returned, or the end of a process (`name` is empty)."""

    pid: int
    begin_s: float
    name: str
    text: str  # of all arguments
    result: int | None
    error: str
    path: str | None  # of the descriptor that it returns
    seconds: float

    @property
    def arguments(self) -> list[str]:
        """The text of each argument."""
        return split(self.text)


def parse(lines: Iterable[str]) -> Iterator[Line]:
    """The calls in the order in which they returned; a line that is none has the name "?"."""
    halves: dict[int, tuple[float, str]] = {}
    for row in lines:
        match = _LINE.match(row.rstrip("\n"))
        if not match:
            if not row.startswith("strace: ") and row.strip():
                yield Line(0, 0, "?", "", None, "", None, 0)
            continue
        pid, begin, text = int(match[1] or 0), float(match[2]), match[3]
        if text.startswith("+++"):
            if _EXITED.match(text):
                yield Line(pid, begin, "", "", None, "", None, 0)
            continue
        if text.endswith(_UNFINISHED):
            halves[pid] = begin, text.removesuffix(_UNFINISHED)
            continue
        if resumed := _RESUMED.match(text):
            begin, first = halves.pop(pid, (begin, f"{resumed[1]}("))
            text = first + resumed[2]
        if (line := _line(pid, begin, text)) is not None:
            yield line
        elif not text.startswith("---"):
            yield Line(pid, begin, "?", "", None, "", None, 0)


def _line(pid: int, begin: float, text: str) -> Line | None:
    seconds = 0.0
    if timed := _SECONDS.search(text):
        seconds, text = float(timed[1]), text[: timed.start()]
    match = _CALL.fullmatch(text)
    if not match:
        return None
    result = None if match[3] == "?" else int(match[3], 0)
    path = _plain(match[4]) if match[4] else None
    return Line(pid, begin, match[1], match[2], result, match[5] or "", path, seconds)


def split(text: str) -> list[str]:
    """Arguments: what commas divide outside of strings and brackets."""
    if '"' not in text and "{" not in text and "[" not in text and "<" not in text:
        return text.split(", ")
    parts, depth, start, quoted, k = [], 0, 0, False, 0
    while k < len(text):
        c = text[k]
        if c == "\\":  # in a string, or in the path of a descriptor
            k += 1
        elif quoted:
            quoted = c != '"'
        elif c == '"':
            quoted = True
        elif c in "[{(<":
            depth += 1
        elif c in "]})>":
            depth -= 1
        elif c == "," and depth <= 0:
            parts.append(text[start:k].strip())
            start = k + 1
        k += 1
    return [*parts, text[start:].strip()]


def unquoted(text: str) -> str:
    """A string of C, as strace writes it, without what stands around it."""
    first, last = text.find('"'), text.rfind('"')
    return _plain(text[first + 1 : last])


def _plain(text: str) -> str:
    """Without escapes."""
    raw = text.encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(_byte, raw).decode("utf-8", "surrogateescape") if "\\" in text else text


def _byte(escape: "re.Match[bytes]") -> bytes:
    code = escape[1]
    if code[:1].isdigit():
        return bytes([int(code, 8) & 255])
    if code[:1] == b"x" and len(code) == 3:
        return bytes([int(code[1:], 16)])
    return _CODES.get(code, code)


def number(text: str) -> int:
    """A number, in C's notations; that of a descriptor with its path. Beyond 64 bits it is an
    OverflowError."""
    plain = text.split("<", 1)[0].strip()
    try:
        value = int(plain, 8) if re.fullmatch(r"0[0-7]+", plain) else int(plain, 0)
    except ValueError:
        return 0
    if abs(value) >= 1 << 64:
        raise OverflowError(f"{plain[:40]}: expected a number of 64 bits")
    return value


def path_of(text: str) -> str | None:
    """The path that stands behind a descriptor."""
    match = re.match(r"(?:-?\d+|AT_FDCWD)<(.*)>(?:\(deleted\))?$", text, re.S)
    return _plain(match[1]) if match else None
