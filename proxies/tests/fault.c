/*
 * To be preloaded: a call of a rank on a file or directory below a folder fails, as on a storage that is full, broken
 * or does not answer.
 *
 *   FAULT_CALL   close, create, mkdir, open, read, rename, rmdir, seek, stat, statfs, sync, truncate, unlink or write,
 *                whichever function of the C library makes it, and read, sync and write also where they are queued to
 *                io_uring, which then completes them so; look: a stat of a name, as libraries make it
 *   FAULT_RANK   the rank, or "all"; a process without one, such as a launcher, has no fault
 *   FAULT_UNDER  the folder, absolute and without links
 *   FAULT_NAME   only of a path with this in it; none: of every one
 *   FAULT_END    only of a path that ends with this
 *   FAULT_TURN   the call with this number, from 1; each rank counts on its own
 *   FAULT_KEEPS  if set, also those after it
 *   FAULT_ERROR  number of the error; "hang": the call does not return; "short": a write or read moves half, and the
 *                writes after it fail, since the storage is full; "half": it moves half, and nothing fails; "flip": a read gives one bit wrong;
 *                "nothing": a read gives no byte
 *   FAULT_DEAF   if set, no signal reaches the rank that hangs, as in the kernel
 *   FAULT_FULL   if set, the storage says that it is full, on all ranks and whatever fails, but for the question
 *                that rank 0 asks before it begins
 *   FAULT_SILLY  if set, a file that is removed while this process has it open keeps a name in its directory until it
 *                is closed, as on NFS
 *   FAULT_LOG    gets a line for each fault
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* both names of each call are defined here */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifdef UND_HAVE_URING
/* Some versions declare its files const. */
#define io_uring_register_files_update io_uring_register_files_update_of_header
#include <liburing.h>
#undef io_uring_register_files_update
#endif

enum { PATH_BYTES = 4096, STREAMS = 256 };

static struct {
    bool on, keeps, silly, ranked, first;
    const char *call, *under, *name, *end, *error, *log;
    long turn;
} plan;
static atomic_long calls;

__attribute__((constructor)) static void begin(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    const char *rank = NULL, *wanted = getenv("FAULT_RANK"), *turn = getenv("FAULT_TURN");
    for (size_t i = 0; !rank && i < sizeof variables / sizeof variables[0]; ++i)
        rank = getenv(variables[i]);
    plan.call = getenv("FAULT_CALL");
    plan.under = getenv("FAULT_UNDER");
    plan.name = getenv("FAULT_NAME");
    plan.end = getenv("FAULT_END");
    plan.error = getenv("FAULT_ERROR");
    plan.log = getenv("FAULT_LOG");
    plan.keeps = getenv("FAULT_KEEPS") != NULL;
    plan.turn = turn ? strtol(turn, NULL, 10) : 1;
    plan.ranked = rank != NULL;
    plan.first = rank && strcmp(rank, "0") == 0;
    plan.silly = rank && plan.under && getenv("FAULT_SILLY");
    plan.on = rank && wanted && plan.call && plan.under && plan.error &&
              (strcmp(wanted, "all") == 0 || strcmp(wanted, rank) == 0);
}

