#include "storage/files.h"

#include "job/die.h"
#include "job/stop.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NUMBER_BYTES = 24 };

static size_t bytes_of(const struct und_names *names)
{
    return strlen(names->stem) + strlen(names->tail) + 2 * NUMBER_BYTES;
}

/* At least so many digits; snprintf takes longer than the file is open. */
static char *put_number(char *to, int64_t number, int digits)
{
    char reversed[NUMBER_BYTES];
    int count = 0;
    for (; number > 0 || count < digits; number /= 10)
        reversed[count++] = (char)('0' + number % 10);
    while (count > 0)
        *to++ = reversed[--count];
    return to;
}

static char *put_text(char *to, const char *text)
{
    while (*text)
        *to++ = *text++;
    return to;
}

static char *put_name(char *to, const struct und_names *names, int64_t number)
{
    to = put_text(to, names->stem);
    if (names->digits > 0)
        to = put_number(put_text(to, names->separator), number, names->digits);
    return put_text(to, names->tail);
}

struct und_files *und_files_new(const struct und_run *run, const struct und_names *names, struct und_files *parents,
                                int64_t group)
{
    const char *directory = run->plan->directory;
    const size_t stem = strlen(names->stem) + 1, tail = strlen(names->tail) + 1, root = strlen(directory) + 1;
    const size_t bytes = stem + tail + root + (parents ? bytes_of(&parents->names) : 0) + bytes_of(names);
    struct und_files *files = und_allocate(1, sizeof *files + bytes, names->stem);
    files->directory = run->directory;
    files->parents = parents;
    files->group = group;
    files->step = 1;
    files->opened = files->at = -1;
    files->names = *names;
    files->names.stem = memcpy(files->text, names->stem, stem);
    files->names.tail = memcpy(files->text + stem, names->tail, tail);
    files->path = files->text + stem + tail;
    files->root = root;
    *put_text(put_text(files->path, directory), "/") = '\0';
    return files;
}

struct und_files *und_files_new_directories(const struct und_run *run, const char *stem)
{
    const struct und_names names = {.stem = stem, .separator = ".d", .digits = 6, .tail = ""};
    struct und_files *directories = und_files_new(run, &names, NULL, 0);
    directories->are_directories = true;
    directories->first = run->rank;
    directories->step = run->ranks;
    return directories;
}

struct und_files *und_files_new_numbered(const struct und_run *run, const char *stem, const char *suffix, int64_t group)
{
    struct und_files *parents = group > 0 ? und_files_new_directories(run, stem) : NULL;
    const struct und_names names = {
        .stem = parents ? "" : stem, .separator = parents ? "" : ".", .digits = 8, .tail = suffix};
    struct und_files *files = und_files_new(run, &names, parents, group);
    files->has_own_directories = parents != NULL;
    return files;
}

static void release(struct und_files *files)
{
    if (files->opened >= 0)
        close(files->descriptor);
    free(files->sequence);
    free(files->marks);
    free(files->others);
    free(files);
}

void und_files_free(struct und_files *files)
{
    if (files && files->has_own_directories)
        und_files_free(files->parents);
    if (files && !files->is_noted)
        release(files);
}

struct und_files *und_files_noted(struct und_files *files)
{
    struct und_files *same = files->directory->files;
    while (same &&
           (strcmp(same->names.stem, files->names.stem) != 0 || strcmp(same->names.tail, files->names.tail) != 0))
        same = same->next;
    if (!same || files->is_noted)
        return files;
    release(files);
    return same;
}

static uint64_t *grow(const struct und_files *files, uint64_t *marks, int64_t capacity)
{
    marks = realloc(marks, (size_t)capacity * sizeof *marks);
    UND_CHECK(marks, "no memory to note the files %s", files->path);
    memset(marks + files->capacity, 0, (size_t)(capacity - files->capacity) * sizeof *marks);
    return marks;
}

