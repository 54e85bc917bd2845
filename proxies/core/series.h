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

struct und_series;

/* The stream, with the bytes of rank `as` (the rank itself, or another when files are checked).
 * Collective over all ranks, which must cover all values of `as`; so is free. */
struct und_series *und_series_new(const struct und_run *run, int stream, int64_t as, enum und_mode mode);
void und_series_free(struct und_series *series);

/* Everything about the dump that can be done before its time is taken. Dumps of an appended stream
 * are prepared in their order, all of them. Collective over the ranks that share files. */
void und_series_prepare(struct und_series *series, int dump);

/* Does the dump begin, end a set of files? */
bool und_series_begins(const struct und_series *series, int dump);
bool und_series_ends(const struct und_series *series, int dump);

/* Where ranks take turns: wait for the rank before, let the next one go. What happens to the files
 * in between is this rank's alone. Nothing otherwise. */
void und_series_take_turn(const struct und_series *series);
void und_series_pass_turn(const struct und_series *series);

/* Collective over the ranks of each file, but for turns. */
void und_series_open(struct und_series *series);
void und_series_write(struct und_series *series);
void und_series_read(struct und_series *series);
void und_series_sync(struct und_series *series);
void und_series_close(struct und_series *series);

/* Before a timed read: whoever has a file of the dump in its node's memory flushes it and lets it go.
 * Nothing to do with the prepared dump. Collective over the ranks that share files. */
void und_series_drop_cache(struct und_series *series, int dump);

/* Are the files of the prepared dump there, as large as this workload would have made them? False with
 * a sentence. For each file, the rank that stands for it looks. */
bool und_series_find(const struct und_series *series, struct und_error *error);

/* Reads the dump and compares it. */
void und_series_compare(struct und_series *series, struct und_verification *verification);

/* Bytes moved and operations made since the last call of this function, on this rank. */
void und_series_count(struct und_series *series, int64_t *bytes, int64_t *operations);

/* Files of the prepared dump that this rank stands for, and by how much they have grown on storage.
 * Collective over the ranks of each file. */
void und_series_look(struct und_series *series, int64_t *files, int64_t *file_bytes);

/* Bytes that a variable of a dump takes in the player's memory. */
int64_t und_series_piece_memory(void);

#endif
