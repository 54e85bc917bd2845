#include "storage/space.h"

#include "storage/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Appends that many bytes and flushes them; 0, or errno. */
static int append(int descriptor, int64_t bytes)
{
    static const char zeros[UND_FULL_BYTES];
    off_t end = lseek(descriptor, 0, SEEK_END);
    bool good = end >= 0;
    while (good && bytes > 0) {
        const size_t size = bytes < UND_FULL_BYTES ? (size_t)bytes : UND_FULL_BYTES;
        const ssize_t written = pwrite(descriptor, zeros, size, end);
        good = written > 0;
        end += good ? written : 0;
        bytes -= good ? written : 0;
    }
    return good && fsync(descriptor) == 0 ? 0 : errno;
}

int und_space_refusal(const struct und_directory *directory, const char *path, int64_t bytes)
{
    struct statvfs system;
    const char *name = und_directory_name(directory, path);
    const int descriptor = open(name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const int why = descriptor < 0 ? 0 : append(descriptor, bytes); /* it may be gone with the run */
    if (descriptor >= 0)
        close(descriptor);
    if (why != 0 || statvfs(name, &system) != 0 || system.f_frsize == 0)
        return why;
    return (uint64_t)system.f_bavail < (uint64_t)bytes / system.f_frsize + 1 ? ENOSPC : 0;
}
