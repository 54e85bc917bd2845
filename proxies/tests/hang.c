/*
 * To be preloaded: a call of a rank does not return, as on a file system that does not answer.
 *
 *   HANG_RANK   the rank
 *   HANG_RANK_VARIABLE  where the launcher tells a process its rank
 *   HANG_CALL   write (pwrite) or fsync
 *   HANG_TURN   the call of that name on a regular file with this number, from 1
 *   HANG_DEAF   if set, no signal reaches the rank from then on, as in the kernel
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* both names of each call are defined here */
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void hang(const char *call, int descriptor)
{
    static int turn;
    struct stat status;
    const char *variable = getenv("HANG_RANK_VARIABLE"), *rank = variable ? getenv(variable) : NULL;
    const char *wanted = getenv("HANG_RANK"), *at = getenv("HANG_CALL");
    if (!rank || !wanted || !at || strcmp(rank, wanted) != 0 || strcmp(call, at) != 0 ||
        fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
        return;
    if (++turn != (int)strtol(getenv("HANG_TURN"), NULL, 10))
        return;
    if (getenv("HANG_DEAF")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
    }
    for (;;)
        pause();
}

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

ssize_t pwrite(int descriptor, const void *data, size_t bytes, off_t offset)
{
    ssize_t (*call)(int, const void *, size_t, off_t);
    *(void **)&call = next("pwrite");
    hang("write", descriptor);
    return call(descriptor, data, bytes, offset);
}

ssize_t pwrite64(int descriptor, const void *data, size_t bytes, off64_t offset)
{
    ssize_t (*call)(int, const void *, size_t, off64_t);
    *(void **)&call = next("pwrite64");
    hang("write", descriptor);
    return call(descriptor, data, bytes, offset);
}

int fsync(int descriptor)
{
    int (*call)(int);
    *(void **)&call = next("fsync");
    hang("fsync", descriptor);
    return call(descriptor);
}
