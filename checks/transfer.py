"""Does the replica of an application take as long as the application itself?"""

import reframe as rfm
from reframe.core.builtins import parameter

from understudy.contracts.case import names
from understudy.reframe.transfer import TransferAccuracy


@rfm.simple_test
class Transfer(TransferAccuracy):
    application = parameter(names(), loggable=True)
