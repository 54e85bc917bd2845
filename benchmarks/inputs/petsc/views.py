"""A sparse matrix and five vectors through binary viewers, and loaded again."""

import sys

import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc  # noqa: E402

N, STEPS = 200, 5
matrix = PETSc.Mat().createAIJ((N * N, N * N), nnz=5)
first, last = matrix.getOwnershipRange()
for row in range(first, last):
    matrix[row, row] = 4.0
    for column in (row - N, row - 1, row + 1, row + N):
        if 0 <= column < N * N:
            matrix[row, column] = -1.0
matrix.assemble()
right, left = matrix.createVecs()
right.set(1.0)
viewer = PETSc.Viewer().createBinary("matrix.petsc", "w")
matrix.view(viewer)
viewer.destroy()
for step in range(STEPS):
    matrix.mult(right, left)
    viewer = PETSc.Viewer().createBinary(f"vector.{step}", "w")
    left.view(viewer)
    viewer.destroy()
    right.axpy(0.1, left)
again = PETSc.Mat().load(PETSc.Viewer().createBinary("matrix.petsc", "r"))
for step in range(STEPS):
    PETSc.Vec().load(PETSc.Viewer().createBinary(f"vector.{step}", "r"))
