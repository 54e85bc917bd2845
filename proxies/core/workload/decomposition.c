#include "workload/decomposition.h"

#include <string.h>

struct und_group und_group_at(int64_t index, int64_t ranks, int64_t groups)
{
    /* Rank r belongs to floor(r * groups / ranks). Both are below 2^31, so the products fit. */
    const struct und_group group = {
        .index = index,
        .first = (index * ranks + groups - 1) / groups,
        .end = ((index + 1) * ranks + groups - 1) / groups,
    };
    return group;
}

struct und_group und_group_of(int64_t rank, int64_t ranks, int64_t groups)
{
    return und_group_at(rank * groups / ranks, ranks, groups);
}

/* Rows before part `part` when n rows are cut evenly into `parts`. */
static int64_t even_before(int64_t n, int64_t parts, int64_t part)
{
    return part * (n / parts) + und_smaller(part, n % parts);
}

/* Whole rounds give each rank a block; the rows of the last round are dealt from rank 0 on. */
static int64_t rounds_of(const struct und_variable *variable, int64_t ranks, int64_t *left)
{
    const int64_t rows = variable->shape[0];
    if (variable->block > rows / ranks) { /* also where a round has more rows than can be counted */
        *left = rows;
        return 0;
    }
    *left = rows % (variable->block * ranks);
    return rows / (variable->block * ranks);
}

static int64_t cyclic_before(const struct und_variable *variable, int64_t ranks, int64_t rank)
{
    int64_t left;
    const int64_t rounds = rounds_of(variable, ranks, &left);
    const int64_t last = rank > 0 && variable->block > left / rank ? left : variable->block * rank;
    return rounds * variable->block * rank + last;
}

/* Rows of dimension 0 that ranks before `rank` have. */
static int64_t rows_before(const struct und_variable *variable, int64_t ranks, int64_t rank)
{
    if (variable->rule == UND_EVEN)
        return even_before(variable->shape[0], ranks, rank);
    if (variable->rule == UND_CYCLIC)
        return cyclic_before(variable, ranks, rank);
    int64_t rows = 0;
    for (int i = 0; i < variable->run_count && rank > 0; ++i) {
        const int64_t some = und_smaller(rank, variable->runs[i].ranks);
        rows += some * variable->runs[i].rows;
        rank -= some;
    }
    return rows;
}

static void grid_block(const struct und_variable *variable, int64_t rank, struct und_box *block)
{
    for (int d = variable->ndims - 1; d >= 0; --d) {
        const int64_t index = rank % variable->grid[d], n = variable->shape[d], parts = variable->grid[d];
        rank /= parts;
        block->start[d] = even_before(n, parts, index);
        block->count[d] = even_before(n, parts, index + 1) - block->start[d];
    }
}

/* Elements of all blocks of ranks before `rank`, the blocks counted in the order of ranks. */
static int64_t grid_elements_before(const struct und_variable *variable, int64_t ranks, int64_t rank)
{
    int64_t behind = 1, sum = 0, outer = 1;
    for (int d = 0; d < variable->ndims; ++d)
        behind *= variable->shape[d];
    if (rank == ranks)
        return behind;
    /* Ranks with a lower index along dimension d, and the same along the dimensions before it. */
    struct und_box block;
    grid_block(variable, rank, &block);
    for (int d = 0; d < variable->ndims; ++d) {
        behind /= variable->shape[d];
        sum += outer * block.start[d] * behind;
        outer *= block.count[d];
    }
    return sum;
}

static void place_packed(const struct und_variable *variable, int64_t ranks, const struct und_group *group,
                         int64_t rank, struct und_dataset *dataset, struct und_box *block)
{
    const int64_t first = grid_elements_before(variable, ranks, group->first);
    const int64_t begin = grid_elements_before(variable, ranks, rank);
    dataset->ndims = 1;
    dataset->shape[0] = grid_elements_before(variable, ranks, group->end) - first;
    block->start[0] = begin - first;
    block->count[0] = grid_elements_before(variable, ranks, rank + 1) - begin;
}

