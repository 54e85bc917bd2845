/*
 * Errors of calls of the system that libraries make and do not report. MPI-IO drops the result of close and reports
 * other errors as one of a few classes; a rank that cannot open a file, or write HDF5's metadata, waits in the library
 * for the others, and they for it.
 *
 * So understudy-replay has these calls in front of the C library's (programs/replay/calls.c): where one fails on a file
 * of the run that a library has in hand, the run ends there and then with the system's reason. Methods that make their
 * own calls look at the results themselves.
 */
#ifndef UND_CALLS_H
#define UND_CALLS_H

#include "interfaces/method.h"

/* The file that a thread has in hand. */
extern _Thread_local struct und_in_hand {
    const struct und_method *method; /* NULL: nothing, or a method that looks for itself */
    const struct und_directory *directory;
    const char *path;
} und_in_hand;

/* That of the thread that has called a library which waits for threads of its own; NULL: no such. */
extern _Atomic(struct und_in_hand *) und_in_hand_of_library;

/* From here on this thread works on the file by the method, until it leaves it. */
void und_calls_watch(const struct und_method *method, const struct und_directory *directory, const char *path);
void und_calls_leave(void);

#endif
