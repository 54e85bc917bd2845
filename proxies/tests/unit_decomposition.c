/* Who owns which bytes: against the plain definition of the contract, element by element. */
#include "unit_test.h"
#include "workload/decomposition.h"

enum { RANKS = 6 };

static struct und_rows runs[] = {{1, 4}, {2, 0}, {3, 3}};

static const struct und_variable variables[] = {
    {.count = 1, .type = UND_F64, .ndims = 1, .shape = {13}, .rule = UND_EVEN},
    {.count = 1, .type = UND_U8, .ndims = 1, .shape = {3}, .rule = UND_EVEN},
    {.count = 1, .type = UND_I16, .ndims = 3, .shape = {7, 3, 5}, .rule = UND_EVEN},
    {.count = 1, .type = UND_F32, .ndims = 2, .shape = {13, 4}, .rule = UND_RUNS, .run_count = 3, .runs = runs},
    {.count = 1, .type = UND_F64, .ndims = 2, .shape = {9, 8}, .rule = UND_GRID, .grid = {3, 2}},
    {.count = 1, .type = UND_I32, .ndims = 3, .shape = {5, 1, 7}, .rule = UND_GRID, .grid = {1, 2, 3}},
    {.count = 1, .type = UND_I64, .ndims = 2, .shape = {6, 5}, .rule = UND_GRID, .grid = {6, 1}},
    {.count = 1, .type = UND_BYTE, .ndims = 4, .shape = {3, 4, 2, 5}, .rule = UND_GRID, .grid = {1, 3, 1, 2}},
};
enum { VARIABLES = (int)(sizeof variables / sizeof variables[0]) };

/* Rows that are dealt in blocks: a round that does not come out even, a block that is larger than what is left. */
static const struct und_variable dealt[] = {
    {.count = 1, .type = UND_F64, .ndims = 1, .shape = {41}, .rule = UND_CYCLIC, .block = 3},
    {.count = 1, .type = UND_F64, .ndims = 2, .shape = {12, 2}, .rule = UND_CYCLIC, .block = 1},
    {.count = 1, .type = UND_U8, .ndims = 1, .shape = {36}, .rule = UND_CYCLIC, .block = 6},
    {.count = 1, .type = UND_U8, .ndims = 1, .shape = {5}, .rule = UND_CYCLIC, .block = 4},
    {.count = 1, .type = UND_U8, .ndims = 1, .shape = {5}, .rule = UND_CYCLIC, .block = INT64_MAX},
};
enum { DEALT = (int)(sizeof dealt / sizeof dealt[0]) };

static int64_t even_owner(int64_t n, int64_t parts, int64_t i)
{
    int64_t begin = 0;
    for (int64_t part = 0; part < parts; ++part) {
        begin += n / parts + (part < n % parts);
        if (i < begin)
            return part;
    }
    return -1;
}

/* The rank that owns the element of the global shape, from the words of the contract. */
static int64_t owner(const struct und_variable *variable, int64_t element)
{
    int64_t index[UND_MAX_DIMS];
    for (int d = variable->ndims - 1; d >= 0; --d) {
        index[d] = element % variable->shape[d];
        element /= variable->shape[d];
    }
    if (variable->rule == UND_EVEN)
        return even_owner(variable->shape[0], RANKS, index[0]);
    if (variable->rule == UND_RUNS) {
        int64_t rank = 0, rows = 0;
        for (int i = 0; i < variable->run_count; ++i)
            for (int64_t r = 0; r < variable->runs[i].ranks; ++r, ++rank) {
                rows += variable->runs[i].rows;
                if (index[0] < rows)
                    return rank;
            }
        return -1;
    }
    int64_t rank = 0;
    for (int d = 0; d < variable->ndims; ++d)
        rank = rank * variable->grid[d] + even_owner(variable->shape[d], variable->grid[d], index[d]);
    return rank;
}

static int64_t elements_of(const struct und_variable *variable)
{
    int64_t elements = 1;
    for (int d = 0; d < variable->ndims; ++d)
        elements *= variable->shape[d];
    return elements;
}

