#include "core/storage.h"

#include "core/agree.h"
#include "core/die.h"
#include "core/print.h"
#include "core/stop.h"
#include "core/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    OPEN_DIRECTORY = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
    OPEN_PARENT = O_PATH | O_DIRECTORY | O_CLOEXEC, /* which need not be readable */
    CREATE_FILE = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
    NAME_BYTES = 256
};

/* A name in an open directory. */
struct place {
    int directory;         /* -1: none */
    _Atomic uint64_t mark; /* 0: this run has not created it */
    char name[NAME_BYTES];
};

static const char of_this_run[] = " of the files and directories of this run, the first ";
static struct place run_directory = {.directory = -1}; /* in its parent */
static struct place result_part = {.directory = -1};   /* beside the result */
static struct place claim = {.directory = -1, .name = UND_CLAIM};
static int run_descriptor = -1;
static uint64_t run_mark, run_device;
static char *run_place;     /* where the kernel has it */
static int home = AT_FDCWD; /* where the process worked before it entered the run directory */
static size_t root;         /* characters of a path before its name in the working directory */
static uint64_t host;
static char *run_path;
static const struct und_striping *stripe_by;
static int64_t removals;                                        /* names that were tried to remove */
static void (*_Atomic removers[3])(enum und_storage_part part); /* ending with NULL */

/* What could not be removed. */
static struct {
    atomic_llong count;
    int code;
    char first[1024];
} kept;

/* Of a directory. The call itself: tools that watch a run (Darshan) would take the directory for a file of it. */
static int open_quietly(int directory, const char *name, int flags)
{
    return (int)syscall(SYS_openat, directory, name, flags, 0);
}

/* It is called while time is taken. */
bool und_storage_identify(int directory, const char *name, struct und_identity *identity)
{
    struct statx status;
    const int flags = AT_SYMLINK_NOFOLLOW | AT_STATX_DONT_SYNC | (name[0] ? 0 : AT_EMPTY_PATH);
    if (statx(directory, name, flags, STATX_INO | STATX_BTIME, &status) != 0)
        return false;
    identity->device = (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor;
    identity->inode = status.stx_ino;
    identity->birth_ns = 0;
    if (status.stx_mask & STATX_BTIME)
        identity->birth_ns = (uint64_t)status.stx_btime.tv_sec * 1000000000U + status.stx_btime.tv_nsec;
    return true;
}

uint64_t und_storage_mark(int directory, const char *name)
{
    struct und_identity identity;
    if (!und_storage_identify(directory, name, &identity))
        return 0;
    uint64_t file = (identity.device * 0xbf58476d1ce4e5b9U ^ identity.inode) * 0x9e3779b97f4a7c15U >> 32;
    uint64_t birth = identity.birth_ns * 0x9e3779b97f4a7c15U >> 32;
    file = file ? file : 1;
    birth = birth || identity.birth_ns == 0 ? birth : 1;
    return file << 32 | birth;
}

bool und_storage_is_it(int directory, const char *name, uint64_t mark)
{
    if (mark == UND_UNKNOWN)
        return true;
    errno = 0;
    const uint64_t found = und_storage_mark(directory, name);
    return found != 0 && found >> 32 == mark >> 32 &&
           ((uint32_t)found == (uint32_t)mark || !(uint32_t)found || !(uint32_t)mark);
}

struct und_shared und_storage_share(uint64_t mark)
{
    return (struct und_shared){.host = host, .mark = mark};
}

uint64_t und_storage_shared(struct und_shared shared)
{
    return shared.host == host && shared.mark != 0 ? shared.mark : UND_UNKNOWN;
}

/* Notes what cannot be removed, of `folder` and `name` the path. Nothing is left where the name or its directory is gone
 * or another's. A directory that still holds files of other ranks is theirs to remove. */
static void note_kept(const char *folder, const char *name, int flags)
{
    const char *const parts[] = {folder, *folder && *name ? "/" : "", name};
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP ||
        ((flags & AT_REMOVEDIR) && (errno == ENOTEMPTY || errno == EEXIST)))
        return;
    if (atomic_fetch_add(&kept.count, 1) > 0 || kept.first[0])
        return;
    kept.code = errno;
    for (size_t p = 0, at = 0; p < sizeof parts / sizeof parts[0]; ++p)
        for (const char *c = parts[p]; *c && at + 1 < sizeof kept.first; ++c)
            kept.first[at++] = *c;
}

