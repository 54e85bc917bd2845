/* ADIOS 1.13: its parameters, its calls and its timers. */
#include "internal.h"

#include <adios.h>
#include <adios_error.h>
#include <stdlib.h>
#include <string.h>

enum { LIBRARY_FIRST_TIMER = 16 };

/* In the library, but in none of its headers. */
int adios_get_timing_value(int64_t file, int64_t index, double *value);

const char skeleton_library_name[] = "adios", skeleton_library_version[] = ADIOS_VERSION;

static void check_adios(const struct skeleton *run, int code, const char *call, const char *what)
{
    if (code != 0)
        skeleton_die(run, "%s of %s failed with code %d: %s", call, what, code, adios_get_last_errmsg());
}

/* Parameters of methods that write files: of ADIOS 1.13.1, which passes over any other in silence, and block_size and
 * merging_pgs of older versions, which published studies state. */
static const char *const known_parameters[] = {
    "aggregation_type", "block_size",      "color",       "have_metadata_file", "local-fs",
    "merging_pgs",      "num_aggregators", "num_ost",     "osts_to_skip",       "random_offset",
    "stripe_count",     "stripe_offset",   "stripe_size", "striping",           "threading"};

static void check_parameters(struct skeleton *run, const char *text)
{
    while (*text) {
        const char *name = text + strspn(text, " ;,");
        const size_t length = strcspn(name, "= ;,");
        bool is_parameter = length == 0;
        for (size_t i = 0; i < sizeof known_parameters / sizeof known_parameters[0]; ++i)
            is_parameter = is_parameter ||
                           (strlen(known_parameters[i]) == length && strncmp(known_parameters[i], name, length) == 0);
        if (!is_parameter)
            skeleton_leave(run, 0,
                           "--parameters %.*s: no method of ADIOS 1.13.1 has this parameter; expected num_aggregators, "
                           "num_ost, stripe_count, stripe_size, block_size, stripe_offset, have_metadata_file, "
                           "local-fs, striping, random_offset, osts_to_skip, aggregation_type, threading or color",
                           (int)length, name);
        text = name + length;
        text += strcspn(text, ";,");
    }
}

void skeleton_check_library_options(struct skeleton *run)
{
    const struct skeleton_options *options = &run->options;
    if (options->method && strpbrk(options->method, "<>&\""))
        skeleton_leave(run, 0, "--method %s: expected the name of an ADIOS method", options->method);
    if (options->parameters && strpbrk(options->parameters, "<>&"))
        skeleton_leave(run, 0, "--parameters %s: expected key=value;key=value", options->parameters);
    if (options->parameters)
        check_parameters(run, options->parameters);
}

void skeleton_start_library(struct skeleton *run)
{
    int failed = skeleton_init_adios(run), any = 0;
    PMPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MIN, run->comm);
    if (any != 0)
        skeleton_leave(run, 0, "adios_init of %s failed with code %d: %s", run->options.config, any,
                       failed ? adios_get_last_errmsg() : "on another process");
}

void skeleton_describe_group(struct skeleton *run, struct group *group)
{
    if (skeleton_group_aggregates_time(run, group->name))
        skeleton_die(run,
                     "%s: <time-aggregation group=\"%s\">: steps stay in the buffer of ADIOS until it is full, so that "
                     "they cannot be measured one by one; expected a config without it",
                     run->options.config, group->name);
    group->has_timers = skeleton_method_has_timers(run, group->name);
    group->transforms = skeleton_group_has_transforms(run, group->name);
    group->buffer_bytes = group->transforms ? INT64_MAX : skeleton_buffer_bytes(run, group->name);
}

/* ---- Files ---- */

const char skeleton_folder_ending[] = ".dir";

/* NAME.<rank>, a file in the directory NAME.dir. */
bool skeleton_is_subfile(const struct skeleton *run, const char *entry, const char *folder)
{
    const size_t length = strlen(folder) - strlen(skeleton_folder_ending);
    const char *rest =
        strncmp(entry, folder, length) == 0 ? skeleton_behind_number(entry + length, run->ranks - 1) : NULL;
    return rest && *rest == '\0';
}

/* ---- Calls ---- */

static void take_library_timers(const struct skeleton *run, struct record *record, int64_t file)
{
    for (int t = 0; t < LIBRARY_TIMERS; ++t)
        check_adios(run, adios_get_timing_value(file, LIBRARY_FIRST_TIMER + t, &record->library_s[t]),
                    "adios_get_timing_value", run->groups[record->group].name);
    record->has_library = true;
}

