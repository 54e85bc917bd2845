/*
 * To be preloaded: puts a link or a file in the place of a file or a directory of the run in the very moment in
 * which a rank opens a file, behind every look at it that the player may have taken before.
 *
 *   PLANT_RANK  the rank that opens
 *   PLANT_RANK_VARIABLE  where the launcher tells a process its rank
 *   PLANT_NAME  name of the file, without directory
 *   PLANT_TURN  at the open of that name with this number, from 1
 *   PLANT_AT    path of what is moved away, absolute like the others
 *   PLANT_AWAY  where it goes
 *   PLANT_WITH  what the link that takes its place leads to; none: a file with the text "mine" takes it
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* both names of each call are defined here */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void plant(const char *path)
{
    static int turn;
    const char *variable = getenv("PLANT_RANK_VARIABLE"), *rank = variable ? getenv(variable) : NULL;
    const char *wanted = getenv("PLANT_RANK"), *name = getenv("PLANT_NAME");
    const char *slash = strrchr(path, '/');
    if (!wanted || !rank || strcmp(rank, wanted) != 0 || strcmp(slash ? slash + 1 : path, name) != 0 ||
        ++turn != (int)strtol(getenv("PLANT_TURN"), NULL, 10))
        return;
    const char *at = getenv("PLANT_AT"), *away = getenv("PLANT_AWAY"), *with = getenv("PLANT_WITH");
    char new[4096];
    snprintf(new, sizeof new, "%s.new", away);
    const int file = with ? -1 : creat(new, 0666);
    if (with ? symlink(with, new) != 0 : file < 0 || write(file, "mine", 4) != 4 || close(file) != 0)
        abort();
    /* Other ranks find a file or its successor; a directory is gone in between. */
    if ((link(at, away) != 0 && rename(at, away) != 0) || rename(new, at) != 0)
        abort();
}

/* The function that this one hides. */
typedef int opener(const char *, int, ...);
typedef int opener_at(int, const char *, int, ...);
typedef FILE *file_opener(const char *, const char *);
#define REAL(type, name)                          \
    union {                                       \
        void *symbol;                             \
        type *call;                               \
    } real = {.symbol = dlsym(RTLD_NEXT, #name)}; \
    plant(path)
#define MODE(last)                                \
    va_list list;                                 \
    va_start(list, last);                         \
    const unsigned mode = va_arg(list, unsigned); \
    va_end(list)

#define OPEN(name)                             \
    int name(const char *path, int flags, ...) \
    {                                          \
        MODE(flags);                           \
        REAL(opener, name);                    \
        return real.call(path, flags, mode);   \
    }
#define OPENAT(name)                                          \
    int name(int directory, const char *path, int flags, ...) \
    {                                                         \
        MODE(flags);                                          \
        REAL(opener_at, name);                                \
        return real.call(directory, path, flags, mode);       \
    }
#define FOPEN(name)                               \
    FILE *name(const char *path, const char *how) \
    {                                             \
        REAL(file_opener, name);                  \
        return real.call(path, how);              \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
FOPEN(fopen)
FOPEN(fopen64)
