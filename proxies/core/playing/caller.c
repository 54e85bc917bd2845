/* One file because every call looks at the same handles and files, and changes them. */
#include "playing/caller.h"

#include "job/die.h"
#include "playing/call_queue.h"
#include "storage/direct.h"
#include "storage/run_directory.h"
#include "storage/tree.h"
#include "storage/watchdog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file, as far as this rank knows it. */
struct file {
    int64_t entry;     /* by whose name it came to be: what it contains */
    int64_t end, most; /* behind its last byte, now and ever */
    int64_t cuts;      /* how often it was cut so far */
    bool copied;       /* it has bytes of another file */
    /* once the calls have been gone through: */
    int64_t cut_count, *cut_ends; /* the minimum of its sizes behind each cut and those after it */
    int64_t name;                 /* by which it is found then; -1: none */
};

/* An open file, shared by the handles that are copies of each other. */
struct opened {
    int64_t file;
    int64_t place; /* where it stands */
    int flags;
    int handles;
};

struct handle {
    int descriptor; /* -1: none, or what is compared */
    struct opened *opened;
};

/* A call in flight. */
struct flight {
    int descriptor;
    bool writes;
    int64_t place, bytes, moved; /* asked for, and expected */
    int64_t entry;               /* of its file */
    int64_t number;              /* among the calls of the rank */
    uint64_t begin;              /* in ticks */
};

struct und_caller {
    const struct und_run *run;
    const struct und_stream *stream;
    int index;
    int64_t as;
    struct und_run_tree *tree;
    struct und_base *base;
    struct handle *handles; /* [UND_MAX_HANDLES] */
    int64_t *names;         /* of each entry: the file that has its name; -1: none */
    int64_t *alike, *first; /* the next, in a ring, that has the same last name; the first one in it, 0: none */
    struct file *files;
    int64_t file_count, file_capacity;
    bool *seen;                   /* has the rank opened it? */
    bool *changes;                /* may a call change the file of that name? */
    unsigned char *room;          /* for what is read, or written past the page cache: begins with a page */
    int64_t opened_count, stored; /* files that were opened; bytes of all */
    bool knows_ends;              /* of files: the calls have been gone through */
    int64_t passes[UND_MAX_LOOPS];
    int depth;
    int64_t bytes, operations, calls_made;
    struct und_call_queue *queue; /* NULL: each call ends before the next */
    struct flight *flights;       /* by the numbers of the queue, */
    int64_t most_in_flight;       /* which are so many */
    enum und_phase last;          /* of the calls that were begun */
    /* of the calls that are made or compared */
    struct und_pace *pace;
    und_note_call *note;
    void *context;
    struct und_verification *verification; /* NULL: nothing is compared */
    struct und_verification *of_reads;     /* of files that no call changes; NULL: these are not compared */
    struct und_latency *writes, *reads;    /* NULL: not noted */
};

/* As O_DIRECT wants it. */
static void *allocate_pages(int64_t bytes, const struct und_stream *stream)
{
    void *memory = und_direct_memory(bytes);
    UND_CHECK(memory, "no memory for the calls of the stream %s", stream->name);
    return memory;
}

/* Calls of a rank that can be in flight, and the bytes of the largest. */
static int64_t most_in_flight(const struct und_stream *stream, int64_t *bytes)
{
    int64_t most = 1;
    *bytes = 0;
    for (int s = 0; s < stream->step_count; ++s) {
        int64_t largest;
        most = und_larger(most, und_calls_in_flight(&stream->steps[s].dump->calls, &largest));
        *bytes = und_larger(*bytes, largest);
    }
    return most;
}

int64_t und_caller_memory(const struct und_stream *stream)
{
    enum { PATH = 64 };
    const int64_t entry = (int64_t)(3 * sizeof(int64_t) + sizeof(struct file) + sizeof(char *)) + 3 + PATH;
    int64_t largest = 0, bytes = 0;
    for (int s = 0; s < stream->step_count; ++s)
        largest = und_larger(largest, und_calls_largest(&stream->steps[s].dump->calls));
    const int64_t calls = und_caller_depth(stream) > 1 ? most_in_flight(stream, &bytes) : 0;
    return stream->own_set.tree->count * entry + UND_MAX_HANDLES * (int64_t)sizeof(struct handle) + largest +
           (calls > 0 ? calls * (bytes + UND_PERIOD + (int64_t)sizeof(struct flight)) : 0);
}

int64_t und_caller_depth(const struct und_stream *stream)
{
    int64_t depth = 1;
    for (int s = 0; s < stream->step_count; ++s)
        depth = und_larger(depth, und_calls_depth(&stream->steps[s].dump->calls));
    return depth;
}

/* Files are made in the same order each time that the calls are gone through. */
static int64_t new_file(struct und_caller *caller, int64_t entry, int64_t bytes)
{
    if (caller->file_count == caller->file_capacity) {
        const int64_t capacity = 2 * caller->file_capacity + 16, more = capacity - caller->file_capacity;
        caller->files = realloc(caller->files, (size_t)capacity * sizeof *caller->files);
        UND_CHECK(caller->files, "no memory for %" PRId64 " files of the stream %s", capacity, caller->stream->name);
        memset(caller->files + caller->file_capacity, 0, (size_t)more * sizeof *caller->files);
        caller->file_capacity = capacity;
    }
    struct file *file = &caller->files[caller->file_count];
    file->entry = entry;
    file->end = file->most = bytes;
    file->cuts = 0;
    caller->stored += bytes;
    return caller->file_count++;
}

