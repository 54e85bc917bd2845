#include "plan/fold.h"

#include "plan/operations.h"
#include "workload/decomposition.h"

#include <string.h>

enum { BLOCK_BYTES = 4096 };
static const int64_t MANY = INT64_MAX / 1024; /* bytes that no rank has */

static bool group_has_bytes(const struct und_dump *dump, int file, int64_t ranks, const struct und_group *group)
{
    for (int v = 0; v < dump->variable_count; ++v) {
        struct und_dataset dataset;
        struct und_box block;
        if (dump->variables[v].file != file)
            continue;
        und_decomposition_place(&dump->variables[v], ranks, group, group->first, &dataset, &block);
        if (und_dataset_elements(&dataset) > 0)
            return true;
    }
    return false;
}

static bool has_bytes_in(const struct und_stream *stream, int file, int64_t ranks, int64_t rank)
{
    const struct und_group group = {.index = rank, .first = rank, .end = rank + 1};
    bool has = false;
    for (int e = 0; e < stream->entry_count && !has; ++e)
        has = !stream->entries[e].repeats && group_has_bytes(&stream->entries[e], file, ranks, &group);
    return has;
}

bool und_fold_shares(const struct und_stream *stream, int64_t ranks)
{
    bool shares = false;
    for (int file = 0; file < stream->own_set.files && !shares; ++file) {
        int64_t with = 0;
        for (int64_t rank = 0; rank < ranks && with <= stream->own_set.groups; ++rank)
            with += has_bytes_in(stream, file, ranks, rank);
        shares = with > stream->own_set.groups;
    }
    return shares;
}

/* Files that stand for one file of so many ranks: itself, and subfiles beside it. */
static int64_t files_of_file(const struct und_method *method, const int64_t *settings, int64_t ranks)
{
    const int64_t last = method->part ? method->part(settings, ranks - 1, ranks) : -1;
    return last < 0 ? 1 : last + 2;
}

/* Files that steps from … to-1 make when they share a set of files. */
static int64_t files_of_set(const struct und_stream *stream, const struct und_method *method, const int64_t *settings,
                            int64_t ranks, int from, int to)
{
    int64_t files = 0;
    for (int64_t g = 0; g < stream->own_set.groups; ++g) {
        const struct und_group group = und_group_at(g, ranks, stream->own_set.groups);
        for (int file = 0; file < stream->own_set.files; ++file) {
            bool any = false;
            for (int i = from; i < to && !any; ++i)
                any = (i == from || !stream->steps[i].dump->repeats) &&
                      group_has_bytes(stream->steps[i].dump, file, ranks, &group);
            files += any ? files_of_file(method, settings, stream->in_turn ? 1 : group.end - group.first) : 0;
        }
    }
    return files;
}

static int64_t files_of_stream(const struct und_stream *stream, const struct und_method *method,
                               const int64_t *settings, int64_t ranks)
{
    if (und_stream_grows(stream))
        return files_of_set(stream, method, settings, ranks, 0, stream->step_count);
    if (und_stream_reuses(stream))
        return files_of_set(stream, method, settings, ranks, 0, stream->step_count) *
               (stream->own_set.names < und_stream_contents(stream) ? stream->own_set.names
                                                                    : und_stream_contents(stream));
    int64_t files = 0, of_content = 0;
    const struct und_variable *variables = NULL; /* variables of a step whose content is no longer than it */
    for (int i = 0, end; i < stream->step_count; i = end) {
        const struct und_step *step = &stream->steps[i];
        for (end = i + 1; end < stream->step_count && !stream->steps[end].begins;)
            ++end;
        if (end > i + 1 || !variables || variables != step->dump->variables)
            of_content = files_of_set(stream, method, settings, ranks, i, end);
        variables = end == i + 1 ? step->dump->variables : NULL;
        files += step->count * of_content;
    }
    return files;
}

