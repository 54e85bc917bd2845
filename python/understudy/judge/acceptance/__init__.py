"""Acceptance: the marks of a contract, and the runs that decide them."""
