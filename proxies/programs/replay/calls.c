/*
 * The calls of the C library that open, look at, fill, flush, close and remove files, in front of the library's: see
 * interfaces/calls.h. They are passed on; where a write, or a read before the end of the file, moved less than it was asked,
 * the rest is moved, or the reason found.
 */
#undef _FILE_OFFSET_BITS /* both names of each call are defined here */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include "interfaces/calls.h"

#include "job/die.h"
#include "storage/run_directory.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

/* The file in hand of this thread or, in one that a library has, that of the thread which called the library. */
static struct und_in_hand *in_hand(void)
{
    struct und_in_hand *caller = und_in_hand.method ? NULL : atomic_load(&und_in_hand_of_library);
    return caller ? caller : &und_in_hand;
}

/* Is it open in the file in hand, by its name, or in the directory that this is? Files of an earlier run are read where
 * no run directory is. */
static bool is_in_hand(int descriptor, bool as_member)
{
    char link[64], path[PATH_MAX];
    const char *slash = strrchr(in_hand()->path, '/');
    const int code = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    errno = code;
    const char *name = slash ? slash : in_hand()->path, *in = strstr(path, name);
    return in && (!as_member || in[strlen(name)] == '/');
}

/* Is a failure of this call one of the storage? Those of files that are no files of the run are the library's. */
static bool is_of_run(int descriptor)
{
    return in_hand()->method && errno != EINTR && errno != EAGAIN &&
           (in_hand()->directory->path ? und_directory_holds(in_hand()->directory, descriptor)
                                       : is_in_hand(descriptor, false));
}

/* Is it the name of a directory that leads to the path? */
static bool leads_to(const char *name, const char *path)
{
    size_t length = strlen(name);
    while (length > 1 && name[length - 1] == '/')
        --length;
    return strncmp(path, name, length) == 0 && (path[length] == '/' || name[length - 1] == '/');
}

/* The same of a call that takes a name: libraries ask what is there, of the file in hand there may be parts, and of its
 * directories they ask what file system they are on. */
static bool is_name_of_run(const char *name)
{
    if (!in_hand()->method || errno == EINTR || errno == ENOENT || errno == EEXIST || name[0] == '\0')
        return false;
    char inside[PATH_MAX];
    const int code = errno;
    const char *slash = strrchr(in_hand()->path, '/'), *here = getcwd(inside, sizeof inside - 1);
    errno = code;
    return strcmp(name, ".") == 0 || strstr(name, slash ? slash + 1 : in_hand()->path) ||
           leads_to(name, in_hand()->path) ||
           leads_to(name, und_directory_name(in_hand()->directory, in_hand()->path)) ||
           (here && leads_to(name, strcat(inside, "/")));
}

