#!/bin/sh
# Reads of 60 bases of a genome of 60,000.
awk 'BEGIN {
    srand(4)
    split("A C G T", base, " ")
    for (i = 1; i <= 60000; i++)
        genome = genome base[1 + int(4 * rand())]
    for (n = 0; n < 40000; n++)
        printf ">r%d\n%s\n", n, substr(genome, 1 + int(59940 * rand()), 60)
}' > reads.fa
rm -f prepare.sh
