#include "playing/phase.h"

#include "job/die.h"
#include "playing/stencil.h"
#include "storage/run_directory.h"
#include "storage/watchdog.h"

#include <errno.h>
#include <string.h>

/* A dump as it is carried out. */
struct playing {
    const struct und_run *run;
    struct und_stream_player *player;
    const struct und_stream_plan *plan;
    const struct und_step *step;
    enum und_doing doing;
    struct und_verification *verification; /* of what is compared */
    struct und_record *records;            /* NULL: no time is taken */
    double zero, stamp;                    /* begin of the run, end of what was done last */
    double begin;                          /* of the dump, for ranks that are late */
    int loops;                             /* around the instruction in hand */
    bool reads;
    bool wears_out; /* ranks go on behind the deadline */
    bool waits;     /* for its own time, once its files are open */
};

/* Phases of many files, or of several instructions, add up. */
static void take(struct playing *playing, enum und_phase phase)
{
    struct und_record *record = playing->records ? &playing->records[phase] : NULL;
    int64_t bytes, operations;
    double waited_s;
    if (!record)
        return;
    const double begin = playing->stamp;
    playing->stamp = und_clock();
    und_stream_player_count(playing->player, &bytes, &operations, &waited_s);
    if (!record->took_place)
        record->start_s = begin - playing->zero;
    record->took_place = true;
    record->end_s = playing->stamp - playing->zero;
    record->spent_s += playing->stamp - begin - waited_s;
    record->bytes += bytes;
    record->operations += operations;
}

/* Reads between writes are a phase of their own, on all ranks, of which some may have had none. */
static void take_reads(struct playing *playing)
{
    struct und_record *reading = &playing->records[UND_READING], *writing = &playing->records[UND_WRITING];
    struct und_reads_between reads;
    if (!und_stream_player_take_reads(playing->player, &reads))
        return;
    if (reads.operations == 0)
        reads.begin_s = reads.end_s = playing->stamp;
    if (!reading->took_place)
        reading->start_s = reads.begin_s - playing->zero;
    reading->took_place = true;
    reading->end_s = reads.end_s - playing->zero;
    reading->spent_s += reads.spent_s;
    reading->bytes += reads.bytes;
    reading->operations += reads.operations;
    writing->spent_s -= reads.spent_s;
    writing->operations -= reads.operations;
}

static void wait_until(struct playing *playing, double time)
{
    const enum und_compute how = playing->run->plan->compute;
    const double now = und_clock();
    und_watch_pause(playing->run->watch, true);
    und_wait(time, how == UND_STENCIL ? UND_BUSY : how);
    und_watch_pause(playing->run->watch, false);
    playing->stamp += und_clock() - now;
}

/* Waiting for a rank's own time is no time of I/O. Ranks wait one by one, so they do not compute together. */
static void be_late(struct playing *playing)
{
    const struct und_plan *plan = playing->run->plan;
    const struct und_instruction *skew = und_step_has(playing->step, UND_DO_SKEW);
    const double late_s = und_skew_of(skew->skew, playing->run->rank) * plan->time_scale;
    playing->waits = false;
    if (late_s > 0)
        wait_until(playing, playing->begin + late_s);
}

static bool opens(const struct playing *playing)
{
    return und_step_has(playing->step, UND_DO_OPEN) && !und_stream_player_is_open(playing->player);
}

/* A rank opens its files late, too, but for those that ranks open together. One rank makes files that several open one
 * by one at the time of the step, in place of those that the step removes. */
static void skew(struct playing *playing)
{
    const struct und_instruction *remove = und_step_has(playing->step, UND_DO_REMOVE);
    playing->waits = opens(playing) && und_stream_player_opens_together(playing->player);
    if (playing->waits)
        return;
    if (opens(playing) && remove)
        und_stream_player_take_away(playing->player, remove->backup, true);
    if (opens(playing))
        und_stream_player_create(playing->player);
    be_late(playing);
}

static void open_files(struct playing *playing)
{
    if (und_stream_player_is_open(playing->player))
        return;
    und_stream_player_open(playing->player);
    take(playing, UND_OPENING);
    if (playing->records && und_stream_player_note_hints(playing->player))
        playing->stamp = und_clock();
    if (playing->waits)
        be_late(playing);
}

static void operate(struct playing *playing, const struct und_operations *operations)
{
    und_watch_enter(playing->run->watch, "metadata", NULL, true);
    const int64_t count = und_stream_player_operate(playing->player, operations);
    take(playing, UND_METADATA);
    und_watch_leave(playing->run->watch);
    playing->records[UND_METADATA].operations += count;
}

