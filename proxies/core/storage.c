#include "core/storage.h"

#include "core/agree.h"
#include "core/die.h"
#include "core/print.h"
#include "core/stop.h"
#include "core/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
    CREATE_FILE = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
};

struct entry {
    struct entry *next;
    atomic_bool ours;
    atomic_bool lent;
    enum und_storage_kind kind;
    const struct und_store *store; /* NULL: the tree */
    const struct entry *parent;    /* NULL: the run directory */
    int descriptor;                /* of a directory; -1: not open */
    struct und_identity identity;
    struct und_identity backup_identity;
    _Atomic(char *) backup; /* name in the parent of what it was before; NULL: none */
    const char *name;       /* in the parent */
    char path[];
};

/* A name in an open directory. */
struct place {
    int directory; /* -1: none */
    atomic_bool ours;
    struct und_identity identity;
    char name[256];
};

/* The handler may run between any two instructions, so a new entry is complete before it is linked. */
static const char backup_mark[] = ".backup";
static const char of_this_run[] = " of the files and directories of this run, the first ";
static _Atomic(struct entry *) entries;
static _Atomic(struct und_storage_many *) manies;
static struct place run_directory = {.directory = -1}; /* in its parent */
static struct place result_part = {.directory = -1};   /* beside the result */
static struct place claim = {.directory = -1, .name = UND_CLAIM};
static int run_descriptor = -1;
static int home = AT_FDCWD; /* where the process worked before it entered the run directory */
static size_t root;         /* characters of a path before its name in the working directory */
static uint64_t host;
static char *run_path;
static const struct und_striping *stripe_by;
static int64_t removals; /* names that were tried to remove */

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
    identity->host = host;
    identity->birth_ns = 0;
    if (status.stx_mask & STATX_BTIME)
        identity->birth_ns = (uint64_t)status.stx_btime.tv_sec * 1000000000U + status.stx_btime.tv_nsec;
    return true;
}

/* False with errno where nobody can tell, and with 0 where it is another. */
static bool is_same(int directory, const char *name, const struct und_identity *identity)
{
    struct und_identity found;
    if (identity->inode == 0 || identity->host != host)
        return true;
    if (!und_storage_identify(directory, name, &found))
        return false;
    errno = 0;
    return found.device == identity->device && found.inode == identity->inode &&
           (found.birth_ns == identity->birth_ns || found.birth_ns == 0 || identity->birth_ns == 0);
}

