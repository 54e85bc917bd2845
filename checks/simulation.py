"""How close does the replica of a simulation come to the sizes that its publication states?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.reframe.bases.played import AS_DESCRIBED
from understudy_papers.checks.simulation import SimulationSizes
from understudy_papers.model.simulation import names


@rfm.simple_test
class Simulation(SimulationSizes):
    descr = "Sizes on storage against those that a publication states"
    tags = {"fidelity"}  # noqa: RUF012
    workload = parameter(names(), type=str, loggable=True)
    method = parameter([AS_DESCRIBED], type=str, loggable=True)
    stripe_count = parameter(["default"], type=str, loggable=True)
