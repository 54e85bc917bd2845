"""Does the replica, with the methods of the original, move the same bytes to storage?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.contracts.workload import names
from understudy.reframe.bases.played import AS_DESCRIBED
from understudy.reframe.checks.fidelity import OBSERVERS, ObservedVolume


@rfm.simple_test
class Fidelity(ObservedVolume):
    descr = "Bytes, dumps and calls of the replica against the original"
    tags = {"acceptance", "fidelity"}  # noqa: RUF012
    workload = parameter(names(), type=str, loggable=True)
    method = parameter([AS_DESCRIBED], type=str, loggable=True)
    stripe_count = parameter(["default"], type=str, loggable=True)
    observer = parameter(OBSERVERS, type=str, loggable=True)