/* Which of the dump's variables an instruction moves. */
static int variable_of(const struct playing *playing, const struct und_instruction *move)
{
    return (int)(move->variable - playing->step->dump->variables);
}

/* The calls of this rank in the instructions. */
static int64_t calls_of(const struct playing *playing, const struct und_instruction *body, int count)
{
    int64_t calls = 0;
    for (int i = 0; i < count; i += 1 + body[i].body)
        calls += body[i].code == UND_DO_MOVE ? und_stream_player_calls(playing->player, variable_of(playing, &body[i]))
                                             : (body[i].code == UND_DO_PASSES ? body[i].times : 1) *
                                                   calls_of(playing, &body[i + 1], body[i].body);
    return calls;
}

static bool has_calls(const struct und_instruction *body, int count)
{
    for (int i = 0; i < count; ++i)
        if (body[i].code == UND_DO_MOVE || body[i].code == UND_DO_CALLS)
            return true;
    return false;
}

/* A restart reads what was not computed. */
static void keep_pace(struct playing *playing, const struct und_instruction *instruction, int left)
{
    const double seconds = instruction->seconds * playing->run->plan->time_scale;
    const struct und_call_list *list = &playing->step->dump->calls;
    if (instruction->code == UND_DO_COMPUTE && !has_calls(instruction + 1, left)) {
        wait_until(playing, und_clock() + seconds); /* beside what is in flight */
        return;
    }
    const int64_t calls = calls_of(playing, instruction + 1, left) + und_calls_moves_of(list, playing->run->rank);
    if (instruction->code == UND_DO_SPREAD)
        und_pace_spread(und_stream_player_pace(playing->player), seconds, calls);
    else if (playing->doing == UND_PLAY)
        und_pace_compute(und_stream_player_pace(playing->player), seconds, calls);
}

/* Nothing is in flight but while time is taken. */
static void move(struct playing *playing, const struct und_instruction *instruction)
{
    const bool begins = playing->doing == UND_PLAY && instruction->variable->nonblocking;
    const enum und_move how = playing->doing == UND_CHECK ? UND_COMPARE : playing->reads ? UND_FETCH : UND_WRITE;
    if (begins)
        und_stream_player_begin(playing->player, variable_of(playing, instruction), how);
    else
        und_stream_player_move(playing->player, variable_of(playing, instruction), how, playing->verification);
    take(playing, playing->reads ? UND_READING : UND_WRITING);
    if (playing->records)
        take_reads(playing);
}

static void wait_all(struct playing *playing)
{
    und_stream_player_wait_all(playing->player);
    take(playing, playing->reads ? UND_READING : UND_WRITING);
}

/* As options and the method have it, rather than as it is described. */
static void sync_files(struct playing *playing, bool described)
{
    if (playing->doing != UND_PLAY || !playing->plan->sync || !(described || playing->plan->syncs_all))
        return;
    und_stream_player_sync(playing->player);
    take(playing, UND_SYNCING);
}

static void close_files(struct playing *playing)
{
    und_stream_player_close(playing->player);
    take(playing, UND_CLOSING);
}

/* A rank without a file took no time. */
static void complete(struct playing *playing, enum und_phase phase)
{
    struct und_record *record = &playing->records[phase];
    if (!record->took_place)
        record->start_s = record->end_s = und_clock() - playing->zero;
    record->took_place = true;
}

static void note_call(void *context, enum und_phase phase)
{
    take(context, phase);
}

static void call(struct playing *playing)
{
    bool phases[UND_PHASES] = {false};
    und_stream_player_call(playing->player, note_call, playing);
    und_caller_phases(&playing->step->dump->calls, phases);
    for (int p = 0; p < UND_PHASES; ++p)
        if (phases[p])
            complete(playing, (enum und_phase)p);
}

static void carry_out(struct playing *playing, const struct und_instruction *body, int count);

static void each_file(struct playing *playing, const struct und_instruction *body, int count)
{
    const int64_t files = und_stream_player_rows(playing->player);
    for (int64_t i = 0; i < files; ++i) {
        if (und_stream_player_is_over(playing->player)) {
            und_stream_player_leave_out_rows(playing->player, i);
            break;
        }
        und_stream_player_go_to_row(playing->player, i);
        playing->stamp = und_clock();
        carry_out(playing, body, count);
        und_stream_player_note_row(playing->player);
    }
    und_stream_player_leave_rows(playing->player);
    if (!playing->records)
        return;
    complete(playing, UND_OPENING);
    complete(playing, playing->reads ? UND_READING : UND_WRITING);
    if (playing->doing == UND_PLAY && !playing->reads && playing->plan->sync)
        complete(playing, UND_SYNCING);
    complete(playing, UND_CLOSING);
    playing->stamp = und_clock();
}

