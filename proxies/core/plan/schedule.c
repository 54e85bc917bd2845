#include "plan/schedule.h"

#include "job/timing.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

static bool is_before(const struct und_schedule *schedule, int left, int right)
{
    const double *times = schedule->times;
    return times[left] < times[right] || (times[left] == times[right] && left < right);
}

/* Restores the order of the heap below its place `at`. */
static void sift(struct und_schedule *schedule, int at)
{
    int *queue = schedule->queue;
    for (int child; (child = 2 * at + 1) < schedule->queued; at = child) {
        if (child + 1 < schedule->queued && is_before(schedule, queue[child + 1], queue[child]))
            ++child;
        if (!is_before(schedule, queue[child], queue[at]))
            return;
        const int stream = queue[at];
        queue[at] = queue[child];
        queue[child] = stream;
    }
}

void und_schedule_rewind(struct und_schedule *schedule)
{
    const struct und_workload *workload = schedule->workload;
    schedule->queued = schedule->plan->only_restarts ? 0 : workload->stream_count;
    for (int s = 0; s < schedule->queued; ++s) {
        schedule->queue[s] = s;
        schedule->dumps[s] = 0;
        schedule->times[s] = und_dump_time(&workload->streams[s], 0);
    }
    for (int at = schedule->queued / 2; at-- > 0;)
        sift(schedule, at);
    schedule->restarts = 0;
    schedule->end_s = 0;
}

bool und_schedule_make(const struct und_workload *workload, const struct und_plan *plan, struct und_schedule *schedule)
{
    const size_t streams = (size_t)workload->stream_count;
    *schedule = (struct und_schedule){.workload = workload,
                                      .plan = plan,
                                      .firsts = calloc(2 * streams + 1, sizeof *schedule->firsts),
                                      .times = calloc(streams + 1, sizeof *schedule->times),
                                      .dumps = calloc(streams + 1, sizeof *schedule->dumps),
                                      .queue = calloc(streams + 1, sizeof *schedule->queue)};
    if (!schedule->firsts || !schedule->times || !schedule->dumps || !schedule->queue)
        return false;
    for (size_t s = 0; s < streams; ++s) {
        const struct und_stream *stream = &workload->streams[s];
        schedule->firsts[s] = schedule->count;
        if (plan->only_restarts)
            continue;
        schedule->count += stream->dump_count;
        schedule->last_s = fmax(schedule->last_s, und_dump_time(stream, stream->dump_count - 1) * plan->time_scale);
    }
    for (size_t s = 0; s < streams; ++s) {
        schedule->firsts[streams + s] = schedule->count;
        schedule->count += plan->streams[s].restarts;
    }
    schedule->firsts[2 * streams] = schedule->count;
    und_schedule_rewind(schedule);
    return true;
}

void und_schedule_free(struct und_schedule *schedule)
{
    free(schedule->firsts);
    free(schedule->times);
    free(schedule->dumps);
    free(schedule->queue);
    *schedule = (struct und_schedule){.count = 0};
}

/* Takes the first stream of the queue on to its next dump. */
static void advance(struct und_schedule *schedule)
{
    const int s = schedule->queue[0];
    const struct und_stream *stream = &schedule->workload->streams[s];
    if (++schedule->dumps[s] < stream->dump_count)
        schedule->times[s] = und_dump_time(stream, schedule->dumps[s]);
    else
        schedule->queue[0] = schedule->queue[--schedule->queued];
    sift(schedule, 0);
}

/* The order is of the times as they are, so that streams stay interleaved without pauses too. */
static void take_dump(struct und_schedule *schedule, struct und_event *event)
{
    const int s = schedule->queue[0], dump = schedule->dumps[s];
    const double scale = schedule->plan->time_scale, time_s = schedule->times[s];
    const double lasted_s = und_dump_of(&schedule->workload->streams[s], dump)->duration_s;
    advance(schedule);
    const double next_s = schedule->queued > 0 ? schedule->times[schedule->queue[0]] : (double)INFINITY;
    *event = (struct und_event){time_s * scale, (time_s - schedule->end_s) * scale, s, dump, false};
    schedule->end_s = time_s;
    /* A dump that lasts until others have begun has been spread over that time: nobody knows when it moved its
     * bytes. */
    if (lasted_s > 0 && time_s + lasted_s <= next_s)
        schedule->end_s += lasted_s;
}

static struct und_event restart_of(const struct und_schedule *schedule, int stream)
{
    return (struct und_event){schedule->last_s, 0, stream, schedule->plan->streams[stream].restart_dump, true};
}

bool und_schedule_next(struct und_schedule *schedule, struct und_event *event)
{
    if (schedule->queued > 0) {
        take_dump(schedule, event);
        return true;
    }
    while (schedule->restarts < schedule->workload->stream_count) {
        const int s = schedule->restarts++;
        if (schedule->plan->streams[s].restarts) {
            *event = restart_of(schedule, s);
            return true;
        }
    }
    return false;
}

int64_t und_schedule_position(const struct und_schedule *schedule, const struct und_event *event)
{
    return event->restart ? schedule->firsts[schedule->workload->stream_count + event->stream]
                          : schedule->firsts[event->stream] + event->dump;
}

struct und_event und_schedule_at(const struct und_schedule *schedule, int64_t position)
{
    const int streams = schedule->workload->stream_count;
    int low = 0, high = 2 * streams - 1;
    while (low < high) {
        const int middle = low + (high - low + 1) / 2;
        if (schedule->firsts[middle] <= position)
            low = middle;
        else
            high = middle - 1;
    }
    if (low >= streams)
        return restart_of(schedule, low - streams);
    const int dump = (int)(position - schedule->firsts[low]);
    const double time_s = und_dump_time(&schedule->workload->streams[low], dump) * schedule->plan->time_scale;
    return (struct und_event){time_s, 0, low, dump, false};
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
