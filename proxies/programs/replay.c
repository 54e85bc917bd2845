#define _XOPEN_SOURCE 700 /* RLIMIT_FSIZE */
/* understudy-replay: plays a workload and writes what it measured. */
#include "interfaces/layout_request.h"
#include "job/agree.h"
#include "job/die.h"
#include "job/environment.h"
#include "job/init.h"
#include "job/latency.h"
#include "job/launcher.h"
#include "job/stop.h"
#include "options/setting.h"
#include "playing/call_queue.h"
#include "playing/caller.h"
#include "playing/layout_log.h"
#include "playing/repetition.h"
#include "playing/stencil.h"
#include "playing/totals.h"
#include "programs/replay/claim.h"
#include "programs/replay/memory.h"
#include "programs/replay/result.h"
#include "storage/direct.h"
#include "storage/run_directory.h"
#include "storage/watchdog.h"
#include "text/print.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SUCCESS = 0, FAILURE = 1, USAGE_ERROR = 2 };

/* The descriptor as text. */
struct text {
    char *data;
    size_t bytes;
};

static bool load(const char *path, struct text *text, struct und_error *error)
{
    struct stat status;
    FILE *file = fopen(path, "r");
    if (!file)
        return und_fail(error, "cannot open the workload %s: %s", path, strerror(errno));
    if (fstat(fileno(file), &status) == 0 && S_ISCHR(status.st_mode)) { /* which may never end */
        fclose(file);
        return und_fail(error, "cannot read the workload %s: it is a device", path);
    }
    size_t capacity = 1 << 16;
    text->data = malloc(capacity);
    text->bytes = 0;
    while (text->data) {
        text->bytes += fread(text->data + text->bytes, 1, capacity - text->bytes, file);
        if (text->bytes < capacity)
            break;
        capacity *= 2;
        char *grown = realloc(text->data, capacity);
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
    if (!und_agree(rank != 0 || load(path, text, error), MPI_COMM_WORLD, error))
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
        char version[128] = "", lacking[256] = "";
        struct und_error error = {""};
        if (method->unavailable || (method->usable && !method->usable(&error))) {
            und_print(stdout, "%-8s unavailable: %s", method->name,
                      method->unavailable ? method->unavailable : error.text);
            continue;
        }
        if (method->version)
            method->version(version, sizeof version);
        for (int n = 0; n < UND_NEEDS; ++n)
            if (!(method->can & und_needs[n].ability) && !strstr(lacking, und_needs[n].name)) {
                const size_t length = strlen(lacking);
                snprintf(lacking + length, sizeof lacking - length, " %s", und_needs[n].name);
            }
        und_print(stdout, "%-8s available%s%s%s%s%s", method->name, method->collective ? ", collective calls" : "",
                  lacking[0] ? ", not for" : "", lacking, version[0] ? ", " : "", version);
        if (settings)
            und_settings_list(method, stdout);
    }
}

