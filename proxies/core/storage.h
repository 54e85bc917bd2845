/*
 * Storage as the player uses it: create (with a layout), look, remove. The default is a tree of files
 * below the run directory; a method whose store is no such tree brings its own `struct und_store`.
 *
 * A run works in its directory, entered by a descriptor, and opens files by their names there: whatever takes the
 * place of the directory's path is never written to. A file is created with O_EXCL and its identity (device, inode
 * and time of birth) is noted; only what still has that identity is ever removed or overwritten: removed at the end
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
    uint64_t host; /* hash of its name: numbers of another host's file system may differ */
};

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

/* Does the path of the run directory still lead to it? Libraries open files by path. Otherwise errno is why nobody can
 * tell, or 0. */
bool und_storage_is_in_place(void);

enum und_storage_kind { UND_DATA_FILE, UND_DATA_DIRECTORY };

/* Notes a path below the run directory that may be created later; for a directory before the files in
 * it. Ends the run when memory is out or the path leads out of the run directory. */
void und_storage_reserve(const char *path, enum und_storage_kind kind, const struct und_store *store);

/* Creates the reserved file, which must not exist, with the layout if one is asked (NULL: none), while the
 * process works in the run directory.
 * *descriptor is open for reading and writing, -1 in a method's own store. False with the error message. */
bool und_storage_create(const char *path, const struct und_striping_request *request, int *descriptor,
                        struct und_error *error);

/* Has und_storage_create made the file on this rank? Gives its identity. */
bool und_storage_find(const char *path, struct und_identity *identity);

/* Is that what is open or, with -1, what has the path's name? Always true where nobody can tell: without an
 * identity, or with that of another host. */
bool und_storage_is_it(int descriptor, const char *path, const struct und_identity *identity);

/* Opens the file that und_storage_create made, empty, for reading and writing. False with the error message. */
bool und_storage_truncate(const char *path, int *descriptor, struct und_error *error);

/* Removes the file that und_storage_create made, which can be created again then; with a backup it is renamed instead,
 * in place of the backup that this run made before. False with the error message. */
bool und_storage_take_away(const char *path, bool backup, struct und_error *error);

/* Creates the reserved directory, which must not exist. Other ranks with files in it have reserved it
 * too and share it: it is removed with the last file. */
bool und_storage_create_directory(const char *path, struct und_error *error);
bool und_storage_share(const char *path, struct und_error *error);

/* Works in the directory of a file while it is opened, where it is not the run directory: whatever takes the place of
 * that directory's name is never written to. */
void und_storage_enter_parent(const char *path);
void und_storage_leave_parent(const char *path);

/* From here on a library may replace the file that this rank created by another of its name, as ADIOS
 * does: until it is adopted, any regular file of this user with one link is taken for it. Nothing
 * happens for a path that this rank did not create. */
void und_storage_lend(const char *path);

/* The reserved file has been created, exclusively, or replaced by a library: notes the identity of what is open or,
 * with -1, of what has its name. */
void und_storage_adopt(const char *path, int descriptor);

/* Size of a reserved file. */
bool und_storage_look(const char *path, int64_t *bytes, struct und_error *error);

/* Removes, or keeps, the data files created so far, and forgets them. */
void und_storage_drop_data(bool removing);

/*
 * Files that are too many to note one by one, see numbered.h. Their owner can name those that this rank has
 * created, and is asked to remove them, safely in a signal handler: the files first and, once all ranks have
 * removed theirs, the directories; in a run that fails, every directory that may be empty at once.
 */
enum und_storage_part { UND_ITS_FILES, UND_ITS_DIRECTORIES, UND_ALL_DIRECTORIES };

struct und_storage_many {
    void (*remove)(struct und_storage_many *many, enum und_storage_part part);
    void (*free)(struct und_storage_many *many);
    struct und_storage_many *next;
};

/* Before the first of the files is created; und_storage_drop_data frees it. */
void und_storage_note_many(struct und_storage_many *many);

/* Removes, or keeps, the files of all that were noted. Then, after a barrier, comes und_storage_drop_data. */
void und_storage_drop_many(bool removing);

/* Of an identity so much that no other file is taken for it by chance: what is remembered of each of many files.
 * Of what is open, with an empty name, or of a name in an open directory; 0: not known. */
uint32_t und_storage_mark(int directory, const char *name);

/* By names in the run directory, or in a directory of it that is no link: removes what has the mark. Safe in a
 * signal handler. */
void und_storage_remove_file(const char *name, uint32_t mark);

/* Creates a directory of the run directory; 0 with errno, or its mark. */
uint32_t und_storage_make_directory(const char *name);

/* Removes an empty directory that has the mark or, with 0, whatever directory it is. */
void und_storage_remove_directory(const char *name, uint32_t mark);

/* A descriptor of the directory of that name in the run directory: -1 with errno where it is a link, on another
 * device, somebody else's, or has another mark than this (0: any). */
int und_storage_open_directory(const char *name, uint32_t mark);

/* Works in such a directory, where the names of its files begin behind `root` characters of their paths, until it
 * goes back. */
bool und_storage_enter(int directory, size_t root);
bool und_storage_leave(void);

/* Creates a file in the working directory that is noted elsewhere, as und_storage_create does. */
bool und_storage_create_unnoted(const char *path, const struct und_striping_request *request, int *descriptor,
                                struct und_error *error);

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
