/*
 * Which bytes of which file are a rank's: pure arithmetic on the descriptor, in time and memory
 * that do not grow with the number of ranks.
 *
 * A file holds the bytes of a group of consecutive ranks. Where the group is all ranks, a variable
 * lies in the file in its global C order. Where it is fewer, slabs (even, runs) lie as the group's
 * consecutive rows, and the blocks of a grid lie packed, rank after rank, as one dimension. Rows that
 * are dealt in blocks (cyclic) lie in a group's file as they would if the group were all ranks.
 */
#ifndef UND_DECOMPOSITION_H
#define UND_DECOMPOSITION_H

#include "workload/stream.h"

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
 * (shape[0] is 0 where the group has none of it), and the block of the rank.
 */
void und_decomposition_place(const struct und_variable *variable, int64_t ranks, const struct und_group *group,
                             int64_t rank, struct und_dataset *dataset, struct und_box *block);

/* The rows of dimension 0 that a rank has, where the rule is no grid: row k of them is the variable's row
 * first + k + k / block * leap. */
struct und_share {
    int64_t count;
    int64_t first;
    int64_t block, leap;
};

struct und_share und_decomposition_share(const struct und_variable *variable, int64_t ranks, int64_t rank);

/* The blocks of a rank: one, or several of a cyclic variable. */
struct und_deal {
    int64_t blocks;
    int64_t step;      /* rows from one to the next */
    int64_t last_rows; /* of the last one */
};

/* The blocks of the rank; und_decomposition_place gives the first. */
struct und_deal und_decomposition_deal(const struct und_variable *variable, int64_t ranks,
                                       const struct und_group *group, int64_t rank, const struct und_box *block);

/* Elements of a dataset. */
int64_t und_dataset_elements(const struct und_dataset *dataset);

/* What one rank has of a file that is one row: such files are open one after the other. */
struct und_variable und_decomposition_row(const struct und_variable *variable);

/* An upper bound, reached by at least one rank up to rounding, of the bytes in one rank's block. */
int64_t und_decomposition_largest_block(const struct und_variable *variable, int64_t ranks);

/*
 * Cuts a block into transfers: whole trailing dimensions where they fit, then rows of the
 * dimension before. `box` is the current one; each is consecutive in the block. Where a rank has
 * several blocks, they are cut one after the other, and no transfer is in two of them.
 */
struct und_cut {
    struct und_box box;
    int64_t element;  /* of the dataset, where the box begins */
    int64_t many;     /* elements of the box */
    int64_t calls;    /* transfers of all blocks */
    int64_t elements; /* of all blocks */
    int64_t call;     /* number of the current one */
    bool consecutive; /* every box is consecutive in the dataset too */
    int ndims;
    int dim;           /* dimension that is cut */
    int64_t rows;      /* of that dimension in one transfer, */
    int64_t last_rows; /* and in the last one along it, */
    int64_t left;      /* which comes after so many more */
    struct und_box block;
    struct und_deal deal;
    int64_t calls_of_block;
    int64_t stride[UND_MAX_DIMS];
};

/* transfer_bytes is at least one element. und_cut_begin_dealt is for several blocks. */
void und_cut_begin(struct und_cut *cut, const struct und_dataset *dataset, const struct und_box *block,
                   int64_t transfer_bytes);
void und_cut_begin_dealt(struct und_cut *cut, const struct und_dataset *dataset, const struct und_box *block,
                         const struct und_deal *deal, int64_t transfer_bytes);

/* The maximum of transfers that a rank makes of the variable. */
int64_t und_decomposition_most_calls(const struct und_variable *variable, int64_t ranks, int64_t transfer_bytes);

/* To a transfer by its number, 0 … calls-1, and to the next one. */
void und_cut_go(struct und_cut *cut, int64_t call);
void und_cut_next(struct und_cut *cut);

#endif
