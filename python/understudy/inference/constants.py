"""The numbers on which descriptions depend: levels that many rules share, so that few are free.

A rule names what a level means where it is used. benchmarks/measured/constants.csv has how
many descriptions change with half and with twice of each (benchmarks/sensitivity.py).
"""

# Shares, of whatever a rule is about.
TINY = 1e-4  # as good as nothing
NEGLIGIBLE = 1e-3  # of the run: at the same moment
PRECISE = 0.005  # of the run: a time that a rule may miss
SMALL = 0.01  # makes no difference
FEW = 0.05  # an exception
PART = 0.1  # no longer an exception; all but a part is nearly all
SOME = 0.2  # by which things that are alike may differ
QUARTER = 0.25  # by which they may at most
THIRD = 1 / 3  # as much as may be otherwise where a rule holds for the others
HALF = 0.5  # as much as the rest

# Ratios.
BREAK = 4.0  # of neighbours in a sorted list: two kinds
TIMES = 10  # of another order of magnitude

# Numbers of things.
SEVERAL = 4  # enough for a pace
ALIKE = 8  # enough to be looked at together
MANY = 16  # enough for a rule on their sizes
OFTEN = 64  # per rank: a loop over files
HUNDRED = 100  # more are lines, not time steps
THOUSAND = 1000  # more are held as a rule

# Seconds.
MOMENT_S = 1e-6  # no time at all
PAUSE_S = 1e-3  # no pause yet
TURN_S = 0.01  # for which a process may wait for its turn on a core, whatever it does
NEAR_S = 1.0  # of one burst, however long the run

# Bytes.
LINES = 4096  # of a time step: less are lines
LARGE = 1 << 20  # of a file from which on it matters how often it is read
