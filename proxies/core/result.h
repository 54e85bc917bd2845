/* The result of a run as schemas/result.schema.json defines it; made and written by rank 0. */
#ifndef UND_RESULT_H
#define UND_RESULT_H

#include "core/environment.h"
#include "core/run.h"

struct und_result;

/* `text` is the descriptor, byte for byte. */
struct und_result *und_result_new(const struct und_run *run, const char *text, size_t bytes,
                                  const struct und_environment *environment, int argc, char **argv);

/* Adds the next repetition. */
void und_result_add(struct und_result *result, const struct und_run *run, const struct und_outcome *outcomes);

/* Writes it to the open descriptor of `path`, flushes and closes it, and frees the result. */
void und_result_write(struct und_result *result, const struct und_run *run, const struct und_verification *verification,
                      int descriptor, const char *path);

#endif
