/* Contents: the same bytes whatever the transfers, different for every variable, and comparable. */
#include "unit_test.h"
#include "workload/pattern.h"

enum { CAPACITY = 3 * UND_PERIOD / 2 };

static const struct und_content random_bytes = {UND_RANDOM, 0};

static struct und_base *base_in(struct und_pattern *pattern)
{
    assert_non_null(pattern);
    struct und_base *base = und_pattern_base(pattern, &random_bytes, UND_F64);
    assert_non_null(base);
    return base;
}

TEST(test_transfers_do_not_matter)
{
    static const int64_t sizes[] = {1, 7, 8, 4095, 4096, 4097, 100003, UND_PERIOD, CAPACITY};
    const int64_t all = 3 * (int64_t)UND_PERIOD + 12345;
    struct und_pattern *pattern = und_pattern_new(42, CAPACITY);
    struct und_base *base = base_in(pattern);
    unsigned char *right = malloc((size_t)all);
    assert_non_null(right);
    und_base_copy(base, 99, 0, all, right);
    for (size_t i = 0; i < COUNT(sizes); ++i) {
        const int64_t stop = sizes[i] < 10 ? 50000 : all;
        for (int64_t at = 0; at < stop; at += sizes[i]) {
            const int64_t some = stop - at < sizes[i] ? stop - at : sizes[i];
            assert_memory_equal(und_base_consecutive(base, 99, at, some), right + at, (size_t)some);
        }
    }
    free(right);
    und_pattern_free(pattern);
}

TEST(test_memory_that_is_filled_again_has_the_bytes_of_its_place)
{
    /* Whole periods apart only hashes are set; else, and behind fewer bytes, everything is copied. */
    static const int64_t transfers[][2] = {{0, UND_PERIOD},
                                           {UND_PERIOD, UND_PERIOD},
                                           {2 * (int64_t)UND_PERIOD, 8192},
                                           {3 * (int64_t)UND_PERIOD, UND_PERIOD},
                                           {4096, 4096},
                                           {UND_PERIOD + 4096, 8192},
                                           {UND_PERIOD + 4096, 100},
                                           {5 * (int64_t)UND_PERIOD + 4096, 4096},
                                           {4097, 4096},
                                           {UND_PERIOD + 4097, 4096}};
    static const struct und_content smooth = {UND_SMOOTH, 0};
    struct und_pattern *pattern = und_pattern_new(42, CAPACITY);
    struct und_base *bases[] = {base_in(pattern), und_pattern_base(pattern, &smooth, UND_F64)};
    unsigned char *data = malloc(UND_PERIOD), *right = malloc(UND_PERIOD);
    assert_true(data && right && bases[1]);
    struct und_filling filling = {.base = NULL};
    for (size_t i = 0; i < 4 * COUNT(transfers); ++i) {
        const int64_t offset = transfers[i % COUNT(transfers)][0], bytes = transfers[i % COUNT(transfers)][1];
        struct und_base *base = bases[i / COUNT(transfers) % 2];
        und_base_fill(base, 7 + i / 20, offset, bytes, data, &filling);
        und_base_copy(base, 7 + i / 20, offset, bytes, right);
        assert_memory_equal(data, right, (size_t)bytes);
    }
    free(data);
    free(right);
    und_pattern_free(pattern);
}

TEST(test_every_identity_differs)
{
    enum { BYTES = 64 * UND_STAMP_STEP };
    struct und_pattern *pattern = und_pattern_new(1, BYTES);
    struct und_base *base = base_in(pattern);
    unsigned char *contents = malloc(BYTES);
    assert_non_null(contents);
    const uint64_t first = und_pattern_identity(1, "a.0", 3, 0);
    const uint64_t others[] = {und_pattern_identity(2, "a.0", 3, 0), und_pattern_identity(1, "a.1", 3, 0),
                               und_pattern_identity(1, "a.0", 3, 1), und_pattern_numbered(first, 0)};
    und_base_copy(base, first, 0, BYTES, contents);
    for (size_t i = 0; i < COUNT(others); ++i) {
        int64_t wrong = -1;
        assert_true(und_base_compare(base, others[i], 0, BYTES, contents, &wrong) > 64 * 7);
        assert_true(wrong >= 0 && wrong < UND_STAMP_BYTES);
        /* Bytes of another place of the same file differ as well, a whole period on too. */
        assert_true(und_base_compare(base, first, (int64_t)(i + 1) * UND_PERIOD, BYTES, contents, &wrong) > 64 * 7);
    }
    free(contents);
    und_pattern_free(pattern);
}

