/*
 * What this rank has created, so that it is removed however the run ends, and nothing else is.
 * A path is reserved before the timed region, created with O_EXCL (a file that was there before is
 * never ours), and removed by und_created_remove: at the end, from und_die, and from the handler of
 * SIGINT, SIGTERM and SIGHUP. This is the one place with state outside of struct und_run, because
 * a signal handler gets no argument.
 */
#ifndef UND_CREATED_H
#define UND_CREATED_H

#include <stdbool.h>

/* Catches the signals from now on; a caught one removes what this rank created and ends the
 * process with status 128 + signal. With `speaks`, it leaves a sentence on stderr. */
void und_created_watch(bool speaks);

/* The end of a run: signals are ignored, because launchers send them to ranks that are a little
 * slower to leave than others. */
void und_created_unwatch(void);

/* Files and directories of the workload come and go with each repetition, the result stays to the end. */
enum und_created_kind { UND_DATA_FILE, UND_DATA_DIRECTORY, UND_RESULT_FILE };

/* Makes room for a path that will be created; for a directory before those of the files in it. Ends the
 * run when memory is out. */
void und_created_reserve(const char *path, enum und_created_kind kind);

/* Creates the reserved path, which must not exist. Returns a descriptor open for reading and
 * writing, or -1 with errno. */
int und_created_file(const char *path);

/*
 * While it opens `path`, Open MPI makes and removes <path>.locktest.<rank of the file's communicator>, and locks the
 * semaphore /dev/shm/sem.OMPIO_<name of the file>, which all jobs of the node with a file of that name share: a rank
 * that ends in between would leave the one behind, and the other locked, so that every later open of such a name
 * waits for ever. Signals therefore wait until und_created_opened, for 50 ms at most, since an open
 * does not return once another rank has ended; then both are removed like what this rank created. Not for two files
 * at once.
 */
void und_created_opening(const char *path, int rank);
void und_created_opened(void);

/* Makes the reserved directory, which must not exist; false with errno. Other ranks with files in it
 * have reserved it too and share it: it goes with the last file. */
bool und_created_make(const char *path);
void und_created_share(const char *path);

/* The directory is of this run: removed after the files, if it is empty then. */
void und_created_directory(const char *path);

/* The file is no longer ours to remove. */
void und_created_keep(const char *path);

/* Removes, or leaves in place, the data files created so far, and forgets them. */
void und_created_drop_data(bool removing);

/* Removes all that is left, the directory last. Safe in a signal handler. */
void und_created_remove(void);

#endif
