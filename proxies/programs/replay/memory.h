/* Does a run fit the memory of its nodes? Asked before anything is allocated or written. */
#ifndef UND_MEMORY_H
#define UND_MEMORY_H

#include "text/error.h"

#include <mpi.h>
#include <stdint.h>

/* Bytes that this node can still give to this process and its neighbours: what the kernel estimates as
 * available (MemAvailable), or less where a control group limits it. INT64_MAX: not known. Read from files below
 * `root`, which is "" but in tests; *limit says what limits it. */
int64_t und_memory_available(const char *root, const char **limit);

/* Do the ranks of every node fit its memory, if each takes so many bytes? False with the error message on
 * every rank. Collective. */
bool und_memory_fits(int64_t bytes_per_rank, MPI_Comm comm, struct und_error *error);

#endif
