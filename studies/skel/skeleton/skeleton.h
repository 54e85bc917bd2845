/*
 * What a program that writes through ADIOS 1.13 needs to be measured. Skeletal applications that
 * `understudy skel source` generates carry this directory with them, and the I/O kernels in proxies/programs
 * are built from the same files, so that an application and its skeleton are measured alike. It needs MPI,
 * ADIOS and POSIX (with dlsym's RTLD_NEXT) and nothing else. internal.h says which file does what.
 *
 * A program is this, with its own arrays and, between the steps, whatever an application does:
 *
 *     MPI_Init(&argc, &argv);
 *     struct skeleton_options options = skeleton_defaults("gts-restart", "gts", SKELETON_KIND_SKELETON,
 *                                                            "gts_skel.xml");
 *     switch (skeleton_read_options(argc, argv, MPI_COMM_WORLD, &options)) ...    (or fill them yourself)
 *     struct skeleton *run = skeleton_start(&options, MPI_COMM_WORLD);            adios_init
 *     skeleton_check_capacity(run, 8 * nx + 4);                                    before anything is allocated
 *     while (skeleton_repetition(run))
 *         while (skeleton_step(run)) {                                            pause, barrier
 *             const int64_t file = skeleton_open(run, "restart");                 adios_open
 *             skeleton_group_size(run, file, 8 * nx + 4);                         adios_group_size
 *             skeleton_write(run, file, "nx", &nx);                               adios_write
 *             skeleton_write(run, file, "zion", zion);
 *             skeleton_close(run, file);                                          adios_close
 *         }
 *     skeleton_finish(run);                                                       adios_finalize, result
 *     MPI_Finalize();
 *
 * What is measured, per process and step, with CLOCK_MONOTONIC:
 *   open, write, close   seconds inside adios_open + adios_group_size, adios_write, adios_close.
 *   total                open + write + close. The program's own barriers, pauses and computing are in none.
 *   communication        of these, the seconds inside MPI's messages, collectives and communicator calls,
 *                        caught by MPI's profiling interface (PMPI), whatever the ADIOS method is.
 *   io                   of these, the seconds inside MPI_File_* and POSIX file calls (open, read, write, lseek,
 *                        close, fsync, mkdir, unlink, ioctl).
 *   rest                 the remainder: copying into the buffer, statistics, building the index. Clocked
 *                        on its own, not by subtraction: communication + io + rest = total is checked
 *                        (within 2 %), and a run where it does not hold has no result.
 *   library              ADIOS' own timers where the method has them (POSIX, MPI_LUSTRE, MPI_AMR):
 *                        Communication, I/O, Local metadata, Global metadata, ad_open, ad_write,
 *                        ad_overflow, ad_close. ADIOS tells them one open late; those of the last
 *                        step are fetched by one more open of a file that is removed at once. They overlap.
 * A call inside another counts once, for the outer one. Calls of other threads (MPI_AMR with threading=1)
 * are not counted; waiting for those threads then is rest.
 *
 * Every return code of ADIOS is checked (its programs end with exit status 0 after failing), and what is
 * on storage after each repetition must be at least the payload: else the run ends with one message on
 * stderr and a non-zero exit status, without a result.
 *
 * The result is the JSON that schemas/skeleton.schema.json and application.schema.json describe: `program` says
 * what ran, a stream is a group, a dump is a step, and `processes` in it has the arrays over the ranks.
 */
#ifndef SKELETON_H
#define SKELETON_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define _Noreturn [[noreturn]]
#endif

#define SKELETON_VERSION "1"

struct skeleton;

enum skeleton_kind {
    SKELETON_KIND_SKELETON,   /* generated from a descriptor; computes nothing */
    SKELETON_KIND_APPLICATION /* an application or its I/O kernel */
};

/* Where the program itself waits for all processes; never part of a measured time. Bits of `barriers`. */
enum skeleton_barrier {
    SKELETON_BEFORE_OPEN = 1,  /* "open" */
    SKELETON_BEFORE_WRITE = 2, /* "write": after adios_open and adios_group_size */
    SKELETON_BEFORE_CLOSE = 4, /* "close" */
    SKELETON_AFTER_CLOSE = 8,  /* "closed" */
    SKELETON_AFTER_STEPS = 16  /* "steps": after the last step of a repetition */
};

/* What an array may be filled with. */
enum skeleton_fill { SKELETON_FILL_RANK, SKELETON_FILL_INDEX, SKELETON_FILL_RANDOM, SKELETON_FILL_ZERO };

