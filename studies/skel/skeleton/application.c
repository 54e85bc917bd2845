/*
 * Measures an application that calls ADIOS itself, like a skeletal application and by the same files, without a change
 * of its source: this file and the others here are linked to it, with
 *
 *     -Wl,--wrap=adios_init,--wrap=adios_init_noxml,--wrap=adios_open,--wrap=adios_group_size,--wrap=adios_write
 *     -Wl,--wrap=adios_close,--wrap=adios_finalize
 *
 * so that its calls of these come here first (`understudy skel measure` does it). Options of skeleton.h are in the
 * environment: SKELETON_OPTIONS="-o DIR -r FILE -a METHOD". Files stand in DIR under the names <group>.<step>.bp instead
 * of the application's; its config is taken unless -c names another. Each open of a group is its next step. Options are
 * separated by blanks; quotes have no meaning in them.
 */
#include "application.h"

#include "skeleton.h"
#include "text/print.h"

#include <adios.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int __real_adios_init(const char *config, MPI_Comm comm);
int __real_adios_open(int64_t *file, const char *group, const char *name, const char *mode, MPI_Comm comm);
int __real_adios_group_size(int64_t file, uint64_t bytes, uint64_t *total);
int __real_adios_write(int64_t file, const char *variable, const void *data);
int __real_adios_close(int64_t file);
int __real_adios_finalize(int rank);

enum { WORDS = 64, GROUPS = 64 };

static struct {
    struct skeleton *run;
    bool ours; /* the runtime is calling: its calls are the real ones */
    bool append;
    bool sized; /* adios_group_size was called for the open file */
    char program[256];
    char *options;
    char *words[WORDS + 2];
    char *written[GROUPS]; /* groups that the running step has written */
    int written_count;
} app;

static _Noreturn void refuse(const char *message, const char *what)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        und_print(stderr, "%s: %s%s", app.program, what, message);
    PMPI_Barrier(MPI_COMM_WORLD);
    PMPI_Finalize();
    exit(2);
}

/* The name of the program that runs, as messages and the result have it. */
static void name_program(void)
{
    char path[4096] = "";
    FILE *file = fopen("/proc/self/cmdline", "r");
    if (file) {
        path[fread(path, 1, sizeof path - 1, file)] = '\0';
        fclose(file);
    }
    const char *slash = strrchr(path, '/');
    snprintf(app.program, sizeof app.program, "%s", *path ? slash ? slash + 1 : path : "application");
}

static int split_options(void)
{
    const char *given = getenv("SKELETON_OPTIONS");
    int count = 0;
    char *rest = NULL;
    app.options = strdup(given ? given : "");
    app.words[count++] = app.program;
    for (char *word = app.options ? strtok_r(app.options, " \t\n", &rest) : NULL; word;
         word = strtok_r(NULL, " \t\n", &rest)) {
        if (count > WORDS)
            refuse(": more than 64 words", "SKELETON_OPTIONS");
        app.words[count++] = word;
    }
    return count;
}

int __wrap_adios_init(const char *config, MPI_Comm comm)
{
    if (app.ours)
        return __real_adios_init(config, comm);
    int all, theirs;
    name_program();
    PMPI_Comm_size(MPI_COMM_WORLD, &all);
    PMPI_Comm_size(comm, &theirs);
    if (theirs != all)
        refuse(": not all processes take part in it; only applications where all do can be measured", "adios_init");
    struct skeleton_options options = skeleton_defaults(app.program, app.program, SKELETON_KIND_APPLICATION, config);
    const int place = optind; /* the application may be reading options of its own */
    const int answer = skeleton_read_options(split_options(), app.words, comm, &options);
    optind = place;
    opterr = 1;
    if (answer != SKELETON_GO) {
        PMPI_Finalize();
        exit(answer == SKELETON_HELP ? 0 : 2);
    }
    if (options.steps != 1 || options.repetitions != 1)
        refuse(": the application's own steps are measured, once; expected neither -s nor -i", "SKELETON_OPTIONS");
    options.steps = 1000000; /* no less than it makes; skeleton_last_step tells */
    app.append = options.append;
    app.ours = true;
    app.run = skeleton_start(&options, comm);
    skeleton_repetition(app.run);
    app.ours = false;
    return 0;
}

int __wrap_adios_init_noxml(MPI_Comm comm)
{
    (void)comm;
    name_program();
    refuse("declares its groups itself; only applications with an adios-config can be measured", "");
}

/* The first group of all, and a group that the running step has already, begin a step. */
static void next_step_for(const char *group)
{
    bool has = app.written_count == 0;
    for (int g = 0; g < app.written_count; ++g)
        has = has || strcmp(app.written[g], group) == 0;
    if (has) {
        skeleton_step(app.run);
        while (app.written_count > 0)
            free(app.written[--app.written_count]);
    }
    if (app.written_count == GROUPS)
        skeleton_die(app.run, "%s: more than %d groups in a step", group, GROUPS);
    app.written[app.written_count++] = strdup(group);
}

int __wrap_adios_open(int64_t *file, const char *group, const char *name, const char *mode, MPI_Comm comm)
{
    if (app.ours)
        return __real_adios_open(file, group, name, mode, comm);
    int all, theirs;
    PMPI_Comm_size(MPI_COMM_WORLD, &all);
    PMPI_Comm_size(comm, &theirs);
    if (theirs != all)
        skeleton_die(app.run, "%s: opened by %d of %d processes; only files of all can be measured", name, theirs, all);
    if (strcmp(mode, "w") != 0 && strcmp(mode, "a") != 0)
        skeleton_die(app.run, "%s: opened as \"%s\"; only writing, \"w\" and \"a\", can be measured", name, mode);
    app.ours = true;
    next_step_for(group);
    if (strcmp(mode, "a") == 0 && !app.append && skeleton_step_index(app.run) > 0)
        skeleton_die(app.run, "%s: the application appends; expected --append in SKELETON_OPTIONS", name);
    *file = skeleton_open(app.run, group);
    app.ours = app.sized = false;
    return 0;
}

int __wrap_adios_group_size(int64_t file, uint64_t bytes, uint64_t *total)
{
    if (app.ours)
        return __real_adios_group_size(file, bytes, total);
    app.ours = true;
    skeleton_group_size(app.run, file, bytes);
    app.ours = false;
    app.sized = true;
    *total = bytes; /* without what ADIOS adds, which the runtime alone knows */
    return 0;
}

int __wrap_adios_write(int64_t file, const char *variable, const void *data)
{
    if (app.ours)
        return __real_adios_write(file, variable, data);
    app.ours = true;
    skeleton_write(app.run, file, variable, data);
    app.ours = false;
    return 0;
}

int __wrap_adios_close(int64_t file)
{
    if (app.ours)
        return __real_adios_close(file);
    if (!app.sized)
        skeleton_die(app.run, "a file is closed without adios_group_size, by which its bytes are known");
    app.ours = true;
    skeleton_close(app.run, file);
    app.ours = false;
    return 0;
}

int __wrap_adios_finalize(int rank)
{
    if (app.ours)
        return __real_adios_finalize(rank);
    app.ours = true;
    skeleton_last_step(app.run);
    skeleton_repetition(app.run);
    skeleton_finish(app.run);
    app.ours = false;
    while (app.written_count > 0)
        free(app.written[--app.written_count]);
    free(app.options);
    return 0;
}
