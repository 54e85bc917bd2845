/* Histograms of latencies: buckets that hold what they say, quantiles to their width. */
#include "job/latency.h"
#include "job/series.h"
#include "job/timing.h"
#include "unit_test.h"

#include <string.h>

TEST(test_buckets_follow_each_other_and_hold_their_values)
{
    int last = -1;
    for (uint64_t ns = 0; ns < (uint64_t)1 << UND_LATENCY_LONGEST; ns = ns < 1000 ? ns + 1 : ns + ns / 300) {
        const int bucket = und_latency_bucket(ns);
        assert_true(bucket == last || bucket == last + 1);
        assert_true(und_latency_upper(bucket) >= ns);
        assert_true(bucket == 0 || und_latency_upper(bucket - 1) < ns);
        assert_true(und_latency_upper(bucket) - ns <= ns / UND_LATENCY_HALF);
        last = bucket;
    }
    assert_int_equal(last, UND_LATENCY_BUCKETS - 1);
    assert_int_equal(und_latency_bucket(UINT64_MAX), UND_LATENCY_BUCKETS - 1);
}

TEST(test_quantiles_are_those_of_the_operations)
{
    static struct und_latency latency;
    memset(&latency, 0, sizeof latency);
    assert_int_equal(und_latency_quantile(&latency, 0.5), 0);
    for (uint64_t ns = 1; ns <= 100000; ++ns)
        und_latency_note(&latency, ns);
    static const double shares[] = {0, 0.001, 0.5, 0.99, 0.999, 1};
    static const uint64_t right[] = {1, 100, 50000, 99000, 99900, 100000};
    for (size_t i = 0; i < COUNT(shares); ++i) {
        const uint64_t ns = und_latency_quantile(&latency, shares[i]);
        assert_in_range(ns, right[i], right[i] + right[i] / UND_LATENCY_HALF);
    }
    assert_int_equal(latency.most_ns, 100000);
}

TEST(test_ticks_are_nanoseconds)
{
    und_ticks_begin();
    const struct timespec pause = {.tv_nsec = 20000000};
    const uint64_t from = und_ticks_now();
    nanosleep(&pause, NULL);
    static struct und_latency latency;
    und_latency_note(&latency, und_ticks_now() - from);
    assert_true(latency.most_ns >= 19900000);
}

TEST(test_the_series_has_what_the_histogram_has)
{
    static struct und_latency latency;
    static struct und_interval sums;
    uint64_t count = 0, bytes = 0, most_ns = 0, longest = 0;
    memset(&latency, 0, sizeof latency);
    latency.series = und_series_new();
    assert_non_null(latency.series);
    und_ticks_begin();
    const double zero = und_clock() - 1.5 * UND_SERIES_INTERVALS; /* more seconds than intervals */
    und_series_start(latency.series, zero);
    for (int i = 1; i <= 1000; ++i) {
        const uint64_t now = und_ticks_now();
        und_latency_add(&latency, now - (i == 1 ? 100000U : (uint64_t)i), now, 3);
        if (i == 500) /* two hours later */
            und_series_start(latency.series, und_clock() - 7200);
        if (i == 1)
            und_series_start(latency.series, zero), longest = latency.most_ns;
    }
    assert_true(longest > 0 && und_latency_quantile(&latency, 1) >= longest);
    und_series_end(&latency);
    for (int64_t k = 0; k < UND_SERIES_INTERVALS; ++k) {
        und_series_read(latency.series, k, &sums);
        assert_true(sums.seconds == 16);
        for (int b = 0; b < UND_SERIES_BUCKETS; ++b)
            sums.count += sums.counts[b];
        const bool in_hand = k == 7200 / 16, earlier = k == UND_SERIES_INTERVALS * 3 / 2 / 16;
        assert_int_equal(sums.count, in_hand || earlier ? 500 : 0);
        assert_true(sums.count == 0 || und_interval_quantile(&sums, 1) == sums.most_ns);
        count += sums.count;
        bytes += sums.bytes;
        most_ns = sums.most_ns > most_ns ? sums.most_ns : most_ns;
    }
    assert_int_equal(count, und_latency_count(&latency));
    assert_int_equal(bytes, latency.bytes);
    assert_int_equal(most_ns, latency.most_ns);
    und_series_free(latency.series);
}

TEST(test_buckets_of_the_series_hold_those_of_the_histogram)
{
    for (int b = 0; b < UND_LATENCY_BUCKETS; ++b) {
        const uint64_t upper = und_latency_upper(b), lower = b == 0 ? 0 : und_latency_upper(b - 1) + 1;
        const int coarse = und_bucket(upper, UND_SERIES_BITS);
        assert_in_range(coarse, 0, UND_SERIES_BUCKETS - 1);
        assert_int_equal(und_bucket(lower, UND_SERIES_BITS), coarse);
        assert_in_range(und_bucket_upper(coarse, UND_SERIES_BITS), upper, upper + upper / 16);
    }
}

RUN(T(test_buckets_follow_each_other_and_hold_their_values), T(test_quantiles_are_those_of_the_operations),
    T(test_ticks_are_nanoseconds), T(test_the_series_has_what_the_histogram_has),
    T(test_buckets_of_the_series_hold_those_of_the_histogram))
