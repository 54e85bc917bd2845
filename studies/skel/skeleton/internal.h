/*
 * What the files of the skeleton's runtime share, and no program needs: the run, its records, and the
 * functions of one file that another calls. skeleton.h says what all of it is for.
 *
 *   run.c        start, steps and end of a run        calls.c    intercepted calls and their clock
 *   options.c    the command line                     config.c   the adios-config
 *   files.c      files of the run: sizes, removal     stop.c     the end of a run that fails or is stopped
 *   capacity.c   memory and disk                      result.c   the measurement
 *   arrays.c     decompositions and contents          adios1.c   the library, ADIOS 1.13; or
 *                                                     output.cpp ADIOS2
 */
#ifndef SKELETON_INTERNAL_H
#define SKELETON_INTERNAL_H

#include "skeleton.h"

#include "interfaces/mount.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#define _Noreturn [[noreturn]]
#endif

/* The timers of the last step are fetched by opening one more file. */
#define SKELETON_TIMERS ".timers.bp" /* no group begins with a dot */

enum phase { PHASE_OPEN, PHASE_WRITE, PHASE_CLOSE, PHASES };
enum { LIBRARY_TIMERS = 8, MAX_GROUPS = 64, MAX_GROUP_BYTES = 200, PATH_BYTES = 4096, NAME_BYTES = 256, BARRIERS = 5 };

/* ---- calls.c ---- */

enum state { STATE_REST, STATE_COMMUNICATION, STATE_IO, STATES };

struct skeleton_times {
    double begin_s, end_s; /* on the clock */
    double seconds[STATES];
};

double skeleton_now_s(void);
/* Between the two, calls are intercepted. Both read the clock once, for a process may be held up between two. */
double skeleton_clock_begin(void);
void skeleton_clock_end(struct skeleton_times *times);
/* The clock's state from now on. */
void skeleton_clock_turn(enum state next);

/* ---- The run ---- */

/* One group written in one step by this process. Times since the start of the repetition. */
struct record {
    int repetition, step, group;
    double start_s[PHASES], end_s[PHASES], seconds[PHASES];
    int64_t operations[PHASES];
    double spent_s[STATES];
    bool has_library;
    double library_s[LIBRARY_TIMERS];
    int64_t bytes;
    int64_t file_bytes; /* on rank 0; -1: unknown */
    int64_t files;      /* on rank 0 */
};

struct group {
    char name[NAME_BYTES];
    bool has_timers;      /* the method keeps timers */
    bool transforms;      /* the bytes of its files depend on the contents */
    int64_t buffer_bytes; /* that a process can write in a step */
    int last;             /* its latest record, -1 before the first */
    int opened;           /* the latest step that was opened in this repetition, -1 before the first */
};

struct skeleton {
    struct skeleton_options options;
    MPI_Comm comm, node;
    int rank, ranks, node_ranks;
    char host[NAME_BYTES];
    char started[32];
    struct und_storage storage; /* on rank 0: what the run directory is on, before the run */
    char *config_text;          /* the config as it was given to ADIOS */
    char config[PATH_BYTES];
    FILE *config_file; /* on rank 0, until ADIOS has read it */
    bool wrote_config, made_directory;
    int directory;              /* descriptor of the run directory; every file is removed relative to it */
    char temporary[PATH_BYTES]; /* the result while it is written; empty: not yet, or no longer */
    int repetition, step;
    double start_s; /* of the repetition, on the clock */
    struct group groups[MAX_GROUPS];
    int group_count;
    struct record *records;
    int record_count, record_capacity, first_of_repetition;
    bool is_open, opened_timers;
    bool is_verifying; /* what does not verify stays, if it is to be kept */
    char *collected;   /* buffer of the extra collective */
};

extern const char *const skeleton_barrier_names[BARRIERS]; /* by the bits of enum skeleton_barrier */

/* ---- config.c ---- */

/* Reads the config, and writes it with another method into the run directory where one is given. */
void skeleton_prepare_config(struct skeleton *run);

/* Collective: calls adios_init and returns its code. Rank 0, the only one whose ADIOS reads the config, names it by
 * its descriptor: where the file is gone, ADIOS 1.13 fails on rank 0 and hangs on the other ranks. */
