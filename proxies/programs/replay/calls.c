/*
 * The calls of the C library that open, look at, fill, flush, close and remove files, in front of the library's: see
 * core/calls.h. They are passed on; of a write that moved less than it was asked, the rest is written, or the reason
 * found.
 */
#undef _FILE_OFFSET_BITS /* both names of each call are defined here */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include "core/calls.h"

#include "core/die.h"
#include "core/storage.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Is a failure of this call one of the storage? Those of files that are no files of the run are the library's. */
static bool is_of_run(int descriptor)
{
    return und_in_hand.method && errno != EINTR && errno != EAGAIN && und_storage_holds(descriptor);
}

/* The same of a call that takes a name: libraries ask what is there, and of the file in hand there may be parts. */
static bool is_name_of_run(const char *name)
{
    if (!und_in_hand.method || errno == EINTR || errno == ENOENT || errno == EEXIST)
        return false;
    const char *slash = strrchr(und_in_hand.path, '/');
    return strstr(name, slash ? slash + 1 : und_in_hand.path) != NULL;
}

static _Noreturn void end(const char *doing)
{
    const char *name = und_in_hand.method->name;
    und_in_hand.method = NULL; /* what is done about it looks for itself */
    UND_CHECK(false, "%s: cannot %s %s", name, doing, und_in_hand.path);
    _exit(1);
}

/* The functions that these hide. */
#define CALLS(X)                                                     \
    X(ssize_t, write, (int, const void *, size_t))                   \
    X(ssize_t, pwrite, (int, const void *, size_t, off_t))           \
    X(ssize_t, pwrite64, (int, const void *, size_t, off64_t))       \
    X(ssize_t, writev, (int, const struct iovec *, int))             \
    X(ssize_t, pwritev, (int, const struct iovec *, int, off_t))     \
    X(ssize_t, pwritev64, (int, const struct iovec *, int, off64_t)) \
    X(ssize_t, read, (int, void *, size_t))                          \
    X(ssize_t, pread, (int, void *, size_t, off_t))                  \
    X(ssize_t, pread64, (int, void *, size_t, off64_t))              \
    X(ssize_t, readv, (int, const struct iovec *, int))              \
    X(ssize_t, preadv, (int, const struct iovec *, int, off_t))      \
    X(ssize_t, preadv64, (int, const struct iovec *, int, off64_t))  \
    X(int, fsync, (int))                                             \
    X(int, fdatasync, (int))                                         \
    X(int, ftruncate, (int, off_t))                                  \
    X(int, ftruncate64, (int, off64_t))                              \
    X(int, close, (int))                                             \
    X(int, open, (const char *, int, ...))                           \
    X(int, open64, (const char *, int, ...))                         \
    X(int, stat, (const char *, struct stat *))                      \
    X(int, stat64, (const char *, struct stat64 *))                  \
    X(int, lstat, (const char *, struct stat *))                     \
    X(int, lstat64, (const char *, struct stat64 *))                 \
    X(int, fstat, (int, struct stat *))                              \
    X(int, fstat64, (int, struct stat64 *))                          \
    X(int, unlink, (const char *))
#define DECLARE(type, name, parameters) static type(*real_##name) parameters;
CALLS(DECLARE)

/* Also before the constructors of this program: those of libraries come first. */
static void find(void)
{
#define FIND(type, name, parameters) *(void **)&real_##name = dlsym(RTLD_NEXT, #name);
    CALLS(FIND)
}

__attribute__((constructor)) static void begin(void)
{
    find();
}

#define REAL(name) (real_##name ? real_##name : (find(), real_##name))

/* Writes what a call has left of these bytes, so that either all are there or the reason is known. At the position of
 * the file where the offset is negative. */
static void write_rest(int descriptor, const struct iovec *data, int count, off_t offset, ssize_t moved)
{
    for (int i = 0; i < count; ++i) {
        const char *from = data[i].iov_base;
        size_t skipped = (size_t)moved < data[i].iov_len ? (size_t)moved : data[i].iov_len;
        moved -= (ssize_t)skipped;
        for (offset += offset < 0 ? 0 : (off_t)skipped; skipped < data[i].iov_len;) {
            const size_t left = data[i].iov_len - skipped;
            const ssize_t some = offset < 0 ? REAL(write)(descriptor, from + skipped, left)
                                            : REAL(pwrite)(descriptor, from + skipped, left, offset);
            if (some == 0)
                errno = ENOSPC;
            if (some <= 0 && errno != EINTR)
                end("write");
            skipped += some > 0 ? (size_t)some : 0;
            offset += some > 0 && offset >= 0 ? some : 0;
        }
    }
}

static ssize_t written(ssize_t moved, int descriptor, const struct iovec *data, int count, off_t offset)
{
    ssize_t bytes = 0;
    if (!und_in_hand.method)
        return moved;
    for (int i = 0; i < count; ++i)
        bytes += (ssize_t)data[i].iov_len;
    if (moved == bytes || !is_of_run(descriptor))
        return moved;
    if (moved < 0)
        end("write");
    write_rest(descriptor, data, count, offset, moved);
    return bytes;
}

static ssize_t wrote(ssize_t moved, int descriptor, const void *data, size_t bytes, off_t offset)
{
    const union {
        const void *from;
        void *base;
    } same = {.from = data};
    const struct iovec one = {.iov_base = same.base, .iov_len = bytes};
    return moved == (ssize_t)bytes ? moved : written(moved, descriptor, &one, 1, offset);
}

