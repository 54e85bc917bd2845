#include "playing/totals.h"

#include "job/timing.h"
#include "plan/fold.h"
#include "plan/operations.h"
#include "playing/caller.h"
#include "playing/latencies.h"
#include "playing/small_file_set.h"
#include "playing/stencil.h"
#include "playing/stream_player.h"
#include "workload/decomposition.h"
#include "workload/pattern.h"

static const int64_t MANY = INT64_MAX / 1024; /* bytes that no rank has */

static unsigned types_of(const struct und_stream *stream)
{
    unsigned types = 0;
    for (int e = 0; e < stream->entry_count; ++e)
        for (int v = 0; !stream->entries[e].repeats && v < stream->entries[e].variable_count; ++v)
            types |= 1U << und_content_type(&stream->content, stream->entries[e].variables[v].type);
    if (stream->own_set.tree)
        types |= 1U << und_content_type(&stream->content, UND_BYTE);
    return types;
}

/* Bases of the contents: one for each content, and for each type where that matters. */
static int64_t count_bases(const struct und_workload *workload)
{
    int64_t bases = 0;
    for (int s = 0; s < workload->stream_count; ++s) {
        unsigned types = types_of(&workload->streams[s]);
        for (int before = 0; types && before < s; ++before)
            if (und_content_equal(&workload->streams[before].content, &workload->streams[s].content))
                types &= ~types_of(&workload->streams[before]);
        for (; types; types &= types - 1)
            ++bases;
    }
    return bases;
}

static int64_t largest_block(const struct und_stream *stream, const struct und_variable *variable, int64_t ranks)
{
    const struct und_variable row = und_decomposition_row(variable);
    return stream->own_set.owner == UND_EACH_ROW ? und_decomposition_largest_block(&row, 1)
                                                 : und_decomposition_largest_block(variable, ranks);
}

/* The minimum size of one of the files that the bytes are divided among, whatever is each rank's. */
static int64_t largest_file(const struct und_stream *stream, const struct und_stream_plan *plan, int64_t ranks)
{
    int64_t bytes[UND_MAX_FILES] = {0}, largest = 0;
    const int64_t parts = plan->method->part ? ranks : stream->own_set.groups;
    if (plan->packs || plan->stored_bytes == 0)
        return 0;
    for (int i = 0; i < stream->step_count; ++i) {
        const struct und_step *step = &stream->steps[i];
        const bool begins = step->begins && !und_stream_grows(stream);
        for (int f = 0; f < stream->own_set.files && begins; ++f)
            bytes[f] = 0;
        for (int v = 0; v < step->dump->variable_count; ++v) {
            const struct und_variable *variable = &step->dump->variables[v];
            bytes[variable->file] += variable->place ? 0 : (begins ? 1 : step->count) * und_variable_bytes(variable);
            largest = und_larger(largest, bytes[variable->file]);
        }
    }
    return largest / parts + (largest % parts > 0);
}

struct und_totals und_totals(const struct und_workload *workload, const struct und_plan *plan)
{
    const struct und_stream_plan *plans = plan->streams;
    struct und_totals totals = {.largest_transfer = 1};
    int64_t events = 0;
    for (int s = 0; s < workload->stream_count; ++s) {
        const struct und_stream *stream = &workload->streams[s];
        int64_t pieces = 0, largest = 0, in_flight = 0;
        struct und_load load = {.ranks = stream->in_turn ? 1 : (workload->ranks - 1) / stream->own_set.groups + 1,
                                .append = und_stream_grows(stream)};
        if (plans[s].method->has_files && !plan->only_restarts) {
            totals.bytes += plans[s].stored_bytes;
            totals.files += plans[s].files + plans[s].other_inodes;
            totals.memory_per_rank += und_operations_memory(stream, workload->ranks);
            if (stream->own_set.owner == UND_EACH_ROW)
                totals.memory_per_rank += und_fold_marks_memory(stream, workload->ranks);
            else
                totals.largest_file_bytes =
                    und_larger(totals.largest_file_bytes, largest_file(stream, &plans[s], workload->ranks));
        }
        events += stream->dump_count;
        const double last_s = und_dump_time(stream, stream->dump_count - 1) * plan->time_scale;
        totals.scheduled_s = !plan->only_restarts && last_s > totals.scheduled_s ? last_s : totals.scheduled_s;
        load.depth = plans[s].in_flight;
        for (int e = 0; e < stream->entry_count; ++e) {
            const struct und_dump *dump = &stream->entries[e];
            int64_t here = 0, step = 0, step_calls = 0, begun = 0;
            for (int v = 0; v < dump->variable_count; ++v) {
                const int64_t block = largest_block(stream, &dump->variables[v], workload->ranks);
                const int64_t most = und_plan_transfer_bytes(&dump->variables[v], &plans[s]);
                largest = und_larger(largest, block < most ? block : most);
                step = stream->own_set.owner == UND_EACH_ROW ? und_larger(step, block)
                                                             : step + block * dump->variables[v].count;
                const int64_t calls = und_decomposition_most_calls(&dump->variables[v], workload->ranks, most);
                step_calls += stream->own_set.owner == UND_EACH_ROW ? 0 : calls * dump->variables[v].count;
                begun += dump->variables[v].nonblocking ? block * dump->variables[v].count : 0;
                here += stream->own_set.owner == UND_EACH_ROW ? 1 : dump->variables[v].count;
            }
            pieces = und_larger(pieces, here);
            in_flight = und_larger(in_flight, begun);
            load.step_bytes = und_larger(load.step_bytes, step);
            load.step_calls = und_larger(load.step_calls, step_calls);
        }
        for (int e = 0; e < stream->entry_count; ++e)
            largest = und_larger(largest, und_calls_largest(&stream->entries[e].calls));
        if (stream->own_set.tree) { /* files that are there before are written in larger calls */
            totals.memory_per_rank += und_caller_memory(stream);
            largest = und_larger(largest, UND_PERIOD);
        }
        if (stream->own_set.owner == UND_EACH_ROW && plans[s].stored_bytes > 0)
            totals.largest_file_bytes = und_larger(totals.largest_file_bytes, load.step_bytes);
        load.transfer_bytes = largest;
        totals.largest_transfer = und_larger(totals.largest_transfer, largest);
        totals.memory_per_rank += pieces * (stream->own_set.owner == UND_EACH_ROW ? und_small_file_set_variable_memory()
                                                                                  : und_stream_player_piece_memory());
        totals.memory_per_rank += und_fold_lookups_memory(stream) + in_flight;
        if (plans[s].depth > 0)
            totals.memory_per_rank += UND_PERIOD + plans[s].most_transfer_bytes;
        if (!plans[s].method->transfer_memory)
            totals.memory_per_rank += plans[s].in_flight * und_smaller(largest + UND_PERIOD, MANY / UND_MAX_DEPTH);
        totals.memory_per_rank += plan->mix_reads > 0 ? plans[s].most_transfer_bytes : 0;
        if (plans[s].holds)
            totals.memory_per_rank += load.step_bytes;
        if (plans[s].method->memory)
            totals.memory_per_rank += plans[s].method->memory(plans[s].settings, &load);
    }
    if (plan->compute == UND_STENCIL)
        totals.memory_per_rank += und_stencil_memory();
    totals.memory_per_rank +=
        und_latencies_memory(workload, plan) + count_bases(workload) * und_pattern_memory(totals.largest_transfer) +
        events * UND_PHASES * (int64_t)sizeof(struct und_record) +
        (plan->deadline_s > 0 ? events * (int64_t)(sizeof(struct und_stop) + 2 * sizeof(int64_t)) : 0);
    return totals;
}
