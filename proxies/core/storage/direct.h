/* Files that are read and written without the page cache (O_DIRECT). */
#ifndef UND_DIRECT_H
#define UND_DIRECT_H

#include "interfaces/method.h"

/* Bytes that direct transfers are whole multiples of, in the file and in memory: pages, not sectors, so that no page
 * is written directly and through the cache. */
int64_t und_direct_page(void);

/* Memory that begins on such a page, for the caller to free; NULL with errno where there is none. */
void *und_direct_memory(int64_t bytes);

/* Of so many bytes at the offset those of the next call, and whether they are whole pages, which go directly. */
int64_t und_direct_bytes(int64_t page, int64_t bytes, int64_t offset, bool *directly);

/* Can files of the run directory be opened so? False with a message that begins with `option`. */
bool und_direct_probe(const struct und_run *run, const char *option, struct und_error *error);

/* Opens the file that `descriptor` is of once more, with O_DIRECT and these flags; ends the run where it cannot. */
int und_direct_open(const struct und_open *how, int descriptor, int flags, const char *method);

#endif
