/*
 * The directory that a run writes to, and the file of its result: checked before anything is
 * written, so that nothing is started that does not fit, and nothing of others is touched.
 * All functions are for rank 0.
 */
#ifndef UND_PLACE_H
#define UND_PLACE_H

#include "core/environment.h"
#include "core/error.h"
#include "core/totals.h"

/* The directory must be empty and writable, or is made (its last component only; *made). False with
 * the sentence. */
bool und_place_prepare(const char *directory, bool *made, struct und_error *error);

/* Do the bytes and files fit what is free? False with the sentence. */
bool und_place_fits(const struct und_totals *totals, const struct und_environment *environment, const char *directory,
                    struct und_error *error);

/* Opens a new file beside the result, to be renamed to it at the end; its path is in `path`. -1 with
 * the sentence. */
int und_place_result(const char *output, char *path, size_t size, struct und_error *error);

#endif
