#include "core/metadata.h"

#include "core/calls.h"
#include "core/die.h"
#include "core/numbered.h"
#include "core/operations.h"
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

enum { STEM_BYTES = 160, NUMBER_BYTES = 64 };

static const char renamed_mark[] = ".renamed";

/* What this rank has created. */
struct made {
    struct und_storage_many many;
    struct und_numbered *files, *directories;
    struct und_progress progress;
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
    int64_t counts[UND_BARE_KINDS];
    const struct und_dump *counted; /* whose these are */
    int64_t turn;                   /* of what acts on files in turn */
    int64_t ignored;
};

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
    const struct und_progress *progress = &made->progress;
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
    int64_t creates = metadata->prepared > 0, before = 0, counts[UND_BARE_KINDS];
    for (int e = 0; e < metadata->stream->entry_count && !creates; ++e) {
        und_operations_count(&metadata->stream->entries[e], run->rank, counts);
        creates = counts[UND_CREATE_EMPTY] > 0;
    }
    UND_MPI(MPI_Exscan(&creates, &before, 1, MPI_INT64_T, MPI_SUM, run->comm), "cannot number the ranks");
    UND_MPI(MPI_Allreduce(&creates, &made->creators, 1, MPI_INT64_T, MPI_SUM, run->comm), "cannot number the ranks");
    made->creator = run->rank == 0 ? 0 : before;
}

struct und_metadata *und_metadata_new(const struct und_run *run, int stream)
{
    const struct und_stream *what = &run->workload->streams[stream];
    if (!und_stream_operates(what))
        return NULL;
    struct und_metadata *metadata = calloc(1, sizeof *metadata);
    struct made *made = calloc(1, sizeof *made);
    UND_CHECK(metadata && made, "no memory for the operations of the stream %s", what->name);
    metadata->run = run;
    metadata->stream = what;
    metadata->plan = &run->plan->streams[stream];
    metadata->index = stream;
    metadata->made = made;
    metadata->prepared = und_operations_lacking(what, run->ranks, run->rank, &made->capacity);
    made->marks = calloc((size_t)++made->capacity, sizeof *made->marks);
    UND_CHECK(made->marks, "no memory to note the files of the stream %s", what->name);
    made->many = (struct und_storage_many){.remove = remove_made, .free = free_made};
    made->files = name(run, what, "made", what->own.files_in_directory);
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
    int64_t end = made->creators > 0 ? made->progress.next + more : 0;
    end = end < made->capacity ? end : made->capacity;
    if (made->files->per_directory == 0)
        return;
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, &end, 1, MPI_INT64_T, MPI_MAX, metadata->run->comm),
            "cannot agree on the directories of the stream %s", metadata->stream->name);
    und_numbered_make_directories(made->files, end * made->creators);
}

void und_metadata_prepare(struct und_metadata *metadata, int dump)
{
    const struct und_dump *what = und_dump_of(metadata->stream, dump);
    if (what != metadata->counted)
        und_operations_count(what, metadata->run->rank, metadata->counts);
    metadata->counted = what;
    metadata->turn = 0;
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

static const char *next_target(struct und_metadata *metadata, const struct und_targets *targets)
{
    const struct und_progress *progress = &metadata->made->progress;
    const int64_t turn = metadata->turn++;
    return targets->count == 0 ? reach(metadata->made, progress->first + turn % (progress->next - progress->first))
                               : targets->path(targets->context, turn % targets->count);
}

/* Through the method where its files are no containers, which a rank may not open twice. */
static void open_again(struct und_metadata *metadata, const char *path)
{
    const struct und_method *method = metadata->plan->method;
    int none = -1;
    und_calls_watch(method, path);
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
        und_calls_leave();
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
static void act_on_files(struct und_metadata *metadata, const struct und_targets *targets, enum und_bare operation,
                         int64_t count)
{
    const struct und_method *method = metadata->plan->method;
    const int64_t files = targets->count > 0 ? targets->count : 1;
    for (int64_t f = 0; f < files && f < count; ++f) {
        const int64_t times = count / files + (f < count % files);
        if (method->descriptor && targets->count > 0 && targets->file) {
            act_on(method->descriptor(targets->file(targets->context, f)), operation, times,
                   targets->path(targets->context, f));
            continue;
        }
        const char *path = next_target(metadata, targets);
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
    struct und_progress *progress = &made->progress;
    char from[STEM_BYTES + NUMBER_BYTES];
    progress->renamed = progress->renamed > progress->first ? progress->renamed : progress->first;
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
    struct und_progress *progress = &metadata->made->progress;
    const char *path = reach(metadata->made, progress->first);
    check_file(metadata, progress->first, path);
    und_stop_hold();
    UND_CHECK(unlink(und_storage_name(path)) == 0, "metadata: cannot remove %s", path);
    ++progress->first;
    und_stop_release();
}

/* One operation of a kind that acts on names. */
static void operate(struct und_metadata *metadata, const struct und_targets *targets, enum und_bare operation)
{
    switch (operation) {
    case UND_MKDIR: und_numbered_make_directory(metadata->made->directories); break;
    case UND_CREATE_EMPTY: create(metadata); break;
    case UND_OPEN: open_again(metadata, next_target(metadata, targets)); break;
    case UND_STAT: look(next_target(metadata, targets)); break;
    case UND_RENAME: rename_oldest(metadata); break;
    case UND_UNLINK: unlink_oldest(metadata); break;
    case UND_SEEK:
    case UND_SYNC: break; /* act on what is open */
    }
}

int64_t und_metadata_operate(struct und_metadata *metadata, const struct und_operations *operations,
                             const struct und_targets *targets, double *asked_s)
{
    const int64_t count = und_operations_of(operations, metadata->run->rank);
    const enum und_bare operation = operations->operation;
    if (!metadata->plan->method->has_files)
        return count;
    metadata->asked_s = 0;
    if (operation == UND_SEEK || operation == UND_SYNC)
        act_on_files(metadata, targets, operation, count);
    else
        for (int64_t i = 0; i < count; ++i) {
            und_watch_call(i);
            operate(metadata, targets, operation);
        }
    und_numbered_leave(metadata->made->files);
    *asked_s += metadata->asked_s;
    return count;
}
