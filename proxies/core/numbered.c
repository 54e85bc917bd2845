#include "core/numbered.h"

#include "core/die.h"
#include "core/stop.h"
#include "core/storage.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Characters behind a stem: ".d", "/", two numbers, a suffix and what is put behind it. */
enum { TAIL = 96, FILE_DIGITS = 8, DIRECTORY_DIGITS = 6 };

struct und_numbered *und_numbered_new(const struct und_run *run, const char *stem, const char *suffix,
                                      int64_t per_directory)
{
    const char *directory = run->plan->directory;
    const size_t root = strlen(directory) + 1, length = strlen(stem), end = suffix ? strlen(suffix) : 0;
    struct und_numbered *set = malloc(sizeof *set + root + length + end + TAIL);
    UND_CHECK(set, "no memory for the names of %s", stem);
    memset(set, 0, sizeof *set);
    set->run = run;
    set->suffix = suffix ? suffix : "";
    set->per_directory = per_directory;
    set->entered = -1;
    set->root = root;
    memcpy(set->path, directory, root - 1);
    set->path[root - 1] = '/';
    und_numbered_restem(set, stem);
    return set;
}

void und_numbered_free(struct und_numbered *set)
{
    if (set)
        free(set->marks);
    free(set);
}

void und_numbered_restem(struct und_numbered *set, const char *stem)
{
    const size_t length = strlen(stem);
    memcpy(set->path + set->root, stem, length + 1);
    set->stem = set->root + length;
}

/* At least so many digits; snprintf takes longer than the file is open. */
static char *put_number(char *to, int64_t number, int digits)
{
    char reversed[20];
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

static char *put_directory(struct und_numbered *set, int64_t directory)
{
    return put_number(put_text(set->path + set->stem, ".d"), directory, DIRECTORY_DIGITS);
}

const char *und_numbered_path(struct und_numbered *set, int64_t number, const char *extra)
{
    char *to = set->path + set->stem;
    if (set->per_directory > 0)
        to = put_directory(set, number / set->per_directory);
    *to++ = set->per_directory > 0 ? '/' : '.';
    to = put_text(put_text(put_number(to, number, FILE_DIGITS), set->suffix), extra);
    *to = '\0';
    return set->path;
}

/* Directories that hold so many files. */
static int64_t directories_of(const struct und_numbered *set, int64_t files)
{
    return set->per_directory > 0 && files > 0 ? (files - 1) / set->per_directory + 1 : 0;
}

static const char *directory_name(struct und_numbered *set, int64_t directory)
{
    *put_directory(set, directory) = '\0';
    return set->path + set->root;
}

/* Of a directory that this rank has made; 0: another rank has. */
static uint32_t mark_of(const struct und_numbered *set, int64_t directory)
{
    const int64_t number = directory / set->run->ranks;
    return directory % set->run->ranks == set->run->rank && number < set->made ? set->marks[number] : 0;
}

static int open_directory(struct und_numbered *set, int64_t directory)
{
    const int descriptor = und_storage_open_directory(directory_name(set, directory), mark_of(set, directory));
    UND_CHECK(descriptor >= 0, "%s is no longer the directory that this run created", set->path);
    return descriptor;
}

void und_numbered_enter(struct und_numbered *set, int64_t number)
{
    const int64_t directory = set->per_directory > 0 ? number / set->per_directory : -1;
    if (set->entered == directory)
        return;
    und_numbered_leave(set);
    set->descriptor = open_directory(set, directory);
    set->entered = directory;
    UND_CHECK(und_storage_enter(set->descriptor, strlen(set->path) + 1), "cannot enter the directory %s", set->path);
}

void und_numbered_leave(struct und_numbered *set)
{
    if (set->entered < 0)
        return;
    close(set->descriptor);
    set->entered = -1;
    UND_CHECK(und_storage_leave(), "cannot go back to the run directory from %s", set->path);
}

void und_numbered_check_directories(struct und_numbered *set, int64_t files)
{
    const int64_t end = directories_of(set, files);
    for (int64_t d = set->run->rank; d < end; d += set->run->ranks)
        close(open_directory(set, d));
}

void und_numbered_reserve(struct und_numbered *set, int64_t more)
{
    const int64_t needed = set->made + more;
    if (needed <= set->capacity)
        return;
    const int64_t capacity = needed > 2 * set->capacity ? needed : 2 * set->capacity;
    und_stop_hold();
    uint32_t *marks = realloc(set->marks, (size_t)capacity * sizeof *marks);
    UND_CHECK(marks, "no memory to note the directories of %s", set->path);
    set->marks = marks;
    set->capacity = capacity;
    und_stop_release();
}

void und_numbered_make_directory(struct und_numbered *set)
{
    const char *name = directory_name(set, set->made * set->run->ranks + set->run->rank);
    und_stop_hold();
    set->marks[set->made] = und_storage_make_directory(name);
    UND_CHECK(set->marks[set->made] != 0, "cannot create the directory %s", set->path);
    ++set->made;
    und_stop_release();
}

void und_numbered_make_directories(struct und_numbered *set, int64_t files)
{
    const int64_t end = directories_of(set, files), ranks = set->run->ranks;
    if (end <= set->ready)
        return;
    const int64_t own = (end + ranks - 1 - set->run->rank) / ranks;
    und_numbered_reserve(set, own - set->made);
    while (set->made < own)
        und_numbered_make_directory(set);
    UND_MPI(MPI_Barrier(set->run->comm), "cannot wait for the directories of %s", set->path);
    set->ready = end;
}

void und_numbered_remove_directories(struct und_numbered *set, bool all)
{
    for (int64_t d = 0; d < set->made; ++d)
        und_storage_remove_directory(directory_name(set, d * set->run->ranks + set->run->rank), set->marks[d]);
    for (int64_t d = 0; d < set->ready && all; ++d)
        if (mark_of(set, d) == 0)
            und_storage_remove_directory(directory_name(set, d), 0);
}

void und_numbered_remove(struct und_numbered *set, int64_t number, const char *extra, uint32_t mark)
{
    und_numbered_path(set, number, extra);
    und_storage_remove_file(set->path + set->root, mark);
}
