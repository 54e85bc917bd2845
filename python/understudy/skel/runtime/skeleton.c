/* See skeleton.h for what this is for, and for what is measured. */
#undef _FILE_OFFSET_BITS /* open and open64, lseek and lseek64 are defined below, each under its own name */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include "skeleton.h"

#include <adios.h>
#include <adios_error.h>
#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <float.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

/* In the library, but in none of its headers. */
int adios_get_timing_value(int64_t file, int64_t index, double *value);

enum phase { PHASE_OPEN, PHASE_WRITE, PHASE_CLOSE, PHASES };
enum { PATIENCE_MS = 5000, PAUSE_MS = 5, LATE_MS = 100, OPENING_US = 50000 };
enum { LIBRARY_TIMERS = 8, LIBRARY_FIRST_TIMER = 16, MAX_GROUPS = 64, PATH_BYTES = 4096 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- Where the time of this process goes: a clock that runs in one of three states ------------------- */

enum state { STATE_REST, STATE_COMMUNICATION, STATE_IO, STATES };

static _Thread_local bool inside; /* is this thread in a call of ADIOS? */
static struct {
    enum state state;
    double since_s;
    double seconds[STATES];
} ledger; /* touched by the thread with `inside` only */

static void turn(enum state next)
{
    const double now = now_s();
    ledger.seconds[ledger.state] += now - ledger.since_s;
    ledger.since_s = now;
    ledger.state = next;
}

/* The outermost call counts: MPI-IO may be made of messages, and messages of file calls. */
static bool begin_call(enum state kind)
{
    if (!inside || ledger.state != STATE_REST)
        return false;
    turn(kind);
    return true;
}

static void end_call(bool begun)
{
    if (begun) {
        const int saved = errno;
        turn(STATE_REST);
        errno = saved;
    }
}

/* ---- Calls that are caught: MPI by its profiling interface, files by taking the name first ----------- */

#define CAUGHT(kind, name, parameters, arguments)    \
    int MPI_##name parameters                        \
    {                                                \
        const bool begun = begin_call(STATE_##kind); \
        const int code = PMPI_##name arguments;      \
        end_call(begun);                             \
        return code;                                 \
    }

typedef MPI_Datatype type_t; /* short names, to keep the table below readable */
typedef MPI_Request req_t;
typedef MPI_Status stat_t;

CAUGHT(COMMUNICATION, Barrier, (MPI_Comm c), (c))
CAUGHT(COMMUNICATION, Bcast, (void *b, int n, type_t t, int root, MPI_Comm c), (b, n, t, root, c))
CAUGHT(COMMUNICATION, Gather, (const void *s, int sn, type_t st, void *r, int rn, type_t rt, int root, MPI_Comm c),
       (s, sn, st, r, rn, rt, root, c))
CAUGHT(COMMUNICATION, Gatherv,
       (const void *s, int sn, type_t st, void *r, const int *rn, const int *rd, type_t rt, int root, MPI_Comm c),
       (s, sn, st, r, rn, rd, rt, root, c))
CAUGHT(COMMUNICATION, Scatter, (const void *s, int sn, type_t st, void *r, int rn, type_t rt, int root, MPI_Comm c),
       (s, sn, st, r, rn, rt, root, c))
CAUGHT(COMMUNICATION, Scatterv,
       (const void *s, const int *sn, const int *sd, type_t st, void *r, int rn, type_t rt, int root, MPI_Comm c),
       (s, sn, sd, st, r, rn, rt, root, c))
CAUGHT(COMMUNICATION, Allgather, (const void *s, int sn, type_t st, void *r, int rn, type_t rt, MPI_Comm c),
       (s, sn, st, r, rn, rt, c))
CAUGHT(COMMUNICATION, Allgatherv,
       (const void *s, int sn, type_t st, void *r, const int *rn, const int *rd, type_t rt, MPI_Comm c),
       (s, sn, st, r, rn, rd, rt, c))
CAUGHT(COMMUNICATION, Alltoall, (const void *s, int sn, type_t st, void *r, int rn, type_t rt, MPI_Comm c),
       (s, sn, st, r, rn, rt, c))
CAUGHT(COMMUNICATION, Alltoallv,
       (const void *s, const int *sn, const int *sd, type_t st, void *r, const int *rn, const int *rd, type_t rt,
        MPI_Comm c),
       (s, sn, sd, st, r, rn, rd, rt, c))
CAUGHT(COMMUNICATION, Reduce, (const void *s, void *r, int n, type_t t, MPI_Op o, int root, MPI_Comm c),
       (s, r, n, t, o, root, c))
CAUGHT(COMMUNICATION, Allreduce, (const void *s, void *r, int n, type_t t, MPI_Op o, MPI_Comm c), (s, r, n, t, o, c))
CAUGHT(COMMUNICATION, Reduce_scatter, (const void *s, void *r, const int *n, type_t t, MPI_Op o, MPI_Comm c),
       (s, r, n, t, o, c))
CAUGHT(COMMUNICATION, Scan, (const void *s, void *r, int n, type_t t, MPI_Op o, MPI_Comm c), (s, r, n, t, o, c))
CAUGHT(COMMUNICATION, Exscan, (const void *s, void *r, int n, type_t t, MPI_Op o, MPI_Comm c), (s, r, n, t, o, c))
CAUGHT(COMMUNICATION, Send, (const void *b, int n, type_t t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c))
CAUGHT(COMMUNICATION, Ssend, (const void *b, int n, type_t t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c))
CAUGHT(COMMUNICATION, Rsend, (const void *b, int n, type_t t, int to, int tag, MPI_Comm c), (b, n, t, to, tag, c))
CAUGHT(COMMUNICATION, Isend, (const void *b, int n, type_t t, int to, int tag, MPI_Comm c, req_t *q),
       (b, n, t, to, tag, c, q))
CAUGHT(COMMUNICATION, Recv, (void *b, int n, type_t t, int from, int tag, MPI_Comm c, stat_t *s),
       (b, n, t, from, tag, c, s))
CAUGHT(COMMUNICATION, Irecv, (void *b, int n, type_t t, int from, int tag, MPI_Comm c, req_t *q),
       (b, n, t, from, tag, c, q))
CAUGHT(COMMUNICATION, Sendrecv,
       (const void *s, int sn, type_t st, int to, int stag, void *r, int rn, type_t rt, int from, int rtag, MPI_Comm c,
        stat_t *status),
       (s, sn, st, to, stag, r, rn, rt, from, rtag, c, status))
CAUGHT(COMMUNICATION, Probe, (int from, int tag, MPI_Comm c, stat_t *s), (from, tag, c, s))
CAUGHT(COMMUNICATION, Iprobe, (int from, int tag, MPI_Comm c, int *flag, stat_t *s), (from, tag, c, flag, s))
CAUGHT(COMMUNICATION, Wait, (req_t * q, stat_t *s), (q, s))
CAUGHT(COMMUNICATION, Waitall, (int n, req_t q[], stat_t s[]), (n, q, s))
CAUGHT(COMMUNICATION, Waitany, (int n, req_t q[], int *index, stat_t *s), (n, q, index, s))
CAUGHT(COMMUNICATION, Waitsome, (int n, req_t q[], int *done, int index[], stat_t s[]), (n, q, done, index, s))
CAUGHT(COMMUNICATION, Test, (req_t * q, int *flag, stat_t *s), (q, flag, s))
CAUGHT(COMMUNICATION, Testall, (int n, req_t q[], int *flag, stat_t s[]), (n, q, flag, s))
CAUGHT(COMMUNICATION, Comm_dup, (MPI_Comm c, MPI_Comm *made), (c, made))
CAUGHT(COMMUNICATION, Comm_split, (MPI_Comm c, int color, int key, MPI_Comm *made), (c, color, key, made))
CAUGHT(COMMUNICATION, Comm_free, (MPI_Comm * c), (c))

CAUGHT(IO, File_open, (MPI_Comm c, const char *path, int mode, MPI_Info i, MPI_File *f), (c, path, mode, i, f))
CAUGHT(IO, File_close, (MPI_File * f), (f))
CAUGHT(IO, File_delete, (const char *path, MPI_Info i), (path, i))
CAUGHT(IO, File_sync, (MPI_File f), (f))
CAUGHT(IO, File_seek, (MPI_File f, MPI_Offset to, int whence), (f, to, whence))
CAUGHT(IO, File_get_size, (MPI_File f, MPI_Offset *size), (f, size))
CAUGHT(IO, File_set_size, (MPI_File f, MPI_Offset size), (f, size))
CAUGHT(IO, File_preallocate, (MPI_File f, MPI_Offset size), (f, size))
CAUGHT(IO, File_set_view, (MPI_File f, MPI_Offset at, type_t e, type_t t, const char *rep, MPI_Info i),
       (f, at, e, t, rep, i))
CAUGHT(IO, File_write, (MPI_File f, const void *b, int n, type_t t, stat_t *s), (f, b, n, t, s))
CAUGHT(IO, File_write_all, (MPI_File f, const void *b, int n, type_t t, stat_t *s), (f, b, n, t, s))
CAUGHT(IO, File_write_at, (MPI_File f, MPI_Offset at, const void *b, int n, type_t t, stat_t *s), (f, at, b, n, t, s))
CAUGHT(IO, File_write_at_all, (MPI_File f, MPI_Offset at, const void *b, int n, type_t t, stat_t *s),
       (f, at, b, n, t, s))
CAUGHT(IO, File_read, (MPI_File f, void *b, int n, type_t t, stat_t *s), (f, b, n, t, s))
CAUGHT(IO, File_read_all, (MPI_File f, void *b, int n, type_t t, stat_t *s), (f, b, n, t, s))
CAUGHT(IO, File_read_at, (MPI_File f, MPI_Offset at, void *b, int n, type_t t, stat_t *s), (f, at, b, n, t, s))
CAUGHT(IO, File_read_at_all, (MPI_File f, MPI_Offset at, void *b, int n, type_t t, stat_t *s), (f, at, b, n, t, s))

/* The next definition of the name: the C library's, or that of a profiler that was loaded before. */
static void next_definition(const char *name, void *function)
{
    void *const found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "skeleton: %s: the C library has no such function\n", name);
        abort();
    }
    memcpy(function, &found, sizeof found);
}

