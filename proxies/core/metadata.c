#include "core/metadata.h"

#include "core/die.h"
#include "core/flood.h"
#include "core/layout.h"
#include "core/numbered.h"
#include "core/parts.h"
#include "core/stop.h"
#include "core/storage.h"
#include "core/striped.h"
#include "core/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KINDS = UND_SEEK + 1, STEM_BYTES = 160, NUMBER_BYTES = 64 };

static const char renamed_mark[] = ".renamed";

/* How far a rank is: file k is the k-th that it has created, and is there from `first` to `next` - 1. */
struct progress {
    int64_t first, next;
    int64_t renamed; /* those before it are renamed, if they are there */
    int64_t directories;
};

/* What this rank has created. */
struct made {
    struct und_storage_many many;
    struct und_numbered *files, *directories;
    struct progress progress;
    int64_t creators, creator;
    uint32_t *marks;  /* of file k the one k % capacity */
    int64_t capacity; /* files that are there at once, at most */
};

struct und_metadata {
    const struct und_run *run;
    const struct und_stream *stream;
    const struct und_stream_plan *plan;
    int index;
    struct made *made;
    int64_t prepared; /* files that the stream lacks */
    double asked_s;   /* that this run's own questions about files took, in the dump */
    int64_t counts[KINDS];
    bool any;
    int64_t turn; /* of what acts on files in turn */
    int64_t ignored;
};

static int64_t count_of(const struct und_operations *operations, int64_t rank)
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

bool und_metadata_is_in(const struct und_stream *stream)
{
    for (int d = 0; d < stream->dump_count; ++d)
        if (stream->dumps[d].operation_count > 0)
            return true;
    return false;
}

