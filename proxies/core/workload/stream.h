/*
 * A stream as its program: sets of files, and instructions that happen to them, step by step, as
 * docs/reference/program.md defines it. A program is as long as the descriptor: loops over dumps, passes, files and
 * ranks are never expanded. Sizes are bytes, times are seconds since the start of the application.
 */
#ifndef UND_STREAM_H
#define UND_STREAM_H

#include "text/strict.h"
#include "workload/order.h"
#include "workload/skew.h"
#include "workload/syscalls.h"
#include "workload/variable.h"

#include <stdbool.h>
#include <stdint.h>

enum { UND_MAX_DUMPS = 10000000, UND_MAX_NAMES = 1024, UND_MAX_PASSES = 1000000, UND_MAX_LOOKUPS = 1000000 };

enum und_operation { UND_WRITES, UND_READS };
enum und_role { UND_CHECKPOINT, UND_VISUALIZATION, UND_OUTPUT, UND_RESTART, UND_INPUT };
enum und_kind { UND_RANDOM, UND_ZERO, UND_CONSTANT, UND_SMOOTH };

/* The kind of the bytes of a stream. */
struct und_content {
    enum und_kind kind;
    double compressibility; /* random: share of every 4 KiB that is zero bytes, 0 … 1 */
};

/* Whose a file is. */
enum und_owner { UND_ALL_RANKS, UND_EACH_RANK, UND_EACH_GROUP, UND_EACH_ROW, UND_CALLERS };

/* Files of a stream: for each content of it `files` of each owner. */
struct und_file_set {
    const char *name; /* which the names of its files begin with */
    enum und_owner owner;
    int64_t groups; /* owners; of rows: ranks */
    int files;
    int64_t names; /* content k has the index k modulo so many; 0: k */
    bool numbered; /* false: one set for all time, which grows */
    bool owner_directories;
    int64_t files_in_directory; /* 0: no directories */
    bool prepared;              /* the run makes them before it takes time */
    struct und_tree *tree;      /* of calls of the system; NULL: the files have computed names */
};

/* How files are opened. */
enum und_opening { UND_OPEN_NEW, UND_OPEN_TRUNCATE, UND_OPEN_KEEP, UND_OPEN_READ };

enum und_code {
    UND_DO_BEGIN,   /* the next content */
    UND_DO_SKEW,    /* ranks wait, each for its own time */
    UND_DO_REMOVE,  /* the files, or rename them to a backup, if they are there */
    UND_DO_OPEN,    /* unless they are open */
    UND_DO_OPERATE, /* operations without bytes */
    UND_DO_COMPUTE, /* between transfers */
    UND_DO_SPREAD,  /* transfers, over the time that the dump lasts */
    UND_DO_MOVE,
    UND_DO_WAIT_ALL, /* for the moves that were begun */
    UND_DO_SYNC,
    UND_DO_CLOSE,
    UND_DO_PASSES,    /* the body so many times */
    UND_DO_IN_TURN,   /* the body by the ranks of a file one after the other */
    UND_DO_EACH_FILE, /* the body for each file of the layout flood */
    UND_DO_CALLS      /* of the system, on the files of a tree */
};

struct und_instruction {
    enum und_code code;
    int body; /* of a loop: so many instructions behind it are its body */
    union {
        const struct und_variable *variable;     /* UND_DO_MOVE */
        const struct und_operations *operations; /* UND_DO_OPERATE */
        const struct und_skew *skew;             /* UND_DO_SKEW */
        double seconds;                          /* UND_DO_COMPUTE, UND_DO_SPREAD */
        bool backup;                             /* UND_DO_REMOVE: rename them to a backup instead */
        bool described;                          /* UND_DO_SYNC: rather than where options or the method ask for it */
        int64_t times;                           /* UND_DO_PASSES */
    };
};

/* An entry of a stream: a dump, or equal ones. */
struct und_dump {
    double time_s, period_s;
    int count;
    double duration_s;       /* negative: not known */
    double compute_s;        /* by each rank, between its transfers */
    struct und_skew skew;    /* of its ranks, when they begin */
    int64_t described_bytes; /* of the descriptor and all passes, before any scale */
    int variable_count;
    struct und_variable *variables;
    struct und_call_list calls; /* of the system; none: variables and operations */
    bool repeats;               /* the variables are those of the entry before, and shared with it */
    int operation_count;
    struct und_operations *operations;
};

