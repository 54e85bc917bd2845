/* Orders: every thing once, and the orders that are asked for. */
#include "unit_test.h"
#include "workload/order.h"

#include <stdbool.h>

enum { MOST = 2000 };

static void check_permutation(const struct und_order *order, uint64_t key, int64_t n)
{
    bool seen[MOST] = {false};
    for (int64_t i = 0; i < n; ++i) {
        const int64_t at = und_order_at(order, key, n, i);
        assert_in_range(at, 0, n - 1);
        assert_false(seen[at]);
        seen[at] = true;
    }
}

TEST(test_every_order_is_a_permutation)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 63, 64, 65, 1000, 1024, MOST};
    for (size_t i = 0; i < COUNT(sizes); ++i) {
        const struct und_order plain = {.rule = UND_CONSECUTIVE};
        check_permutation(&plain, 0, sizes[i]);
        for (int64_t step = 1; step < 70; step += 3) {
            const struct und_order strided = {.rule = UND_STRIDED, .step = step};
            check_permutation(&strided, 0, sizes[i]);
        }
        for (uint64_t seed = 0; seed < 20; ++seed) {
            const struct und_order shuffled = {.rule = UND_SHUFFLED, .seed = seed};
            check_permutation(&shuffled, und_order_key(&shuffled, 3, 1, 2), sizes[i]);
        }
    }
}

TEST(test_strided_goes_column_by_column)
{
    static const int64_t wanted[] = {0, 3, 6, 1, 4, 7, 2, 5};
    const struct und_order order = {.rule = UND_STRIDED, .step = 3};
    for (int64_t i = 0; i < 8; ++i)
        assert_int_equal(und_order_at(&order, 0, 8, i), wanted[i]);
}

TEST(test_shuffles_differ_by_seed_and_dump)
{
    const struct und_order seed_1 = {.rule = UND_SHUFFLED, .seed = 1}, seed_2 = {.rule = UND_SHUFFLED, .seed = 2};
    const uint64_t keys[] = {und_order_key(&seed_1, 0, 0, 0), und_order_key(&seed_1, 1, 0, 0),
                             und_order_key(&seed_1, 0, 1, 0), und_order_key(&seed_1, 0, 0, 1),
                             und_order_key(&seed_2, 0, 0, 0)};
    for (size_t a = 0; a < 5; ++a)
        for (size_t b = 0; b < a; ++b) {
            int same = 0;
            for (int64_t i = 0; i < MOST; ++i)
                same += und_order_at(&seed_1, keys[a], MOST, i) == und_order_at(&seed_1, keys[b], MOST, i);
            assert_true(same < 20);
        }
}

TEST(test_large_numbers_stay_in_range)
{
    const struct und_order shuffled = {.rule = UND_SHUFFLED, .seed = 5}, strided = {.rule = UND_STRIDED, .step = 1000};
    const int64_t n = ((int64_t)1 << 50) + 1;
    for (int64_t i = n - 100; i < n; ++i) {
        assert_in_range(und_order_at(&shuffled, 9, n, i), 0, n - 1);
        assert_in_range(und_order_at(&strided, 0, n, i), 0, n - 1);
    }
}

RUN(T(test_every_order_is_a_permutation), T(test_strided_goes_column_by_column),
    T(test_shuffles_differ_by_seed_and_dump), T(test_large_numbers_stay_in_range))
