/*
 * The reason that an interface keeps to itself: MPI-IO and HDF5 report a full file system as an
 * input/output error, or as success with fewer bytes.
 */
#ifndef UND_SPACE_H
#define UND_SPACE_H

#include <stdbool.h>
#include <stdint.h>

/* A file system with less than that free is full to any program. */
enum { UND_FULL_BYTES = 64 * 1024 };

/* Has the file system of the path less space for this user than `bytes`? False where it cannot tell. */
bool und_space_is_out(const char *path, int64_t bytes);

#endif
