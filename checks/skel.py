"""How fast is an application's ADIOS output, and does its skeleton predict it?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.reframe.bases.striped import stripe_counts
from understudy_skel.checks.skeleton import RANKS, RANKS_PER_AGGREGATOR, SkeletonAccuracy, methods


@rfm.simple_test
class Skel(SkeletonAccuracy):
    descr = "Bandwidth of ADIOS output, and whether the skeleton predicts it"
    tags = {"acceptance", "bandwidth"}  # noqa: RUF012
    method = parameter(methods(), type=str, loggable=True)
    ranks = parameter(RANKS, type=int, loggable=True)
    ranks_per_aggregator = parameter(RANKS_PER_AGGREGATOR, type=int, loggable=True)
    stripe_count = parameter(stripe_counts(), type=str, loggable=True)