int skeleton_init_adios(struct skeleton *run);
bool skeleton_method_has_timers(const struct skeleton *run, const char *group);
/* Is a variable of the group compressed, or otherwise transformed? */
bool skeleton_group_has_transforms(const struct skeleton *run, const char *group);
/* Size of the buffer that must hold all that a process writes in a step; INT64_MAX: no limit. */
int64_t skeleton_buffer_bytes(const struct skeleton *run, const char *group);
/* Do its steps stay in the buffer until that is full? */
bool skeleton_group_aggregates_time(const struct skeleton *run, const char *group);

/* ---- files.c ---- */

/* Creates the run directory or checks that it is empty, and opens it. */
void skeleton_prepare_directory(struct skeleton *run);
/* <group>.<step>.bp, or <group>.bp with append; the name in the run directory, and the path for ADIOS. */
void skeleton_file_name(const struct skeleton *run, const char *group, int step, char name[NAME_BYTES]);
bool skeleton_file_path(const struct skeleton *run, const char *name, char path[PATH_BYTES]);
/* The text behind a '.' and a number of at most `maximum`; NULL where there is none. */
const char *skeleton_behind_number(const char *text, int maximum);
/* Bytes and number of the regular file NAME and of those in its directory. */
void skeleton_measure_file(const struct skeleton *run, const char *name, int64_t *bytes, int64_t *files);
/* Removes these. */
void skeleton_remove_file(const struct skeleton *run, const char *name);
/* Removes all files that the run wrote up to here, and the run directory if the run created it. Safe in a
 * signal handler. */
void skeleton_remove_all(const struct skeleton *run);
/* Neither a link nor a directory. */
void skeleton_remove_regular(int directory, const char *name);
void skeleton_remove_config(const struct skeleton *run);
void skeleton_remove_directory(const struct skeleton *run);
/* Is there anything, of whatever kind, where this file or its subfiles would be? */
bool skeleton_file_exists(const struct skeleton *run, const char *name);
/* Is the run directory still where its path says? ADIOS opens its files by path. */
bool skeleton_directory_is_there(const struct skeleton *run);

/* ---- run.c: steps and their records, for the files that call ADIOS ---- */

/* Begins a record for the group in this step; path: that of its file. */
struct record *skeleton_open_record(struct skeleton *run, const char *group, char path[PATH_BYTES]);
/* The one that was opened. */
struct record *skeleton_record(struct skeleton *run);
/* Around one call of ADIOS: its phase, and where the time in it goes. */
void skeleton_begin_phase(const struct skeleton *run, struct record *record, enum phase phase);
void skeleton_end_phase(const struct skeleton *run, struct record *record, enum phase phase);
/* Within the phase of closing: the faults that the options ask for. */
void skeleton_inject_faults(const struct skeleton *run);
/* Ends the record after its last call; communication, I/O and rest must be all of its time. */
void skeleton_close_record(struct skeleton *run, const struct record *record);
/* A barrier where the options ask for one. */
void skeleton_wait(struct skeleton *run, enum skeleton_barrier place);

/* ---- adios1.c or output.cpp: the library ---- */

extern const char skeleton_library_name[], skeleton_library_version[];
/* Ends the run where the options name what the library has not. */
void skeleton_check_library_options(struct skeleton *run);
void skeleton_start_library(struct skeleton *run);
/* Sets what the library knows of a group. */
void skeleton_describe_group(struct skeleton *run, struct group *group);
void skeleton_finish_library(struct skeleton *run);
/* The directory of the file NAME is NAME followed by this. */
extern const char skeleton_folder_ending[];
/* Is it one of the files in the directory `folder` of a file? Safe in a signal handler. */
bool skeleton_is_subfile(const struct skeleton *run, const char *entry, const char *folder);

/* ---- stop.c ---- */

/* The end of a run for a reason that all processes know: rank `speaker` prints, all leave in order. */
_Noreturn void skeleton_leave(struct skeleton *run, int speaker, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* From now on, or with NULL no longer, a signal ends the run without its files. */
void skeleton_catch_signals(const struct skeleton *run);

/* ---- result.c ---- */

void skeleton_write_result(struct skeleton *run);

#ifdef __cplusplus
}
#endif

#endif
