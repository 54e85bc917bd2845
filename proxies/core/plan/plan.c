#include "plan/plan.h"

#include "interfaces/layout_request.h"
#include "options/setting.h"
#include "plan/fold.h"
#include "workload/decomposition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
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
    if (options->collective && stream->in_turn)
        return und_fail(error, "--collective: the ranks of streams[%d] take turns, so their calls are independent", s);
    if (options->collective && stream->own_set.owner == UND_EACH_ROW)
        return und_fail(error, "--collective: no ranks share a file of streams[%d], whose layout is flood", s);
    if (options->collective && !(*method)->collective)
        return und_fail(error, "--collective: the method %s of streams[%d] has no collective calls", name, s);
    return true;
}

int64_t und_plan_transfer_bytes(const struct und_variable *variable, const struct und_stream_plan *plan)
{
    const int64_t asked = plan->forced_transfer_bytes > 0 ? plan->forced_transfer_bytes : variable->transfer_bytes;
    const int64_t most = plan->method->most_call_bytes;
    return most > 0 && asked > most ? most : asked;
}

static bool is_collective(bool described, const struct und_stream_plan *plan)
{
    return plan->method->collective && plan->calls != UND_ALL_INDEPENDENT &&
           (plan->calls == UND_ALL_COLLECTIVE || described);
}

bool und_plan_collective(const struct und_variable *variable, const struct und_stream_plan *plan)
{
    return is_collective(variable->collective, plan);
}

int64_t und_plan_depth(const struct und_variable *variable, const struct und_stream_plan *plan)
{
    return plan->method->depth && !und_plan_collective(variable, plan)
               ? plan->method->depth(plan->settings, variable->depth)
               : 0;
}

/* Calls in flight, as the options of the method have it. */
static void plan_depth(const struct und_stream *stream, struct und_stream_plan *plan)
{
    plan->depth = 0;
    plan->most_depth = 1;
    for (int d = 0; d < stream->entry_count; ++d)
        for (int v = 0; !stream->entries[d].repeats && v < stream->entries[d].variable_count; ++v) {
            const struct und_variable *variable = &stream->entries[d].variables[v];
            plan->depth = und_larger(plan->depth, und_plan_depth(variable, plan));
            plan->most_depth = und_larger(plan->most_depth, variable->depth);
        }
}

/* Can other transfers come between those of the stream? */
static bool mixes(const struct und_stream *stream)
{
    return stream->operation == UND_WRITES && !stream->own_set.tree;
}

/* Calls of a rank in a move of the variable, with reads between writes, but not beyond the depth. */
static int64_t flights_of(const struct und_stream *stream, const struct und_variable *variable, int64_t ranks,
                          const struct und_stream_plan *plan, double mix_reads)
{
    const int64_t depth = und_plan_depth(variable, plan), bytes = und_plan_transfer_bytes(variable, plan);
    const bool is_row = stream->own_set.owner == UND_EACH_ROW;
    const struct und_variable row = und_decomposition_row(variable);
    int64_t calls = depth == 0 ? 0 : und_decomposition_most_calls(is_row ? &row : variable, is_row ? 1 : ranks, bytes);
    if (!is_row)
        calls = und_smaller(calls, depth) * und_smaller(variable->count, depth);
    if (mixes(stream) && mix_reads > 0)
        calls += (int64_t)((double)calls * mix_reads) + 1;
    return und_smaller(calls, depth);
}

/* Memory is for the calls that there are, however deep the queue is. */
static void plan_flights(const struct und_workload *workload, struct und_plan *plan)
{
    for (int s = 0; s < workload->stream_count; ++s) {
        const struct und_stream *stream = &workload->streams[s];
        struct und_stream_plan *here = &plan->streams[s];
        here->in_flight = here->depth > 0;
        for (int e = 0; e < stream->entry_count; ++e)
            for (int v = 0; !stream->entries[e].repeats && v < stream->entries[e].variable_count; ++v)
                here->in_flight = und_larger(here->in_flight, flights_of(stream, &stream->entries[e].variables[v],
                                                                         workload->ranks, here, plan->mix_reads));
    }
}

