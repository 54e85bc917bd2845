#!/bin/sh
# Aligned reads of a genome of 4 Mbp, in no order.
awk 'BEGIN {
    srand(11)
    print "@HD\tVN:1.6\tSO:unsorted"
    print "@SQ\tSN:chr\tLN:4000000"
    quality = ""
    for (i = 0; i < 100; i++)
        quality = quality "I"
    split("A C G T", base, " ")
    for (n = 0; n < 120000; n++) {
        read = ""
        for (i = 0; i < 100; i += 4)
            read = read base[1 + int(4 * rand())] base[1 + int(4 * rand())] base[1 + int(4 * rand())] base[1 + int(4 * rand())]
        printf "r%06d\t0\tchr\t%d\t60\t100M\t*\t0\t0\t%s\t%s\n", n, 1 + int(3999800 * rand()), read, quality
    }
}' > reads.sam
rm -f prepare.sh
