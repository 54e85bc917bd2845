#include "playing/small_file_set.h"

#include "job/die.h"
#include "plan/fold.h"
#include "workload/decomposition.h"

#include <stdio.h>
#include <stdlib.h>

/* Which file is the i-th of a rank: kept with their names until they are removed. */
struct sequence {
    struct und_order order;
    uint64_t key;
    int64_t files, of_rank; /* of all ranks, of this one */
    int count;
    struct kind {
        int64_t first, of_rank; /* files before those of the variable */
        int64_t rows;
        int64_t bytes; /* of a file */
        struct und_share share;
    } kinds[];
};

struct und_small_file_set {
    const struct und_run *run;
    const struct und_stream *stream;
    int index;
    int64_t as;
    uint64_t contents; /* of the files, together with their numbers */
    struct sequence *sequence;
    struct und_files *files; /* of the prepared dump */
};

int64_t und_small_file_set_variable_memory(void)
{
    return (int64_t)sizeof(struct kind);
}

struct und_small_file_set *und_small_file_set_new(const struct und_run *run, int stream, int64_t as)
{
    struct und_small_file_set *small_files = und_allocate(1, sizeof *small_files, run->workload->streams[stream].name);
    small_files->run = run;
    small_files->stream = &run->workload->streams[stream];
    small_files->index = stream;
    small_files->as = as;
    return small_files;
}

void und_small_file_set_free(struct und_small_file_set *small_files)
{
    und_files_free(small_files->files);
    free(small_files);
}

/* The last of the variables whose files begin at or before `at`; `own`: counted in the rank's own files. */
static int find_kind(const struct sequence *sequence, int64_t at, bool in_rank)
{
    int low = 0, high = sequence->count - 1;
    while (low < high) {
        const int middle = low + (high - low + 1) / 2;
        if ((in_rank ? sequence->kinds[middle].of_rank : sequence->kinds[middle].first) <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The number of the i-th file of the rank. */
static int64_t number_of(const void *files, int64_t i)
{
    const struct sequence *sequence = files;
    const bool strided = sequence->order.rule == UND_STRIDED;
    const int64_t at = strided ? und_order_at(&sequence->order, sequence->key, sequence->of_rank, i) : i;
    const struct kind *kind = &sequence->kinds[find_kind(sequence, at, true)];
    const struct und_share *share = &kind->share;
    const int64_t k = (at - kind->of_rank) % share->count, alike = (at - kind->of_rank) / share->count;
    const int64_t position = kind->first + alike * kind->rows + share->first + k + k / share->block * share->leap;
    return strided ? position : und_order_at(&sequence->order, sequence->key, sequence->files, position);
}

static void add_kind(const struct und_small_file_set *small_files, const struct und_variable *variable)
{
    struct sequence *sequence = small_files->sequence;
    const struct und_share share = und_decomposition_share(variable, small_files->run->ranks, small_files->as);
    sequence->kinds[sequence->count++] = (struct kind){.first = sequence->files,
                                                       .of_rank = sequence->of_rank,
                                                       .rows = variable->shape[0],
                                                       .bytes = und_row_bytes(variable),
                                                       .share = share};
    sequence->files += variable->count * variable->shape[0];
    sequence->of_rank += variable->count * share.count;
}

void und_small_file_set_prepare(struct und_small_file_set *small_files, int dump, bool creates)
{
    const struct und_stream *stream = small_files->stream;
    const struct und_dump *what = und_dump_of(stream, dump);
    const char *suffix = small_files->run->plan->streams[small_files->index].suffix;
    char stem[160];
    snprintf(stem, sizeof stem, "%s.%06d", stream->set->name, und_stream_set(stream, dump));
    und_files_free(small_files->files);
    small_files->files =
        und_files_new_numbered(small_files->run, stem, suffix ? suffix : "", stream->own_set.files_in_directory);
    small_files->files->number_of = number_of;
    small_files->files->sequence = small_files->sequence = und_allocate(
        1, sizeof *small_files->sequence + (size_t)what->variable_count * sizeof(struct kind), stream->name);
    small_files->sequence->order = stream->order;
    small_files->sequence->key = und_order_key(&stream->order, dump, 0, 0);
    small_files->contents = und_pattern_identity(small_files->run->plan->seed, stem, strlen(stem), 0);
    for (int v = 0; v < what->variable_count; ++v)
        add_kind(small_files, &what->variables[v]);
    if (!creates)
        return;
    und_files_note(small_files->files, small_files->sequence->of_rank);
    und_files_make_directories(small_files->files, small_files->run, small_files->sequence->files);
}

struct und_files *und_small_file_set_files(const struct und_small_file_set *small_files)
{
    return small_files->files;
}

void und_small_file_set_check_directories(const struct und_small_file_set *small_files)
{
    und_files_check_directories(small_files->files, small_files->sequence->files);
}

struct und_item und_small_file_set_item(const struct und_small_file_set *small_files, int64_t index)
{
    const char *path = und_files_path(small_files->files, index, false);
    const int variable = find_kind(small_files->sequence, small_files->files->number, false);
    return (struct und_item){
        .variable = variable,
        .bytes = small_files->sequence->kinds[variable].bytes,
        .contents = und_pattern_numbered(small_files->contents, small_files->files->number),
        .path = path,
    };
}

int64_t und_small_file_set_count(const struct und_small_file_set *small_files)
{
    return small_files->sequence->of_rank;
}

int64_t und_small_file_set_rows_of(const struct und_small_file_set *small_files, int variable)
{
    const struct sequence *sequence = small_files->sequence;
    const int64_t end = variable + 1 < sequence->count ? sequence->kinds[variable + 1].of_rank : sequence->of_rank;
    return end - sequence->kinds[variable].of_rank;
}
