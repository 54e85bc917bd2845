# Reads are compressed, sorted in memory too small for all, indexed, and counted by position.
samtools view -b -o reads.bam reads.sam &&
samtools sort -m 4M -T part -o sorted.bam reads.bam &&
samtools index sorted.bam &&
samtools depth -o depth.txt sorted.bam
