#include "kernel/kernel.h"

#include "text/error.h"
#include "text/print.h"

#include <errno.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, FAILURE = 1, USAGE_ERROR = 2 };

static int refuse(const struct und_kernel *kernel, const char *message)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        und_print(stderr, "%s: %s", kernel->name, message);
    return USAGE_ERROR;
}

#ifdef UND_HAVE_ADIOS

#include "skeleton.h"

/* The row that the text names, and the value behind a '=', if there is one. */
static int find(const struct und_kernel_option *options, const char *text, const char **value)
{
    for (int i = 0; options[i].name; ++i) {
        const size_t length = strlen(options[i].name);
        if (strncmp(text, "--", 2) != 0 || strncmp(text + 2, options[i].name, length) != 0)
            continue;
        *value = text[2 + length] == '=' ? text + 3 + length : NULL;
        if (*value || text[2 + length] == '\0')
            return i;
    }
    return -1;
}

static bool read_value(const struct und_kernel_option *option, const char *text, int64_t *value,
                       struct und_error *error)
{
    char *end = NULL;
    errno = 0;
    *value = text ? strtoll(text, &end, 10) : 0;
    if (text && end != text && *end == '\0' && errno == 0 && *value >= option->minimum && *value <= option->maximum)
        return true;
    return und_fail(error, "--%s%s%s: expected a whole number from %" PRId64 " to %" PRId64, option->name,
                    text ? " " : "", text ? text : "", option->minimum, option->maximum);
}

/* Takes the kernel's options; `rest` gets those of the measuring layer. */
static bool read_own(const struct und_kernel *kernel, int argc, char **argv, int64_t *values, int *count, char **rest,
                     struct und_error *error)
{
    for (int i = 0; kernel->options[i].name; ++i)
        values[i] = kernel->options[i].default_value;
    rest[0] = argv[0];
    *count = 1;
    for (int i = 1; i < argc; ++i) {
        const char *value;
        const int option = find(kernel->options, argv[i], &value);
        if (option < 0) {
            rest[(*count)++] = argv[i];
            continue;
        }
        if (!value && i + 1 < argc)
            value = argv[++i];
        if (!read_value(&kernel->options[option], value, &values[option], error))
            return false;
    }
    return true;
}

static void help(const struct und_kernel *kernel)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; rank == 0 && kernel->options[i].name; ++i)
        und_print(stdout, "      --%-24s %s [%" PRId64 "]", kernel->options[i].name, kernel->options[i].help,
                  kernel->options[i].default_value);
}

static int run(const struct und_kernel *kernel, int argc, char **argv, char **rest)
{
    int64_t values[UND_KERNEL_OPTIONS];
    struct und_error error;
    int count;
    struct skeleton_options options =
        skeleton_defaults(kernel->name, kernel->application, SKELETON_KIND_APPLICATION, kernel->config);
    if (!read_own(kernel, argc, argv, values, &count, rest, &error))
        return refuse(kernel, error.text);
    const int answer = skeleton_read_options(count, rest, MPI_COMM_WORLD, &options);
    if (answer == SKELETON_HELP)
        help(kernel);
    if (answer != SKELETON_GO)
        return answer == SKELETON_HELP ? SUCCESS : USAGE_ERROR;
    options.argc = argc;
    options.argv = argv;
    kernel->play(&options, values);
    return SUCCESS;
}

#else

static int run(const struct und_kernel *kernel, int argc, char **argv, char **rest)
{
    (void)argc;
    (void)argv;
    (void)rest;
    return refuse(kernel, "cannot write: this program was built without ADIOS 1.13");
}

#endif

int und_kernel_main(int argc, char **argv, const struct und_kernel *kernel)
{
    int status = FAILURE;
    MPI_Init(&argc, &argv);
    char **rest = calloc((size_t)argc + 1, sizeof *rest);
    if (rest)
        status = run(kernel, argc, argv, rest);
    else
        refuse(kernel, "no memory for the options");
    free(rest);
    MPI_Finalize();
    return und_print_end(status);
}

void und_kernel_plane(int64_t n, int64_t *a, int64_t *b)
{
    *b = 1;
    for (int64_t factor = 1; factor * factor <= n; ++factor)
        if (n % factor == 0)
            *b = factor;
    *a = n / *b;
}
