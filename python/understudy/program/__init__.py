"""What a workload means: the program that it is lowered to, and folds over it."""
