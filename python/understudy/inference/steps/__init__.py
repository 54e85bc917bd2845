"""Steps: the dumps of a stream, their times, order, pace and variables."""
