"""How long does Darshan take to write its log at the end of a job, and how large is the log?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy_darshan.checks.shutdown import Shutdown as ShutdownCheck


@rfm.simple_test
class Shutdown(ShutdownCheck):
    descr = "Shutdown of Darshan: shared files, and files of each process"
    tags = {"darshan"}  # noqa: RUF012
    processes = parameter([2, 4, 8, 16, 32, 64], type=int, loggable=True)
    stripe_count = parameter(["default"], type=str, loggable=True)
