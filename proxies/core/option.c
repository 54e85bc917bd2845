#include "core/option.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum kind { FLAG, TEXT, BYTES, COUNT, WHOLE, FACTOR, POSITIVE, COMPUTE, LIST };

struct row {
    const char *name;
    char letter; /* 0: none */
    enum kind kind;
    size_t offset;        /* in struct und_options */
    const char *argument; /* what it is called in --help */
    const char *standard; /* default, read like a given value; NULL: none */
    const char *help;
};

#define AT(member) offsetof(struct und_options, member)

static const struct row rows[] = {
    {"workload", 'w', TEXT, AT(workload), "FILE", NULL, "descriptor of the workload to play (JSON)"},
    {"method", 'a', TEXT, AT(method), "NAME", NULL,
     "play all streams by this method (see --list) instead of each stream's own"},
    {"method-option", 'm', LIST, AT(settings), "KEY=VALUE", NULL,
     "option of a method, METHOD.OPTION=VALUE (see --list -v); may be given several times"},
    {"transfer", 't', BYTES, AT(transfer_bytes), "BYTES", NULL,
     "most bytes of one call, instead of each stream's transfer_bytes"},
    {"collective", 'c', FLAG, AT(collective), NULL, NULL, "collective data calls in all streams"},
    {"independent", 0, FLAG, AT(independent), NULL, NULL, "independent data calls in all streams"},
    {"directory", 'o', TEXT, AT(directory), "DIR", NULL,
     "directory for the files; empty, or not there yet: then it is made, and removed at the end"},
    {"repetitions", 'i', COUNT, AT(repetitions), "N", "1", "how often the whole workload is played"},
    {"fsync", 'e', FLAG, AT(fsync), NULL, NULL, "flush to storage after each dump of every stream, timed"},
    {"keep", 'k', FLAG, AT(keep), NULL, NULL, "leave the files of the last repetition in place"},
    {"time-scale", 0, FACTOR, AT(time_scale), "X", "1", "multiply the times of all dumps; 0 plays without pauses"},
    {"bytes-scale", 0, POSITIVE, AT(bytes_scale), "X", "1", "multiply the longest dimension of every variable"},
    {"compute", 0, COMPUTE, AT(compute), "NAME", NULL,
     "sleep, busy or stencil between the dumps, instead of what the workload says"},
    {"verify", 0, FLAG, AT(verify), NULL, NULL, "read everything back after each repetition and compare it, untimed"},
    {"restart", 0, FLAG, AT(restart), NULL, NULL,
     "after the schedule read the last dump of every checkpoint stream back, timed"},
    {"restart-stream", 0, TEXT, AT(restart_stream), "NAME", NULL,
     "with --restart: read back this written stream, and no other"},
    {"restart-dump", 0, WHOLE, AT(restart_dump), "N", NULL, "with --restart: read back dump N (from 0), not the last"},
    {"restart-from", 0, TEXT, AT(restart_from), "DIR", NULL,
     "write nothing, instead of -o: restart from the files that an earlier run kept (-k) in DIR"},
    {"shift-ranks", 0, WHOLE, AT(shift_ranks), "N", "1", "with --restart: rank r reads what rank r+N wrote"},
    {"drop-cache", 0, FLAG, AT(drop_cache), NULL, NULL,
     "with --restart: flush the files and have the kernel forget them before the timed read"},
    {"output", 'O', TEXT, AT(output), "FILE", "result.json", "where the result goes (JSON)"},
    {"seed", 0, WHOLE, AT(seed), "N", "1", "what the contents of the files depend on"},
    {"dry-run", 0, FLAG, AT(dry_run), NULL, NULL, "say what a run would do and move, and write nothing"},
    {"list", 0, FLAG, AT(list), NULL, NULL, "list the methods, with the reason where one is unavailable"},
    {"verbose", 'v', FLAG, AT(verbose), NULL, NULL,
     "say on standard error what is being played; with --list: options of methods too"},
    {"help", 'h', FLAG, AT(help), NULL, NULL, "print this text"},
    {"version", 'V', FLAG, AT(version), NULL, NULL, "print the version"},
};
enum { ROWS = (int)(sizeof rows / sizeof rows[0]) };

int64_t und_bytes_read(const char *text)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } units[] = {
        {"", 1},          {"kB", 1000},     {"MB", 1000000},           {"GB", 1000000000},        {"TB", 1000000000000},
        {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", INT64_C(1) << 30}, {"TiB", INT64_C(1) << 40},
    };
    char *unit;
    if (text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    const long long number = strtoll(text, &unit, 10);
    for (size_t i = 0; errno == 0 && i < sizeof units / sizeof units[0]; ++i)
        if (strcmp(unit, units[i].name) == 0)
            return number > INT64_MAX / units[i].bytes ? -1 : number * units[i].bytes;
    return -1;
}

static bool read_whole(const char *text, int64_t least, int64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && *number >= least;
}

static bool read_factor(const char *text, double *factor)
{
    char *end;
    *factor = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*factor) && *factor >= 0;
}

/* In the order of enum und_compute. */
static bool read_compute(const char *text, int *compute)
{
    static const char *const names[] = {"sleep", "busy", "stencil"};
    for (*compute = 0; *compute < 3; ++*compute)
        if (strcmp(text, names[*compute]) == 0)
            return true;
    return false;
}

