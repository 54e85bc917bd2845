#include "options/option.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum kind { FLAG, ON, OFF, TEXT, BYTES, COUNT, WHOLE, TARGETS, FACTOR, POSITIVE, COMPUTE, PAIRS };

struct row {
    enum kind kind;
    size_t offset; /* in struct und_options */
    const char *name;
    char letter;
    const char *argument;
    const char *default_value;
    const char *key;
    const char *help;
};

static const struct row rows[] = {
#define UND_OPTION(kind, member, name, letter, argument, default_value, key, help) \
    {kind, offsetof(struct und_options, member), name, letter, argument, default_value, key, help},
#include "options/option.def"
#undef UND_OPTION
};
enum { ROWS = (int)(sizeof rows / sizeof rows[0]) };

/* A number before it is set; no value that its option takes. */
static int not_set(enum kind kind)
{
    return kind == BYTES || kind == TARGETS ? 0 : -1;
}

/* In the order of enum und_compute. */
static const char *const computes[] = {"sleep", "busy", "stencil"};
enum { COMPUTES = (int)(sizeof computes / sizeof computes[0]) };

int64_t und_bytes_read(const char *text)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } units[] = {
        {"", 1},
        {"kB", 1000},
        {"MB", 1000000},
        {"GB", 1000000000},
        {"TB", INT64_C(1000000000000)},
        {"PB", INT64_C(1000000000000000)},
        {"EB", INT64_C(1000000000000000000)},
        {"KiB", 1 << 10},
        {"MiB", 1 << 20},
        {"GiB", INT64_C(1) << 30},
        {"TiB", INT64_C(1) << 40},
        {"PiB", INT64_C(1) << 50},
        {"EiB", INT64_C(1) << 60},
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

bool und_targets_read(const char *text, int64_t *count)
{
    return read_whole(text, -1, count) && *count != 0;
}

static bool read_factor(const char *text, double *factor)
{
    char *end;
    *factor = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*factor) && *factor >= 0;
}

static bool read_compute(const char *text, int *compute)
{
    for (*compute = 0; *compute < COMPUTES; ++*compute)
        if (strcmp(text, computes[*compute]) == 0)
            return true;
    return false;
}

/* The other of two flags that exclude each other. */
static const struct row *opposite(const struct row *row)
{
    for (int i = 0; i < ROWS; ++i)
        if (rows[i].kind == (row->kind == ON ? OFF : ON) && strcmp(rows[i].key, row->key) == 0)
            return &rows[i];
    return NULL;
}

static bool add_pair(struct und_pairs *pairs, const struct row *row, const char *text, struct und_error *error)
{
    if (pairs->count == UND_MAX_PAIRS)
        return und_fail(error, "--%s %s: given more than %d times", row->name, text, UND_MAX_PAIRS);
    pairs->texts[pairs->count++] = text;
    return true;
}

/* NULL, or what was expected. */
static const char *set_number(enum kind kind, int64_t *number, const char *text)
{
    switch (kind) {
    case BYTES: *number = und_bytes_read(text); return *number > 0 ? NULL : UND_BYTES_EXPECTED;
    case TARGETS: return und_targets_read(text, number) ? NULL : "a whole number of at least 1, or -1 for all";
    case COUNT: return read_whole(text, 1, number) ? NULL : "a whole number of at least 1";
    default: return read_whole(text, 0, number) ? NULL : "a whole number of at least 0";
    }
}

static bool set(struct und_options *options, const struct row *row, const char *text, struct und_error *error)
{
    void *member = (char *)options + row->offset;
    const char *expected = NULL;
    switch (row->kind) {
    case ON:
    case OFF:
    case FLAG: *(bool *)member = true; break;
    case TEXT:
        *(const char **)member = text;
        expected = text[0] ? NULL : "a name that is not empty";
        break;
    case BYTES:
    case TARGETS:
    case COUNT:
    case WHOLE: expected = set_number(row->kind, member, text); break;
    case FACTOR: expected = read_factor(text, member) ? NULL : "a number of at least 0"; break;
    case POSITIVE: expected = read_factor(text, member) && *(double *)member > 0 ? NULL : "a number above 0"; break;
    case COMPUTE: expected = read_compute(text, member) ? NULL : "sleep, busy or stencil"; break;
    case PAIRS:
        if (strchr(text, '=') > text)
            return add_pair(member, row, text, error);
        expected = row->argument;
        break;
    }
    return !expected || und_fail(error, "--%s %s: expected %s", row->name, text, expected);
}

/* The default, or "not set". */
static bool initialize(struct und_options *options, const struct row *row, struct und_error *error)
{
    void *member = (char *)options + row->offset;
    if (row->default_value)
        return set(options, row, row->default_value, error);
    if (row->kind == COUNT || row->kind == WHOLE)
        *(int64_t *)member = not_set(row->kind);
    if (row->kind == FACTOR || row->kind == POSITIVE)
        *(double *)member = not_set(row->kind);
    if (row->kind == COMPUTE)
        *(int *)member = not_set(row->kind);
    return true;
}