#define TAKEN(result, name, parameters, arguments) \
    result name parameters                         \
    {                                              \
        static result(*next) parameters;           \
        if (!next)                                 \
            next_definition(#name, &next);         \
        const bool begun = begin_call(STATE_IO);   \
        const result value = next arguments;       \
        end_call(begun);                           \
        return value;                              \
    }

TAKEN(ssize_t, read, (int fd, void *b, size_t n), (fd, b, n))
TAKEN(ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n))
TAKEN(off_t, lseek, (int fd, off_t to, int whence), (fd, to, whence))
TAKEN(off64_t, lseek64, (int fd, off64_t to, int whence), (fd, to, whence))
TAKEN(int, fsync, (int fd), (fd))
TAKEN(int, close, (int fd), (fd))
TAKEN(int, mkdir, (const char *path, mode_t mode), (path, mode))
TAKEN(int, unlink, (const char *path), (path))

/* The same for those with an argument more or less. */
#define TAKEN_OPEN(name)                                           \
    int name(const char *path, int flags, ...)                     \
    {                                                              \
        static int (*next)(const char *, int, ...);                \
        if (!next)                                                 \
            next_definition(#name, &next);                         \
        va_list more;                                              \
        va_start(more, flags);                                     \
        const bool makes = (flags & (O_CREAT | __O_TMPFILE)) != 0; \
        const unsigned mode = makes ? va_arg(more, unsigned) : 0;  \
        va_end(more);                                              \
        const bool begun = begin_call(STATE_IO);                   \
        const int value = next(path, flags, mode);                 \
        end_call(begun);                                           \
        return value;                                              \
    }

TAKEN_OPEN(open)
TAKEN_OPEN(open64)

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

/* ---- A run ------------------------------------------------------------------------------------------- */

/* One group written in one step by this process. Times since the start of the repetition. */
struct record {
    int repetition, step, group;
    double start_s[PHASES], end_s[PHASES], seconds[PHASES];
    int64_t operations[PHASES];
    double spent_s[STATES];
    bool has_library;
    double library_s[LIBRARY_TIMERS];
    int64_t bytes;
    int64_t file_bytes; /* on rank 0; -1: unknown */
    int64_t files;      /* on rank 0 */
};

struct group {
    char name[256];
    bool has_timers; /* the method keeps timers */
    int last;        /* its latest record, -1 before the first */
};

/* How many processes of a node have been stopped and will write no more, and how many are ready to leave. */
struct stopped {
    atomic_int writing_no_more, ready;
};

struct skeleton {
    struct skeleton_settings settings;
    MPI_Comm comm, node;
    MPI_Win window; /* of what the processes of the node share: */
    struct stopped *stopped;
    int node_ranks;
    int rank, ranks, nodes;
    char host[256];
    char started[32];
    char *config_text; /* the config as it was given to ADIOS */
    char config[PATH_BYTES];
    bool made_config, made_directory;
    int repetition, step;
    double start_s; /* of the repetition, on the clock */
    struct group groups[MAX_GROUPS];
    int group_count;
    struct record *records;
    int record_count, record_room, first_of_repetition;
    bool is_open;
    char *collected; /* buffer of the extra collective */
};

static bool path_of(const struct skeleton *run, const char *group, int step, char *path)
{
    int length;
    if (run->settings.append)
        length = snprintf(path, PATH_BYTES, "%s/%s.bp", run->settings.directory, group);
    else
        length = snprintf(path, PATH_BYTES, "%s/%s.%d.bp", run->settings.directory, group, step);
    return length < PATH_BYTES;
}

/* What stands at <path> and in <path>.dir/: bytes and files. Removes them where it is told to. */
static void look_at(const char *path, bool removes, int64_t *bytes, int64_t *files)
{
    char folder[PATH_BYTES + 8], inner[PATH_BYTES + 512];
    struct stat found;
    *bytes = *files = 0;
    if (stat(path, &found) == 0) {
        *bytes += found.st_size;
        ++*files;
        if (removes)
            unlink(path);
    }
    snprintf(folder, sizeof folder, "%s.dir", path);
    DIR *stream = opendir(folder);
    const struct dirent *entry;
    while (stream && (entry = readdir(stream))) {
        snprintf(inner, sizeof inner, "%s/%s", folder, entry->d_name);
        if (stat(inner, &found) != 0 || !S_ISREG(found.st_mode))
            continue;
        *bytes += found.st_size;
        ++*files;
        if (removes)
            unlink(inner);
    }
    if (stream)
        closedir(stream);
    if (stream && removes)
        rmdir(folder);
}

/* What this run may have left behind, where it cannot go on. */
static void remove_files(const struct skeleton *run)
{
    char path[PATH_BYTES];
    int64_t bytes, files;
    for (int g = 0; g < run->group_count; ++g)
        for (int step = 0; step <= run->step && step < run->settings.steps; ++step)
            if (path_of(run, run->groups[g].name, step, path))
                look_at(path, true, &bytes, &files);
    if (run->made_config)
        unlink(run->config);
    if (run->made_directory)
        rmdir(run->settings.directory);
}

static void say(const struct skeleton *run, const char *format, va_list arguments)
{
    char sentence[2048];
    vsnprintf(sentence, sizeof sentence, format, arguments);
    fprintf(stderr, "%s: rank %d on %s: %s\n", run->settings.program, run->rank, run->host, sentence);
}

_Noreturn void skeleton_die(const struct skeleton *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(run, format, arguments);
    va_end(arguments);
    fflush(NULL);
    remove_files(run);
    MPI_Abort(run->comm, 1);
    abort();
}

/* The end of a run for a reason that all processes know: rank 0 speaks, and all leave in order. */
static _Noreturn void leave_together(struct skeleton *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (run->rank == 0)
        say(run, format, arguments);
    va_end(arguments);
    fflush(NULL);
    PMPI_Barrier(run->comm);
    PMPI_Finalize();
    exit(1);
}

static void check_adios(const struct skeleton *run, int code, const char *call, const char *what)
{
    if (code != 0)
        skeleton_die(run, "%s of %s failed with code %d: %s", call, what, code, adios_get_last_errmsg());
}

/* ---- Signals: the end of a run, without its files ---------------------------------------------------- */

static const struct skeleton *interruptible; /* a signal handler gets no argument */
static pthread_t interruptible_thread;
/* While MPI-IO opens a file it may hold a lock that outlives this process: a signal then waits until it is open, but
 * not for long, since an open does not return once another process has ended. */
static atomic_bool opening;
static volatile sig_atomic_t noted;

static void remove_name(const char *path)
{
    unlinkat(AT_FDCWD, path, 0); /* not unlink, which is caught above */
}

/* Every process removes what any may have made, but of the parts in <path>.dir/ its own only.
 * Only with calls that are safe in a signal handler; snprintf is, as glibc has it, for names and integers. */
static void remove_path(const struct skeleton *run, const char *path)
{
    char other[2 * PATH_BYTES + 64];
    const char *slash = strrchr(path, '/');
    remove_name(path);
    snprintf(other, sizeof other, "%s.locktest.%d", path, run->rank); /* Open MPI's, while it opens a file */
    remove_name(other);
    snprintf(other, sizeof other, "/dev/shm/sem.OMPIO_%s", slash ? slash + 1 : path); /* so is this */
    remove_name(other);
    snprintf(other, sizeof other, "%s.dir/%s.%d", path, slash ? slash + 1 : path, run->rank);
    remove_name(other);
    snprintf(other, sizeof other, "%s.dir/%s.%d.locktest.0", path, slash ? slash + 1 : path, run->rank);
    remove_name(other);
    snprintf(other, sizeof other, "%s.dir", path);
    rmdir(other);
}

/* The text behind `word` and a number, where it begins with them; else all of it. */
static const char *behind_number(const char *text, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(text, word, length) != 0 || !isdigit((unsigned char)text[length]))
        return text;
    return text + length + strspn(text + length, "0123456789");
}