static void remove_name(int directory, const char *name, int flags, const char *folder, const char *path)
{
    und_watch_call(++removals);
    if (unlinkat(directory, name, flags) != 0)
        note_kept(folder, path, flags);
}

/* Removes the name if it is still what was created. Where nobody can tell, a regular file that nobody else can have
 * linked there is taken for it, or an empty directory. */
static void remove_it(int directory, const char *name, uint64_t mark, int flags, const char *folder, const char *path)
{
    struct stat status;
    errno = 0;
    const bool is_it = mark != UND_UNKNOWN || (flags & AT_REMOVEDIR)
                           ? und_storage_is_it(directory, name, mark)
                           : fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
                                 status.st_nlink == 1 && (status.st_uid == geteuid() || geteuid() == 0);
    if (is_it)
        remove_name(directory, name, flags, folder, path);
    else if (errno != 0)
        note_kept(folder, path, flags);
}

/* Splits a path into an open directory and a name in it; false with errno. */
static bool open_parent(const char *path, struct place *place)
{
    char parent[4096];
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        --length;
    size_t start = length;
    while (start > 0 && path[start - 1] != '/')
        --start;
    errno = ENAMETOOLONG;
    if (length - start >= sizeof place->name || start >= sizeof parent)
        return false;
    snprintf(place->name, sizeof place->name, "%.*s", (int)(length - start), path + start);
    snprintf(parent, sizeof parent, "%.*s", start > 0 ? (int)start : 1, start > 0 ? path : ".");
    place->directory = open_quietly(AT_FDCWD, parent, OPEN_PARENT);
    return place->directory >= 0;
}

static void note_host(void)
{
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    for (const char *at = name; *at; ++at)
        host = (host ^ (unsigned char)*at) * 0x100000001b3U;
}

/* Where what is open lies, by its name; an empty text where nobody can tell. */
static void name_open(int descriptor, char *path, size_t size)
{
    struct und_line link = {0};
    und_line_add(&link, "/proc/self/fd/");
    und_line_add_number(&link, descriptor);
    const ssize_t length = descriptor < 0 ? -1 : readlink(link.text, path, size - 1);
    path[length > 0 ? length : 0] = '\0';
}

bool und_storage_open(const char *directory, bool created, struct und_error *error)
{
    struct und_identity identity;
    note_host();
    run_path = strdup(directory);
    UND_CHECK(run_path, "no memory to note %s", directory);
    /* A directory that was there may be named through a link; one that this run created is none. */
    run_descriptor = open_quietly(AT_FDCWD, directory, OPEN_DIRECTORY | (created ? O_NOFOLLOW : 0));
    if (run_descriptor < 0 || !und_storage_identify(run_descriptor, "", &identity))
        return und_fail(error, "cannot open the run directory %s: %s", directory, strerror(errno));
    run_device = identity.device;
    run_mark = und_storage_mark(run_descriptor, "");
    char here[PATH_MAX];
    name_open(run_descriptor, here, sizeof here);
    run_place = strdup(here);
    if (!created)
        return true;
    if (!open_parent(directory, &run_directory))
        return und_fail(error, "cannot open the parent of %s: %s", directory, strerror(errno));
    if (und_storage_is_it(run_directory.directory, run_directory.name, run_mark))
        run_directory.mark = run_mark;
    return true;
}

bool und_storage_work_inside(struct und_error *error)
{
    home = open_quietly(AT_FDCWD, ".", OPEN_PARENT);
    if (home < 0 || fchdir(run_descriptor) != 0)
        return und_fail(error, "cannot enter the run directory %s: %s", run_path, strerror(errno));
    root = strlen(run_path) + 1;
    return true;
}