static void in_turn(struct playing *playing, const struct und_instruction *body, int count)
{
    if (playing->doing != UND_CHECK)
        und_stream_player_take_turn(playing->player);
    playing->stamp = und_clock();
    carry_out(playing, body, count);
    if (playing->doing != UND_CHECK)
        und_stream_player_pass_turn(playing->player);
}

/* An instruction of the times of the dump, rather than to its files and bytes. */
static void carry_out_timely(struct playing *playing, const struct und_instruction *instruction, int left)
{
    switch (instruction->code) {
    case UND_DO_SKEW: skew(playing); break;
    case UND_DO_REMOVE:
        if (!und_stream_player_is_open(playing->player))
            und_stream_player_take_away(playing->player, instruction->backup, false);
        break;
    case UND_DO_OPERATE: operate(playing, instruction->operations); break;
    case UND_DO_COMPUTE:
    case UND_DO_SPREAD: keep_pace(playing, instruction, left); break;
    default: break; /* begin: the dump is prepared */
    }
}

/* Behind moves of the step, which began with transfer `from` of the dump: where the deadline stopped a rank, all go on
 * to the largest number of transfers of any. Waiting for them is no time of I/O. */
static void wear_out(struct playing *playing, const struct und_instruction *moves, int count, int64_t from)
{
    const double now = und_clock();
    int64_t most[] = {und_stream_player_transfers(playing->player), und_stream_player_is_stopped(playing->player)};
    und_watch_enter(playing->run->watch, "wait for the deadline of all ranks", NULL, true);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_INT64_T, MPI_MAX, playing->run->comm),
            "cannot agree on the transfers at the deadline");
    und_watch_leave(playing->run->watch);
    playing->stamp += und_clock() - now;
    if (!most[1])
        return;
    und_stream_player_wear_out(playing->player, from, most[0]);
    ++playing->loops;
    carry_out(playing, moves, count);
    --playing->loops;
}

static bool moves_bytes(const struct und_instruction *instruction)
{
    return instruction->code == UND_DO_MOVE || instruction->code == UND_DO_PASSES;
}

/* Files that are made to be read are flushed, unless they are too many. */
static void carry_out(struct playing *playing, const struct und_instruction *body, int count)
{
    int moves = count; /* those that the instruction is one of; count: it is none */
    int64_t from = 0;
    for (int i = 0; i < count; i += 1 + body[i].body) {
        const struct und_instruction *here = &body[i];
        const int end = i + 1 + here->body;
        const bool last_move = i + 1 == count || body[i + 1].code != UND_DO_MOVE;
        if (moves_bytes(here) && moves == count) {
            moves = i;
            from = und_stream_player_transfers(playing->player);
        }
        switch (here->code) {
        case UND_DO_OPEN: open_files(playing); break;
        case UND_DO_MOVE:
            move(playing, here);
            if (playing->doing == UND_MAKE && last_move && !und_step_has(playing->step, UND_DO_EACH_FILE))
                und_stream_player_sync(playing->player);
            break;
        case UND_DO_WAIT_ALL: wait_all(playing); break;
        case UND_DO_SYNC: sync_files(playing, here->described); break;
        case UND_DO_CLOSE: close_files(playing); break;
        case UND_DO_CALLS: call(playing); break;
        case UND_DO_PASSES:
            ++playing->loops;
            for (int64_t pass = 0; pass < (playing->doing == UND_PLAY ? here->times : 1); ++pass)
                carry_out(playing, here + 1, here->body);
            --playing->loops;
            break;
        case UND_DO_IN_TURN: in_turn(playing, here + 1, here->body); break;
        case UND_DO_EACH_FILE: each_file(playing, here + 1, here->body); break;
        default:
            if (playing->doing == UND_PLAY || (playing->doing == UND_READ_ALONE && here->code == UND_DO_SPREAD))
                carry_out_timely(playing, here, count - i - 1);
        }
        if (moves < count && (end == count || !moves_bytes(&body[end]))) {
            if (playing->wears_out && playing->loops == 0)
                wear_out(playing, &body[moves], end - moves, from);
            moves = count;
        }
    }
}

