/*
 * A striped file system for tests, to be preloaded: below a directory it answers the extended
 * attributes, ioctls and statfs of Lustre, CephFS or BeeGFS, byte for byte as their public headers
 * have them, on top of any local file system. It shares no code with the backends in stripings/.
 *
 *   FAKE_ROOT     the directory, an absolute path without links
 *   FAKE_STATE    directory for what the servers would know: one file per inode
 *   FAKE_KIND     lustre (version 1, 3 with a pool), lustre-composite (by default), lustre-ioctl (no attributes),
 *                 ceph, beegfs, gpfs (its type alone)
 *   FAKE_TARGETS  number of targets, default 8
 *   FAKE_LIE      cap4: a larger stripe count is accepted, and 4 given; ignore: the default is given
 *   FAKE_RECORD   file with the bytes to answer instead of any layout of Lustre
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* both names of each call are defined here */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* lustre_user.h */
struct lov_user_ost_data {
    uint64_t id, seq;
    uint32_t gen, idx;
} __attribute__((packed));
struct lov_user_md {
    uint32_t magic, pattern;
    uint64_t id, seq;
    uint32_t stripe_size;
    uint16_t stripe_count, stripe_offset;
} __attribute__((packed));
struct lov_comp_md_entry {
    uint32_t id, flags;
    uint64_t start, end;
    uint32_t offset, size, layout_gen;
    uint64_t timestamp;
    uint32_t padding;
} __attribute__((packed));
struct lov_comp_md {
    uint32_t magic, size, layout_gen;
    uint16_t flags, entry_count, mirror_count, padding1[3];
    uint64_t padding2;
} __attribute__((packed));
enum { LOV_POOL = 16 };
_Static_assert(sizeof(struct lov_user_ost_data) == 24, "lov_user_ost_data_v1");
_Static_assert(sizeof(struct lov_user_md) == 32, "lov_user_md_v1");
_Static_assert(sizeof(struct lov_comp_md) == 32, "lov_comp_md_v1");
_Static_assert(sizeof(struct lov_comp_md_entry) == 48, "lov_comp_md_entry_v1");
#define LL_IOC_LOV_SETSTRIPE 0x4008669aUL
#define LL_IOC_LOV_GETSTRIPE 0x4008669bUL
#define O_LOV_DELAY_CREATE 020400

/* The client's ioctl.h of Ceph, and of BeeGFS */
struct ceph_ioctl_dataloc {
    uint64_t file_offset, object_offset, object_no, object_size;
    char object_name[64];
    uint64_t block_offset, block_size;
    int64_t osd;
    char osd_addr[128];
};
#define CEPH_IOC_GET_DATALOC 0xc0f89703UL
_Static_assert(sizeof(struct ceph_ioctl_dataloc) == 248, "ceph_ioctl_dataloc");
struct beegfs_stripe_info {
    unsigned pattern_type, chunk_size;
    uint16_t num_targets;
};
struct beegfs_target_v2 {
    uint32_t index, target, primary, secondary, primary_node, secondary_node;
    char primary_alias[256], secondary_alias[256];
};
struct beegfs_mkfile {
    const char *filename;
    unsigned mode, numtargets, chunksize;
};
#define BEEGFS_IOC_GET_STRIPEINFO 0x800c6619UL
#define BEEGFS_IOC_GET_STRIPETARGET_V2 0x8218661aUL
#define BEEGFS_IOC_MKFILE_STRIPEHINTS 0x4018661bUL
_Static_assert(sizeof(struct beegfs_stripe_info) == 12, "GetStripeInfo");
_Static_assert(sizeof(struct beegfs_target_v2) == 536, "GetStripeTargetV2");
_Static_assert(sizeof(struct beegfs_mkfile) == 24, "MkFileWithStripeHints");

