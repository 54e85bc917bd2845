#include "plan/operations.h"

#include "workload/decomposition.h"

#include <string.h>

int64_t und_operations_of(const struct und_operations *operations, int64_t rank)
{
    for (int i = 0; i < operations->run_count; ++i) {
        if (rank < operations->runs[i].ranks)
            return operations->runs[i].rows;
        rank -= operations->runs[i].ranks;
    }
    return 0;
}

static int64_t sum_of(const struct und_operations *operations)
{
    int64_t sum = 0;
    for (int i = 0; i < operations->run_count; ++i)
        sum += operations->runs[i].ranks * operations->runs[i].rows;
    return sum;
}

bool und_stream_operates(const struct und_stream *stream)
{
    for (int e = 0; e < stream->entry_count; ++e)
        if (stream->entries[e].operation_count > 0)
            return true;
    return false;
}

/* The operations of a dump, for one rank, or with -1 for all together. */
void und_operations_count(const struct und_dump *dump, int64_t rank, int64_t counts[UND_BARE_KINDS])
{
    memset(counts, 0, UND_BARE_KINDS * sizeof counts[0]);
    for (int i = 0; i < dump->operation_count; ++i) {
        const struct und_operations *operations = &dump->operations[i];
        counts[operations->operation] += rank < 0 ? sum_of(operations) : und_operations_of(operations, rank);
    }
}

/* The dump's operations change the files that a rank has. Returns how many it lacked; with enough from the beginning
 * it lacks none. */
static int64_t advance(struct und_progress *progress, const int64_t counts[UND_BARE_KINDS], bool has_data)
{
    int64_t lacking = 0;
    progress->next += counts[UND_CREATE_EMPTY];
    progress->directories += counts[UND_MKDIR];
    if (!has_data && counts[UND_OPEN] + counts[UND_STAT] + counts[UND_SEEK] + counts[UND_SYNC] > 0)
        lacking = und_larger(lacking, progress->first + 1 - progress->next);
    if (counts[UND_RENAME] > 0)
        progress->renamed = und_larger(progress->renamed, progress->first) + counts[UND_RENAME];
    lacking = und_larger(lacking, progress->renamed - progress->next);
    progress->first += counts[UND_UNLINK];
    return und_larger(lacking, progress->first - progress->next);
}

static bool has_bytes(const struct und_dump *dump, int64_t ranks, int64_t rank)
{
    for (int v = 0; v < dump->variable_count; ++v) {
        const struct und_group group = {.index = rank, .first = rank, .end = rank + 1};
        struct und_dataset dataset;
        struct und_box block;
        und_decomposition_place(&dump->variables[v], ranks, &group, rank, &dataset, &block);
        if (und_dataset_elements(&dataset) > 0)
            return true;
    }
    return false;
}

/* A rank of a stream that is appended to has all its files open in every dump. Gives also how many files are there
 * at once, at most. */
int64_t und_operations_lacking(const struct und_stream *stream, int64_t ranks, int64_t rank, int64_t *together)
{
    struct und_progress progress = {0, 0, 0, 0};
    int64_t counts[UND_BARE_KINDS] = {0}, lacking = 0;
    *together = 0;
    bool has_data = false;
    for (int e = 0; e < stream->entry_count; ++e) {
        const struct und_dump *dump = &stream->entries[e];
        und_operations_count(dump, rank, counts);
        if (e == 0 || !dump->repeats)
            has_data = has_bytes(dump, ranks, rank);
        for (int k = 0; k < dump->count; ++k) {
            const int64_t first = progress.first;
            lacking = und_larger(lacking, advance(&progress, counts, has_data));
            *together = und_larger(*together, progress.next - first);
        }
    }
    *together += lacking;
    return lacking;
}

int64_t und_operations_files(const struct und_stream *stream, int64_t ranks)
{
    struct und_progress progress = {0, 0, 0, 0};
    int64_t counts[UND_BARE_KINDS] = {0}, lacking = 0, most = 0;
    for (int e = 0; e < stream->entry_count; ++e) {
        const struct und_dump *dump = &stream->entries[e];
        und_operations_count(dump, -1, counts);
        for (int k = 0; k < dump->count; ++k) {
            const int64_t first = progress.first;
            lacking = und_larger(lacking, advance(&progress, counts, dump->variable_count > 0));
            most = und_larger(most, progress.next - first);
        }
    }
    /* Each rank may lack one that another has. */
    const int64_t files = most + lacking + (lacking > 0 ? ranks : 0);
    const int64_t tree = stream->own_set.files_in_directory > 0 ? files / stream->own_set.files_in_directory + 1 : 0;
    return und_stream_operates(stream) ? files + progress.directories + tree : 0;
}

int64_t und_operations_memory(const struct und_stream *stream, int64_t ranks)
{
    const int64_t all = und_operations_files(stream, ranks);
    int64_t sums[UND_BARE_KINDS] = {0};
    for (int e = 0; e < stream->entry_count; ++e)
        for (int i = 0; i < stream->entries[e].operation_count; ++i) {
            const struct und_operations *operations = &stream->entries[e].operations[i];
            int64_t largest = 0; /* of a rank */
            for (int r = 0; r < operations->run_count; ++r)
                largest = und_larger(largest, operations->runs[r].rows);
            largest = und_smaller(largest, INT64_MAX / 4 / stream->entries[e].count) * stream->entries[e].count;
            sums[operations->operation] = und_smaller(sums[operations->operation] + largest, INT64_MAX / 4);
        }
    const int64_t files = sums[UND_CREATE_EMPTY] + und_larger(sums[UND_RENAME], sums[UND_UNLINK]) + 1;
    return und_smaller(und_smaller(files, all), INT64_MAX / 1024) * 2 * (int64_t)sizeof(uint64_t);
}
