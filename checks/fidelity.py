"""Does the replica, by the original's own methods, do to storage what the original did?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.contracts.workload import names
from understudy.reframe.fidelity import OBSERVERS, ObservedVolume
from understudy.reframe.played import AS_DESCRIBED


@rfm.simple_test
class Fidelity(ObservedVolume):
    workload = parameter(names(), loggable=True)
    method = parameter([AS_DESCRIBED], loggable=True)
    stripe_count = parameter(["default"], loggable=True)
    observer = parameter(OBSERVERS, loggable=True)