/* Is it what a group is written to: GROUP.bp or GROUP.STEP.bp, the directory of its parts, a part, or what Open MPI has
 * beside these? */
static bool is_ours(const struct skeleton *run, const char *name)
{
    for (int g = 0; g < run->group_count; ++g) {
        const size_t length = strlen(run->groups[g].name);
        if (strncmp(name, run->groups[g].name, length) != 0)
            continue;
        const char *rest = behind_number(name + length, ".");
        if (strncmp(rest, ".bp", 3) != 0)
            continue;
        rest += 3;
        if (strcmp(rest, ".dir") == 0 || *behind_number(behind_number(rest, "."), ".locktest.") == '\0')
            return true;
    }
    return false;
}

/* Removes our files from a directory: of all processes, at whatever step they are. */
static void sweep(const struct skeleton *run, int parent, const char *path)
{
    char room[4096] __attribute__((aligned(8)));
    const int directory = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long length;
    while (directory >= 0 && (length = syscall(SYS_getdents64, directory, room, sizeof room)) > 0)
        for (long at = 0; at < length;) {
            const struct dirent64 *entry = (const struct dirent64 *)(room + at);
            if (is_ours(run, entry->d_name) && unlinkat(directory, entry->d_name, 0) != 0 &&
                (errno == EISDIR || errno == EPERM)) {
                sweep(run, directory, entry->d_name);
                unlinkat(directory, entry->d_name, AT_REMOVEDIR);
            }
            at += entry->d_reclen;
        }
    if (directory >= 0)
        syscall(SYS_close, directory); /* not close, for the same reason */
}

static void sweep_all(const struct skeleton *run)
{
    sweep(run, AT_FDCWD, run->settings.directory);
    if (run->made_directory)
        rmdir(run->settings.directory);
}

static void interrupt(int number)
{
    const struct skeleton *run = interruptible;
    char text[PATH_BYTES + 8];
    if (!pthread_equal(pthread_self(), interruptible_thread)) { /* the one that writes must not go on */
        pthread_kill(interruptible_thread, number);
        return;
    }
    if (number == SIGALRM) {
        number = noted;
    } else if (opening) {
        struct sigaction later = {.sa_handler = interrupt};
        noted = number;
        sigfillset(&later.sa_mask);
        sigaction(SIGALRM, &later, NULL);
        setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = OPENING_US}, NULL);
        return;
    }
    for (int step = run->step; step >= 0; --step)
        for (int g = 0; g < run->group_count; ++g)
            if (step < run->settings.steps && path_of(run, run->groups[g].name, step, text))
                remove_path(run, text);
    snprintf(text, sizeof text, "%.*s/timers.bp", PATH_BYTES - 16, run->settings.directory);
    remove_path(run, text);
    if (run->made_config)
        remove_name(run->config);
    if (run->rank == 0) {
        snprintf(text, sizeof text, "%s.part", run->settings.result);
        remove_name(text);
    }
    /* The last of a node sees all that the others still made when this one had looked already. */
    if (!run->stopped || atomic_fetch_add(&run->stopped->writing_no_more, 1) == run->node_ranks - 1)
        sweep_all(run);
    else if (run->made_directory)
        rmdir(run->settings.directory);
    /* The launcher ends those that are still at it as soon as one has left, and kills one that never gets so far. */
    if (run->stopped)
        atomic_fetch_add(&run->stopped->ready, 1);
    for (int waited = 0; run->stopped && run->stopped->ready < run->node_ranks && waited < PATIENCE_MS;
         waited += PAUSE_MS) {
        nanosleep(&(struct timespec){0, PAUSE_MS * 1000000L}, NULL);
        if (waited == LATE_MS)
            sweep_all(run);
    }
    _exit(128 + number);
}

static int open_file(const struct skeleton *run, int64_t *file, const char *group, const char *path, const char *mode)
{
    opening = true;
    const int code = adios_open(file, group, path, mode, run->comm);
    opening = false;
    if (noted) {
        sigset_t all; /* the timer must not come in between: a process counts once */
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, NULL);
        interrupt(noted);
    }
    return code;
}

static void share_counters(struct skeleton *run)
{
    MPI_Aint bytes;
    int first, unit;
    PMPI_Comm_rank(run->node, &first);
    PMPI_Comm_size(run->node, &run->node_ranks);
    run->window = MPI_WIN_NULL;
    bytes = first == 0 ? (MPI_Aint)sizeof *run->stopped : 0;
    if (PMPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, run->node, &run->stopped, &run->window) != MPI_SUCCESS ||
        PMPI_Win_shared_query(run->window, 0, &bytes, &unit, &run->stopped) != MPI_SUCCESS) {
        run->stopped = NULL;
    } else if (first == 0) {
        atomic_init(&run->stopped->writing_no_more, 0);
        atomic_init(&run->stopped->ready, 0);
    }
    PMPI_Barrier(run->node);
}

/* From now on, or with NULL no longer. What somebody else has set for a signal stays. */
static void catch_signals(const struct skeleton *run)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGTERM};
    if (run)
        interruptible = run;
    interruptible_thread = pthread_self();
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
        struct sigaction now, next = {.sa_handler = run ? interrupt : SIG_DFL};
        sigfillset(&next.sa_mask);
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler == (run ? SIG_DFL : interrupt))
            sigaction(numbers[i], &next, NULL);
    }
}

/* ---- Settings ---------------------------------------------------------------------------------------- */

struct skeleton_settings skeleton_defaults(const char *program, const char *application, enum skeleton_kind kind,
                                           const char *config)
{
    return (struct skeleton_settings){
        .program = program,
        .application = application,
        .kind = kind,
        .config = config,
        .result = "result.json",
        .steps = 1,
        .repetitions = 1,
        .barriers = SKELETON_BEFORE_OPEN,
        .slow_rank = -1,
    };
}

static const struct {
    const char *name;
    unsigned bit;
} barrier_names[] = {
    {"open", SKELETON_BEFORE_OPEN},   {"write", SKELETON_BEFORE_WRITE}, {"close", SKELETON_BEFORE_CLOSE},
    {"closed", SKELETON_AFTER_CLOSE}, {"steps", SKELETON_AFTER_STEPS},
};
enum { BARRIERS = sizeof barrier_names / sizeof barrier_names[0] };

static void print_help(const struct skeleton_settings *settings)
{
    printf(
        "Usage: mpirun -n RANKS %s -o DIR [options]\n\n"
        "Writes through ADIOS and measures it, process by process.\n\n"
        "  -o, --directory DIR        where to write: an empty directory, or one that is not there\n"
        "  -r, --result FILE          the result, JSON [%s]\n"
        "  -c, --config FILE          adios-config XML [%s]\n"
        "  -a, --method METHOD        ADIOS method of all groups, e.g. POSIX, MPI_LUSTRE, MPI_AMR [as in the config]\n"
        "  -p, --parameters TEXT      its parameters, e.g. 'stripe_count=160;stripe_size=10485760' [none]\n"
        "  -s, --steps N              steps in a repetition [%d]\n"
        "  -i, --repetitions N        repetitions [%d]\n"
        "      --append               all steps of a group into one file [a file each]\n"
        "  -k, --keep                 leave the files of the last repetition\n"
        "  -b, --barrier LIST         barriers of the program's own before open, write and close, when closed, and\n"
        "                             after the steps: any of open,write,close,closed,steps, or none [open]\n"
        "      --pause SECONDS        sleep before each step [0]\n"
        "      --application NAME     what runs are put together by in a report [%s]\n"
        "      --slow-rank RANK:SECONDS     put in: I/O of this rank takes longer in each close\n"
        "      --extra-collective BYTES     put in: an allgather of so many bytes of each rank in each close\n"
        "  -h, --help\n",
        settings->program, settings->result, settings->config ? settings->config : "none", settings->steps,
        settings->repetitions, settings->application);
}

static bool read_whole(const char *text, int64_t least, int64_t most, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && *value >= least && *value <= most;
}

static bool read_seconds(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*value) && *value >= 0;
}

static bool read_barriers(const char *text, unsigned *bits)
{
    *bits = 0;
    if (strcmp(text, "none") == 0)
        return true;
    while (*text) {
        const size_t length = strcspn(text, ",");
        int known = 0;
        while (known < BARRIERS &&
               (strlen(barrier_names[known].name) != length || strncmp(barrier_names[known].name, text, length) != 0))
            ++known;
        if (known == BARRIERS)
            return false;
        *bits |= barrier_names[known].bit;
        text += length + (text[length] == ',');
    }
    return *bits != 0;
}

