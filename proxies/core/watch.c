#include "core/watch.h"

#include "core/die.h"
#include "core/mount.h"
#include "core/print.h"
#include "core/stop.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 256 << 10, PATIENCE_S = 15, ANSWER_NS = 900000000, LOOKS = 20 };

static const double slowest_bytes_per_s = 20e6, slowest_files_per_s = 100;

int64_t und_watch_number;

/* What the rank is in, written by it and read by the thread. A pair that does not fit is harmless: it does not
 * last, and the alarm is about what lasts. */
static struct {
    _Atomic(const char *) operation; /* NULL: waits for other ranks */
    _Atomic(const char *) path;      /* NULL: of several files */
    _Atomic(const struct und_stream *) stream;
    atomic_int dump;
    atomic_bool restart, pauses;
    atomic_llong serial; /* of operations and waits */
    _Atomic double limit_s;
} here;

static double base_s, more_s, earlier_s; /* the limit, what the dump adds to it, and what the one before it does */
static int own_rank;
static char host[256];
static atomic_bool running, said;
static atomic_llong unchanged_ms;    /* how long the rank has been where it is */
static atomic_llong free_bytes = -1; /* of the storage; -1: not known */
static pthread_t thread, watched;
static int64_t (*ask_free)(void);

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* One line in one call, so that those of several ranks do not mix. */
static void say(void)
{
    struct und_line line = {0};
    const struct und_stream *stream = here.stream;
    const char *operation = here.operation, *path = here.path;
    if (atomic_exchange(&said, true))
        return;
    und_line_add(&line, "understudy: rank ");
    und_line_add_number(&line, own_rank);
    und_line_add(&line, " on ");
    und_line_add(&line, host);
    und_line_add(&line, ": no progress for ");
    und_line_add_number(&line, unchanged_ms / 1000);
    und_line_add(&line, " s: ");
    if (stream) {
        und_line_add(&line, "stream ");
        und_line_add(&line, stream->name);
        und_line_add(&line, here.restart ? "-restart, dump " : ", dump ");
        und_line_add_number(&line, here.dump);
        und_line_add(&line, ", ");
    }
    if (operation) {
        und_line_add(&line, operation);
        und_line_add(&line, ", call ");
        und_line_add_number(&line, __atomic_load_n(&und_watch_number, __ATOMIC_RELAXED));
    } else {
        und_line_add(&line, "waits for other ranks");
    }
    if (operation && path) {
        und_line_add(&line, ", ");
        und_line_add(&line, path);
    }
    if (free_bytes >= 0) {
        und_line_add(&line, free_bytes < UND_FULL_BYTES ? "; the storage is full: " : "; the storage is not full: ");
        und_line_add_number(&line, free_bytes);
        und_line_add(&line, " bytes are free");
    }
    und_line_write(&line, STDERR_FILENO);
}

/* At a signal, in its handler. */
static void say_if_late(void)
{
    if (running && unchanged_ms >= (long long)(500 * base_s))
        say();
}

static void *ask(void *nothing)
{
    free_bytes = ask_free();
    return nothing;
}

/* Is the storage full? Another thread asks, since the answer may never come. */
static void ask_storage(void)
{
    pthread_t asking;
    if (pthread_create(&asking, NULL, ask, NULL) != 0)
        return;
    pthread_detach(asking);
    for (int looks = 0; free_bytes < 0 && looks < LOOKS; ++looks)
        nanosleep(&(struct timespec){0, ANSWER_NS / LOOKS}, NULL);
}

/* The watched thread removes the files, as at any signal. Where it cannot, since the kernel or a library does not
 * let go of it, this one ends the process; an alarm does where this one hangs, too. */
static void end(void)
{
    sigset_t alarms;
    ask_storage();
    say();
    und_die_claim();
    pthread_kill(watched, SIGTERM);
    nanosleep(&(struct timespec){PATIENCE_S, 0}, NULL);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    signal(SIGALRM, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(PATIENCE_S);
    if (und_stop_is_held())
        und_die_clean();
    und_die_abort();
}

static void *watch(void *nothing)
{
    const double step_s = base_s / LOOKS;
    const struct timespec step = {(time_t)step_s, (long)((step_s - (double)(time_t)step_s) * 1e9)};
    long long serial = -1;
    int64_t number = -1;
    double since_s = now();
    while (running) {
        const long long serial_now = here.serial;
        const int64_t number_now = __atomic_load_n(&und_watch_number, __ATOMIC_RELAXED);
        if (serial_now != serial || number_now != number || here.pauses)
            since_s = now();
        serial = serial_now;
        number = number_now;
        unchanged_ms = (long long)((now() - since_s) * 1000);
        if (now() - since_s > here.limit_s)
            end();
        nanosleep(&step, NULL);
    }
    return nothing;
}

static void note(const char *operation, const char *path, double limit_s)
{
    here.operation = operation;
    here.path = path;
    here.limit_s = limit_s;
    und_watch_call(0);
    ++here.serial;
}

void und_watch_begin(int rank, double limit_s, int64_t (*free)(void))
{
    pthread_attr_t attributes;
    sigset_t all, before;
    base_s = limit_s;
    if (limit_s <= 0)
        return;
    own_rank = rank;
    ask_free = free;
    gethostname(host, sizeof host - 1);
    watched = pthread_self();
    note("start", NULL, limit_s);
    /* Signals are the watched thread's. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    running = true;
    und_stop_call_first(say_if_late);
    if (pthread_create(&thread, &attributes, watch, NULL) != 0)
        UND_DIE("--watchdog: cannot start a thread");
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* It need not be waited for: it sleeps, or is about to end the run. */
void und_watch_end(void)
{
    if (running)
        pthread_detach(thread);
    running = false;
}

void und_watch_dump(const struct und_stream *stream, int dump, bool restart)
{
    if (!running)
        return;
    double files = stream->own.files;
    for (int v = 0; stream->own.owner == UND_EACH_ROW && v < und_dump_of(stream, dump)->variable_count; ++v)
        files += (double)und_dump_of(stream, dump)->variables[v].shape[0];
    earlier_s = more_s;
    more_s = (double)und_dump_bytes(und_dump_of(stream, dump)) * (double)stream->passes / slowest_bytes_per_s +
             files / slowest_files_per_s;
    here.stream = stream;
    here.dump = dump;
    here.restart = restart;
    und_watch_leave();
}

void und_watch_apart(const char *operation, const char *path, int64_t files)
{
    if (!running)
        return;
    here.stream = NULL;
    earlier_s = more_s;
    more_s = (double)files / slowest_files_per_s;
    note(operation, path, base_s + more_s + earlier_s);
}

void und_watch_allow(double seconds)
{
    more_s += seconds;
    und_watch_leave();
}

void und_watch_enter(const char *operation, const char *path, bool shared)
{
    if (running)
        note(operation, path, base_s + (shared ? more_s : 0));
}

void und_watch_leave(void)
{
    if (running)
        note(NULL, NULL, base_s + more_s + earlier_s);
}

void und_watch_pause(bool pauses)
{
    here.pauses = pauses;
}
