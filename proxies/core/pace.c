#include "core/pace.h"

#include "core/watch.h"

void und_pace_begin(struct und_pace *pace, const struct und_run *run, const struct und_stream *stream, int dump,
                    int64_t transfers)
{
    pace->is_steady = stream->steady && transfers > 0;
    if (!pace->is_steady)
        return;
    pace->next_s = und_clock();
    pace->step_s = stream->dumps[dump].duration_s * run->plan->time_scale / (double)transfers;
}

void und_pace_keep(struct und_pace *pace, const struct und_run *run)
{
    /* Ranks have different numbers of transfers, so they do not compute together here. */
    const enum und_compute compute = run->plan->compute;
    const double now = und_clock();
    if (pace->next_s > now) {
        und_watch_pause(true);
        und_wait(pace->next_s, compute == UND_STENCIL ? UND_BUSY : compute);
        und_watch_pause(false);
        pace->waited_s += und_clock() - now;
    }
    pace->next_s += pace->step_s;
}
