#define _XOPEN_SOURCE 700
#include "core/space.h"

#include "core/agree.h"
#include "core/storage.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

bool und_space_permits(int64_t bytes, MPI_Comm comm, struct und_error *error)
{
    struct rlimit limit;
    int rank;
    char host[256] = "";
    const bool permits =
        getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= (rlim_t)bytes;
    MPI_Comm_rank(comm, &rank);
    gethostname(host, sizeof host - 1);
    if (!permits)
        und_fail(error,
                 "%s: a file of the workload takes %" PRId64 " bytes, but rank %d may write at most %" PRIu64
                 " to a file (RLIMIT_FSIZE): raise the limit with `ulimit -f`",
                 host, bytes, rank, (uint64_t)limit.rlim_cur);
    return und_agree(permits, comm, error);
}

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

int und_space_refusal(const char *path, int64_t bytes)
{
    struct statvfs system;
    const char *name = und_storage_name(path);
    const int descriptor = open(name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const int why = descriptor < 0 ? 0 : append(descriptor, bytes); /* it may be gone with the run */
    if (descriptor >= 0)
        close(descriptor);
    if (why != 0 || statvfs(name, &system) != 0 || system.f_frsize == 0)
        return why;
    return (uint64_t)system.f_bavail < (uint64_t)bytes / system.f_frsize + 1 ? ENOSPC : 0;
}