/* What a dump's operations are for one rank, or with -1 for all together. */
static void count_all(const struct und_dump *dump, int64_t rank, int64_t counts[KINDS])
{
    memset(counts, 0, KINDS * sizeof counts[0]);
    for (int i = 0; i < dump->operation_count; ++i) {
        const struct und_operations *made = &dump->operations[i];
        counts[made->operation] += rank < 0 ? sum_of(made) : count_of(made, rank);
    }
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* What a dump makes of the files that a rank has. Returns how many it lacked; with enough from the beginning
 * it lacks none. */
static int64_t advance(struct progress *progress, const int64_t counts[KINDS], bool has_data)
{
    int64_t lacking = 0;
    progress->next += counts[UND_CREATE_EMPTY];
    progress->directories += counts[UND_MKDIR];
    if (!has_data && counts[UND_OPEN] + counts[UND_STAT] + counts[UND_SEEK] + counts[UND_SYNC] > 0)
        lacking = larger(lacking, progress->first + 1 - progress->next);
    if (counts[UND_RENAME] > 0)
        progress->renamed = larger(progress->renamed, progress->first) + counts[UND_RENAME];
    lacking = larger(lacking, progress->renamed - progress->next);
    progress->first += counts[UND_UNLINK];
    return larger(lacking, progress->first - progress->next);
}

static bool has_bytes(const struct und_dump *dump, int64_t ranks, int64_t rank)
{
    for (int v = 0; v < dump->variable_count; ++v) {
        const struct und_group own = {.index = rank, .first = rank, .end = rank + 1};
        struct und_dataset dataset;
        struct und_box block;
        int64_t content;
        und_layout_place(&dump->variables[v], ranks, &own, rank, &dataset, &block, &content);
        if (und_dataset_elements(&dataset) > 0)
            return true;
    }
    return false;
}

/* A rank of a stream that is appended to has all its files open in every dump. Gives also how many files are there
 * at once, at most. */
static int64_t lacking_files(const struct und_stream *stream, int64_t ranks, int64_t rank, int64_t *together)
{
    struct progress progress = {0, 0, 0, 0};
    int64_t counts[KINDS] = {0}, lacking = 0;
    *together = 0;
    bool has_data = false;
    for (int d = 0; d < stream->dump_count; ++d) {
        const struct und_dump *dump = &stream->dumps[d];
        if (d == 0 || !dump->repeats_operations)
            count_all(dump, rank, counts);
        if (d == 0 || !dump->repeats)
            has_data = has_bytes(dump, ranks, rank);
        const int64_t first = progress.first;
        lacking = larger(lacking, advance(&progress, counts, has_data));
        *together = larger(*together, progress.next - first);
    }
    *together += lacking;
    return lacking;
}

int64_t und_metadata_files(const struct und_stream *stream, int64_t ranks)
{
    struct progress progress = {0, 0, 0, 0};
    int64_t counts[KINDS] = {0}, lacking = 0, most = 0;
    for (int d = 0; d < stream->dump_count; ++d) {
        const struct und_dump *dump = &stream->dumps[d];
        if (d == 0 || !dump->repeats_operations)
            count_all(dump, -1, counts);
        const int64_t first = progress.first;
        lacking = larger(lacking, advance(&progress, counts, dump->variable_count > 0));
        most = larger(most, progress.next - first);
    }
    /* Each rank may lack one that another has. */
    const int64_t files = most + lacking + (lacking > 0 ? ranks : 0);
    const int64_t tree = stream->files_per_directory > 0 ? files / stream->files_per_directory + 1 : 0;
    return und_metadata_is_in(stream) ? files + progress.directories + tree : 0;
}

int64_t und_metadata_memory(const struct und_stream *stream, int64_t ranks)
{
    const int64_t all = und_metadata_files(stream, ranks);
    int64_t sums[KINDS] = {0};
    for (int d = 0; d < stream->dump_count; ++d)
        for (int i = 0; i < stream->dumps[d].operation_count; ++i) {
            const struct und_operations *made = &stream->dumps[d].operations[i];
            int64_t largest = 0; /* of a rank */
            for (int r = 0; r < made->run_count; ++r)
                largest = larger(largest, made->runs[r].rows);
            sums[made->operation] = smaller(sums[made->operation] + largest, INT64_MAX / 4);
        }
    const int64_t files = sums[UND_CREATE_EMPTY] + larger(sums[UND_RENAME], sums[UND_UNLINK]) + 1;
    return smaller(smaller(files, all), INT64_MAX / 1024) * (int64_t)sizeof(uint32_t);
}

/* Of file k of this rank: names are used again once their files are removed. */
static int64_t number_of(const struct made *made, int64_t k)
{
    return k % made->capacity * made->creators + made->creator;
}

static const char *path_of(struct made *made, int64_t k)
{
    return und_numbered_path(made->files, number_of(made, k), k < made->progress.renamed ? renamed_mark : "");
}

static void remove_made(struct und_storage_many *many, enum und_storage_part part)
{
    struct made *made = (struct made *)many;
    const struct progress *progress = &made->progress;
    if (part != UND_ITS_FILES) {
        und_numbered_remove_directories(made->files, part == UND_ALL_DIRECTORIES);
        return;
    }
    for (int64_t k = progress->first; k < progress->next; ++k)
        und_numbered_remove(made->files, number_of(made, k), k < progress->renamed ? renamed_mark : "",
                            made->marks[k % made->capacity]);
    und_numbered_remove_directories(made->directories, false);
}

static void free_made(struct und_storage_many *many)
{
    struct made *made = (struct made *)many;
    und_numbered_free(made->files);
    und_numbered_free(made->directories);
    free(made->marks);
    free(made);
}

static struct und_numbered *name(const struct und_run *run, const struct und_stream *stream, const char *what,
                                 int64_t per_directory)
{
    char stem[STEM_BYTES];
    snprintf(stem, sizeof stem, "%s.%s", stream->name, what);
    return und_numbered_new(run, stem, NULL, per_directory);
}

/* Does the rank ever create or need a file? Their numbers are dense over the ranks that do. */
static void number_creators(struct und_metadata *metadata)
{
    const struct und_run *run = metadata->run;
    struct made *made = metadata->made;
    int64_t creates = metadata->prepared > 0, before = 0, counts[KINDS];
    for (int d = 0; d < metadata->stream->dump_count && !creates; ++d)
        if (d == 0 || !metadata->stream->dumps[d].repeats_operations) {
            count_all(&metadata->stream->dumps[d], run->rank, counts);
            creates = counts[UND_CREATE_EMPTY] > 0;
        }
    UND_MPI(MPI_Exscan(&creates, &before, 1, MPI_INT64_T, MPI_SUM, run->comm), "cannot number the ranks");
    UND_MPI(MPI_Allreduce(&creates, &made->creators, 1, MPI_INT64_T, MPI_SUM, run->comm), "cannot number the ranks");
    made->creator = run->rank == 0 ? 0 : before;
}

struct und_metadata *und_metadata_new(const struct und_run *run, int stream)
{
    const struct und_stream *what = &run->workload->streams[stream];
    if (!und_metadata_is_in(what))
        return NULL;
    struct und_metadata *metadata = calloc(1, sizeof *metadata);
    struct made *made = calloc(1, sizeof *made);
    UND_CHECK(metadata && made, "no memory for the operations of the stream %s", what->name);
    metadata->run = run;
    metadata->stream = what;
    metadata->plan = &run->plan->streams[stream];
    metadata->index = stream;
    metadata->made = made;
    metadata->prepared = lacking_files(what, run->ranks, run->rank, &made->capacity);
    made->marks = calloc((size_t)++made->capacity, sizeof *made->marks);
    UND_CHECK(made->marks, "no memory to note the files of the stream %s", what->name);
    made->many = (struct und_storage_many){.remove = remove_made, .free = free_made};
    made->files = name(run, what, "made", what->files_per_directory);
    made->directories = name(run, what, "directories", 1);
    number_creators(metadata);
    und_storage_note_many(&made->many);
    return metadata;
}

void und_metadata_free(struct und_metadata *metadata)
{
    free(metadata);
}

/* The path of file k, in whose directory this process then works: what replaces that from here on is none of ours. */
static const char *reach(struct made *made, int64_t k)
{
    und_numbered_enter(made->files, number_of(made, k));
    return path_of(made, k);
}

static void create(struct und_metadata *metadata)
{
    struct made *made = metadata->made;
    const int64_t k = made->progress.next;
    const char *path = reach(made, k);
    struct und_error error;
    int created;
    und_stop_hold();
    if (!und_storage_create_unnoted(path, und_striped_request(metadata->run->striped), &created, &error))
        UND_DIE("metadata: %s", error.text);
    made->marks[k % made->capacity] = und_storage_mark(created, "");
    ++made->progress.next;
    und_stop_release();
    UND_CHECK(close(created) == 0, "metadata: cannot close %s", path);
}

/* The directories of the tree that files up to the next of all ranks are in. */
static void grow_tree(struct und_metadata *metadata, int64_t more)
{
    struct made *made = metadata->made;
    int64_t end = made->creators > 0 ? smaller(made->progress.next + more, made->capacity) : 0;
    if (made->files->per_directory == 0)
        return;
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, &end, 1, MPI_INT64_T, MPI_MAX, metadata->run->comm),
            "cannot agree on the directories of the stream %s", metadata->stream->name);
    und_numbered_make_directories(made->files, end * made->creators);
}

