"""How fast is a file system by IOR, beside the replicas?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.reframe.bases.benchmark import Ior as IorCheck
from understudy.reframe.bases.striped import stripe_counts


@rfm.simple_test
class Ior(IorCheck):
    descr = "Bandwidth by IOR: file per process, and one file"
    tags = {"nightly", "acceptance", "bandwidth"}  # noqa: RUF012
    case = parameter(sorted(IorCheck.cases), type=str, loggable=True)
    stripe_count = parameter(stripe_counts(), type=str, loggable=True)
