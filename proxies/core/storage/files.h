/*
 * The files of a run that this rank creates, so that it removes just these. A set has files whose names are computed
 * from their numbers, or directories; of each that this rank has created it keeps the mark (storage.h), by which it is
 * known again: 8 bytes, and no name. File k of a set is the k-th that this rank may create.
 *
 * A set is called DIR/[<directory>/]<stem>[<separator><number>]<tail>. Paths are valid up to the next call for the set.
 */
#ifndef UND_FILES_H
#define UND_FILES_H

#include "interfaces/layout_backend.h"
#include "plan/run.h"
#include "storage/run_directory.h"
#include "text/error.h"

#include <stdbool.h>
#include <stdint.h>

struct und_names {
    const char *stem, *separator, *tail;
    int digits; /* of a number, at least; 0: there is one file, without a number */
};

struct und_files {
    struct und_directory *directory;
    struct und_files *next, *parents; /* the directories that they are in; NULL: the run directory */
    int64_t group;                    /* files in a directory: those with consecutive numbers */
    bool is_noted, are_directories, has_own_directories;
    bool (*is_member)(const char *name); /* files are directories, of a library that has files of such names in them */
    bool stays_open;                     /* a directory, while others are entered */
    const char *other;                   /* put behind the name of what is renamed; NULL: nothing is */
    int64_t first, step;                 /* file k has the number first + k * step, or */
    int64_t (*number_of)(const void *sequence, int64_t); /* what this says */
    void *sequence;                                      /* freed with the set */
    int64_t capacity;
    uint64_t *marks, *others; /* of file k by its name and by the other; 0: there is none of this rank */
    int64_t count;            /* directories that this rank has made one behind the other */
    int64_t ready;            /* that all ranks have */
    int64_t opened;           /* of directories, the number of the one that is open; -1: none */
    int descriptor;           /* of it */
    bool is_inside;           /* this process works there */
    int64_t at, number;       /* file that has the path, and its number; -1: none */
    bool at_other;
    struct und_names names;
    size_t root; /* characters of the run directory and the '/' behind it */
    char *path;
    char text[];
};

/* Ends the run when memory is out. `parents` is NULL or freed later. */
struct und_files *und_files_new(const struct und_run *run, const struct und_names *names, struct und_files *parents,
                                int64_t group);

/* <stem>.d<n>: directory n is made by rank n modulo the ranks. */
struct und_files *und_files_new_directories(const struct und_run *run, const char *stem);

/* <stem>.<n><suffix> or, where directories hold `group` files each (0: there are none), <stem>.d<n / group>/<n><suffix>.
 * The directories are freed with the files. */
struct und_files *und_files_new_numbered(const struct und_run *run, const char *stem, const char *suffix,
                                         int64_t group);

/* A noted set of the same names, of which this one takes the place; or itself. */
struct und_files *und_files_noted(struct und_files *files);

/* Frees it, unless it is noted. */
void und_files_free(struct und_files *files);

/* Before the first `capacity` files may be created, or more than before: from here on those that are can be removed. */
void und_files_note(struct und_files *files, int64_t capacity);

/* The path of file k, by its `other` name once it is renamed. */
const char *und_files_path(struct und_files *files, int64_t k, bool other);

/* Works in the directory of a file, so that its name is looked up there, whatever its path leads to by now. Ends the
 * run where it is no longer the directory that this run created. Nothing happens where the set has no directories. What
 * acts on a file enters its directory. */
void und_files_enter(struct und_files *files, int64_t k);
void und_files_leave(struct und_files *files);

/* Creates a file, which must not exist, with the layout if one is asked (NULL: none). *descriptor is open for reading
 * and writing. False with the error message, like those below. */
bool und_files_create(struct und_files *files, int64_t k, const struct und_layout_request *request, int *descriptor,
                      struct und_error *error);

/* A file has been created, exclusively: notes what is open or, with -1, what has its name. */
void und_files_adopt(struct und_files *files, int64_t k, int descriptor);

/* From here on a library may replace the file if this rank created it, as ADIOS does, until it is taken back: any
 * regular file of this user with one link is taken for it. */
void und_files_lend(struct und_files *files, int64_t k);
void und_files_take_back(struct und_files *files, int64_t k);

/* The mark by which other ranks know it; zeros if this rank did not create it. */
struct und_shared und_files_share(const struct und_files *files, int64_t k);

/* Opens the file that this rank created, empty, for reading and writing. */
bool und_files_truncate(struct und_files *files, int64_t k, int *descriptor, struct und_error *error);

/* Is the file by that name what this rank created and, if it is to be renamed, is its other name free or that of the
 * one before it? */
bool und_files_may_go(struct und_files *files, int64_t k, bool other, bool renames, struct und_error *error);

/* Renames or removes it: it can be created again then. */
bool und_files_take_away(struct und_files *files, int64_t k, bool other, bool renames, struct und_error *error);

/* Size of a file. */
bool und_files_look(struct und_files *files, int64_t k, int64_t *bytes, struct und_error *error);

/* Creates a directory, which must not exist; or finds one that another rank `creates`, and which is then removed with
 * its last file. */
bool und_files_have_directory(struct und_files *directories, int64_t k, bool creates, struct und_error *error);

/* Creates the directories of so many files, each by one rank, as far as they are not there. Ends the run where one
 * cannot be created. Collective over the ranks of the run. */
void und_files_make_directories(struct und_files *files, const struct und_run *run, int64_t count);

/* Ends the run where one of these has been replaced. The ranks share the work and wait for each other later. */
void und_files_check_directories(struct und_files *files, int64_t count);

/* Removes what this rank has created. Safe in a signal handler. */
void und_files_remove(struct und_directory *directory, enum und_removal part);

/* Forgets all that is noted. */
void und_files_forget(struct und_directory *directory);

#endif
