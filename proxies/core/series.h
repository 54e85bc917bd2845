/*
 * One stream as one rank plays it: its files with their communicators, and its part of the current
 * dump, cut into transfers. Timing is none of its business; what is collective, is stated.
 *
 * For each dump: prepare (untimed), open if it begins a set of files, write, read or compare, sync,
 * close if it ends the set, and look (untimed).
 */
#ifndef UND_SERIES_H
#define UND_SERIES_H

#include "core/run.h"

struct und_flood;
struct und_series;

/* The stream, with the bytes of rank `as` (the rank itself, or another when files are checked).
 * Collective over all ranks, which must cover all values of `as`; so is free. */
struct und_series *und_series_new(const struct und_run *run, int stream, int64_t as, enum und_mode mode);
void und_series_free(struct und_series *series);

/* What plays the stream where its layout is flood; NULL: it has few enough files to be opened together. */
struct und_flood *und_series_flood(const struct und_series *series);

/* From here on the series has the operations without bytes of its dumps. Collective over all ranks. */
void und_series_take_operations(struct und_series *series);

/* Has the prepared dump any on any rank? They take place beside its open files; returns how many this rank makes. */
bool und_series_has_operations(const struct und_series *series);
int64_t und_series_operate(struct und_series *series);

/* Everything about the dump that can be done before its time is taken. Dumps of an appended stream
 * are prepared in their order, all of them. Collective over the ranks that share files. */
void und_series_prepare(struct und_series *series, int dump);

/* Does the dump open, close its files? */
bool und_series_opens(const struct und_series *series, int dump);
bool und_series_closes(const struct und_series *series, int dump);

/* Where ranks take turns: wait for the rank before, let the next one go. What happens to the files
 * in between is this rank's alone. Nothing otherwise. */
void und_series_take_turn(struct und_series *series);
void und_series_pass_turn(struct und_series *series);

/* Does the content of the dump last, or is it overwritten by a later one? */
bool und_series_lasts(const struct und_series *series, int dump);

/* Ends the run where a directory of the prepared dump or, where it opens files again, one of them is no longer what
 * the run created. Collective over the ranks that share files, before a barrier of all. */
void und_series_check(struct und_series *series, bool opens);

/* Do ranks wait for others that open a file of the dump? Else und_series_create makes the files that they share, which
 * is collective, so that each rank can open them in its own time. */
bool und_series_opens_together(const struct und_series *series);
void und_series_create(struct und_series *series);

/* Collective over the ranks of each file, but for turns. */
void und_series_open(struct und_series *series);

/* Before the bytes of the dump are moved: at which pace. Then all its moves, once. */
void und_series_begin_pace(struct und_series *series);
void und_series_write(struct und_series *series);
void und_series_read(struct und_series *series);

void und_series_sync(struct und_series *series);
void und_series_close(struct und_series *series);

/* Before a timed read: each rank with a file of the dump in its node's memory flushes it and lets it go.
 * Nothing to do with the prepared dump. Collective over the ranks that share files. */
void und_series_drop_cache(struct und_series *series, int dump);

/* Are the files of the prepared dump there, as large as this workload would have made them? False with
 * an error message. For each file, the rank that stands for it looks. */
bool und_series_find(const struct und_series *series, struct und_error *error);

/* A series that reads the files of another, as they are when a dump is played. */
void und_series_read_from(struct und_series *series, struct und_series *base);

/* Files that stay open stay so for the streams that read them, until `last` has read its last dump. */
void und_series_lend(struct und_series *series, struct und_series *last);

/* Whose files the prepared dump has closed with its own; NULL: no other's. */
struct und_series *und_series_returns(const struct und_series *series);

/* From here on what is read is compared, too, in time that is not counted. */
void und_series_verify(struct und_series *series, struct und_verification *verification);

/* Reads the dump and compares it. */
void und_series_compare(struct und_series *series, struct und_verification *verification);

/* Bytes moved, operations made and seconds waited on purpose since the last call of this function, on this
 * rank. */
void und_series_count(struct und_series *series, int64_t *bytes, int64_t *operations, double *waited_s);

/* Files of the prepared dump that this rank stands for, and by how much they have grown on storage.
 * Collective over the ranks of each file. */
void und_series_look(struct und_series *series, int64_t *files, int64_t *file_bytes);

/* Notes the hints in force on an open file of the stream, once; true if that took time. */
bool und_series_note_hints(const struct und_series *series);

/* Notes the layouts of the files of the prepared dump, complete and closed, that this rank has created. */
void und_series_note_layouts(const struct und_series *series);

/* Bytes that a variable of a dump takes in the player's memory. */
int64_t und_series_piece_memory(void);

#endif