static bool read_slow_rank(const char *text, struct skeleton_settings *settings)
{
    char digits[16];
    int64_t rank;
    const size_t length = strcspn(text, ":");
    if (length >= sizeof digits || text[length] != ':')
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    if (!read_whole(digits, 0, INT_MAX, &rank))
        return false;
    settings->slow_rank = (int)rank;
    return read_seconds(text + length + 1, &settings->slow_s);
}

/* One option; returns what was expected where the value is wrong. */
static const char *read_option(int option, const char *value, struct skeleton_settings *settings)
{
    int64_t whole = 0;
    switch (option) {
    case 'o': settings->directory = value; return NULL;
    case 'r': settings->result = value; return NULL;
    case 'c': settings->config = value; return NULL;
    case 'a': settings->method = value; return NULL;
    case 'p': settings->parameters = value; return NULL;
    case 'N': settings->application = value; return NULL;
    case 'k': settings->keep = true; return NULL;
    case 'A': settings->append = true; return NULL;
    case 's':
    case 'i':
        if (!read_whole(value, 1, 1000000, &whole))
            return "a whole number from 1 to 1000000";
        *(option == 's' ? &settings->steps : &settings->repetitions) = (int)whole;
        return NULL;
    case 'b':
        return read_barriers(value, &settings->barriers) ? NULL : "some of open,write,close,closed,steps, or none";
    case 'P': return read_seconds(value, &settings->pause_s) ? NULL : "seconds, not negative";
    case 'S': return read_slow_rank(value, settings) ? NULL : "a rank, a colon and seconds, such as 2:0.5";
    default:
        return read_whole(value, 0, INT_MAX, &settings->extra_collective_bytes) ? NULL : "bytes from 0 to 2147483647";
    }
}

int skeleton_options(int argc, char **argv, MPI_Comm comm, struct skeleton_settings *settings)
{
    static const struct option options[] = {
        {"directory", required_argument, NULL, 'o'},
        {"result", required_argument, NULL, 'r'},
        {"config", required_argument, NULL, 'c'},
        {"method", required_argument, NULL, 'a'},
        {"parameters", required_argument, NULL, 'p'},
        {"steps", required_argument, NULL, 's'},
        {"repetitions", required_argument, NULL, 'i'},
        {"append", no_argument, NULL, 'A'},
        {"keep", no_argument, NULL, 'k'},
        {"barrier", required_argument, NULL, 'b'},
        {"pause", required_argument, NULL, 'P'},
        {"application", required_argument, NULL, 'N'},
        {"slow-rank", required_argument, NULL, 'S'},
        {"extra-collective", required_argument, NULL, 'X'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    char mistake[1024] = "";
    int rank, option, at = -1;
    MPI_Comm_rank(comm, &rank);
    settings->argc = argc;
    settings->argv = argv;
    opterr = 0;
    optind = 1;
    while (!mistake[0] && (option = getopt_long(argc, argv, ":o:r:c:a:p:s:i:kb:h", options, &at)) != -1) {
        if (option == 'h') {
            if (rank == 0)
                print_help(settings);
            return SKELETON_HELP;
        }
        if (option == ':' || option == '?') {
            snprintf(mistake, sizeof mistake, "%s: %s; see --help", argv[optind - 1],
                     option == ':' ? "the value is missing" : "unknown option");
            break;
        }
        const char *expected = read_option(option, optarg, settings);
        const char *name = "";
        for (const struct option *row = options; row->name; ++row)
            if (row->val == option)
                name = row->name;
        if (expected)
            snprintf(mistake, sizeof mistake, "--%s %s: expected %s", name, optarg, expected);
    }
    if (!mistake[0] && optind < argc)
        snprintf(mistake, sizeof mistake, "%s: not an option; see --help", argv[optind]);
    if (!mistake[0] && !settings->directory)
        snprintf(mistake, sizeof mistake,
                 "--directory is missing: expected an empty directory, or one that is not there");
    if (!mistake[0] && settings->parameters && !settings->method)
        snprintf(mistake, sizeof mistake, "--parameters without --method: expected the method that they are for");
    if (!mistake[0])
        return SKELETON_GO;
    if (rank == 0)
        fprintf(stderr, "%s: %s\n", settings->program, mistake);
    return SKELETON_MISTAKE;
}

/* ---- The config: which method a group has, and giving it another -------------------------------------- */

/* Value of an attribute in the tag that reaches from `at` to `end`; false where it has none. */
static bool attribute(const char *at, const char *end, const char *name, char *value, size_t room)
{
    const size_t length = strlen(name);
    for (; at + length + 2 < end; ++at) {
        if (!isspace((unsigned char)at[0]) || strncmp(at + 1, name, length) != 0)
            continue;
        const char *quote = at + 1 + length;
        quote += strspn(quote, " \t\r\n");
        if (*quote++ != '=')
            continue;
        quote += strspn(quote, " \t\r\n");
        const char *close = *quote == '"' || *quote == '\'' ? strchr(quote + 1, *quote) : NULL;
        if (!close || close > end || (size_t)(close - quote) > room)
            return false;
        snprintf(value, room, "%.*s", (int)(close - quote - 1), quote + 1);
        return true;
    }
    return false;
}

struct method_element {
    const char *begin, *end;
    char group[256];
    char method[256];
};

/* The next <method> (or <transport>) from `at` on that is in no comment. */
static bool next_method(const char *at, struct method_element *found)
{
    while ((at = strchr(at, '<'))) {
        const size_t name = strcspn(at + 1, " \t\r\n/>");
        const char *close = strncmp(at, "<!--", 4) == 0 ? strstr(at, "-->") : strchr(at, '>');
        if (!close)
            return false;
        if ((name == 6 && strncmp(at + 1, "method", 6) == 0) || (name == 9 && strncmp(at + 1, "transport", 9) == 0)) {
            char end_tag[16];
            snprintf(end_tag, sizeof end_tag, "</%.*s>", (int)name, at + 1);
            const char *end = close[-1] == '/' ? close + 1 : strstr(close, end_tag);
            if (!end)
                return false;
            found->begin = at;
            found->end = close[-1] == '/' ? end : end + strlen(end_tag);
            if (attribute(at, close, "group", found->group, sizeof found->group) &&
                attribute(at, close, "method", found->method, sizeof found->method))
                return true;
        }
        at = close;
    }
    return false;
}

static bool method_has_timers(const struct skeleton *run, const char *group)
{
    static const char *const timed[] = {"POSIX", "MPI_LUSTRE", "MPI_AMR", "MPI_AGGREGATE"};
    struct method_element element = {.end = run->config_text};
    bool any = false;
    while (next_method(element.end, &element)) {
        if (strcmp(element.group, group) != 0)
            continue;
        for (size_t i = 0; i < sizeof timed / sizeof timed[0]; ++i)
            any = any || strcasecmp(timed[i], element.method) == 0;
    }
    return any;
}

/* The config with every method replaced by that of the settings. */
static char *replace_methods(struct skeleton *run, const char *text)
{
    const char *parameters = run->settings.parameters ? run->settings.parameters : "";
    char *made = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&made, &bytes);
    if (!out)
        skeleton_die(run, "no memory for %s", run->settings.config);
    struct method_element element = {.end = text};
    const char *done = text;
    while (next_method(element.end, &element)) {
        fprintf(out, "%.*s<method group=\"%s\" method=\"%s\">%s</method>", (int)(element.begin - done), done,
                element.group, run->settings.method, parameters);
        done = element.end;
    }
    fputs(done, out);
    if (fclose(out) != 0)
        skeleton_die(run, "no memory for %s", run->settings.config);
    return made;
}

static char *read_text(struct skeleton *run, const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;
    ssize_t bytes = file ? getdelim(&text, &room, EOF, file) : -1;
    if (bytes <= 0)
        skeleton_die(run, "%s: cannot be read: %s", path, file && bytes < 0 ? "empty" : strerror(errno));
    fclose(file);
    return text;
}

static void write_text(struct skeleton *run, const char *path, const char *text)
{
    FILE *file = fopen(path, "wx");
    if (!file || fputs(text, file) == EOF || fclose(file) != 0)
        skeleton_die(run, "%s: cannot be written: %s", path, strerror(errno));
}

static void prepare_config(struct skeleton *run)
{
    const struct skeleton_settings *settings = &run->settings;
    snprintf(run->config, sizeof run->config, "%s", settings->config);
    int64_t bytes = 0;
    if (run->rank == 0) {
        run->config_text = read_text(run, settings->config);
        if (settings->method) {
            char *made = replace_methods(run, run->config_text);
            free(run->config_text);
            run->config_text = made;
        }
        bytes = (int64_t)strlen(run->config_text) + 1;
    }
    if (settings->method) {
        snprintf(run->config, sizeof run->config, "%s/%s.xml", settings->directory, settings->program);
        run->made_config = true;
        if (run->rank == 0)
            write_text(run, run->config, run->config_text);
    }
    PMPI_Bcast(&bytes, 1, MPI_INT64_T, 0, run->comm);
    if (run->rank != 0)
        run->config_text = skeleton_array(run, "the config", (size_t)bytes, 1);
    PMPI_Bcast(run->config_text, (int)bytes, MPI_CHAR, 0, run->comm);
}

/* ---- Begin ------------------------------------------------------------------------------------------- */

static bool is_empty(const char *directory)
{
    DIR *stream = opendir(directory);
    const struct dirent *entry;
    int others = stream ? 0 : 1;
    while (stream && (entry = readdir(stream)))
        others += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    if (stream)
        closedir(stream);
    return others == 0;
}

/* 0: made; 1: was there and empty; 2: holds something; else errno's negative. */
static int make_directory(const char *directory)
{
    if (mkdir(directory, 0777) == 0)
        return 0;
    if (errno != EEXIST)
        return -errno;
    return is_empty(directory) ? 1 : 2;
}

/* Can the result be written, next to which nothing else is touched? */
static bool can_write_beside(const char *path)
{
    char folder[PATH_BYTES];
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash)
        slash[slash == folder] = '\0';
    return access(slash ? folder : ".", W_OK | X_OK) == 0;
}

