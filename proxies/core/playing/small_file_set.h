/*
 * The files of a set with a file for each row, as one rank has them: every row of a variable is a file of its own,
 * which one rank opens, moves whole and closes. Names, contents and orders are computed (files.h).
 *
 * The files of a dump have numbers: row by row, variable by variable, the like ones one behind the other.
 * A rank moves the files whose rows are its own or, in shuffled order, those that one permutation of all
 * files has at their positions: ranks then move other files in each dump.
 */
#ifndef UND_SMALL_FILE_SET_H
#define UND_SMALL_FILE_SET_H

#include "storage/files.h"

struct und_small_file_set;

/* Bytes that a variable of a dump takes in the player's memory. */
int64_t und_small_file_set_variable_memory(void);

/* See und_stream_player_new. */
struct und_small_file_set *und_small_file_set_new(const struct und_run *run, int stream, int64_t as);
void und_small_file_set_free(struct und_small_file_set *small_files);

/* Everything about the dump that can be done before its time is taken; if it `creates` its files, their directories.
 * Collective over all ranks. */
void und_small_file_set_prepare(struct und_small_file_set *small_files, int dump, bool creates);

/* File `index` of this rank in the prepared dump. */
struct und_item {
    int variable; /* of the dump, whose row it is */
    int64_t bytes;
    uint64_t contents; /* see pattern.h */
    const char *path;  /* valid up to the next call of a function of the set */
};

struct und_item und_small_file_set_item(const struct und_small_file_set *small_files, int64_t index);

/* All of the prepared dump. */
struct und_files *und_small_file_set_files(const struct und_small_file_set *small_files);

/* Ends the run where a directory of the prepared dump's files has been replaced. The ranks share the work. */
void und_small_file_set_check_directories(const struct und_small_file_set *small_files);

/* Files of this rank in the prepared dump, of all variables and of one (about, in shuffled order). */
int64_t und_small_file_set_count(const struct und_small_file_set *small_files);
int64_t und_small_file_set_rows_of(const struct und_small_file_set *small_files, int variable);

#endif
