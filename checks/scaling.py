"""How does the bandwidth of each file system grow with the nodes?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.reframe.checks.swept import Swept, points, values
from understudy.reframe.spaces import SCALING


@rfm.simple_test
class Scaling(Swept):
    descr = "Bandwidth under weak scaling: the same bytes for each rank of full nodes"
    tags = {"scaling", "bandwidth"}  # noqa: RUF012
    space = SCALING
    workload = parameter(values(SCALING, "workload"), type=str, loggable=True)
    method = parameter(values(SCALING, "method"), type=str, loggable=True)
    stripe_count = parameter(values(SCALING, "stripe_count"), type=str, loggable=True)
    point = parameter(points(SCALING), type=str, loggable=True)
