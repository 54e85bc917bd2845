/*
 * Lustre, without its library: layouts are set by the ioctl LL_IOC_LOV_SETSTRIPE and read from the
 * extended attribute lustre.lov. The attribute is not used to set them: the client ignores a first
 * target of 0 in it, and reports success for a file that has a layout already.
 *
 * A layout is a record in the byte order of the host. A plain one (versions 1 and 3) is a header of 32
 * bytes, in version 3 followed by the name of the pool in 16, and 24 bytes per stripe. A composite one
 * is a header of 32 bytes, 48 bytes per component with the extent of the file that it holds and where
 * its plain layout stands, and these.
 */
#define _GNU_SOURCE
#include "interfaces/layout_request.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SETSTRIPE _IOW('f', 154, long)
#define GETSTRIPE _IOW('f', 155, long)
/* At open(2): leave the layout to the ioctl that follows. Only terminals know these flags otherwise. */
#define DELAY_CREATE (O_NOCTTY | O_ASYNC)

enum {
    MAGIC_V1 = 0x0bd10bd0,
    MAGIC_V3 = 0x0bd30bd0,
    MAGIC_TARGETS = 0x0bd50bd0, /* version 3 with the targets to use */
    MAGIC_COMPOSITE = 0x0bd60bd0
};
enum { PATTERN_RAID0 = 1 };
enum { ANY_TARGET = 0xffff, ALL_TARGETS = 0xffff };
enum { HEADER = 32, POOL = 16, STRIPE = 24, COMPONENT = 48 };
enum { LAYOUT_BYTES = 65536 }; /* the largest extended attribute */
enum { STALE = 0x01, PARITY = 0x40 };