/* The arguments of getopt_long: its long options in the order of the rows, and the string of letters. */
static void describe(struct option *table, char *letters)
{
    *letters++ = ':';
    for (int i = 0; i < ROWS; ++i) {
        const int takes = rows[i].argument ? required_argument : no_argument;
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

static bool is_set(const struct und_options *options, const struct row *flag)
{
    return *(const bool *)((const char *)options + flag->offset);
}

static bool check_restart(const struct und_options *options, struct und_error *error)
{
    const char *writes = !options->restart_from    ? NULL
                         : options->directory      ? "directory"
                         : options->keep           ? "keep"
                         : options->stripe_count   ? "stripe-count"
                         : options->stripe_size    ? "stripe-size"
                         : options->stripe_targets ? "stripe-targets"
                         : options->stripe_pool    ? "stripe-pool"
                                                   : NULL;
    if (writes)
        return und_fail(error, "--restart-from and --%s exclude each other: nothing is written", writes);
    if (options->restart || options->restart_from)
        return true;
    const char *reads = options->restart_stream      ? "restart-stream"
                        : options->restart_dump >= 0 ? "restart-dump"
                        : options->drop_cache        ? "drop-cache"
                                                     : NULL;
    return !reads || und_fail(error, "--%s: expected together with --restart or --restart-from", reads);
}

static bool check(const struct und_options *options, struct und_error *error)
{
    if (options->help || options->version || options->list)
        return true;
    if (!options->workload)
        return und_fail(error, "no workload given: expected -w FILE, see --help");
    if (!check_restart(options, error))
        return false;
    if (options->time_series && options->no_latency)
        return und_fail(error, "--time-series and --no-latency exclude each other: its lines have latencies");
    if (options->time_series && strcmp(options->time_series, options->output) == 0)
        return und_fail(error, "--time-series %s: is the file of --output; expected another", options->time_series);
    if (!options->directory && !options->restart_from && !options->dry_run)
        return und_fail(error, "no directory given: expected -o DIR, see --help");
    for (int i = 0; i < ROWS; ++i)
        if (rows[i].kind == ON && is_set(options, &rows[i]) && is_set(options, opposite(&rows[i])))
            return und_fail(error, "--%s and --%s exclude each other", rows[i].name, opposite(&rows[i])->name);
    return true;
}

bool und_option_known(int code, char *const *argv, struct und_error *error)
{
    const char *const last = argv[optind - 1];
    if (code == ':')
        return und_fail(error, "%s: a value is missing, see --help", last);
    if (code == '?' && strncmp(last, "--", 2) == 0)
        return und_fail(error, "%s: no such option, short for several, or without a value, see --help", last);
    return code != '?' || und_fail(error, "-%c: no such option, see --help", optopt);
}

bool und_options_read(struct und_options *options, int argc, char **argv, struct und_error *error)
{
    struct option table[ROWS + 1];
    char letters[2 * ROWS + 2];
    describe(table, letters);
    memset(options, 0, sizeof *options);
    for (int i = 0; i < ROWS; ++i)
        if (!initialize(options, &rows[i], error))
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
        fprintf(stream, "  %3s %-35s %s", rows[i].letter ? letter : "", name, rows[i].help);
        fprintf(stream, rows[i].default_value ? " (default %s)\n" : "\n", rows[i].default_value);
    }
    fprintf(stream,
            "\nBYTES are plain (4194304), binary (4KiB 4MiB 4GiB 4TiB) or decimal (4kB 4MB 4GB 4TB); times are\n"
            "seconds. The exit status is 0 after a complete run, 1 when an operation failed or contents\n"
            "were wrong, 2 when options, descriptor or run directory are invalid.\n");
}

json_t *und_pairs_record(const struct und_pairs *pairs)
{
    json_t *object = json_object();
    for (int i = 0; i < pairs->count; ++i) {
        char key[256];
        const char *end = strchr(pairs->texts[i], '=');
        snprintf(key, sizeof key, "%.*s", (int)(end - pairs->texts[i]), pairs->texts[i]);
        if (json_object_set_new(object, key, json_string(end + 1)) != 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

/* One of two flags that exclude each other; null where neither is set. */
static json_t *flag_of(const struct und_options *options, const struct row *row)
{
    const bool set_here = is_set(options, row);
    return set_here || is_set(options, opposite(row)) ? json_boolean(set_here == (row->kind == ON)) : json_null();
}

static json_t *value_of(const struct und_options *options, const struct row *row)
{
    const void *member = (const char *)options + row->offset;
    const char *const *text = member;
    const int64_t *number = member;
    const double *factor = member;
    const int *choice = member;
    switch (row->kind) {
    case FLAG: return json_boolean(is_set(options, row));
    case ON:
    case OFF: return flag_of(options, row);
    case TEXT: return *text ? json_string(*text) : json_null();
    case BYTES:
    case TARGETS:
    case COUNT:
    case WHOLE: return *number != not_set(row->kind) ? json_integer(*number) : json_null();
    case FACTOR:
    case POSITIVE: return *factor >= 0 ? json_real(*factor) : json_null();
    case COMPUTE: return *choice >= 0 ? json_string(computes[*choice]) : json_null();
    case PAIRS: break;
    }
    return und_pairs_record(member);
}

json_t *und_options_record(const struct und_options *options)
{
    json_t *object = json_object();
    for (int i = 0; i < ROWS; ++i)
        if (rows[i].key && json_object_set_new(object, rows[i].key, value_of(options, &rows[i])) != 0) {
            json_decref(object);
            return NULL;
        }
    return object;
}
