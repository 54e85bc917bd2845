/*
 * Where the time of this process goes inside ADIOS: a clock that runs in one of three states, turned by
 * the calls that are intercepted, those of MPI by its profiling interface and those of the C library by
 * taking their names first. See skeleton.h for what is measured.
 */
#undef _FILE_OFFSET_BITS /* open and open64, lseek and lseek64 are defined below, each under its own name */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include "internal.h"

#include "text/print.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

double skeleton_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static _Thread_local bool inside; /* is this thread in a call of ADIOS? */
static struct {
    enum state state;
    double begin_s, since_s;
    double seconds[STATES];
} ledger; /* touched by the thread with `inside` only */

void skeleton_clock_turn(enum state next)
{
    const double now = skeleton_now_s();
    ledger.seconds[ledger.state] += now - ledger.since_s;
    ledger.since_s = now;
    ledger.state = next;
}

double skeleton_clock_begin(void)
{
    memset(ledger.seconds, 0, sizeof ledger.seconds);
    ledger.state = STATE_REST;
    ledger.begin_s = ledger.since_s = skeleton_now_s();
    inside = true;
    return ledger.begin_s;
}

void skeleton_clock_end(struct skeleton_times *times)
{
    skeleton_clock_turn(STATE_REST);
    inside = false;
    times->begin_s = ledger.begin_s;
    times->end_s = ledger.since_s;
    memcpy(times->seconds, ledger.seconds, sizeof times->seconds);
}

/* The outermost call counts: MPI-IO may be made of messages, and messages of file calls. */
static bool begin_call(enum state kind)
{
    if (!inside || ledger.state != STATE_REST)
        return false;
    skeleton_clock_turn(kind);
    return true;
}

static void end_call(bool begun)
{
    if (begun) {
        const int saved = errno;
        skeleton_clock_turn(STATE_REST);
        errno = saved;
    }
}

