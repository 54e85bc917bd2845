/*
 * One stream as one rank plays it: its files with their communicators, and its part of the current
 * dump, cut into transfers. Timing is none of its business; what is collective, is stated.
 *
 * For each dump: prepare (untimed), what the instructions of its step say (phase.h), and look (untimed).
 */
#ifndef UND_STREAM_PLAYER_H
#define UND_STREAM_PLAYER_H

#include "job/latency.h"
#include "plan/run.h"
#include "playing/caller.h"
#include "playing/pace.h"

struct und_stream_player;

/* The stream, with the bytes of rank `as` (the rank itself, or another when files are checked).
 * Collective over all ranks, which must cover all values of `as`; so is free. */
struct und_stream_player *und_stream_player_new(const struct und_run *run, int stream, int64_t as, enum und_mode mode);
void und_stream_player_free(struct und_stream_player *player);

/* Files of the prepared dump: those of all slots or, where every row is a file, as many as this rank has. Such is what
 * is opened, moved and closed from here on, in its directory until the rank leaves it. */
int64_t und_stream_player_rows(const struct und_stream_player *player);
void und_stream_player_go_to_row(struct und_stream_player *player, int64_t index);
void und_stream_player_leave_rows(struct und_stream_player *player);

/* The files of the prepared dump from `rows` on are not made. */
void und_stream_player_leave_out_rows(struct und_stream_player *player, int64_t rows);

/* From here on the player has the operations without bytes of its dumps. Collective over all ranks. */
void und_stream_player_take_operations(struct und_stream_player *player);

/* Some of the prepared dump take place beside its open files; returns how many this rank makes. */
int64_t und_stream_player_operate(struct und_stream_player *player, const struct und_operations *operations);

/* Everything about the dump that can be done before its time is taken. Dumps of an appended stream
 * are prepared in their order, all of them. Collective over the ranks that share files. */
void und_stream_player_prepare(struct und_stream_player *player, int dump);

/* Are the files of the prepared dump open? Is it the last use of files that stay open? */
bool und_stream_player_is_open(const struct und_stream_player *player);
bool und_stream_player_ends_use(const struct und_stream_player *player);

/* Where ranks take turns: wait for the rank before, let the next one go. What happens to the files
 * in between is this rank's alone. Nothing otherwise. */
void und_stream_player_take_turn(struct und_stream_player *player);
void und_stream_player_pass_turn(struct und_stream_player *player);

/* Ends the run where a directory of the prepared dump or, where it opens files again, one of them is no longer what
 * the run created. Collective over the ranks that share files, before a barrier of all. */
void und_stream_player_check(struct und_stream_player *player, bool opens);

/* Do ranks wait for others that open a file of the dump? Else und_stream_player_create makes the files that they share,
 * which is collective, so that each rank can open them in its own time. */
bool und_stream_player_opens_together(const struct und_stream_player *player);
void und_stream_player_create(struct und_stream_player *player);

/* Removes the files of the prepared dump, or renames them to a backup, if they are there: of those that no rank has
 * created since, all or those with several ranks. */
void und_stream_player_take_away(struct und_stream_player *player, bool backup, bool shared);

/* Collective over the ranks of each file, but for turns. */
void und_stream_player_open(struct und_stream_player *player);

/* Calls that this rank makes for a variable of the prepared dump, once; the pace at which it makes those to come. */
int64_t und_stream_player_calls(const struct und_stream_player *player, int variable);
struct und_pace *und_stream_player_pace(struct und_stream_player *player);

/* Moves a variable of the prepared dump, of an open row only that with the row. What is compared are all bytes. */
enum und_move { UND_WRITE, UND_FETCH, UND_COMPARE };
void und_stream_player_move(struct und_stream_player *player, int variable, enum und_move move,
                            struct und_verification *verification);

