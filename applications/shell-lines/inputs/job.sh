dd if=/dev/urandom of=raw.bin bs=64k count=480 status=none && split -b 240k -d -a 3 raw.bin part.
for part in part.*; do gzip -1 "$part" && dd if=/dev/null of="$part.done" status=none; done
tar -cf all.tar part.*.gz && rm part.* raw.bin && tar -xf all.tar && gzip -t part.*.gz
