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
static void remove_run_tree(const struct und_run_tree *run_tree, enum und_removal part)
{
    if (part == UND_ITS_DIRECTORIES && !run_tree->is_maker)
        return;
    for (int64_t i = 0; i < run_tree->count && run_tree->directory >= 0 && part == UND_ITS_FILES; ++i)
        if (run_tree->touched[i])
            und_directory_remove_at(run_tree->home, run_tree->directory, run_tree->paths[i]);
    if (part != UND_ITS_FILES && run_tree->directory >= 0)
        und_directory_remove_numbered(run_tree->home, run_tree->directory, run_tree->count);
    if (part != UND_ITS_FILES && run_tree->mark)
        und_directory_remove_name(run_tree->home, -1, run_tree->name, run_tree->mark, true);
}

/* Safe in a signal handler. */
static void remove_all(struct und_directory *directory, enum und_removal part)
{
    for (const struct und_run_tree *run_tree = directory->trees; run_tree; run_tree = run_tree->next)
        remove_run_tree(run_tree, part);
}

void und_tree_forget(struct und_directory *directory)
{
    while (directory->trees) {
        struct und_run_tree *run_tree = directory->trees;
        directory->trees = run_tree->next;
        for (int64_t i = 0; i < run_tree->count; ++i)
            free(run_tree->paths[i]);
        close(run_tree->directory);
        free(run_tree->paths);
        free(run_tree->touched);
        free(run_tree);
    }
}

static char *path_of(const struct und_run_tree *run_tree, int64_t entry)
{
    const struct und_entry *here = &run_tree->tree->entries[entry];
    const int64_t in = here->in, name = here->name < 0 ? entry : here->name;
    const size_t bytes = (in < 0 ? 0 : strlen(run_tree->paths[in])) + 24;
    char *path = und_allocate(1, bytes, run_tree->name);
    if (here->top)
        return strcpy(path, ".");
    snprintf(path, bytes, "%s%s%" PRId64, in < 0 ? "" : run_tree->paths[in], in < 0 ? "" : "/", name);
    return path;
}

/* One rank makes the directory; all open it, and nobody's else. */
static void make_directory(const struct und_run *run, struct und_run_tree *run_tree)
{
    run_tree->is_maker = run->rank == 0;
    if (run_tree->is_maker) {
        run_tree->mark = und_directory_have_subdirectory(run_tree->home, run_tree->name, 0700);
        UND_CHECK(run_tree->mark, "posix: cannot create %s", run_tree->name);
    }
    UND_MPI(MPI_Bcast(&run_tree->mark, 1, MPI_UINT64_T, 0, run->comm), "cannot share the directory %s", run_tree->name);
    run_tree->directory = und_directory_open_subdirectory(run_tree->home, run_tree->name, run_tree->mark);
    UND_CHECK(run_tree->directory >= 0, "posix: cannot open %s", run_tree->name);
}

static void fill(const struct und_run *run, int stream, const struct und_run_tree *run_tree, int64_t entry,
                 struct und_base *base)
{
    const uint64_t contents = und_tree_contents(run, stream, entry);
    const int64_t bytes = run_tree->tree->entries[entry].bytes;
    const int file =
        und_directory_open_below(run_tree->directory, run_tree->paths[entry], O_WRONLY | O_CREAT | O_EXCL, false);
    UND_CHECK(file >= 0, "posix: cannot create %s/%s", run_tree->name, run_tree->paths[entry]);
    und_base_continue(base);
    for (int64_t done = 0; done < bytes;) {
        const int64_t some = bytes - done < base->capacity ? bytes - done : base->capacity;
        const ssize_t wrote = write(file, und_base_consecutive(base, contents, done, some), (size_t)some);
        UND_CHECK(wrote > 0, "posix: cannot write %" PRId64 " bytes to %s/%s", some, run_tree->name,
                  run_tree->paths[entry]);
        done += wrote;
    }
    UND_CHECK(fsync(file) == 0 && close(file) == 0, "posix: cannot flush %s/%s", run_tree->name,
              run_tree->paths[entry]);
}

/* Directories by one rank, then files by all. */
static void make_entries(const struct und_run *run, int stream, struct und_run_tree *run_tree)
{
    const struct und_stream *what = &run->workload->streams[stream];
    struct und_base *base = und_pattern_base(run->pattern, &what->content, UND_BYTE);
    UND_CHECK(base, "no memory for the contents of %s", run_tree->name);
    for (int64_t i = 0; i < run_tree->count && run->rank == 0; ++i)
        if (run_tree->tree->entries[i].directory) {
            run_tree->touched[i] = 1;
            UND_CHECK(mkdirat(run_tree->directory, run_tree->paths[i], 0777) == 0, "posix: cannot create %s/%s",
                      run_tree->name, run_tree->paths[i]);
        }
    UND_MPI(MPI_Barrier(run->comm), "cannot make the directories of %s together", run_tree->name);
    for (int64_t i = run->rank; i < run_tree->count; i += run->ranks)
        if (run_tree->tree->entries[i].exists && !run_tree->tree->entries[i].directory) {
            run_tree->touched[i] = 1;
            fill(run, stream, run_tree, i, base);
        }
    UND_MPI(MPI_Barrier(run->comm), "cannot make the files of %s together", run_tree->name);
}

struct und_run_tree *und_tree_make(const struct und_run *run, int stream)
{
    const struct und_stream *what = &run->workload->streams[stream];
    struct und_run_tree *run_tree = und_allocate(1, sizeof *run_tree, what->set->name);
    run_tree->home = run->directory;
    run_tree->tree = what->own_set.tree;
    snprintf(run_tree->name, sizeof run_tree->name, "%s.tree", what->set->name);
    run_tree->paths = und_allocate(run_tree->tree->count, sizeof *run_tree->paths, run_tree->name);
    run_tree->touched = und_allocate(run_tree->tree->count, 1, run_tree->name);
    for (; run_tree->count < run_tree->tree->count; ++run_tree->count)
        run_tree->paths[run_tree->count] = path_of(run_tree, run_tree->count);
    run_tree->directory = -1;
    run_tree->next = run->directory->trees;
    run->directory->trees = run_tree;
    und_directory_remove_by(run_tree->home, remove_all);
    make_directory(run, run_tree);
    make_entries(run, stream, run_tree);
    return run_tree;
}

struct und_run_tree *und_tree_find(const struct und_run *run, int stream)
{
    struct und_run_tree *run_tree = run->directory->trees;
    while (run_tree->tree != run->workload->streams[stream].own_set.tree)
        run_tree = run_tree->next;
    return run_tree;
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
