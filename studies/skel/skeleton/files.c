/*
 * The run directory and the files of the run in it. Everything is removed relative to the descriptor of the
 * directory, without following links, and only regular files under the names that this run writes: what
 * somebody else put there stays.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* SYS_getdents64 */
#endif
#include "internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ENTRIES_BYTES = 4096 };

/* ---- Names ---- */

void skeleton_file_name(const struct skeleton *run, const char *group, int step, char name[NAME_BYTES])
{
    if (run->options.append)
        snprintf(name, NAME_BYTES, "%.*s.bp", MAX_GROUP_BYTES, group);
    else
        snprintf(name, NAME_BYTES, "%.*s.%d.bp", MAX_GROUP_BYTES, group, step);
}

bool skeleton_file_path(const struct skeleton *run, const char *name, char path[PATH_BYTES])
{
    return snprintf(path, PATH_BYTES, "%s/%s", run->options.directory, name) < PATH_BYTES;
}

/* The text behind a '.' and a number of at most `maximum`; NULL where there is none. */
const char *skeleton_behind_number(const char *text, int maximum)
{
    int64_t value = 0;
    if (*text++ != '.' || !isdigit((unsigned char)*text))
        return NULL;
    for (; isdigit((unsigned char)*text) && value <= maximum; ++text)
        value = 10 * value + (*text - '0');
    return value <= maximum ? text : NULL;
}

/* The text behind the name of a file of this group that was opened; NULL for any other name. */
static const char *behind_file(const struct skeleton *run, const char *name, const struct group *group)
{
    const size_t length = strlen(group->name);
    if (group->opened < 0 || strncmp(name, group->name, length) != 0)
        return NULL;
    const char *rest = run->options.append ? name + length : skeleton_behind_number(name + length, group->opened);
    return rest && strncmp(rest, ".bp", 3) == 0 ? rest + 3 : NULL;
}

/* ---- Directories, by calls that are safe in a signal handler and are not intercepted ---- */

struct listing {
    int descriptor;
    long at, bytes;
    _Alignas(8) char entries[ENTRIES_BYTES];
};

static bool open_listing(struct listing *listing, int parent, const char *name)
{
    listing->descriptor = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    listing->at = listing->bytes = 0;
    return listing->descriptor >= 0;
}

static const char *next_entry(struct listing *listing)
{
    if (listing->at >= listing->bytes) {
        listing->bytes = syscall(SYS_getdents64, listing->descriptor, listing->entries, sizeof listing->entries);
        listing->at = 0;
    }
    if (listing->at >= listing->bytes)
        return NULL;
    const struct dirent64 *entry = (const struct dirent64 *)(listing->entries + listing->at);
    listing->at += entry->d_reclen;
    return entry->d_name;
}

static void close_listing(const struct listing *listing)
{
    syscall(SYS_close, listing->descriptor); /* close is intercepted */
}

static bool is_regular(int directory, const char *name, int64_t *bytes)
{
    struct stat status;
    if (fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode))
        return false;
    *bytes = (int64_t)status.st_size;
    return true;
}

void skeleton_remove_regular(int directory, const char *name)
{
    int64_t bytes;
    if (is_regular(directory, name, &bytes))
        unlinkat(directory, name, 0);
}

/* ---- Files of the run ---- */

/* In the directory of a file, given as `folder`: their bytes and number, or their removal. */
static void visit_subfiles(const struct skeleton *run, const char *folder, bool removes, int64_t *bytes, int64_t *files)
{
    struct listing listing;
    const char *entry;
    int64_t size;
    if (!open_listing(&listing, run->directory, folder))
        return;
    while ((entry = next_entry(&listing)))
        if (skeleton_is_subfile(run, entry, folder) && is_regular(listing.descriptor, entry, &size)) {
            *bytes += size;
            ++*files;
            if (removes)
                unlinkat(listing.descriptor, entry, 0);
        }
    close_listing(&listing);
    if (removes)
        unlinkat(run->directory, folder, AT_REMOVEDIR);
}

void skeleton_measure_file(const struct skeleton *run, const char *name, int64_t *bytes, int64_t *files)
{
    char folder[NAME_BYTES + 8];
    *bytes = *files = 0;
    if (is_regular(run->directory, name, bytes))
        *files = 1;
    snprintf(folder, sizeof folder, "%s%s", name, skeleton_folder_ending);
    visit_subfiles(run, folder, false, bytes, files);
}

void skeleton_remove_file(const struct skeleton *run, const char *name)
{
    char folder[NAME_BYTES + 8];
    int64_t bytes = 0, files = 0;
    skeleton_remove_regular(run->directory, name);
    snprintf(folder, sizeof folder, "%s%s", name, skeleton_folder_ending);
    visit_subfiles(run, folder, true, &bytes, &files);
}

