/*
 * Programs that stripe files by the ioctls of Lustre do so on CephFS, if this is preloaded: a layout
 * of Lustre becomes one of CephFS, with the object size of the directory, and file systems of
 * ceph-fuse call themselves Lustre. ADIOS 1.13 is such a program. It shares no code with the player.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <sys/xattr.h>

enum { LUSTRE = 0x0bd00bd0, ALL_TARGETS = 0xffff };
static const unsigned FUSE = 0x65735546;
static const char attribute[] = "ceph.file.layout";

/* lov_user_md of lustre_user.h, version 1, without its objects. */
struct layout {
    uint32_t magic, pattern;
    uint64_t id, sequence;
    uint32_t stripe_size;
    uint16_t stripe_count, first_target;
} __attribute__((packed));
#define SET_STRIPE _IOW('f', 154, long)
#define GET_STRIPE _IOW('f', 155, long)

/* The call that this file stands before. */
static void *next(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (!function)
        abort();
    return function;
}

static bool read_layout(int descriptor, uint32_t *unit, uint32_t *count, uint64_t *object)
{
    char text[512] = "";
    const int code = errno;
    const bool read = fgetxattr(descriptor, attribute, text, sizeof text - 1) > 0 &&
                      sscanf(text, "stripe_unit=%u stripe_count=%u object_size=%lu", unit, count, object) == 3;
    errno = code;
    return read;
}

static int set_layout(int descriptor, const struct layout *layout)
{
    uint32_t unit, count;
    uint64_t object;
    char text[256];
    if (!read_layout(descriptor, &unit, &count, &object) || layout->stripe_count == ALL_TARGETS) {
        errno = EINVAL;
        return -1;
    }
    unit = layout->stripe_size ? layout->stripe_size : unit;
    count = layout->stripe_count ? layout->stripe_count : count;
    const int length = snprintf(text, sizeof text, "stripe_unit=%u stripe_count=%u object_size=%lu", unit, count,
                                object / unit * unit);
    return fsetxattr(descriptor, attribute, text, (size_t)length, 0);
}

static int get_layout(int descriptor, struct layout *layout)
{
    uint32_t unit, count;
    uint64_t object;
    if (!read_layout(descriptor, &unit, &count, &object)) {
        errno = ENODATA;
        return -1;
    }
    layout->pattern = 1;
    layout->stripe_size = unit;
    layout->stripe_count = (uint16_t)count;
    layout->first_target = 0;
    return 0;
}

int ioctl(int descriptor, unsigned long request, ...)
{
    int (*call)(int, unsigned long, ...);
    uint32_t unit, count;
    uint64_t object;
    va_list list;
    va_start(list, request);
    void *argument = va_arg(list, void *);
    va_end(list);
    if ((request == SET_STRIPE || request == GET_STRIPE) && read_layout(descriptor, &unit, &count, &object))
        return request == SET_STRIPE ? set_layout(descriptor, argument) : get_layout(descriptor, argument);
    *(void **)&call = next("ioctl");
    return call(descriptor, request, argument);
}

/* Only ADIOS asks by path; the player, which asks by descriptor, is told the truth. */
#define STATFS(name)                                         \
    int name(const char *path, struct name *system)          \
    {                                                        \
        int (*call)(const char *, struct name *);            \
        *(void **)&call = next(#name);                       \
        const int status = call(path, system);               \
        if (status == 0 && (unsigned)system->f_type == FUSE) \
            system->f_type = LUSTRE;                         \
        return status;                                       \
    }
STATFS(statfs)
STATFS(statfs64)
