#include "core/flood.h"

#include "core/calls.h"
#include "core/die.h"
#include "core/fold.h"
#include "core/layout.h"
#include "core/numbered.h"
#include "core/pace.h"
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
    struct und_dataset dataset; /* of one file */
    struct und_box block;
    struct und_cut cut;
    struct und_base *base;
    int64_t bytes; /* of a file */
    int64_t rows;  /* files of one of them */
    int64_t first; /* number of its first file */
    struct und_share share;
    int64_t own; /* of this rank's files, the first of this variable */
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
    int64_t operations;
    int64_t unsynced; /* bytes of this rank since it flushed last within a dump */
    struct und_pace pace;
    struct und_verification *verification; /* of what is read while time is taken; NULL: that is not compared */
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
    snprintf(stem, STEM_BYTES, "%s.%06d", stream->name, und_stream_set(stream, dump));
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
    const struct und_run *run = flood->run;
    struct sequence *sequence = flood->sequence;
    struct kind *kind = &flood->kinds[flood->kind_count];
    memset(kind, 0, sizeof *kind);
    kind->rows = variable->shape[0];
    kind->first = sequence->files;
    kind->own = sequence->own;
    kind->share = und_layout_share(variable, run->ranks, flood->as);
    kind->bytes = und_row_bytes(variable);
    kind->dataset.name = variable->name;
    kind->dataset.type = variable->type;
    kind->dataset.ndims = variable->ndims;
    kind->dataset.slabs = true;
    memcpy(kind->dataset.shape, variable->shape, sizeof kind->dataset.shape);
    kind->dataset.shape[0] = 1;
    memcpy(kind->block.count, kind->dataset.shape, sizeof kind->block.count);
    und_cut_begin(&kind->cut, &kind->dataset, &kind->block, und_plan_transfer_bytes(variable, flood->plan));
    kind->base = und_pattern_base(run->pattern, &flood->stream->content, variable->type);
    UND_CHECK(kind->base, "no memory for transfers of the stream %s: give a smaller size with --transfer",
              flood->stream->name);
    /* A variable without a file of this rank is none of its places. */
    if (kind->share.count > 0)
        sequence->places[sequence->count++] =
            (struct place){.first = kind->first, .own = kind->own, .rows = kind->rows, .share = kind->share};
    sequence->files += variable->count * kind->rows;
    sequence->own += variable->count * kind->share.count;
    ++flood->kind_count;
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
    flood->contents = und_pattern_identity(flood->run->plan->seed, stem, 0);
    for (int v = 0; v < what->variable_count; ++v)
        prepare_kind(flood, &what->variables[v]);
    if (flood->mode != UND_CREATE)
        return;
    if (flood->plan->method->has_files)
        note_made(flood);
    for (int k = 0; k < flood->kind_count; ++k)
        und_base_continue(flood->kinds[k].base);
}

void und_flood_check_directories(struct und_flood *flood)
{
    if (flood->plan->method->has_files)
        und_numbered_check_directories(flood->made ? flood->made->names : flood->names, flood->sequence->files);
}

bool und_flood_is_made(const struct und_flood *flood, int dump)
{
    return und_stream_set(flood->stream, dump) < dump;
}

/* A file and what is in it. */
struct item {
    struct kind *kind;
    int64_t number;
    uint64_t contents;
    const char *path;
};

static struct item item_at(struct und_flood *flood, int64_t i)
{
    const int64_t number = number_of(flood->sequence, i);
    int low = 0, high = flood->kind_count - 1;
    while (low < high) {
        const int middle = low + (high - low + 1) / 2;
        if (flood->kinds[middle].first <= number)
            low = middle;
        else
            high = middle - 1;
    }
    return (struct item){
        .kind = &flood->kinds[low],
        .number = number,
        .contents = und_pattern_numbered(flood->contents, number),
        .path = und_numbered_path(flood->names, number, ""),
    };
}

bool und_flood_reads(const struct und_flood *flood)
{
    return flood->mode == UND_READ;
}