/* Everything is as before the first call. */
static void begin(struct und_caller *caller)
{
    const struct und_tree *tree = caller->stream->own_set.tree;
    caller->stored = caller->file_count = 0;
    for (int64_t i = 0; i < tree->count; ++i)
        caller->names[i] = tree->entries[i].exists ? new_file(caller, i, tree->entries[i].bytes) : -1;
}

static int64_t file_named(struct und_caller *caller, int64_t name)
{
    if (caller->names[name] < 0)
        caller->names[name] = new_file(caller, name, 0);
    return caller->names[name];
}

struct und_caller *und_caller_new(const struct und_run *run, int stream, int64_t as, bool makes)
{
    const struct und_stream *what = &run->workload->streams[stream];
    const struct und_tree *tree = what->own_set.tree;
    struct und_caller *caller = und_allocate(1, sizeof *caller, what->name);
    caller->run = run;
    caller->stream = what;
    caller->index = stream;
    caller->as = as;
    caller->tree = makes ? und_tree_make(run, stream) : und_tree_find(run, stream);
    caller->base = und_pattern_base(run->pattern, &what->content, UND_BYTE);
    UND_CHECK(caller->base, "no memory for transfers of %" PRId64 " bytes", run->pattern->capacity);
    caller->handles = und_allocate(UND_MAX_HANDLES, sizeof *caller->handles, what->name);
    caller->names = und_allocate(tree->count, sizeof *caller->names, what->name);
    caller->alike = und_allocate(tree->count, sizeof *caller->alike, what->name);
    caller->first = und_allocate(tree->count, sizeof *caller->first, what->name);
    for (int64_t i = 0; i < tree->count; ++i) {
        const int64_t name = tree->entries[i].name, in = tree->entries[i].in;
        caller->alike[i] = name < 0 ? i : caller->alike[name];
        caller->alike[name < 0 ? i : name] = i;
        if (in >= 0 && caller->first[in] == 0)
            caller->first[in] = i;
    }
    caller->seen = und_allocate(tree->count, sizeof *caller->seen, what->name);
    caller->room = allocate_pages(1 + run->pattern->capacity, what);
    int64_t bytes;
    caller->most_in_flight = most_in_flight(what, &bytes);
    if (makes && und_caller_depth(what) > 1)
        caller->queue = und_call_queue_new(caller->most_in_flight, bytes);
    if (caller->queue)
        caller->flights = und_allocate(caller->most_in_flight, sizeof *caller->flights, what->name);
    begin(caller);
    return caller;
}

static void drop(struct handle *handle)
{
    if (handle->opened && --handle->opened->handles == 0)
        free(handle->opened);
    handle->opened = NULL;
}

static void close_all(struct und_caller *caller)
{
    for (int h = 0; h < UND_MAX_HANDLES; ++h)
        if (caller->handles[h].opened) {
            if (caller->handles[h].descriptor >= 0)
                close(caller->handles[h].descriptor);
            drop(&caller->handles[h]);
        }
}

void und_caller_free(struct und_caller *caller)
{
    close_all(caller);
    und_call_queue_free(caller->queue);
    free(caller->flights);
    free(caller->handles);
    for (int64_t f = 0; f < caller->file_capacity; ++f)
        free(caller->files[f].cut_ends);
    free(caller->files);
    free(caller->names);
    free(caller->alike);
    free(caller->first);
    free(caller->seen);
    free(caller->changes);
    free(caller->room);
    free(caller);
}

void und_caller_count(struct und_caller *caller, int64_t *bytes, int64_t *operations)
{
    *bytes = caller->bytes;
    *operations = caller->operations;
    caller->bytes = caller->operations = 0;
}

int64_t und_caller_files(const struct und_caller *caller)
{
    return caller->opened_count;
}

/* Marks the names of a call in all passes of the loops around it. */
static void mark_changes(struct und_caller *caller, const struct und_linear *linear, const int64_t *passes)
{
    int64_t low = linear->base, high = linear->base;
    for (int i = 0; i < linear->count; ++i) {
        const int64_t far = linear->factors[i] * (passes[i] - 1);
        low += far < 0 ? far : 0;
        high += far > 0 ? far : 0;
    }
    memset(caller->changes + low, true, (size_t)(high - low + 1) * sizeof *caller->changes);
}

static void find_changes(struct und_caller *caller, const struct und_call *calls, int64_t count, int64_t *passes,
                         int depth)
{
    for (int64_t i = 0; i < count; i += 1 + calls[i].body) {
        const struct und_call *here = &calls[i];
        const bool opens = here->kind == UND_CALL_OPEN && (here->flags & UND_FLAG_WRITE);
        if (here->kind >= UND_CALLS) {
            passes[depth] = here->times;
            find_changes(caller, here + 1, here->body, passes, depth + 1);
        } else if (here->has_path &&
                   (opens || here->kind == UND_CALL_TRUNCATE || here->kind == UND_CALL_RENAME ||
                    here->kind == UND_CALL_LINK || here->kind == UND_CALL_SYMLINK || here->kind == UND_CALL_UNLINK)) {
            mark_changes(caller, &here->path, passes);
            if (here->has_other)
                mark_changes(caller, &here->to, passes);
        }
    }
}

