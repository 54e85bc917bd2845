# Reads are hashed, then assembled.
velveth assembly 31 -fasta -short reads.fa > hash.log &&
velvetg assembly -exp_cov auto -read_trkg yes -amos_file yes > graph.log
