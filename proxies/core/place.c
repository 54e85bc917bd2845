#include "core/place.h"

#include "core/created.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Finds any entry of the directory. False when it is empty. */
static bool find_entry(DIR *listing, char *name, size_t size)
{
    for (const struct dirent *entry; (entry = readdir(listing));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            snprintf(name, size, "%s", entry->d_name);
            return true;
        }
    return false;
}

bool und_place_prepare(const char *directory, bool *made, struct und_error *error)
{
    char name[256];
    *made = mkdir(directory, 0777) == 0;
    if (*made)
        return true;
    if (errno != EEXIST)
        return und_fail(error, "cannot make the directory %s: %s", directory, strerror(errno));
    DIR *listing = opendir(directory);
    if (!listing)
        return und_fail(error, "cannot read the directory %s: %s", directory, strerror(errno));
    const bool full = find_entry(listing, name, sizeof name);
    closedir(listing);
    if (full)
        return und_fail(error, "%s is not empty: it holds %s; expected an empty directory, or one that is not there",
                        directory, name);
    if (access(directory, W_OK | X_OK) != 0)
        return und_fail(error, "cannot write to the directory %s: %s", directory, strerror(errno));
    return true;
}

bool und_place_fits(const struct und_totals *totals, const struct und_environment *environment, const char *directory,
                    struct und_error *error)
{
    if (totals->bytes > environment->free_bytes)
        return und_fail(error, "%s: the workload needs %" PRId64 " bytes, but only %" PRId64 " are free (%s)",
                        directory, totals->bytes, environment->free_bytes, environment->file_system);
    if (environment->free_files >= 0 && totals->files > environment->free_files)
        return und_fail(error, "%s: the workload needs %" PRId64 " files, but only %" PRId64 " can be made (%s)",
                        directory, totals->files, environment->free_files, environment->file_system);
    return true;
}

int und_place_result(const char *output, char *path, size_t size, struct und_error *error)
{
    struct stat status;
    if (stat(output, &status) == 0 && !S_ISREG(status.st_mode)) {
        und_fail(error, "--output %s: expected the name of a file", output);
        return -1;
    }
    const int length = snprintf(path, size, "%s.%ld.part", output, (long)getpid());
    if (length < 0 || (size_t)length >= size) {
        und_fail(error, "--output: the name has more than %zu characters", size);
        return -1;
    }
    und_created_reserve(path, UND_RESULT_FILE);
    const int descriptor = und_created_file(path);
    if (descriptor < 0)
        und_fail(error, "cannot write the result %s: %s", output, strerror(errno));
    return descriptor;
}