/* Begins to move a variable that is nonblocking; waits for all that was begun. */
void und_stream_player_begin(struct und_stream_player *player, int variable, enum und_move move);
void und_stream_player_wait_all(struct und_stream_player *player);

void und_stream_player_sync(struct und_stream_player *player);
void und_stream_player_close(struct und_stream_player *player);

/* Before a timed read: each rank with a file of the dump in its node's memory flushes it and lets it go.
 * Nothing to do with the prepared dump. Collective over the ranks that share files. */
void und_stream_player_drop_cache(struct und_stream_player *player, int dump);

/* Are the files of the prepared dump there, as large as this workload would have made them? False with
 * an error message. For each file, the rank that stands for it looks. */
bool und_stream_player_find(struct und_stream_player *player, struct und_error *error);

/* A player that reads the files of another, as they are when a dump is played. */
void und_stream_player_read_from(struct und_stream_player *player, struct und_stream_player *base);

/* Files that stay open stay so for the streams that read them, until `last` has read its last dump. */
void und_stream_player_lend(struct und_stream_player *player, struct und_stream_player *last);

/* Whose files the prepared dump has closed with its own; NULL: no other's. */
struct und_stream_player *und_stream_player_returns(const struct und_stream_player *player);

/* From here on what is read is compared, too, in time that is not counted. */
void und_stream_player_verify(struct und_stream_player *player, struct und_verification *verification);

/* From here on the latencies of its operations are noted, UND_LATENCIES kinds of them; NULL: of none. */
void und_stream_player_note_latencies(struct und_stream_player *player, struct und_latency *const *latencies);

/* The small file in hand is closed: notes its latency. */
void und_stream_player_note_row(struct und_stream_player *player);
/* From here on it reads so many transfers of each dump that the rank as which it plays has written. */
void und_stream_player_read_written(struct und_stream_player *player, const int64_t *written);

/* Begins the moves of the prepared dump, with the deadline and the rate of the run where they are timed. */
void und_stream_player_begin_moves(struct und_stream_player *player, bool timed);

/* Reads between the writes of this rank since the last call, on und_clock; false: there are none in this dump. */
struct und_reads_between {
    double begin_s, end_s, spent_s;
    int64_t bytes, operations;
};
bool und_stream_player_take_reads(struct und_stream_player *player, struct und_reads_between *reads);

/* Transfers that this rank has made since then; are there no more to come? */
int64_t und_stream_player_transfers(const struct und_stream_player *player);
bool und_stream_player_is_over(struct und_stream_player *player);

/* Is this rank stopped? Behind the deadline: the last moves come again, to go on from transfer `from` of the dump until
 * the rank has made `most`. */
bool und_stream_player_is_stopped(const struct und_stream_player *player);
void und_stream_player_wear_out(struct und_stream_player *player, int64_t from, int64_t most);
struct und_stop und_stream_player_stop(const struct und_stream_player *player);

/* Makes the calls of the system of the prepared dump. */
void und_stream_player_call(struct und_stream_player *player, und_note_call *note, void *context);

/* Bytes moved, operations made and seconds waited on purpose since the last call of this function, on this
 * rank. */
void und_stream_player_count(struct und_stream_player *player, int64_t *bytes, int64_t *operations, double *waited_s);

/* Files of the prepared dump that this rank stands for. */
int64_t und_stream_player_file_count(struct und_stream_player *player);

/* By how much those that were opened have grown on storage since they were looked at last, which asks the storage.
 * Collective over the ranks of each file. */
void und_stream_player_look(struct und_stream_player *player, int64_t *file_bytes);

/* Notes the hints in force on an open file of the stream, once; true if that took time. */
bool und_stream_player_note_hints(const struct und_stream_player *player);

/* Notes the layouts of the files of the prepared dump, complete and closed, that this rank has created. */
void und_stream_player_note_layouts(struct und_stream_player *player);

/* Bytes that a variable of a dump takes in the player's memory. */
int64_t und_stream_player_piece_memory(void);

#endif
