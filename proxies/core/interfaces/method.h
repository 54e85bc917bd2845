/*
 * An I/O method: which interface moves the bytes. One file in proxies/methods/ defines one
 * `const struct und_method und_method_<name>`; the build lists the folder, nothing else names it.
 * <name>.cmake beside it says what it links and, where the library is missing, sets the reason, so
 * that the method still compiles and is listed as unavailable.
 *
 * The machine decides who takes part, in which order and how large a transfer is; a method only
 * carries out one call at a time. Methods end the run through die.h when an operation fails or
 * moves fewer bytes than asked: a benchmark that lost an operation has no result.
 */
#ifndef UND_METHOD_H
#define UND_METHOD_H

#include "text/error.h"

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

enum { UND_MAX_DIMS = 8, UND_MAX_SETTINGS = 16, UND_MAX_DEPTH = 4096 };

/* Element types of the workload contract; UND_BYTE, UND_I8 and UND_U8 have one byte. */
enum und_type { UND_BYTE, UND_I8, UND_U8, UND_I16, UND_U16, UND_I32, UND_U32, UND_I64, UND_U64, UND_F32, UND_F64 };

/* Bytes of one element. */
static inline int64_t und_type_bytes(enum und_type type)
{
    static const int8_t bytes[] = {
        [UND_BYTE] = 1, [UND_I8] = 1,  [UND_U8] = 1,  [UND_I16] = 2, [UND_U16] = 2, [UND_I32] = 4,
        [UND_U32] = 4,  [UND_F32] = 4, [UND_I64] = 8, [UND_U64] = 8, [UND_F64] = 8};
    return bytes[type];
}

/* One variable as it stands in one file. */
struct und_dataset {
    const char *name; /* unique in the file for files of one dump; what stands before a '/' is a group */
    enum und_type type;
    int ndims;
    int64_t shape[UND_MAX_DIMS]; /* elements, slowest dimension first, of this file's part */
    int64_t file_offset;         /* byte where it starts, for methods that address bytes */
    bool slabs;                  /* each rank's block is consecutive bytes; false: it may not be */
    bool collective;             /* calls that move it are collective over the ranks of the file */
    bool exists;                 /* an earlier dump made it in this file, and it is overwritten */
    int64_t first_row;           /* rows that earlier time steps of an appended file hold under this name, with
                                     this type and these trailing dimensions; 0 opens a new name, and where
                                     type or trailing dimensions changed the name is <name>_state<k> */
    int64_t earlier_steps;       /* that hold these rows */
};

/* One transfer of one rank: a box of a dataset, in elements; contiguous in memory, C order. A box
 * whose count is 0 in some dimension is empty: collective calls need it, independent ones never see it. */
struct und_box {
    int64_t start[UND_MAX_DIMS];
    int64_t count[UND_MAX_DIMS];
};

enum und_mode {
    UND_CREATE, /* the machine has just made the file, empty; read and write */
    UND_EXTEND, /* the file holds what ranks before this one wrote in their turns, what another stream wrote before
                   these bytes, or an earlier dump; read and write */
    UND_READ    /* the file exists; read only */
};

/* How a file is opened. Every rank of `comm` calls open, close and sync together; `comm` holds just
 * the ranks that have bytes in the file. */
struct und_open {
    const char *path; /* for messages; what is opened is und_directory_name of it (run_directory.h) */
    const struct und_directory *directory;
    MPI_Comm comm;
    enum und_mode mode;
    bool turns;              /* comm is this rank alone; others have the file open before and after it */
    bool write_through;      /* every write returns with its bytes on storage; only where the method can */
    bool append;             /* datasets grow along dimension 0 while the file stays open */
    bool looks_up;           /* reads are made between writes, or by others through the same open */
    bool lasting;            /* sync waits until storage has the bytes; false: until the system has them */
    int64_t transfer_bytes;  /* maximum of any call */
    int64_t bytes;           /* that this rank will write up to the first sync or close; 0: not known */
    const char *part;        /* the file beside `path` that this rank has made, see `part` below; else NULL */
    const int64_t *settings; /* options in the order of the method's rows; NULL: defaults */
    bool creates;            /* UND_CREATE: there is no file yet, the method creates it exclusively, once for comm */
    MPI_Info hints;          /* for MPI-IO; MPI_INFO_NULL: none */
    int *created;            /* UND_CREATE, rank 0 of comm: descriptor of the new file, open for reading and
                                writing; a method that keeps it sets -1, else the machine closes it. Else -1 */
    int64_t *operations;     /* the method adds one for every call it makes of its interface */
};

/* An option of a method, given as -m <method>.<name>=<value>. */
struct und_setting {
    const char *name;
    const char *const *choices; /* words, ending with NULL: the value is the index; NULL: a number */
    bool bytes;                 /* a number of bytes, with units */
    int64_t most;               /* of a number; the minimum is 0 */
    const char *default_value;  /* default, read like a given value */
    const char *help;
    /* Optional: words of the library that the method does not take, ending with NULL, and why. */
    const char *const *refused;
    const char *why_refused;
};

