/* A run: start, repetitions, steps, their records, and the end. */
#include "internal.h"

#include "text/print.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * Nothing here uses shared file pointers, but Open MPI prepares one in every MPI_File_open: the component `sm` by a
 * semaphore named after the file alone, which jobs of a node share and a killed one leaves locked; `lockedfile` by a
 * lock file, and `individual` by two files of every rank, in the run directory. Open MPI does without where the only
 * component declines. Set before main, hence before MPI_Init of any language, unless the user has chosen.
 */
__attribute__((constructor)) static void do_without_shared_file_pointers(void)
{
    if (!getenv("OMPI_MCA_sharedfp")) {
        setenv("OMPI_MCA_sharedfp", "sm", 0);
        setenv("OMPI_MCA_sharedfp_sm_priority", "-1", 0);
    }
}

/* ---- Start ---- */

static void check_options(struct skeleton *run)
{
    const struct skeleton_options *options = &run->options;
    if (!options->config || access(options->config, R_OK) != 0)
        skeleton_leave(run, 0, "%s: the adios-config cannot be read; give one with --config",
                       options->config ? options->config : "no config");
    if (options->slow_rank >= run->ranks)
        skeleton_leave(run, 0, "--slow-rank %d: expected a rank of 0 to %d", options->slow_rank, run->ranks - 1);
    skeleton_check_library_options(run);
}

