/*
 * One event, timed: the phases that a dump goes through, with a stamp between them. Between the
 * barrier and the last stamp there is no allocation, no formatting and no communication but the
 * method's own and, where ranks take turns, the baton: waiting for it is part of no phase.
 */
#ifndef UND_PHASE_H
#define UND_PHASE_H

#include "core/series.h"
#include "core/timing.h"

/* Waits until the event is due on und_clock, then plays the dump and fills
 * records[UND_PHASES] with seconds since `zero`. Collective over all ranks. */
void und_phase_play(const struct und_run *run, struct und_series *series, const struct und_event *event, double zero,
                    double due, struct und_record *records);

/* Prepares the dump of an event; und_phase_play does. Collective over the ranks that share files. */
void und_phase_prepare(const struct und_run *run, struct und_series *series, const struct und_event *event);

#endif
