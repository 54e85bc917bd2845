"""Samples for the training: many small files and one list."""

from pathlib import Path

import torch

torch.manual_seed(0)
for label in range(4):
    folder = Path("samples") / str(label)
    folder.mkdir(parents=True)
    for n in range(150):
        image = torch.rand(3, 48, 48) + label
        torch.save({"image": image, "label": label}, folder / f"{n:04}.pt")