uint32_t und_storage_mark(int directory, const char *name)
{
    struct und_identity identity;
    if (!und_storage_identify(directory, name, &identity))
        return 0;
    uint64_t mixed = identity.device;
    mixed = (mixed ^ identity.inode) * 0x9e3779b97f4a7c15U;
    mixed = (mixed ^ mixed >> 32 ^ identity.birth_ns) * 0xbf58476d1ce4e5b9U;
    mixed ^= mixed >> 32;
    return (uint32_t)mixed ? (uint32_t)mixed : 1;
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

/* `name` is that in the run directory, of which `end` is the last part. */
static void remove_marked(int directory, const char *end, uint32_t mark, int flags, const char *name)
{
    errno = 0;
    if (mark != 0 && und_storage_mark(directory, end) == mark)
        remove_name(directory, end, flags, run_path, name);
    else if (errno != 0)
        note_kept(run_path, name, flags);
}

/* Removes the name if it is still what was created. */
static void remove_same(int directory, const char *name, const struct und_identity *identity, int flags,
                        const char *path)
{
    if (is_same(directory, name, identity))
        remove_name(directory, name, flags, "", path);
    else if (errno != 0)
        note_kept("", path, flags);
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

bool und_storage_open(const char *directory, bool created, struct und_error *error)
{
    note_host();
    run_path = strdup(directory);
    UND_CHECK(run_path, "no memory to note %s", directory);
    /* A directory that was there may be named through a link; one that this run created is none. */
    run_descriptor = open_quietly(AT_FDCWD, directory, OPEN_DIRECTORY | (created ? O_NOFOLLOW : 0));
    if (run_descriptor < 0 || !und_storage_identify(run_descriptor, "", &run_directory.identity))
        return und_fail(error, "cannot open the run directory %s: %s", directory, strerror(errno));
    if (!created)
        return true;
    if (!open_parent(directory, &run_directory))
        return und_fail(error, "cannot open the parent of %s: %s", directory, strerror(errno));
    run_directory.ours = is_same(run_directory.directory, run_directory.name, &run_directory.identity);
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

bool und_storage_is_in_place(void)
{
    const int descriptor = run_descriptor < 0 ? -1 : open_quietly(home, run_path, OPEN_DIRECTORY);
    const bool same = descriptor >= 0 && is_same(descriptor, "", &run_directory.identity);
    const int why = errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : errno;
    if (descriptor >= 0)
        close(descriptor);
    errno = why;
    return same || run_descriptor < 0;
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

static struct entry *find(const char *path, size_t length)
{
    struct entry *entry = entries;
    while (entry && (strncmp(entry->path, path, length) != 0 || entry->path[length] != '\0'))
        entry = entry->next;
    return entry;
}

static struct entry *find_reserved(const char *path)
{
    struct entry *entry = find(path, strlen(path));
    if (!entry)
        UND_DIE("%s was not reserved", path);
    return entry;
}

/* Where the entry is in the tree: in the run directory, or in a reserved directory in it. */
static void place_entry(struct entry *entry)
{
    const size_t length = run_path ? strlen(run_path) : 0;
    if (!run_path || strncmp(entry->path, run_path, length) != 0 || entry->path[length] != '/')
        UND_DIE("%s is not in the run directory", entry->path);
    const char *rest = entry->path + length + 1, *slash = strchr(rest, '/');
    if (slash) {
        entry->parent = find(entry->path, (size_t)(slash - entry->path));
        if (!entry->parent)
            UND_DIE("%s is in a directory that was not reserved", entry->path);
        rest = slash + 1;
    }
    if (rest[0] == '\0' || strchr(rest, '/') || strcmp(rest, "..") == 0 || strcmp(rest, ".") == 0)
        UND_DIE("%s leads out of the run directory", entry->path);
    entry->name = rest;
}

void und_storage_reserve(const char *path, enum und_storage_kind kind, const struct und_store *store)
{
    const size_t bytes = strlen(path) + 1;
    struct entry *entry = calloc(1, sizeof *entry + bytes);
    UND_CHECK(entry, "no memory to note %s", path);
    memcpy(entry->path, path, bytes);
    atomic_init(&entry->ours, false);
    atomic_init(&entry->lent, false);
    entry->kind = kind;
    entry->store = store;
    entry->descriptor = -1;
    if (!store)
        place_entry(entry);
    entry->next = entries;
    entries = entry;
}

static int directory_of(const struct entry *entry)
{
    return entry->parent ? entry->parent->descriptor : run_descriptor;
}

/* What has just been created is this rank's, whether it can be told from others or not. */
static bool note_identity(struct entry *entry, int directory, const char *name)
{
    const bool known = und_storage_identify(directory, name, &entry->identity);
    if (!known)
        memset(&entry->identity, 0, sizeof entry->identity);
    entry->lent = !known && entry->kind == UND_DATA_FILE;
    entry->ours = true;
    return known;
}

/* The name in the directory, which is the working directory: tools that watch a run (Darshan) do not see calls that
 * take a descriptor. -1 with the error message. */
static int create_file(int directory, const char *name, const char *path, const struct und_striping_request *request,
                       struct und_error *error)
{
    const bool asked = request && und_striping_is_asked(request);
    if (asked && stripe_by && stripe_by->create)
        return stripe_by->create(directory, name, request, error);
    const int descriptor = asked ? -1 : open(name, CREATE_FILE, 0666);
    if (asked)
        und_fail(error, "cannot create %s with a layout: its file system has no striping backend", path);
    else if (descriptor < 0)
        und_fail(error, "cannot create %s: %s", path, strerror(errno));
    return descriptor;
}

static void enter_parent(const struct entry *entry)
{
    if (entry && entry->parent && !und_storage_enter(entry->parent->descriptor, (size_t)(entry->name - entry->path)))
        UND_DIE("cannot enter the directory %s: %s", entry->parent->path, strerror(errno));
}

static void leave_parent(const struct entry *entry)
{
    if (entry && entry->parent && !und_storage_leave())
        UND_DIE("cannot go back to the run directory from %s: %s", entry->parent->path, strerror(errno));
}

void und_storage_enter_parent(const char *path)
{
    enter_parent(find(path, strlen(path)));
}

void und_storage_leave_parent(const char *path)
{
    leave_parent(find(path, strlen(path)));
}

static bool create_in_tree(struct entry *entry, const struct und_striping_request *request, int *descriptor,
                           struct und_error *error)
{
    enter_parent(entry);
    *descriptor = create_file(directory_of(entry), entry->name, entry->path, request, error);
    leave_parent(entry);
    return *descriptor >= 0 && (note_identity(entry, *descriptor, "") ||
                                und_fail(error, "cannot create %s: %s", entry->path, strerror(errno)));
}

bool und_storage_create(const char *path, const struct und_striping_request *request, int *descriptor,
                        struct und_error *error)
{
    struct entry *entry = find_reserved(path);
    *descriptor = -1;
    und_stop_hold();
    bool created;
    if (entry->store)
        entry->ours = created = entry->store->create(path, request, error);
    else
        created = create_in_tree(entry, request, descriptor, error);
    und_stop_release();
    return created;
}

bool und_storage_find(const char *path, struct und_identity *identity)
{
    const struct entry *entry = find(path, strlen(path));
    if (!entry || !entry->ours || entry->store)
        return false;
    *identity = entry->identity;
    return true;
}

bool und_storage_is_it(int descriptor, const char *path, const struct und_identity *identity)
{
    return descriptor >= 0 ? is_same(descriptor, "", identity) : is_same(AT_FDCWD, und_storage_name(path), identity);
}

/* It is truncated once it is known: a file in its place stays as it is. */
bool und_storage_truncate(const char *path, int *descriptor, struct und_error *error)
{
    const struct entry *entry = find_reserved(path);
    *descriptor = openat(directory_of(entry), entry->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (*descriptor < 0)
        return und_fail(error, "cannot truncate %s: %s", path, strerror(errno));
    if (!entry->ours || !is_same(*descriptor, "", &entry->identity))
        return und_fail(error, "%s is no longer the file that this run created", path);
    return ftruncate(*descriptor, 0) == 0 || und_fail(error, "cannot truncate %s: %s", path, strerror(errno));
}

/* The name of the backup, which must be free or that of the one before. */
static char *backup_name(struct entry *entry, struct und_error *error)
{
    struct stat status;
    char *name = entry->backup;
    if (!name) {
        const size_t bytes = strlen(entry->name) + sizeof backup_mark;
        name = malloc(bytes);
        UND_CHECK(name, "no memory to rename %s", entry->path);
        snprintf(name, bytes, "%s%s", entry->name, backup_mark);
        if (fstatat(directory_of(entry), name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
            und_fail(error, "cannot rename %s to %s: %s", entry->path, name, strerror(EEXIST));
            free(name);
            return NULL;
        }
    } else if (!is_same(directory_of(entry), name, &entry->backup_identity)) {
        und_fail(error, "the backup %s of %s is no longer the file that this run created", name, entry->path);
        return NULL;
    }
    return name;
}

static bool back_up(struct entry *entry, struct und_error *error)
{
    const int directory = directory_of(entry);
    char *name = backup_name(entry, error);
    if (!name)
        return false;
    if (renameat(directory, entry->name, directory, name) != 0) {
        und_fail(error, "cannot rename %s to %s: %s", entry->path, name, strerror(errno));
        if (!entry->backup)
            free(name);
        return false;
    }
    entry->backup_identity = entry->identity;
    entry->backup = name;
    return true;
}

static bool remove_old(const struct entry *entry, struct und_error *error)
{
    return unlinkat(directory_of(entry), entry->name, 0) == 0 ||
           und_fail(error, "cannot remove %s: %s", entry->path, strerror(errno));
}

bool und_storage_take_away(const char *path, bool backup, struct und_error *error)
{
    struct entry *entry = find_reserved(path);
    if (!entry->ours || !is_same(directory_of(entry), entry->name, &entry->identity))
        return und_fail(error, "%s is no longer the file that this run created", path);
    und_stop_hold();
    const bool gone = backup ? back_up(entry, error) : remove_old(entry, error);
    if (gone)
        entry->ours = false;
    und_stop_release();
    return gone;
}

static bool open_directory(struct entry *entry, struct und_error *error)
{
    entry->descriptor = open_quietly(directory_of(entry), entry->name, OPEN_DIRECTORY | O_NOFOLLOW);
    return (entry->descriptor >= 0 && note_identity(entry, entry->descriptor, "")) ||
           und_fail(error, "cannot open the directory %s: %s", entry->path, strerror(errno));
}

bool und_storage_create_directory(const char *path, struct und_error *error)
{
    struct entry *entry = find_reserved(path);
    und_stop_hold();
    const bool created = mkdirat(directory_of(entry), entry->name, 0777) == 0;
    if (!created)
        und_fail(error, "cannot create the directory %s: %s", path, strerror(errno));
    const bool opened = created && open_directory(entry, error);
    und_stop_release();
    return opened;
}

bool und_storage_share(const char *path, struct und_error *error)
{
    struct entry *entry = find_reserved(path);
    return entry->descriptor >= 0 || open_directory(entry, error);
}

void und_storage_lend(const char *path)
{
    struct entry *entry = find(path, strlen(path));
    if (entry && entry->ours)
        entry->lent = true;
}

void und_storage_adopt(const char *path, int descriptor)
{
    struct entry *entry = find(path, strlen(path));
    if (!entry || entry->store)
        return;
    UND_CHECK(
        note_identity(entry, descriptor < 0 ? directory_of(entry) : descriptor, descriptor < 0 ? entry->name : ""),
        "cannot look at %s", path);
}

bool und_storage_look(const char *path, int64_t *bytes, struct und_error *error)
{
    const struct entry *entry = find_reserved(path);
    struct stat status;
    if (entry->store)
        return entry->store->look(path, bytes, error);
    if (fstatat(directory_of(entry), entry->name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        return und_fail(error, "cannot find %s again: %s", path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return und_fail(error, "%s has been replaced by something that is no file", path);
    *bytes = (int64_t)status.st_size;
    return true;
}

/* Removes a regular file that nobody else can have linked there. */
static void remove_plain(int directory, const char *name, const char *path)
{
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0)
        note_kept("", path, 0);
    else if (S_ISREG(status.st_mode) && status.st_nlink == 1 && status.st_uid == geteuid())
        remove_name(directory, name, 0, "", path);
}

static void drop(const struct entry *entry)
{
    if (entry->backup)
        remove_same(directory_of(entry), entry->backup, &entry->backup_identity, 0, entry->backup);
    if (!entry->ours)
        return;
    if (entry->store)
        entry->store->remove(entry->path);
    else if (entry->lent)
        remove_plain(directory_of(entry), entry->name, entry->path);
    else
        remove_same(directory_of(entry), entry->name, &entry->identity,
                    entry->kind == UND_DATA_DIRECTORY ? AT_REMOVEDIR : 0, entry->path);
}

/* An entry leaves the list before it is freed: the handler may come in between. */
void und_storage_drop_data(bool removing)
{
    for (struct und_storage_many *many = manies, *next; many; many = next) {
        next = many->next;
        if (removing)
            many->remove(many, UND_ITS_DIRECTORIES);
        manies = next;
        many->free(many);
    }
    for (struct entry *entry = entries, *next; entry; entry = next) {
        next = entry->next;
        if (removing)
            drop(entry);
        entries = next;
        if (entry->descriptor >= 0)
            close(entry->descriptor);
        free(entry->backup);
        free(entry);
    }
}

void und_storage_note_many(struct und_storage_many *many)
{
    many->next = manies;
    manies = many;
}

void und_storage_drop_many(bool removing)
{
    for (struct und_storage_many *many = manies; many && removing; many = many->next)
        many->remove(many, UND_ITS_FILES);
}

uint32_t und_storage_make_directory(const char *name)
{
    return mkdirat(run_descriptor, name, 0777) == 0 ? und_storage_mark(run_descriptor, name) : 0;
}

int und_storage_open_directory(const char *name, uint32_t mark)
{
    struct statx status;
    const int descriptor = open_quietly(run_descriptor, name, OPEN_PARENT | O_NOFOLLOW);
    if (descriptor < 0)
        return -1;
    const int code = statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_UID, &status) != 0 ? errno : 0;
    const uint64_t device = (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor;
    if (code == 0 && device == run_directory.identity.device && (status.stx_uid == geteuid() || geteuid() == 0) &&
        (mark == 0 || und_storage_mark(descriptor, "") == mark))
        return descriptor;
    close(descriptor);
    errno = code ? code : EPERM;
    return -1;
}

void und_storage_remove_directory(const char *name, uint32_t mark)
{
    if (mark == 0)
        remove_name(run_descriptor, name, AT_REMOVEDIR, run_path, name);
    else
        remove_marked(run_descriptor, name, mark, AT_REMOVEDIR, name);
}

void und_storage_remove_file(const char *name, uint32_t mark)
{
    const char *slash = strchr(name, '/');
    struct place place;
    if (!slash) {
        remove_marked(run_descriptor, name, mark, 0, name);
        return;
    }
    if ((size_t)(slash - name) >= sizeof place.name)
        return;
    memcpy(place.name, name, (size_t)(slash - name));
    place.name[slash - name] = '\0';
    place.directory = open_quietly(run_descriptor, place.name, OPEN_PARENT | O_NOFOLLOW);
    if (place.directory < 0) {
        note_kept(run_path, name, 0);
        return;
    }
    remove_marked(place.directory, slash + 1, mark, 0, name);
    close(place.directory);
}

bool und_storage_create_unnoted(const char *path, const struct und_striping_request *request, int *descriptor,
                                struct und_error *error)
{
    *descriptor = create_file(AT_FDCWD, und_storage_name(path), path, request, error);
    return *descriptor >= 0;
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
        result_part.ours = descriptor >= 0 && und_storage_identify(descriptor, "", &result_part.identity);
        und_stop_release();
    }
    return descriptor;
}

bool und_storage_publish_result(const char *output, struct und_error *error)
{
    const char *slash = strrchr(output, '/');
    if (!is_same(result_part.directory, result_part.name, &result_part.identity))
        return und_fail(error, "result: %s is no longer the file that this run created", result_part.name);
    if (renameat(result_part.directory, result_part.name, result_part.directory, slash ? slash + 1 : output) != 0)
        return und_fail(error, "result: cannot rename %s to %s: %s", result_part.name, output, strerror(errno));
    result_part.ours = false;
    return true;
}

bool und_storage_result_part(char *path, size_t size, struct und_identity *identity)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", result_part.directory);
    const ssize_t length = result_part.ours ? readlink(link, path, size) : -1;
    if (length < 0 || (size_t)length + 1 + strlen(result_part.name) >= size)
        return false;
    snprintf(path + length, size - (size_t)length, "/%s", result_part.name);
    *identity = result_part.identity;
    return true;
}

bool und_storage_is_created(void)
{
    return run_directory.ours;
}

bool und_storage_create_claim(int *descriptor, struct und_error *error)
{
    und_stop_hold();
    *descriptor = (int)syscall(SYS_openat, run_descriptor, UND_CLAIM, CREATE_FILE, 0600);
    claim.directory = run_descriptor;
    claim.ours = *descriptor >= 0 && und_storage_identify(*descriptor, "", &claim.identity);
    const int code = errno;
    und_stop_release();
    return claim.ours ||
           und_fail(error, code == EEXIST ? "%s: another run has begun there" : "cannot write to the directory %s",
                    run_path);
}

void und_storage_share_claim(MPI_Comm comm)
{
    UND_MPI(MPI_Bcast(&claim.identity, sizeof claim.identity, MPI_BYTE, 0, comm), "cannot share the claim on %s",
            run_path);
    claim.directory = run_descriptor;
    claim.ours = true;
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
    bool only = claim.ours && directory >= 0;
    for (long bytes; only && (bytes = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) > 0;)
        for (long at = 0; only && at < bytes;) {
            const char *name = name_at(buffer, &at);
            only = strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strcmp(name, UND_CLAIM) == 0;
        }
    if (directory >= 0)
        close(directory);
    return only;
}

static void remove_place(const struct place *place, int flags, const char *path)
{
    if (place->ours)
        remove_same(place->directory, place->name, &place->identity, flags, path);
}

/* What takes no time first: a launcher does not wait long for ranks to end. */
static void remove_files(void)
{
    remove_place(&result_part, 0, result_part.name);
    for (struct und_storage_many *many = manies; many; many = many->next)
        many->remove(many, UND_ITS_FILES);
    for (struct entry *entry = entries; entry; entry = entry->next)
        if (entry->kind != UND_DATA_DIRECTORY)
            drop(entry);
}

static void remove_directories(void)
{
    for (struct und_storage_many *many = manies; many; many = many->next)
        many->remove(many, UND_ALL_DIRECTORIES);
    for (struct entry *entry = entries; entry; entry = entry->next)
        if (entry->kind == UND_DATA_DIRECTORY)
            drop(entry);
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
    remove_directories();
    remove_claim(only_claim_is_left());
}

void und_storage_disclaim(void)
{
    remove_claim(true);
    claim.ours = false;
}

int64_t und_storage_fail(void)
{
    remove_files();
    close_files();
    remove_directories();
    remove_claim(only_claim_is_left());
    return atomic_exchange(&kept.count, 0);
}

int64_t und_storage_end_failure(void)
{
    remove_directories();
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
