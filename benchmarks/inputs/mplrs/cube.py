"""The inequalities of a cube of so many dimensions, as lrs reads them."""

import sys

n = int(sys.argv[1])
print("cube", "H-representation", "begin", f"{2 * n} {n + 1} rational", sep="\n")
for k in range(n):
    for sign in (1, -1):
        print(1, *(sign * (k == j) for j in range(n)))
print("end")
