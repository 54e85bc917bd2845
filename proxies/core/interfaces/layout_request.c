#define _XOPEN_SOURCE 700
#include "interfaces/layout_request.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *first_option(const struct und_layout_request *request)
{
    return request->stripe_count != 0        ? "--stripe-count"
           : request->stripe_size_bytes != 0 ? "--stripe-size"
           : request->pool                   ? "--stripe-pool"
                                             : "--stripe-targets";
}

/* The backends that can give a layout. */
static void list_backends(char *text, size_t size)
{
    size_t length = 0;
    text[0] = '\0';
    for (const struct und_layout_backend *const *at = und_layout_backends; *at; ++at)
        if ((*at)->create && length < size)
            length += (size_t)snprintf(text + length, size - length, "%s%s", length > 0 ? ", " : "", (*at)->name);
}

static bool takes_size(const struct und_layout_backend *backend, int64_t bytes, struct und_error *error)
{
    const bool power = (bytes & (bytes - 1)) == 0;
    if (bytes % backend->unit_bytes == 0 && bytes <= backend->max_stripe_bytes && (power || !backend->power_of_two))
        return true;
    return und_fail(error, "--stripe-size %" PRId64 ": %s expects a %s %" PRId64 " bytes, up to %" PRId64, bytes,
                    backend->name, backend->power_of_two ? "power of two of at least" : "multiple of",
                    backend->unit_bytes, backend->max_stripe_bytes);
}

bool und_layout_backend_takes(const struct und_layout_backend *backend, const struct und_storage *storage,
                              const struct und_layout_request *request, struct und_error *error)
{
    char names[256];
    if (!und_layout_request_is_asked(request))
        return true;
    list_backends(names, sizeof names);
    if (!backend->create)
        return und_fail(error, "%s: files on %s cannot be given a layout; expected a file system of %s",
                        first_option(request), storage->type, names);
    if (request->stripe_count == UND_ALL_TARGETS && !backend->takes_all)
        return und_fail(error, "--stripe-count -1: %s cannot stripe over all targets; expected their number",
                        backend->name);
    if (request->stripe_count > backend->max_stripe_count)
        return und_fail(error, "--stripe-count %" PRId64 ": %s expects at most %" PRId64, request->stripe_count,
                        backend->name, backend->max_stripe_count);
    if (request->target_count > 0 && !backend->takes_targets)
        return und_fail(error, "--stripe-targets: %s cannot choose the targets of a file", backend->name);
    if (request->pool && !backend->takes_pool)
        return und_fail(error, "--stripe-pool %s: %s cannot choose the pool of a file", request->pool, backend->name);
    if (request->pool && strlen(request->pool) > backend->max_pool_length)
        return und_fail(error, "--stripe-pool %s: %s expects a name of at most %zu characters", request->pool,
                        backend->name, backend->max_pool_length);
    if (request->target_count > 0 && request->stripe_count != 0 && request->stripe_count != request->target_count)
        return und_fail(error,
                        "--stripe-targets names %d targets, but --stripe-count is %" PRId64 "; expected the same",
                        request->target_count, request->stripe_count);
    return request->stripe_size_bytes == 0 || takes_size(backend, request->stripe_size_bytes, error);
}

