/*
 * Sums over a program: its files, bytes and memory, and what it needs of a method: one function for each
 * question, in time that grows with the program and not with its dumps, files or ranks.
 */
#ifndef UND_FOLD_H
#define UND_FOLD_H

#include "interfaces/method.h"
#include "text/error.h"
#include "workload/workload.h"

/* Bytes that all dumps move, every pass counted. */
int64_t und_fold_bytes(const struct und_stream *stream);

/* Files that the stream makes by the method, also to be read; directories, and what operations without bytes make. */
int64_t und_fold_files(const struct und_stream *stream, int64_t ranks, const struct und_method *method,
                       const int64_t *settings);
int64_t und_fold_other_inodes(const struct und_stream *stream, int64_t ranks);

/* Bytes in the files when everything is written: of sets that are used in turn those of the largest content, of files
 * of a row each whole blocks of 4 KiB; -1: cannot be counted. */
int64_t und_fold_stored_bytes(const struct und_stream *stream);

/* Bytes of the buffer for lookups, which find no more than is written; behind another stream, than they ask for. */
int64_t und_fold_lookups_memory(const struct und_stream *stream);

/* The abilities that the stream needs of its method. */
void und_fold_needs(const struct und_workload *workload, const struct und_stream *stream, bool needs[UND_NEEDS]);

/* Do others read the files of stream `s` while it has them open? */
bool und_fold_is_read_open(const struct und_workload *workload, int s);

/* Have the dumps of a set with a file for each row the same files? False with the message. */
bool und_fold_check_sets(const struct und_stream *stream, int s, const char *file, struct und_error *error);

/* Bytes by which a rank knows its files of a row each, at most. */
int64_t und_fold_marks_memory(const struct und_stream *stream, int64_t ranks);

/* Have more ranks bytes in a file of the stream, in any dump, than there are such files in a set? */
bool und_fold_shares(const struct und_stream *stream, int64_t ranks);

/* Bytes of one row of one variable. */
int64_t und_row_bytes(const struct und_variable *variable);

#endif
