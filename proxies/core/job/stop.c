#include "job/stop.h"

#include "job/die.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* A signal handler gets no argument. */
static atomic_bool held;
static volatile sig_atomic_t noted;
static atomic_bool speaking;
static pthread_t watcher;
static void (*call_first)(void *state);
static void *first_state;

static void say(int signal_number)
{
    static const char text[] = "understudy: stopped by signal ";
    char line[sizeof text + 64];
    size_t length = sizeof text - 1;
    memcpy(line, text, length);
    if (signal_number >= 10)
        line[length++] = (char)('0' + signal_number / 10 % 10);
    line[length++] = (char)('0' + signal_number % 10);
    static const char rest[] = "; each rank that still runs removes the files that it made\n";
    memcpy(line + length, rest, sizeof rest - 1);
    length += sizeof rest - 1;
    /* Nothing can be done about a message that cannot be written. */
    if (write(STDERR_FILENO, line, length) < 0)
        return;
}

static void on_signal(int signal_number)
{
    /* The thread that creates files must not go on beside this one: it gets the signal instead. */
    if (!pthread_equal(pthread_self(), watcher)) {
        pthread_kill(watcher, signal_number);
        return;
    }
    if (call_first)
        call_first(first_state);
    if (held) {
        noted = signal_number;
        return;
    }
    if (speaking && und_die_first())
        say(signal_number);
    if (und_die_clean())
        _exit(und_die_status(signal_number));
}

static void handle(void (*handler)(int))
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; ++i)
        sigaction(signals[i], &action, NULL);
}

void und_stop_watch(bool speaks)
{
    speaking = speaks;
    watcher = pthread_self();
    handle(on_signal);
}

void und_stop_call_first(void (*first)(void *state), void *state)
{
    first_state = state;
    call_first = first;
}

void und_stop_unwatch(void)
{
    handle(SIG_IGN);
}

void und_stop_hold(void)
{
    held = true;
}

bool und_stop_is_held(void)
{
    return held && noted;
}

void und_stop_release(void)
{
    const int code = errno;
    held = false;
    if (noted)
        on_signal(noted);
    errno = code;
}
