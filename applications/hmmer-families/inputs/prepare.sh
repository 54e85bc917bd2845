#!/bin/sh
# Alignments of twelve families, and a database of sequences of which some belong to them.
awk 'BEGIN {
    srand(11)
    letters = "ACDEFGHIKLMNPQRSTVWY"
    for (f = 1; f <= 12; f++) {
        seed = ""
        for (i = 0; i < 120; i++) seed = seed substr(letters, 1 + int(20 * rand()), 1)
        file = "family" f ".sto"
        print "# STOCKHOLM 1.0\n#=GF ID family" f > file
        for (n = 1; n <= 30; n++) {
            text = ""
            for (i = 1; i <= 120; i++) text = text (rand() < 0.8 ? substr(seed, i, 1) : substr(letters, 1 + int(20 * rand()), 1))
            printf "f%dn%d %s\n", f, n, text > file
            printf ">s%d_%d\n%s\n", f, n, text > "all.fa"
        }
        print "//" > file
        close(file)
    }
    for (n = 1; n <= 20000; n++) {
        text = ""
        for (i = 0; i < 200; i++) text = text substr(letters, 1 + int(20 * rand()), 1)
        printf ">r%d\n%s\n", n, text > "all.fa"
    }
}'
rm -f prepare.sh
