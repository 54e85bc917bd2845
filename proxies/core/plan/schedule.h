/*
 * The schedule: the dumps of all streams in the order of their times, and the waiting for
 * them. Times are absolute, so that what I/O takes comes off the pause behind it.
 */
#ifndef UND_SCHEDULE_H
#define UND_SCHEDULE_H

#include "plan/plan.h"
#include "workload/workload.h"

struct und_event {
    double time_s;  /* when it is due, already scaled */
    double pause_s; /* likewise, after the event before it in the original, or from the start */
    int stream;
    int dump;
    bool restart; /* reads the dump back */
};

/* Memory follows the streams, not their dumps. */
struct und_schedule {
    const struct und_workload *workload;
    const struct und_plan *plan;
    int64_t count;   /* of events */
    int64_t *firsts; /* position of the first event of each stream, then of its restart; one more: the count */
    double *times;   /* of each stream: when its next dump begins in the original */
    int *dumps;      /* likewise, which one it is */
    int *queue;      /* a heap of the streams that have dumps left, by time and then by stream */
    int queued;
    int restarts;  /* streams whose restarts have been taken */
    double end_s;  /* of the event before, in the original */
    double last_s; /* when the last dump is due */
};

/* False when memory is out. Begins with the first event. */
bool und_schedule_make(const struct und_workload *workload, const struct und_plan *plan, struct und_schedule *schedule);
void und_schedule_free(struct und_schedule *schedule);
void und_schedule_rewind(struct und_schedule *schedule);

/* The next event; false after the last one. Dumps of equal time run in the order of the streams. The planned
 * restarts follow, due when the last dump was; alone and at once where there is nothing else. */
bool und_schedule_next(struct und_schedule *schedule, struct und_event *event);

/* Events as results list them: stream by stream, then the restarts; 0 … count - 1. */
int64_t und_schedule_position(const struct und_schedule *schedule, const struct und_event *event);
/* The event there, without its pause. */
struct und_event und_schedule_at(const struct und_schedule *schedule, int64_t position);

/* Returns when und_clock() has reached `until`; at once if it has already. Sleeps or computes; what
 * ranks compute together is in stencil.h. */
void und_wait(double until, enum und_compute compute);

#endif
