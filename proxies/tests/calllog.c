/*
 * The player with a log of its calls in place of its I/O: every method's calls are written down with the file, the
 * offset and the bytes, and files only get their sizes. So are the calls of the player itself that change or look at
 * names. It says what a workload means, whatever the code that carries it out looks like.
 *
 *   UND_CALLLOG   a folder, in which each rank writes the file rank.<number>
 *
 * A line is: the call, the path in the run directory and, of a move, the dataset, the offset of its first byte in the
 * file, its bytes and in how many runs they lie.
 */
#define und_methods und_const_methods /* which this file fills */
#include "interfaces/method.h"
#include "job/die.h"
#include "storage/run_directory.h"
#undef und_methods

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_METHODS = 16 };

int __real_open64(const char *path, int flags, ...); /* not wrapped, see below */

struct und_file {
    char *path;
    int descriptor;
    int64_t *operations;
    int64_t begun_count;
    void *begun[UND_MAX_DEPTH]; /* memory of transfers in flight */
};

static FILE *log_of_rank(void)
{
    static FILE *file;
    int begun = 0, rank;
    if (!file && MPI_Initialized(&begun) == MPI_SUCCESS && begun && getenv("UND_CALLLOG")) {
        char path[PATH_MAX];
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        snprintf(path, sizeof path, "%s/rank.%d", getenv("UND_CALLLOG"), rank);
        file = fopen(path, "we");
        UND_CHECK(file, "calllog: cannot create %s", path);
    }
    return file;
}

static void note(const char *form, ...)
{
    va_list list;
    FILE *file = log_of_rank();
    if (!file)
        return;
    va_start(list, form);
    vfprintf(file, form, list);
    va_end(list);
    fflush(file);
}

/* ---- The calls of the methods ---- */

