/*
 * Calls of the system in flight: reads and writes at places of open files, up to `depth` of a rank at a time, through
 * io_uring. Each has memory of its own, aligned to pages.
 */
#ifndef UND_CALL_QUEUE_H
#define UND_CALL_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct und_call_queue;

/* Can calls be in flight on this system, in this build? */
bool und_call_queue_is_there(void);

/* NULL where that cannot be, or there is no memory for so many calls of at most so many bytes. */
struct und_call_queue *und_call_queue_new(int64_t depth, int64_t bytes);
void und_call_queue_free(struct und_call_queue *queue);

/* Calls in flight. */
int64_t und_call_queue_length(const struct und_call_queue *queue);

/* The number of a call that can be begun, below `depth`; there are fewer in flight. Its memory. */
int64_t und_call_queue_take(struct und_call_queue *queue);
unsigned char *und_call_queue_memory(const struct und_call_queue *queue, int64_t number);

/* Begins it; false with errno. */
bool und_call_queue_begin(struct und_call_queue *queue, int64_t number, int descriptor, int64_t bytes, int64_t place,
                          bool writes);

/* Waits for the first that ends, and returns its number; -1 with errno where waiting fails. `*result` is what it moved,
 * or a negative number of an error. */
int64_t und_call_queue_end(struct und_call_queue *queue, int64_t *result);

#endif