#define INTERCEPT_MPI(kind, name, parameters, arguments) \
    int MPI_##name parameters                            \
    {                                                    \
        const bool begun = begin_call(STATE_##kind);     \
        const int code = PMPI_##name arguments;          \
        end_call(begun);                                 \
        return code;                                     \
    }

typedef MPI_Datatype type_t; /* short names, to keep the table below readable */
typedef MPI_Request req_t;
typedef MPI_Status stat_t;

INTERCEPT_MPI(COMMUNICATION, Barrier, (MPI_Comm c), (c))
INTERCEPT_MPI(COMMUNICATION, Bcast, (void *b, int n, type_t t, int root, MPI_Comm c), (b, n, t, root, c))
INTERCEPT_MPI(COMMUNICATION, Gather,
              (const void *s, int sn, type_t st, void *r, int rn, type_t rt, int root, MPI_Comm c),
              (s, sn, st, r, rn, rt, root, c))
INTERCEPT_MPI(COMMUNICATION, Gatherv,
              (const void *s, int sn, type_t st, void *r, const int *rn, const int *rd, type_t rt, int root,
               MPI_Comm c),
              (s, sn, st, r, rn, rd, rt, root, c))
INTERCEPT_MPI(COMMUNICATION, Scatter,
              (const void *s, int sn, type_t st, void *r, int rn, type_t rt, int root, MPI_Comm c),
              (s, sn, st, r, rn, rt, root, c))
INTERCEPT_MPI(COMMUNICATION, Scatterv,
              (const void *s, const int *sn, const int *sd, type_t st, void *r, int rn, type_t rt, int root,
               MPI_Comm c),
              (s, sn, sd, st, r, rn, rt, root, c))
INTERCEPT_MPI(COMMUNICATION, Allgather, (const void *s, int sn, type_t st, void *r, int rn, type_t rt, MPI_Comm c),
              (s, sn, st, r, rn, rt, c))
INTERCEPT_MPI(COMMUNICATION, Allgatherv,
              (const void *s, int sn, type_t st, void *r, const int *rn, const int *rd, type_t rt, MPI_Comm c),
              (s, sn, st, r, rn, rd, rt, c))
INTERCEPT_MPI(COMMUNICATION, Alltoall, (const void *s, int sn, type_t st, void *r, int rn, type_t rt, MPI_Comm c),
              (s, sn, st, r, rn, rt, c))
INTERCEPT_MPI(COMMUNICATION, Alltoallv,
              (const void *s, const int *sn, const int *sd, type_t st, void *r, const int *rn, const int *rd, type_t rt,
               MPI_Comm c),
              (s, sn, sd, st, r, rn, rd, rt, c))
INTERCEPT_MPI(COMMUNICATION, Reduce, (const void *s, void *r, int n, type_t t, MPI_Op o, int root, MPI_Comm c),
              (s, r, n, t, o, root, c))
INTERCEPT_MPI(COMMUNICATION, Allreduce, (const void *s, void *r, int n, type_t t, MPI_Op o, MPI_Comm c),
              (s, r, n, t, o, c))
INTERCEPT_MPI(COMMUNICATION, Reduce_scatter, (const void *s, void *r, const int *n, type_t t, MPI_Op o, MPI_Comm c),
              (s, r, n, t, o, c))
INTERCEPT_MPI(COMMUNICATION, Scan, (const void *s, void *r, int n, type_t t, MPI_Op o, MPI_Comm c), (s, r, n, t, o, c))
INTERCEPT_MPI(COMMUNICATION, Exscan, (const void *s, void *r, int n, type_t t, MPI_Op o, MPI_Comm c),
              (s, r, n, t, o, c))
INTERCEPT_MPI(COMMUNICATION, Send, (const void *b, int n, type_t t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c))
INTERCEPT_MPI(COMMUNICATION, Ssend, (const void *b, int n, type_t t, int to, int tag, MPI_Comm c),
              (b, n, t, to, tag, c))
INTERCEPT_MPI(COMMUNICATION, Rsend, (const void *b, int n, type_t t, int to, int tag, MPI_Comm c),
              (b, n, t, to, tag, c))
INTERCEPT_MPI(COMMUNICATION, Isend, (const void *b, int n, type_t t, int to, int tag, MPI_Comm c, req_t *q),
              (b, n, t, to, tag, c, q))
INTERCEPT_MPI(COMMUNICATION, Recv, (void *b, int n, type_t t, int from, int tag, MPI_Comm c, stat_t *s),
              (b, n, t, from, tag, c, s))
INTERCEPT_MPI(COMMUNICATION, Irecv, (void *b, int n, type_t t, int from, int tag, MPI_Comm c, req_t *q),
              (b, n, t, from, tag, c, q))
INTERCEPT_MPI(COMMUNICATION, Sendrecv,
              (const void *s, int sn, type_t st, int to, int stag, void *r, int rn, type_t rt, int from, int rtag,
               MPI_Comm c, stat_t *status),
              (s, sn, st, to, stag, r, rn, rt, from, rtag, c, status))
INTERCEPT_MPI(COMMUNICATION, Probe, (int from, int tag, MPI_Comm c, stat_t *s), (from, tag, c, s))
INTERCEPT_MPI(COMMUNICATION, Iprobe, (int from, int tag, MPI_Comm c, int *flag, stat_t *s), (from, tag, c, flag, s))
INTERCEPT_MPI(COMMUNICATION, Wait, (req_t * q, stat_t *s), (q, s))
INTERCEPT_MPI(COMMUNICATION, Waitall, (int n, req_t q[], stat_t s[]), (n, q, s))
INTERCEPT_MPI(COMMUNICATION, Waitany, (int n, req_t q[], int *index, stat_t *s), (n, q, index, s))
INTERCEPT_MPI(COMMUNICATION, Waitsome, (int n, req_t q[], int *done, int index[], stat_t s[]), (n, q, done, index, s))
INTERCEPT_MPI(COMMUNICATION, Test, (req_t * q, int *flag, stat_t *s), (q, flag, s))
INTERCEPT_MPI(COMMUNICATION, Testall, (int n, req_t q[], int *flag, stat_t s[]), (n, q, flag, s))
INTERCEPT_MPI(COMMUNICATION, Comm_dup, (MPI_Comm c, MPI_Comm *new_comm), (c, new_comm))
INTERCEPT_MPI(COMMUNICATION, Comm_split, (MPI_Comm c, int color, int key, MPI_Comm *new_comm),
              (c, color, key, new_comm))
INTERCEPT_MPI(COMMUNICATION, Comm_free, (MPI_Comm * c), (c))

INTERCEPT_MPI(IO, File_open, (MPI_Comm c, const char *path, int mode, MPI_Info i, MPI_File *f), (c, path, mode, i, f))
INTERCEPT_MPI(IO, File_close, (MPI_File * f), (f))
INTERCEPT_MPI(IO, File_delete, (const char *path, MPI_Info i), (path, i))
INTERCEPT_MPI(IO, File_sync, (MPI_File f), (f))
INTERCEPT_MPI(IO, File_seek, (MPI_File f, MPI_Offset to, int whence), (f, to, whence))
INTERCEPT_MPI(IO, File_get_size, (MPI_File f, MPI_Offset *size), (f, size))
INTERCEPT_MPI(IO, File_set_size, (MPI_File f, MPI_Offset size), (f, size))
INTERCEPT_MPI(IO, File_preallocate, (MPI_File f, MPI_Offset size), (f, size))
INTERCEPT_MPI(IO, File_set_view, (MPI_File f, MPI_Offset at, type_t e, type_t t, const char *rep, MPI_Info i),
              (f, at, e, t, rep, i))
INTERCEPT_MPI(IO, File_write, (MPI_File f, const void *b, int n, type_t t, stat_t *s), (f, b, n, t, s))
INTERCEPT_MPI(IO, File_write_all, (MPI_File f, const void *b, int n, type_t t, stat_t *s), (f, b, n, t, s))
INTERCEPT_MPI(IO, File_write_at, (MPI_File f, MPI_Offset at, const void *b, int n, type_t t, stat_t *s),
              (f, at, b, n, t, s))
INTERCEPT_MPI(IO, File_write_at_all, (MPI_File f, MPI_Offset at, const void *b, int n, type_t t, stat_t *s),
              (f, at, b, n, t, s))
INTERCEPT_MPI(IO, File_read, (MPI_File f, void *b, int n, type_t t, stat_t *s), (f, b, n, t, s))
INTERCEPT_MPI(IO, File_read_all, (MPI_File f, void *b, int n, type_t t, stat_t *s), (f, b, n, t, s))
INTERCEPT_MPI(IO, File_read_at, (MPI_File f, MPI_Offset at, void *b, int n, type_t t, stat_t *s), (f, at, b, n, t, s))
INTERCEPT_MPI(IO, File_read_at_all, (MPI_File f, MPI_Offset at, void *b, int n, type_t t, stat_t *s),
              (f, at, b, n, t, s))

/* The next definition of the name: the C library's, or that of a profiler that was loaded before. */
static void next_definition(const char *name, void *function)
{
    void *const definition = dlsym(RTLD_NEXT, name);
    if (!definition) {
        und_print(stderr, "skeleton: %s: the C library has no such function", name);
        abort();
    }
    memcpy(function, &definition, sizeof definition);
}

#define INTERCEPT(result, name, parameters, arguments) \
    result name parameters                             \
    {                                                  \
        static result(*next) parameters;               \
        if (!next)                                     \
            next_definition(#name, &next);             \
        const bool begun = begin_call(STATE_IO);       \
        const result value = next arguments;           \
        end_call(begun);                               \
        return value;                                  \
    }

INTERCEPT(ssize_t, read, (int fd, void *b, size_t n), (fd, b, n))
INTERCEPT(ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n))
INTERCEPT(off_t, lseek, (int fd, off_t to, int whence), (fd, to, whence))
INTERCEPT(off64_t, lseek64, (int fd, off64_t to, int whence), (fd, to, whence))
INTERCEPT(int, fsync, (int fd), (fd))
INTERCEPT(int, close, (int fd), (fd))
INTERCEPT(int, mkdir, (const char *path, mode_t mode), (path, mode))
INTERCEPT(int, unlink, (const char *path), (path))

/* The same for those with an argument more or less. ADIOS creates no file through a link: one that stands where the
 * run will write was put there by somebody else. */
#define INTERCEPT_OPEN(name)                                                            \
    int name(const char *path, int flags, ...)                                          \
    {                                                                                   \
        static int (*next)(const char *, int, ...);                                     \
        if (!next)                                                                      \
            next_definition(#name, &next);                                              \
        va_list more;                                                                   \
        va_start(more, flags);                                                          \
        const bool makes = (flags & (O_CREAT | __O_TMPFILE)) != 0;                      \
        const unsigned mode = makes ? va_arg(more, unsigned) : 0;                       \
        va_end(more);                                                                   \
        const bool begun = begin_call(STATE_IO);                                        \
        const int value = next(path, flags | (inside && makes ? O_NOFOLLOW : 0), mode); \
        end_call(begun);                                                                \
        return value;                                                                   \
    }

INTERCEPT_OPEN(open)
INTERCEPT_OPEN(open64)

int ioctl(int fd, unsigned long request, ...)
{
    static int (*next)(int, unsigned long, ...);
    if (!next)
        next_definition("ioctl", &next);
    va_list more;
    va_start(more, request);
    void *const argument = va_arg(more, void *);
    va_end(more);
    const bool begun = begin_call(STATE_IO);
    const int value = next(fd, request, argument);
    end_call(begun);
    return value;
}
