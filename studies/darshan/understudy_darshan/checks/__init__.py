"""The bases of the checks operations, overhead and shutdown."""
