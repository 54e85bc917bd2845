/* Where a run takes place: what the result states about machine, libraries and file system. */
#ifndef UND_ENVIRONMENT_H
#define UND_ENVIRONMENT_H

#include "core/plan.h"

#include <mpi.h>
#include <stdint.h>

struct und_environment {
    char started[32]; /* UTC, ISO 8601 */
    int nodes;        /* with shared memory */
    char host[256];
    char kernel[256];
    int64_t processors; /* online */
    char mpi[256];
    char file_system[32];
    int64_t total_bytes;
    int64_t free_bytes; /* for this user */
    int64_t free_files; /* -1: the file system has no limit of its own */
};

/* Collective over comm; filled on rank 0. The directory exists. */
void und_environment_read(const char *directory, MPI_Comm comm, struct und_environment *environment);

const char *und_version(void);

#endif