int64_t und_flood_count(const struct und_flood *flood)
{
    return flood->sequence->own;
}

const char *und_flood_path(struct und_flood *flood, int64_t index)
{
    return und_numbered_path(flood->names, number_of(flood->sequence, index), "");
}

static struct und_open how_to_open(struct und_flood *flood, int *created)
{
    return (struct und_open){
        .comm = MPI_COMM_SELF,
        .mode = flood->mode,
        .lasting = flood->plan->lasting || flood->stream->sync_bytes > 0,
        .write_through = flood->stream->write_through,
        .transfer_bytes = flood->plan->most_transfer_bytes,
        .settings = flood->plan->settings,
        .creates = flood->mode == UND_CREATE && flood->plan->method->has_files && flood->plan->creates,
        .hints = und_striped_hints(flood->run->striped, flood->index),
        .created = created,
        .operations = &flood->operations,
    };
}

/* Until the count says so, nobody knows that the file is this rank's. */
static void note_file(struct und_flood *flood, int descriptor, const char *path)
{
    struct made *made = flood->made;
    made->marks[made->count] =
        descriptor >= 0 ? und_storage_mark(descriptor, "") : und_storage_mark(AT_FDCWD, und_storage_name(path));
    ++made->count;
}

/* What has been created must be what the method then opens by its name. */
static struct und_file *create_file(struct und_flood *flood, const struct und_open *how)
{
    const struct und_method *method = flood->plan->method;
    struct und_file *file = NULL;
    struct und_error error;
    und_stop_hold();
    if (how->creates)
        file = method->open(how);
    else if (!und_storage_create_unnoted(how->path, und_striped_request(flood->run->striped), how->created, &error))
        UND_DIE("%s: %s", method->name, error.text);
    note_file(flood, file && method->descriptor ? method->descriptor(file) : *how->created, how->path);
    und_stop_release();
    if (file)
        return file;
    file = method->open(how);
    if (*how->created < 0)
        return file;
    const int descriptor = method->descriptor ? method->descriptor(file) : -1;
    const uint32_t found =
        descriptor >= 0 ? und_storage_mark(descriptor, "") : und_storage_mark(AT_FDCWD, und_storage_name(how->path));
    if (found != flood->made->marks[flood->made->count - 1])
        UND_DIE("%s: %s is no longer the file that this run created", method->name, how->path);
    return file;
}

static struct und_file *open_file(struct und_flood *flood, struct und_open *how, const struct item *item)
{
    const struct und_method *method = flood->plan->method;
    und_calls_watch(method, item->path);
    how->path = item->path;
    how->bytes = item->kind->bytes;
    *how->created = -1;
    struct und_file *file = how->mode == UND_CREATE && method->has_files ? create_file(flood, how) : method->open(how);
    if (*how->created >= 0)
        UND_CHECK(close(*how->created) == 0, "%s: cannot close %s", method->name, how->path);
    return file;
}

/* A call of these bytes of an item. */
static void compare(const struct und_flood *flood, const struct item *item, int64_t at, int64_t bytes,
                    const unsigned char *data, struct und_verification *verification)
{
    struct und_base *base = item->kind->base;
    unsigned char right;
    int64_t wrong = 0;
    const int64_t differing = und_base_compare(base, item->contents, at, bytes, data, &wrong);
    if (differing > 0 && verification->wrong_bytes == 0) {
        und_base_copy(base, item->contents, wrong, 1, &right);
        snprintf(verification->first, sizeof verification->first, "%s: byte %" PRId64 " is %u instead of %u",
                 und_numbered_path(flood->names, item->number, ""), wrong, data[wrong - at], right);
    }
    verification->wrong_bytes += differing;
    verification->bytes += bytes;
}

