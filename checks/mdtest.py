"""How many files does mdtest create, stat, read and remove in a second?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.reframe.bases.benchmark import Mdtest as MdtestCheck


@rfm.simple_test
class Mdtest(MdtestCheck):
    descr = "Rates of metadata operations by mdtest"
    tags = {"nightly", "acceptance", "metadata"}  # noqa: RUF012
    case = parameter(sorted(MdtestCheck.cases), type=str, loggable=True)
    stripe_count = parameter(["default"], type=str, loggable=True)