static void print_plan(const struct und_run *run, const struct und_totals *totals)
{
    static const char *const layouts[] = {"shared", "file per process", "grouped", "a file per row",
                                          "calls of the system"};
    const struct und_workload *workload = run->workload;
    und_print(stdout, "Workload %s for %" PRId64 " ranks, would %s %s", workload->name, workload->ranks,
              run->plan->only_restarts ? "only restart from" : "write to",
              run->plan->directory ? run->plan->directory : "the directory of -o");
    for (int s = 0; s < workload->stream_count; ++s) {
        const struct und_stream *stream = &workload->streams[s];
        const struct und_stream_plan *plan = &run->plan->streams[s];
        und_print(stdout, "  stream %s: %s, %s, %s%s", stream->name,
                  stream->operation == UND_WRITES ? "writes" : "reads", layouts[stream->own_set.owner],
                  plan->method->name,
                  stream->own_set.tree    ? ""
                  : plan->all_collective  ? ", collective"
                  : plan->some_collective ? ", collective and independent"
                  : stream->in_turn       ? ", in turns"
                                          : "");
        und_print(stdout, "    dumps           %d%s%s", stream->dump_count,
                  und_stream_grows(stream)      ? ", appended"
                  : und_stream_rewrites(stream) ? ", rewritten"
                  : stream->source >= 0         ? ", of the files of "
                  : und_stream_updates(stream)  ? ", updated"
                                                : "",
                  stream->source >= 0 ? workload->streams[stream->source].name : "");
        und_print(stdout, "    files           %" PRId64, plan->files);
        und_print(stdout, "    bytes           %" PRId64, plan->bytes);
        if (plan->most_transfer_bytes > plan->least_transfer_bytes)
            und_print(stdout, "    transfer_bytes  %" PRId64 " to %" PRId64 " by variable", plan->least_transfer_bytes,
                      plan->most_transfer_bytes);
        else
            und_print(stdout, "    transfer_bytes  %" PRId64, plan->least_transfer_bytes);
        if (plan->depth > 1)
            und_print(stdout, "    depth           %" PRId64 " calls of a rank in flight", plan->depth);
        und_print(stdout, "    sync            %s", plan->sync ? "after each dump" : "no");
    }
    und_print(stdout, "  %" PRId64 " repetition%s, each", run->plan->repetitions,
              run->plan->repetitions == 1 ? "" : "s");
    und_print(stdout, "    files on storage       %" PRId64, totals->files);
    und_print(stdout, "    bytes on storage       %" PRId64, totals->bytes);
    und_print(stdout, "    last dump due          %.3f s", totals->scheduled_s);
    und_print(stdout, "    memory per rank        %" PRId64 " bytes besides MPI", totals->memory_per_rank);
}

/* Do the bytes and files fit what is free? */
static bool fits(const struct und_totals *totals, const struct und_storage *storage, const char *directory,
                 struct und_error *error)
{
    const char *type = storage->type;
    if (totals->bytes > storage->free_bytes)
        return und_fail(error, "%s: the workload needs %" PRId64 " bytes, but only %" PRId64 " are free (%s)",
                        directory, totals->bytes, storage->free_bytes, type);
    if (storage->free_inodes >= 0 && totals->files > storage->free_inodes)
        return und_fail(error, "%s: the workload needs %" PRId64 " files, but only %" PRId64 " can be created (%s)",
                        directory, totals->files, storage->free_inodes, type);
    return true;
}

/* May every rank write a file of so many bytes? Collective. */
static bool is_permitted(const struct und_run *run, int64_t bytes, struct und_error *error)
{
    struct rlimit limit;
    char host[256] = "";
    const bool permitted =
        getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= (rlim_t)bytes;
    gethostname(host, sizeof host - 1);
    if (!permitted)
        und_fail(error,
                 "%s: a file of the workload takes %" PRId64 " bytes, but rank %d may write at most %" PRIu64
                 " to a file (RLIMIT_FSIZE): raise the limit with `ulimit -f`",
                 host, bytes, run->rank, (uint64_t)limit.rlim_cur);
    return und_agree(permitted, run->comm, error);
}

/* The result replaces a file of its name: not one that the run reads. */
static bool is_apart(const struct und_options *options, const char *option, const char *output, struct und_error *error)
{
    struct stat result, input;
    char folder[PATH_MAX];
    if (stat(output, &result) != 0)
        return true;
    if (stat(options->workload, &input) == 0 && input.st_dev == result.st_dev && input.st_ino == result.st_ino)
        return und_fail(error, "%s %s: is the workload; expected another file", option, output);
    const char *slash = strrchr(output, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - output + 1) : 1, slash ? output : ".");
    if (options->restart_from && stat(folder, &result) == 0 && stat(options->restart_from, &input) == 0 &&
        input.st_dev == result.st_dev && input.st_ino == result.st_ino)
        return und_fail(error, "%s %s: is a file of the run in --restart-from %s; expected another file", option,
                        output, options->restart_from);
    return true;
}

