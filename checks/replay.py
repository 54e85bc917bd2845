"""How fast does each file system take a workload, by each method?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.reframe.check import STRIPE_COUNTS, Bandwidth, methods
from understudy.workload import names


@rfm.simple_test
class Replay(Bandwidth):
    workload = parameter(names(), loggable=True)
    method = parameter(methods(), loggable=True)
    stripe_count = parameter(STRIPE_COUNTS, loggable=True)
