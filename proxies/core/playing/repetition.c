#include "playing/repetition.h"

#include "job/agree.h"
#include "job/die.h"
#include "playing/caller.h"
#include "playing/pace.h"
#include "playing/phase.h"
#include "playing/stream_player.h"
#include "storage/files.h"
#include "storage/run_directory.h"
#include "storage/tree.h"
#include "storage/watchdog.h"
#include "text/print.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The measurement of an event on this rank alone. */
struct sizes {
    int64_t files;
    int64_t file_bytes;
};

/* With a deadline, of all events on this rank: where it stopped, the transfers that it made, and those that the rank
 * made whose bytes this one reads. All NULL: there is none. */
struct deadlines {
    struct und_stop *stops;
    int64_t *written, *others;
};

static struct deadlines deadlines_new(const struct und_run *run)
{
    const int64_t count = run->schedule->count;
    if (run->plan->deadline_s <= 0)
        return (struct deadlines){.stops = NULL};
    return (struct deadlines){.stops = und_allocate(count, sizeof(struct und_stop), "the deadlines of the dumps"),
                              .written = und_allocate(count, sizeof(int64_t), "the deadlines of the dumps"),
                              .others = und_allocate(count, sizeof(int64_t), "the deadlines of the dumps")};
}

static void deadlines_free(struct deadlines *deadlines)
{
    free(deadlines->stops);
    free(deadlines->written);
    free(deadlines->others);
}

/* The player reads as another rank, `as`: what that one has written. Collective. */
static void read_written(const struct und_run *run, int stream, int64_t as, const struct deadlines *deadlines,
                         struct und_stream_player *player)
{
    const int64_t shift = as - run->rank + run->ranks;
    const int to = (int)((run->rank + run->ranks - shift % run->ranks) % run->ranks);
    const struct und_event first = {.stream = stream};
    const int64_t position = und_schedule_position(run->schedule, &first);
    if (!deadlines->stops || run->plan->only_restarts || run->workload->streams[stream].operation == UND_READS)
        return;
    UND_MPI(MPI_Sendrecv(deadlines->written + position, run->workload->streams[stream].dump_count, MPI_INT64_T, to, 0,
                         deadlines->others + position, run->workload->streams[stream].dump_count, MPI_INT64_T, (int)as,
                         0, run->comm, MPI_STATUS_IGNORE),
            "cannot exchange what was written up to the deadline");
    und_stream_player_read_written(player, deadlines->others + position);
}

/* Overwritten bytes cannot be compared; bytes that are read again need be made once. */
static bool is_passed(const struct und_stream *stream, int dump, enum und_doing doing)
{
    if (!und_stream_reuses(stream))
        return false;
    const bool again = dump >= stream->own_set.names;
    if (stream->own_set.owner == UND_EACH_ROW)
        return again;
    return doing == UND_CHECK ? !und_stream_lasts(stream, dump)
                              : again && und_dump_of(stream, dump)->variables ==
                                             und_dump_of(stream, dump - (int)stream->own_set.names)->variables;
}

/* Makes the files of a stream that is read, or reads back and compares those of any stream. */
static void pass_over(const struct und_run *run, int stream, int64_t as, enum und_doing doing,
                      const struct deadlines *deadlines, struct und_verification *verification)
{
    const struct und_stream *what = &run->workload->streams[stream];
    struct und_stream_player *player =
        und_stream_player_new(run, stream, as, doing == UND_MAKE ? UND_CREATE : UND_READ);
    if (doing == UND_CHECK)
        read_written(run, stream, as, deadlines, player);
    for (int dump = 0; dump < what->dump_count; ++dump)
        if (!is_passed(what, dump, doing))
            und_phase_pass(run, player, stream, dump, doing, verification);
    und_stream_player_free(player);
}

/* Another rank's bytes, of another node where there is one, so that they come from the storage
 * rather than from memory beside the one that wrote them. */