static void prepare_places(struct skeleton *run)
{
    const struct skeleton_settings *settings = &run->settings;
    int state[2] = {0, 0};
    if (run->rank == 0) {
        state[0] = make_directory(settings->directory);
        state[1] = can_write_beside(settings->result) ? 0 : errno;
        if (state[1] && state[0] == 0)
            rmdir(settings->directory);
    }
    PMPI_Bcast(state, 2, MPI_INT, 0, run->comm);
    if (state[0] < 0)
        leave_together(run, "%s: cannot be made: %s", settings->directory, strerror(-state[0]));
    if (state[0] == 2)
        leave_together(run, "%s is not empty; expected an empty directory, or one that is not there",
                       settings->directory);
    if (state[1])
        leave_together(run, "%s: cannot be written: %s", settings->result, strerror(state[1]));
    run->made_directory = state[0] == 0;
}

static void check_settings(struct skeleton *run)
{
    const struct skeleton_settings *settings = &run->settings;
    if (!settings->config || access(settings->config, R_OK) != 0)
        leave_together(run, "%s: the adios-config cannot be read; give one with --config",
                       settings->config ? settings->config : "no config");
    if (settings->slow_rank >= run->ranks)
        leave_together(run, "--slow-rank %d: expected a rank of 0 to %d", settings->slow_rank, run->ranks - 1);
    if (settings->method && strpbrk(settings->method, "<>&\""))
        leave_together(run, "--method %s: expected the name of an ADIOS method", settings->method);
    if (settings->parameters && strpbrk(settings->parameters, "<>&"))
        leave_together(run, "--parameters %s: expected key=value;key=value", settings->parameters);
}

static void know_machine(struct skeleton *run)
{
    int first;
    const time_t now = time(NULL);
    struct tm utc;
    PMPI_Comm_rank(run->comm, &run->rank);
    PMPI_Comm_size(run->comm, &run->ranks);
    gethostname(run->host, sizeof run->host - 1);
    gmtime_r(&now, &utc);
    strftime(run->started, sizeof run->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    PMPI_Comm_split_type(run->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &run->node);
    PMPI_Comm_rank(run->node, &first);
    first = first == 0;
    PMPI_Allreduce(&first, &run->nodes, 1, MPI_INT, MPI_SUM, run->comm);
}

struct skeleton *skeleton_start(const struct skeleton_settings *settings, MPI_Comm comm)
{
    struct skeleton *run = calloc(1, sizeof *run);
    if (!run) {
        fprintf(stderr, "%s: no memory\n", settings->program);
        PMPI_Abort(comm, 1);
        abort();
    }
    run->settings = *settings;
    run->repetition = -1;
    PMPI_Comm_dup(comm, &run->comm);
    know_machine(run);
    check_settings(run);
    prepare_places(run);
    share_counters(run);
    catch_signals(run);
    prepare_config(run);
    if (settings->extra_collective_bytes > 0)
        run->collected = skeleton_array(run, "the extra collective",
                                        (size_t)settings->extra_collective_bytes * ((size_t)run->ranks + 1), 1);
    int failed = adios_init(run->config, run->comm), any = 0;
    PMPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MIN, run->comm);
    if (any != 0) {
        if (run->rank == 0)
            remove_files(run);
        leave_together(run, "adios_init of %s failed with code %d: %s", settings->config, any,
                       failed ? adios_get_last_errmsg() : "on another process");
    }
    return run;
}

/* ---- Files of the run -------------------------------------------------------------------------------- */

/* Payload of all processes against what stands on storage: ADIOS can lose data and say nothing. */
static void end_repetition(struct skeleton *run, bool last)
{
    const bool removes = !(last && run->settings.keep);
    PMPI_Barrier(run->comm);
    for (int r = run->first_of_repetition; r < run->record_count; ++r) {
        struct record *record = &run->records[r];
        int64_t payload = 0, bytes, files;
        PMPI_Reduce(&record->bytes, &payload, 1, MPI_INT64_T, MPI_SUM, 0, run->comm);
        if (run->rank != 0)
            continue;
        const struct group *group = &run->groups[record->group];
        char path[PATH_BYTES];
        path_of(run, group->name, record->step, path);
        record->file_bytes = -1;
        if (run->settings.append && record->step > 0) {
            record->files = run->records[r - 1].files;
            continue;
        }
        look_at(path, false, &bytes, &files);
        if (bytes < payload)
            skeleton_die(run, "%s: holds %lld bytes, less than the %lld that were written", path, (long long)bytes,
                         (long long)payload);
        record->files = files;
        if (!run->settings.append)
            record->file_bytes = bytes;
        if (removes)
            look_at(path, true, &bytes, &files);
    }
    run->first_of_repetition = run->record_count;
    PMPI_Barrier(run->comm);
}

/* ---- Steps ------------------------------------------------------------------------------------------- */

bool skeleton_repetition(struct skeleton *run)
{
    const int next = run->repetition + 1;
    if (run->repetition >= 0)
        end_repetition(run, next == run->settings.repetitions);
    if (next == run->settings.repetitions)
        return false;
    run->repetition = next;
    run->step = -1;
    /* The moment at which the first process of the node leaves the barrier: the same for all of them. */
    PMPI_Barrier(run->comm);
    const double left_s = now_s();
    PMPI_Allreduce(&left_s, &run->start_s, 1, MPI_DOUBLE, MPI_MIN, run->node);
    return true;
}

static void barrier(struct skeleton *run, enum skeleton_barrier place)
{
    if (run->settings.barriers & place)
        PMPI_Barrier(run->comm);
}

static void sleep_s(double seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds};
    left.tv_nsec = (long)(1e9 * (seconds - (double)left.tv_sec));
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

bool skeleton_step(struct skeleton *run)
{
    if (++run->step == run->settings.steps) {
        barrier(run, SKELETON_AFTER_STEPS);
        return false;
    }
    if (run->settings.pause_s > 0)
        sleep_s(run->settings.pause_s);
    return true;
}

void skeleton_last_step(struct skeleton *run)
{
    run->settings.steps = run->step + 1;
}

int skeleton_step_index(const struct skeleton *run)
{
    return run->step;
}

int skeleton_repetition_index(const struct skeleton *run)
{
    return run->repetition;
}

static int group_index(struct skeleton *run, const char *name)
{
    for (int g = 0; g < run->group_count; ++g)
        if (strcmp(run->groups[g].name, name) == 0)
            return g;
    if (run->group_count == MAX_GROUPS || strlen(name) >= sizeof run->groups[0].name)
        skeleton_die(run, "%s: expected at most %d groups with names of at most 255 characters", name, MAX_GROUPS);
    struct group *group = &run->groups[run->group_count];
    snprintf(group->name, sizeof group->name, "%s", name);
    group->has_timers = method_has_timers(run, name);
    group->last = -1;
    return run->group_count++;
}

static struct record *new_record(struct skeleton *run, int group)
{
    if (run->record_count == run->record_room) {
        run->record_room = 2 * run->record_room + 16;
        run->records = realloc(run->records, (size_t)run->record_room * sizeof *run->records);
        if (!run->records)
            skeleton_die(run, "no memory for %d records", run->record_room);
    }
    struct record *record = &run->records[run->record_count++];
    *record = (struct record){.repetition = run->repetition, .step = run->step, .group = group};
    return record;
}

static struct record *current(struct skeleton *run)
{
    if (!run->is_open)
        skeleton_die(run, "no file is open: expected skeleton_open first");
    return &run->records[run->record_count - 1];
}

/* Times one call of ADIOS: its phase, and where the time in it goes. Both begin and end with one reading of the
 * clock, for a process may be held up between two. */
static void begin_adios(const struct skeleton *run, struct record *record, enum phase phase)
{
    memset(ledger.seconds, 0, sizeof ledger.seconds);
    ledger.state = STATE_REST;
    ledger.since_s = now_s();
    record->end_s[phase] = ledger.since_s - run->start_s; /* the start of the call, until it ends */
    if (record->operations[phase] == 0)
        record->start_s[phase] = record->end_s[phase];
    inside = true;
}

