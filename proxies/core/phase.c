#include "core/phase.h"

#include "core/die.h"
#include "core/flood.h"
#include "core/storage.h"
#include "core/watch.h"

#include <string.h>

static void take(struct und_record *record, struct und_series *series, double zero, double *stamp)
{
    record->start_s = *stamp - zero;
    *stamp = und_clock();
    record->end_s = *stamp - zero;
    double waited_s;
    und_series_count(series, &record->bytes, &record->operations, &waited_s);
    record->spent_s = record->end_s - record->start_s - waited_s;
    record->took_place = true;
}

static void operate(struct und_record *record, struct und_series *series, double zero, double *stamp)
{
    und_watch_enter("metadata", NULL, true);
    const int64_t operations = und_series_operate(series);
    take(record, series, zero, stamp);
    und_watch_leave();
    record->operations = operations;
}

/* Of the files of a flood that are written, none is there before the last is closed. */
static void play_flood(struct und_flood *flood, struct und_series *series, double zero, struct und_record *records)
{
    double stamp = und_clock();
    const bool operates = und_series_has_operations(series), writes = !und_flood_reads(flood);
    if (operates && !writes)
        operate(&records[UND_METADATA], series, zero, &stamp);
    und_flood_play(flood, zero, records);
    stamp = und_clock();
    if (operates && writes)
        operate(&records[UND_METADATA], series, zero, &stamp);
}

/* A restart reads a dump of files that are complete: it opens and closes them around it. */
void und_phase_prepare(const struct und_run *run, struct und_series *series, const struct und_event *event)
{
    const struct und_stream *stream = &run->workload->streams[event->stream];
    const int first = stream->append ? 0 : stream->dumps[event->dump].first;
    for (int dump = event->restart ? first : event->dump; dump <= event->dump; ++dump)
        und_series_prepare(series, dump);
}

static void wait_for(const struct und_run *run, double until)
{
    und_watch_pause(true);
    if (run->stencil)
        und_stencil_until(run->stencil, until);
    else
        und_wait(until, run->plan->compute);
    und_watch_pause(false);
}

void und_phase_play(const struct und_run *run, struct und_series *series, const struct und_event *event, double zero,
                    double due, struct und_record *records)
{
    const struct und_stream *stream = &run->workload->streams[event->stream];
    const bool reads = event->restart || stream->operation == UND_READS;
    const bool opens = event->restart || und_series_begins(series, event->dump);
    const bool closes = event->restart || und_series_ends(series, event->dump);
    const bool syncs = !reads && run->plan->streams[event->stream].sync;
    /* A dump of operations alone has no files, but where they stay open. */
    const bool moves = !stream->reopen || stream->dumps[event->dump].variable_count > 0;
    memset(records, 0, UND_PHASES * sizeof *records);

    und_watch_dump(stream, event->dump, event->restart);
    und_phase_prepare(run, series, event);
    wait_for(run, due);
    /* Libraries open files by path: another directory under this one's name is none of ours to write to. */
    if (run->rank == 0 && !und_storage_is_in_place())
        UND_DIE("%s is no longer the run directory: it was moved or replaced during the run", run->plan->directory);
    if (!event->restart)
        und_series_check(series, opens);
    UND_MPI(MPI_Barrier(run->comm), "cannot start dump %d of the stream %s together", event->dump, stream->name);

    if (und_series_flood(series)) {
        play_flood(und_series_flood(series), series, zero, records);
        return;
    }
    und_series_take_turn(series);
    double stamp = und_clock();
    if (opens && moves) {
        und_series_open(series);
        take(&records[UND_OPENING], series, zero, &stamp);
        if (und_series_note_hints(series))
            stamp = und_clock();
    }
    if (und_series_has_operations(series))
        operate(&records[UND_METADATA], series, zero, &stamp);
    if (moves) {
        if (reads)
            und_series_read(series);
        else
            und_series_write(series);
        take(&records[reads ? UND_READING : UND_WRITING], series, zero, &stamp);
    }
    if (syncs && moves) {
        und_series_sync(series);
        take(&records[UND_SYNCING], series, zero, &stamp);
    }
    if (closes && moves) {
        und_series_close(series);
        take(&records[UND_CLOSING], series, zero, &stamp);
    }
    und_series_pass_turn(series);
}