static int64_t other_rank(const struct und_run *run)
{
    MPI_Comm node;
    int on_node, most;
    UND_MPI(MPI_Comm_split_type(run->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "cannot find the nodes");
    MPI_Comm_size(node, &on_node);
    MPI_Comm_free(&node);
    UND_MPI(MPI_Allreduce(&on_node, &most, 1, MPI_INT, MPI_MAX, run->comm), "cannot find the nodes");
    return ((int64_t)run->rank + (most < run->ranks ? most : 1)) % run->ranks;
}

/* Brings the message of the lowest rank with a wrong byte to rank 0, and the sums to all. */
static void gather_verification(const struct und_run *run, struct und_verification *here,
                                struct und_verification *verification)
{
    static const char failed[] = "cannot add up the verification";
    int first = here->wrong_bytes > 0 ? run->rank : run->ranks, lowest;
    int64_t sums[2] = {here->bytes, here->wrong_bytes};
    UND_MPI(MPI_Allreduce(&first, &lowest, 1, MPI_INT, MPI_MIN, run->comm), failed);
    UND_MPI(MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT64_T, MPI_SUM, run->comm), failed);
    if (lowest < run->ranks && verification->wrong_bytes == 0) {
        UND_MPI(MPI_Bcast(here->first, sizeof here->first, MPI_CHAR, lowest, run->comm), failed);
        memcpy(verification->first, here->first, sizeof verification->first);
    }
    verification->bytes += sums[0];
    verification->wrong_bytes += sums[1];
}

/* The bytes that rank r + N wrote, modulo the ranks. */
static int64_t shifted_rank(const struct und_run *run)
{
    return ((int64_t)run->rank + run->plan->shift_ranks % run->ranks) % run->ranks;
}

/* Compares just what restarts read, in files of an earlier run. */
static void verify_restarts(const struct und_run *run, int64_t as, struct und_verification *here)
{
    struct und_event event;
    for (und_schedule_rewind(run->schedule); und_schedule_next(run->schedule, &event);) {
        struct und_stream_player *player = und_stream_player_new(run, event.stream, as, UND_READ);
        und_phase_check(run, player, &event, here);
        und_stream_player_free(player);
    }
}

static void verify(const struct und_run *run, const struct deadlines *deadlines, struct und_verification *here)
{
    const int64_t as = other_rank(run);
    if (run->plan->only_restarts)
        verify_restarts(run, as, here);
    for (int s = 0; !run->plan->only_restarts && s < run->workload->stream_count; ++s)
        if (run->workload->streams[s].own_set.tree)
            und_caller_check(run, s, as, here);
        else if (run->workload->streams[s].source < 0)
            pass_over(run, s, as, UND_CHECK, deadlines, here);
}

/* Small files that were made to be read are not flushed file by file, but must not be written while time is taken. */
static void settle(const struct und_run *run)
{
    static const char failed[] = "cannot flush what was prepared together";
    MPI_Comm node;
    int rank;
    UND_MPI(MPI_Comm_split_type(run->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), failed);
    MPI_Comm_rank(node, &rank);
    if (rank == 0)
        und_directory_settle(run->directory);
    MPI_Comm_free(&node);
    UND_MPI(MPI_Barrier(run->comm), failed);
}

static struct und_stream_player **stream_players_new(const struct und_run *run, const struct und_latencies *latencies,
                                                     struct und_verification *here)
{
    const int streams = run->workload->stream_count;
    struct und_stream_player **players = und_allocate(2 * streams, sizeof *players, "the streams");
    for (int s = 0; s < streams; ++s) {
        const struct und_stream *stream = &run->workload->streams[s];
        if (run->plan->streams[s].restarts)
            players[streams + s] = und_stream_player_new(run, s, shifted_rank(run), UND_READ);
        if (run->plan->streams[s].restarts)
            und_stream_player_note_latencies(players[streams + s], und_latencies_of(latencies, s, true));
        if (run->plan->streams[s].restarts && run->plan->verify)
            und_stream_player_verify(players[streams + s], here);
        if (run->plan->only_restarts)
            continue;
        if (stream->operation == UND_READS && stream->source < 0 && run->plan->streams[s].method->has_files)
            pass_over(run, s, run->rank, UND_MAKE, NULL, NULL);
        if (stream->operation == UND_READS && stream->own_set.owner == UND_EACH_ROW &&
            run->plan->streams[s].method->has_files)
            settle(run);
        players[s] = und_stream_player_new(run, s, run->rank, stream->operation == UND_READS ? UND_READ : UND_CREATE);
        und_stream_player_note_latencies(players[s], und_latencies_of(latencies, s, false));
        if (stream->source >= 0)
            und_stream_player_read_from(players[s], players[stream->source]);
        else if (run->plan->verify)
            und_stream_player_verify(players[s], here);
        und_stream_player_take_operations(players[s]);
    }
    return players;
}

