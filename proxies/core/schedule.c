#include "core/schedule.h"

#include "core/timing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int by_time(const void *left, const void *right)
{
    const struct und_event *a = left, *b = right;
    if (a->time_s != b->time_s)
        return a->time_s < b->time_s ? -1 : 1;
    if (a->stream != b->stream)
        return a->stream < b->stream ? -1 : 1;
    return a->dump < b->dump ? -1 : a->dump > b->dump;
}

/* A dump that lasts until others have begun has been spread over that time: nobody knows when it moved its bytes. */
static void find_pauses(const struct und_workload *workload, struct und_schedule *schedule)
{
    double end_s = 0;
    for (int e = 0; e < schedule->count; ++e) {
        struct und_event *event = &schedule->events[e];
        const double lasted_s = und_dump_of(&workload->streams[event->stream], event->dump)->duration_s;
        const double next_s = e + 1 < schedule->count ? event[1].time_s : (double)INFINITY;
        event->pause_s = event->time_s - end_s;
        end_s = event->time_s;
        if (lasted_s > 0 && end_s + lasted_s <= next_s)
            end_s += lasted_s;
    }
}

bool und_schedule_make(const struct und_workload *workload, const struct und_plan *plan, struct und_schedule *schedule)
{
    size_t count = (size_t)workload->stream_count;
    for (int s = 0; s < workload->stream_count; ++s)
        count += (size_t)workload->streams[s].dump_count;
    schedule->count = 0;
    schedule->events = calloc(count, sizeof *schedule->events);
    if (!schedule->events)
        return false;
    for (int s = 0; !plan->only_restarts && s < workload->stream_count; ++s)
        for (int e = 0, d = 0; e < workload->streams[s].entry_count; ++e) {
            const struct und_dump *dump = &workload->streams[s].entries[e];
            for (int k = 0; k < dump->count; ++k)
                schedule->events[schedule->count++] =
                    (struct und_event){dump->time_s + (double)k * dump->period_s, 0, s, d++, false};
        }
    /* Before the times are scaled, so that streams stay interleaved without pauses too. */
    qsort(schedule->events, (size_t)schedule->count, sizeof *schedule->events, by_time);
    find_pauses(workload, schedule);
    for (int e = 0; e < schedule->count; ++e) {
        schedule->events[e].time_s *= plan->time_scale;
        schedule->events[e].pause_s *= plan->time_scale;
    }
    const double last = schedule->count > 0 ? schedule->events[schedule->count - 1].time_s : 0;
    for (int s = 0; s < workload->stream_count; ++s)
        if (plan->streams[s].restarts)
            schedule->events[schedule->count++] = (struct und_event){last, 0, s, plan->streams[s].restart_dump, true};
    return true;
}

void und_schedule_free(struct und_schedule *schedule)
{
    free(schedule->events);
    schedule->events = NULL;
}

static void sleep_for(double seconds)
{
    /* Whole days at most at a time, so that any number of seconds fits time_t. */
    const double some = fmin(seconds, 86400.0), whole = floor(some);
    const struct timespec span = {(time_t)whole, (long)((some - whole) * 1e9)};
    nanosleep(&span, NULL);
}

/* Arithmetic that the compiler cannot leave out, for less than a microsecond. */
static void compute_a_little(void)
{
    volatile double value = 1.0;
    for (int i = 0; i < 100; ++i)
        value = value * 1.000001 + 1e-9;
}

void und_wait(double until, enum und_compute compute)
{
    for (double left; (left = until - und_clock()) > 0;) {
        if (compute == UND_SLEEP)
            sleep_for(left);
        else
            compute_a_little();
    }
}
