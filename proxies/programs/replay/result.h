/* The measurement of a run as schemas/player.schema.json defines it; written by rank 0. */
#ifndef UND_RESULT_H
#define UND_RESULT_H

#include "core/environment.h"
#include "core/mount.h"
#include "core/repetition.h"

struct und_result;

/* `text` is the descriptor, byte for byte. */
struct und_result *und_result_new(const struct und_run *run, const struct und_options *options, const char *text,
                                  size_t bytes, const struct und_environment *environment,
                                  const struct und_storage *storage, int argc, char **argv);

/* Adds the next repetition. */
void und_result_add(struct und_result *result, const struct und_run *run, const struct und_outcome *outcomes);

/* Writes it to the open descriptor of `path`, flushes and closes it, and frees the result. */
void und_result_write(struct und_result *result, const struct und_run *run, const struct und_verification *verification,
                      json_t *striping, int descriptor, const char *path);

#endif
