/*
 * The time between the transfers of a dump: with a steady pace a rank waits, so that they begin one after the
 * other over the duration; where the dump has time to compute, it computes an equal part of it after each. A rate
 * limits the bytes per second of a rank beside that.
 */
#ifndef UND_PACE_H
#define UND_PACE_H

#include "plan/run.h"

struct und_pace {
    bool is_kept, always;       /* in the dump in hand; a rate or a deadline */
    bool is_paced;              /* in the dump in hand, by what follows */
    double next_s, step_s;      /* when the next transfer is due, from one to the next */
    double compute_s, behind_s; /* between two transfers, and what is left of that; 0: a steady pace */
    double rate;                /* bytes per second at most; 0: no limit */
    double free_s;              /* when the rate allowed the last transfer; 0: there was none */
    int64_t bytes;              /* of it */
    double waited_s;            /* on purpose, since it was set to 0 */
};

/* From here on so many transfers of this rank come, all passes counted: between which it computes for so long in all,
 * which are spread over so long, or which have no pace. */
void und_pace_compute(struct und_pace *pace, double seconds, int64_t transfers);
void und_pace_spread(struct und_pace *pace, double seconds, int64_t transfers);
void und_pace_stop(struct und_pace *pace, double rate, bool has_deadline);

/* The seconds that a rank of several transfers computes or waits in the dump. */
double und_pace_s(const struct und_run *run, const struct und_stream *stream, int dump);

/* Does the rate have the next transfer wait? */
bool und_pace_is_ahead(const struct und_pace *pace);

/* Before a transfer: waits until it is due, or computes, but for no longer than to a time of und_clock. */
void und_pace_keep(struct und_pace *pace, const struct und_run *run, double end_s);

#endif
