"""A small network, trained for some epochs by samples that two processes load; checkpoints."""

from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self):
        self.paths = sorted(Path("samples").rglob("*.pt"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, n):
        sample = torch.load(self.paths[n])
        return sample["image"], sample["label"]


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 16, 5, 2),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(16 * 22 * 22, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 4),
    )
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(Samples(), batch_size=25, shuffle=True, num_workers=2)
    for epoch in range(4):
        total = 0.0
        for images, labels in loader:
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
        torch.save(state, f"epoch{epoch}.pt")
        with Path("loss.txt").open("a") as file:
            file.write(f"{epoch} {total}\n")
