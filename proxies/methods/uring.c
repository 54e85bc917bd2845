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
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef UND_HAVE_URING
#include <liburing.h>

/* Completions are worked on when they are waited for, not by an interrupt: since Linux 6.1. */
#ifdef IORING_SETUP_DEFER_TASKRUN
#define ONE_TASK (IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN)
#else
#define ONE_TASK 0
#endif

enum { DEPTH, DIRECT, SQPOLL };
enum { DIRECT_NO, DIRECT_READ, DIRECT_YES };
enum { MOST_CALL_BYTES = 1 << 30 };

static const int64_t MANY = INT64_MAX / 1024; /* bytes that no rank has */

static const char *const direct_choices[] = {"no", "read", "yes", NULL};
static const char *const sqpoll_choices[] = {"no", "yes", NULL};

static const struct und_setting settings[] = {
    [DEPTH] = {.name = "depth",
               .most = UND_MAX_DEPTH,
               .default_value = "0",
               .help = "transfers in flight at a time; 0 = as a move states"},
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

/* An open file as the kernel gets it: a number, and its place in the table of registered files. */
struct descriptor {
    int number; /* -1: none */
    int slot;   /* -1: none */
    int64_t calls;
};

struct und_file {
    struct descriptor cached, direct; /* the latter is the same file with O_DIRECT */
    int64_t *operations;
    char path[];
};

/* A transfer that was begun: the memory that it has, and its runs that are in flight. */
struct transfer {
    unsigned char *data;
    int64_t runs;
    struct transfer *next; /* of those that have ended, or are free */
};

/* Consecutive bytes in flight, or a flush behind all that is. */
struct call {
    struct transfer *transfer; /* NULL: a flush */
    struct und_file *file;
    unsigned char *data;  /* of the transfer */
    unsigned char *moved; /* from or to which the kernel moves them: `data`, or in `aligned` */
    unsigned char *aligned;
    int64_t aligned_bytes;
    int64_t bytes, offset;
    int64_t some; /* of the bytes, those that the kernel is asked for */
    bool writes, directly;
    struct call *next; /* of the free ones, or of those to repeat */
};

enum { SLOTS = 64, CALLS_BEFORE_SLOT = 16, BATCH = 32, BUFFER_BYTES = 1 << 30 };

static struct {
    struct io_uring ring;
    struct und_kernel_queue end;
    bool is_open, is_registered, takes_files;
    int64_t page;
    unsigned char *memory;
    int64_t memory_bytes;
    int free_slots[SLOTS], free_slot_count;
    struct call *free_calls, *repeated;
    struct transfer *ended, *last_ended, *free_transfers;
    int64_t depth;     /* the maximum of transfers in flight */
    int64_t in_flight; /* calls, and those to repeat */
    int64_t repeats;
} queue;

static int64_t depth_of(const int64_t *values, int64_t stated)
{
    return values[DEPTH] > 0 ? values[DEPTH] : stated;
}

/* A registered file is closed when it leaves the table. Kernels before 6.3 may do so up to a second later, and what
 * a close costs, and a name on NFS, would outlast the close. */
static bool drops_files_at_once(struct io_uring *ring)
{
    int ends[2], none = -1;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    const bool registered = io_uring_register_files_update(ring, 0, &ends[1], 1) == 1;
    close(ends[1]);
    struct pollfd reader = {.fd = ends[0]};
    const bool drops = registered && io_uring_register_files_update(ring, 0, &none, 1) == 1 && poll(&reader, 1, 0) == 1;
    close(ends[0]);
    return drops;
}

/* Opens a queue; returns 0 or the error. */
static int try_ring(struct io_uring *ring, bool polls)
{
    enum { ENTRIES = 256, COMPLETIONS = 4096 };
    struct io_uring_params parameters = {.flags = IORING_SETUP_CQSIZE | (polls ? IORING_SETUP_SQPOLL : ONE_TASK),
                                         .cq_entries = COMPLETIONS};
    int code = io_uring_queue_init_params(ENTRIES, ring, &parameters);
    if (code == -EINVAL && !polls) {
        parameters = (struct io_uring_params){.flags = IORING_SETUP_CQSIZE, .cq_entries = COMPLETIONS};
        code = io_uring_queue_init_params(ENTRIES, ring, &parameters);
    }
    if (code < 0)
        return -code;
    /* Reads and writes without vectors came with the former, files that are not registered with the latter. */
    const unsigned needed = IORING_FEAT_RW_CUR_POS | (polls ? IORING_FEAT_SQPOLL_NONFIXED : 0);
    if ((parameters.features & needed) == needed)
        return 0;
    io_uring_queue_exit(ring);
    return EOPNOTSUPP;
}

/* Why there is no queue. */
static bool refuse(int code, bool polls, const char *before, struct und_error *error)
{
    int disabled = 0;
    FILE *file = code == EPERM ? fopen("/proc/sys/kernel/io_uring_disabled", "r") : NULL;
    if (file) {
        char digit = '0';
        if (fread(&digit, 1, 1, file) == 1 && digit > '0' && digit <= '9')
            disabled = digit - '0';
        fclose(file);
    }
    if (disabled > 0)
        return und_fail(error, "%sio_uring is switched off here, sysctl kernel.io_uring_disabled is %d: %s", before,
                        disabled, strerror(code));
    const char *why = code == EOPNOTSUPP ? (polls ? "the kernel is older than 5.11" : "the kernel is older than 5.6")
                      : code == ENOSYS   ? "the kernel has no io_uring, or a filter of system calls hides it"
                      : code == EPERM && polls ? "a thread of the kernel needs a privilege"
                      : code == EPERM          ? "a filter of system calls forbids io_uring, as containers do"
                      : code == ENOMEM         ? "io_uring locks more memory than ulimit -l permits"
                                               : "io_uring cannot be initialized";
    return und_fail(error, "%s%s: %s", before, why, strerror(code));
}

static void register_table(void)
{
    queue.takes_files = io_uring_register_files_sparse(&queue.ring, SLOTS) == 0;
    if (!queue.takes_files) {
        int none[SLOTS];
        memset(none, -1, sizeof none);
        queue.takes_files = io_uring_register_files(&queue.ring, none, SLOTS) == 0;
    }
    queue.takes_files = queue.takes_files && drops_files_at_once(&queue.ring);
    for (int s = SLOTS; queue.takes_files && s-- > 0;)
        queue.free_slots[queue.free_slot_count++] = s;
}

static void close_ring(void *ring)
{
    io_uring_queue_exit(ring);
}

static int open_ring(const int64_t *values)
{
    if (queue.is_open)
        return 0;
    const int code = try_ring(&queue.ring, values[SQPOLL] != 0);
    if (code != 0)
        return code;
    register_table();
    queue.page = und_direct_page();
    queue.is_open = true;
    queue.end = (struct und_kernel_queue){.close = close_ring, .state = &queue.ring};
    und_die_note_queue(&queue.end);
    return 0;
}

static void need_ring(const int64_t *values)
{
    struct und_error error;
    const int code = open_ring(values);
    if (code != 0 && !refuse(code, values[SQPOLL] != 0, "uring: cannot open a queue: ", &error))
        UND_DIE("%s", error.text);
}

static bool uring_usable(struct und_error *error)
{
    struct io_uring ring;
    const int code = try_ring(&ring, false);
    if (code != 0)
        return refuse(code, false, "", error);
    io_uring_queue_exit(&ring);
    return true;
}

static bool uring_probe(const struct und_run *run, const int64_t *values, struct und_error *error)
{
    struct und_error why;
    if (!uring_usable(&why))
        return und_fail(error, "--method: the method uring cannot be used here: %s", why.text);
    const int code = open_ring(values);
    if (code != 0)
        return refuse(code, true, "--method-option uring.sqpoll=yes: ", error);
    char option[32];
    snprintf(option, sizeof option, "uring.direct=%s", direct_choices[values[DIRECT]]);
    return values[DIRECT] == DIRECT_NO || und_direct_probe(run, option, error);
}

static bool is_of_queue(const unsigned char *data)
{
    return queue.memory && data >= queue.memory && data < queue.memory + queue.memory_bytes;
}

static void register_memory(void)
{
    struct iovec buffers[16]; /* the kernel takes up to 1 GiB in each */
    const int64_t count = (queue.memory_bytes + BUFFER_BYTES - 1) / BUFFER_BYTES;
    const int64_t most = (int64_t)(sizeof buffers / sizeof buffers[0]);
    for (int64_t b = 0; b < count && b < most; ++b) {
        const int64_t left = queue.memory_bytes - b * BUFFER_BYTES;
        buffers[b] = (struct iovec){.iov_base = queue.memory + b * BUFFER_BYTES,
                                    .iov_len = (size_t)(left < BUFFER_BYTES ? left : BUFFER_BYTES)};
    }
    /* Not where that is more than a limit of locked memory. */
    queue.is_registered = count <= most && io_uring_register_buffers(&queue.ring, buffers, (unsigned)count) == 0;
}

static unsigned char *uring_transfer_memory(const int64_t *values, int64_t depth, int64_t bytes)
{
    need_ring(values);
    queue.depth = depth;
    if (bytes <= queue.memory_bytes)
        return queue.memory;
    if (queue.is_registered)
        io_uring_unregister_buffers(&queue.ring);
    free(queue.memory);
    queue.memory = und_direct_memory(bytes);
    if (!queue.memory)
        UND_DIE("uring: no memory for %lld bytes in flight", (long long)bytes);
    queue.memory_bytes = bytes;
    register_memory();
    return queue.memory;
}

/* A file gets a slot once it has had so many calls that it is worth one. */
static void count_call(struct descriptor *descriptor)
{
    if (++descriptor->calls != CALLS_BEFORE_SLOT || !queue.takes_files || queue.free_slot_count == 0)
        return;
    const int slot = queue.free_slots[queue.free_slot_count - 1];
    if (io_uring_register_files_update(&queue.ring, (unsigned)slot, &descriptor->number, 1) != 1) {
        queue.takes_files = false;
        return;
    }
    --queue.free_slot_count;
    descriptor->slot = slot;
}

static void take_ended(void);

static void submit(unsigned wanted)
{
    const int code = io_uring_submit_and_wait(&queue.ring, wanted);
    if (code < 0 && code != -EINTR && code != -EAGAIN && code != -EBUSY)
        UND_DIE("uring: cannot submit, or wait for, transfers: %s", strerror(-code));
}

static struct io_uring_sqe *new_entry(void)
{
    struct io_uring_sqe *entry;
    while (!(entry = io_uring_get_sqe(&queue.ring))) {
        submit(0);
        if (queue.ring.flags & IORING_SETUP_SQPOLL)
            io_uring_sqring_wait(&queue.ring);
        else if (io_uring_sq_space_left(&queue.ring) == 0)
            take_ended(); /* the kernel takes no more before completions are taken */
    }
    return entry;
}

/* The number of the registered buffer that the bytes are in; -1: in none. */
static int buffer_of(const unsigned char *data, unsigned bytes)
{
    if (!queue.is_registered || !is_of_queue(data) || !is_of_queue(data + bytes - 1))
        return -1;
    const int64_t first = (data - queue.memory) / BUFFER_BYTES;
    return first == (data + bytes - 1 - queue.memory) / BUFFER_BYTES ? (int)first : -1;
}

static void queue_call(struct call *call)
{
    struct io_uring_sqe *entry = new_entry();
    struct descriptor *descriptor = call->directly ? &call->file->direct : &call->file->cached;
    count_call(descriptor);
    const bool has_slot = descriptor->slot >= 0;
    const int number = has_slot ? descriptor->slot : descriptor->number;
    const unsigned bytes = (unsigned)(call->some < MOST_CALL_BYTES ? call->some : MOST_CALL_BYTES);
    const unsigned long long at = (unsigned long long)call->offset;
    const int buffer = call->transfer ? buffer_of(call->moved, bytes) : -1;
    if (!call->transfer)
        io_uring_prep_fsync(entry, number, 0);
    else if (call->writes && buffer >= 0)
        io_uring_prep_write_fixed(entry, number, call->moved, bytes, at, buffer);
    else if (call->writes)
        io_uring_prep_write(entry, number, call->moved, bytes, at);
    else if (buffer >= 0)
        io_uring_prep_read_fixed(entry, number, call->moved, bytes, at, buffer);
    else
        io_uring_prep_read(entry, number, call->moved, bytes, at);
    io_uring_sqe_set_flags(entry, (has_slot ? IOSQE_FIXED_FILE : 0U) | (call->transfer ? 0U : IOSQE_IO_DRAIN));
    io_uring_sqe_set_data(entry, call);
}

static struct call *new_call(const struct und_file *file)
{
    struct call *call = queue.free_calls;
    if (call)
        queue.free_calls = call->next;
    else
        call = calloc(1, sizeof *call);
    UND_CHECK(call, "uring: no memory for a call on %s", file->path);
    ++queue.in_flight;
    return call;
}

static void free_call(struct call *call)
{
    call->next = queue.free_calls;
    queue.free_calls = call;
    --queue.in_flight;
}

static void repeat_call(struct call *call)
{
    call->next = queue.repeated;
    queue.repeated = call;
    ++queue.repeats;
}

static void free_transfer(struct transfer *transfer)
{
    transfer->next = queue.free_transfers;
    queue.free_transfers = transfer;
}

/* Transfers in memory of the queue are kept until they are asked for. */
static void end_run(struct transfer *transfer)
{
    if (--transfer->runs > 0)
        return;
    if (!is_of_queue(transfer->data)) {
        free_transfer(transfer);
        return;
    }
    transfer->next = NULL;
    if (queue.ended)
        queue.last_ended->next = transfer;
    else
        queue.ended = transfer;
    queue.last_ended = transfer;
}

static void end_flush(struct call *call, int result)
{
    errno = -result;
    UND_CHECK(result >= 0, "uring: cannot flush %s", call->file->path);
    free_call(call);
}

/* Direct calls start in memory that is aligned. */
static void align(struct call *call)
{
    if ((uintptr_t)call->data % (uintptr_t)queue.page == 0)
        return;
    if (call->some > call->aligned_bytes) {
        free(call->aligned);
        call->aligned = und_direct_memory(call->some);
        if (!call->aligned)
            UND_DIE("uring: no memory for direct transfers of %lld bytes", (long long)call->some);
        call->aligned_bytes = call->some;
    }
    call->moved = call->aligned;
    if (call->writes)
        memcpy(call->aligned, call->data, (size_t)call->some);
}

/* What the kernel is asked for next: up to where whole pages begin or end, which go directly. */
static void aim(struct call *call)
{
    call->moved = call->data;
    call->some = call->bytes;
    call->directly = false;
    if (call->file->direct.number >= 0)
        call->some = und_direct_bytes(queue.page, call->bytes, call->offset, &call->directly);
    if (call->directly)
        align(call);
}

/* A call may move less than asked, e.g. up to the last free byte; the one after it says why. */
static void end_call(struct call *call, int result)
{
    const struct und_file *file = call->file;
    ++*file->operations;
    if (result == -EINTR || result == -EAGAIN) {
        repeat_call(call);
        return;
    }
    if (!call->transfer) {
        end_flush(call, result);
        return;
    }
    errno = -result;
    UND_CHECK(result >= 0, "uring: cannot %s %lld bytes at byte %lld of %s", call->writes ? "write" : "read",
              (long long)call->bytes, (long long)call->offset, file->path);
    if (result == 0)
        UND_DIE("uring: cannot %s %lld bytes at byte %lld of %s: %s", call->writes ? "write" : "read",
                (long long)call->bytes, (long long)call->offset, file->path,
                call->writes ? "the call took none" : "the file ends before");
    if (!call->writes && call->moved != call->data)
        memcpy(call->data, call->moved, (size_t)result);
    call->data += result;
    call->bytes -= result;
    call->offset += result;
    if (call->bytes == 0) {
        end_run(call->transfer);
        free_call(call);
        return;
    }
    aim(call);
    repeat_call(call);
}

/* Takes calls that have ended; returns how many. */
static unsigned take_completions(void)
{
    struct io_uring_cqe *entries[BATCH];
    const unsigned count = io_uring_peek_batch_cqe(&queue.ring, entries, BATCH);
    for (unsigned e = 0; e < count; ++e)
        end_call(io_uring_cqe_get_data(entries[e]), entries[e]->res);
    io_uring_cq_advance(&queue.ring, count);
    while (queue.repeated) {
        struct call *call = queue.repeated;
        queue.repeated = call->next;
        queue_call(call);
    }
    return count;
}

/* Submits what is queued, and takes calls that have ended, at least one. */
static void take_ended(void)
{
    if (io_uring_sq_ready(&queue.ring) == 0 && take_completions() > 0)
        return;
    submit(1);
    take_completions();
}

/* One call of the system, but where something is to be repeated. */
static void take_all(void)
{
    while (queue.in_flight > 0) {
        submit((unsigned)queue.in_flight);
        while (take_completions() > 0)
            ;
    }
}

static void begin_run(struct transfer *transfer, struct und_file *file, unsigned char *data, int64_t bytes,
                      int64_t offset, bool writes)
{
    while (bytes > 0) {
        struct call *call = new_call(file);
        call->transfer = transfer;
        call->file = file;
        call->data = data;
        call->bytes = bytes;
        call->offset = offset;
        call->writes = writes;
        aim(call);
        call->bytes = call->some;
        ++transfer->runs;
        data += call->bytes;
        bytes -= call->bytes;
        offset += call->bytes;
        queue_call(call);
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
    for (und_runs_begin(&runs, dataset, box); und_runs_next(&runs); at += runs.bytes)
        begin_run(transfer, file, at, runs.bytes, runs.offset, writes);
    end_run(transfer);
    /* At once, so that storage has the whole depth; the wait behind the last one submits it as well. */
    if (is_of_queue(data) && queue.in_flight < queue.depth)
        submit(0);
}

static void *uring_finish(struct und_file *file)
{
    (void)file; /* one queue serves all */
    while (!queue.ended)
        take_ended();
    struct transfer *transfer = queue.ended;
    queue.ended = transfer->next;
    free_transfer(transfer);
    return transfer->data;
}

static void uring_wait(struct und_file *file)
{
    (void)file;
    take_all();
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
    const int64_t bytes = (load->transfer_bytes + und_direct_page()) * (values[DIRECT] == DIRECT_NO ? 1 : 2);
    const int64_t each = bytes + (int64_t)sizeof(struct transfer) + 3 * (int64_t)sizeof(struct call);
    return (each < MANY / UND_MAX_DEPTH ? each : MANY / UND_MAX_DEPTH) * load->depth;
}

static struct und_file *uring_open(const struct und_open *how)
{
    const size_t length = strlen(how->path) + 1;
    static const int64_t defaults[] = {[DEPTH] = 0, [DIRECT] = DIRECT_NO, [SQPOLL] = 0};
    const int64_t *values = how->settings ? how->settings : defaults;
    need_ring(values);
    struct und_file *file = malloc(sizeof *file + length);
    UND_CHECK(file, "uring: no memory to open %s", how->path);
    *file = (struct und_file){
        .cached = {.number = -1, .slot = -1}, .direct = {.number = -1, .slot = -1}, .operations = how->operations};
    memcpy(file->path, how->path, length);
    if (!how->write_through) { /* a descriptor cannot begin to write through later */
        file->cached.number = *how->created;
        *how->created = -1;
    }
    const int flags = how->mode == UND_READ ? O_RDONLY | O_CLOEXEC
                                            : O_RDWR | O_NOFOLLOW | O_CLOEXEC | (how->write_through ? O_DSYNC : 0);
    if (file->cached.number < 0)
        file->cached.number = open(und_directory_name(how->directory, how->path), flags);
    UND_CHECK(file->cached.number >= 0, "uring: cannot open %s", how->path);
    if (values[DIRECT] == DIRECT_YES || (values[DIRECT] == DIRECT_READ && how->mode == UND_READ))
        file->direct.number = und_direct_open(how, file->cached.number, flags, "uring");
    ++*file->operations;
    return file;
}

static int uring_descriptor(const struct und_file *file)
{
    return file->cached.number;
}

/* Behind calls in flight the flush is queued, so that one call of the system submits and awaits all. Where one of them
 * moved less than asked, the rest is behind the flush, which is made again. */
static void uring_sync(struct und_file *file)
{
    if (queue.in_flight == 0) {
        UND_CHECK(fsync(file->cached.number) == 0, "uring: cannot flush %s", file->path);
        ++*file->operations;
        return;
    }
    for (int64_t repeats = -1; repeats != queue.repeats;) {
        struct call *call = new_call(file);
        call->transfer = NULL;
        call->file = file;
        call->directly = false;
        repeats = queue.repeats;
        queue_call(call);
        take_all();
    }
}

static void close_descriptor(const struct und_file *file, const struct descriptor *descriptor)
{
    int none = -1;
    if (descriptor->slot >= 0) {
        if (io_uring_register_files_update(&queue.ring, (unsigned)descriptor->slot, &none, 1) != 1)
            UND_DIE("uring: cannot take %s from the registered files", file->path);
        queue.free_slots[queue.free_slot_count++] = descriptor->slot;
    }
    UND_CHECK(descriptor->number < 0 || close(descriptor->number) == 0, "uring: cannot close %s", file->path);
}

static void uring_close(struct und_file *file)
{
    uring_wait(file);
    close_descriptor(file, &file->cached);
    close_descriptor(file, &file->direct);
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
    .usable = uring_usable,
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
    .flushes_in_flight = true,
    .sync = uring_sync,
    .close = uring_close,
#else
    .unavailable = "no liburing 2.2 or newer was found when this program was built",
#endif
};
