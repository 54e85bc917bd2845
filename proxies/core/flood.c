#include "core/flood.h"

#include "core/die.h"
#include "core/fold.h"
#include "core/layout.h"
#include "core/numbered.h"
#include "core/stop.h"
#include "core/storage.h"
#include "core/striped.h"
#include "core/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEM_BYTES = 160 };

/* The files of one variable. */
struct kind {
    int64_t bytes; /* of a file */
    int64_t first; /* number of its first file */
    int64_t own;   /* files of this rank */
};

/* Which file is the i-th of a rank: all that removing them needs, kept until they are removed. */
struct sequence {
    struct und_order order;
    uint64_t key;
    int64_t files, own; /* of all ranks, of this one */
    int count;
    struct place {
        int64_t first, own, rows;
        struct und_share share;
    } places[];
};

/* What this rank has created of a set. */
struct made {
    struct und_storage_many many;
    struct und_numbered *names;
    struct sequence *sequence;
    _Atomic int64_t count; /* files: the first so many of the sequence */
    uint32_t *marks;       /* of these */
};

struct und_flood {
    const struct und_run *run;
    const struct und_stream *stream;
    const struct und_stream_plan *plan;
    int index;
    int64_t as;
    enum und_mode mode;
    int dump;          /* prepared */
    uint64_t contents; /* of its files, together with their numbers */
    int kind_count;
    struct kind *kinds;
    struct sequence *sequence;
    struct und_numbered *names;
    struct made *made;
};

int64_t und_flood_variable_memory(void)
{
    return (int64_t)(sizeof(struct kind) + 2 * sizeof(struct place));
}

static void *allocate(size_t bytes, const struct und_stream *stream)
{
    void *capacity = calloc(1, bytes);
    UND_CHECK(capacity, "no memory for the files of the stream %s", stream->name);
    return capacity;
}

/* DIR/<stream>.<set>, what stands before a number. */
static void stem_of(const struct und_stream *stream, int dump, char stem[STEM_BYTES])
{
    snprintf(stem, STEM_BYTES, "%s.%06d", stream->set->name, und_stream_set(stream, dump));
}

static struct und_numbered *names_of(const struct und_flood *flood, int dump)
{
    char stem[STEM_BYTES];
    stem_of(flood->stream, dump, stem);
    return und_numbered_new(flood->run, stem, flood->plan->method->suffix, flood->stream->own.files_in_directory);
}

struct und_flood *und_flood_new(const struct und_run *run, int stream, int64_t as, enum und_mode mode)
{
    const struct und_stream *what = &run->workload->streams[stream];
    struct und_flood *flood = allocate(sizeof *flood, what);
    int most = 1;
    flood->run = run;
    flood->stream = what;
    flood->plan = &run->plan->streams[stream];
    flood->index = stream;
    flood->as = as;
    flood->mode = mode;
    flood->dump = -1;
    for (int e = 0; e < what->entry_count; ++e)
        most = what->entries[e].variable_count > most ? what->entries[e].variable_count : most;
    flood->kinds = allocate((size_t)most * sizeof *flood->kinds, what);
    flood->sequence = allocate(sizeof *flood->sequence + (size_t)most * sizeof(struct place), what);
    /* No stem has more characters than that of the last dump. */
    flood->names = names_of(flood, what->dump_count - 1);
    return flood;
}

void und_flood_free(struct und_flood *flood)
{
    free(flood->kinds);
    free(flood->sequence);
    und_numbered_free(flood->names);
    free(flood);
}

