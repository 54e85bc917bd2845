/* understudy-replay: plays a workload and writes what it measured. */
#include "core/created.h"
#include "core/die.h"
#include "core/environment.h"
#include "core/place.h"
#include "core/result.h"
#include "core/run.h"
#include "core/setting.h"
#include "core/totals.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SUCCESS = 0, FAILURE = 1, MISTAKE = 2 };

/* The descriptor as text. */
struct text {
    char *data;
    size_t bytes;
};

/* What rank 0 found out counts for all. */
static bool agree(bool right, struct und_error *error)
{
    int agreed = right;
    UND_MPI(MPI_Bcast(&agreed, 1, MPI_INT, 0, MPI_COMM_WORLD), "cannot agree with the other ranks");
    if (!agreed)
        UND_MPI(MPI_Bcast(error->text, sizeof error->text, MPI_CHAR, 0, MPI_COMM_WORLD),
                "cannot agree with the other ranks");
    return agreed;
}

static bool load(const char *path, struct text *text, struct und_error *error)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return und_fail(error, "cannot open the workload %s: %s", path, strerror(errno));
    size_t room = 1 << 16;
    text->data = malloc(room);
    text->bytes = 0;
    while (text->data) {
        text->bytes += fread(text->data + text->bytes, 1, room - text->bytes, file);
        if (text->bytes < room)
            break;
        room *= 2;
        char *grown = realloc(text->data, room);
        if (!grown)
            free(text->data);
        text->data = grown;
    }
    const bool failed = ferror(file) != 0;
    const int code = errno;
    fclose(file);
    if (!text->data)
        return und_fail(error, "no memory to read the workload %s", path);
    if (failed)
        return und_fail(error, "cannot read the workload %s: %s", path, strerror(code));
    return true;
}

/* Rank 0 reads the file, and every rank gets its text. */
static bool share(const char *path, int rank, struct text *text, struct und_error *error)
{
    if (!agree(rank != 0 || load(path, text, error), error))
        return false;
    int64_t bytes = (int64_t)text->bytes;
    UND_MPI(MPI_Bcast(&bytes, 1, MPI_INT64_T, 0, MPI_COMM_WORLD), "cannot share the workload");
    if (bytes > INT_MAX)
        return und_fail(error, "the workload %s has %" PRId64 " bytes, expected less than 2 GiB", path, bytes);
    text->bytes = (size_t)bytes;
    if (rank != 0)
        text->data = malloc(text->bytes + 1);
    UND_CHECK(text->data, "no memory for the workload %s", path);
    UND_MPI(MPI_Bcast(text->data, (int)bytes, MPI_CHAR, 0, MPI_COMM_WORLD), "cannot share the workload");
    return true;
}

static void list_methods(bool settings)
{
    for (const struct und_method *const *at = und_methods; *at; ++at) {
        const struct und_method *method = *at;
        char version[128] = "";
        if (method->unavailable) {
            printf("%-8s unavailable: %s\n", method->name, method->unavailable);
            continue;
        }
        if (method->version)
            method->version(version, sizeof version);
        printf("%-8s available%s%s%s\n", method->name, method->collective ? ", collective calls" : "",
               version[0] ? ", " : "", version);
        if (settings)
            und_settings_list(method, stdout);
    }
}

