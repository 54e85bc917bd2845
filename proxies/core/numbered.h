/*
 * Files of a run that are too many to note one by one: their names are computed, and of each that this rank has
 * created four bytes are kept, its mark (storage.h), by which it is known again when it is removed. File n of a set
 * is <stem>.<n><suffix> in the run directory, or where directories hold at most so many files,
 * <stem>.d<n / that many>/<n><suffix>. Directory d is made by rank d modulo the ranks, which keeps its mark.
 *
 * Paths that are formatted here are valid up to the next call for the same set.
 */
#ifndef UND_NUMBERED_H
#define UND_NUMBERED_H

#include "core/run.h"

#include <stdbool.h>
#include <stdint.h>

struct und_numbered {
    const struct und_run *run;
    const char *suffix;
    int64_t per_directory; /* 0: no directories */
    int64_t ready;         /* directories that are there, made by all ranks */
    int64_t made;          /* by this rank */
    uint32_t *marks;       /* of these */
    int64_t capacity;      /* of marks */
    int64_t entered;       /* the directory that is open; -1: none */
    int descriptor;        /* of it */
    size_t root;           /* characters of the run directory and the '/' behind it */
    size_t stem;           /* characters up to the end of the stem */
    char path[];
};

/* Ends the run when memory is out. */
struct und_numbered *und_numbered_new(const struct und_run *run, const char *stem, const char *suffix,
                                      int64_t per_directory);
void und_numbered_free(struct und_numbered *set);

/* Another stem of at most as many characters as the first, as snprintf writes it. */
void und_numbered_restem(struct und_numbered *set, const char *stem);

/* The path of a file; `extra` is put behind it. */
const char *und_numbered_path(struct und_numbered *set, int64_t number, const char *extra);

/* Works in the directory of a file, so that its name is looked up there, whatever its path leads to by now. Ends the
 * run where it is no longer the directory that this run created. Nothing happens where the set has no directories. */
void und_numbered_enter(struct und_numbered *set, int64_t number);
void und_numbered_leave(struct und_numbered *set);

/* Ends the run where one of the directories that hold so many files has been replaced. The ranks share the work
 * and wait for each other later. */
void und_numbered_check_directories(struct und_numbered *set, int64_t files);

/* Creates the directories that hold so many files, each by one rank, as far as they are not there. Ends the run
 * where one cannot be created. Collective over the ranks of the run. */
void und_numbered_make_directories(struct und_numbered *set, int64_t files);

/* Makes the next directory of this rank alone; there is memory to note so many. */
void und_numbered_reserve(struct und_numbered *set, int64_t more);
void und_numbered_make_directory(struct und_numbered *set);

/* Removes directories that were made, as far as they are empty: those of this rank or, where ranks may have
 * left some, all. Safe in a signal handler, like the function below. */
void und_numbered_remove_directories(struct und_numbered *set, bool all);
void und_numbered_remove(struct und_numbered *set, int64_t number, const char *extra, uint32_t mark);

#endif
