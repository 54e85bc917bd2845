/*
 * Checks that all layout backends share: can a request be honoured, and was it? Options of the command
 * line are named in the error messages. No MPI here.
 */
#ifndef UND_LAYOUT_REQUEST_H
#define UND_LAYOUT_REQUEST_H

#include "interfaces/layout_backend.h"

#include <stdio.h>

/* Can the backend of this file system give the layout? */
bool und_layout_backend_takes(const struct und_layout_backend *backend, const struct und_storage *storage,
                              const struct und_layout_request *request, struct und_error *error);

/* Is the layout that was read back what was asked for? `path` names the file in the error message. */
bool und_layout_request_agrees(const struct und_layout_request *request, const struct und_file_layout *layout,
                               const char *path, struct und_error *error);

/* A line for each backend with what it can be asked for. */
void und_layout_backend_list(FILE *stream);

/* Parses a list of targets such as 0,4-7 into the request. */
bool und_layout_request_read_targets(const char *text, struct und_layout_request *request);

/* Adds what the backend knows of the directory that und_storage_read has read: the default layout, versions
 * and health; files of the client are looked for below `root`, which is "" but in tests. */
void und_layout_backend_describe(const char *directory, const char *root, struct und_storage *storage);

/* The first line of the file `path` below `root`, without its end; false where it cannot be read. */
bool und_layout_backend_line(const char *root, const char *path, char *line, size_t size);

#endif