int64_t skeleton_open(struct skeleton *run, const char *group)
{
    const bool appends = run->options.append && run->step > 0;
    char path[PATH_BYTES];
    int64_t file = 0;
    struct record *record = skeleton_open_record(run, group, path);
    struct group *current = &run->groups[record->group];
    skeleton_begin_phase(run, record, PHASE_OPEN);
    const int code = adios_open(&file, group, path, appends ? "a" : "w", run->comm);
    skeleton_end_phase(run, record, PHASE_OPEN);
    check_adios(run, code, "adios_open", path);
    if (current->has_timers && current->last >= 0)
        take_library_timers(run, &run->records[current->last], file);
    current->last = run->record_count - 1;
    return file;
}

void skeleton_group_size(struct skeleton *run, int64_t file, uint64_t bytes)
{
    struct record *record = skeleton_record(run);
    const struct group *group = &run->groups[record->group];
    uint64_t total = 0;
    if (bytes > (uint64_t)group->buffer_bytes)
        skeleton_die(
            run,
            "%s: <buffer>: a buffer of %lld MB cannot hold the %llu bytes that this process writes of %s; raise "
            "max-size-MB, or use the method POSIX",
            run->options.config, (long long)(group->buffer_bytes >> 20), (unsigned long long)bytes, group->name);
    skeleton_begin_phase(run, record, PHASE_OPEN);
    const int code = adios_group_size(file, bytes, &total);
    skeleton_end_phase(run, record, PHASE_OPEN);
    check_adios(run, code, "adios_group_size", group->name);
    record->bytes = (int64_t)bytes;
    skeleton_wait(run, SKELETON_BEFORE_WRITE);
}

void skeleton_write(struct skeleton *run, int64_t file, const char *variable, const void *data)
{
    struct record *record = skeleton_record(run);
    skeleton_begin_phase(run, record, PHASE_WRITE);
    const int code = adios_write(file, variable, data);
    skeleton_end_phase(run, record, PHASE_WRITE);
    check_adios(run, code, "adios_write", variable);
}

void skeleton_close(struct skeleton *run, int64_t file)
{
    struct record *record = skeleton_record(run);
    skeleton_wait(run, SKELETON_BEFORE_CLOSE);
    skeleton_begin_phase(run, record, PHASE_CLOSE);
    skeleton_inject_faults(run);
    const int code = adios_close(file);
    skeleton_end_phase(run, record, PHASE_CLOSE);
    check_adios(run, code, "adios_close", run->groups[record->group].name);
    skeleton_close_record(run, record);
}

/* ---- End ---- */

/* ADIOS tells the timers of a step at the next open of the group: here is one more, of a file of no use. */
static void take_last_timers(struct skeleton *run)
{
    struct skeleton_times unused;
    char path[PATH_BYTES];
    if (!skeleton_file_path(run, SKELETON_TIMERS, path))
        skeleton_die(run, "%s: the path is too long", run->options.directory);
    for (int g = 0; g < run->group_count; ++g) {
        const struct group *group = &run->groups[g];
        int64_t file = 0;
        uint64_t total = 0;
        if (!group->has_timers || group->last < 0)
            continue;
        if (run->rank == 0 && skeleton_file_exists(run, SKELETON_TIMERS))
            skeleton_die(run, "%s: exists already, and this run did not write it", path);
        PMPI_Barrier(run->comm);
        run->opened_timers = true;
        skeleton_clock_begin(); /* in calls of ADIOS no link is followed */
        check_adios(run, adios_open(&file, group->name, path, "w", run->comm), "adios_open", path);
        take_library_timers(run, &run->records[group->last], file);
        check_adios(run, adios_group_size(file, 0, &total), "adios_group_size", path);
        check_adios(run, adios_close(file), "adios_close", path);
        skeleton_clock_end(&unused);
        PMPI_Barrier(run->comm);
        if (run->rank == 0)
            skeleton_remove_file(run, SKELETON_TIMERS);
        PMPI_Barrier(run->comm);
    }
}

void skeleton_finish_library(struct skeleton *run)
{
    take_last_timers(run);
    check_adios(run, adios_finalize(run->rank), "adios_finalize", run->config);
}