void und_decomposition_place(const struct und_variable *variable, int64_t ranks, const struct und_group *group,
                             int64_t rank, struct und_dataset *dataset, struct und_box *block)
{
    const bool all = group->first == 0 && group->end == ranks;
    dataset->type = variable->type;
    dataset->slabs = variable->rule != UND_GRID || !all;
    if (variable->rule == UND_GRID && !all) {
        place_packed(variable, ranks, group, rank, dataset, block);
        return;
    }
    dataset->ndims = variable->ndims;
    memcpy(dataset->shape, variable->shape, sizeof dataset->shape);
    if (variable->rule == UND_GRID) {
        grid_block(variable, rank, block);
        return;
    }
    const int64_t first = rows_before(variable, ranks, group->first), begin = rows_before(variable, ranks, rank);
    for (int d = 1; d < variable->ndims; ++d) {
        block->start[d] = 0;
        block->count[d] = variable->shape[d];
    }
    dataset->shape[0] = rows_before(variable, ranks, group->end) - first;
    block->start[0] = begin - first;
    block->count[0] = rows_before(variable, ranks, rank + 1) - begin;
    if (variable->rule == UND_CYCLIC && block->count[0] > 0) {
        block->start[0] = rank == group->first ? 0 : variable->block * (rank - group->first);
        block->count[0] = und_smaller(variable->block, block->count[0]);
    }
}

struct und_deal und_decomposition_deal(const struct und_variable *variable, int64_t ranks,
                                       const struct und_group *group, int64_t rank, const struct und_box *block)
{
    struct und_deal deal = {.blocks = 1, .step = 0, .last_rows = block->count[0]};
    if (variable->rule != UND_CYCLIC || block->count[0] == 0)
        return deal;
    const int64_t rows = rows_before(variable, ranks, rank + 1) - rows_before(variable, ranks, rank);
    deal.blocks = (rows - 1) / variable->block + 1;
    deal.step = deal.blocks > 1 ? variable->block * (group->end - group->first) : 0;
    deal.last_rows = rows - (deal.blocks - 1) * variable->block;
    return deal;
}

struct und_share und_decomposition_share(const struct und_variable *variable, int64_t ranks, int64_t rank)
{
    struct und_share share = {.block = INT64_MAX, .leap = 0};
    if (variable->rule != UND_CYCLIC) {
        share.first = rows_before(variable, ranks, rank);
        share.count = rows_before(variable, ranks, rank + 1) - share.first;
        return share;
    }
    /* A block is not larger than the variable here, so that the products fit. */
    const int64_t rows = variable->shape[0], block = und_smaller(variable->block, rows);
    share.first = und_smaller(rank, rows / block + 1) * block;
    share.block = block;
    share.leap = block * (ranks - 1);
    const int64_t rest = rows - share.first;
    if (rest > 0) {
        const int64_t round = block * ranks;
        share.count = rest / round * block + und_smaller(rest % round, block);
    }
    return share;
}

int64_t und_dataset_elements(const struct und_dataset *dataset)
{
    int64_t elements = 1;
    for (int d = 0; d < dataset->ndims; ++d)
        elements *= dataset->shape[d];
    return elements;
}

struct und_variable und_decomposition_row(const struct und_variable *variable)
{
    struct und_variable row = *variable;
    row.rule = UND_EVEN;
    row.shape[0] = 1;
    return row;
}

int64_t und_decomposition_largest_block(const struct und_variable *variable, int64_t ranks)
{
    int64_t bytes = und_type_bytes(variable->type), rows = 0;
    if (variable->rule == UND_CYCLIC) {
        for (int d = 1; d < variable->ndims; ++d)
            bytes *= variable->shape[d];
        return bytes * rows_before(variable, ranks, 1);
    }
    for (int d = 0; d < variable->ndims; ++d) {
        const int64_t parts = variable->rule == UND_GRID ? variable->grid[d] : d == 0 ? ranks : 1;
        if (variable->rule != UND_RUNS || d > 0)
            bytes *= (variable->shape[d] - 1) / parts + 1;
    }
    for (int i = 0; i < variable->run_count; ++i)
        if (variable->runs[i].rows > rows)
            rows = variable->runs[i].rows;
    return variable->rule == UND_RUNS ? bytes * rows : bytes;
}

void und_cut_begin(struct und_cut *cut, const struct und_dataset *dataset, const struct und_box *block,
                   int64_t transfer_bytes)
{
    const struct und_deal once = {.blocks = 1, .step = 0, .last_rows = block->count[0]};
    und_cut_begin_dealt(cut, dataset, block, &once, transfer_bytes);
}

/* Transfers of a block with so many rows. */
static int64_t calls_of_rows(const struct und_cut *cut, int64_t rows)
{
    int64_t calls = ((cut->dim == 0 ? rows : cut->block.count[cut->dim]) - 1) / cut->rows + 1;
    for (int d = 0; d < cut->dim; ++d)
        calls *= d == 0 ? rows : cut->block.count[d];
    return calls;
}

