/*
 * One run of the player: what it was asked to do, and what every part of it needs to know. Passed
 * by const pointer; nothing of a run is global but what a signal handler needs (storage.h).
 */
#ifndef UND_RUN_H
#define UND_RUN_H

#include "core/option.h"
#include "core/pattern.h"
#include "core/plan.h"
#include "core/schedule.h"
#include "core/stencil.h"
#include "core/timing.h"
#include "core/workload.h"

#include <mpi.h>

struct und_striped;

struct und_run {
    const struct und_workload *workload;
    const struct und_plan *plan;
    const struct und_schedule *schedule;
    struct und_pattern *pattern;
    struct und_stencil *stencil; /* NULL: ranks do not compute together */
    struct und_striped *striped; /* layouts and hints of the files */
    MPI_Comm comm;               /* of all ranks; returns errors */
    int rank;
    int ranks;
};

/* What one event did, over all ranks. */
struct und_outcome {
    struct und_summary phases[UND_PHASES];
    bool took_place[UND_PHASES];
    int64_t bytes;
    int64_t file_bytes; /* -1: not known */
    int64_t files;
};

struct und_verification {
    int64_t bytes;
    int64_t wrong_bytes;
    char first[2048]; /* on rank 0: the message about the first wrong byte */
};

/* With restart_from: are the files there that the restarts read? False with the error message on every rank.
 * Collective. */
bool und_run_finds_files(const struct und_run *run, struct und_error *error);

/* Plays the schedule once; `outcomes` has one element per event and is filled on every rank. Adds to
 * *verification with --verify. Leaves no files, but with `keep`. Collective. */
void und_run_repetition(const struct und_run *run, bool keep, struct und_outcome *outcomes,
                        struct und_verification *verification);

#endif
