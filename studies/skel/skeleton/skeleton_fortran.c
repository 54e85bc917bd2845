/* What Fortran cannot hand over by itself: options, and its communicator. See skeleton.f90. */
#include "skeleton.h"

#include <stdlib.h>
#include <string.h>

struct skeleton *skeleton_fortran_start(const char *program, const char *application, const char *config, int steps,
                                        int repetitions, int argc, const char *arguments, MPI_Fint comm, int *answer);

/* `arguments` are argc texts, each with its ending zero. Where *answer is not SKELETON_GO, NULL. */
struct skeleton *skeleton_fortran_start(const char *program, const char *application, const char *config, int steps,
                                        int repetitions, int argc, const char *arguments, MPI_Fint comm, int *answer)
{
    /* Fortran's texts go when this returns; the options point at them until the end of the program. */
    char *const kept_program = strdup(program), *const kept_config = strdup(config);
    char *const kept_application = strdup(application);
    char **argv = calloc((size_t)argc + 1, sizeof *argv);
    if (!kept_program || !kept_application || !kept_config || !argv) {
        MPI_Abort(MPI_Comm_f2c(comm), 1);
        abort();
    }
    struct skeleton_options options =
        skeleton_defaults(kept_program, kept_application, SKELETON_KIND_SKELETON, kept_config);
    options.steps = steps;
    options.repetitions = repetitions;
    for (int i = 0; i < argc; ++i) {
        argv[i] = strdup(arguments);
        arguments += strlen(arguments) + 1;
    }
    *answer = skeleton_read_options(argc, argv, MPI_Comm_f2c(comm), &options);
    return *answer == SKELETON_GO ? skeleton_start(&options, MPI_Comm_f2c(comm)) : NULL;
}
