/*
 * The skew of a dump: how much later than the dump its ranks begin, as ranks do of which some have more to compute
 * than others. Times are seconds before any scale.
 */
#ifndef UND_SKEW_H
#define UND_SKEW_H

#include "text/strict.h"

#include <stdint.h>

/* Consecutive ranks that begin at the same time. */
struct und_late {
    int64_t ranks;
    double seconds;
};

/* The lateness of all ranks, in order; count is 0 where all begin with the dump. */
struct und_skew {
    int count;
    struct und_late *runs;
};

/* The key of an object that has it, if it does. */
bool und_skew_read(struct und_strict *at, const json_t *object, const char *key, int64_t ranks, struct und_skew *skew);
void und_skew_free(struct und_skew *skew);

/* Seconds of a rank, and of the last one. */
double und_skew_of(const struct und_skew *skew, int64_t rank);
double und_skew_last(const struct und_skew *skew);

#endif
