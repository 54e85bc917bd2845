#include "storage/watchdog.h"

#include "interfaces/mount.h"
#include "job/die.h"
#include "job/stop.h"
#include "text/print.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { STACK_BYTES = 256 << 10, PATIENCE_S = 15, ANSWER_NS = 900000000, LOOKS = 20 };

static const double slowest_bytes_per_s = 20e6, slowest_files_per_s = 100;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* One line in one call, so that those of several ranks do not mix. */
static void say(struct und_watch *watch)
{
    struct und_line line = {0};
    const struct und_stream *stream = watch->here.stream;
    const char *operation = watch->here.operation, *path = watch->here.path;
    if (atomic_exchange(&watch->said, true))
        return;
    und_line_add(&line, "understudy: rank ");
    und_line_add_number(&line, watch->rank);
    und_line_add(&line, " on ");
    und_line_add(&line, watch->host);
    und_line_add(&line, ": no progress for ");
    und_line_add_number(&line, watch->unchanged_ms / 1000);
    und_line_add(&line, " s: ");
    if (stream) {
        und_line_add(&line, "stream ");
        und_line_add(&line, stream->name);
        und_line_add(&line, watch->here.restart ? "-restart, dump " : ", dump ");
        und_line_add_number(&line, watch->here.dump);
        und_line_add(&line, ", ");
    }
    if (operation) {
        und_line_add(&line, operation);
        und_line_add(&line, ", call ");
        und_line_add_number(&line, __atomic_load_n(&watch->call, __ATOMIC_RELAXED));
    } else {
        und_line_add(&line, "waits for other ranks");
    }
    if (operation && path) {
        und_line_add(&line, ", ");
        und_line_add(&line, path);
    }
    if (watch->free_bytes >= 0) {
        und_line_add(&line,
                     watch->free_bytes < UND_FULL_BYTES ? "; the storage is full: " : "; the storage is not full: ");
        und_line_add_number(&line, watch->free_bytes);
        und_line_add(&line, " bytes are free");
    }
    und_line_write(&line, STDERR_FILENO);
}

/* At a signal, in its handler. */
static void say_if_late(void *state)
{
    struct und_watch *watch = state;
    if (watch->running && watch->unchanged_ms >= (long long)(500 * watch->base_s))
        say(watch);
}

static void *ask(void *state)
{
    struct und_watch *watch = state;
    watch->free_bytes = watch->free(watch->storage);
    return NULL;
}

/* Is the storage full? Another thread asks, since the answer may never come. */
static void ask_storage(struct und_watch *watch)
{
    pthread_t asking;
    if (pthread_create(&asking, NULL, ask, watch) != 0)
        return;
    pthread_detach(asking);
    for (int looks = 0; watch->free_bytes < 0 && looks < LOOKS; ++looks)
        nanosleep(&(struct timespec){0, ANSWER_NS / LOOKS}, NULL);
}

/* The watched thread removes the files, as at any signal. Where it cannot, since the kernel or a library does not
 * let go of it, this one ends the process; an alarm does where this one hangs, too. */
static void end(struct und_watch *watch)
{
    sigset_t alarms;
    ask_storage(watch);
    say(watch);
    und_die_claim();
    pthread_kill(watch->watched, SIGTERM);
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

static void *run(void *state)
{
    struct und_watch *watch = state;
    const double step_s = watch->base_s / LOOKS;
    const struct timespec step = {(time_t)step_s, (long)((step_s - (double)(time_t)step_s) * 1e9)};
    long long serial = -1;
    int64_t number = -1;
    double since_s = now();
    while (watch->running) {
        const long long serial_now = watch->here.serial;
        const int64_t number_now = __atomic_load_n(&watch->call, __ATOMIC_RELAXED);
        if (serial_now != serial || number_now != number || watch->here.pauses)
            since_s = now();
        serial = serial_now;
        number = number_now;
        watch->unchanged_ms = (long long)((now() - since_s) * 1000);
        if (now() - since_s > watch->here.limit_s)
            end(watch);
        nanosleep(&step, NULL);
    }
    return NULL;
}

static void note(struct und_watch *watch, const char *operation, const char *path, double limit_s)
{
    watch->here.operation = operation;
    watch->here.path = path;
    watch->here.limit_s = limit_s;
    und_watch_call(watch, 0);
    ++watch->here.serial;
}

struct und_watch *und_watch_new(int rank)
{
    struct und_watch *watch = und_allocate(1, sizeof *watch, "--watchdog");
    watch->rank = rank;
    watch->free_bytes = -1;
    return watch;
}

void und_watch_begin(struct und_watch *watch, double limit_s, int64_t (*free)(const void *storage), const void *storage)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    watch->base_s = limit_s;
    if (limit_s <= 0)
        return;
    watch->free = free;
    watch->storage = storage;
    gethostname(watch->host, sizeof watch->host - 1);
    watch->watched = pthread_self();
    note(watch, "start", NULL, limit_s);
    /* Signals are the watched thread's. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    watch->running = true;
    und_stop_call_first(say_if_late, watch);
    if (pthread_create(&watch->thread, &attributes, run, watch) != 0)
        UND_DIE("--watchdog: cannot start a thread");
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* It need not be waited for: it sleeps, or is about to end the run. */
void und_watch_end(struct und_watch *watch)
{
    if (watch->running)
        pthread_detach(watch->thread);
    watch->running = false;
}

void und_watch_dump(struct und_watch *watch, const struct und_stream *stream, int dump, bool restart)
{
    if (!watch->running)
        return;
    double files = stream->own_set.files;
    for (int v = 0; stream->own_set.owner == UND_EACH_ROW && v < und_dump_of(stream, dump)->variable_count; ++v)
        files += (double)und_dump_of(stream, dump)->variables[v].shape[0];
    watch->earlier_s = watch->more_s;
    watch->more_s = (double)und_dump_bytes(und_dump_of(stream, dump)) * (double)stream->passes / slowest_bytes_per_s +
                    files / slowest_files_per_s;
    watch->here.stream = stream;
    watch->here.dump = dump;
    watch->here.restart = restart;
    und_watch_leave(watch);
}

void und_watch_apart(struct und_watch *watch, const char *operation, const char *path, int64_t files)
{
    if (!watch->running)
        return;
    watch->here.stream = NULL;
    watch->earlier_s = watch->more_s;
    watch->more_s = (double)files / slowest_files_per_s;
    note(watch, operation, path, watch->base_s + watch->more_s + watch->earlier_s);
}

void und_watch_allow(struct und_watch *watch, double seconds)
{
    watch->more_s += seconds;
    und_watch_leave(watch);
}

void und_watch_enter(struct und_watch *watch, const char *operation, const char *path, bool shared)
{
    if (watch->running)
        note(watch, operation, path, watch->base_s + (shared ? watch->more_s : 0));
}

void und_watch_leave(struct und_watch *watch)
{
    if (watch->running)
        note(watch, NULL, NULL, watch->base_s + watch->more_s + watch->earlier_s);
}

void und_watch_pause(struct und_watch *watch, bool pauses)
{
    watch->here.pauses = pauses;
}
