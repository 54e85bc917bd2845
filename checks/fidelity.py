"""Does the replica, by the original's own methods, do to storage what the original did?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.reframe.check import AS_DESCRIBED, OBSERVERS, Faithful
from understudy.workload import names


@rfm.simple_test
class Fidelity(Faithful):
    workload = parameter(names(), loggable=True)
    method = parameter([AS_DESCRIBED], loggable=True)
    stripe_count = parameter(["default"], loggable=True)
    observer = parameter(OBSERVERS, loggable=True)
