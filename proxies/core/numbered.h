/*
 * Files of a run that are too many to note one by one: only their number is kept, and names are computed.
 * File n of a set is <stem>.<n><suffix> in the run directory, or where directories hold at most so many
 * files, <stem>.d<n / that many>/<n><suffix>.
 *
 * What this rank has created of a set is known by a rule as well, so that it can be removed without a list:
 * only regular files of this user with one link, in directories that are no links. Paths that are formatted
 * here are valid up to the next call for the same set.
 */
#ifndef UND_NUMBERED_H
#define UND_NUMBERED_H

#include "core/error.h"
#include "core/run.h"

#include <stdbool.h>
#include <stdint.h>

struct und_numbered {
    const char *suffix;
    int64_t per_directory; /* 0: no directories */
    int64_t ready;         /* directories that are there, made by all ranks */
    int64_t pending;       /* that this rank has made beside them */
    size_t root;           /* characters of the run directory and the '/' behind it */
    size_t stem;           /* characters up to the end of the stem */
    char path[];
};

/* NULL when memory is out. */
struct und_numbered *und_numbered_new(const char *directory, const char *stem, const char *suffix,
                                      int64_t per_directory);

/* Another stem of at most as many characters as the first, as snprintf writes it. */
void und_numbered_restem(struct und_numbered *set, const char *stem);

/* The path of a file; `extra` is put behind it. */
const char *und_numbered_path(struct und_numbered *set, int64_t number, const char *extra);

/* The path of a directory. */
const char *und_numbered_directory(struct und_numbered *set, int64_t directory);

/* Directories that hold so many files. */
int64_t und_numbered_directories(const struct und_numbered *set, int64_t files);

/* A descriptor of a directory of this set, or where it has none of the run directory, and no link's target. Ends
 * the run where it is no longer that. */
int und_numbered_enter(struct und_numbered *set, int64_t directory);

/* Ends the run where one of the directories that hold so many files has been replaced. The ranks share the work
 * and wait for each other later. */
void und_numbered_check_directories(struct und_numbered *set, int64_t files, const struct und_run *run);

/* Creates the directories that hold so many files, each by one rank, as far as they are not there. Ends the run
 * where one cannot be created. Collective over the ranks of the run. */
void und_numbered_make_directories(struct und_numbered *set, int64_t files, const struct und_run *run);

/* Removes directories that were made, as far as they are empty: those of this rank or, where ranks may have
 * left some, all. Safe in a signal handler, like the
 * functions below, for what is made one by one. */
void und_numbered_remove_directories(struct und_numbered *set, int rank, int ranks, bool all);
void und_numbered_remove_directory(struct und_numbered *set, int64_t directory);
void und_numbered_remove(struct und_numbered *set, int64_t number, const char *extra);

#endif
