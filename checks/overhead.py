"""What does Darshan's instrumentation cost a program that writes?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy_darshan.checks.overhead import Overhead as OverheadCheck


@rfm.simple_test
class Overhead(OverheadCheck):
    descr = "I/O time with Darshan and without it: file per process, independent MPI-IO"
    tags = {"darshan"}  # noqa: RUF012
    stripe_count = parameter(["default"], type=str, loggable=True)