void und_storage_work_outside(void)
{
    if (home >= 0 && fchdir(home) == 0)
        root = 0;
}

const char *und_storage_name(const char *path)
{
    return path + root;
}

bool und_storage_enter(int directory, size_t skipped)
{
    root = skipped;
    return fchdir(directory) == 0;
}

bool und_storage_leave(void)
{
    root = strlen(run_path) + 1;
    return fchdir(run_descriptor) == 0;
}

void und_storage_stripe_by(const struct und_striping *striping)
{
    stripe_by = striping;
}

bool und_storage_is_in_place(bool asks)
{
    char here[PATH_MAX];
    errno = 0;
    if (run_descriptor < 0)
        return true;
    if (!asks) {
        name_open(run_descriptor, here, sizeof here);
        if (here[0] && run_place && strcmp(here, run_place) == 0)
            return true;
    }
    const int descriptor = open_quietly(home, run_path, OPEN_DIRECTORY);
    const bool same = descriptor >= 0 && und_storage_is_it(descriptor, "", run_mark);
    const int why = errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : errno;
    if (descriptor >= 0)
        close(descriptor);
    errno = why;
    return same;
}

void und_storage_copy_requests(const char *from, const char *to, const char *suffix)
{
    char path[PATH_MAX], text[4096];
    ssize_t length = 0;
    snprintf(path, sizeof path, "%s.%s", to, suffix);
    struct stat kind;
    const int source = openat(home >= 0 ? home : AT_FDCWD, from, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    UND_CHECK(source >= 0 && fstat(source, &kind) == 0, "cannot read the requests in %s", from);
    if (!S_ISREG(kind.st_mode))
        UND_DIE("cannot read the requests in %s: expected a regular file", from);
    const int target = openat(home >= 0 ? home : AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    UND_CHECK(target >= 0, "cannot write %s", path);
    while ((length = read(source, text, sizeof text)) > 0)
        UND_CHECK(write(target, text, (size_t)length) == length, "cannot write %s", path);
    UND_CHECK(length == 0, "cannot read the requests in %s", from);
    UND_CHECK(close(target) == 0, "cannot write %s", path);
    close(source);
}

bool und_storage_holds(int descriptor)
{
    char directory[PATH_MAX], path[PATH_MAX];
    const int code = errno;
    name_open(run_descriptor, directory, sizeof directory);
    name_open(descriptor, path, sizeof path);
    const size_t length = strlen(directory);
    errno = code;
    return length > 0 && strncmp(path, directory, length) == 0 && path[length] == '/';
}

bool und_storage_create(const char *path, const struct und_striping_request *request, int *descriptor,
                        struct und_error *error)
{
    const char *name = und_storage_name(path);
    const bool asked = request && und_striping_is_asked(request);
    *descriptor = -1;
    if (asked && stripe_by && stripe_by->create)
        *descriptor = stripe_by->create(AT_FDCWD, name, request, error);
    else if (asked)
        und_fail(error, "cannot create %s with a layout: its file system has no striping backend", path);
    else if ((*descriptor = open(name, CREATE_FILE, 0666)) < 0)
        und_fail(error, "cannot create %s: %s", path, strerror(errno));
    return *descriptor >= 0;
}

uint64_t und_storage_have_directory(const char *name, unsigned mode)
{
    return mode && mkdirat(run_descriptor, name, (mode_t)mode) != 0 ? 0 : und_storage_mark(run_descriptor, name);
}

int und_storage_open_directory(const char *name, uint64_t mark)
{
    struct statx status;
    const int descriptor = open_quietly(run_descriptor, name, OPEN_PARENT | O_NOFOLLOW);
    if (descriptor < 0)
        return -1;
    const int code = statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID, &status) != 0 ? errno : 0;
    const uint64_t device = (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor;
    if (code == 0 && (mark != 0 ? und_storage_is_it(descriptor, "", mark)
                                : device == run_device && (status.stx_uid == geteuid() || geteuid() == 0)))
        return descriptor;
    close(descriptor);
    errno = code ? code : EPERM;
    return -1;
}

void und_storage_remove_name(int directory, const char *name, uint64_t mark, bool is_directory)
{
    const int flags = is_directory ? AT_REMOVEDIR : 0;
    const char *slash = strchr(name, '/'), *end = slash ? slash + 1 : name;
    char parent[NAME_BYTES];
    int opened = -1;
    if (slash && directory < 0) {
        const size_t length = (size_t)(slash - name);
        if (length >= sizeof parent)
            return;
        memcpy(parent, name, length);
        parent[length] = '\0';
        directory = opened = open_quietly(run_descriptor, parent, OPEN_PARENT | O_NOFOLLOW);
        if (opened < 0) {
            note_kept(run_path, name, 0);
            return;
        }
    }
    remove_it(slash ? directory : run_descriptor, end, mark, flags, run_path, name);
    if (opened >= 0)
        close(opened);
}

int und_storage_open_below(int directory, const char *path, int flags, bool links)
{
    struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC), .mode = flags & O_CREAT ? 0666U : 0U};
    how.resolve = RESOLVE_BENEATH;
    how.resolve |= links ? 0U : RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
    return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

void und_storage_remove_at(int directory, const char *path)
{
    const char *slash = strrchr(path, '/');
    char parent[PATH_MAX];
    int opened = -1;
    if (slash && (size_t)(slash - path) < sizeof parent) {
        memcpy(parent, path, (size_t)(slash - path));
        parent[slash - path] = '\0';
        opened = und_storage_open_below(directory, parent, O_PATH | O_DIRECTORY, false);
        if (opened < 0) {
            note_kept(run_path, path, 0);
            return;
        }
    }
    if (unlinkat(slash ? opened : directory, slash ? slash + 1 : path, 0) != 0 && errno != EISDIR)
        note_kept(run_path, path, 0);
    if (opened >= 0)
        close(opened);
}

/* The kernel forgets pages only when they are clean. */
void und_storage_drop_cache(const char *method, const char *path)
{
    const int descriptor = open(und_storage_name(path), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 && errno == ENOENT)
        return;
    UND_CHECK(descriptor >= 0, "%s: cannot open %s to drop it from memory", method, path);
    UND_CHECK(fsync(descriptor) == 0, "%s: cannot flush %s", method, path);
    const int code = posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    if (code != 0)
        UND_DIE("%s: cannot drop %s from memory: %s", method, path, strerror(code));
    close(descriptor);
}

void und_storage_settle(void)
{
    UND_CHECK(syncfs(run_descriptor) == 0, "cannot flush the file system of %s", run_path);
}

int und_storage_create_result(const char *output, struct und_error *error)
{
    struct place beside = {.directory = -1};
    struct stat status;
    if (!open_parent(output, &beside)) {
        und_fail(error, "cannot write the result %s: %s", output, strerror(errno));
        return -1;
    }
    const bool there = fstatat(beside.directory, beside.name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    const int length =
        snprintf(result_part.name, sizeof result_part.name, "%.200s.%ld.part", beside.name, (long)getpid());
    int descriptor = -1;
    if (there && !S_ISREG(status.st_mode))
        und_fail(error, "--output %s: expected the name of a file, found %s", output,
                 S_ISDIR(status.st_mode)   ? "a directory"
                 : S_ISLNK(status.st_mode) ? "a symbolic link"
                                           : "something else");
    else if (strlen(beside.name) > 200 || length < 0)
        und_fail(error, "--output %s: the name has more than 200 characters", output);
    else {
        und_stop_hold();
        descriptor = openat(beside.directory, result_part.name, CREATE_FILE, 0666);
        if (descriptor < 0)
            und_fail(error, "cannot write the result %s: %s", output, strerror(errno));
        result_part.directory = beside.directory;
        if (descriptor >= 0)
            result_part.mark = und_storage_mark(descriptor, "");
        und_stop_release();
    }
    return descriptor;
}

bool und_storage_publish_result(const char *output, struct und_error *error)
{
    const char *slash = strrchr(output, '/');
    if (!und_storage_is_it(result_part.directory, result_part.name, result_part.mark))
        return und_fail(error, "result: %s is no longer the file that this run created", result_part.name);
    if (renameat(result_part.directory, result_part.name, result_part.directory, slash ? slash + 1 : output) != 0)
        return und_fail(error, "result: cannot rename %s to %s: %s", result_part.name, output, strerror(errno));
    result_part.mark = 0;
    return true;
}

bool und_storage_result_part(char *path, size_t size, struct und_identity *identity)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", result_part.directory);
    const ssize_t length = result_part.mark ? readlink(link, path, size) : -1;
    if (length < 0 || (size_t)length + 1 + strlen(result_part.name) >= size)
        return false;
    snprintf(path + length, size - (size_t)length, "/%s", result_part.name);
    return und_storage_identify(result_part.directory, result_part.name, identity);
}

bool und_storage_is_created(void)
{
    return run_directory.mark != 0;
}

bool und_storage_create_claim(int *descriptor, struct und_error *error)
{
    und_stop_hold();
    *descriptor = (int)syscall(SYS_openat, run_descriptor, UND_CLAIM, CREATE_FILE, 0600);
    claim.directory = run_descriptor;
    const int code = errno;
    if (*descriptor >= 0)
        claim.mark = und_storage_mark(*descriptor, "");
    und_stop_release();
    return claim.mark != 0 ||
           und_fail(error, code == EEXIST ? "%s: another run has begun there" : "cannot write to the directory %s",
                    run_path);
}

void und_storage_share_claim(MPI_Comm comm)
{
    struct und_shared shared = und_storage_share(claim.mark);
    UND_MPI(MPI_Bcast(&shared, sizeof shared, MPI_BYTE, 0, comm), "cannot share the claim on %s", run_path);
    claim.directory = run_descriptor;
    claim.mark = und_storage_shared(shared);
}

/* The name of the entry there; goes to the next one. */
static const char *name_at(const char *buffer, long *at)
{
    unsigned short step; /* struct linux_dirent64: 8 bytes, 8 bytes, the length, 1 byte, the name */
    const char *name = buffer + *at + 19;
    memcpy(&step, buffer + *at + 16, sizeof step);
    *at += step;
    return name;
}

/* The system call: readdir allocates. */
static bool only_claim_is_left(void)
{
    const int directory = open_quietly(run_descriptor, ".", OPEN_DIRECTORY);
    _Alignas(8) char buffer[1024];
    bool only = claim.mark != 0 && directory >= 0;
    for (long bytes; only && (bytes = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0;)
        for (long at = 0; only && at < bytes;) {
            const char *name = name_at(buffer, &at);
            only = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, UND_CLAIM) == 0;
        }
    if (directory >= 0)
        close(directory);
    return only;
}

/* As a name of a tree is written, from 0 to count - 1. */
static bool is_number(const char *name, int64_t count)
{
    int64_t number = 0;
    const char *digit = name;
    for (; *digit >= '0' && *digit <= '9' && number < count; ++digit)
        number = 10 * number + (*digit - '0');
    return digit > name && !*digit && number < count && (name[0] != '0' || !name[1]);
}

static void remove_numbered(int directory, int64_t count)
{
    _Alignas(8) char buffer[1024];
    for (long bytes; (bytes = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0;)
        for (long at = 0; at < bytes;) {
            const char *name = name_at(buffer, &at);
            if (!is_number(name, count))
                continue;
            const int below = und_storage_open_below(directory, name, OPEN_DIRECTORY, false), code = errno;
            const int flags = below >= 0 ? AT_REMOVEDIR : 0;
            if (below >= 0) {
                remove_numbered(below, count);
                close(below);
            }
            if (unlinkat(directory, name, flags) != 0) {
                char folder[PATH_MAX];
                const int why = errno == EISDIR ? code : errno; /* a directory that cannot be opened */
                name_open(directory, folder, sizeof folder);
                errno = why;
                note_kept(folder, name, flags);
            }
        }
}

void und_storage_remove_numbered(int directory, int64_t count)
{
    const int opened = und_storage_open_below(directory, ".", OPEN_DIRECTORY, false);
    if (opened < 0)
        note_kept(run_path, "", 0);
    remove_numbered(opened, count);
    close(opened);
}

static void remove_place(const struct place *place, int flags, const char *path)
{
    if (place->mark != 0)
        remove_it(place->directory, place->name, place->mark, flags, "", path);
}

void und_storage_remove_by(void (*remove)(enum und_storage_part part))
{
    int k = 0;
    while (removers[k] && removers[k] != remove)
        ++k;
    removers[k] = remove;
}

void und_storage_remove_made(enum und_storage_part part)
{
    for (int k = 0; removers[k]; ++k)
        removers[k](part);
}

/* What takes no time first: a launcher does not wait long for ranks to end. */
static void remove_files(void)
{
    remove_place(&result_part, 0, result_part.name);
    und_storage_remove_made(UND_ITS_FILES);
}

static void remove_claim(bool is_last)
{
    if (is_last)
        remove_place(&claim, 0, claim.name);
    remove_place(&run_directory, AT_REMOVEDIR, run_path ? run_path : "");
}

/* A file that is removed while it is open keeps a name on some file systems, such as NFS, and with it its directory. */
static void close_files(void)
{
    const int numbers = open_quietly(AT_FDCWD, "/proc/self/fd", OPEN_DIRECTORY);
    _Alignas(8) char buffer[1024];
    for (long bytes; numbers >= 0 && (bytes = syscall(SYS_getdents64, numbers, buffer, sizeof buffer)) > 0;)
        for (long at = 0; at < bytes;) {
            struct stat status;
            const char *digit = name_at(buffer, &at);
            int number = 0;
            for (; *digit >= '0' && *digit <= '9'; ++digit)
                number = 10 * number + (*digit - '0');
            if (number > STDERR_FILENO && und_storage_holds(number) && fstat(number, &status) == 0 &&
                S_ISREG(status.st_mode))
                close(number);
        }
    if (numbers >= 0)
        close(numbers);
}

void und_storage_tell_kept(int64_t count)
{
    struct und_line line = {0};
    und_line_add(&line, "understudy: cannot remove ");
    und_line_add_number(&line, count);
    und_line_add(&line, of_this_run);
    und_line_add(&line, kept.first);
    und_line_add(&line, ": ");
    und_line_add(&line, strerror(kept.code));
    und_line_write(&line, STDERR_FILENO);
}

bool und_storage_all_removed(MPI_Comm comm, struct und_error *error)
{
    long long count = atomic_exchange(&kept.count, 0), all;
    UND_MPI(MPI_Allreduce(&count, &all, 1, MPI_LONG_LONG, MPI_SUM, comm), "cannot add up what was not removed");
    return und_agree(
        count == 0 || und_fail(error, "cannot remove %lld%s%s: %s", all, of_this_run, kept.first, strerror(kept.code)),
        comm, error);
}

void und_storage_remove(void)
{
    remove_files();
    und_storage_remove_made(UND_ALL_DIRECTORIES);
    remove_claim(only_claim_is_left());
}

void und_storage_disclaim(void)
{
    remove_claim(true);
    claim.mark = 0;
}

int64_t und_storage_fail(void)
{
    remove_files();
    close_files();
    und_storage_remove_made(UND_ALL_DIRECTORIES);
    remove_claim(only_claim_is_left());
    return atomic_exchange(&kept.count, 0);
}

int64_t und_storage_end_failure(void)
{
    und_storage_remove_made(UND_ALL_DIRECTORIES);
    und_storage_disclaim();
    return atomic_exchange(&kept.count, 0);
}

int64_t und_storage_free(void)
{
    struct statvfs space;
    if (run_descriptor < 0 || fstatvfs(run_descriptor, &space) != 0)
        return -1;
    return space.f_files > 0 && space.f_favail == 0 ? 0 : (int64_t)(space.f_bavail * space.f_frsize);
}
