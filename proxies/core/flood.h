/*
 * The files of a set with a file for each row, as one rank has them: every row of a variable is a file of its own,
 * which one rank opens, moves whole and closes. Names, contents and orders are computed; four bytes are kept of each
 * file that this rank has created, by which it is known again when it is removed.
 *
 * The files of a dump have numbers: row by row, variable by variable, the like ones one behind the other.
 * A rank moves the files whose rows are its own or, in shuffled order, those that one permutation of all
 * files has at their positions: ranks then move other files in each dump.
 */
#ifndef UND_FLOOD_H
#define UND_FLOOD_H

#include "core/run.h"

struct und_flood;

/* Bytes that a variable of a dump takes in the player's memory. */
int64_t und_flood_variable_memory(void);

/* See und_series_new. */
struct und_flood *und_flood_new(const struct und_run *run, int stream, int64_t as, enum und_mode mode);
void und_flood_free(struct und_flood *flood);

/* Everything about the dump that can be done before its time is taken; creates directories. Collective over
 * all ranks. */
void und_flood_prepare(struct und_flood *flood, int dump);

/* File `index` of this rank in the prepared dump. */
struct und_item {
    int variable; /* of the dump, whose row it is */
    int64_t number;
    int64_t bytes;
    uint64_t contents; /* see pattern.h */
    const char *path;  /* valid up to the next call of a function of the flood */
};

struct und_item und_flood_item(struct und_flood *flood, int64_t index);

/* Works in the directory of a file, where the set has directories, until it leaves it. */
void und_flood_enter(struct und_flood *flood, int64_t number);
void und_flood_leave(struct und_flood *flood);

/* Creates a file, which is then this rank's; its descriptor. Ends the run where it cannot. */
int und_flood_create(struct und_flood *flood, const char *path);

/* A file that the method has created, exclusively, is this rank's; -1: its descriptor is not known. */
void und_flood_adopt(struct und_flood *flood, int descriptor, const char *path);

/* Is that what is open or, with -1, what has the name the file that this rank created last? */
bool und_flood_is_last(const struct und_flood *flood, int descriptor, const char *path);

/* Ends the run where a directory of the prepared dump's files has been replaced. The ranks share the work. */
void und_flood_check_directories(struct und_flood *flood);

/* Files of this rank in the prepared dump, of all variables and of one (about, in shuffled order), and the path of one of them; valid up to the next call of a
 * function of the flood. */
int64_t und_flood_count(const struct und_flood *flood);
int64_t und_flood_rows_of(const struct und_flood *flood, int variable);
const char *und_flood_path(struct und_flood *flood, int64_t index);

/* The same as those of und_series. */
void und_flood_look(struct und_flood *flood, int64_t *files, int64_t *file_bytes);
bool und_flood_find(struct und_flood *flood, struct und_error *error);
void und_flood_drop_cache(struct und_flood *flood, int dump);
void und_flood_note_layouts(struct und_flood *flood);

#endif