/* The layout that the servers keep for an inode. */
struct layout {
    uint32_t count, size, object_size;
    uint32_t first;
    char pool[64];
    bool set; /* by a user; of a directory: not inherited */
    uint32_t listed;
    uint32_t targets[256];
};

static const char *setting(const char *name, const char *otherwise)
{
    const char *value = getenv(name);
    return value ? value : otherwise;
}

static bool is(const char *kind)
{
    return strncmp(setting("FAKE_KIND", ""), kind, strlen(kind)) == 0;
}

static uint32_t all_targets(void)
{
    return (uint32_t)atoi(setting("FAKE_TARGETS", "8"));
}

/* The call that this file stands before. */
static void *next(const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    if (!symbol)
        abort();
    return symbol;
}

static bool below(int descriptor)
{
    char link[64], path[PATH_MAX];
    const char *root = setting("FAKE_ROOT", "");
    const size_t length = strlen(root);
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t size = readlink(link, path, sizeof path - 1);
    if (size <= 0 || length == 0)
        return false;
    path[size] = '\0';
    return strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

/* With the time of birth: a new directory may have the number of a file that is gone, and has nothing of its state. */
static bool state_path(int descriptor, char *path, size_t size)
{
    struct statx status;
    if (statx(descriptor, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &status) != 0)
        return false;
    const bool born = (status.stx_mask & STATX_BTIME) != 0;
    snprintf(path, size, "%s/%x-%x-%llx-%llx-%x", setting("FAKE_STATE", "/nonexistent"), status.stx_dev_major,
             status.stx_dev_minor, (unsigned long long)status.stx_ino, born ? (long long)status.stx_btime.tv_sec : 0,
             born ? status.stx_btime.tv_nsec : 0);
    return true;
}

static bool recall(int descriptor, struct layout *layout)
{
    char path[PATH_MAX];
    FILE *file = state_path(descriptor, path, sizeof path) ? fopen(path, "r") : NULL;
    memset(layout, 0, sizeof *layout);
    if (!file)
        return false;
    const bool read = fread(layout, sizeof *layout, 1, file) == 1;
    fclose(file);
    return read;
}

/* Complete at once for the other ranks. */
static void keep(int descriptor, const struct layout *layout)
{
    char path[PATH_MAX], part[PATH_MAX + 32];
    if (!state_path(descriptor, path, sizeof path))
        abort();
    snprintf(part, sizeof part, "%s.%ld", path, (long)getpid());
    FILE *file = fopen(part, "w");
    if (!file || fwrite(layout, sizeof *layout, 1, file) != 1 || fclose(file) != 0 || rename(part, path) != 0)
        abort();
}

static void forget(int descriptor)
{
    char path[PATH_MAX];
    if (state_path(descriptor, path, sizeof path))
        unlink(path);
}

static struct layout file_system_default(void)
{
    struct layout layout = {.count = 1, .size = is("beegfs") ? 1 << 19 : is("ceph") ? 4 << 20 : 1 << 20};
    layout.object_size = 4 << 20;
    if (is("ceph"))
        snprintf(layout.pool, sizeof layout.pool, "cephfs_data");
    return layout;
}

static bool is_directory(int descriptor)
{
    struct stat status;
    return fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode);
}

static int64_t size_of(int descriptor)
{
    struct stat status;
    return fstat(descriptor, &status) == 0 ? (int64_t)status.st_size : 0;
}

/* The default of the directory that a file is in. */
static struct layout inherited(int descriptor)
{
    char link[64], path[PATH_MAX];
    struct layout layout = file_system_default(), directory_layout;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    const ssize_t size = readlink(link, path, sizeof path - 1);
    path[size > 0 ? size : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash)
        return layout;
    *slash = '\0';
    const int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0 && recall(directory, &directory_layout))
        layout = directory_layout;
    if (directory >= 0)
        close(directory);
    layout.set = false;
    return layout;
}