/* The last of the places that begin at or before `at`; `own`: counted in the rank's own files. */
static int find_place(const struct sequence *sequence, int64_t at, bool own)
{
    int low = 0, high = sequence->count - 1;
    while (low < high) {
        const int middle = low + (high - low + 1) / 2;
        if ((own ? sequence->places[middle].own : sequence->places[middle].first) <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The number of the i-th file of the rank. */
static int64_t number_of(const struct sequence *sequence, int64_t i)
{
    const bool strided = sequence->order.rule == UND_STRIDED;
    const int64_t at = strided ? und_order_at(&sequence->order, sequence->key, sequence->own, i) : i;
    const struct place *place = &sequence->places[find_place(sequence, at, true)];
    const struct und_share *share = &place->share;
    const int64_t k = (at - place->own) % share->count, alike = (at - place->own) / share->count;
    const int64_t position = place->first + alike * place->rows + share->first + k + k / share->block * share->leap;
    return strided ? position : und_order_at(&sequence->order, sequence->key, sequence->files, position);
}

static const char *name_file(struct und_flood *flood, int64_t number)
{
    return und_numbered_path(flood->names, number, "");
}

static void remove_made(struct und_storage_many *many, enum und_storage_part part)
{
    struct made *made = (struct made *)many;
    for (int64_t i = 0; part == UND_ITS_FILES && i < made->count; ++i)
        und_numbered_remove(made->names, number_of(made->sequence, i), "", made->marks[i]);
    if (part != UND_ITS_FILES)
        und_numbered_remove_directories(made->names, part == UND_ALL_DIRECTORIES);
}

static void free_made(struct und_storage_many *many)
{
    struct made *made = (struct made *)many;
    und_numbered_free(made->names);
    free(made->sequence);
    free(made->marks);
    free(made);
}

/* From here on what is created of the dump's files can be removed. */
static void note_made(struct und_flood *flood)
{
    const struct sequence *sequence = flood->sequence;
    const size_t bytes = sizeof *sequence + (size_t)sequence->count * sizeof(struct place);
    struct made *made = allocate(sizeof *made, flood->stream);
    made->many = (struct und_storage_many){.remove = remove_made, .free = free_made};
    made->names = names_of(flood, flood->dump);
    made->sequence = allocate(bytes, flood->stream);
    memcpy(made->sequence, sequence, bytes);
    made->marks = allocate((size_t)(sequence->own + 1) * sizeof *made->marks, flood->stream);
    und_storage_note_many(&made->many);
    flood->made = made;
    und_numbered_make_directories(made->names, sequence->files);
}

static void prepare_kind(struct und_flood *flood, const struct und_variable *variable)
{
    struct sequence *sequence = flood->sequence;
    const struct und_share share = und_layout_share(variable, flood->run->ranks, flood->as);
    flood->kinds[flood->kind_count++] =
        (struct kind){.bytes = und_row_bytes(variable), .first = sequence->files, .own = variable->count * share.count};
    /* A variable without a file of this rank is none of its places. */
    if (share.count > 0)
        sequence->places[sequence->count++] =
            (struct place){.first = sequence->files, .own = sequence->own, .rows = variable->shape[0], .share = share};
    sequence->files += variable->count * variable->shape[0];
    sequence->own += variable->count * share.count;
}

void und_flood_prepare(struct und_flood *flood, int dump)
{
    const struct und_dump *what = und_dump_of(flood->stream, dump);
    char stem[STEM_BYTES];
    flood->dump = dump;
    flood->kind_count = 0;
    flood->sequence->files = flood->sequence->own = 0;
    flood->sequence->count = 0;
    flood->sequence->order = flood->stream->order;
    flood->sequence->key = und_order_key(&flood->stream->order, dump, 0, 0);
    stem_of(flood->stream, dump, stem);
    und_numbered_restem(flood->names, stem);
    flood->contents = und_pattern_identity(flood->run->plan->seed, stem, strlen(stem), 0);
    for (int v = 0; v < what->variable_count; ++v)
        prepare_kind(flood, &what->variables[v]);
    if (flood->mode == UND_CREATE && flood->plan->method->has_files)
        note_made(flood);
}

void und_flood_check_directories(struct und_flood *flood)
{
    if (flood->plan->method->has_files)
        und_numbered_check_directories(flood->made ? flood->made->names : flood->names, flood->sequence->files);
}

struct und_item und_flood_item(struct und_flood *flood, int64_t index)
{
    const int64_t number = number_of(flood->sequence, index);
    int low = 0, high = flood->kind_count - 1;
    while (low < high) {
        const int middle = low + (high - low + 1) / 2;
        if (flood->kinds[middle].first <= number)
            low = middle;
        else
            high = middle - 1;
    }
    return (struct und_item){
        .variable = low,
        .bytes = flood->kinds[low].bytes,
        .contents = und_pattern_numbered(flood->contents, number),
        .number = number,
        .path = name_file(flood, number),
    };
}

void und_flood_enter(struct und_flood *flood, int64_t number)
{
    if (flood->made)
        und_numbered_enter(flood->made->names, number);
}

void und_flood_leave(struct und_flood *flood)
{
    if (flood->made)
        und_numbered_leave(flood->made->names);
}

int64_t und_flood_count(const struct und_flood *flood)
{
    return flood->sequence->own;
}

int64_t und_flood_rows_of(const struct und_flood *flood, int variable)
{
    return flood->kinds[variable].own;
}

const char *und_flood_path(struct und_flood *flood, int64_t index)
{
    return name_file(flood, number_of(flood->sequence, index));
}

static uint32_t mark_of(int descriptor, const char *path)
{
    return descriptor >= 0 ? und_storage_mark(descriptor, "") : und_storage_mark(AT_FDCWD, und_storage_name(path));
}

/* Until the count says so, nobody knows that the file is this rank's. */
void und_flood_adopt(struct und_flood *flood, int descriptor, const char *path)
{
    struct made *made = flood->made;
    made->marks[made->count] = mark_of(descriptor, path);
    ++made->count;
}

int und_flood_create(struct und_flood *flood, const char *path)
{
    struct und_error error;
    int created;
    und_stop_hold();
    if (!und_storage_create_unnoted(path, und_striped_request(flood->run->striped), &created, &error))
        UND_DIE("%s: %s", flood->plan->method->name, error.text);
    und_flood_adopt(flood, created, path);
    und_stop_release();
    return created;
}

bool und_flood_is_last(const struct und_flood *flood, int descriptor, const char *path)
{
    return mark_of(descriptor, path) == flood->made->marks[flood->made->count - 1];
}

/* Every file is looked at: what an interface has lost shows here at the latest. */
void und_flood_look(struct und_flood *flood, int64_t *files, int64_t *file_bytes)
{
    const struct und_method *method = flood->plan->method;
    *files = method->has_files ? flood->sequence->own : 0;
    *file_bytes = 0;
    if (flood->mode == UND_READ || !method->has_files)
        return;
    for (int64_t i = 0; i < flood->sequence->own; ++i) {
        und_watch_call(i);
        const struct und_item item = und_flood_item(flood, i);
        struct und_error error;
        struct stat status;
        if (lstat(und_storage_name(item.path), &status) != 0 || !S_ISREG(status.st_mode))
            UND_DIE("%s: cannot find %s again", method->name, item.path);
        if (method->whole && !method->whole(item.path, &error))
            UND_DIE("%s: cannot write all of %s: %s", method->name, item.path, error.text);
        if (!flood->plan->packs && (int64_t)status.st_size < item.bytes)
            UND_DIE("%s: %s has %" PRId64 " bytes on storage, less than the %" PRId64 " written to it", method->name,
                    item.path, (int64_t)status.st_size, item.bytes);
        *file_bytes += (int64_t)status.st_size;
    }
}

bool und_flood_find(struct und_flood *flood, struct und_error *error)
{
    const bool exact = !flood->plan->method->suffix;
    for (int64_t i = 0; i < flood->sequence->own && flood->plan->method->has_files; ++i) {
        const struct und_item item = und_flood_item(flood, i);
        struct stat status;
        if (stat(und_storage_name(item.path), &status) != 0)
            return und_fail(error, "--restart-from: cannot find %s: %s", item.path, strerror(errno));
        if (exact && (int64_t)status.st_size != item.bytes)
            return und_fail(error, "--restart-from: %s has %" PRId64 " bytes, expected %" PRId64, item.path,
                            (int64_t)status.st_size, item.bytes);
    }
    return true;
}

void und_flood_drop_cache(struct und_flood *flood, int dump)
{
    const enum und_mode mode = flood->mode;
    flood->mode = UND_READ;
    und_flood_prepare(flood, dump);
    flood->mode = mode;
    for (int64_t i = 0; i < flood->sequence->own && flood->plan->method->has_files; ++i)
        und_storage_drop_cache(flood->plan->method->name, und_flood_path(flood, i));
}

/* All files of a dump are created in the same way: one of each rank tells. */
void und_flood_note_layouts(struct und_flood *flood)
{
    if (flood->mode == UND_CREATE && flood->plan->method->has_files && flood->sequence->own > 0)
        und_striped_note_layout(flood->run->striped, flood->index, und_flood_path(flood, 0));
}