void und_caller_verify(struct und_caller *caller, struct und_verification *verification)
{
    int64_t passes[UND_MAX_LOOPS + 1];
    caller->of_reads = verification;
    caller->changes = und_allocate(caller->stream->own_set.tree->count, sizeof *caller->changes, caller->stream->name);
    for (int s = 0; s < caller->stream->step_count; ++s) {
        const struct und_call_list *list = &caller->stream->steps[s].dump->calls;
        find_changes(caller, list->calls, list->count, passes, 0);
    }
    const struct und_tree *tree = caller->stream->own_set.tree;
    for (int64_t i = 0; i < tree->count; ++i) /* what is in a directory changes with its name */
        caller->changes[i] |= tree->entries[i].in >= 0 && caller->changes[tree->entries[i].in];
}

void und_caller_note_latencies(struct und_caller *caller, struct und_latency *writes, struct und_latency *reads)
{
    caller->writes = writes;
    caller->reads = reads;
}

/* -- names and places ---------------------------------------------------------------------------------------------- */

static struct handle *handle_of(struct und_caller *caller, const struct und_call *call)
{
    struct handle *handle = &caller->handles[call->handle];
    if (!handle->opened)
        UND_DIE("posix: call %" PRId64 " of the stream %s is on the handle %" PRId64 ", which is not open",
                caller->calls_made, caller->stream->name, call->handle);
    return handle;
}

static const char *path_at(struct und_caller *caller, const struct und_linear *linear, int64_t *entry)
{
    *entry = und_linear_at(linear, caller->passes);
    return und_tree_path(caller->tree, *entry);
}

/* The size that the workload states binds it, before more of it gets to storage. */
static void check_room(const struct und_caller *caller, int64_t file, int64_t end)
{
    const int64_t more = end - caller->files[file].most;
    if (more > 0 && more > caller->stream->own_set.tree->stored_bytes - caller->stored)
        UND_DIE("posix: the files of the stream %s take more than the %" PRId64 " bytes that it states",
                caller->stream->name, caller->stream->own_set.tree->stored_bytes);
}

static void reach(struct und_caller *caller, int64_t file, int64_t end)
{
    struct file *at = &caller->files[file];
    at->end = end > at->end ? end : at->end;
    if (end <= at->most)
        return;
    check_room(caller, file, end);
    caller->stored += end - at->most;
    at->most = end;
}

/* Bytes behind the end are gone. */
static void cut(struct und_caller *caller, int64_t file, int64_t end)
{
    struct file *at = &caller->files[file];
    if (end < at->end) {
        if (!caller->note && !caller->knows_ends) {
            at->cut_ends = realloc(at->cut_ends, (size_t)(at->cuts + 1) * sizeof *at->cut_ends);
            UND_CHECK(at->cut_ends, "no memory for the files of the stream %s", caller->stream->name);
            at->cut_ends[at->cuts] = end;
            at->cut_count = at->cuts + 1;
        }
        ++at->cuts;
        at->end = end;
    }
    reach(caller, file, end);
}

/* Where a call that moves bytes does so. */
static int64_t place_of(struct und_caller *caller, const struct und_call *call, const struct opened *opened)
{
    if (opened->flags & UND_FLAG_APPEND && call->kind == UND_CALL_WRITE)
        return caller->files[opened->file].end;
    return call->has_place ? und_linear_at(&call->place, caller->passes) : opened->place;
}

/* -- what each call changes, whether it is made or compared -------------------------------------------------------- */

static void note_open(struct und_caller *caller, const struct und_call *call, int descriptor)
{
    const int64_t name = und_linear_at(&call->path, caller->passes);
    struct handle *handle = &caller->handles[call->other];
    if (handle->opened)
        UND_DIE("posix: call %" PRId64 " of the stream %s opens the handle %" PRId64 ", which is open",
                caller->calls_made, caller->stream->name, call->other);
    handle->descriptor = descriptor;
    handle->opened = und_allocate(1, sizeof *handle->opened, caller->stream->name);
    *handle->opened = (struct opened){.file = file_named(caller, name), .flags = call->flags, .handles = 1};
    caller->opened_count += !caller->seen[name];
    caller->seen[name] = true;
    if (call->flags & UND_FLAG_TRUNCATE)
        cut(caller, handle->opened->file, 0);
}

static void note_move(struct und_caller *caller, const struct und_call *call, struct opened *opened, int64_t place,
                      int64_t moved)
{
    if (!call->has_place)
        opened->place = place + moved;
    if (call->kind == UND_CALL_WRITE)
        reach(caller, opened->file, place + moved);
}

/* Entries of a directory go with it. */
static void move_below(struct und_caller *caller, int64_t from, int64_t to)
{
    const struct und_tree *tree = caller->stream->own_set.tree;
    if (caller->first[from] == 0 || from == to)
        return;
    int64_t *places =
        und_allocate(tree->count, sizeof *places, caller->stream->name); /* 0: not below; else 1 + the new entry */
    places[from] = 1 + to;
    for (int64_t i = caller->first[from]; i < tree->count; ++i) {
        const int64_t place = tree->entries[i].in < 0 ? 0 : places[tree->entries[i].in];
        if (place == 0)
            continue;
        int64_t there = caller->alike[i];
        while (there != i && tree->entries[there].in != place - 1)
            there = caller->alike[there];
        places[i] = there == i ? -1 : 1 + there; /* -1: below, and no call goes there */
        if (there != i)
            caller->names[there] = caller->names[i];
        caller->names[i] = -1;
    }
    free(places);
}

