/*
 * The run directory: entered, watched, removed; and what a single name in it takes to be created, known again and
 * removed. The files of a run are in files.h.
 *
 * A run works in its directory, entered by a descriptor, and opens files by their names there: whatever takes the
 * place of the directory's path is never written to. A file is created with O_EXCL and a mark of its identity (device,
 * inode and time of birth) is kept; only what still has that mark is ever removed or overwritten: removed at the end
 * of a repetition or of the run, from und_die, and from a signal handler (stop.h).
 */
#ifndef UND_RUN_DIRECTORY_H
#define UND_RUN_DIRECTORY_H

#include "interfaces/layout_backend.h"
#include "job/die.h"
#include "storage/file_identity.h"
#include "text/error.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UND_CLAIM ".understudy"

enum { UND_ENTRY_BYTES = 256 };

struct und_directory;
struct und_files;
struct und_run_tree;
struct und_watch;

/* A mark for other ranks: numbers of another host's file system may differ. */
struct und_shared {
    uint64_t host, mark;
};

struct und_shared und_directory_share(const struct und_directory *directory, uint64_t mark);
uint64_t und_directory_shared(const struct und_directory *directory, struct und_shared shared);

/* Who removes what this rank has created, safely in a signal handler: the files first and, once all ranks have removed
 * theirs, the directories; in a run that fails, every directory that may be empty at once. */
enum und_removal { UND_ITS_FILES, UND_ITS_DIRECTORIES, UND_ALL_DIRECTORIES };

typedef void und_remover(struct und_directory *directory, enum und_removal part);

/* A name in an open directory. */
struct und_directory_entry {
    int parent;            /* -1: none */
    _Atomic uint64_t mark; /* 0: this run has not created it */
    char name[UND_ENTRY_BYTES];
};

/* What a run leaves: its result, and the time series of its latencies. */
enum und_output { UND_RESULT, UND_TIME_SERIES, UND_OUTPUTS };

struct und_directory {
    struct und_watch *watch;
    char *path;     /* as the user gives it; NULL: the run has no directory */
    char *location; /* where the kernel has it */
    int descriptor;
    uint64_t mark, device, host;
    int home;    /* where the process worked before it entered the run directory */
    size_t root; /* characters of a path before its name in the working directory */
    struct und_directory_entry entry /* in its parent */, claim;
    struct und_directory_entry outputs[UND_OUTPUTS]; /* beside these, until they are published */
    const struct und_layout_backend *backend;
    _Atomic(struct und_files *) files;  /* sets of this rank, see files.h */
    struct und_run_tree *trees;         /* see tree.h */
    _Atomic(und_remover *) removers[3]; /* ending with NULL */
    int64_t removals;                   /* names that were tried to remove */
    struct {
        atomic_llong count;
        int code;
        char first[1024];
    } kept; /* what could not be removed */
};

/* Lives until the process ends. Ends the run when memory is out. */
struct und_directory *und_directory_new(struct und_watch *watch);

/* Opens the run directory. It is removed at the end if it was created for this run and is empty. */
bool und_directory_open(struct und_directory *directory, const char *path, bool created, struct und_error *error);

/* From here on this process works in the run directory, until it goes back to where it was started: libraries that
 * end with the process may write there. */
bool und_directory_work_inside(struct und_directory *directory, struct und_error *error);
void und_directory_work_outside(struct und_directory *directory);

/* The name of a path of the run in the working directory: its name in the run directory, or the path itself
 * where the process works elsewhere. */
const char *und_directory_name(const struct und_directory *directory, const char *path);

/* How und_directory_create applies layouts; NULL: not at all. */
void und_directory_create_by(struct und_directory *directory, const struct und_layout_backend *backend);

/* Is that what is open a file in the run directory, by its name? */
bool und_directory_holds(const struct und_directory *directory, int descriptor);

/* A file that tells the requests of a storage is copied to another, with a suffix to its name, where the player has
 * worked before it entered the run directory. Ends the run where that fails. */
void und_directory_copy_requests(const struct und_directory *directory, const char *from, const char *to,
                                 const char *suffix);

/* Does the path of the run directory still lead to it? Libraries open files by path. Otherwise errno is why nobody can
 * tell, or 0. Unless it `asks`, the storage is asked nothing while the kernel has the directory where it was. */
bool und_directory_is_in_place(const struct und_directory *directory, bool asks);

/* Creates a file in the working directory, which must not exist, with the layout if one is asked (NULL: none). False
 * with the error message. */
bool und_directory_create(const struct und_directory *directory, const char *path,
                          const struct und_layout_request *request, int *descriptor, struct und_error *error);

