/*
 * A workload as schemas/workload.schema.json defines it: what the descriptor says, checked, and
 * nothing that a run adds. Sizes are bytes, times are seconds since the start of the application.
 */
#ifndef UND_WORKLOAD_H
#define UND_WORKLOAD_H

#include "core/error.h"
#include "core/method.h"
#include "core/order.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { UND_MAX_DUMPS = 10000000, UND_MAX_FILES = 1024, UND_MAX_NAMES = 1024, UND_MAX_PASSES = 1000000 };

enum und_rule { UND_EVEN, UND_GRID, UND_RUNS, UND_CYCLIC };
enum und_layout { UND_SHARED, UND_FILE_PER_PROCESS, UND_GROUPED, UND_FLOOD };
enum und_operation { UND_WRITES, UND_READS };
enum und_role { UND_CHECKPOINT, UND_VISUALIZATION, UND_OUTPUT, UND_RESTART, UND_INPUT };
enum und_compute { UND_SLEEP, UND_BUSY, UND_STENCIL };
enum und_kind { UND_RANDOM, UND_ZERO, UND_CONSTANT, UND_SMOOTH };

/* What the bytes of a stream are like. */
struct und_content {
    enum und_kind kind;
    double compressibility; /* random: share of every 4 KiB that is zero bytes, 0 … 1 */
};

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
    char *at;               /* the variable whose place in the file it has; NULL: a place of its own */
};

struct und_operations {
    enum und_bare operation;
    int run_count;
    struct und_rows *runs; /* how many each rank makes */
};

struct und_dump {
    double time_s;
    double duration_s;       /* negative: not known */
    double compute_s;        /* by each rank, between its transfers */
    bool continues;          /* with the open files of the dump before */
    int first;               /* dump that opened its files, where each dump does unless it continues */
    int content;             /* number of that dump among those that do */
    int64_t described_bytes; /* of the descriptor and all passes, before any scale */
    int variable_count;
    struct und_variable *variables;
    bool repeats; /* the variables are those of the dump before, and shared with it */
    int operation_count;
    struct und_operations *operations;
    bool repeats_operations; /* likewise */
};

struct und_stream {
    char *name;
    enum und_role role;
    enum und_operation operation;
    bool append, rewrite, update; /* one at most; none: each dump has new files */
    int64_t names;                /* rewrite, update: sets of files used in turn */
    bool reopen;                  /* each dump opens and closes its files; append and update may keep them open */
    int extends;                  /* the stream into whose files this one writes; -1: none */
    int extended_by;              /* the one that writes into the files of this; -1: none */
    int reads;                    /* reads: the stream whose files it reads; -1: files made beforehand */
    bool notes_places;            /* variables of this stream, or of one that reads its files, have places of others */
    enum und_layout layout;
    int64_t groups; /* files per file index: 1, ranks (also of a flood), or the groups of the layout grouped */
    char *method;
    int64_t transfer_bytes;
    bool collective;
    struct und_order order; /* of transfers or, in a flood, of files */
    int64_t passes;         /* reads: how often a dump's bytes are read */
    bool steady;            /* transfers are spread over duration_s */
    bool direct, write_through;
    bool own_directories;        /* each rank's files, or each group's, lie in a directory of their own */
    bool removes;                /* rewritten files: they are created again, not truncated */
    int64_t sync_bytes;          /* flushed within a dump; 0: not */
    int64_t files_per_directory; /* 0: no directories */
    bool sync;
    bool turns; /* the ranks that share a file have it open one after the other */
    struct und_content content;
    int files; /* highest file index + 1 */
    int dump_count, dump_capacity;
    struct und_dump *dumps;
};

struct und_workload {
    char *name;
    int64_t ranks;
    bool scaled; /* made from a descriptor for another number of ranks */
    enum und_compute compute;
    int stream_count;
    struct und_stream *streams;
};

/* Reads the descriptor from text; `file` is its name for messages. NULL with the error message. */
struct und_workload *und_workload_read(const char *text, size_t bytes, const char *file, struct und_error *error);

/* The set of files of a dump: 0 … names-1 where files are written again, else its content. */
int und_stream_set(const struct und_stream *stream, int dump);

/* Contents that its sets of files have one after the other: dumps, but for those that continue. */
int und_stream_contents(const struct und_stream *stream);

/* Bytes of a variable over all ranks, and all its like ones. */
int64_t und_variable_bytes(const struct und_variable *variable);

/* Bytes of a dump that do not go over others of its files. */
int64_t und_dump_new_bytes(const struct und_dump *dump);

/* Multiplies the longest dimension of every variable (the first of equals) by the factor and rounds
 * it to the nearest whole number, at least 1; unequal slabs are rounded run by run, and where nothing would
 * be left of any, as many ranks as there are rows to share have one. *raised is the number of variables
 * that the factor alone would have left without an element. */
bool und_workload_scale(struct und_workload *workload, double factor, int64_t *raised, struct und_error *error);

void und_workload_free(struct und_workload *workload);

/* Bytes of one dump over all ranks, as it stands now; -1 when they do not fit 63 bits. */
int64_t und_dump_bytes(const struct und_dump *dump);

#endif