void und_files_note(struct und_files *files, int64_t capacity)
{
    if (files->parents && !files->parents->is_noted)
        und_files_note(files->parents, 0);
    und_stop_hold();
    if (capacity > files->capacity) {
        capacity = files->capacity > 0 && capacity < 2 * files->capacity ? 2 * files->capacity : capacity;
        files->marks = grow(files, files->marks, capacity);
        if (files->other)
            files->others = grow(files, files->others, capacity);
        files->capacity = capacity;
    }
    if (!files->is_noted) {
        files->is_noted = true;
        /* The handler may run between any two instructions, so a set is complete before it is linked. */
        files->next = files->directory->files;
        files->directory->files = files;
        und_directory_remove_by(files->directory, und_files_remove);
    }
    und_stop_release();
}

/* Writes the path of the file with the number; nobody has it for another in between. */
static const char *put_path(struct und_files *files, int64_t number, bool other)
{
    char *to = files->path + files->root;
    files->at = -1;
    atomic_signal_fence(memory_order_seq_cst);
    if (files->parents)
        to = put_text(put_name(to, &files->parents->names, number / files->group), "/");
    to = put_name(to, &files->names, number);
    *put_text(to, other ? files->other : "") = '\0';
    return files->path;
}

const char *und_files_path(struct und_files *files, int64_t k, bool other)
{
    if (files->at == k && files->at_other == other)
        return files->path;
    files->number = files->number_of ? files->number_of(files->sequence, k) : files->first + k * files->step;
    put_path(files, files->number, other);
    files->at_other = other;
    atomic_signal_fence(memory_order_seq_cst);
    files->at = k;
    return files->path;
}

/* The mark of a directory; 0: this rank has not made it. */
static uint64_t mark_of(const struct und_files *directories, int64_t number)
{
    const int64_t k = (number - directories->first) / directories->step;
    const bool is_own = number >= directories->first && (number - directories->first) % directories->step == 0;
    return is_own && k < directories->capacity ? directories->marks[k] : 0;
}

static int open_directory(struct und_files *directories, int64_t number)
{
    const char *name = put_path(directories, number, false) + directories->root;
    const int descriptor = und_directory_open_subdirectory(directories->directory, name, mark_of(directories, number));
    UND_CHECK(descriptor >= 0, "%s is no longer the directory that this run created", directories->path);
    return descriptor;
}

static void close_directory(struct und_files *directories)
{
    if (directories->opened >= 0)
        close(directories->descriptor);
    directories->opened = -1;
}

void und_files_enter(struct und_files *files, int64_t k)
{
    struct und_files *parents = files->parents;
    if (!parents || !files->is_noted)
        return;
    const char *path = und_files_path(files, k, false);
    const int64_t directory = files->number / files->group;
    if (parents->is_inside && parents->opened == directory)
        return;
    if (parents->opened != directory) {
        close_directory(parents);
        parents->descriptor = open_directory(parents, directory);
        parents->opened = directory;
    }
    UND_CHECK(und_directory_enter(files->directory, parents->descriptor, (size_t)(strrchr(path, '/') + 1 - path)),
              "cannot enter the directory of %s", path);
    parents->is_inside = true;
}

void und_files_leave(struct und_files *files)
{
    struct und_files *parents = files->parents;
    if (!parents || !parents->is_inside)
        return;
    parents->is_inside = false;
    if (!parents->stays_open)
        close_directory(parents);
    UND_CHECK(und_directory_leave(files->directory), "cannot go back to the run directory from that of %s",
              files->path);
}

/* Until it has a mark, nobody knows that the file is this rank's. */
static bool note_mark(struct und_files *files, int64_t k, int descriptor)
{
    const char *name = descriptor < 0 ? und_directory_name(files->directory, und_files_path(files, k, false)) : "";
    const uint64_t mark = und_identity_mark(descriptor < 0 ? AT_FDCWD : descriptor, name);
    files->marks[k] = mark ? mark : UND_UNKNOWN;
    return mark != 0;
}

/* A file that is a directory. */
static bool make_directory_of(const struct und_files *files, const char *path, int *descriptor, struct und_error *error)
{
    *descriptor = -1;
    return mkdir(und_directory_name(files->directory, path), 0777) == 0 ||
           und_fail(error, "cannot create the directory %s: %s", path, strerror(errno));
}