/* Everything that must be right before the first byte, on rank 0. */
static bool prepare_on_root(const struct und_run *run, const struct und_options *options,
                            const struct und_totals *totals, struct und_storage *storage, int *descriptors,
                            struct und_error *error)
{
    if (!und_storage_read(run->plan->directory, storage, error) || !fits(totals, storage, run->plan->directory, error))
        return false;
    und_layout_backend_describe(run->plan->directory, "", storage);
    if (!is_apart(options, "--output", options->output, error) ||
        (options->time_series && !is_apart(options, "--time-series", options->time_series, error)))
        return false;
    descriptors[UND_RESULT] = und_directory_create_output(run->directory, UND_RESULT, options->output, error);
    if (descriptors[UND_RESULT] < 0 || !options->time_series)
        return descriptors[UND_RESULT] >= 0;
    descriptors[UND_TIME_SERIES] =
        und_directory_create_output(run->directory, UND_TIME_SERIES, options->time_series, error);
    return descriptors[UND_TIME_SERIES] >= 0;
}

/* Can the options of the methods be used in the run directory, which this process works in? */
static bool probe_methods(const struct und_run *run, struct und_error *error)
{
    for (int s = 0; s < run->workload->stream_count; ++s) {
        const struct und_stream_plan *plan = &run->plan->streams[s];
        if (plan->method->probe && !plan->method->probe(run, plan->settings, error))
            return false;
    }
    return true;
}

static bool make_directory(const struct und_run *run, struct und_error *error)
{
    bool created = false;
    if (run->rank == 0)
        und_watch_enter(run->watch, "prepare the run directory", run->plan->directory, false);
    const bool prepared = run->rank != 0 || und_claim_prepare(run->plan->directory, run->watch, &created, error);
    und_watch_leave(run->watch);
    if (!und_agree(prepared, run->comm, error))
        return false;
    int ours = created;
    UND_MPI(MPI_Bcast(&ours, 1, MPI_INT, 0, run->comm), "cannot agree on the directory");
    if (!und_directory_open(run->directory, run->plan->directory, ours, error))
        UND_DIE("%s", error->text);
    return true;
}

static bool find_files(const struct und_run *run, struct und_error *error)
{
    struct stat status;
    const char *directory = run->plan->directory;
    const bool there =
        run->rank != 0 || (stat(directory, &status) == 0 && S_ISDIR(status.st_mode)) ||
        und_fail(error, "--restart-from %s: expected a directory with the files of an earlier run", directory);
    return und_agree(there, run->comm, error) && und_run_finds_files(run, error);
}

static void finish_result(const struct und_run *run, const char *output, struct und_result *result,
                          const struct und_verification *verification, json_t *striping)
{
    struct und_error error;
    und_result_finish(result, verification, striping);
    const char *series = run->plan->time_series;
    if (series && !und_directory_publish_output(run->directory, UND_TIME_SERIES, series, &error))
        UND_DIE("%s", error.text);
    if (!und_directory_publish_output(run->directory, UND_RESULT, output, &error))
        UND_DIE("%s", error.text);
}

/* Is the host further from the median than another of another repetition? */
static bool exceeds(const struct und_stragglers *stragglers, const struct und_stragglers *other)
{
    return stragglers->host_s * other->median_host_s >= other->host_s * stragglers->median_host_s;
}

/* False when contents were wrong, or files could not be removed, of which the message is in `error`: what was measured
 * is complete then only behind the last repetition. The result is there on rank 0. */
