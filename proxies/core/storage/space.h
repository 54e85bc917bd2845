/*
 * The reason that an interface keeps to itself: MPI-IO and HDF5 report a full file system, an exceeded quota or a lost
 * server as some error, or as success with fewer bytes.
 */
#ifndef UND_SPACE_H
#define UND_SPACE_H

#include "interfaces/mount.h"

#include <stdint.h>

struct und_directory;

/* Why the file system takes no more of a file of a run that has failed: errno, or 0 where it takes that many
 * bytes. Asked by appending them. */
int und_space_refusal(const struct und_directory *directory, const char *path, int64_t bytes);

#endif
