#include "core/created.h"

#include "core/die.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

struct entry {
    struct entry *next;
    atomic_bool ours;
    enum und_created_kind kind;
    char path[];
};

/* The handler may run between any two instructions, so a new entry is complete before it is linked. */
static _Atomic(struct entry *) entries;
static _Atomic(struct entry *) directory;
/* While a file is being created nobody can tell yet whose it is: the handler then only takes note. */
static atomic_bool creating;
static volatile sig_atomic_t noted;
/* While the MPI library opens a file it may hold what outlives this process: the handler lets it go on for so long,
 * which is a fifth of what Open MPI 5 leaves to a rank that is to end. */
enum { OPENING_US = 50000 };
static atomic_bool opening;
static atomic_bool speaking;
static pthread_t creator;
/* What the MPI library leaves if the process ends while it opens a file. */
static char lock_test[PATH_MAX], semaphore[PATH_MAX];

static void say(int signal_number)
{
    static const char text[] = "understudy: stopped by signal ";
    char line[sizeof text + 64];
    size_t length = sizeof text - 1;
    memcpy(line, text, length);
    if (signal_number >= 10)
        line[length++] = (char)('0' + signal_number / 10 % 10);
    line[length++] = (char)('0' + signal_number % 10);
    static const char rest[] = "; the files of this run are removed\n";
    memcpy(line + length, rest, sizeof rest - 1);
    length += sizeof rest - 1;
    /* Nothing can be done about a sentence that cannot be written. */
    if (write(STDERR_FILENO, line, length) < 0)
        return;
}

static void on_signal(int signal_number)
{
    /* The thread that creates files must not go on beside this one: it gets the signal instead. */
    if (!pthread_equal(pthread_self(), creator)) {
        pthread_kill(creator, signal_number);
        return;
    }
    if (signal_number == SIGALRM && noted)
        signal_number = noted;
    else if (creating || opening) {
        noted = signal_number;
        if (opening)
            setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = OPENING_US}, NULL);
        return;
    }
    und_created_remove();
    if (speaking && und_die_first())
        say(signal_number);
    if (!und_die_together())
        return;
    _exit(128 + signal_number);
}

static void handle(void (*handler)(int))
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGALRM};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; ++i)
        sigaction(signals[i], &action, NULL);
}

void und_created_watch(bool speaks)
{
    speaking = speaks;
    creator = pthread_self();
    und_die_clean_by(und_created_remove);
    handle(on_signal);
}

void und_created_unwatch(void)
{
    handle(SIG_IGN);
}

static struct entry *new_entry(const char *path)
{
    const size_t bytes = strlen(path) + 1;
    struct entry *entry = malloc(sizeof *entry + bytes);
    UND_CHECK(entry, "no memory to note %s", path);
    memcpy(entry->path, path, bytes);
    atomic_init(&entry->ours, false);
    entry->kind = UND_DATA_FILE;
    entry->next = NULL;
    return entry;
}

void und_created_reserve(const char *path, enum und_created_kind kind)
{
    struct entry *entry = new_entry(path);
    entry->kind = kind;
    entry->next = entries;
    entries = entry;
}

static struct entry *find(const char *path)
{
    struct entry *entry = entries;
    while (entry && strcmp(entry->path, path) != 0)
        entry = entry->next;
    return entry;
}

static struct entry *find_reserved(const char *path)
{
    struct entry *entry = find(path);
    if (!entry)
        UND_DIE("%s was not reserved", path);
    return entry;
}

/* What the handler did not do when it came. */
static void catch_up(void)
{
    if (noted)
        on_signal(noted);
}

static int create(const char *path, enum und_created_kind kind)
{
    return kind == UND_DATA_DIRECTORY ? mkdir(path, 0777) : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

int und_created_file(const char *path)
{
    struct entry *entry = find_reserved(path);
    creating = true;
    const int created = create(path, entry->kind);
    const int code = errno;
    if (created >= 0)
        entry->ours = true;
    creating = false;
    catch_up();
    errno = code;
    return created;
}

bool und_created_make(const char *path)
{
    return und_created_file(path) == 0;
}

void und_created_share(const char *path)
{
    find_reserved(path)->ours = true;
}

void und_created_opening(const char *path, int rank)
{
    const char *slash = strrchr(path, '/');
    if (snprintf(lock_test, sizeof lock_test, "%s.locktest.%d", path, rank) >= (int)sizeof lock_test)
        lock_test[0] = '\0';
    snprintf(semaphore, sizeof semaphore, "/dev/shm/sem.OMPIO_%s", slash ? slash + 1 : path);
    opening = true;
}

void und_created_opened(void)
{
    opening = false;
    catch_up();
}

void und_created_directory(const char *path)
{
    struct entry *entry = new_entry(path);
    entry->ours = true;
    directory = entry;
}

void und_created_keep(const char *path)
{
    struct entry *entry = find(path);
    if (entry)
        entry->ours = false;
}

/* A directory that holds files of other ranks still is theirs to remove. */
static void drop(const struct entry *entry)
{
    if (entry->ours && entry->kind == UND_DATA_DIRECTORY)
        rmdir(entry->path);
    else if (entry->ours)
        unlink(entry->path);
}

/* An entry leaves the list before it is freed: the handler may come in between. */
void und_created_drop_data(bool removing)
{
    struct entry *before = NULL;
    for (struct entry *entry = entries, *next; entry; entry = next) {
        next = entry->next;
        if (entry->kind == UND_RESULT_FILE) {
            before = entry;
            continue;
        }
        if (removing)
            drop(entry);
        if (before)
            before->next = next;
        else
            entries = next;
        free(entry);
    }
}

void und_created_remove(void)
{
    if (opening) {
        unlink(lock_test);
        unlink(semaphore);
    }
    for (struct entry *entry = entries; entry; entry = entry->next)
        drop(entry);
    if (directory)
        rmdir(((struct entry *)directory)->path);
}
