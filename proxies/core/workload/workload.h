/*
 * A workload as schemas/workload.schema.json defines it: what the descriptor says, checked, and
 * nothing that a run adds.
 */
#ifndef UND_WORKLOAD_H
#define UND_WORKLOAD_H

#include "text/error.h"
#include "workload/stream.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum und_compute { UND_SLEEP, UND_BUSY, UND_STENCIL };

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

/* Multiplies the longest dimension of every variable (the first of equals) by the factor and rounds
 * it to the nearest whole number, at least 1; unequal slabs are rounded run by run, and where nothing would
 * be left of any, as many ranks as there are rows to share have one. *raised is the number of variables
 * that the factor alone would have left without an element. */
bool und_workload_scale(struct und_workload *workload, double factor, int64_t *raised, struct und_error *error);

void und_workload_free(struct und_workload *workload);

#endif
