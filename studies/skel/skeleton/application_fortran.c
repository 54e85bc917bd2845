/*
 * The same as application.c for an application in Fortran, by the compilers' usual names of its calls (lower case, an
 * underscore behind; lengths of texts last). Linked beside it, with --wrap of those names too. Variables that are texts
 * cannot be written through it.
 */
#include "application.h"

#include <stdlib.h>
#include <string.h>

void __wrap_adios_init_(const char *config, const MPI_Fint *comm, int *code, int config_length);
void __wrap_adios_init_noxml_(const MPI_Fint *comm, int *code);
void __wrap_adios_open_(int64_t *file, const char *group, const char *name, const char *mode, const MPI_Fint *comm,
                        int *code, int group_length, int name_length, int mode_length);
void __wrap_adios_group_size_(const int64_t *file, const int64_t *bytes, int64_t *total, int *code);
void __wrap_adios_write_(const int64_t *file, const char *variable, const void *data, int *code, int variable_length);
void __wrap_adios_write_f2c_(const int64_t *file, const char *variable, const void *data, int *code,
                             int variable_length);
void __wrap_adios_close_(const int64_t *file, int *code);
void __wrap_adios_finalize_(const int *rank, int *code);

/* Without the blanks behind it. Frees: the caller. */
static char *text_of(const char *fortran, int length)
{
    while (length > 0 && (fortran[length - 1] == ' ' || fortran[length - 1] == '\0'))
        --length;
    char *text = strndup(fortran, (size_t)length);
    if (!text) {
        MPI_Abort(MPI_COMM_WORLD, 1);
        abort();
    }
    return text;
}

void __wrap_adios_init_(const char *config, const MPI_Fint *comm, int *code, int config_length)
{
    *code = __wrap_adios_init(text_of(config, config_length), MPI_Comm_f2c(*comm)); /* kept until the end */
}

void __wrap_adios_init_noxml_(const MPI_Fint *comm, int *code)
{
    *code = __wrap_adios_init_noxml(MPI_Comm_f2c(*comm));
}

void __wrap_adios_open_(int64_t *file, const char *group, const char *name, const char *mode, const MPI_Fint *comm,
                        int *code, int group_length, int name_length, int mode_length)
{
    char *const its_group = text_of(group, group_length), *const its_name = text_of(name, name_length);
    char *const its_mode = text_of(mode, mode_length);
    *code = __wrap_adios_open(file, its_group, its_name, its_mode, MPI_Comm_f2c(*comm));
    free(its_group);
    free(its_name);
    free(its_mode);
}

void __wrap_adios_group_size_(const int64_t *file, const int64_t *bytes, int64_t *total, int *code)
{
    uint64_t all = 0;
    *code = __wrap_adios_group_size(*file, (uint64_t)*bytes, &all);
    *total = (int64_t)all;
}

void __wrap_adios_write_(const int64_t *file, const char *variable, const void *data, int *code, int variable_length)
{
    char *const name = text_of(variable, variable_length);
    *code = __wrap_adios_write(*file, name, data);
    free(name);
}

/* The module adios_write_mod writes by this name. */
void __wrap_adios_write_f2c_(const int64_t *file, const char *variable, const void *data, int *code,
                             int variable_length)
{
    __wrap_adios_write_(file, variable, data, code, variable_length);
}

void __wrap_adios_close_(const int64_t *file, int *code)
{
    *code = __wrap_adios_close(*file);
}

void __wrap_adios_finalize_(const int *rank, int *code)
{
    *code = __wrap_adios_finalize(*rank);
}
