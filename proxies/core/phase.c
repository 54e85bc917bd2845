#include "core/phase.h"

#include "core/die.h"
#include "core/flood.h"
#include "core/storage.h"
#include "core/watch.h"

#include <string.h>

/* A dump as it is carried out. */
struct playing {
    const struct und_run *run;
    struct und_series *series;
    const struct und_event *event;
    struct und_record *records;
    double zero, stamp; /* begin of the run, end of what was done last */
    double begin;       /* of the dump, for ranks that are late */
    bool reads, syncs, synced;
    bool waits; /* for its own time, once its files are open */
};

static void take(struct playing *playing, enum und_phase phase)
{
    struct und_record *record = &playing->records[phase];
    double waited_s;
    record->start_s = playing->stamp - playing->zero;
    playing->stamp = und_clock();
    record->end_s = playing->stamp - playing->zero;
    und_series_count(playing->series, &record->bytes, &record->operations, &waited_s);
    record->spent_s = record->end_s - record->start_s - waited_s;
    record->took_place = true;
}

/* What a rank waits for its own time is no time of I/O. Ranks wait one by one, so they do not compute together. */
static void be_late(struct playing *playing)
{
    const struct und_plan *plan = playing->run->plan;
    const struct und_dump *dump =
        und_dump_of(&playing->run->workload->streams[playing->event->stream], playing->event->dump);
    const double now = und_clock(), late_s = und_skew_of(&dump->skew, playing->run->rank) * plan->time_scale;
    playing->waits = false;
    if (late_s <= 0)
        return;
    und_watch_pause(true);
    und_wait(playing->begin + late_s, plan->compute == UND_STENCIL ? UND_BUSY : plan->compute);
    und_watch_pause(false);
    playing->stamp += und_clock() - now;
}

/* A rank opens its files late, too, but for those that ranks open together. */
static void skew(struct playing *playing)
{
    const bool opens = und_series_opens(playing->series, playing->event->dump);
    playing->waits = opens && und_series_opens_together(playing->series);
    if (playing->waits)
        return;
    if (opens)
        und_series_create(playing->series);
    be_late(playing);
}

static void open_files(struct playing *playing)
{
    und_series_open(playing->series);
    take(playing, UND_OPENING);
    if (und_series_note_hints(playing->series))
        playing->stamp = und_clock();
    if (playing->waits)
        be_late(playing);
}

static void operate(struct playing *playing)
{
    und_watch_enter("metadata", NULL, true);
    const int64_t operations = und_series_operate(playing->series);
    take(playing, UND_METADATA);
    und_watch_leave();
    playing->records[UND_METADATA].operations = operations;
}

static void sync_files(struct playing *playing)
{
    if (!playing->syncs || playing->synced)
        return;
    und_series_sync(playing->series);
    take(playing, UND_SYNCING);
    playing->synced = true;
}

static void move(struct playing *playing, int64_t passes)
{
    und_series_begin_pace(playing->series);
    for (int64_t pass = 0; pass < passes; ++pass) {
        if (playing->reads)
            und_series_read(playing->series);
        else
            und_series_write(playing->series);
    }
    take(playing, playing->reads ? UND_READING : UND_WRITING);
    sync_files(playing);
}

static void play_flood(struct playing *playing)
{
    und_flood_play(und_series_flood(playing->series), playing->zero, playing->records);
    playing->stamp = und_clock();
}

static void close_files(struct playing *playing)
{
    und_series_close(playing->series);
    take(playing, UND_CLOSING);
}

/* Instructions of one kind in a row are carried out together: those of the series know what is behind them. */
static void carry_out(struct playing *playing, const struct und_instruction *body, int count)
{
    for (int i = 0; i < count; i += 1 + body[i].body) {
        const bool again = i > 0 && body[i - 1].code == body[i].code;
        switch (body[i].code) {
        case UND_DO_BEGIN:
        case UND_DO_REMOVE:
        case UND_DO_COMPUTE:
        case UND_DO_SPREAD: break; /* prepared, and minded by what follows */
        case UND_DO_SKEW: skew(playing); break;
        case UND_DO_OPEN:
            if (und_series_opens(playing->series, playing->event->dump))
                open_files(playing);
            break;
        case UND_DO_OPERATE:
            if (!again)
                operate(playing);
            break;
        case UND_DO_MOVE:
            if (!again)
                move(playing, 1);
            break;
        case UND_DO_PASSES:
            if (und_series_flood(playing->series))
                play_flood(playing);
            else
                move(playing, body[i].times);
            break;
        case UND_DO_EACH_FILE: play_flood(playing); break;
        case UND_DO_SYNC: sync_files(playing); break;
        case UND_DO_CLOSE: close_files(playing); break;
        case UND_DO_IN_TURN:
            und_series_take_turn(playing->series);
            playing->stamp = und_clock();
            carry_out(playing, body + i + 1, body[i].body);
            und_series_pass_turn(playing->series);
            break;
        }
    }
}

/* A restart reads a dump of files that are complete: it opens and closes them around it. */
static void restart(struct playing *playing)
{
    if (und_series_flood(playing->series)) {
        play_flood(playing);
        return;
    }
    und_series_take_turn(playing->series);
    playing->stamp = und_clock();
    open_files(playing);
    move(playing, 1);
    close_files(playing);
    und_series_pass_turn(playing->series);
}

void und_phase_prepare(const struct und_run *run, struct und_series *series, const struct und_event *event)
{
    const struct und_stream *stream = &run->workload->streams[event->stream];
    const int first = und_stream_grows(stream) ? 0 : und_stream_first(stream, event->dump);
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
    const struct und_step *step = und_step_of(stream, event->dump);
    struct playing playing = {.run = run, .series = series, .event = event, .records = records, .zero = zero};
    playing.reads = event->restart || stream->operation == UND_READS;
    playing.syncs = !playing.reads && run->plan->streams[event->stream].sync;
    memset(records, 0, UND_PHASES * sizeof *records);

    und_watch_dump(stream, event->dump, event->restart);
    if (!event->restart)
        und_watch_allow(und_skew_last(&step->dump->skew) * run->plan->time_scale);
    und_phase_prepare(run, series, event);
    wait_for(run, due);
    /* Libraries open files by path: another directory under this one's name is none of ours to write to. */
    if (run->rank == 0 && !und_storage_is_in_place()) {
        UND_CHECK(errno == 0, "cannot look at the run directory %s", run->plan->directory);
        UND_DIE("%s is no longer the run directory: it was moved or replaced during the run", run->plan->directory);
    }
    if (!event->restart)
        und_series_check(series, und_series_opens(series, event->dump));
    UND_MPI(MPI_Barrier(run->comm), "cannot start dump %d of the stream %s together", event->dump, stream->name);
    playing.stamp = und_clock();
    playing.begin = run->plan->keep_pauses ? playing.stamp : due;
    if (event->restart)
        restart(&playing);
    else
        carry_out(&playing, step->instructions, step->instruction_count);
    if (!event->restart && stream->stays_open && und_series_closes(series, event->dump))
        close_files(&playing);
}