static int compare(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

/* In any order. */
static bool same_targets(const struct und_layout_request *request, const struct und_file_layout *layout)
{
    const size_t bytes = (size_t)request->target_count * sizeof(int64_t);
    if (request->target_count != layout->target_count)
        return false;
    int64_t *both = malloc(2 * bytes);
    if (!both)
        return false;
    memcpy(both, request->targets, bytes);
    memcpy(both + request->target_count, layout->targets, bytes);
    qsort(both, (size_t)request->target_count, sizeof *both, compare);
    qsort(both + request->target_count, (size_t)request->target_count, sizeof *both, compare);
    const bool same = memcmp(both, both + request->target_count, bytes) == 0;
    free(both);
    return same;
}

bool und_layout_request_agrees(const struct und_layout_request *request, const struct und_file_layout *layout,
                               const char *path, struct und_error *error)
{
    const int64_t count = request->stripe_count, bytes = request->stripe_size_bytes;
    if (count > 0 && layout->stripe_count != count)
        return und_fail(error, "%s: %s%" PRId64 " was asked, but the file system gave %" PRId64, path,
                        request->by_hint ? "--hint striping_factor=" : "--stripe-count ", count, layout->stripe_count);
    if (count == UND_ALL_TARGETS && layout->stripe_count < 1 && layout->stripe_count != UND_ALL_TARGETS)
        return und_fail(error, "%s: --stripe-count -1 was asked, but the file system gave no stripes", path);
    if (bytes > 0 && layout->stripe_size_bytes != bytes)
        return und_fail(error, "%s: %s%" PRId64 " was asked, but the file system gave %" PRId64, path,
                        request->by_hint ? "--hint striping_unit=" : "--stripe-size ", bytes,
                        layout->stripe_size_bytes);
    if (request->pool && strcmp(request->pool, layout->pool) != 0)
        return und_fail(error, "%s: --stripe-pool %s was asked, but the file system gave %s%s", path, request->pool,
                        layout->pool[0] ? "the pool " : "no pool", layout->pool);
    if (request->target_count > 0 && !same_targets(request, layout))
        return und_fail(error, "%s: the file system gave other targets than --stripe-targets asked", path);
    return true;
}

void und_layout_backend_list(FILE *stream)
{
    for (const struct und_layout_backend *const *at = und_layout_backends; *at; ++at)
        fprintf(stream, "striping %s: %s%s%s%s%s\n", (*at)->name, (*at)->create ? "files" : "no layouts",
                (*at)->apply ? ", directories" : "", (*at)->takes_all ? ", all targets" : "",
                (*at)->takes_targets ? ", lists of targets" : "", (*at)->takes_pool ? ", pools" : "");
}

/* A whole number up to INT32_MAX, and what follows it; NULL where there is none. */
static const char *read_target(const char *text, int64_t *target)
{
    char *end;
    if (*text < '0' || *text > '9')
        return NULL;
    const unsigned long long number = strtoull(text, &end, 10);
    *target = (int64_t)number;
    return number <= INT32_MAX ? end : NULL;
}

bool und_layout_request_read_targets(const char *text, struct und_layout_request *request)
{
    request->target_count = 0;
    for (const char *at = text;; ++at) {
        int64_t first, last;
        at = read_target(at, &first);
        last = first;
        if (at && *at == '-')
            at = read_target(at + 1, &last);
        if (!at || last < first)
            return false;
        for (int64_t target = first; target <= last; ++target) {
            if (request->target_count == UND_MAX_TARGETS)
                return false;
            request->targets[request->target_count++] = target;
        }
        if (*at != ',')
            return *at == '\0';
    }
}

static bool read_directory(const struct und_layout_backend *backend, const char *directory,
                           struct und_file_layout *layout)
{
    struct und_error error;
    const int descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return false;
    const bool read = backend->read(descriptor, layout, &error);
    close(descriptor);
    if (!read)
        und_file_layout_unknown(layout);
    return read;
}

/* The directory's own, or that of a parent up to the mount point, or of the mount point alone where the
 * file system has it so. */
static void read_default(const struct und_layout_backend *backend, const char *directory, struct und_storage *storage)
{
    struct und_file_layout *layout = &storage->default_layout;
    char path[PATH_MAX];
    if (!backend->read || read_directory(backend, directory, layout) || !realpath(directory, path))
        return;
    if (!backend->inherits) {
        read_directory(backend, storage->mount_point, layout);
        return;
    }
    for (char *slash = strrchr(path, '/'); slash && slash > path && strcmp(path, storage->mount_point) != 0;
         slash = strrchr(path, '/')) {
        *slash = '\0';
        if (read_directory(backend, path, layout))
            return;
    }
}

void und_layout_backend_describe(const char *directory, const char *root, struct und_storage *storage)
{
    const struct und_layout_backend *backend = und_layout_backend_of(storage);
    read_default(backend, directory, storage);
    if (backend->describe)
        backend->describe(root, storage);
}

bool und_layout_backend_line(const char *root, const char *path, char *line, size_t size)
{
    char whole[PATH_MAX];
    if (snprintf(whole, sizeof whole, "%s%s", root, path) >= (int)sizeof whole)
        return false;
    FILE *file = fopen(whole, "r");
    if (!file)
        return false;
    const bool read = fgets(line, (int)size, file) != NULL;
    fclose(file);
    if (!read)
        return false;
    line[strcspn(line, "\n")] = '\0';
    return line[0] != '\0';
}