/* What is compared while time is taken is waited for on purpose. */
static void compare_read(struct und_flood *flood, const struct item *item, int64_t at, int64_t bytes)
{
    if (!flood->verification)
        return;
    const double begin_s = und_clock();
    const int64_t before = flood->verification->bytes; /* what is compared here is not read back */
    compare(flood, item, at, bytes, und_base_buffer(item->kind->base), flood->verification);
    flood->verification->bytes = before;
    flood->pace.waited_s += und_clock() - begin_s;
}

static void read_call(struct und_flood *flood, struct und_file *file, const struct item *item,
                      const struct und_box *box, int64_t at)
{
    const struct und_dataset *dataset = &item->kind->dataset;
    flood->plan->method->read(file, dataset, box, und_base_buffer(item->kind->base));
    compare_read(flood, item, at, und_box_bytes(dataset, box));
}

static void move(struct und_flood *flood, struct und_file *file, const struct item *item)
{
    const struct und_method *method = flood->plan->method;
    const struct und_dataset *dataset = &item->kind->dataset;
    struct und_base *base = item->kind->base;
    struct und_cut cut = item->kind->cut;
    if (method->define)
        method->define(file, dataset, &item->kind->block);
    for (int64_t left = cut.calls, at = 0, bytes; left > 0; --left, at += bytes) {
        bytes = und_box_bytes(dataset, &cut.box);
        if (flood->pace.is_kept)
            und_pace_keep(&flood->pace, flood->run);
        if (flood->mode == UND_CREATE)
            method->write(file, dataset, &cut.box, und_base_consecutive(base, item->contents, at, bytes));
        else
            read_call(flood, file, item, &cut.box, at);
        if (flood->plan->flush_bytes > 0 && (flood->unsynced += bytes) >= flood->plan->flush_bytes) {
            method->sync(file);
            flood->unsynced = 0;
        }
        if (left > 1)
            und_cut_next(&cut);
    }
}

static void lap(struct und_flood *flood, struct und_record *record, double *stamp)
{
    const double now = und_clock();
    if (!record->took_place)
        record->start_s = *stamp;
    record->took_place = true;
    record->spent_s += now - *stamp - flood->pace.waited_s;
    flood->pace.waited_s = 0;
    record->end_s = now;
    record->operations += flood->operations;
    flood->operations = 0;
    *stamp = now;
}

/* A rank without a file took no time. */
static void complete(struct und_record *record, double zero)
{
    if (!record->took_place)
        record->start_s = record->end_s = und_clock();
    record->took_place = true;
    record->start_s -= zero;
    record->end_s -= zero;
}

/* Files that are made to be read later are made at once. */
static void begin_pace(struct und_flood *flood, int64_t passes)
{
    const bool makes = flood->mode == UND_CREATE && flood->stream->operation == UND_READS;
    int64_t calls = 0;
    for (int k = 0; k < flood->kind_count; ++k) {
        const int64_t end = k + 1 < flood->kind_count ? flood->kinds[k + 1].own : flood->sequence->own;
        calls += passes * (end - flood->kinds[k].own) * flood->kinds[k].cut.calls;
    }
    und_pace_begin(&flood->pace, flood->run, flood->stream, flood->dump, makes ? 0 : calls, false);
}