static void note_names(struct und_caller *caller, const struct und_call *call)
{
    const int64_t name = und_linear_at(&call->path, caller->passes);
    if (call->kind == UND_CALL_SYMLINK && call->has_other) /* to the file that has the name now */
        caller->names[name] = file_named(caller, und_linear_at(&call->to, caller->passes));
    if (call->kind == UND_CALL_RENAME || call->kind == UND_CALL_LINK)
        caller->names[und_linear_at(&call->to, caller->passes)] = file_named(caller, name);
    if (call->kind == UND_CALL_RENAME)
        move_below(caller, name, und_linear_at(&call->to, caller->passes));
    if (call->kind == UND_CALL_UNLINK || call->kind == UND_CALL_RENAME)
        caller->names[name] = -1;
}

static void note_seek(struct und_caller *caller, const struct und_call *call, struct opened *opened)
{
    const int64_t place = und_linear_at(&call->place, caller->passes);
    opened->place = call->from_end ? caller->files[opened->file].end + place : place;
}

static void note_dup(struct und_caller *caller, const struct und_call *call, int descriptor)
{
    struct handle *handle = &caller->handles[call->other];
    if (handle->opened)
        UND_DIE("posix: call %" PRId64 " of the stream %s copies to the handle %" PRId64 ", which is open",
                caller->calls_made, caller->stream->name, call->other);
    *handle = (struct handle){.descriptor = descriptor, .opened = handle_of(caller, call)->opened};
    ++handle->opened->handles;
}

static struct opened *copied_into(const struct und_caller *caller, const struct und_call *call)
{
    struct opened *opened = caller->handles[call->other].opened;
    if (!opened)
        UND_DIE("posix: call %" PRId64 " of the stream %s copies into the handle %" PRId64 ", which is not open",
                caller->calls_made, caller->stream->name, call->other);
    return opened;
}

static void note_copy(struct und_caller *caller, const struct und_call *call, struct opened *from)
{
    struct opened *into = copied_into(caller, call);
    from->place += call->moved;
    into->place += call->moved;
    reach(caller, into->file, into->place);
    caller->files[into->file].copied = true;
}

/* -- making them --------------------------------------------------------------------------------------------------- */

static int flags_of(const struct und_call *call)
{
    const int both = UND_FLAG_READ | UND_FLAG_WRITE, access = call->flags & both;
    int flags = (access == both ? O_RDWR : access == UND_FLAG_WRITE ? O_WRONLY : O_RDONLY);
    flags |= call->flags & UND_FLAG_CREATE ? O_CREAT : 0;
    flags |= call->flags & UND_FLAG_EXCLUSIVE ? O_EXCL : 0;
    flags |= call->flags & UND_FLAG_TRUNCATE ? O_TRUNC : 0;
    flags |= call->flags & UND_FLAG_APPEND ? O_APPEND : 0;
    flags |= call->flags & UND_FLAG_SYNC ? O_DSYNC : 0;
    flags |= call->flags & UND_FLAG_DIRECT ? O_DIRECT : 0;
    return flags | (call->flags & UND_FLAG_DIRECTORY ? O_DIRECTORY : 0);
}

static bool make_open(struct und_caller *caller, const struct und_call *call)
{
    int64_t entry;
    const char *path = path_at(caller, &call->path, &entry);
    if (call->flags & UND_FLAG_CREATE)
        und_tree_touch(caller->tree, entry);
    const int descriptor = und_directory_open_below(und_tree_directory(caller->tree), path, flags_of(call), true);
    if (descriptor >= 0 && call->fails)
        close(descriptor);
    else if (descriptor >= 0)
        note_open(caller, call, descriptor);
    return descriptor >= 0;
}

/* Counts the bytes that are not those of the file, and says which is the first of all. */
static void compare_bytes(struct und_caller *caller, int64_t name, int64_t entry, int64_t place, int64_t bytes,
                          const unsigned char *data, struct und_verification *verification)
{
    const uint64_t contents = und_tree_contents(caller->run, caller->index, entry);
    int64_t wrong = 0;
    const int64_t differing = und_base_compare(caller->base, contents, place, bytes, data, &wrong);
    if (differing > 0 && verification->wrong_bytes == 0) {
        unsigned char right;
        und_base_copy(caller->base, contents, wrong, 1, &right);
        snprintf(verification->first, sizeof verification->first, "%s.tree/%s: byte %" PRId64 " is %u instead of %u",
                 caller->stream->set->name, und_tree_path(caller->tree, name), wrong, data[wrong - place], right);
    }
    verification->wrong_bytes += differing;
}

/* A file that was there before the first call, and that no call changes. */
static void compare_read(struct und_caller *caller, int64_t entry, int64_t place, int64_t bytes,
                         const unsigned char *data)
{
    if (!caller->of_reads || caller->changes[entry])
        return;
    const double begin_s = und_clock();
    compare_bytes(caller, entry, entry, place, bytes, data, caller->of_reads);
    caller->pace->waited_s += und_clock() - begin_s;
}

static const void *written_at(struct und_caller *caller, const struct und_call *call, const struct opened *opened,
                              int64_t place)
{
    const uint64_t contents = und_tree_contents(caller->run, caller->index, caller->files[opened->file].entry);
    if (!(opened->flags & UND_FLAG_DIRECT))
        return und_base_consecutive(caller->base, contents, place, call->bytes);
    und_base_copy(caller->base, contents, place, call->bytes, caller->room);
    return caller->room;
}

