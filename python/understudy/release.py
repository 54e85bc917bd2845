"""The version of what is here: the release, or how many commits it is ahead of it.

pyproject.toml names this module as the source of the version of a wheel, so it imports nothing of
the package.
"""

import re
import subprocess
from email import message_from_string
from functools import cache
from importlib import metadata
from pathlib import Path

_INIT = Path(__file__).with_name("__init__.py")
_ROOT = _INIT.parents[2]


@cache
def version() -> str:
    """0.2.0 of a release; 0.2.1.dev12 of a checkout with 12 commits since then, as PEP 440 orders
    them. A shallow clone counts the commits that it has. Without git, the version with which the
    package or the source distribution was built, else the release."""
    release = str(re.findall(r'^__version__ = "(.+)"$', _INIT.read_text("utf-8"), re.MULTILINE)[0])
    if not (_ROOT / "pyproject.toml").is_file():
        return metadata.version("understudy")
    if not (_ROOT / ".git").exists():
        return _version_of_sources() or release
    try:
        last = _git("log", "-1", "--format=%H", "--", str(_INIT))
        count = int(_git("rev-list", "--count", f"{last}..HEAD"))
    except (OSError, subprocess.CalledProcessError, ValueError):
        return release
    major, minor, patch = release.split(".")
    return f"{major}.{minor}.{int(patch) + 1}.dev{count}" if count else release


def _version_of_sources() -> str:
    """The version in the metadata of an unpacked source distribution; empty in a copied tree."""
    metadata_file = _ROOT / "PKG-INFO"
    if not metadata_file.is_file():
        return ""
    return message_from_string(metadata_file.read_text("utf-8")).get("Version", "")


def _git(*words: str) -> str:
    command = ["git", "-C", str(_ROOT), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()
