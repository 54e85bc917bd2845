/*
 * The options of the player as given on the command line: the rows of option.def make the struct,
 * the parser, the defaults, --help and what the measurement records.
 */
#ifndef UND_OPTION_H
#define UND_OPTION_H

#include "text/error.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

enum { UND_MAX_PAIRS = 64 };

/* KEY=VALUE, as often as given; the texts point into argv. */
struct und_pairs {
    int count;
    const char *texts[UND_MAX_PAIRS];
};

/* Types by kind; "not set" in parentheses. */
#define UND_OPTION_FLAG bool              /* recorded as true or false */
#define UND_OPTION_ON bool                /* with OFF on the same key: recorded as true, false, or null for neither */
#define UND_OPTION_OFF bool               /* see ON; --X and --Y of one key exclude each other */
#define UND_OPTION_TEXT const char *      /* (NULL) not empty */
#define UND_OPTION_BYTES int64_t          /* (0) with units, above 0 */
#define UND_OPTION_COUNT int64_t          /* (-1) at least 1 */
#define UND_OPTION_WHOLE int64_t          /* (-1) at least 0 */
#define UND_OPTION_TARGETS int64_t        /* (0) at least 1, or -1 for all */
#define UND_OPTION_FACTOR double          /* (-1) at least 0 */
#define UND_OPTION_POSITIVE double        /* (-1) above 0 */
#define UND_OPTION_COMPUTE int            /* (-1) enum und_compute */
#define UND_OPTION_PAIRS struct und_pairs /* (none) */

struct und_options {
#define UND_OPTION(kind, member, name, letter, argument, default_value, key, help) UND_OPTION_##kind member;
#include "options/option.def"
#undef UND_OPTION
};

/* Parses argv into options, which get their defaults first; strings point into argv. False with the
 * error message. --help, --list and --version win over missing options. */
bool und_options_read(struct und_options *options, int argc, char **argv, struct und_error *error);

void und_options_help(FILE *stream);

/* Of the options of another program: is what getopt_long gave (with ":" before its letters) an option? False with the
 * error message. */
bool und_option_known(int code, char *const *argv, struct und_error *error);

/* Every option with a key, null where it was not given. A new reference, NULL when memory is out or a
 * text is not UTF-8. */
json_t *und_options_record(const struct und_options *options);

/* KEY=VALUE pairs as an object; of a key given twice the last counts. NULL likewise. */
json_t *und_pairs_record(const struct und_pairs *pairs);

/* A number of targets: at least 1, or -1 for all. */
bool und_targets_read(const char *text, int64_t *count);

#define UND_BYTES_EXPECTED "1 to 2^63 - 1 bytes, such as 4194304, 4MiB (binary, KiB to EiB) or 4MB (decimal, kB to EB)"

/* Bytes: 4194304, 4MiB (binary: KiB MiB GiB TiB PiB EiB) or 4MB (decimal: kB MB GB TB PB EB). -1
 * when it is anything else. */
int64_t und_bytes_read(const char *text);

#endif
