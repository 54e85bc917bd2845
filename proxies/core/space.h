/*
 * What the system takes of a file, and the reason that an interface keeps to itself: MPI-IO and HDF5 report a full file system, an
 * exceeded quota or a lost server as some error, or as success with fewer bytes.
 */
#ifndef UND_SPACE_H
#define UND_SPACE_H

#include "core/error.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* A file system with less than that free is full to any program. */
enum { UND_FULL_BYTES = 64 * 1024 };

/* May every rank write a file of so many bytes (RLIMIT_FSIZE)? False with the error message on all. Collective. */
bool und_space_permits(int64_t bytes, MPI_Comm comm, struct und_error *error);

/* Why the file system takes no more of a file of a run that has failed: errno, or 0 where it takes that many
 * bytes. Asked by appending them. */
int und_space_refusal(const char *path, int64_t bytes);

#endif
