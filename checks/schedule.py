"""Does the replica of a simulation pause as long as its schedule says?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.model.simulation import names
from understudy.reframe.played import AS_DESCRIBED
from understudy.reframe.schedule import Pauses


@rfm.simple_test
class Schedule(Pauses):
    workload = parameter(names(), loggable=True)
    method = parameter([AS_DESCRIBED], loggable=True)
    stripe_count = parameter(["default"], loggable=True)
    scaling = "weak"
    ranks = 4