static bool play_repetitions(const struct und_run *run, const struct und_options *options, struct und_result *result,
                             struct und_error *error)
{
    struct und_verification *verification = calloc(1, sizeof *verification);
    const struct und_taker taker = {und_result_take, und_result_take_series, result};
    struct und_stragglers most = {.ranks = 0};
    int64_t played = 0;
    char text[1024];
    UND_CHECK(verification, "no memory to verify");
    for (bool removed = true; removed && played < run->plan->repetitions; ++played) {
        if (run->plan->verbose && result)
            und_print(stderr, "understudy: repetition %" PRId64, played);
        if (result)
            und_result_begin(result);
        struct und_stragglers stragglers;
        removed = und_run_repetition(run, run->plan->keep && played == run->plan->repetitions - 1, &taker, verification,
                                     &stragglers, error);
        if (result)
            und_result_end(result, &stragglers);
        if (result && exceeds(&stragglers, &most))
            most = stragglers;
    }
    json_t *striping = und_layout_log_json(run->layout_log);
    const bool right = verification->wrong_bytes == 0;
    if (!right && result)
        und_print(stderr, "understudy: verification: %" PRId64 " of %" PRId64 " bytes are wrong, the first in %s",
                  verification->wrong_bytes, verification->bytes, verification->first);
    if (result && played == run->plan->repetitions)
        finish_result(run, options->output, result, verification, striping);
    und_stragglers_text(&most, text, sizeof text);
    if (result && text[0])
        und_print(stderr, "%s", text);
    free(verification);
    return right && !error->text[0];
}

/* Plays all repetitions and writes the result. */
static int play(struct und_run *run, const struct und_options *options, const struct text *text, int argc, char **argv,
                struct und_error *error)
{
    const struct und_totals totals = und_totals(run->workload, run->plan);
    struct und_environment environment;
    struct und_storage storage;
    int descriptors[UND_OUTPUTS] = {-1, -1};
    if (run->plan->only_restarts ? !find_files(run, error) : !make_directory(run, error))
        return USAGE_ERROR;
    und_environment_read(run->comm, &environment);
    if (!und_agree(run->rank != 0 || prepare_on_root(run, options, &totals, &storage, descriptors, error), run->comm,
                   error))
        return USAGE_ERROR;

    if (!run->plan->only_restarts && !und_claim_make(run, error))
        return USAGE_ERROR;
    UND_MPI(MPI_Bcast(&storage, (int)sizeof storage, MPI_BYTE, 0, run->comm), "cannot share the kind of storage");
    run->layout_log = und_layout_log_new(run, &storage, error);
    if (!run->layout_log)
        return USAGE_ERROR;
    und_directory_create_by(run->directory, und_layout_backend_of(&storage));
    if (!run->plan->only_restarts && !und_directory_work_inside(run->directory, error))
        UND_DIE("%s", error->text);
    if (!run->plan->only_restarts && !und_agree(run->rank != 0 || probe_methods(run, error), run->comm, error)) {
        und_layout_log_free(run->layout_log);
        return USAGE_ERROR;
    }

    struct und_result *result = NULL;
    if (run->rank == 0)
        result = und_result_new(run, options, text->data, text->bytes, &environment, &storage, argc, argv, descriptors,
                                options->output);
    und_environment_free(&environment);
    const bool right = play_repetitions(run, options, result, error);
    und_layout_log_free(run->layout_log);
    return right ? SUCCESS : FAILURE;
}

/* Under the launcher of another MPI, each process is a run of one rank; the first speaks for all. */
static void wrong_ranks(const char *workload, int64_t expected, int started, struct und_error *error)
{
    const struct und_launcher launcher = und_launcher_read();
    char mpi[256];
    und_mpi_read(mpi, sizeof mpi);
    if (started == 1 && launcher.processes > 1 && launcher.rank == 0)
        und_fail(error,
                 "%s: the workload is for %" PRId64 " ranks, but each of the %d processes that %s started is alone: "
                 "the player is built with another MPI, %.*s; use the launcher of that MPI, or build the player with "
                 "the MPI of this launcher",
                 workload, expected, launcher.processes, launcher.name, (int)strcspn(mpi, ","), mpi);
    else if (started != 1 || launcher.processes <= 1)
        und_fail(error,
                 "%s: the workload is for %" PRId64 " ranks, but %d %s started%s%s; make a descriptor for another "
                 "number with `understudy describe -n`",
                 workload, expected, started, started == 1 ? "was" : "were",
                 launcher.name  ? " by "
                 : started == 1 ? " without a launcher, such as mpirun or srun"
                                : "",
                 launcher.name ? launcher.name : "");
}

