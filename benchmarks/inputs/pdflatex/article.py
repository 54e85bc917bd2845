"""An article of sections with contents and references between them."""

import random

random.seed(1)
words = ["storage", "request", "write", "file", "rank", "stripe", "time", "model", "field", "of"]
print(r"\documentclass{article}\begin{document}\tableofcontents")
for k in range(40):
    print(rf"\section{{Section {k}}}\label{{s{k}}} See section~\ref{{s{(7 * k) % 40}}}.")
    for _ in range(5):
        print(" ".join(random.choices(words, k=120)), ".\n")
    print(rf"\begin{{equation}}\label{{e{k}}} x_{{{k}}} = \int_0^1 y^{{{k}}} dy \end{{equation}}")
print(r"\end{document}")