/* What a server makes of what is asked; a count of 0xffff or ~0 is all targets. */
static void settle(int descriptor, struct layout *layout)
{
    struct stat status;
    const struct layout standard = file_system_default();
    const char *lie = setting("FAKE_LIE", "");
    const bool all = layout->count == 0xffff || layout->count == UINT32_MAX;
    if (strcmp(lie, "ignore") == 0) {
        layout->count = standard.count;
        layout->size = standard.size;
    }
    if (strcmp(lie, "cap4") == 0 && layout->count > 4)
        layout->count = 4;
    layout->size = layout->size ? layout->size : standard.size;
    layout->count = layout->count ? layout->count : standard.count;
    if (!is_directory(descriptor) && (all || layout->count > all_targets()))
        layout->count = all_targets();
    layout->first = fstat(descriptor, &status) == 0 ? (uint32_t)status.st_ino % all_targets() : 0;
}

static uint32_t target_of(const struct layout *layout, uint32_t stripe)
{
    return layout->listed ? layout->targets[stripe % layout->listed] : (layout->first + stripe) % all_targets();
}

static size_t put_plain(unsigned char *to, const struct layout *layout, bool objects)
{
    const bool v3 = layout->pool[0] != '\0';
    const struct lov_user_md head = {.magic = v3 ? 0x0bd30bd0 : 0x0bd10bd0,
                                     .pattern = 1,
                                     .id = 7,
                                     .seq = 0x200000400,
                                     .stripe_size = layout->size,
                                     .stripe_count = (uint16_t)layout->count};
    size_t size = sizeof head;
    memcpy(to, &head, sizeof head);
    if (v3) {
        memset(to + size, 0, LOV_POOL);
        memcpy(to + size, layout->pool, strnlen(layout->pool, LOV_POOL - 1));
        size += LOV_POOL;
    }
    for (uint32_t i = 0; objects && i < layout->count; ++i) {
        const struct lov_user_ost_data object = {.id = 100 + i, .seq = 0, .gen = 0, .idx = target_of(layout, i)};
        memcpy(to + size, &object, sizeof object);
        size += sizeof object;
    }
    return size;
}

/* A first component of 64 KiB on one target, a stale mirror, the asked layout, and an end without objects. */
static size_t put_composite(unsigned char *to, const struct layout *layout)
{
    const struct lov_comp_md head = {.magic = 0x0bd60bd0, .entry_count = 4, .mirror_count = 1};
    struct lov_comp_md_entry entries[4] = {
        {.id = 0x10001, .flags = 0x10, .start = 0, .end = 65536},
        {.id = 0x20001, .flags = 0x11, .start = 0, .end = UINT64_MAX},
        {.id = 0x10002, .flags = 0x10, .start = 65536, .end = UINT64_C(1) << 40},
        {.id = 0x10003, .flags = 0, .start = UINT64_C(1) << 40, .end = UINT64_MAX},
    };
    struct layout first = *layout, last = *layout;
    size_t size = sizeof head + sizeof entries;
    first.count = 1;
    first.listed = 0;
    last.count = 16;
    for (int i = 0; i < 4; ++i) {
        entries[i].offset = (uint32_t)size;
        size += put_plain(to + size, i == 2 ? layout : i == 3 ? &last : &first, i != 3);
        entries[i].size = (uint32_t)size - entries[i].offset;
    }
    memcpy(to, &head, sizeof head);
    memcpy(to + offsetof(struct lov_comp_md, size), &(uint32_t){(uint32_t)size}, sizeof(uint32_t));
    memcpy(to + sizeof head, entries, sizeof entries);
    return size;
}

