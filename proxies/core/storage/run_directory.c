#include "storage/run_directory.h"

#include "job/agree.h"
#include "job/die.h"
#include "job/stop.h"
#include "storage/watchdog.h"
#include "text/print.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    OPEN_DIRECTORY = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
    OPEN_PARENT = O_PATH | O_DIRECTORY | O_CLOEXEC, /* which need not be readable */
    CREATE_FILE = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
};

static const char of_this_run[] = " of the files and directories of this run, the first ";

/* Opens a directory by the system call: tools that watch a run (Darshan) would take it for a file of the run. */
static int open_quietly(int parent, const char *name, int flags)
{
    return (int)syscall(SYS_openat, parent, name, flags, 0);
}

struct und_shared und_directory_share(const struct und_directory *directory, uint64_t mark)
{
    return (struct und_shared){.host = directory->host, .mark = mark};
}

uint64_t und_directory_shared(const struct und_directory *directory, struct und_shared shared)
{
    return shared.host == directory->host && shared.mark != 0 ? shared.mark : UND_UNKNOWN;
}

/* Notes what cannot be removed, of `folder` and `name` the path. Nothing is left where the name or its directory is gone
 * or another's. A directory that still holds files of other ranks is theirs to remove. */
static void note_kept(struct und_directory *directory, const char *folder, const char *name, int flags)
{
    const char *const parts[] = {folder, *folder && *name ? "/" : "", name};
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP ||
        ((flags & AT_REMOVEDIR) && (errno == ENOTEMPTY || errno == EEXIST)))
        return;
    if (atomic_fetch_add(&directory->kept.count, 1) > 0 || directory->kept.first[0])
        return;
    directory->kept.code = errno;
    for (size_t p = 0, at = 0; p < sizeof parts / sizeof parts[0]; ++p)
        for (const char *c = parts[p]; *c && at + 1 < sizeof directory->kept.first; ++c)
            directory->kept.first[at++] = *c;
}

static void remove_name(struct und_directory *directory, int parent, const char *name, int flags, const char *folder,
                        const char *path)
{
    und_watch_call(directory->watch, ++directory->removals);
    if (unlinkat(parent, name, flags) != 0)
        note_kept(directory, folder, path, flags);
}

/* Removes the name if it is still what was created. Where nobody can tell, a regular file that nobody else can have
 * linked there is taken for it, or an empty directory. */
static void remove_it(struct und_directory *directory, int parent, const char *name, uint64_t mark, int flags,
                      const char *folder, const char *path)
{
    struct stat status;
    errno = 0;
    const bool is_it = mark != UND_UNKNOWN || (flags & AT_REMOVEDIR)
                           ? und_identity_matches(parent, name, mark)
                           : fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode) &&
                                 status.st_nlink == 1 && (status.st_uid == geteuid() || geteuid() == 0);
    if (is_it)
        remove_name(directory, parent, name, flags, folder, path);
    else if (errno != 0)
        note_kept(directory, folder, path, flags);
}

/* Splits a path into an open directory and a name in it; false with errno. */
static bool open_parent(const char *path, struct und_directory_entry *place)
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
    place->parent = open_quietly(AT_FDCWD, parent, OPEN_PARENT);
    return place->parent >= 0;
}

