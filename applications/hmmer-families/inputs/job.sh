# Profiles of the families, an index of them, and the sequences that belong to them.
for family in 1 2 3 4 5 6 7 8 9 10 11 12; do
    hmmbuild --cpu 1 -o build.$family.log family$family.hmm family$family.sto || exit 1
done &&
cat family?.hmm family1?.hmm > families &&
hmmpress families > press.log &&
hmmsearch --cpu 1 -o found.txt --tblout found.tbl -A found.sto families all.fa
