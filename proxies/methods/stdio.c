/*
 * Standard I/O: fwrite and fread on a FILE of each rank's own, one call per run of consecutive bytes, fflush and
 * fsync. The C library buffers: it makes fewer and larger calls of the system than there are calls here, and reports
 * an error of storage when it empties the buffer, at the latest in fclose. fseeko empties it too, so it is called only
 * where a run does not begin where the last one ended. It is not counted as an operation: no other method has it.
 */
#include "interfaces/method.h"
#include "job/die.h"
#include "storage/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER };
enum { LIBRARY_BUFFER = 0, NO_BUFFER = 1, UNKNOWN = -1 };

static const struct und_setting settings[] = {
    [BUFFER] = {.name = "buffer",
                .bytes = true,
                .most = (int64_t)1 << 30,
                .default_value = "0",
                .help = "buffer of each open file; 0: what the C library chooses, 1: none"},
    {.name = NULL},
};

struct und_file {
    FILE *stream;
    char *buffer; /* that the stream uses; NULL: one of its own */
    int64_t at;   /* byte where the stream stands, or UNKNOWN */
    bool lasting; /* sync waits for storage */
    bool reads;   /* the last call did */
    int64_t *operations;
    char path[];
};

static int64_t stdio_memory(const int64_t *values, const struct und_load *load)
{
    (void)load;
    return values[BUFFER] == LIBRARY_BUFFER ? BUFSIZ : values[BUFFER];
}

static void set_buffer(struct und_file *file, int64_t bytes)
{
    file->buffer = NULL;
    if (bytes == LIBRARY_BUFFER)
        return;
    /* The GNU C library ignores the size without a buffer. */
    if (bytes > NO_BUFFER) {
        file->buffer = malloc((size_t)bytes);
        UND_CHECK(file->buffer, "stdio: no memory for a buffer of %lld bytes", (long long)bytes);
    }
    if (setvbuf(file->stream, file->buffer, bytes == NO_BUFFER ? _IONBF : _IOFBF, (size_t)bytes) != 0)
        UND_DIE("stdio: cannot set a buffer of %lld bytes for %s", (long long)bytes, file->path);
}

/*
 * Opens a file that is there, to write to it only: with "r+" the C library would read a page or more around each place
 * that it writes to, "w" truncates, and "a" makes a file system in user space append, even after fcntl.
 */
static FILE *open_to_write(const struct und_open *how, int64_t *at)
{
    *at = UNKNOWN;
    if (how->looks_up)
        return fopen(und_directory_name(how->directory, how->path), "r+e");
    const int fd = open(und_directory_name(how->directory, how->path), O_WRONLY | O_CLOEXEC);
    return fd < 0 ? NULL : fdopen(fd, "w");
}

/* One rank creates the file, and the others open it without truncating it. */
static FILE *create_once(const struct und_open *how, int64_t *at)
{
    int rank, created = 1;
    MPI_Comm_rank(how->comm, &rank);
    FILE *stream =
        rank == 0 ? fopen(und_directory_name(how->directory, how->path), how->looks_up ? "w+xe" : "wxe") : NULL;
    UND_CHECK(rank != 0 || stream, "stdio: cannot create %s", how->path);
    UND_MPI(MPI_Bcast(&created, 1, MPI_INT, 0, how->comm), "stdio: cannot wait for %s", how->path);
    return rank == 0 ? stream : open_to_write(how, at);
}

static struct und_file *stdio_open(const struct und_open *how)
{
    const size_t length = strlen(how->path) + 1;
    struct und_file *file = malloc(sizeof *file + length);
    UND_CHECK(file, "stdio: no memory to open %s", how->path);
    memcpy(file->path, how->path, length);
    file->operations = how->operations;
    file->at = 0;
    file->lasting = how->lasting;
    file->reads = how->mode == UND_READ;
    if (how->creates)
        file->stream = create_once(how, &file->at);
    else if (*how->created >= 0)
        file->stream = fdopen(*how->created, how->looks_up ? "w+" : "w");
    else
        file->stream = how->mode == UND_READ ? fopen(und_directory_name(how->directory, how->path), "re")
                                             : open_to_write(how, &file->at);
    UND_CHECK(file->stream, "stdio: cannot open %s", how->path);
    *how->created = -1;
    set_buffer(file, how->settings ? how->settings[BUFFER] : LIBRARY_BUFFER);
    ++*file->operations;
    return file;
}

