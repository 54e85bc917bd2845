"""Comparisons: two sets of runs, and trends over sessions."""
