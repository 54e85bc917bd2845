/*
 * The options of the player, as rows of data: name, letter, kind, default and help stand in one
 * place (option.c), and the parser, the defaults and --help are made from them.
 */
#ifndef UND_OPTION_H
#define UND_OPTION_H

#include "core/error.h"

#include <stdint.h>
#include <stdio.h>

enum { UND_MOST_GIVEN = 64 };

struct und_options {
    const char *workload;
    const char *settings[UND_MOST_GIVEN]; /* of methods, as given; see setting.h */
    int setting_count;
    const char *method;     /* NULL: each stream's own */
    int64_t transfer_bytes; /* 0: each stream's own */
    bool collective;
    bool independent;
    const char *directory;
    int64_t repetitions;
    bool fsync;
    bool keep;
    double time_scale;
    double bytes_scale;
    int compute; /* enum und_compute; negative: as the descriptor says */
    bool verify;
    bool restart;
    const char *restart_stream; /* NULL: every checkpoint stream that is written */
    int64_t restart_dump;       /* negative: the last one of each stream */
    const char *restart_from;   /* directory with files to read, then also `directory`; NULL: none */
    int64_t shift_ranks;
    bool drop_cache;
    const char *output;
    int64_t seed;
    bool verbose;
    bool dry_run;
    bool list;
    bool help;
    bool version;
};

/* Reads argv into options, which get their defaults first; strings point into argv. False with the
 * sentence. --help, --list and --version win over what is missing. */
bool und_options_read(struct und_options *options, int argc, char **argv, struct und_error *error);

void und_options_help(FILE *stream);

/* Bytes: 4194304, 4MiB (binary: KiB MiB GiB TiB) or 4MB (decimal: kB MB GB TB). -1 when it is
 * anything else. */
int64_t und_bytes_read(const char *text);

#endif
