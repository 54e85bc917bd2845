"""ReFrame, as commands start it."""

import os
import shutil
import sys
from pathlib import Path


def program() -> str:
    """The ReFrame of this environment, which need not be active."""
    return shutil.which("reframe", path=str(Path(sys.executable).parent)) or "reframe"


def environment() -> dict[str, str]:
    """Of a ReFrame that is started here: relative paths of variables start in this directory."""
    return os.environ | {"PWD": str(Path.cwd())}
