/*
 * A run in which nothing goes on any more ends with an error: a rank that has been in one operation, or has waited
 * for other ranks, for longer than --watchdog says where it is and ends the run. A thread looks at what the rank
 * notes before each operation; of the single calls in it only their number, one store each.
 *
 * A rank cannot see how far the others are. Where it may have to wait for them, in a barrier or in an operation on a
 * file that they share, it gives them the time that all bytes of the dump take at 20 MB/s, and its files at 100 a
 * second, in addition.
 */
#ifndef UND_WATCH_H
#define UND_WATCH_H

#include "core/workload.h"

#include <stdbool.h>
#include <stdint.h>

/* The call that a rank is at, of those of its operation; relaxed, since nothing depends on its order. */
extern int64_t und_watch_number;

static inline void und_watch_call(int64_t number)
{
    __atomic_store_n(&und_watch_number, number, __ATOMIC_RELAXED);
}

/* Begins to watch the calling thread, also before MPI_Init, and says at a signal where it is if it has been there for
 * half of the limit or more; nothing with a limit of 0. `free` says how many bytes the storage has free, -1: not known;
 * it is asked by another thread, since the answer may never come. */
void und_watch_begin(int rank, double limit_s, int64_t (*free)(void));
void und_watch_end(void);

/* The dump that follows, or whose operations follow. */
void und_watch_dump(const struct und_stream *stream, int dump, bool restart);

/* No dump: what a run does before, between and behind its repetitions, with so many files of all ranks. */
void und_watch_apart(const char *operation, const char *path, int64_t files);

/* Other ranks may be so much later in it. */
void und_watch_allow(double seconds);

/* An operation begins, of which calls are counted from 0; `shared` where it may wait for other ranks. */
void und_watch_enter(const char *operation, const char *path, bool shared);

/* It has ended: what follows waits for other ranks. */
void und_watch_leave(void);

/* This rank pauses, as its schedule has it. Leaves what it was in. */
void und_watch_pause(bool pauses);

#endif
