"""The bases of the checks claims, schedule and simulation."""