static void print_plan(const struct und_run *run, const struct und_totals *totals)
{
    static const char *const layouts[] = {"shared", "file per process", "grouped"};
    const struct und_workload *workload = run->workload;
    printf("Workload %s for %" PRId64 " ranks, would %s %s\n", workload->name, workload->ranks,
           run->options->restart_from ? "only restart from" : "write to",
           run->options->directory ? run->options->directory : "the directory of -o");
    for (int s = 0; s < workload->stream_count; ++s) {
        const struct und_stream *stream = &workload->streams[s];
        const struct und_plan *plan = &run->plans[s];
        printf("  stream %s: %s, %s, %s%s\n", stream->name, stream->operation == UND_WRITES ? "writes" : "reads",
               layouts[stream->layout], plan->method->name,
               plan->all_collective    ? ", collective"
               : plan->some_collective ? ", collective and independent"
               : stream->turns         ? ", in turns"
                                       : "");
        printf("    dumps           %d%s\n", stream->dump_count, stream->append ? ", appended" : "");
        printf("    files           %" PRId64 "\n", plan->files);
        printf("    bytes           %" PRId64 "\n", plan->bytes);
        printf("    transfer_bytes  %" PRId64, plan->least_transfer_bytes);
        if (plan->most_transfer_bytes > plan->least_transfer_bytes)
            printf(" to %" PRId64 " by variable", plan->most_transfer_bytes);
        printf("\n");
        printf("    sync            %s\n", plan->sync ? "after each dump" : "no");
    }
    printf("  %" PRId64 " repetition%s, each\n", run->options->repetitions, run->options->repetitions == 1 ? "" : "s");
    printf("    files on storage       %" PRId64 "\n", totals->files);
    printf("    bytes on storage       %" PRId64 "\n", totals->bytes);
    printf("    last dump due          %.3f s\n", totals->scheduled_s);
    printf("    memory per rank        %" PRId64 " bytes besides MPI and the method's library\n",
           totals->memory_per_rank);
}

/* Everything that must be right before the first byte, on rank 0. */
static bool prepare_on_root(const struct und_run *run, const struct und_totals *totals,
                            const struct und_environment *environment, char *part, size_t size, int *descriptor,
                            struct und_error *error)
{
    if (!und_place_fits(totals, environment, run->options->directory, error))
        return false;
    for (int s = 0; !run->options->restart_from && s < run->workload->stream_count; ++s)
        if (run->plans[s].method->probe &&
            !run->plans[s].method->probe(run->options->directory, run->plans[s].settings, error))
            return false;
    *descriptor = und_place_result(run->options->output, part, size, error);
    return *descriptor >= 0;
}

static bool make_directory(const struct und_run *run, struct und_error *error)
{
    bool made = false;
    if (!agree(run->rank != 0 || und_place_prepare(run->options->directory, &made, error), error))
        return false;
    int ours = made;
    UND_MPI(MPI_Bcast(&ours, 1, MPI_INT, 0, run->comm), "cannot agree on the directory");
    if (ours)
        und_created_directory(run->options->directory);
    return true;
}

static bool find_files(const struct und_run *run, struct und_error *error)
{
    struct stat status;
    const char *directory = run->options->restart_from;
    const bool there =
        run->rank != 0 || (stat(directory, &status) == 0 && S_ISDIR(status.st_mode)) ||
        und_fail(error, "--restart-from %s: expected a directory with the files of an earlier run", directory);
    return agree(there, error) && und_run_finds_files(run, error);
}

static void finish_result(const struct und_run *run, struct und_result *result,
                          const struct und_verification *verification, int descriptor, const char *part)
{
    und_result_write(result, run, verification, descriptor, part);
    UND_CHECK(rename(part, run->options->output) == 0, "result: cannot rename %s to %s", part, run->options->output);
    und_created_keep(part);
}

/* Plays all repetitions and writes the result. */
static int play(const struct und_run *run, const struct text *text, int argc, char **argv, struct und_error *error)
{
    const struct und_totals totals = und_totals(run->workload, run->options, run->plans);
    struct und_environment environment;
    char part[PATH_MAX] = "";
    int descriptor = -1;
    if (run->options->restart_from ? !find_files(run, error) : !make_directory(run, error))
        return MISTAKE;
    und_environment_read(run->options->directory, run->comm, &environment);
    if (!agree(run->rank != 0 || prepare_on_root(run, &totals, &environment, part, sizeof part, &descriptor, error),
               error))
        return MISTAKE;

    struct und_result *result = NULL;
    if (run->rank == 0)
        result = und_result_new(run, text->data, text->bytes, &environment, argc, argv);
    struct und_outcome *outcomes = calloc((size_t)run->schedule->count, sizeof *outcomes);
    struct und_verification *verification = calloc(1, sizeof *verification);
    UND_CHECK(outcomes && verification, "no memory for the results of %d dumps", run->schedule->count);
    for (int64_t i = 0; i < run->options->repetitions; ++i) {
        if (run->options->verbose && run->rank == 0)
            fprintf(stderr, "understudy: repetition %" PRId64 "\n", i);
        und_run_repetition(run, run->options->keep && i == run->options->repetitions - 1, outcomes, verification);
        if (run->rank == 0)
            und_result_add(result, run, outcomes);
    }
    const bool right = verification->wrong_bytes == 0;
    if (run->rank == 0) {
        if (!right)
            fprintf(stderr, "understudy: verification: %" PRId64 " of %" PRId64 " bytes are wrong, the first in %s\n",
                    verification->wrong_bytes, verification->bytes, verification->first);
        finish_result(run, result, verification, descriptor, part);
    }
    free(outcomes);
    free(verification);
    return right ? SUCCESS : FAILURE;
}