/* Bytes in the files when everything is written: sets of files that are written again hold the largest dump. */
static int64_t stored_by_stream(const struct und_stream *stream)
{
    int64_t bytes = 0, content = 0, largest[UND_MAX_NAMES] = {0};
    for (int i = 0; i < stream->step_count; ++i) {
        const struct und_step *step = &stream->steps[i];
        const int64_t added = und_dump_new_bytes(step->dump);
        content = step->begins ? added : content + step->count * added;
        if (!und_stream_reuses(stream))
            bytes += step->count * added;
        for (int k = 0; und_stream_reuses(stream) && k < step->count && k < stream->own_set.names; ++k) {
            int64_t *set = &largest[und_stream_set(stream, step->first + k)];
            bytes += content > *set ? content - *set : 0;
            *set = content > *set ? content : *set;
        }
    }
    return bytes;
}

int64_t und_row_bytes(const struct und_variable *variable)
{
    int64_t bytes = und_type_bytes(variable->type);
    for (int d = 1; d < variable->ndims; ++d)
        bytes *= variable->shape[d];
    return bytes;
}

static int64_t files_of_dump(const struct und_dump *dump)
{
    int64_t files = 0;
    for (int v = 0; v < dump->variable_count; ++v)
        files += dump->variables[v].count * dump->variables[v].shape[0];
    return files;
}

static bool are_same_files(const struct und_dump *dump, const struct und_dump *other)
{
    if (dump->variables == other->variables)
        return true;
    bool same = dump->variable_count == other->variable_count;
    for (int v = 0; same && v < dump->variable_count; ++v) {
        const struct und_variable *a = &dump->variables[v], *b = &other->variables[v];
        same = a->count == b->count && a->shape[0] == b->shape[0] && und_row_bytes(a) == und_row_bytes(b);
    }
    return same;
}

bool und_fold_check_sets(const struct und_stream *stream, int s, const char *file, struct und_error *error)
{
    for (int d = 0; und_stream_reuses(stream) && d < stream->dump_count; ++d)
        if (!are_same_files(und_dump_of(stream, d), und_dump_of(stream, und_stream_set(stream, d))))
            return und_fail(error,
                            "%s: streams[%d].dumps: the files of dump %d are not those of dump %d, which has the same "
                            "names; expected as many, of the same sizes",
                            file, s, d, und_stream_set(stream, d));
    return true;
}

/* Sets of files that are made with what a step has. */
static int sets_of(const struct und_stream *stream, const struct und_step *step)
{
    const int64_t left = und_stream_reuses(stream) ? stream->own_set.names - step->first : step->count;
    return left < 0 ? 0 : left < step->count ? (int)left : step->count;
}

static int64_t files_of_small_files(const struct und_stream *stream)
{
    int64_t files = 0;
    for (int i = 0; i < stream->step_count; ++i)
        files += sets_of(stream, &stream->steps[i]) * files_of_dump(stream->steps[i].dump);
    return files;
}

static int64_t directories_of_small_files(const struct und_stream *stream)
{
    const int64_t most = stream->own_set.files_in_directory;
    int64_t directories = 0;
    for (int i = 0; i < stream->step_count && most > 0; ++i)
        directories += sets_of(stream, &stream->steps[i]) * ((files_of_dump(stream->steps[i].dump) + most - 1) / most);
    return directories;
}

