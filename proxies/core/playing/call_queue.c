#include "playing/call_queue.h"

#include "job/die.h"
#include "storage/direct.h"

#include <errno.h>
#include <stdlib.h>

#ifdef UND_HAVE_URING
#include <liburing.h>

struct und_call_queue {
    struct io_uring ring;
    struct und_kernel_queue end;
    int64_t depth, stride;
    unsigned char *memory;
    int64_t *free, free_count; /* numbers of calls that are not in flight */
};

static void close_ring(void *ring)
{
    io_uring_queue_exit(ring);
}

bool und_call_queue_is_there(void)
{
    struct io_uring ring;
    const bool is_there = io_uring_queue_init(1, &ring, 0) == 0;
    if (is_there)
        io_uring_queue_exit(&ring);
    return is_there;
}

struct und_call_queue *und_call_queue_new(int64_t depth, int64_t bytes)
{
    const int64_t page = und_direct_page(), stride = (bytes / page + 1) * page;
    struct und_call_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    if (stride > INT64_MAX / depth || io_uring_queue_init((unsigned)depth, &queue->ring, 0) != 0) {
        free(queue);
        return NULL;
    }
    queue->end = (struct und_kernel_queue){.close = close_ring, .state = &queue->ring};
    und_die_note_queue(&queue->end);
    queue->free = calloc((size_t)depth, sizeof *queue->free);
    queue->memory = und_direct_memory(depth * stride);
    if (!queue->free || !queue->memory) {
        und_call_queue_free(queue);
        return NULL;
    }
    queue->depth = depth;
    queue->stride = stride;
    for (int64_t number = depth; number-- > 0;)
        queue->free[queue->free_count++] = number;
    return queue;
}

void und_call_queue_free(struct und_call_queue *queue)
{
    if (!queue)
        return;
    und_die_forget_queue(&queue->end);
    io_uring_queue_exit(&queue->ring);
    free(queue->memory);
    free(queue->free);
    free(queue);
}

int64_t und_call_queue_length(const struct und_call_queue *queue)
{
    return queue->depth - queue->free_count;
}

int64_t und_call_queue_take(struct und_call_queue *queue)
{
    return queue->free[--queue->free_count];
}

unsigned char *und_call_queue_memory(const struct und_call_queue *queue, int64_t number)
{
    return queue->memory + number * queue->stride;
}

bool und_call_queue_begin(struct und_call_queue *queue, int64_t number, int descriptor, int64_t bytes, int64_t place,
                          bool writes)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&queue->ring); /* as many as calls */
    unsigned char *data = und_call_queue_memory(queue, number);
    if (writes)
        io_uring_prep_write(entry, descriptor, data, (unsigned)bytes, (unsigned long long)place);
    else
        io_uring_prep_read(entry, descriptor, data, (unsigned)bytes, (unsigned long long)place);
    io_uring_sqe_set_data64(entry, (unsigned long long)number);
    int code;
    do
        code = io_uring_submit(&queue->ring);
    while (code == -EINTR || code == -EAGAIN);
    errno = code < 0 ? -code : 0;
    return code >= 0;
}

int64_t und_call_queue_end(struct und_call_queue *queue, int64_t *result)
{
    struct io_uring_cqe *entry;
    int code;
    do
        code = io_uring_wait_cqe(&queue->ring, &entry);
    while (code == -EINTR || code == -EAGAIN);
    errno = code < 0 ? -code : 0;
    if (code < 0)
        return -1;
    const int64_t number = (int64_t)io_uring_cqe_get_data64(entry);
    *result = entry->res;
    io_uring_cqe_seen(&queue->ring, entry);
    queue->free[queue->free_count++] = number;
    return number;
}
#else
bool und_call_queue_is_there(void)
{
    return false;
}

struct und_call_queue *und_call_queue_new(int64_t depth, int64_t bytes)
{
    (void)depth;
    (void)bytes;
    return NULL;
}

void und_call_queue_free(struct und_call_queue *queue)
{
    (void)queue;
}

int64_t und_call_queue_length(const struct und_call_queue *queue)
{
    (void)queue;
    return 0;
}

int64_t und_call_queue_take(struct und_call_queue *queue)
{
    (void)queue;
    return -1;
}

unsigned char *und_call_queue_memory(const struct und_call_queue *queue, int64_t number)
{
    (void)queue;
    (void)number;
    return NULL;
}

bool und_call_queue_begin(struct und_call_queue *queue, int64_t number, int descriptor, int64_t bytes, int64_t place,
                          bool writes)
{
    (void)queue;
    (void)number;
    (void)descriptor;
    (void)bytes;
    (void)place;
    (void)writes;
    errno = ENOSYS;
    return false;
}

int64_t und_call_queue_end(struct und_call_queue *queue, int64_t *result)
{
    (void)queue;
    *result = 0;
    errno = ENOSYS;
    return -1;
}
#endif
