/*
 * POSIX: pwrite and pread at explicit offsets, one call per run of consecutive bytes, fsync. With
 * the option `direct`, whole pages of a run bypass the page cache and the rest goes through it.
 */
#include "interfaces/method.h"
#include "job/die.h"
#include "storage/direct.h"
#include "storage/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIRECT };
enum { DIRECT_NO, DIRECT_READ, DIRECT_YES };

static const char *const direct_choices[] = {"no", "read", "yes", NULL};

static const struct und_setting settings[] = {
    [DIRECT] = {.name = "direct",
                .choices = direct_choices,
                .default_value = "no",
                .help = "bypass the page cache (O_DIRECT) in reads, or in reads and writes"},
    {.name = NULL},
};

struct und_file {
    int descriptor;
    int direct;             /* the same file with O_DIRECT; -1: none */
    unsigned char *aligned; /* where direct transfers start in memory */
    int64_t page;
    int64_t capacity; /* bytes of aligned, whole pages */
    int64_t *operations;
    char path[];
};

static int64_t posix_memory(const int64_t *values, const struct und_load *load)
{
    return values[DIRECT] == DIRECT_NO ? 0 : load->transfer_bytes + und_direct_page();
}

static bool posix_probe(const struct und_run *run, const int64_t *values, struct und_error *error)
{
    char option[32];
    snprintf(option, sizeof option, "posix.direct=%s", direct_choices[values[DIRECT]]);
    return values[DIRECT] == DIRECT_NO || und_direct_probe(run, option, error);
}

static int flags_of(const struct und_open *how)
{
    if (how->mode == UND_READ)
        return O_RDONLY | O_CLOEXEC;
    return O_RDWR | O_NOFOLLOW | O_CLOEXEC | (how->write_through ? O_DSYNC : 0);
}

static void open_direct(struct und_file *file, const struct und_open *how)
{
    file->page = und_direct_page();
    file->capacity = (how->transfer_bytes + file->page - 1) / file->page * file->page;
    file->direct = und_direct_open(how, file->descriptor, flags_of(how), "posix");
    file->aligned = und_direct_memory(file->capacity);
    if (!file->aligned)
        UND_DIE("posix: no memory for direct transfers of %lld bytes", (long long)file->capacity);
}

static struct und_file *posix_open(const struct und_open *how)
{
    const size_t length = strlen(how->path) + 1;
    const int64_t direct = how->settings ? how->settings[DIRECT] : DIRECT_NO;
    struct und_file *file = malloc(sizeof *file + length);
    UND_CHECK(file, "posix: no memory to open %s", how->path);
    memcpy(file->path, how->path, length);
    file->operations = how->operations;
    file->direct = -1;
    file->aligned = NULL;
    file->descriptor = -1;
    /* A descriptor cannot begin to write through later. */
    if (!how->write_through) {
        file->descriptor = *how->created;
        *how->created = -1;
    }
    if (file->descriptor < 0)
        file->descriptor = open(und_directory_name(how->directory, how->path), flags_of(how));
    UND_CHECK(file->descriptor >= 0, "posix: cannot open %s", how->path);
    if (direct == DIRECT_YES || (direct == DIRECT_READ && how->mode == UND_READ))
        open_direct(file, how);
    ++*file->operations;
    return file;
}

/* Bytes of the next call, and whether they are whole pages that go directly. */
static int64_t next_call(const struct und_file *file, int64_t bytes, int64_t offset, bool *directly)
{
    *directly = false;
    if (file->direct < 0)
        return bytes;
    const int64_t some = und_direct_bytes(file->page, bytes, offset, directly);
    return *directly && some > file->capacity ? file->capacity : some;
}

