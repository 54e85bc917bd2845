/*
 * The layout and the hints of each stream's files in a run: what is asked for, and what the files
 * are found to have while they exist. Nothing here happens while time is taken.
 */
#ifndef UND_LAYOUT_LOG_H
#define UND_LAYOUT_LOG_H

#include "interfaces/layout_backend.h"
#include "plan/run.h"

#include <jansson.h>

/* NULL asks for nothing and notes nothing. */
struct und_layout_log;

/* Can the file system, the same on all ranks, do what is asked? NULL with the error message. */
struct und_layout_log *und_layout_log_new(const struct und_run *run, const struct und_storage *storage,
                                          struct und_error *error);
void und_layout_log_free(struct und_layout_log *layout_log);

/* The layout that files are created with; NULL: none is asked. */
const struct und_layout_request *und_layout_log_request(const struct und_layout_log *layout_log);

/* The hints of a stream for MPI; MPI_INFO_NULL: none. */
MPI_Info und_layout_log_hints(const struct und_layout_log *layout_log, int stream);

/* Notes the hints in force on an open file of a stream, once. True if that took time. */
bool und_layout_log_note_hints(struct und_layout_log *layout_log, int stream, const struct und_method *method,
                               const struct und_file *file);

/* Notes the layout of a file that is complete. Ends the run if it is not what was asked. */
void und_layout_log_note_layout(struct und_layout_log *layout_log, int stream, const char *path);

/* The array "striping" of the measurement, on rank 0; NULL on the others. Collective over all ranks. */
json_t *und_layout_log_json(struct und_layout_log *layout_log);

#endif