/* The function that one of this file hides. */
static void *hidden(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

#define HIDDEN(type, name, parameters) \
    type(*real) parameters;            \
    *(void **)&real = hidden(name)

static bool is_error(const char *kind)
{
    return strcmp(plan.error, kind) == 0;
}

static bool path_of(int descriptor, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t length = readlink(link, path, PATH_BYTES - 1);
    path[length > 0 ? length : 0] = '\0';
    return length > 0;
}

static void path_at(int directory, const char *name, char *path)
{
    char folder[PATH_BYTES] = "";
    if (name[0] == '/') {
        snprintf(path, PATH_BYTES, "%s", name);
        return;
    }
    if (directory == AT_FDCWD) {
        const ssize_t length = readlink("/proc/self/cwd", folder, sizeof folder - 1);
        folder[length > 0 ? length : 0] = '\0';
    } else {
        path_of(directory, folder);
    }
    snprintf(path, PATH_BYTES, "%.*s%s%s", PATH_BYTES / 2, folder, name[0] ? "/" : "", name);
}

static bool is_below(const char *path)
{
    const size_t length = strlen(plan.under);
    return strncmp(path, plan.under, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static bool ends(const char *path, const char *with)
{
    const size_t length = strlen(path), end = strlen(with);
    return length >= end && strcmp(path + length - end, with) == 0;
}

static void note(const char *call, const char *path)
{
    char line[PATH_BYTES + 64];
    if (!plan.log)
        return;
    const int length = snprintf(line, sizeof line, "%s %s\n", call, path);
    const int log = (int)syscall(SYS_openat, AT_FDCWD, plan.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log >= 0 && syscall(SYS_write, log, line, (size_t)length) == length)
        syscall(SYS_close, log);
}

static void be_deaf(void)
{
    if (getenv("FAULT_DEAF")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
    }
}

static void hang(void)
{
    be_deaf();
    for (;;)
        pause();
}

/* Is it the turn of this call? */
static bool is_turn(const char *call, const char *path)
{
    if (!plan.on || strcmp(call, plan.call) != 0 || !is_below(path) || (plan.name && !strstr(path, plan.name)) ||
        (plan.end && !ends(path, plan.end)))
        return false;
    const long number = atomic_fetch_add(&calls, 1) + 1;
    if (number < plan.turn || (number > plan.turn && !plan.keeps && !is_error("short")))
        return false;
    note(call, path);
    return true;
}

/* Where it is the turn of this call, errno is set, or it does not return. */
static bool strikes(const char *call, const char *path)
{
    if (!is_turn(call, path))
        return false;
    if (is_error("hang"))
        hang();
    errno = is_error("short") ? ENOSPC : (int)strtol(plan.error, NULL, 10);
    return true;
}

static bool strikes_open_file(const char *call, int descriptor)
{
    char path[PATH_BYTES];
    return plan.on && strcmp(call, plan.call) == 0 && path_of(descriptor, path) && strikes(call, path);
}

static bool strikes_at(const char *call, int directory, const char *name)
{
    char path[PATH_BYTES];
    if (!plan.on || strcmp(call, plan.call) != 0)
        return false;
    path_at(directory, name, path);
    return strikes(call, path);
}

/* ---- Bytes ---- */

static bool is_partial(void)
{
    return is_error("short") || is_error("half");
}

/* How many of the bytes of this write or read are moved; -1: none, with errno. */
static ssize_t moves(const char *call, int descriptor, size_t bytes)
{
    const long before = calls;
    const int code = errno;
    if (!strikes_open_file(call, descriptor) || is_error("flip"))
        return (ssize_t)bytes;
    if (is_error("nothing"))
        return 0;
    const bool first = before + 1 == plan.turn && bytes > 1;
    if (!is_partial() || (!first && strcmp(call, "read") != 0))
        return -1;
    errno = code;
    return (ssize_t)(first ? bytes / 2 : bytes);
}

static ssize_t flip(int descriptor, void *data, ssize_t bytes)
{
    char path[PATH_BYTES];
    if (plan.on && is_error("flip") && bytes > 0 && calls == plan.turn && path_of(descriptor, path) && is_below(path)) {
        ++calls;
        *(unsigned char *)data ^= 1;
    }
    return bytes;
}

#define WRITE(name, parameters, ...)                                        \
    ssize_t name parameters                                                 \
    {                                                                       \
        HIDDEN(ssize_t, #name, parameters);                                 \
        const ssize_t most = moves("write", descriptor, bytes);             \
        return most < 0 ? -1 : real(descriptor, data, (size_t)__VA_ARGS__); \
    }
WRITE(write, (int descriptor, const void *data, size_t bytes), most)
WRITE(pwrite, (int descriptor, const void *data, size_t bytes, off_t offset), most, offset)
WRITE(pwrite64, (int descriptor, const void *data, size_t bytes, off64_t offset), most, offset)

#define READ(name, parameters, ...)                                                                 \
    ssize_t name parameters                                                                         \
    {                                                                                               \
        HIDDEN(ssize_t, #name, parameters);                                                         \
        const ssize_t most = moves("read", descriptor, bytes);                                      \
        return most < 0 ? -1 : flip(descriptor, data, real(descriptor, data, (size_t)__VA_ARGS__)); \
    }
READ(read, (int descriptor, void *data, size_t bytes), most)
READ(pread, (int descriptor, void *data, size_t bytes, off_t offset), most, offset)
READ(pread64, (int descriptor, void *data, size_t bytes, off64_t offset), most, offset)

/* Of vectors a short call moves the first half of the first element. */
static ssize_t moves_vector(const char *call, int descriptor, const struct iovec *data, int count, struct iovec *first)
{
    size_t bytes = 0;
    for (int i = 0; i < count; ++i)
        bytes += data[i].iov_len;
    *first = data[0];
    const ssize_t most = moves(call, descriptor, bytes);
    if (most >= 0 && (size_t)most < bytes)
        first->iov_len = most == 0 ? 0 : (data[0].iov_len + 1) / 2;
    return most < 0 ? -1 : (size_t)most < bytes;
}

#define WRITEV(name, parameters, ...)                                                                \
    ssize_t name parameters                                                                          \
    {                                                                                                \
        struct iovec first;                                                                          \
        HIDDEN(ssize_t, #name, parameters);                                                          \
        const ssize_t part = count > 0 ? moves_vector("write", descriptor, data, count, &first) : 0; \
        data = part > 0 ? &first : data;                                                             \
        count = part > 0 ? 1 : count;                                                                \
        return part < 0 ? -1 : real(__VA_ARGS__);                                                    \
    }
WRITEV(writev, (int descriptor, const struct iovec *data, int count), descriptor, data, count)
WRITEV(pwritev, (int descriptor, const struct iovec *data, int count, off_t offset), descriptor, data, count, offset)
WRITEV(pwritev64, (int descriptor, const struct iovec *data, int count, off64_t offset), descriptor, data, count,
       offset)

#define READV(name, parameters, ...)                                                                     \
    ssize_t name parameters                                                                              \
    {                                                                                                    \
        struct iovec first;                                                                              \
        HIDDEN(ssize_t, #name, parameters);                                                              \
        const ssize_t part = count > 0 ? moves_vector("read", descriptor, data, count, &first) : 0;      \
        data = part > 0 ? &first : data;                                                                 \
        count = part > 0 ? 1 : count;                                                                    \
        return part < 0 ? -1 : flip(descriptor, count > 0 ? data[0].iov_base : NULL, real(__VA_ARGS__)); \
    }
READV(readv, (int descriptor, const struct iovec *data, int count), descriptor, data, count)
READV(preadv, (int descriptor, const struct iovec *data, int count, off_t offset), descriptor, data, count, offset)
READV(preadv64, (int descriptor, const struct iovec *data, int count, off64_t offset), descriptor, data, count, offset)

/* ---- Open files ---- */

#define ON_OPEN_FILE(call, name, parameters, ...)                            \
    int name parameters                                                      \
    {                                                                        \
        HIDDEN(int, #name, parameters);                                      \
        return strikes_open_file(call, descriptor) ? -1 : real(__VA_ARGS__); \
    }
#define SEEK(name, type)                                                                      \
    type name(int descriptor, type offset, int whence)                                        \
    {                                                                                         \
        HIDDEN(type, #name, (int, type, int));                                                \
        return strikes_open_file("seek", descriptor) ? -1 : real(descriptor, offset, whence); \
    }
SEEK(lseek, off_t)
SEEK(lseek64, off64_t)
ON_OPEN_FILE("sync", fsync, (int descriptor), descriptor)
ON_OPEN_FILE("sync", fdatasync, (int descriptor), descriptor)
ON_OPEN_FILE("sync", syncfs, (int descriptor), descriptor)
ON_OPEN_FILE("truncate", ftruncate, (int descriptor, off_t bytes), descriptor, bytes)
ON_OPEN_FILE("truncate", ftruncate64, (int descriptor, off64_t bytes), descriptor, bytes)
ON_OPEN_FILE("stat", fstat, (int descriptor, struct stat *status), descriptor, status)
ON_OPEN_FILE("stat", fstat64, (int descriptor, struct stat64 *status), descriptor, status)
ON_OPEN_FILE("statfs", fstatfs, (int descriptor, struct statfs *status), descriptor, status)
ON_OPEN_FILE("statfs", fstatfs64, (int descriptor, struct statfs64 *status), descriptor, status)

static bool is_full(void)
{
    static atomic_long questions;
    return plan.ranked && getenv("FAULT_FULL") && (++questions > 1 || !plan.first);
}

#define ON_FREE_SPACE(name, kind)                    \
    int name(int descriptor, struct kind *status)    \
    {                                                \
        HIDDEN(int, #name, (int, struct kind *));    \
        if (strikes_open_file("statfs", descriptor)) \
            return -1;                               \
        const int result = real(descriptor, status); \
        if (result == 0 && is_full())                \
            status->f_bavail = 0;                    \
        return result;                               \
    }
ON_FREE_SPACE(fstatvfs, statvfs)
ON_FREE_SPACE(fstatvfs64, statvfs64)

/* ---- Names ---- */

#define ON_NAME(call, name, parameters, ...)                                    \
    int name parameters                                                         \
    {                                                                           \
        HIDDEN(int, #name, parameters);                                         \
        return strikes_at(call, AT_FDCWD, path) ? -1 : real(path, __VA_ARGS__); \
    }
#define ON_LOOK(name, parameters)                                                                                  \
    int name parameters                                                                                            \
    {                                                                                                              \
        HIDDEN(int, #name, parameters);                                                                            \
        return strikes_at("stat", AT_FDCWD, path) || strikes_at("look", AT_FDCWD, path) ? -1 : real(path, status); \
    }
#define ON_NAME_AT(call, name, parameters, ...)                                             \
    int name parameters                                                                     \
    {                                                                                       \
        HIDDEN(int, #name, parameters);                                                     \
        return strikes_at(call, directory, path) ? -1 : real(directory, path, __VA_ARGS__); \
    }
ON_NAME("mkdir", mkdir, (const char *path, mode_t mode), mode)
ON_NAME_AT("mkdir", mkdirat, (int directory, const char *path, mode_t mode), mode)
ON_LOOK(stat, (const char *path, struct stat *status))
ON_LOOK(stat64, (const char *path, struct stat64 *status))
ON_LOOK(lstat, (const char *path, struct stat *status))
ON_LOOK(lstat64, (const char *path, struct stat64 *status))
ON_NAME_AT("stat", fstatat, (int directory, const char *path, struct stat *status, int flags), status, flags)
ON_NAME_AT("stat", fstatat64, (int directory, const char *path, struct stat64 *status, int flags), status, flags)
ON_NAME_AT("stat", statx, (int directory, const char *path, int flags, unsigned mask, struct statx *status), flags,
           mask, status)
ON_NAME("statfs", statvfs, (const char *path, struct statvfs *status), status)
ON_NAME("statfs", statvfs64, (const char *path, struct statvfs64 *status), status)
ON_NAME("statfs", statfs, (const char *path, struct statfs *status), status)
ON_NAME("statfs", statfs64, (const char *path, struct statfs64 *status), status)
ON_NAME("truncate", truncate, (const char *path, off_t bytes), bytes)
ON_NAME("truncate", truncate64, (const char *path, off64_t bytes), bytes)
ON_NAME("rename", rename, (const char *path, const char *to), to)
ON_NAME_AT("rename", renameat, (int directory, const char *path, int other, const char *to), other, to)

/* A file that this process has open is renamed, and goes when the last of its descriptors is closed. */
static struct {
    bool held;
    ino_t inode;
    char path[PATH_BYTES];
} sillies[STREAMS];

static bool is_open(ino_t inode)
{
    struct stat status;
    HIDDEN(int, "fstat", (int, struct stat *));
    for (int d = 3; d < 1024; ++d)
        if (real(d, &status) == 0 && S_ISREG(status.st_mode) && status.st_ino == inode)
            return true;
    return false;
}

static bool keep_name(int directory, const char *name)
{
    static int count;
    struct stat status;
    char path[PATH_BYTES];
    HIDDEN(int, "fstatat", (int, const char *, struct stat *, int));
    if (!plan.silly || count == STREAMS || real(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode) || !is_open(status.st_ino))
        return false;
    path_at(directory, name, path);
    if (!is_below(path))
        return false;
    char *slash = strrchr(path, '/');
    snprintf(sillies[count].path, PATH_BYTES, "%.*s/.nfs%ld.%d", (int)(slash - path), path, (long)getpid(), count);
    sillies[count].inode = status.st_ino;
    if (syscall(SYS_renameat2, directory, name, AT_FDCWD, sillies[count].path, 0) != 0)
        return false;
    note("silly", path);
    sillies[count++].held = true;
    return true;
}

static void drop_names(void)
{
    for (int i = 0; plan.silly && i < STREAMS; ++i)
        if (sillies[i].held && !is_open(sillies[i].inode)) {
            sillies[i].held = false;
            syscall(SYS_unlinkat, AT_FDCWD, sillies[i].path, 0);
        }
}

int close(int descriptor)
{
    const bool strikes_it = strikes_open_file("close", descriptor);
    const int code = errno;
    HIDDEN(int, "close", (int));
    const int result = real(descriptor);
    drop_names();
    if (!strikes_it)
        return result;
    errno = code;
    return -1;
}

int unlink(const char *path)
{
    HIDDEN(int, "unlink", (const char *));
    if (strikes_at("unlink", AT_FDCWD, path))
        return -1;
    return keep_name(AT_FDCWD, path) ? 0 : real(path);
}

int rmdir(const char *path)
{
    HIDDEN(int, "rmdir", (const char *));
    return strikes_at("rmdir", AT_FDCWD, path) ? -1 : real(path);
}

int unlinkat(int directory, const char *path, int flags)
{
    HIDDEN(int, "unlinkat", (int, const char *, int));
    if (strikes_at(flags & AT_REMOVEDIR ? "rmdir" : "unlink", directory, path))
        return -1;
    return !(flags & AT_REMOVEDIR) && keep_name(directory, path) ? 0 : real(directory, path, flags);
}

static bool strikes_opening(int directory, const char *path, int flags)
{
    return strikes_at(flags & O_CREAT ? "create" : "open", directory, path);
}

#define MODE                                      \
    va_list list;                                 \
    va_start(list, flags);                        \
    const unsigned mode = va_arg(list, unsigned); \
    va_end(list)

#define OPEN(name)                                                                    \
    int name(const char *path, int flags, ...)                                        \
    {                                                                                 \
        MODE;                                                                         \
        HIDDEN(int, #name, (const char *, int, ...));                                 \
        return strikes_opening(AT_FDCWD, path, flags) ? -1 : real(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)
#define OPENAT(name)                                                                              \
    int name(int directory, const char *path, int flags, ...)                                     \
    {                                                                                             \
        MODE;                                                                                     \
        HIDDEN(int, #name, (int, const char *, int, ...));                                        \
        return strikes_opening(directory, path, flags) ? -1 : real(directory, path, flags, mode); \
    }
OPENAT(openat)
OPENAT(openat64)

long syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; ++i)
        a[i] = va_arg(list, long);
    va_end(list);
    HIDDEN(long, "syscall", (long, ...));
    if (plan.on && number == SYS_openat && (const char *)a[1] != plan.log &&
        strikes_opening((int)a[0], (const char *)a[1], (int)a[2]))
        return -1;
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- Streams of the C library, whose own calls of the system nothing can be put before ---- */

static struct {
    FILE *stream;
    int descriptor;
} streams[STREAMS];

static ssize_t read_stream(void *cookie, char *data, size_t bytes)
{
    return read(*(int *)cookie, data, bytes);
}

/* As the C library does: until all is written, or nothing more can be. */
static ssize_t write_stream(void *cookie, const char *data, size_t bytes)
{
    size_t written = 0;
    for (ssize_t some; written < bytes; written += (size_t)some)
        if ((some = write(*(int *)cookie, data + written, bytes - written)) < 0)
            break;
    return (ssize_t)written;
}

static int seek_stream(void *cookie, off64_t *offset, int whence)
{
    *offset = lseek64(*(int *)cookie, *offset, whence);
    return *offset < 0 ? -1 : 0;
}

static int close_stream(void *cookie)
{
    int *descriptor = cookie;
    const int which = *descriptor;
    for (int i = 0; i < STREAMS; ++i)
        if (&streams[i].descriptor == descriptor)
            streams[i].stream = NULL;
    return close(which);
}

static FILE *stream_of(int descriptor, const char *mode)
{
    int i = 0;
    while (i < STREAMS && streams[i].stream)
        ++i;
    if (i == STREAMS) {
        errno = EMFILE;
        return NULL;
    }
    streams[i].descriptor = descriptor;
    streams[i].stream =
        fopencookie(&streams[i].descriptor, mode,
                    (cookie_io_functions_t){
                        .read = read_stream, .write = write_stream, .seek = seek_stream, .close = close_stream});
    return streams[i].stream;
}

static FILE *open_stream(const char *path, const char *mode)
{
    const int access = strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY;
    const int more = mode[0] == 'w'   ? O_CREAT | (strchr(mode, 'x') ? O_EXCL : O_TRUNC)
                     : mode[0] == 'a' ? O_CREAT | O_APPEND
                                      : 0;
    const char plain[3] = {mode[0], strchr(mode, '+') ? '+' : '\0', '\0'};
    const int descriptor = open(path, access | more | O_CLOEXEC, 0666);
    return descriptor < 0 ? NULL : stream_of(descriptor, plain);
}

static bool is_name_below(const char *name)
{
    char path[PATH_BYTES];
    if (plan.on)
        path_at(AT_FDCWD, name, path);
    return plan.on && is_below(path);
}

#define FOPEN(name)                                                              \
    FILE *name(const char *path, const char *mode)                               \
    {                                                                            \
        HIDDEN(FILE *, #name, (const char *, const char *));                     \
        return is_name_below(path) ? open_stream(path, mode) : real(path, mode); \
    }
FOPEN(fopen)
FOPEN(fopen64)

FILE *fdopen(int descriptor, const char *mode)
{
    char path[PATH_BYTES];
    HIDDEN(FILE *, "fdopen", (int, const char *));
    return plan.on && path_of(descriptor, path) && is_below(path) ? stream_of(descriptor, mode)
                                                                  : real(descriptor, mode);
}

#define FILENO(name)                          \
    int name(FILE *stream)                    \
    {                                         \
        HIDDEN(int, #name, (FILE *));         \
        for (int i = 0; i < STREAMS; ++i)     \
            if (streams[i].stream == stream)  \
                return streams[i].descriptor; \
        return real(stream);                  \
    }
FILENO(fileno)
FILENO(fileno_unlocked)

#ifdef UND_HAVE_URING
/* ---- io_uring: what is queued is changed before it is submitted, and what it gave before it is taken ---- */

enum { COMPLETIONS = 4096, SLOTS = 1024 };

static int registered[SLOTS];
static struct {
    bool used;
    __u64 user;
    int result;
    unsigned char *flipped; /* the byte that is wrong, whatever the result; NULL: none */
} completions[COMPLETIONS];

int io_uring_register_files_update(struct io_uring *ring, unsigned first, const int *files, unsigned count);
int io_uring_register_files_update(struct io_uring *ring, unsigned first, const int *files, unsigned count)
{
    HIDDEN(int, "io_uring_register_files_update", (struct io_uring *, unsigned, const int *, unsigned));
    for (unsigned i = 0; i < count && first + i < SLOTS; ++i)
        registered[first + i] = files[i];
    return real(ring, first, files, count);
}

static void complete(const struct io_uring_sqe *entry, int result, unsigned char *flipped)
{
    int c = 0;
    while (c < COMPLETIONS - 1 && completions[c].used)
        ++c;
    completions[c].used = true;
    completions[c].user = entry->user_data;
    completions[c].result = result;
    completions[c].flipped = flipped;
}

/* Another operation in the place of the one that is queued. */
static void replace(struct io_uring_sqe *entry, bool ends)
{
    static int ends_of_pipe[2] = {-1, -1};
    const struct io_uring_sqe old = *entry;
    if (ends) {
        io_uring_prep_nop(entry);
    } else {
        be_deaf();
        if (ends_of_pipe[0] < 0 && pipe(ends_of_pipe) != 0)
            abort();
        io_uring_prep_poll_add(entry, ends_of_pipe[0], 1 /* POLLIN */);
    }
    entry->user_data = old.user_data;
    entry->flags = old.flags & (unsigned char)~IOSQE_FIXED_FILE;
}

static void change(struct io_uring_sqe *entry)
{
    const bool writes = entry->opcode == IORING_OP_WRITE || entry->opcode == IORING_OP_WRITE_FIXED;
    const bool reads = entry->opcode == IORING_OP_READ || entry->opcode == IORING_OP_READ_FIXED;
    const char *call = writes ? "write" : reads ? "read" : entry->opcode == IORING_OP_FSYNC ? "sync" : NULL;
    char path[PATH_BYTES];
    if (!call || strcmp(call, plan.call) != 0)
        return;
    const int descriptor = entry->flags & IOSQE_FIXED_FILE ? registered[entry->fd] : entry->fd;
    const long before = calls;
    if (!path_of(descriptor, path) || !is_turn(call, path))
        return;
    const bool first = before + 1 == plan.turn && entry->len > 1;
    if (is_error("flip")) {
        complete(entry, 0, (unsigned char *)(size_t)entry->addr);
    } else if (is_error("hang")) {
        replace(entry, false);
    } else if (is_partial() && (first || reads)) {
        entry->len = first ? entry->len / 2 : entry->len;
    } else {
        const int error = is_error("short") ? ENOSPC : is_error("nothing") ? 0 : (int)strtol(plan.error, NULL, 10);
        complete(entry, -error, NULL);
        replace(entry, true);
    }
}

static void change_queued(struct io_uring *ring)
{
    for (unsigned e = ring->sq.sqe_head; plan.on && e != ring->sq.sqe_tail; ++e)
        change(&ring->sq.sqes[e & *ring->sq.kring_mask]);
}

int io_uring_submit(struct io_uring *ring)
{
    HIDDEN(int, "io_uring_submit", (struct io_uring *));
    change_queued(ring);
    return real(ring);
}

int io_uring_submit_and_wait(struct io_uring *ring, unsigned count)
{
    HIDDEN(int, "io_uring_submit_and_wait", (struct io_uring *, unsigned));
    change_queued(ring);
    return real(ring, count);
}

unsigned io_uring_peek_batch_cqe(struct io_uring *ring, struct io_uring_cqe **entries, unsigned most)
{
    HIDDEN(unsigned, "io_uring_peek_batch_cqe", (struct io_uring *, struct io_uring_cqe **, unsigned));
    const unsigned count = real(ring, entries, most);
    for (unsigned e = 0; plan.on && e < count; ++e)
        for (int c = 0; c < COMPLETIONS; ++c)
            if (completions[c].used && completions[c].user == entries[e]->user_data) {
                completions[c].used = false;
                if (completions[c].flipped)
                    *completions[c].flipped ^= 1;
                else
                    entries[e]->res = completions[c].result;
            }
    return count;
}
#endif
