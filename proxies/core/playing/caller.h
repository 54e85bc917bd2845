/*
 * Carries out the calls of the system that a program makes (syscalls.h), as one rank: call by call, with descriptors,
 * places and files that behave as they did. Nothing else is asked of the storage between two of them.
 */
#ifndef UND_CALLER_H
#define UND_CALLER_H

#include "job/latency.h"
#include "plan/run.h"
#include "playing/pace.h"

struct und_caller;

/* See und_stream_player_new. Collective over the ranks where the tree is to be made (`makes`). */
struct und_caller *und_caller_new(const struct und_run *run, int stream, int64_t as, bool makes);
void und_caller_free(struct und_caller *caller);

/* Called behind each call, with what it belongs to. */
typedef void und_note_call(void *context, enum und_phase phase);

/* The phases that calls belong to. */
void und_caller_phases(const struct und_call_list *list, bool phases[UND_PHASES]);

/* Makes the calls of this rank. Its pace is kept before those that move bytes. */
void und_caller_play(struct und_caller *caller, const struct und_call_list *list, struct und_pace *pace,
                     und_note_call *note, void *context);

/* From now on, bytes that calls read of files that no call changes are compared. */
void und_caller_verify(struct und_caller *caller, struct und_verification *verification);

/* From now on, the latencies of calls that write and read are noted. */
void und_caller_note_latencies(struct und_caller *caller, struct und_latency *writes, struct und_latency *reads);

/* Compares what the calls of a rank have written and what is still there, once all are made. */
void und_caller_check(const struct und_run *run, int stream, int64_t as, struct und_verification *verification);

/* The bytes that were moved, and by how many calls, since this was asked last. */
void und_caller_count(struct und_caller *caller, int64_t *bytes, int64_t *operations);

/* Files that this rank has opened so far, and memory that a rank needs. */
int64_t und_caller_files(const struct und_caller *caller);
int64_t und_caller_memory(const struct und_stream *stream);

/* Calls of a rank in flight at a time, as the calls state it. */
int64_t und_caller_depth(const struct und_stream *stream);

#endif
