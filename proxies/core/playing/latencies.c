#include "playing/latencies.h"

#include "job/die.h"

#include <stdlib.h>

struct und_latencies {
    int streams, count;
    struct und_latency *all;
    struct und_latency *(*of)[UND_LATENCIES]; /* of each stream, then of each that is read back */
};

/* Has a stream operations of the kind? */
static bool has(const struct und_workload *workload, const struct und_plan *plan, int stream, bool restart,
                enum und_latency_kind kind)
{
    const struct und_stream *what = &workload->streams[stream];
    if (restart ? !plan->streams[stream].restarts : plan->only_restarts)
        return false;
    if (kind == UND_LATENCY_FILE)
        return what->own_set.owner == UND_EACH_ROW;
    if (what->own_set.tree)
        return true;
    const bool reads = restart || what->operation == UND_READS;
    return kind == UND_LATENCY_WRITE ? !reads : reads || what->lookups.every_bytes > 0 || plan->mix_reads > 0;
}

/* Points to the histograms, one behind the other, if `latencies` is not NULL; returns their number. */
static int point_to(const struct und_workload *workload, const struct und_plan *plan, struct und_latencies *latencies)
{
    int count = 0;
    for (int s = 0; s < 2 * workload->stream_count; ++s)
        for (int kind = 0; kind < UND_LATENCIES; ++kind) {
            const bool restart = s >= workload->stream_count;
            if (!has(workload, plan, s % workload->stream_count, restart, (enum und_latency_kind)kind))
                continue;
            if (latencies)
                latencies->of[s][kind] = latencies->all + count;
            ++count;
        }
    return count;
}

static void add_series(struct und_latencies *latencies)
{
    for (int i = 0; i < latencies->count; ++i) {
        latencies->all[i].series = und_series_new();
        UND_CHECK(latencies->all[i].series, "no memory for the time series of %d streams", latencies->streams);
    }
}

struct und_latencies *und_latencies_new(const struct und_run *run)
{
    static const char what[] = "the latencies";
    if (!run->plan->latency)
        return NULL;
    struct und_latencies *latencies = und_allocate(1, sizeof *latencies, what);
    latencies->streams = run->workload->stream_count;
    latencies->count = point_to(run->workload, run->plan, NULL);
    latencies->all = und_allocate(latencies->count, sizeof *latencies->all, what);
    latencies->of = und_allocate(2 * latencies->streams, sizeof *latencies->of, what);
    point_to(run->workload, run->plan, latencies);
    if (run->plan->time_series)
        add_series(latencies);
    return latencies;
}

void und_latencies_free(struct und_latencies *latencies)
{
    if (!latencies)
        return;
    for (int i = 0; i < latencies->count; ++i)
        und_series_free(latencies->all[i].series);
    free(latencies->of);
    free(latencies->all);
    free(latencies);
}

struct und_latency *const *und_latencies_of(const struct und_latencies *latencies, int stream, bool restart)
{
    return latencies ? latencies->of[restart ? latencies->streams + stream : stream] : NULL;
}

void und_latencies_start(const struct und_latencies *latencies, double zero)
{
    for (int i = 0; latencies && i < latencies->count; ++i)
        if (latencies->all[i].series)
            und_series_start(latencies->all[i].series, zero);
}

/* Whose intervals are taken. */
struct place {
    und_take_series *take;
    void *taker;
    int stream;
    bool restart;
    enum und_latency_kind kind;
};

static void take_interval(void *taker, const struct und_interval *interval)
{
    const struct place *place = taker;
    place->take(place->taker, place->stream, place->restart, place->kind, interval);
}

void und_latencies_merge(struct und_latencies *latencies, MPI_Comm comm, und_take_series *take, void *taker)
{
    for (int s = 0; latencies && s < 2 * latencies->streams; ++s)
        for (int kind = 0; kind < UND_LATENCIES; ++kind) {
            struct und_latency *latency = latencies->of[s][kind];
            struct place place = {take, taker, s % latencies->streams, s >= latencies->streams,
                                  (enum und_latency_kind)kind};
            if (!latency)
                continue;
            und_series_end(latency);
            und_latency_merge(latency, comm);
            if (latency->series)
                und_series_merge(latency, comm, take_interval, &place);
        }
}

int64_t und_latencies_memory(const struct und_workload *workload, const struct und_plan *plan)
{
    const int64_t each = (int64_t)sizeof(struct und_latency) + (plan->time_series ? und_series_memory() : 0);
    return plan->latency ? point_to(workload, plan, NULL) * each : 0;
}