void und_cut_begin_dealt(struct und_cut *cut, const struct und_dataset *dataset, const struct und_box *block,
                         const struct und_deal *deal, int64_t transfer_bytes)
{
    const int64_t most = transfer_bytes / und_type_bytes(dataset->type);
    int64_t stride = 1, inner = 1, elements = 1;
    *cut =
        (struct und_cut){.block = *block, .box = *block, .deal = *deal, .consecutive = true, .ndims = dataset->ndims};
    for (int d = dataset->ndims - 1; d >= 0; --d) {
        cut->stride[d] = stride;
        stride *= dataset->shape[d];
        elements *= block->count[d];
    }
    cut->dim = dataset->ndims - 1;
    if (elements == 0) {
        memset(&cut->box, 0, sizeof cut->box);
        return;
    }
    while (cut->dim > 0 && inner * block->count[cut->dim] <= most) {
        inner *= block->count[cut->dim];
        cut->consecutive = cut->consecutive && block->count[cut->dim] == dataset->shape[cut->dim];
        --cut->dim;
    }
    cut->rows = und_smaller(most / inner, block->count[cut->dim]);
    cut->calls_of_block = calls_of_rows(cut, block->count[0]);
    cut->calls = (deal->blocks - 1) * cut->calls_of_block + calls_of_rows(cut, deal->last_rows);
    cut->elements = elements / block->count[0] * ((deal->blocks - 1) * block->count[0] + deal->last_rows);
    und_cut_go(cut, 0);
}

/* Rank 0 has the maximum of rows, but where runs give them. */
int64_t und_decomposition_most_calls(const struct und_variable *variable, int64_t ranks, int64_t transfer_bytes)
{
    const struct und_group all = {.first = 0, .end = ranks};
    int64_t rank = 0, most = 0, first = 0;
    for (int i = 0; variable->rule == UND_RUNS && i < variable->run_count; ++i) {
        if (variable->runs[i].rows > most) {
            most = variable->runs[i].rows;
            rank = first;
        }
        first += variable->runs[i].ranks;
    }
    struct und_dataset dataset;
    struct und_box block;
    struct und_cut cut;
    und_decomposition_place(variable, ranks, &all, rank, &dataset, &block);
    const struct und_deal deal = und_decomposition_deal(variable, ranks, &all, rank, &block);
    und_cut_begin_dealt(&cut, &dataset, &block, &deal, transfer_bytes);
    return cut.calls;
}

void und_cut_go(struct und_cut *cut, int64_t call)
{
    const int dim = cut->dim;
    cut->call = call;
    if (call >= cut->calls)
        return;
    const int64_t number = und_smaller(call / cut->calls_of_block, cut->deal.blocks - 1);
    const int64_t first = cut->block.start[0] + number * cut->deal.step;
    const int64_t rows = number == cut->deal.blocks - 1 ? cut->deal.last_rows : cut->block.count[0];
    call -= number * cut->calls_of_block;
    cut->element = 0;
    cut->many = 1;
    for (int d = cut->ndims - 1; d >= 0; --d) {
        const int64_t count = d == 0 ? rows : cut->block.count[d], start = d == 0 ? first : cut->block.start[d];
        if (d == dim) {
            const int64_t parts = (count - 1) / cut->rows + 1, part = call % parts;
            call /= parts;
            cut->box.start[d] = start + part * cut->rows;
            cut->box.count[d] = und_smaller(cut->rows, count - part * cut->rows);
            cut->left = parts - 1 - part;
            cut->last_rows = count - (parts - 1) * cut->rows;
        } else if (d < dim) {
            cut->box.start[d] = start + call % count;
            cut->box.count[d] = 1;
            call /= count;
        } else {
            cut->box.start[d] = start;
            cut->box.count[d] = count;
        }
        cut->element += cut->box.start[d] * cut->stride[d];
        cut->many *= cut->box.count[d];
    }
}

void und_cut_next(struct und_cut *cut)
{
    const int dim = cut->dim;
    if (cut->left == 0) {
        und_cut_go(cut, cut->call + 1);
        return;
    }
    /* Only the start moves along the dimension that is cut: no division for each transfer. */
    ++cut->call;
    cut->box.start[dim] += cut->rows;
    cut->element += cut->rows * cut->stride[dim];
    if (--cut->left == 0) {
        cut->many = cut->many / cut->box.count[dim] * cut->last_rows;
        cut->box.count[dim] = cut->last_rows;
    }
}
