/* The end of a run that fails or is stopped: one message, and none of the run's files. */
#include "internal.h"

#include "text/print.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

static void say(const struct skeleton *run, const char *format, va_list arguments)
{
    char message[2048];
    vsnprintf(message, sizeof message, format, arguments);
    und_print(stderr, "%s: rank %d on %s: %s", run->options.program, run->rank, run->host, message);
}

/* Safe in a signal handler. */
static void remove_temporary(const struct skeleton *run)
{
    if (run->temporary[0])
        unlinkat(AT_FDCWD, run->temporary, 0);
}

_Noreturn void skeleton_die(const struct skeleton *run, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(run, format, arguments);
    va_end(arguments);
    fflush(NULL);
    if (!run->is_verifying || !run->options.keep)
        skeleton_remove_all(run);
    remove_temporary(run);
    MPI_Abort(run->comm, 1);
    abort();
}

_Noreturn void skeleton_leave(struct skeleton *run, int speaker, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (run->rank == speaker)
        say(run, format, arguments);
    va_end(arguments);
    fflush(NULL);
    PMPI_Barrier(run->comm);
    if (run->rank == 0)
        skeleton_remove_all(run);
    PMPI_Barrier(run->comm);
    PMPI_Finalize();
    exit(1);
}

static const struct skeleton *interruptible; /* a signal handler gets no argument */
static pthread_t interruptible_thread;

/* Every process removes what any may have written: the last to do so sees all that the others still wrote. */
static void interrupt(int number)
{
    const struct skeleton *run = interruptible;
    if (!pthread_equal(pthread_self(), interruptible_thread)) { /* the one that writes must not go on */
        pthread_kill(interruptible_thread, number);
        return;
    }
    skeleton_remove_all(run);
    remove_temporary(run);
    _exit(128 + number);
}

/* A write behind the limit of a file's size fails, rather than that it ends the process. What somebody else has set for
 * a signal stays. */
void skeleton_catch_signals(const struct skeleton *run)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGTERM};
    if (run)
        interruptible = run;
    interruptible_thread = pthread_self();
    static bool ignores; /* by this function */
    struct sigaction limit;
    if (sigaction(SIGXFSZ, NULL, &limit) == 0 && (run ? limit.sa_handler == SIG_DFL : ignores)) {
        signal(SIGXFSZ, run ? SIG_IGN : SIG_DFL);
        ignores = run != NULL;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; ++i) {
        struct sigaction now, next = {.sa_handler = run ? interrupt : SIG_DFL};
        sigfillset(&next.sa_mask);
        if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler == (run ? SIG_DFL : interrupt))
            sigaction(numbers[i], &next, NULL);
    }
}
