/* What a run will do: the settings in force for each stream, after the options had their say. */
#ifndef UND_PLAN_H
#define UND_PLAN_H

#include "core/option.h"
#include "core/workload.h"

struct und_plan {
    const struct und_method *method;
    int64_t transfer_bytes;                            /* of the stream; see und_plan_transfer_bytes */
    int64_t least_transfer_bytes, most_transfer_bytes; /* of its variables */
    bool collective;                                   /* of the stream; see und_plan_collective */
    bool all_collective, some_collective;              /* of its variables */
    bool sync;
    bool packs; /* files may be smaller than their payload */
    int64_t settings[UND_MAX_SETTINGS];
    int64_t bytes; /* of all dumps */
    int64_t files; /* of all dumps */
};

/* How a variable of the stream is moved: as described, or as the options say. */
int64_t und_plan_transfer_bytes(const struct und_variable *variable, const struct und_options *options);
bool und_plan_collective(const struct und_variable *variable, const struct und_plan *plan,
                         const struct und_options *options);

/* What fills the time between events: as described, or as the options say. */
enum und_compute und_plan_compute(const struct und_workload *workload, const struct und_options *options);

/* One plan per stream into `plans`. `file` is the descriptor's name for messages. */
bool und_plan_make(const struct und_workload *workload, const struct und_options *options, const char *file,
                   struct und_plan *plans, struct und_error *error);

#endif