static ssize_t write_some(struct und_file *file, const char *data, int64_t bytes, int64_t offset)
{
    bool directly;
    const int64_t some = next_call(file, bytes, offset, &directly);
    if (!directly)
        return pwrite(file->descriptor, data, (size_t)some, (off_t)offset);
    memcpy(file->aligned, data, (size_t)some);
    return pwrite(file->direct, file->aligned, (size_t)some, (off_t)offset);
}

static ssize_t read_some(struct und_file *file, char *data, int64_t bytes, int64_t offset)
{
    bool directly;
    const int64_t some = next_call(file, bytes, offset, &directly);
    if (!directly)
        return pread(file->descriptor, data, (size_t)some, (off_t)offset);
    const ssize_t moved = pread(file->direct, file->aligned, (size_t)some, (off_t)offset);
    if (moved > 0)
        memcpy(data, file->aligned, (size_t)moved);
    return moved;
}

/* A call may move less than asked, e.g. up to the last free byte; the one after it says why. */
static void write_run(struct und_file *file, const char *data, int64_t bytes, int64_t offset)
{
    while (bytes > 0) {
        const ssize_t moved = write_some(file, data, bytes, offset);
        ++*file->operations;
        if (moved < 0 && errno == EINTR)
            continue;
        UND_CHECK(moved >= 0, "posix: cannot write %lld bytes at byte %lld of %s", (long long)bytes, (long long)offset,
                  file->path);
        if (moved == 0)
            UND_DIE("posix: cannot write %lld bytes at byte %lld of %s: the call took none", (long long)bytes,
                    (long long)offset, file->path);
        data += moved;
        bytes -= moved;
        offset += moved;
    }
}

static void read_run(struct und_file *file, char *data, int64_t bytes, int64_t offset)
{
    while (bytes > 0) {
        const ssize_t moved = read_some(file, data, bytes, offset);
        ++*file->operations;
        if (moved < 0 && errno == EINTR)
            continue;
        UND_CHECK(moved >= 0, "posix: cannot read %lld bytes at byte %lld of %s", (long long)bytes, (long long)offset,
                  file->path);
        if (moved == 0)
            UND_DIE("posix: cannot read %lld bytes at byte %lld of %s: the file ends before", (long long)bytes,
                    (long long)offset, file->path);
        data += moved;
        bytes -= moved;
        offset += moved;
    }
}

static void posix_write(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box,
                        const void *data)
{
    const char *from = data;
    struct und_runs runs;
    for (und_runs_begin(&runs, dataset, box); und_runs_next(&runs); from += runs.bytes)
        write_run(file, from, runs.bytes, runs.offset);
}

static void posix_read(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box, void *data)
{
    char *to = data;
    struct und_runs runs;
    for (und_runs_begin(&runs, dataset, box); und_runs_next(&runs); to += runs.bytes)
        read_run(file, to, runs.bytes, runs.offset);
}

static int posix_descriptor(const struct und_file *file)
{
    return file->descriptor;
}

static void posix_sync(struct und_file *file)
{
    UND_CHECK(fsync(file->descriptor) == 0, "posix: cannot flush %s", file->path);
    ++*file->operations;
}

static void posix_close(struct und_file *file)
{
    UND_CHECK(close(file->descriptor) == 0 && (file->direct < 0 || close(file->direct) == 0), "posix: cannot close %s",
              file->path);
    ++*file->operations;
    free(file->aligned);
    free(file);
}

const struct und_method und_method_posix = {
    .name = "posix",
    .has_files = true,
    .collective = false,
    .settings = settings,
    .memory = posix_memory,
    .probe = posix_probe,
    .can = UND_CAN_KEEP | UND_CAN_EMPTY | UND_CAN_SHARE | UND_CAN_READ_BACK | UND_CAN_EACH_FILE |
           UND_CAN_WRITE_THROUGH | UND_CAN_LOOK_UP | UND_CAN_CALL,
    .open = posix_open,
    .descriptor = posix_descriptor,
    .write = posix_write,
    .read = posix_read,
    .sync = posix_sync,
    .close = posix_close,
};
