"""Does the replica of a simulation pause as long as its schedule says?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.reframe.bases.played import AS_DESCRIBED
from understudy_papers.checks.schedule import Pauses
from understudy_papers.model.simulation import names


@rfm.simple_test
class Schedule(Pauses):
    descr = "Pauses of the replica against the schedule of the simulation"
    tags = {"fidelity"}  # noqa: RUF012
    workload = parameter(names(), type=str, loggable=True)
    method = parameter([AS_DESCRIBED], type=str, loggable=True)
    stripe_count = parameter(["default"], type=str, loggable=True)
    scaling = "weak"
    ranks = 4
