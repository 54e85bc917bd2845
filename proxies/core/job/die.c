#include "job/die.h"

#include "text/print.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { FAILURE = 1, MESSAGE_BYTES = 2048, PATIENCE_MS = 10000, STEP_MS = 5 };

/* A rank of this node, as the others can reach it. */
struct neighbour {
    ino_t pids; /* the namespace that its process number is of */
    pid_t pid;
};

/* The memory that the ranks of a node share. */
struct node {
    atomic_int spoken;  /* one of them has said why the run ends */
    atomic_int failed;  /* one of them ends it: the others are stopped because of that */
    atomic_int cleaned; /* how many have removed their files */
    atomic_llong kept;  /* files that these could not remove */
    atomic_int told;    /* one of them has said so */
    int size;
    struct neighbour ranks[];
};

/* A signal handler gets no argument, and an error may end the run in any function. */
static atomic_int alone;
static _Atomic(struct node *) shared;
static atomic_bool clean;
static MPI_Win window = MPI_WIN_NULL;
static struct und_cleanup cleaning;
static _Atomic(struct und_kernel_queue *) queues;

/* Between MPI_Init and MPI_Finalize? */
static bool is_in_mpi(void)
{
    int begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    return begun && !ended;
}

static struct neighbour myself(void)
{
    struct stat status;
    const bool has_namespace = stat("/proc/self/ns/pid", &status) == 0;
    return (struct neighbour){.pids = has_namespace ? status.st_ino : 0, .pid = getpid()};
}

void und_die_share(MPI_Comm comm)
{
    MPI_Comm comm_of_node;
    struct node *node;
    int rank, size, unit;
    MPI_Aint bytes;
    if (MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &comm_of_node) != MPI_SUCCESS)
        return;
    MPI_Comm_rank(comm_of_node, &rank);
    MPI_Comm_size(comm_of_node, &size);
    bytes = rank == 0 ? (MPI_Aint)(sizeof *node + (size_t)size * sizeof node->ranks[0]) : 0;
    /* Where the MPI library has no such window, every rank speaks for itself. */
    if (MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, comm_of_node, &node, &window) == MPI_SUCCESS &&
        MPI_Win_shared_query(window, 0, &bytes, &unit, &node) == MPI_SUCCESS) {
        if (rank == 0) {
            atomic_init(&node->spoken, 0);
            atomic_init(&node->failed, 0);
            atomic_init(&node->cleaned, 0);
            atomic_init(&node->kept, 0);
            atomic_init(&node->told, 0);
            node->size = size;
        }
        node->ranks[rank] = myself();
        MPI_Barrier(comm_of_node);
        shared = node;
    }
    MPI_Comm_free(&comm_of_node);
}

void und_die_unshare(void)
{
    shared = NULL;
    if (window != MPI_WIN_NULL)
        MPI_Win_free(&window);
}

void und_die_clean_by(struct und_cleanup cleanup)
{
    cleaning = cleanup;
}

void und_die_note_queue(struct und_kernel_queue *queue)
{
    queue->thread = pthread_self();
    queue->next = queues;
    queues = queue;
}

void und_die_forget_queue(struct und_kernel_queue *queue)
{
    struct und_kernel_queue *before = queues;
    if (before == queue) {
        queues = queue->next;
        return;
    }
    while (before && before->next != queue)
        before = before->next;
    if (before)
        before->next = queue->next;
}

static void close_queues(void)
{
    for (struct und_kernel_queue *queue = atomic_exchange(&queues, NULL); queue; queue = queue->next)
        if (pthread_equal(queue->thread, pthread_self()))
            queue->close(queue->state);
}

bool und_die_first(void)
{
    struct node *node = shared;
    return atomic_exchange(node ? &node->spoken : &alone, 1) == 0;
}

int und_die_status(int signal_number)
{
    const struct node *node = shared;
    return node && node->failed ? FAILURE : 128 + signal_number;
}

/* One rank of the node, that knows of one, says how many files all of them could not remove. */
static void tell(struct node *node, int64_t kept)
{
    if (kept > 0 && (!node || atomic_exchange(&node->told, 1) == 0))
        cleaning.tell(cleaning.state, node ? node->kept : kept);
}

/* This rank has removed its files, but for some: has the others of the node do so. False where it is at it already. */
static bool clean_together(int64_t kept)
{
    struct node *node = shared;
    if (atomic_exchange(&clean, true))
        return false;
    if (!node) {
        tell(node, kept);
        return true;
    }
    const struct neighbour me = myself();
    atomic_fetch_add(&node->kept, kept);
    atomic_fetch_add(&node->cleaned, 1);
    for (int r = 0; r < node->size; ++r)
        if (node->ranks[r].pids == me.pids && node->ranks[r].pid != me.pid)
            kill(node->ranks[r].pid, SIGTERM);
    for (int waited = 0; node->cleaned < node->size && waited < PATIENCE_MS; waited += STEP_MS)
        nanosleep(&(struct timespec){0, STEP_MS * 1000000L}, NULL);
    const int64_t more = node->cleaned == node->size && cleaning.all_removed ? cleaning.all_removed(cleaning.state) : 0;
    atomic_fetch_add(&node->kept, more);
    tell(node, kept + more);
    return true;
}

void und_die_claim(void)
{
    struct node *node = shared;
    und_die_first();
    if (node)
        node->failed = 1;
}

bool und_die_clean(void)
{
    close_queues();
    return clean_together(cleaning.remove_files ? cleaning.remove_files(cleaning.state) : 0);
}

void und_die_abort(void)
{
    if (is_in_mpi())
        MPI_Abort(MPI_COMM_WORLD, FAILURE);
    _exit(FAILURE);
}

void *und_allocate(int64_t count, size_t size, const char *name)
{
    void *memory = calloc((size_t)count, size);
    UND_CHECK(memory, "no memory for %" PRId64 " times %zu bytes of %s", count, size, name);
    return memory;
}

const char *und_die_text(int code)
{
    static char text[MPI_MAX_ERROR_STRING];
    int length = 0;
    MPI_Error_string(code, text, &length);
    return text;
}

void und_die(const char *file, int line, const char *why, const char *format, ...)
{
    char host[256] = "", what[MESSAGE_BYTES];
    int rank = 0;
    sigset_t all;
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    /* A rank that has failed too stops its neighbours: not this one between its claim to speak and its message. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    gethostname(host, sizeof host - 1);
    if (is_in_mpi())
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (und_die_first())
        und_print(stderr, "understudy: rank %d on %s: %s%s%s (%s:%d)", rank, host, what, *why ? ": " : "", why, file,
                  line);
    fflush(stderr);
    und_die_claim();
    und_die_clean();
    und_die_abort();
}
