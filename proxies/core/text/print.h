/*
 * The output of programs: one line at a time, through here. Text from outside (names, paths, values, messages of
 * libraries) is no command to a terminal: what a terminal acts on or does not show is printed as an escape, such
 * as \x1b, \n or \u202e, as that of the commands in Python does (understudy.errors).
 */
#ifndef UND_PRINT_H
#define UND_PRINT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { UND_PRINT_BYTES = 8192, UND_ESCAPED = 4 }; /* a byte becomes at most so many */

/* Bytes of the UTF-8 character that begins here, and its code; 0 where there is none. */
size_t und_character(const char *text, uint32_t *code);

/* Writes the text with escapes, as much of it as fits, and returns its length. Safe in a signal handler, and changes
 * nothing the second time. */
size_t und_escape(char *to, size_t size, const char *text);

/* A line that is put together and written in one call, safely in a signal handler; what does not fit is cut off. */
struct und_line {
    size_t length;
    char text[1024];
};

void und_line_add(struct und_line *line, const char *text);
void und_line_add_number(struct und_line *line, long long number);
void und_line_write(struct und_line *line, int descriptor);

/* A line, whose end it adds, in one call: those of several ranks do not mix. What is longer than UND_PRINT_BYTES is
 * cut off. */
void und_print(FILE *stream, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* At the end of a program: has all that it printed on standard output been written? Its status, or that of a failure
 * with a message. */
int und_print_end(int status);

#endif
