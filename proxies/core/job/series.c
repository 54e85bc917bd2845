#include "job/series.h"

#include "job/die.h"
#include "job/timing.h"

#include <stdlib.h>
#include <string.h>

/* Of this rank. Counts stay at their maximum rather than begin anew. */
struct part {
    uint64_t bytes, most_ns;
    uint32_t counts[UND_SERIES_BUCKETS];
};

struct und_series {
    double zero, seconds; /* the start, and an interval's */
    int64_t at;           /* interval in hand; -1: none */
    double now_s;         /* when it came in hand, and the ticks then */
    uint64_t ticks;
    uint64_t due, last;        /* ticks at which the next interval begins, and at which the last operation ended */
    struct part *parts;        /* [UND_SERIES_INTERVALS] */
    struct und_latency before; /* the histogram as it was when the interval began */
};

int64_t und_series_memory(void)
{
    return (int64_t)(sizeof(struct und_series) + UND_SERIES_INTERVALS * sizeof(struct part));
}

struct und_series *und_series_new(void)
{
    struct und_series *series = calloc(1, sizeof *series);
    if (series)
        series->parts = calloc(UND_SERIES_INTERVALS, sizeof *series->parts);
    if (!series || !series->parts) {
        und_series_free(series);
        return NULL;
    }
    series->seconds = 1;
    series->at = -1;
    return series;
}

void und_series_free(struct und_series *series)
{
    if (series)
        free(series->parts);
    free(series);
}

void und_series_start(struct und_series *series, double zero)
{
    series->zero = zero;
    series->due = 0;
}

static uint32_t sum_of(uint32_t a, uint64_t b)
{
    return b < UINT32_MAX - a ? a + (uint32_t)b : UINT32_MAX;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void add(struct part *to, const struct part *from)
{
    to->bytes += from->bytes;
    to->most_ns = larger(to->most_ns, from->most_ns);
    for (int b = 0; b < UND_SERIES_BUCKETS; ++b)
        to->counts[b] = sum_of(to->counts[b], from->counts[b]);
}

void und_series_double(struct und_series *series)
{
    for (int64_t i = 0; i <= series->at; ++i) {
        const struct part from = series->parts[i];
        memset(&series->parts[i], 0, sizeof from);
        add(&series->parts[i / 2], &from);
    }
    series->seconds *= 2;
    series->at = series->at < 0 ? -1 : series->at / 2;
}

/* What came to the histogram since the interval began. */
static void take_part(struct und_series *series, struct und_latency *latency)
{
    struct part *part = &series->parts[series->at < 0 ? 0 : series->at];
    for (int b = 0; b < UND_LATENCY_BUCKETS; ++b)
        if (latency->counts[b] != series->before.counts[b]) {
            uint32_t *count = &part->counts[und_bucket(und_latency_upper(b), UND_SERIES_BITS)];
            *count = sum_of(*count, latency->counts[b] - series->before.counts[b]);
            series->before.counts[b] = latency->counts[b];
        }
    part->bytes += (uint64_t)(latency->bytes - series->before.bytes);
    part->most_ns = larger(part->most_ns, latency->most_ns);
    series->before.bytes = latency->bytes;
    latency->before_ns = und_latency_most_ns(latency);
    latency->most_ns = 0; /* until the end, of the interval */
}

void und_series_next(struct und_latency *latency, uint64_t end)
{
    struct und_series *series = latency->series;
    if (!series) {
        latency->due = UINT64_MAX;
        return;
    }
    series->last = end;
    if (end < series->due)
        return;
    take_part(series, latency);
    const uint64_t ticks = und_ticks_now();
    const double now_s = und_clock() - series->zero;
    int64_t at = (int64_t)(now_s / series->seconds);
    while (at >= UND_SERIES_INTERVALS) {
        und_series_double(series);
        at = (int64_t)(now_s / series->seconds);
    }
    series->at = at > series->at ? at : series->at;
    series->now_s = now_s;
    series->ticks = ticks;
    const double left_s = (double)(series->at + 1) * series->seconds - now_s;
    series->due = ticks + (uint64_t)(left_s * 1e9 * 65536 / (double)und_ticks.ns);
}

void und_series_end(struct und_latency *latency)
{
    if (!latency->series)
        return;
    take_part(latency->series, latency);
    latency->most_ns = und_latency_most_ns(latency);
}

uint64_t und_interval_quantile(const struct und_interval *interval, double share)
{
    uint64_t seen = 0;
    const uint64_t need = und_latency_need(interval->count, share);
    for (int b = 0; b < UND_SERIES_BUCKETS; ++b)
        if ((seen += interval->counts[b]) >= need) {
            const uint64_t upper = und_bucket_upper(b, UND_SERIES_BITS);
            return upper < interval->most_ns ? upper : interval->most_ns;
        }
    return interval->most_ns;
}

void und_series_read(const struct und_series *series, int64_t interval, struct und_interval *sums)
{
    const struct part *part = &series->parts[interval];
    *sums = (struct und_interval){.begin_s = (double)interval * series->seconds,
                                  .seconds = series->seconds,
                                  .bytes = part->bytes,
                                  .most_ns = part->most_ns};
    for (int b = 0; b < UND_SERIES_BUCKETS; ++b)
        sums->counts[b] = part->counts[b];
}

/* The seconds of the last interval, which ends with the last operation. */
static double until(const struct und_interval *interval, double end_s)
{
    const double seconds = end_s - interval->begin_s;
    return seconds > 0 && seconds < interval->seconds ? seconds : interval->seconds;
}

/* When the last operation ended. */
static double end_of(const struct und_latency *latency)
{
    const struct und_series *series = latency->series;
    const int64_t since = (int64_t)(series->last - series->ticks); /* below 0: that is where the interval began */
    return series->now_s + (double)since * (double)und_ticks.ns / 65536e9;
}

void und_series_merge(struct und_latency *latency, MPI_Comm comm, und_take_interval *take, void *taker)
{
    static const char failed[] = "cannot add the time series of ranks";
    struct und_interval sums;
    struct und_series *series = latency->series;
    double longest_s, end_s = end_of(latency);
    int64_t last;
    int rank;
    MPI_Comm_rank(comm, &rank);
    UND_MPI(MPI_Allreduce(&series->seconds, &longest_s, 1, MPI_DOUBLE, MPI_MAX, comm), failed);
    while (series->seconds < longest_s)
        und_series_double(series);
    UND_MPI(MPI_Allreduce(&series->at, &last, 1, MPI_INT64_T, MPI_MAX, comm), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, &end_s, 1, MPI_DOUBLE, MPI_MAX, comm), failed);
    for (int64_t i = 0; i <= last; ++i) {
        und_series_read(series, i, &sums);
        UND_MPI(MPI_Reduce(rank == 0 ? MPI_IN_PLACE : sums.counts, sums.counts, UND_SERIES_BUCKETS, MPI_UINT64_T,
                           MPI_SUM, 0, comm),
                failed);
        UND_MPI(MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &sums.bytes, &sums.bytes, 1, MPI_UINT64_T, MPI_SUM, 0, comm),
                failed);
        UND_MPI(MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &sums.most_ns, &sums.most_ns, 1, MPI_UINT64_T, MPI_MAX, 0, comm),
                failed);
        for (int b = 0; b < UND_SERIES_BUCKETS; ++b)
            sums.count += sums.counts[b];
        if (i == last)
            sums.seconds = until(&sums, end_s);
        if (rank == 0 && sums.count > 0)
            take(taker, &sums);
    }
}