void und_flood_play(struct und_flood *flood, double zero, struct und_record *records)
{
    const struct und_method *method = flood->plan->method;
    const bool writes = flood->mode == UND_CREATE, syncs = writes && flood->plan->sync;
    struct und_record *moving = &records[writes ? UND_WRITING : UND_READING];
    const int64_t passes = writes ? 1 : flood->stream->passes;
    const bool enters = writes && method->has_files && flood->stream->own.files_in_directory > 0;
    int created = -1;
    struct und_open how = how_to_open(flood, &created);
    begin_pace(flood, passes);
    und_watch_enter(writes ? "write files" : "read files", NULL, true);
    for (int64_t pass = 0; pass < passes; ++pass)
        for (int64_t i = 0; i < flood->sequence->own; ++i) {
            const struct item item = item_at(flood, i);
            und_watch_call(i);
            if (enters)
                und_numbered_enter(flood->made->names, item.number);
            double stamp = und_clock();
            struct und_file *file = open_file(flood, &how, &item);
            lap(flood, &records[UND_OPENING], &stamp);
            move(flood, file, &item);
            lap(flood, moving, &stamp);
            moving->bytes += item.kind->bytes;
            if (syncs) {
                method->sync(file);
                lap(flood, &records[UND_SYNCING], &stamp);
            }
            method->close(file);
            lap(flood, &records[UND_CLOSING], &stamp);
        }
    if (enters)
        und_numbered_leave(flood->made->names);
    und_watch_leave();
    und_calls_leave();
    if (flood->kind_count == 0)
        return;
    complete(&records[UND_OPENING], zero);
    complete(moving, zero);
    if (syncs)
        complete(&records[UND_SYNCING], zero);
    complete(&records[UND_CLOSING], zero);
}

void und_flood_make(struct und_flood *flood)
{
    struct und_record records[UND_PHASES];
    memset(records, 0, sizeof records);
    und_flood_play(flood, 0, records);
}

void und_flood_verify(struct und_flood *flood, struct und_verification *verification)
{
    flood->verification = verification;
}

static void compare_file(struct und_flood *flood, struct und_file *file, const struct item *item,
                         struct und_verification *verification)
{
    const struct und_method *method = flood->plan->method;
    const struct und_dataset *dataset = &item->kind->dataset;
    unsigned char *buffer = und_base_buffer(item->kind->base);
    struct und_cut cut = item->kind->cut;
    if (method->define)
        method->define(file, dataset, &item->kind->block);
    for (int64_t left = cut.calls, at = 0, bytes; left > 0; --left, at += bytes) {
        bytes = und_box_bytes(dataset, &cut.box);
        method->read(file, dataset, &cut.box, buffer);
        compare(flood, item, at, bytes, buffer, verification);
        if (left > 1)
            und_cut_next(&cut);
    }
}

void und_flood_compare(struct und_flood *flood, struct und_verification *verification)
{
    int created = -1;
    struct und_open how = how_to_open(flood, &created);
    und_watch_enter("verify files", NULL, true);
    for (int64_t i = 0; i < flood->sequence->own; ++i) {
        und_watch_call(i);
        const struct item item = item_at(flood, i);
        struct und_file *file = open_file(flood, &how, &item);
        compare_file(flood, file, &item, verification);
        flood->plan->method->close(file);
    }
    und_watch_leave();
    und_calls_leave();
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
        const struct item item = item_at(flood, i);
        struct und_error error;
        struct stat status;
        if (lstat(und_storage_name(item.path), &status) != 0 || !S_ISREG(status.st_mode))
            UND_DIE("%s: cannot find %s again", method->name, item.path);
        if (method->whole && !method->whole(item.path, &error))
            UND_DIE("%s: cannot write all of %s: %s", method->name, item.path, error.text);
        if (!flood->plan->packs && (int64_t)status.st_size < item.kind->bytes)
            UND_DIE("%s: %s has %" PRId64 " bytes on storage, less than the %" PRId64 " written to it", method->name,
                    item.path, (int64_t)status.st_size, item.kind->bytes);
        *file_bytes += (int64_t)status.st_size;
    }
}

bool und_flood_find(struct und_flood *flood, struct und_error *error)
{
    const bool exact = !flood->plan->method->suffix;
    for (int64_t i = 0; i < flood->sequence->own && flood->plan->method->has_files; ++i) {
        const struct item item = item_at(flood, i);
        struct stat status;
        if (stat(und_storage_name(item.path), &status) != 0)
            return und_fail(error, "--restart-from: cannot find %s: %s", item.path, strerror(errno));
        if (exact && (int64_t)status.st_size != item.kind->bytes)
            return und_fail(error, "--restart-from: %s has %" PRId64 " bytes, expected %" PRId64, item.path,
                            (int64_t)status.st_size, item.kind->bytes);
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
