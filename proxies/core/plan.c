#include "core/plan.h"

#include "core/layout.h"
#include "core/schedule.h"
#include "core/setting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *names_of_methods(char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (const struct und_method *const *method = und_methods; *method && length < size; ++method)
        length += (size_t)snprintf(text + length, size - length, "%s%s", length > 0 ? ", " : "", (*method)->name);
    return text;
}

static bool choose_method(const struct und_stream *stream, int s, const struct und_options *options, const char *file,
                          const struct und_method **method, struct und_error *error)
{
    char names[512], where[128] = "--method";
    const char *name = options->method ? options->method : stream->method;
    if (!options->method)
        snprintf(where, sizeof where, "streams[%d].method", s);
    const char *prefix = options->method ? "" : file, *colon = options->method ? "" : ": ";
    *method = und_method_find(name);
    if (!*method)
        return und_fail(error, "%s%s%s: there is no method %s, expected one of %s%s", prefix, colon, where, name,
                        names_of_methods(names, sizeof names), options->method ? "" : " (or another by --method)");
    if ((*method)->unavailable)
        return und_fail(error, "%s%s%s: the method %s cannot be used: %s", prefix, colon, where, name,
                        (*method)->unavailable);
    if (options->collective && stream->turns)
        return und_fail(error, "--collective: the ranks of streams[%d] take turns, so their calls are independent", s);
    if (options->collective && !(*method)->collective)
        return und_fail(error, "--collective: the method %s of streams[%d] has no collective calls", name, s);
    return true;
}

int64_t und_plan_transfer_bytes(const struct und_variable *variable, const struct und_options *options)
{
    return options->transfer_bytes > 0 ? options->transfer_bytes : variable->transfer_bytes;
}

static bool is_collective(bool described, const struct und_plan *plan, const struct und_options *options)
{
    return plan->method->collective && !options->independent && (options->collective || described);
}

bool und_plan_collective(const struct und_variable *variable, const struct und_plan *plan,
                         const struct und_options *options)
{
    return is_collective(variable->collective, plan, options);
}

/* A call moves whole elements. */
static bool check_transfer(const struct und_stream *stream, int s, int d, int v, const struct und_options *options,
                           const char *file, struct und_error *error)
{
    const struct und_variable *variable = &stream->dumps[d].variables[v];
    const int64_t element = und_type_bytes(variable->type), bytes = und_plan_transfer_bytes(variable, options);
    char where[64] = "";
    if (bytes >= element)
        return true;
    if (options->transfer_bytes > 0)
        return und_fail(error,
                        "--transfer %" PRId64 ": streams[%d] has elements of %" PRId64 " bytes, expected at "
                        "least that",
                        bytes, s, element);
    if (bytes != stream->transfer_bytes)
        snprintf(where, sizeof where, ".dumps[%d].variables[%d]", d, v);
    return und_fail(error,
                    "%s: streams[%d]%s.transfer_bytes: expected at least the %" PRId64 " bytes of an element, "
                    "found %" PRId64,
                    file, s, where, element, bytes);
}

/* How the stream and its variables are moved. */
static bool plan_calls(const struct und_stream *stream, int s, const struct und_options *options, const char *file,
                       struct und_plan *plan, struct und_error *error)
{
    plan->transfer_bytes = options->transfer_bytes > 0 ? options->transfer_bytes : stream->transfer_bytes;
    plan->least_transfer_bytes = INT64_MAX;
    plan->most_transfer_bytes = 0;
    plan->collective = is_collective(stream->collective, plan, options);
    plan->all_collective = true;
    plan->some_collective = false;
    for (int d = 0; d < stream->dump_count; ++d)
        for (int v = 0; !stream->dumps[d].repeats && v < stream->dumps[d].variable_count; ++v) {
            const struct und_variable *variable = &stream->dumps[d].variables[v];
            const int64_t bytes = und_plan_transfer_bytes(variable, options);
            if (!check_transfer(stream, s, d, v, options, file, error))
                return false;
            plan->least_transfer_bytes = bytes < plan->least_transfer_bytes ? bytes : plan->least_transfer_bytes;
            plan->most_transfer_bytes = bytes > plan->most_transfer_bytes ? bytes : plan->most_transfer_bytes;
            const bool collective = und_plan_collective(variable, plan, options);
            plan->all_collective = plan->all_collective && collective;
            plan->some_collective = plan->some_collective || collective;
        }
    return true;
}

static bool group_has_bytes(const struct und_dump *dump, int file, int64_t ranks, const struct und_group *group)
{
    for (int v = 0; v < dump->variable_count; ++v) {
        struct und_dataset dataset;
        struct und_box block;
        int64_t content;
        if (dump->variables[v].file != file)
            continue;
        und_layout_place(&dump->variables[v], ranks, group, group->first, &dataset, &block, &content);
        if (und_dataset_elements(&dataset) > 0)
            return true;
    }
    return false;
}

/* Files that stand for one file of so many ranks: itself, and parts beside it. */
static int64_t files_of_file(const struct und_plan *plan, int64_t ranks)
{
    const int64_t last = plan->method->part ? plan->method->part(plan->settings, ranks - 1, ranks) : -1;
    return last < 0 ? 1 : last + 2;
}

