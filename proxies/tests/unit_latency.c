/* Histograms of latencies: buckets that hold what they say, quantiles to their width. */
#include "job/latency.h"
#include "unit_test.h"

#include <string.h>

TEST(test_buckets_follow_each_other_and_hold_their_values)
{
    int last = -1;
    for (uint64_t ns = 0; ns < (uint64_t)1 << UND_LATENCY_BITS; ns = ns < 1000 ? ns + 1 : ns + ns / 300) {
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

RUN(T(test_buckets_follow_each_other_and_hold_their_values), T(test_quantiles_are_those_of_the_operations),
    T(test_ticks_are_nanoseconds))
