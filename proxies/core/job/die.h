/*
 * How a run ends when one rank cannot go on: one message on stderr with rank, host and place in
 * the source, the files that this rank made are removed, and MPI_Abort stops the others.
 * The message says "subject: what could not be done, with the path and the size".
 * Usage errors that every rank knows of do not come here; see error.h.
 */
#ifndef UND_DIE_H
#define UND_DIE_H

#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define UND_DIE(...) und_die(__FILE__, __LINE__, "", __VA_ARGS__)

/* Adds the text of errno. */
#define UND_CHECK(condition, ...)                                      \
    do {                                                               \
        if (!(condition))                                              \
            und_die(__FILE__, __LINE__, strerror(errno), __VA_ARGS__); \
    } while (0)

/* Adds MPI's text for its error code. Communicators and files return errors, see run.c. */
#define UND_MPI(call, ...)                                                        \
    do {                                                                          \
        const int und_mpi_code = (call);                                          \
        if (und_mpi_code != MPI_SUCCESS)                                          \
            und_die(__FILE__, __LINE__, und_die_text(und_mpi_code), __VA_ARGS__); \
    } while (0)

/* Ranks of a node share a mark, so that of many that fail for one reason only the first speaks, and
 * none of those that are stopped because of it. Collective over comm; unshare before MPI_Finalize. */
void und_die_share(MPI_Comm comm);
void und_die_unshare(void);

/* How a rank that fails removes its files; safely in a signal handler. */
struct und_cleanup {
    int64_t (*remove_files)(void *state); /* that this rank made; how many could not be removed */
    int64_t (*all_removed)(void *state);  /* called once all ranks of the node have removed theirs; how many more */
    void (*tell)(void *state, int64_t kept);
    void *state;
};

/* To be given before there are any files. */
void und_die_clean_by(struct und_cleanup cleanup);

/* A queue of the kernel, which keeps files open while it is: a rank that fails closes it before it removes its files,
 * safely in a signal handler, if it is in the thread that noted it. */
struct und_kernel_queue {
    void (*close)(void *state);
    void *state;
    pthread_t thread;
    struct und_kernel_queue *next;
};

void und_die_note_queue(struct und_kernel_queue *queue);
void und_die_forget_queue(struct und_kernel_queue *queue);

/* Is this the first of the node to speak? Safe in a signal handler. */
bool und_die_first(void);

/* The exit status of a rank that is stopped by the signal: that of a failed run, where a rank of this node has failed
 * and stops the others. The launcher reports the status of whichever rank ends first. Safe in a signal handler. */
int und_die_status(int signal_number);

/* Another thread ends this rank: its message, which is written, is that of the run, and its status that of a failed
 * run. Safe in a signal handler. */
void und_die_claim(void);

/* Removes the files that this rank made, has the other ranks of the node do the same (SIGTERM, see stop.h) and waits
 * for them, at most ten seconds. Open MPI kills all ranks of a node, with their files still there, as soon as the
 * first of them has ended. Does not wait, and returns false, where this rank waits already. Safe in a signal
 * handler. */
bool und_die_clean(void);

/* Ends this process and, once MPI is there, all ranks. */
_Noreturn void und_die_abort(void);

/* MPI's text for an error code, valid until the next call. */
const char *und_die_text(int code);

/* Memory of zeros; ends the run where there is none. `name` is what it is for, in the message. */
void *und_allocate(int64_t count, size_t size, const char *name);

/* `why` follows the message; may be empty. */
_Noreturn void und_die(const char *file, int line, const char *why, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
