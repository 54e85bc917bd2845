#include "core/totals.h"

#include "core/flood.h"
#include "core/layout.h"
#include "core/metadata.h"
#include "core/pattern.h"
#include "core/series.h"
#include "core/stencil.h"
#include "core/timing.h"

static unsigned types_of(const struct und_stream *stream)
{
    unsigned types = 0;
    for (int d = 0; d < stream->dump_count; ++d)
        for (int v = 0; !stream->dumps[d].repeats && v < stream->dumps[d].variable_count; ++v)
            types |= 1U << und_content_type(&stream->content, stream->dumps[d].variables[v].type);
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

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* A file of a flood is one row, and no other is open beside it. */
static int64_t largest_block(const struct und_stream *stream, const struct und_variable *variable, int64_t ranks)
{
    struct und_variable row = *variable;
    if (stream->layout != UND_FLOOD)
        return und_layout_largest_block(variable, ranks);
    row.rule = UND_EVEN;
    row.shape[0] = 1;
    return und_layout_largest_block(&row, 1);
}

/* What one of the files that the bytes are divided among takes at least, whatever is each rank's. */
static int64_t largest_file(const struct und_stream *stream, const struct und_stream_plan *plan, int64_t ranks)
{
    int64_t bytes[UND_MAX_FILES] = {0}, largest = 0;
    const int64_t parts = plan->method->part ? ranks : stream->groups;
    if (plan->packs || plan->stored_bytes == 0)
        return 0;
    for (int d = 0; d < stream->dump_count; ++d) {
        const struct und_dump *dump = &stream->dumps[d];
        for (int f = 0; f < stream->files && dump->first == d && !stream->append; ++f)
            bytes[f] = 0;
        for (int v = 0; v < dump->variable_count; ++v) {
            const struct und_variable *variable = &dump->variables[v];
            bytes[variable->file] += variable->at ? 0 : und_variable_bytes(variable);
            largest = larger(largest, bytes[variable->file]);
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
        int64_t pieces = 0, largest = 0;
        struct und_load load = {.ranks = stream->turns ? 1 : (workload->ranks - 1) / stream->groups + 1,
                                .append = stream->append};
        if (plans[s].method->has_files && !plan->only_restarts) {
            totals.bytes += plans[s].stored_bytes;
            totals.files += plans[s].files + plans[s].other_inodes;
            totals.memory_per_rank += und_metadata_memory(stream, workload->ranks);
            if (stream->layout == UND_FLOOD)
                totals.memory_per_rank += und_flood_marks_memory(stream, workload->ranks);
            else
                totals.largest_file_bytes =
                    larger(totals.largest_file_bytes, largest_file(stream, &plans[s], workload->ranks));
        }
        events += stream->dump_count;
        for (int d = 0; d < stream->dump_count; ++d) {
            const struct und_dump *dump = &stream->dumps[d];
            const double time_s = dump->time_s * plan->time_scale;
            int64_t here = 0, step = 0;
            for (int v = 0; v < dump->variable_count; ++v) {
                const int64_t block = largest_block(stream, &dump->variables[v], workload->ranks);
                const int64_t most = und_plan_transfer_bytes(&dump->variables[v], &plans[s]);
                largest = larger(largest, block < most ? block : most);
                step = stream->layout == UND_FLOOD ? larger(step, block) : step + block * dump->variables[v].count;
                here += stream->layout == UND_FLOOD ? 1 : dump->variables[v].count;
            }
            pieces = larger(pieces, here);
            load.step_bytes = larger(load.step_bytes, step);
            totals.scheduled_s = !plan->only_restarts && time_s > totals.scheduled_s ? time_s : totals.scheduled_s;
        }
        if (stream->layout == UND_FLOOD && plans[s].stored_bytes > 0)
            totals.largest_file_bytes = larger(totals.largest_file_bytes, load.step_bytes);
        load.transfer_bytes = largest;
        totals.largest_transfer = larger(totals.largest_transfer, largest);
        totals.memory_per_rank +=
            pieces * (stream->layout == UND_FLOOD ? und_flood_variable_memory() : und_series_piece_memory());
        if (plans[s].method->memory)
            totals.memory_per_rank += plans[s].method->memory(plans[s].settings, &load);
    }
    if (plan->compute == UND_STENCIL)
        totals.memory_per_rank += und_stencil_memory();
    totals.memory_per_rank += count_bases(workload) * und_pattern_memory(totals.largest_transfer) +
                              events * UND_PHASES * (int64_t)sizeof(struct und_record);
    return totals;
}
