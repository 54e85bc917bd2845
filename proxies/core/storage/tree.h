/*
 * The files and directories of a program's calls (syscalls.h) as a run has them: below a directory of the run
 * directory that the run makes, <set>.tree. Entry n has the name n in the directory that it is in. What ranks have made
 * is removed at the end, by these names alone, wherever they are in that directory by then; what else is found there
 * stays, and so does its directory.
 */
#ifndef UND_TREE_H
#define UND_TREE_H

#include "plan/run.h"
#include "workload/syscalls.h"

struct und_run_tree;

/* Makes the directory, and in it what exists before the first call, with contents of the seed. Collective over the
 * ranks of the run; ends it where that cannot be made. */
struct und_run_tree *und_tree_make(const struct und_run *run, int stream);

/* The same tree, once it has been made, for those who look at it again. */
struct und_run_tree *und_tree_find(const struct und_run *run, int stream);

/* Frees all trees of the run, whose files are removed or kept. */
void und_tree_forget(struct und_directory *directory);

/* The path of an entry, from the descriptor of the tree's directory. */
int und_tree_directory(const struct und_run_tree *tree);
const char *und_tree_path(const struct und_run_tree *tree, int64_t entry);

/* This rank is about to make something of that name. */
void und_tree_touch(struct und_run_tree *tree, int64_t entry);

/* The key of the contents of an entry's file, see pattern.h. */
uint64_t und_tree_contents(const struct und_run *run, int stream, int64_t entry);

#endif
