"""Files that are whole or not there at all."""

import os
import tempfile
from pathlib import Path

from understudy.errors import UnderstudyError


def write_text(path: Path, text: str) -> None:
    """Write a file of text (UTF-8) under a temporary name beside it, then rename it."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file under a temporary name beside it, then rename it."""
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise UnderstudyError(f"{path}: cannot be written: {error.strerror}") from None
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