/* Files that dumps from … to-1 make when they share a set of files. */
static int64_t files_of_set(const struct und_stream *stream, const struct und_plan *plan, int64_t ranks, int from,
                            int to)
{
    int64_t files = 0;
    for (int64_t g = 0; g < stream->groups; ++g) {
        const struct und_group group = und_group_at(g, ranks, stream->groups);
        for (int file = 0; file < stream->files; ++file) {
            bool any = false;
            for (int d = from; d < to && !any; ++d)
                any =
                    (d == from || !stream->dumps[d].repeats) && group_has_bytes(&stream->dumps[d], file, ranks, &group);
            files += any ? files_of_file(plan, stream->turns ? 1 : group.end - group.first) : 0;
        }
    }
    return files;
}

static int64_t count_files(const struct und_stream *stream, const struct und_plan *plan, int64_t ranks)
{
    if (stream->append)
        return files_of_set(stream, plan, ranks, 0, stream->dump_count);
    int64_t files = 0, of_dump = 0;
    for (int d = 0; d < stream->dump_count; ++d) {
        if (!stream->dumps[d].repeats)
            of_dump = files_of_set(stream, plan, ranks, d, d + 1);
        files += of_dump;
    }
    return files;
}

/* The options of the method in force, and what they change. */
static bool settle(const struct und_stream *stream, int s, int64_t ranks, const struct und_options *options,
                   struct und_plan *plan, struct und_error *error)
{
    struct und_error why;
    struct und_use use = {
        .append = stream->append,
        .shares = stream->groups < ranks && !stream->turns,
        .collective = plan->all_collective,
        .sync = plan->sync,
        .must_sync = options->fsync,
    };
    und_settings_read(plan->method, options->settings, options->setting_count, plan->settings);
    if (plan->method->settle && !plan->method->settle(plan->settings, &use, &why))
        return und_fail(error, "--method-option: streams[%d] (%s): %.900s", s, stream->name, why.text);
    plan->sync = use.sync;
    plan->packs = use.packs;
    return true;
}

static bool check_one_restart(const struct und_workload *workload, const struct und_options *options,
                              const struct und_plan *plans, int s, struct und_error *error)
{
    const struct und_stream *stream = &workload->streams[s];
    if (options->restart_dump >= stream->dump_count)
        return und_fail(error, "--restart-dump %" PRId64 ": streams[%d] (%s) has %d dumps, expected 0 to %d",
                        options->restart_dump, s, stream->name, stream->dump_count, stream->dump_count - 1);
    if (options->restart_from && !plans[s].method->has_files)
        return und_fail(error, "--restart-from: the method %s of streams[%d] has no files", plans[s].method->name, s);
    if (options->restart_from && stream->turns && workload->scaled)
        return und_fail(error,
                        "--restart-from: the ranks of streams[%d] (%s) took turns, so that its files are as many parts "
                        "as ranks; expected a descriptor that is not scaled",
                        s, stream->name);
    return true;
}

static bool check_restart(const struct und_workload *workload, const struct und_options *options,
                          const struct und_plan *plans, struct und_error *error)
{
    int found = 0;
    for (int s = 0; s < workload->stream_count; ++s) {
        if (!und_stream_restarts(&workload->streams[s], options))
            continue;
        if (!check_one_restart(workload, options, plans, s, error))
            return false;
        ++found;
    }
    if (options->restart_stream && found == 0)
        return und_fail(error, "--restart-stream %s: the workload writes no stream of that name",
                        options->restart_stream);
    return found > 0 || !options->restart_from ||
           und_fail(error,
                    "--restart-from: the workload writes no checkpoint stream; name another by --restart-stream");
}

/* An option of a method that plays nothing would be ignored in silence. */
static bool check_settings(const struct und_workload *workload, const struct und_options *options,
                           const struct und_plan *plans, struct und_error *error)
{
    for (int i = 0; i < options->setting_count; ++i) {
        bool used = false;
        for (int s = 0; s < workload->stream_count; ++s)
            used = used || und_setting_is_of(options->settings[i], plans[s].method);
        if (!used)
            return und_fail(error, "--method-option %s: no stream is played by that method", options->settings[i]);
    }
    return true;
}

bool und_plan_make(const struct und_workload *workload, const struct und_options *options, const char *file,
                   struct und_plan *plans, struct und_error *error)
{
    if (!und_settings_check(options->settings, options->setting_count, error))
        return false;
    for (int s = 0; s < workload->stream_count; ++s) {
        const struct und_stream *stream = &workload->streams[s];
        struct und_plan *plan = &plans[s];
        if (!choose_method(stream, s, options, file, &plan->method, error))
            return false;
        if (!plan_calls(stream, s, options, file, plan, error))
            return false;
        plan->sync = stream->operation == UND_WRITES && (stream->sync || stream->append || options->fsync);
        if (!settle(stream, s, workload->ranks, options, plan, error))
            return false;
        if (options->verify && !plan->method->has_files)
            return und_fail(error, "--verify: the method %s of streams[%d] keeps nothing that could be compared",
                            plan->method->name, s);
        plan->bytes = 0;
        for (int d = 0; d < stream->dump_count; ++d)
            plan->bytes += und_dump_bytes(&stream->dumps[d]);
        plan->files = plan->method->has_files ? count_files(stream, plan, workload->ranks) : 0;
    }
    return check_settings(workload, options, plans, error) && check_restart(workload, options, plans, error);
}

enum und_compute und_plan_compute(const struct und_workload *workload, const struct und_options *options)
{
    return options->compute < 0 ? workload->compute : (enum und_compute)options->compute;
}
