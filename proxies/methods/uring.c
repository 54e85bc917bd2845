/*
 * io_uring: transfers that are queued to the kernel, up to `depth` of a rank in flight at a time. One queue serves all
 * files of a rank; transfers start in memory that is registered with it where the system permits.
 */
#include "interfaces/method.h"
#include "job/die.h"
#include "storage/direct.h"
#include "storage/run_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef UND_HAVE_URING
#include <liburing.h>

enum { DEPTH, DIRECT, SQPOLL };
enum { DIRECT_NO, DIRECT_READ, DIRECT_YES };
enum { MOST_DEPTH = 4096, MOST_CALL_BYTES = 1 << 30 };

static const char *const direct_choices[] = {"no", "read", "yes", NULL};
static const char *const sqpoll_choices[] = {"no", "yes", NULL};

static const struct und_setting settings[] = {
    [DEPTH] = {.name = "depth", .most = MOST_DEPTH, .default_value = "16", .help = "transfers in flight at a time"},
    [DIRECT] = {.name = "direct",
                .choices = direct_choices,
                .default_value = "no",
                .help = "bypass the page cache (O_DIRECT) in reads, or in reads and writes"},
    [SQPOLL] = {.name = "sqpoll",
                .choices = sqpoll_choices,
                .default_value = "no",
                .help = "a thread of the kernel takes the transfers (IORING_SETUP_SQPOLL)"},
    {.name = NULL},
};

struct und_file {
    int descriptor;
    int direct; /* the same file with O_DIRECT; -1: none */
    int64_t *operations;
    char path[];
};

/* A transfer that was begun: the memory that it has, and its runs that are in flight. */
struct transfer {
    unsigned char *data;
    int64_t runs;
    struct transfer *next; /* of those that have ended, or are free */
};

/* A run of consecutive bytes in flight. */
struct call {
    struct transfer *transfer;
    struct und_file *file;
    unsigned char *data;
    int64_t bytes, offset;
    bool writes, directly;
    struct call *next; /* of the free ones */
};

static struct {
    struct io_uring ring;
    bool is_open, is_registered;
    int64_t page;
    unsigned char *memory;
    int64_t memory_bytes;
    struct call *calls, *free_calls;
    struct transfer *ended, *last_ended, *free_transfers;
    int64_t in_flight; /* calls */
} queue;

static int64_t depth_of(const int64_t *values)
{
    return values[DEPTH] > 0 ? values[DEPTH] : 1;
}

static int open_ring(const int64_t *values)
{
    if (queue.is_open)
        return 0;
    const unsigned entries = depth_of(values) < 64 ? 64 : (unsigned)depth_of(values);
    struct io_uring_params parameters = {.flags = values[SQPOLL] ? IORING_SETUP_SQPOLL : 0};
    const int code = io_uring_queue_init_params(entries, &queue.ring, &parameters);
    if (code < 0)
        return -code;
    /* As many calls as completions have room. */
    queue.calls = calloc(parameters.cq_entries, sizeof *queue.calls);
    UND_CHECK(queue.calls, "uring: no memory for %u calls", parameters.cq_entries);
    for (unsigned c = 0; c < parameters.cq_entries; ++c) {
        queue.calls[c].next = queue.free_calls;
        queue.free_calls = &queue.calls[c];
    }
    queue.page = und_direct_page();
    queue.is_open = true;
    return 0;
}

static bool uring_probe(const struct und_run *run, const int64_t *values, struct und_error *error)
{
    const int code = open_ring(values);
    if (code != 0)
        return und_fail(error, "--method: the method uring cannot be used: io_uring is not permitted here: %s",
                        strerror(code));
    char option[32];
    snprintf(option, sizeof option, "uring.direct=%s", direct_choices[values[DIRECT]]);
    return values[DIRECT] == DIRECT_NO || und_direct_probe(run, option, error);
}

static unsigned char *uring_transfer_memory(const int64_t *values, int64_t bytes)
{
    const int code = open_ring(values);
    if (code != 0)
        UND_DIE("uring: cannot open a queue: %s", strerror(code));
    if (bytes <= queue.memory_bytes)
        return queue.memory;
    if (queue.is_registered)
        io_uring_unregister_buffers(&queue.ring);
    free(queue.memory);
    void *memory;
    if (posix_memalign(&memory, (size_t)queue.page, (size_t)bytes) != 0)
        UND_DIE("uring: no memory for %lld bytes in flight", (long long)bytes);
    queue.memory = memory;
    queue.memory_bytes = bytes;
    const struct iovec whole = {.iov_base = memory, .iov_len = (size_t)bytes};
    queue.is_registered = io_uring_register_buffers(&queue.ring, &whole, 1) == 0; /* a limit of locked memory */
    return queue.memory;
}