static void stream_players_free(const struct und_run *run, struct und_stream_player **players)
{
    for (int s = 0; s < 2 * run->workload->stream_count; ++s)
        if (players[s])
            und_stream_player_free(players[s]);
    free(players);
}

/* The time that passes before a dump, and in it by intent: a run that waits for minutes is none that hangs. */
static void announce(const struct und_run *run, const struct und_event *event, double due)
{
    const struct und_stream *stream = &run->workload->streams[event->stream];
    const char *restart = event->restart ? "-restart" : "";
    const double wait_s = due - und_clock(), paced_s = event->restart ? 0 : und_pace_s(run, stream, event->dump);
    if (wait_s > 0)
        und_print(stderr, "understudy: %s%s: waits %.3f s for dump %d", stream->name, restart, wait_s, event->dump);
    if (paced_s > 0)
        und_print(stderr, "understudy: %s: dump %d computes or waits %.3f s between its transfers", stream->name,
                  event->dump, paced_s);
}

static void report(const struct und_run *run, const struct und_event *event, const struct und_record *records,
                   struct und_latency *const *latencies)
{
    char calls[64] = "";
    const bool reads = event->restart || run->workload->streams[event->stream].operation == UND_READS;
    const struct und_latency *latency = latencies ? latencies[reads ? UND_LATENCY_READ : UND_LATENCY_WRITE] : NULL;
    if (latency && und_latency_count(latency) > 0)
        snprintf(calls, sizeof calls, "; p99 of rank 0's calls so far %.6f s",
                 1e-9 * (double)und_latency_quantile(latency, 0.99));
    const char *name = run->workload->streams[event->stream].name;
    double end_s = 0;
    for (int p = 0; p < UND_PHASES; ++p)
        end_s = records[p].took_place && records[p].end_s > end_s ? records[p].end_s : end_s;
    und_print(stderr, "understudy: %s%s: dump %d, due at %.3f s, ended at %.3f s%s", name,
              event->restart ? "-restart" : "", event->dump, event->time_s, end_s, calls);
}

/* The ranks that wrote the dump may still hold it, and so may those that read it next. */
static void drop_cache(const struct und_run *run, struct und_stream_player **players, const struct und_event *event)
{
    if (players[event->stream])
        und_stream_player_drop_cache(players[event->stream], event->dump);
    UND_MPI(MPI_Barrier(run->comm), "cannot drop files from memory together");
    und_stream_player_drop_cache(players[run->workload->stream_count + event->stream], event->dump);
}

bool und_run_finds_files(const struct und_run *run, struct und_error *error)
{
    bool finds = true;
    struct und_event event;
    for (und_schedule_rewind(run->schedule); und_schedule_next(run->schedule, &event);) {
        struct und_stream_player *player = und_stream_player_new(run, event.stream, run->rank, UND_READ);
        const struct und_stream *stream = &run->workload->streams[event.stream];
        und_phase_prepare(run, player, &event);
        for (int dump = event.dump + 1; und_stream_grows(stream) && dump < stream->dump_count; ++dump)
            und_stream_player_prepare(player, dump); /* the earlier run appended all */
        finds = finds && und_stream_player_find(player, error);
        und_stream_player_free(player);
    }
    return und_agree(finds, run->comm, error);
}

/* Does the last dump of a stream come after that of another? */
static bool ends_after(const struct und_workload *workload, int stream, int other)
{
    const struct und_stream *left = &workload->streams[stream], *right = &workload->streams[other];
    const double left_s = und_dump_time(left, left->dump_count - 1),
                 right_s = und_dump_time(right, right->dump_count - 1);
    return left_s > right_s || (left_s == right_s && stream > other);
}