TEST(test_every_wrong_byte_is_found)
{
    enum { BYTES = 20000 };
    const int64_t offset = UND_PERIOD - 777;
    struct und_pattern *pattern = und_pattern_new(1, BYTES);
    struct und_base *base = base_in(pattern);
    unsigned char *data = malloc(BYTES);
    int64_t wrong = -1;
    assert_non_null(data);
    und_base_copy(base, 5, offset, BYTES, data);
    assert_int_equal(und_base_compare(base, 5, offset, BYTES, data, &wrong), 0);
    for (int64_t i = 0; i < BYTES; i += 191) {
        data[i] ^= 1;
        assert_int_equal(und_base_compare(base, 5, offset, BYTES, data, &wrong), 1);
        assert_int_equal(wrong, offset + i);
        data[i] ^= 1;
    }
    data[3] ^= 1;
    data[BYTES - 1] ^= 1;
    assert_int_equal(und_base_compare(base, 5, offset, BYTES, data, &wrong), 2);
    assert_int_equal(wrong, offset + 3);
    free(data);
    und_pattern_free(pattern);
}

/* Reads arrive where the base goes on; afterwards it must be whole again. */
TEST(test_buffer_is_given_back)
{
    struct und_pattern *pattern = und_pattern_new(1, CAPACITY);
    struct und_base *base = base_in(pattern);
    unsigned char *right = malloc(CAPACITY);
    assert_non_null(right);
    und_base_copy(base, 5, 1000, CAPACITY, right);
    memset(und_base_buffer(base), 0, CAPACITY);
    und_base_continue(base);
    assert_memory_equal(und_base_consecutive(base, 5, 1000, CAPACITY), right, CAPACITY);
    und_base_copy(base, 5, 1000, CAPACITY, und_base_buffer(base));
    assert_memory_equal(base->bytes + UND_PERIOD, right, CAPACITY);
    free(right);
    und_pattern_free(pattern);
}

/* Which bases there are: one for each content, one for each type only where values matter. */
/* With a capacity that makes neither the base nor its end whole pages by itself. */
TEST(test_memory_begins_on_a_page)
{
    struct und_pattern *pattern = und_pattern_new(1, 1000003);
    struct und_base *base = base_in(pattern);
    assert_int_equal((uintptr_t)und_base_consecutive(base, 5, 0, 1) % 4096, 0);
    assert_int_equal((uintptr_t)und_base_buffer(base) % 4096, 0);
    assert_int_equal(und_pattern_memory(1000003) % 4096, 0);
    assert_true(und_pattern_memory(1000003) >= UND_PERIOD + 1000003 + UND_STAMP_REACH);
    und_pattern_free(pattern);
}

TEST(test_bases)
{
    static const struct und_content zero = {UND_ZERO, 0}, half = {UND_RANDOM, 0.5}, smooth = {UND_SMOOTH, 0};
    struct und_pattern *pattern = und_pattern_new(1, 100);
    struct und_base *base = base_in(pattern);
    assert_ptr_equal(und_pattern_base(pattern, &random_bytes, UND_I32), base);
    assert_ptr_not_equal(und_pattern_base(pattern, &half, UND_F64), base);
    assert_ptr_not_equal(und_pattern_base(pattern, &zero, UND_F64), base);
    assert_ptr_equal(und_pattern_base(pattern, &zero, UND_F64), und_pattern_base(pattern, &zero, UND_U8));
    assert_ptr_not_equal(und_pattern_base(pattern, &smooth, UND_F64), und_pattern_base(pattern, &smooth, UND_F32));
    und_pattern_free(pattern);
}

