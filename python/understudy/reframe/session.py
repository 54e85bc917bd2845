"""Whether a real run can start at all on this host.

ReFrame finds out per test and in the middle of the session that there is no batch system, and has
no hook before the first test. The checks are made before that, so they ask here.
"""

import re
import shutil
from collections.abc import Iterable, Sequence
from typing import Any

from understudy.reframe.systems import NEEDS


def asks_to_run(arguments: Sequence[str]) -> bool:
    """True for arguments of ReFrame that run tests (-r, also as in -vr) and not dry."""
    run = any(a == "--run" or re.match(r"-[vqR]*r", a) for a in arguments)
    return run and "--dry-run" not in arguments


def missing_program(partitions: Iterable[Any]) -> str | None:
    """The first program that one of ReFrame's partitions needs and this host does not have."""
    programs = (program for p in partitions for program in p.extras.get(NEEDS, ()))
    return next((program for program in programs if shutil.which(program) is None), None)
