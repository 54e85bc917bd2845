/*
 * The layout flood as one rank plays it: every row of a variable is a file of its own, opened, moved whole
 * and closed by one rank. Names, contents and orders are computed; four bytes are kept of each file that this rank
 * has created, by which it is known again when it is removed.
 *
 * The files of a dump have numbers: row by row, variable by variable, the like ones one behind the other.
 * A rank moves the files whose rows are its own or, in shuffled order, those that one permutation of all
 * files has at their positions: ranks then move other files in each dump.
 */
#ifndef UND_FLOOD_H
#define UND_FLOOD_H

#include "core/run.h"
#include "core/timing.h"

struct und_flood;

/* Bytes that a variable of a dump takes in the player's memory. */
int64_t und_flood_variable_memory(void);

/* See und_series_new. */
struct und_flood *und_flood_new(const struct und_run *run, int stream, int64_t as, enum und_mode mode);
void und_flood_free(struct und_flood *flood);

/* Everything about the dump that can be done before its time is taken; creates directories. Collective over
 * all ranks. */
void und_flood_prepare(struct und_flood *flood, int dump);

/* Has an earlier dump made the files of this one? */
bool und_flood_is_made(const struct und_flood *flood, int dump);

/* Moves the files of the prepared dump and fills the records of the phases with seconds since `zero`. */
void und_flood_play(struct und_flood *flood, double zero, struct und_record *records);

/* Creates the files of the prepared dump, for streams that read them. Collective over all ranks. */
void und_flood_make(struct und_flood *flood);

/* Reads the files of the prepared dump and compares them. */
/* From here on what is read is compared, too, in time that is not counted. */
void und_flood_verify(struct und_flood *flood, struct und_verification *verification);

void und_flood_compare(struct und_flood *flood, struct und_verification *verification);

/* Ends the run where a directory of the prepared dump's files has been replaced. The ranks share the work. */
void und_flood_check_directories(struct und_flood *flood);

bool und_flood_reads(const struct und_flood *flood);

/* Files of this rank in the prepared dump, and the path of one of them; valid up to the next call of a
 * function of the flood. */
int64_t und_flood_count(const struct und_flood *flood);
const char *und_flood_path(struct und_flood *flood, int64_t index);

/* The same as those of und_series. */
void und_flood_look(struct und_flood *flood, int64_t *files, int64_t *file_bytes);
bool und_flood_find(struct und_flood *flood, struct und_error *error);
void und_flood_drop_cache(struct und_flood *flood, int dump);
void und_flood_note_layouts(struct und_flood *flood);

#endif
