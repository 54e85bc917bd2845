"""Does the replica of an application take as long as the application itself?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.contracts.case import names
from understudy.reframe.checks.transfer import TransferAccuracy


@rfm.simple_test
class Transfer(TransferAccuracy):
    descr = "Times of the replica against those of the application on this storage"
    tags = {"fidelity"}  # noqa: RUF012
    application = parameter(names(), loggable=True)
