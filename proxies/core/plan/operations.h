/*
 * Operations without bytes, counted: how many a rank makes in a dump, and what becomes of the files that it has
 * created for them. Pure arithmetic; metadata.h carries them out.
 */
#ifndef UND_OPERATIONS_H
#define UND_OPERATIONS_H

#include "workload/stream.h"

enum { UND_BARE_KINDS = UND_SEEK + 1 };

/* How far a rank is: file k is the k-th that it has created, and is there from `first` to `next` - 1. */
struct und_progress {
    int64_t first, next;
    int64_t renamed; /* those before it are renamed, if they are there */
    int64_t directories;
};

/* Does a dump of the stream have operations? */
bool und_stream_operates(const struct und_stream *stream);

/* How many of them a rank makes. */
int64_t und_operations_of(const struct und_operations *operations, int64_t rank);

/* The operations of a dump, for one rank, or with -1 for all together. */
void und_operations_count(const struct und_dump *dump, int64_t rank, int64_t counts[UND_BARE_KINDS]);

/* Files that a rank needs and does not create: it lacks them, and they are made before time is taken. Gives also how
 * many files are there at once, at most. */
int64_t und_operations_lacking(const struct und_stream *stream, int64_t ranks, int64_t rank, int64_t *together);

/* Files and directories that exist together because of them, over all ranks; about, where ranks differ. */
int64_t und_operations_files(const struct und_stream *stream, int64_t ranks);

/* Bytes by which a rank knows the files that it has created, at most. */
int64_t und_operations_memory(const struct und_stream *stream, int64_t ranks);

#endif
