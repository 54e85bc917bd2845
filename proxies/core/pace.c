#include "core/pace.h"

#include "core/watch.h"

static const double least_s = 1e-6; /* shorter times are computed together: a look at the clock takes its time too */

void und_pace_begin(struct und_pace *pace, const struct und_run *run, const struct und_stream *stream, int dump,
                    int64_t transfers, bool computes)
{
    const struct und_step *step = und_step_of(stream, dump);
    const double paced_s = und_pace_s(run, stream, dump);
    const bool spreads = und_step_has(step, UND_DO_SPREAD) && transfers > 0;
    const bool computing = computes && und_step_has(step, UND_DO_COMPUTE);
    pace->compute_s = computing && transfers > 1 ? paced_s / (double)(transfers - 1) : 0;
    pace->behind_s = -pace->compute_s;
    pace->is_kept = spreads || pace->compute_s > 0;
    if (!spreads)
        return;
    pace->next_s = und_clock();
    pace->step_s = paced_s / (double)transfers;
}

double und_pace_s(const struct und_run *run, const struct und_stream *stream, int dump)
{
    const struct und_step *step = und_step_of(stream, dump);
    const struct und_instruction *computing = und_step_has(step, UND_DO_COMPUTE);
    const double paced_s = und_step_has(step, UND_DO_SPREAD) ? step->dump->duration_s : 0;
    return (computing ? computing->seconds : paced_s) * run->plan->time_scale;
}

/* As applications do between the calls of a dump, and not asleep: the times are too short for that. */
static void compute(struct und_pace *pace)
{
    pace->behind_s += pace->compute_s;
    if (pace->behind_s < least_s)
        return;
    const double now = und_clock();
    und_watch_pause(true);
    und_wait(now + pace->behind_s, UND_BUSY);
    und_watch_pause(false);
    const double computed_s = und_clock() - now;
    pace->waited_s += computed_s;
    /* A little more than was due is made up for, but no interruption. */
    pace->behind_s = computed_s < 2 * pace->behind_s ? pace->behind_s - computed_s : 0;
}

void und_pace_keep(struct und_pace *pace, const struct und_run *run)
{
    if (pace->compute_s > 0) {
        compute(pace);
        return;
    }
    /* Ranks have different numbers of transfers, so they do not compute together here. */
    const enum und_compute how = run->plan->compute;
    const double now = und_clock();
    if (pace->next_s > now) {
        und_watch_pause(true);
        und_wait(pace->next_s, how == UND_STENCIL ? UND_BUSY : how);
        und_watch_pause(false);
        pace->waited_s += und_clock() - now;
    }
    pace->next_s += pace->step_s;
}
