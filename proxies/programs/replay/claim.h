/*
 * The claim that a run has on its directory: a file in it from before the first byte until the run has removed its
 * files, or has ended and keeps them. Processes that are killed cannot remove theirs; the claim, which stays with them,
 * tells the next run that these are files of a run, of which, and that none of its processes is left.
 */
#ifndef UND_CLAIM_H
#define UND_CLAIM_H

#include "plan/run.h"
#include "text/error.h"

#include <stdbool.h>

/* For rank 0, before the directory is opened: it must be empty and writable, or is created (its last component only;
 * *created). Removes its contents, and says so, where they are what a run of this user that was killed on this host
 * has made; *created: that run has created the directory as well. False with the message, and with nothing removed,
 * where anything else is in it or a process of the run may be left. */
bool und_claim_prepare(const char *directory, struct und_watch *watch, bool *created, struct und_error *error);

/* Claims the open run directory for the run. False with the message where another run has just done
 * so. Collective. */
bool und_claim_make(const struct und_run *run, struct und_error *error);

#endif
