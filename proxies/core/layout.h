/*
 * Which bytes of which file are a rank's: pure arithmetic on the descriptor, in time and memory
 * that do not grow with the number of ranks.
 *
 * A file holds the bytes of a group of consecutive ranks. Where the group is all ranks, a variable
 * lies in the file in its global C order. Where it is fewer, slabs (even, runs) lie as the group's
 * consecutive rows, and the blocks of a grid lie packed, rank after rank, as one dimension.
 */
#ifndef UND_LAYOUT_H
#define UND_LAYOUT_H

#include "core/workload.h"

/* Ranks first … end-1 share a file. */
struct und_group {
    int64_t index;
    int64_t first;
    int64_t end;
};

/* The group of a rank, and a group by its index, when `ranks` ranks form `groups` groups. */
struct und_group und_group_of(int64_t rank, int64_t ranks, int64_t groups);
struct und_group und_group_at(int64_t index, int64_t ranks, int64_t groups);

/*
 * The part of a variable that stands in a group's file: sets type, ndims, shape and slabs of the dataset
 * (shape[0] is 0 where the group has none of it), the block of the rank, and `content`, the byte
 * where the dataset begins in the variable as a whole (in global C order, or in the packed order of
 * all ranks), so that contents do not depend on how ranks share files.
 */
void und_layout_place(const struct und_variable *variable, int64_t ranks, const struct und_group *group, int64_t rank,
                      struct und_dataset *dataset, struct und_box *block, int64_t *content);

/* Elements of a dataset. */
int64_t und_dataset_elements(const struct und_dataset *dataset);

/* An upper bound, reached by at least one rank up to rounding, of the bytes in one rank's block. */
int64_t und_layout_largest_block(const struct und_variable *variable, int64_t ranks);

/*
 * Cuts a block into transfers: whole trailing dimensions where they fit, then rows of the
 * dimension before. `box` is the current one; each is consecutive in the block.
 */
struct und_cut {
    struct und_box box;
    int64_t element;  /* of the dataset, where the box begins */
    int64_t calls;    /* transfers of the whole block */
    bool consecutive; /* every box is consecutive in the dataset too */
    int dim;          /* dimension that is cut */
    int64_t rows;     /* of that dimension in one transfer */
    struct und_box block;
    int64_t stride[UND_MAX_DIMS];
};

/* transfer_bytes is at least one element. */
void und_cut_begin(struct und_cut *cut, const struct und_dataset *dataset, const struct und_box *block,
                   int64_t transfer_bytes);
void und_cut_next(struct und_cut *cut);

#endif
