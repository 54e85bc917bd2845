"""A page as PDF, printed by a browser of the machine: Chromium, which needs no library of ours."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from understudy.errors import UnderstudyError
from understudy.files import write_bytes

BROWSERS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
PRINT_S = 120


def browser() -> str | None:
    """The program that prints; None where there is none."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def arguments(home: str) -> list[str]:
    """For a browser without a screen, whose files are in `home`. As root, Chromium runs without
    its sandbox or not at all; our pages load nothing."""
    options = ["--headless", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={home}"]
    return options + (["--no-sandbox"] if os.geteuid() == 0 else [])


def write(html: Path, path: Path, time: str) -> None:
    """Print the page `html`; `time` (ISO 8601, UTC) stands in the file for the time of printing,
    so that the same page makes the same file. An UnderstudyError where it cannot be printed."""
    program = browser()
    if program is None:
        raise UnderstudyError(
            f"{path}: not written: no browser to print it with; install chromium, or print {html} "
            "in any browser"
        )
    with tempfile.TemporaryDirectory(prefix="understudy-pdf-") as home:
        printed = Path(home) / "page.pdf"
        command = [
            program,
            *arguments(home),
            "--no-pdf-header-footer",
            f"--print-to-pdf={printed}",
            html.resolve().as_uri(),
        ]
        try:
            subprocess.run(command, capture_output=True, timeout=PRINT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UnderstudyError(f"{path}: not written: {program}: {error}") from None
        if not printed.is_file() or not printed.read_bytes().startswith(b"%PDF-"):
            raise UnderstudyError(f"{path}: not written: {program} printed no page")
        write_bytes(path, _dated(printed.read_bytes(), time))


def _dated(data: bytes, time: str) -> bytes:
    """With another time in as many bytes: offsets in the file stay true."""
    stamp = "".join(re.findall("[0-9]", time))[:14].encode()
    return re.sub(rb"(/(?:CreationDate|ModDate) \(D:)[0-9]{14}", lambda m: m[1] + stamp, data)
