/*
 * From the descriptor to the program that it means: the only code of the player that reads the keys which say what
 * happens to files. python/understudy/semantics/lowering.py does the same; a test holds the two against each other.
 */
#ifndef UND_PROGRAM_H
#define UND_PROGRAM_H

#include "core/stream.h"

#include <stdio.h>

/* Reads the streams of a workload, a list, for so many ranks. False with the message; und_streams_free in any case. */
bool und_streams_read(struct und_strict *at, const json_t *array, int64_t ranks, struct und_stream **streams,
                      int *count);

/* Reads the sets and streams of a workload that is a program; likewise. */
bool und_program_read(struct und_strict *at, const json_t *root, int64_t ranks, struct und_stream **streams,
                      int *count);

/* Prints the sets of files and what the streams do, as docs/reference/program.md defines it. */
void und_program_print(const char *name, int64_t ranks, const struct und_stream *streams, int count, FILE *out);

#endif
