"""A matrix in blocks of four ranks, written five times into one file and read back by rows."""

import numpy as np
from mpi4py import MPI

N, STEPS, HEADER = 512, 5, 4096
world = MPI.COMM_WORLD
rank, half = world.rank, N // 2
file = MPI.File.Open(world, "matrix.dat", MPI.MODE_CREATE | MPI.MODE_RDWR)
block = MPI.DOUBLE.Create_subarray([N, N], [half, half], [rank // 2 * half, rank % 2 * half])
block.Commit()
field = np.full((half, half), float(rank))
for step in range(STEPS):
    file.Set_view(0, MPI.BYTE, MPI.BYTE)
    if rank == 0:
        file.Write_at(0, np.array([N, step], dtype="i8"))
    file.Set_view(HEADER + step * N * N * 8, MPI.DOUBLE, block)
    file.Write_all(field + step)
    file.Sync()
rows = np.empty((N // 4, N))
file.Set_view(HEADER, MPI.DOUBLE, MPI.DOUBLE)
for step in range(STEPS):
    file.Read_at_all((step * N + rank * N // 4) * N, rows)
    assert rows[0, 0] == step + 2 * (rank // 2)
file.Close()
