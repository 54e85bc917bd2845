#include "job/timing.h"

#include "job/die.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* Records that one round of reductions treats together: bounds the memory. */
enum { BLOCK = 256 };

static const double shares[UND_QUANTILES] = {0.25, 0.5, 0.75, 0.95};

double und_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double und_clock_start(MPI_Comm comm)
{
    static const char failed[] = "cannot start the repetition together";
    MPI_Comm node;
    UND_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), failed);
    UND_MPI(MPI_Barrier(comm), failed);
    double start = und_clock();
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, &start, 1, MPI_DOUBLE, MPI_MIN, node), failed);
    MPI_Comm_free(&node);
    return start;
}

static uint64_t bits(double value)
{
    uint64_t pattern;
    memcpy(&pattern, &value, sizeof pattern);
    return pattern;
}

void und_search_begin(struct und_search *search, double least, double most, double share, int64_t values)
{
    /* 0.95 * 20 is 19 and not a little more: what rounding adds must not ask for one value more. */
    const double wanted = share * (double)values;
    search->need = (int64_t)ceil(wanted - 1e-9 * wanted);
    search->low = bits(least);
    search->high = bits(most);
}

bool und_search_done(const struct und_search *search)
{
    return search->low == search->high;
}

static uint64_t middle(const struct und_search *search)
{
    return search->low + (search->high - search->low) / 2;
}

bool und_search_below(const struct und_search *search, double value)
{
    return bits(value) <= middle(search);
}

void und_search_narrow(struct und_search *search, int64_t below)
{
    if (und_search_done(search))
        return;
    if (below >= search->need)
        search->high = middle(search);
    else
        search->low = middle(search) + 1;
}

double und_search_value(const struct und_search *search)
{
    double value;
    memcpy(&value, &search->low, sizeof value);
    return value;
}

/* Never negative, also where a clock is adjusted, and +0.0 rather than -0.0. */
static double seconds_of(const struct und_record *record)
{
    return record->spent_s > 0 ? record->spent_s : 0;
}

static void quantiles(const double *seconds, int count, int ranks, MPI_Comm comm, struct und_summary *summaries)
{
    struct und_search searches[BLOCK][UND_QUANTILES];
    int64_t below[BLOCK][UND_QUANTILES];
    for (int i = 0; i < count; ++i)
        for (int q = 0; q < UND_QUANTILES; ++q)
            und_search_begin(&searches[i][q], summaries[i].min_s, summaries[i].max_s, shares[q], ranks);
    for (bool done = false; !done;) {
        for (int i = 0; i < count; ++i)
            for (int q = 0; q < UND_QUANTILES; ++q)
                below[i][q] = und_search_below(&searches[i][q], seconds[i]);
        UND_MPI(MPI_Allreduce(MPI_IN_PLACE, below, count * UND_QUANTILES, MPI_INT64_T, MPI_SUM, comm),
                "cannot count the ranks");
        done = true;
        for (int i = 0; i < count; ++i)
            for (int q = 0; q < UND_QUANTILES; ++q) {
                und_search_narrow(&searches[i][q], below[i][q]);
                done = done && und_search_done(&searches[i][q]);
            }
    }
    for (int i = 0; i < count; ++i)
        for (int q = 0; q < UND_QUANTILES; ++q)
            summaries[i].quantile_s[q] = und_search_value(&searches[i][q]);
}

/* Bytes that the rank has moved by the time, spread evenly over its own. */
static int64_t bytes_by(const struct und_record *record, double time_s)
{
    const double whole_s = record->end_s - record->start_s, part_s = time_s - record->start_s;
    if (part_s >= whole_s)
        return record->bytes;
    return part_s <= 0 ? 0 : (int64_t)((double)record->bytes * (part_s / whole_s));
}

static void find_first_ends(const struct und_record *records, int count, MPI_Comm comm, struct und_summary *summaries)
{
    static const char failed[] = "cannot find the first end";
    double first[BLOCK];
    int64_t bytes[BLOCK];
    for (int i = 0; i < count; ++i)
        first[i] = records[i].bytes > 0 ? records[i].end_s : HUGE_VAL;
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, first, count, MPI_DOUBLE, MPI_MIN, comm), failed);
    for (int i = 0; i < count; ++i)
        bytes[i] = bytes_by(&records[i], first[i]);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, bytes, count, MPI_INT64_T, MPI_SUM, comm), failed);
    for (int i = 0; i < count; ++i) {
        summaries[i].first_end_s = first[i];
        summaries[i].first_end_bytes = bytes[i];
    }
}

static void summarize_block(const struct und_record *records, int count, MPI_Comm comm, struct und_summary *summaries)
{
    double least[BLOCK][2], most[BLOCK][2], sum[BLOCK], seconds[BLOCK];
    int64_t totals[BLOCK][2];
    int ranks;
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < count; ++i) {
        seconds[i] = sum[i] = seconds_of(&records[i]);
        least[i][0] = most[i][0] = seconds[i];
        least[i][1] = records[i].start_s;
        most[i][1] = records[i].end_s;
        totals[i][0] = records[i].bytes;
        totals[i][1] = records[i].operations;
    }
    static const char failed[] = "cannot reduce the times";
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, least, 2 * count, MPI_DOUBLE, MPI_MIN, comm), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, most, 2 * count, MPI_DOUBLE, MPI_MAX, comm), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, sum, count, MPI_DOUBLE, MPI_SUM, comm), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, totals, 2 * count, MPI_INT64_T, MPI_SUM, comm), failed);
    for (int i = 0; i < count; ++i) {
        summaries[i].min_s = least[i][0];
        summaries[i].max_s = most[i][0];
        summaries[i].first_start_s = least[i][1];
        summaries[i].last_end_s = most[i][1];
        summaries[i].mean_s = sum[i] / ranks;
        summaries[i].bytes = totals[i][0];
        summaries[i].operations = totals[i][1];
    }
    find_first_ends(records, count, comm, summaries);
    quantiles(seconds, count, ranks, comm, summaries);
}

void und_summarize(const struct und_record *records, int count, MPI_Comm comm, struct und_summary *summaries)
{
    for (int done = 0; done < count; done += BLOCK) {
        const int some = count - done < BLOCK ? count - done : BLOCK;
        summarize_block(records + done, some, comm, summaries + done);
    }
}

void und_summarize_stops(const struct und_stop *stops, int count, MPI_Comm comm, struct und_stops *summaries)
{
    static const char failed[] = "cannot reduce what ranks moved up to the deadline";
    for (int i = 0; i < count; ++i) {
        const struct und_stop *stop = &stops[i];
        int64_t sums[] = {stop->ranks, stop->bytes};
        int64_t most[] = {stop->transfers, -stop->transfers, stop->bytes, -stop->bytes};
        UND_MPI(MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT64_T, MPI_SUM, comm), failed);
        UND_MPI(MPI_Allreduce(MPI_IN_PLACE, most, 4, MPI_INT64_T, MPI_MAX, comm), failed);
        summaries[i] = (struct und_stops){.ranks = sums[0],
                                          .bytes = sums[1],
                                          .most_transfers = most[0],
                                          .least_transfers = -most[1],
                                          .most_bytes = most[2],
                                          .least_bytes = -most[3]};
    }
}