/* A dump by itself, of files that are complete: opens and closes them where others do in the program. */
static void carry_out_alone(struct playing *playing)
{
    if (!und_step_has(playing->step, UND_DO_OPEN))
        open_files(playing);
    carry_out(playing, playing->step->instructions, playing->step->instruction_count);
    if (und_stream_player_is_open(playing->player))
        close_files(playing);
}

void und_phase_prepare(const struct und_run *run, struct und_stream_player *player, const struct und_event *event)
{
    const struct und_stream *stream = &run->workload->streams[event->stream];
    const int first = und_stream_grows(stream) ? 0 : und_stream_first(stream, event->dump);
    for (int dump = event->restart ? first : event->dump; dump <= event->dump; ++dump)
        und_stream_player_prepare(player, dump);
}

static struct playing begin(const struct und_run *run, struct und_stream_player *player, int stream, int dump,
                            enum und_doing doing)
{
    const struct und_stream *what = &run->workload->streams[stream];
    const bool timed = doing == UND_PLAY || doing == UND_READ_ALONE;
    return (struct playing){.run = run,
                            .player = player,
                            .plan = &run->plan->streams[stream],
                            .step = und_step_of(what, dump),
                            .doing = doing,
                            .wears_out = timed && run->plan->wears_out,
                            .reads = doing == UND_PLAY ? what->operation == UND_READS : doing != UND_MAKE};
}

void und_phase_check(const struct und_run *run, struct und_stream_player *player, const struct und_event *event,
                     struct und_verification *verification)
{
    struct playing playing = begin(run, player, event->stream, event->dump, UND_CHECK);
    playing.verification = verification;
    und_phase_prepare(run, player, event);
    und_stream_player_begin_moves(player, false);
    carry_out_alone(&playing);
}

/* Files that are used again and stay open are closed all the same: they may be too many. */
void und_phase_pass(const struct und_run *run, struct und_stream_player *player, int stream, int dump,
                    enum und_doing doing, struct und_verification *verification)
{
    const struct und_stream *what = &run->workload->streams[stream];
    struct playing playing = begin(run, player, stream, dump, doing);
    playing.verification = verification;
    und_watch_dump(run->watch, what, dump, false);
    und_stream_player_prepare(player, dump);
    und_stream_player_begin_moves(player, false);
    if (doing == UND_MAKE)
        und_stream_player_check(player, opens(&playing));
    carry_out(&playing, playing.step->instructions, playing.step->instruction_count);
    if (und_stream_player_ends_use(player) || (what->stays_open && und_stream_reuses(what)))
        close_files(&playing);
    if (doing == UND_MAKE)
        und_stream_player_note_layouts(player);
}

static void wait_for(const struct und_run *run, double until)
{
    und_watch_pause(run->watch, true);
    if (run->stencil)
        und_stencil_until(run->stencil, until);
    else
        und_wait(until, run->plan->compute);
    und_watch_pause(run->watch, false);
}

void und_phase_check_place(const struct und_run *run, bool asks)
{
    if (run->rank == 0 && !und_directory_is_in_place(run->directory, asks)) {
        UND_CHECK(errno == 0, "cannot look at the run directory %s", run->plan->directory);
        UND_DIE("%s is no longer the run directory: it was moved or replaced during the run", run->plan->directory);
    }
}

void und_phase_play(const struct und_run *run, struct und_stream_player *player, const struct und_event *event,
                    double zero, double due, struct und_record *records)
{
    const struct und_stream *stream = &run->workload->streams[event->stream];
    struct playing playing = begin(run, player, event->stream, event->dump, event->restart ? UND_READ_ALONE : UND_PLAY);
    playing.records = records;
    playing.zero = zero;
    memset(records, 0, UND_PHASES * sizeof *records);

    und_watch_dump(run->watch, stream, event->dump, event->restart);
    if (!event->restart)
        und_watch_allow(run->watch, und_skew_last(&playing.step->dump->skew) * run->plan->time_scale);
    und_phase_prepare(run, player, event);
    und_stream_player_begin_moves(player, true);
    wait_for(run, due);
    und_phase_check_place(run, false);
    if (!event->restart)
        und_stream_player_check(player, opens(&playing));
    UND_MPI(MPI_Barrier(run->comm), "cannot start dump %d of the stream %s together", event->dump, stream->name);
    playing.stamp = und_clock();
    playing.begin = run->plan->keep_pauses ? playing.stamp : due;
    if (event->restart)
        carry_out_alone(&playing);
    else
        carry_out(&playing, playing.step->instructions, playing.step->instruction_count);
    if (!event->restart && und_stream_player_ends_use(player))
        close_files(&playing);
}