void und_metadata_prepare(struct und_metadata *metadata, int dump)
{
    const struct und_dump *what = &metadata->stream->dumps[dump];
    if (dump == 0 || !what->repeats_operations)
        count_all(what, metadata->run->rank, metadata->counts);
    metadata->any = what->operation_count > 0;
    if (!metadata->plan->method->has_files)
        return;
    grow_tree(metadata, metadata->counts[UND_CREATE_EMPTY] + (dump == 0 ? metadata->prepared : 0));
    for (int64_t i = 0; i < metadata->prepared && dump == 0; ++i) {
        und_watch_call(i);
        create(metadata);
    }
    und_numbered_leave(metadata->made->files);
    und_numbered_reserve(metadata->made->directories, metadata->counts[UND_MKDIR]);
}

bool und_metadata_has_any(const struct und_metadata *metadata)
{
    return metadata->any;
}

/* The data files of this rank in the dump: of the series, or of its flood. */
static int64_t count_targets(const struct und_series *series)
{
    int64_t files = 0;
    if (series->flood)
        return und_flood_count(series->flood);
    for (int s = 0; s < series->stream->files; ++s)
        files += series->slots[s].file != NULL;
    return files;
}

static const struct und_slot *slot_at(const struct und_series *series, int64_t index)
{
    int s = 0;
    for (;; ++s)
        if (series->slots[s].file && index-- == 0)
            return &series->slots[s];
}

static const char *next_target(struct und_metadata *metadata, struct und_series *series, int64_t targets)
{
    const struct progress *progress = &metadata->made->progress;
    const int64_t turn = metadata->turn++;
    if (targets == 0) {
        return reach(metadata->made, progress->first + turn % (progress->next - progress->first));
    }
    return series->flood ? und_flood_path(series->flood, turn % targets) : slot_at(series, turn % targets)->path;
}

/* Through the method where its files are no containers, which a rank may not open twice. */
static void open_again(struct und_metadata *metadata, const char *path)
{
    const struct und_method *method = metadata->plan->method;
    int none = -1;
    const struct und_open how = {
        .path = path,
        .comm = MPI_COMM_SELF,
        .mode = UND_READ,
        .transfer_bytes = metadata->plan->most_transfer_bytes,
        .hints = und_striped_hints(metadata->run->striped, metadata->index),
        .created = &none,
        .operations = &metadata->ignored,
    };
    if (!method->suffix) {
        method->close(method->open(&how));
        return;
    }
    const int descriptor = open(und_storage_name(path), O_RDONLY | O_CLOEXEC);
    UND_CHECK(descriptor >= 0, "metadata: cannot open %s", path);
    UND_CHECK(close(descriptor) == 0, "metadata: cannot close %s", path);
}

static void look(const char *path)
{
    struct stat status;
    UND_CHECK(stat(und_storage_name(path), &status) == 0, "metadata: cannot stat %s", path);
}

/* A seek asks where the descriptor is: a library that keeps its position finds it as it was. */
static void act_on(int descriptor, enum und_bare operation, int64_t times, const char *path)
{
    for (int64_t i = 0; i < times; ++i) {
        und_watch_call(i);
        if (operation == UND_SYNC)
            UND_CHECK(fsync(descriptor) == 0, "metadata: cannot flush %s", path);
        else
            UND_CHECK(lseek(descriptor, 0, SEEK_CUR) >= 0, "metadata: cannot seek in %s", path);
    }
}