static int with_plan(struct und_run *run, const struct und_options *options, const struct text *text, int argc,
                     char **argv, struct und_error *error)
{
    struct und_schedule schedule;
    if (!options->dry_run && run->workload->ranks != run->ranks) {
        wrong_ranks(options->workload, run->workload->ranks, run->ranks, error);
        return USAGE_ERROR;
    }
    const struct und_totals totals = und_totals(run->workload, run->plan);
    if (options->dry_run) {
        if (run->rank == 0)
            print_plan(run, &totals);
        return SUCCESS;
    }
    if (!und_memory_fits(totals.memory_per_rank, run->comm, error) ||
        !is_permitted(run, totals.largest_file_bytes, error))
        return USAGE_ERROR;
    run->pattern = und_pattern_new(run->plan->seed, totals.largest_transfer);
    UND_CHECK(run->pattern, "no memory for the contents");
    UND_CHECK(und_schedule_make(run->workload, run->plan, &schedule), "no memory for the schedule");
    run->schedule = &schedule;
    if (run->plan->latency)
        und_ticks_begin();
    if (run->plan->compute == UND_STENCIL) {
        run->stencil = und_stencil_new(run->comm);
        UND_CHECK(run->stencil, "no memory for the stencil");
    }
    const int status = play(run, options, text, argc, argv, error);
    und_stencil_free(run->stencil);
    und_schedule_free(&schedule);
    und_pattern_free(run->pattern);
    return status;
}

/* A variable too small for the scale has one element, which the measurement's bytes show. */
static bool scale(struct und_workload *workload, const struct und_options *options, int rank, struct und_error *error)
{
    int64_t raised = 0;
    if (options->bytes_scale != 1.0 && !und_workload_scale(workload, options->bytes_scale, &raised, error))
        return false;
    if (raised > 0 && rank == 0)
        und_print(stderr,
                  "understudy: --bytes-scale %g: %" PRId64
                  " of the variables are too small for it and keep one element "
                  "along their longest dimension",
                  options->bytes_scale, raised);
    return true;
}

/* Tells of bytes that the original moves past the page cache and this run does not, or not all of them. */
static void note_direct(const struct und_workload *workload, const struct und_plan *plan)
{
    for (int s = 0; s < workload->stream_count; ++s) {
        const struct und_stream_plan *here = &plan->streams[s];
        if (!workload->streams[s].direct)
            continue;
        if (!here->direct)
            und_print(stderr, "understudy: streams[%d] (%s): direct in the original; the method %s uses the page cache",
                      s, workload->streams[s].name, here->method->name);
        else if (here->least_transfer_bytes % und_direct_page() != 0)
            und_print(stderr,
                      "understudy: streams[%d] (%s): transfers of %" PRId64
                      " bytes are no whole pages; what is left of a page goes through the page cache",
                      s, workload->streams[s].name, here->least_transfer_bytes);
    }
}

/* Tells of calls that the original has in flight and the method makes one after the other. */
static void note_depth(const struct und_workload *workload, const struct und_plan *plan)
{
    for (int s = 0; s < workload->stream_count; ++s) {
        const struct und_stream_plan *here = &plan->streams[s];
        const int64_t calls = und_caller_depth(&workload->streams[s]);
        if (calls > 1 && !und_call_queue_is_there())
            und_print(stderr,
                      "understudy: streams[%d] (%s): up to %" PRId64
                      " calls of a rank in flight in the original; without io_uring they are made one after the other",
                      s, workload->streams[s].name, calls);
        if (here->most_depth > 1 && !here->method->depth && here->method->has_files)
            und_print(stderr,
                      "understudy: streams[%d] (%s): up to %" PRId64
                      " calls of a rank in flight in the original; the method %s makes one after the other",
                      s, workload->streams[s].name, here->most_depth, here->method->name);
    }
}