/* Creates, or with mode 0 finds, a directory of that name in the run directory: its mark, or 0 with errno. */
uint64_t und_directory_have_subdirectory(const struct und_directory *directory, const char *name, unsigned mode);

/* A descriptor of it: -1 with errno where it is a link, or has another mark or, with mark 0, is on another device or
 * somebody else's. */
int und_directory_open_subdirectory(const struct und_directory *directory, const char *name, uint64_t mark);

/* Works in such a directory, where the names of its files begin behind `root` characters of their paths, until it
 * goes back. */
bool und_directory_enter(struct und_directory *directory, int parent, size_t root);
bool und_directory_leave(struct und_directory *directory);

/* Removes what has the mark and that name in the run directory, or in a directory of it that is no link, which may be
 * open (-1: it is not). Safe in a signal handler. */
void und_directory_remove_name(struct und_directory *directory, int parent, const char *name, uint64_t mark,
                               bool is_directory);

/* Opens a path below an open directory, out of which no link leads, or with `links` false no link at all
 * and no other file system. -1 with errno. Safe in a signal handler. */
int und_directory_open_below(int parent, const char *path, int flags, bool links);

/* Removes a path below a directory that this run has made and that is closed to others, unless it is a directory. Safe
 * in a signal handler. */
void und_directory_remove_at(struct und_directory *directory, int parent, const char *path);

/* Removes from such a directory, and from what it removes, all whose names are numbers from 0 to count - 1; directories
 * if nothing else is in them. Follows no link. Safe in a signal handler. */
void und_directory_remove_numbered(struct und_directory *directory, int parent, int64_t count);

/* Removes a directory of the run directory, if it has the mark, and what is in it, as far as its files have such names.
 * Safe in a signal handler. */
void und_directory_remove_members(struct und_directory *directory, const char *name, uint64_t mark,
                                  bool (*is_member)(const char *name));

/* Opens the files in a directory one after the other, for reading, and closes them: `visit` returns false to end that.
 * False with errno where it does, or one cannot be opened. */
bool und_directory_visit(const struct und_directory *directory, const char *path,
                         bool (*visit)(void *context, int descriptor, const char *name), void *context);

/* Bytes of all files in a directory. */
bool und_directory_add_up(const struct und_directory *directory, const char *path, int64_t *bytes,
                          struct und_error *error);

/* Both are safe in a signal handler. */
void und_directory_remove_by(struct und_directory *directory, und_remover *remove);
void und_directory_remove_made(struct und_directory *directory, enum und_removal part);

/* Flushes a file, if it is there, and lets go of what the node's memory has of it; `method` is for messages. */
void und_directory_drop_cache(const struct und_directory *directory, const char *method, const char *path);

/* Writes what the file system of the run directory still has in memory, so that it is not written later. */
void und_directory_settle(const struct und_directory *directory);

/* Opens a new file beside the result, for und_directory_publish to rename. The result must be a regular
 * file or not exist. -1 with the error message. */
int und_directory_create_output(struct und_directory *directory, enum und_output which, const char *output,
                                struct und_error *error);
bool und_directory_publish_output(struct und_directory *directory, enum und_output which, const char *output,
                                  struct und_error *error);

/* Where an output is until it is published: its path, and its identity. False where there is no such output. */
bool und_directory_output_part(const struct und_directory *directory, enum und_output which, char *path, size_t size,
                               struct und_identity *identity);

/* Has this run created its directory? */
bool und_directory_is_created(const struct und_directory *directory);

/* The claim on the run directory (claim.h): rank 0 creates it, open for writing, and all ranks get to know it; the
 * last to remove its files removes it, too. False with the message where there is one. */
bool und_directory_create_claim(struct und_directory *directory, int *descriptor, struct und_error *error);
void und_directory_share_claim(struct und_directory *directory, MPI_Comm comm);

/* The run has ended: removes the claim, and the directory if it was created for this run and is empty. Safe in a
 * signal handler. */
void und_directory_disclaim(struct und_directory *directory);

/* Removes all that is left, the run directory last. Safe in a signal handler. */
void und_directory_remove(struct und_directory *directory);

/* Could all be removed since this was last asked? False with the message: how many could not, the first of them and
 * why. Collective. */
bool und_directory_all_removed(struct und_directory *directory, MPI_Comm comm, struct und_error *error);

/* How a run that fails removes the same, whose files may still be open. */
struct und_cleanup und_directory_cleanup(struct und_directory *directory);

/* Bytes that are free where the run directory is, 0 where no file can be created, -1: not known. It may take long. */
int64_t und_directory_free_bytes(const void *directory);

#endif