static void end_adios(const struct skeleton *run, struct record *record, enum phase phase)
{
    turn(STATE_REST);
    inside = false;
    const double end_s = ledger.since_s - run->start_s;
    record->seconds[phase] += end_s - record->end_s[phase];
    record->end_s[phase] = end_s;
    record->operations[phase] += 1;
    for (int s = 0; s < STATES; ++s)
        record->spent_s[s] += ledger.seconds[s];
}

static void take_library_timers(const struct skeleton *run, struct record *record, int64_t file)
{
    for (int t = 0; t < LIBRARY_TIMERS; ++t)
        check_adios(run, adios_get_timing_value(file, LIBRARY_FIRST_TIMER + t, &record->library_s[t]),
                    "adios_get_timing_value", run->groups[record->group].name);
    record->has_library = true;
}

int64_t skeleton_open(struct skeleton *run, const char *group)
{
    const int g = group_index(run, group);
    const int previous = run->groups[g].last;
    char path[PATH_BYTES];
    int64_t file = 0;
    if (run->is_open)
        skeleton_die(run, "%s: expected the other file to be closed first", group);
    if (!path_of(run, group, run->step, path))
        skeleton_die(run, "%s: the path is too long", run->settings.directory);
    struct record *record = new_record(run, g);
    barrier(run, SKELETON_BEFORE_OPEN);
    begin_adios(run, record, PHASE_OPEN);
    const int code = open_file(run, &file, group, path, run->settings.append && run->step > 0 ? "a" : "w");
    end_adios(run, record, PHASE_OPEN);
    check_adios(run, code, "adios_open", path);
    if (run->groups[g].has_timers && previous >= 0)
        take_library_timers(run, &run->records[previous], file);
    run->groups[g].last = run->record_count - 1;
    run->is_open = true;
    return file;
}

void skeleton_group_size(struct skeleton *run, int64_t file, uint64_t bytes)
{
    struct record *record = current(run);
    uint64_t total = 0;
    begin_adios(run, record, PHASE_OPEN);
    const int code = adios_group_size(file, bytes, &total);
    end_adios(run, record, PHASE_OPEN);
    check_adios(run, code, "adios_group_size", run->groups[record->group].name);
    record->bytes = (int64_t)bytes;
    barrier(run, SKELETON_BEFORE_WRITE);
}

void skeleton_write(struct skeleton *run, int64_t file, const char *variable, const void *data)
{
    struct record *record = current(run);
    begin_adios(run, record, PHASE_WRITE);
    const int code = adios_write(file, variable, data);
    end_adios(run, record, PHASE_WRITE);
    check_adios(run, code, "adios_write", variable);
}

static void put_in_faults(const struct skeleton *run)
{
    if (run->settings.slow_rank == run->rank) {
        turn(STATE_IO);
        sleep_s(run->settings.slow_s);
        turn(STATE_REST);
    }
    if (run->collected)
        MPI_Allgather(run->collected + (size_t)run->settings.extra_collective_bytes * (size_t)run->ranks,
                      (int)run->settings.extra_collective_bytes, MPI_BYTE, run->collected,
                      (int)run->settings.extra_collective_bytes, MPI_BYTE, run->comm);
}

void skeleton_close(struct skeleton *run, int64_t file)
{
    struct record *record = current(run);
    barrier(run, SKELETON_BEFORE_CLOSE);
    begin_adios(run, record, PHASE_CLOSE);
    put_in_faults(run);
    const int code = adios_close(file);
    end_adios(run, record, PHASE_CLOSE);
    check_adios(run, code, "adios_close", run->groups[record->group].name);
    const double total_s = record->seconds[PHASE_OPEN] + record->seconds[PHASE_WRITE] + record->seconds[PHASE_CLOSE];
    const double sum_s = record->spent_s[STATE_REST] + record->spent_s[STATE_COMMUNICATION] + record->spent_s[STATE_IO];
    if (fabs(total_s - sum_s) > 0.02 * total_s)
        skeleton_die(run, "communication, I/O and rest are %.6f s, but %.6f s passed in step %d", sum_s, total_s,
                     record->step);
    run->is_open = false;
    barrier(run, SKELETON_AFTER_CLOSE);
}

/* ---- The result -------------------------------------------------------------------------------------- */

