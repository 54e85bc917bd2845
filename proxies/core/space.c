#include "core/space.h"

#include "core/storage.h"

#include <sys/statvfs.h>

bool und_space_is_out(const char *path, int64_t bytes)
{
    struct statvfs system;
    if (statvfs(und_storage_name(path), &system) != 0 || system.f_frsize == 0)
        return false;
    return (uint64_t)system.f_bavail < (uint64_t)bytes / system.f_frsize + 1;
}
