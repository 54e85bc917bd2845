/*
 * A run in which nothing goes on any more ends with an error: a rank that has been in one operation, or has waited
 * for other ranks, for longer than --watchdog says where it is and ends the run. A thread looks at what the rank
 * notes before each operation; of the single calls in it only their number, one store each.
 *
 * A rank cannot see how far the others are. Where it may have to wait for them, in a barrier or in an operation on a
 * file that they share, it gives them the time that all bytes of the dump take at 20 MB/s, and its files at 100 a
 * second, in addition.
 */
#ifndef UND_WATCHDOG_H
#define UND_WATCHDOG_H

#include "workload/workload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct und_watch {
    int64_t call; /* the one that the rank is at, of those of its operation; relaxed: nothing depends on its order */
    pthread_t watched; /* the thread of the rank */
    pthread_t thread;
    int rank;
    char host[256];
    int64_t (*free)(const void *storage);
    const void *storage;
    double base_s, more_s, earlier_s; /* the limit, what the dump adds to it, and what the one before it does */
    atomic_bool running, said;
    atomic_llong unchanged_ms; /* how long the rank has been where it is */
    atomic_llong free_bytes;   /* of the storage; -1: not known */
    /* Where the rank is, written by it and read by the thread. A pair that does not fit is harmless: it does not last,
     * and the alarm is about what lasts. */
    struct {
        _Atomic(const char *) operation; /* NULL: waits for other ranks */
        _Atomic(const char *) path;      /* NULL: of several files */
        _Atomic(const struct und_stream *) stream;
        atomic_int dump;
        atomic_bool restart, pauses;
        atomic_llong serial; /* of operations and waits */
        _Atomic double limit_s;
    } here;
};

static inline void und_watch_call(struct und_watch *watch, int64_t number)
{
    __atomic_store_n(&watch->call, number, __ATOMIC_RELAXED);
}

/* Lives until the process ends, since its thread may look at it. Watches nothing yet. */
struct und_watch *und_watch_new(int rank);

/* Begins to watch the calling thread, also before MPI_Init, and says at a signal where it is if it has been there for
 * half of the limit or more; nothing with a limit of 0. `free` says how many bytes the storage has free, -1: not known;
 * it is asked by another thread, since the answer may never come. */
void und_watch_begin(struct und_watch *watch, double limit_s, int64_t (*free)(const void *storage),
                     const void *storage);
void und_watch_end(struct und_watch *watch);

/* The dump that follows, or whose operations follow. */
void und_watch_dump(struct und_watch *watch, const struct und_stream *stream, int dump, bool restart);

/* No dump: what a run does before, between and behind its repetitions, with so many files of all ranks. */
void und_watch_apart(struct und_watch *watch, const char *operation, const char *path, int64_t files);

/* Other ranks may be so much later in it. */
void und_watch_allow(struct und_watch *watch, double seconds);

/* An operation begins, of which calls are counted from 0; `shared` where it may wait for other ranks. */
void und_watch_enter(struct und_watch *watch, const char *operation, const char *path, bool shared);

/* It has ended: what follows waits for other ranks. */
void und_watch_leave(struct und_watch *watch);

/* This rank pauses, as its schedule has it. Leaves what it was in. */
void und_watch_pause(struct und_watch *watch, bool pauses);

#endif
