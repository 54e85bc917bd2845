/*
 * The run directory: entered, watched, removed; and what a single name in it takes to be created, known again and
 * removed. The files of a run are in files.h. A method whose store is no tree of files brings its own `struct und_store`.
 *
 * A run works in its directory, entered by a descriptor, and opens files by their names there: whatever takes the
 * place of the directory's path is never written to. A file is created with O_EXCL and a mark of its identity (device,
 * inode and time of birth) is kept; only what still has that mark is ever removed or overwritten: removed at the end
 * of a repetition or of the run, from und_die, and from a signal handler (stop.h). A handler gets no argument, hence
 * the state outside of struct und_run.
 */
#ifndef UND_STORAGE_H
#define UND_STORAGE_H

#include "core/error.h"
#include "core/striping.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UND_CLAIM ".understudy"

/* Which file it is, whatever its name. The number of an inode may be used again once the file is gone, hence the
 * time of birth, which is 0 where the file system keeps none. */
struct und_identity {
    uint64_t device, inode, birth_ns;
};

/* Enough of an identity to recognize the file: 0 where there is none; UND_UNKNOWN of one that this run has created and
 * nobody can tell from others. */
enum { UND_UNKNOWN = 1 };

/* A mark for other ranks: numbers of another host's file system may differ. */
struct und_shared {
    uint64_t host, mark;
};

struct und_shared und_storage_share(uint64_t mark);
uint64_t und_storage_shared(struct und_shared shared);

/* A store of a method's own. Paths are those of the run directory, as names. */
struct und_store {
    /* The path must not exist. False with the error message. */
    bool (*create)(const char *path, const struct und_striping_request *request, struct und_error *error);
    bool (*look)(const char *path, int64_t *bytes, struct und_error *error);
    /* Only of paths that `create` made. Safe in a signal handler. */
    void (*remove)(const char *path);
};

/* Opens the run directory. It is removed at the end if it was created for this run and is empty. */
bool und_storage_open(const char *directory, bool created, struct und_error *error);

/* From here on this process works in the run directory, until it goes back to where it was started: libraries that
 * end with the process may write there. */
bool und_storage_work_inside(struct und_error *error);
void und_storage_work_outside(void);

/* What a path of the run is called in the working directory: its name in the run directory, or the path itself
 * where the process works elsewhere. */
const char *und_storage_name(const char *path);

/* How und_storage_create applies layouts; NULL: not at all. */
void und_storage_stripe_by(const struct und_striping *striping);

/* Is that what is open a file in the run directory, by its name? */
bool und_storage_holds(int descriptor);

/* A file that tells the requests of a storage is copied to another, with a suffix to its name, where the player has
 * worked before it entered the run directory. Ends the run where that fails. */
void und_storage_copy_requests(const char *from, const char *to, const char *suffix);

/* Does the path of the run directory still lead to it? Libraries open files by path. Otherwise errno is why nobody can
 * tell, or 0. Unless it `asks`, the storage is asked nothing while the kernel has the directory where it was. */
bool und_storage_is_in_place(bool asks);

/* The mark of what is open, with an empty name, or of a name in an open directory. */
uint64_t und_storage_mark(int directory, const char *name);

/* Does it have the mark? Always true of UND_UNKNOWN; false with errno where it cannot be looked at, and else with 0. */
bool und_storage_is_it(int directory, const char *name, uint64_t mark);

/* Creates a file in the working directory, which must not exist, with the layout if one is asked (NULL: none). False
 * with the error message. */
bool und_storage_create(const char *path, const struct und_striping_request *request, int *descriptor,
                        struct und_error *error);

/* Creates, or with mode 0 finds, a directory of that name in the run directory: its mark, or 0 with errno. */
uint64_t und_storage_have_directory(const char *name, unsigned mode);

/* A descriptor of it: -1 with errno where it is a link, or has another mark or, with mark 0, is on another device or
 * somebody else's. */
int und_storage_open_directory(const char *name, uint64_t mark);

/* Works in such a directory, where the names of its files begin behind `root` characters of their paths, until it
 * goes back. */
bool und_storage_enter(int directory, size_t root);
bool und_storage_leave(void);

/* Removes what has the mark and that name in the run directory, or in a directory of it that is no link, which may be
 * open (-1: it is not). Safe in a signal handler. */
void und_storage_remove_name(int directory, const char *name, uint64_t mark, bool is_directory);

/* Opens a path below an open directory, out of which no link leads, or with `links` false no link at all
 * and no other file system. -1 with errno. Safe in a signal handler. */
int und_storage_open_below(int directory, const char *path, int flags, bool links);

/* Removes a path below a directory that this run has made and that is closed to others, unless it is a directory. Safe
 * in a signal handler. */
void und_storage_remove_at(int directory, const char *path);

/* Removes from such a directory, and from what it removes, all whose names are numbers from 0 to count - 1; directories
 * if nothing else is in them. Follows no link. Safe in a signal handler. */
void und_storage_remove_numbered(int directory, int64_t count);

/* Who removes what this rank has created, safely in a signal handler: the files first and, once all ranks have removed
 * theirs, the directories; in a run that fails, every directory that may be empty at once. */
enum und_storage_part { UND_ITS_FILES, UND_ITS_DIRECTORIES, UND_ALL_DIRECTORIES };

void und_storage_remove_by(void (*remove)(enum und_storage_part part));
void und_storage_remove_made(enum und_storage_part part);

/* Flushes a file, if it is there, and lets go of what the node's memory has of it; `method` is for messages. */
void und_storage_drop_cache(const char *method, const char *path);

/* Writes what the file system of the run directory still has in memory, so that it is not written later. */
void und_storage_settle(void);

/* Opens a new file beside the result, for und_storage_publish to rename. The result must be a regular
 * file or not exist. -1 with the error message. */
int und_storage_create_result(const char *output, struct und_error *error);
bool und_storage_publish_result(const char *output, struct und_error *error);

/* Where the result is until it is published: its path, and its identity. */
bool und_storage_result_part(char *path, size_t size, struct und_identity *identity);

/* Has this run created its directory? */
bool und_storage_is_created(void);

/* The claim on the run directory (claim.h): rank 0 creates it, open for writing, and all ranks get to know it; the
 * last to remove its files removes it, too. False with the message where there is one. */
bool und_storage_create_claim(int *descriptor, struct und_error *error);
void und_storage_share_claim(MPI_Comm comm);

/* The run has ended: removes the claim, and the directory if it was created for this run and is empty. Safe in a
 * signal handler. */
void und_storage_disclaim(void);

/* What is open, with an empty name, or the name in an open directory. Asks no server for sizes. */
bool und_storage_identify(int directory, const char *name, struct und_identity *identity);

/* Removes all that is left, the run directory last. Safe in a signal handler. */
void und_storage_remove(void);

/* Could all be removed since this was last asked? False with the message: how many could not, the first of them and
 * why. Collective. */
bool und_storage_all_removed(MPI_Comm comm, struct und_error *error);

/* For und_die_clean_by: the same in a run that fails, whose files may still be open, and once all ranks of the node
 * have done it; how many could not be removed, and a line that says so. Safe in a signal handler. */
int64_t und_storage_fail(void);
int64_t und_storage_end_failure(void);
void und_storage_tell_kept(int64_t count);

/* Bytes that are free where the run directory is, 0 where no file can be created, -1: not known. It may take long. */
int64_t und_storage_free(void);

#endif
