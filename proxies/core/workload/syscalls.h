/*
 * The calls of the system that a program makes, as a trace of them says: on files of a tree, call by call, with loops
 * and places that are linear in the numbers of the loops. Contract: docs/reference/program.md, "Calls of the system".
 * Sizes and places are bytes.
 */
#ifndef UND_SYSCALLS_H
#define UND_SYSCALLS_H

#include "text/strict.h"

#include <stdbool.h>
#include <stdint.h>

enum { UND_MAX_LOOPS = 6, UND_MAX_HANDLES = 65536, UND_MAX_PATHS = 10000000 };

/* A file or directory of a tree. */
struct und_entry {
    int64_t in; /* the entry of its directory; -1: that of the tree */
    bool directory, exists;
    bool top;      /* the directory of the tree itself */
    int64_t name;  /* the entry whose last name it has; -1: its own */
    int64_t bytes; /* of a file that exists before the first call */
};

struct und_tree {
    struct und_entry *entries;
    int64_t count;
    int64_t stored_bytes; /* that its files have together, at most */
};

enum und_syscall {
    UND_CALL_OPEN,
    UND_CALL_CLOSE,
    UND_CALL_READ,
    UND_CALL_WRITE,
    UND_CALL_SEEK,
    UND_CALL_STAT,
    UND_CALL_SYNC,
    UND_CALL_TRUNCATE,
    UND_CALL_UNLINK,
    UND_CALL_RENAME,
    UND_CALL_LINK,
    UND_CALL_MKDIR,
    UND_CALL_RMDIR,
    UND_CALL_LIST,
    UND_CALL_DUP,
    UND_CALL_SYMLINK,
    UND_CALL_ATTRIBUTE,
    UND_CALL_ADVISE,
    UND_CALL_ALLOCATE,
    UND_CALL_COPY,
    UND_CALL_WAIT,
    UND_CALLS,
    UND_CALL_REPEAT = UND_CALLS, /* its body so many times */
    UND_CALL_RANKS               /* its body by some ranks */
};

/* base + the sum over the loops around it, from the outermost, of factor times number of the pass; of ranks that
 * make calls alike, the number is that of the rank, from the first of them. */
struct und_linear {
    int64_t base;
    int count;
    int64_t factors[UND_MAX_LOOPS];
};

/* How a file is opened. */
enum {
    UND_FLAG_READ = 1,
    UND_FLAG_WRITE = 2,
    UND_FLAG_CREATE = 4,
    UND_FLAG_EXCLUSIVE = 8,
    UND_FLAG_TRUNCATE = 16,
    UND_FLAG_APPEND = 32,
    UND_FLAG_DIRECT = 64,
    UND_FLAG_SYNC = 128,
    UND_FLAG_DIRECTORY = 256
};

struct und_call {
    enum und_syscall kind;
    bool fails;                          /* as it did for the program */
    bool exclusive;                      /* rename: where the name is free */
    bool has_path, has_other, has_place; /* else: by its handle, where that stands */
    bool from_end, data_only, itself;    /* seek; sync; stat: of a link */
    int flags;                           /* open */
    int advice;                          /* advise: its place in the list of the contract */
    int64_t body, times, first; /* of a loop: calls behind it that are in it, its passes, or ranks and the first one */
    int64_t handle, other;      /* open and dup: the one that is given; copy: of the file that it goes into */
    struct und_linear path, to, place;
    int64_t bytes, moved; /* asked for, and moved */
    int64_t length;       /* allocate; copy: asked for */
    int64_t depth;        /* read and write: begun when fewer are in flight; 1: none are, and it ends */
};

struct und_call_list {
    struct und_call *calls;
    int64_t count;
};

/* As the contract calls them, ending with NULL. */
extern const char *const und_syscall_names[];

/* The key entries of a set of files, and its stored_bytes. */
bool und_tree_read(struct und_strict *at, const json_t *set, struct und_tree *tree);

void und_tree_free(struct und_tree *tree);

/* The calls of the array under a key, of a program of so many ranks. Paths and places are checked against the tree. */
bool und_calls_read(struct und_strict *at, const json_t *object, const char *key, const struct und_tree *tree,
                    int64_t ranks, struct und_call_list *list);
void und_calls_free(struct und_call_list *list);

/* Bytes that all ranks move, and calls; -1 when they do not fit 63 bits. And the largest call. */
int64_t und_calls_bytes(const struct und_call_list *list);
int64_t und_calls_count(const struct und_call_list *list);
int64_t und_calls_largest(const struct und_call_list *list);

/* In flight at a time, at most, as the calls state it. And that there can be, since a rank has no more such calls, with
 * the largest of them. */
int64_t und_calls_depth(const struct und_call_list *list);
int64_t und_calls_in_flight(const struct und_call_list *list, int64_t *largest);

/* Data calls of one rank. */
int64_t und_calls_moves_of(const struct und_call_list *list, int64_t rank);

/* In a tree: files, and directories. */
int64_t und_tree_files(const struct und_tree *tree);

/* The value in the passes that are in hand. */
static inline int64_t und_linear_at(const struct und_linear *linear, const int64_t *passes)
{
    int64_t value = linear->base;
    for (int i = 0; i < linear->count; ++i)
        value += linear->factors[i] * passes[i];
    return value;
}

#endif
