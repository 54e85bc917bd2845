/*
 * What the I/O kernels of applications share: their main program, and processes laid out on a plane.
 * An I/O kernel is an application cut down to what makes its I/O: it computes and communicates
 * between its outputs, fills the arrays, and writes them by ADIOS, with its adios-config beside it.
 * It is measured by the same files as a generated skeleton (skeleton.h).
 */
#ifndef UND_KERNEL_H
#define UND_KERNEL_H

#include <stdint.h>

struct skeleton_options;

enum { UND_KERNEL_OPTIONS = 8 };

/* An option of the kernel beside those of the measuring layer: a whole number. */
struct und_kernel_option {
    const char *name;
    int64_t minimum;
    int64_t maximum;
    int64_t default_value;
    const char *help;
};

struct und_kernel {
    const char *name;
    const char *application; /* that it stands for */
    const char *config;      /* adios-config, unless --config names another */
    /* At most UND_KERNEL_OPTIONS rows; the first without a name ends them. */
    struct und_kernel_option options[UND_KERNEL_OPTIONS + 1];
    /* The application; `values` are those of the options. NULL: this build has no ADIOS. */
    void (*play)(const struct skeleton_options *options, const int64_t *values);
};

/* The main program, from MPI_Init to MPI_Finalize; returns the exit status. */
int und_kernel_main(int argc, char **argv, const struct und_kernel *kernel);

/* n = a * b, with b the largest factor up to the square root of n. */
void und_kernel_plane(int64_t n, int64_t *a, int64_t *b);

#endif