/* How a stream uses the method. */
struct und_use {
    bool append;
    bool shares;        /* several ranks have a file open together */
    bool collective;    /* all data calls are */
    bool sync;          /* each dump is flushed; `settle` may say no */
    bool must_sync;     /* the user asks for it */
    bool lasts;         /* each dump, or its parts, are to be on storage when they end */
    bool within;        /* there are flushes within a dump */
    bool packs;         /* files may be smaller than the payload; for `settle` to say */
    bool holds;         /* what is given to write stays as it is until the next sync or close; for `settle` to say */
    const char *suffix; /* of the files' names, by default the method's; for `settle` to change */
    bool directories;   /* files are directories, see is_member; for `settle` to say */
};

/* The maximum that a rank moves in a stream. */
struct und_load {
    int64_t ranks;          /* that share a file */
    int64_t step_bytes;     /* of a dump */
    int64_t step_calls;     /* of a dump */
    int64_t transfer_bytes; /* of a call */
    int64_t depth;          /* calls in flight at a time, where the method queues them; else 0 */
    bool append;
};

/* Abilities that a program may ask of a method besides creating, writing, reading, flushing and closing files of one
 * dump (docs/reference/program.md). */
enum und_ability {
    UND_CAN_KEEP = 1 << 0,      /* open … keep: datasets of an earlier dump are overwritten, or grow */
    UND_CAN_EMPTY = 1 << 1,     /* open … truncate, or new where a file of that name was removed */
    UND_CAN_SHARE = 1 << 2,     /* write behind or read what another stream has in the file */
    UND_CAN_READ_BACK = 1 << 3, /* go on with files that are open, and read what was written to them */
    UND_CAN_EACH_FILE = 1 << 4, /* the loop over files, each opened by one rank */
    UND_CAN_WRITE_THROUGH = 1 << 5,
    UND_CAN_LOOK_UP = 1 << 6, /* read what was just written, between two writes */
    UND_CAN_CALL = 1 << 7,    /* make the calls of the system that a program makes */
    UND_CAN_BEGIN = 1 << 8    /* begin moves, and wait for them later */
};

struct und_directory;
struct und_run;
struct und_file; /* each method has its own */

struct und_method {
    const char *name;
    const char *unavailable; /* NULL, or why it cannot be used in this build */
    const char *suffix;      /* of its files' names, e.g. ".h5"; NULL: none */
    bool has_files;          /* false: nothing reaches storage (null) */
    bool creates;            /* its open creates files, as applications do; not where a layout is asked for */
    bool replaces;           /* its library replaces the files that it is given: they lose their layout */
    bool hides_calls; /* a library makes its calls of the system, and does not say all that they report: see calls.h */
    bool complete;    /* it reads only variables that were written: moves cannot end early */
    bool buffers;     /* its library keeps bytes of a time step: appended files are flushed after each one */
    bool hands_over;  /* its library keeps bytes of calls, which a flush hands to the system */
    bool waits;       /* its library reads in threads, which hang where a file ends before what they want */
    bool flushes_in_flight; /* `sync` flushes behind transfers that are in flight, and awaits them */
    bool collective;        /* the interface has collective data calls; false: -c is refused or meaningless */
    unsigned can;           /* of enum und_ability */
    /* Optional: bytes that one call of its library can move. Longer transfers are cut, alike on all ranks. */
    int64_t most_call_bytes;
    /* Optional, of a method that uses MPI-IO and can create files: the hints that it asks for by default, as
     * KEY=VALUE, ending with NULL. NULL: the method takes no hints. */
    const char *const *hints;
    /* Optional: rows of options, ending with a name NULL; at most UND_MAX_SETTINGS - 1. */
    const struct und_setting *settings;
    /* Optional: can the values be used for a stream like this, and what do they change? False with a
     * message that names the options. */
    bool (*settle)(const int64_t *values, struct und_use *use, struct und_error *error);
    /* Optional, of a method that may keep the bytes of a file of `size` ranks in subfiles, the files
     * <path>.dir/<name of the file>.<k>: the k of the part with the bytes of `rank`, counted from 0. The
     * ranks of a part are consecutive, and the first of them makes it. Negative: the values make no subfiles. */
    int64_t (*part)(const int64_t *values, int64_t rank, int64_t size);
    /* Optional, not timed, on the rank that made it: is the closed file or part whole? For interfaces that
     * report success whatever became of the bytes. False with an error message. */
    bool (*whole)(const struct und_directory *directory, const char *path, struct und_error *error);
    /* Optional, of a method whose files may be directories: is it the name of a file that its library makes in one?
     * Safe in a signal handler. And how many those are, of a file of `size` ranks, at most. */
    bool (*is_member)(const char *name);
    int64_t (*members)(const int64_t *values, int64_t size);
    /* Optional: bytes that the method and its library allocate in a rank, at most. */
    int64_t (*memory)(const int64_t *values, const struct und_load *load);
    /* Optional: does this system permit the method? False with the reason. */
    bool (*usable)(struct und_error *error);
    /* Optional, on one rank, which works in the run directory: can the values be used there? */
    bool (*probe)(const struct und_run *run, const int64_t *values, struct und_error *error);
    /* Writes "library version" into text; NULL where no library beyond MPI and C is used. */
    void (*version)(char *text, int size);

