/*
 * How SIGINT, SIGTERM and SIGHUP end a run: what this rank created is removed (und_die_clean_by), and
 * the process ends with status 128 + signal.
 */
#ifndef UND_STOP_H
#define UND_STOP_H

#include <stdbool.h>

/* Catches the signals from now on. With `speaks`, a caught one leaves a message on stderr. */
void und_stop_watch(bool speaks);

/* The function that a caught signal calls first. */
void und_stop_call_first(void (*first)(void *state), void *state);

/* The end of a run: signals are ignored, because launchers send them to ranks that are a little
 * slower to leave than others. */
void und_stop_unwatch(void);

/* While a file is being created nobody can tell yet whose it is: signals in between are dealt with at the
 * release. */
void und_stop_hold(void);

/* A signal has come that waits for the release. */
bool und_stop_is_held(void);
void und_stop_release(void);

#endif