/* On the descriptor that the method has of the file, or where it has none on one of this rank's own. */
static void act_on_files(struct und_metadata *metadata, struct und_series *series, int64_t targets,
                         enum und_bare operation)
{
    const struct und_method *method = metadata->plan->method;
    const int64_t count = metadata->counts[operation], files = larger(targets, 1);
    for (int64_t f = 0; f < files && f < count; ++f) {
        const int64_t times = count / files + (f < count % files);
        if (method->descriptor && targets > 0 && !series->flood) {
            const struct und_slot *slot = slot_at(series, f);
            act_on(method->descriptor(slot->file), operation, times, slot->path);
            continue;
        }
        const char *path = next_target(metadata, series, targets);
        const int descriptor = open(und_storage_name(path), O_RDONLY | O_CLOEXEC);
        UND_CHECK(descriptor >= 0, "metadata: cannot open %s", path);
        act_on(descriptor, operation, times, path);
        close(descriptor);
    }
}

/* Ends the run where the oldest file, that a dump is about to rename or to remove, is another by now. */
static void check_file(struct und_metadata *metadata, int64_t k, const char *path)
{
    const double begin_s = und_clock();
    if (und_storage_mark(AT_FDCWD, und_storage_name(path)) != metadata->made->marks[k % metadata->made->capacity])
        UND_DIE("metadata: %s is no longer the file that this run created", path);
    metadata->asked_s += und_clock() - begin_s;
}

static void check_free(struct und_metadata *metadata, const char *path)
{
    const double begin_s = und_clock();
    if (und_storage_mark(AT_FDCWD, und_storage_name(path)) != 0)
        UND_DIE("metadata: cannot rename a file to %s: %s", path, strerror(EEXIST));
    metadata->asked_s += und_clock() - begin_s;
}

static void rename_oldest(struct und_metadata *metadata)
{
    struct made *made = metadata->made;
    struct progress *progress = &made->progress;
    char from[STEM_BYTES + NUMBER_BYTES];
    progress->renamed = larger(progress->renamed, progress->first);
    const char *path = reach(made, progress->renamed);
    check_file(metadata, progress->renamed, path);
    snprintf(from, sizeof from, "%s", und_storage_name(path));
    const char *to = und_numbered_path(made->files, number_of(made, progress->renamed), renamed_mark);
    check_free(metadata, to);
    und_stop_hold();
    UND_CHECK(rename(from, und_storage_name(to)) == 0, "metadata: cannot rename %s to %s", from, to);
    ++progress->renamed;
    und_stop_release();
}

static void unlink_oldest(struct und_metadata *metadata)
{
    struct progress *progress = &metadata->made->progress;
    const char *path = reach(metadata->made, progress->first);
    check_file(metadata, progress->first, path);
    und_stop_hold();
    UND_CHECK(unlink(und_storage_name(path)) == 0, "metadata: cannot remove %s", path);
    ++progress->first;
    und_stop_release();
}

int64_t und_metadata_play(struct und_metadata *metadata, struct und_series *series)
{
    const int64_t *counts = metadata->counts;
    struct made *made = metadata->made;
    int64_t sum = 0;
    for (int k = 0; k < KINDS; ++k)
        sum += counts[k];
    if (!metadata->plan->method->has_files)
        return sum;
    const int64_t targets = count_targets(series);
    metadata->turn = 0;
    metadata->asked_s = 0;
    for (int64_t i = 0; i < counts[UND_MKDIR]; ++i) {
        und_watch_call(i);
        und_numbered_make_directory(made->directories);
    }
    for (int64_t i = 0; i < counts[UND_CREATE_EMPTY]; ++i) {
        und_watch_call(i);
        create(metadata);
    }
    und_numbered_leave(made->files);
    for (int64_t i = 0; i < counts[UND_OPEN]; ++i) {
        und_watch_call(i);
        open_again(metadata, next_target(metadata, series, targets));
    }
    for (int64_t i = 0; i < counts[UND_STAT]; ++i) {
        und_watch_call(i);
        look(next_target(metadata, series, targets));
    }
    act_on_files(metadata, series, targets, UND_SEEK);
    act_on_files(metadata, series, targets, UND_SYNC);
    for (int64_t i = 0; i < counts[UND_RENAME]; ++i) {
        und_watch_call(i);
        rename_oldest(metadata);
    }
    for (int64_t i = 0; i < counts[UND_UNLINK]; ++i) {
        und_watch_call(i);
        unlink_oldest(metadata);
    }
    und_numbered_leave(made->files);
    series->pace.waited_s += metadata->asked_s;
    return sum;
}