static struct und_file *log_open(const struct und_open *how)
{
    static const char *const modes[] = {[UND_CREATE] = "create", [UND_EXTEND] = "extend", [UND_READ] = "read"};
    struct und_file *file = calloc(1, sizeof *file);
    int size = 0;
    UND_CHECK(file, "calllog: no memory to open %s", how->path);
    MPI_Comm_size(how->comm, &size);
    note("open %s %s ranks %d%s%s%s%s%s%s%s%s\n", how->path, modes[how->mode], size, how->turns ? " turns" : "",
         how->write_through ? " write-through" : "", how->append ? " append" : "", how->looks_up ? " looks-up" : "",
         how->lasting ? " lasting" : "", how->creates ? " creates" : "", how->part ? " part " : "",
         how->part ? how->part : "");
    const char *name = und_directory_name(how->directory, how->path);
    if (how->creates) { /* once for comm */
        int rank = 0;
        MPI_Comm_rank(how->comm, &rank);
        if (rank == 0)
            file->descriptor = __real_open64(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        MPI_Barrier(how->comm);
        if (rank != 0)
            file->descriptor = __real_open64(name, O_RDWR | O_CLOEXEC);
    } else {
        file->descriptor = __real_open64(name, (how->mode == UND_READ ? O_RDONLY : O_RDWR) | O_CLOEXEC);
    }
    UND_CHECK(file->descriptor >= 0, "calllog: cannot open %s", how->path);
    file->path = strdup(how->path);
    file->operations = how->operations;
    ++*file->operations;
    return file;
}

static int log_descriptor(const struct und_file *file)
{
    return file->descriptor;
}

static void log_define(struct und_file *file, const struct und_dataset *dataset, const struct und_box *block)
{
    note("define %s %s type %d rows %" PRId64 " offset %" PRId64 " block %" PRId64 "%s%s%s\n", file->path,
         dataset->name, (int)dataset->type, dataset->first_row, dataset->file_offset, und_box_bytes(dataset, block),
         dataset->slabs ? " slabs" : "", dataset->collective ? " collective" : "", dataset->exists ? " exists" : "");
}

/* Where the last byte is; the file reaches up to it. */
static int64_t log_move(struct und_file *file, const char *call, const struct und_dataset *dataset,
                        const struct und_box *box)
{
    struct und_runs runs;
    int64_t first = -1, end = 0, count = 0;
    for (und_runs_begin(&runs, dataset, box); und_runs_next(&runs); ++count) {
        first = first < 0 ? runs.offset : first;
        end = runs.offset + runs.bytes > end ? runs.offset + runs.bytes : end;
    }
    note("%s %s %s offset %" PRId64 " bytes %" PRId64 " runs %" PRId64 "%s\n", call, file->path, dataset->name, first,
         und_box_bytes(dataset, box), count, dataset->collective ? " collective" : "");
    ++*file->operations;
    return end;
}

static void log_write(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box,
                      const void *data)
{
    const int64_t end = log_move(file, "write", dataset, box);
    UND_CHECK(end == 0 || pwrite(file->descriptor, data, 1, (off_t)end - 1) == 1, "calllog: cannot extend %s",
              file->path);
}

static void log_read(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box, void *data)
{
    memset(data, 0, (size_t)und_box_bytes(dataset, box));
    log_move(file, "read", dataset, box);
}

static void log_begin(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box, void *data,
                      bool writes)
{
    const int64_t end = log_move(file, writes ? "iwrite" : "iread", dataset, box);
    file->begun[file->begun_count % UND_MAX_DEPTH] = data;
    ++file->begun_count;
    if (!writes)
        memset(data, 0, (size_t)und_box_bytes(dataset, box));
    else
        UND_CHECK(end == 0 || pwrite(file->descriptor, data, 1, (off_t)end - 1) == 1, "calllog: cannot extend %s",
                  file->path);
}

/* Those that were begun end in their order. */
static void *log_finish(struct und_file *file)
{
    void *data = file->begun[0];
    memmove(file->begun, file->begun + 1, (size_t)--file->begun_count * sizeof *file->begun);
    return data;
}

static void log_wait(struct und_file *file)
{
    note("wait %s\n", file->path);
    file->begun_count = 0;
}

static void log_sync(struct und_file *file)
{
    note("sync %s\n", file->path);
    ++*file->operations;
}

static void log_close(struct und_file *file)
{
    note("close %s\n", file->path);
    ++*file->operations;
    UND_CHECK(close(file->descriptor) == 0, "calllog: cannot close %s", file->path);
    free(file->path);
    free(file);
}

static void log_hints(const struct und_file *file, MPI_Info *hints)
{
    (void)file;
    *hints = MPI_INFO_NULL;
}

/* ---- The methods, as they are in this build, but for what they do ---- */

extern const struct und_method *const und_real_methods[];
static struct und_method copies[MOST_METHODS];
extern const struct und_method *und_methods[];
const struct und_method *und_methods[MOST_METHODS + 1];

__attribute__((constructor)) static void copy_methods(void)
{
    for (int i = 0; und_real_methods[i] && i < MOST_METHODS; ++i) {
        const struct und_method *real = und_real_methods[i];
        copies[i] = *real;
        und_methods[i] = &copies[i];
        if (!real->has_files)
            continue;
        copies[i].hides_calls = false;
        copies[i].whole = NULL;
        copies[i].probe = NULL;
        copies[i].open = log_open;
        copies[i].define = real->define ? log_define : NULL;
        copies[i].hints_in_force = real->hints_in_force ? log_hints : NULL;
        copies[i].descriptor = real->descriptor ? log_descriptor : NULL;
        copies[i].write = log_write;
        copies[i].read = log_read;
        copies[i].begin = real->begin ? log_begin : NULL;
        copies[i].wait = real->wait ? log_wait : NULL;
        copies[i].transfer_memory = NULL;
        copies[i].finish = real->finish ? log_finish : NULL;
        copies[i].sync = log_sync;
        copies[i].close = log_close;
    }
}

/* ---- The player's own calls, in whose place the linker has these (--wrap) ---- */

/* Of files of the run: not of the result, the claim, or what the system has. */
static void note_name(const char *call, const char *name, const char *to)
{
    const int code = errno;
    if (name[0] != '/' && name[0] != '\0' && strcmp(name, ".") != 0 && !strstr(name, UND_CLAIM) &&
        !strstr(name, "result") && !strchr(name, ':'))
        note("%s %s%s%s\n", call, name, to ? " " : "", to ? to : "");
    errno = code;
}

#define WRAP(call, type, name, parameters, path, to, ...) \
    type __real_##name parameters;                        \
    type __wrap_##name parameters;                        \
    type __wrap_##name parameters                         \
    {                                                     \
        note_name(call, path, to);                        \
        return __real_##name(__VA_ARGS__);                \
    }
WRAP("remove", int, unlink, (const char *path), path, NULL, path)
/* A directory goes with the last file, whichever rank has it. */
WRAP("remove", int, unlinkat, (int at, const char *path, int flags), flags &AT_REMOVEDIR ? "" : path, NULL, at, path,
     flags)
WRAP("rename", int, rename, (const char *path, const char *to), path, to, path, to)
WRAP("rename", int, renameat, (int at, const char *path, int other, const char *to), path, to, at, path, other, to)
WRAP("mkdir", int, mkdirat, (int at, const char *path, mode_t mode), path, NULL, at, path, mode)
WRAP("stat", int, stat64, (const char *path, struct stat *status), path, NULL, path, status)
WRAP("stat", int, lstat64, (const char *path, struct stat *status), path, NULL, path, status)
WRAP("stat", int, fstatat64, (int at, const char *path, struct stat *status, int flags), path, NULL, at, path, status,
     flags)

#define WRAP_OPEN(name, parameters, path, ...)                          \
    int __real_##name parameters;                                       \
    int __wrap_##name parameters;                                       \
    int __wrap_##name parameters                                        \
    {                                                                   \
        va_list list;                                                   \
        va_start(list, flags);                                          \
        const unsigned mode = va_arg(list, unsigned);                   \
        va_end(list);                                                   \
        note_name(flags &O_CREAT ? "create" : "open-name", path, NULL); \
        return __real_##name(__VA_ARGS__, flags, mode);                 \
    }
WRAP_OPEN(open64, (const char *path, int flags, ...), path, path)
WRAP_OPEN(openat64, (int at, const char *path, int flags, ...), path, at, path)

int __real_ftruncate64(int descriptor, off_t bytes);
int __wrap_ftruncate64(int descriptor, off_t bytes);
int __wrap_ftruncate64(int descriptor, off_t bytes)
{
    note("truncate %lld\n", (long long)bytes);
    return __real_ftruncate64(descriptor, bytes);
}