static void note_host(struct und_directory *directory)
{
    char name[256] = "";
    gethostname(name, sizeof name - 1);
    for (const char *at = name; *at; ++at)
        directory->host = (directory->host ^ (unsigned char)*at) * 0x100000001b3U;
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

struct und_directory *und_directory_new(struct und_watch *watch)
{
    struct und_directory *directory = und_allocate(1, sizeof *directory, "the run directory");
    directory->watch = watch;
    directory->descriptor = directory->entry.parent = directory->claim.parent = -1;
    for (int k = 0; k < UND_OUTPUTS; ++k)
        directory->outputs[k].parent = -1;
    directory->home = AT_FDCWD;
    snprintf(directory->claim.name, sizeof directory->claim.name, "%s", UND_CLAIM);
    return directory;
}

bool und_directory_open(struct und_directory *directory, const char *path, bool created, struct und_error *error)
{
    struct und_identity identity;
    note_host(directory);
    directory->path = strdup(path);
    UND_CHECK(directory->path, "no memory to note %s", path);
    /* A directory that was there may be named through a link; one that this run created is none. */
    directory->descriptor = open_quietly(AT_FDCWD, path, OPEN_DIRECTORY | (created ? O_NOFOLLOW : 0));
    if (directory->descriptor < 0 || !und_identity_read(directory->descriptor, "", &identity))
        return und_fail(error, "cannot open the run directory %s: %s", path, strerror(errno));
    directory->device = identity.device;
    directory->mark = und_identity_mark(directory->descriptor, "");
    char here[PATH_MAX];
    name_open(directory->descriptor, here, sizeof here);
    directory->location = strdup(here);
    if (!created)
        return true;
    if (!open_parent(path, &directory->entry))
        return und_fail(error, "cannot open the parent of %s: %s", path, strerror(errno));
    if (und_identity_matches(directory->entry.parent, directory->entry.name, directory->mark))
        directory->entry.mark = directory->mark;
    return true;
}

bool und_directory_work_inside(struct und_directory *directory, struct und_error *error)
{
    directory->home = open_quietly(AT_FDCWD, ".", OPEN_PARENT);
    if (directory->home < 0 || fchdir(directory->descriptor) != 0)
        return und_fail(error, "cannot enter the run directory %s: %s", directory->path, strerror(errno));
    directory->root = strlen(directory->path) + 1;
    return true;
}

void und_directory_work_outside(struct und_directory *directory)
{
    if (directory->home >= 0 && fchdir(directory->home) == 0)
        directory->root = 0;
}

const char *und_directory_name(const struct und_directory *directory, const char *path)
{
    return path + directory->root;
}

bool und_directory_enter(struct und_directory *directory, int parent, size_t skipped)
{
    directory->root = skipped;
    return fchdir(parent) == 0;
}

bool und_directory_leave(struct und_directory *directory)
{
    directory->root = strlen(directory->path) + 1;
    return fchdir(directory->descriptor) == 0;
}

void und_directory_create_by(struct und_directory *directory, const struct und_layout_backend *backend)
{
    directory->backend = backend;
}

bool und_directory_is_in_place(const struct und_directory *directory, bool asks)
{
    char here[PATH_MAX];
    errno = 0;
    if (directory->descriptor < 0)
        return true;
    if (!asks) {
        name_open(directory->descriptor, here, sizeof here);
        if (here[0] && directory->location && strcmp(here, directory->location) == 0)
            return true;
    }
    const int descriptor = open_quietly(directory->home, directory->path, OPEN_DIRECTORY);
    const bool same = descriptor >= 0 && und_identity_matches(descriptor, "", directory->mark);
    const int why = errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : errno;
    if (descriptor >= 0)
        close(descriptor);
    errno = why;
    return same;
}

void und_directory_copy_requests(const struct und_directory *directory, const char *from, const char *to,
                                 const char *suffix)
{
    char path[PATH_MAX], text[4096];
    ssize_t length = 0;
    snprintf(path, sizeof path, "%s.%s", to, suffix);
    struct stat kind;
    const int source =
        openat(directory->home >= 0 ? directory->home : AT_FDCWD, from, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    UND_CHECK(source >= 0 && fstat(source, &kind) == 0, "cannot read the requests in %s", from);
    if (!S_ISREG(kind.st_mode))
        UND_DIE("cannot read the requests in %s: expected a regular file", from);
    const int target =
        openat(directory->home >= 0 ? directory->home : AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    UND_CHECK(target >= 0, "cannot write %s", path);
    while ((length = read(source, text, sizeof text)) > 0)
        UND_CHECK(write(target, text, (size_t)length) == length, "cannot write %s", path);
    UND_CHECK(length == 0, "cannot read the requests in %s", from);
    UND_CHECK(close(target) == 0, "cannot write %s", path);
    close(source);
}

bool und_directory_holds(const struct und_directory *directory, int descriptor)
{
    char parent[PATH_MAX], path[PATH_MAX];
    const int code = errno;
    name_open(directory->descriptor, parent, sizeof parent);
    name_open(descriptor, path, sizeof path);
    const size_t length = strlen(parent);
    errno = code;
    return length > 0 && strncmp(path, parent, length) == 0 && path[length] == '/';
}

bool und_directory_create(const struct und_directory *directory, const char *path,
                          const struct und_layout_request *request, int *descriptor, struct und_error *error)
{
    const char *name = und_directory_name(directory, path);
    const bool asked = request && und_layout_request_is_asked(request);
    *descriptor = -1;
    if (asked && directory->backend && directory->backend->create)
        *descriptor = directory->backend->create(AT_FDCWD, name, request, error);
    else if (asked)
        und_fail(error, "cannot create %s with a layout: its file system has no striping backend", path);
    else if ((*descriptor = open(name, CREATE_FILE, 0666)) < 0)
        und_fail(error, "cannot create %s: %s", path, strerror(errno));
    return *descriptor >= 0;
}

uint64_t und_directory_have_subdirectory(const struct und_directory *directory, const char *name, unsigned mode)
{
    return mode && mkdirat(directory->descriptor, name, (mode_t)mode) != 0
               ? 0
               : und_identity_mark(directory->descriptor, name);
}

int und_directory_open_subdirectory(const struct und_directory *directory, const char *name, uint64_t mark)
{
    struct statx status;
    const int descriptor = open_quietly(directory->descriptor, name, OPEN_PARENT | O_NOFOLLOW);
    if (descriptor < 0)
        return -1;
    const int code = statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID, &status) != 0 ? errno : 0;
    const uint64_t device = (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor;
    if (code == 0 && (mark != 0 ? und_identity_matches(descriptor, "", mark)
                                : device == directory->device && (status.stx_uid == geteuid() || geteuid() == 0)))
        return descriptor;
    close(descriptor);
    errno = code ? code : EPERM;
    return -1;
}

void und_directory_remove_name(struct und_directory *directory, int parent, const char *name, uint64_t mark,
                               bool is_directory)
{
    const int flags = is_directory ? AT_REMOVEDIR : 0;
    const char *slash = strchr(name, '/'), *end = slash ? slash + 1 : name;
    char folder[UND_ENTRY_BYTES];
    int opened = -1;
    if (slash && parent < 0) {
        const size_t length = (size_t)(slash - name);
        if (length >= sizeof folder)
            return;
        memcpy(folder, name, length);
        folder[length] = '\0';
        parent = opened = open_quietly(directory->descriptor, folder, OPEN_PARENT | O_NOFOLLOW);
        if (opened < 0) {
            note_kept(directory, directory->path, name, 0);
            return;
        }
    }
    remove_it(directory, slash ? parent : directory->descriptor, end, mark, flags, directory->path, name);
    if (opened >= 0)
        close(opened);
}

int und_directory_open_below(int parent, const char *path, int flags, bool links)
{
    struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC), .mode = flags & O_CREAT ? 0666U : 0U};
    how.resolve = RESOLVE_BENEATH;
    how.resolve |= links ? 0U : RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
    return (int)syscall(SYS_openat2, parent, path, &how, sizeof how);
}

void und_directory_remove_at(struct und_directory *directory, int parent, const char *path)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];
    int opened = -1;
    if (slash && (size_t)(slash - path) < sizeof folder) {
        memcpy(folder, path, (size_t)(slash - path));
        folder[slash - path] = '\0';
        opened = und_directory_open_below(parent, folder, O_PATH | O_DIRECTORY, false);
        if (opened < 0) {
            note_kept(directory, directory->path, path, 0);
            return;
        }
    }
    if (unlinkat(slash ? opened : parent, slash ? slash + 1 : path, 0) != 0 && errno != EISDIR)
        note_kept(directory, directory->path, path, 0);
    if (opened >= 0)
        close(opened);
}

