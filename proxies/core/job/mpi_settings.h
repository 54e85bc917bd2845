/*
 * The variables of the environment that choose how MPI moves data and files: two runs that differ in one are two
 * conditions. Of Open MPI's parameters, only frameworks of files and messages: mpirun passes others of its own, with
 * addresses and job numbers.
 */
#ifndef UND_MPI_SETTINGS_H
#define UND_MPI_SETTINGS_H

#include <stddef.h>

/* The next NAME=VALUE from `*position` on (0 at first) in the order of the environment; NULL after the last. */
const char *und_mpi_setting(size_t *position);

#endif