/* Start from skeleton_defaults(). Strings must live as long as the run. */
struct skeleton_options {
    const char *program; /* name in messages and in the result: letters, digits, '_', '.', '-' */
    const char
        *application; /* --application: what it is, or stands for; in the result; runs of the same are compared */
    enum skeleton_kind kind;
    int argc; /* the command line, for the result; skeleton_options notes it */
    char **argv;
    const char *config;     /* adios-config XML. Default: that of skeleton_defaults */
    const char *directory;  /* -o: run directory, empty or created. No default */
    const char *result;     /* -r: the result. Default: result.json */
    const char *method;     /* -a: ADIOS method of all groups. NULL: what the config says */
    const char *parameters; /* -p: parameters of that method; NULL with a method: none. Needs a method */
    int steps;              /* -s: times that each group is written in a repetition. Default 1 */
    int repetitions;        /* -i: Default 1 */
    bool append;            /* --append: the steps of a group go into one file. false: a file each */
    bool keep;              /* -k: files of the last repetition stay. Else all that the run made are removed */
    unsigned barriers;      /* -b: bits of enum skeleton_barrier. Default SKELETON_BEFORE_OPEN */
    int adios;              /* 1 or 2: the version of the library. Default 1. With 2, `method` is the engine (--engine),
                               and `parameters` are those of the engine (--parameter), joined by ';' */
    bool verify;            /* --verify, of ADIOS2: what a repetition wrote is read back and compared */
    enum skeleton_fill fill; /* --fill, of ADIOS2: contents of arrays */
    double pause_s;          /* --pause: sleep before each step, standing for the application's computing */
    /* Faults that can be injected, to see them in the measurement: */
    int slow_rank;                  /* --slow-rank RANK:SECONDS: storage is slow for this rank. -1: none */
    double slow_s;                  /* seconds that each of its closes spends longer in I/O */
    int64_t extra_collective_bytes; /* --extra-collective: an MPI_Allgather of so many bytes of each rank in
                                         every close, as if the method needed it. 0: none */
};

struct skeleton_options skeleton_defaults(const char *program, const char *application, enum skeleton_kind kind,
                                          const char *config);

/* Reads the options named above; collective over comm. Returns 0: go on; 1: --help, which rank 0 has printed;
 * 2: a usage error, which rank 0 has printed as one message on stderr. End with 0 or 2 then. */
enum skeleton_answer { SKELETON_GO = 0, SKELETON_HELP = 1, SKELETON_USAGE_ERROR = 2 };
int skeleton_read_options(int argc, char **argv, MPI_Comm comm, struct skeleton_options *options);

/* Creates the run directory and initializes ADIOS with the config, in which the method is replaced where one
 * is given. Collective over comm, which must be all processes. */
struct skeleton *skeleton_start(const struct skeleton_options *options, MPI_Comm comm);

/* Ends the run with one message, before anything is allocated, where a node's memory or the file system cannot hold
 * it: the arrays of all ranks of the node, as much again that ADIOS buffers, and the files of a repetition. bytes:
 * payload that this process writes in a step. Collective. */
void skeleton_check_capacity(struct skeleton *run, uint64_t step_bytes);

/* Begins the next repetition, or returns false. Ends the one before: its files are looked at and, but for the
 * last with `keep`, removed. Collective. */
bool skeleton_repetition(struct skeleton *run);

/* Begins the next step of the repetition (0, 1, ... < steps), or returns false. Pauses. */
bool skeleton_step(struct skeleton *run);

/* No further step will come: for a program that does not know their number when it starts. */
void skeleton_last_step(struct skeleton *run);

/* Index of the running step and repetition. */
int skeleton_step_index(const struct skeleton *run);
int skeleton_repetition_index(const struct skeleton *run);

/* adios_open for writing of the group's file <directory>/<group>.<step>.bp (or <group>.bp, with append).
 * One file is open at a time. */
int64_t skeleton_open(struct skeleton *run, const char *group);
/* adios_group_size; bytes: payload that this process will write, scalars and arrays. */
void skeleton_group_size(struct skeleton *run, int64_t file, uint64_t bytes);
void skeleton_write(struct skeleton *run, int64_t file, const char *variable, const void *data);
void skeleton_close(struct skeleton *run, int64_t file);

/* Fetches the last timers, ends ADIOS, writes the result, frees the run. Collective. */
void skeleton_finish(struct skeleton *run);

/* Ranks along dimension `index` of a balanced Cartesian grid, and where a rank stands in it; the last
 * dimension is the fastest. Prime factors, the largest first, go to the side that is shortest so far; then the
 * longest side is put first. */
int64_t skeleton_grid(int64_t ranks, int dimensions, int index);
int64_t skeleton_coordinate(int64_t rank, int64_t ranks, int dimensions, int index);

/* The number for a rank in a list, -1 for a rank that has none. */
int64_t skeleton_of_rank(int64_t rank, int64_t count, const int64_t *numbers);

/* Ends the run with the variable's name where its block is empty or exceeds the global size. */
void skeleton_check_block(const struct skeleton *run, const char *variable, int64_t offset, int64_t size,
                          int64_t whole);

/* count elements of the given size, or the end of the run with a message; NULL for none. Frees: the caller. */
void *skeleton_array(const struct skeleton *run, const char *name, size_t count, size_t element_bytes);

/* The element types of ADIOS. */
enum skeleton_type {
    SKELETON_I8,
    SKELETON_I16,
    SKELETON_I32,
    SKELETON_I64,
    SKELETON_U8,
    SKELETON_U16,
    SKELETON_U32,
    SKELETON_U64,
    SKELETON_F32,
    SKELETON_F64
};
/* rank: every element is the rank. index: 0, 1, ... (modulo the type's range). random: uniform, for floats in
 * 0 ... 1, the same in every run. zero. */
void skeleton_fill(const struct skeleton *run, void *data, size_t count, enum skeleton_type type,
                   enum skeleton_fill fill);

/* Ends all processes with one message: <program>: rank R on HOST: <subject>: ... */
_Noreturn void skeleton_die(const struct skeleton *run, const char *format, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif

#endif
