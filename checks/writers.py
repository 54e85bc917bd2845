"""Is a skeleton that was learned from a file as fast as the program, which others wrote?"""

import reframe as rfm
from reframe.core.builtins import fixture, parameter

from understudy.reframe.writers import Learned, Written, names


class Writer(Learned):
    writer = parameter(names(), loggable=True)
    ranks = parameter((4,), loggable=True)


@rfm.simple_test
class Writers(Written):
    learned = fixture(Writer, scope="environment")
    method = parameter(("MPI", "POSIX"), loggable=True)
