/*
 * Storage as the player uses it: create (with a layout), look, remove. The default is a tree of files
 * below the run directory; a method whose store is no such tree brings its own `struct und_store`.
 *
 * Files are looked at and removed relative to an open descriptor of the run directory, and symbolic links
 * are never followed below it. A file is created with O_EXCL and its identity (device and inode) is noted; only
 * what still has that identity is ever removed: at the end of a repetition or of the run, from und_die,
 * and from a signal handler (stop.h). A handler gets no argument, hence the state outside of
 * struct und_run.
 */
#ifndef UND_STORAGE_H
#define UND_STORAGE_H

#include "core/error.h"
#include "core/striping.h"

#include <stdbool.h>
#include <stdint.h>

/* A store of a method's own. Paths are those of the run directory, as names. */
struct und_store {
    /* The path must not exist. False with the error message. */
    bool (*create)(const char *path, const struct und_striping_request *request, struct und_error *error);
    bool (*look)(const char *path, int64_t *bytes, struct und_error *error);
    /* Only of paths that `create` made. Safe in a signal handler. */
    void (*remove)(const char *path);
};

/* For rank 0: the directory must be empty and writable, or is created (its last component only;
 * *created). False with the error message. */
bool und_storage_prepare(const char *directory, bool *created, struct und_error *error);

/* For every rank, then: opens the run directory. It is removed at the end if it was created for this
 * run and is empty. */
bool und_storage_open(const char *directory, bool created, struct und_error *error);

/* How und_storage_create applies layouts; NULL: not at all. */
void und_storage_stripe_by(const struct und_striping *striping);

/* Does the path of the run directory still lead to it? Libraries open files by path. */
bool und_storage_is_in_place(void);

enum und_storage_kind { UND_DATA_FILE, UND_DATA_DIRECTORY };

/* Notes a path below the run directory that may be created later; for a directory before the files in
 * it. Ends the run when memory is out or the path leads out of the run directory. */
void und_storage_reserve(const char *path, enum und_storage_kind kind, const struct und_store *store);

/* Creates the reserved file, which must not exist, with the layout if one is asked (NULL: none).
 * *descriptor is open for reading and writing, -1 in a method's own store. False with the error message. */
bool und_storage_create(const char *path, const struct und_striping_request *request, int *descriptor,
                        struct und_error *error);

/* Is the file still the one that und_storage_create made on this rank? */
bool und_storage_is_ours(const char *path);

/* Opens such a file, empty, for reading and writing. False with the error message. */
bool und_storage_truncate(const char *path, int *descriptor, struct und_error *error);

/* Creates the reserved directory, which must not exist. Other ranks with files in it have reserved it
 * too and share it: it is removed with the last file. */
bool und_storage_create_directory(const char *path, struct und_error *error);
bool und_storage_share(const char *path, struct und_error *error);

/* From here on a library may replace the file that this rank created by another of its name, as ADIOS
 * does: until it is adopted, any regular file of this user with one link is taken for it. Nothing
 * happens for a path that this rank did not create. */
void und_storage_lend(const char *path);

/* The reserved file has been created, exclusively, or replaced by a library: notes its identity. */
void und_storage_adopt(const char *path);

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

/* By names in the run directory, or in a directory of it that is no link. What is removed is a regular file
 * of this user with one link, or an empty directory. */
bool und_storage_make_directory(const char *name);
void und_storage_remove_directory(const char *name);

/* A descriptor of the directory of that name in the run directory ("." for that itself), for fchdir: -1 with
 * errno where it is a link, on another device or somebody else's. */
int und_storage_enter_directory(const char *name);
/* One of the working directory, to come back to; -1 with errno. */
int und_storage_working_directory(void);

void und_storage_remove_file(const char *name);

/* Creates a file in the working directory, which `directory` is too, that is noted elsewhere. The path is for
 * messages. False with the error message. */
bool und_storage_create_in(int directory, const char *name, const char *path,
                           const struct und_striping_request *request, int *descriptor, struct und_error *error);

/* Creates a file below the run directory that is noted elsewhere, as und_storage_create does. */
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

/* Removes all that is left, the run directory last. Safe in a signal handler. */
void und_storage_remove(void);

#endif
