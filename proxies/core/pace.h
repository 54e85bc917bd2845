/* A steady pace: the transfers of a dump begin one after the other over its duration. */
#ifndef UND_PACE_H
#define UND_PACE_H

#include "core/run.h"

struct und_pace {
    bool is_steady;        /* for the dump in hand */
    double next_s, step_s; /* when the next transfer is due, from one to the next */
    double waited_s;       /* on purpose, since it was set to 0 */
};

/* Of so many transfers of this rank, all passes counted. No pace where the stream has none. */
void und_pace_begin(struct und_pace *pace, const struct und_run *run, const struct und_stream *stream, int dump,
                    int64_t transfers);

/* Before a transfer: waits until it is due. */
void und_pace_keep(struct und_pace *pace, const struct und_run *run);

#endif
