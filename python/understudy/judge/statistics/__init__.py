"""Metrics of runs, and the statistics of nights, conditions and pools."""
