#include "job/latency.h"

#include "job/die.h"

#include <string.h>

struct und_ticks und_ticks = {.ns = 1 << 16};

#if defined __x86_64__
#include <stdio.h>

/* The kernel has found the processor's counter steady, and alike on all cores. */
static bool is_steady(void)
{
    char name[8] = "";
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "re");
    const bool steady = file && fgets(name, sizeof name, file) && strcmp(name, "tsc\n") == 0;
    if (file)
        fclose(file);
    return steady;
}
#elif defined __aarch64__
static bool is_steady(void)
{
    return true;
}
#else
static bool is_steady(void)
{
    return false;
}
#endif

static uint64_t clock_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

void und_ticks_begin(void)
{
    enum { LONG_NS = 1000000 };
    und_ticks.of_processor = is_steady();
    if (!und_ticks.of_processor)
        return;
    const uint64_t from_ns = clock_ns(), from = und_ticks_now();
    uint64_t ns;
    do
        ns = clock_ns() - from_ns;
    while (ns < LONG_NS);
    const uint64_t ticks = und_ticks_now() - from;
    und_ticks.ns = (uint64_t)(65536.0 * (double)ns / (double)ticks + 0.5);
}

uint64_t und_latency_need(uint64_t operations, double share)
{
    const double exact = share * (double)operations;
    const uint64_t need = (uint64_t)exact;
    return need + ((double)need < exact || need == 0);
}

uint64_t und_latency_count(const struct und_latency *latency)
{
    uint64_t total = 0;
    for (int b = 0; b < UND_LATENCY_BUCKETS; ++b)
        total += latency->counts[b];
    return total;
}

uint64_t und_latency_quantile(const struct und_latency *latency, double share)
{
    const uint64_t total = und_latency_count(latency);
    const uint64_t need = und_latency_need(total, share), most_ns = und_latency_most_ns(latency);
    uint64_t seen = 0;
    for (int b = 0; b < UND_LATENCY_BUCKETS && total > 0; ++b)
        if ((seen += latency->counts[b]) >= need) {
            const uint64_t upper = und_latency_upper(b);
            return upper < most_ns ? upper : most_ns;
        }
    return most_ns;
}

void und_latency_merge(struct und_latency *latency, MPI_Comm comm)
{
    int rank;
    MPI_Comm_rank(comm, &rank);
    UND_MPI(MPI_Reduce(rank == 0 ? MPI_IN_PLACE : latency->counts, latency->counts, UND_LATENCY_BUCKETS, MPI_UINT64_T,
                       MPI_SUM, 0, comm),
            "cannot add the latencies of ranks");
    UND_MPI(
        MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &latency->most_ns, &latency->most_ns, 1, MPI_UINT64_T, MPI_MAX, 0, comm),
        "cannot compare the latencies of ranks");
    UND_MPI(MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &latency->bytes, &latency->bytes, 1, MPI_INT64_T, MPI_SUM, 0, comm),
            "cannot add the bytes of ranks");
}