/* Reads between the writes of a rank, each of what it has written to the file last. */
struct und_lookups {
    int64_t every_bytes; /* of a rank, behind which there are some; 0: no reads */
    double calls;        /* each time, on average */
    int64_t transfer_bytes;
};

/* Dumps first … first+count-1 of a stream, all of one entry, which do the same. */
struct und_step {
    const struct und_dump *dump;
    int first, count;
    int from;             /* of the entry's dumps the first */
    bool begins;          /* each is a content of its own; false: all go on with that of the dump before */
    int content;          /* of the first: contents of the stream before it */
    int first_of_content; /* begins is false: the dump that the content began with */
    int instruction_count;
    const struct und_instruction *instructions;
};

struct und_stream {
    char *name;
    enum und_role role;
    enum und_operation operation;
    char *method;
    int64_t transfer_bytes;
    bool collective;
    struct und_order order; /* of transfers or of small files */
    bool direct, write_through;
    int64_t chunk_bytes; /* of datasets, at most; 0: as the method does */
    bool fill;           /* datasets are filled when they are made */
    int64_t sync_bytes;  /* flushed within a dump; 0: not */
    int64_t flush_bytes; /* from the library's buffer only; 0: not */
    struct und_lookups lookups;
    bool sync;
    struct und_content content;

    char *set_name;              /* of its own, where that is not the stream's; NULL: it is */
    struct und_file_set own_set; /* its files, where they are not those of another stream */
    const struct und_file_set *set;
    int behind;        /* the stream behind whose bytes this one writes; -1: none */
    int followed_by;   /* the one that writes behind the bytes of this; -1: none */
    int source;        /* the stream whose files it reads; -1: its own */
    bool notes_places; /* variables of this stream, or of one that reads its files, have places of others */
    enum und_opening opening;
    bool has_backup; /* its bytes are in a backup, too: of this stream's files, or of those that it extends */
    bool in_turn;    /* by the ranks of a file */
    int64_t passes;
    bool stays_open; /* files are closed behind their last use */
    int dump_count, entry_count, step_count;
    struct und_dump *entries;
    struct und_step *steps;
    struct und_instruction *instructions;
};

void und_streams_free(struct und_stream *streams, int count);

/* The keys content and order of a stream; an order that is not there is consecutive. */
bool und_content_read(struct und_strict *at, const json_t *stream, struct und_content *content);
bool und_order_read(struct und_strict *at, const json_t *stream, struct und_order *order);

/* The key lookups; every_bytes is 0 where it is not there. */
bool und_lookups_read(struct und_strict *at, const json_t *stream, struct und_lookups *lookups);

/* The step of a dump, its entry, and when it begins. */
const struct und_step *und_step_of(const struct und_stream *stream, int dump);
const struct und_dump *und_dump_of(const struct und_stream *stream, int dump);
double und_dump_time(const struct und_stream *stream, int dump);

/* The first instruction of that kind in the step; NULL: there is none. */
const struct und_instruction *und_step_has(const struct und_step *step, enum und_code code);

/* Number of the content that the dump is of, and the dump that it began with. */
int und_stream_content(const struct und_stream *stream, int dump);
int und_stream_first(const struct und_stream *stream, int dump);

/* Contents that its sets of files have one after the other: dumps, but for those that go on. */
int und_stream_contents(const struct und_stream *stream);

/* Does the content of the dump last, or is it overwritten by a later one? */
bool und_stream_lasts(const struct und_stream *stream, int dump);

/* Index of the set of files of a dump. */
int und_stream_set(const struct und_stream *stream, int dump);

/* Are its sets used in turn, rather than one for each content or one for all? */
bool und_stream_reuses(const struct und_stream *stream);

/* Such a set is kept when it is used again, and written from its first byte on; or it is emptied. */
bool und_stream_updates(const struct und_stream *stream);
bool und_stream_rewrites(const struct und_stream *stream);

/* Is there one set for all time, to which each dump is added? */
static inline bool und_stream_grows(const struct und_stream *stream)
{
    return !stream->own_set.numbered;
}

/* Bytes of one dump over all ranks, as it stands now; -1 when they do not fit 63 bits. */
int64_t und_dump_bytes(const struct und_dump *dump);

/* Bytes that a dump of a step moves over all ranks, each as often as it does; -1 when they do not fit 63 bits. */
int64_t und_step_bytes(const struct und_step *step);

/* Bytes of a dump that do not go over others of its files. */
int64_t und_dump_new_bytes(const struct und_dump *dump);

#endif
