"""How near does the replica of a simulation come to the sizes that its text states?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.reframe.check import AS_DESCRIBED, Accurate
from understudy.simulation import names


@rfm.simple_test
class Simulation(Accurate):
    workload = parameter(names(), loggable=True)
    method = parameter([AS_DESCRIBED], loggable=True)
    stripe_count = parameter(["default"], loggable=True)