static bool set(struct und_options *options, const struct row *row, const char *text, struct und_error *error)
{
    void *member = (char *)options + row->offset;
    bool *flag = member;
    const char **string = member;
    int64_t *number = member;
    double *factor = member;
    const char *expected = NULL;
    switch (row->kind) {
    case FLAG: *flag = true; break;
    case TEXT:
        *string = text;
        expected = text[0] ? NULL : "a name that is not empty";
        break;
    case BYTES:
        *number = und_bytes_read(text);
        expected = *number > 0 ? NULL : "bytes such as 4194304, 4MiB (binary) or 4MB (decimal)";
        break;
    case COUNT: expected = read_whole(text, 1, number) ? NULL : "a whole number of at least 1"; break;
    case WHOLE: expected = read_whole(text, 0, number) ? NULL : "a whole number of at least 0"; break;
    case FACTOR: expected = read_factor(text, factor) ? NULL : "a number of at least 0"; break;
    case LIST:
        if (options->setting_count == UND_MOST_GIVEN)
            return und_fail(error, "--%s %s: expected at most %d of them", row->name, text, UND_MOST_GIVEN);
        options->settings[options->setting_count++] = text;
        break;
    case COMPUTE: expected = read_compute(text, member) ? NULL : "sleep, busy or stencil"; break;
    case POSITIVE: expected = read_factor(text, factor) && *factor > 0 ? NULL : "a number above 0"; break;
    }
    return !expected || und_fail(error, "--%s %s: expected %s", row->name, text, expected);
}

/* What getopt_long wants: its long options in the order of the rows, and the string of letters. */
static void describe(struct option *table, char *letters)
{
    *letters++ = ':';
    for (int i = 0; i < ROWS; ++i) {
        const int takes = rows[i].kind == FLAG ? no_argument : required_argument;
        table[i] = (struct option){rows[i].name, takes, NULL, 256 + i};
        if (rows[i].letter == 0)
            continue;
        *letters++ = rows[i].letter;
        if (takes == required_argument)
            *letters++ = ':';
    }
    table[ROWS] = (struct option){NULL, 0, NULL, 0};
    *letters = '\0';
}

static int row_of(int code)
{
    for (int i = 0; i < ROWS; ++i)
        if (code == 256 + i || (rows[i].letter && code == rows[i].letter))
            return i;
    return -1;
}

static bool check(const struct und_options *options, struct und_error *error)
{
    if (options->help || options->version || options->list)
        return true;
    if (!options->workload)
        return und_fail(error, "no workload given: expected -w FILE, see --help");
    if (options->restart_from && options->directory)
        return und_fail(error, "--restart-from and --directory exclude each other: nothing is written");
    if (options->restart_from && options->keep)
        return und_fail(error, "--restart-from and --keep exclude each other: nothing is written");
    if (!options->restart && !options->restart_from && (options->restart_stream || options->restart_dump >= 0))
        return und_fail(error, "--restart-%s: expected together with --restart or --restart-from",
                        options->restart_stream ? "stream" : "dump");
    if (!options->restart && !options->restart_from && options->drop_cache)
        return und_fail(error, "--drop-cache: expected together with --restart or --restart-from");
    if (!options->directory && !options->restart_from && !options->dry_run)
        return und_fail(error, "no directory given: expected -o DIR, see --help");
    if (options->collective && options->independent)
        return und_fail(error, "--collective and --independent exclude each other");
    return true;
}

bool und_options_read(struct und_options *options, int argc, char **argv, struct und_error *error)
{
    struct option table[ROWS + 1];
    char letters[2 * ROWS + 2];
    describe(table, letters);
    memset(options, 0, sizeof *options);
    options->compute = -1;
    options->restart_dump = -1;
    for (int i = 0; i < ROWS; ++i)
        if (rows[i].standard && !set(options, &rows[i], rows[i].standard, error))
            return false;
    opterr = 0;
    optind = 1;
    for (int code; (code = getopt_long(argc, argv, letters, table, NULL)) != -1;) {
        if (code == ':')
            return und_fail(error, "%s: a value is missing, see --help", argv[optind - 1]);
        if (code == '?' && optopt > 0 && optopt < 256)
            return und_fail(error, "-%c: no such option, see --help", optopt);
        if (code == '?' && optopt >= 256)
            return und_fail(error, "%s: takes no value, see --help", argv[optind - 1]);
        if (code == '?')
            return und_fail(error, "%s: no such option, or short for several, see --help", argv[optind - 1]);
        if (!set(options, &rows[row_of(code)], optarg, error))
            return false;
    }
    if (optind < argc)
        return und_fail(error, "%s: expected options only, see --help", argv[optind]);
    if (!check(options, error))
        return false;
    if (options->restart_from) {
        options->directory = options->restart_from;
        options->restart = true;
    }
    return true;
}

void und_options_help(FILE *stream)
{
    fprintf(stream, "Usage: mpirun -n RANKS understudy-replay -w FILE -o DIR [options]\n\n"
                    "Plays the I/O of an application and measures bytes and seconds.\n\n");
    for (int i = 0; i < ROWS; ++i) {
        char letter[] = "-x,";
        char name[64];
        letter[1] = rows[i].letter;
        snprintf(name, sizeof name, "--%s%s%s", rows[i].name, rows[i].argument ? " " : "",
                 rows[i].argument ? rows[i].argument : "");
        fprintf(stream, "  %3s %-25s %s", rows[i].letter ? letter : "", name, rows[i].help);
        fprintf(stream, rows[i].standard ? " (default %s)\n" : "\n", rows[i].standard);
    }
    fprintf(stream,
            "\nBYTES are plain (4194304), binary (4KiB 4MiB 4GiB 4TiB) or decimal (4kB 4MB 4GB 4TB); times are\n"
            "seconds. The exit status is 0 after a complete run, 1 when an operation failed or a\n"
            "content was wrong, 2 for a mistake in options, descriptor or directory.\n");
}