TEST(test_groups)
{
    for (int64_t groups = 1; groups <= RANKS; ++groups) {
        int64_t next = 0;
        for (int64_t g = 0; g < groups; ++g) {
            const struct und_group group = und_group_at(g, RANKS, groups);
            assert_int_equal(group.first, next);
            assert_true(group.end > group.first);
            for (int64_t rank = group.first; rank < group.end; ++rank) {
                assert_int_equal(rank * groups / RANKS, g);
                assert_int_equal(und_group_of(rank, RANKS, groups).index, g);
            }
            next = group.end;
        }
        assert_int_equal(next, RANKS);
    }
    const struct und_group last = und_group_of(2147483646, 2147483647, 2147483647);
    assert_int_equal(last.first, 2147483646);
    assert_int_equal(last.end, 2147483647);
}

/* In a file of all ranks, the cells of a rank's block are those it owns, and no others. */
TEST(test_shared_is_global)
{
    const struct und_group all = und_group_at(0, RANKS, 1);
    for (int v = 0; v < VARIABLES; ++v) {
        const struct und_variable *variable = &variables[v];
        int64_t seen = 0;
        for (int64_t rank = 0; rank < RANKS; ++rank) {
            struct und_dataset dataset;
            struct und_box block;
            struct und_spans spans;
            int64_t at;
            und_decomposition_place(variable, RANKS, &all, rank, &dataset, &block);
            assert_int_equal(und_dataset_elements(&dataset), elements_of(variable));
            assert_true(und_box_bytes(&dataset, &block) <= und_decomposition_largest_block(variable, RANKS));
            und_spans_begin(&spans, &dataset, &block);
            while (und_spans_next(&spans, &at))
                for (int64_t i = 0; i < spans.elements; ++i, ++seen)
                    assert_int_equal(owner(variable, at + i), rank);
        }
        assert_int_equal(seen, elements_of(variable));
    }
}

/* Smaller groups: every file is filled without holes by its ranks in their order, and all of
 * them have the elements of the variable. */
TEST(test_groups_are_packed)
{
    for (int64_t groups = 2; groups <= RANKS; ++groups)
        for (int v = 0; v < VARIABLES; ++v) {
            const struct und_variable *variable = &variables[v];
            const int64_t size = und_type_bytes(variable->type);
            int64_t bytes = 0;
            for (int64_t g = 0; g < groups; ++g) {
                const struct und_group group = und_group_at(g, RANKS, groups);
                int64_t filled = 0, elements = 0;
                for (int64_t rank = group.first; rank < group.end; ++rank) {
                    struct und_dataset dataset;
                    struct und_box block;
                    struct und_spans spans;
                    int64_t at, owned = 0;
                    und_decomposition_place(variable, RANKS, &group, rank, &dataset, &block);
                    elements = und_dataset_elements(&dataset);
                    for (int64_t e = 0; e < elements_of(variable); ++e)
                        owned += owner(variable, e) == rank;
                    assert_int_equal(und_box_bytes(&dataset, &block), owned * size);
                    und_spans_begin(&spans, &dataset, &block);
                    for (; und_spans_next(&spans, &at); filled += spans.elements)
                        assert_int_equal(at, filled);
                }
                assert_int_equal(filled, elements);
                bytes += elements * size;
            }
            assert_int_equal(bytes, elements_of(variable) * size);
        }
}

