/*
 * Per-rank seconds and what is said about all ranks: exact order statistics without collecting the
 * ranks' values anywhere. The k-th smallest is found by bisection: non-negative doubles are ordered
 * as their bit patterns are, and one vectorised reduction counts, for all phases at once, how many
 * ranks are at or below the middle. Memory grows neither with the ranks nor with ranks times dumps.
 */
#ifndef UND_TIMING_H
#define UND_TIMING_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* Seconds of a clock that all processes of a node share and that is never set back. MPI_Wtime may
 * begin anew in every process. */
double und_clock(void);

/* The moment of a barrier of all ranks on that clock: the same on all ranks of a node, however late
 * one of them is to leave the barrier. Collective over comm. */
double und_clock_start(MPI_Comm comm);

enum und_phase { UND_OPENING, UND_METADATA, UND_WRITING, UND_READING, UND_SYNCING, UND_CLOSING, UND_PHASES };

/* One phase of one event on one rank. Seconds since the start of the repetition. */
struct und_record {
    bool took_place; /* the same on all ranks */
    double start_s;
    double end_s;
    double spent_s; /* at most what is between start and end: phases of many files alternate */
    int64_t bytes;
    int64_t operations;
};

/* Where a deadline ended the moves of an event on one rank. */
struct und_stop {
    int64_t ranks;            /* 1: transfers were left */
    int64_t transfers, bytes; /* made by then */
};

/* The same over all ranks. */
struct und_stops {
    int64_t ranks; /* that left transfers */
    int64_t bytes;
    int64_t least_transfers, most_transfers; /* of a rank */
    int64_t least_bytes, most_bytes;
};

enum und_statistic { UND_Q25, UND_MEDIAN, UND_Q75, UND_Q95, UND_QUANTILES };

/* The same over all ranks. */
struct und_summary {
    double first_start_s;
    double last_end_s;
    double first_end_s;      /* of the ranks that moved bytes, */
    int64_t first_end_bytes; /* and those of all ranks by then, if each moves its own evenly */
    double min_s, max_s, mean_s;
    double quantile_s[UND_QUANTILES]; /* smallest value with at least that share of ranks at or below */
    int64_t bytes;
    int64_t operations;
};

/* Collective over comm; `summaries` is filled on every rank. */
void und_summarize(const struct und_record *records, int count, MPI_Comm comm, struct und_summary *summaries);

/* Likewise. */
void und_summarize_stops(const struct und_stop *stops, int count, MPI_Comm comm, struct und_stops *summaries);

/* A bisection for the smallest value of which at least `need` values are at or below. */
struct und_search {
    uint64_t low;
    uint64_t high;
    int64_t need;
};

/* All values lie in least … most, and are not negative. */
void und_search_begin(struct und_search *search, double least, double most, double share, int64_t values);
bool und_search_done(const struct und_search *search);
/* Is the value at or below the middle? */
bool und_search_below(const struct und_search *search, double value);
void und_search_narrow(struct und_search *search, int64_t below);
double und_search_value(const struct und_search *search);

#endif
