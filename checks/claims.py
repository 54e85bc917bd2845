"""Do the claims of published studies hold for the records of a sweep?"""

import reframe as rfm

from understudy_papers.checks.claimed import Claimed


@rfm.simple_test
class Claims(Claimed):
    descr = "What publications state of this system, on the records that are kept"
    tags = {"claims"}  # noqa: RUF012
