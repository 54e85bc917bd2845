"""Ends a session that cannot work, with one message and before any test.

ReFrame notices a missing batch system per test in the middle of the session, and has no hook
before the first test. The checks are created before that, so they ask here.
"""

import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from uuid import uuid4

from understudy.errors import UnderstudyError
from understudy.reframe.systems import NEEDS


@cache
def identifier() -> str:
    """One for each run of ReFrame, the same for all of its checks. ReFrame's own is not known to
    checks; its report has this one too, as the variable `session` of each case."""
    return str(uuid4())


@contextmanager
def exit_on_error() -> Iterator[None]:
    """An UnderstudyError ends the session with its message."""
    try:
        yield
    except UnderstudyError as error:
        sys.exit(f"understudy: {error}")


def asks_to_run(arguments: Sequence[str]) -> bool:
    """True for arguments of ReFrame that run tests (-r, also as in -vr) and not dry."""
    run = any(a == "--run" or re.match(r"-[vqR]*r", a) for a in arguments)
    return run and "--dry-run" not in arguments


def missing_program(partitions: Iterable[Any]) -> str | None:
    """The first program that one of ReFrame's partitions needs and this host does not have."""
    programs = (program for p in partitions for program in p.extras.get(NEEDS, ()))
    return next((program for program in programs if shutil.which(program) is None), None)