static void queue_call(struct call *call)
{
    struct io_uring_sqe *entry;
    while (!(entry = io_uring_get_sqe(&queue.ring))) {
        const int code = io_uring_submit(&queue.ring);
        if (code < 0 && code != -EINTR && code != -EAGAIN && code != -EBUSY)
            UND_DIE("uring: cannot submit: %s", strerror(-code));
        if (queue.ring.flags & IORING_SETUP_SQPOLL)
            io_uring_sqring_wait(&queue.ring);
    }
    const int descriptor = call->directly ? call->file->direct : call->file->descriptor;
    const unsigned bytes = (unsigned)(call->bytes < MOST_CALL_BYTES ? call->bytes : MOST_CALL_BYTES);
    const bool fixed =
        queue.is_registered && call->data >= queue.memory && call->data + bytes <= queue.memory + queue.memory_bytes;
    const unsigned long long at = (unsigned long long)call->offset;
    if (call->writes && fixed)
        io_uring_prep_write_fixed(entry, descriptor, call->data, bytes, at, 0);
    else if (call->writes)
        io_uring_prep_write(entry, descriptor, call->data, bytes, at);
    else if (fixed)
        io_uring_prep_read_fixed(entry, descriptor, call->data, bytes, at, 0);
    else
        io_uring_prep_read(entry, descriptor, call->data, bytes, at);
    io_uring_sqe_set_data(entry, call);
    ++queue.in_flight;
}

static void end_run(struct transfer *transfer)
{
    if (--transfer->runs > 0)
        return;
    transfer->next = NULL;
    if (queue.ended)
        queue.last_ended->next = transfer;
    else
        queue.ended = transfer;
    queue.last_ended = transfer;
}

/* A call may move less than asked, e.g. up to the last free byte; the one after it says why. */
static void end_call(struct call *call, int result)
{
    const struct und_file *file = call->file;
    --queue.in_flight;
    ++*file->operations;
    if (result == -EINTR || result == -EAGAIN) {
        queue_call(call);
        return;
    }
    if (result <= 0)
        UND_DIE("uring: cannot %s %lld bytes at byte %lld of %s: %s", call->writes ? "write" : "read",
                (long long)call->bytes, (long long)call->offset, file->path,
                result < 0     ? strerror(-result)
                : call->writes ? "the call took none"
                               : "the file ends before");
    call->data += result;
    call->bytes -= result;
    call->offset += result;
    if (call->bytes > 0) {
        call->directly = call->directly && result % queue.page == 0;
        queue_call(call);
        return;
    }
    end_run(call->transfer);
    call->next = queue.free_calls;
    queue.free_calls = call;
}

/* Submits what is queued, and takes at least one call that has ended. */
static void take_ended(void)
{
    struct io_uring_cqe *entry;
    if (io_uring_peek_cqe(&queue.ring, &entry) != 0) {
        const int code = io_uring_submit_and_wait(&queue.ring, 1);
        if (code < 0 && code != -EINTR && code != -EAGAIN && code != -EBUSY)
            UND_DIE("uring: cannot wait for transfers: %s", strerror(-code));
    }
    while (io_uring_peek_cqe(&queue.ring, &entry) == 0) {
        struct call *call = io_uring_cqe_get_data(entry);
        const int result = entry->res;
        io_uring_cqe_seen(&queue.ring, entry);
        end_call(call, result);
    }
}

static void uring_begin(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box, void *data,
                        bool writes)
{
    struct transfer *transfer = queue.free_transfers;
    if (transfer)
        queue.free_transfers = transfer->next;
    else
        transfer = malloc(sizeof *transfer);
    UND_CHECK(transfer, "uring: no memory for a transfer of %s", file->path);
    *transfer = (struct transfer){.data = data, .runs = 1};
    unsigned char *at = data;
    struct und_runs runs;
    for (und_runs_begin(&runs, dataset, box); und_runs_next(&runs); at += runs.bytes) {
        while (!queue.free_calls)
            take_ended();
        struct call *call = queue.free_calls;
        queue.free_calls = call->next;
        *call = (struct call){.transfer = transfer,
                              .file = file,
                              .data = at,
                              .bytes = runs.bytes,
                              .offset = runs.offset,
                              .writes = writes,
                              .directly = file->direct >= 0 && runs.offset % queue.page == 0 &&
                                          runs.bytes % queue.page == 0 && (uintptr_t)at % (uintptr_t)queue.page == 0};
        ++transfer->runs;
        queue_call(call);
    }
    end_run(transfer);
}