/* Updated files that stay open do so until the last dump that reads them. */
static void lend_files(const struct und_run *run, struct und_stream_player **players)
{
    const struct und_workload *workload = run->workload;
    for (int s = 0; !run->plan->only_restarts && s < workload->stream_count; ++s) {
        const struct und_stream *stream = &workload->streams[s];
        int last = s;
        if (!und_stream_updates(stream) || !stream->stays_open || stream->own_set.names > 1)
            continue;
        for (int reader = 0; reader < workload->stream_count; ++reader)
            if (workload->streams[reader].source == s && ends_after(workload, reader, last))
                last = reader;
        if (last != s)
            und_stream_player_lend(players[s], players[last]);
    }
}

/* Those that the storage was asked for so far, by all ranks. */
static void tell_requests(const struct und_run *run, const char *when)
{
    if (!run->plan->requests)
        return;
    UND_MPI(MPI_Barrier(run->comm), "cannot wait for all requests");
    if (run->rank == 0)
        und_directory_copy_requests(run->directory, run->plan->requests, run->plan->output, when);
    UND_MPI(MPI_Barrier(run->comm), "cannot wait for all requests");
}

/* Is it known by how much the files of a dump have grown? */
static bool knows_growth(const struct und_run *run, const struct und_event *event)
{
    const struct und_stream *stream = &run->workload->streams[event->stream];
    return !event->restart && stream->operation == UND_WRITES && !stream->own_set.tree && !und_stream_updates(stream) &&
           run->plan->streams[event->stream].method->has_files;
}

static void play(const struct und_run *run, struct und_record *records, struct sizes *sizes,
                 const struct und_latencies *latencies, const struct deadlines *deadlines,
                 struct und_verification *here)
{
    struct und_stream_player **players = stream_players_new(run, latencies, here);
    struct und_event event;
    lend_files(run, players);
    und_schedule_rewind(run->schedule);
    tell_requests(run, "last"); /* a name that cannot be written is known before all is measured */
    tell_requests(run, "first");
    const double zero = und_clock_start(run->comm);
    und_latencies_start(latencies, zero);
    double end = zero; /* of the event before */
    while (und_schedule_next(run->schedule, &event)) {
        const int at = event.restart ? run->workload->stream_count + event.stream : event.stream;
        const int64_t position = und_schedule_position(run->schedule, &event);
        if (event.restart && run->plan->drop_cache)
            drop_cache(run, players, &event);
        if (event.restart)
            read_written(run, event.stream, shifted_rank(run), deadlines, players[at]);
        const double due = run->plan->keep_pauses ? end + event.pause_s : zero + event.time_s;
        if (run->plan->verbose && run->rank == 0)
            announce(run, &event, due);
        und_phase_play(run, players[at], &event, zero, due, &records[position * UND_PHASES]);
        end = und_clock();
        if (deadlines->stops) {
            deadlines->stops[position] = und_stream_player_stop(players[at]);
            deadlines->written[position] = und_stream_player_transfers(players[at]);
        }
        sizes[position].files = und_stream_player_file_count(players[at]);
        und_stream_player_look(players[at], &sizes[position].file_bytes);
        und_stream_player_note_layouts(players[at]);
        struct und_stream_player *closed = event.restart ? NULL : und_stream_player_returns(players[at]);
        if (closed) {
            int64_t bytes;
            und_stream_player_look(closed, &bytes);
            und_stream_player_note_layouts(closed);
        }
        if (run->plan->verbose && run->rank == 0)
            report(run, &event, &records[position * UND_PHASES],
                   und_latencies_of(latencies, event.stream, event.restart));
    }
    tell_requests(run, "last");
    und_phase_check_place(run, true);
    stream_players_free(run, players);
}