static void begin_flight(struct und_caller *caller, int64_t number)
{
    const struct flight *flight = &caller->flights[number];
    UND_CHECK(
        und_call_queue_begin(caller->queue, number, flight->descriptor, flight->bytes, flight->place, flight->writes),
        "posix: cannot begin call %" PRId64 " of the stream %s", flight->number, caller->stream->name);
}

/* A system may move less at a time than that of the program did. */
static int64_t move_rest(const struct flight *flight, unsigned char *data, int64_t done)
{
    while (done > 0 && done < flight->moved) {
        const size_t left = (size_t)(flight->bytes - done);
        const off_t place = (off_t)(flight->place + done);
        const ssize_t more = flight->writes ? pwrite(flight->descriptor, data + done, left, place)
                                            : pread(flight->descriptor, data + done, left, place);
        if (more <= 0)
            return more < 0 ? -errno : done;
        done += more;
    }
    return done;
}

/* Waits for a call in flight. */
static void end_one(struct und_caller *caller)
{
    int64_t result;
    const int64_t number = und_call_queue_end(caller->queue, &result);
    UND_CHECK(number >= 0, "posix: cannot wait for calls of the stream %s", caller->stream->name);
    const struct flight *flight = &caller->flights[number];
    result = move_rest(flight, und_call_queue_memory(caller->queue, number), result);
    und_latency_end(flight->writes ? caller->writes : caller->reads, flight->begin, result > 0 ? result : 0);
    if (result == flight->moved) {
        if (!flight->writes)
            compare_read(caller, flight->entry, flight->place, result, und_call_queue_memory(caller->queue, number));
        return;
    }
    errno = result < 0 ? (int)-result : 0;
    UND_CHECK(result >= 0, "posix: call %" PRId64 " of the stream %s, %s %s, failed", flight->number,
              caller->stream->name, flight->writes ? "write" : "read", und_tree_path(caller->tree, flight->entry));
    UND_DIE("posix: call %" PRId64 " of the stream %s %s %" PRId64 " bytes at %" PRId64 " of %s, expected %" PRId64,
            flight->number, caller->stream->name, flight->writes ? "wrote" : "read", result, flight->place,
            und_tree_path(caller->tree, flight->entry), flight->moved);
}

static void end_all(struct und_caller *caller)
{
    if (!caller->queue || und_call_queue_length(caller->queue) == 0)
        return;
    while (und_call_queue_length(caller->queue) > 0)
        end_one(caller);
    caller->note(caller->context, caller->last);
}

/* What it changes is noted at once: nothing looks at it before the call has ended. */
static bool begin_move(struct und_caller *caller, const struct und_call *call)
{
    const struct handle *handle = handle_of(caller, call);
    const bool writes = call->kind == UND_CALL_WRITE;
    const int64_t place = place_of(caller, call, handle->opened);
    const int64_t entry = caller->files[handle->opened->file].entry;
    while (und_call_queue_length(caller->queue) >= und_smaller(call->depth, caller->most_in_flight))
        end_one(caller);
    if (writes)
        check_room(caller, handle->opened->file, place + call->bytes);
    const int64_t number = und_call_queue_take(caller->queue);
    if (writes)
        und_base_copy(caller->base, und_tree_contents(caller->run, caller->index, entry), place, call->bytes,
                      und_call_queue_memory(caller->queue, number));
    caller->flights[number] = (struct flight){.descriptor = handle->descriptor,
                                              .writes = writes,
                                              .place = place,
                                              .bytes = call->bytes,
                                              .moved = call->moved,
                                              .entry = entry,
                                              .number = caller->calls_made};
    caller->flights[number].begin = und_latency_begin(writes ? caller->writes : caller->reads);
    begin_flight(caller, number);
    note_move(caller, call, handle->opened, place, call->moved);
    caller->bytes += call->moved;
    caller->last = writes ? UND_WRITING : UND_READING;
    return true;
}

static bool make_move(struct und_caller *caller, const struct und_call *call)
{
    const struct handle *handle = handle_of(caller, call);
    const bool writes = call->kind == UND_CALL_WRITE;
    const int64_t place = place_of(caller, call, handle->opened);
    const size_t bytes = (size_t)call->bytes;
    struct und_latency *latency = writes ? caller->writes : caller->reads;
    uint64_t start = 0;
    ssize_t moved;
    if (writes) {
        check_room(caller, handle->opened->file, place + call->bytes);
        const void *data = written_at(caller, call, handle->opened, place);
        start = und_latency_begin(latency);
        moved = call->has_place ? pwrite(handle->descriptor, data, bytes, (off_t)place)
                                : write(handle->descriptor, data, bytes);
    } else {
        start = und_latency_begin(latency);
        moved = call->has_place ? pread(handle->descriptor, caller->room, bytes, (off_t)place)
                                : read(handle->descriptor, caller->room, bytes);
    }
    und_latency_end(latency, start, moved > 0 ? moved : 0);
    if (moved < 0)
        return false;
    if (moved != call->moved)
        UND_DIE("posix: call %" PRId64 " of the stream %s %s %zd bytes at %" PRId64 " of %s, expected %" PRId64,
                caller->calls_made, caller->stream->name, writes ? "wrote" : "read", moved, place,
                und_tree_path(caller->tree, caller->files[handle->opened->file].entry), call->moved);
    note_move(caller, call, handle->opened, place, moved);
    caller->bytes += moved;
    caller->pace->bytes = moved;
    if (!writes)
        compare_read(caller, caller->files[handle->opened->file].entry, place, moved, caller->room);
    return true;
}

