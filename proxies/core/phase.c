#include "core/phase.h"

#include "core/die.h"

#include <string.h>

static void take(struct und_record *record, struct und_series *series, double zero, double *stamp)
{
    record->start_s = *stamp - zero;
    *stamp = und_clock();
    record->end_s = *stamp - zero;
    und_series_count(series, &record->bytes, &record->operations);
    record->took_place = true;
}

/* A restart reads a dump of files that are complete: it opens and closes them around it. */
void und_phase_prepare(const struct und_run *run, struct und_series *series, const struct und_event *event)
{
    const bool appended = run->workload->streams[event->stream].append;
    for (int dump = event->restart && appended ? 0 : event->dump; dump <= event->dump; ++dump)
        und_series_prepare(series, dump);
}

static void wait_for(const struct und_run *run, double until)
{
    if (run->stencil)
        und_stencil_until(run->stencil, until);
    else
        und_wait(until, und_plan_compute(run->workload, run->options));
}

void und_phase_play(const struct und_run *run, struct und_series *series, const struct und_event *event, double zero,
                    struct und_record *records)
{
    const struct und_stream *stream = &run->workload->streams[event->stream];
    const bool reads = event->restart || stream->operation == UND_READS;
    const bool opens = event->restart || und_series_begins(series, event->dump);
    const bool closes = event->restart || und_series_ends(series, event->dump);
    const bool syncs = !reads && run->plans[event->stream].sync;
    memset(records, 0, UND_PHASES * sizeof *records);

    und_phase_prepare(run, series, event);
    wait_for(run, zero + event->time_s);
    UND_MPI(MPI_Barrier(run->comm), "cannot start dump %d of the stream %s together", event->dump, stream->name);

    und_series_take_turn(series);
    double stamp = und_clock();
    if (opens) {
        und_series_open(series);
        take(&records[UND_OPENING], series, zero, &stamp);
    }
    if (reads) {
        und_series_read(series);
        take(&records[UND_READING], series, zero, &stamp);
    } else {
        und_series_write(series);
        take(&records[UND_WRITING], series, zero, &stamp);
    }
    if (syncs) {
        und_series_sync(series);
        take(&records[UND_SYNCING], series, zero, &stamp);
    }
    if (closes) {
        und_series_close(series);
        take(&records[UND_CLOSING], series, zero, &stamp);
    }
    und_series_pass_turn(series);
}
