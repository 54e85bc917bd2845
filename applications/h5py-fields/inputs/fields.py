"""A field that spreads, in one shared HDF5 file per dump, and a history that grows with each."""

import h5py
import numpy as np
from mpi4py import MPI

SIDE, DUMPS, STEPS = 1536, 8, 12
world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
rows = SIDE // ranks
field = np.zeros((rows + 2, SIDE))
if rank == 0:
    field[rows // 2, SIDE // 2] = 1.0
rows_of_rank = slice(rank * rows, (rank + 1) * rows)
up, down = rank - 1 if rank else MPI.PROC_NULL, rank + 1 if rank < ranks - 1 else MPI.PROC_NULL

with h5py.File("history.h5", "w", driver="mpio", comm=world) as history:
    shape = (DUMPS, ranks, 64)
    profile = history.create_dataset("profile", shape, "f8", chunks=(1, ranks, 64))
    for dump in range(DUMPS):
        for _ in range(STEPS):
            world.Sendrecv(field[1].copy(), up, recvbuf=field[-1], source=down)
            world.Sendrecv(field[-2].copy(), down, recvbuf=field[0], source=up)
            around = (
                field[:-2] + field[2:] + np.roll(field, 1, 1)[1:-1] + np.roll(field, -1, 1)[1:-1]
            )
            field[1:-1] = 0.5 * field[1:-1] + 0.125 * around
        with h5py.File(f"field_{dump:03}.h5", "w", driver="mpio", comm=world) as file:
            file.attrs["step"] = (dump + 1) * STEPS
            data = file.create_dataset("field", (SIDE, SIDE), "f4")
            with data.collective:
                data[rows_of_rank] = field[1:-1].astype("f4")
            mean = file.create_dataset("mean", (ranks,), "f8")
            mean[rank] = field[1:-1].mean()
        profile[dump, rank] = field[1:65, SIDE // 2] if rows >= 64 else 0.0
        history.flush()
