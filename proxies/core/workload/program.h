/*
 * The sets and streams of a workload (understudy/workload/3): the program that the player carries out, as
 * docs/reference/program.md defines it.
 */
#ifndef UND_PROGRAM_H
#define UND_PROGRAM_H

#include "workload/stream.h"

/* Reads the keys sets and streams of a workload for so many ranks. False with the message; und_streams_free in any
 * case. */
bool und_program_read(struct und_strict *at, const json_t *root, int64_t ranks, struct und_stream **streams,
                      int *count);

#endif
