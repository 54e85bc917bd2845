/* The sums of the plans of all streams: bytes, files, memory and time of a repetition. */
#ifndef UND_TOTALS_H
#define UND_TOTALS_H

#include "plan/plan.h"

struct und_totals {
    int64_t bytes; /* that reach storage in one repetition */
    int64_t files;
    int64_t largest_file_bytes; /* at least one file takes so many */
    int64_t largest_transfer;   /* bytes */
    int64_t memory_per_rank;    /* bytes that the player and the methods allocate */
    double scheduled_s;         /* when the last dump is due */
};

struct und_totals und_totals(const struct und_workload *workload, const struct und_plan *plan);

#endif