static _Noreturn void end(const char *doing)
{
    const char *name = in_hand()->method->name;
    in_hand()->method = NULL; /* what is done about it looks for itself */
    UND_CHECK(false, "%s: cannot %s %s", name, doing, in_hand()->path);
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
    X(off_t, lseek, (int, off_t, int))                               \
    X(off64_t, lseek64, (int, off64_t, int))                         \
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
    X(int, statfs, (const char *, struct statfs *))                  \
    X(int, statfs64, (const char *, struct statfs64 *))              \
    X(int, statvfs, (const char *, struct statvfs *))                \
    X(int, statvfs64, (const char *, struct statvfs64 *))            \
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

/* Has the file more than what a read has moved? */
static bool has_more(int descriptor, off_t offset, ssize_t moved)
{
    struct stat status;
    const off_t behind = offset < 0 ? REAL(lseek)(descriptor, 0, SEEK_CUR) : offset + moved;
    return behind >= 0 && REAL(fstat) && real_fstat(descriptor, &status) == 0 && status.st_size > behind;
}

enum moving { READS, WRITES };

/* Moves what a call has left of these bytes, so that either all are there, or those up to the end of a file that is
 * read, or the reason is known. At the position of the file where the offset is negative. */
static ssize_t move_rest(enum moving moving, int descriptor, const struct iovec *data, int count, off_t offset,
                         ssize_t moved)
{
    ssize_t skipped = moved;
    for (int i = 0; i < count; ++i) {
        char *at = data[i].iov_base;
        size_t done = (size_t)skipped < data[i].iov_len ? (size_t)skipped : data[i].iov_len;
        skipped -= (ssize_t)done;
        while (done < data[i].iov_len) {
            const size_t left = data[i].iov_len - done;
            const off_t place = offset + moved;
            const ssize_t some = moving == READS ? offset < 0 ? REAL(read)(descriptor, at + done, left)
                                                              : REAL(pread)(descriptor, at + done, left, place)
                                 : offset < 0 ? REAL(write)(descriptor, at + done, left)
                                                 : REAL(pwrite)(descriptor, at + done, left, place);
            if (some == 0 && moving == READS && !has_more(descriptor, offset, moved))
                return moved;
            if (some == 0)
                errno = moving == READS ? ENODATA : ENOSPC;
            if (some <= 0 && errno != EINTR)
                end(moving == READS ? "read" : "write");
            done += some > 0 ? (size_t)some : 0;
            moved += some > 0 ? some : 0;
        }
    }
    return moved;
}

static ssize_t moved_all(enum moving moving, ssize_t moved, int descriptor, const struct iovec *data, int count,
                         off_t offset)
{
    ssize_t bytes = 0;
    if (!in_hand()->method)
        return moved;
    for (int i = 0; i < count; ++i)
        bytes += (ssize_t)data[i].iov_len;
    if (moved >= 0)
        errno = 0; /* of a call before this one */
    if (moved == bytes || !is_of_run(descriptor))
        return moved;
    if (moved < 0)
        end(moving == READS ? "read" : "write");
    if (moving == READS && !has_more(descriptor, offset, moved)) {
        if (moved == 0 && in_hand()->method->waits && is_in_hand(descriptor, true)) {
            errno = ENODATA;
            end("read");
        }
        return moved;
    }
    return move_rest(moving, descriptor, data, count, offset, moved);
}

static ssize_t moved_one(enum moving moving, ssize_t moved, int descriptor, const void *data, size_t bytes,
                         off_t offset)
{
    const union {
        const void *from;
        void *base;
    } same = {.from = data};
    const struct iovec part = {.iov_base = same.base, .iov_len = bytes};
    return moved == (ssize_t)bytes ? moved : moved_all(moving, moved, descriptor, &part, 1, offset);
}

static ssize_t checked(ssize_t result, int descriptor, const char *doing)
{
    if (result < 0 && is_of_run(descriptor))
        end(doing);
    return result;
}

#define MOVE_ONE(name, moving, parameters, offset, ...)                                                       \
    ssize_t name parameters                                                                                   \
    {                                                                                                         \
        return moved_one(moving, REAL(name)(descriptor, data, __VA_ARGS__), descriptor, data, bytes, offset); \
    }
MOVE_ONE(write, WRITES, (int descriptor, const void *data, size_t bytes), -1, bytes)
MOVE_ONE(pwrite, WRITES, (int descriptor, const void *data, size_t bytes, off_t offset), offset, bytes, offset)
MOVE_ONE(pwrite64, WRITES, (int descriptor, const void *data, size_t bytes, off64_t offset), offset, bytes, offset)
MOVE_ONE(read, READS, (int descriptor, void *data, size_t bytes), -1, bytes)
MOVE_ONE(pread, READS, (int descriptor, void *data, size_t bytes, off_t offset), offset, bytes, offset)
MOVE_ONE(pread64, READS, (int descriptor, void *data, size_t bytes, off64_t offset), offset, bytes, offset)

#define MOVE_ALL(name, moving, parameters, offset, ...)                                     \
    ssize_t name parameters                                                                 \
    {                                                                                       \
        return moved_all(moving, REAL(name)(__VA_ARGS__), descriptor, data, count, offset); \
    }
#define VECTOR int descriptor, const struct iovec *data, int count
MOVE_ALL(writev, WRITES, (VECTOR), -1, descriptor, data, count)
MOVE_ALL(pwritev, WRITES, (VECTOR, off_t offset), offset, descriptor, data, count, offset)
MOVE_ALL(pwritev64, WRITES, (VECTOR, off64_t offset), offset, descriptor, data, count, offset)
MOVE_ALL(readv, READS, (VECTOR), -1, descriptor, data, count)
MOVE_ALL(preadv, READS, (VECTOR, off_t offset), offset, descriptor, data, count, offset)
MOVE_ALL(preadv64, READS, (VECTOR, off64_t offset), offset, descriptor, data, count, offset)

off_t lseek(int descriptor, off_t offset, int whence)
{
    return checked(REAL(lseek)(descriptor, offset, whence), descriptor, "go to a byte of");
}

off64_t lseek64(int descriptor, off64_t offset, int whence)
{
    return checked(REAL(lseek64)(descriptor, offset, whence), descriptor, "go to a byte of");
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
    if (result != 0 && in_hand()->method && errno != EBADF && errno != EINTR)
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

#define STATFS(name, kind)                                              \
    int name(const char *path, struct kind *status)                     \
    {                                                                   \
        return checked_name(REAL(name)(path, status), path, "look at"); \
    }
STATFS(statfs, statfs)
STATFS(statfs64, statfs64)
STATFS(statvfs, statvfs)
STATFS(statvfs64, statvfs64)

int unlink(const char *path)
{
    return checked_name(REAL(unlink)(path), path, "remove");
}