static ssize_t lustre_record(int descriptor, unsigned char *record)
{
    struct layout layout;
    const char *given = getenv("FAKE_RECORD");
    FILE *file = given && !is_directory(descriptor) ? fopen(given, "r") : NULL;
    if (file) {
        const size_t size = fread(record, 1, 65536, file);
        fclose(file);
        return (ssize_t)size;
    }
    if (!recall(descriptor, &layout)) {
        errno = ENODATA;
        return -1;
    }
    if (is_directory(descriptor))
        return (ssize_t)put_plain(record, &layout, false);
    /* What a user asks for by version 1 or 3 is a plain layout; defaults may be composite. */
    return (ssize_t)(is("lustre-composite") && !layout.set ? put_composite(record, &layout)
                                                           : put_plain(record, &layout, true));
}

static int lustre_set(int descriptor, unsigned char *record)
{
    struct lov_user_md head;
    struct layout layout, old;
    memcpy(&head, record, sizeof head);
    if (!is_directory(descriptor) && recall(descriptor, &old)) {
        errno = EEXIST;
        return -1;
    }
    const bool v3 = head.magic == 0x0bd30bd0 || head.magic == 0x0bd50bd0;
    if ((head.magic != 0x0bd10bd0 && !v3) || head.stripe_size % 65536 != 0 || head.pattern > 1) {
        errno = EINVAL;
        return -1;
    }
    memset(&layout, 0, sizeof layout);
    layout.set = true;
    layout.count = head.stripe_count;
    layout.size = head.stripe_size;
    if (v3)
        memcpy(layout.pool, record + sizeof head, LOV_POOL - 1);
    settle(descriptor, &layout);
    if (head.stripe_offset != 0xffff)
        layout.first = head.stripe_offset;
    if (head.magic == 0x0bd50bd0)
        for (uint32_t i = 0; i < head.stripe_count && i < 256; ++i) {
            struct lov_user_ost_data object;
            memcpy(&object, record + sizeof head + LOV_POOL + i * sizeof object, sizeof object);
            if (object.idx >= all_targets()) {
                errno = EINVAL;
                return -1;
            }
            layout.targets[layout.listed++] = object.idx;
        }
    keep(descriptor, &layout);
    unsigned char *back = calloc(1, 65536);
    if (back && !is_directory(descriptor)) {
        lustre_record(descriptor, back);
        memcpy(record, back, sizeof head);
    }
    free(back);
    return 0;
}

static int ceph_text(int descriptor, char *text, size_t size)
{
    struct layout layout;
    if (!recall(descriptor, &layout)) {
        if (is_directory(descriptor)) {
            errno = ENODATA;
            return -1;
        }
        layout = inherited(descriptor);
    }
    return snprintf(text, size, "stripe_unit=%u stripe_count=%u object_size=%u pool=%s", layout.size, layout.count,
                    layout.object_size, layout.pool);
}

static int ceph_set(int descriptor, const char *name, const char *value, size_t size)
{
    char text[512] = "", expected[64];
    struct layout layout;
    unsigned unit = 0, count = 0, object = 0;
    char pool[64] = "";
    memcpy(text, value, size < sizeof text ? size : sizeof text - 1);
    snprintf(expected, sizeof expected, "ceph.%s.layout", is_directory(descriptor) ? "dir" : "file");
    if (strcmp(name, expected) != 0) {
        errno = EINVAL;
        return -1;
    }
    if (!is_directory(descriptor) && size_of(descriptor) > 0) {
        errno = ENOTEMPTY;
        return -1;
    }
    if (!recall(descriptor, &layout))
        layout = inherited(descriptor);
    const int read =
        sscanf(text, "stripe_unit=%u stripe_count=%u object_size=%u pool=%63s", &unit, &count, &object, pool);
    if (read < 3 || unit % 65536 != 0 || object < unit || object % unit != 0 || count == 0) {
        errno = EINVAL;
        return -1;
    }
    if (pool[0] && strcmp(pool, "cephfs_data") != 0 && strcmp(pool, "fast") != 0) {
        errno = ENOENT;
        return -1;
    }
    layout.count = count;
    layout.size = unit;
    layout.object_size = object;
    if (pool[0])
        memcpy(layout.pool, pool, sizeof pool);
    const uint32_t asked = layout.count;
    settle(descriptor, &layout);
    /* Objects of CephFS may share an OSD: a count above the OSDs stays. */
    if (!getenv("FAKE_LIE"))
        layout.count = asked;
    layout.set = true;
    keep(descriptor, &layout);
    return 0;
}