/* Transfers: within the size, in order, together the block, and as large as whole rows allow. */
TEST(test_cuts)
{
    static const int64_t sizes[] = {8, 9, 24, 40, 100, 1000, INT64_MAX};
    const struct und_group all = und_group_at(0, RANKS, 1);
    for (int v = 0; v < VARIABLES; ++v)
        for (size_t s = 0; s < COUNT(sizes); ++s)
            for (int64_t rank = 0; rank < RANKS; ++rank) {
                struct und_dataset dataset;
                struct und_box block;
                struct und_cut cut;
                struct und_spans whole, part;
                int64_t at, from = 0, moved = 0;
                und_decomposition_place(&variables[v], RANKS, &all, rank, &dataset, &block);
                und_cut_begin(&cut, &dataset, &block, sizes[s]);
                if (sizes[s] == INT64_MAX)
                    assert_int_equal(cut.calls, und_box_bytes(&dataset, &block) > 0);
                und_spans_begin(&whole, &dataset, &block);
                int64_t left = 0;
                for (int64_t call = 0; call < cut.calls; ++call, und_cut_next(&cut)) {
                    const int64_t bytes = und_box_bytes(&dataset, &cut.box);
                    assert_true(bytes > 0 && bytes <= sizes[s]);
                    moved += bytes;
                    und_spans_begin(&part, &dataset, &cut.box);
                    assert_int_equal(part.at, cut.element);
                    if (cut.consecutive)
                        assert_int_equal(part.left, 1);
                    while (und_spans_next(&part, &at))
                        for (int64_t i = 0; i < part.elements; ++i, ++from, --left) {
                            if (left == 0) {
                                assert_true(und_spans_next(&whole, &from));
                                left = whole.elements;
                            }
                            assert_int_equal(at + i, from);
                        }
                }
                assert_int_equal(moved, und_box_bytes(&dataset, &block));
            }
}

/* Rows dealt in blocks: in files of all sizes of groups, every row once, in its place, never two blocks in
 * one transfer, also in another order. */
TEST(test_cyclic)
{
    static const struct {
        int64_t rows, block;
    } cases[] = {{40, 3}, {24, 4}, {2, 3}, {13, 6}, {7, 1}, {100, INT64_MAX}, {29, 5}};
    for (size_t i = 0; i < COUNT(cases); ++i)
        for (int64_t groups = 1; groups <= RANKS; ++groups) {
            const struct und_variable variable = {.count = 1,
                                                  .type = UND_I16,
                                                  .ndims = 2,
                                                  .shape = {cases[i].rows, 3},
                                                  .rule = UND_CYCLIC,
                                                  .block = cases[i].block};
            int64_t bytes = 0;
            for (int64_t g = 0; g < groups; ++g) {
                const struct und_group group = und_group_at(g, RANKS, groups);
                bool seen[300] = {false};
                int64_t next[RANKS] = {0}, moved = 0, elements = 0;
                for (int64_t row = 0; row < cases[i].rows; ++row) {
                    const int64_t owner = row / cases[i].block % RANKS;
                    next[owner] += owner >= group.first && owner < group.end;
                }
                for (int64_t rank = group.first; rank < group.end; ++rank) {
                    struct und_dataset dataset;
                    struct und_box block;
                    struct und_cut cut;
                    int64_t rows = 0;
                    und_decomposition_place(&variable, RANKS, &group, rank, &dataset, &block);
                    elements = und_dataset_elements(&dataset);
                    const struct und_deal deal = und_decomposition_deal(&variable, RANKS, &group, rank, &block);
                    und_cut_begin_dealt(&cut, &dataset, &block, &deal, 13);
                    for (int64_t call = cut.calls - 1; call >= 0; --call) {
                        und_cut_go(&cut, call);
                        const int64_t first = cut.box.start[0], end = first + cut.box.count[0];
                        rows += cut.box.count[0];
                        assert_true(end * 3 <= elements && cut.consecutive && cut.element == first * 3);
                        assert_int_equal(first / cases[i].block, (end - 1) / cases[i].block);
                        assert_int_equal(first / cases[i].block % (group.end - group.first), rank - group.first);
                        for (int64_t row = first; row < end; ++row) {
                            assert_false(seen[row]);
                            seen[row] = true;
                        }
                    }
                    assert_int_equal(rows, next[rank]);
                    assert_int_equal(rows * 3, cut.elements);
                    assert_true(rows * 6 <= und_decomposition_largest_block(&variable, RANKS));
                    moved += rows * 3;
                }
                assert_int_equal(moved, elements);
                bytes += elements * 2;
            }
            assert_int_equal(bytes, cases[i].rows * 6);
        }
}