/* A system may copy in smaller parts than that of the program did. */
static bool make_copy(struct und_caller *caller, const struct und_call *call)
{
    const struct handle *handle = handle_of(caller, call);
    int64_t moved = 0;
    const struct opened *into = copied_into(caller, call);
    check_room(caller, into->file, into->place + call->moved);
    const uint64_t start = und_latency_begin(caller->writes);
    for (;;) {
        const ssize_t more = copy_file_range(handle->descriptor, NULL, caller->handles[call->other].descriptor, NULL,
                                             (size_t)(call->length - moved), 0);
        if (more < 0)
            return false;
        moved += more;
        if (more == 0 || moved >= call->moved)
            break;
    }
    und_latency_end(caller->writes, start, moved);
    if (moved != call->moved)
        UND_DIE("posix: call %" PRId64 " of the stream %s copied %" PRId64 " bytes of %s, expected %" PRId64,
                caller->calls_made, caller->stream->name, moved,
                und_tree_path(caller->tree, caller->files[handle->opened->file].entry), call->moved);
    note_copy(caller, call, handle->opened);
    caller->bytes += moved;
    return true;
}

static bool make_seek(struct und_caller *caller, const struct und_call *call)
{
    const struct handle *handle = handle_of(caller, call);
    const off_t to = (off_t)und_linear_at(&call->place, caller->passes);
    note_seek(caller, call, handle->opened);
    const off_t place = lseek(handle->descriptor, to, call->from_end ? SEEK_END : SEEK_SET);
    if (place >= 0)
        handle->opened->place = place;
    return place >= 0;
}

static bool make_close(struct und_caller *caller, const struct und_call *call)
{
    struct handle *handle = handle_of(caller, call);
    const bool closed = close(handle->descriptor) == 0;
    drop(handle);
    return closed;
}

static const int advices[] = {POSIX_FADV_NORMAL,  POSIX_FADV_SEQUENTIAL, POSIX_FADV_RANDOM,
                              POSIX_FADV_NOREUSE, POSIX_FADV_WILLNEED,   POSIX_FADV_DONTNEED};

/* Makes a call on a handle. */
static bool make_on_handle(struct und_caller *caller, const struct und_call *call)
{
    struct stat status;
    const struct handle *handle = handle_of(caller, call);
    switch (call->kind) {
    case UND_CALL_STAT: return fstat(handle->descriptor, &status) == 0;
    case UND_CALL_ALLOCATE: {
        const int64_t place = und_linear_at(&call->place, caller->passes);
        reach(caller, handle->opened->file, place + call->length);
        return fallocate(handle->descriptor, 0, (off_t)place, (off_t)call->length) == 0;
    }
    case UND_CALL_ADVISE: errno = posix_fadvise(handle->descriptor, 0, 0, advices[call->advice]); return errno == 0;
    case UND_CALL_ATTRIBUTE: return futimens(handle->descriptor, NULL) == 0;
    case UND_CALL_SYNC: return (call->data_only ? fdatasync(handle->descriptor) : fsync(handle->descriptor)) == 0;
    case UND_CALL_TRUNCATE:
        cut(caller, handle->opened->file, und_linear_at(&call->place, caller->passes));
        return ftruncate(handle->descriptor, (off_t)und_linear_at(&call->place, caller->passes)) == 0;
    case UND_CALL_LIST: return getdents64(handle->descriptor, caller->room, (size_t)call->bytes) >= 0;
    default: {
        const int copy = dup(handle->descriptor);
        if (copy >= 0)
            note_dup(caller, call, copy);
        return copy >= 0;
    }
    }
}

/* A name in its directory, which is open. */
struct spot {
    int directory;
    bool opened;
    const char *name;
};

/* No link that somebody has put in the way leads out of the tree. False with errno. */
static bool go_to(const struct und_caller *caller, const char *path, struct spot *spot)
{
    const char *slash = strrchr(path, '/');
    char parent[PATH_MAX];
    *spot = (struct spot){.directory = und_tree_directory(caller->tree), .name = slash ? slash + 1 : path};
    if (!slash)
        return true;
    snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
    spot->directory = und_directory_open_below(spot->directory, parent, O_PATH | O_DIRECTORY, true);
    spot->opened = spot->directory >= 0;
    return spot->opened;
}

static void leave(const struct spot *spot)
{
    const int code = errno;
    if (spot->opened)
        close(spot->directory);
    errno = code;
}

/* To another name of the tree, or to one that is not there. */
static bool make_symlink(struct und_caller *caller, const struct und_call *call, const char *path,
                         const struct spot *spot)
{
    char target[PATH_MAX] = "none/none"; /* which no open makes */
    int64_t other;
    if (call->has_other) {
        size_t length = 0;
        for (const char *c = path; *c && length + 4 < sizeof target; ++c)
            if (*c == '/')
                length += (size_t)snprintf(target + length, sizeof target - length, "../");
        snprintf(target + length, sizeof target - length, "%s", path_at(caller, &call->to, &other));
    }
    return symlinkat(target, spot->directory, spot->name) == 0;
}

