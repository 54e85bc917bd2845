"""How fast is each file system for a workload, with each method?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.contracts.workload import names
from understudy.reframe.bases import methods
from understudy.reframe.bases.striped import stripe_counts
from understudy.reframe.checks.bandwidth import Bandwidth


@rfm.simple_test
class Replay(Bandwidth):
    descr = "Bandwidth of a file system for a workload"
    tags = {"nightly", "acceptance", "bandwidth"}  # noqa: RUF012
    workload = parameter(names(), type=str, loggable=True)
    method = parameter(methods.names(), type=str, loggable=True)
    stripe_count = parameter(stripe_counts(), type=str, loggable=True)