static int with_options(struct und_run *run, const struct und_options *options, int argc, char **argv,
                        struct und_error *error)
{
    struct text text = {NULL, 0};
    int status = USAGE_ERROR;
    if (!share(options->workload, run->rank, &text, error))
        return USAGE_ERROR;
    struct und_workload *workload = und_workload_read(text.data, text.bytes, options->workload, error);
    run->workload = workload;
    struct und_plan *plan = NULL;
    if (workload && scale(workload, options, run->rank, error))
        plan = und_plan_new(workload, options, options->workload, error);
    run->plan = plan;
    if (plan && run->rank == 0) {
        note_direct(workload, plan);
        note_depth(workload, plan);
    }
    if (plan)
        status = with_plan(run, options, &text, argc, argv, error);
    und_plan_free(plan);
    und_workload_free(workload);
    free(text.data);
    return status;
}

/* --help, --version and --list. */
static void inform(const struct und_options *options)
{
    if (options->help) {
        und_options_help(stdout);
    } else if (options->version) {
        und_print(stdout, "understudy-replay %s", und_version());
    } else {
        list_methods(options->verbose);
        if (options->verbose)
            und_layout_backend_list(stdout);
    }
}

/* Nothing of the run stays, or the status says so. Collective. */
static int end_run(const struct und_run *run, int status)
{
    struct und_error error;
    und_watch_apart(run->watch, "end", NULL, 0);
    und_directory_work_outside(run->directory);
    /* No rank is still in the directory when its last file goes. */
    MPI_Barrier(run->comm);
    und_directory_remove(run->directory);
    if (run->rank == 0)
        und_directory_disclaim(run->directory);
    if (und_directory_all_removed(run->directory, run->comm, &error))
        return status;
    if (run->rank == 0)
        und_print(stderr, "understudy: %s", error.text);
    return status == SUCCESS ? FAILURE : status;
}

int main(int argc, char **argv)
{
    struct und_error error = {""};
    struct und_options options;
    const struct und_launcher launcher = und_launcher_read();
    struct und_run run = {.comm = MPI_COMM_WORLD};
    int status = USAGE_ERROR;
    const bool valid = und_options_read(&options, argc, argv, &error);
    if (valid && (options.help || options.version || options.list)) {
        if (launcher.rank == 0)
            inform(&options);
        return und_print_end(SUCCESS);
    }
    run.watch = und_watch_new(launcher.rank);
    run.directory = und_directory_new(run.watch);
    if (valid)
        und_watch_begin(run.watch, options.watchdog, und_directory_free_bytes, run.directory);
    und_init(&argc, &argv);
    MPI_Comm_rank(run.comm, &run.rank);
    MPI_Comm_size(run.comm, &run.ranks);
    und_die_share(run.comm);
    und_die_clean_by(und_directory_cleanup(run.directory));
    und_stop_watch(run.rank == 0);
    if (valid)
        status = with_options(&run, &options, argc, argv, &error);
    if (error.text[0] && run.rank == 0)
        und_print(stderr, "understudy: %s", error.text);
    status = end_run(&run, status);
    if (status == SUCCESS && run.rank == 0 && !options.dry_run)
        /* Without the prefix of messages, which say what is wrong. */
        und_print(stderr, "wrote %s: %" PRId64 " repetition%s of %s", options.output, options.repetitions,
                  options.repetitions == 1 ? "" : "s", options.workload);
    und_stop_unwatch();
    und_die_unshare();
    MPI_Finalize();
    und_watch_end(run.watch);
    return und_print_end(status);
}