static bool make_truncate(struct und_caller *caller, const struct und_call *call, const char *path, int64_t entry)
{
    const int64_t end = und_linear_at(&call->place, caller->passes);
    const int file = und_directory_open_below(und_tree_directory(caller->tree), path, O_WRONLY, true);
    const bool right = file >= 0 && ftruncate(file, (off_t)end) == 0;
    if (file >= 0)
        close(file);
    if (right)
        cut(caller, file_named(caller, entry), end);
    return right;
}

static bool make_in(const struct und_call *call, const struct spot *from, const struct spot *to)
{
    struct stat status;
    switch (call->kind) {
    case UND_CALL_STAT:
        return fstatat(from->directory, from->name, &status, call->itself ? AT_SYMLINK_NOFOLLOW : 0) == 0;
    case UND_CALL_UNLINK: return unlinkat(from->directory, from->name, 0) == 0;
    case UND_CALL_RENAME:
        return renameat2(from->directory, from->name, to->directory, to->name,
                         call->exclusive ? RENAME_NOREPLACE : 0) == 0;
    case UND_CALL_ATTRIBUTE: return utimensat(from->directory, from->name, NULL, AT_SYMLINK_NOFOLLOW) == 0;
    case UND_CALL_LINK: return linkat(from->directory, from->name, to->directory, to->name, 0) == 0;
    case UND_CALL_MKDIR: return mkdirat(from->directory, from->name, 0777) == 0;
    default: return unlinkat(from->directory, from->name, AT_REMOVEDIR) == 0;
    }
}

static bool make_on_path(struct und_caller *caller, const struct und_call *call)
{
    int64_t entry, other = 0;
    struct spot from = {0}, to = {0};
    const char *path = path_at(caller, &call->path, &entry);
    const bool two = call->kind == UND_CALL_RENAME || call->kind == UND_CALL_LINK;
    const char *second = two ? path_at(caller, &call->to, &other) : NULL;
    bool right;
    if (two)
        und_tree_touch(caller->tree, other);
    else if (call->kind == UND_CALL_MKDIR || call->kind == UND_CALL_SYMLINK)
        und_tree_touch(caller->tree, entry);
    if (call->kind == UND_CALL_TRUNCATE)
        right = make_truncate(caller, call, path, entry);
    else if (!go_to(caller, path, &from) || (two && !go_to(caller, second, &to)))
        right = false;
    else if (call->kind == UND_CALL_SYMLINK)
        right = make_symlink(caller, call, path, &from);
    else
        right = make_in(call, &from, &to);
    leave(&from);
    leave(&to);
    if (right && !call->fails)
        note_names(caller, call);
    return right;
}

/* The phase of a call that is no operation on metadata. */
static enum und_phase phase_of(enum und_syscall kind)
{
    return kind == UND_CALL_OPEN    ? UND_OPENING
           : kind == UND_CALL_READ  ? UND_READING
           : kind == UND_CALL_WRITE ? UND_WRITING
           : kind == UND_CALL_COPY  ? UND_WRITING
           : kind == UND_CALL_SYNC  ? UND_SYNCING
           : kind == UND_CALL_CLOSE ? UND_CLOSING
                                    : UND_METADATA;
}

void und_caller_phases(const struct und_call_list *list, bool phases[UND_PHASES])
{
    for (int64_t i = 0; i < list->count; ++i)
        if (list->calls[i].kind < UND_CALLS && list->calls[i].kind != UND_CALL_WAIT)
            phases[phase_of(list->calls[i].kind)] = true;
}

static _Noreturn void die_of(struct und_caller *caller, const struct und_call *call)
{
    const struct opened *opened = call->handle >= 0 ? caller->handles[call->handle].opened : NULL;
    int64_t entry = opened ? caller->files[opened->file].entry : -1;
    const char *path = call->has_path ? path_at(caller, &call->path, &entry)
                       : opened       ? und_tree_path(caller->tree, entry)
                                      : "its file"; /* closed, as far as that goes */
    const char *what = call->fails ? "succeeded, expected that it fails" : "failed";
    und_die(__FILE__, __LINE__, call->fails ? "" : strerror(errno),
            "posix: call %" PRId64 " of the stream %s, %s %s, %s", caller->calls_made, caller->stream->name,
            und_syscall_names[call->kind], path, what);
}

static void make(struct und_caller *caller, const struct und_call *call)
{
    const bool begins = caller->queue && call->depth > 1;
    bool right;
    und_watch_call(caller->run->watch, caller->calls_made);
    if (!begins)
        end_all(caller);
    if (call->kind == UND_CALL_WAIT)
        return;
    errno = 0;
    switch (call->kind) {
    case UND_CALL_OPEN: right = make_open(caller, call); break;
    case UND_CALL_CLOSE: right = make_close(caller, call); break;
    case UND_CALL_READ:
    case UND_CALL_WRITE:
        if (caller->pace->is_kept)
            und_pace_keep(caller->pace, caller->run, INFINITY);
        right = begins ? begin_move(caller, call) : make_move(caller, call);
        break;
    case UND_CALL_COPY: right = make_copy(caller, call); break;
    case UND_CALL_SEEK: right = make_seek(caller, call); break;
    default: right = call->has_path ? make_on_path(caller, call) : make_on_handle(caller, call); break;
    }
    if (right == call->fails)
        die_of(caller, call);
    ++caller->operations;
    caller->note(caller->context, phase_of(call->kind));
}