static int64_t stored_by_small_files(const struct und_stream *stream)
{
    int64_t sum = 0;
    for (int i = 0; i < stream->step_count; ++i)
        for (int v = 0; v < stream->steps[i].dump->variable_count; ++v) {
            const struct und_variable *variable = &stream->steps[i].dump->variables[v];
            const int64_t files = sets_of(stream, &stream->steps[i]) * variable->count * variable->shape[0];
            const int64_t bytes = und_row_bytes(variable);
            if (bytes > INT64_MAX - BLOCK_BYTES)
                return -1;
            const int64_t stored = (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
            if (stored > (INT64_MAX - sum) / (files > 0 ? files : 1))
                return -1;
            sum += files * stored;
        }
    return sum;
}

int64_t und_fold_marks_memory(const struct und_stream *stream, int64_t ranks)
{
    int64_t files = 0;
    for (int i = 0; i < stream->step_count; ++i)
        for (int v = 0; v < stream->steps[i].dump->variable_count; ++v) {
            struct und_variable rows = stream->steps[i].dump->variables[v];
            rows.type = UND_BYTE;
            rows.ndims = 1;
            files += sets_of(stream, &stream->steps[i]) * rows.count * und_decomposition_largest_block(&rows, ranks);
        }
    files += directories_of_small_files(stream) / ranks;
    return files < MANY ? files * (int64_t)sizeof(uint64_t) : MANY;
}

int64_t und_fold_files(const struct und_stream *stream, int64_t ranks, const struct und_method *method,
                       const int64_t *settings)
{
    if (!method->has_files || stream->source >= 0 || stream->behind >= 0)
        return 0;
    if (stream->own_set.tree)
        return und_tree_files(stream->own_set.tree);
    const int64_t files = stream->own_set.owner == UND_EACH_ROW ? files_of_small_files(stream)
                                                                : files_of_stream(stream, method, settings, ranks);
    return (1 + stream->has_backup) * files;
}

int64_t und_fold_other_inodes(const struct und_stream *stream, int64_t ranks)
{
    if (stream->own_set.tree)
        return 1 + stream->own_set.tree->count - und_tree_files(stream->own_set.tree);
    return und_operations_files(stream, ranks) +
           (stream->own_set.owner == UND_EACH_ROW ? directories_of_small_files(stream) : 0);
}

int64_t und_fold_lookups_memory(const struct und_stream *stream)
{
    const int64_t most = stream->lookups.transfer_bytes, written = und_fold_bytes(stream);
    return stream->lookups.every_bytes == 0 ? 0 : stream->behind < 0 && written < most ? written : most;
}

int64_t und_fold_stored_bytes(const struct und_stream *stream)
{
    if (stream->own_set.tree)
        return stream->own_set.tree->stored_bytes;
    return stream->own_set.owner == UND_EACH_ROW ? stored_by_small_files(stream)
                                                 : (1 + stream->has_backup) * stored_by_stream(stream);
}

int64_t und_fold_bytes(const struct und_stream *stream)
{
    int64_t bytes = 0;
    for (int s = 0; s < stream->step_count; ++s)
        bytes += stream->steps[s].count * und_step_bytes(&stream->steps[s]);
    return bytes;
}

static bool reads_open(const struct und_workload *workload, const struct und_stream *stream)
{
    const struct und_stream *base = stream->source >= 0 ? &workload->streams[stream->source] : NULL;
    return base && (base->stays_open || und_stream_contents(base) < base->dump_count);
}

bool und_fold_is_read_open(const struct und_workload *workload, int s)
{
    for (int other = 0; other < workload->stream_count; ++other)
        if (workload->streams[other].source == s && reads_open(workload, &workload->streams[other]))
            return true;
    return false;
}

void und_fold_needs(const struct und_workload *workload, const struct und_stream *stream, bool needs[UND_NEEDS])
{
    const bool writes = stream->operation == UND_WRITES, again = und_stream_contents(stream) > stream->own_set.names;
    const bool goes_on = und_stream_contents(stream) < stream->dump_count;
    needs[UND_UPDATE] = writes && und_stream_updates(stream) && again;
    needs[UND_REOPEN] = und_stream_grows(stream) && !stream->stays_open && again;
    needs[UND_REWRITE] = writes && und_stream_rewrites(stream) && again;
    needs[UND_EXTENDS] = stream->behind >= 0 || stream->followed_by >= 0;
    needs[UND_READS_OTHER] = stream->source >= 0;
    needs[UND_READS_OPEN] = reads_open(workload, stream);
    needs[UND_CONTINUES] = goes_on || stream->notes_places;
    needs[UND_SMALL_FILE_SETS] = stream->own_set.owner == UND_EACH_ROW;
    needs[UND_WRITE_THROUGH] = stream->write_through;
    needs[UND_LOOKS_UP] = stream->lookups.every_bytes > 0;
    needs[UND_MAKES_CALLS] = stream->own_set.tree != NULL;
    needs[UND_BEGINS] = false;
    for (int e = 0; e < stream->entry_count; ++e)
        for (int v = 0; v < stream->entries[e].variable_count; ++v)
            needs[UND_BEGINS] = needs[UND_BEGINS] || stream->entries[e].variables[v].nonblocking;
}
