"""What does Darshan add to an open, a write and a close?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy_darshan.checks.operations import Operations as OperationsCheck


@rfm.simple_test
class Operations(OperationsCheck):
    descr = "Time and instructions that Darshan adds to an open, a write and a close"
    tags = {"darshan"}  # noqa: RUF012
    case = parameter(sorted(OperationsCheck.cases), type=str, loggable=True)
    stripe_count = parameter(["default"], type=str, loggable=True)