static int ceph_locate(int descriptor, struct ceph_ioctl_dataloc *location)
{
    struct layout layout;
    if (!recall(descriptor, &layout))
        layout = inherited(descriptor);
    location->osd = target_of(&layout, (uint32_t)(location->file_offset / layout.size % layout.count));
    return 0;
}

static int beegfs_create(int directory, const struct beegfs_mkfile *file)
{
    struct layout layout;
    if (!is_directory(directory)) {
        errno = ENOTDIR;
        return -1;
    }
    if (file->chunksize && (file->chunksize < 65536 || (file->chunksize & (file->chunksize - 1)))) {
        errno = EINVAL;
        return -1;
    }
    const int descriptor = openat(directory, file->filename, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, file->mode & 0777);
    if (descriptor < 0)
        return -1;
    layout = inherited(descriptor);
    layout.count = file->numtargets ? file->numtargets : layout.count;
    layout.size = file->chunksize ? file->chunksize : layout.size;
    settle(descriptor, &layout);
    keep(descriptor, &layout);
    return close(descriptor);
}

static int beegfs_ioctl(int descriptor, unsigned long request, void *argument)
{
    struct layout layout;
    if (request == BEEGFS_IOC_MKFILE_STRIPEHINTS)
        return beegfs_create(descriptor, argument);
    if (is_directory(descriptor)) {
        errno = EISDIR;
        return -1;
    }
    if (!recall(descriptor, &layout))
        layout = inherited(descriptor);
    if (request == BEEGFS_IOC_GET_STRIPEINFO) {
        struct beegfs_stripe_info *info = argument;
        *info = (struct beegfs_stripe_info){.pattern_type = 1, .chunk_size = layout.size};
        info->num_targets = (uint16_t)layout.count;
        return 0;
    }
    struct beegfs_target_v2 *target = argument;
    if (target->index >= layout.count) {
        errno = EINVAL;
        return -1;
    }
    target->target = target_of(&layout, target->index) + 101; /* their numbers begin anywhere */
    target->primary_node = 1;
    return 0;
}

/* A new file has no state of an old one with its number; Lustre gives it its layout unless told to wait. */
static int opened(int descriptor, int flags, bool created)
{
    if (descriptor < 0 || !created || !below(descriptor))
        return descriptor;
    forget(descriptor);
    if (is("lustre") && (flags & O_LOV_DELAY_CREATE) != O_LOV_DELAY_CREATE && !is_directory(descriptor)) {
        struct layout layout = inherited(descriptor);
        if (is("lustre-composite") && layout.count == 1)
            layout.count = 3;
        settle(descriptor, &layout);
        keep(descriptor, &layout);
    }
    return descriptor;
}

static int open_at(int directory, const char *path, int flags, mode_t mode)
{
    int (*call)(int, const char *, int, ...);
    struct stat status;
    const int code = errno;
    *(void **)&call = next("openat");
    const bool created = (flags & O_CREAT) && fstatat(directory, path, &status, 0) != 0;
    errno = code;
    return opened(call(directory, path, flags, mode), flags, created);
}

static mode_t mode_of(int flags, va_list list)
{
    return flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)) ? va_arg(list, mode_t) : 0;
}

#define OPEN(name)                                   \
    int name(const char *path, int flags, ...)       \
    {                                                \
        va_list list;                                \
        va_start(list, flags);                       \
        const mode_t mode = mode_of(flags, list);    \
        va_end(list);                                \
        return open_at(AT_FDCWD, path, flags, mode); \
    }