bool und_directory_visit(const struct und_directory *directory, const char *path,
                         bool (*visit)(void *context, int descriptor, const char *name), void *context)
{
    const int parent = open(und_directory_name(directory, path), OPEN_DIRECTORY); /* an earlier run's may be a link */
    DIR *listing = parent < 0 ? NULL : fdopendir(parent);
    bool good = listing != NULL;
    for (const struct dirent *entry; good && (entry = readdir(listing));) {
        struct stat status;
        if (fstatat(parent, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
            continue;
        const int file = openat(parent, entry->d_name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        good = file >= 0 && visit(context, file, entry->d_name);
        const int code = errno;
        if (file >= 0)
            close(file);
        errno = code;
    }
    const int code = errno;
    if (listing)
        closedir(listing);
    else if (parent >= 0)
        close(parent);
    errno = code;
    return good;
}

static bool add_size(void *bytes, int descriptor, const char *name)
{
    struct stat status;
    (void)name;
    if (fstat(descriptor, &status) != 0)
        return false;
    *(int64_t *)bytes += (int64_t)status.st_size;
    return true;
}

bool und_directory_add_up(const struct und_directory *directory, const char *path, int64_t *bytes,
                          struct und_error *error)
{
    *bytes = 0;
    return und_directory_visit(directory, path, add_size, bytes) ||
           und_fail(error, "cannot look at the files in %s: %s", path, strerror(errno));
}

/* The kernel forgets pages only when they are clean. */
static bool drop_file(void *context, int descriptor, const char *name)
{
    (void)context, (void)name;
    const int code = fsync(descriptor) == 0 ? posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) : errno;
    errno = code;
    return code == 0;
}

void und_directory_drop_cache(const struct und_directory *directory, const char *method, const char *path)
{
    struct stat status;
    const int descriptor = open(und_directory_name(directory, path), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 && errno == ENOENT)
        return;
    UND_CHECK(descriptor >= 0 && fstat(descriptor, &status) == 0, "%s: cannot open %s to drop it from memory", method,
              path);
    const bool dropped = S_ISDIR(status.st_mode) ? und_directory_visit(directory, path, drop_file, NULL)
                                                 : drop_file(NULL, descriptor, path);
    UND_CHECK(dropped, "%s: cannot drop %s from memory", method, path);
    close(descriptor);
}

void und_directory_settle(const struct und_directory *directory)
{
    UND_CHECK(syncfs(directory->descriptor) == 0, "cannot flush the file system of %s", directory->path);
}

int und_directory_create_output(struct und_directory *directory, enum und_output which, const char *output,
                                struct und_error *error)
{
    static const char *const options[UND_OUTPUTS] = {"--output", "--time-series"};
    struct und_directory_entry *place = &directory->outputs[which];
    struct und_directory_entry beside = {.parent = -1};
    struct stat status;
    if (!open_parent(output, &beside)) {
        und_fail(error, "cannot write the result %s: %s", output, strerror(errno));
        return -1;
    }
    const bool there = fstatat(beside.parent, beside.name, &status, AT_SYMLINK_NOFOLLOW) == 0;
    const int length = snprintf(place->name, sizeof place->name, "%.200s.%ld.part", beside.name, (long)getpid());
    int descriptor = -1;
    if (there && !S_ISREG(status.st_mode))
        und_fail(error, "%s %s: expected the name of a file, found %s", options[which], output,
                 S_ISDIR(status.st_mode)   ? "a directory"
                 : S_ISLNK(status.st_mode) ? "a symbolic link"
                                           : "something else");
    else if (strlen(beside.name) > 200 || length < 0)
        und_fail(error, "%s %s: the name has more than 200 characters", options[which], output);
    else {
        und_stop_hold();
        descriptor = openat(beside.parent, place->name, CREATE_FILE, 0666);
        if (descriptor < 0)
            und_fail(error, "cannot write the result %s: %s", output, strerror(errno));
        place->parent = beside.parent;
        if (descriptor >= 0)
            place->mark = und_identity_mark(descriptor, "");
        und_stop_release();
    }
    return descriptor;
}

bool und_directory_publish_output(struct und_directory *directory, enum und_output which, const char *output,
                                  struct und_error *error)
{
    struct und_directory_entry *place = &directory->outputs[which];
    const char *slash = strrchr(output, '/');
    if (!und_identity_matches(place->parent, place->name, place->mark))
        return und_fail(error, "result: %s is no longer the file that this run created", place->name);
    if (renameat(place->parent, place->name, place->parent, slash ? slash + 1 : output) != 0)
        return und_fail(error, "result: cannot rename %s to %s: %s", place->name, output, strerror(errno));
    place->mark = 0;
    return true;
}

bool und_directory_output_part(const struct und_directory *directory, enum und_output which, char *path, size_t size,
                               struct und_identity *identity)
{
    const struct und_directory_entry *place = &directory->outputs[which];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", place->parent);
    const ssize_t length = place->mark ? readlink(link, path, size) : -1;
    if (length < 0 || (size_t)length + 1 + strlen(place->name) >= size)
        return false;
    snprintf(path + length, size - (size_t)length, "/%s", place->name);
    return und_identity_read(place->parent, place->name, identity);
}

bool und_directory_is_created(const struct und_directory *directory)
{
    return directory->entry.mark != 0;
}

bool und_directory_create_claim(struct und_directory *directory, int *descriptor, struct und_error *error)
{
    und_stop_hold();
    *descriptor = (int)syscall(SYS_openat, directory->descriptor, UND_CLAIM, CREATE_FILE, 0600);
    directory->claim.parent = directory->descriptor;
    const int code = errno;
    if (*descriptor >= 0)
        directory->claim.mark = und_identity_mark(*descriptor, "");
    und_stop_release();
    return directory->claim.mark != 0 ||
           und_fail(error, code == EEXIST ? "%s: another run has begun there" : "cannot write to the directory %s",
                    directory->path);
}

void und_directory_share_claim(struct und_directory *directory, MPI_Comm comm)
{
    struct und_shared shared = und_directory_share(directory, directory->claim.mark);
    UND_MPI(MPI_Bcast(&shared, sizeof shared, MPI_BYTE, 0, comm), "cannot share the claim on %s", directory->path);
    directory->claim.parent = directory->descriptor;
    directory->claim.mark = und_directory_shared(directory, shared);
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
static bool only_claim_is_left(const struct und_directory *directory)
{
    const int parent = open_quietly(directory->descriptor, ".", OPEN_DIRECTORY);
    _Alignas(8) char buffer[1024];
    bool only = directory->claim.mark != 0 && parent >= 0;
    for (long bytes; only && (bytes = syscall(SYS_getdents64, parent, buffer, sizeof buffer)) > 0;)
        for (long at = 0; only && at < bytes;) {
            const char *name = name_at(buffer, &at);
            only = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, UND_CLAIM) == 0;
        }
    if (parent >= 0)
        close(parent);
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

static void remove_numbered(struct und_directory *directory, int parent, int64_t count)
{
    _Alignas(8) char buffer[1024];
    for (long bytes; (bytes = syscall(SYS_getdents64, parent, buffer, sizeof buffer)) > 0;)
        for (long at = 0; at < bytes;) {
            const char *name = name_at(buffer, &at);
            if (!is_number(name, count))
                continue;
            const int below = und_directory_open_below(parent, name, OPEN_DIRECTORY, false), code = errno;
            const int flags = below >= 0 ? AT_REMOVEDIR : 0;
            if (below >= 0) {
                remove_numbered(directory, below, count);
                close(below);
            }
            if (unlinkat(parent, name, flags) != 0) {
                char folder[PATH_MAX];
                const int why = errno == EISDIR ? code : errno; /* a directory that cannot be opened */
                name_open(parent, folder, sizeof folder);
                errno = why;
                note_kept(directory, folder, name, flags);
            }
        }
}

void und_directory_remove_numbered(struct und_directory *directory, int parent, int64_t count)
{
    const int opened = und_directory_open_below(parent, ".", OPEN_DIRECTORY, false);
    if (opened < 0)
        note_kept(directory, directory->path, "", 0);
    remove_numbered(directory, opened, count);
    close(opened);
}

/* Names in a directory that this removes may be told twice. */
static void remove_members(struct und_directory *directory, int parent, const char *folder,
                           bool (*is_member)(const char *name))
{
    _Alignas(8) char buffer[1024];
    for (long bytes; (bytes = syscall(SYS_getdents64, parent, buffer, sizeof buffer)) > 0;)
        for (long at = 0; at < bytes;) {
            const char *name = name_at(buffer, &at);
            if (is_member(name))
                remove_it(directory, parent, name, UND_UNKNOWN, 0, folder, name);
        }
}

void und_directory_remove_members(struct und_directory *directory, const char *name, uint64_t mark,
                                  bool (*is_member)(const char *name))
{
    const int opened = open_quietly(directory->descriptor, name, OPEN_DIRECTORY | O_NOFOLLOW);
    if (opened < 0) {
        note_kept(directory, directory->path, name, 0);
        return;
    }
    if (und_identity_matches(opened, "", mark))
        remove_members(directory, opened, name, is_member);
    close(opened);
    remove_it(directory, directory->descriptor, name, mark, AT_REMOVEDIR, directory->path, name);
}

static void remove_place(struct und_directory *directory, const struct und_directory_entry *place, int flags,
                         const char *path)
{
    if (place->mark != 0)
        remove_it(directory, place->parent, place->name, place->mark, flags, "", path);
}

void und_directory_remove_by(struct und_directory *directory, und_remover *remove)
{
    int k = 0;
    while (directory->removers[k] && directory->removers[k] != remove)
        ++k;
    directory->removers[k] = remove;
}

void und_directory_remove_made(struct und_directory *directory, enum und_removal part)
{
    for (int k = 0; directory->removers[k]; ++k)
        directory->removers[k](directory, part);
}

/* Files first, which takes no time: a launcher does not wait long for ranks to end. */
static void remove_files(struct und_directory *directory)
{
    for (int k = 0; k < UND_OUTPUTS; ++k)
        remove_place(directory, &directory->outputs[k], 0, directory->outputs[k].name);
    und_directory_remove_made(directory, UND_ITS_FILES);
}

static void remove_claim(struct und_directory *directory, bool is_last)
{
    if (is_last)
        remove_place(directory, &directory->claim, 0, directory->claim.name);
    remove_place(directory, &directory->entry, AT_REMOVEDIR, directory->path ? directory->path : "");
}

/* A file that is removed while it is open keeps a name on some file systems, such as NFS, and with it its directory. */
static void close_files(const struct und_directory *directory)
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
            if (number > STDERR_FILENO && und_directory_holds(directory, number) && fstat(number, &status) == 0 &&
                S_ISREG(status.st_mode))
                close(number);
        }
    if (numbers >= 0)
        close(numbers);
}

bool und_directory_all_removed(struct und_directory *directory, MPI_Comm comm, struct und_error *error)
{
    long long count = atomic_exchange(&directory->kept.count, 0), all;
    UND_MPI(MPI_Allreduce(&count, &all, 1, MPI_LONG_LONG, MPI_SUM, comm), "cannot add up what was not removed");
    return und_agree(count == 0 || und_fail(error, "cannot remove %lld%s%s: %s", all, of_this_run,
                                            directory->kept.first, strerror(directory->kept.code)),
                     comm, error);
}

void und_directory_remove(struct und_directory *directory)
{
    remove_files(directory);
    und_directory_remove_made(directory, UND_ALL_DIRECTORIES);
    remove_claim(directory, only_claim_is_left(directory));
}

void und_directory_disclaim(struct und_directory *directory)
{
    remove_claim(directory, true);
    directory->claim.mark = 0;
}

static int64_t fail(void *state)
{
    struct und_directory *directory = state;
    remove_files(directory);
    close_files(directory);
    und_directory_remove_made(directory, UND_ALL_DIRECTORIES);
    remove_claim(directory, only_claim_is_left(directory));
    return atomic_exchange(&directory->kept.count, 0);
}

/* Is there a file that was removed while it is open, by the name that NFS or FUSE gives it? Looks at directories of
 * directories as well, up to a depth. */
static bool has_hidden(int parent, int depth)
{
    _Alignas(8) char buffer[1024];
    const int opened = open_quietly(parent, ".", OPEN_DIRECTORY);
    bool has = false;
    for (long bytes; !has && opened >= 0 && (bytes = syscall(SYS_getdents64, opened, buffer, sizeof buffer)) > 0;)
        for (long at = 0; !has && at < bytes;) {
            const char *name = name_at(buffer, &at);
            has = strncmp(name, ".nfs", 4) == 0 || strncmp(name, ".fuse_hidden", 12) == 0;
            const int below =
                has || depth == 0 || name[0] == '.' ? -1 : open_quietly(opened, name, OPEN_DIRECTORY | O_NOFOLLOW);
            if (below >= 0) {
                has = has_hidden(below, depth - 1);
                close(below);
            }
        }
    if (opened >= 0)
        close(opened);
    return has;
}

/* Transfers that the kernel still makes keep their files open: the directories of these can go when all have ended. */
static int64_t end_failure(void *state)
{
    enum { PATIENCE_MS = 2000, STEP_MS = 5, DEPTH = 3 };
    struct und_directory *directory = state;
    const long long kept = directory->kept.count;
    bool waits = true;
    for (int waited = 0; waits; waited += STEP_MS) {
        directory->kept.count = kept; /* each time tells of the same */
        waits = has_hidden(directory->descriptor, DEPTH);
        und_directory_remove_made(directory, UND_ALL_DIRECTORIES);
        und_directory_disclaim(directory);
        if (waits && waited >= PATIENCE_MS) {
            errno = EBUSY;
            note_kept(directory, directory->path, "", 0);
            break;
        }
        if (waits)
            nanosleep(&(struct timespec){0, STEP_MS * 1000000L}, NULL);
    }
    return atomic_exchange(&directory->kept.count, 0);
}

static void tell_kept(void *state, int64_t count)
{
    const struct und_directory *directory = state;
    struct und_line line = {0};
    und_line_add(&line, "understudy: cannot remove ");
    und_line_add_number(&line, count);
    und_line_add(&line, of_this_run);
    und_line_add(&line, directory->kept.first);
    und_line_add(&line, ": ");
    und_line_add(&line, strerror(directory->kept.code));
    und_line_write(&line, STDERR_FILENO);
}

struct und_cleanup und_directory_cleanup(struct und_directory *directory)
{
    return (struct und_cleanup){
        .remove_files = fail, .all_removed = end_failure, .tell = tell_kept, .state = directory};
}

int64_t und_directory_free_bytes(const void *state)
{
    const struct und_directory *directory = state;
    struct statvfs space;
    if (directory->descriptor < 0 || fstatvfs(directory->descriptor, &space) != 0)
        return -1;
    return space.f_files > 0 && space.f_favail == 0 ? 0 : (int64_t)(space.f_bavail * space.f_frsize);
}
