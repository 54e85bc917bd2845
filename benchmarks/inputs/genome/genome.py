"""A random genome, and reads of it: genome.py BASES READS; makes genome.fa, reads.fa, reads.fq."""

import random
import sys
from pathlib import Path

bases, reads = map(int, sys.argv[1:])
random.seed(1)
genome = "".join(random.choices("ACGT", k=bases))
with Path("genome.fa").open("w") as file:
    print(">genome", *(genome[k : k + 70] for k in range(0, bases, 70)), sep="\n", file=file)
with Path("reads.fa").open("w") as fasta, Path("reads.fq").open("w") as fastq:
    for k in range(reads):
        at = random.randrange(bases - 100)
        print(f">{k}\n{genome[at : at + 100]}", file=fasta)
        print(f"@{k}\n{genome[at : at + 100]}\n+\n{'I' * 100}", file=fastq)
