/* The bisection finds exactly the order statistic that sorting finds. */
#include "job/timing.h"
#include "unit_test.h"

enum { MOST = 200 };

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double search(const double *values, int count, double least, double most, double share)
{
    struct und_search search;
    und_search_begin(&search, least, most, share, count);
    for (int rounds = 0; !und_search_done(&search); ++rounds) {
        int64_t below = 0;
        assert_true(rounds < 64);
        for (int i = 0; i < count; ++i)
            below += und_search_below(&search, values[i]);
        und_search_narrow(&search, below);
    }
    return und_search_value(&search);
}

/* Smallest value with at least that share of the values at or below it, in hundredths. */
static double by_sorting(const double *sorted, int count, int hundredths)
{
    return sorted[(hundredths * count + 99) / 100 - 1];
}

TEST(test_against_sorting)
{
    static const int shares[] = {25, 50, 75, 95};
    uint64_t x = 88172645463325252U;
    for (int count = 1; count <= MOST; ++count) {
        double values[MOST], sorted[MOST];
        for (int i = 0; i < count; ++i) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            /* Some equal, some zero, some tiny. */
            values[i] = i % 5 == 0 ? 0.0 : i % 7 == 0 ? 0.125 : (double)(x >> 40) * (i % 3 ? 1e-7 : 1e-300);
            sorted[i] = values[i];
        }
        qsort(sorted, (size_t)count, sizeof sorted[0], ascending);
        for (size_t s = 0; s < COUNT(shares); ++s) {
            const double percentile = search(values, count, sorted[0], sorted[count - 1], shares[s] / 100.0);
            if (percentile != by_sorting(sorted, count, shares[s]))
                fail_msg("%d values, %d%%: %g instead of %g", count, shares[s], percentile,
                         by_sorting(sorted, count, shares[s]));
        }
    }
}

RUN(T(test_against_sorting))
