/*
 * One event, timed: the phases that a dump goes through, with a stamp between them. Between the
 * barrier and the last stamp there is no allocation, no formatting and no communication but the
 * method's own and, where ranks take turns, the baton: waiting for it is part of no phase.
 */
#ifndef UND_PHASE_H
#define UND_PHASE_H

#include "job/timing.h"
#include "playing/stream_player.h"

/* The use of the instructions of a step: they are played; or what they move is read alone, as it was written, in
 * a restart; or before time is taken what they read is made; or what they moved is compared. */
enum und_doing { UND_PLAY, UND_READ_ALONE, UND_MAKE, UND_CHECK };

/* Waits until the event is due on und_clock, then plays the dump and fills
 * records[UND_PHASES] with seconds since `zero`. Collective over all ranks. */
void und_phase_play(const struct und_run *run, struct und_stream_player *player, const struct und_event *event,
                    double zero, double due, struct und_record *records);

/* Ends the run if the run directory is no longer in its place (und_directory_is_in_place): libraries open files by path,
 * and another directory under this one's name is none of ours to write to. */
void und_phase_check_place(const struct und_run *run, bool asks);

/* Prepares the dump of an event; und_phase_play does. Collective over the ranks that share files. */
void und_phase_prepare(const struct und_run *run, struct und_stream_player *player, const struct und_event *event);

/* Makes or compares, while no time is taken, what a dump reads or has moved: as one of all dumps of its stream, in their
 * order, or as what a restart reads. */
void und_phase_pass(const struct und_run *run, struct und_stream_player *player, int stream, int dump,
                    enum und_doing doing, struct und_verification *verification);
void und_phase_check(const struct und_run *run, struct und_stream_player *player, const struct und_event *event,
                     struct und_verification *verification);

#endif
