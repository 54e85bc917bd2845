#include "interfaces/mount.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Magic numbers as in linux/magic.h and in the file systems' own sources. */
static const struct {
    unsigned long magic;
    const char *name;
} file_systems[] = {
    {0x0bd00bd0, "lustre"}, {0x47504653, "gpfs"},     {0x19830326, "beegfs"},   {0x00c36400, "ceph"},
    {0x6969, "nfs"},        {0x20030528, "orangefs"}, {0xaad7aaea, "panfs"},    {0x65735546, "fuse"},
    {0x01021994, "tmpfs"},  {0x858458f6, "ramfs"},    {0xef53, "ext4"},         {0x58465342, "xfs"},
    {0x9123683e, "btrfs"},  {0x2fc12fc1, "zfs"},      {0x794c7630, "overlay"},  {0x01021997, "9p"},
    {0xff534d42, "cifs"},   {0xfe534d42, "smb2"},     {0x7461636f, "ocfs2"},    {0x01161970, "gfs2"},
    {0xf2f52010, "f2fs"},   {0x4d44, "vfat"},         {0xca451a4e, "bcachefs"},
};

/* Copies a field of /proc/self/mountinfo up to its blank; the kernel writes blanks in it as \040. */
static const char *copy_field(const char *from, char *to, size_t size)
{
    size_t length = 0;
    while (*from && !isspace((unsigned char)*from)) {
        int code = (unsigned char)*from++;
        if (code == '\\' && strspn(from, "01234567") >= 3) {
            code = (from[0] - '0') * 64 + (from[1] - '0') * 8 + (from[2] - '0');
            from += 3;
        }
        if (length + 1 < size)
            to[length++] = (char)code;
    }
    to[length] = '\0';
    return from + strspn(from, " ");
}

static const char *skip_field(const char *from)
{
    from += strcspn(from, " ");
    return from + strspn(from, " ");
}

/* Options of the mount, then those of the file system, which begin with rw or ro again.
 * 36 35 98:0 /root /mount/point rw,noatime shared:1 - ext3 /dev/root rw,errors=continue */
static void read_line(const char *line, struct und_storage *storage)
{
    const char *at = skip_field(skip_field(skip_field(skip_field(line))));
    at = copy_field(at, storage->mount_point, sizeof storage->mount_point);
    copy_field(at, storage->mount_options, sizeof storage->mount_options);
    at = strstr(at, " - ");
    if (!at)
        return;
    at = copy_field(at + 3, storage->type, sizeof storage->type);
    at = copy_field(at, storage->source, sizeof storage->source);
    if (strncmp(at, "rw", 2) == 0 || strncmp(at, "ro", 2) == 0)
        at += 2;
    const size_t length = strlen(storage->mount_options);
    snprintf(storage->mount_options + length, sizeof storage->mount_options - length, "%.*s", (int)strcspn(at, "\n"),
             at);
}

/* The number of the mount that an open file is on: the kernel's word, also where mounts hide others. */
static int64_t mount_of(int descriptor)
{
    char path[64], line[256];
    int64_t id = -1;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", descriptor);
    FILE *file = fopen(path, "r");
    if (!file)
        return -1;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "mnt_id:", 7) == 0)
            id = strtoll(line + 7, NULL, 10);
    fclose(file);
    return id;
}

static void read_mount(int descriptor, struct und_storage *storage)
{
    const int64_t id = mount_of(descriptor);
    char *line = NULL;
    size_t size = 0;
    FILE *file = id < 0 ? NULL : fopen("/proc/self/mountinfo", "r");
    if (!file)
        return;
    while (getline(&line, &size, file) > 0)
        if (strtoll(line, NULL, 10) == id) {
            read_line(line, storage);
            break;
        }
    free(line);
    fclose(file);
}

/* The usual name; what the mount table calls it where that says more, as in fuse.sshfs. */
static void name_type(unsigned long magic, struct und_storage *storage)
{
    for (size_t i = 0; i < sizeof file_systems / sizeof file_systems[0]; ++i)
        if (file_systems[i].magic == magic && (strcmp(file_systems[i].name, "fuse") != 0 || !storage->type[0])) {
            snprintf(storage->type, sizeof storage->type, "%s", file_systems[i].name);
            return;
        }
    if (!storage->type[0])
        snprintf(storage->type, sizeof storage->type, "0x%lx", magic);
}

void und_file_layout_unknown(struct und_file_layout *layout)
{
    layout->backend[0] = layout->pool[0] = '\0';
    layout->stripe_count = 0;
    layout->stripe_size_bytes = layout->target_count = -1;
}

bool und_storage_read(const char *directory, struct und_storage *storage, struct und_error *error)
{
    struct statfs kind;
    struct statvfs space;
    memset(storage, 0, sizeof *storage);
    und_file_layout_unknown(&storage->default_layout);
    const int descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return und_fail(error, "cannot open the directory %s: %s", directory, strerror(errno));
    const bool read = fstatfs(descriptor, &kind) == 0 && fstatvfs(descriptor, &space) == 0;
    const int code = errno;
    if (read)
        read_mount(descriptor, storage);
    close(descriptor);
    if (!read)
        return und_fail(error, "cannot find the file system of %s: %s", directory, strerror(code));
    name_type((unsigned long)kind.f_type & 0xffffffffUL, storage);
    storage->total_bytes = (int64_t)(space.f_blocks * space.f_frsize);
    storage->free_bytes = (int64_t)(space.f_bavail * space.f_frsize);
    storage->total_inodes = space.f_files > 0 ? (int64_t)space.f_files : -1;
    storage->free_inodes = space.f_files > 0 ? (int64_t)space.f_favail : -1;
    return true;
}