/* -- comparing what they have made --------------------------------------------------------------------------------- */

/* But what a later cut has taken, which may be a hole by now. */
static void compare(struct und_caller *caller, const struct opened *opened, int64_t place, int64_t bytes)
{
    const struct file *at = &caller->files[opened->file];
    const int64_t name = at->name;
    if (at->cuts < at->cut_count && bytes > at->cut_ends[at->cuts] - place)
        bytes = at->cut_ends[at->cuts] - place;
    /* Where several ranks append, none knows where its bytes are. */
    if (name < 0 || bytes <= 0 || at->copied || (opened->flags & UND_FLAG_APPEND && caller->run->ranks > 1))
        return;
    const char *path = und_tree_path(caller->tree, name);
    const int file = und_directory_open_below(und_tree_directory(caller->tree), path, O_RDONLY, true);
    if (file < 0 && errno == ENOENT)
        return; /* another rank has removed it */
    const ssize_t bytes_read = file < 0 ? -1 : pread(file, caller->room, (size_t)bytes, (off_t)place);
    UND_CHECK(bytes_read >= 0, "posix: cannot read %s", path);
    close(file);
    compare_bytes(caller, name, at->entry, place, bytes_read, caller->room, caller->verification);
    caller->verification->bytes += bytes_read;
}

static void look_at(struct und_caller *caller, const struct und_call *call)
{
    struct opened *opened = call->handle >= 0 ? handle_of(caller, call)->opened : NULL;
    if (call->fails)
        return;
    switch (call->kind) {
    case UND_CALL_OPEN: note_open(caller, call, -1); break;
    case UND_CALL_CLOSE: drop(&caller->handles[call->handle]); break;
    case UND_CALL_READ:
    case UND_CALL_WRITE: {
        const int64_t place = place_of(caller, call, opened);
        note_move(caller, call, opened, place, call->moved);
        if (call->kind == UND_CALL_WRITE && caller->verification)
            compare(caller, opened, place, call->moved);
        break;
    }
    case UND_CALL_SEEK: note_seek(caller, call, opened); break;
    case UND_CALL_COPY: note_copy(caller, call, opened); break;
    case UND_CALL_TRUNCATE:
        cut(caller, opened ? opened->file : file_named(caller, und_linear_at(&call->path, caller->passes)),
            und_linear_at(&call->place, caller->passes));
        break;
    case UND_CALL_DUP: note_dup(caller, call, -1); break;
    case UND_CALL_ALLOCATE:
        reach(caller, opened->file, und_linear_at(&call->place, caller->passes) + call->length);
        break;
    default:
        if (call->has_path)
            note_names(caller, call);
    }
}

/* -- loops --------------------------------------------------------------------------------------------------------- */

static void carry_out(struct und_caller *caller, const struct und_call *calls, int64_t count, bool takes_part)
{
    for (int64_t i = 0; i < count; i += 1 + calls[i].body) {
        const struct und_call *here = &calls[i];
        if (here->kind == UND_CALL_RANKS) {
            caller->passes[caller->depth++] = caller->as - here->first;
            if (caller->as >= here->first && caller->as < here->first + here->times)
                carry_out(caller, here + 1, here->body, true);
            --caller->depth;
        } else if (!takes_part) {
            continue;
        } else if (here->kind == UND_CALL_REPEAT) {
            int64_t *pass = &caller->passes[caller->depth++];
            for (*pass = 0; *pass < here->times; ++*pass)
                carry_out(caller, here + 1, here->body, true);
            --caller->depth;
        } else {
            ++caller->calls_made;
            if (caller->note)
                make(caller, here);
            else
                look_at(caller, here);
        }
    }
}

void und_caller_play(struct und_caller *caller, const struct und_call_list *list, struct und_pace *pace,
                     und_note_call *note, void *context)
{
    caller->pace = pace;
    caller->note = note;
    caller->context = context;
    und_base_continue(caller->base);
    und_watch_enter(caller->run->watch, "calls", NULL, false);
    carry_out(caller, list->calls, list->count, caller->as == 0);
    end_all(caller);
    und_watch_leave(caller->run->watch);
}

static void look_at_all(struct und_caller *caller)
{
    begin(caller);
    for (int s = 0; s < caller->stream->step_count; ++s)
        for (int k = 0; k < caller->stream->steps[s].count; ++k)
            carry_out(caller, caller->stream->steps[s].dump->calls.calls, caller->stream->steps[s].dump->calls.count,
                      caller->as == 0);
    close_all(caller);
}

/* First how everything ends, then what of it each write has left. */
void und_caller_check(const struct und_run *run, int stream, int64_t as, struct und_verification *verification)
{
    struct und_caller *caller = und_caller_new(run, stream, as, false);
    look_at_all(caller);
    for (int64_t f = 0; f < caller->file_count; ++f) {
        struct file *file = &caller->files[f];
        file->name = -1;
        for (int64_t k = file->cut_count - 1; k > 0; --k)
            if (file->cut_ends[k] < file->cut_ends[k - 1])
                file->cut_ends[k - 1] = file->cut_ends[k];
    }
    for (int64_t i = caller->stream->own_set.tree->count - 1; i >= 0; --i)
        if (caller->names[i] >= 0)
            caller->files[caller->names[i]].name = i;
    caller->knows_ends = true;
    caller->verification = verification;
    look_at_all(caller);
    und_caller_free(caller);
}
