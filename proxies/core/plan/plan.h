/*
 * The plan of a run, as descriptor and options together say it: settled once, before anything starts.
 * Nothing after it looks at options.
 */
#ifndef UND_PLAN_H
#define UND_PLAN_H

#include "interfaces/layout_backend.h"
#include "options/option.h"
#include "workload/workload.h"

enum und_calls { UND_AS_DESCRIBED, UND_ALL_COLLECTIVE, UND_ALL_INDEPENDENT };

/* The plan of a stream. */
struct und_stream_plan {
    const struct und_method *method;
    int64_t forced_transfer_bytes; /* of all variables; 0: as described */
    enum und_calls calls;          /* of all variables */
    bool restarts;                 /* a dump is read back after the schedule */
    int restart_dump;
    int64_t transfer_bytes;                            /* of the stream; see und_plan_transfer_bytes */
    int64_t least_transfer_bytes, most_transfer_bytes; /* of its variables */
    int64_t depth, most_depth; /* of its variables: calls in flight, see und_plan_depth, and as they state it */
    int64_t in_flight;         /* and that there can be, of the calls of a move */
    bool collective;           /* of the stream; see und_plan_collective */
    bool all_collective, some_collective; /* of its variables */
    bool sync;
    bool syncs_all;      /* behind every run of writes, rather than where the stream does */
    bool is_read_open;   /* others read its files while it has them open */
    bool lasting;        /* and reach storage before the dump ends */
    int64_t flush_bytes; /* flushed within a dump, to storage or from the buffer of the library; 0: not */
    bool direct;         /* as in the descriptor, past the page cache */
    bool packs;          /* files may be smaller than their payload */
    bool holds;          /* bytes that are written stay in memory until the next flush or close */
    const char *suffix;  /* of the files' names; NULL: none */
    bool (*is_member)(const char *name); /* of a file in the directory that a file is; NULL: it is a file */
    int64_t settings[UND_MAX_SETTINGS];
    struct und_pairs hints;    /* for MPI-IO, by default and as asked: of a key given twice the last counts */
    int64_t hinted_count;      /* stripe count that hints ask for; 0: none */
    int64_t hinted_size_bytes; /* stripe size, likewise */
    bool creates;              /* the method creates the files: by itself, or since hints ask for their layout */
    int64_t bytes;             /* that all dumps move, every pass counted */
    int64_t files;             /* of all dumps */
    int64_t other_inodes;      /* directories, and what operations without bytes create */
    int64_t stored_bytes;      /* when everything is written; small files take whole blocks */
};

struct und_plan {
    const char *directory; /* the run directory; NULL: not given */
    bool only_restarts;    /* from files of an earlier run there: nothing is written */
    int64_t repetitions;
    const char *requests, *output; /* a file that tells those of the storage, NULL: none; the result */
    bool keep, verify, drop_cache, verbose;
    bool latency;            /* of each data call is noted */
    const char *time_series; /* of them; NULL: none */
    double deadline_s;       /* of the moves of a rank in a dump; 0: none */
    double mix_reads;        /* between writes, for each of them; 0: none */
    int64_t rate_bytes;      /* per second, of a rank in a dump; 0: no limit */
    bool wears_out;          /* behind it, all ranks go on to the largest number of transfers of any */
    double time_scale;
    bool keep_pauses;         /* of the original, rather than its times */
    enum und_compute compute; /* what fills the time between events */
    int64_t shift_ranks;
    uint64_t seed;
    struct und_layout_request layout; /* of new files */
    struct und_stream_plan *streams;
};

/* How a variable of the stream is moved: as described, or as the options say, in calls that the method can make. */
int64_t und_plan_transfer_bytes(const struct und_variable *variable, const struct und_stream_plan *plan);
bool und_plan_collective(const struct und_variable *variable, const struct und_stream_plan *plan);
/* Calls of a rank in flight at a time; 0: each ends before the next begins. */
int64_t und_plan_depth(const struct und_variable *variable, const struct und_stream_plan *plan);

/* NULL with the error message. `file` is the descriptor's name for messages; strings of the options are
 * shared. */
struct und_plan *und_plan_new(const struct und_workload *workload, const struct und_options *options, const char *file,
                              struct und_error *error);
void und_plan_free(struct und_plan *plan);

/* The part of und_plan_new that schedules are made from: which dumps are read back, and when all is due. */
void und_plan_events(const struct und_workload *workload, const struct und_options *options, struct und_plan *plan);

#endif
