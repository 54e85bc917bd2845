/*
 * The parts of a dump: variables, which have bytes, and operations, which have none. Shapes are in elements,
 * sizes in bytes.
 */
#ifndef UND_VARIABLE_H
#define UND_VARIABLE_H

#include "interfaces/method.h"
#include "text/error.h"
#include "text/strict.h"

#include <stdbool.h>
#include <stdint.h>

enum { UND_MAX_FILES = 1024 };

enum und_rule { UND_EVEN, UND_GRID, UND_RUNS, UND_CYCLIC };

/* Operations without bytes. */
enum und_bare { UND_OPEN, UND_STAT, UND_CREATE_EMPTY, UND_MKDIR, UND_RENAME, UND_UNLINK, UND_SYNC, UND_SEEK };

/* Consecutive ranks with the same number of rows, or of operations. */
struct und_rows {
    int64_t ranks;
    int64_t rows;
};

struct und_variable {
    char *name;
    int64_t count; /* like variables, one behind the other */
    enum und_type type;
    int ndims;
    int64_t shape[UND_MAX_DIMS]; /* elements, global, slowest dimension first */
    enum und_rule rule;
    int64_t grid[UND_MAX_DIMS]; /* rule grid: ranks along each dimension */
    int run_count;
    struct und_rows *runs; /* rule runs */
    int64_t block;         /* rule cyclic: rows */
    int file;
    int64_t transfer_bytes; /* the stream's, unless the variable has its own */
    bool collective;        /* likewise */
    bool nonblocking;       /* its moves are begun, and waited for later */
    int64_t depth;          /* calls of a rank in flight at a time; 1: each ends before the next begins */
    char *place;            /* the variable whose place in the file it has; NULL: a place of its own */
};

struct und_operations {
    enum und_bare operation;
    int run_count;
    struct und_rows *runs; /* how many each rank makes */
};

/* As the descriptor calls them, ending with NULL. */
extern const char *const und_type_names[], *const und_rule_names[], *const und_bare_names[];

static inline int64_t und_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t und_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* a * b of numbers that are not negative, or -1 when the product or one of them does not fit. */
int64_t und_product(int64_t a, int64_t b);

/* A copy of the text; NULL when memory is out. */
char *und_text_copy(const char *text);

bool und_strict_no_memory(struct und_strict *at);

/* Bytes of a variable over all ranks, and all its like ones; -1 when they do not fit 63 bits. */
int64_t und_variable_bytes(const struct und_variable *variable);

/* Bytes of all variables, or of those that have places of their own; likewise. */
int64_t und_variables_bytes(const struct und_variable *variables, int count);
int64_t und_variables_new_bytes(const struct und_variable *variables, int count);

/* The key that says how a variable with a shape is divided over the ranks. */
bool und_split_read(struct und_strict *at, const json_t *object, const char *key, int64_t ranks,
                    struct und_variable *variable);

/* The key runs: [ranks, `what` of each], whose ranks add up to those of the workload, and the rest to at
 * most `most`; *sum says to what. */
bool und_rows_read(struct und_strict *at, const json_t *object, const char *what, int64_t ranks, int64_t most,
                   int *count, struct und_rows **runs, int64_t *sum);

/* Two variables may not get the same name, also not by the numbers that a count adds. */
bool und_variables_check_names(struct und_strict *at, const struct und_variable *variables, int all);

void und_variables_free(struct und_variable *variables, int count);
void und_operations_free(struct und_operations *operations, int count);

#endif
