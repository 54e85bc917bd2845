/* The measurement of a run as schemas/player.schema.json defines it; written by rank 0. */
#ifndef UND_RESULT_H
#define UND_RESULT_H

#include "interfaces/mount.h"
#include "job/environment.h"
#include "playing/repetition.h"

struct und_result;

/* `text` is the descriptor, byte for byte. Written as it comes to the open descriptors of `path` and, where it is not
 * -1, of the time series, so that memory does not grow with the dumps. */
struct und_result *und_result_new(const struct und_run *run, const struct und_options *options, const char *text,
                                  size_t bytes, const struct und_environment *environment,
                                  const struct und_storage *storage, int argc, char **argv, const int *descriptors,
                                  const char *path);

/* Begins the next repetition. */
void und_result_begin(struct und_result *result);
und_take_outcome und_result_take; /* of the repetition that was begun; the taker is the result */
und_take_series und_result_take_series;
void und_result_end(struct und_result *result, const struct und_stragglers *stragglers);

/* Completes, flushes and closes the files, and frees the result. */
void und_result_finish(struct und_result *result, const struct und_verification *verification, json_t *striping);

#endif
