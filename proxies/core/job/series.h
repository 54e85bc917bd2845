/*
 * A histogram of latencies over time: how many operations ended in each second, their bytes and latencies, which are
 * known to 1/16. In fixed memory: where the seconds are more than the intervals, intervals become twice as long.
 */
#ifndef UND_SERIES_H
#define UND_SERIES_H

#include "job/latency.h"

enum { UND_SERIES_BITS = 4, UND_SERIES_INTERVALS = 512 };
enum { UND_SERIES_BUCKETS = (UND_LATENCY_LONGEST - UND_SERIES_BITS + 1) << UND_SERIES_BITS };

/* Operations that ended in an interval. */
struct und_interval {
    double begin_s, seconds; /* since the start */
    uint64_t count, bytes, most_ns;
    uint64_t counts[UND_SERIES_BUCKETS];
};

/* Of a histogram that is empty; NULL when memory is out. */
struct und_series *und_series_new(void);
void und_series_free(struct und_series *series);

/* Seconds count from here on, on und_clock. */
void und_series_start(struct und_series *series, double zero);

/* No more operations come. */
void und_series_end(struct und_latency *latency);

/* Nanoseconds that the share 0 … 1 of the operations took at most, to the bucket's width. */
uint64_t und_interval_quantile(const struct und_interval *interval, double share);

/* Is given one interval with operations after the other. */
typedef void und_take_interval(void *taker, const struct und_interval *interval);

/* Collective: adds the series of all ranks, and gives the sums to `take` on rank 0; the last interval ends with the
 * last operation. */
void und_series_merge(struct und_latency *latency, MPI_Comm comm, und_take_interval *take, void *taker);

/* Without MPI: the intervals become twice as long; what is in one of them. */
void und_series_double(struct und_series *series);
void und_series_read(const struct und_series *series, int64_t interval, struct und_interval *sums);

int64_t und_series_memory(void);

#endif