    /* Required. Returns the method's handle; close frees it. */
    struct und_file *(*open)(const struct und_open *how);
    /* Optional, collective over comm (ranks without a part in the dataset call it too): the dataset
     * is about to be moved. `block` is this rank's part, empty where it has none; every box up to the
     * next define lies in it, and is a run of consecutive elements of the block in C order. */
    void (*define)(struct und_file *file, const struct und_dataset *dataset, const struct und_box *block);
    /* With hints: those in force on an open file. The caller frees them; MPI_INFO_NULL where the file is
     * not opened by MPI-IO. */
    void (*hints_in_force)(const struct und_file *file, MPI_Info *hints);
    /* Optional: the descriptor of an open file, that this rank may flush alone. */
    int (*descriptor)(const struct und_file *file);
    /* Required. Move the box between `data` and the file. */
    void (*write)(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box,
                  const void *data);
    void (*read)(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box, void *data);
    /* With UND_CAN_BEGIN: begin to move the box, whose memory stays as it is until `wait` has seen all that was begun
     * in the file. */
    void (*begin)(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box, void *data,
                  bool writes);
    void (*wait)(struct und_file *file);
    /* Optional, with `finish`: calls of a rank in flight at a time in an independent move that states `stated` of them;
     * 0: each ends before the next begins. At most UND_MAX_DEPTH. */
    int64_t (*depth)(const int64_t *values, int64_t stated);
    /* Optional: memory of so many bytes, aligned to pages, for so many transfers in flight; the same for all streams.
     * NULL: any will do. */
    unsigned char *(*transfer_memory)(const int64_t *values, int64_t depth, int64_t bytes);
    /* Waits for any transfer that was begun in the file, where no other has such, and returns its memory. */
    void *(*finish)(struct und_file *file);
    /* Required, collective over comm: everything written so far is on storage on return. */
    void (*sync)(struct und_file *file);
    void (*close)(struct und_file *file);
};

/* Bytes of the box. */
int64_t und_box_bytes(const struct und_dataset *dataset, const struct und_box *box);

/* The runs of consecutive elements that a box has in its dataset, in C order. */
struct und_spans {
    int64_t elements; /* of each span */
    int64_t left;     /* spans still to come */
    int64_t at;       /* element of the dataset where the next span begins */
    int dims;         /* leading dimensions that number the spans */
    int64_t index[UND_MAX_DIMS];
    int64_t count[UND_MAX_DIMS];
    int64_t stride[UND_MAX_DIMS];
};

void und_spans_begin(struct und_spans *spans, const struct und_dataset *dataset, const struct und_box *box);

/* Gives the first element of the next span; false when there is none. */
bool und_spans_next(struct und_spans *spans, int64_t *element);

/* The same in bytes of the file, for methods that address these. */
struct und_runs {
    struct und_spans spans;
    int64_t bytes;  /* of each run */
    int64_t offset; /* of the one in hand */
    int64_t origin, size;
};

static inline void und_runs_begin(struct und_runs *runs, const struct und_dataset *dataset, const struct und_box *box)
{
    runs->origin = dataset->file_offset;
    runs->size = und_type_bytes(dataset->type);
    if (dataset->ndims == 1) {
        runs->spans.at = box->start[0];
        runs->spans.elements = box->count[0];
        runs->spans.left = box->count[0] > 0;
        runs->spans.dims = 0;
    } else {
        und_spans_begin(&runs->spans, dataset, box);
    }
    runs->bytes = runs->spans.elements * runs->size;
}

static inline bool und_runs_next(struct und_runs *runs)
{
    int64_t element = runs->spans.at;
    if (runs->spans.dims == 0 ? runs->spans.left-- == 0 : !und_spans_next(&runs->spans, &element))
        return false;
    runs->offset = runs->origin + element * runs->size;
    return true;
}

/* A need of a program: its name in --list, the ability, and what is said of a method that lacks it. */
struct und_need {
    const char *name;
    enum und_ability ability;
    const char *what;
};
enum und_need_of {
    UND_UPDATE,
    UND_REOPEN,
    UND_REWRITE,
    UND_EXTENDS,
    UND_READS_OTHER,
    UND_READS_OPEN,
    UND_CONTINUES,
    UND_SMALL_FILE_SETS,
    UND_WRITE_THROUGH,
    UND_LOOKS_UP,
    UND_MAKES_CALLS,
    UND_BEGINS,
    UND_NEEDS
};
extern const struct und_need und_needs[UND_NEEDS];

/* All methods of this build in the order of their names, ending with NULL (generated from the folder). */
extern const struct und_method *const und_methods[];

/* The method of that name, or NULL. */
const struct und_method *und_method_find(const char *name);

#endif
