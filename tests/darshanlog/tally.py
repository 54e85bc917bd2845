"""What the tests of this folder compared, for the summary at the end of a run."""

from collections import Counter

compared: Counter[str] = Counter()
