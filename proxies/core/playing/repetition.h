/* The schedule of a run, played once: every dump in its time, and what it took. */
#ifndef UND_REPETITION_H
#define UND_REPETITION_H

#include "job/stragglers.h"
#include "plan/run.h"
#include "playing/latencies.h"

/* The measurement of one event, over all ranks. */
struct und_outcome {
    struct und_summary phases[UND_PHASES];
    bool took_place[UND_PHASES];
    int64_t bytes;
    int64_t file_bytes; /* -1: not known */
    int64_t files;
    struct und_latency *const *latencies; /* UND_LATENCIES of its stream, in all dumps; NULL: not noted */
    const struct und_stops *stops;        /* with a deadline; else NULL */
};

/* With restart_from: are the files there that the restarts read? False with the error message on every rank.
 * Collective. */
bool und_run_finds_files(const struct und_run *run, struct und_error *error);

/* Is given one event after the other, in the order of their positions. */
typedef void und_take_outcome(void *taker, const struct und_event *event, const struct und_outcome *outcome);

/* Who takes what was measured, on rank 0 and after the last event. */
struct und_taker {
    und_take_outcome *take_outcome;
    und_take_series *take_series;
    void *taker;
};

/* Plays the schedule once. Adds to *verification with --verify.
 * Says on rank 0 which rank and host were the slowest.
 * Leaves no files, but with `keep`: false with the error message on every rank where some could not be removed.
 * Collective. */
bool und_run_repetition(const struct und_run *run, bool keep, const struct und_taker *taker,
                        struct und_verification *verification, struct und_stragglers *stragglers,
                        struct und_error *error);

#endif
