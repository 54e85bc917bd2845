/*
 * What happens when: the dumps of all streams in the order of their times, and the waiting for
 * them. Times are absolute, so that what I/O takes comes off the pause behind it.
 */
#ifndef UND_SCHEDULE_H
#define UND_SCHEDULE_H

#include "core/plan.h"
#include "core/workload.h"

struct und_event {
    double time_s;  /* when it is due, already scaled */
    double pause_s; /* likewise, after the event before it in the original, or from the start */
    int stream;
    int dump;
    bool restart; /* reads the dump back */
};

struct und_schedule {
    int count;
    struct und_event *events;
};

/* Dumps of equal time run in the order of the streams. The planned restarts follow, due when the last
 * dump was; alone and at once where there is nothing else. False when memory is out. */
bool und_schedule_make(const struct und_workload *workload, const struct und_plan *plan, struct und_schedule *schedule);
void und_schedule_free(struct und_schedule *schedule);

/* Returns when und_clock() has reached `until`; at once if it has already. Sleeps or computes; what
 * ranks compute together is in stencil.h. */
void und_wait(double until, enum und_compute compute);

#endif