/* A call moves whole elements. */
static bool check_transfer(const struct und_stream *stream, int s, int d, int v, const struct und_stream_plan *plan,
                           const char *file, struct und_error *error)
{
    const struct und_variable *variable = &stream->entries[d].variables[v];
    const int64_t element = und_type_bytes(variable->type), bytes = und_plan_transfer_bytes(variable, plan);
    char where[64] = "";
    if (bytes >= element)
        return true;
    if (plan->forced_transfer_bytes > 0)
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

/* No call moves more than a variable. */
static int64_t longest_transfer(const struct und_variable *variable, int64_t transfer_bytes)
{
    const int64_t element = und_type_bytes(variable->type);
    int64_t bytes = element;
    for (int d = 0; d < variable->ndims; ++d)
        bytes *= variable->shape[d];
    bytes = bytes > element ? bytes : element;
    return bytes < transfer_bytes ? bytes : transfer_bytes;
}

/* How the stream and its variables are moved. */
static bool plan_calls(const struct und_stream *stream, int s, const struct und_options *options, const char *file,
                       struct und_stream_plan *plan, struct und_error *error)
{
    plan->forced_transfer_bytes = options->transfer_bytes;
    plan->calls = options->collective    ? UND_ALL_COLLECTIVE
                  : options->independent ? UND_ALL_INDEPENDENT
                                         : UND_AS_DESCRIBED;
    plan->transfer_bytes = options->transfer_bytes > 0 ? options->transfer_bytes : stream->transfer_bytes;
    plan->least_transfer_bytes = INT64_MAX;
    plan->most_transfer_bytes = 0;
    plan->collective = is_collective(stream->collective, plan);
    plan->all_collective = true;
    plan->some_collective = false;
    for (int d = 0; d < stream->entry_count; ++d)
        for (int v = 0; !stream->entries[d].repeats && v < stream->entries[d].variable_count; ++v) {
            const struct und_variable *variable = &stream->entries[d].variables[v];
            const int64_t bytes = und_plan_transfer_bytes(variable, plan);
            if (!check_transfer(stream, s, d, v, plan, file, error))
                return false;
            plan->least_transfer_bytes = bytes < plan->least_transfer_bytes ? bytes : plan->least_transfer_bytes;
            const int64_t longest = longest_transfer(variable, bytes);
            plan->most_transfer_bytes = longest > plan->most_transfer_bytes ? longest : plan->most_transfer_bytes;
            const bool collective = und_plan_collective(variable, plan);
            plan->all_collective = plan->all_collective && collective;
            plan->some_collective = plan->some_collective || collective;
        }
    if (plan->most_transfer_bytes == 0)
        plan->least_transfer_bytes = plan->most_transfer_bytes = plan->transfer_bytes;
    return true;
}

static bool check_method(const struct und_workload *workload, int s, const struct und_options *options,
                         const struct und_stream_plan *plans, const char *file, struct und_error *error)
{
    const struct und_stream *stream = &workload->streams[s];
    const struct und_method *method = plans[s].method;
    bool needs[UND_NEEDS];
    und_fold_needs(workload, stream, needs);
    needs[UND_LOOKS_UP] = needs[UND_LOOKS_UP] || (options->mix_percent > 0 && mixes(stream));
    for (int n = 0; n < UND_NEEDS; ++n)
        if (needs[n] && !(method->can & und_needs[n].ability))
            return und_fail(error, "%s: streams[%d] (%s): the method %s cannot %s: play it by another (--method)", file,
                            s, stream->name, method->name, und_needs[n].what);
    if (options->collective && stream->order.rule != UND_CONSECUTIVE)
        return und_fail(error,
                        "--collective: the order of streams[%d] (%s) is not consecutive, so its calls are "
                        "independent",
                        s, stream->name);
    return true;
}

/* The options of the method in force, and what they change. */
static bool settle(const struct und_stream *stream, int s, int64_t ranks, const struct und_options *options,
                   struct und_stream_plan *plan, struct und_error *error)
{
    struct und_error why;
    struct und_use use = {
        .append = und_stream_grows(stream),
        .shares = stream->own_set.groups < ranks && !stream->in_turn,
        .collective = plan->all_collective,
        .sync = plan->sync,
        .must_sync = options->fsync,
        .lasts = plan->lasting || stream->sync_bytes > 0,
        .within = plan->flush_bytes > 0,
        .suffix = plan->method->suffix,
    };
    const char *const *texts = options->settings.texts;
    const int count = options->settings.count;
    char chunk[24];
    snprintf(chunk, sizeof chunk, "%" PRId64, stream->chunk_bytes);
    und_settings_read(plan->method, texts, count, plan->settings);
    if (stream->chunk_bytes > 0)
        und_settings_prefer(plan->method, "chunk", chunk, texts, count, plan->settings);
    if (stream->fill)
        und_settings_prefer(plan->method, "fill", "yes", texts, count, plan->settings);
    plan->direct = stream->direct && und_settings_prefer(plan->method, "direct", "yes", texts, count, plan->settings);
    if (plan->method->settle && !plan->method->settle(plan->settings, &use, &why))
        return und_fail(error, "--method-option: streams[%d] (%s): %.900s", s, stream->name, why.text);
    plan_depth(stream, plan);
    plan->sync = use.sync;
    plan->packs = use.packs;
    plan->holds = use.holds;
    plan->suffix = use.suffix;
    plan->is_member = use.directories ? plan->method->is_member : NULL;
    return true;
}

static bool check_one_restart(const struct und_workload *workload, const struct und_options *options,
                              const struct und_stream_plan *plans, int s, struct und_error *error)
{
    const struct und_stream *stream = &workload->streams[s];
    if (options->restart_dump >= stream->dump_count)
        return und_fail(error, "--restart-dump %" PRId64 ": streams[%d] (%s) has %d dumps, expected 0 to %d",
                        options->restart_dump, s, stream->name, stream->dump_count, stream->dump_count - 1);
    if (options->restart_dump >= 0 && und_dump_of(stream, (int)options->restart_dump)->variable_count == 0)
        return und_fail(error, "--restart-dump %" PRId64 ": that dump of streams[%d] (%s) has no data",
                        options->restart_dump, s, stream->name);
    const int64_t kept = und_stream_contents(stream) - stream->own_set.names;
    if (und_stream_reuses(stream) && und_stream_content(stream, plans[s].restart_dump) < kept) {
        int first = plans[s].restart_dump;
        while (und_stream_content(stream, first) < kept)
            ++first;
        return und_fail(error, "--restart-dump %d: streams[%d] (%s) overwrites that dump later, expected %d to %d",
                        plans[s].restart_dump, s, stream->name, first, stream->dump_count - 1);
    }
    if (options->restart_from && !plans[s].method->has_files)
        return und_fail(error, "--restart-from: the method %s of streams[%d] has no files", plans[s].method->name, s);
    if (options->restart_from && stream->in_turn && workload->scaled)
        return und_fail(error,
                        "--restart-from: the ranks of streams[%d] (%s) took turns, so that its files are as many parts "
                        "as ranks; expected a descriptor that is not scaled",
                        s, stream->name);
    return true;
}

static bool check_restart(const struct und_workload *workload, const struct und_options *options,
                          const struct und_stream_plan *plans, struct und_error *error)
{
    int streams = 0;
    for (int s = 0; s < workload->stream_count; ++s) {
        if (!plans[s].restarts)
            continue;
        if (!check_one_restart(workload, options, plans, s, error))
            return false;
        ++streams;
    }
    if (options->restart_stream && streams == 0)
        return und_fail(error, "--restart-stream %s: the workload writes no stream of that name",
                        options->restart_stream);
    return streams > 0 || !options->restart_from ||
           und_fail(error,
                    "--restart-from: the workload writes no checkpoint stream; name another by --restart-stream");
}

/* Is the pair's key the name? Gives the value. */
static const char *value_of(const char *pair, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(pair, name, length) == 0 && pair[length] == '=' ? pair + length + 1 : NULL;
}

/* Keys of ROMIO and of OMPIO for the layout of a file, which matter when MPI creates it, and others that are numbers:
 * MPI libraries take any value, and some fail later. */
static bool plan_hint(const char *pair, struct und_stream_plan *plan, struct und_error *error)
{
    static const struct {
        const char *name;
        int64_t least;
        bool counts, sizes, creates;
    } keys[] = {
        {"striping_factor", 1, .counts = true, .creates = true},
        {"stripe_width", 1, .counts = true, .creates = true},
        {"striping_unit", 1, .sizes = true, .creates = true},
        {"stripe_size", 1, .sizes = true, .creates = true},
        {"start_iodevice", 0, .creates = true},
        {"romio_lustre_start_iodevice", 0, .creates = true},
        {"cb_nodes", 1, .creates = false},
        {"cb_buffer_size", 1, .creates = false},
        {"cb_block_size", 1, .creates = false},
        {"ind_rd_buffer_size", 1, .creates = false},
        {"ind_wr_buffer_size", 1, .creates = false},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i) {
        const char *value = value_of(pair, keys[i].name);
        char *end;
        if (!value)
            continue;
        const int64_t number = strtoll(value, &end, 10);
        if (value[0] < '0' || value[0] > '9' || *end != '\0' || number < keys[i].least || number > INT32_MAX)
            return und_fail(error, "--hint %s: expected a whole number from %" PRId64 " to %d", pair, keys[i].least,
                            INT32_MAX);
        plan->creates = plan->creates || keys[i].creates;
        if (keys[i].counts)
            plan->hinted_count = number;
        if (keys[i].sizes)
            plan->hinted_size_bytes = number;
    }
    return true;
}

static bool plan_hints(const struct und_options *options, struct und_stream_plan *plan, struct und_error *error)
{
    const bool asked =
        options->stripe_count != 0 || options->stripe_size > 0 || options->stripe_targets || options->stripe_pool;
    plan->hints.count = 0;
    plan->hinted_count = plan->hinted_size_bytes = 0;
    plan->creates = plan->method->creates && !asked;
    if (!plan->method->hints)
        return true;
    for (const char *const *hint = plan->method->hints; *hint; ++hint)
        plan->hints.texts[plan->hints.count++] = *hint;
    for (int i = 0; i < options->hints.count; ++i) {
        if (plan->hints.count == UND_MAX_PAIRS)
            return und_fail(error, "--hint %s: more than %d hints", options->hints.texts[i], UND_MAX_PAIRS);
        plan->hints.texts[plan->hints.count++] = options->hints.texts[i];
        if (!plan_hint(options->hints.texts[i], plan, error))
            return false;
    }
    return !plan->creates || !asked ||
           und_fail(error, "--hint for a layout (striping_factor, striping_unit, ...) and --stripe-count, "
                           "--stripe-size, --stripe-targets or --stripe-pool exclude each other");
}

/* An option of a method that plays nothing would be ignored in silence. */
static bool check_settings(const struct und_workload *workload, const struct und_options *options,
                           const struct und_stream_plan *plans, struct und_error *error)
{
    for (int i = 0; i < options->settings.count; ++i) {
        bool used = false;
        for (int s = 0; s < workload->stream_count; ++s)
            used = used || und_setting_is_of(options->settings.texts[i], plans[s].method);
        if (!used)
            return und_fail(error, "--method-option %s: no stream is played by that method",
                            options->settings.texts[i]);
    }
    bool hints = false;
    for (int s = 0; s < workload->stream_count; ++s)
        hints = hints || plans[s].method->hints;
    if (options->hints.count > 0 && !hints)
        return und_fail(error, "--hint %s: no stream is played by a method that takes hints", options->hints.texts[0]);
    return true;
}

/* The bytes and files of the stream on storage. */
static bool count_storage(const struct und_stream *stream, int s, int64_t ranks, struct und_stream_plan *plan,
                          const char *file, struct und_error *error)
{
    plan->files = plan->other_inodes = plan->stored_bytes = 0;
    if (stream->own_set.owner == UND_EACH_ROW && !und_fold_check_sets(stream, s, file, error))
        return false;
    if (!plan->method->has_files || stream->source >= 0)
        return true;
    plan->files = und_fold_files(stream, ranks, plan->method, plan->settings);
    plan->other_inodes = und_fold_other_inodes(stream, ranks);
    if (plan->is_member && plan->method->members)
        plan->other_inodes +=
            plan->files *
            plan->method->members(plan->settings, stream->in_turn ? 1 : (ranks - 1) / stream->own_set.groups + 1);
    plan->stored_bytes = und_fold_stored_bytes(stream);
    return plan->stored_bytes >= 0 ||
           und_fail(error, "%s: streams[%d] (%s): its files take more bytes than can be counted", file, s,
                    stream->name);
}

static bool plan_stream(const struct und_workload *workload, int s, const struct und_options *options, const char *file,
                        struct und_stream_plan *plans, struct und_error *error)
{
    const struct und_stream *stream = &workload->streams[s];
    struct und_stream_plan *plan = &plans[s];
    if (!choose_method(stream, s, options, file, &plan->method, error) ||
        !check_method(workload, s, options, plans, file, error) || !plan_calls(stream, s, options, file, plan, error))
        return false;
    const bool writes = stream->operation == UND_WRITES;
    plan->lasting = writes && (stream->sync || options->fsync);
    plan->flush_bytes = plan->method->hands_over && stream->flush_bytes > 0 ? stream->flush_bytes : stream->sync_bytes;
    /* Bytes of a dump that a library keeps must not go over those that another rank writes there later. */
    const bool later = und_stream_grows(stream) || (stream->stays_open && und_fold_shares(stream, workload->ranks));
    /* Bytes of calls that it keeps must be in the file before others read there, and before a dump that goes on. */
    plan->is_read_open = und_fold_is_read_open(workload, s);
    const bool others = plan->is_read_open || und_stream_contents(stream) < stream->dump_count;
    plan->syncs_all = writes && (options->fsync || (stream->stays_open && later && plan->method->buffers) ||
                                 (others && plan->method->hands_over));
    plan->sync = plan->lasting || plan->syncs_all;
    if (!settle(stream, s, workload->ranks, options, plan, error) || !plan_hints(options, plan, error))
        return false;
    if (options->verify && !plan->method->has_files)
        return und_fail(error, "--verify: the method %s of streams[%d] keeps nothing that could be compared",
                        plan->method->name, s);
    plan->bytes = und_fold_bytes(stream);
    return count_storage(stream, s, workload->ranks, plan, file, error);
}

static bool restarts(const struct und_stream *stream, const struct und_options *options)
{
    if (!options->restart || stream->operation != UND_WRITES)
        return false;
    return options->restart_stream ? strcmp(stream->name, options->restart_stream) == 0
                                   : stream->role == UND_CHECKPOINT;
}

/* The last dump that is more than operations without bytes; -1: none is. */
static int last_with_data(const struct und_stream *stream)
{
    int d = stream->dump_count - 1;
    while (d >= 0 && und_dump_of(stream, d)->variable_count == 0)
        --d;
    return d;
}

void und_plan_events(const struct und_workload *workload, const struct und_options *options, struct und_plan *plan)
{
    plan->only_restarts = options->restart_from != NULL;
    plan->time_scale = options->time_scale;
    for (int s = 0; s < workload->stream_count; ++s) {
        const struct und_stream *stream = &workload->streams[s];
        const int last = last_with_data(stream);
        plan->streams[s].restarts = restarts(stream, options) && last >= 0;
        plan->streams[s].restart_dump = options->restart_dump < 0 ? last : (int)options->restart_dump;
    }
}

/* Can the moves of the stream end early? What is not written cannot be read by what another stream says. */
static bool check_deadline(const struct und_workload *workload, int s, const struct und_options *options,
                           const struct und_stream_plan *plan, struct und_error *error)
{
    const struct und_stream *stream = &workload->streams[s];
    if (options->deadline_s < 0)
        return true;
    if (stream->own_set.tree)
        return und_fail(error, "--deadline: streams[%d] (%s) is a list of calls, of which none can be left out", s,
                        stream->name);
    if (stream->source >= 0)
        return und_fail(error, "--deadline: streams[%d] (%s) reads what another stream may have left unwritten", s,
                        stream->name);
    if (plan->method->complete && stream->operation == UND_WRITES)
        return und_fail(error, "--deadline: the method %s of streams[%d] (%s) cannot leave out a part of a file",
                        plan->method->name, s, stream->name);
    if (!options->wear_out)
        return true;
    if (stream->in_turn || stream->own_set.owner == UND_EACH_ROW)
        return und_fail(error, "--wear-out: the ranks of streams[%d] (%s) %s; expected files that are open together", s,
                        stream->name, stream->in_turn ? "take turns" : "have many files, one after the other");
    if (plan->some_collective || (plan->flush_bytes > 0 && plan->method->collective))
        return und_fail(error, "--wear-out: calls of streams[%d] (%s) are collective, whose ranks stop together", s,
                        stream->name);
    return !plan->method->define ||
           und_fail(error, "--wear-out: the method %s of streams[%d] (%s) cannot go on with a variable",
                    plan->method->name, s, stream->name);
}

static bool check_deadlines(const struct und_workload *workload, const struct und_options *options,
                            const struct und_plan *plan, struct und_error *error)
{
    if (options->wear_out && options->deadline_s < 0)
        return und_fail(error, "--wear-out: expected --deadline with it");
    if (options->deadline_s > 0 && options->keep)
        return und_fail(error, "--deadline and --keep exclude each other: later runs would read what was not written");
    for (int s = 0; s < workload->stream_count; ++s)
        if (!check_deadline(workload, s, options, &plan->streams[s], error))
            return false;
    return true;
}

static bool begins_moves(const struct und_stream *stream)
{
    for (int e = 0; e < stream->entry_count; ++e)
        for (int v = 0; v < stream->entries[e].variable_count; ++v)
            if (stream->entries[e].variables[v].nonblocking)
                return true;
    return false;
}

static bool check_mix(const struct und_workload *workload, const struct und_options *options,
                      const struct und_stream_plan *plans, struct und_error *error)
{
    bool any = options->mix_percent < 0;
    if (options->mix_percent > 99)
        return und_fail(error, "--mix %" PRId64 ": expected 1 to 99", options->mix_percent);
    for (int s = 0; s < workload->stream_count && options->mix_percent > 0; ++s) {
        const struct und_stream *stream = &workload->streams[s];
        if (!mixes(stream))
            continue;
        any = true;
        if (plans[s].some_collective || begins_moves(stream))
            return und_fail(error, "--mix: transfers of streams[%d] (%s) are %s; expected calls of each rank alone", s,
                            stream->name, plans[s].some_collective ? "collective" : "nonblocking");
    }
    return any || und_fail(error, "--mix: no stream of the workload writes variables");
}

static bool plan_layout_of_files(const struct und_options *options, struct und_layout_request *request,
                                 struct und_error *error)
{
    request->stripe_count = options->stripe_count;
    request->stripe_size_bytes = options->stripe_size;
    request->pool = options->stripe_pool;
    return !options->stripe_targets || und_layout_request_read_targets(options->stripe_targets, request) ||
           und_fail(error, "--stripe-targets %s: expected a list of numbers such as 0,4-7", options->stripe_targets);
}

static bool fill(const struct und_workload *workload, const struct und_options *options, const char *file,
                 struct und_plan *plan, struct und_error *error)
{
    if (!und_settings_check(options->settings.texts, options->settings.count, error))
        return false;
    plan->directory = options->directory;
    plan->repetitions = options->repetitions;
    plan->keep = options->keep;
    plan->keep_pauses = options->keep_pauses;
    plan->requests = options->requests;
    plan->output = options->output;
    plan->deadline_s = options->deadline_s > 0 ? options->deadline_s : 0;
    plan->wears_out = options->wear_out;
    if (options->mix_percent > 0 && options->mix_percent < 100)
        plan->mix_reads = (double)options->mix_percent / (double)(100 - options->mix_percent);
    plan->rate_bytes = options->rate_bytes;
    plan->verify = options->verify;
    plan->drop_cache = options->drop_cache;
    plan->verbose = options->verbose;
    plan->latency = !options->no_latency;
    plan->time_series = options->time_series;
    plan->compute = options->compute < 0 ? workload->compute : (enum und_compute)options->compute;
    plan->shift_ranks = options->shift_ranks;
    plan->seed = (uint64_t)options->seed;
    und_plan_events(workload, options, plan);
    for (int s = 0; s < workload->stream_count; ++s)
        if (!plan_stream(workload, s, options, file, plan->streams, error))
            return false;
    plan_flights(workload, plan);
    return check_settings(workload, options, plan->streams, error) &&
           check_restart(workload, options, plan->streams, error) && check_deadlines(workload, options, plan, error) &&
           check_mix(workload, options, plan->streams, error) && plan_layout_of_files(options, &plan->layout, error);
}

struct und_plan *und_plan_new(const struct und_workload *workload, const struct und_options *options, const char *file,
                              struct und_error *error)
{
    struct und_plan *plan = calloc(1, sizeof *plan);
    if (plan)
        plan->streams = calloc((size_t)workload->stream_count, sizeof *plan->streams);
    if (!plan || !plan->streams)
        und_fail(error, "no memory to plan %d streams", workload->stream_count);
    else if (fill(workload, options, file, plan, error))
        return plan;
    und_plan_free(plan);
    return NULL;
}

void und_plan_free(struct und_plan *plan)
{
    if (plan)
        free(plan->streams);
    free(plan);
}
