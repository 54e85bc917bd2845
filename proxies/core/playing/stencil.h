/*
 * Computation of all ranks together between two dumps: Jacobi sweeps of the five-point stencil
 * on a two-dimensional grid of ranks. Neighbours exchange the edges of their tiles by messages, and
 * a reduction after each sweep, as for a residual, lets all ranks stop at the same one.
 */
#ifndef UND_STENCIL_H
#define UND_STENCIL_H

#include <mpi.h>
#include <stdint.h>

struct und_stencil;

/* Collective over comm. NULL when memory is out. */
struct und_stencil *und_stencil_new(MPI_Comm comm);
void und_stencil_free(struct und_stencil *stencil);

/* Bytes that each rank allocates, whatever the number of ranks. */
int64_t und_stencil_memory(void);

/* Returns when und_clock() has reached `until`, after as many sweeps as fit: their number, the same on
 * all ranks. At once, but for a reduction, if the time is up. Collective over comm. */
int64_t und_stencil_until(struct und_stencil *stencil, double until);

#endif
