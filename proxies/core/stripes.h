/*
 * What all striping backends share: can a request be honoured, and was it? Options of the command
 * line are named in the error messages. No MPI here.
 */
#ifndef UND_STRIPES_H
#define UND_STRIPES_H

#include "core/striping.h"

#include <stdio.h>

/* Can the backend of this file system give the layout? */
bool und_striping_takes(const struct und_striping *striping, const struct und_storage *storage,
                        const struct und_striping_request *request, struct und_error *error);

/* Is the layout that was read back what was asked for? `path` names the file in the error message. */
bool und_striping_agrees(const struct und_striping_request *request, const struct und_striping_layout *layout,
                         const char *path, struct und_error *error);

/* A line for each backend with what it can be asked for. */
void und_striping_list(FILE *stream);

/* Parses a list of targets such as 0,4-7 into the request. */
bool und_striping_targets_read(const char *text, struct und_striping_request *request);

/* Adds what the backend knows of the directory that und_storage_read has read: the default layout, versions
 * and health; files of the client are looked for below `root`, which is "" but in tests. */
void und_striping_describe(const char *directory, const char *root, struct und_storage *storage);

/* The first line of the file `path` below `root`, without its end; false where it cannot be read. */
bool und_striping_line(const char *root, const char *path, char *line, size_t size);

#endif
