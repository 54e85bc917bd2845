/*
 * CephFS, without its library: layouts are virtual extended attributes, ceph.file.layout of files and
 * ceph.dir.layout of directories, as text "stripe_unit=… stripe_count=… object_size=… pool=…", and one
 * attribute per field. A file takes a layout as long as it is empty.
 *
 * The stripe count of CephFS is that of a set of objects: a file larger than stripe_count *
 * object_size goes on with another set, on other OSDs. The object size is that of the directory; it
 * grows to the stripe size where that is larger, and stays otherwise, since clusters limit it.
 */
#define _GNU_SOURCE
#include "interfaces/layout_request.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Where the client of the kernel finds a byte of a file; other clients do not tell. */
struct location {
    uint64_t file_offset; /* asked for; the others are answers */
    uint64_t object_offset, object_number, object_size;
    char object_name[64];
    uint64_t block_offset, block_size;
    int64_t osd;
    struct sockaddr_storage osd_address;
};
#define GET_LOCATION _IOWR(0x97, 3, struct location)

static bool ceph_handles(const struct und_storage *storage)
{
    return strcmp(storage->type, "ceph") == 0 || strcmp(storage->type, "fuse.ceph-fuse") == 0 ||
           strcmp(storage->type, "fuse.ceph") == 0;
}

/* The value of a field of the text, which ends with it or with a blank. */
static bool find_field(const char *text, const char *field, char *value, size_t size)
{
    for (const char *at = text; (at = strstr(at, field)); at += strlen(field)) {
        if ((at != text && at[-1] != ' ') || at[strlen(field)] != '=')
            continue;
        at += strlen(field) + 1;
        snprintf(value, size, "%.*s", (int)strcspn(at, " "), at);
        return value[0] != '\0';
    }
    return false;
}

static bool find_number(const char *text, const char *field, int64_t *number)
{
    char value[32], *end;
    if (!find_field(text, field, value, sizeof value) || value[0] < '0' || value[0] > '9')
        return false;
    errno = 0;
    *number = strtoll(value, &end, 10);
    return errno == 0 && *end == '\0';
}

/* The attribute of a file or a directory as a string. */
static bool read_text(int descriptor, const char *field, char *text, size_t size)
{
    struct stat status;
    char name[64];
    if (fstat(descriptor, &status) != 0)
        return false;
    snprintf(name, sizeof name, "ceph.%s.layout%s", S_ISDIR(status.st_mode) ? "dir" : "file", field);
    const ssize_t length = fgetxattr(descriptor, name, text, size - 1);
    text[length > 0 ? length : 0] = '\0';
    return length > 0;
}

/* OSDs of the first set of objects. */
static void find_targets(int descriptor, struct und_file_layout *layout)
{
    if (layout->stripe_count < 1 || layout->stripe_count > UND_MAX_TARGETS || layout->stripe_size_bytes < 1)
        return;
    for (int i = 0; i < layout->stripe_count; ++i) {
        struct location location = {.file_offset = (uint64_t)(i * layout->stripe_size_bytes)};
        if (ioctl(descriptor, GET_LOCATION, &location) != 0)
            return;
        layout->targets[i] = location.osd;
    }
    layout->target_count = (int)layout->stripe_count;
}

static bool ceph_read(int descriptor, struct und_file_layout *layout, struct und_error *error)
{
    struct stat status;
    char text[1024];
    und_file_layout_unknown(layout);
    if (!read_text(descriptor, "", text, sizeof text))
        return und_fail(error, "ceph: cannot read the layout: %s", strerror(errno));
    if (!find_number(text, "stripe_count", &layout->stripe_count) ||
        !find_number(text, "stripe_unit", &layout->stripe_size_bytes))
        return und_fail(error, "ceph: a layout without stripe_unit and stripe_count: %.200s", text);
    find_field(text, "pool", layout->pool, sizeof layout->pool);
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode))
        find_targets(descriptor, layout);
    snprintf(layout->backend, sizeof layout->backend, "ceph");
    return true;
}

/* All fields in one attribute, so that no field is checked against an old value of another. */
static bool set(int descriptor, const char *kind, const struct und_layout_request *request, const char *name,
                struct und_error *error)
{
    int64_t unit = request->stripe_size_bytes, count = request->stripe_count, object = 0;
    char old[1024], attribute[64], text[512], pool[128] = "";
    if (read_text(descriptor, "", old, sizeof old)) {
        find_number(old, "object_size", &object);
        if (unit == 0)
            find_number(old, "stripe_unit", &unit);
        if (count == 0)
            find_number(old, "stripe_count", &count);
        find_field(old, "pool", pool, sizeof pool);
    }
    /* A directory without a layout: what Ceph itself begins with. */
    unit = unit > 0 ? unit : 4 << 20;
    count = count > 0 ? count : 1;
    object = object > 0 ? object : 4 << 20;
    if (object < unit || object % unit != 0)
        object = (object + unit - 1) / unit * unit;
    int length = snprintf(text, sizeof text, "stripe_unit=%" PRId64 " stripe_count=%" PRId64 " object_size=%" PRId64,
                          unit, count, object);
    if (request->pool || pool[0])
        length +=
            snprintf(text + length, sizeof text - (size_t)length, " pool=%.100s", request->pool ? request->pool : pool);
    snprintf(attribute, sizeof attribute, "ceph.%s.layout", kind);
    return fsetxattr(descriptor, attribute, text, (size_t)length, 0) == 0 ||
           und_fail(error, "ceph: cannot give %s the layout %s: %s%s", name, text, strerror(errno),
                    errno == EACCES || errno == EPERM ? "; does the client have the flag p?" : "");
}

static int ceph_create(int directory, const char *name, const struct und_layout_request *request,
                       struct und_error *error)
{
    const int descriptor = openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor < 0) {
        und_fail(error, "ceph: cannot create %s: %s", name, strerror(errno));
        return -1;
    }
    if (set(descriptor, "file", request, name, error))
        return descriptor;
    const int code = errno;
    close(descriptor);
    unlinkat(directory, name, 0);
    errno = code;
    return -1;
}

static bool ceph_apply(int directory, const struct und_layout_request *request, struct und_error *error)
{
    return set(directory, "dir", request, "the directory", error);
}

/* The client of the kernel has the kernel's version; only root may read more. */
static void ceph_describe(const char *root, struct und_storage *storage)
{
    char pattern[4096], line[256];
    struct utsname system;
    glob_t paths;
    if (strcmp(storage->type, "ceph") == 0 && uname(&system) == 0)
        snprintf(storage->client_version, sizeof storage->client_version, "%.50s %.70s", system.sysname,
                 system.release);
    snprintf(pattern, sizeof pattern, "%s/sys/kernel/debug/ceph/*/status", root);
    if (glob(pattern, 0, NULL, &paths) != 0)
        return;
    FILE *file = paths.gl_pathc == 1 ? fopen(paths.gl_pathv[0], "r") : NULL;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "blocklisted:", 12) == 0)
            snprintf(storage->health, sizeof storage->health, "%s",
                     strstr(line, "true") ? "blocklisted" : "not blocklisted");
    if (file)
        fclose(file);
    globfree(&paths);
}

const struct und_layout_backend und_layout_backend_ceph = {
    .name = "ceph",
    .handles = ceph_handles,
    .create = ceph_create,
    .apply = ceph_apply,
    .read = ceph_read,
    .describe = ceph_describe,
    .takes_pool = true,
    .max_pool_length = 63,
    .max_stripe_count = 2000,
    .unit_bytes = 65536,
    .max_stripe_bytes = INT32_MAX / 65536 * INT64_C(65536),
    .inherits = true,
};