static ssize_t checked(ssize_t result, int descriptor, const char *doing)
{
    if (result < 0 && is_of_run(descriptor))
        end(doing);
    return result;
}

ssize_t write(int descriptor, const void *data, size_t bytes)
{
    return wrote(REAL(write)(descriptor, data, bytes), descriptor, data, bytes, -1);
}

ssize_t pwrite(int descriptor, const void *data, size_t bytes, off_t offset)
{
    return wrote(REAL(pwrite)(descriptor, data, bytes, offset), descriptor, data, bytes, offset);
}

ssize_t pwrite64(int descriptor, const void *data, size_t bytes, off64_t offset)
{
    return wrote(REAL(pwrite64)(descriptor, data, bytes, offset), descriptor, data, bytes, offset);
}

ssize_t writev(int descriptor, const struct iovec *data, int count)
{
    return written(REAL(writev)(descriptor, data, count), descriptor, data, count, -1);
}

ssize_t pwritev(int descriptor, const struct iovec *data, int count, off_t offset)
{
    return written(REAL(pwritev)(descriptor, data, count, offset), descriptor, data, count, offset);
}

ssize_t pwritev64(int descriptor, const struct iovec *data, int count, off64_t offset)
{
    return written(REAL(pwritev64)(descriptor, data, count, offset), descriptor, data, count, offset);
}

ssize_t read(int descriptor, void *data, size_t bytes)
{
    return checked(REAL(read)(descriptor, data, bytes), descriptor, "read");
}

ssize_t pread(int descriptor, void *data, size_t bytes, off_t offset)
{
    return checked(REAL(pread)(descriptor, data, bytes, offset), descriptor, "read");
}

ssize_t pread64(int descriptor, void *data, size_t bytes, off64_t offset)
{
    return checked(REAL(pread64)(descriptor, data, bytes, offset), descriptor, "read");
}

ssize_t readv(int descriptor, const struct iovec *data, int count)
{
    return checked(REAL(readv)(descriptor, data, count), descriptor, "read");
}

ssize_t preadv(int descriptor, const struct iovec *data, int count, off_t offset)
{
    return checked(REAL(preadv)(descriptor, data, count, offset), descriptor, "read");
}

ssize_t preadv64(int descriptor, const struct iovec *data, int count, off64_t offset)
{
    return checked(REAL(preadv64)(descriptor, data, count, offset), descriptor, "read");
}

int fsync(int descriptor)
{
    return (int)checked(REAL(fsync)(descriptor), descriptor, "flush");
}

int fdatasync(int descriptor)
{
    return (int)checked(REAL(fdatasync)(descriptor), descriptor, "flush");
}

int ftruncate(int descriptor, off_t bytes)
{
    return (int)checked(REAL(ftruncate)(descriptor, bytes), descriptor, "set the size of");
}

int ftruncate64(int descriptor, off64_t bytes)
{
    return (int)checked(REAL(ftruncate64)(descriptor, bytes), descriptor, "set the size of");
}

/* Behind the call nobody can tell what it has closed: it is no file of the run where its number was not open. */
int close(int descriptor)
{
    const int result = REAL(close)(descriptor);
    if (result != 0 && und_in_hand.method && errno != EBADF && errno != EINTR)
        end("close");
    return result;
}

static int checked_name(int result, const char *name, const char *doing)
{
    if (result < 0 && is_name_of_run(name))
        end(doing);
    return result;
}

#define OPEN(name)                                                                                     \
    int name(const char *path, int flags, ...)                                                         \
    {                                                                                                  \
        va_list list;                                                                                  \
        va_start(list, flags);                                                                         \
        const unsigned mode = va_arg(list, unsigned);                                                  \
        va_end(list);                                                                                  \
        return checked_name(REAL(name)(path, flags, mode), path, flags & O_CREAT ? "create" : "open"); \
    }
OPEN(open)
OPEN(open64)

/* The C library has no function of that name before glibc 2.33; the structures are the kernel's. */
static int ask_kernel(int directory, const char *path, void *status, int flags)
{
    return (int)syscall(SYS_newfstatat, directory, path, status, flags);
}

#define STAT(name, kind, flags)                                                                                \
    int name(const char *path, struct kind *status)                                                            \
    {                                                                                                          \
        const int result = REAL(name) ? real_##name(path, status) : ask_kernel(AT_FDCWD, path, status, flags); \
        return checked_name(result, path, "look at");                                                          \
    }
STAT(stat, stat, 0)
STAT(stat64, stat64, 0)
STAT(lstat, stat, AT_SYMLINK_NOFOLLOW)
STAT(lstat64, stat64, AT_SYMLINK_NOFOLLOW)

#define FSTAT(name, kind)                                                                                     \
    int name(int descriptor, struct kind *status)                                                             \
    {                                                                                                         \
        const int result =                                                                                    \
            REAL(name) ? real_##name(descriptor, status) : ask_kernel(descriptor, "", status, AT_EMPTY_PATH); \
        return (int)checked(result, descriptor, "look at");                                                   \
    }
FSTAT(fstat, stat)
FSTAT(fstat64, stat64)

int unlink(const char *path)
{
    return checked_name(REAL(unlink)(path), path, "remove");
}