/* Each kind, by each type: transfers do not matter, and every wrong byte is found. */
TEST(test_kinds)
{
    static const struct und_content contents[] = {{UND_RANDOM, 0.3}, {UND_ZERO, 0}, {UND_CONSTANT, 0}, {UND_SMOOTH, 0}};
    enum { BYTES = 5 * UND_PERIOD / 4 };
    unsigned char *right = malloc(BYTES);
    int cases = 0;
    assert_non_null(right);
    for (size_t c = 0; c < COUNT(contents); ++c)
        for (int type = UND_BYTE; type <= UND_F64; ++type, ++cases) {
            struct und_pattern *pattern = und_pattern_new(9, 100000);
            struct und_base *base = und_pattern_base(pattern, &contents[c], (enum und_type)type);
            int64_t wrong = -1;
            und_base_copy(base, 77, 0, BYTES, right);
            for (int64_t at = 0; at + 99999 <= BYTES; at += 99999)
                assert_memory_equal(und_base_consecutive(base, 77, at, 99999), right + at, 99999);
            assert_int_equal(und_base_compare(base, 77, 0, BYTES, right, &wrong), 0);
            for (int64_t i = 0; i < BYTES; i += 40009) {
                right[i] ^= 1;
                assert_int_equal(und_base_compare(base, 77, 0, BYTES, right, &wrong), 1);
                assert_int_equal(wrong, i);
                right[i] ^= 1;
            }
            und_pattern_free(pattern);
        }
    assert_int_equal(cases, 44);
    free(right);
}

/* The share of zero bytes is that asked for in every block, and no two blocks are alike. */
TEST(test_compressibility)
{
    enum { BLOCKS = 600, BYTES = BLOCKS * UND_STAMP_STEP };
    static const double shares[] = {0, 0.25, 0.5, 0.9, 1};
    unsigned char *data = malloc(BYTES);
    assert_non_null(data);
    for (size_t s = 0; s < COUNT(shares); ++s) {
        const struct und_content content = {UND_RANDOM, shares[s]};
        struct und_pattern *pattern = und_pattern_new(3, 10);
        und_base_copy(und_pattern_base(pattern, &content, UND_F64), 5, 0, BYTES, data);
        for (int64_t b = 0; b < BLOCKS; ++b) {
            int64_t zeros = 0;
            for (int64_t i = 0; i < UND_STAMP_STEP; ++i)
                zeros += data[b * UND_STAMP_STEP + i] == 0;
            const int64_t wanted = (int64_t)(shares[s] * UND_STAMP_STEP);
            assert_in_range(zeros + 100, wanted + 80, wanted + 150); /* one random byte in 256 is zero too */
            for (int64_t other = 0; other < b; ++other)
                assert_memory_not_equal(data + b * UND_STAMP_STEP, data + other * UND_STAMP_STEP, UND_STAMP_BYTES);
        }
        und_pattern_free(pattern);
    }
    free(data);
}

/* Neighbours differ by little in a smooth field, also across hashes; variables differ; a constant is one. */
TEST(test_values)
{
    enum { COUNT = 2 * UND_PERIOD / (int)sizeof(double) };
    static const struct und_content smooth = {UND_SMOOTH, 0}, constant = {UND_CONSTANT, 0};
    double *values = malloc(COUNT * sizeof *values), *other_values = malloc(COUNT * sizeof *other_values);
    struct und_pattern *pattern = und_pattern_new(3, 10);
    double least = 1e300, most = -1e300;
    assert_true(values && other_values && pattern);
    und_base_copy(und_pattern_base(pattern, &smooth, UND_F64), 5, 0, COUNT * 8, (unsigned char *)values);
    und_base_copy(und_pattern_base(pattern, &smooth, UND_F64), 6, 0, COUNT * 8, (unsigned char *)other_values);
    for (int i = 1; i < COUNT; ++i) {
        const double step = values[i] - values[i - 1];
        assert_true(step < 0.05 && step > -0.05);
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
    }
    assert_true(least < 251 && most > 349);
    for (int b = 0; b < COUNT; b += 512)
        assert_memory_not_equal(values + b, other_values + b, 4096);
    und_base_copy(und_pattern_base(pattern, &constant, UND_F64), 5, 0, COUNT * 8, (unsigned char *)values);
    for (int i = 0; i < COUNT; ++i)
        assert_memory_equal(&values[i], &values[0], sizeof values[0]);
    assert_true(values[0] > 299 && values[0] < 301);
    und_pattern_free(pattern);
    free(values);
    free(other_values);
}

RUN(T(test_transfers_do_not_matter), T(test_memory_that_is_filled_again_has_the_bytes_of_its_place),
    T(test_every_identity_differs), T(test_every_wrong_byte_is_found), T(test_buffer_is_given_back),
    T(test_memory_begins_on_a_page), T(test_bases), T(test_kinds), T(test_compressibility), T(test_values))
