#include "playing/pace.h"

#include "storage/watchdog.h"

#include <math.h>

static const double least_s = 1e-6; /* shorter times are computed together: a look at the clock takes its time too */

void und_pace_stop(struct und_pace *pace, double rate, bool has_deadline)
{
    pace->is_kept = pace->always = rate > 0 || has_deadline;
    pace->rate = rate;
    pace->free_s = 0;
    pace->is_paced = false;
    pace->compute_s = 0;
}

void und_pace_compute(struct und_pace *pace, double seconds, int64_t transfers)
{
    pace->is_paced = seconds > 0 && transfers > 1;
    pace->is_kept = pace->always || pace->is_paced;
    pace->compute_s = pace->is_paced ? seconds / (double)(transfers - 1) : 0;
    pace->behind_s = -pace->compute_s;
}

void und_pace_spread(struct und_pace *pace, double seconds, int64_t transfers)
{
    pace->is_paced = transfers > 0;
    pace->is_kept = pace->always || pace->is_paced;
    pace->next_s = und_clock();
    pace->step_s = seconds / (double)(transfers > 0 ? transfers : 1);
}

double und_pace_s(const struct und_run *run, const struct und_stream *stream, int dump)
{
    const struct und_step *step = und_step_of(stream, dump);
    const struct und_instruction *computing = und_step_has(step, UND_DO_COMPUTE);
    const struct und_instruction *spreading = und_step_has(step, UND_DO_SPREAD);
    return (computing ? computing->seconds : spreading ? spreading->seconds : 0) * run->plan->time_scale;
}

/* As applications do between the calls of a dump, and not asleep: the times are too short for that. */
static void compute(struct und_pace *pace, struct und_watch *watch, double end_s)
{
    pace->behind_s += pace->compute_s;
    if (pace->behind_s < least_s)
        return;
    const double now = und_clock();
    und_watch_pause(watch, true);
    und_wait(fmin(now + pace->behind_s, end_s), UND_BUSY);
    und_watch_pause(watch, false);
    const double computed_s = und_clock() - now;
    pace->waited_s += computed_s;
    /* A little more than was due is made up for, but no interruption. */
    pace->behind_s = computed_s < 2 * pace->behind_s ? pace->behind_s - computed_s : 0;
}

/* Sleeps, but for the last part: that would end too late. */
static void wait_exactly(double until)
{
    static const double late_s = 1e-3;
    und_wait(until - late_s, UND_SLEEP);
    und_wait(until, UND_BUSY);
}

/* A transfer begins when the one before it ends at the rate. What is late by less than a second is made up for. */
static void keep_rate(struct und_pace *pace, struct und_watch *watch, double end_s)
{
    const double now = und_clock();
    pace->free_s = pace->free_s > 0 ? fmax(pace->free_s + (double)pace->bytes / pace->rate, now - 1) : now;
    if (pace->free_s <= now)
        return;
    und_watch_pause(watch, true);
    wait_exactly(fmin(pace->free_s, end_s));
    und_watch_pause(watch, false);
    pace->waited_s += und_clock() - now;
}

bool und_pace_is_ahead(const struct und_pace *pace)
{
    return pace->rate > 0 && pace->free_s > 0 && pace->free_s + (double)pace->bytes / pace->rate > und_clock();
}

void und_pace_keep(struct und_pace *pace, const struct und_run *run, double end_s)
{
    if (pace->rate > 0)
        keep_rate(pace, run->watch, end_s);
    if (!pace->is_paced)
        return;
    if (pace->compute_s > 0) {
        compute(pace, run->watch, end_s);
        return;
    }
    /* Ranks have different numbers of transfers, so they do not compute together here. */
    const enum und_compute how = run->plan->compute;
    const double now = und_clock();
    if (pace->next_s > now) {
        und_watch_pause(run->watch, true);
        und_wait(fmin(pace->next_s, end_s), how == UND_STENCIL ? UND_BUSY : how);
        und_watch_pause(run->watch, false);
        pace->waited_s += und_clock() - now;
    }
    pace->next_s += pace->step_s;
}
