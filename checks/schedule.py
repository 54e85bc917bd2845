"""Does the replica of a simulation pause as long as its schedule says?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.reframe.check import AS_DESCRIBED, Punctual
from understudy.simulation import names


@rfm.simple_test
class Schedule(Punctual):
    workload = parameter(names(), loggable=True)
    method = parameter([AS_DESCRIBED], loggable=True)
    stripe_count = parameter(["default"], loggable=True)
    scaling = "weak"
    ranks = 4