static void *uring_finish(void)
{
    while (!queue.ended)
        take_ended();
    struct transfer *transfer = queue.ended;
    queue.ended = transfer->next;
    transfer->next = queue.free_transfers;
    queue.free_transfers = transfer;
    return transfer->data;
}

static void uring_wait(struct und_file *file)
{
    (void)file; /* one queue serves all */
    while (queue.in_flight > 0)
        take_ended();
    while (queue.ended)
        uring_finish();
}

static void uring_write(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box,
                        const void *data)
{
    uring_begin(file, dataset, box, (void *)(uintptr_t)data, true);
    uring_wait(file);
}

static void uring_read(struct und_file *file, const struct und_dataset *dataset, const struct und_box *box, void *data)
{
    uring_begin(file, dataset, box, data, false);
    uring_wait(file);
}

static int64_t uring_memory(const int64_t *values, const struct und_load *load)
{
    return depth_of(values) * (load->transfer_bytes + und_direct_page() + (int64_t)sizeof(struct transfer)) +
           4 * MOST_DEPTH * (int64_t)sizeof(struct call);
}

static struct und_file *uring_open(const struct und_open *how)
{
    const size_t length = strlen(how->path) + 1;
    static const int64_t defaults[] = {[DEPTH] = 16, [DIRECT] = DIRECT_NO, [SQPOLL] = 0};
    const int64_t *values = how->settings ? how->settings : defaults;
    const int code = open_ring(values);
    if (code != 0)
        UND_DIE("uring: cannot open a queue: %s", strerror(code));
    struct und_file *file = malloc(sizeof *file + length);
    UND_CHECK(file, "uring: no memory to open %s", how->path);
    memcpy(file->path, how->path, length);
    file->operations = how->operations;
    file->direct = -1;
    file->descriptor = -1;
    if (!how->write_through) { /* a descriptor cannot begin to write through later */
        file->descriptor = *how->created;
        *how->created = -1;
    }
    const int flags = how->mode == UND_READ ? O_RDONLY | O_CLOEXEC
                                            : O_RDWR | O_NOFOLLOW | O_CLOEXEC | (how->write_through ? O_DSYNC : 0);
    if (file->descriptor < 0)
        file->descriptor = open(und_directory_name(how->directory, how->path), flags);
    UND_CHECK(file->descriptor >= 0, "uring: cannot open %s", how->path);
    if (values[DIRECT] == DIRECT_YES || (values[DIRECT] == DIRECT_READ && how->mode == UND_READ))
        file->direct = und_direct_open(how, file->descriptor, flags, "uring");
    ++*file->operations;
    return file;
}

static int uring_descriptor(const struct und_file *file)
{
    return file->descriptor;
}

static void uring_sync(struct und_file *file)
{
    uring_wait(file);
    UND_CHECK(fsync(file->descriptor) == 0, "uring: cannot flush %s", file->path);
    ++*file->operations;
}

static void uring_close(struct und_file *file)
{
    uring_wait(file);
    UND_CHECK(close(file->descriptor) == 0 && (file->direct < 0 || close(file->direct) == 0), "uring: cannot close %s",
              file->path);
    ++*file->operations;
    free(file);
}

static void uring_version(char *text, int size)
{
    snprintf(text, (size_t)size, "liburing %s", UND_HAVE_URING);
}
#endif

const struct und_method und_method_uring = {
    .name = "uring",
    .has_files = true,
#ifdef UND_HAVE_URING
    .settings = settings,
    .memory = uring_memory,
    .probe = uring_probe,
    .version = uring_version,
    .can = UND_CAN_KEEP | UND_CAN_EMPTY | UND_CAN_SHARE | UND_CAN_READ_BACK | UND_CAN_EACH_FILE |
           UND_CAN_WRITE_THROUGH | UND_CAN_LOOK_UP | UND_CAN_BEGIN,
    .depth = depth_of,
    .transfer_memory = uring_transfer_memory,
    .open = uring_open,
    .descriptor = uring_descriptor,
    .write = uring_write,
    .read = uring_read,
    .begin = uring_begin,
    .finish = uring_finish,
    .wait = uring_wait,
    .sync = uring_sync,
    .close = uring_close,
#else
    .unavailable = "no liburing 2.2 or newer was found when this program was built",
#endif
};