/* Reduces a block of events at a time, so that memory does not grow with dumps times ranks. */
static void reduce(const struct und_run *run, const struct und_record *records, const struct sizes *sizes,
                   struct und_latencies *latencies, const struct deadlines *deadlines, const struct und_taker *taker)
{
    enum { BLOCK = 256 };
    und_latencies_merge(latencies, run->comm, taker->take_series, taker->taker);
    const int64_t count = run->schedule->count;
    struct und_summary *summaries = und_allocate(BLOCK * UND_PHASES, sizeof *summaries, "the results");
    struct sizes *sums = und_allocate(BLOCK, sizeof *sums, "the results");
    struct und_stops *stops = deadlines->stops ? und_allocate(BLOCK, sizeof *stops, "the results") : NULL;
    for (int64_t first = 0; first < count; first += BLOCK) {
        const int some = count - first < BLOCK ? (int)(count - first) : BLOCK;
        und_summarize(records + first * UND_PHASES, some * UND_PHASES, run->comm, summaries);
        UND_MPI(MPI_Allreduce(sizes + first, sums, 2 * some, MPI_INT64_T, MPI_SUM, run->comm),
                "cannot add up the files");
        if (stops)
            und_summarize_stops(deadlines->stops + first, some, run->comm, stops);
        for (int e = 0; run->rank == 0 && e < some; ++e) {
            const struct und_event event = und_schedule_at(run->schedule, first + e);
            struct und_outcome outcome = {.latencies = und_latencies_of(latencies, event.stream, event.restart),
                                          .files = sums[e].files,
                                          .stops = stops ? &stops[e] : NULL,
                                          .file_bytes = knows_growth(run, &event) ? sums[e].file_bytes : -1};
            for (int p = 0; p < UND_PHASES; ++p) {
                outcome.phases[p] = summaries[e * UND_PHASES + p];
                outcome.took_place[p] = records[(first + e) * UND_PHASES + p].took_place;
                outcome.bytes += outcome.phases[p].bytes;
            }
            taker->take_outcome(taker->taker, &event, &outcome);
        }
    }
    free(summaries);
    free(sums);
    free(stops);
}

/* Seconds of this rank in all phases. */
static double io_time_of(const struct und_record *records, int64_t count)
{
    double io_s = 0;
    for (int64_t i = 0; i < count; ++i)
        io_s += records[i].spent_s;
    return io_s;
}

/* Each rank removes its own files, and then its directories. */
static bool drop_files(const struct und_run *run, bool keep, struct und_error *error)
{
    static const char failed[] = "cannot end the repetition together", doing[] = "remove files";
    int64_t files = 0;
    for (int s = 0; s < run->workload->stream_count; ++s)
        files += run->plan->streams[s].files + run->plan->streams[s].other_inodes;
    und_watch_apart(run->watch, NULL, NULL, files);
    UND_MPI(MPI_Barrier(run->comm), failed);
    und_watch_enter(run->watch, doing, run->plan->directory, true);
    if (!keep)
        und_directory_remove_made(run->directory, UND_ITS_FILES);
    und_watch_leave(run->watch);
    UND_MPI(MPI_Barrier(run->comm), failed);
    und_watch_enter(run->watch, doing, run->plan->directory, true);
    if (!keep)
        und_directory_remove_made(run->directory, UND_ITS_DIRECTORIES);
    und_files_forget(run->directory);
    und_tree_forget(run->directory);
    und_watch_leave(run->watch);
    return und_directory_all_removed(run->directory, run->comm, error);
}

bool und_run_repetition(const struct und_run *run, bool keep, const struct und_taker *taker,
                        struct und_verification *verification, struct und_stragglers *stragglers,
                        struct und_error *error)
{
    /* Not a byte of them is touched before its dump is played. */
    const int64_t count = run->schedule->count;
    struct und_record *records = und_allocate(count * UND_PHASES, sizeof *records, "the times of the dumps");
    struct sizes *sizes = und_allocate(count, sizeof *sizes, "the sizes of the dumps");
    struct und_verification *here = und_allocate(1, sizeof *here, "the verification");
    struct und_latencies *latencies = und_latencies_new(run);
    struct deadlines deadlines = deadlines_new(run);
    und_watch_pause(run->watch, false);
    play(run, records, sizes, latencies, &deadlines, here);
    reduce(run, records, sizes, latencies, &deadlines, taker);
    und_latencies_free(latencies);
    und_stragglers_find(io_time_of(records, count * UND_PHASES), run->comm, stragglers);
    if (run->plan->verify) {
        verify(run, &deadlines, here);
        gather_verification(run, here, verification);
    }
    free(records);
    free(sizes);
    free(here);
    deadlines_free(&deadlines);
    return drop_files(run, keep, error);
}
