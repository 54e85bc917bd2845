"""A loader of training samples: epochs over small files, in another order each time."""

import os
import random
import time
from pathlib import Path

FILES, EPOCHS, BATCH = 200, 2, 40

names = [f"set/in_{n:05d}.bin" for n in range(FILES)]
begin = time.monotonic()
for epoch in range(EPOCHS):
    random.Random(epoch).shuffle(names)
    time.sleep(max(0.0, begin + 0.6 * epoch + 0.3 - time.monotonic()))
    os.access("@in", os.F_OK)
    for n, name in enumerate(names):
        if n % BATCH == 0:
            time.sleep(0.02)  # a batch is computed
        with Path(name).open("rb") as file:
            file.read()
    os.access("@", os.F_OK)
time.sleep(0.3)
