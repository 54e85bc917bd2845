/*
 * BeeGFS, without its library: a file is created with its layout by an ioctl on the directory, and
 * tells it by two others. A file's layout cannot be changed, the default of a directory only by the
 * tools of an administrator; targets and pools of a file cannot be chosen this way.
 */
#define _GNU_SOURCE
#include "interfaces/layout_request.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* The arguments and answers of the client's ioctls. */
struct new_file {
    const char *name;
    unsigned mode, target_count, chunk_bytes; /* 0: as the directory has it; of targets ~0: all */
};

struct pattern {
    unsigned type, chunk_bytes; /* answers */
    uint16_t target_count;
};

struct target {
    uint32_t index;  /* asked for; the others are answers */
    uint32_t number; /* of the target, or of the group of mirrored ones */
    uint32_t primary_target, secondary_target, primary_node, secondary_node;
    char primary_alias[256], secondary_alias[256];
};

#define CREATE_FILE _IOW('f', 27, struct new_file)
#define GET_PATTERN _IOR('f', 25, struct pattern)
#define GET_TARGET _IOR('f', 26, struct target)

static bool beegfs_handles(const struct und_storage *storage)
{
    return strcmp(storage->type, "beegfs") == 0;
}

static int beegfs_create(int directory, const char *name, const struct und_layout_request *request,
                         struct und_error *error)
{
    const mode_t mask = umask(0);
    umask(mask);
    struct new_file file = {
        .name = name,
        .mode = 0666 & ~mask,
        .target_count = request->stripe_count == UND_ALL_TARGETS ? ~0U : (unsigned)request->stripe_count,
        .chunk_bytes = (unsigned)request->stripe_size_bytes,
    };
    /* The one given may be open as a mere place (O_PATH), which has no ioctls. */
    const int opened = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bool created = opened >= 0 && ioctl(opened, CREATE_FILE, &file) == 0;
    const int why = errno;
    if (opened >= 0)
        close(opened);
    errno = why;
    if (!created) {
        und_fail(error, "beegfs: cannot create %s with the layout: %s", name, strerror(errno));
        return -1;
    }
    const int descriptor = openat(directory, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (descriptor >= 0)
        return descriptor;
    const int code = errno;
    und_fail(error, "beegfs: cannot open %s: %s", name, strerror(code));
    unlinkat(directory, name, 0);
    errno = code;
    return -1;
}

static bool beegfs_read(int descriptor, struct und_file_layout *layout, struct und_error *error)
{
    struct pattern pattern;
    und_file_layout_unknown(layout);
    if (ioctl(descriptor, GET_PATTERN, &pattern) != 0)
        return und_fail(error, "beegfs: cannot read the layout: %s", strerror(errno));
    layout->stripe_count = pattern.target_count;
    layout->stripe_size_bytes = pattern.chunk_bytes;
    int count = 0;
    for (; count < pattern.target_count && count < UND_MAX_TARGETS; ++count) {
        struct target target = {.index = (uint32_t)count};
        if (ioctl(descriptor, GET_TARGET, &target) != 0)
            break;
        layout->targets[count] = target.number;
    }
    if (count == pattern.target_count)
        layout->target_count = count;
    snprintf(layout->backend, sizeof layout->backend, "beegfs");
    return true;
}

static void beegfs_describe(const char *root, struct und_storage *storage)
{
    und_layout_backend_line(root, "/sys/module/beegfs/version", storage->client_version,
                            sizeof storage->client_version);
}

const struct und_layout_backend und_layout_backend_beegfs = {
    .name = "beegfs",
    .handles = beegfs_handles,
    .create = beegfs_create,
    .read = beegfs_read,
    .describe = beegfs_describe,
    .takes_all = true,
    .max_stripe_count = UINT16_MAX,
    .unit_bytes = 65536,
    .max_stripe_bytes = INT64_C(1) << 31,
    .power_of_two = true,
};
