/* The program, nodes and libraries, as the measurement states them. */
#ifndef UND_ENVIRONMENT_H
#define UND_ENVIRONMENT_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

enum { UND_HOST_BYTES = 256 };

/* Ranks that share memory. */
struct und_node {
    char name[UND_HOST_BYTES];
    int ranks;
};

struct und_environment {
    char started[32]; /* UTC, ISO 8601 */
    int node_count;
    struct und_node *nodes; /* in the order of their first ranks */
    char kernel[256];
    int64_t processors; /* online */
    char mpi[256];
    char program_sha256[65]; /* of the executable; empty: it cannot be read */
};

/* Collective over comm; filled on rank 0. */
void und_environment_read(MPI_Comm comm, struct und_environment *environment);
void und_environment_free(struct und_environment *environment);

/* Name and version of the MPI library, in one line. */
void und_mpi_read(char *text, size_t size);

const char *und_version(void);

/* The git commit that was built, with "-dirty" where files differed from it; NULL: not known. */
const char *und_commit(void);

#endif
