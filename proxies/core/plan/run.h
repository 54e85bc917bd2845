/*
 * One run of the player: what it was asked to do, and what every part of it needs to know. Passed
 * by const pointer; nothing of a run is global but what a signal handler needs (die.h, stop.h).
 */
#ifndef UND_RUN_H
#define UND_RUN_H

#include "job/timing.h"
#include "options/option.h"
#include "plan/plan.h"
#include "plan/schedule.h"
#include "workload/pattern.h"
#include "workload/workload.h"

#include <mpi.h>

struct und_directory;
struct und_layout_log;
struct und_stencil;
struct und_watch;

struct und_run {
    const struct und_workload *workload;
    const struct und_plan *plan;
    struct und_schedule *schedule;
    struct und_pattern *pattern;
    struct und_stencil *stencil;       /* NULL: ranks do not compute together */
    struct und_layout_log *layout_log; /* layouts and hints of the files */
    struct und_directory *directory;
    struct und_watch *watch;
    MPI_Comm comm; /* of all ranks; returns errors */
    int rank;
    int ranks;
};

struct und_verification {
    int64_t bytes;
    int64_t wrong_bytes;
    char first[2048]; /* on rank 0: the message about the first wrong byte */
};

#endif
