"""Which stripes, layout and aggregators suit a workload on each file system?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.reframe.checks.swept import Swept, points, values
from understudy.reframe.spaces import DEFAULT, SWEEP


@rfm.simple_test
class Sweep(Swept):
    descr = "Bandwidth by stripe count, stripe size, layout and aggregators"
    tags = {"sweep", "bandwidth"}  # noqa: RUF012
    space = SWEEP
    workload = parameter(values(SWEEP, "workload"), type=str, loggable=True)
    method = parameter(values(SWEEP, "method"), type=str, loggable=True)
    stripe_count = parameter([DEFAULT], type=str, loggable=True)
    point = parameter(points(SWEEP), type=str, loggable=True)
