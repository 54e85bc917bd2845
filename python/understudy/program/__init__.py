"""Meaning of a workload: the program that it is lowered to, and folds over it."""