static uint16_t get16(const unsigned char *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint32_t get32(const unsigned char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t get64(const unsigned char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static void put16(unsigned char *at, uint16_t value)
{
    memcpy(at, &value, sizeof value);
}

static void put32(unsigned char *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
}

static bool lustre_handles(const struct und_storage *storage)
{
    return strcmp(storage->type, "lustre") == 0;
}

/* The record, zeros before, that asks for the layout. */
static void build(const struct und_layout_request *request, unsigned char *record)
{
    const bool version3 = request->pool || request->target_count > 0;
    const int64_t count = request->target_count > 0 ? request->target_count : request->stripe_count;
    put32(record, request->target_count > 0 ? MAGIC_TARGETS : version3 ? MAGIC_V3 : MAGIC_V1);
    put32(record + 4, PATTERN_RAID0);
    put32(record + 24, (uint32_t)request->stripe_size_bytes);
    put16(record + 28, count == UND_ALL_TARGETS ? ALL_TARGETS : (uint16_t)count);
    put16(record + 30, request->target_count > 0 ? (uint16_t)request->targets[0] : ANY_TARGET);
    if (request->pool)
        memcpy(record + HEADER, request->pool, strlen(request->pool));
    for (int i = 0; i < request->target_count; ++i)
        put32(record + HEADER + POOL + STRIPE * (size_t)i + 20, (uint32_t)request->targets[i]);
}

/* The client writes the layout that it has given back over the record. */
static bool set(int descriptor, const struct und_layout_request *request, const char *name, struct und_error *error)
{
    unsigned char *record = calloc(1, LAYOUT_BYTES);
    if (!record)
        return und_fail(error, "lustre: no memory for the layout of %s", name);
    build(request, record);
    const bool done = ioctl(descriptor, SETSTRIPE, record) == 0;
    const int code = errno;
    free(record);
    errno = code;
    return done || und_fail(error, "lustre: cannot give %s the layout: %s", name, strerror(code));
}

static int lustre_create(int directory, const char *name, const struct und_layout_request *request,
                         struct und_error *error)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | DELAY_CREATE;
    const int descriptor = openat(directory, name, flags, 0666);
    if (descriptor < 0) {
        und_fail(error, "lustre: cannot create %s: %s", name, strerror(errno));
        return -1;
    }
    if (set(descriptor, request, name, error))
        return descriptor;
    const int code = errno;
    close(descriptor);
    unlinkat(directory, name, 0);
    errno = code;
    return -1;
}

static bool lustre_apply(int directory, const struct und_layout_request *request, struct und_error *error)
{
    return set(directory, request, "the directory", error);
}

/* A file's stripes stand in the record; those of a directory and of an extent without data do not. */
static bool read_plain(const unsigned char *record, size_t size, struct und_file_layout *layout,
                       struct und_error *error)
{
    const uint32_t magic = size >= HEADER ? get32(record) : 0;
    if (magic != MAGIC_V1 && magic != MAGIC_V3 && magic != MAGIC_TARGETS)
        return und_fail(error, "lustre: a layout of %zu bytes with the magic number 0x%x is not known", size, magic);
    const size_t header = HEADER + (magic == MAGIC_V1 ? 0 : POOL);
    if (size < header)
        return und_fail(error, "lustre: a layout of %zu bytes is cut off", size);
    const uint16_t count = get16(record + 28);
    layout->stripe_size_bytes = get32(record + 24) > 0 ? (int64_t)get32(record + 24) : -1;
    layout->stripe_count = count == ALL_TARGETS ? UND_ALL_TARGETS : count;
    if (magic != MAGIC_V1)
        snprintf(layout->pool, sizeof layout->pool, "%.*s", POOL, (const char *)record + HEADER);
    if (count == 0 || count == ALL_TARGETS || count > UND_MAX_TARGETS || size < header + STRIPE * (size_t)count)
        return true;
    layout->target_count = count;
    for (int i = 0; i < count; ++i)
        layout->targets[i] = get32(record + header + STRIPE * (size_t)i + 20);
    return true;
}

/* Bytes of a file of so many bytes that a component holds. */
static uint64_t held(const unsigned char *component, uint64_t bytes)
{
    const uint64_t start = get64(component + 8), end = get64(component + 16);
    const uint64_t last = end < bytes ? end : bytes;
    return start < last ? last - start : 0;
}

/* The component that holds most of the file's bytes; of mirrors the first one that is up to date. */
static bool read_composite(const unsigned char *record, size_t size, uint64_t bytes, struct und_file_layout *layout,
                           struct und_error *error)
{
    const size_t count = size >= HEADER ? get16(record + 14) : 0;
    const unsigned char *chosen = NULL;
    uint64_t most = 0;
    if (count == 0 || size < HEADER + COMPONENT * count)
        return und_fail(error, "lustre: a composite layout of %zu bytes is cut off", size);
    for (size_t i = 0; i < count; ++i) {
        const unsigned char *component = record + HEADER + COMPONENT * i;
        const uint64_t here = held(component, bytes > 0 ? bytes : 1);
        if (!(get32(component + 4) & (STALE | PARITY)) && here > most) {
            chosen = component;
            most = here;
        }
    }
    if (!chosen)
        return und_fail(error, "lustre: no component of the composite layout holds data");
    const size_t at = get32(chosen + 24), length = get32(chosen + 28);
    if (at > size || length > size - at)
        return und_fail(error, "lustre: a component of the composite layout lies outside of its %zu bytes", size);
    return read_plain(record + at, length, layout, error);
}

static bool lustre_read(int descriptor, struct und_file_layout *layout, struct und_error *error)
{
    struct stat status;
    if (fstat(descriptor, &status) != 0)
        return und_fail(error, "lustre: cannot read the layout: %s", strerror(errno));
    unsigned char *record = calloc(1, LAYOUT_BYTES);
    if (!record)
        return und_fail(error, "lustre: no memory for a layout");
    ssize_t size = fgetxattr(descriptor, "lustre.lov", record, LAYOUT_BYTES);
    if (size < 0 && errno != ENODATA) {
        /* Older clients: the record says how many stripes there is space for. */
        const int code = errno;
        memset(record, 0, LAYOUT_BYTES);
        put32(record, MAGIC_V3);
        put16(record + 28, UND_MAX_TARGETS);
        size = ioctl(descriptor, GETSTRIPE, record) == 0 ? LAYOUT_BYTES : -1;
        if (size > 0 && S_ISDIR(status.st_mode))
            size = HEADER + POOL;
        errno = code;
    }
    und_file_layout_unknown(layout);
    bool read;
    if (size < 0)
        read = und_fail(error, "lustre: cannot read the layout: %s", strerror(errno));
    else if ((size_t)size >= HEADER && get32(record) == MAGIC_COMPOSITE)
        read = read_composite(record, (size_t)size, S_ISDIR(status.st_mode) ? INT64_MAX : (uint64_t)status.st_size,
                              layout, error);
    else
        read = read_plain(record, (size_t)size, layout, error);
    if (read)
        snprintf(layout->backend, sizeof layout->backend, "lustre");
    free(record);
    return read;
}

/* The value of a line "key: value" in a file of the client; false where there is none. */
static bool find_value(const char *path, const char *key, char *value, size_t size)
{
    char line[256];
    bool has_value = false;
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    while (!has_value && fgets(line, sizeof line, file)) {
        const char *at = line + strspn(line, " \t");
        if (strncmp(at, key, strlen(key)) != 0 || at[strlen(key)] != ':')
            continue;
        at += strlen(key) + 1;
        at += strspn(at, " ");
        snprintf(value, size, "%.*s", (int)strcspn(at, " \n"), at);
        has_value = true;
    }
    fclose(file);
    return has_value;
}

/* Connections of the client to the servers of this file system; which of them are not up. */
static void add_imports(const char *root, const char *directory, const char *name, struct und_storage *storage)
{
    char pattern[4096], state[32];
    glob_t paths;
    size_t length = strlen(storage->health);
    snprintf(pattern, sizeof pattern, "%s%s/[mo][ds]c/%s-*/import", root, directory, name);
    if (glob(pattern, 0, NULL, &paths) != 0)
        return;
    for (size_t i = 0; i < paths.gl_pathc; ++i) {
        const char *target = strrchr(paths.gl_pathv[i], '/');
        while (target > paths.gl_pathv[i] && target[-1] != '/')
            --target;
        if (strstr(paths.gl_pathv[i], "/mdc/"))
            find_value(paths.gl_pathv[i], "target_version", storage->server_version, sizeof storage->server_version);
        if (find_value(paths.gl_pathv[i], "state", state, sizeof state) && strcmp(state, "FULL") != 0 &&
            strcmp(state, "IDLE") != 0 && length < sizeof storage->health)
            length += (size_t)snprintf(storage->health + length, sizeof storage->health - length, ", %.*s %s",
                                       (int)strcspn(target, "/"), target, state);
    }
    globfree(&paths);
}

/* The source of a mount is SERVERS:/NAME[/DIRECTORY]. */
static void lustre_describe(const char *root, struct und_storage *storage)
{
    static const char *const directories[] = {"/sys/fs/lustre", "/proc/fs/lustre", "/sys/kernel/debug/lustre"};
    char line[128], name[16] = "*";
    const char *colon = strstr(storage->source, ":/");
    if (colon)
        snprintf(name, sizeof name, "%.*s", (int)strcspn(colon + 2, "/"), colon + 2);
    if (und_layout_backend_line(root, "/sys/fs/lustre/version", line, sizeof line) ||
        und_layout_backend_line(root, "/proc/fs/lustre/version", line, sizeof line)) {
        const char *at = strncmp(line, "lustre: ", 8) == 0 ? line + 8 : line;
        snprintf(storage->client_version, sizeof storage->client_version, "%s", at);
    }
    if (!und_layout_backend_line(root, "/sys/fs/lustre/health_check", line, sizeof line) &&
        !und_layout_backend_line(root, "/proc/fs/lustre/health_check", line, sizeof line))
        return;
    snprintf(storage->health, sizeof storage->health, "%s", line);
    for (size_t i = 0; i < sizeof directories / sizeof directories[0]; ++i)
        add_imports(root, directories[i], name, storage);
}

const struct und_layout_backend und_layout_backend_lustre = {
    .name = "lustre",
    .handles = lustre_handles,
    .create = lustre_create,
    .apply = lustre_apply,
    .read = lustre_read,
    .describe = lustre_describe,
    .takes_all = true,
    .takes_targets = true,
    .takes_pool = true,
    .max_pool_length = POOL - 1,
    .max_stripe_count = 2000,
    .unit_bytes = 65536,
    .max_stripe_bytes = UINT32_MAX / 65536 * INT64_C(65536),
};