bool und_files_create(struct und_files *files, int64_t k, const struct und_layout_request *request, int *descriptor,
                      struct und_error *error)
{
    und_files_enter(files, k);
    const char *path = und_files_path(files, k, false);
    und_stop_hold();
    bool created = files->is_member ? make_directory_of(files, path, descriptor, error)
                                    : und_directory_create(files->directory, path, request, descriptor, error);
    if (created && !note_mark(files, k, *descriptor))
        created = und_fail(error, "cannot create %s: %s", path, strerror(errno));
    und_stop_release();
    return created;
}

void und_files_adopt(struct und_files *files, int64_t k, int descriptor)
{
    und_files_enter(files, k);
    UND_CHECK(note_mark(files, k, descriptor), "cannot look at %s", und_files_path(files, k, false));
}

void und_files_lend(struct und_files *files, int64_t k)
{
    if (files->marks[k] != 0)
        files->marks[k] = UND_UNKNOWN;
}

void und_files_take_back(struct und_files *files, int64_t k)
{
    if (files->marks[k] != UND_UNKNOWN)
        return;
    und_files_adopt(files, k, -1);
    und_files_leave(files);
}

struct und_shared und_files_share(const struct und_files *files, int64_t k)
{
    const bool is_own = k < files->capacity && files->marks[k] != 0;
    return is_own ? und_directory_share(files->directory, files->marks[k]) : (struct und_shared){0, 0};
}