TEST(test_transfer_sizes)
{
    static const struct {
        int64_t count[3], transfer_bytes, calls, first_bytes;
    } cases[] = {
        {{1, 1, 1000}, 8000, 1, 8000},  {{1, 1, 1000}, 7999, 2, 7992},   {{1, 1, 1000}, 8, 1000, 8},
        {{4, 10, 100}, 1600, 20, 1600}, {{4, 10, 100}, 1700, 20, 1600},  {{4, 10, 100}, 16000, 2, 16000},
        {{4, 10, 100}, 799, 80, 792},   {{3, 10, 100}, 16000, 2, 16000}, {{0, 10, 100}, 16000, 0, 0},
    };
    for (size_t i = 0; i < COUNT(cases); ++i) {
        struct und_dataset dataset = {.type = UND_F64, .ndims = 3, .shape = {8, 10, 1000}};
        struct und_box block = {.start = {0, 0, 0}};
        struct und_cut cut;
        memcpy(block.count, cases[i].count, sizeof cases[i].count);
        und_cut_begin(&cut, &dataset, &block, cases[i].transfer_bytes);
        assert_int_equal(cut.calls, cases[i].calls);
        assert_int_equal(und_box_bytes(&dataset, &cut.box), cases[i].first_bytes);
    }
}

/* Every row is in the share of its owner, once and in order. */
static void check_shares(const struct und_variable *variable)
{
    int64_t row_elements = 1, rows = 0;
    for (int d = 1; d < variable->ndims; ++d)
        row_elements *= variable->shape[d];
    for (int64_t rank = 0; rank < RANKS; ++rank) {
        const struct und_share share = und_decomposition_share(variable, RANKS, rank);
        int64_t last = -1;
        for (int64_t k = 0; k < share.count; ++k, ++rows) {
            const int64_t row = share.first + k + k / share.block * share.leap;
            assert_in_range(row, last + 1, variable->shape[0] - 1);
            if (variable->rule == UND_CYCLIC)
                assert_int_equal(row / variable->block % RANKS, rank);
            else
                assert_int_equal(owner(variable, row * row_elements), rank);
            last = row;
        }
    }
    assert_int_equal(rows, variable->shape[0]);
}

TEST(test_shares)
{
    for (int v = 0; v < VARIABLES; ++v)
        if (variables[v].rule != UND_GRID)
            check_shares(&variables[v]);
    for (int v = 0; v < DEALT; ++v)
        check_shares(&dealt[v]);
}

/* No rank of any group makes more transfers, and the maximum is reached where all share a file. */
static void check_most_calls(const struct und_variable *variable, int64_t transfer_bytes)
{
    const int64_t most = und_decomposition_most_calls(variable, RANKS, transfer_bytes);
    for (int64_t groups = 1; groups <= RANKS; ++groups) {
        int64_t largest = 0;
        for (int64_t rank = 0; rank < RANKS; ++rank) {
            const struct und_group group = und_group_of(rank, RANKS, groups);
            struct und_dataset dataset;
            struct und_box block;
            struct und_cut cut;
            und_decomposition_place(variable, RANKS, &group, rank, &dataset, &block);
            const struct und_deal deal = und_decomposition_deal(variable, RANKS, &group, rank, &block);
            und_cut_begin_dealt(&cut, &dataset, &block, &deal, transfer_bytes);
            assert_true(cut.calls <= most);
            largest = und_larger(largest, cut.calls);
        }
        assert_true(groups > 1 || largest == most);
    }
}

TEST(test_most_calls)
{
    static const int64_t sizes[] = {8, 9, 24, 40, 100, 1000, INT64_MAX};
    for (size_t s = 0; s < COUNT(sizes); ++s) {
        for (int v = 0; v < VARIABLES; ++v)
            check_most_calls(&variables[v], sizes[s]);
        for (int v = 0; v < DEALT; ++v)
            check_most_calls(&dealt[v], sizes[s]);
    }
}

RUN(T(test_groups), T(test_shared_is_global), T(test_groups_are_packed), T(test_shares), T(test_cuts),
    T(test_transfer_sizes), T(test_cyclic), T(test_most_calls))
