#include "playing/metadata.h"

#include "interfaces/calls.h"
#include "job/die.h"
#include "plan/operations.h"
#include "playing/layout_log.h"
#include "storage/files.h"
#include "storage/run_directory.h"
#include "storage/watchdog.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEM_BYTES = 160 };

struct und_metadata {
    const struct und_run *run;
    const struct und_stream *stream;
    const struct und_stream_plan *plan;
    int index;
    struct und_files *files, *directories; /* that this rank creates: file k is the one k % capacity */
    struct und_progress progress;
    int64_t capacity; /* files that are there at once, at most */
    int64_t prepared; /* files that the stream lacks */
    double asked_s;   /* that this run's own questions about files took, in the dump */
    int64_t counts[UND_BARE_KINDS];
    const struct und_dump *counted; /* whose these are */
    int64_t turn;                   /* of what acts on files in turn */
    int64_t ignored;
};

/* Names are used again once their files are removed. */
static int64_t place_of(const struct und_metadata *metadata, int64_t k)
{
    return k % metadata->capacity;
}

/* The stem of the names that are made in the stream's name. */
static const char *stem_of(const struct und_stream *stream, const char *what, char stem[STEM_BYTES])
{
    snprintf(stem, STEM_BYTES, "%s.%s", stream->name, what);
    return stem;
}

/* Does the rank ever create or need a file? Their numbers are dense over the ranks that do. */
static void number_files(struct und_metadata *metadata)
{
    const struct und_run *run = metadata->run;
    int64_t creates = metadata->prepared > 0, before = 0, counts[UND_BARE_KINDS];
    for (int e = 0; e < metadata->stream->entry_count && !creates; ++e) {
        und_operations_count(&metadata->stream->entries[e], run->rank, counts);
        creates = counts[UND_CREATE_EMPTY] > 0;
    }
    UND_MPI(MPI_Exscan(&creates, &before, 1, MPI_INT64_T, MPI_SUM, run->comm), "cannot number the ranks");
    UND_MPI(MPI_Allreduce(&creates, &metadata->files->step, 1, MPI_INT64_T, MPI_SUM, run->comm),
            "cannot number the ranks");
    metadata->files->first = run->rank == 0 ? 0 : before;
}

static void name_files(struct und_metadata *metadata)
{
    const struct und_stream *stream = metadata->stream;
    char stem[STEM_BYTES];
    metadata->directories = und_files_new_directories(metadata->run, stem_of(stream, "directories", stem));
    metadata->files =
        und_files_new_numbered(metadata->run, stem_of(stream, "made", stem), "", stream->own_set.files_in_directory);
    metadata->files->other = ".renamed";
    number_files(metadata);
    und_files_note(metadata->files, metadata->capacity);
}

struct und_metadata *und_metadata_new(const struct und_run *run, int stream)
{
    const struct und_stream *what = &run->workload->streams[stream];
    if (!und_stream_operates(what))
        return NULL;
    struct und_metadata *metadata = und_allocate(1, sizeof *metadata, what->name);
    metadata->run = run;
    metadata->stream = what;
    metadata->plan = &run->plan->streams[stream];
    metadata->index = stream;
    metadata->prepared = und_operations_lacking(what, run->ranks, run->rank, &metadata->capacity);
    ++metadata->capacity;
    name_files(metadata);
    return metadata;
}

void und_metadata_free(struct und_metadata *metadata)
{
    if (!metadata)
        return;
    und_files_free(metadata->files);
    und_files_free(metadata->directories);
    free(metadata);
}

/* The path of file k, in whose directory this process then works: what replaces that from here on is none of ours. */
static const char *reach(struct und_metadata *metadata, int64_t k)
{
    und_files_enter(metadata->files, place_of(metadata, k));
    return und_files_path(metadata->files, place_of(metadata, k), k < metadata->progress.renamed);
}

static void create(struct und_metadata *metadata)
{
    struct und_error error;
    int created;
    if (!und_files_create(metadata->files, place_of(metadata, metadata->progress.next++),
                          und_layout_log_request(metadata->run->layout_log), &created, &error))
        UND_DIE("metadata: %s", error.text);
    UND_CHECK(close(created) == 0, "metadata: cannot close %s", metadata->files->path);
}

/* The directories of the tree that files up to the next of all ranks are in. */
static void grow_tree(struct und_metadata *metadata, int64_t more)
{
    const int64_t creators = metadata->files->step;
    int64_t end = creators > 0 ? metadata->progress.next + more : 0;
    end = end < metadata->capacity ? end : metadata->capacity;
    if (!metadata->files->parents)
        return;
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, &end, 1, MPI_INT64_T, MPI_MAX, metadata->run->comm),
            "cannot agree on the directories of the stream %s", metadata->stream->name);
    und_files_make_directories(metadata->files, metadata->run, end * creators);
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
        und_watch_call(metadata->run->watch, i);
        create(metadata);
    }
    und_files_leave(metadata->files);
    und_files_note(metadata->directories, metadata->directories->count + metadata->counts[UND_MKDIR]);
}

