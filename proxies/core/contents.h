/*
 * What the files of a stream hold while its dumps are written one after the other: where each variable begins and
 * where each file ends. Of sets that are used in turn it is the last one. Sizes are bytes over all ranks.
 */
#ifndef UND_CONTENTS_H
#define UND_CONTENTS_H

#include "core/stream.h"

struct und_contents;

/* Of entries that are written; `continues` says of each whether it goes on with the files of the one before.
 * `grows`: each dump is added to the files; `keeps`: what is written again is not emptied. NULL: no memory. */
struct und_contents *und_contents_new(const struct und_stream *stream, const bool *continues, int files, bool grows,
                                      bool keeps);
void und_contents_free(struct und_contents *contents);

/* Whether the files hold all that the dump reads at that time, whose places they have. Times do not go back. */
bool und_contents_check(struct und_strict *at, struct und_contents *contents, const struct und_dump *dump,
                        double time_s);

#endif
