#include "core/totals.h"

#include "core/layout.h"
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
        for (int before = 0; before < s; ++before)
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

struct und_totals und_totals(const struct und_workload *workload, const struct und_options *options,
                             const struct und_plan *plans)
{
    struct und_totals totals = {.largest_transfer = 1};
    int64_t events = 0;
    for (int s = 0; s < workload->stream_count; ++s) {
        const struct und_stream *stream = &workload->streams[s];
        int64_t pieces = 0;
        if (plans[s].method->has_files && !options->restart_from) {
            totals.bytes += plans[s].bytes;
            totals.files += plans[s].files;
        }
        events += stream->dump_count;
        for (int d = 0; d < stream->dump_count; ++d) {
            const struct und_dump *dump = &stream->dumps[d];
            const double time_s = dump->time_s * options->time_scale;
            int64_t here = 0;
            for (int v = 0; v < dump->variable_count; ++v) {
                const int64_t block = und_layout_largest_block(&dump->variables[v], workload->ranks);
                const int64_t most = und_plan_transfer_bytes(&dump->variables[v], options);
                totals.largest_transfer = larger(totals.largest_transfer, block < most ? block : most);
                here += dump->variables[v].count;
            }
            pieces = larger(pieces, here);
            totals.scheduled_s = !options->restart_from && time_s > totals.scheduled_s ? time_s : totals.scheduled_s;
        }
        totals.memory_per_rank += pieces * und_series_piece_memory();
    }
    if (und_plan_compute(workload, options) == UND_STENCIL)
        totals.memory_per_rank += und_stencil_memory();
    totals.memory_per_rank += count_bases(workload) * und_pattern_memory(totals.largest_transfer) +
                              events * UND_PHASES * (int64_t)sizeof(struct und_record);
    return totals;
}
