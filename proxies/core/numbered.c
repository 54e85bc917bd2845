#include "core/numbered.h"

#include "core/die.h"
#include "core/stop.h"
#include "core/storage.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Characters behind a stem: ".d", "/", two numbers, a suffix and what is put behind it. */
enum { TAIL = 96, FILE_DIGITS = 8, DIRECTORY_DIGITS = 6 };

struct und_numbered *und_numbered_new(const char *directory, const char *stem, const char *suffix,
                                      int64_t per_directory)
{
    const size_t root = strlen(directory) + 1, length = strlen(stem), end = suffix ? strlen(suffix) : 0;
    struct und_numbered *set = malloc(sizeof *set + root + length + end + TAIL);
    if (!set)
        return NULL;
    set->suffix = suffix ? suffix : "";
    set->per_directory = per_directory;
    set->ready = set->pending = 0;
    set->root = root;
    memcpy(set->path, directory, root - 1);
    set->path[root - 1] = '/';
    und_numbered_restem(set, stem);
    return set;
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

int64_t und_numbered_directories(const struct und_numbered *set, int64_t files)
{
    return set->per_directory > 0 && files > 0 ? (files - 1) / set->per_directory + 1 : 0;
}

const char *und_numbered_directory(struct und_numbered *set, int64_t directory)
{
    *put_directory(set, directory) = '\0';
    return set->path;
}

static const char *directory_name(struct und_numbered *set, int64_t directory)
{
    return und_numbered_directory(set, directory) + set->root;
}

/* Of the directories that are not ready, the first that is this rank's to make. */
static int64_t first_pending(const struct und_numbered *set, int rank, int ranks)
{
    return set->ready + (rank + ranks - set->ready % ranks) % ranks;
}

int und_numbered_enter(struct und_numbered *set, int64_t directory)
{
    const char *name = set->per_directory > 0 ? directory_name(set, directory) : ".";
    const int descriptor = und_storage_enter_directory(name);
    if (descriptor < 0 && set->per_directory == 0)
        set->path[set->root - 1] = '\0';
    UND_CHECK(descriptor >= 0, "%s is no longer the directory that this run created", set->path);
    return descriptor;
}

void und_numbered_check_directories(struct und_numbered *set, int64_t files, const struct und_run *run)
{
    const int64_t end = und_numbered_directories(set, files);
    for (int64_t d = run->rank; d < end; d += run->ranks)
        close(und_numbered_enter(set, d));
}

void und_numbered_make_directories(struct und_numbered *set, int64_t files, const struct und_run *run)
{
    const int64_t end = und_numbered_directories(set, files);
    if (end <= set->ready)
        return;
    for (int64_t d = first_pending(set, run->rank, run->ranks); d < end; d += run->ranks) {
        const char *name = directory_name(set, d);
        und_stop_hold();
        UND_CHECK(und_storage_make_directory(name), "cannot create the directory %s", set->path);
        ++set->pending;
        und_stop_release();
    }
    UND_MPI(MPI_Barrier(run->comm), "cannot wait for the directories of %s", set->path);
    und_stop_hold();
    set->ready = end;
    set->pending = 0;
    und_stop_release();
}

void und_numbered_remove_directory(struct und_numbered *set, int64_t directory)
{
    und_storage_remove_directory(directory_name(set, directory));
}

void und_numbered_remove_directories(struct und_numbered *set, int rank, int ranks, bool all)
{
    for (int64_t d = all ? 0 : rank; d < set->ready; d += all ? 1 : ranks)
        und_numbered_remove_directory(set, d);
    for (int64_t i = 0; i < set->pending; ++i)
        und_numbered_remove_directory(set, first_pending(set, rank, ranks) + i * ranks);
}

void und_numbered_remove(struct und_numbered *set, int64_t number, const char *extra)
{
    und_numbered_path(set, number, extra);
    und_storage_remove_file(set->path + set->root);
}
