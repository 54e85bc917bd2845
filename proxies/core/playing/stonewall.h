/*
 * The moves of a rank in a dump may end early: at a deadline, with the call in hand, or behind as many transfers as were
 * written of what is read. Transfers are numbered as the rank makes them in the dump, so that their number says which
 * these are.
 */
#ifndef UND_STONEWALL_H
#define UND_STONEWALL_H

#include "job/timing.h"

struct und_stonewall {
    double deadline_s;        /* from the first transfer on; 0: none */
    double end_s;             /* when that is, on und_clock; INFINITY: there was no transfer yet */
    int64_t most;             /* transfers that the rank may make */
    int64_t again;            /* of those that come next so many were made before, and are left out */
    int64_t transfers, bytes; /* made */
    bool stops;               /* transfers were left at the deadline */
    bool is_worn;             /* the ranks go on behind it */
    struct und_stop at_deadline;
};

void und_stonewall_begin(struct und_stonewall *wall, double deadline_s, int64_t most);

/* Before a transfer: is the deadline over? It begins with the first. */
bool und_stonewall_is_over(struct und_stonewall *wall);

/* Behind the deadline, which ends no more moves: the last transfers, so many, come again, and go on until the rank has
 * made `most` in all. */
void und_stonewall_wear(struct und_stonewall *wall, int64_t again, int64_t most);

/* What the rank had moved at the deadline, or all where it did not reach that. */
struct und_stop und_stonewall_stop(const struct und_stonewall *wall);

#endif
