/*
 * The files of a set with a file for each row, as one rank has them: every row of a variable is a file of its own,
 * which one rank opens, moves whole and closes. Names, contents and orders are computed (files.h).
 *
 * The files of a dump have numbers: row by row, variable by variable, the like ones one behind the other.
 * A rank moves the files whose rows are its own or, in shuffled order, those that one permutation of all
 * files has at their positions: ranks then move other files in each dump.
 */
#ifndef UND_FLOOD_H
#define UND_FLOOD_H

#include "core/files.h"

struct und_flood;

/* Bytes that a variable of a dump takes in the player's memory. */
int64_t und_flood_variable_memory(void);

/* See und_series_new. */
struct und_flood *und_flood_new(const struct und_run *run, int stream, int64_t as);
void und_flood_free(struct und_flood *flood);

/* Everything about the dump that can be done before its time is taken; if it `creates` its files, their directories.
 * Collective over all ranks. */
void und_flood_prepare(struct und_flood *flood, int dump, bool creates);

/* File `index` of this rank in the prepared dump. */
struct und_item {
    int variable; /* of the dump, whose row it is */
    int64_t bytes;
    uint64_t contents; /* see pattern.h */
    const char *path;  /* valid up to the next call of a function of the flood */
};

struct und_item und_flood_item(const struct und_flood *flood, int64_t index);

/* All of the prepared dump. */
struct und_files *und_flood_files(const struct und_flood *flood);

/* Ends the run where a directory of the prepared dump's files has been replaced. The ranks share the work. */
void und_flood_check_directories(const struct und_flood *flood);

/* Files of this rank in the prepared dump, of all variables and of one (about, in shuffled order). */
int64_t und_flood_count(const struct und_flood *flood);
int64_t und_flood_rows_of(const struct und_flood *flood, int variable);

#endif
