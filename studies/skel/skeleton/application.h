/* What the linker puts in the place of an application's calls of ADIOS; see application.c. */
#ifndef APPLICATION_H
#define APPLICATION_H

#include <mpi.h>
#include <stdint.h>

int __wrap_adios_init(const char *config, MPI_Comm comm);
int __wrap_adios_init_noxml(MPI_Comm comm);
int __wrap_adios_open(int64_t *file, const char *group, const char *name, const char *mode, MPI_Comm comm);
int __wrap_adios_group_size(int64_t file, uint64_t bytes, uint64_t *total);
int __wrap_adios_write(int64_t file, const char *variable, const void *data);
int __wrap_adios_close(int64_t file);
int __wrap_adios_finalize(int rank);

#endif
