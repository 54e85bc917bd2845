#include "core/layout.h"

#include <string.h>

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

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
    return part * (n / parts) + smaller(part, n % parts);
}

/* Rows of dimension 0 that ranks before `rank` have. */
static int64_t rows_before(const struct und_variable *variable, int64_t ranks, int64_t rank)
{
    if (variable->rule == UND_EVEN)
        return even_before(variable->shape[0], ranks, rank);
    int64_t rows = 0;
    for (int i = 0; i < variable->run_count && rank > 0; ++i) {
        const int64_t some = smaller(rank, variable->runs[i].ranks);
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
                         int64_t rank, struct und_dataset *dataset, struct und_box *block, int64_t *content)
{
    const int64_t first = grid_elements_before(variable, ranks, group->first);
    const int64_t begin = grid_elements_before(variable, ranks, rank);
    dataset->ndims = 1;
    dataset->shape[0] = grid_elements_before(variable, ranks, group->end) - first;
    block->start[0] = begin - first;
    block->count[0] = grid_elements_before(variable, ranks, rank + 1) - begin;
    *content = first * und_type_bytes(variable->type);
}

void und_layout_place(const struct und_variable *variable, int64_t ranks, const struct und_group *group, int64_t rank,
                      struct und_dataset *dataset, struct und_box *block, int64_t *content)
{
    const bool all = group->first == 0 && group->end == ranks;
    dataset->type = variable->type;
    dataset->slabs = variable->rule != UND_GRID || !all;
    if (variable->rule == UND_GRID && !all) {
        place_packed(variable, ranks, group, rank, dataset, block, content);
        return;
    }
    dataset->ndims = variable->ndims;
    memcpy(dataset->shape, variable->shape, sizeof dataset->shape);
    *content = 0;
    if (variable->rule == UND_GRID) {
        grid_block(variable, rank, block);
        return;
    }
    const int64_t first = rows_before(variable, ranks, group->first), begin = rows_before(variable, ranks, rank);
    int64_t row_bytes = und_type_bytes(variable->type);
    for (int d = 1; d < variable->ndims; ++d) {
        block->start[d] = 0;
        block->count[d] = variable->shape[d];
        row_bytes *= variable->shape[d];
    }
    dataset->shape[0] = rows_before(variable, ranks, group->end) - first;
    block->start[0] = begin - first;
    block->count[0] = rows_before(variable, ranks, rank + 1) - begin;
    *content = first * row_bytes;
}

int64_t und_dataset_elements(const struct und_dataset *dataset)
{
    int64_t elements = 1;
    for (int d = 0; d < dataset->ndims; ++d)
        elements *= dataset->shape[d];
    return elements;
}

int64_t und_layout_largest_block(const struct und_variable *variable, int64_t ranks)
{
    int64_t bytes = und_type_bytes(variable->type), rows = 0;
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
    const int64_t most = transfer_bytes / und_type_bytes(dataset->type);
    int64_t stride = 1, inner = 1, elements = 1;
    cut->block = *block;
    cut->box = *block;
    cut->consecutive = true;
    cut->element = 0;
    for (int d = dataset->ndims - 1; d >= 0; --d) {
        cut->stride[d] = stride;
        cut->element += block->start[d] * stride;
        stride *= dataset->shape[d];
        elements *= block->count[d];
    }
    cut->dim = dataset->ndims - 1;
    cut->calls = 0;
    cut->rows = 0;
    if (elements == 0) {
        memset(&cut->box, 0, sizeof cut->box);
        return;
    }
    while (cut->dim > 0 && inner * block->count[cut->dim] <= most) {
        inner *= block->count[cut->dim];
        cut->consecutive = cut->consecutive && block->count[cut->dim] == dataset->shape[cut->dim];
        --cut->dim;
    }
    cut->rows = smaller(most / inner, block->count[cut->dim]);
    cut->calls = (block->count[cut->dim] - 1) / cut->rows + 1;
    cut->box.count[cut->dim] = cut->rows;
    for (int d = 0; d < cut->dim; ++d) {
        cut->calls *= block->count[d];
        cut->box.count[d] = 1;
    }
}

void und_cut_next(struct und_cut *cut)
{
    const int d = cut->dim;
    const int64_t end = cut->block.start[d] + cut->block.count[d];
    cut->element += cut->box.count[d] * cut->stride[d];
    cut->box.start[d] += cut->box.count[d];
    if (cut->box.start[d] == end) {
        cut->element -= cut->block.count[d] * cut->stride[d];
        cut->box.start[d] = cut->block.start[d];
        for (int outer = d - 1; outer >= 0; --outer) {
            cut->element += cut->stride[outer];
            if (++cut->box.start[outer] < cut->block.start[outer] + cut->block.count[outer])
                break;
            cut->element -= cut->stride[outer] * cut->block.count[outer];
            cut->box.start[outer] = cut->block.start[outer];
        }
    }
    cut->box.count[d] = smaller(cut->rows, end - cut->box.start[d]);
}
