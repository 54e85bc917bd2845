/*
 * The seconds that single operations take, as a histogram with logarithmic buckets of HdrHistogram's layout: 2
 * significant digits (a value is known to 1/128), 1 ns to over an hour, 36 KiB. Histograms of ranks add.
 */
#ifndef UND_LATENCY_H
#define UND_LATENCY_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Of the bits of nanoseconds, buckets tell the first and so many behind it apart, up to 2^42 ns. */
enum { UND_LATENCY_BITS = 7, UND_LATENCY_HALF = 1 << UND_LATENCY_BITS, UND_LATENCY_LONGEST = 42 };
enum { UND_LATENCY_BUCKETS = (UND_LATENCY_LONGEST - UND_LATENCY_BITS + 1) * UND_LATENCY_HALF };

struct und_series;

struct und_latency {
    uint64_t counts[UND_LATENCY_BUCKETS];
    uint64_t most_ns, before_ns; /* the longest; with a series of the interval in hand, and of those before it */
    int64_t bytes;               /* that the operations moved */
    uint64_t due;                /* ticks from which on the series is told of operations that end */
    struct und_series *series;   /* the same over time; NULL: not noted */
};

/* Kinds of operations: data calls, and small files from their open to their close. */
enum und_latency_kind { UND_LATENCY_WRITE, UND_LATENCY_READ, UND_LATENCY_FILE, UND_LATENCIES };

/* Nanoseconds of 65536 ticks of this machine. Ticks are the processor's where the kernel takes
 * its own time from them, else nanoseconds. */
struct und_ticks {
    uint64_t ns;
    bool of_processor;
};
extern struct und_ticks und_ticks;

/* Once, early: compares ticks with the clock for a millisecond. */
void und_ticks_begin(void);

static inline uint64_t und_ticks_now(void)
{
#if defined __x86_64__
    if (und_ticks.of_processor)
        return __builtin_ia32_rdtsc();
#elif defined __aarch64__
    uint64_t now;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
    if (und_ticks.of_processor)
        return now;
#endif
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

static inline int und_bucket(uint64_t ns, int bits)
{
    const int shift = 63 - bits - __builtin_clzll(ns | ((2U << bits) - 1));
    return (shift << bits) + (int)(ns >> shift);
}

/* The largest nanoseconds in it. */
static inline uint64_t und_bucket_upper(int bucket, int bits)
{
    const int shift = bucket < (2 << bits) ? 0 : (bucket >> bits) - 1;
    return ((uint64_t)(bucket - (shift << bits) + 1) << shift) - 1;
}

/* The bucket of so many nanoseconds; those above the last bucket are in it. */
static inline int und_latency_bucket(uint64_t ns)
{
    const int bucket = und_bucket(ns, UND_LATENCY_BITS);
    return bucket < UND_LATENCY_BUCKETS ? bucket : UND_LATENCY_BUCKETS - 1;
}

static inline void und_latency_note(struct und_latency *latency, uint64_t ticks)
{
    const uint64_t ns = (ticks * und_ticks.ns) >> 16;
    ++latency->counts[und_latency_bucket(ns)];
    if (ns > latency->most_ns)
        latency->most_ns = ns;
}

/* See series.h: an operation ends; without a series, it sees to it that it is not called again. */
void und_series_next(struct und_latency *latency, uint64_t end);

static inline void und_latency_add(struct und_latency *latency, uint64_t begin, uint64_t end, int64_t bytes)
{
    if (end >= latency->due)
        und_series_next(latency, end);
    latency->bytes += bytes;
    und_latency_note(latency, end > begin ? end - begin : 0);
}

/* An operation begins, and ends: noted unless `latency` is NULL. */
static inline uint64_t und_latency_begin(const struct und_latency *latency)
{
    return latency ? und_ticks_now() : 0;
}

static inline void und_latency_end(struct und_latency *latency, uint64_t begin, int64_t bytes)
{
    if (latency)
        und_latency_add(latency, begin, und_ticks_now(), bytes);
}

/* The longest operation. */
static inline uint64_t und_latency_most_ns(const struct und_latency *latency)
{
    return latency->most_ns > latency->before_ns ? latency->most_ns : latency->before_ns;
}

/* The largest nanoseconds in a bucket. */
static inline uint64_t und_latency_upper(int bucket)
{
    return und_bucket_upper(bucket, UND_LATENCY_BITS);
}

/* Nanoseconds that the share 0 … 1 of the operations took at most, to the bucket's width; 0 without operations. */
uint64_t und_latency_quantile(const struct und_latency *latency, double share);

/* The operations of the share 0 … 1, at least one. */
uint64_t und_latency_need(uint64_t operations, double share);

/* Operations in the histogram. */
uint64_t und_latency_count(const struct und_latency *latency);

/* Collective: the sum over all ranks, on rank 0. */
void und_latency_merge(struct und_latency *latency, MPI_Comm comm);

#endif
