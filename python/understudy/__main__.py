"""`python -m understudy`, and this file run as a script, from wherever it is installed."""

import sys
from pathlib import Path

if not __package__:  # as a script: the packages in this folder must not hide those of others
    sys.path[0] = str(Path(__file__).resolve().parents[1])

try:
    from understudy.cli import main
except ModuleNotFoundError as error:
    sys.exit(
        f"understudy: the Python package {error.name!r} is missing for {sys.executable}; "
        "expected the packages of requirements.txt; PYTHON=... names another interpreter"
    )

main(prog_name="understudy")
