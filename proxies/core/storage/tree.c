#include "storage/tree.h"

#include "job/die.h"
#include "storage/run_directory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_BYTES = 160 };

/* The part of a tree that this rank has made, until it is removed. */
struct und_run_tree {
    struct und_directory *home; /* the run directory */
    int directory;              /* of the tree */
    uint64_t mark;              /* of that; on the rank that has made it */
    bool is_maker;
    int64_t count;
    char **paths;
    unsigned char *touched;
    struct und_run_tree *next;
    const struct und_tree *tree;
    char name[NAME_BYTES];
};

/* Each rank removes its own files where it has made them. What has come elsewhere since, with a directory or by a link,
 * goes with the directories, which one rank removes for all. */
static void remove_made(const struct und_run_tree *made, enum und_removal part)
{
    if (part == UND_ITS_DIRECTORIES && !made->is_maker)
        return;
    for (int64_t i = 0; i < made->count && made->directory >= 0 && part == UND_ITS_FILES; ++i)
        if (made->touched[i])
            und_directory_remove_at(made->home, made->directory, made->paths[i]);
    if (part != UND_ITS_FILES && made->directory >= 0)
        und_directory_remove_numbered(made->home, made->directory, made->count);
    if (part != UND_ITS_FILES && made->mark)
        und_directory_remove_name(made->home, -1, made->name, made->mark, true);
}

/* Safe in a signal handler. */
static void remove_all(struct und_directory *directory, enum und_removal part)
{
    for (const struct und_run_tree *made = directory->trees; made; made = made->next)
        remove_made(made, part);
}

void und_tree_forget(struct und_directory *directory)
{
    while (directory->trees) {
        struct und_run_tree *made = directory->trees;
        directory->trees = made->next;
        for (int64_t i = 0; i < made->count; ++i)
            free(made->paths[i]);
        close(made->directory);
        free(made->paths);
        free(made->touched);
        free(made);
    }
}

static char *path_of(const struct und_run_tree *made, int64_t entry)
{
    const struct und_entry *here = &made->tree->entries[entry];
    const int64_t in = here->in, name = here->name < 0 ? entry : here->name;
    const size_t bytes = (in < 0 ? 0 : strlen(made->paths[in])) + 24;
    char *path = und_allocate(1, bytes, made->name);
    if (here->top)
        return strcpy(path, ".");
    snprintf(path, bytes, "%s%s%" PRId64, in < 0 ? "" : made->paths[in], in < 0 ? "" : "/", name);
    return path;
}

/* One rank makes the directory; all open it, and nobody's else. */
static void make_directory(const struct und_run *run, struct und_run_tree *made)
{
    made->is_maker = run->rank == 0;
    if (made->is_maker) {
        made->mark = und_directory_have_subdirectory(made->home, made->name, 0700);
        UND_CHECK(made->mark, "posix: cannot create %s", made->name);
    }
    UND_MPI(MPI_Bcast(&made->mark, 1, MPI_UINT64_T, 0, run->comm), "cannot share the directory %s", made->name);
    made->directory = und_directory_open_subdirectory(made->home, made->name, made->mark);
    UND_CHECK(made->directory >= 0, "posix: cannot open %s", made->name);
}

static void fill(const struct und_run *run, int stream, const struct und_run_tree *made, int64_t entry,
                 struct und_base *base)
{
    const uint64_t contents = und_tree_contents(run, stream, entry);
    const int64_t bytes = made->tree->entries[entry].bytes;
    const int file = und_directory_open_below(made->directory, made->paths[entry], O_WRONLY | O_CREAT | O_EXCL, false);
    UND_CHECK(file >= 0, "posix: cannot create %s/%s", made->name, made->paths[entry]);
    und_base_continue(base);
    for (int64_t done = 0; done < bytes;) {
        const int64_t some = bytes - done < base->capacity ? bytes - done : base->capacity;
        const ssize_t wrote = write(file, und_base_consecutive(base, contents, done, some), (size_t)some);
        UND_CHECK(wrote > 0, "posix: cannot write %" PRId64 " bytes to %s/%s", some, made->name, made->paths[entry]);
        done += wrote;
    }
    UND_CHECK(fsync(file) == 0 && close(file) == 0, "posix: cannot flush %s/%s", made->name, made->paths[entry]);
}

/* Directories by one rank, then files by all. */
static void make_entries(const struct und_run *run, int stream, struct und_run_tree *made)
{
    const struct und_stream *what = &run->workload->streams[stream];
    struct und_base *base = und_pattern_base(run->pattern, &what->content, UND_BYTE);
    UND_CHECK(base, "no memory for the contents of %s", made->name);
    for (int64_t i = 0; i < made->count && run->rank == 0; ++i)
        if (made->tree->entries[i].directory) {
            made->touched[i] = 1;
            UND_CHECK(mkdirat(made->directory, made->paths[i], 0777) == 0, "posix: cannot create %s/%s", made->name,
                      made->paths[i]);
        }
    UND_MPI(MPI_Barrier(run->comm), "cannot make the directories of %s together", made->name);
    for (int64_t i = run->rank; i < made->count; i += run->ranks)
        if (made->tree->entries[i].exists && !made->tree->entries[i].directory) {
            made->touched[i] = 1;
            fill(run, stream, made, i, base);
        }
    UND_MPI(MPI_Barrier(run->comm), "cannot make the files of %s together", made->name);
}

struct und_run_tree *und_tree_make(const struct und_run *run, int stream)
{
    const struct und_stream *what = &run->workload->streams[stream];
    struct und_run_tree *made = und_allocate(1, sizeof *made, what->set->name);
    made->home = run->directory;
    made->tree = what->own.tree;
    snprintf(made->name, sizeof made->name, "%s.tree", what->set->name);
    made->paths = und_allocate(made->tree->count, sizeof *made->paths, made->name);
    made->touched = und_allocate(made->tree->count, 1, made->name);
    for (; made->count < made->tree->count; ++made->count)
        made->paths[made->count] = path_of(made, made->count);
    made->directory = -1;
    made->next = run->directory->trees;
    run->directory->trees = made;
    und_directory_remove_by(made->home, remove_all);
    make_directory(run, made);
    make_entries(run, stream, made);
    return made;
}

struct und_run_tree *und_tree_find(const struct und_run *run, int stream)
{
    struct und_run_tree *found = run->directory->trees;
    while (found->tree != run->workload->streams[stream].own.tree)
        found = found->next;
    return found;
}

int und_tree_directory(const struct und_run_tree *tree)
{
    return tree->directory;
}

const char *und_tree_path(const struct und_run_tree *tree, int64_t entry)
{
    return tree->paths[entry];
}

void und_tree_touch(struct und_run_tree *tree, int64_t entry)
{
    tree->touched[entry] = 1;
}

uint64_t und_tree_contents(const struct und_run *run, int stream, int64_t entry)
{
    const char *name = run->workload->streams[stream].set->name;
    return und_pattern_numbered(und_pattern_identity(run->plan->seed, name, strlen(name), 0), entry);
}