static int with_plans(struct und_run *run, const struct text *text, int argc, char **argv, struct und_error *error)
{
    struct und_schedule schedule;
    if (!run->options->dry_run && run->workload->ranks != run->ranks) {
        und_fail(error,
                 "%s: the workload is for %" PRId64 " ranks, but %d %s started; make a descriptor for another number "
                 "with `understudy scale`",
                 run->options->workload, run->workload->ranks, run->ranks, run->ranks == 1 ? "was" : "were");
        return MISTAKE;
    }
    const struct und_totals totals = und_totals(run->workload, run->options, run->plans);
    if (run->options->dry_run) {
        if (run->rank == 0)
            print_plan(run, &totals);
        return SUCCESS;
    }
    run->pattern = und_pattern_new((uint64_t)run->options->seed, totals.largest_transfer);
    UND_CHECK(run->pattern, "no memory for the contents");
    UND_CHECK(und_schedule_make(run->workload, run->options, &schedule), "no memory for the schedule");
    run->schedule = &schedule;
    if (und_plan_compute(run->workload, run->options) == UND_STENCIL) {
        run->stencil = und_stencil_new(run->comm);
        UND_CHECK(run->stencil, "no memory for the stencil");
    }
    const int status = play(run, text, argc, argv, error);
    und_stencil_free(run->stencil);
    und_schedule_free(&schedule);
    und_pattern_free(run->pattern);
    return status;
}

static int with_options(const struct und_options *options, int rank, int ranks, int argc, char **argv,
                        struct und_error *error)
{
    struct text text = {NULL, 0};
    struct und_run run = {.options = options, .comm = MPI_COMM_WORLD, .rank = rank, .ranks = ranks};
    int status = MISTAKE;
    if (!share(options->workload, rank, &text, error))
        return MISTAKE;
    struct und_workload *workload = und_workload_read(text.data, text.bytes, options->workload, error);
    struct und_plan *plans = workload ? calloc((size_t)workload->stream_count, sizeof *plans) : NULL;
    run.workload = workload;
    run.plans = plans;
    if (workload && plans &&
        (options->bytes_scale == 1.0 || und_workload_scale(workload, options->bytes_scale, error)) &&
        und_plan_make(workload, options, options->workload, plans, error))
        status = with_plans(&run, &text, argc, argv, error);
    free(plans);
    und_workload_free(workload);
    free(text.data);
    return status;
}

static int run_program(int argc, char **argv, int rank, int ranks, struct und_error *error)
{
    struct und_options options;
    if (!und_options_read(&options, argc, argv, error))
        return MISTAKE;
    if (!options.help && !options.version && !options.list)
        return with_options(&options, rank, ranks, argc, argv, error);
    if (rank != 0)
        return SUCCESS;
    if (options.help)
        und_options_help(stdout);
    else if (options.version)
        printf("understudy-replay %s\n", und_version());
    else
        list_methods(options.verbose);
    return SUCCESS;
}

int main(int argc, char **argv)
{
    struct und_error error = {""};
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    und_die_share(MPI_COMM_WORLD);
    und_created_watch(rank == 0);
    const int status = run_program(argc, argv, rank, ranks, &error);
    if (error.text[0] && rank == 0)
        fprintf(stderr, "understudy: %s\n", error.text);
    /* No rank is still in the directory when its last file goes. */
    MPI_Barrier(MPI_COMM_WORLD);
    und_created_remove();
    und_created_unwatch();
    und_die_unshare();
    MPI_Finalize();
    return status;
}
