/*
 * The message of a usage error (options, descriptor, directory). Functions that can
 * meet one return false and leave the message here; the program prints it once and ends with
 * status 2.
 */
#ifndef UND_ERROR_H
#define UND_ERROR_H

#include <stdbool.h>

struct und_error {
    char text[2048];
};

/* Writes the message; always false, so that `return und_fail(…)` reads well. */
bool und_fail(struct und_error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