/* What is behind the name of a file that was opened, in an entry of the run directory; NULL: it is not of the run. */
static const char *behind_ours(const struct skeleton *run, const char *entry)
{
    const char *rest = NULL;
    for (int g = 0; !rest && g < run->group_count; ++g)
        rest = behind_file(run, entry, &run->groups[g]);
    return rest && (*rest == '\0' || strcmp(rest, skeleton_folder_ending) == 0) ? rest : NULL;
}

void skeleton_remove_all(const struct skeleton *run)
{
    struct listing listing;
    const char *entry, *rest;
    int64_t bytes = 0, files = 0;
    if (run->directory >= 0 && open_listing(&listing, run->directory, ".")) {
        while ((entry = next_entry(&listing)))
            if ((rest = behind_ours(run, entry))) {
                skeleton_remove_regular(run->directory, entry);
                if (strcmp(rest, skeleton_folder_ending) == 0)
                    visit_subfiles(run, entry, true, &bytes, &files);
            }
        close_listing(&listing);
    }
    if (run->opened_timers)
        skeleton_remove_file(run, SKELETON_TIMERS);
    skeleton_remove_config(run);
    skeleton_remove_directory(run);
}

bool skeleton_file_exists(const struct skeleton *run, const char *name)
{
    char folder[NAME_BYTES + 8];
    struct stat status;
    snprintf(folder, sizeof folder, "%s%s", name, skeleton_folder_ending);
    return fstatat(run->directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ||
           fstatat(run->directory, folder, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- The run directory ---- */

bool skeleton_directory_is_there(const struct skeleton *run)
{
    struct stat named, opened;
    return stat(run->options.directory, &named) == 0 && fstat(run->directory, &opened) == 0 &&
           named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

static bool is_empty(int directory)
{
    struct listing listing;
    const char *entry;
    bool empty = true;
    if (!open_listing(&listing, directory, "."))
        return false;
    while ((entry = next_entry(&listing)))
        empty = empty && (strcmp(entry, ".") == 0 || strcmp(entry, "..") == 0);
    close_listing(&listing);
    return empty;
}

/* Only if it is still the one that the run opened; an empty one. */
void skeleton_remove_directory(const struct skeleton *run)
{
    struct stat opened, named;
    if (run->made_directory && fstat(run->directory, &opened) == 0 &&
        fstatat(AT_FDCWD, run->options.directory, &named, AT_SYMLINK_NOFOLLOW) == 0 && opened.st_dev == named.st_dev &&
        opened.st_ino == named.st_ino)
        unlinkat(AT_FDCWD, run->options.directory, AT_REMOVEDIR);
}

/* Can the result be written, next to which nothing else is touched? A new file of its name would take the place of a
 * device, or of a link such as /dev/stdout. */
static bool can_write_beside(const char *path)
{
    char folder[PATH_BYTES];
    struct stat there, parent, devices;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        errno = S_ISDIR(there.st_mode) ? EISDIR : EINVAL;
        return false;
    }
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    if (stat(slash ? folder : ".", &parent) == 0 && stat("/dev", &devices) == 0 && parent.st_dev == devices.st_dev &&
        parent.st_ino == devices.st_ino) {
        errno = EINVAL;
        return false;
    }
    return access(slash ? folder : ".", W_OK | X_OK) == 0;
}

void skeleton_prepare_directory(struct skeleton *run)
{
    const char *path = run->options.directory;
    enum { CREATED, CREATE_ERROR, OPEN_ERROR, NOT_EMPTY, RESULT_ERROR, FACTS };
    int facts[FACTS] = {0};
    if (run->rank == 0) {
        facts[CREATED] = mkdir(path, 0777) == 0;
        facts[CREATE_ERROR] = facts[CREATED] || errno == EEXIST ? 0 : errno;
        facts[RESULT_ERROR] = can_write_beside(run->options.result) ? 0 : errno;
    }
    PMPI_Bcast(facts, FACTS, MPI_INT, 0, run->comm);
    run->made_directory = facts[CREATED] != 0;
    if (!facts[CREATE_ERROR]) {
        run->directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        facts[OPEN_ERROR] = run->directory < 0 ? errno : 0;
        facts[NOT_EMPTY] = run->rank == 0 && run->directory >= 0 && !is_empty(run->directory);
    }
    PMPI_Allreduce(MPI_IN_PLACE, facts, FACTS, MPI_INT, MPI_MAX, run->comm);
    if (facts[CREATE_ERROR])
        skeleton_leave(run, 0, "%s: cannot be created: %s", path, strerror(facts[CREATE_ERROR]));
    if (facts[OPEN_ERROR])
        skeleton_leave(run, 0, "%s: cannot be opened: %s", path, strerror(facts[OPEN_ERROR]));
    if (facts[NOT_EMPTY])
        skeleton_leave(run, 0, "%s is not empty; expected an empty directory, or one to be created", path);
    if (facts[RESULT_ERROR])
        skeleton_leave(run, 0, "%s: cannot be written: %s", run->options.result, strerror(facts[RESULT_ERROR]));
    struct und_error error;
    if (run->rank == 0 && !und_storage_read(path, &run->storage, &error))
        skeleton_die(run, "%s", error.text);
}
