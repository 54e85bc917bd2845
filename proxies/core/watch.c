#include "core/watch.h"

#include "core/die.h"
#include "core/print.h"
#include "core/stop.h"

#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FAILURE = 1, LINE_BYTES = 1024, STACK_BYTES = 256 << 10, PATIENCE_S = 15, LOOKS = 20 };

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
static atomic_llong unchanged_ms; /* how long the rank has been where it is */
static pthread_t thread, watched;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void add(char line[LINE_BYTES], size_t *length, const char *text)
{
    *length += und_escape(line + *length, LINE_BYTES - 1 - *length, text);
}

static void add_number(char line[LINE_BYTES], size_t *length, long long number)
{
    char digits[24], *at = digits + sizeof digits - 1;
    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    add(line, length, at);
}

/* One line in one call, so that those of several ranks do not mix. */
static void say(void)
{
    char line[LINE_BYTES];
    size_t length = 0;
    const struct und_stream *stream = here.stream;
    const char *operation = here.operation, *path = here.path;
    if (atomic_exchange(&said, true))
        return;
    add(line, &length, "understudy: rank ");
    add_number(line, &length, own_rank);
    add(line, &length, " on ");
    add(line, &length, host);
    add(line, &length, ": no progress for ");
    add_number(line, &length, unchanged_ms / 1000);
    add(line, &length, " s: ");
    if (stream) {
        add(line, &length, "stream ");
        add(line, &length, stream->name);
        add(line, &length, here.restart ? "-restart, dump " : ", dump ");
        add_number(line, &length, here.dump);
        add(line, &length, ", ");
    }
    if (operation) {
        add(line, &length, operation);
        add(line, &length, ", call ");
        add_number(line, &length, __atomic_load_n(&und_watch_number, __ATOMIC_RELAXED));
    } else {
        add(line, &length, "waits for other ranks");
    }
    if (operation && path) {
        add(line, &length, ", ");
        add(line, &length, path);
    }
    line[length++] = '\n';
    /* Nothing can be done about a message that cannot be written. */
    if (write(STDERR_FILENO, line, length) < 0)
        return;
}

/* At a signal, in its handler. */
static void say_if_late(void)
{
    if (running && unchanged_ms >= (long long)(500 * base_s))
        say();
}

/* The watched thread removes the files, as at any signal. Where it cannot, since the kernel or a library does not
 * let go of it, this one ends the process. */
static void end(void)
{
    say();
    und_die_claim();
    pthread_kill(watched, SIGTERM);
    nanosleep(&(struct timespec){PATIENCE_S, 0}, NULL);
    if (und_stop_is_held())
        und_die_clean();
    signal(SIGALRM, SIG_DFL);
    alarm(PATIENCE_S);
    MPI_Abort(MPI_COMM_WORLD, FAILURE);
    _exit(FAILURE);
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

void und_watch_begin(int rank, double limit_s)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    base_s = limit_s;
    if (limit_s <= 0)
        return;
    own_rank = rank;
    gethostname(host, sizeof host - 1);
    watched = pthread_self();
    note(NULL, NULL, limit_s);
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