/* It is truncated once it is known: a file in its place stays as it is. */
bool und_files_truncate(struct und_files *files, int64_t k, int *descriptor, struct und_error *error)
{
    und_files_enter(files, k);
    const char *path = und_files_path(files, k, false);
    *descriptor = openat(AT_FDCWD, und_directory_name(files->directory, path), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (*descriptor < 0)
        return und_fail(error, "cannot truncate %s: %s", path, strerror(errno));
    if (!und_identity_matches(*descriptor, "", files->marks[k]))
        return und_fail(error, "%s is no longer the file that this run created", path);
    return ftruncate(*descriptor, 0) == 0 || und_fail(error, "cannot truncate %s: %s", path, strerror(errno));
}

static bool is_ours(struct und_files *files, int64_t k, bool other, struct und_error *error)
{
    const char *path = und_files_path(files, k, other);
    return und_identity_matches(AT_FDCWD, und_directory_name(files->directory, path),
                                (other ? files->others : files->marks)[k]) ||
           und_fail(error, "%s is no longer the file that this run created", path);
}

bool und_files_may_go(struct und_files *files, int64_t k, bool other, bool renames, struct und_error *error)
{
    und_files_enter(files, k);
    if (!is_ours(files, k, other, error))
        return false;
    if (!renames || files->others[k] != 0)
        return !renames || is_ours(files, k, true, error);
    const char *path = und_files_path(files, k, true);
    return und_identity_mark(AT_FDCWD, und_directory_name(files->directory, path)) == 0 ||
           und_fail(error, "cannot rename a file to %s: %s", path, strerror(EEXIST));
}

bool und_files_take_away(struct und_files *files, int64_t k, bool other, bool renames, struct und_error *error)
{
    uint64_t *mark = &(other ? files->others : files->marks)[k];
    char name[NAME_MAX + 1];
    und_files_enter(files, k);
    snprintf(name, sizeof name, "%s", und_directory_name(files->directory, und_files_path(files, k, other)));
    const char *to = und_directory_name(files->directory, und_files_path(files, k, other || renames));
    und_stop_hold();
    const bool is_away = renames ? rename(name, to) == 0 : unlink(name) == 0;
    if (is_away) {
        if (renames)
            files->others[k] = *mark;
        *mark = 0;
    } else {
        und_fail(error, "cannot %s %s: %s", renames ? "rename" : "remove", name, strerror(errno));
    }
    und_stop_release();
    return is_away;
}

bool und_files_look(struct und_files *files, int64_t k, int64_t *bytes, struct und_error *error)
{
    und_files_enter(files, k);
    const char *path = und_files_path(files, k, false);
    struct stat status;
    if (fstatat(AT_FDCWD, und_directory_name(files->directory, path), &status, AT_SYMLINK_NOFOLLOW) != 0)
        return und_fail(error, "cannot find %s again: %s", path, strerror(errno));
    if (files->is_member && S_ISDIR(status.st_mode))
        return und_directory_add_up(files->directory, path, bytes, error);
    if (!S_ISREG(status.st_mode))
        return und_fail(error, "%s has been replaced by something that is no file", path);
    *bytes = (int64_t)status.st_size;
    return true;
}

bool und_files_have_directory(struct und_files *directories, int64_t k, bool creates, struct und_error *error)
{
    const char *path = und_files_path(directories, k, false);
    uint64_t *mark = &directories->marks[k];
    und_stop_hold();
    if (creates || *mark == 0)
        *mark = und_directory_have_subdirectory(directories->directory, path + directories->root, creates ? 0777 : 0);
    und_stop_release();
    return *mark != 0 ||
           und_fail(error, "cannot %s the directory %s: %s", creates ? "create" : "find", path, strerror(errno));
}

/* Directories that hold so many files. */
static int64_t directories_of(const struct und_files *files, int64_t count)
{
    return files->parents && count > 0 ? (count - 1) / files->group + 1 : 0;
}

void und_files_make_directories(struct und_files *files, const struct und_run *run, int64_t count)
{
    struct und_files *parents = files->parents;
    const int64_t end = directories_of(files, count);
    if (!parents || end <= parents->ready)
        return;
    const int64_t count_of_rank = (end + parents->step - 1 - parents->first) / parents->step;
    struct und_error error;
    und_files_note(parents, count_of_rank);
    for (; parents->count < count_of_rank; ++parents->count)
        if (!und_files_have_directory(parents, parents->count, true, &error))
            UND_DIE("%s", error.text);
    UND_MPI(MPI_Barrier(run->comm), "cannot wait for the directories of %s", files->path);
    parents->ready = end;
}

void und_files_check_directories(struct und_files *files, int64_t count)
{
    const int64_t end = directories_of(files, count);
    for (int64_t d = files->parents ? files->parents->first : end; d < end; d += files->parents->step)
        close(open_directory(files->parents, d));
}

static void remove_file(struct und_files *files, int64_t k, bool other)
{
    const struct und_files *parents = files->parents;
    const uint64_t mark = (other ? files->others : files->marks)[k];
    if (mark == 0)
        return;
    const char *path = und_files_path(files, k, other);
    if (files->is_member) {
        und_directory_remove_members(files->directory, path + files->root, mark, files->is_member);
        return;
    }
    const bool is_open = parents && parents->opened == files->number / files->group;
    und_directory_remove_name(files->directory, is_open ? parents->descriptor : -1, path + files->root, mark,
                              files->are_directories);
}

void und_files_remove(struct und_directory *directory, enum und_removal part)
{
    for (struct und_files *files = directory->files; files; files = files->next) {
        /* A library may have gone on with the files in its directory. */
        if (files->is_member ? part == UND_ITS_DIRECTORIES : files->are_directories == (part == UND_ITS_FILES))
            continue;
        for (int64_t k = 0; k < files->capacity; ++k) {
            remove_file(files, k, false);
            if (files->others)
                remove_file(files, k, true);
        }
        for (int64_t d = 0; d < files->ready && part == UND_ALL_DIRECTORIES; ++d)
            if (mark_of(files, d) == 0)
                und_directory_remove_name(files->directory, -1, put_path(files, d, false) + files->root, UND_UNKNOWN,
                                          true);
    }
}

/* A set leaves the list before it is freed: the handler may come in between. */
void und_files_forget(struct und_directory *directory)
{
    for (struct und_files *files = directory->files, *next; files; files = next) {
        next = files->next;
        directory->files = next;
        release(files);
    }
}
