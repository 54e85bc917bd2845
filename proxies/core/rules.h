/*
 * Which keys of a workload go together: what no single key tells. The reader of workloads asks while
 * it stands at a stream; python/understudy/contracts/workload/rules.py has the same rules.
 */
#ifndef UND_RULES_H
#define UND_RULES_H

#include "core/strict.h"
#include "core/workload.h"

/* Of a stream whose dumps are not read yet; false with the error message. */
bool und_rules_check_stream(struct und_strict *at, const struct und_stream *stream);

/* Of a dump, at its place, with the decomposition of its variables. */
bool und_rules_check_dump(struct und_strict *at, const struct und_stream *stream, const struct und_dump *dump);

/* Of a variable. */
bool und_rules_check_variable(struct und_strict *at, const struct und_stream *stream,
                              const struct und_variable *variable);

/* Of a stream with its dumps. */
bool und_rules_check_directories(struct und_strict *at, const struct und_stream *stream);

/* Of a stream with its dumps: those that continue. */
bool und_rules_check_contents(struct und_strict *at, const struct und_stream *stream);

/* Of a stream that extends another, both read; sets extended_by of the other. */
bool und_rules_check_extension(struct und_strict *at, struct und_workload *workload, int s);

/* Of a stream that reads the files of another, both read; sets notes_places of both. */
bool und_rules_check_reader(struct und_strict *at, struct und_workload *workload, int s);

/* Of a stream that reads no other: the places of its variables; sets notes_places. */
bool und_rules_check_places(struct und_strict *at, struct und_workload *workload, int s);

#endif