static const char *next_target(struct und_metadata *metadata, const struct und_targets *targets)
{
    const struct und_progress *progress = &metadata->progress;
    const int64_t turn = metadata->turn++;
    return targets->count == 0 ? reach(metadata, progress->first + turn % (progress->next - progress->first))
                               : targets->path(targets->context, turn % targets->count);
}

/* Through the method where its files are no containers, which a rank may not open twice. */
static void open_again(struct und_metadata *metadata, const char *path)
{
    const struct und_method *method = metadata->plan->method;
    int none = -1;
    und_calls_watch(method, metadata->run->directory, path);
    const struct und_open how = {
        .path = path,
        .directory = metadata->run->directory,
        .comm = MPI_COMM_SELF,
        .mode = UND_READ,
        .transfer_bytes = metadata->plan->most_transfer_bytes,
        .hints = und_layout_log_hints(metadata->run->layout_log, metadata->index),
        .created = &none,
        .operations = &metadata->ignored,
    };
    if (!method->suffix) {
        method->close(method->open(&how));
        und_calls_leave();
        return;
    }
    const int descriptor = open(und_directory_name(metadata->run->directory, path), O_RDONLY | O_CLOEXEC);
    UND_CHECK(descriptor >= 0, "metadata: cannot open %s", path);
    UND_CHECK(close(descriptor) == 0, "metadata: cannot close %s", path);
}

static void look(const struct und_metadata *metadata, const char *path)
{
    struct stat status;
    UND_CHECK(stat(und_directory_name(metadata->run->directory, path), &status) == 0, "metadata: cannot stat %s", path);
}

/* A seek asks where the descriptor is: a library that keeps its position finds it as it was. */
static void act_on(const struct und_metadata *metadata, int descriptor, enum und_bare operation, int64_t times,
                   const char *path)
{
    for (int64_t i = 0; i < times; ++i) {
        und_watch_call(metadata->run->watch, i);
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
            act_on(metadata, method->descriptor(targets->file(targets->context, f)), operation, times,
                   targets->path(targets->context, f));
            continue;
        }
        const char *path = next_target(metadata, targets);
        const int descriptor = open(und_directory_name(metadata->run->directory, path), O_RDONLY | O_CLOEXEC);
        UND_CHECK(descriptor >= 0, "metadata: cannot open %s", path);
        act_on(metadata, descriptor, operation, times, path);
        close(descriptor);
    }
}

/* Renames or removes file k, the oldest. Ends the run where it, or what has its new name, is another by now. */
static void take_away(struct und_metadata *metadata, int64_t k, bool renames)
{
    const int64_t place = place_of(metadata, k);
    const bool is_renamed = k < metadata->progress.renamed;
    struct und_error error;
    und_files_enter(metadata->files, place);
    const double begin_s = und_clock();
    const bool may_go = und_files_may_go(metadata->files, place, is_renamed, renames, &error);
    metadata->asked_s += und_clock() - begin_s;
    if (!may_go || !und_files_take_away(metadata->files, place, is_renamed, renames, &error))
        UND_DIE("metadata: %s", error.text);
}

static void rename_oldest(struct und_metadata *metadata)
{
    struct und_progress *progress = &metadata->progress;
    progress->renamed = progress->renamed > progress->first ? progress->renamed : progress->first;
    take_away(metadata, progress->renamed, true);
    ++progress->renamed;
}

static void make_directory(struct und_metadata *metadata)
{
    struct und_error error;
    if (!und_files_have_directory(metadata->directories, metadata->directories->count++, true, &error))
        UND_DIE("metadata: %s", error.text);
}

/* One operation of a kind that acts on names. */
static void operate(struct und_metadata *metadata, const struct und_targets *targets, enum und_bare operation)
{
    switch (operation) {
    case UND_MKDIR: make_directory(metadata); break;
    case UND_CREATE_EMPTY: create(metadata); break;
    case UND_OPEN: open_again(metadata, next_target(metadata, targets)); break;
    case UND_STAT: look(metadata, next_target(metadata, targets)); break;
    case UND_RENAME: rename_oldest(metadata); break;
    case UND_UNLINK: take_away(metadata, metadata->progress.first++, false); break;
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
            und_watch_call(metadata->run->watch, i);
            operate(metadata, targets, operation);
        }
    und_files_leave(metadata->files);
    *asked_s += metadata->asked_s;
    return count;
}