static void put_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c; ++c) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(out, "\\u%04x", *c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

static void put_key_text(FILE *out, const char *key, const char *text, const char *after)
{
    fprintf(out, "\"%s\": ", key);
    if (text)
        put_text(out, text);
    else
        fputs("null", out);
    fputs(after, out);
}

static const char *yes(bool value)
{
    return value ? "true" : "false";
}

/* The parameters key=value;key=value (ADIOS separates by ';' or ',') as settings of the method adios. */
static void put_method_options(FILE *out, const struct skeleton_settings *settings)
{
    fputs("\"method_options\": {", out);
    if (settings->method) {
        fputs("\"adios.method\": ", out);
        put_text(out, settings->method);
    }
    for (const char *at = settings->parameters ? settings->parameters : ""; *at; at += strspn(at, ";,")) {
        const size_t length = strcspn(at, ";,"), key = strcspn(at, "=;,");
        char text[512];
        snprintf(text, sizeof text, "adios.%.*s", (int)key, at);
        fputs(", ", out);
        put_text(out, text);
        snprintf(text, sizeof text, "%.*s", (int)(length - key - (key < length)), at + key + (key < length));
        fputs(": ", out);
        put_text(out, text);
        at += length;
    }
    fputc('}', out);
}

static void put_options(FILE *out, const struct skeleton_settings *settings)
{
    fprintf(out,
            " \"options\": {\"method\": \"adios\", \"transfer_bytes\": null, \"collective\": null, \"fsync\": false,\n"
            "  \"repetitions\": %d, \"keep\": %s, \"time_scale\": 1, \"bytes_scale\": 1, \"compute\": null,\n"
            "  \"verify\": false, \"restart\": false, \"restart_stream\": null, \"restart_dump\": null,\n"
            "  \"restart_from\": null, \"shift_ranks\": 0, \"drop_cache\": false, ",
            settings->repetitions, yes(settings->keep));
    put_method_options(out, settings);
    fputs("},\n", out);
}

static void put_program(FILE *out, const struct skeleton *run)
{
    const struct skeleton_settings *settings = &run->settings;
    const char *separator = "";
    fprintf(out, " \"program\": {\"kind\": \"%s\", ",
            settings->kind == SKELETON_KIND_SKELETON ? "skeleton" : "application");
    put_key_text(out, "name", settings->program, ", ");
    put_key_text(out, "application", settings->application, ", ");
    put_key_text(out, "method", settings->method, ", ");
    put_key_text(out, "parameters", settings->parameters, ", ");
    put_key_text(out, "config", run->config_text, ",\n");
    fprintf(out, "  \"steps\": %d, \"append\": %s, \"pause_s\": %.9g, \"barriers\": [", settings->steps,
            yes(settings->append), settings->pause_s);
    for (int b = 0; b < BARRIERS; ++b) {
        if (settings->barriers & barrier_names[b].bit) {
            fprintf(out, "%s\"%s\"", separator, barrier_names[b].name);
            separator = ", ";
        }
    }
    fputs("],\n  \"slow_rank\": ", out);
    if (settings->slow_rank >= 0)
        fprintf(out, "{\"rank\": %d, \"seconds\": %.9g}", settings->slow_rank, settings->slow_s);
    else
        fputs("null", out);
    fprintf(out, ", \"extra_collective_bytes\": %lld},\n", (long long)settings->extra_collective_bytes);
}

/* The type of the file system that a path is on, by the longest mount point that leads to it. */
static void file_system_of(const char *path, char *type, size_t room)
{
    char whole[PATH_BYTES], place[PATH_BYTES], kind[64];
    size_t longest = 0;
    snprintf(type, room, "unknown");
    FILE *mounts = fopen("/proc/self/mounts", "r");
    if (!mounts)
        return;
    if (!realpath(path, whole))
        snprintf(whole, sizeof whole, "%s", path);
    while (fscanf(mounts, "%*s %4095s %63s %*[^\n]", place, kind) == 2) {
        const size_t length = strcmp(place, "/") == 0 ? 0 : strlen(place);
        const bool leads = strncmp(whole, place, length) == 0 && (whole[length] == '/' || whole[length] == '\0');
        if (leads && length >= longest) {
            longest = length;
            snprintf(type, room, "%s", kind);
        }
    }
    fclose(mounts);
}

static void put_environment(FILE *out, const struct skeleton *run)
{
    const struct skeleton_settings *settings = &run->settings;
    struct utsname system;
    struct statvfs space = {.f_frsize = 0};
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "", kernel[256] = "", type[64];
    int length = 0;
    PMPI_Get_library_version(version, &length);
    version[strcspn(version, "\n")] = '\0';
    if (uname(&system) == 0)
        snprintf(kernel, sizeof kernel, "%.80s %.80s %.80s", system.sysname, system.release, system.machine);
    if (statvfs(settings->directory, &space) != 0)
        skeleton_die(run, "%s: its file system cannot be found: %s", settings->directory, strerror(errno));
    file_system_of(settings->directory, type, sizeof type);
    fputs(" \"environment\": {\"understudy_version\": \"skeleton " SKELETON_VERSION "\", \"command_line\": [", out);
    for (int i = 0; i < settings->argc; ++i) {
        fputs(i ? ", " : "", out);
        put_text(out, settings->argv[i]);
    }
    fputs("],\n  ", out);
    put_key_text(out, "started", run->started, ", ");
    fprintf(out, "\"ranks\": %d, \"nodes\": %d, ", run->ranks, run->nodes);
    put_key_text(out, "host", run->host, ", ");
    put_key_text(out, "kernel", kernel, ",\n  ");
    fprintf(out, "\"processors\": %ld, ", sysconf(_SC_NPROCESSORS_ONLN));
    put_key_text(out, "mpi", version, ", ");
    fputs("\"libraries\": {\"adios\": \"" ADIOS_VERSION "\"},\n  ", out);
    put_key_text(out, "directory", settings->directory, ", ");
    put_key_text(out, "file_system", type, ", ");
    fprintf(out, "\"total_bytes\": %llu, \"free_bytes\": %llu},\n", (unsigned long long)space.f_blocks * space.f_frsize,
            (unsigned long long)space.f_bavail * space.f_frsize);
}

/* What rank 0 gets of each process for a record, in this order. */
enum figure {
    FIGURE_START, /* of the phases */
    FIGURE_END = FIGURE_START + PHASES,
    FIGURE_SECONDS = FIGURE_END + PHASES,
    FIGURE_SPENT = FIGURE_SECONDS + PHASES,
    FIGURE_LIBRARY = FIGURE_SPENT + STATES,
    FIGURE_BYTES = FIGURE_LIBRARY + LIBRARY_TIMERS,
    FIGURE_OPERATIONS,
    FIGURES = FIGURE_OPERATIONS + PHASES
};

static void figures_of(const struct record *record, double *figures)
{
    for (int p = 0; p < PHASES; ++p) {
        figures[FIGURE_START + p] = record->start_s[p] > 0 ? record->start_s[p] : 0;
        figures[FIGURE_END + p] = record->end_s[p];
        figures[FIGURE_SECONDS + p] = record->seconds[p];
        figures[FIGURE_OPERATIONS + p] = (double)record->operations[p];
    }
    memcpy(figures + FIGURE_SPENT, record->spent_s, sizeof record->spent_s);
    memcpy(figures + FIGURE_LIBRARY, record->library_s, sizeof record->library_s);
    figures[FIGURE_BYTES] = (double)record->bytes;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Smallest value with at least that share of the values at or below it. */
static double quantile(const double *sorted, int count, double share)
{
    const int index = (int)ceil(share * count) - 1;
    return sorted[index > 0 ? index : 0];
}

static double reduced(const double *all, int ranks, int figure, char operation)
{
    double value = all[figure];
    for (int r = 1; r < ranks; ++r) {
        const double next = all[(size_t)r * FIGURES + (size_t)figure];
        value = operation == '+' ? value + next : operation == '<' ? fmin(value, next) : fmax(value, next);
    }
    return value;
}

static void put_phase(FILE *out, const double *all, int ranks, int phase, double *sorted)
{
    static const char *const names[PHASES] = {"open", "write", "close"};
    const double bytes = phase == PHASE_WRITE ? reduced(all, ranks, FIGURE_BYTES, '+') : 0;
    for (int r = 0; r < ranks; ++r)
        sorted[r] = all[(size_t)r * FIGURES + FIGURE_SECONDS + (size_t)phase];
    qsort(sorted, (size_t)ranks, sizeof *sorted, by_value);
    fprintf(out,
            "      {\"phase\": \"%s\", \"bytes\": %.0f, \"operations\": %.0f, \"first_start_s\": %.9f, "
            "\"last_end_s\": %.9f,\n"
            "       \"rank_s\": {\"min\": %.9f, \"q25\": %.9f, \"median\": %.9f, \"q75\": %.9f, \"q95\": %.9f, "
            "\"max\": %.9f, \"mean\": %.9f}}",
            names[phase], bytes, reduced(all, ranks, FIGURE_OPERATIONS + phase, '+'),
            reduced(all, ranks, FIGURE_START + phase, '<'), reduced(all, ranks, FIGURE_END + phase, '>'), sorted[0],
            quantile(sorted, ranks, 0.25), quantile(sorted, ranks, 0.5), quantile(sorted, ranks, 0.75),
            quantile(sorted, ranks, 0.95), sorted[ranks - 1], reduced(all, ranks, FIGURE_SECONDS + phase, '+') / ranks);
}

/* The figures first, first + 1, ... up to `count` of every process, summed: an array over the ranks. */
static void put_ranks(FILE *out, const char *key, const double *all, int ranks, int first, int count, const char *after)
{
    fprintf(out, "       \"%s\": [", key);
    for (int r = 0; r < ranks; ++r) {
        double value = 0;
        for (int f = 0; f < count; ++f)
            value += all[(size_t)r * FIGURES + (size_t)(first + f)];
        fprintf(out, first == FIGURE_BYTES ? "%s%.0f" : "%s%.9f", r ? ", " : "", value);
    }
    fprintf(out, "]%s\n", after);
}

static void put_processes(FILE *out, const double *all, int ranks, bool has_library)
{
    static const char *const timers[LIBRARY_TIMERS] = {"communication_s",   "io_s",   "local_metadata_s",
                                                       "global_metadata_s", "open_s", "write_s",
                                                       "overflow_s",        "close_s"};
    fputs("      \"processes\": {\n", out);
    put_ranks(out, "bytes", all, ranks, FIGURE_BYTES, 1, ",");
    put_ranks(out, "open_s", all, ranks, FIGURE_SECONDS + PHASE_OPEN, 1, ",");
    put_ranks(out, "write_s", all, ranks, FIGURE_SECONDS + PHASE_WRITE, 1, ",");
    put_ranks(out, "close_s", all, ranks, FIGURE_SECONDS + PHASE_CLOSE, 1, ",");
    put_ranks(out, "total_s", all, ranks, FIGURE_SECONDS, PHASES, ",");
    put_ranks(out, "communication_s", all, ranks, FIGURE_SPENT + STATE_COMMUNICATION, 1, ",");
    put_ranks(out, "io_s", all, ranks, FIGURE_SPENT + STATE_IO, 1, ",");
    put_ranks(out, "rest_s", all, ranks, FIGURE_SPENT + STATE_REST, 1, ",");
    fputs("       \"library\": ", out);
    if (!has_library) {
        fputs("null}", out);
        return;
    }
    fputs("{\n", out);
    for (int t = 0; t < LIBRARY_TIMERS; ++t)
        put_ranks(out, timers[t], all, ranks, FIGURE_LIBRARY + t, 1, t + 1 < LIBRARY_TIMERS ? "," : "}}");
}

static double put_dump(FILE *out, const struct skeleton *run, const struct record *record, const double *all,
                       double *sorted)
{
    const double bytes = reduced(all, run->ranks, FIGURE_BYTES, '+');
    const double start_s = reduced(all, run->ranks, FIGURE_START, '<');
    fprintf(out,
            "     {\"dump\": %d, \"scheduled_s\": %.9f, \"start_s\": %.9f, \"lateness_s\": 0, "
            "\"described_bytes\": %.0f, \"bytes\": %.0f, \"file_bytes\": ",
            record->step, start_s, start_s, bytes, bytes);
    if (record->file_bytes < 0)
        fputs("null", out);
    else
        fprintf(out, "%lld", (long long)record->file_bytes);
    fprintf(out, ", \"files\": %lld,\n      \"phases\": [\n", (long long)record->files);
    for (int p = 0; p < PHASES; ++p) {
        put_phase(out, all, run->ranks, p, sorted);
        fputs(p + 1 < PHASES ? ",\n" : "],\n", out);
    }
    put_processes(out, all, run->ranks, record->has_library);
    return reduced(all, run->ranks, FIGURE_END + PHASE_CLOSE, '>');
}

/* The next record of that group and repetition from `at` on; record_count where there is none. */
static int next_record(const struct skeleton *run, int at, int repetition, int group)
{
    while (at < run->record_count && (run->records[at].repetition != repetition || run->records[at].group != group))
        ++at;
    return at;
}

static void put_stream(FILE *out, const struct skeleton *run, int repetition, int group, double *all, double *sorted,
                       double *elapsed_s)
{
    double figures[FIGURES];
    int64_t bytes = 1, most = 1;
    for (int r = next_record(run, 0, repetition, group); r < run->record_count;
         r = next_record(run, r + 1, repetition, group))
        bytes = run->records[r].bytes > bytes ? run->records[r].bytes : bytes;
    PMPI_Reduce(&bytes, &most, 1, MPI_INT64_T, MPI_MAX, 0, run->comm);
    if (run->rank == 0) {
        fputs("   {", out);
        put_key_text(out, "name", run->groups[group].name, ", ");
        fprintf(out,
                "\"operation\": \"write\", \"method\": \"adios\", \"transfer_bytes\": %lld, "
                "\"collective\": false, \"sync\": false, \"dumps\": [\n",
                (long long)most);
    }
    for (int r = next_record(run, 0, repetition, group); r < run->record_count;) {
        const int next = next_record(run, r + 1, repetition, group);
        figures_of(&run->records[r], figures);
        PMPI_Gather(figures, FIGURES, MPI_DOUBLE, all, FIGURES, MPI_DOUBLE, 0, run->comm);
        if (run->rank == 0) {
            *elapsed_s = fmax(*elapsed_s, put_dump(out, run, &run->records[r], all, sorted));
            fputs(next < run->record_count ? "},\n" : "}]}", out);
        }
        r = next;
    }
}

static void put_repetitions(FILE *out, const struct skeleton *run, double *all, double *sorted)
{
    for (int n = 0; n < run->settings.repetitions; ++n) {
        double elapsed_s = 0;
        if (run->rank == 0)
            fprintf(out, "%s  {\"repetition\": %d, \"streams\": [\n", n ? ",\n" : "", n);
        for (int g = 0; g < run->group_count; ++g) {
            put_stream(out, run, n, g, all, sorted, &elapsed_s);
            if (run->rank == 0)
                fputs(g + 1 < run->group_count ? ",\n" : "],\n", out);
        }
        if (run->rank == 0)
            fprintf(out, "   \"elapsed_s\": %.9f}", elapsed_s);
    }
}

/* Whole or not there at all: written under another name first. */
static void write_result(const struct skeleton *run)
{
    char part[PATH_BYTES];
    FILE *out = NULL;
    double *all = NULL, *sorted = NULL;
    if (run->rank == 0) {
        all = skeleton_array(run, "the figures of all processes", (size_t)run->ranks * FIGURES, sizeof *all);
        sorted = skeleton_array(run, "the figures of a phase", (size_t)run->ranks, sizeof *sorted);
        snprintf(part, sizeof part, "%s.part", run->settings.result);
        out = fopen(part, "w");
        if (!out)
            skeleton_die(run, "%s: cannot be written: %s", part, strerror(errno));
        fputs("{\"schema\": \"understudy/result/1\", \"workload\": null, \"workload_sha256\": null,\n", out);
        put_program(out, run);
        put_options(out, &run->settings);
        put_environment(out, run);
        fputs(" \"repetitions\": [\n", out);
    }
    put_repetitions(out, run, all, sorted);
    if (run->rank == 0) {
        fputs("],\n \"verification\": null,\n \"finished\": true}\n", out);
        const bool whole = !ferror(out) && fflush(out) == 0 && fsync(fileno(out)) == 0;
        if (fclose(out) != 0 || !whole || rename(part, run->settings.result) != 0)
            skeleton_die(run, "%s: cannot be written: %s", run->settings.result, strerror(errno));
    }
    free(all);
    free(sorted);
}

/* ---- End --------------------------------------------------------------------------------------------- */

/* ADIOS tells the timers of a step at the next open of the group: here is one more, of a file of no use. */
static void take_last_timers(struct skeleton *run)
{
    char path[PATH_BYTES];
    int64_t bytes, files;
    for (int g = 0; g < run->group_count; ++g) {
        const struct group *group = &run->groups[g];
        int64_t file = 0;
        uint64_t total = 0;
        if (!group->has_timers || group->last < 0)
            continue;
        snprintf(path, sizeof path, "%.*s/timers.bp", PATH_BYTES - 16, run->settings.directory);
        check_adios(run, open_file(run, &file, group->name, path, "w"), "adios_open", path);
        take_library_timers(run, &run->records[group->last], file);
        check_adios(run, adios_group_size(file, 0, &total), "adios_group_size", path);
        check_adios(run, adios_close(file), "adios_close", path);
        PMPI_Barrier(run->comm);
        if (run->rank == 0)
            look_at(path, true, &bytes, &files);
        PMPI_Barrier(run->comm);
    }
}

void skeleton_finish(struct skeleton *run)
{
    take_last_timers(run);
    check_adios(run, adios_finalize(run->rank), "adios_finalize", run->config);
    write_result(run);
    PMPI_Barrier(run->comm);
    if (run->rank == 0 && run->made_config && !run->settings.keep)
        unlink(run->config);
    if (run->rank == 0 && run->made_directory && !run->settings.keep)
        rmdir(run->settings.directory);
    catch_signals(NULL);
    if (run->window != MPI_WIN_NULL)
        PMPI_Win_free(&run->window);
    PMPI_Comm_free(&run->node);
    PMPI_Comm_free(&run->comm);
    free(run->collected);
    free(run->config_text);
    free(run->records);
    free(run);
}

/* ---- Arrays ------------------------------------------------------------------------------------------ */

enum { MAX_DIMENSIONS = 8 };

static void make_grid(int64_t ranks, int dimensions, int64_t *sides)
{
    int64_t factors[64];
    int count = 0;
    for (int64_t factor = 2; ranks > 1; ++factor) {
        if (factor * factor > ranks)
            factor = ranks;
        for (; ranks % factor == 0; ranks /= factor)
            factors[count++] = factor;
    }
    for (int d = 0; d < dimensions; ++d)
        sides[d] = 1;
    while (count > 0) {
        int shortest = 0;
        for (int d = 1; d < dimensions; ++d)
            if (sides[d] < sides[shortest])
                shortest = d;
        sides[shortest] *= factors[--count];
    }
    for (int d = 1; d < dimensions; ++d) /* the longest first */
        for (int e = d; e > 0 && sides[e] > sides[e - 1]; --e) {
            const int64_t side = sides[e];
            sides[e] = sides[e - 1];
            sides[e - 1] = side;
        }
}

int64_t skeleton_grid(int64_t ranks, int dimensions, int index)
{
    int64_t sides[MAX_DIMENSIONS];
    make_grid(ranks, dimensions, sides);
    return sides[index];
}

int64_t skeleton_coordinate(int64_t rank, int64_t ranks, int dimensions, int index)
{
    int64_t sides[MAX_DIMENSIONS];
    make_grid(ranks, dimensions, sides);
    for (int d = dimensions - 1; d > index; --d)
        rank /= sides[d];
    return rank % sides[index];
}

int64_t skeleton_of_rank(int64_t rank, int64_t count, const int64_t *numbers)
{
    return rank < count ? numbers[rank] : -1;
}

void skeleton_check_part(const struct skeleton *run, const char *variable, int64_t offset, int64_t part, int64_t whole)
{
    if (part < 1 || offset < 0 || offset > whole - part)
        skeleton_die(run, "%s: a part of size %lld at offset %lld does not lie in a global size of %lld", variable,
                     (long long)part, (long long)offset, (long long)whole);
}

void *skeleton_array(const struct skeleton *run, const char *name, size_t count, size_t element_bytes)
{
    if (count == 0)
        return NULL;
    void *made = count <= SIZE_MAX / element_bytes ? calloc(count, element_bytes) : NULL;
    if (!made)
        skeleton_die(run, "%s: no memory for %zu elements of %zu bytes", name, count, element_bytes);
    return made;
}

static uint64_t next_random(uint64_t *state) /* xorshift64*: Vigna 2016 */
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

void skeleton_fill(const struct skeleton *run, void *data, size_t count, enum skeleton_type type,
                   enum skeleton_fill fill)
{
    static const size_t element_bytes[] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8};
    const size_t bytes = element_bytes[type];
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15) * ((uint64_t)run->rank + 1);
    unsigned char *at = data;
    for (size_t i = 0; i < count; ++i, at += bytes) {
        const uint64_t random = next_random(&state);
        const uint64_t whole = fill == SKELETON_FILL_RANK    ? (uint64_t)run->rank
                               : fill == SKELETON_FILL_INDEX ? (uint64_t)i
                               : fill == SKELETON_FILL_ZERO  ? 0
                                                             : random;
        const double real = fill == SKELETON_FILL_RANDOM ? (double)(random >> 11) * 0x1p-53 : (double)whole;
        const float single = (float)real;
        const uint32_t four = (uint32_t)whole;
        const uint16_t two = (uint16_t)whole;
        const uint8_t one = (uint8_t)whole;
        memcpy(at,
               type == SKELETON_F64   ? (const void *)&real
               : type == SKELETON_F32 ? (const void *)&single
               : bytes == 8           ? (const void *)&whole
               : bytes == 4           ? (const void *)&four
               : bytes == 2           ? (const void *)&two
                                      : (const void *)&one,
               bytes);
    }
}
