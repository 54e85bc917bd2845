/*
 * Operations without bytes, as one rank makes them in each dump of a stream: mkdir and create first, then
 * open, stat, seek and sync, last rename and unlink.
 *
 * Open, stat, seek and sync act on the data files of the dump in turn, or where the rank has none on the
 * files that it has created and not removed. Rename and unlink act on created files, the oldest first, and
 * each is renamed once. Files that a stream lacks, because it renames or removes more than it creates, are
 * made before time is taken. Names are computed (files.h).
 */
#ifndef UND_METADATA_H
#define UND_METADATA_H

#include "plan/run.h"

struct und_metadata;

/* The data files that a rank has open in a dump. */
struct und_targets {
    int64_t count;
    const char *(*path)(void *context, int64_t index);      /* valid until the next call */
    struct und_file *(*file)(void *context, int64_t index); /* NULL: opened for each operation */
    void *context;
};

/* The operations of a stream that is played; NULL where it has none. */
struct und_metadata *und_metadata_new(const struct und_run *run, int stream);
void und_metadata_free(struct und_metadata *metadata);

/* Finds what this rank does in the dump, and creates what must be there before. Collective over all ranks, for
 * each dump in order; does not wait for the other ranks. */
void und_metadata_prepare(struct und_metadata *metadata, int dump);

/* Makes some of the operations of the prepared dump beside the open files; returns how many this rank makes. *asked_s
 * grows by the time that this run's own questions about files took. */
int64_t und_metadata_operate(struct und_metadata *metadata, const struct und_operations *operations,
                             const struct und_targets *targets, double *asked_s);

#endif
