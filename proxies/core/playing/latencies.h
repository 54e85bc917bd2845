/*
 * The histograms of a repetition: for each stream, and each that is read back, one of the latencies of each kind of
 * its operations. Memory that no latency falls into is not touched.
 */
#ifndef UND_LATENCIES_H
#define UND_LATENCIES_H

#include "job/latency.h"
#include "job/series.h"
#include "plan/run.h"

struct und_latencies;

/* Empty histograms; NULL where the plan notes no latencies. */
struct und_latencies *und_latencies_new(const struct und_run *run);
void und_latencies_free(struct und_latencies *latencies);

/* Those of a stream, UND_LATENCIES of which NULL stands for kinds without operations; NULL of no latencies. */
struct und_latency *const *und_latencies_of(const struct und_latencies *latencies, int stream, bool restart);

/* Seconds of the time series count from here on, on und_clock. */
void und_latencies_start(const struct und_latencies *latencies, double zero);

/* Is given one interval with operations after the other, of one series after the other. */
typedef void und_take_series(void *taker, int stream, bool restart, enum und_latency_kind kind,
                             const struct und_interval *interval);

/* Collective: the sum over all ranks, on rank 0; and the time series, if there are such. */
void und_latencies_merge(struct und_latencies *latencies, MPI_Comm comm, und_take_series *take, void *taker);

int64_t und_latencies_memory(const struct und_workload *workload, const struct und_plan *plan);

#endif