#define OPENAT(name)                                          \
    int name(int directory, const char *path, int flags, ...) \
    {                                                         \
        va_list list;                                         \
        va_start(list, flags);                                \
        const mode_t mode = mode_of(flags, list);             \
        va_end(list);                                         \
        return open_at(directory, path, flags, mode);         \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int ioctl(int descriptor, unsigned long request, ...)
{
    int (*call)(int, unsigned long, ...);
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    const bool lustre = request == LL_IOC_LOV_SETSTRIPE || request == LL_IOC_LOV_GETSTRIPE;
    const bool beegfs = request == BEEGFS_IOC_GET_STRIPEINFO || request == BEEGFS_IOC_GET_STRIPETARGET_V2 ||
                        request == BEEGFS_IOC_MKFILE_STRIPEHINTS;
    if (lustre && is("lustre") && below(descriptor))
        return request == LL_IOC_LOV_SETSTRIPE           ? lustre_set(descriptor, argument)
               : lustre_record(descriptor, argument) < 0 ? -1
                                                         : 0;
    if (beegfs && is("beegfs") && below(descriptor))
        return beegfs_ioctl(descriptor, request, argument);
    if (request == CEPH_IOC_GET_DATALOC && is("ceph") && below(descriptor))
        return ceph_locate(descriptor, argument);
    *(void **)&call = next("ioctl");
    return call(descriptor, request, argument);
}

/* The length of an attribute that this file system has; -1 with errno. */
static ssize_t attribute(int descriptor, const char *name, unsigned char *value)
{
    errno = EOPNOTSUPP;
    if (is("lustre") && !is("lustre-ioctl") && strcmp(name, "lustre.lov") == 0)
        return lustre_record(descriptor, value);
    if (is("ceph") && strcmp(name, is_directory(descriptor) ? "ceph.dir.layout" : "ceph.file.layout") == 0)
        return ceph_text(descriptor, (char *)value, 65536);
    return -1;
}

ssize_t fgetxattr(int descriptor, const char *name, void *value, size_t size)
{
    ssize_t (*call)(int, const char *, void *, size_t);
    *(void **)&call = next("fgetxattr");
    if (!below(descriptor))
        return call(descriptor, name, value, size);
    unsigned char *here = calloc(1, 65536);
    if (!here)
        abort();
    ssize_t length = attribute(descriptor, name, here);
    if (length > 0 && (size_t)length <= size)
        memcpy(value, here, (size_t)length);
    free(here);
    if (length > 0 && size > 0 && (size_t)length > size) {
        errno = ERANGE;
        return -1;
    }
    return length;
}

int fsetxattr(int descriptor, const char *name, const void *value, size_t size, int flags)
{
    int (*call)(int, const char *, const void *, size_t, int);
    if (is("ceph") && below(descriptor) && strncmp(name, "ceph.", 5) == 0)
        return ceph_set(descriptor, name, value, size);
    *(void **)&call = next("fsetxattr");
    return call(descriptor, name, value, size, flags);
}

static unsigned type_of(int descriptor, unsigned otherwise)
{
    if (!below(descriptor))
        return otherwise;
    return is("lustre")   ? 0x0bd00bd0
           : is("ceph")   ? 0x00c36400
           : is("beegfs") ? 0x19830326
           : is("gpfs")   ? 0x47504653
                          : otherwise;
}

int fstatfs(int descriptor, struct statfs *system)
{
    int (*call)(int, struct statfs *);
    *(void **)&call = next("fstatfs");
    const int status = call(descriptor, system);
    if (status == 0)
        system->f_type = type_of(descriptor, (unsigned)system->f_type);
    return status;
}

int fstatfs64(int descriptor, struct statfs64 *system)
{
    int (*call)(int, struct statfs64 *);
    *(void **)&call = next("fstatfs64");
    const int status = call(descriptor, system);
    if (status == 0)
        system->f_type = type_of(descriptor, (unsigned)system->f_type);
    return status;
}
