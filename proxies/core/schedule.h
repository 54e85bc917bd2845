/*
 * What happens when: the dumps of all streams in the order of their times, and the waiting for
 * them. Times are absolute, so that what I/O takes comes off the pause behind it.
 */
#ifndef UND_SCHEDULE_H
#define UND_SCHEDULE_H

#include "core/option.h"
#include "core/workload.h"

struct und_event {
    double time_s; /* when it is due, already scaled */
    int stream;
    int dump;
    bool restart; /* reads the dump back */
};

struct und_schedule {
    int count;
    struct und_event *events;
};

/* Dumps of equal time run in the order of the streams. The restarts that the options ask for follow,
 * due when the last dump was; alone and at once with restart_from. False when memory is out. */
bool und_schedule_make(const struct und_workload *workload, const struct und_options *options,
                       struct und_schedule *schedule);
void und_schedule_free(struct und_schedule *schedule);

/* Do the options ask for a restart of the stream, and from which dump? */
bool und_stream_restarts(const struct und_stream *stream, const struct und_options *options);
int und_stream_restart_dump(const struct und_stream *stream, const struct und_options *options);

/* Returns when und_clock() has reached `until`; at once if it has already. Sleeps or computes; what
 * ranks compute together is in stencil.h. */
void und_wait(double until, enum und_compute compute);

#endif