/* C wants a seek between reads and writes. Of a read that a seek makes, the C library leaves only errno. */
static void go_to(struct und_file *file, int64_t offset, bool reads)
{
    if (file->at == offset && file->reads == reads)
        return;
    file->reads = reads;
    errno = 0;
    UND_CHECK(fseeko(file->stream, (off_t)offset, SEEK_SET) == 0 && errno == 0, "stdio: cannot go to byte %lld of %s",
              (long long)offset, file->path);
    file->at = offset;
}

static void write_run(struct und_file *file, const char *data, int64_t bytes, int64_t offset)
{
    go_to(file, offset, false);
    const size_t moved = fwrite(data, 1, (size_t)bytes, file->stream);
    ++*file->operations;
    UND_CHECK(moved == (size_t)bytes, "stdio: cannot write %lld bytes at byte %lld of %s", (long long)bytes,
              (long long)offset, file->path);
    file->at += bytes;
}

static void read_run(struct und_file *file, char *data, int64_t bytes, int64_t offset)
{
    go_to(file, offset, true);
    const size_t moved = fread(data, 1, (size_t)bytes, file->stream);
    ++*file->operations;
    if (feof(file->stream))
        UND_DIE("stdio: cannot read %lld bytes at byte %lld of %s: the file ends before", (long long)bytes,
                (long long)offset, file->path);
    UND_CHECK(moved == (size_t)bytes, "stdio: cannot read %lld bytes at byte %lld of %s", (long long)bytes,
              (long long)offset, file->path);
    file->at += bytes;
}

static void stdio_write(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box,
                        const void *data)
{
    const char *from = data;
    struct und_runs runs;
    for (und_runs_begin(&runs, dataset, box); und_runs_next(&runs); from += runs.bytes)
        write_run(file, from, runs.bytes, runs.offset);
}

static void stdio_read(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box, void *data)
{
    char *to = data;
    struct und_runs runs;
    for (und_runs_begin(&runs, dataset, box); und_runs_next(&runs); to += runs.bytes)
        read_run(file, to, runs.bytes, runs.offset);
}

/* No other thread has the stream. Tools that watch a run (Darshan) take fileno for the open of another interface. */
static int stdio_descriptor(const struct und_file *file)
{
    return fileno_unlocked(file->stream);
}

static void stdio_sync(struct und_file *file)
{
    UND_CHECK(fflush(file->stream) == 0, "stdio: cannot write what is buffered of %s", file->path);
    UND_CHECK(!file->lasting || fsync(stdio_descriptor(file)) == 0, "stdio: cannot flush %s", file->path);
    ++*file->operations;
}

static void stdio_close(struct und_file *file)
{
    UND_CHECK(fclose(file->stream) == 0, "stdio: cannot close %s", file->path);
    ++*file->operations;
    free(file->buffer);
    free(file);
}

const struct und_method und_method_stdio = {
    .name = "stdio",
    .has_files = true,
    .buffers = true,
    .hands_over = true,
    .creates = true,
    .collective = false,
    .settings = settings,
    .memory = stdio_memory,
    .can = UND_CAN_KEEP | UND_CAN_EMPTY | UND_CAN_SHARE | UND_CAN_READ_BACK | UND_CAN_EACH_FILE | UND_CAN_LOOK_UP,
    .open = stdio_open,
    .descriptor = stdio_descriptor,
    .write = stdio_write,
    .read = stdio_read,
    .sync = stdio_sync,
    .close = stdio_close,
};