static void know_machine(struct skeleton *run)
{
    const time_t now = time(NULL);
    struct tm utc;
    PMPI_Comm_rank(run->comm, &run->rank);
    PMPI_Comm_size(run->comm, &run->ranks);
    gethostname(run->host, sizeof run->host - 1);
    gmtime_r(&now, &utc);
    strftime(run->started, sizeof run->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    PMPI_Comm_split_type(run->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &run->node);
    PMPI_Comm_size(run->node, &run->node_ranks);
}

struct skeleton *skeleton_start(const struct skeleton_options *options, MPI_Comm comm)
{
    struct skeleton *run = calloc(1, sizeof *run);
    if (!run) {
        und_print(stderr, "%s: no memory", options->program);
        PMPI_Abort(comm, 1);
        abort();
    }
    run->options = *options;
    run->repetition = -1;
    run->directory = -1;
    PMPI_Comm_dup(comm, &run->comm);
    know_machine(run);
    check_options(run);
    skeleton_prepare_directory(run);
    skeleton_catch_signals(run);
    skeleton_prepare_config(run);
    if (options->extra_collective_bytes > 0)
        run->collected = skeleton_array(run, "the extra collective",
                                        (size_t)options->extra_collective_bytes * ((size_t)run->ranks + 1), 1);
    skeleton_start_library(run);
    return run;
}

/* ---- Repetitions ---- */

/* Payload of all processes against what stands on storage: ADIOS can lose data and say nothing. */
static void end_repetition(struct skeleton *run, bool last)
{
    const bool removes = !(last && run->options.keep);
    PMPI_Barrier(run->comm);
    for (int r = run->first_of_repetition; r < run->record_count; ++r) {
        struct record *record = &run->records[r];
        int64_t payload = 0, bytes, files;
        PMPI_Reduce(&record->bytes, &payload, 1, MPI_INT64_T, MPI_SUM, 0, run->comm);
        if (run->rank != 0)
            continue;
        const struct group *group = &run->groups[record->group];
        char name[NAME_BYTES];
        skeleton_file_name(run, group->name, record->step, name);
        record->file_bytes = -1;
        if (run->options.append && record->step > 0) {
            record->files = run->records[r - 1].files;
            continue;
        }
        skeleton_measure_file(run, name, &bytes, &files);
        const int64_t minimum = group->transforms ? 1 : payload;
        if (bytes < minimum)
            skeleton_die(run, "%s/%s: holds %lld bytes, less than the %lld that were written", run->options.directory,
                         name, (long long)bytes, (long long)payload);
        record->files = files;
        if (!run->options.append)
            record->file_bytes = bytes;
        if (removes)
            skeleton_remove_file(run, name);
    }
    run->first_of_repetition = run->record_count;
    PMPI_Barrier(run->comm);
}

bool skeleton_repetition(struct skeleton *run)
{
    const int next = run->repetition + 1;
    if (run->repetition >= 0)
        end_repetition(run, next == run->options.repetitions);
    if (next == run->options.repetitions)
        return false;
    run->repetition = next;
    run->step = -1;
    for (int g = 0; g < run->group_count; ++g)
        run->groups[g].opened = -1;
    /* The moment at which the first process of the node leaves the barrier: the same for all of them. */
    PMPI_Barrier(run->comm);
    const double left_s = skeleton_now_s();
    PMPI_Allreduce(&left_s, &run->start_s, 1, MPI_DOUBLE, MPI_MIN, run->node);
    return true;
}

void skeleton_wait(struct skeleton *run, enum skeleton_barrier place)
{
    if (run->options.barriers & place)
        PMPI_Barrier(run->comm);
}

static void sleep_s(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds};
    left.tv_nsec = (long)(1e9 * (seconds - (double)left.tv_sec));
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

bool skeleton_step(struct skeleton *run)
{
    if (++run->step == run->options.steps) {
        skeleton_wait(run, SKELETON_AFTER_STEPS);
        return false;
    }
    if (run->options.pause_s > 0)
        sleep_s(run->options.pause_s);
    return true;
}

void skeleton_last_step(struct skeleton *run)
{
    run->options.steps = run->step + 1;
}

int skeleton_step_index(const struct skeleton *run)
{
    return run->step;
}

int skeleton_repetition_index(const struct skeleton *run)
{
    return run->repetition;
}

static int group_index(struct skeleton *run, const char *name)
{
    for (int g = 0; g < run->group_count; ++g)
        if (strcmp(run->groups[g].name, name) == 0)
            return g;
    if (!name[0] || name[0] == '.' || strchr(name, '/') || strlen(name) > MAX_GROUP_BYTES)
        skeleton_die(run,
                     "group %s: its files are named after it in the run directory; expected a name of at most %d "
                     "bytes without '/', not beginning with '.'",
                     name, MAX_GROUP_BYTES);
    if (run->group_count == MAX_GROUPS)
        skeleton_die(run, "group %s: expected at most %d groups", name, MAX_GROUPS);
    struct group *group = &run->groups[run->group_count];
    snprintf(group->name, sizeof group->name, "%s", name);
    group->last = group->opened = -1;
    skeleton_describe_group(run, group);
    return run->group_count++;
}

static struct record *new_record(struct skeleton *run, int group)
{
    if (run->record_count == run->record_capacity) {
        run->record_capacity = 2 * run->record_capacity + 16;
        run->records = realloc(run->records, (size_t)run->record_capacity * sizeof *run->records);
        if (!run->records)
            skeleton_die(run, "no memory for %d records", run->record_capacity);
    }
    struct record *record = &run->records[run->record_count++];
    *record = (struct record){.repetition = run->repetition, .step = run->step, .group = group};
    return record;
}

struct record *skeleton_record(struct skeleton *run)
{
    if (!run->is_open)
        skeleton_die(run, "no file is open: expected skeleton_open first");
    return &run->records[run->record_count - 1];
}

void skeleton_begin_phase(const struct skeleton *run, struct record *record, enum phase phase)
{
    const double begin_s = skeleton_clock_begin();
    if (record->operations[phase] == 0)
        record->start_s[phase] = begin_s - run->start_s;
}

void skeleton_end_phase(const struct skeleton *run, struct record *record, enum phase phase)
{
    struct skeleton_times times;
    skeleton_clock_end(&times);
    record->seconds[phase] += times.end_s - times.begin_s;
    record->end_s[phase] = times.end_s - run->start_s;
    record->operations[phase] += 1;
    for (int s = 0; s < STATES; ++s)
        record->spent_s[s] += times.seconds[s];
}

struct record *skeleton_open_record(struct skeleton *run, const char *group, char path[PATH_BYTES])
{
    const int g = group_index(run, group);
    const bool appends = run->options.append && run->step > 0;
    char name[NAME_BYTES];
    if (run->is_open)
        skeleton_die(run, "%s: expected the other file to be closed first", group);
    skeleton_file_name(run, group, run->step, name);
    if (!skeleton_file_path(run, name, path))
        skeleton_die(run, "%s: the path is too long", run->options.directory);
    if (run->rank == 0 && !skeleton_directory_is_there(run))
        skeleton_die(run, "%s: is no longer the run directory that this run opened", run->options.directory);
    if (run->rank == 0 && !appends && skeleton_file_exists(run, name))
        skeleton_die(run, "%s: exists already, and this run did not write it", path);
    struct record *record = new_record(run, g);
    skeleton_wait(run, SKELETON_BEFORE_OPEN);
    run->groups[g].opened = run->step;
    run->is_open = true;
    return record;
}

void skeleton_inject_faults(const struct skeleton *run)
{
    if (run->options.slow_rank == run->rank) {
        skeleton_clock_turn(STATE_IO);
        sleep_s(run->options.slow_s);
        skeleton_clock_turn(STATE_REST);
    }
    if (run->collected)
        MPI_Allgather(run->collected + (size_t)run->options.extra_collective_bytes * (size_t)run->ranks,
                      (int)run->options.extra_collective_bytes, MPI_BYTE, run->collected,
                      (int)run->options.extra_collective_bytes, MPI_BYTE, run->comm);
}

void skeleton_close_record(struct skeleton *run, const struct record *record)
{
    const double total_s = record->seconds[PHASE_OPEN] + record->seconds[PHASE_WRITE] + record->seconds[PHASE_CLOSE];
    const double sum_s = record->spent_s[STATE_REST] + record->spent_s[STATE_COMMUNICATION] + record->spent_s[STATE_IO];
    if (fabs(total_s - sum_s) > 0.02 * total_s)
        skeleton_die(run, "communication, I/O and rest are %.6f s, but %.6f s passed in step %d", sum_s, total_s,
                     record->step);
    run->is_open = false;
    skeleton_wait(run, SKELETON_AFTER_CLOSE);
}

/* ---- End ---- */

void skeleton_finish(struct skeleton *run)
{
    skeleton_finish_library(run);
    skeleton_write_result(run);
    PMPI_Barrier(run->comm);
    skeleton_catch_signals(NULL);
    if (run->rank == 0 && !run->options.keep) {
        skeleton_remove_config(run);
        skeleton_remove_directory(run);
    }
    close(run->directory);
    PMPI_Comm_free(&run->node);
    PMPI_Comm_free(&run->comm);
    free(run->collected);
    free(run->config_text);
    free(run->records);
    free(run);
}
